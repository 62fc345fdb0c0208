//! What stands between the LAN and its attackers: nothing, Ringwall, or Ringwall with one layer switched off.
//!
//! The lab runs the real program and knows it only by its commands, its configuration file and its `--json` output.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use clap::ValueEnum;
use rustix::process::Signal;
use serde::Serialize;
use serde_json::Value;

use crate::cleanup::{self, Run};
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::{Host, Lan, Running, process};

/// How long a daemon may take until it guards its interface.
const READY_LIMIT: Duration = Duration::from_secs(15);

/// What guards the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    /// The bare LAN.
    None,
    /// Ringwall on every honest host, with the layer that the attack is about switched off.
    Weakened,
    /// Ringwall on every honest host, in mode `cll`.
    Cll,
}

impl fmt::Display for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Guard::None => "none",
            Guard::Weakened => "weakened",
            Guard::Cll => "cll",
        })
    }
}

/// Finds the `ringwall` program: `wanted`, or the one beside this program.
///
/// # Errors
/// There is none.
pub fn find_program(wanted: Option<&Path>) -> Result<PathBuf, Failure> {
    let program = match wanted {
        Some(path) => path.to_owned(),
        None => {
            let own = std::env::current_exe().map_err(Failure::io("finding this program"))?;
            own.with_file_name("ringwall")
        }
    };
    if program.is_file() {
        return program.canonicalize().map_err(Failure::file("resolving", &program));
    }
    let said = format!("there is no program {}: build it, or name it with --ringwall PATH", program.display());
    Err(Failure::Usage(said))
}

/// A site with its authority and an identity for each honest host of a LAN.
#[derive(Debug)]
pub struct Site {
    program: PathBuf,
    run: Run,
    directory: PathBuf,
}

impl Site {
    /// Founds a site in the directory of `run`.
    ///
    /// # Errors
    /// `ringwall site init` fails.
    pub fn found(run: &Run, program: &Path) -> Result<Site, Failure> {
        let directory = run.directory().join("identities");
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let site = Site { program: program.to_owned(), run: run.clone(), directory };
        let authority = site.authority();
        let mut init = site.command();
        init.args(["site", "init", "--name", "lab", "--dir"]).arg(&authority);
        process::must(init)?;
        Ok(site)
    }

    fn authority(&self) -> PathBuf {
        self.run.directory().join("site")
    }

    /// The program, to be run outside of every host.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        self.run.mark(&mut command);
        command
    }

    /// The identity file of `host`, issued at first need.
    ///
    /// # Errors
    /// `ringwall site issue` fails.
    pub fn identity(&self, host: &Host) -> Result<PathBuf, Failure> {
        let file = self.directory.join(format!("{}.pem", host.name));
        if file.exists() {
            return Ok(file);
        }
        let mut issue = self.command();
        issue.args(["site", "issue", "--name", host.name, "--mac", &host.mac.to_string()]);
        issue.args(["--ip", &host.ip.to_string(), "--dir"]).arg(self.authority()).arg("--out").arg(&file);
        process::must(issue)?;
        Ok(file)
    }

    /// Writes the configuration of `host` below the LAN's directory and starts its daemon, which need not be ready yet.
    ///
    /// # Errors
    /// No identity, or the program cannot be started.
    pub fn guard(&self, lan: &Lan, host: &Host, weaken: &[&str]) -> Result<Daemon, Failure> {
        self.launch(lan, host, |identity, directory| configuration(identity, directory, weaken))
    }

    /// As [`guard`](Site::guard), with the configuration that `write` makes of the identity file and the directory for
    /// the daemon's own files.
    ///
    /// # Errors
    /// As [`guard`](Site::guard).
    pub fn launch(
        &self,
        lan: &Lan,
        host: &Host,
        write: impl FnOnce(&Path, &Path) -> String,
    ) -> Result<Daemon, Failure> {
        let identity = self.identity(host)?;
        let directory = lan.directory.join(format!("host-{}", host.name));
        // Each LAN is new: what a daemon of an earlier one stored about its interface must not lead this one astray.
        if directory.exists() {
            std::fs::remove_dir_all(&directory).map_err(Failure::file("emptying", &directory))?;
        }
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let config = directory.join("ringwall.toml");
        std::fs::write(&config, write(&identity, &directory)).map_err(Failure::file("writing", &config))?;
        let mut daemon = Daemon {
            program: self.program.clone(),
            host: host.clone(),
            config,
            log: directory.join("log"),
            process: None,
        };
        daemon.start()?;
        Ok(daemon)
    }
}

/// The configuration file of a lab host.
fn configuration(identity: &Path, directory: &Path, weaken: &[&str]) -> String {
    let (identity, directory) = (identity.display(), directory.display());
    let profile = if weaken.is_empty() { "modern" } else { "lab" };
    let mut text = format!(
        "[host]\ninterface = \"{INTERFACE}\"\nmode = \"cll\"\nidentity = \"{identity}\"\nprofile = \"{profile}\"\n\
         on_exit = \"closed\"\nrun_dir = \"{directory}/run\"\nstate_dir = \"{directory}/state\"\n\n\
         [cll]\nconfidentiality = true\n"
    );
    if !weaken.is_empty() {
        text.push_str(&format!("\n[lab]\nweaken = {weaken:?}\n"));
    }
    text
}

/// The daemon of one host. Dropping it ends it and releases the interface.
#[derive(Debug)]
pub struct Daemon {
    program: PathBuf,
    /// Whose daemon.
    pub host: Host,
    config: PathBuf,
    log: PathBuf,
    process: Option<Running>,
}

impl Daemon {
    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.host.namespace.command(&self.program.to_string_lossy());
        command.args(words).arg("--config").arg(&self.config);
        command
    }

    fn start(&mut self) -> Result<(), Failure> {
        self.process = Some(Running::start(self.command(&["host", "run"]), &self.log)?);
        Ok(())
    }

    /// Waits until it guards the interface.
    ///
    /// # Errors
    /// It ends early, or is not ready within 15 s.
    pub fn await_ready(&mut self) -> Result<(), Failure> {
        let what = format!("the daemon of host {}", self.host.name);
        let mut process = self.process.take().ok_or_else(|| Failure::Usage(format!("{what} was not started")))?;
        let ready = process::until(&what, READY_LIMIT, || {
            process.ensure_alive()?;
            let running = self.status().is_ok_and(|status| status["state"] == "running");
            Ok(running)
        });
        self.process = Some(process);
        ready
    }

    /// Ends the daemon and starts it again, as an update would.
    ///
    /// # Errors
    /// As [`await_ready`](Daemon::await_ready).
    pub fn restart(&mut self) -> Result<(), Failure> {
        if let Some(process) = self.process.take() {
            process.stop(Signal::TERM);
        }
        self.start()?;
        self.await_ready()
    }

    /// Its process id, while it runs.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.process.as_ref().map(Running::id)
    }

    /// What the daemon says about itself.
    ///
    /// # Errors
    /// It does not answer, or not in JSON.
    pub fn status(&self) -> Result<Value, Failure> {
        let text = process::must(self.command(&["status", "--json"]))?;
        serde_json::from_str(&text).map_err(|error| Failure::Unreadable(format!("`ringwall status --json`: {error}")))
    }

    /// How many frames it has dropped, by reason.
    ///
    /// # Errors
    /// As [`status`](Daemon::status), or there is no such table in it.
    pub fn drops(&self) -> Result<BTreeMap<String, u64>, Failure> {
        let status = self.status()?;
        let table = status["drops"].as_object();
        let table = table.ok_or_else(|| Failure::Unreadable("`ringwall status --json` has no drops".to_owned()))?;
        Ok(table.iter().map(|(word, count)| (word.clone(), count.as_u64().unwrap_or(0))).collect())
    }

    /// Lets it run on after this program has ended.
    pub fn leave_standing(mut self) {
        if let Some(process) = self.process.take() {
            process.release();
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let Some(process) = self.process.take() else { return };
        if cleanup::permit().is_err() {
            return;
        }
        process.stop(Signal::TERM);
        // A daemon that never took the interface over has nothing to release; the sweep reports what stays.
        let _released = process::ask(self.command(&["host", "release"]), &[]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_weakened_host_has_the_lab_profile() {
        let strong = configuration(Path::new("/x/a.pem"), Path::new("/x"), &[]);
        assert!(strong.contains("profile = \"modern\"") && !strong.contains("[lab]"), "{strong}");
        let weak = configuration(Path::new("/x/a.pem"), Path::new("/x"), &["cross-layer", "freshness"]);
        assert!(weak.contains("profile = \"lab\""), "{weak}");
        assert!(weak.ends_with("[lab]\nweaken = [\"cross-layer\", \"freshness\"]\n"), "{weak}");
    }

    #[test]
    fn a_missing_program_is_named_with_the_remedy() {
        let failure = find_program(Some(Path::new("/no/such/ringwall"))).expect_err("missing");
        assert!(failure.to_string().contains("--ringwall"), "{failure}");
    }
}
