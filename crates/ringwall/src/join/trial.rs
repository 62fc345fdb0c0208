//! The daemon on trial: a process of its own gives the interface back unless this command confirms.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use system::clock::Clock;
use system::takeover::state;

use super::units::{self, Units};
use crate::failure::Failure;
use crate::modes::file::Config;
use crate::protocol::{Answer, Ask};
use crate::{client, host};

/// How long a daemon may take to guard its interface, as the unit says.
const START_TIME: Duration = Duration::from_secs(60);
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// What a trial is made with.
pub(super) struct Trial<'a> {
    pub(super) file: &'a Path,
    pub(super) config: &'a Config,
    pub(super) units: &'a Units,
    /// When the interface is given back unless this command has confirmed.
    pub(super) time: Duration,
}

/// How a trial began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Began {
    /// The interface was taken over.
    Anew,
    /// An earlier run had begun it.
    Before,
    /// The interface is guarded for good, as somebody has confirmed.
    IsOver,
}

impl Trial<'_> {
    /// Starts the daemon, unless one guards the interface already.
    pub(super) fn begin(&self) -> Result<Began, Failure> {
        let host = &self.config.host;
        let taken = state::load(&host.state_dir, &host.interface)?;
        let is_running = self.is_running();
        match taken {
            Some(state) if is_running && state.revert_at().is_none() => return Ok(Began::IsOver),
            Some(_) if is_running => {
                let until = Clock::new().now().since_boot + self.time;
                state::set_revert_at(&host.state_dir, &host.interface, until)?;
                return Ok(Began::Before);
            }
            _ => {}
        }
        match self.units {
            Units::Systemd(unit) => unit.start_on_trial(self.file, self.time)?,
            Units::None(_) => self.start()?,
        }
        Ok(Began::Anew)
    }

    fn is_running(&self) -> bool {
        let answer = client::ask(&self.config.socket(), &Ask::Status);
        matches!(answer, Ok(Answer::Status(status)) if status.state == "running")
    }

    /// Starts the daemon beside this command, which it outlives, and waits until it guards the
    /// interface.
    fn start(&self) -> Result<(), Failure> {
        let log = log(self.config);
        let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(&log);
        let opened =
            opened.map_err(|error| Failure::file(&log, error, "make room for it, and give the command again"))?;
        let program = std::env::current_exe().map_err(Failure::new)?;
        let mut daemon = Command::new(program)
            .args(["host", "run", "--config"])
            .arg(self.file)
            .args(["--revert-after", &format!("{}s", self.time.as_secs())])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(opened)
            // Neither Ctrl-C nor the end of the terminal is for the daemon.
            .process_group(0)
            .spawn()
            .map_err(|error| Failure::new(format!("the daemon does not start: {error}")))?;
        let end = Instant::now() + START_TIME;
        while !self.is_running() {
            let ended = daemon.try_wait().map_err(Failure::new)?;
            if ended.is_some() || Instant::now() > end {
                let _ = daemon.kill();
                let said = fs::read_to_string(&log).unwrap_or_default();
                let last = said.lines().last().unwrap_or("it says nothing").to_owned();
                self.take_back()?;
                return Err(Failure::new(format!("the daemon does not guard {}: {last}", self.config.host.interface)));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
        Ok(())
    }

    /// Ends the daemon and gives the interface back, as it was.
    pub(super) fn take_back(&self) -> Result<(), Failure> {
        host::release_interface(self.config)?;
        units::settle();
        if let Units::Systemd(unit) = self.units {
            unit.end_trial()?;
        }
        Ok(())
    }
}

/// Where a daemon that systemd does not start has its log.
pub(super) fn log(config: &Config) -> PathBuf {
    config.host.state_dir.join(format!("{}.log", config.host.interface))
}
