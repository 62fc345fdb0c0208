//! `bench peers`: the same TCP stream through other tunnels, in turn with the plain path and ours.
//!
//! All tunnels run between the two hosts of the plain path and idle while another is measured. A peer that is missing
//! or does not come up is skipped by name.

mod fastd;
mod openvpn;
mod tinc;
mod tools;
mod vpncloud;
mod wireguard;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use super::mode::{Arena, Mode};
use super::row::Row;
use super::stats::{Series, median, present};
use super::tcp::{self, Direction, Ends, Sample};
use super::{Schedule, twice};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::{Host, Running, process, talk};
use tools::Tools;

/// The experiment's name in its rows.
const NAME: &str = "peers";
/// How long a tunnel may take from its start until it carries a ping; tinc's second attempt comes after 5 s.
const REACH_LIMIT: Duration = Duration::from_secs(8);
/// How often a tunnel is started before its peer is skipped: some establish sessions that carry nothing.
const ATTEMPTS_MAX: u32 = 4;
/// How long a program may take to make its interface.
const INTERFACE_LIMIT: Duration = Duration::from_secs(5);

/// Another program that carries frames or packets between two hosts, and how it is set up to do its best here.
trait Peer {
    /// Its part of a row's name.
    fn name(&self) -> &'static str;

    /// Finds or fetches the program; returns its version.
    fn version(&self, tools: &Tools<'_>) -> Result<String, Failure>;

    /// The MTU that keeps its packets within the wire's 1500 bytes.
    fn mtu(&self) -> u16;

    /// The interface it makes on `end`.
    fn interface(&self, end: &End) -> String;

    /// Starts it on both ends.
    fn start(&self, tools: &Tools<'_>, ends: &[End; 2]) -> Result<[Running; 2], Failure>;
}

/// One end of a tunnel.
#[derive(Debug)]
struct End {
    /// The host, with its address below the tunnel.
    host: Host,
    /// Its address inside the tunnel.
    inner: Ipv4Addr,
    /// Where the program's files go.
    directory: PathBuf,
}

/// A tunnel that carries traffic.
struct Tunnel {
    name: &'static str,
    version: String,
    ends: [End; 2],
    programs: Programs,
}

/// The programs of a tunnel, one per end.
struct Programs(Vec<Running>);

/// One stream per pair, missing where it failed.
type Samples = Vec<Option<Sample>>;

/// Measures all peers that work here; returns their rows.
///
/// # Errors
/// The plain way does not work, or the lab is interrupted.
pub fn run(run: &Run, program: Option<&Path>, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let arena = Arena::open(run, &[Mode::Plain, Mode::Encrypted], program)?;
    let tunnels = raise_all(run, &arena)?;
    let mut ways: Vec<Samples> = vec![Samples::new(); arena.tracks.len() + tunnels.len()];
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: peers, pair {} of {}", pair + 1, schedule.pairs);
        let streams = arena
            .tracks
            .iter()
            .map(|track| twice(track.mode.name(), || track.stream(Direction::Forward, schedule.seconds)));
        let others = tunnels.iter().map(|tunnel| twice(tunnel.name, || tunnel.stream(schedule.seconds)));
        for (way, sample) in ways.iter_mut().zip(streams.chain(others)) {
            way.push(sample?);
        }
    }
    let (own, others) = ways.split_at(arena.tracks.len());
    Ok(rows(&arena, own, &tunnels, others))
}

/// Brings every peer up, or says why not.
fn raise_all(run: &Run, arena: &Arena) -> Result<Vec<Tunnel>, Failure> {
    let peers: [&dyn Peer; 6] = [
        &wireguard::WireguardGo,
        &fastd::Fastd::AES128_CTR_UMAC,
        &fastd::Fastd::NULL,
        &openvpn::OpenVpn,
        &tinc::Tinc,
        &vpncloud::VpnCloud,
    ];
    let tools = Tools::new(run)?;
    let Some(plain) = arena.track(Mode::Plain) else { return Ok(Vec::new()) };
    let mut tunnels = Vec::new();
    for (peer, number) in peers.into_iter().zip(1..) {
        match Tunnel::raise_patiently(peer, &tools, [&plain.a, &plain.b], number) {
            Ok(tunnel) => tunnels.push(tunnel),
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(failure) => eprintln!("ringwall-lab: skipped {}: {failure}", peer.name()),
        }
    }
    Ok(tunnels)
}

impl Tunnel {
    /// Starts `peer` between `hosts` until it carries a ping. `number` tells tunnels apart.
    fn raise_patiently(peer: &dyn Peer, tools: &Tools<'_>, hosts: [&Host; 2], number: u8) -> Result<Tunnel, Failure> {
        let mut attempts = 1;
        loop {
            match Tunnel::raise(peer, tools, hosts, number) {
                Err(Failure::Late { .. }) if attempts < ATTEMPTS_MAX => attempts += 1,
                outcome => return outcome,
            }
        }
    }

    fn raise(peer: &dyn Peer, tools: &Tools<'_>, hosts: [&Host; 2], number: u8) -> Result<Tunnel, Failure> {
        let version = peer.version(tools)?;
        let end = |host: &Host, last| {
            let directory = tools.run.directory().join(format!("{}-{}", peer.name(), host.name));
            std::fs::create_dir_all(&directory).map_err(Failure::file("making", &directory))?;
            Ok(End { host: host.clone(), inner: Ipv4Addr::new(10, 78, number, last), directory })
        };
        let ends = [end(hosts[0], 1)?, end(hosts[1], 2)?];
        let mut programs = Programs(peer.start(tools, &ends)?.into());
        for (end, program) in ends.iter().zip(&mut programs.0) {
            end.configure(&peer.interface(end), peer.mtu(), program)?;
        }
        talk::reach(&ends[0].host.namespace, ends[1].inner, REACH_LIMIT)?;
        Ok(Tunnel { name: peer.name(), version, ends, programs })
    }

    fn stream(&self, seconds: u32) -> Result<Sample, Failure> {
        let [client, server] = &self.ends;
        let ids: Vec<u32> = self.programs.0.iter().map(Running::id).collect();
        let (client_daemons, server_daemons) = ids.split_at(1);
        let ends =
            Ends { client: &client.host, address: server.inner, client_daemons, server_daemons, limit_mbit: None };
        tcp::run(&ends, Direction::Forward, seconds)
    }
}

impl Drop for Programs {
    /// Asks the programs to end, so that they remove what they made outside of the hosts.
    fn drop(&mut self) {
        for program in self.0.drain(..) {
            program.stop(Signal::TERM);
        }
    }
}

impl End {
    /// Waits for the program's interface and gives it address and MTU.
    fn configure(&self, interface: &str, mtu: u16, program: &mut Running) -> Result<(), Failure> {
        let namespace = &self.host.namespace;
        process::until(&format!("interface {interface}"), INTERFACE_LIMIT, || {
            program.ensure_alive()?;
            Ok(namespace.ip(&format!("link show {interface}")).is_ok())
        })?;
        namespace.ip(&format!("address add {}/24 dev {interface}", self.inner))?;
        namespace.ip(&format!("link set {interface} mtu {mtu} up")).map(drop)
    }

    /// Writes a file of the program; returns its path.
    fn write(&self, name: &str, text: &str) -> Result<PathBuf, Failure> {
        let path = self.directory.join(name);
        std::fs::write(&path, text).map_err(Failure::file("writing", &path))?;
        Ok(path)
    }

    /// Starts `program` on this end's host, its output going to a log beside its files.
    fn start(&self, program: &Path, arguments: &[&str]) -> Result<Running, Failure> {
        let mut command = self.host.namespace.command(&program.to_string_lossy());
        command.args(arguments);
        Running::start(command, &self.directory.join("log"))
    }
}

fn series(samples: &Samples, quantity: fn(&Sample) -> f64) -> Series {
    samples.iter().map(|sample| sample.as_ref().map(quantity)).collect()
}

/// Rows of the plain path and ours, then of each peer, then ours over each peer.
fn rows(arena: &Arena, own: &[Samples], tunnels: &[Tunnel], others: &[Samples]) -> Vec<Row> {
    let way = |mode| arena.tracks.iter().position(|track| track.mode == mode).and_then(|at| own.get(at));
    let plain = way(Mode::Plain);
    let mut rows = Vec::new();
    for (track, samples) in arena.tracks.iter().zip(own) {
        rows.extend(row(&format!("tcp/unlimited/{}", track.mode.name()), samples, plain));
    }
    for (tunnel, samples) in tunnels.iter().zip(others) {
        let found = row(&format!("peer/{}", tunnel.name), samples, plain);
        rows.extend(found.map(|row| row.with_note("version", &tunnel.version)));
    }
    if let Some(ours) = way(Mode::Encrypted) {
        for (tunnel, samples) in tunnels.iter().zip(others) {
            rows.extend(times(tunnel.name, ours, samples));
        }
    }
    rows
}

fn row(name: &str, samples: &Samples, plain: Option<&Samples>) -> Option<Row> {
    let goodput = |sample: &Sample| sample.goodput_mbit;
    let ours = series(samples, goodput);
    let mut row = Row::new(NAME, name, "Mbit/s", &ours)?;
    if let Some(plain) = plain {
        row = row.against_plain(&ours, &series(plain, goodput));
    }
    let cost = |quantity| median(&present(&series(samples, quantity)));
    row = row.with_stat("daemons_s_per_gigabyte", cost(|sample| sample.daemons_per_gigabyte));
    Some(row.with_stat("machine_s_per_gigabyte", cost(|sample| sample.machine_per_gigabyte)))
}

/// How many times the peer's throughput ours is, pair by pair.
fn times(name: &str, ours: &Samples, theirs: &Samples) -> Option<Row> {
    let pairs = ours.iter().zip(theirs);
    let quotients = pairs.map(|(one, other)| Some(one.as_ref()?.goodput_mbit / other.as_ref()?.goodput_mbit));
    Row::new(NAME, format!("ours/{name}"), "times", &quotients.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_is_compared_run_by_run() {
        let sample = |goodput_mbit| Sample {
            goodput_mbit,
            sender_percent: 0.0,
            receiver_percent: 0.0,
            daemons_per_gigabyte: 1.0,
            machine_per_gigabyte: 2.0,
        };
        let ours = vec![Some(sample(6.0)), Some(sample(9.0)), Some(sample(5.0))];
        let theirs = vec![Some(sample(3.0)), None, Some(sample(5.0))];
        let row = times("x", &ours, &theirs).unwrap();
        assert_eq!((row.row.as_str(), row.median, row.runs), ("ours/x", 1.5, 2));
    }
}
