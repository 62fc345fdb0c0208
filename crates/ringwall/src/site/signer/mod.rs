//! `ringwall site signer`: the process that has the authority's key for the site's service
//! (docs/decisions/0095-a-signer-of-its-own.md).
//!
//! It has no network, but for a repository in etcd. It reaches no file but the site's, and those of
//! a token in files. It reads one question at a time from a Unix socket: a renewal or an application
//! with a token, of which it grants what a manager has decided before, or an operator's order under
//! his own signature. What it signs is in the site's record before it answers.
//!
//! - `asking.rs`: how the service puts a question; `pace.rs`: how many are answered; `refused.rs`:
//!   orders that are counted as refused.

mod asking;
mod pace;
mod refused;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use authority::directory::{
    Cache, Record, Terms, apply, begin_order, caching, check_may_be_late, repository_access, token_of,
};
use authority::enrolment::by_service::{Application, Outcome};
use authority::key::TokenUri;
use authority::limits::HOST_VALIDITY;
use authority::repository::etcd::Access;
use authority::{Directory, Error};
use clap::Args;
use identity::certificate::CertificateRequest;
use serde::{Deserialize, Serialize};
use system::privilege;
use system::sandbox::{self, Ports, Reach, Sockets};

use self::pace::Pace;
use super::arguments::whole_days;
use super::orders::{ANSWER_BYTES_MAX, NotHeard, Place, hear};
use super::{Actor, DAY, DEFAULT_DIRECTORY, Surroundings, with_surroundings};
use crate::failure::Failure;
use crate::report::forecast::now_unix_ms;

pub(crate) use asking::ask;

/// Where it is asked unless told otherwise.
pub(crate) const DEFAULT_SOCKET: &str = "/run/ringwall-signer/socket";
/// Longest question, in bytes of JSON: a request for a certificate has some hundred.
const QUESTION_BYTES_MAX: u64 = 32 << 10;
/// How long who asks may take to ask, and to take the answer.
const ASKER_TIME_MAX: Duration = Duration::from_secs(5);

/// Arguments of `site signer`.
#[derive(Debug, Args)]
pub(crate) struct SignerArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    dir: PathBuf,
    /// The socket at which the site's service asks
    #[arg(long, value_name = "FILE", default_value = DEFAULT_SOCKET)]
    socket: PathBuf,
    /// How long a certificate lasts that is renewed
    #[arg(long, value_name = "DAYS", default_value_t = whole_days(HOST_VALIDITY))]
    days: u32,
    /// How long after the end of its certificate a host that was away is renewed all the same
    #[arg(long, value_name = "DAYS", default_value_t = 0)]
    late: u32,
}

/// What it is asked, one line of JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Question {
    /// Another certificate, or the shared keys, for the host that made this request (PKCS#10, PEM).
    /// Of a host that the service has seen the certificate of, its name.
    Renewal { host: Option<String>, request: String },
    /// What a token is for.
    Enrolment(Box<Application>),
    /// What an operator orders, in PEM.
    Order(String),
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// Sealed for the host that made the request.
    Renewed(String),
    Enrolment(Outcome),
    /// Sealed for the operator.
    Ordered(String),
    Refused(Refusal),
}

/// Why it signs nothing.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Refusal {
    /// The request is none, or another host's.
    Request,
    /// Who applies has no token of the site.
    Token,
    /// The site does not renew it, for this reason.
    NotRenewed(String),
    /// As many are answered as may be, or as many of this host.
    TooOften,
    /// The order is not carried out, for this reason.
    Order(NotHeard),
    /// Something is wrong at the site; its log says what.
    Failed,
}

/// `ringwall site signer`
pub(super) fn run(arguments: &SignerArguments) -> Result<(), Failure> {
    let SignerArguments { dir, socket, days, late } = arguments;
    // What is wrong with the site is said at the start.
    drop(Directory::open(dir)?);
    let cluster = repository_access(dir)?;
    let token = token_of(dir)?;
    let listener = listen(socket)
        .map_err(|error| Failure::file(socket, error, "make its directory, or name another place with --socket"))?;
    confine(dir, token.as_ref(), cluster.as_ref()).map_err(Failure::new)?;
    tracing::info!("the site in {} is signed for at {}", dir.display(), socket.display());
    let terms = Terms { validity: DAY * *days, early: false, late: DAY * *late };
    let mut signer = Signer::new(dir.clone(), terms, Instant::now());
    if let Err(error) = signer.look_at_repository() {
        let way = "the unit has its way there after `systemctl daemon-reload` and a restart";
        tracing::warn!("{error}; if only the signer cannot reach it: {way}");
    }
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                // Its fences are made for where that was.
                if repository_access(dir).is_ok_and(|now| now != cluster) {
                    let what = "the repository is kept elsewhere now, or reached in another way";
                    return Err(Failure::file(dir, what, "start the signer again, after `systemctl daemon-reload`"));
                }
                if let Err(error) = signer.converse(stream) {
                    tracing::warn!("a question came to nothing: {error}");
                }
                if signer.has_lost_key {
                    // Who begins anew logs in to its token again.
                    return Err(Failure::file(
                        dir,
                        "the authority's key does not sign any more",
                        "start the signer again",
                    ));
                }
            }
            // No descriptor is left, for instance.
            Err(_) => std::thread::sleep(Duration::from_millis(100)),
        }
    }
}

/// The socket, for its owner alone. One that an earlier signer has left is taken away.
fn listen(socket: &Path) -> io::Result<UnixListener> {
    if UnixStream::connect(socket).is_ok() {
        return Err(io::Error::new(io::ErrorKind::AddrInUse, "another signer answers there"));
    }
    if socket.exists() {
        std::fs::remove_file(socket)?;
    }
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// No privilege, no file but those of the site and of a token in files, no new socket but to the
/// cluster that has the repository.
fn confine(directory: &Path, token: Option<&TokenUri>, cluster: Option<&Access>) -> io::Result<()> {
    sandbox::forbid_dumps()?;
    privilege::keep(&[])?;
    let files = token.and_then(|token| token.files.clone());
    let writable = std::iter::once(directory.to_owned()).chain(files).collect();
    let (reach, sockets) = match cluster {
        None => (Reach { writable, ..Reach::default() }, Sockets::Closed),
        Some(cluster) => {
            let connects = Ports::These(cluster.sockets().map(|member| member.port()).collect());
            (Reach { readable: folders_of(cluster.files()), writable, connects }, Sockets::Tcp)
        }
    };
    let landlocked = sandbox::confine(&reach)?;
    tracing::debug!("the signer: Landlock is {landlocked}");
    // Fences are of a thread, and of those that it starts.
    if std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() > 1) {
        tracing::warn!("the token's library has threads of its own, which the unit alone confines");
    }
    sandbox::forbid_sockets(sockets)?;
    sandbox::end_at_attacks()
}

/// Where these files are, since who renews one puts another in its place. Links lead to folders of
/// their own.
fn folders_of<'a>(files: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
    let both = files.flat_map(|file| [Some(file.to_owned()), file.canonicalize().ok()]);
    both.flatten().filter_map(|file| Some(file.parent()?.to_owned())).collect()
}

/// What answers.
pub(in crate::site) struct Signer {
    dir: PathBuf,
    /// Of renewals.
    terms: Terms,
    /// Of renewals, whose hosts the service has seen the certificates of.
    renewals: Pace,
    /// Of applications, which anybody may send: strangers exhaust this one alone.
    applications: Pace,
    /// Of orders, by operator.
    orders: Pace,
    /// What the site has issued, which each act looks at.
    cache: Cache,
    /// The token that has the authority's key does not sign.
    has_lost_key: bool,
}

impl Signer {
    pub(in crate::site) fn new(dir: PathBuf, terms: Terms, now: Instant) -> Signer {
        let pace = || Pace::new(now);
        let (renewals, applications, orders) = (pace(), pace(), pace());
        Signer { dir, terms, renewals, applications, orders, cache: Cache::default(), has_lost_key: false }
    }

    /// Whether the repository can be reached, if it is in a cluster.
    fn look_at_repository(&self) -> Result<(), Error> {
        let directory = caching(Directory::open(&self.dir)?, &self.cache);
        directory.probe_repository()
    }

    /// Answers one question.
    pub(in crate::site) fn converse(&mut self, stream: UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(ASKER_TIME_MAX))?;
        stream.set_write_timeout(Some(ASKER_TIME_MAX))?;
        let user = privilege::user_of_peer(&stream)?;
        if user != 0 && user != privilege::own_user() {
            return Err(io::Error::other(format!("user {user} may not ask")));
        }
        let mut line = Vec::new();
        BufReader::new(&stream).take(QUESTION_BYTES_MAX).read_until(b'\n', &mut line)?;
        if is_gone(&stream)? {
            return Err(io::Error::other("who asked has gone, so nothing is done"));
        }
        let answer = match serde_json::from_slice(&line) {
            Ok(question) => self.answer(question),
            Err(_) => Answer::Refused(Refusal::Request),
        };
        self.has_lost_key = answer == Answer::Refused(Refusal::Failed) && self.has_lost_key();
        let mut line = serde_json::to_vec(&answer)?;
        line.push(b'\n');
        (&stream).write_all(&line)
    }

    /// Whether the token with the authority's key does not sign, and why. All else may pass.
    fn has_lost_key(&self) -> bool {
        let checked = Directory::open(&self.dir).and_then(|directory| directory.site().check_key());
        let lost = checked.err().filter(|error| matches!(error.reason(), Error::Token(_)));
        lost.inspect(|error| tracing::warn!("{error}")).is_some()
    }

    fn answer(&mut self, question: Question) -> Answer {
        let answered = match question {
            Question::Renewal { host, request } => self.renew(host.as_deref(), &request),
            Question::Enrolment(application) => self.enrol(&application),
            Question::Order(order) => self.obey(&order, now_unix_ms()),
        };
        answered.unwrap_or_else(Answer::Refused)
    }

    fn renew(&mut self, host: Option<&str>, request: &str) -> Result<Answer, Refusal> {
        let proved = CertificateRequest::from_pem(request).map_err(|_| Refusal::Request)?;
        let pace = match host {
            Some(host) if host == proved.name() => &mut self.renewals,
            Some(_) => return Err(Refusal::Request),
            None if self.terms.late.is_zero() => {
                return Err(Refusal::NotRenewed("a host whose certificate is over is not renewed here".to_owned()));
            }
            // Anybody may show a request, of which the name is a claim until the site has compared its
            // key. Until then nothing is read for him, and nothing counted against that name.
            None => {
                self.act("-", |directory, _| check_may_be_late(directory, &proved))?;
                &mut self.applications
            }
        };
        let host = proved.name().to_owned();
        pace.check(&host, Instant::now())?;
        let terms = self.terms;
        let by = format!("host {host}, by the service");
        let renewed = self.act(&by, |directory, surroundings| {
            directory.renew(&proved, terms, surroundings.random, surroundings.unix_s)
        })?;
        Ok(Answer::Renewed(renewed.answer))
    }

    fn enrol(&mut self, application: &Application) -> Result<Answer, Refusal> {
        self.applications.check(&application.token(), Instant::now())?;
        let outcome = self.act("who has the token, by the service", |directory, surroundings| {
            apply(directory, application, surroundings.random, surroundings.unix_s)
        })?;
        Ok(Answer::Enrolment(outcome))
    }

    /// Carries an order out, if who signed it may give it. One that he may not, or that nobody does
    /// here, is put down.
    fn obey(&mut self, order: &str, unix_ms: u64) -> Result<Answer, Refusal> {
        let failed = |error: &dyn std::fmt::Display| {
            tracing::warn!("an order was not carried out: {error}");
            Refusal::Failed
        };
        let record = Record::open(&self.dir).map_err(|error| failed(&error))?;
        let mut heard = hear(&record, order, unix_ms).map_err(Refusal::Order)?;
        self.orders.check(heard.operator.name(), Instant::now())?;
        let actor = heard.actor(&self.cache);
        let site = || actor.open(&self.dir);
        if heard.refusal().is_none() && heard.place == Place::SignerActs {
            let looked = site().and_then(|site| heard.look_before(&site, unix_ms / 1000));
            looked.map_err(|error| failed(&error))?;
        }
        if let Some(why) = heard.refusal() {
            let site = site().map_err(|error| failed(&error))?;
            refused::put_down(&site, &heard, why, unix_ms / 1000).map_err(|error| failed(&error))?;
            return Err(Refusal::Order(why));
        }
        match heard.place {
            Place::Keeper | Place::Elsewhere => return Err(Refusal::Order(NotHeard::Elsewhere)),
            Place::SignerLooks => {}
            Place::SignerActs => {
                let begun = site().and_then(|site| begin_order(&site, &heard.operator, heard.order.made_unix_ms));
                if !begun.map_err(|error| failed(&error))? {
                    return Err(Refusal::Order(NotHeard::Again));
                }
            }
        }
        heard.carry_out(&self.dir, &self.cache, unix_ms).map(Answer::Ordered).map_err(|error| failed(&error))
    }

    /// Does it with the site as it is now: managers change it meanwhile.
    fn act<T>(
        &self,
        by: &str,
        act: impl FnOnce(&Directory, &mut Surroundings<'_>) -> Result<T, Error>,
    ) -> Result<T, Refusal> {
        let mut done = Err(Refusal::Failed);
        let ran = with_surroundings(|surroundings| {
            surroundings.actor = Actor { by: by.to_owned(), cache: self.cache.clone() };
            let directory = surroundings.open(&self.dir)?;
            done = act(&directory, surroundings).map_err(|error| refusal(&error));
            Ok(())
        });
        if let Err(failure) = ran {
            tracing::warn!("{failure}");
        }
        done
    }
}

/// Whether who asked waits no more. Of what took him too long he has been told so, and gives the
/// order again.
fn is_gone(stream: &UnixStream) -> io::Result<bool> {
    stream.set_nonblocking(true)?;
    let heard = (&mut &*stream).read(&mut [0]);
    stream.set_nonblocking(false)?;
    Ok(matches!(heard, Ok(0)))
}

/// What who asks hears of an error, and what the log.
fn refusal(error: &Error) -> Refusal {
    match error.reason() {
        Error::NotRenewed(name, why) => {
            tracing::info!("{name} is not renewed: {why}");
            Refusal::NotRenewed((*why).to_owned())
        }
        Error::NoApplication => Refusal::Token,
        _ => {
            tracing::warn!("nothing was signed: {error}");
            Refusal::Failed
        }
    }
}
