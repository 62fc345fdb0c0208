//! The hosts: a receiver that has one processor for itself, with its receive path, and on the other one two peers, the stream's
//! sender and the attacker.
//!
//! The kernel receives for the receiver in a thread of its own (threaded NAPI) that comes before the daemon, as an interrupt does:
//! a flood can starve the daemon. The bridge hands on what a wire would carry, or frames would be received where they are sent.
//! Forged frames are those of a second peer, some of which were taken off the wire before they arrived; it says little meanwhile.

use std::path::Path;
use std::thread;
use std::time::Duration;

use identity::HostIdentity;
use shield::{Hook, Layers};
use wire::cll::PacketType;

use super::books::{busy, counted_by, forged_to, memory_mib, sent_by, worked};
use super::flood::{self, AHEAD, Attack, Flood, Pace};
use super::handshakes::{self, Forgery};
use super::placement::{
    RECEIVER_CORE, Receive, SENDER_CORE, STREAM_PRIORITY, place, place_receive_path, receive_in_a_thread,
};
use super::starting::{start, start_at};
use super::stream::{PAYLOAD_LEN, Sample, Stream};
use crate::attack::exhaustion::greet;
use crate::bench::cpu;
use crate::bench::work::Work;
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::guard::{Daemon, Site};
use crate::net::flood::Forged;
use crate::net::talk::{Mailbox, Ping};
use crate::net::{Direction, Frame, Host, Lan, LanPlan, Watch, process};

/// Frames that the attacker has.
const FRAMES: usize = 64;
/// Share of the stream that must leave its sender: what is lost there is not the receiver's loss.
const VALID_ON_WIRE_MIN: f64 = 0.995;
/// How long a datagram may be on its way when nothing disturbs it.
const SOON: Duration = Duration::from_millis(300);
const PORT: u16 = 7001;
/// Bytes of what is said to all: long enough for a forger to change something in it.
const GREETING_LEN: usize = 300;

/// What a run showed.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    pub goodput_mbit: f64,
    pub forged_per_second: f64,
    /// Share of the stream that its sender's daemon put on the wire.
    pub valid_on_wire: f64,
    pub delay_median_ms: f64,
    pub delay_p99_ms: f64,
    pub memory_mib: f64,
    pub memory_grown_mib: f64,
    /// Forged frames that came to the wire.
    pub forged: f64,
    /// What the receiver's daemon worked meanwhile, in nanoseconds, and what the kernel's receive thread did.
    pub daemon_ns: f64,
    pub receive_ns: f64,
    /// What the daemon of the stream's sender worked for each frame, in nanoseconds.
    pub sender_ns_per_valid: f64,
    /// What the attacker worked for each forged frame, in nanoseconds; where it is paced, with its waiting.
    pub sender_ns_per_forged: f64,
}

/// The receiver's books: frames that came over its wire, and those of which it is known what became.
#[derive(Clone, Copy, Debug)]
pub struct Books {
    pub offered: f64,
    pub accounted: f64,
}

/// What counters show at one moment: frames on the wire, the daemon's memory, and processor time.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub valid: f64,
    pub forged: f64,
    pub memory_mib: f64,
    pub daemon: Duration,
    pub receive: Duration,
    pub sender: Duration,
}

impl Measured {
    /// What a stream of `time` came to between two looks, beside a flood whose thread worked for `flood_time`.
    pub fn between([before, after]: [Seen; 2], sample: &Sample, flood_time: Duration, time: Duration) -> Measured {
        let (forged, valid) = (after.forged - before.forged, after.valid - before.valid);
        let ns = |after: Duration, before: Duration| after.saturating_sub(before).as_secs_f64() * 1e9;
        Measured {
            goodput_mbit: sample.delivered as f64 * PAYLOAD_LEN as f64 * 8.0 / 1e6 / time.as_secs_f64(),
            forged_per_second: forged / (AHEAD + time).as_secs_f64(),
            valid_on_wire: valid / sample.sent as f64,
            delay_median_ms: sample.delay_median_ms,
            delay_p99_ms: sample.delay_p99_ms,
            memory_mib: after.memory_mib,
            memory_grown_mib: after.memory_mib - before.memory_mib,
            forged,
            daemon_ns: ns(after.daemon, before.daemon),
            receive_ns: ns(after.receive, before.receive),
            sender_ns_per_valid: ns(after.sender, before.sender) / valid.max(1.0),
            sender_ns_per_forged: ns(flood_time, Duration::ZERO) / forged.max(1.0),
        }
    }

    /// The same, if a flood at `pace` was one and the stream came to the wire.
    ///
    /// # Errors
    /// The machine is too busy for what was wanted.
    pub fn checked(self, pace: Option<Pace>) -> Result<Measured, Failure> {
        match pace {
            Some(pace) if self.forged_per_second < pace.least_per_second() => {
                Err(busy(&format!("a flood of {:.0} frames a second for {}", self.forged_per_second, pace.name())))
            }
            _ if self.valid_on_wire < VALID_ON_WIRE_MIN => {
                Err(busy(&format!("only {:.3} of the stream came to the wire", self.valid_on_wire)))
            }
            _ => Ok(self),
        }
    }
}

/// The hosts, ready.
pub struct Stage {
    // Ends before the hosts do.
    _talk: Ping,
    receiver: Daemon,
    /// The stream's sender and the one in whose name is forged.
    peers: [Daemon; 2],
    receive_threads: Vec<u32>,
    delivered: Vec<Frame>,
    held: Vec<Frame>,
    receive: Receive,
    site: Site,
    lan: Lan,
}

impl Stage {
    /// Sets the hosts up, with `layers` at the receiver, where the kernel's are at `hook`.
    ///
    /// # Errors
    /// They cannot be set up.
    pub fn open(run: &Run, program: &Path, (layers, hook): (Layers, Hook), receive: Receive) -> Result<Stage, Failure> {
        let lan = Lan::create(run, &LanPlan { hosts: vec!["a", "b", "c", "f", "m"], ..LanPlan::default() })?;
        let site = Site::found_as(run, program, &format!("-{}", layers.word()), None)?;
        let [a, b, c] = ["a", "b", "c"].map(|name| lan.host(name).cloned());
        let (a, b, c) = (a?, b?, c?);
        receive_in_a_thread(&lan, &a, receive)?;
        let receiver = start_at(&site, &lan, &a, (Work::Encrypt, layers), (hook, receive))?;
        let peers = [start(&site, &lan, &b, Layers::Kernel)?, start(&site, &lan, &c, Layers::Kernel)?];
        for peer in [&b, &c] {
            lan.acquaint(peer, &a)?;
        }
        place(&receiver, RECEIVER_CORE, receive.of_daemon())?;
        peers.iter().try_for_each(|peer| place(peer, SENDER_CORE, Some(STREAM_PRIORITY)))?;
        let receive_threads = place_receive_path(receive)?;
        let (held, delivered) = take_frames(&lan, &a, &c)?;
        let talk = Ping::start(&c, &a, &lan.directory)?;
        Ok(Stage { _talk: talk, receiver, peers, receive_threads, delivered, held, receive, site, lan })
    }

    /// Takes frames to forge of anew, because those from before are of keys that may be gone.
    ///
    /// # Errors
    /// They do not come.
    pub fn retake(&mut self) -> Result<(), Failure> {
        (self.held, self.delivered) = take_frames(&self.lan, self.lan.host("a")?, self.lan.host("c")?)?;
        Ok(())
    }

    /// A frame to all of the host in whose name is forged, and its identity. From now on only the receiver hears what is for all, or
    /// a flood of that would take from the stream's sender as well.
    ///
    /// # Errors
    /// It says nothing.
    pub fn said_to_all(&self) -> Result<(Frame, HostIdentity), Failure> {
        let sender = self.lan.host("c")?;
        for peer in &self.peers {
            shelter(&self.lan, &peer.host)?;
        }
        Ok((hear(&self.lan, sender)?, self.site.host_identity(sender)?))
    }

    /// Forged requests for handshakes with the receiver, made of one of a host that says nothing else.
    ///
    /// # Errors
    /// That host makes none.
    pub fn forged_handshakes(&self, forgery: Forgery) -> Result<Forged, Failure> {
        handshakes::forge(&self.site, forgery, self.lan.host("f")?, self.lan.host("a")?)
    }

    /// Who receives.
    pub fn receiver(&self) -> &Host {
        &self.receiver.host
    }

    /// What the card has brought, by the bridge's count, and what became of it: the daemon's queue had no room for it, or the daemon
    /// has it in its books, in which what the kernel's program dropped in its place counts as received and dropped. Both since
    /// they began to count.
    ///
    /// # Errors
    /// Nobody says.
    pub fn books(&self) -> Result<Books, Failure> {
        let status = self.receiver.status()?;
        let offered = counted_by(&self.lan, &self.receiver.host, "tx")?;
        let (ports, frames) = (&status["ports"], &status["frames"]);
        let missing = || Failure::Unreadable(format!("the receiver's counters: {ports}"));
        let no_room = ports["wire_kernel_drops"].as_f64().ok_or_else(missing)?;
        let taken = frames["received_from_wire"].as_f64().ok_or_else(missing)?;
        Ok(Books { offered, accounted: no_room + taken })
    }

    /// Whether each frame that the receiver took has had one fate.
    ///
    /// # Errors
    /// Its books do not add up, or it does not say.
    pub fn audit(&self) -> Result<(), Failure> {
        let frames = &self.receiver.status()?["frames"];
        let sum = |names: &[&str]| names.iter().map(|name| frames[*name].as_u64()).sum::<Option<u64>>();
        let taken = sum(&["received_from_stack", "received_from_wire"]);
        let fates = sum(&["forwarded_to_wire", "forwarded_to_stack", "answered", "consumed", "held", "dropped"]);
        if taken.is_some() && taken == fates {
            return Ok(());
        }
        Err(Failure::Unreadable(format!("the receiver's books do not add up: {frames}")))
    }

    /// Runs the stream, alone or under an attack.
    ///
    /// # Errors
    /// A host has ended, the machine is too busy for what was wanted, or the lab is interrupted.
    pub fn measure(&self, attack: Option<(Attack, Pace)>, seconds: u32) -> Result<Measured, Failure> {
        self.measure_under(
            attack.map(|(attack, pace)| (attack.forge(&self.delivered, &self.held).into(), pace)),
            seconds,
        )
    }

    /// Runs the stream, alone or under a flood of these frames.
    ///
    /// # Errors
    /// As [`measure`](Stage::measure).
    pub fn measure_under(&self, flood: Option<(Forged, Pace)>, seconds: u32) -> Result<Measured, Failure> {
        let pace = flood.as_ref().map(|(_, pace)| *pace);
        cpu::settle()?;
        let time = Duration::from_secs(seconds.into());
        let before = self.look()?;
        let (sample, flood_time) = self.play(flood, time)?;
        let seen = [before, self.look()?];
        Measured::between(seen, &sample, flood_time, time).checked(pace)
    }

    fn play(&self, forged: Option<(Forged, Pace)>, time: Duration) -> Result<(Sample, Duration), Failure> {
        let (a, b) = (self.lan.host("a")?, self.lan.host("b")?);
        play(Stream::open(b, a, self.receive)?, (&self.lan, a), forged, time)
    }

    fn look(&self) -> Result<Seen, Failure> {
        Ok(Seen {
            valid: sent_by(&self.lan, self.lan.host("b")?)?,
            forged: forged_to(&self.lan, &self.receiver.host)?,
            memory_mib: memory_mib(&self.receiver)?,
            daemon: worked(&self.receiver)?,
            receive: self.receive_threads.iter().map(|&thread| cpu::exact(thread)).sum::<Result<_, _>>()?,
            sender: worked(&self.peers[0])?,
        })
    }
}

/// Lets `stream` run for so long, and frames that are forged come to `victim` from a little before its beginning to its end; the
/// attacker's processor time beside.
///
/// # Errors
/// A thread cannot be bound to its processor, or the kernel makes no flood.
pub fn play(
    stream: Stream,
    (lan, victim): (&Lan, &Host),
    forged: Option<(Forged, Pace)>,
    time: Duration,
) -> Result<(Sample, Duration), Failure> {
    let flood = forged.map(|(forged, pace)| flood::start(lan, victim, forged, pace)).transpose()?;
    thread::sleep(AHEAD);
    let mut flood_time = Ok(Duration::ZERO);
    let sample = stream.run(time, || flood_time = flood.map_or(Ok(Duration::ZERO), Flood::stop))?;
    Ok((sample, flood_time?))
}

/// Keeps what is for all from `host`.
///
/// # Errors
/// `ip` fails.
pub fn shelter(lan: &Lan, host: &Host) -> Result<(), Failure> {
    let port = Lan::port(host);
    lan.bridge.ip(&format!("link set {port} type bridge_slave bcast_flood off mcast_flood off flood off")).map(drop)
}

/// A frame of `sender` to all, whom all know by then.
///
/// # Errors
/// It says nothing.
pub fn hear(lan: &Lan, sender: &Host) -> Result<Frame, Failure> {
    let watch = Watch::start(&lan.bridge, &Lan::port(sender), Direction::In, &lan.directory, "to-all")?;
    greet(sender, &[0x5a; GREETING_LEN])?;
    let said = |frame: &Frame| frame.source() == sender.mac && frame.cll_type() == Some(PacketType::GroupFrame);
    let heard = watch.stop()?.into_iter().rfind(said);
    heard.ok_or_else(|| Failure::Unreadable(format!("{} said nothing to all", sender.name)))
}

/// Frames of `c` to `a` as the wire had them: such that never arrived, because the bridge did not know `a` then, and such that did.
fn take_frames(lan: &Lan, a: &Host, c: &Host) -> Result<(Vec<Frame>, Vec<Frame>), Failure> {
    let port = Lan::port(a);
    lan.bridge.ip(&format!("link set {port} nomaster"))?;
    let held = say_all(lan, a, c, "held");
    lan.bridge.ip(&format!("link set {port} master br0"))?;
    let held = held?;
    lan.acquaint(c, a)?;
    Ok((held, say_all(lan, a, c, "delivered")?))
}

/// Lets `c` say so many things to `a`; the frames in which it did.
fn say_all(lan: &Lan, a: &Host, c: &Host, label: &str) -> Result<Vec<Frame>, Failure> {
    let watch = Watch::start(&lan.bridge, &Lan::port(c), Direction::In, &lan.directory, label)?;
    let (from, _to) = (Mailbox::open(c, PORT)?, Mailbox::open(a, PORT)?);
    for _ in 0..FRAMES {
        from.send(a, PORT, &[0x5a; PAYLOAD_LEN]);
        // One by one, so that none waits for another and rides in a train with it.
        process::pause(Duration::from_millis(2))?;
    }
    process::pause(SOON)?;
    let mut frames = watch.stop()?;
    frames.retain(|frame| frame.is_between(c.mac, a.mac) && frame.0.len() > PAYLOAD_LEN);
    match frames.len() {
        FRAMES => Ok(frames),
        other => Err(Failure::Unreadable(format!("{other} frames of {FRAMES} that were to be {label}"))),
    }
}
