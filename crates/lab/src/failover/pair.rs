//! Two gateways in parallel between two switches, and a host on each side.
//!
//! ```text
//!   untrusted host        switch          gateways a and b       switch         trusted host
//!   u: e0 ------------ outside: br0 ==== out0 [program] in0 ==== inside: br0 ------------ t: e0
//!                                              sync0 - sync0
//! ```

use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::cleanup::{self, Run};
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::{Namespace, Running, process};

/// The host that is protected.
pub const TRUSTED: Ipv4Addr = Ipv4Addr::new(10, 6, 0, 1);
/// The host that is not trusted.
pub const UNTRUSTED: Ipv4Addr = Ipv4Addr::new(10, 6, 0, 2);
/// How long a gateway may take until it carries frames, with room for a loaded machine.
const READY_LIMIT: Duration = Duration::from_secs(15);
/// The switch on either side, and the cards of a gateway in them.
const CARDS: [&str; 2] = ["in0", "out0"];

/// Two gateways with all that is around them. Dropping it removes them.
pub struct Pair {
    /// The trusted host and the untrusted one.
    pub hosts: [Namespace; 2],
    /// The switch inside and the one outside.
    pub switches: [Namespace; 2],
    /// The gateways; the first has the higher priority.
    pub gateways: [Gateway; 2],
}

/// One of them.
pub struct Gateway {
    /// Where its cards and its program are.
    pub space: Namespace,
    /// Its files.
    pub directory: PathBuf,
    program: PathBuf,
    process: Option<Running>,
}

impl Pair {
    /// Lays the cables and starts both gateways, `program` in each, with `more` keys in their section
    /// `[pair]`, a line each; the first is active then, and the second in sync.
    ///
    /// # Errors
    /// `ip` fails, or a gateway does not start.
    pub fn start(run: &Run, program: &Path, more: &str) -> Result<Pair, Failure> {
        let mut pair = Pair::lay(run, program, more)?;
        pair.gateways.iter_mut().try_for_each(Gateway::start)?;
        pair.until("one active, the other in sync", |statuses| {
            let roles = statuses.map(|status| (status["pair"]["role"].clone(), status["pair"]["in_sync"].clone()));
            roles == [("active".into(), true.into()), ("standby".into(), true.into())]
        })?;
        Ok(pair)
    }

    fn lay(run: &Run, program: &Path, more: &str) -> Result<Pair, Failure> {
        let space = |member| Namespace::create(run, member);
        let hosts = [space("t")?, space("u")?];
        let switches = [space("inside")?, space("outside")?];
        for ((switch, host), address) in switches.iter().zip(&hosts).zip([TRUSTED, UNTRUSTED]) {
            switch.ip("link add br0 type bridge mcast_snooping 0")?;
            switch.ip("link set br0 up")?;
            switch.ip(&format!("link add h0 type veth peer name {INTERFACE} netns {}", host.name()))?;
            switch.ip("link set h0 master br0")?;
            switch.ip("link set h0 up")?;
            host.ip(&format!("address add {address}/24 dev {INTERFACE}"))?;
            host.ip(&format!("link set {INTERFACE} up"))?;
        }
        let gateway = |member: &'static str| {
            let directory = run.directory().join(format!("gateway-{member}"));
            std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
            let (space, program) = (space(member)?, program.to_owned());
            Ok::<_, Failure>(Gateway { space, directory, program, process: None })
        };
        let pair = Pair { hosts, switches, gateways: [gateway("a")?, gateway("b")?] };
        pair.join_sync()?;
        for (number, gateway) in pair.gateways.iter().enumerate() {
            pair.join_cards(number)?;
            gateway.configure(number, more)?;
        }
        Ok(pair)
    }

    /// Lays the cable between the two.
    fn join_sync(&self) -> Result<(), Failure> {
        let [a, b] = &self.gateways;
        a.space.ip(&format!("link add sync0 type veth peer name sync0 netns {}", b.space.name()))?;
        for (number, gateway) in self.gateways.iter().enumerate() {
            gateway.space.ip(&format!("address add 192.0.2.{}/24 dev sync0", number + 1))?;
            gateway.space.ip("link set sync0 up")?;
        }
        Ok(())
    }

    /// Lays the cables of one gateway to both switches.
    fn join_cards(&self, number: usize) -> Result<(), Failure> {
        let gateway = &self.gateways[number];
        for (switch, card) in self.switches.iter().zip(CARDS) {
            let port = Pair::port(number);
            switch.ip(&format!("link add {port} type veth peer name {card} netns {}", gateway.space.name()))?;
            switch.ip(&format!("link set {port} master br0"))?;
            switch.ip(&format!("link set {port} up"))?;
            gateway.space.ip(&format!("link set {card} up"))?;
        }
        Ok(())
    }

    /// The port of a gateway at either switch.
    #[must_use]
    pub fn port(number: usize) -> String {
        format!("g{number}")
    }

    /// Ends a gateway's machine at once: its program and all its cables.
    ///
    /// # Errors
    /// `ip` fails.
    pub fn unplug(&mut self, number: usize) -> Result<(), Failure> {
        self.gateways[number].stop(Signal::KILL);
        for switch in &self.switches {
            switch.ip(&format!("link delete {}", Pair::port(number)))?;
        }
        self.gateways[number].space.ip("link delete sync0").map(drop)
    }

    /// Starts a machine that was unplugged, with nothing left of what it knew.
    ///
    /// # Errors
    /// `ip` fails, or the gateway does not start.
    pub fn plug_in(&mut self, number: usize) -> Result<(), Failure> {
        let gateway = &self.gateways[number];
        process::must(gateway.command(&["gate", "release"]))?;
        for place in ["run", "state"].map(|place| gateway.directory.join(place)) {
            std::fs::remove_dir_all(&place).map_err(Failure::file("removing", &place))?;
        }
        self.join_sync()?;
        self.join_cards(number)?;
        self.gateways[number].start()
    }

    /// Waits until what both say of themselves is as `holds` wants it.
    ///
    /// # Errors
    /// [`Failure::Late`].
    pub fn until(&self, what: &str, holds: impl Fn([Value; 2]) -> bool) -> Result<(), Failure> {
        process::until(what, READY_LIMIT, || {
            let [a, b] = &self.gateways;
            Ok(holds([a.status().unwrap_or_default(), b.status().unwrap_or_default()]))
        })
    }

    /// Waits until a gateway has this role.
    ///
    /// # Errors
    /// [`Failure::Late`].
    pub fn until_role(&self, number: usize, role: &str) -> Result<(), Failure> {
        process::until(&format!("gateway {number} {role}"), READY_LIMIT, || {
            Ok(self.gateways[number].status().is_ok_and(|status| status["pair"]["role"] == role))
        })
    }

    /// Waits until one is active, the other one on standby knows all flows, and the active one knows
    /// that it does; the number of the active one. Which one it is nobody may count on: a gateway
    /// that a busy machine stops for longer than its lease stands down.
    ///
    /// # Errors
    /// [`Failure::Late`].
    pub fn until_settled(&self) -> Result<usize, Failure> {
        let mut active = None;
        process::until("one active and both in sync", READY_LIMIT, || {
            let mut statuses = Vec::new();
            for gateway in &self.gateways {
                statuses.push(gateway.status().unwrap_or_default());
            }
            let is = |role: &str| statuses.iter().position(|status| status["pair"]["role"] == role);
            let in_sync = statuses.iter().all(|status| status["pair"]["in_sync"] == true);
            active = is("active").filter(|_| in_sync && is("standby").is_some());
            Ok(active.is_some())
        })?;
        Ok(active.unwrap_or_default())
    }
}

impl Gateway {
    fn configure(&self, number: usize, more: &str) -> Result<(), Failure> {
        let directory = self.directory.display();
        let (local, peer) = (number + 1, 2 - number);
        let key = self.directory.join("pair.key");
        std::fs::write(&key, "5a".repeat(32)).map_err(Failure::file("writing", &key))?;
        let private = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&key, private).map_err(Failure::file("closing", &key))?;
        let text = format!(
            "[gate]\ntrusted = \"in0\"\nuntrusted = \"out0\"\nrun_dir = \"{directory}/run\"\n\
             state_dir = \"{directory}/state\"\n[pair]\nkey_file = \"{}\"\nlocal = \"192.0.2.{local}:4790\"\n\
             peer = \"192.0.2.{peer}:4790\"\npriority = {}\n{more}",
            key.display(),
            100 - number
        );
        let file = self.directory.join("gate.toml");
        std::fs::write(&file, text).map_err(Failure::file("writing", &file))
    }

    /// The program with `words`, in the gateway's namespace and with its configuration.
    #[must_use]
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = self.space.command(&self.program.to_string_lossy());
        command.args(words).arg("--config").arg(self.directory.join("gate.toml"));
        command
    }

    /// What it says of itself.
    ///
    /// # Errors
    /// It does not answer.
    pub fn status(&self) -> Result<Value, Failure> {
        let mut command = self.command(&["status"]);
        command.arg("--json");
        let text = process::told(command)?;
        serde_json::from_str(&text).map_err(|error| Failure::Unreadable(format!("status: {error}: {text}")))
    }

    /// What it has logged since it was started last.
    #[must_use]
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// Starts its program, and waits until it runs.
    ///
    /// # Errors
    /// It does not.
    pub fn start(&mut self) -> Result<(), Failure> {
        let mut process = Running::start(self.command(&["gate", "run"]), &self.directory.join("log"))?;
        let ready = process::until("a gateway of the pair", READY_LIMIT, || {
            process.ensure_alive()?;
            Ok(self.status().is_ok_and(|status| status["state"] == "running"))
        });
        self.process = Some(process);
        ready
    }

    /// Sends its program a signal.
    pub fn signal(&self, signal: Signal) {
        self.process.iter().for_each(|process| process.signal(signal));
    }

    /// Ends its program by a signal.
    pub fn stop(&mut self, signal: Signal) {
        if let Some(process) = self.process.take() {
            process.stop(signal);
        }
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        // After an interrupt or a failed assertion the sweep has done it already.
        if cleanup::permit().is_err() {
            return;
        }
        for gateway in &mut self.gateways {
            gateway.signal(Signal::CONT);
            gateway.stop(Signal::TERM);
            let _never_taken = process::ask(gateway.command(&["gate", "release"]), &[]);
        }
        let gateways = self.gateways.iter().map(|gateway| &gateway.space);
        for namespace in self.hosts.iter().chain(&self.switches).chain(gateways) {
            let _gone = namespace.delete();
        }
    }
}
