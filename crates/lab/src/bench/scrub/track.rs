//! The ways between an untrusted and a trusted host that are compared, each with hosts of its own.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use wire::MacAddress;

use crate::bench::tcp::{self, Direction, Ends, Sample};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::{Host, Namespace, Running, lan, process, talk};

/// How long a gateway may take until it carries frames.
const READY_LIMIT: Duration = Duration::from_secs(15);
/// How long the two hosts may take to reach each other.
const REACH_LIMIT: Duration = Duration::from_secs(10);

/// One way that frames take between the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// A cable.
    Wire,
    /// The kernel's bridge.
    Bridge,
    /// The gateway with the null bump in the scrubber's place.
    Null,
    /// The gateway.
    Scrubber,
}

impl Way {
    /// All, yardsticks first.
    pub const ALL: [Way; 4] = [Way::Wire, Way::Bridge, Way::Null, Way::Scrubber];

    /// Its part of a row's name; the scrubber's rows have none.
    pub fn suffix(self) -> &'static str {
        match self {
            Way::Wire => "/wire",
            Way::Bridge => "/bridge",
            Way::Null => "/null",
            Way::Scrubber => "",
        }
    }

    /// Names of its trusted host, its untrusted host, and what is between them.
    fn members(self) -> [&'static str; 3] {
        match self {
            Way::Wire => ["tw", "uw", "gw"],
            Way::Bridge => ["tb", "ub", "gb"],
            Way::Null => ["tn", "un", "gn"],
            Way::Scrubber => ["ts", "us", "gs"],
        }
    }

    fn has_daemon(self) -> bool {
        matches!(self, Way::Null | Way::Scrubber)
    }
}

/// Two hosts that reach each other in one way. Dropping it removes them.
#[derive(Debug)]
pub struct Track {
    /// How.
    pub way: Way,
    /// The host that serves.
    pub trusted: Host,
    /// The host that asks.
    pub untrusted: Host,
    between: Namespace,
    directory: PathBuf,
    program: Option<PathBuf>,
    daemon: Option<Running>,
    server: Option<Running>,
}

impl Track {
    /// Makes the hosts and what is between them.
    ///
    /// # Errors
    /// `ip` fails, or the gateway does not start.
    pub fn open(run: &Run, way: Way, program: Option<&Path>) -> Result<Track, Failure> {
        let [trusted, untrusted, between] = way.members();
        let directory = run.directory().join(between);
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        let program = program.filter(|_| way.has_daemon()).map(Path::to_owned);
        let mut track = Track {
            way,
            trusted: host(run, trusted, 1)?,
            untrusted: host(run, untrusted, 2)?,
            between: Namespace::create(run, between)?,
            directory,
            program,
            daemon: None,
            server: None,
        };
        track.connect()?;
        track.start()?;
        talk::reach(&track.untrusted.namespace, track.trusted.ip, REACH_LIMIT)?;
        track.server = Some(tcp::serve(&track.trusted, &track.directory)?);
        Ok(track)
    }

    fn connect(&self) -> Result<(), Failure> {
        if self.way == Way::Wire {
            let (near, far) = (self.untrusted.namespace.name(), self.trusted.namespace.name());
            let pair = format!("link add {0} netns {near} type veth peer name {0} netns {far}", lan::INTERFACE);
            self.between.ip(&pair)?;
        } else {
            for (card, host) in [("in0", &self.trusted), ("out0", &self.untrusted)] {
                let name = host.namespace.name();
                self.between.ip(&format!("link add {card} type veth peer name {} netns {name}", lan::INTERFACE))?;
                self.between.ip(&format!("link set {card} up"))?;
            }
        }
        if self.way == Way::Bridge {
            self.between.ip("link add br0 type bridge mcast_snooping 0")?;
            self.between.ip("link set br0 up")?;
            self.between.ip("link set in0 master br0")?;
            self.between.ip("link set out0 master br0")?;
        }
        for host in [&self.trusted, &self.untrusted] {
            host.namespace.ip(&format!("address add {}/24 dev {}", host.ip, lan::INTERFACE))?;
            host.namespace.ip(&format!("link set {} up", lan::INTERFACE))?;
        }
        Ok(())
    }

    fn start(&mut self) -> Result<(), Failure> {
        if !self.way.has_daemon() {
            return Ok(());
        }
        let directory = self.directory.display();
        let text = format!(
            "[gate]\ntrusted = \"in0\"\nuntrusted = \"out0\"\nrun_dir = \"{directory}/run\"\nstate_dir = \"{directory}/state\"\n"
        );
        std::fs::write(self.config(), text).map_err(Failure::file("writing", &self.config()))?;
        let mut command = self.ringwall(&["gate", "run"])?;
        if self.way == Way::Null {
            command.arg("--null");
        }
        let mut daemon = Running::start(command, &self.directory.join("log"))?;
        process::until("the gateway", READY_LIMIT, || {
            daemon.ensure_alive()?;
            Ok(self.status().is_ok_and(|status| status["state"] == "running"))
        })?;
        self.daemon = Some(daemon);
        Ok(())
    }

    fn config(&self) -> PathBuf {
        self.directory.join("gate.toml")
    }

    fn ringwall(&self, words: &[&str]) -> Result<std::process::Command, Failure> {
        let program = self.program.as_ref().ok_or_else(|| Failure::MissingTool("ringwall".to_owned()))?;
        let mut command = self.between.command(&program.to_string_lossy());
        command.args(words).arg("--config").arg(self.config());
        Ok(command)
    }

    /// What the gateway says of itself.
    ///
    /// # Errors
    /// There is none, or it does not answer.
    pub fn status(&self) -> Result<Value, Failure> {
        let mut command = self.ringwall(&["status"])?;
        command.arg("--json");
        let text = process::must(command)?;
        serde_json::from_str(&text).map_err(|error| Failure::Unreadable(format!("status: {error}")))
    }

    /// Runs one TCP stream from the untrusted host to the trusted one, whose data a gateway retains, or back.
    ///
    /// # Errors
    /// iperf3 fails or the daemon has ended.
    pub fn stream(&self, direction: Direction, seconds: u32) -> Result<Sample, Failure> {
        let ids: Vec<u32> = self.daemon.iter().map(Running::id).collect();
        let ends =
            Ends { client: &self.untrusted, address: self.trusted.ip, client_daemons: &ids, server_daemons: &[] };
        tcp::run(&ends, direction, seconds)
    }

    /// Switches offloads of both hosts on or off.
    ///
    /// # Errors
    /// `ethtool` fails.
    pub fn set_offloads(&self, on: bool) -> Result<(), Failure> {
        let word = if on { "on" } else { "off" };
        let names = ["tx", "tso", "gso", "gro"];
        let settings: Vec<&str> = names.iter().flat_map(|name| [*name, word]).collect();
        for host in [&self.trusted, &self.untrusted] {
            lan::set_offloads(&host.namespace, lan::INTERFACE, &settings)?;
        }
        Ok(())
    }
}

impl Drop for Track {
    fn drop(&mut self) {
        // After an interrupt the sweep has done it already.
        if crate::cleanup::permit().is_err() {
            return;
        }
        self.server = None;
        if let Some(daemon) = self.daemon.take() {
            daemon.stop(rustix::process::Signal::TERM);
            let _given_back = self.ringwall(&["gate", "release"]).and_then(process::must);
        }
        for namespace in [&self.trusted.namespace, &self.untrusted.namespace, &self.between] {
            let _gone = namespace.delete();
        }
    }
}

/// A host without an interface yet. Every way has the same addresses, because it has a cable of its own.
fn host(run: &Run, name: &'static str, last: u8) -> Result<Host, Failure> {
    let ip = Ipv4Addr::new(10, 78, 0, last);
    Ok(Host { name, ip, mac: MacAddress::ZERO, namespace: Namespace::create(run, name)? })
}
