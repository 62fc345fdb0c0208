//! The door: listens, gives up what privileges it has, and answers browsers until its reader is
//! gone.

use std::io::{self, Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use identity::tls::{NotLetIn, Pages, Server};

use super::http::{self, Act, Request, Response};
use super::look::{Look, way_to_reader};
use super::reached::Reached;
use super::refusal::Refusal;
use super::routes::{self, Around};
use super::sessions::Sessions;
use super::tokens::{SECRET_TEXT_LEN, Secret};
use super::{COMMAND, Duty};
use crate::companion;
use crate::config::LocalAddress;
use crate::failure::Failure;
use crate::report::unix_s;
use crate::serving::http::HEAD_BYTES_MAX;
use crate::serving::{
    Client, Counts, Full, Hurried, Listener, Place, Places, Service, Talk, Who, door, hear_out, locked, serve,
};

/// Connections at one time, those that are told of news among them.
const CLIENTS_MAX: usize = 64;
/// Of one account, or of one address: nobody takes all of them.
const CLIENTS_OF_ONE_MAX: usize = 32;
/// Those that are told of news.
const LISTENERS_MAX: usize = 16;
/// How long one may take until TLS stands.
const HANDSHAKE_TIME_MAX: Duration = Duration::from_secs(3);
/// Those at one time with whom it does not stand yet, so that they leave room for others.
const HANDSHAKES_MAX: usize = 32;
/// Of one address.
const HANDSHAKES_OF_ONE_MAX: usize = 8;
/// What TLS begins with: a record of the handshake (RFC 8446, section 5.1).
const TLS_HANDSHAKE: u8 = 22;
/// How long a client may take to ask, and again to be answered.
const CLIENT_TIME_MAX: Duration = Duration::from_secs(10);
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

/// `ringwall console-door`, which `ringwall console` starts with a socket as its standard input.
pub(crate) fn run() -> Result<(), Failure> {
    let stream = companion::socket("`ringwall console` starts its door by itself")?;
    let mut reader = way_to_reader(stream).map_err(Failure::new)?;
    let end = reader.socket().map_err(Failure::new)?;
    let duty: Duty = reader.receive().map_err(Failure::new)?;
    let (listener, front) = open(&duty)?;
    door::confine(COMMAND).map_err(Failure::new)?;
    let listen = duty.listen;
    let door = Arc::new(Door::new(Look::new(reader, duty.has_site), front));
    let (places, shared) = (Places::new(CLIENTS_MAX, CLIENTS_OF_ONE_MAX), Arc::clone(&door));
    let serving = move || serve(&listener, &places, &shared);
    std::thread::Builder::new().spawn(serving).map_err(Failure::new)?;
    tracing::info!("the console is at {listen}; `ringwall console login` gives a link");
    // A reader that hangs gives no answer to this either: nothing could be shown from there on, and
    // the service begins anew.
    door::wait_for_end(&end, Some(SAMPLE_EVERY), || door.look.sample().is_ok());
    Ok(())
}

/// What it listens at, before it gives anything up, and how it is reached there.
fn open(duty: &Duty) -> Result<(Listener, Front), Failure> {
    let listen = &duty.listen;
    let failed = |error: io::Error| Failure::new(format!("{listen}: {error}; name another with --listen"));
    let Some(identity) = &duty.identity else {
        let address = LocalAddress::parse(listen).ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        return Ok((Listener::open(&address).map_err(failed)?, Front::default()));
    };
    let pages = Pages::from_pem(identity).map_err(Failure::new)?;
    let server = pages.server(unix_s).map_err(Failure::new)?;
    let listener = TcpListener::bind(listen.as_str()).map_err(failed)?;
    Ok((Listener::Tcp(listener), Front { reached: Reached::with(&pages), server: Some(server) }))
}

/// How browsers come in.
#[derive(Default)]
pub(super) struct Front {
    pub(super) reached: Reached,
    /// What speaks TLS with them, where they come from beyond this machine.
    pub(super) server: Option<Server>,
}

/// All that clients share.
pub(super) struct Door {
    look: Look,
    front: Front,
    /// With whom TLS does not stand yet.
    handshakes: Arc<Places>,
    sessions: Mutex<Sessions>,
    /// Links that failed since a time.
    failed: Mutex<(Instant, u32)>,
    counts: Counts,
    listeners: Arc<Places>,
}

/// What comes of a request.
pub(super) enum Outcome {
    Whole(Response),
    /// News, as long as somebody listens who is signed in so.
    News(Secret),
}

impl Door {
    pub(super) fn new(look: Look, front: Front) -> Door {
        Door {
            look,
            front,
            handshakes: Places::new(HANDSHAKES_MAX, HANDSHAKES_OF_ONE_MAX),
            sessions: Mutex::default(),
            failed: Mutex::new((Instant::now(), 0)),
            counts: Counts::default(),
            listeners: Places::new(LISTENERS_MAX, LISTENERS_MAX),
        }
    }

    /// Answers one client.
    fn answer_client(&self, client: Box<dyn Client>, who: Who) -> io::Result<()> {
        let Some((mut talk, place)) = self.begin(client, who)? else { return Ok(()) };
        talk.give(CLIENT_TIME_MAX);
        let read = http::read(&mut talk, &self.front.reached)?;
        drop(place);
        let outcome = read.and_then(|request| self.answer(&request, Instant::now()));
        // A daemon that hangs takes as long to be asked; the page that says so must be sent all the same.
        talk.give(CLIENT_TIME_MAX);
        match outcome {
            Ok(Outcome::Whole(response)) => response.write(&mut talk, &self.front.reached)?,
            Ok(Outcome::News(session)) => self.tell_news(&mut talk, who, &session)?,
            Err(refusal) => self.refuse(&mut talk, refusal)?,
        }
        talk.end()
    }

    /// Has TLS stand, where it is spoken; none for who was turned away. The place is for who says
    /// nothing: it is given back when a request has come.
    fn begin(&self, client: Box<dyn Client>, who: Who) -> io::Result<Option<(Talk, Option<Place>)>> {
        let Some(server) = &self.front.server else {
            return Ok(Some((Talk::Plain(Hurried::new(client, CLIENT_TIME_MAX)), None)));
        };
        let Ok(place) = self.handshakes.take(who) else {
            self.counts.add(Refusal::TooMany.word());
            return Ok(None);
        };
        let mut stream = Hurried::new(client, HANDSHAKE_TIME_MAX);
        match stream.look() {
            Ok(Some(TLS_HANDSHAKE)) => {}
            Ok(Some(_)) => return self.refuse_clear(Talk::Plain(stream)).map(|()| None),
            Ok(None) | Err(_) => {
                self.counts.add(NotLetIn::Gone.word());
                return Ok(None);
            }
        }
        match server.accept(stream) {
            Ok((served, _nobody)) => Ok(Some((Talk::Tls(Box::new(served)), Some(place)))),
            Err(why) => {
                self.counts.add(why.word());
                Ok(None)
            }
        }
    }

    /// Says to who speaks in clear how to come in. Nobody is sent on: who has typed http once would
    /// do it again, and somebody on the way could read it.
    fn refuse_clear(&self, mut talk: Talk) -> io::Result<()> {
        // An answer is lost with what was not read; the byte that was looked at comes alone.
        let mut head = [0; HEAD_BYTES_MAX];
        let begun = talk.read(&mut head)?;
        let heard = begun + talk.read(&mut head[begun..])?;
        tracing::debug!("somebody said {heard} bytes in clear");
        self.counts.add(Refusal::InClear.word());
        // Nothing that a browser would keep, and no page of the console.
        let sentence = format!("{}\n", Refusal::InClear.sentence());
        let (status, kind) = (Refusal::InClear.status(), "text/plain; charset=utf-8");
        crate::serving::http::write(&mut talk, status, kind, "", sentence.as_bytes())
    }

    fn refuse(&self, talk: &mut Talk, refusal: Refusal) -> io::Result<()> {
        self.counts.add(refusal.word());
        routes::refused(refusal).write(talk, &self.front.reached)
    }

    pub(super) fn answer(&self, request: &Request, now: Instant) -> Result<Outcome, Refusal> {
        match &request.act {
            Act::SignIn(token) => return self.sign_in(token, now).map(Outcome::Whole),
            Act::SignOut => {
                request.session.iter().for_each(|session| locked(&self.sessions).end(session));
                return Ok(Outcome::Whole(Response::moved(http::SIGN_IN, &http::cookie_gone(&self.front.reached))));
            }
            Act::Listen => return self.session(request, now).map(|session| Outcome::News(session.clone())),
            Act::Get | Act::Renew => {}
        }
        if let Some(response) = routes::open(request) {
            return Ok(Outcome::Whole(response));
        }
        self.session(request, now)?;
        let sessions = locked(&self.sessions).count(now);
        let around = Around { look: &self.look, sessions, refused: self.counts.all() };
        routes::page(request, &around).map(Outcome::Whole)
    }

    /// The session of who asks. He uses it when he asks for a page, not when its script does.
    fn session<'a>(&self, request: &'a Request, now: Instant) -> Result<&'a Secret, Refusal> {
        let mut sessions = locked(&self.sessions);
        let is_in = |session: &&Secret| match request.act {
            Act::Get => sessions.is_in(session, now),
            _ => sessions.goes_on(session, now),
        };
        request.session.as_ref().filter(is_in).ok_or(Refusal::NotSignedIn)
    }

    fn sign_in(&self, token: &str, now: Instant) -> Result<Response, Refusal> {
        // A good token is taken however many others were made up: nobody guesses 256 bits.
        let is_good = token.len() == SECRET_TEXT_LEN && self.look.redeem(token).map_err(|_| Refusal::Silent)?;
        if !is_good {
            return Err(self.count_failed(now));
        }
        let session = Secret::new(*system::random::seed().map_err(|_| Refusal::Silent)?);
        locked(&self.sessions).begin(session.clone(), now);
        Ok(Response::moved("/", &http::cookie_of(&session, &self.front.reached)))
    }

    fn count_failed(&self, now: Instant) -> Refusal {
        let mut failed = locked(&self.failed);
        if now.saturating_duration_since(failed.0) >= FAILED_TIME {
            *failed = (now, 0);
        }
        failed.1 = failed.1.saturating_add(1);
        if failed.1 > FAILED_MAX { Refusal::TooOften } else { Refusal::Token }
    }

    /// Says each time that something is new, until the client goes away, is signed out, or its time
    /// is over.
    fn tell_news(&self, client: &mut Talk, who: Who, session: &Secret) -> io::Result<()> {
        let Ok(_place) = self.listeners.take(who) else { return self.refuse(client, Refusal::TooMany) };
        client.give(NEWS_TIME_MAX);
        http::write_stream_head(client, &self.front.reached)?;
        client.flush()?;
        let (mut told, mut said_at) = (None, Instant::now());
        while locked(&self.sessions).goes_on(session, Instant::now()) {
            let news = routes::fingerprint(&self.look)?;
            if told != Some(news) {
                if told.is_some() {
                    client.write_all(format!("event: news\ndata: {news:x}\n\n").as_bytes())?;
                    client.flush()?;
                    said_at = Instant::now();
                }
                told = Some(news);
            } else if said_at.elapsed() >= ALIVE_EVERY {
                client.write_all(b":\n\n")?;
                client.flush()?;
                said_at = Instant::now();
            }
            if !client.stays(NEWS_EVERY)? {
                break;
            }
        }
        Ok(())
    }
}

impl Service for Door {
    fn converse(&self, client: Box<dyn Client>, who: Who) {
        // A client that goes away in the middle is its own business.
        let _ = self.answer_client(client, who);
    }

    fn turn_away(&self, client: Box<dyn Client>, full: Full) {
        match full {
            Full::Share => self.counts.add(Refusal::TooMany.word()),
            // Through TLS without a word: he would have to be spoken to first.
            Full::All if self.front.server.is_some() => self.counts.add(Refusal::TooMany.word()),
            Full::All => drop(self.refuse(&mut Talk::Plain(hear_out(client)), Refusal::TooMany)),
        }
    }
}
