//! Units of systemd for one interface.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use system::takeover::{self, Sort};

use super::CONFIG_DIRECTORY;
use super::account::Outcome;
use crate::failure::Failure;
use crate::host::rights::MISSING;

/// Is there while systemd runs (sd_booted(3)).
const SYSTEMD: &str = "/run/systemd/system";
/// The name of the drop-in that makes a start of the unit a trial. It goes with the next boot at
/// the latest.
const TRIAL: &str = "50-ringwall-trial.conf";

/// What keeps the daemon running.
pub(super) enum Units {
    Systemd(Unit),
    /// Nothing does, and this is why.
    None(&'static str),
}

/// What became of the units, in words.
pub(super) struct Enabled {
    pub(super) outcome: Outcome,
    pub(super) text: String,
}

impl Units {
    /// What there is for `interface`, whose configuration is the usual one.
    pub(super) fn of(interface: &str, no_units: bool) -> Units {
        if no_units {
            return Units::None("--no-units was given");
        }
        if !Path::new(SYSTEMD).is_dir() {
            return Units::None("systemd does not run here");
        }
        let all = takeover::interfaces().unwrap_or_default();
        let is_made = all.iter().any(|one| one.name == interface && one.sort == Sort::Made);
        let unit = Unit { interface: interface.to_owned(), is_made };
        match systemctl(&["cat"], &[unit.service()]) {
            Ok(_) => Units::Systemd(unit),
            Err(_) => Units::None("the unit ringwall@ is not installed"),
        }
    }

    /// The same for a configuration that may lie elsewhere than where the unit reads it.
    pub(super) fn with(self, interface: &str, file: &Path) -> Units {
        let usual = Path::new(CONFIG_DIRECTORY).join(format!("{interface}.toml"));
        if file == usual { self } else { Units::None("the unit reads another configuration than --config names") }
    }

    pub(super) fn plan(&self) -> String {
        match self {
            Units::Systemd(unit) => format!("{} enabled", unit.names().join(", ")),
            Units::None(why) => format!("none, because {why}"),
        }
    }

    /// Has the daemon started at each boot, and this host report where its configuration says to
    /// whom.
    pub(super) fn enable(&self, file: &Path, reports: bool) -> Result<Enabled, Failure> {
        match self {
            Units::Systemd(unit) => {
                unit.enable()?;
                let mut names = unit.names();
                if reports {
                    systemctl(&["enable", "--now"], &[unit.reporting()])?;
                    names.push(unit.reporting());
                }
                Ok(Enabled { outcome: Outcome::Done, text: format!("{} enabled", names.join(", ")) })
            }
            Units::None(why) => {
                let start = format!("ringwall host run --config {}", file.display());
                let text = format!("{why}: the daemon runs now; have `{start}` started at each boot");
                Ok(Enabled { outcome: Outcome::Note, text })
            }
        }
    }
}

/// The units of one interface.
pub(super) struct Unit {
    interface: String,
    /// Whether the manager of the network makes the interface, after the boot has begun.
    is_made: bool,
}

impl Unit {
    fn service(&self) -> String {
        format!("ringwall@{}.service", self.interface)
    }

    fn closed(&self) -> String {
        format!("ringwall-closed@{}.service", self.interface)
    }

    fn made(&self) -> String {
        format!("ringwall-virtual@{}.service", self.interface)
    }

    fn timer(&self) -> String {
        format!("ringwall-renew@{}.timer", self.interface)
    }

    fn reporting(&self) -> String {
        format!("ringwall-report@{}.timer", self.interface)
    }

    /// Those that are enabled. What is made later is closed, and its daemon started, by a rule of
    /// udev; a boot would wait for it.
    fn names(&self) -> Vec<String> {
        if self.is_made { vec![self.made()] } else { vec![self.closed(), self.service()] }
    }

    /// Those that there may be.
    fn all(&self) -> [String; 5] {
        [self.service(), self.closed(), self.made(), self.timer(), self.reporting()]
    }

    fn drop_in(&self) -> PathBuf {
        Path::new(SYSTEMD).join(format!("{}.d", self.service())).join(TRIAL)
    }

    /// Starts the unit in such a way that the interface is given back unless somebody confirms. The
    /// same process goes on afterwards.
    pub(super) fn start_on_trial(&self, file: &Path, time: Duration) -> Result<(), Failure> {
        let program = std::env::current_exe().map_err(Failure::new)?;
        let run = format!("{} host run --config {}", program.display(), file.display());
        // A daemon that dies on trial stays dead, so that the guard finds nobody in its way.
        let text = format!(
            "# Made by `ringwall join` for a trial.\n[Service]\nExecStart=\nExecStart={run} --revert-after {}s\nRestart=no\n",
            time.as_secs()
        );
        let drop_in = self.drop_in();
        let written =
            fs::create_dir_all(drop_in.parent().unwrap_or(Path::new(SYSTEMD))).and_then(|()| fs::write(&drop_in, text));
        written.map_err(|error| Failure::file(&drop_in, error, "give the command as root"))?;
        systemctl(&["daemon-reload"], &[])?;
        let start = || systemctl(&["restart"], &[self.service()]);
        let started = start().or_else(|failure| {
            if !self.misses_rights() {
                return Err(failure);
            }
            // The daemon has left a note, by which the unit gets them.
            systemctl(&["daemon-reload"], &[])?;
            start()
        });
        started.map_err(|failure| {
            let why = self.last_line();
            let _ = self.end_trial();
            Failure::new(format!("{failure}: {why}"))
        })?;
        Ok(())
    }

    /// Whether the daemon ended because its unit forbids what its way of taking over needs.
    fn misses_rights(&self) -> bool {
        let told = systemctl(&["show", "--property", "ExecMainStatus", "--value"], &[self.service()]);
        told.is_ok_and(|told| told.trim() == MISSING.to_string())
    }

    /// What the daemon said last.
    fn last_line(&self) -> String {
        let said =
            Command::new("journalctl").args(["-u", &self.service(), "-n", "20", "-o", "cat", "--no-pager"]).output();
        let said = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
        let of_ours = said.lines().rfind(|line| line.contains("ringwall: "));
        of_ours.unwrap_or("see journalctl -u ringwall@").to_owned()
    }

    /// The next start is no trial.
    pub(super) fn end_trial(&self) -> Result<(), Failure> {
        let drop_in = self.drop_in();
        match fs::remove_file(&drop_in) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            removed => removed.map_err(|error| Failure::file(&drop_in, error, "remove it"))?,
        }
        // Only if nobody else has put something there.
        let _ = drop_in.parent().map(fs::remove_dir);
        systemctl(&["daemon-reload"], &[]).map(drop)
    }

    fn enable(&self) -> Result<(), Failure> {
        self.end_trial()?;
        // Of what is made later only the way out is started. A daemon that somebody started by hand
        // is left to him, and the unit has its turn at the next boot.
        let how: &[&str] = if self.is_made { &["enable", "--now"] } else { &["enable"] };
        systemctl(how, &self.names()).map(drop)
    }

    /// Nothing is started at the next boot any more.
    pub(super) fn disable(&self) -> Result<(), Failure> {
        self.end_trial()?;
        systemctl(&["disable"], &self.all()).map(drop)
    }

    /// Ends what runs. The interface was given back before.
    pub(super) fn stop(&self) -> Result<(), Failure> {
        systemctl(&["stop"], &self.all())?;
        self.open()
    }

    /// Takes away what shuts the interface. A stop does so only of a unit that is active, and a
    /// rule of udev shuts what is made whether it is or not.
    fn open(&self) -> Result<(), Failure> {
        let program = std::env::current_exe().map_err(Failure::new)?;
        let script = program.ancestors().nth(2).unwrap_or(Path::new("/usr")).join("lib/ringwall/closed.sh");
        if !script.exists() {
            return Ok(());
        }
        let told = Command::new(&script).args(["release", &self.interface]).output();
        let told = told.map_err(|error| Failure::file(&script, error, "see whether it can be started"))?;
        if told.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&told.stderr);
        Err(Failure::new(format!("{} is not open: {}", self.interface, said.lines().next().unwrap_or_default())))
    }
}

/// Waits until udev has heard of a card that came home from a namespace. Its rule for cards that
/// come asks for what the generator has written, which a `daemon-reload` takes away (record 0120).
pub(super) fn settle() {
    // Where there is no udev nobody closes the card.
    let _ = Command::new("udevadm").args(["settle", "--timeout=10"]).stdin(Stdio::null()).status();
}

fn systemctl(words: &[&str], units: &[String]) -> Result<String, Failure> {
    let told = Command::new("systemctl").args(words).args(units).output();
    let told = told.map_err(|error| Failure::new(format!("systemctl: {error}; is systemd installed?")))?;
    if told.status.success() {
        return Ok(String::from_utf8_lossy(&told.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&told.stderr);
    let first = said.lines().next().unwrap_or("it failed").trim();
    Err(Failure::new(format!("systemctl {} {}: {first}", words.join(" "), units.join(" "))))
}

/// Makes a directory for root alone.
pub(super) fn make_private(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
}
