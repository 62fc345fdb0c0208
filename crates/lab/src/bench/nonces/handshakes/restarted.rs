//! Whom a host answers that was started anew, while recorded requests of one host come at it, and
//! later while many hosts of the site ask as often as they may.
//!
//! A recording is as its author signed it, so only its age can tell it. A host that has just
//! started believes no time that it is told, and challenges everybody. The honest host is one that
//! asks for the first time each time, so each of its handshakes needs a challenge.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use identity::HostIdentity;
use identity::aead::Suite;
use shield::{Hook, Layers};
use wire::cll::handshake::{append_signature, set_site_tag, tagged_parts, unsigned_parts};
use wire::ethernet::HEADER_LEN;

use super::forgery::{LABEL, NONCE_AT, TIMESTAMP_AT, now_ms};
use super::{shake_hands, until_times_are_believed};
use crate::bench::row::Row;
use crate::bench::stats::{Series, median};
use crate::bench::work::Work;
use crate::bench::{Schedule, twice};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::guard::{Daemon, Site};
use crate::net::flood::{FRAMES_MAX, Flood, Rate};
use crate::net::{Host, Lan, LanPlan, process};

use super::super::NAME;
use super::super::books::{busy, forged_to};
use super::super::peer::Peer;
use super::super::placement::{RECEIVER_CORE, Receive, SENDER_CORE, place, receive_in_a_thread};
use super::super::starting::start_at;

/// What a host says of its peers is on its disk by then.
const KEPT_AFTER: Duration = Duration::from_secs(12);
/// Behind a request and its certificate: two bytes of length and a signature of Ed25519.
const SIGNATURE_LEN: usize = 2 + 64;
/// What a request is signed under (docs/protocol.md, section 4).
const SIGNED_LABEL: &[u8] = b"ringwall cll 2 request";
/// Between two recorded requests of one host when they were made.
const RECORDED_EVERY_MS: u64 = 250;
/// Hosts that ask as often as one source is answered, four times a second.
const MEMBERS: [&str; 14] = ["g", "h", "i", "j", "l", "n", "o", "p", "q", "r", "s", "t", "u", "v"];
const OF_EACH_MEMBER_PER_SECOND: usize = 4;
/// A table of accepted requests that only grows is full before this.
const OF_MEMBERS: Duration = Duration::from_secs(40);
/// Share of the frames that must come, for the run to say anything.
const CAME_MIN: f64 = 0.8;
/// Honest handshakes behind one restart.
const OF_RECORDINGS: Duration = Duration::from_secs(20);

/// What comes at the host beside the honest handshakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    Nothing,
    /// Requests that one host made before it was last heard, so many a second.
    Heard(u32),
    /// Requests that it made since, while the receiver was away.
    Unheard(u32),
    /// New requests of many hosts.
    Members,
}

impl Trouble {
    const ALL: [Trouble; 6] = [
        Trouble::Nothing,
        Trouble::Heard(2_000),
        Trouble::Heard(10_000),
        Trouble::Unheard(2_000),
        Trouble::Unheard(10_000),
        Trouble::Members,
    ];

    fn name(self) -> String {
        match self {
            Trouble::Nothing => "nothing".to_owned(),
            Trouble::Heard(rate) => format!("recordings_heard/{rate}"),
            Trouble::Unheard(rate) => format!("recordings_unheard/{rate}"),
            Trouble::Members => format!("members/{}", MEMBERS.len() * OF_EACH_MEMBER_PER_SECOND),
        }
    }

    fn rate(self) -> u32 {
        match self {
            Trouble::Nothing => 0,
            Trouble::Heard(rate) | Trouble::Unheard(rate) => rate,
            Trouble::Members => (MEMBERS.len() * OF_EACH_MEMBER_PER_SECOND) as u32,
        }
    }
}

/// The honest handshakes of one run.
struct Measured {
    taken_ms: Vec<f64>,
    failed: usize,
    forged_per_second: f64,
    /// What the receiver refused meanwhile, by reason.
    drops: BTreeMap<String, u64>,
}

/// The receiver, an honest host, one that was recorded, and the members.
struct Hosts {
    daemon: Daemon,
    site: Site,
    lan: Lan,
    recorded: Author,
    members: Vec<Author>,
}

/// Each trouble, with the checks of the kernel and without them.
///
/// # Errors
/// The hosts cannot be set up, or the lab is interrupted.
pub fn measure(run: &Run, program: &Path, schedule: Schedule, hook: Hook) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for layers in [Layers::Kernel, Layers::Twin] {
        let mut hosts = Hosts::open(run, program, layers, hook)?;
        for trouble in Trouble::ALL {
            let name = format!("restarted/{}/layers={}", trouble.name(), layers.word());
            let mut found = Vec::new();
            for pair in 0..schedule.pairs {
                eprintln!("ringwall-lab: {name}, run {} of {}", pair + 1, schedule.pairs);
                found.push(twice(&name, || hosts.play(trouble))?);
            }
            rows.extend(row(&name, &found));
        }
    }
    Ok(rows)
}

/// Handshakes that came to an end, of all that were begun.
fn row(name: &str, found: &[Option<Measured>]) -> Option<Row> {
    let share = |one: &Measured| one.taken_ms.len() as f64 / (one.taken_ms.len() + one.failed).max(1) as f64;
    let shares: Series = found.iter().map(|one| one.as_ref().map(share)).collect();
    let ran = || found.iter().flatten();
    let mut taken: Vec<f64> = ran().flat_map(|one| one.taken_ms.iter().copied()).collect();
    taken.sort_by(f64::total_cmp);
    let failed = ran().map(|one| one.failed).sum::<usize>();
    let row = Row::new(NAME, name, "of 1", &shares)?.with_stat("handshake_median_ms", median(&taken));
    let row = row.with_stat("handshake_longest_ms", taken.last().copied());
    let row = row.with_stat("handshakes", Some(taken.len() as f64)).with_stat("handshakes_failed", Some(failed as f64));
    let rates: Vec<f64> = ran().map(|one| one.forged_per_second).collect();
    Some(row.with_stat("forged_per_second", median(&rates)).with_note("drops", &refusals(ran())))
}

/// What the receiver refused in these runs, by reason.
fn refusals<'a>(runs: impl Iterator<Item = &'a Measured>) -> String {
    let mut sums = BTreeMap::new();
    for (reason, count) in runs.flat_map(|one| &one.drops).filter(|(_, count)| **count > 0) {
        *sums.entry(reason).or_insert(0) += count;
    }
    sums.iter().map(|(reason, count)| format!("{reason} {count}")).collect::<Vec<_>>().join(", ")
}

impl Hosts {
    fn open(run: &Run, program: &Path, layers: Layers, hook: Hook) -> Result<Hosts, Failure> {
        let names = ["a", "b", "c"].into_iter().chain(MEMBERS).collect();
        let lan = Lan::create(run, &LanPlan { hosts: names, ..LanPlan::default() })?;
        let site = Site::found_as(run, program, &format!("-restarted-{}", layers.word()), None)?;
        let a = lan.host("a")?;
        // The flood is handed to the card as XDP frames, which a veth takes only where NAPI runs.
        receive_in_a_thread(&lan, a, Receive::default())?;
        let daemon = start_at(&site, &lan, a, (Work::Encrypt, layers), (hook, Receive::default()))?;
        place(&daemon, RECEIVER_CORE, None)?;
        let author = |name: &str| Author::open(&site, lan.host(name)?, a);
        let recorded = author("b")?;
        let members = MEMBERS.into_iter().map(author).collect::<Result<_, _>>()?;
        Ok(Hosts { daemon, site, lan, recorded, members })
    }

    fn play(&mut self, trouble: Trouble) -> Result<Measured, Failure> {
        let heard_ms = self.meet_all()?;
        if trouble == Trouble::Members {
            until_times_are_believed()?;
        } else {
            self.daemon.restart()?;
            place(&self.daemon, RECEIVER_CORE, None)?;
        }
        let frames = self.frames(trouble, heard_ms)?;
        let a = self.lan.host("a")?;
        let (before, refused, start) = (forged_to(&self.lan, a)?, self.daemon.drops()?, Instant::now());
        let flood = frames.map(|frames| self.flood(frames, trouble.rate())).transpose()?;
        let time = if trouble == Trouble::Members { OF_MEMBERS } else { OF_RECORDINGS };
        let shaken = self.shake_hands_for(time);
        flood.map(Flood::stop).transpose()?;
        let (taken_ms, failed) = shaken?;
        let forged_per_second = (forged_to(&self.lan, a)? - before) / start.elapsed().as_secs_f64();
        if forged_per_second < f64::from(trouble.rate()) * CAME_MIN {
            return Err(busy(&format!("only {forged_per_second:.0} frames a second came")));
        }
        let mut drops = self.daemon.drops()?;
        drops.iter_mut().for_each(|(reason, count)| *count -= refused.get(reason).unwrap_or(&0));
        Ok(Measured { taken_ms, failed, forged_per_second, drops })
    }

    fn flood(&self, frames: Vec<Vec<u8>>, rate: u32) -> Result<Flood, Failure> {
        let near_end = Lan::port(self.lan.host("a")?);
        let rate = Rate::PerSecond(rate.into());
        Flood::start((&self.lan.bridge, &near_end), frames.into(), rate, SENDER_CORE, &self.lan.directory)
    }

    /// Has the honest host and the recorded one shake hands, so that the receiver knows both when
    /// it starts again; when that was.
    fn meet_all(&self) -> Result<u64, Failure> {
        let a = self.lan.host("a")?;
        for name in ["b", "c"] {
            let host = self.lan.host(name)?;
            Peer::meet(host, self.site.host_identity(host)?, a, Suite::Aes256Gcm)?;
        }
        let heard_ms = now_ms();
        process::pause(KEPT_AFTER)?;
        Ok(heard_ms)
    }

    fn frames(&self, trouble: Trouble, heard_ms: u64) -> Result<Option<Vec<Vec<u8>>>, Failure> {
        let recordings = |first_ms: u64, every_ms: u64| -> Result<Vec<_>, Failure> {
            (0..FRAMES_MAX as u64).map(|n| self.recorded.request(first_ms + n * every_ms, n)).collect()
        };
        Ok(Some(match trouble {
            Trouble::Nothing => return Ok(None),
            // The last of them right before the honest one.
            Trouble::Heard(_) => {
                let first_ms = heard_ms - FRAMES_MAX as u64 * RECORDED_EVERY_MS;
                recordings(first_ms, RECORDED_EVERY_MS)?
            }
            Trouble::Unheard(_) => recordings(heard_ms, 0)?,
            Trouble::Members => self.of_members()?,
        }))
    }

    /// What the members ask for while honest handshakes are made, each as if it were made then.
    fn of_members(&self) -> Result<Vec<Vec<u8>>, Failure> {
        let (from_ms, rounds) = (now_ms(), OF_MEMBERS.as_secs() * OF_EACH_MEMBER_PER_SECOND as u64);
        let times = (0..rounds).map(|round| (round, from_ms + round * 1000 / OF_EACH_MEMBER_PER_SECOND as u64));
        times.flat_map(|(round, at_ms)| self.members.iter().map(move |member| member.request(at_ms, round))).collect()
    }

    fn shake_hands_for(&self, time: Duration) -> Result<(Vec<f64>, usize), Failure> {
        let (c, a) = (self.lan.host("c")?, self.lan.host("a")?);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let shaking = scope.spawn(|| shake_hands(&self.site, c, a, &over));
            let paused = process::pause(time);
            over.store(true, Ordering::Relaxed);
            let shaken = shaking.join().map_err(|_| Failure::Unreadable("who shakes hands ended".to_owned()))?;
            paused.and(shaken)
        })
    }
}

/// Who makes requests that are right in everything.
struct Author {
    identity: HostIdentity,
    genuine: Vec<u8>,
}

impl Author {
    fn open(site: &Site, own: &Host, other: &Host) -> Result<Author, Failure> {
        let mut peer = Peer::open(own, site.host_identity(own)?, Suite::Aes256Gcm)?;
        Ok(Author { identity: site.host_identity(own)?, genuine: peer.request(own, other)? })
    }

    /// The request number `number` for the other host, made at `unix_ms`.
    fn request(&self, unix_ms: u64, number: u64) -> Result<Vec<u8>, Failure> {
        let unsigned_len = self.genuine.len() - SIGNATURE_LEN;
        let (ethernet, message) = self.genuine[..unsigned_len].split_at(HEADER_LEN);
        let mut message = message.to_vec();
        message[TIMESTAMP_AT..TIMESTAMP_AT + 8].copy_from_slice(&unix_ms.to_be_bytes());
        message[NONCE_AT..NONCE_AT + 8].copy_from_slice(&number.to_be_bytes());
        let [before, after] = unsigned_parts(&message);
        let signature = self.identity.sign(&[SIGNED_LABEL, before, after].concat());
        append_signature(&mut message, &signature.map_err(|error| Failure::Unreadable(error.to_string()))?);
        let [before, after] = tagged_parts(&message);
        let tag = self.identity.site_key().frame_tag(LABEL, &[ethernet, before, after]);
        set_site_tag(&mut message, &tag);
        Ok([ethernet, &message].concat())
    }
}
