//! The main thread of the daemon: commands over the Unix socket, signals, the card's changes, the watchdog.
//!
//! It never touches a frame. The data path answers its questions between two batches; a data path that does not answer
//! is dead, and then the watchdog is not fed.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bump::ClockTrust;
use cll::Effect;
use identity::HostIdentity;
use sd_notify::NotifyState;
use signal_hook::consts::{SIGINT, SIGTERM};
use system::takeover::{self, Change, Follower, Taken, state};
use system::wait::{PollFd, PollFlags, Waker, wait};

use super::data_path::{Command, News, Snapshot};
use super::journal::Journal;
use super::reports;
use crate::config::{Config, Mode, OnExit, Trains};
use crate::failure::Failure;
use crate::protocol::{self, Answer, Ask, Identity, Status, Takeover};

/// How long the data path may take to answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);
/// How long a client may take to ask or to listen.
const CLIENT_TIME_MAX: Duration = Duration::from_millis(500);
/// Longest question that is read.
const ASK_LEN_MAX: u64 = 4096;
/// How often the watchdog is fed and deadlines are looked at.
const TURN_MAX: Duration = Duration::from_secs(1);

/// The supervisor's end of the data path.
pub(super) struct Link {
    pub(super) commands: SyncSender<Command>,
    pub(super) waker: Waker,
    pub(super) news: Receiver<News>,
    pub(super) thread: JoinHandle<io::Result<()>>,
}

impl Link {
    fn command(&self, command: Command) -> io::Result<()> {
        let sent = self.commands.try_send(command);
        self.waker.wake();
        sent.map_err(|_| io::Error::other("the data path takes no commands"))
    }

    fn snapshot(&self) -> Option<Snapshot> {
        let (sender, receiver) = sync_channel(1);
        self.commands.try_send(Command::Snapshot(sender)).ok()?;
        self.waker.wake();
        receiver.recv_timeout(ANSWER_TIME_MAX).ok()
    }
}

/// The main thread of the daemon.
pub(super) struct Supervisor {
    config: Config,
    identity: Option<Arc<HostIdentity>>,
    /// The key distributors, in the order in which they are asked.
    distributors: Vec<protocol::Distributor>,
    taken: Taken,
    follower: Follower,
    listener: UnixListener,
    socket: PathBuf,
    signals: UnixStream,
    waker: Waker,
    journal: Journal,
    legacy: Vec<Effect>,
    started: Instant,
    carrier: bool,
    stopping: bool,
}

impl Supervisor {
    /// Opens everything that needs privileges.
    pub(super) fn open(
        config: &Config,
        identity: Option<Arc<HostIdentity>>,
        taken: Taken,
        follower: Follower,
    ) -> Result<Supervisor, Failure> {
        let socket = config.socket();
        let listener = listen(&socket).map_err(|error| {
            Failure::file(&socket, error, "make host.run_dir writable for root, or name another directory")
        })?;
        Ok(Supervisor {
            config: config.clone(),
            identity,
            distributors: Vec::new(),
            taken,
            follower,
            listener,
            socket,
            signals: signals().map_err(Failure::new)?,
            waker: Waker::new().map_err(Failure::new)?,
            journal: Journal::default(),
            legacy: Vec::new(),
            started: Instant::now(),
            carrier: true,
            stopping: false,
        })
    }

    pub(super) fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// Has `status` name the key distributors.
    pub(super) fn name_distributors(&mut self, distributors: Vec<protocol::Distributor>) {
        self.distributors = distributors;
    }

    /// Whether bulk leaves in trains.
    pub(super) fn trains(&self) -> Trains {
        self.config.cll.trains
    }

    pub(super) fn wire_mtu(&self) -> u16 {
        u16::try_from(self.taken.nic_mtu).unwrap_or(u16::MAX)
    }

    /// Supervises until a signal, a command or a broken data path ends the daemon.
    pub(super) fn run(mut self, link: Link) -> Result<(), Failure> {
        let _ = sd_notify::notify(&[NotifyState::Ready]);
        let result = self.turns(&link);
        let _ = sd_notify::notify(&[NotifyState::Stopping]);
        let _ = link.commands.try_send(Command::Stop);
        link.waker.wake();
        let ended = link.thread.join();
        let interface = self.config.host.interface.clone();
        let given_back = self.give_back();
        result?;
        match ended {
            Ok(Ok(())) => given_back,
            Ok(Err(error)) => Err(Failure::new(format!("{interface}: the data path broke: {error}"))),
            Err(_) => Err(Failure::new(format!("{interface}: the data path died"))),
        }
    }

    fn turns(&mut self, link: &Link) -> Result<(), Failure> {
        let mut fed = Instant::now();
        while !self.stopping && !link.thread.is_finished() {
            self.wait_for_something().map_err(Failure::new)?;
            self.hear_news(link);
            self.follow_card(link)?;
            self.serve_clients(link);
            self.hear_signals();
            if fed.elapsed() >= TURN_MAX {
                fed = Instant::now();
                if link.snapshot().is_some() {
                    let _ = sd_notify::notify(&[NotifyState::Watchdog]);
                }
            }
        }
        Ok(())
    }

    fn wait_for_something(&self) -> io::Result<()> {
        let [inner, outer] = self.follower.descriptors();
        let mut watched = [
            PollFd::new(&self.listener, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.waker, PollFlags::IN),
            PollFd::from_borrowed_fd(inner, PollFlags::IN),
            PollFd::from_borrowed_fd(outer, PollFlags::IN),
        ];
        wait(&mut watched, Some(TURN_MAX))?;
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

    fn hear_news(&mut self, link: &Link) {
        while let Ok(news) = link.news.try_recv() {
            match news {
                News::Event(event) => self.journal.enter(unix_ms(), event.word, &event.text),
                News::Effect(effect) => {
                    self.set_neighbour(&effect);
                    self.legacy.push(effect);
                }
            }
        }
    }

    fn set_neighbour(&mut self, effect: &Effect) {
        let Effect::PermanentNeighbour { ip, mac } = effect;
        if let Err(error) = takeover::set_permanent_neighbour(&self.config.host.interface, *ip, *mac) {
            self.journal.enter(unix_ms(), "legacy-neighbour", &format!("{ip} at {mac}: {error}"));
        }
    }

    /// The inner device does what the card does.
    fn follow_card(&mut self, link: &Link) -> Result<(), Failure> {
        while let Some(change) = self.follower.next_change().map_err(Failure::new)? {
            self.journal.enter(unix_ms(), "interface", &format!("{change:?}"));
            let applied = match change {
                Change::Carrier(carrier) => {
                    self.carrier = carrier;
                    self.follower.apply_carrier(carrier)
                }
                Change::Mtu(mtu) => self.follow_mtu(mtu, link),
                Change::NicGone | Change::InnerGone | Change::Mac(_) | Change::InnerMac(_) => {
                    let line =
                        format!("{}: {change:?}; start the daemon again when it is back", self.config.host.interface);
                    return Err(Failure::new(line));
                }
                Change::NicUp(_) | Change::InnerMtu(_) => Ok(()),
                Change::InnerUp(up) => {
                    self.renew_neighbours(up);
                    Ok(())
                }
            };
            if let Err(error) = applied {
                self.journal.enter(unix_ms(), "interface", &format!("{change:?} could not be followed: {error}"));
            }
        }
        Ok(())
    }

    /// What is sealed must fit the card, and the stack must know how much that leaves.
    fn follow_mtu(&mut self, nic_mtu: u32, link: &Link) -> io::Result<()> {
        let overhead = self.taken.nic_mtu.saturating_sub(self.taken.inner_mtu);
        self.taken.nic_mtu = nic_mtu;
        self.taken.inner_mtu = nic_mtu.saturating_sub(overhead);
        link.command(Command::WireMtu(self.wire_mtu()))?;
        self.follower.apply_mtu(self.taken.inner_mtu)
    }

    /// The kernel forgets permanent neighbours when a device goes down.
    fn renew_neighbours(&mut self, up: bool) {
        if up {
            for effect in self.legacy.clone() {
                self.set_neighbour(&effect);
            }
        }
    }

    fn serve_clients(&mut self, link: &Link) {
        while let Ok((client, _)) = self.listener.accept() {
            // A client that goes away in the middle is its own business.
            let _ = self.serve(client, link);
        }
    }

    fn serve(&mut self, client: UnixStream, link: &Link) -> io::Result<()> {
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

    fn answer(&mut self, ask: &Ask, link: &Link) -> Answer {
        match ask {
            Ask::Events { after } => return Answer::Events { events: self.journal.after(*after) },
            Ask::Stop => {
                self.stopping = true;
                return Answer::Stopping;
            }
            Ask::Status | Ask::Peers | Ask::Drops => {}
        }
        let Some(snapshot) = link.snapshot() else {
            return Answer::Error { line: "the data path does not answer".to_owned() };
        };
        match ask {
            Ask::Peers => reports::known(&snapshot.report),
            Ask::Drops => {
                Answer::Drops { counts: reports::drops(&snapshot.ledger), examples: reports::examples(&snapshot) }
            }
            _ => Answer::Status(Box::new(self.status(&snapshot))),
        }
    }

    fn status(&self, snapshot: &Snapshot) -> Status {
        let host = &self.config.host;
        let trust = snapshot.now.wall.map_or(ClockTrust::Wrong, |wall| wall.trust);
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            state: if self.stopping { "stopping" } else { "running" }.to_owned(),
            interface: host.interface.clone(),
            mode: host.mode.word().to_owned(),
            profile: host.profile.word().to_owned(),
            weakened: self.config.weakened(),
            uptime_s: self.started.elapsed().as_secs(),
            takeover: self.takeover(snapshot),
            identity: self.identity.as_deref().map(|identity| describe(identity, snapshot)),
            peers: reports::peer_count(&snapshot.report),
            sarp: reports::sarp(snapshot, &self.config, &self.distributors),
            frames: reports::frames(&snapshot.ledger),
            drops: reports::drops(&snapshot.ledger),
            ports: reports::ports(snapshot),
            clock: format!("{trust:?}").to_lowercase(),
            not_carried: owned(host.mode.not_carried()),
            not_protected: owned(host.mode.not_protected()),
        }
    }

    fn takeover(&self, snapshot: &Snapshot) -> Takeover {
        let host = &self.config.host;
        let state = state::load(&host.state_dir, &host.interface).ok().flatten();
        let revert_at = state.and_then(|state| state.revert_at());
        Takeover {
            way: format!("{:?}", self.taken.way).to_lowercase(),
            adopted: self.taken.adopted,
            on_exit: if host.on_exit == OnExit::Closed { "closed" } else { "restore" }.to_owned(),
            carrier: self.carrier,
            wire_mtu: self.taken.nic_mtu,
            inner_mtu: self.taken.inner_mtu,
            reverts_in_s: revert_at.map(|at| at.since(snapshot.now.since_boot).as_secs()),
            probes: self.probes(snapshot),
            warnings: self.taken.warnings.clone(),
        }
    }

    /// What was found out about the kernel and the card.
    fn probes(&self, snapshot: &Snapshot) -> BTreeMap<String, String> {
        let probes = self.taken.probes.iter().map(|probe| (probe.name.clone(), probe.outcome.clone()));
        if self.config.host.mode == Mode::Sarp {
            return probes.collect();
        }
        let trains = match (self.config.cll.trains, snapshot.may_couple) {
            (Trains::Off, _) => "no: switched off by cll.trains",
            (_, false) => "no: this kernel does not cut UDP for packet sockets, frames go one by one",
            (Trains::Auto, true) => "yes, for bulk",
            (Trains::Always, true) => "yes, always",
        };
        probes.chain([("trains".to_owned(), trains.to_owned())]).collect()
    }

    /// The last act: the interface stays closed or is restored, and then the socket goes, because whoever told us to stop
    /// waits for that.
    fn give_back(self) -> Result<(), Failure> {
        let host = &self.config.host;
        // Whoever gives the interface back must be its only holder.
        drop(self.taken);
        let restored = match host.on_exit {
            OnExit::Closed => Ok(()),
            OnExit::Restore => takeover::release(&host.interface, &host.run_dir, &host.state_dir).map(|_| ()),
        };
        let _ = std::fs::remove_file(&self.socket);
        Ok(restored?)
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn describe(identity: &HostIdentity, snapshot: &Snapshot) -> Identity {
    let certificate = identity.certificate();
    Identity {
        name: certificate.name().to_owned(),
        site: identity.site_name(),
        mac: certificate.mac().to_string(),
        addresses: certificate.addresses().iter().map(ToString::to_string).collect(),
        router: certificate.is_router(),
        certificate_days_left: reports::days_left(certificate.not_after_unix(), snapshot.now),
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

/// A stream that becomes readable when somebody asks this program to end.
fn signals() -> io::Result<UnixStream> {
    let (receiver, sender) = UnixStream::pair()?;
    receiver.set_nonblocking(true)?;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::low_level::pipe::register(signal, sender.try_clone()?)?;
    }
    Ok(receiver)
}

fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
