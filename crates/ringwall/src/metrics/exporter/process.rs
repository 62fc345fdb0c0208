//! The exporter's own process: listens, gives up what privileges it has, and answers until the
//! daemon is gone.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use system::privilege;
use system::sandbox::{self, Reach, User};

use super::super::text;
use super::http::{self, Refusal, Wanted};
use super::{COMMAND, QUESTION};
use crate::config::LocalAddress;
use crate::failure::Failure;
use crate::local::{Client, Hurried, Listener};
use crate::protocol::{Answer, Measured};

/// Clients at one time.
const CLIENTS_MAX: usize = 8;
/// How long a client may take, all in all.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(5);
/// How long one that is turned away may take.
const REFUSAL_TIME_MAX: Duration = Duration::from_millis(50);
/// How long the daemon may take.
const DAEMON_TIME_MAX: Duration = Duration::from_secs(5);
/// Longest answer of the daemon that is read: 100,000 associations.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// Who asks again within this time gets the same: a flood of clients costs the daemon one question
/// in it.
const FRESH: Duration = Duration::from_secs(1);

/// `ringwall exporter`, which a daemon starts with a socket as its standard input.
pub(crate) fn run() -> Result<(), Failure> {
    let stream = io::stdin().as_fd().try_clone_to_owned().map_err(Failure::new)?;
    let stream = UnixStream::from(stream);
    if stream.peer_addr().is_err() {
        return Err(Failure::new("a daemon starts its exporter by itself; set records.metrics_listen"));
    }
    // A service manager may signal every process of a service; the end of the daemon is the end of
    // this one.
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).map_err(Failure::new)?;
    }
    let mut daemon = Daemon::new(stream).map_err(Failure::new)?;
    let listen = daemon.line().map_err(Failure::new)?;
    let failed = |error: io::Error| Failure::new(format!("records.metrics_listen = \"{listen}\": {error}"));
    let address = LocalAddress::parse(&listen).ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    let listener = Listener::open(&address).map_err(failed)?;
    confine().map_err(Failure::new)?;
    let gone = daemon.watch().map_err(Failure::new)?;
    std::thread::Builder::new()
        .name(COMMAND.to_owned())
        .spawn(move || serve(&listener, daemon))
        .map_err(Failure::new)?;
    wait_for_end(&gone);
    Ok(())
}

/// Another user than root, no privilege, no file, no other port.
fn confine() -> io::Result<()> {
    let user = User::find()?;
    sandbox::forbid_dumps()?;
    privilege::become_user(&user, &[])?;
    let landlocked = sandbox::confine(&Reach::default())?;
    tracing::debug!("exporter: Landlock is {landlocked}");
    sandbox::end_at_attacks()
}

/// Returns when the daemon is gone.
fn wait_for_end(stream: &UnixStream) {
    use system::wait::{PollFd, PollFlags, wait};
    loop {
        // Without a wanted event, only the end of the other side is one.
        let mut watched = [PollFd::new(stream, PollFlags::RDHUP)];
        match wait(&mut watched, None) {
            Ok(0) => {}
            Ok(_) => return,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// The way to the daemon, and what it said last.
struct Daemon {
    reader: BufReader<UnixStream>,
    /// What came of a line that is not whole yet.
    begun: Vec<u8>,
    /// Whether a question has no answer yet: a slow one is that of the next who asks.
    is_owed: bool,
    last: Option<(Instant, Arc<Measured>)>,
}

impl Daemon {
    fn new(stream: UnixStream) -> io::Result<Daemon> {
        stream.set_read_timeout(Some(DAEMON_TIME_MAX))?;
        stream.set_write_timeout(Some(DAEMON_TIME_MAX))?;
        Ok(Daemon { reader: BufReader::new(stream), begun: Vec::new(), is_owed: false, last: None })
    }

    fn watch(&self) -> io::Result<UnixStream> {
        self.reader.get_ref().try_clone()
    }

    fn line(&mut self) -> io::Result<String> {
        let room = ANSWER_BYTES_MAX.saturating_sub(self.begun.len() as u64);
        self.reader.by_ref().take(room).read_until(b'\n', &mut self.begun)?;
        if self.begun.pop() != Some(b'\n') {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        String::from_utf8(std::mem::take(&mut self.begun)).map_err(io::Error::other)
    }

    /// What is measured now, or was a moment ago.
    fn measured(&mut self) -> io::Result<Arc<Measured>> {
        if let Some((at, measured)) = &self.last
            && at.elapsed() < FRESH
        {
            return Ok(Arc::clone(measured));
        }
        if !self.is_owed {
            self.reader.get_ref().write_all(&[QUESTION])?;
            self.is_owed = true;
        }
        let line = self.line()?;
        self.is_owed = false;
        let Answer::Measured(measured) = serde_json::from_str(&line)? else {
            return Err(io::Error::other("the daemon gave another answer"));
        };
        let measured = Arc::from(measured);
        self.last = Some((Instant::now(), Arc::clone(&measured)));
        Ok(measured)
    }
}

fn serve(listener: &Listener, daemon: Daemon) {
    let (daemon, clients) = (Arc::new(Mutex::new(daemon)), Arc::new(AtomicUsize::new(0)));
    listener.serve(|client| take_in(client, &daemon, &clients));
}

/// Answers the client in a thread of its own, if not too many are being answered.
fn take_in(mut client: Box<dyn Client>, daemon: &Arc<Mutex<Daemon>>, clients: &Arc<AtomicUsize>) {
    if clients.fetch_add(1, Ordering::AcqRel) >= CLIENTS_MAX {
        clients.fetch_sub(1, Ordering::AcqRel);
        let _ = turn_away(&mut *client);
        return;
    }
    let (daemon, counted) = (Arc::clone(daemon), Arc::clone(clients));
    let started = std::thread::Builder::new().spawn(move || {
        // A client that goes away in the middle is its own business.
        let _ = converse(&mut *client, &daemon);
        counted.fetch_sub(1, Ordering::AcqRel);
    });
    if started.is_err() {
        clients.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The answer is lost with what was not read, so what is there is read; others wait no longer than
/// that for their turn.
fn turn_away(mut client: &mut dyn Client) -> io::Result<()> {
    client.limit(REFUSAL_TIME_MAX)?;
    let _ = client.read(&mut [0; http::HEAD_BYTES_MAX]);
    http::refuse(&mut client, Refusal::TooMany)
}

fn converse(client: &mut dyn Client, daemon: &Mutex<Daemon>) -> io::Result<()> {
    let deadline = Instant::now() + CLIENT_TIME_MAX;
    let mut client = Hurried { client, deadline };
    match http::read(&mut client, deadline)? {
        Err(refusal) => http::refuse(&mut client, refusal),
        Ok(wanted) => match page(wanted, daemon) {
            Some(text) => http::answer(&mut client, wanted, &text),
            None => http::refuse(&mut client, Refusal::Silent),
        },
    }
}

/// The text is made without the lock, so that a slow one holds nobody up.
fn page(wanted: Wanted, daemon: &Mutex<Daemon>) -> Option<String> {
    let measured = daemon.lock().unwrap_or_else(PoisonError::into_inner).measured();
    let measured = measured.ok()?;
    text(&measured, wanted.format).ok()
}
