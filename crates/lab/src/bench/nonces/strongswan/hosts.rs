//! The hosts: as in `stage.rs`, with strongSwan on receiver and sender and a third host that opens tunnels, and shields in front of all
//! of them, or none.
//!
//! The receiver's strongSwan, its shield and its receive path share one processor; all else is on the other one.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::Value;
use shield::Hook;

use super::super::books::{busy, forged_to, memory_of, sent_by};
use super::super::flood::Pace;
use super::super::placement::{
    RECEIVER_CORE, Receive, SENDER_CORE, STREAM_PRIORITY, place, place_process, place_receive_path, receive_in_a_thread,
};
use super::super::stage::{Measured, Seen, play};
use super::super::stream::{PAYLOAD_LEN, Sample, Stream};
use super::forgery::Forgery;
use crate::bench::cpu;
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::guard::{Daemon, Site};
use crate::net::lan::INTERFACE;
use crate::net::strongswan::{Swan, Tunnel, forged, inner_address, is_esp};
use crate::net::talk::{Mailbox, reach};
use crate::net::{Direction, Frame, Host, Lan, LanPlan, Watch, process};

/// How long a tunnel may take to come up.
const TUNNEL_LIMIT: Duration = Duration::from_secs(30);
/// How long a packet may be on its way when nothing disturbs it.
const SOON: Duration = Duration::from_millis(300);
const PORT: u16 = 7001;
/// Receiver, the stream's sender, who opens tunnels, and the attacker.
const HOSTS: [&str; 4] = ["a", "b", "c", "m"];
/// The peers of the receiver.
const PEERS: [&str; 2] = ["b", "c"];

/// What is taken down while a stream is sealed.
const SEALED: &str = "udp port 4500";

/// Forged frames and how fast they come, or none.
type Flooding = Option<(Vec<Vec<u8>>, Pace)>;

/// What strongSwan's sockets hold while associations are replaced, as much as the stream's own: losses are to be the shields'.
const SOCKET_BYTES: usize = 4 << 20;

/// What is in front of strongSwan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// Nothing.
    Bare,
    /// A shield on every host but the attacker's; at the receiver the kernel's program stands here.
    Shield(Hook),
}

impl Front {
    /// Both.
    pub fn all(hook: Hook) -> [Front; 2] {
        [Front::Bare, Front::Shield(hook)]
    }

    /// Its part of a row's name.
    pub fn name(self) -> &'static str {
        match self {
            Front::Bare => "bare",
            Front::Shield(_) => "shield",
        }
    }

    /// Where the receiver's program stands, in a row's notes.
    pub fn hook(self) -> &'static str {
        match self {
            Front::Bare => "none",
            Front::Shield(hook) => hook.word(),
        }
    }
}

/// The hosts, ready.
pub struct Hosts {
    /// In the order of [`HOSTS`].
    swans: Vec<Swan>,
    /// In the same order, or none.
    shields: Vec<Daemon>,
    receive_threads: Vec<u32>,
    heard: Frame,
    receive: Receive,
    pub lan: Lan,
}

impl Hosts {
    /// Sets the hosts up, with a tunnel from the stream's sender to the receiver, whose associations the sender replaces after
    /// `rekey`.
    ///
    /// # Errors
    /// They cannot be set up.
    pub fn open(
        run: &Run,
        program: &Path,
        front: Front,
        receive: Receive,
        rekey: Option<Duration>,
    ) -> Result<Hosts, Failure> {
        static OPENED: AtomicU32 = AtomicU32::new(0);
        let lan = Lan::create(run, &LanPlan { hosts: HOSTS.to_vec(), ..LanPlan::default() })?;
        receive_in_a_thread(&lan, lan.host("a")?, receive)?;
        let shields = match front {
            Front::Bare => Vec::new(),
            // A site is never founded where there is one.
            Front::Shield(hook) => {
                let number = OPENED.fetch_add(1, Ordering::Relaxed);
                let site = Site::found_as(run, program, &format!("-strongswan-{number}"), None)?;
                start_shields(&site, &lan, (hook, receive))?
            }
        };
        let swans = start_swans(&lan, rekey)?;
        if rekey.is_some() {
            swans.iter().try_for_each(|swan| swan.widen_sockets(SOCKET_BYTES))?;
        }
        let (a, b) = (lan.host("a")?, lan.host("b")?);
        swans[1].initiate(a, TUNNEL_LIMIT)?;
        reach(&b.namespace, inner_address(a), TUNNEL_LIMIT)?;
        // While a stream is sealed nobody answers the sender.
        b.namespace.ip(&format!("neigh replace {} lladdr {} dev {INTERFACE} nud permanent", a.ip, a.mac))?;
        place_all(&swans, &shields, receive)?;
        let receive_threads = place_receive_path(receive)?;
        let heard = overhear(&lan)?;
        Ok(Hosts { swans, shields, receive_threads, heard, receive, lan })
    }

    /// Runs the stream, alone or beside forged packets.
    ///
    /// # Errors
    /// A host has ended, the machine is too busy for what was wanted, or the lab is interrupted.
    pub fn measure(&self, attack: Option<(Forgery, Pace)>, seconds: u32) -> Result<Measured, Failure> {
        let (m, time) = (self.lan.host("m")?, Duration::from_secs(seconds.into()));
        let frames = attack.map(|(forgery, pace)| (forgery.frames(&self.heard, m.mac), pace));
        if self.receive.sealed { self.measure_sealed(frames, time) } else { self.measure_beside(frames, time) }
    }

    fn measure_sealed(&self, frames: Flooding, time: Duration) -> Result<Measured, Failure> {
        let (m, pace) = (self.lan.host("m")?, frames.as_ref().map(|(_, pace)| *pace));
        let (idle, stream) = (self.worked(1)?, self.stream()?);
        let sealed = self.seal_ahead(&stream, time)?;
        // What the sender made leaves from the attacker's wire, which the flood does not use.
        let ([mut before, after], sample, flood_time) = self.beside(stream.leaving(m, sealed)?, frames, time)?;
        before.sender = idle;
        Measured::between([before, after], &sample, flood_time, time).checked(pace)
    }

    fn beside(
        &self,
        stream: Stream,
        frames: Flooding,
        time: Duration,
    ) -> Result<([Seen; 2], Sample, Duration), Failure> {
        cpu::settle()?;
        let before = self.look()?;
        let forged = frames.map(|(frames, pace)| (frames.into(), pace));
        let (sample, flood_time) = play(stream, (&self.lan, self.lan.host("a")?), forged, time)?;
        Ok(([before, self.look()?], sample, flood_time))
    }

    /// What the stream's sender makes of the datagrams of so much time. Nothing of it arrives now.
    fn seal_ahead(&self, stream: &Stream, time: Duration) -> Result<Vec<Frame>, Failure> {
        let b = self.lan.host("b")?;
        let port = Lan::port(b);
        let (place, file) = ((port.as_str(), Direction::In), (self.lan.directory.as_path(), "sealed"));
        let watch = Watch::start_with_room(&self.lan.bridge, place, file, SEALED)?;
        // The receiver has nothing to do now, and the sender's processor is full.
        place_process(watch.id(), RECEIVER_CORE, None)?;
        self.lan.bridge.ip(&format!("link set {port} nomaster"))?;
        let count = stream.seal(time);
        process::pause(SOON)?;
        self.lan.bridge.ip(&format!("link set {port} master br0"))?;
        let (count, mut frames) = (count?, watch.stop()?);
        frames.retain(|frame| is_esp(frame, b.ip) && frame.0.len() > PAYLOAD_LEN);
        // The checksum in front of ESP was left to a card that there is not; none is allowed (RFC 3948, section 2.1).
        frames.iter_mut().for_each(|frame| *frame = forged(frame, None, None));
        if frames.len() == count {
            Ok(frames)
        } else {
            Err(busy(&format!("{} datagrams of {count} sealed", frames.len())))
        }
    }

    /// The stream of the sender's program beside any frames of the attacker.
    ///
    /// # Errors
    /// As [`measure`](Hosts::measure).
    pub fn measure_beside(&self, frames: Flooding, time: Duration) -> Result<Measured, Failure> {
        let pace = frames.as_ref().map(|(_, pace)| *pace);
        let (seen, sample, flood_time) = self.beside(self.stream()?, frames, time)?;
        Measured::between(seen, &sample, flood_time, time).checked(pace)
    }

    /// Runs the stream alone, with so many datagrams a second.
    ///
    /// # Errors
    /// As [`measure`](Hosts::measure).
    pub fn stream_alone(&self, per_second: f64, time: Duration) -> Result<Sample, Failure> {
        cpu::settle()?;
        self.stream()?.at(per_second).run(time, || ())
    }

    /// strongSwan of the host called `name`.
    ///
    /// # Errors
    /// It has none.
    pub fn swan(&self, name: &str) -> Result<&Swan, Failure> {
        let found = HOSTS.iter().position(|host| *host == name).and_then(|at| self.swans.get(at));
        found.ok_or_else(|| Failure::Usage(format!("{name} has no strongSwan")))
    }

    /// Where forged packets end at the receiver, as its shield says.
    ///
    /// # Errors
    /// It does not answer.
    pub fn layers(&self) -> Result<String, Failure> {
        let Some(shield) = self.shields.first() else { return Ok("none".to_owned()) };
        Ok(shield.status()?["layers"]["in_force"].as_str().unwrap_or("twin").to_owned())
    }

    /// The shields of the stream's receiver and sender, if there are any.
    pub fn ends(&self) -> &[Daemon] {
        &self.shields[..self.shields.len().min(2)]
    }

    /// Associations that the stream's sender has opened, by its strongSwan's own numbers.
    ///
    /// # Errors
    /// There is no strongSwan.
    pub fn opened(&self) -> Result<u64, Failure> {
        let log = self.swan("b")?.log();
        let established = log.lines().filter(|line| line.contains("established with SPIs"));
        let numbers = established.filter_map(|line| line.split_once('{')?.1.split_once('}')?.0.parse::<u64>().ok());
        Ok(numbers.collect::<BTreeSet<u64>>().len() as u64)
    }

    fn stream(&self) -> Result<Stream, Failure> {
        Stream::open(&behind(self.lan.host("b")?), &behind(self.lan.host("a")?), self.receive)
    }

    fn look(&self) -> Result<Seen, Failure> {
        let sent = ["b", "m"].map(|name| sent_by(&self.lan, self.lan.host(name)?));
        Ok(Seen {
            // The stream leaves by one wire or the other.
            valid: sent.into_iter().sum::<Result<f64, _>>()?,
            forged: forged_to(&self.lan, self.lan.host("a")?)?,
            memory_mib: self.daemons(0).map(memory_of).sum::<Result<f64, _>>()?,
            daemon: self.worked(0)?,
            receive: self.receive_threads.iter().map(|&thread| cpu::exact(thread)).sum::<Result<_, _>>()?,
            sender: self.worked(1)?,
        })
    }

    /// strongSwan of one of [`HOSTS`] and its shield, if it has one.
    fn daemons(&self, at: usize) -> impl Iterator<Item = u32> {
        let shield = self.shields.get(at).and_then(Daemon::id);
        self.swans.get(at).map(Swan::id).into_iter().chain(shield)
    }

    /// Processor time of both.
    fn worked(&self, at: usize) -> Result<Duration, Failure> {
        self.daemons(at).map(cpu::exact).sum()
    }
}

/// The host with the address that its tunnels are for.
fn behind(host: &Host) -> Host {
    Host { ip: inner_address(host), ..host.clone() }
}

fn start_swans(lan: &Lan, rekey: Option<Duration>) -> Result<Vec<Swan>, Failure> {
    let tunnel = |own: &Host, peer, rekey| Tunnel { peer, outer: [IpAddr::from(own.ip), IpAddr::from(peer.ip)], rekey };
    let [a, b, c] = ["a", "b", "c"].map(|name| lan.host(name));
    let (a, b, c) = (a?, b?, c?);
    // One end asks for new keys: two that ask at once may leave strongSwan without an association until the next time.
    let receiver = Swan::start(&lan.directory, a, &[tunnel(a, b, None), tunnel(a, c, None)])?;
    let sender = Swan::start(&lan.directory, b, &[tunnel(b, a, rekey)])?;
    let third = Swan::start(&lan.directory, c, &[tunnel(c, a, None)])?;
    Ok(vec![receiver, sender, third])
}

fn place_all(swans: &[Swan], shields: &[Daemon], receive: Receive) -> Result<(), Failure> {
    let where_to =
        |at| if at == 0 { (RECEIVER_CORE, receive.of_daemon()) } else { (SENDER_CORE, Some(STREAM_PRIORITY)) };
    for (at, swan) in swans.iter().enumerate() {
        let (core, priority) = where_to(at);
        place_process(swan.id(), core, priority)?;
    }
    for (at, shield) in shields.iter().enumerate() {
        let (core, priority) = where_to(at);
        place(shield, core, priority)?;
    }
    Ok(())
}

/// Guards the receiver, whose program in the kernel stands at `hook`, and its peers, each pair under keys of its own.
fn start_shields(site: &Site, lan: &Lan, (hook, receive): (Hook, Receive)) -> Result<Vec<Daemon>, Failure> {
    let a = lan.host("a")?;
    let (mut at_receiver, mut at_peers) = (format!("kernel_hook = \"{}\"\n", hook.word()), Vec::new());
    for name in PEERS {
        let peer = lan.host(name)?;
        let files = ["near", "far"].map(|end| lan.directory.join(format!("{name}-{end}.keys")));
        for file in files.iter().filter(|file| file.exists()) {
            std::fs::remove_file(file).map_err(Failure::file("removing", file))?;
        }
        let mut make = site.command();
        make.args(["shield", "keys", "make"]).args(&files);
        process::must(make)?;
        at_receiver.push_str(&listed(peer, &files[0]));
        at_peers.push((peer, listed(a, &files[1])));
    }
    let of_host = |host: &Host| if host.name == a.name { receive.of_host() } else { "" };
    let guarded = std::iter::once((a, at_receiver)).chain(at_peers);
    let shields: Vec<_> = guarded
        .map(|(host, peers)| start_shield(site, lan, (host, of_host(host)), &peers))
        .collect::<Result<_, _>>()?;
    let said = shields.first().map_or(Ok(Value::Null), Daemon::status)?;
    match said["layers"]["hook"].as_str() {
        Some(at) if at == hook.word() => Ok(shields),
        _ => Err(Failure::Unreadable(format!("layers of {}: {}", a.name, said["layers"]))),
    }
}

fn listed(peer: &Host, keys: &Path) -> String {
    format!("[[shield.peers]]\naddress = \"{}\"\nkeys = \"{}\"\n", peer.ip, keys.display())
}

/// With further lines of the section `[host]`.
fn start_shield(site: &Site, lan: &Lan, (host, lines): (&Host, &str), peers: &str) -> Result<Daemon, Failure> {
    let mut daemon = site.launch(lan, host, |identity, directory| {
        let (identity, directory) = (identity.display(), directory.display());
        format!(
            "[host]\n{lines}interface = \"{INTERFACE}\"\nmode = \"shield\"\nidentity = \"{identity}\"\non_exit = \"closed\"\n\
             run_dir = \"{directory}/run\"\nstate_dir = \"{directory}/state\"\n\n[shield]\n{peers}"
        )
    })?;
    daemon.await_ready()?;
    Ok(daemon)
}

/// A full packet of the stream's sender as the wire has it.
fn overhear(lan: &Lan) -> Result<Frame, Failure> {
    let (a, b) = (lan.host("a")?, lan.host("b")?);
    let watch = Watch::start(&lan.bridge, &Lan::port(b), Direction::In, &lan.directory, "overheard")?;
    let (near, far) = (behind(b), behind(a));
    let (from, _to) = (Mailbox::open(&near, PORT)?, Mailbox::open(&far, PORT)?);
    from.send(&far, PORT, &[0x5a; PAYLOAD_LEN]);
    process::pause(SOON)?;
    let mut frames = watch.stop()?;
    frames.retain(|frame| is_esp(frame, b.ip) && frame.0.len() > PAYLOAD_LEN);
    frames.pop().ok_or_else(|| Failure::Unreadable("no packet of the tunnel was overheard".to_owned()))
}
