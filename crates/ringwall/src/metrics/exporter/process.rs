//! The exporter's own process: listens, gives up what privileges it has, and answers until the
//! daemon is gone.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::text;
use super::http::{self, Refusal, Wanted};
use super::{COMMAND, QUESTION};
use crate::companion;
use crate::config::LocalAddress;
use crate::failure::Failure;
use crate::protocol::{Answer, Measured};
use crate::serving::{
    Client, Full, Hurried, Listener, Patience, Places, Recent, Service, Way, Who, door, hear_out, locked, serve,
};

/// Clients at one time.
const CLIENTS_MAX: usize = 8;
/// How long a client may take, all in all.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(5);
/// How long the daemon may take.
const DAEMON_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest answer of the daemon that is read: 100,000 associations.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// Who asks again within this time gets the same: a flood of clients costs the daemon one question
/// in it.
const FRESH: Duration = Duration::from_secs(1);

/// `ringwall exporter`, which a daemon starts with a socket as its standard input.
pub(crate) fn run() -> Result<(), Failure> {
    let stream = companion::socket("a daemon starts its exporter by itself; set records.metrics_listen")?;
    let mut daemon = Daemon::new(stream).map_err(Failure::new)?;
    let listen = String::from_utf8(daemon.way.line().map_err(Failure::new)?).map_err(Failure::new)?;
    let failed = |error: io::Error| Failure::new(format!("records.metrics_listen = \"{listen}\": {error}"));
    let address = LocalAddress::parse(&listen).ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    let listener = Listener::open(&address).map_err(failed)?;
    door::confine(COMMAND).map_err(Failure::new)?;
    let gone = daemon.way.socket().map_err(Failure::new)?;
    let shared = Arc::new(Shared { daemon: Mutex::new(daemon), last: Recent::default() });
    // Those who come by one address are all scrapers of this machine.
    let places = Places::new(CLIENTS_MAX, CLIENTS_MAX);
    std::thread::Builder::new()
        .name(COMMAND.to_owned())
        .spawn(move || serve(&listener, &places, &shared))
        .map_err(Failure::new)?;
    door::wait_for_end(&gone, None, || true);
    Ok(())
}

/// The way to the daemon.
struct Daemon {
    way: Way,
    /// Whether a question has no answer yet: a slow one is that of the next who asks.
    is_owed: bool,
}

impl Daemon {
    fn new(stream: UnixStream) -> io::Result<Daemon> {
        let patience = Patience { say: Some(DAEMON_TIME_MAX), hear: DAEMON_TIME_MAX };
        Ok(Daemon { way: Way::new(stream, patience, ANSWER_BYTES_MAX)?, is_owed: false })
    }

    /// What is measured now.
    fn measured(&mut self) -> io::Result<Arc<Measured>> {
        if !self.is_owed {
            self.way.send(&[QUESTION])?;
            self.is_owed = true;
        }
        let line = self.way.line()?;
        self.is_owed = false;
        let Answer::Measured(measured) = serde_json::from_slice(&line)? else {
            return Err(io::Error::other("the daemon gave another answer"));
        };
        Ok(Arc::from(measured))
    }
}

/// What clients share.
struct Shared {
    daemon: Mutex<Daemon>,
    last: Recent<Arc<Measured>>,
}

impl Shared {
    fn answer(&self, client: Box<dyn Client>) -> io::Result<()> {
        let mut client = Hurried::new(client, CLIENT_TIME_MAX);
        match http::read(&mut client)? {
            Err(refusal) => http::refuse(&mut client, refusal),
            Ok(wanted) => match self.page(wanted) {
                Some(text) => http::answer(&mut client, wanted, &text),
                None => http::refuse(&mut client, Refusal::Silent),
            },
        }
    }

    /// The text is made without the lock, so that a slow one holds nobody up.
    fn page(&self, wanted: Wanted) -> Option<String> {
        let measured = self.last.get(FRESH, || locked(&self.daemon).measured()).ok()?;
        text(&measured, wanted.format).ok()
    }
}

impl Service for Shared {
    fn converse(&self, client: Box<dyn Client>, _who: Who) {
        // A client that goes away in the middle is its own business.
        let _ = self.answer(client);
    }

    /// All places are taken, since nobody has a share of his own here.
    fn turn_away(&self, client: Box<dyn Client>, _full: Full) {
        let _ = http::refuse(&mut hear_out(client), Refusal::TooMany);
    }
}
