//! Who takes part: receivers with the layers and without, of each kind that a suite may need, one without any guard, and two senders
//! whose link layers run here.

use std::path::Path;
use std::time::{Duration, Instant};

use identity::Profile;
use identity::aead::Suite;
use shield::Layers;

use super::turn::{self, Feed, Measured, PORT, PORT_BESIDE};
use crate::bench::cpu;
use crate::bench::nonces::flood::Attack;
use crate::bench::nonces::message::{self, Path as Way};
use crate::bench::nonces::peer::Peer;
use crate::bench::nonces::placement::{RECEIVER_CORE, Receive, place, place_receive_path, receive_in_a_thread};
use crate::bench::nonces::starting::start_as;
use crate::bench::work::Work;
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::guard::{Daemon, PaperKeys, Site};
use crate::net::{Frame, Host, Lan, LanPlan, link};

/// MTU of a host without a guard.
const PLAIN_MTU: usize = 1500;
/// Bytes and frames that are sealed ahead for a run, at most.
const AHEAD_BYTES_MAX: usize = 256 << 20;
const AHEAD_FRAMES_MAX: usize = 400_000;
const AHEAD_FRAMES_QUICKLY: usize = 30_000;
/// Frames that an attacker has, and messages by which it is seen what sealing costs.
const FORGED: usize = 64;
/// How many times more is sealed ahead than could be opened meanwhile, if opening cost what sealing does.
const AMPLE: f64 = 2.0;
/// Bits of the RSA keys of hosts of the paper profile, as in the CLL paper's tables.
const RSA_BITS: u16 = 1024;

/// What comes beside the stream, one for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    Nothing,
    /// A second valid stream, the paper's "Alg OK".
    Valid,
    Forged(Attack),
}

impl Beside {
    /// All of them, in the order of what they cost.
    pub const ALL: [Beside; 6] = [
        Beside::Nothing,
        Beside::Forged(Attack::WrongIndex),
        Beside::Forged(Attack::WrongNonce),
        Beside::Forged(Attack::Replayed),
        Beside::Forged(Attack::WrongKey),
        Beside::Valid,
    ];

    /// Whether it is forged and something in front of the tag can tell.
    pub fn is_told_before_the_tag(self) -> bool {
        matches!(self, Beside::Forged(Attack::WrongIndex | Attack::WrongNonce | Attack::Replayed))
    }

    /// Its part of a row's name.
    pub fn name(self) -> &'static str {
        match self {
            Beside::Nothing => "alone",
            Beside::Valid => "ok",
            Beside::Forged(attack) => attack.name(),
        }
    }
}

/// Suites whose frames the same receivers take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Modern,
    Paper,
    NonceOnly,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Modern, Kind::Paper, Kind::NonceOnly];

    fn of(suite: Suite) -> Kind {
        match suite.profile() {
            Profile::Modern => Kind::Modern,
            Profile::Paper if suite.is_nonce_only() => Kind::NonceOnly,
            Profile::Paper => Kind::Paper,
        }
    }

    /// Receivers, with their layers.
    fn receivers(self) -> [(&'static str, Layers); 2] {
        let [with, without] = match self {
            Kind::Modern => ["a", "f"],
            Kind::Paper => ["h", "i"],
            Kind::NonceOnly => ["j", "l"],
        };
        [(with, Layers::Kernel), (without, Layers::None)]
    }

    fn work(self) -> Work {
        if self == Kind::NonceOnly { Work::NonceOnly } else { Work::Encrypt }
    }
}

/// The two sites: a site has one profile.
struct Sites {
    modern: Site,
    paper: Site,
}

impl Sites {
    fn of(&self, kind: Kind) -> &Site {
        if kind == Kind::Modern { &self.modern } else { &self.paper }
    }
}

/// How long and how much.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub time: Duration,
    pub quick: bool,
}

impl Extent {
    /// How many messages are made ahead.
    fn messages(self, frames_of_message: usize, size: usize) -> usize {
        let frames = if self.quick { AHEAD_FRAMES_QUICKLY } else { AHEAD_FRAMES_MAX };
        (frames / frames_of_message).min(AHEAD_BYTES_MAX / (size + 100 * frames_of_message))
    }

    /// No more of them than are needed where each takes so long to seal.
    fn enough(self, messages: usize, each: Duration) -> usize {
        messages.min((AMPLE * self.time.as_secs_f64() / each.as_secs_f64().max(1e-9)) as usize)
    }
}

/// The hosts, ready. Daemons end before the hosts do.
pub struct Hosts {
    guarded: Vec<(Kind, Layers, Daemon)>,
    receive_threads: Vec<u32>,
    sites: Sites,
    lan: Lan,
}

impl Hosts {
    /// Sets them up for the part of the experiment with this name: two of them in one run have sites of their own.
    ///
    /// # Errors
    /// They cannot be set up.
    pub fn open(run: &Run, program: &Path, receive: Receive, part: &str) -> Result<Hosts, Failure> {
        let receivers = || Kind::ALL.into_iter().flat_map(|kind| kind.receivers().map(|receiver| (kind, receiver)));
        let hosts = receivers().map(|(_, (name, _))| name).chain(["g", "b", "c"]).collect();
        let lan = Lan::create(run, &LanPlan { hosts, ..LanPlan::default() })?;
        let sites = Sites {
            modern: Site::found_as(run, program, &format!("-{part}"), None)?,
            paper: Site::found_as(run, program, &format!("-{part}-paper"), Some(PaperKeys::Rsa(RSA_BITS)))?,
        };
        let mut guarded = Vec::new();
        for (kind, (name, layers)) in receivers() {
            let host = lan.host(name)?;
            receive_in_a_thread(&lan, host, receive)?;
            let daemon = start_as(sites.of(kind), &lan, host, (kind.work(), layers))?;
            place(&daemon, RECEIVER_CORE, receive.of_daemon())?;
            guarded.push((kind, layers, daemon));
        }
        receive_in_a_thread(&lan, lan.host("g")?, receive)?;
        let receive_threads = place_receive_path(receive)?;
        Ok(Hosts { guarded, receive_threads, sites, lan })
    }

    /// Messages of `size` bytes to the host without a guard, in clear.
    ///
    /// # Errors
    /// The machine is too slow, or the lab is interrupted.
    pub fn plain(&self, size: usize, extent: Extent) -> Result<Measured, Failure> {
        let (from, to) = (self.lan.host("b")?, self.lan.host("g")?);
        // The bridge forgets who is where, and would hand every frame to everybody.
        self.lan.acquaint(to, from)?;
        let mut port = from.namespace.enter(|| link::open(crate::net::lan::INTERFACE))?;
        let frames = messages(from, to, PORT, size, FORGED, PLAIN_MTU).concat();
        let of_message = message::frames_of(size, PLAIN_MTU);
        let stream = Feed { port: &mut port, frames: &frames, of_message };
        let receiver = turn::Receiver { host: to, daemon: None, receive_threads: &self.receive_threads };
        cpu::settle()?;
        turn::run(receiver, stream, None, extent.time, false)
    }

    /// Messages of `size` bytes to the host with these layers, sealed with `suite`.
    ///
    /// # Errors
    /// As [`plain`](Hosts::plain), or there is no association.
    pub fn sealed(
        &self,
        layers: Layers,
        suite: Suite,
        size: usize,
        beside: Beside,
        extent: Extent,
    ) -> Result<Measured, Failure> {
        let (kind, site) = (Kind::of(suite), self.sites.of(Kind::of(suite)));
        let daemon = self.guarded.iter().find(|(theirs, with, _)| (*theirs, *with) == (kind, layers));
        let daemon = daemon.map(|(.., daemon)| daemon);
        let daemon = daemon.ok_or_else(|| Failure::Unreadable(format!("nobody has layers {}", layers.word())))?;
        let (to, from, other) = (&daemon.host, self.lan.host("b")?, self.lan.host("c")?);
        let mut peer = Peer::meet(from, site.host_identity(from)?, to, suite)?;
        let mut second = Peer::meet(other, site.host_identity(other)?, to, suite)?;
        let of_message = message::frames_of(size, peer.mtu);
        let each = sealing_time(&mut peer, (from, to), size)?;
        let count = extent.enough(extent.messages(of_message, size), each);
        let stream = peer.seal(messages(from, to, PORT, size, count, peer.mtu).concat())?;
        let frames_beside = frames_beside(&mut second, (other, to), beside, size, count)?;
        let receiver = turn::Receiver { host: to, daemon: Some(daemon), receive_threads: &self.receive_threads };
        let stream = Feed { port: &mut peer.port, frames: &stream, of_message };
        let beside = Feed { port: &mut second.port, frames: &frames_beside, of_message: 1 };
        let beside = Some(beside).filter(|feed| !feed.frames.is_empty());
        cpu::settle()?;
        turn::run(receiver, stream, beside, extent.time, true)
    }
}

/// How long sealing a message takes. What it is seen by is never sent.
fn sealing_time(peer: &mut Peer, (from, to): (&Host, &Host), size: usize) -> Result<Duration, Failure> {
    let plain = messages(from, to, PORT, size, FORGED, peer.mtu).concat();
    let start = Instant::now();
    peer.seal(plain)?;
    Ok(start.elapsed() / FORGED as u32)
}

/// What `peer` has ready to go beside the stream, in its own association.
fn frames_beside(
    peer: &mut Peer,
    (from, to): (&Host, &Host),
    beside: Beside,
    size: usize,
    count: usize,
) -> Result<Vec<Vec<u8>>, Failure> {
    let mut sealed = |count| {
        let plain = messages(from, to, PORT_BESIDE, size, count, peer.mtu).concat();
        peer.seal(plain)
    };
    match beside {
        Beside::Nothing => Ok(Vec::new()),
        Beside::Valid => sealed(count),
        Beside::Forged(attack) => {
            let (delivered, held) = (sealed(FORGED)?, sealed(FORGED)?);
            // What was delivered once makes the association the receiver's as well.
            peer.send(&delivered);
            let [delivered, held] = [delivered, held].map(|frames| frames.into_iter().map(Frame).collect::<Vec<_>>());
            Ok(attack.forge(&delivered, &held))
        }
    }
}

/// The frames of `count` messages, one list for each.
fn messages(from: &Host, to: &Host, port: u16, size: usize, count: usize, mtu: usize) -> Vec<Vec<Vec<u8>>> {
    let way = Way { source: (from.mac, from.ip), destination: (to.mac, to.ip), port };
    (0..count).map(|at| message::frames(&way, size, at as u16, mtu)).collect()
}
