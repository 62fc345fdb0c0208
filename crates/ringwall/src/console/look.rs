//! What the door knows of the daemons: it asks its reader, one question at a time, and remembers
//! the answer for a moment, so that many browsers cost the daemons no more than one.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::site::Site;
use super::trend::{Drops, Trend};
use super::{Question, Reply, What};
use crate::client;
use crate::modes::part::Account;
use crate::protocol::{Answer, GateStatus, Status};
use crate::recorder::history::{Row, Wanted};
use crate::serving::{Patience, Recent, Way, locked};
use crate::verdict::Verdict;

/// How long the reader may take: each of a few daemons may take ten seconds.
const READER_TIME_MAX: Duration = Duration::from_secs(30);
/// Longest answer that is read: 100,000 associations.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// How old what is shown may be.
const FRESH: Duration = Duration::from_secs(2);
/// Daemons that are asked; a machine has few.
const DAEMONS_MAX: usize = 64;
/// Of these so many at once: one that hangs keeps the reader from others, who sign in for instance.
const ASKED_AT_ONCE: usize = 8;

/// The way to the reader, through which a socket leads.
pub(super) fn way_to_reader(stream: UnixStream) -> io::Result<Way> {
    Way::new(stream, Patience { say: Some(READER_TIME_MAX), hear: READER_TIME_MAX }, ANSWER_BYTES_MAX)
}

/// What a daemon says; in words, why it says nothing.
type Told = Result<Answer, String>;

/// What one daemon says of itself.
#[derive(Clone, Debug)]
pub(super) struct Daemon {
    pub(super) name: String,
    pub(super) told: Told,
}

impl Daemon {
    pub(super) fn account(&self) -> Option<&dyn Account> {
        self.told.as_ref().ok()?.account()
    }

    pub(super) fn host(&self) -> Option<&Status> {
        if let Ok(Answer::Status(status)) = &self.told { Some(status) } else { None }
    }

    pub(super) fn gate(&self) -> Option<&GateStatus> {
        if let Ok(Answer::Gate(status)) = &self.told { Some(status) } else { None }
    }

    pub(super) fn interface(&self) -> &str {
        self.account().map_or(&self.name, Account::interface)
    }

    pub(super) fn verdict(&self) -> Verdict {
        match (self.account(), &self.told) {
            (Some(account), _) => account.verdict(),
            (None, Err(why)) => Verdict::unknown(why),
            (None, Ok(_)) => Verdict::unknown("the daemon answered something else"),
        }
    }

    /// For how long it has run, and what it has dropped.
    pub(super) fn drops(&self) -> Option<(u64, &Drops)> {
        let of_host = self.host().map(|status| (status.uptime_s, &status.drops));
        of_host.or_else(|| self.gate().map(|status| (status.uptime_s, &status.drops)))
    }
}

/// Whom a daemon knows.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) interface: String,
    pub(super) answer: Answer,
}

/// All that pages are made from.
pub(super) struct Look {
    reader: Mutex<Way>,
    daemons: Recent<Arc<Vec<Daemon>>>,
    known: Recent<Arc<Vec<Known>>>,
    trend: Mutex<Trend>,
    /// Whether the site's service is asked, and what it said.
    has_site: bool,
    site: Mutex<Arc<Site>>,
}

pub(super) fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

impl Look {
    pub(super) fn new(reader: Way, has_site: bool) -> Look {
        let (reader, daemons, known) = (Mutex::new(reader), Recent::default(), Recent::default());
        Look { reader, daemons, known, trend: Mutex::default(), has_site, site: Mutex::default() }
    }

    pub(super) fn has_site(&self) -> bool {
        self.has_site
    }

    /// What is known of the site; none where it is not asked. It comes over the way once.
    pub(super) fn site(&self) -> io::Result<Option<Arc<Site>>> {
        if !self.has_site {
            return Ok(None);
        }
        let mut held = locked(&self.site);
        match self.ask(&Question::Site(held.number))? {
            Reply::Site(Some(newer)) => *held = Arc::from(newer),
            Reply::Site(None) => {}
            _ => return Err(other()),
        }
        Ok(Some(Arc::clone(&held)))
    }

    fn ask(&self, question: &Question) -> io::Result<Reply> {
        locked(&self.reader).ask(question)
    }

    /// How the daemons are.
    ///
    /// # Errors
    /// The reader is gone.
    pub(super) fn daemons(&self) -> io::Result<Arc<Vec<Daemon>>> {
        self.daemons.get(FRESH, || {
            let Reply::Daemons(names) = self.ask(&Question::Daemons)? else { return Err(other()) };
            let names: Vec<String> = names.into_iter().take(DAEMONS_MAX).collect();
            let told = self.tell_all(&names.iter().map(String::as_str).collect::<Vec<_>>(), What::Status)?;
            Ok(Arc::new(names.into_iter().zip(told).map(|(name, told)| Daemon { name, told }).collect()))
        })
    }

    /// What a daemon says to this; in words, why it says nothing.
    pub(super) fn tell(&self, daemon: &str, what: What) -> io::Result<Told> {
        understood(daemon, self.ask(&Question::Ask { daemon: daemon.to_owned(), what })?)
    }

    /// What each of these daemons says to this.
    fn tell_all(&self, daemons: &[&str], what: What) -> io::Result<Vec<Told>> {
        let mut told = Vec::new();
        for some in daemons.chunks(ASKED_AT_ONCE) {
            let question = |daemon: &&str| Question::Ask { daemon: (*daemon).to_owned(), what };
            let questions: Vec<Question> = some.iter().map(question).collect();
            let mut names = some.iter();
            let understood = |reply| understood(names.next().unwrap_or(&""), reply);
            told.extend(locked(&self.reader).ask_all(&questions, understood)?);
        }
        told.into_iter().collect()
    }

    /// Whom the daemons know.
    pub(super) fn known(&self) -> io::Result<Arc<Vec<Known>>> {
        let daemons = self.daemons()?;
        self.known.get(FRESH, || {
            let hosts: Vec<&Daemon> = daemons.iter().filter(|daemon| daemon.host().is_some()).collect();
            let names: Vec<&str> = hosts.iter().map(|daemon| daemon.name.as_str()).collect();
            let told = self.tell_all(&names, What::Known)?;
            let known = |(daemon, told): (&&Daemon, Told)| {
                told.ok().map(|answer| Known { interface: daemon.interface().to_owned(), answer })
            };
            Ok(Arc::new(hosts.iter().zip(told).filter_map(known).collect()))
        })
    }

    pub(super) fn history(&self, wanted: Wanted) -> io::Result<Vec<Row>> {
        match self.ask(&Question::History(wanted))? {
            Reply::Rows(rows) => Ok(rows),
            _ => Err(other()),
        }
    }

    /// Whether somebody may be signed in with this token, which nobody may be after that.
    pub(super) fn redeem(&self, token: &str) -> io::Result<bool> {
        match self.ask(&Question::Redeem(token.to_owned()))? {
            Reply::Redeemed(is_good) => Ok(is_good),
            _ => Err(other()),
        }
    }

    /// Takes a sample of the drops.
    pub(super) fn sample(&self) -> io::Result<()> {
        let daemons = self.daemons()?;
        let mut trend = locked(&self.trend);
        trend.keep(|interface| daemons.iter().any(|daemon| daemon.interface() == interface));
        for daemon in daemons.iter() {
            if let Some((uptime_s, drops)) = daemon.drops() {
                trend.enter(unix_s(), daemon.interface(), uptime_s, drops);
            }
        }
        Ok(())
    }

    /// The last `count` spans of so many steps.
    pub(super) fn trend(&self, count: usize, steps: u64) -> Vec<Drops> {
        locked(&self.trend).spans(unix_s(), count, steps)
    }
}

fn understood(daemon: &str, reply: Reply) -> io::Result<Told> {
    match reply {
        Reply::Told(text) => Ok(client::understood(Path::new(daemon), text.get()).map_err(|why| why.to_string())),
        Reply::Silent(why) => Ok(Err(why)),
        _ => Err(other()),
    }
}

fn other() -> io::Error {
    io::Error::other("the reader answered something else")
}
