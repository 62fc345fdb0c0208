//! The main thread of a daemon: commands over the Unix socket, signals, what happens to the cards, the watchdog.
//!
//! It never touches a frame. The data path answers its questions between two batches; a data path that does not answer
//! is dead, and then the watchdog is not fed. What is particular to a host or a gateway is its [`Ward`].

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bump::Ledger;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use system::sandbox::{Entered, Refused};
use system::wait::{PollFd, PollFlags, Waker, wait};
use watch::Around;

use super::data_path::{Command, News, Snapshot};
use super::guard::Kind;
use super::journal::{Journal, unix_ms};
use super::link::Link;
use super::notice::Notice;
use super::reports::{self, SideNames};
use super::telling::{Here, Telling};
use crate::config::Records;
use crate::daemon::companions::Companions;
use crate::failure::Failure;
use crate::metrics::exporter::Exporter;
use crate::monitor::Disk;
use crate::protocol::attacks::Attacks;
use crate::protocol::flow_record::FlowRecord;
use crate::protocol::{Answer, Ask, Measured};
use crate::recorder;

/// How long a client may take to ask or to listen.
const CLIENT_TIME_MAX: Duration = Duration::from_millis(500);
/// Longest question that is read.
const ASK_LEN_MAX: u64 = 4096;
/// How often the watchdog is fed and deadlines are looked at.
const TURN_MAX: Duration = Duration::from_secs(1);

/// The interfaces that a daemon holds, and what it says of them.
pub(crate) trait Ward {
    /// The kind of daemon that holds them.
    type Kind: Kind;

    /// What the two sides are called.
    const SIDES: SideNames;

    /// The name that stands for the daemon in messages: that of its interface.
    fn name(&self) -> &str;

    /// What to wait on: readable when [`follow`](Ward::follow) may have something to do.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>>;

    /// After so long [`follow`](Ward::follow) is called, whatever happens.
    fn patience(&self) -> Duration {
        TURN_MAX
    }

    /// Follows what happened to the interfaces. An error ends the daemon.
    fn follow(&mut self, journal: &mut Journal, link: &Link<Self::Kind>) -> Result<(), Failure>;

    /// Carries out what the bump wants of the machine.
    fn carry_out(&mut self, effect: <Self::Kind as Kind>::Effect, journal: &mut Journal);

    /// Sees to what is due from time to time.
    fn look_after(&mut self, _snapshot: &Snapshot<Self::Kind>, _journal: &mut Journal, _link: &Link<Self::Kind>) {}

    /// Connections that are over, for the recorder.
    fn ended_flows(&mut self, _link: &Link<Self::Kind>) -> Vec<FlowRecord> {
        Vec::new()
    }

    /// As many of them were not told, as the recorder is too slow.
    fn lose_flows(&mut self, _count: usize) {}

    /// Reads the configuration again, and has in force what needs no restart; what came of it, in lines.
    fn reload(&mut self, journal: &mut Journal, link: &Link<Self::Kind>) -> Result<Vec<String>, Failure>;

    /// Where attacks are told.
    fn records(&self) -> &Records;

    /// What is known of whose address is whose.
    fn around(&self, snapshot: &Snapshot<Self::Kind>) -> Around;

    /// Carries out an order of an operator that only some daemons know.
    fn obey(&mut self, ask: &Ask, journal: &mut Journal, link: &Link<Self::Kind>) -> Answer;

    /// Enters what the bump never saw.
    fn amend(&self, _ledger: &mut Ledger) {}

    /// Whom the bump knows.
    fn known(&self, snapshot: &Snapshot<Self::Kind>) -> Answer;

    /// How it is.
    fn status(&self, being: &Being, snapshot: &Snapshot<Self::Kind>) -> Answer;

    /// The last act: the interfaces stay closed or are restored, as configured.
    fn give_back(self) -> Result<(), Failure>;
}

/// What every daemon says of itself.
pub(crate) struct Being {
    pub(crate) version: String,
    pub(crate) state: String,
    pub(crate) uptime_s: u64,
    pub(crate) attacks: Attacks,
}

/// When a daemon started.
struct Started {
    at: Instant,
    /// By the wall clock, as it was understood last.
    unix_ms: u64,
}

impl Started {
    /// A wall clock that jumps further than this was set.
    const CLOCK_STEP_MS: u64 = 2000;

    fn now() -> Started {
        Started { at: Instant::now(), unix_ms: unix_ms() }
    }

    /// In milliseconds since 1970. It stays the same until the clock is set: who asks twice sees no
    /// new start.
    fn unix_ms(&mut self, now_ms: u64) -> u64 {
        let ago = u64::try_from(self.at.elapsed().as_millis()).unwrap_or(u64::MAX);
        let unix_ms = now_ms.saturating_sub(ago);
        if unix_ms.abs_diff(self.unix_ms) > Self::CLOCK_STEP_MS {
            self.unix_ms = unix_ms;
        }
        self.unix_ms
    }
}

/// What the main thread of a daemon works with. Opened while there are privileges.
pub(crate) struct Supervisor<W> {
    ward: W,
    listener: UnixListener,
    socket: PathBuf,
    signals: UnixStream,
    hangups: UnixStream,
    telling: Telling,
    exporter: Option<Exporter>,
    waker: Waker,
    journal: Journal,
    started: Started,
    stopping: bool,
    /// Who starts services hears how this one is.
    notice: Notice,
    disk: Disk,
    /// System calls that the sandbox refuses, once there is one.
    refused: Option<Refused>,
}

impl<W: Ward> Supervisor<W> {
    /// Opens everything that needs privileges. `key` names the directory of `socket` in the configuration.
    pub(crate) fn open(
        ward: W,
        socket: PathBuf,
        key: &str,
        disk: &Disk,
        told: (Here, Companions),
    ) -> Result<Supervisor<W>, Failure> {
        let listener = listen(&socket).map_err(|error| {
            let remedy = format!("make {key} writable for root, or name another directory");
            Failure::file(&socket, error, &remedy)
        })?;
        let mut journal = Journal::default();
        journal.leave_attacks(ward.records().journal && recorder::is_journald_there());
        let (here, Companions { recorder, exporter }) = told;
        Ok(Supervisor {
            ward,
            listener,
            socket,
            signals: signals(&[SIGINT, SIGTERM]).map_err(Failure::new)?,
            hangups: signals(&[SIGHUP]).map_err(Failure::new)?,
            telling: Telling::new(here, recorder),
            exporter,
            waker: Waker::new().map_err(Failure::new)?,
            journal,
            started: Started::now(),
            stopping: false,
            notice: Notice::open(),
            disk: disk.clone(),
            refused: None,
        })
    }

    /// This process is in its sandbox from now on.
    pub(crate) fn inside(&mut self, entered: Entered) {
        let Entered { user, landlock, unlocked, refused } = entered;
        let name = self.ward.name();
        tracing::info!(name, %user, "in its sandbox; Landlock is {landlock}");
        if let Some(error) = unlocked {
            tracing::warn!(name, "memory with keys may be swapped out: {error}; set LimitMEMLOCK=infinity");
        }
        self.refused = Some(refused);
    }

    pub(crate) fn ward(&self) -> &W {
        &self.ward
    }

    pub(super) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Supervises until a signal, a command or a broken data path ends the daemon.
    pub(super) fn run(mut self, link: Link<W::Kind>) -> Result<(), Failure> {
        self.notice.say(Notice::READY);
        self.telling.started();
        let result = self.turns(&link);
        self.notice.say(Notice::STOPPING);
        let _ = link.command(Command::Stop);
        let ended = link.thread.join();
        let name = self.ward.name().to_owned();
        let given_back = self.ward.give_back();
        hear_refusals(&mut self.refused, &mut self.journal);
        self.telling.change("stopped", if result.is_ok() { "as told" } else { "because it failed" });
        // The socket goes last, because whoever told us to stop waits for that.
        let _ = self.disk.remove_socket(&self.socket);
        result?;
        match ended {
            Ok(Ok(())) => given_back,
            Ok(Err(error)) => Err(Failure::new(format!("{name}: the data path broke: {error}"))),
            Err(_) => Err(Failure::new(format!("{name}: the data path died"))),
        }
    }

    fn turns(&mut self, link: &Link<W::Kind>) -> Result<(), Failure> {
        let mut fed = Instant::now();
        while !self.stopping && !link.thread.is_finished() {
            self.wait_for_something().map_err(Failure::new)?;
            self.hear_news(link);
            self.ward.follow(&mut self.journal, link)?;
            self.serve_clients(link);
            self.serve_exporter(link);
            self.hear_signals();
            self.hear_hangups(link);
            hear_refusals(&mut self.refused, &mut self.journal);
            if fed.elapsed() >= TURN_MAX {
                fed = Instant::now();
                if let Some(mut snapshot) = link.snapshot() {
                    self.notice.say(Notice::WATCHDOG);
                    self.look_for_attacks(&mut snapshot);
                    self.ward.look_after(&snapshot, &mut self.journal, link);
                    let flows = self.ward.ended_flows(link);
                    self.ward.lose_flows(self.telling.flows(&flows));
                }
            }
        }
        Ok(())
    }

    fn wait_for_something(&self) -> io::Result<()> {
        let mut watched = vec![
            PollFd::new(&self.listener, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.hangups, PollFlags::IN),
            PollFd::new(&self.waker, PollFlags::IN),
        ];
        watched.extend(self.exporter.iter().map(|it| PollFd::from_borrowed_fd(it.as_fd(), PollFlags::IN)));
        let of_cards = self.ward.descriptors();
        watched.extend(of_cards.iter().map(|descriptor| PollFd::from_borrowed_fd(*descriptor, PollFlags::IN)));
        wait(&mut watched, Some(self.ward.patience().min(TURN_MAX)))?;
        self.waker.drain();
        Ok(())
    }

    fn hear_signals(&mut self) {
        let mut bytes = [0; 16];
        if matches!(io::Read::read(&mut self.signals, &mut bytes), Ok(count) if count > 0) {
            tracing::info!("told to stop by a signal");
            self.stopping = true;
        }
    }

    /// What a hangup asks of a daemon: its configuration read again, and its files opened anew.
    fn hear_hangups(&mut self, link: &Link<W::Kind>) {
        let mut bytes = [0; 16];
        if !matches!(io::Read::read(&mut self.hangups, &mut bytes), Ok(count) if count > 0) {
            return;
        }
        match self.reload(link) {
            Ok(lines) => lines.iter().for_each(|line| tracing::info!("read again: {line}")),
            Err(failure) => tracing::warn!("the configuration stays as it was: {failure}"),
        }
    }

    fn reload(&mut self, link: &Link<W::Kind>) -> Result<Vec<String>, Failure> {
        let lines = self.ward.reload(&mut self.journal, link);
        self.telling.follow(self.ward.records());
        if let Ok(lines) = &lines {
            self.telling.change("policy", &lines.join("; "));
        }
        lines
    }

    fn look_for_attacks(&mut self, snapshot: &mut Snapshot<W::Kind>) {
        self.ward.amend(&mut snapshot.ledger);
        let around = self.ward.around(snapshot);
        self.telling.look(snapshot, &around, &mut self.journal);
    }

    fn hear_news(&mut self, link: &Link<W::Kind>) {
        while let Some(news) = link.news.next() {
            match news {
                News::Event(event) => self.journal.note_about(event.word, &event.text, event.about),
                News::Effect(effect) => self.ward.carry_out(effect, &mut self.journal),
            }
        }
    }

    fn serve_clients(&mut self, link: &Link<W::Kind>) {
        while let Ok((client, _)) = self.listener.accept() {
            // A client that goes away in the middle is its own business.
            let _ = self.serve(client, link);
        }
    }

    /// One question at a time; an exporter that is gone, or does not read, is not waited for again.
    fn serve_exporter(&mut self, link: &Link<W::Kind>) {
        let Some(mut exporter) = self.exporter.take() else { return };
        let served = match exporter.is_asking() {
            Ok(true) => exporter.tell(&self.answer(&Ask::Metrics, link)),
            other => other.map(drop),
        };
        match served {
            Ok(()) => self.exporter = Some(exporter),
            Err(error) => tracing::warn!("scrapers get no answer until the next start: the exporter is gone: {error}"),
        }
    }

    fn serve(&mut self, client: UnixStream, link: &Link<W::Kind>) -> io::Result<()> {
        client.set_nonblocking(false)?;
        client.set_read_timeout(Some(CLIENT_TIME_MAX))?;
        client.set_write_timeout(Some(CLIENT_TIME_MAX))?;
        let mut line = String::new();
        BufReader::new(io::Read::take(&client, ASK_LEN_MAX)).read_line(&mut line)?;
        let answer = match serde_json::from_str::<Ask>(&line) {
            Ok(ask) => self.answer(&ask, link),
            Err(error) => Answer::Error { line: format!("not a question: {error}") },
        };
        let mut text = serde_json::to_string(&answer)?;
        text.push('\n');
        (&client).write_all(text.as_bytes())
    }

    fn answer(&mut self, ask: &Ask, link: &Link<W::Kind>) -> Answer {
        match ask {
            Ask::Events { after } => return Answer::Events { events: self.journal.after(*after) },
            Ask::Stop => {
                self.stopping = true;
                return Answer::Stopping;
            }
            Ask::Reload => {
                let done = self.reload(link);
                return done.map_or_else(
                    |failure| Answer::Error { line: failure.to_string() },
                    |lines| Answer::Done { lines },
                );
            }
            Ask::Renewed | Ask::Forget { .. } | Ask::Flows { .. } | Ask::Block { .. } | Ask::HandOver => {
                let answer = self.ward.obey(ask, &mut self.journal, link);
                if let Answer::Done { lines } = &answer {
                    self.telling.change("order", &lines.join("; "));
                }
                return answer;
            }
            Ask::Status | Ask::Metrics | Ask::Peers | Ask::Drops => {}
        }
        let Some(mut snapshot) = link.snapshot() else { return reports::silence() };
        self.look_for_attacks(&mut snapshot);
        match ask {
            Ask::Peers => self.ward.known(&snapshot),
            Ask::Metrics => self.measured(&snapshot),
            Ask::Drops => Answer::Drops {
                counts: reports::drops(&snapshot.ledger),
                examples: reports::examples(&snapshot, W::SIDES),
            },
            _ => self.ward.status(&self.being(), &snapshot),
        }
    }

    fn measured(&mut self, snapshot: &Snapshot<W::Kind>) -> Answer {
        let unix_ms = snapshot.now.wall.map_or_else(unix_ms, |wall| wall.unix_ms);
        Answer::Measured(Box::new(Measured {
            unix_ms,
            started_unix_ms: self.started.unix_ms(unix_ms),
            status: Box::new(self.ward.status(&self.being(), snapshot)),
            known: Box::new(self.ward.known(snapshot)),
        }))
    }

    fn being(&self) -> Being {
        Being {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: if self.stopping { "stopping" } else { "running" }.to_owned(),
            uptime_s: self.started.at.elapsed().as_secs(),
            attacks: self.telling.attacks(),
        }
    }
}

/// The sandbox refuses what this program never did when it was tried; an operator should hear of
/// it.
fn hear_refusals(refused: &mut Option<Refused>, journal: &mut Journal) {
    for call in refused.iter_mut().flat_map(Refused::news) {
        journal.note("sandbox", &format!("the sandbox refuses the system call {call}"));
    }
}

/// Listens on `socket`, for root only. A socket file that a killed daemon left is replaced: the lock on the interface, held
/// by then, says that nobody else listens there.
fn listen(socket: &PathBuf) -> io::Result<UnixListener> {
    match std::fs::remove_file(socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(socket)?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// A stream that becomes readable when one of these signals comes.
fn signals(kinds: &[i32]) -> io::Result<UnixStream> {
    let (receiver, sender) = UnixStream::pair()?;
    receiver.set_nonblocking(true)?;
    for signal in kinds {
        signal_hook::low_level::pipe::register(*signal, sender.try_clone()?)?;
    }
    Ok(receiver)
}
