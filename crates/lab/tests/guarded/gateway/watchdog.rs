//! What systemd is to the gateway's unit, in small: told that the daemon is ready and alive, and starting it again if not
//! (sd_notify(3), `Type=notify` with `WatchdogSec=`).

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ringwall_lab::failure::Failure;
use ringwall_lab::net::{Running, process};
use rustix::process::Signal;

use super::{Path, READY_LIMIT};
use crate::stage::{Outcome, SOON};

/// Without a word for so long the daemon counts as hung; the unit has it three times as long.
const WATCHDOG: Duration = Duration::from_secs(5);

/// Stops one thread, the number of which it is given, for as long as it lives itself.
const STOP_THREAD: &str = "
import ctypes, sys, time
libc = ctypes.CDLL(None, use_errno=True)
SEIZE, INTERRUPT = 0x4206, 0x4207
for request in (SEIZE, INTERRUPT):
    if libc.ptrace(request, ctypes.c_long(int(sys.argv[1])), None, None) != 0:
        sys.exit(f'ptrace: {ctypes.get_errno()}')
print('stopped', flush=True)
time.sleep(600)
";

/// What hangs.
#[derive(Clone, Copy)]
pub enum Hang {
    /// All of the daemon.
    Process,
    /// The thread that moves the frames; the supervisor lives.
    DataPath,
}

/// A supervisor of the gateway's daemon.
pub struct Watchdog {
    socket: UnixDatagram,
    /// Where its files go.
    directory: PathBuf,
    command: Box<dyn Fn() -> Result<Running, Failure>>,
    daemon: Option<Running>,
    /// What holds a thread of it.
    holder: Option<Running>,
    is_ready: bool,
    feeds: usize,
    restarts: usize,
    heard: Instant,
}

impl Watchdog {
    /// Starts the gateway of `path` and waits until it says that it is ready.
    pub fn start(path: &Path) -> Result<Watchdog, Failure> {
        let address = path.directory.join("notify");
        let _of_an_earlier_test = std::fs::remove_file(&address);
        let socket = UnixDatagram::bind(&address).map_err(Failure::file("binding", &address))?;
        socket.set_nonblocking(true).map_err(Failure::io("a socket"))?;
        let mut watchdog = Watchdog {
            socket,
            directory: path.directory.clone(),
            command: command(path, address),
            daemon: None,
            holder: None,
            is_ready: false,
            feeds: 0,
            restarts: 0,
            heard: Instant::now(),
        };
        watchdog.launch()?;
        watchdog.until("the daemon's word that it is ready", READY_LIMIT, |watchdog| watchdog.is_ready)?;
        Ok(watchdog)
    }

    fn launch(&mut self) -> Outcome {
        self.daemon = Some((self.command)()?);
        (self.is_ready, self.heard) = (false, Instant::now());
        Ok(())
    }

    /// Hears what the daemon says, and starts it again if it has said nothing for too long.
    fn turn(&mut self) -> Outcome {
        let mut buffer = [0; 256];
        while let Ok(len) = self.socket.recv(&mut buffer) {
            let said = String::from_utf8_lossy(&buffer[..len]).into_owned();
            self.heard = Instant::now();
            self.is_ready |= said.lines().any(|line| line == "READY=1");
            self.feeds += said.lines().filter(|line| *line == "WATCHDOG=1").count();
        }
        if self.is_ready && self.heard.elapsed() > WATCHDOG {
            self.restarts += 1;
            // A stopped process takes no other signal, and one of which a thread is held ends when that is let go.
            if let Some(daemon) = self.daemon.take() {
                daemon.signal(Signal::KILL);
                drop(self.holder.take());
                daemon.stop(Signal::KILL);
            }
            self.launch()?;
        }
        Ok(())
    }

    fn until(&mut self, what: &str, limit: Duration, mut holds: impl FnMut(&Watchdog) -> bool) -> Outcome {
        process::until(what, limit, || {
            self.turn()?;
            Ok(holds(self))
        })
    }

    /// Waits until the daemon has said `count` times more that it is alive.
    pub fn await_feeds(&mut self, count: usize) -> Outcome {
        let wanted = self.feeds + count;
        self.until("a sign of life", SOON, |watchdog| watchdog.feeds >= wanted)
    }

    /// Waits until the daemon was started again and is ready.
    pub fn await_restart(&mut self) -> Outcome {
        let wanted = self.restarts + 1;
        self.until("the restart", WATCHDOG + READY_LIMIT, |watchdog| watchdog.restarts == wanted && watchdog.is_ready)
    }

    /// How often it was started again.
    pub fn restarts(&self) -> usize {
        self.restarts
    }

    /// Makes it hang.
    pub fn hang(&mut self, how: Hang) -> Outcome {
        let daemon = self.daemon.as_ref().expect("it runs");
        match how {
            Hang::Process => daemon.signal(Signal::STOP),
            Hang::DataPath => {
                let mut command = std::process::Command::new("/usr/bin/python3");
                command.args(["-c", STOP_THREAD]).arg(thread(daemon.id(), "ringwall-data")?.to_string());
                let mut holder = Running::start(command, &self.directory.join("holder"))?;
                holder.await_output("stopped", SOON)?;
                self.holder = Some(holder);
            }
        }
        Ok(())
    }

    /// Ends the daemon in order.
    pub fn stop(mut self) {
        if let Some(daemon) = self.daemon.take() {
            daemon.stop(Signal::TERM);
        }
    }
}

/// How the gateway of `path` is started, its word going to `address`.
fn command(path: &Path, address: PathBuf) -> Box<dyn Fn() -> Result<Running, Failure>> {
    let (gate, config, log) = (path.gate.clone(), path.config(), path.directory.join("log"));
    Box::new(move || {
        let mut command = gate.command(&crate::stage::program().to_string_lossy());
        command.args(["gate", "run", "--config"]).arg(&config).env("NOTIFY_SOCKET", &address);
        Running::start(command, &log)
    })
}

/// The number of the thread called `name` in the process `id`.
fn thread(id: u32, name: &str) -> Result<u32, Failure> {
    let directory = format!("/proc/{id}/task");
    let tasks = std::fs::read_dir(&directory).map_err(Failure::io("listing threads"))?;
    let named = |entry: std::fs::DirEntry| {
        let comm = std::fs::read_to_string(entry.path().join("comm")).ok()?;
        (comm.trim() == name).then(|| entry.file_name().to_str()?.parse().ok())?
    };
    tasks.flatten().find_map(named).ok_or_else(|| Failure::Unreadable(format!("no thread {name} in {directory}")))
}
