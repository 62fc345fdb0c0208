//! Hosts with a stream between two of them: a receiver that has a processor for itself, as in `nonces/stage.rs`, and on the other one the
//! stream's sender, who is heard by all, and the attacker. Only the receiver's port carries what is for all, or a flood would take from
//! the sender as well.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use shield::Hook;

use super::asking::{Answered, ask_until};
use super::forgery::{Forgery, Known};
use super::{Role, Victim, hook_line};
use crate::bench::cpu;
use crate::bench::nonces::books::{busy, forged_to, memory_mib, worked};
use crate::bench::nonces::flood::AHEAD;
use crate::bench::nonces::flood::Pace;
use crate::bench::nonces::placement::{
    RECEIVER_CORE, Receive, SENDER_CORE, STREAM_PRIORITY, place, place_receive_path, receive_in_a_thread,
};
use crate::bench::nonces::stage::{hear, play, shelter};
use crate::bench::nonces::stream::{PAYLOAD_LEN, PER_SECOND, Stream};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::guard::{DISTRIBUTOR, Daemon, Setting, Site};
use crate::net::{Lan, LanPlan};

/// Share of the stream that must leave its program: what is lost there is not the receiver's loss.
const SENT_MIN: f64 = 0.99;

/// What a run showed.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub goodput_mbit: f64,
    pub forged_per_second: f64,
    pub delay_median_ms: f64,
    pub delay_p99_ms: f64,
    pub memory_mib: f64,
    /// How much of a processor the receiver's daemon had.
    pub daemon_load: f64,
    /// What came of honest questions by ARP, where it is signed.
    pub answered: Option<Answered>,
}

/// The hosts, ready.
pub struct Stage {
    // Ends before the hosts do.
    receiver: Daemon,
    _others: Vec<Daemon>,
    known: Known,
    role: Role,
    receive: Receive,
    lan: Lan,
}

impl Stage {
    /// Sets the hosts up.
    ///
    /// # Errors
    /// They cannot be set up.
    pub fn open(run: &Run, program: &Path, victim: Victim, (receive, hook): (Receive, Hook)) -> Result<Stage, Failure> {
        let distributor = (victim.role != Role::Sealing).then_some(DISTRIBUTOR);
        let hosts = distributor.into_iter().chain(["a", "b", "c", "m"]).collect();
        let lan = Lan::create(run, &LanPlan { hosts, ..LanPlan::default() })?;
        let site = Site::found_as(run, program, &victim.suffix(), None)?;
        let target = lan.host(if victim.role == Role::Distributing { DISTRIBUTOR } else { "a" })?;
        receive_in_a_thread(&lan, target, receive)?;
        let (receiver, others) = start(&site, &lan, victim, &hook_line(hook))?;
        lan.acquaint(lan.host("b")?, target)?;
        if victim.role == Role::Signing {
            lan.acquaint(lan.host("c")?, target)?;
        }
        let known = know(&site, &lan, victim)?;
        for daemon in &others {
            place(daemon, SENDER_CORE, Some(STREAM_PRIORITY))?;
            shelter(&lan, &daemon.host)?;
        }
        place(&receiver, RECEIVER_CORE, receive.of_daemon())?;
        place_receive_path(receive)?;
        Ok(Stage { receiver, _others: others, known, role: victim.role, receive, lan })
    }

    /// Runs the stream, alone or under a flood.
    ///
    /// # Errors
    /// A host has ended, the machine is too busy for what was wanted, or the lab is interrupted.
    pub fn measure(&self, flood: Option<(Forgery, Pace)>, seconds: u32) -> Result<Measured, Failure> {
        cpu::settle()?;
        let time = Duration::from_secs(seconds.into());
        let (a, b) = (&self.receiver.host, self.lan.host("b")?);
        let forged = flood.map(|(forgery, pace)| (forgery.forge(a, &self.known), pace));
        let stream = Stream::open(b, a, self.receive)?;
        let (before, spent) = (forged_to(&self.lan, a)?, worked(&self.receiver)?);
        let start = Instant::now();
        let ((sample, daemon_load), answered) = self.while_somebody_asks(|| {
            let (sample, _) = play(stream, (&self.lan, a), forged, time)?;
            let worked = worked(&self.receiver)?.saturating_sub(spent);
            Ok((sample, worked.as_secs_f64() / start.elapsed().as_secs_f64()))
        })?;
        let share = sample.sent as f64 / (time.as_secs_f64() * PER_SECOND);
        if share < SENT_MIN {
            return Err(busy(&format!("only {share:.3} of the stream were sent")));
        }
        Ok(Measured {
            goodput_mbit: sample.delivered as f64 * PAYLOAD_LEN as f64 * 8.0 / 1e6 / time.as_secs_f64(),
            forged_per_second: (forged_to(&self.lan, a)? - before) / (AHEAD + time).as_secs_f64(),
            delay_median_ms: sample.delay_median_ms,
            delay_p99_ms: sample.delay_p99_ms,
            memory_mib: memory_mib(&self.receiver)?,
            daemon_load,
            answered,
        })
    }

    /// Has a host that has spoken with the victim before ask for it until `work` is done.
    fn while_somebody_asks<T>(
        &self,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<(T, Option<Answered>), Failure> {
        if self.role != Role::Signing {
            return Ok((work()?, None));
        }
        let (own, other, over) = (self.lan.host("c")?, &self.receiver.host, AtomicBool::new(false));
        thread::scope(|scope| {
            let asking = scope.spawn(|| {
                thread::sleep(AHEAD);
                ask_until(&over, own, other)
            });
            let done = work();
            over.store(true, Ordering::Relaxed);
            let answered = asking.join().map_err(|_| Failure::Unreadable("who asks ended".to_owned()))?;
            Ok((done?, Some(answered?)))
        })
    }
}

/// Starts the victim and the others, a distributor before those that ask it.
fn start(site: &Site, lan: &Lan, victim: Victim, line: &str) -> Result<(Daemon, Vec<Daemon>), Failure> {
    let sarp = victim.role != Role::Sealing;
    let other = |name| guard(site, lan, name, Setting { sarp, ..Setting::default() });
    let setting = Setting { sarp, weaken: victim.off, cll_lines: line, sarp_lines: line, ..Setting::default() };
    if victim.role == Role::Distributing {
        let receiver = guard(site, lan, DISTRIBUTOR, setting)?;
        return Ok((receiver, vec![other("b")?]));
    }
    let before = sarp.then_some(DISTRIBUTOR).into_iter().chain(["b", "c"]);
    let others = before.map(other).collect::<Result<_, _>>()?;
    Ok((guard(site, lan, "a", setting)?, others))
}

/// What the attacker has heard or holds.
fn know(site: &Site, lan: &Lan, victim: Victim) -> Result<Known, Failure> {
    let c = lan.host("c")?;
    Ok(match victim.role {
        Role::Sealing => Known { heard: Some((hear(lan, c)?, site.host_identity(c)?)), master: None },
        Role::Signing => Known::default(),
        Role::Distributing => Known { heard: None, master: Some(site.request_master()?) },
    })
}

fn guard(site: &Site, lan: &Lan, name: &str, setting: Setting<'_>) -> Result<Daemon, Failure> {
    let mut daemon = site.guard(lan, lan.host(name)?, &setting)?;
    daemon.await_ready()?;
    Ok(daemon)
}
