//! The site: its authority, the commands that a manager types and how many they are, the units that
//! would run on each machine, and what a host says of itself.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::network::{AUTHORITY, Network};
use crate::cleanup::{self, Run};
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::process::{self, Answer, Running};
use crate::net::{Host, Namespace};

const PORT: u16 = 9478;
const START_LIMIT: Duration = Duration::from_secs(20);
/// How long a joining may take on a machine that does thirty of them.
const JOIN_LIMIT: Duration = Duration::from_secs(180);

/// The manager at the authority's machine.
pub(super) struct Manager {
    program: PathBuf,
    run: Run,
    namespace: Namespace,
    directory: PathBuf,
    service: String,
    /// What was typed, in order.
    pub(super) typed: Vec<String>,
    units: Vec<Running>,
}

impl Manager {
    pub(super) fn new(run: &Run, network: &Network, program: PathBuf) -> Result<Manager, Failure> {
        let host = network.host(AUTHORITY)?;
        let service = format!("{}:{PORT}", host.ip);
        let (namespace, directory) = (host.namespace.clone(), network.directory.clone());
        Ok(Manager { program, run: run.clone(), namespace, directory, service, typed: Vec::new(), units: Vec::new() })
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// A command of the manager that names the site's directory.
    fn at_site(&self, words: &[&str]) -> Command {
        let mut command = self.namespace.command(&self.program.to_string_lossy());
        command.arg("site").args(words).arg("--dir").arg(self.file("site"));
        self.run.mark(&mut command);
        command
    }

    fn note(&mut self, words: &[&str]) {
        let short = words.join(" ").replace(&format!("{}/", self.directory.display()), "");
        eprintln!("ringwall-lab: {:2}  ringwall site {short}", self.typed.len() + 1);
        self.typed.push(format!("ringwall site {short}"));
    }

    /// Types a command on the site, and waits for its end.
    pub(super) fn order(&mut self, words: &[&str]) -> Result<String, Failure> {
        self.note(words);
        process::must(self.at_site(words))
    }

    /// Types one that the manager leaves alone for a while.
    pub(super) fn begin(&mut self, words: &[&str]) -> Result<Running, Failure> {
        self.note(words);
        let log = self.file(&format!("command-{}.log", self.typed.len()));
        Running::start(self.at_site(words), &log)
    }

    /// Types one that needs no site.
    pub(super) fn order_elsewhere(&mut self, words: &[&str]) -> Result<String, Failure> {
        self.note(words);
        let mut command = self.namespace.command(&self.program.to_string_lossy());
        command.arg("site").args(words);
        process::must(command)
    }

    /// Looks, for this experiment and not as a command of the manager.
    pub(super) fn look(&self, words: &[&str]) -> Result<Value, Failure> {
        let text = process::must(self.at_site(&[words, &["--json"]].concat()))?;
        serde_json::from_str(&text).map_err(|error| Failure::Unreadable(format!("{words:?}: {error}")))
    }

    /// Starts the service and its signer, which the manager does by one command of systemd.
    pub(super) fn enable_services(&mut self) -> Result<(), Failure> {
        self.typed.push("systemctl enable --now ringwall-signer ringwall-site".to_owned());
        eprintln!("ringwall-lab: {:2}  {}", self.typed.len(), self.typed[self.typed.len() - 1]);
        let (socket, identity) = (self.file("signer.socket"), self.file(&format!("{AUTHORITY}.pem")));
        let mut signer = self.at_site(&["signer"]);
        signer.arg("--socket").arg(&socket);
        let mut signer = Running::start(signer, &self.file("signer.log"))?;
        signer.await_output("is signed for at", START_LIMIT)?;
        let mut service = self.at_site(&["serve", "--listen", &self.service]);
        service.arg("--signer").arg(&socket).arg("--identity").arg(identity);
        let mut service = Running::start(service, &self.file("service.log"))?;
        service.await_output("hosts report to", START_LIMIT)?;
        self.units.extend([signer, service]);
        Ok(())
    }

    /// A machine of the LAN as it comes, with what the manager carried to it.
    pub(super) fn machine(&self, host: &Host) -> Result<Machine, Failure> {
        let directory = self.file(&format!("host-{}", host.name));
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let carried = self.file(&format!("{}.pem", host.name));
        let identity = directory.join("identity.pem");
        if carried.exists() {
            std::fs::copy(&carried, &identity).map_err(Failure::file("carrying", &carried))?;
        }
        let token = self.file("tokens").join(format!("{}.token", host.name));
        let (program, service) = (self.program.clone(), self.service.clone());
        let token = token.exists().then_some(token);
        Ok(Machine { host: host.clone(), directory, program, service, token, is_member: AtomicBool::new(false) })
    }
}

/// A machine that becomes a host of the site.
pub(super) struct Machine {
    pub(super) host: Host,
    directory: PathBuf,
    program: PathBuf,
    service: String,
    token: Option<PathBuf>,
    /// From the end of its joining to the begin of its leaving.
    is_member: AtomicBool,
}

impl Machine {
    fn config(&self) -> PathBuf {
        self.directory.join(format!("{INTERFACE}.toml"))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.host.namespace.command(&self.program.to_string_lossy());
        command.args(words).arg("--config").arg(self.config());
        command
    }

    /// `join` and `leave`, away from the files and units of the machine that tries this.
    fn placed(&self, word: &str) -> Command {
        let mut command = self.command(&[word]);
        for (option, place) in [("--state-dir", "state"), ("--run-dir", "run")] {
            command.arg(option).arg(self.directory.join(place));
        }
        command.args(["--no-units", "--interface", INTERFACE]);
        command
    }

    /// Begins the one command that is typed on it.
    pub(super) fn begin_joining(&self, name_server: &Host) -> Result<Running, Failure> {
        let mut command = self.placed("join");
        command.arg("--identity").arg(self.directory.join("identity.pem")).args(["--service", &self.service]);
        command.args(["--name-server", &name_server.ip.to_string()]);
        if let Some(token) = &self.token {
            command.arg("--token-file").arg(token);
        }
        Running::start(command, &self.directory.join("join.log"))
    }

    /// Waits until it is a host.
    pub(super) fn await_joined(&self, joining: &mut Running) -> Result<(), Failure> {
        joining.await_output("the daemon runs now; have `ringwall host run", JOIN_LIMIT)?;
        self.is_member.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Goes back to clear.
    pub(super) fn leave(&self) -> Result<(), Failure> {
        self.is_member.store(false, Ordering::Relaxed);
        process::must(self.placed("leave")).map(drop)
    }

    /// What its timer does each minute.
    fn report(&self) -> Result<Answer, Failure> {
        process::ask(self.command(&["report"]), &[])
    }

    /// What its daemon says of itself.
    pub(super) fn status(&self) -> Result<Value, Failure> {
        let mut command = self.command(&["status"]);
        command.arg("--json");
        let text = process::told(command)?;
        serde_json::from_str(&text).map_err(|error| Failure::Unreadable(format!("`ringwall status`: {error}")))
    }

    /// How it admits hosts in clear now.
    pub(super) fn migration(&self) -> Result<String, Failure> {
        Ok(self.status()?["migration"]["mode"].as_str().unwrap_or("none").to_owned())
    }

    /// The newest policy that it knows.
    pub(super) fn policy(&self) -> Result<u64, Failure> {
        Ok(self.status()?["policy"]["version"].as_u64().unwrap_or(0))
    }

    /// The last of what its daemon wrote.
    pub(super) fn log(&self) -> String {
        let log = self.directory.join("state").join(format!("{INTERFACE}.log"));
        let text = std::fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }
}

/// The timers of all machines: each host reports once in `every`, and not all at once. What went
/// wrong with a report is kept.
pub(super) fn report_in_turn(machines: &[Machine], every: Duration, ended: &AtomicBool, wrong: &Mutex<Vec<String>>) {
    let count = u32::try_from(machines.len()).unwrap_or(1).max(1);
    let mut due = Instant::now();
    for machine in machines.iter().cycle() {
        while Instant::now() < due {
            if ended.load(Ordering::Relaxed) || cleanup::permit().is_err() {
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
        due = Instant::now() + every / count;
        if !machine.is_member.load(Ordering::Relaxed) {
            continue;
        }
        let Ok(answer) = machine.report() else { return };
        // One that left meanwhile has no daemon to ask.
        if !answer.status.success() && machine.is_member.load(Ordering::Relaxed) {
            let line = format!("{} did not report: {}", machine.host.name, answer.stderr.trim());
            wrong.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(line);
        }
    }
}
