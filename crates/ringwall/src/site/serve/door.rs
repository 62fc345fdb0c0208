//! The door: listens, gives up what privileges it has, and answers hosts until its keeper is gone.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _, BufReader, Read, Write};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use authority::enrolment::by_service::Application;
use identity::certificate::HostCertificate;
use identity::revocation::RevocationList;
use identity::tls::{Credentials, NotLetIn, Server};
use identity::{HostIdentity, Verified, pem};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use system::privilege;
use system::sandbox::{self, Reach, User};
use system::wait::{PollFd, PollFlags, wait};

use super::super::signer;
use super::counts::{Counts, Refusal};
use super::http::{self, BadRequest, Wanted};
use super::kept::HOSTS_MAX;
use super::{Duty, Kept, Question, Reply};
use crate::failure::Failure;
use crate::report::hurried::Hurried;
use crate::report::{Newest, Report, unix_s};

/// Connections at one time.
const CLIENTS_MAX: usize = 64;
/// Of one address: nobody takes all of them.
pub(super) const CLIENTS_OF_ADDRESS_MAX: usize = 8;
/// How long one may take to prove who he is.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(3);
/// How long from then on, all in all.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(10);
/// How often a host may report.
pub(super) const REPORT_EVERY: Duration = Duration::from_secs(2);
/// How often somebody at one address may apply with a token.
const ENROLMENT_EVERY: Duration = Duration::from_millis(500);
/// How long the keeper may take.
const KEEPER_TIME_MAX: Duration = Duration::from_secs(10);
/// Longest line of the keeper: a file of the site, with what JSON makes of it.
const LINE_BYTES_MAX: u64 = 2 * authority::limits::MAX_FILE_LEN;
/// How old what the site has signed may be when it is handed out.
const FRESH: Duration = Duration::from_secs(2);
/// How often the keeper hears of who was turned away.
const TELL_EVERY: Duration = Duration::from_secs(1);
const PEM: &str = "application/x-pem-file";
const JSON: &str = "application/json";

/// `ringwall site-door`, which `ringwall site serve` starts with a socket as its standard input.
pub(crate) fn run() -> Result<(), Failure> {
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().map_err(Failure::new)?);
    if stream.peer_addr().is_err() {
        return Err(Failure::new("`ringwall site serve` starts its door by itself"));
    }
    // A service manager may signal every process of a service; the end of the keeper is the end of
    // this one.
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).map_err(Failure::new)?;
    }
    let end = stream.try_clone().map_err(Failure::new)?;
    let mut keeper = Keeper::new(stream).map_err(Failure::new)?;
    let duty: Duty = keeper.line().map_err(Failure::new)?;
    let listeners = duty.listen.iter().map(|address| {
        let listener = TcpListener::bind(address);
        listener.map_err(|error| Failure::new(format!("{address}: {error}; name another with --listen")))
    });
    let listeners = listeners.collect::<Result<Vec<_>, _>>()?;
    confine().map_err(Failure::new)?;
    let door = Arc::new(Door::open(&duty.identity, keeper)?);
    for listener in listeners {
        let door = Arc::clone(&door);
        std::thread::Builder::new().spawn(move || serve(&door, &listener)).map_err(Failure::new)?;
    }
    tracing::info!("hosts report to {:?}", duty.listen);
    wait_for_end(&end, &door);
    Ok(())
}

/// Another user than root, no privilege, no file, no other port.
fn confine() -> io::Result<()> {
    let user = User::find()?;
    sandbox::forbid_dumps()?;
    privilege::become_user(&user, &[])?;
    let landlocked = sandbox::confine(&Reach::default())?;
    tracing::debug!("the door: Landlock is {landlocked}");
    sandbox::end_at_attacks()
}

/// Returns when the keeper is gone; tells it of who was turned away meanwhile.
fn wait_for_end(keeper: &UnixStream, door: &Door) {
    loop {
        // Without a wanted event, only the end of the other side is one.
        let mut watched = [PollFd::new(keeper, PollFlags::RDHUP)];
        match wait(&mut watched, Some(TELL_EVERY)) {
            Ok(0) => door.tell_counts(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return,
        }
    }
}

/// The way to the keeper.
pub(super) struct Keeper {
    reader: BufReader<UnixStream>,
    /// A question was begun and its answer did not come: what comes would be that of another.
    is_lost: bool,
}

impl Keeper {
    pub(super) fn new(stream: UnixStream) -> io::Result<Keeper> {
        stream.set_read_timeout(Some(KEEPER_TIME_MAX))?;
        stream.set_write_timeout(Some(KEEPER_TIME_MAX))?;
        Ok(Keeper { reader: BufReader::new(stream), is_lost: false })
    }

    fn line<T: serde::de::DeserializeOwned>(&mut self) -> io::Result<T> {
        let mut line = Vec::new();
        self.reader.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        Ok(serde_json::from_slice(&line)?)
    }

    fn say(&mut self, question: &Question) -> io::Result<()> {
        let mut line = serde_json::to_vec(question)?;
        line.push(b'\n');
        self.reader.get_ref().write_all(&line)
    }

    fn ask(&mut self, question: &Question) -> io::Result<Reply> {
        if self.is_lost {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let reply = self.say(question).and_then(|()| self.line());
        self.is_lost = reply.is_err();
        reply
    }
}

/// What the site has signed, as it was a moment ago.
#[derive(Clone, Default)]
struct Signed {
    policy: Option<Arc<str>>,
    revoked: Option<Arc<str>>,
    list: Option<Arc<Verified<RevocationList>>>,
    newest: Newest,
}

/// All that clients share.
pub(super) struct Door {
    server: Server,
    identity: HostIdentity,
    keeper: Mutex<Keeper>,
    signed: Mutex<Option<(Instant, Signed)>>,
    clients: Mutex<BTreeMap<IpAddr, usize>>,
    reported: Mutex<BTreeMap<String, Instant>>,
    applied: Mutex<BTreeMap<IpAddr, Instant>>,
    counts: Counts,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Door {
    pub(super) fn open(identity: &str, keeper: Keeper) -> Result<Door, Failure> {
        let server = Credentials::from_pem(identity, unix_s).and_then(|credentials| credentials.server());
        Ok(Door {
            server: server.map_err(Failure::new)?,
            identity: HostIdentity::from_pem(identity).map_err(Failure::new)?,
            keeper: Mutex::new(keeper),
            signed: Mutex::default(),
            clients: Mutex::default(),
            reported: Mutex::default(),
            applied: Mutex::default(),
            counts: Counts::default(),
        })
    }

    pub(super) fn tell_counts(&self) {
        let counts = self.counts.take();
        if !counts.is_empty() {
            let mut keeper = locked(&self.keeper);
            if !keeper.is_lost && keeper.say(&Question::Count(counts)).is_err() {
                keeper.is_lost = true;
            }
        }
    }

    /// Whether one more of this address may be answered; he is counted until he leaves.
    fn enter(&self, address: IpAddr) -> bool {
        let mut clients = locked(&self.clients);
        let all: usize = clients.values().sum();
        let of_address = clients.get(&address).copied().unwrap_or(0);
        let may = all < CLIENTS_MAX && of_address < CLIENTS_OF_ADDRESS_MAX;
        if may {
            clients.insert(address, of_address + 1);
        }
        may
    }

    fn leave(&self, address: IpAddr) {
        let mut clients = locked(&self.clients);
        if let Some(count) = clients.get_mut(&address) {
            *count -= 1;
        }
        clients.retain(|_, count| *count > 0);
    }

    /// What the site has signed, fetched anew after a while. Who looks for it waits for who fetches
    /// it.
    fn signed(&self) -> Result<Signed, Refusal> {
        let mut held = locked(&self.signed);
        if let Some((at, signed)) = &*held
            && at.elapsed() < FRESH
        {
            return Ok(signed.clone());
        }
        let signed = self.fetch_signed().map_err(|_| Refusal::Silent)?;
        *held = Some((Instant::now(), signed.clone()));
        Ok(signed)
    }

    fn fetch_signed(&self) -> io::Result<Signed> {
        let mut keeper = locked(&self.keeper);
        let mut text = |question| match keeper.ask(&question)? {
            Reply::Text(text) => Ok(text),
            Reply::Kept(_) | Reply::Signed(_) => Err(io::Error::from(io::ErrorKind::InvalidData)),
        };
        let (policy, revoked) = (text(Question::Policy)?, text(Question::Revoked)?);
        let anchor = self.identity.anchor();
        let version = policy.as_ref().and_then(|text| {
            let bytes = pem::single(text, pem::SITE_POLICY).ok()?;
            anchor.verify_policy(&bytes).ok().map(|policy| policy.version())
        });
        let list = revoked.as_ref().map(|text| {
            // A list that cannot be read would let in who is on it.
            let der = pem::single(text, pem::REVOCATION_LIST).map_err(io::Error::other)?;
            anchor.verify_revocation_list(&der).map(Arc::new).map_err(io::Error::other)
        });
        let list = list.transpose()?;
        let newest =
            Newest { policy_version: version, revoked_issued_unix: list.as_ref().map(|list| list.issued_unix()) };
        let policy = policy.filter(|_| version.is_some()).map(Arc::from);
        Ok(Signed { policy, revoked: revoked.map(Arc::from), list, newest })
    }

    /// The answer to what somebody at this address wants: its kind, and its body. Who shows no
    /// certificate may apply with a token, which the signer looks at, and no more.
    fn answer_to(
        &self,
        (address, host): (IpAddr, Option<&HostCertificate>),
        wanted: Wanted,
    ) -> Result<(&'static str, Vec<u8>), Refusal> {
        match (host, wanted) {
            (_, Wanted::Enrolment(bytes)) => self.enrol(address, &bytes),
            (Some(host), wanted) => self.answer(host, wanted),
            (None, _) => Err(Refusal::NotLetIn(NotLetIn::Nameless)),
        }
    }

    fn answer(&self, host: &HostCertificate, wanted: Wanted) -> Result<(&'static str, Vec<u8>), Refusal> {
        let signed = self.signed()?;
        if signed.list.as_ref().is_some_and(|list| list.names(host)) {
            return Err(Refusal::Revoked);
        }
        let text = |text: Option<Arc<str>>| Ok((PEM, text.ok_or(Refusal::Absent)?.as_bytes().to_vec()));
        match wanted {
            Wanted::Policy => text(signed.policy),
            Wanted::Revoked => text(signed.revoked),
            Wanted::Renewal(bytes) => self.renew(host, bytes),
            // It needs no certificate, and is answered before.
            Wanted::Enrolment(_) => Err(Refusal::Request(BadRequest::Elsewhere)),
            Wanted::Report(bytes) => {
                self.take(host, &bytes)?;
                Ok((JSON, serde_json::to_vec(&signed.newest).unwrap_or_default()))
            }
        }
    }

    fn take(&self, host: &HostCertificate, bytes: &[u8]) -> Result<(), Refusal> {
        check_pace(&self.reported, host.name().to_owned(), REPORT_EVERY)?;
        let report = Box::new(Report::parse(bytes).map_err(Refusal::Report)?);
        let question = Question::Keep { host: host.name().to_owned(), report };
        match locked(&self.keeper).ask(&question) {
            Ok(Reply::Kept(Kept::Newest)) => Ok(()),
            Ok(Reply::Kept(other)) => Err(Refusal::NotKept(other)),
            _ => Err(Refusal::Silent),
        }
    }

    fn renew(&self, host: &HostCertificate, request: Vec<u8>) -> Result<(&'static str, Vec<u8>), Refusal> {
        let request = String::from_utf8(request).map_err(|_| Refusal::Request(BadRequest::Malformed))?;
        let host = host.name().to_owned();
        match self.sign(signer::Question::Renewal { host, request })? {
            signer::Answer::Renewed(sealed) => Ok((PEM, sealed.into_bytes())),
            _ => Err(Refusal::Silent),
        }
    }

    fn enrol(&self, address: IpAddr, application: &[u8]) -> Result<(&'static str, Vec<u8>), Refusal> {
        check_pace(&self.applied, address, ENROLMENT_EVERY)?;
        let application = Application::parse(application).map_err(|_| Refusal::Request(BadRequest::Malformed))?;
        match self.sign(signer::Question::Enrolment(Box::new(application)))? {
            signer::Answer::Enrolment(outcome) => Ok((JSON, serde_json::to_vec(&outcome).unwrap_or_default())),
            _ => Err(Refusal::Silent),
        }
    }

    fn sign(&self, question: signer::Question) -> Result<signer::Answer, Refusal> {
        match locked(&self.keeper).ask(&Question::Sign(question)) {
            Ok(Reply::Signed(Some(signer::Answer::Refused(why)))) => Err(Refusal::of(&why)),
            Ok(Reply::Signed(Some(answer))) => Ok(answer),
            Ok(Reply::Signed(None)) => Err(Refusal::NoSigner),
            _ => Err(Refusal::Silent),
        }
    }

    fn converse(&self, stream: TcpStream, address: IpAddr) -> Result<(), Refusal> {
        let stream = Hurried { stream, deadline: Instant::now() + HANDSHAKE_TIME_MAX };
        let (mut stream, host) = self.server.accept(stream).map_err(Refusal::NotLetIn)?;
        stream.sock.deadline = Instant::now() + CLIENT_TIME_MAX;
        let gone = |_| Refusal::NotLetIn(NotLetIn::Gone);
        let wanted = http::read(&mut stream).map_err(gone)?.map_err(Refusal::Request);
        let outcome = wanted.and_then(|wanted| self.answer_to((address, host.as_deref()), wanted));
        let said = match &outcome {
            Ok((kind, body)) => http::answer(&mut stream, "200 OK", kind, body),
            Err(refusal) => {
                let line = format!("{}\n", refusal.word());
                http::answer(&mut stream, refusal.status(), "text/plain; charset=utf-8", line.as_bytes())
            }
        };
        stream.conn.send_close_notify();
        said.and_then(|()| stream.flush()).map_err(gone)?;
        outcome.map(drop)
    }
}

/// Whether it is long enough since this one asked last.
fn check_pace<K: Ord>(asked: &Mutex<BTreeMap<K, Instant>>, who: K, every: Duration) -> Result<(), Refusal> {
    let mut asked = locked(asked);
    if asked.get(&who).is_some_and(|at| at.elapsed() < every) {
        return Err(Refusal::TooOften);
    }
    if asked.len() as u64 >= HOSTS_MAX {
        asked.retain(|_, at| at.elapsed() < every);
    }
    if asked.len() as u64 >= HOSTS_MAX && !asked.contains_key(&who) {
        return Err(Refusal::TooOften);
    }
    asked.insert(who, Instant::now());
    Ok(())
}

pub(super) fn serve(door: &Arc<Door>, listener: &TcpListener) {
    loop {
        match listener.accept() {
            Ok((stream, address)) => take_in(door, stream, address.ip()),
            // No descriptor is left, for instance.
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// Answers him in a thread of his own, if not too many are being answered.
fn take_in(door: &Arc<Door>, stream: TcpStream, address: IpAddr) {
    if !door.enter(address) {
        return door.counts.add(Refusal::TooMany);
    }
    let shared = Arc::clone(door);
    let started = std::thread::Builder::new().spawn(move || {
        let outcome = shared.converse(stream, address);
        shared.leave(address);
        outcome.err().into_iter().for_each(|refusal| shared.counts.add(refusal));
    });
    if started.is_err() {
        door.leave(address);
    }
}
