//! The keeper: answers its door from the site's directory, until the door is gone. The *clerk*, a
//! thread of it, has a way of its own to the door, for what takes longer: signing, and orders.

use std::fs;
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use authority::directory::{Cache, Record};
use authority::files;
use identity::HostIdentity;
use identity::limits::{MAX_CERTIFICATE_LEN, MAX_PEM_LEN};

use super::super::orders::{NotHeard, Place, hear};
use super::super::signer;
use super::brought::{Brought, Sort};
use super::kept::Reports;
use super::{COMMAND, Duty, Kept, PORT, Question, Reply, ServeArguments, Task};
use crate::companion;
use crate::failure::Failure;
use crate::report::BYTES_MAX;
use crate::report::forecast::{millis, now_unix_ms};
use crate::serving::{Patience, Way, locked};

/// Longest question: a report, with what JSON makes of it, and the name and the certificate of its
/// host. In PEM, where JSON makes two characters of each line's end, nothing else gets longer.
pub(super) const QUESTION_BYTES_MAX: u64 = BYTES_MAX as u64 + 4096 + 2 * MAX_CERTIFICATE_LEN as u64;
const _: () = assert!(MAX_PEM_LEN as u64 * 66 / 65 + 4096 < QUESTION_BYTES_MAX, "what is brought can be handed on");
/// A door that does not read hangs, and the service begins anew. It may be silent for long.
pub(super) const PATIENCE: Patience = Patience { say: None, hear: Duration::from_secs(30) };
/// A host that has not reported for this long is forgotten.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// How often that, and whether the identity has changed, is looked at: a door says something as
/// often.
const LOOK_EVERY_MS: u64 = 60_000;
const CERTIFICATE: &str = "ca.crt.pem";
const POLICY: &str = "policy.pem";
const REVOKED: &str = "revoked.crl.pem";

/// `ringwall site serve`
pub(in crate::site) fn serve(arguments: &ServeArguments) -> Result<(), Failure> {
    let text = files::read(&arguments.identity)?;
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::file(&arguments.identity, error, "name the identity of this machine with --identity")
    };
    let identity = HostIdentity::from_pem(&text).map_err(|error| wrong(&error))?;
    check_site(&arguments.dir, &identity)?;
    let listen = listen(arguments, &identity);
    if listen.is_empty() {
        return Err(wrong(&"its certificate has no address to listen on"));
    }
    let reports = Reports::open(&arguments.dir)?;
    let failed = |error: io::Error| Failure::new(format!("the door of the service does not start: {error}"));
    let way = |socket| Way::new(socket, PATIENCE, QUESTION_BYTES_MAX);
    let [door, at_clerk] = companion::start_with_two(COMMAND).map_err(failed)?;
    let (mut door, at_clerk) = (way(door).map_err(failed)?, way(at_clerk).map_err(failed)?);
    door.say(&Duty { listen, identity: text.to_string() }).map_err(failed)?;
    let clerk = Arc::new(Clerk::new(&arguments.dir, &arguments.signer));
    let shared = Arc::clone(&clerk);
    std::thread::Builder::new().spawn(move || shared.run(at_clerk)).map_err(failed)?;
    let ended = Keeper::new(&arguments.dir, reports).run(door, &arguments.identity, &text);
    // What is being done is done, and its answer sent.
    let _task = locked(&clerk.at_work);
    ended
}

/// The directory is that of the site whose host this is. Its certificate says so; no key of the
/// authority is read here.
fn check_site(directory: &Path, identity: &HostIdentity) -> Result<(), Failure> {
    let file = directory.join(CERTIFICATE);
    // It may have another certificate of the authority than the identity.
    if Record::open(directory)?.anchor().is_same_authority(identity.anchor()) {
        return Ok(());
    }
    let what = format!("it is not the site of this identity, which is of {}", identity.site_name());
    Err(Failure::file(&file, what, "name the site with --dir, or the identity with --identity"))
}

fn listen(arguments: &ServeArguments, identity: &HostIdentity) -> Vec<SocketAddr> {
    let addresses = identity.certificate().names().all_addresses();
    let own = addresses.into_iter().map(|address: IpAddr| SocketAddr::new(address, PORT));
    if arguments.listen.is_empty() { own.collect() } else { arguments.listen.clone() }
}

pub(super) struct Keeper {
    directory: PathBuf,
    reports: Reports,
    forgot_ms: u64,
}

impl Keeper {
    pub(super) fn new(directory: &Path, reports: Reports) -> Keeper {
        Keeper { directory: directory.to_owned(), reports, forgot_ms: 0 }
    }

    pub(super) fn run(mut self, mut door: Way, identity: &Path, text: &str) -> Result<(), Failure> {
        loop {
            let question = door.receive();
            let question =
                question.map_err(|error| Failure::new(format!("the door of the service is gone: {error}")))?;
            if let Some(reply) = self.answer(question) {
                door.say(&reply).map_err(Failure::new)?;
            }
            if self.is_time_to_look() && files::read(identity).is_ok_and(|now| now.as_str() != text) {
                tracing::info!("{} is renewed; the service ends and is started again with it", identity.display());
                return Ok(());
            }
        }
    }

    fn answer(&self, question: Question) -> Option<Reply> {
        match question {
            Question::Keep { host, serial, certificate, report } => {
                self.look_at(&host, &serial, &certificate);
                Some(Reply::Kept(self.reports.keep(&host, now_unix_ms(), &report)))
            }
            Question::Bring { host, text } => Some(Reply::Kept(self.bring(&host, &text))),
            Question::Policy => Some(Reply::Text(read(&self.directory.join(POLICY)))),
            Question::Revoked => Some(Reply::Text(read(&self.directory.join(REVOKED)))),
            Question::Count(counts) => {
                if let Err(error) = self.reports.count_refused(&counts, now_unix_ms()) {
                    tracing::warn!("who was turned away is not counted: {error}");
                }
                None
            }
        }
    }

    /// Keeps a host's certificate that the site's record does not have: it was issued after the backup
    /// from which the site was restored.
    fn look_at(&self, host: &str, serial: &str, certificate: &str) {
        let Ok(record) = Record::open(&self.directory) else { return };
        if record.has(serial) {
            return;
        }
        let brought = Brought::certificate(record.anchor(), certificate);
        // The door may say any serial number.
        if let Some(brought) = brought.filter(|brought| !record.has(&brought.name)) {
            self.note(host, &brought);
        }
    }

    /// Keeps what a host has brought, if the site has signed it and it is newer than what is here.
    fn bring(&self, host: &str, text: &str) -> Kept {
        let Ok(record) = Record::open(&self.directory) else { return Kept::Failed };
        let Some(brought) = Brought::read(record.anchor(), text) else { return Kept::NotSigned };
        match self.is_here(&record, &brought) {
            Ok(true) => Kept::Older,
            _ => self.note(host, &brought),
        }
    }

    /// Whether the site has it, or what is newer. A newer list may lack names of an older one, where
    /// the site was restored and has revoked somebody since.
    fn is_here(&self, record: &Record, brought: &Brought) -> Result<bool, authority::Error> {
        if brought.sort == Sort::Policy {
            return Ok(record.policy()?.map(|own| own.version()) >= Some(brought.number));
        }
        let list = brought.list(record.anchor());
        list.map_or(Ok(false), |list| record.lacks(&list, now_unix_ms() / 1000).map(|lacks| !lacks))
    }

    fn note(&self, host: &str, brought: &Brought) -> Kept {
        let kept = self.reports.bring(host, now_unix_ms(), brought);
        if kept == Kept::Newest {
            let what = brought.sort.word();
            tracing::warn!(
                "{host} has a {what} that the site has signed and does not know; see `ringwall site recover`"
            );
        }
        // One that another host has brought before is as good.
        if kept == Kept::Older { Kept::Newest } else { kept }
    }

    /// Whether it is time to look at what changes slowly.
    fn is_time_to_look(&mut self) -> bool {
        let now_ms = now_unix_ms();
        if now_ms.saturating_sub(self.forgot_ms) < LOOK_EVERY_MS {
            return false;
        }
        self.forgot_ms = now_ms;
        if let Err(error) = self.reports.forget_before(now_ms.saturating_sub(millis(FORGOTTEN_AFTER))) {
            tracing::warn!("old reports are not forgotten: {error}");
        }
        true
    }
}

/// Asks the signer for the door, and carries out orders that only look.
pub(super) struct Clerk {
    directory: PathBuf,
    /// Where the signer is asked.
    signer: PathBuf,
    /// What the site has issued, which operators and consoles look at.
    cache: Cache,
    /// Held from a task to its answer.
    at_work: Mutex<()>,
}

impl Clerk {
    pub(super) fn new(directory: &Path, signer: &Path) -> Clerk {
        Clerk {
            directory: directory.to_owned(),
            signer: signer.to_owned(),
            cache: Cache::default(),
            at_work: Mutex::default(),
        }
    }

    /// Answers until the door is gone.
    pub(super) fn run(&self, mut door: Way) {
        let ended = loop {
            let task = door.receive();
            if let Err(error) = task.and_then(|task| self.carry_out(task, &mut door)) {
                break error;
            }
        };
        tracing::warn!("nothing more is signed, since the door of the service is gone: {ended}");
    }

    fn carry_out(&self, task: Task, door: &mut Way) -> io::Result<()> {
        let _task = locked(&self.at_work);
        door.say(&match task {
            Task::Sign(question) => Reply::Signed(self.ask_signer(&question)),
            Task::Order(order) => self.obey(order),
        })
    }

    fn ask_signer(&self, question: &signer::Question) -> Option<signer::Answer> {
        let answer = signer::ask(&self.signer, question);
        let warn = |error: &io::Error| {
            tracing::warn!("the signer at {} does not answer: {error}", self.signer.display());
        };
        answer.inspect_err(warn).ok()
    }

    /// Answers an order that only looks. All others are for the signer, also those that their
    /// operators may not give and those that nobody does here: it puts them down.
    pub(super) fn obey(&self, order: String) -> Reply {
        let unix_ms = now_unix_ms();
        let record = Record::open(&self.directory);
        let heard = match record.map(|record| hear(&record, &order, unix_ms)) {
            Ok(Ok(heard)) => heard,
            Ok(Err(refused)) => return Reply::Ordered(Some(Err(refused))),
            Err(error) => {
                tracing::warn!("an order was not carried out: {error}");
                return Reply::Ordered(None);
            }
        };
        if heard.place == Place::Keeper && heard.refusal().is_none() {
            let answer = heard.carry_out(&self.directory, &self.cache, unix_ms);
            let warn = |error: &Failure| tracing::warn!("an order was not carried out: {error}");
            return Reply::Ordered(answer.inspect_err(warn).ok().map(Ok::<_, NotHeard>));
        }
        Reply::Signed(self.ask_signer(&signer::Question::Order(order)))
    }
}

/// The file as it is; whoever gets it looks at its signature.
fn read(file: &Path) -> Option<String> {
    let text = fs::File::open(file).ok()?;
    let mut read = String::new();
    text.take(authority::limits::MAX_FILE_LEN).read_to_string(&mut read).ok()?;
    Some(read)
}
