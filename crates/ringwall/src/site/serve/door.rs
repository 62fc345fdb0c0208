//! The door: listens, gives up what privileges it has, and answers hosts until its keeper is gone.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use authority::enrolment::by_service::Application;
use identity::certificate::{HostCertificate, OperatorCertificate};
use identity::order::SignedOrder;
use identity::revocation::RevocationList;
use identity::tls::{Caller, Credentials, NotLetIn, Server};
use identity::{HostIdentity, Verified, pem};

use super::super::orders::{ANSWER_BYTES_MAX, NotHeard};
use super::super::signer;
use super::brought::{Brought, Sort};
use super::http::{self, BadRequest, Wanted};
use super::kept::HOSTS_MAX;
use super::refusal::{NotSigned, Refusal};
use super::{COMMAND, Duty, Kept, Question, Reply, Task};
use crate::companion;
use crate::failure::Failure;
use crate::report::{Newest, NewestBrought, Report, unix_s};
use crate::serving::http::write as write_answer;
use crate::serving::{Client, Counts, Full, Hurried, Listener, Patience, Places, Recent, Service, Way, Who};
use crate::serving::{door, locked, serve};

/// Connections at one time.
pub(super) const CLIENTS_MAX: usize = 64;
/// Of one address: nobody takes all of them.
pub(super) const CLIENTS_OF_ADDRESS_MAX: usize = 8;
/// Clients of one kind who wait for the signer at one time, so that those who join in a crowd leave
/// places to those who report.
const WAITING_MAX: usize = CLIENTS_MAX / 8;
/// How long one may take to prove who he is.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(3);
/// How long from then on, all in all.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(10);
/// How often a host may report.
pub(super) const REPORT_EVERY: Duration = Duration::from_secs(2);
/// How often a host may ask for another certificate: the signer has many to answer.
const RENEWAL_EVERY: Duration = Duration::from_secs(2);
/// How often somebody at one address may apply with a token.
const ENROLMENT_EVERY: Duration = Duration::from_millis(500);
/// How long the keeper may take.
const KEEPER_TIME_MAX: Duration = Duration::from_secs(10);
/// How often an operator may order something.
const ORDER_EVERY: Duration = Duration::from_millis(250);
/// Longest line of the keeper: the answer to an operator, which is longer than any file of a site.
const LINE_BYTES_MAX: u64 = ANSWER_BYTES_MAX + 4096;
/// How old what the site has signed may be when it is handed out.
const FRESH: Duration = Duration::from_secs(2);
/// How often the keeper hears of who was turned away.
const TELL_EVERY: Duration = Duration::from_secs(1);
const PEM: &str = "application/x-pem-file";
const JSON: &str = "application/json";

/// `ringwall site-door`, which `ringwall site serve` starts with a socket as its standard input.
pub(crate) fn run() -> Result<(), Failure> {
    let stream = companion::socket("`ringwall site serve` starts its door by itself")?;
    let mut keeper = way_to_keeper(stream).map_err(Failure::new)?;
    let end = keeper.socket().map_err(Failure::new)?;
    let duty: Duty = keeper.receive().map_err(Failure::new)?;
    let listeners = duty.listen.iter().map(|address| {
        let listener = TcpListener::bind(address).map(Listener::Tcp);
        listener.map_err(|error| Failure::new(format!("{address}: {error}; name another with --listen")))
    });
    let listeners = listeners.collect::<Result<Vec<_>, _>>()?;
    door::confine(COMMAND).map_err(Failure::new)?;
    let clerk = companion::second_socket().and_then(way_to_keeper).map_err(Failure::new)?;
    let door = Arc::new(Door::open(&duty.identity, keeper, clerk)?);
    let places = Places::new(CLIENTS_MAX, CLIENTS_OF_ADDRESS_MAX);
    for listener in listeners {
        let (places, door) = (Arc::clone(&places), Arc::clone(&door));
        std::thread::Builder::new().spawn(move || serve(&listener, &places, &door)).map_err(Failure::new)?;
    }
    tracing::info!("hosts report to {:?}", duty.listen);
    door::wait_for_end(&end, Some(TELL_EVERY), || door.tell_counts());
    Ok(())
}

/// The way to the keeper, through which a socket leads.
pub(super) fn way_to_keeper(stream: UnixStream) -> io::Result<Way> {
    Way::new(stream, Patience { say: Some(KEEPER_TIME_MAX), hear: KEEPER_TIME_MAX }, LINE_BYTES_MAX)
}

/// What the site has signed, as it was a moment ago.
#[derive(Clone, Default)]
struct Signed {
    policy: Option<Arc<str>>,
    revoked: Option<Arc<str>>,
    list: Option<Arc<Verified<RevocationList>>>,
    newest: Newest,
}

/// The way to the clerk, who takes as long as the signer does.
struct Clerk {
    way: Mutex<Way>,
    /// Who waits for an answer, each kind for itself.
    operators: AtomicUsize,
    hosts: AtomicUsize,
    /// They may send what they like.
    strangers: AtomicUsize,
}

impl Clerk {
    fn new(way: Way) -> Clerk {
        let [operators, hosts, strangers] = [const { AtomicUsize::new(0) }; 3];
        Clerk { way: Mutex::new(way), operators, hosts, strangers }
    }

    /// The answer to one task, for one of those who are counted in `waiting`. Who comes while many
    /// wait is told to come later: all who wait take places of hosts that report. For who waited too
    /// long nothing is done, since he has gone.
    fn ask(&self, task: &Task, waiting: &AtomicUsize) -> Result<Reply, Refusal> {
        let _place = Waiting::among(waiting).ok_or(Refusal::NotSigned(NotSigned::TooOften))?;
        let since = Instant::now();
        let mut way = locked(&self.way);
        if since.elapsed() >= CLIENT_TIME_MAX {
            return Err(Refusal::Silent);
        }
        way.ask(task).map_err(|_| Refusal::Silent)
    }

    /// Whether nothing can be asked any more; of one who is being asked nobody can say so yet.
    fn is_lost(&self) -> bool {
        self.way.try_lock().is_ok_and(|way| way.is_lost())
    }
}

/// A place among those who wait for the clerk, until it is dropped.
struct Waiting<'a>(&'a AtomicUsize);

impl Waiting<'_> {
    fn among(count: &AtomicUsize) -> Option<Waiting<'_>> {
        let place = Waiting(count);
        (count.fetch_add(1, Ordering::Relaxed) < WAITING_MAX).then_some(place)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All that clients share.
pub(super) struct Door {
    server: Server,
    identity: HostIdentity,
    keeper: Mutex<Way>,
    clerk: Clerk,
    signed: Recent<Signed>,
    reported: Mutex<BTreeMap<String, Instant>>,
    brought: Mutex<BTreeMap<String, Instant>>,
    newest_brought: Mutex<NewestBrought>,
    renewed: Mutex<BTreeMap<String, Instant>>,
    applied: Mutex<BTreeMap<Who, Instant>>,
    ordered: Mutex<BTreeMap<String, Instant>>,
    counts: Counts,
}

impl Door {
    pub(super) fn open(identity: &str, keeper: Way, clerk: Way) -> Result<Door, Failure> {
        let server = Credentials::from_pem(identity, unix_s).and_then(|credentials| credentials.server());
        Ok(Door {
            server: server.map_err(Failure::new)?,
            identity: HostIdentity::from_pem(identity).map_err(Failure::new)?,
            keeper: Mutex::new(keeper),
            clerk: Clerk::new(clerk),
            signed: Recent::default(),
            reported: Mutex::default(),
            brought: Mutex::default(),
            newest_brought: Mutex::default(),
            renewed: Mutex::default(),
            applied: Mutex::default(),
            ordered: Mutex::default(),
            counts: Counts::default(),
        })
    }

    /// Tells the keeper who was turned away; whether it and the clerk can still be asked anything.
    pub(super) fn tell_counts(&self) -> bool {
        let counts: Vec<(String, u64)> =
            self.counts.take().into_iter().map(|(word, count)| (word.to_owned(), count)).collect();
        let mut keeper = locked(&self.keeper);
        let _ = (!counts.is_empty()).then(|| keeper.say(&Question::Count(counts)));
        !keeper.is_lost() && !self.clerk.is_lost()
    }

    /// What the site has signed, fetched anew after a while.
    fn signed(&self) -> Result<Signed, Refusal> {
        self.signed.get(FRESH, || self.fetch_signed().map_err(|_| Refusal::Silent))
    }

    fn fetch_signed(&self) -> io::Result<Signed> {
        let mut keeper = locked(&self.keeper);
        let mut text = |question| match keeper.ask(&question)? {
            Reply::Text(text) => Ok(text),
            Reply::Kept(_) | Reply::Signed(_) | Reply::Ordered(_) => Err(io::Error::from(io::ErrorKind::InvalidData)),
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
        let newest = Newest {
            policy_version: version,
            revoked_issued_unix: list.as_ref().map(|list| list.issued_unix()),
            brought: NewestBrought::default(),
        };
        let policy = policy.filter(|_| version.is_some()).map(Arc::from);
        Ok(Signed { policy, revoked: revoked.map(Arc::from), list, newest })
    }

    /// The answer to what somebody wants: its kind, and its body. Who shows no
    /// certificate may apply with a token or ask to be renewed, which the signer looks at, and no
    /// more.
    fn answer_to(&self, (address, caller): (Who, &Caller), wanted: Wanted) -> Result<(&'static str, Vec<u8>), Refusal> {
        match (caller, wanted) {
            (_, Wanted::Enrolment(bytes)) => self.enrol(address, &bytes),
            // Its certificate may be over; its request says who it is, and the signer compares the key.
            (Caller::Nobody, Wanted::Renewal(bytes)) => {
                check_pace(&self.applied, address, ENROLMENT_EVERY)?;
                self.renew(None, bytes)
            }
            (Caller::Nobody, _) => Err(Refusal::NotLetIn(NotLetIn::Nameless)),
            (Caller::Operator(operator), Wanted::Order(bytes)) => self.obey(operator, bytes),
            (Caller::Operator(_), _) => Err(Refusal::NoHost),
            (Caller::Host(_), Wanted::Order(_)) => Err(Refusal::NoOperator),
            (Caller::Host(host), wanted) => self.answer(host, wanted),
        }
    }

    /// Hands an order on, which is to be of who has connected. What it says the others look at.
    fn obey(&self, operator: &OperatorCertificate, order: Vec<u8>) -> Result<(&'static str, Vec<u8>), Refusal> {
        check_pace(&self.ordered, operator.name().to_owned(), ORDER_EVERY)?;
        let malformed = Refusal::NotHeard(NotHeard::Malformed);
        let order = String::from_utf8(order).map_err(|_| malformed)?;
        let signed = SignedOrder::from_pem(&order).map_err(|_| malformed)?;
        if signed.certificate != operator.der() {
            return Err(Refusal::NotHeard(NotHeard::Signature));
        }
        match self.clerk.ask(&Task::Order(order), &self.clerk.operators)? {
            Reply::Ordered(Some(Ok(answer))) | Reply::Signed(Some(signer::Answer::Ordered(answer))) => {
                Ok(("text/plain; charset=utf-8", answer.into_bytes()))
            }
            Reply::Ordered(Some(Err(why))) => Err(Refusal::NotHeard(why)),
            Reply::Signed(Some(signer::Answer::Refused(why))) => Err(Refusal::of(&why)),
            Reply::Signed(None) => Err(Refusal::NoSigner),
            _ => Err(Refusal::Silent),
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
            Wanted::Newer(bytes) => self.hand_on(host, bytes).map(|()| (JSON, b"{}".to_vec())),
            Wanted::Renewal(bytes) => {
                check_pace(&self.renewed, host.name().to_owned(), RENEWAL_EVERY)?;
                self.renew(Some(host.name().to_owned()), bytes)
            }
            // These are answered before.
            Wanted::Enrolment(_) | Wanted::Order(_) => Err(Refusal::Request(BadRequest::Elsewhere)),
            Wanted::Report(bytes) => {
                self.take(host, &bytes)?;
                let newest = Newest { brought: *locked(&self.newest_brought), ..signed.newest };
                Ok((JSON, serde_json::to_vec(&newest).unwrap_or_default()))
            }
        }
    }

    fn take(&self, host: &HostCertificate, bytes: &[u8]) -> Result<(), Refusal> {
        check_pace(&self.reported, host.name().to_owned(), REPORT_EVERY)?;
        let report = Box::new(Report::parse(bytes).map_err(Refusal::Report)?);
        let certificate = pem::encode(pem::CERTIFICATE, host.der()).to_string();
        let (host, serial) = (host.name().to_owned(), host.serial_hex());
        let question = Question::Keep { host, serial, certificate, report };
        match locked(&self.keeper).ask(&question) {
            Ok(Reply::Kept(Kept::Newest)) => Ok(()),
            Ok(Reply::Kept(other)) => Err(Refusal::NotKept(other)),
            _ => Err(Refusal::Silent),
        }
    }

    /// Hands on what a host brings, which the keeper looks at.
    fn hand_on(&self, host: &HostCertificate, bytes: Vec<u8>) -> Result<(), Refusal> {
        let text = String::from_utf8(bytes).map_err(|_| Refusal::NotOfSite)?;
        let brought = Brought::read(self.identity.anchor(), &text).ok_or(Refusal::NotOfSite)?;
        // A policy and a list come one behind the other.
        check_pace(&self.brought, format!("{} {}", brought.sort.word(), host.name()), REPORT_EVERY)?;
        match locked(&self.keeper).ask(&Question::Bring { host: host.name().to_owned(), text: brought.text }) {
            Ok(Reply::Kept(Kept::Newest)) => {
                let mut newest = locked(&self.newest_brought);
                match brought.sort {
                    Sort::Policy => newest.add_policy(brought.number),
                    Sort::Revoked => newest.add_revoked(brought.number),
                    Sort::Certificate => {}
                }
                Ok(())
            }
            Ok(Reply::Kept(Kept::Older)) => Err(Refusal::NotNewer),
            Ok(Reply::Kept(Kept::NotSigned)) => Err(Refusal::NotOfSite),
            Ok(Reply::Kept(other)) => Err(Refusal::NotKept(other)),
            _ => Err(Refusal::Silent),
        }
    }

    fn renew(&self, host: Option<String>, request: Vec<u8>) -> Result<(&'static str, Vec<u8>), Refusal> {
        let request = String::from_utf8(request).map_err(|_| Refusal::Request(BadRequest::Malformed))?;
        let waiting = if host.is_some() { &self.clerk.hosts } else { &self.clerk.strangers };
        match self.sign(signer::Question::Renewal { host, request }, waiting)? {
            signer::Answer::Renewed(sealed) => Ok((PEM, sealed.into_bytes())),
            _ => Err(Refusal::Silent),
        }
    }

    fn enrol(&self, address: Who, application: &[u8]) -> Result<(&'static str, Vec<u8>), Refusal> {
        check_pace(&self.applied, address, ENROLMENT_EVERY)?;
        let application = Application::parse(application).map_err(|_| Refusal::Request(BadRequest::Malformed))?;
        match self.sign(signer::Question::Enrolment(Box::new(application)), &self.clerk.strangers)? {
            signer::Answer::Enrolment(outcome) => Ok((JSON, serde_json::to_vec(&outcome).unwrap_or_default())),
            _ => Err(Refusal::Silent),
        }
    }

    fn sign(&self, question: signer::Question, waiting: &AtomicUsize) -> Result<signer::Answer, Refusal> {
        match self.clerk.ask(&Task::Sign(question), waiting)? {
            Reply::Signed(Some(signer::Answer::Refused(why))) => Err(Refusal::of(&why)),
            Reply::Signed(Some(answer)) => Ok(answer),
            Reply::Signed(None) => Err(Refusal::NoSigner),
            _ => Err(Refusal::Silent),
        }
    }

    fn answer_client(&self, client: Box<dyn Client>, who: Who) -> Result<(), Refusal> {
        let stream = Hurried::new(client, HANDSHAKE_TIME_MAX);
        let (mut stream, caller) = self.server.accept(stream).map_err(Refusal::NotLetIn)?;
        stream.sock.give(CLIENT_TIME_MAX);
        let gone = |_| Refusal::NotLetIn(NotLetIn::Gone);
        let wanted = http::read(&mut stream).map_err(gone)?.map_err(Refusal::Request);
        let outcome = wanted.and_then(|wanted| self.answer_to((who, &caller), wanted));
        let said = match &outcome {
            Ok((kind, body)) => write_answer(&mut stream, "200 OK", kind, "", body),
            Err(refusal) => {
                let line = format!("{}\n", refusal.word());
                let fields = refusal.fields();
                write_answer(&mut stream, refusal.status(), "text/plain; charset=utf-8", &fields, line.as_bytes())
            }
        };
        stream.conn.send_close_notify();
        said.and_then(|()| stream.flush()).map_err(gone)?;
        outcome.map(drop)
    }
}

impl Service for Door {
    fn converse(&self, client: Box<dyn Client>, who: Who) {
        let outcome = self.answer_client(client, who);
        outcome.err().into_iter().for_each(|refusal| self.counts.add(refusal.word()));
    }

    /// Without a word: he would have to prove first who he is.
    fn turn_away(&self, _client: Box<dyn Client>, _full: Full) {
        self.counts.add(Refusal::TooMany.word());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_wait_for_the_signer_and_who_has_gone_leaves_a_place() {
        let waiting = AtomicUsize::new(0);
        let mut places: Vec<_> = (0..WAITING_MAX).map(|_| Waiting::among(&waiting).expect("a place")).collect();
        assert!(Waiting::among(&waiting).is_none() && Waiting::among(&waiting).is_none());
        drop(places.pop());
        assert!(Waiting::among(&waiting).is_some());
        drop(places);
        assert_eq!(waiting.into_inner(), 0);
    }
}
