//! The door: listens, gives up what privileges it has, and answers browsers until its reader is
//! gone.

use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use system::privilege;
use system::sandbox::{self, Reach, User};
use system::wait::{PollFd, PollFlags, wait};

use super::http::{self, Act, Request, Response};
use super::look::{Look, Reader};
use super::refusal::{Counts, Refusal};
use super::routes::{self, Around};
use super::sessions::Sessions;
use super::tokens::{SECRET_TEXT_LEN, Secret};
use crate::config::LocalAddress;
use crate::failure::Failure;
use crate::local::{Client, Hurried, Listener};

/// Connections at one time, those that are told of news among them.
const CLIENTS_MAX: usize = 64;
/// Those that are told of news.
const LISTENERS_MAX: usize = 16;
/// How long a client may take to ask, and again to be answered.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(10);
/// How long one that is turned away may take.
const REFUSAL_TIME_MAX: Duration = Duration::from_millis(50);
/// How long one is told of news; a browser comes again.
const NEWS_TIME_MAX: Duration = Duration::from_secs(600);
/// How often it is looked for news.
const NEWS_EVERY: Duration = Duration::from_secs(2);
/// How often somebody who is told nothing is shown that the line is alive.
const ALIVE_EVERY: Duration = Duration::from_secs(14);
/// How often drops are counted.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);
/// Links that may fail within the time below.
const FAILED_MAX: u32 = 20;
const FAILED_TIME: Duration = Duration::from_secs(10);
/// Where news are.
const NEWS: &str = "/news";

/// `ringwall console-door`, which `ringwall console` starts with a socket as its standard input.
pub(crate) fn run() -> Result<(), Failure> {
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned().map_err(Failure::new)?);
    if stream.peer_addr().is_err() {
        return Err(Failure::new("`ringwall console` starts its door by itself"));
    }
    // A service manager may signal every process of a service; the end of the reader is the end of
    // this one.
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false))).map_err(Failure::new)?;
    }
    let end = stream.try_clone().map_err(Failure::new)?;
    let mut reader = Reader::new(stream).map_err(Failure::new)?;
    let listen = String::from_utf8(reader.line().map_err(Failure::new)?).map_err(Failure::new)?;
    let failed = |error: io::Error| Failure::new(format!("{listen}: {error}; name another with --listen"));
    let address = LocalAddress::parse(&listen).ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    let listener = Listener::open(&address).map_err(failed)?;
    confine().map_err(Failure::new)?;
    let door = Arc::new(Door::new(Look::new(reader)));
    let counting = Arc::clone(&door);
    std::thread::Builder::new().spawn(move || counting.count_drops()).map_err(Failure::new)?;
    std::thread::Builder::new().spawn(move || listener.serve(|client| take_in(client, &door))).map_err(Failure::new)?;
    tracing::info!("the console is at {listen}; `ringwall console login` gives a link");
    wait_for_end(&end);
    Ok(())
}

/// Another user than root, no privilege, no file, no other port.
fn confine() -> io::Result<()> {
    let user = User::find()?;
    sandbox::forbid_dumps()?;
    privilege::become_user(&user, &[])?;
    let landlocked = sandbox::confine(&Reach::default())?;
    tracing::debug!("the console's door: Landlock is {landlocked}");
    sandbox::end_at_attacks()
}

/// Returns when the reader is gone.
fn wait_for_end(reader: &UnixStream) {
    loop {
        // Without a wanted event, only the end of the other side is one.
        let mut watched = [PollFd::new(reader, PollFlags::RDHUP)];
        match wait(&mut watched, None) {
            Ok(0) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return,
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All that clients share.
struct Door {
    look: Look,
    sessions: Mutex<Sessions>,
    /// Links that failed since a time.
    failed: Mutex<(Instant, u32)>,
    counts: Counts,
    clients: AtomicUsize,
    listeners: AtomicUsize,
}

/// One of so many, until it is dropped.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(taken: &'a AtomicUsize, most: usize) -> Option<Place<'a>> {
        let place = Place(taken);
        (taken.fetch_add(1, Ordering::AcqRel) < most).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What comes of a request.
enum Outcome {
    Whole(Response),
    /// News, as long as somebody listens.
    News,
}

impl Door {
    fn new(look: Look) -> Door {
        Door {
            look,
            sessions: Mutex::default(),
            failed: Mutex::new((Instant::now(), 0)),
            counts: Counts::default(),
            clients: AtomicUsize::new(0),
            listeners: AtomicUsize::new(0),
        }
    }

    fn count_drops(&self) {
        while let Ok(()) = self.look.sample() {
            std::thread::sleep(SAMPLE_EVERY);
        }
        // Nothing could be shown from here on; the service begins anew.
        tracing::error!("the console's reader gives no answer");
        std::process::exit(1);
    }

    /// Answers one client.
    fn converse(&self, client: &mut dyn Client) -> io::Result<()> {
        let mut client = Hurried { client, deadline: Instant::now() + CLIENT_TIME_MAX };
        let read = http::read(&mut client)?;
        let outcome = read.and_then(|request| self.answer(&request));
        // A daemon that hangs takes as long to be asked; the page that says so must be sent all the same.
        client.deadline = Instant::now() + CLIENT_TIME_MAX;
        match outcome {
            Ok(Outcome::Whole(response)) => response.write(&mut client),
            Ok(Outcome::News) => self.tell_news(client),
            Err(refusal) => {
                self.counts.add(refusal);
                routes::refused(refusal).write(&mut client)
            }
        }
    }

    fn answer(&self, request: &Request) -> Result<Outcome, Refusal> {
        let now = Instant::now();
        match &request.act {
            Act::SignIn(token) => return self.sign_in(token, now).map(Outcome::Whole),
            Act::SignOut => {
                request.session.iter().for_each(|session| locked(&self.sessions).end(session));
                return Ok(Outcome::Whole(Response::moved(http::SIGN_IN, &http::cookie_gone())));
            }
            Act::Get => {}
        }
        if let Some(response) = routes::open(request) {
            return Ok(Outcome::Whole(response));
        }
        if !request.session.as_ref().is_some_and(|session| locked(&self.sessions).is_in(session, now)) {
            return Err(Refusal::NotSignedIn);
        }
        if request.path == NEWS {
            return Ok(Outcome::News);
        }
        let sessions = locked(&self.sessions).count(now);
        let around = Around { look: &self.look, sessions, refused: self.counts.all() };
        routes::page(request, &around).map(Outcome::Whole)
    }

    fn sign_in(&self, token: &str, now: Instant) -> Result<Response, Refusal> {
        // A good token is taken however many others were made up: nobody guesses 256 bits.
        let is_good = token.len() == SECRET_TEXT_LEN && self.look.redeem(token).map_err(|_| Refusal::Silent)?;
        if !is_good {
            return Err(self.count_failed(now));
        }
        let session = Secret::new(*system::random::seed().map_err(|_| Refusal::Silent)?);
        locked(&self.sessions).begin(session.clone(), now);
        Ok(Response::moved("/", &http::cookie_of(&session)))
    }

    fn count_failed(&self, now: Instant) -> Refusal {
        let mut failed = locked(&self.failed);
        if now.saturating_duration_since(failed.0) >= FAILED_TIME {
            *failed = (now, 0);
        }
        failed.1 = failed.1.saturating_add(1);
        if failed.1 > FAILED_MAX { Refusal::TooOften } else { Refusal::Token }
    }

    /// Says each time that something is new, until the client goes away or its time is over.
    fn tell_news(&self, mut client: Hurried<'_>) -> io::Result<()> {
        let Some(_place) = Place::take(&self.listeners, LISTENERS_MAX) else {
            self.counts.add(Refusal::TooMany);
            return routes::refused(Refusal::TooMany).write(&mut client);
        };
        client.deadline = Instant::now() + NEWS_TIME_MAX;
        http::write_stream_head(&mut client)?;
        let (mut told, mut said_at) = (None, Instant::now());
        loop {
            let news = routes::fingerprint(&self.look)?;
            if told != Some(news) {
                if told.is_some() {
                    write!(client, "event: news\ndata: {news:x}\n\n")?;
                    said_at = Instant::now();
                }
                told = Some(news);
            } else if said_at.elapsed() >= ALIVE_EVERY {
                client.write_all(b":\n\n")?;
                said_at = Instant::now();
            }
            std::thread::sleep(NEWS_EVERY);
        }
    }
}

/// Answers the client in a thread of its own, if not too many are being answered.
fn take_in(mut client: Box<dyn Client>, door: &Arc<Door>) {
    if door.clients.load(Ordering::Acquire) >= CLIENTS_MAX {
        door.counts.add(Refusal::TooMany);
        let _ = turn_away(&mut *client);
        return;
    }
    door.clients.fetch_add(1, Ordering::AcqRel);
    let shared = Arc::clone(door);
    let started = std::thread::Builder::new().spawn(move || {
        let _place = Place(&shared.clients);
        // A client that goes away in the middle is its own business.
        let _ = shared.converse(&mut *client);
    });
    if started.is_err() {
        door.clients.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The answer is lost with what was not read, so what is there is read; others wait no longer than
/// that for their turn.
fn turn_away(client: &mut dyn Client) -> io::Result<()> {
    let mut client = Hurried { client, deadline: Instant::now() + REFUSAL_TIME_MAX };
    let _ = io::Read::read(&mut client, &mut [0; http::HEAD_BYTES_MAX]);
    routes::refused(Refusal::TooMany).write(&mut client)
}
