//! The ways between an untrusted and a trusted host that are compared, each with hosts of its own.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use wire::MacAddress;

use super::hop::Hop;
use crate::bench::cpu;
use crate::bench::tcp::{self, Direction, Ends, Sample};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::{Host, Namespace, Running, lan, process, talk};

/// How long a gateway may take until it carries frames.
const READY_LIMIT: Duration = Duration::from_secs(15);
/// How long the two hosts may take to reach each other.
const REACH_LIMIT: Duration = Duration::from_secs(10);
/// The proxy's address towards the trusted host, its port, and its address towards the untrusted one.
const PROXY: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 78, 0, 3), 3128);
const PROXY_OUTSIDE: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 4);
/// Names of the cards between the hosts.
pub const CARDS: [&str; 2] = ["in0", "out0"];

/// One way that frames take between the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Way {
    /// A cable.
    Wire,
    /// The kernel's bridge.
    Bridge,
    /// The gateway with the null bump in the scrubber's place.
    Null,
    /// An application-level proxy, for web pages only.
    Squid,
    /// The gateway as the paper's fingerprint scrubber: no data is retained, fragments pass as they come.
    Fingerprint,
    /// The same with reassembly of fragments.
    FingerprintFragments,
    /// The gateway where bytes behind a hole are dropped, as in the paper.
    Drop,
    /// The gateway with every rule on.
    Strict,
    /// The gateway.
    Scrubber,
    /// The gateway whose clean segments the kernel carries.
    Carried,
}

impl Way {
    /// Those of most rows, yardsticks first.
    pub const USUAL: [Way; 5] = [Way::Wire, Way::Bridge, Way::Null, Way::Scrubber, Way::Carried];
    /// Those of tables III to VII.
    pub const FINGERPRINTS: [Way; 5] = [Way::Wire, Way::Bridge, Way::Null, Way::Fingerprint, Way::FingerprintFragments];
    /// Those of figures 5 and 6.
    pub const PAGES: [Way; 5] = [Way::Wire, Way::Bridge, Way::Null, Way::Squid, Way::Scrubber];
    /// Those beside which the preset `strict` shows its price.
    pub const PRICED: [Way; 4] = [Way::Bridge, Way::Null, Way::Strict, Way::Scrubber];
    /// Those behind a lossy hop.
    pub const LOSSY: [Way; 4] = [Way::Bridge, Way::Drop, Way::Scrubber, Way::Carried];

    /// Its part of a row's name.
    pub fn name(self) -> &'static str {
        match self {
            Way::Wire => "wire",
            Way::Bridge => "bridge",
            Way::Null => "null",
            Way::Squid => "squid",
            Way::Fingerprint => "fingerprint",
            Way::FingerprintFragments => "fingerprint_fragments",
            Way::Drop => "drop",
            Way::Strict => "strict",
            Way::Scrubber => "scrubber",
            Way::Carried => "carried",
        }
    }

    /// What is added to the name of a row; the scrubber's rows have nothing added.
    pub fn suffix(self) -> String {
        if self == Way::Scrubber { String::new() } else { format!("/{}", self.name()) }
    }

    /// Whether our program carries its frames.
    pub fn has_gateway(self) -> bool {
        self.configuration().is_some()
    }

    /// Whether it is the scrubber, with whatever settings.
    pub fn is_ours(self) -> bool {
        self.has_gateway() && self != Way::Null
    }

    /// Names of its trusted host, its untrusted host, and what is between them.
    fn members(self) -> [&'static str; 3] {
        match self {
            Way::Wire => ["tw", "uw", "gw"],
            Way::Bridge => ["tb", "ub", "gb"],
            Way::Null => ["tn", "un", "gn"],
            Way::Squid => ["tq", "uq", "gq"],
            Way::Fingerprint => ["tf", "uf", "gf"],
            Way::FingerprintFragments => ["tr", "ur", "gr"],
            Way::Drop => ["td", "ud", "gd"],
            Way::Strict => ["tx", "ux", "gx"],
            Way::Scrubber => ["ts", "us", "gs"],
            Way::Carried => ["tk", "uk", "gk"],
        }
    }

    /// What the gateway's configuration says beside the interfaces; `None` where there is no gateway.
    fn configuration(self) -> Option<&'static str> {
        // The paper measures its fingerprint scrubber by itself: it follows connections and retains no data.
        const REASSEMBLING: &str =
            "preset = \"paper\"\n[gate.rules]\n\"tcp-retransmission\" = \"off\"\n\"tcp-out-of-order\" = \"off\"\n";
        const PASSING: &str = "preset = \"paper\"\n[gate.rules]\n\"tcp-retransmission\" = \"off\"\n\"tcp-out-of-order\" = \"off\"\n\
             \"ipv4-fragments\" = \"off\"\n\"ipv6-fragments\" = \"off\"\n";
        match self {
            Way::Wire | Way::Bridge | Way::Squid => None,
            Way::Null | Way::Scrubber => Some(""),
            Way::Drop => Some("out_of_order = \"drop\"\n"),
            Way::Strict => Some("preset = \"strict\"\n"),
            Way::Carried => Some("[kernel]\ncarry = true\n"),
            Way::FingerprintFragments => Some(REASSEMBLING),
            Way::Fingerprint => Some(PASSING),
        }
    }
}

/// Two hosts that reach each other in one way. Dropping it removes them.
#[derive(Debug)]
pub struct Track {
    /// How.
    pub way: Way,
    /// The host that is protected.
    pub trusted: Host,
    /// The host that is not trusted.
    pub untrusted: Host,
    /// A line that loses frames, between the untrusted host and what is compared.
    pub hop: Option<Hop>,
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
        let mut track = Track::plan(run, way, program)?;
        track.connect()?;
        track.start()?;
        track.server = Some(tcp::serve(&track.trusted, &track.directory)?);
        Ok(track)
    }

    /// As [`open`](Track::open), with a lossy hop at the untrusted host.
    ///
    /// # Errors
    /// As there.
    pub fn open_lossy(run: &Run, way: Way, program: Option<&Path>) -> Result<Track, Failure> {
        let mut track = Track::plan(run, way, program)?;
        let hop = Hop::create(run, track.untrusted.name, &track.directory)?;
        track.hop = Some(hop);
        track.connect()?;
        track.set_offloads(false)?;
        track.start()?;
        Ok(track)
    }

    fn plan(run: &Run, way: Way, program: Option<&Path>) -> Result<Track, Failure> {
        let [trusted, untrusted, between] = way.members();
        let directory = run.directory().join(between);
        std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
        Ok(Track {
            way,
            trusted: host(run, trusted, 1)?,
            untrusted: host(run, untrusted, 2)?,
            hop: None,
            between: Namespace::create(run, between)?,
            directory,
            program: program.filter(|_| way.configuration().is_some()).map(Path::to_owned),
            daemon: None,
            server: None,
        })
    }

    fn connect(&self) -> Result<(), Failure> {
        if self.way == Way::Wire {
            let (near, far) = (self.untrusted.namespace.name(), self.trusted.namespace.name());
            let pair = format!("link add {0} netns {near} type veth peer name {0} netns {far}", lan::INTERFACE);
            self.between.ip(&pair)?;
        } else {
            self.join(CARDS[0], &self.trusted.namespace, lan::INTERFACE)?;
            match &self.hop {
                None => self.join(CARDS[1], &self.untrusted.namespace, lan::INTERFACE)?,
                Some(hop) => hop.join(&self.between, CARDS[1], &self.untrusted.namespace)?,
            }
        }
        for host in [&self.trusted, &self.untrusted] {
            host.namespace.ip(&format!("address add {}/24 dev {}", host.ip, lan::INTERFACE))?;
            host.namespace.ip(&format!("link set {} up", lan::INTERFACE))?;
        }
        Ok(())
    }

    /// A cable from a card between the hosts to an interface elsewhere.
    fn join(&self, card: &str, there: &Namespace, interface: &str) -> Result<(), Failure> {
        self.between.ip(&format!("link add {card} type veth peer name {interface} netns {}", there.name()))?;
        self.between.ip(&format!("link set {card} up")).map(drop)
    }

    /// Starts what is between the hosts, and waits until they reach each other.
    fn start(&mut self) -> Result<(), Failure> {
        if let Some(hop) = &mut self.hop {
            hop.restart(super::hop::PERFECT)?;
        }
        match self.way {
            Way::Wire => {}
            Way::Bridge => self.bridge()?,
            Way::Squid => return self.start_proxy(),
            _ => self.start_gateway()?,
        }
        talk::reach(&self.untrusted.namespace, self.trusted.ip, REACH_LIMIT).map(drop)
    }

    fn bridge(&self) -> Result<(), Failure> {
        self.between.ip("link add br0 type bridge mcast_snooping 0")?;
        self.between.ip("link set br0 up")?;
        CARDS.iter().try_for_each(|card| self.between.ip(&format!("link set {card} master br0")).map(drop))
    }

    fn start_gateway(&mut self) -> Result<(), Failure> {
        let (directory, [inside, outside]) = (self.directory.display(), CARDS);
        let rest = self.way.configuration().unwrap_or_default();
        let tunnels = format!("[[\"{}\", \"{}\"]]", self.trusted.ip, self.untrusted.ip);
        let text = format!(
            "[gate]\ntrusted = \"{inside}\"\nuntrusted = \"{outside}\"\ntunnels = {tunnels}\n\
            run_dir = \"{directory}/run\"\nstate_dir = \"{directory}/state\"\n{rest}"
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

    /// Starts Squid as the paper has it: nothing is cached, nothing logged.
    fn start_proxy(&mut self) -> Result<(), Failure> {
        let [inside, outside] = CARDS;
        for (card, own, host) in [(inside, *PROXY.ip(), &self.trusted), (outside, PROXY_OUTSIDE, &self.untrusted)] {
            self.between.ip(&format!("address add {own}/32 dev {card}"))?;
            self.between.ip(&format!("route add {}/32 dev {card} src {own}", host.ip))?;
        }
        let text = format!(
            "http_port {PROXY}\nhttp_access allow all\ncache deny all\naccess_log none\ncache_log /dev/null\n\
             cache_store_log none\npid_filename none\nshutdown_lifetime 0 seconds\nmax_filedescriptors 16384\n\
             client_persistent_connections off\nserver_persistent_connections off\npinger_enable off\nvisible_hostname lab\n"
        );
        let file = self.directory.join("squid.conf");
        std::fs::write(&file, text).map_err(Failure::file("writing", &file))?;
        let mut command = self.between.command("squid");
        command.arg("-N").arg("-f").arg(&file);
        let mut daemon = Running::start(command, &self.directory.join("log"))?;
        let clients = &self.trusted.namespace;
        process::until("the proxy", READY_LIMIT, || {
            daemon.ensure_alive()?;
            let answers = || Ok(TcpStream::connect_timeout(&SocketAddr::from(PROXY), REACH_LIMIT).is_ok());
            clients.enter(answers)
        })?;
        self.daemon = Some(daemon);
        Ok(())
    }

    /// Where clients of the trusted host ask for pages, if it is not the server.
    pub fn proxy(&self) -> Option<SocketAddrV4> {
        (self.way == Way::Squid).then_some(PROXY)
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
        let text = process::told(command)?;
        serde_json::from_str(&text).map_err(|error| Failure::Unreadable(format!("status: {error}")))
    }

    /// Why its gateway's kernel carries nothing where it should.
    ///
    /// # Errors
    /// The gateway does not answer.
    pub fn is_not_carried(&self) -> Result<Option<String>, Failure> {
        if self.way != Way::Carried {
            return Ok(None);
        }
        let probe = self.status()?["probes"]["carries"].as_str().unwrap_or_default().to_owned();
        Ok(Some(probe).filter(|probe| !probe.starts_with("yes")))
    }

    /// Memory of the gateway's process that is really there, in bytes.
    ///
    /// # Errors
    /// There is no gateway.
    pub fn resident_bytes(&self) -> Result<f64, Failure> {
        let id = self.daemon.as_ref().map(Running::id).ok_or_else(|| Failure::Usage("no gateway runs".to_owned()))?;
        cpu::resident_bytes(id)
    }

    /// Runs one TCP stream from the untrusted host to the trusted one, whose data a gateway retains, or back.
    ///
    /// # Errors
    /// iperf3 fails or the daemon has ended.
    pub fn stream(&self, direction: Direction, seconds: u32) -> Result<Sample, Failure> {
        self.stream_to(self.trusted.ip, None, direction, seconds)
    }

    /// The same to another address of the trusted host, or no faster than `limit_mbit`.
    ///
    /// # Errors
    /// As there.
    pub fn stream_to(
        &self,
        address: Ipv4Addr,
        limit_mbit: Option<u32>,
        direction: Direction,
        seconds: u32,
    ) -> Result<Sample, Failure> {
        let ids: Vec<u32> = self.daemon.iter().map(Running::id).collect();
        let ends = Ends { client: &self.untrusted, address, client_daemons: &ids, server_daemons: &[], limit_mbit };
        tcp::run(&ends, direction, seconds)
    }

    /// Makes both hosts send no faster than `limit_mbit`.
    ///
    /// # Errors
    /// `tc` fails.
    pub fn limit(&self, limit_mbit: u32) -> Result<(), Failure> {
        for host in [&self.trusted, &self.untrusted] {
            let mut command = host.namespace.command("tc");
            command.args(["qdisc", "replace", "dev", lan::INTERFACE, "root", "tbf", "latency", "30ms"]);
            // A bucket of a millisecond, as in the other experiments, and a queue that stops the sender when it is full.
            command.args(["rate", &format!("{limit_mbit}mbit"), "burst", &(limit_mbit * 125).to_string()]);
            process::must(command)?;
        }
        Ok(())
    }

    /// Switches offloads of both hosts, and of what else sends into a lossy hop, on or off.
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
        match &self.hop {
            Some(hop) => hop.set_offloads(&self.between, CARDS[1], &settings),
            None => Ok(()),
        }
    }
}

impl Drop for Track {
    fn drop(&mut self) {
        // After an interrupt the sweep has done it already.
        if crate::cleanup::permit().is_err() {
            return;
        }
        (self.server, self.hop) = (None, None);
        if let Some(daemon) = self.daemon.take() {
            daemon.stop(rustix::process::Signal::TERM);
            if self.program.is_some() {
                let _given_back = self.ringwall(&["gate", "release"]).and_then(process::must);
            }
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
