//! The ways of one frame that are compared, and a LAN with two hosts for each.
//!
//! Every way has its own hosts and its own bridge, so that all stand ready at once, a pair of runs lies seconds apart,
//! and nobody's broadcast wakes the others' daemons in a measurement.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::Duration;

use identity::Profile;
use wire::MacAddress;

use super::rate::{Overhead, Rate};
use super::tcp::{self, Direction, Ends, Sample};
use super::work::Work;
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::guard::{DISTRIBUTOR, Daemon, Setting, Site};
use crate::net::{Forwarding, Host, Lan, LanPlan, Namespace, Running, lan, process};

/// The experiment's name in its rows.
pub const NAME: &str = "cll";
/// Keys as old as that are replaced during the streams.
pub const EVERY_S: u32 = 10;
/// The same where rollovers themselves are looked at: as often as there may be one.
pub const OFTEN_S: u32 = 1;

/// How long a daemon that is ready may go on preparing key pairs in the background.
const PREPARE: Duration = Duration::from_millis(300);

/// Whose hardware address those have who load the key distributor.
const LOAD_HOST: &str = "m";

/// One way that frames take between two stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// The kernel's stacks and a bridge, nothing of ours.
    Plain,
    /// Our program without checks and cryptography.
    Null,
    /// CLL, authentication only.
    Authenticated,
    /// CLL, authenticated and encrypted.
    Encrypted,
    /// CLL, encrypted, and with tickets on disk.
    Resuming,
    /// CLL, encrypted, under keys that also come from ML-KEM.
    PostQuantum,
    /// CLL, encrypted and compressed.
    Compressing,
    /// CLL, encrypted, with other keys every ten seconds.
    Rekeying,
    /// The same every second.
    RekeyingOften,
    /// S-ARP: ARP signed, the rest as it is.
    Sarp,
}

impl Mode {
    /// Those of `bench s-arp`, yardsticks first.
    pub const S_ARP: [Mode; 3] = [Mode::Plain, Mode::Null, Mode::Sarp];
    /// Those of `bench cll`, yardsticks first.
    pub const ALL: [Mode; 4] = [Mode::Plain, Mode::Null, Mode::Authenticated, Mode::Encrypted];
    /// Those of what a ticket saves.
    pub const RESUMPTION: [Mode; 4] = [Mode::Plain, Mode::Null, Mode::Encrypted, Mode::Resuming];
    /// Those of what ML-KEM costs.
    pub const POST_QUANTUM: [Mode; 3] = [Mode::Plain, Mode::Encrypted, Mode::PostQuantum];
    /// Those of what a rollover costs.
    pub const ROLLOVER: [Mode; 3] = [Mode::Encrypted, Mode::Rekeying, Mode::RekeyingOften];

    /// Those of what compression saves.
    pub const COMPRESSION: [Mode; 4] = [Mode::Plain, Mode::Null, Mode::Encrypted, Mode::Compressing];

    /// Its part of a row's name.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Plain => "plain",
            Mode::Null => "null",
            Mode::Authenticated => "authenticated",
            Mode::Encrypted => "encrypted",
            Mode::Resuming => "resuming",
            Mode::PostQuantum => "post-quantum",
            Mode::Compressing => "compressing",
            Mode::Rekeying => "rekeying",
            Mode::RekeyingOften => "rekeying often",
            Mode::Sarp => "sarp",
        }
    }

    /// What its frames carry besides the packet.
    pub fn overhead(self) -> Overhead {
        match self {
            Mode::Plain | Mode::Null | Mode::Sarp => Overhead::None,
            Mode::Authenticated | Mode::Encrypted | Mode::Resuming | Mode::Compressing => Overhead::Sealed,
            Mode::Rekeying | Mode::RekeyingOften | Mode::PostQuantum => Overhead::Sealed,
        }
    }

    fn work(self) -> Option<Work> {
        match self {
            Mode::Plain => None,
            Mode::Null => Some(Work::Null),
            Mode::Authenticated => Some(Work::Authenticate),
            Mode::Encrypted => Some(Work::Encrypt),
            Mode::Resuming => Some(Work::EncryptAndResume),
            Mode::PostQuantum => Some(Work::EncryptWithKem),
            Mode::Compressing => Some(Work::EncryptAndCompress),
            Mode::Rekeying => Some(Work::EncryptAndRekey(EVERY_S)),
            Mode::RekeyingOften => Some(Work::EncryptAndRekey(OFTEN_S)),
            Mode::Sarp => Some(Work::SignArp),
        }
    }

    /// Names of its two hosts. Modes that are never on one LAN have the same. Host e has no address in its certificate.
    fn hosts(self) -> [&'static str; 2] {
        match self {
            Mode::Plain => ["a", "b"],
            Mode::Null => ["c", "d"],
            Mode::Encrypted => ["g", "h"],
            Mode::Resuming | Mode::RekeyingOften => ["k", "l"],
            Mode::Authenticated | Mode::Sarp | Mode::Rekeying | Mode::Compressing | Mode::PostQuantum => ["i", "j"],
        }
    }
}

/// Two hosts that reach each other in one mode.
#[derive(Debug)]
pub struct Track {
    /// How.
    pub mode: Mode,
    /// The first host, which pings and runs the client.
    pub a: Host,
    /// The second host, which answers and runs the server.
    pub b: Host,
    daemons: Vec<Daemon>,
    /// The key distributor of its hosts, where they have one.
    pub distributor: Option<Daemon>,
    _server: Running,
}

impl Track {
    /// Runs one TCP stream.
    ///
    /// # Errors
    /// iperf3 fails or a daemon has ended.
    pub fn stream(&self, direction: Direction, seconds: u32) -> Result<Sample, Failure> {
        let ids: Vec<u32> = self.daemons.iter().filter_map(Daemon::id).collect();
        let (client_daemons, server_daemons) = ids.split_at(ids.len() / 2);
        let ends = Ends { client: &self.a, address: self.b.ip, client_daemons, server_daemons, limit_mbit: None };
        tcp::run(&ends, direction, seconds)
    }

    /// The daemons of its hosts; none in mode [`Mode::Plain`].
    pub fn daemons(&self) -> &[Daemon] {
        &self.daemons
    }

    /// Makes both hosts strangers: no association, no neighbour.
    ///
    /// # Errors
    /// A daemon does not start again, or `ip` fails.
    pub fn estrange(&mut self) -> Result<(), Failure> {
        for daemon in &mut self.daemons {
            daemon.restart()?;
        }
        process::pause(PREPARE)?;
        self.forget_neighbours()
    }

    /// Empties the neighbour tables; what the daemons know stays.
    ///
    /// # Errors
    /// `ip` fails.
    pub fn forget_neighbours(&self) -> Result<(), Failure> {
        for host in [&self.a, &self.b] {
            host.namespace.ip(&format!("neigh flush dev {}", lan::INTERFACE))?;
        }
        Ok(())
    }
}

/// The far end of a host's cable, out of its bridge, with the addresses of somebody who speaks there. A bridge would take a
/// tenth of one of two processors from those who are measured.
#[derive(Debug)]
pub struct Cable {
    /// Where the end is.
    pub namespace: Namespace,
    /// What it is called.
    pub interface: String,
    /// The address of who speaks there.
    pub ip: Ipv4Addr,
    /// The hardware address.
    pub mac: MacAddress,
    bridge: String,
}

impl Cable {
    /// Pulls the cable of `host` out of `bridge` until what is returned is dropped.
    ///
    /// # Errors
    /// `ip` fails.
    pub fn pull(lan: &Lan, host: &Host, bridge: String) -> Result<Cable, Failure> {
        let (namespace, interface) = (lan.bridge.clone(), Lan::port(host));
        namespace.ip(&format!("link set {interface} nomaster"))?;
        let (ip, mac) = lan::address_of(LOAD_HOST);
        Ok(Cable { namespace, interface, bridge, ip, mac })
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        // What fails here is seen by whoever needs the host again.
        let _failure = self.namespace.ip(&format!("link set {} master {}", self.interface, self.bridge));
    }
}

/// The bridge of the hosts of a mode, whose first is `host`.
fn bridge_of(host: &Host) -> String {
    format!("br-{}", host.name)
}

/// The hosts of all modes.
#[derive(Debug)]
pub struct Arena {
    /// One per mode that works here, in the order of [`Mode::ALL`]. Dropped before the LAN.
    pub tracks: Vec<Track>,
    /// The site and the program; `None` without one.
    pub site: Option<Site>,
    lan: Lan,
}

impl Arena {
    /// Builds the LAN and starts what `modes` need. Without `program` only the plain way is there.
    ///
    /// # Errors
    /// The plain way does not work, or the program refuses to make a site.
    pub fn open(run: &Run, modes: &[Mode], program: Option<&Path>) -> Result<Arena, Failure> {
        let site = program.map(|program| Site::found(run, program)).transpose()?;
        Arena::open_on(run, modes, site)
    }

    /// As [`open`](Arena::open), with the hosts of this site.
    ///
    /// # Errors
    /// The plain way does not work.
    pub fn open_on(run: &Run, modes: &[Mode], site: Option<Site>) -> Result<Arena, Failure> {
        let mut hosts: Vec<_> = modes.iter().flat_map(|mode| mode.hosts()).collect();
        if modes.contains(&Mode::Sarp) {
            hosts.push(DISTRIBUTOR);
        }
        let plan = LanPlan { hosts, forwarding: Forwarding::Switch, ..LanPlan::default() };
        let lan = Lan::create(run, &plan)?;
        let has_program = site.is_some();
        let mut arena = Arena { tracks: Vec::new(), site, lan };
        for &mode in modes.iter().filter(|mode| has_program || mode.work().is_none()) {
            match arena.open_track(mode) {
                Ok(track) => arena.tracks.push(track),
                Err(failure) if mode == Mode::Plain || matches!(failure, Failure::Interrupted) => return Err(failure),
                Err(failure) => eprintln!("ringwall-lab: no rows for {}: {failure}", mode.name()),
            }
        }
        Ok(arena)
    }

    /// The host of the key distributor, if it works.
    ///
    /// # Errors
    /// There is no such host on the LAN.
    pub fn distributor(&self) -> Result<Option<Host>, Failure> {
        self.track(Mode::Sarp).map(|_| self.lan.host(DISTRIBUTOR).cloned()).transpose()
    }

    /// The distributor's cable, pulled out of the bridge until what is returned is dropped; `None` if there is no distributor.
    ///
    /// # Errors
    /// `ip` fails.
    pub fn distributors_cable(&self) -> Result<Option<Cable>, Failure> {
        let (Some(distributor), Some(track)) = (self.distributor()?, self.track(Mode::Sarp)) else { return Ok(None) };
        Cable::pull(&self.lan, &distributor, bridge_of(&track.a)).map(Some)
    }

    /// The LAN of all hosts.
    pub fn lan(&self) -> &Lan {
        &self.lan
    }

    /// The track of `mode`, if it works.
    pub fn track(&self, mode: Mode) -> Option<&Track> {
        self.tracks.iter().find(|track| track.mode == mode)
    }

    /// Where the ports of the hosts' cables are, and where files go.
    pub fn wires(&self) -> (&Namespace, &Path) {
        (&self.lan.bridge, &self.lan.directory)
    }

    /// Limits every port to `rate`.
    ///
    /// # Errors
    /// `tc` fails.
    pub fn limit(&self, rate: Rate) -> Result<(), Failure> {
        self.lan.hosts.iter().try_for_each(|host| rate.apply(&self.lan, host))
    }

    fn open_track(&self, mode: Mode) -> Result<Track, Failure> {
        let [a, b] = mode.hosts().map(|name| self.lan.host(name).cloned());
        let (a, b) = (a?, b?);
        self.separate(&[&a, &b])?;
        let distributor = if mode == Mode::Sarp { Some(self.start_distributor(&a)?) } else { None };
        let daemons = match mode.work() {
            None => Vec::new(),
            Some(work) => vec![self.start(&a, work)?, self.start(&b, work)?],
        };
        self.lan.acquaint(&a, &b)?;
        let server = tcp::serve(&b, &self.lan.directory)?;
        Ok(Track { mode, a, b, daemons, distributor, _server: server })
    }

    /// Starts the daemon of `host` and waits until it guards the interface.
    fn start(&self, host: &Host, work: Work) -> Result<Daemon, Failure> {
        let site = self.site.as_ref().ok_or_else(|| Failure::MissingTool("ringwall".to_owned()))?;
        let profile = if site.is_paper() { Profile::Paper } else { Profile::Modern };
        let write = |identity: &Path, directory: &Path| work.configuration(profile, identity, directory);
        let mut daemon = site.launch(&self.lan, host, write)?;
        daemon.await_ready()?;
        Ok(daemon)
    }

    /// Starts the key distributor on the bridge of `host`.
    fn start_distributor(&self, host: &Host) -> Result<Daemon, Failure> {
        let site = self.site.as_ref().ok_or_else(|| Failure::MissingTool("ringwall".to_owned()))?;
        let distributor = self.lan.host(DISTRIBUTOR)?;
        self.lan.bridge.ip(&format!("link set {} master {}", Lan::port(distributor), bridge_of(host)))?;
        let mut daemon = site.guard(&self.lan, distributor, &Setting { sarp: true, ..Setting::default() })?;
        daemon.await_ready()?;
        Ok(daemon)
    }

    /// Gives the hosts a bridge of their own.
    fn separate(&self, hosts: &[&Host; 2]) -> Result<(), Failure> {
        let bridge = bridge_of(hosts[0]);
        self.lan.bridge.ip(&format!("link add {bridge} type bridge mcast_snooping 0"))?;
        self.lan.bridge.ip(&format!("link set {bridge} up"))?;
        for host in hosts {
            self.lan.bridge.ip(&format!("link set {} master {bridge}", Lan::port(host)))?;
        }
        Ok(())
    }
}
