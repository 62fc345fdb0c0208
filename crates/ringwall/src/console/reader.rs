//! The reader: asks the daemons and reads the history for its door, and gives out links.
//!
//! It is root, because the daemons' sockets and the history are for root alone, and has no
//! privilege beside that. It understands questions; an order cannot be said to it.

use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use system::privilege;
use system::sandbox::{self, Reach};

use super::listening::Listening;
use super::look::unix_s;
use super::tokens::{Secret, Tokens};
use super::{COMMAND, Duty, Question, Reply, ServeArgs, What, login, site};
use crate::client::{self, sockets_in, stem};
use crate::companion;
use crate::config;
use crate::failure::Failure;
use crate::protocol::Ask;
use crate::recorder::history::{self, Row, Wanted};
use crate::serving::{Patience, Way, locked, remove_socket};

/// Longest question.
const QUESTION_BYTES_MAX: u64 = 4096;
/// TCP connections of a gateway that are shown.
const FLOWS_MAX: usize = 1000;
/// Rows of the history that are handed over at a time.
const ROWS_MAX: u32 = 1000;
/// A door asks every few seconds, and reads what it is told: one that does neither hangs, and the
/// service begins anew.
const PATIENCE: Patience = Patience { say: Some(Duration::from_secs(120)), hear: Duration::from_secs(30) };
/// How long somebody who asks for a link may take.
const LOGIN_TIME_MAX: Duration = Duration::from_secs(2);

/// Tokens, given out by one thread and redeemed by another.
type Given = Arc<Mutex<Tokens>>;

/// `ringwall console`
pub(super) fn serve(args: &ServeArgs) -> Result<(), Failure> {
    let listening = Listening::read(args)?;
    if privilege::own_user() != 0 {
        return Err(Failure::new("only root may ask the daemons: start ringwall-console.service, or use sudo"));
    }
    let run_dir = args.run_dir.clone().unwrap_or_else(config::default_run_dir);
    let logins = listen_for_logins(&run_dir)?;
    listening.notes.iter().for_each(|note| tracing::info!("{note}"));
    let failed = |error: io::Error| Failure::new(format!("the door of the console does not start: {error}"));
    let door = companion::start(COMMAND).map_err(failed)?;
    let mut door = Way::new(door, PATIENCE, QUESTION_BYTES_MAX).map_err(failed)?;
    let asker = site::start(args)?;
    let identity = listening.identity.as_ref().map(|text| text.to_string());
    let duty = Duty { listen: args.listen.clone(), identity, has_site: asker.is_some() };
    door.say(&duty).map_err(failed)?;
    let confined = confine(&run_dir, &args.history);
    confined.map_err(|error| Failure::new(format!("the console gives nothing up: {error}")))?;
    let given = Given::default();
    let (links, link) = (Arc::clone(&given), listening.link);
    std::thread::Builder::new().spawn(move || give_out(&logins, &links, &link)).map_err(Failure::new)?;
    let (history, ends_unix) = (args.history.clone(), listening.ends_unix);
    Reader { run_dir, history, given, ends_unix, asker }.run(door)
}

/// No capability; of files, the sockets and the histories.
fn confine(run_dir: &Path, histories: &[PathBuf]) -> io::Result<()> {
    sandbox::forbid_dumps()?;
    privilege::keep(&[])?;
    let places = histories.iter().filter_map(|file| file.parent()).filter(|place| place.is_dir());
    // A reader of SQLite's log writes into a file beside it.
    let reach = Reach {
        readable: vec![run_dir.to_owned()],
        writable: places.map(Path::to_owned).collect(),
        ..Reach::default()
    };
    let landlocked = sandbox::confine(&reach)?;
    tracing::debug!("the console's reader: Landlock is {landlocked}");
    sandbox::end_at_attacks()
}

fn listen_for_logins(run_dir: &Path) -> Result<UnixListener, Failure> {
    let name = login::socket(run_dir);
    let open = || {
        std::fs::create_dir_all(run_dir)?;
        remove_socket(&name)?;
        let listener = UnixListener::bind(&name)?;
        std::fs::set_permissions(&name, std::fs::Permissions::from_mode(0o600))?;
        Ok(listener)
    };
    open().map_err(|error: io::Error| Failure::file(&name, error, "start the console as root, with another --run-dir"))
}

/// Gives a link to each who asks for one.
fn give_out(logins: &UnixListener, given: &Mutex<Tokens>, link: &str) {
    for stream in logins.incoming() {
        let told = stream.and_then(|stream| give(stream, given, link));
        if let Err(error) = told {
            tracing::warn!("nobody was given a link: {error}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn give(mut stream: UnixStream, given: &Mutex<Tokens>, link: &str) -> io::Result<()> {
    if privilege::user_of_peer(&stream)? != privilege::own_user() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    stream.set_write_timeout(Some(LOGIN_TIME_MAX))?;
    let token = Secret::new(*system::random::seed()?);
    let line = zeroize::Zeroizing::new(format!("{link}{}\n", token.text().as_str()));
    locked(given).give(token, Instant::now());
    tracing::info!("a link that signs one person in was given out");
    stream.write_all(line.as_bytes())
}

struct Reader {
    run_dir: PathBuf,
    history: Vec<PathBuf>,
    given: Given,
    /// When another certificate is to be read.
    ends_unix: Option<u64>,
    /// The process that asks the site's service.
    asker: Option<Way>,
}

impl Reader {
    fn run(mut self, mut door: Way) -> Result<(), Failure> {
        loop {
            let question = door.receive();
            let question =
                question.map_err(|error| Failure::new(format!("the door of the console is gone: {error}")))?;
            door.say(&self.answer(question)?).map_err(Failure::new)?;
            if self.ends_unix.is_some_and(|ends_unix| unix_s() >= ends_unix) {
                return Err(Failure::new("the certificate ends; the console ends and is started again with another"));
            }
        }
    }

    fn answer(&mut self, question: Question) -> Result<Reply, Failure> {
        Ok(match question {
            Question::Daemons => Reply::Daemons(sockets_in(&self.run_dir).iter().map(|socket| stem(socket)).collect()),
            Question::Ask { daemon, what } => self.ask(&daemon, what),
            Question::History(wanted) => Reply::Rows(self.rows(wanted)),
            Question::Redeem(text) => {
                let mut given = locked(&self.given);
                Reply::Redeemed(Secret::parse(&text).is_some_and(|token| given.redeem(&token, Instant::now())))
            }
            Question::Site(number) => Reply::Site(self.site(number)),
        })
    }

    /// What the asker knows that is newer. One that is gone leaves a sentence: what is said of this
    /// machine does not hang on the site's service.
    fn site(&mut self, number: u64) -> Option<Box<site::Site>> {
        match self.asker.as_mut()?.ask(&number) {
            Ok(newer) => newer,
            Err(error) => {
                tracing::warn!("the asker of the console is gone: {error}");
                self.asker = None;
                Some(Box::new(site::Site::without_asker(&error, unix_s())))
            }
        }
    }

    fn ask(&self, daemon: &str, what: What) -> Reply {
        // Only what the directory has, so no name leads elsewhere.
        let Some(socket) = sockets_in(&self.run_dir).into_iter().find(|socket| stem(socket) == daemon) else {
            return Reply::Silent("there is no such daemon".to_owned());
        };
        let text = client::ask_for_text(&socket, &question(what)).map_err(|failure| failure.to_string());
        let told = text.and_then(|text| RawValue::from_string(text).map_err(|error| error.to_string()));
        told.map_or_else(Reply::Silent, Reply::Told)
    }

    /// Of all histories, what began first coming first. One that is not there has none.
    fn rows(&self, wanted: Wanted) -> Vec<Row> {
        let (most, after) = wanted.newest.unwrap_or((ROWS_MAX, 0));
        history::read_all(&self.history, &Wanted { newest: Some((most.min(ROWS_MAX), after)), ..wanted })
    }
}

/// The only questions that reach a daemon.
fn question(what: What) -> Ask {
    match what {
        What::Status => Ask::Status,
        What::Known => Ask::Peers,
        What::Drops => Ask::Drops,
        What::Flows => Ask::Flows { limit: FLOWS_MAX, address: None, state: None },
    }
}
