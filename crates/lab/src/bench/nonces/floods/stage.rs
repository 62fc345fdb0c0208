//! Hosts with a stream between two of them: a receiver that has a processor for itself, as in `nonces/stage.rs`, and on the other one the
//! stream's sender, who is heard by all, and the attacker. Only the receiver's port carries what is for all, or a flood would take from
//! the sender as well.

use std::path::Path;
use std::time::{Duration, Instant};

use identity::HostIdentity;
use shield::Hook;

use super::forgery::Forgery;
use super::{Victim, hook_line};
use crate::bench::cpu;
use crate::bench::nonces::flood::Pace;
use crate::bench::nonces::stage::{
    AHEAD, RECEIVER_CORE, Receive, SENDER_CORE, STREAM_PRIORITY, busy, forged_to, hear, memory_mib, place,
    place_receive_path, play, receive_in_a_thread, shelter, worked,
};
use crate::bench::nonces::stream::{PAYLOAD_LEN, PER_SECOND, Stream};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::guard::{DISTRIBUTOR, Daemon, Setting, Site};
use crate::net::{Frame, Lan, LanPlan};

/// Share of the stream that must leave its program: what is lost there is not the receiver's loss.
const SENT_MIN: f64 = 0.99;

/// What a run showed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    pub goodput_mbit: f64,
    pub forged_per_second: f64,
    pub delay_median_ms: f64,
    pub delay_p99_ms: f64,
    pub memory_mib: f64,
    /// How much of a processor the receiver's daemon had.
    pub daemon_load: f64,
}

/// The hosts, ready.
pub struct Stage {
    // Ends before the hosts do.
    receiver: Daemon,
    _others: Vec<Daemon>,
    /// A frame to all, and whose it is; none among hosts that sign ARP.
    heard: Option<(Frame, HostIdentity)>,
    receive: Receive,
    lan: Lan,
}

impl Stage {
    /// Sets the hosts up.
    ///
    /// # Errors
    /// They cannot be set up.
    pub fn open(run: &Run, program: &Path, victim: Victim, (receive, hook): (Receive, Hook)) -> Result<Stage, Failure> {
        let distributor = victim.sarp.then_some(DISTRIBUTOR);
        let hosts = distributor.into_iter().chain(["a", "b", "c", "m"]).collect();
        let lan = Lan::create(run, &LanPlan { hosts, ..LanPlan::default() })?;
        let site = Site::found_as(run, program, &victim.suffix(), None)?;
        receive_in_a_thread(&lan, lan.host("a")?, receive)?;
        let mut others = Vec::new();
        for name in distributor.into_iter().chain(["b", "c"]) {
            others.push(guard(&site, &lan, name, Setting { sarp: victim.sarp, ..Setting::default() })?);
        }
        let line = hook_line(hook);
        let setting = Setting { sarp: victim.sarp, weaken: victim.off, ..Setting::default() };
        let receiver = guard(&site, &lan, "a", Setting { cll_lines: &line, sarp_lines: &line, ..setting })?;
        let (a, b, c) = (lan.host("a")?, lan.host("b")?, lan.host("c")?);
        lan.acquaint(b, a)?;
        let heard = if victim.sarp { None } else { Some((hear(&lan, c)?, site.host_identity(c)?)) };
        for daemon in &others {
            place(daemon, SENDER_CORE, Some(STREAM_PRIORITY))?;
            shelter(&lan, &daemon.host)?;
        }
        place(&receiver, RECEIVER_CORE, receive.of_daemon())?;
        place_receive_path(receive)?;
        Ok(Stage { receiver, _others: others, heard, receive, lan })
    }

    /// Runs the stream, alone or under a flood.
    ///
    /// # Errors
    /// A host has ended, the machine is too busy for what was wanted, or the lab is interrupted.
    pub fn measure(&self, flood: Option<(Forgery, Pace)>, seconds: u32) -> Result<Measured, Failure> {
        cpu::settle()?;
        let time = Duration::from_secs(seconds.into());
        let (a, b) = (self.lan.host("a")?, self.lan.host("b")?);
        let genuine = self.heard.as_ref().map(|(frame, identity)| (frame, identity));
        let forged = flood.map(|(forgery, pace)| (forgery.frames(a, genuine), pace));
        let stream = Stream::open(b, a, self.receive)?;
        let (before, spent) = (forged_to(&self.lan, a)?, worked(&self.receiver)?);
        let start = Instant::now();
        let (sample, _) = play(stream, (&self.lan, a), forged, time)?;
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
            daemon_load: worked(&self.receiver)?.saturating_sub(spent).as_secs_f64() / start.elapsed().as_secs_f64(),
        })
    }
}

fn guard(site: &Site, lan: &Lan, name: &str, setting: Setting<'_>) -> Result<Daemon, Failure> {
    let mut daemon = site.guard(lan, lan.host(name)?, &setting)?;
    daemon.await_ready()?;
    Ok(daemon)
}
