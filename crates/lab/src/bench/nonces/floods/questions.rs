//! Floods of questions to a key distributor that has a processor for itself: how many honest questions it answers meanwhile, and how long an
//! answer takes.

use std::path::Path;
use std::thread;
use std::time::Duration;

use shield::Hook;

use super::{hook_line, without};
use crate::bench::mode::Cable;
use crate::bench::nonces::NAME;
use crate::bench::nonces::books::memory_mib;
use crate::bench::nonces::flood::AHEAD;
use crate::bench::nonces::flood::{self, Flood, Pace};
use crate::bench::nonces::placement::{
    RECEIVER_CORE, Receive, SENDER_CORE, place, place_receive_path, receive_in_a_thread, sit_on,
};
use crate::bench::row::Row;
use crate::bench::s_arp::{Borne, Forger, HOSTS, Load, Parties};
use crate::bench::stats::{Series, median, present};
use crate::bench::{Schedule, cpu, twice};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::guard::{DISTRIBUTOR, Setting, Site};
use crate::net::flood::FRAMES_MAX;
use crate::net::{Lan, LanPlan};

/// Layers that are off.
const OFF: [&[&str]; 2] = [&[], &["site-mac"]];
/// Who floods.
pub const FORGERS: [Forger; 3] = [Forger::Stranger, Forger::Member, Forger::Listener];
/// The bridge that the distributor's cable goes back to.
const BRIDGE: &str = "br0";

/// What a run showed: what came of the questions, and the distributor's memory.
type Measured = (Borne, f64);

/// All floods with the layers and without, beside the questions without a flood.
///
/// # Errors
/// Hosts cannot be set up, or the lab is interrupted.
pub fn measure(run: &Run, program: &Path, schedule: Schedule, at: (Receive, Hook)) -> Result<Vec<Row>, Failure> {
    let site = Site::found_as(run, program, "-questions", None)?;
    site.fill_repository(HOSTS)?;
    let mut rows = Vec::new();
    for off in OFF {
        rows.extend(on(run, &site, off, schedule, at)?);
    }
    Ok(rows)
}

fn on(
    run: &Run,
    site: &Site,
    off: &[&str],
    schedule: Schedule,
    (receive, hook): (Receive, Hook),
) -> Result<Vec<Row>, Failure> {
    let lan = Lan::create(run, &LanPlan { hosts: vec![DISTRIBUTOR, "m"], ..LanPlan::default() })?;
    let host = lan.host(DISTRIBUTOR)?;
    receive_in_a_thread(&lan, host, receive)?;
    let line = hook_line(hook);
    let setting = Setting { sarp: true, weaken: off, sarp_lines: &line, ..Setting::default() };
    let mut daemon = site.guard(&lan, host, &setting)?;
    daemon.await_ready()?;
    place(&daemon, RECEIVER_CORE, receive.of_daemon())?;
    place_receive_path(receive)?;
    let cable = Cable::pull(&lan, host, BRIDGE.to_owned())?;
    let (master, key) = (site.request_master()?, site.distributor_key(host)?);
    let parties = Parties { from: &cable, to: host, master: &master, distributor: &key };
    let floods = FORGERS.into_iter().flat_map(|forger| Pace::ALL.map(|pace| Some((forger, pace))));
    let mut found: Vec<_> = std::iter::once(None).chain(floods).map(|flood| (flood, Vec::new())).collect();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: questions, {}, pair {} of {}", without(off), pair + 1, schedule.pairs);
        for (flood, found) in &mut found {
            let once = || {
                let borne = ask((&parties, &lan.directory), *flood, schedule.seconds, pair)?;
                Ok((borne, memory_mib(&daemon)?))
            };
            found.push(twice(&name(off, *flood), once)?);
        }
    }
    let alone = rates(&found[0].1);
    Ok(found.iter().filter_map(|(flood, found)| row(&name(off, *flood), found, &alone)).collect())
}

/// Asks for `seconds`, under a flood from a little before to the end.
fn ask(
    (parties, directory): (&Parties<'_>, &Path),
    flood: Option<(Forger, Pace)>,
    seconds: u32,
    seed: u32,
) -> Result<Borne, Failure> {
    cpu::settle()?;
    let time = Duration::from_secs(seconds.into());
    // Repeated, they cost no less: what is refused is not remembered, and what passes is bounded by the shares of a host and a token.
    let (ends, to, master) = (parties.ends(), parties.to, parties.master);
    let forged = flood.map(|(forger, pace)| (forger.requests(ends, to, master, FRAMES_MAX), pace));
    let load = Load::prepare(parties, time, seed.into())?;
    let near_end = (&parties.from.namespace, parties.from.interface.as_str());
    let flood = forged.map(|(frames, pace)| flood::start_at(near_end, frames.into(), pace, directory)).transpose()?;
    thread::sleep(AHEAD);
    let asking = thread::scope(|scope| {
        scope.spawn(move || sit_on(SENDER_CORE, None).and_then(|()| load.run(parties, time))).join()
    });
    flood.map(Flood::stop).transpose()?;
    asking.map_err(|_| Failure::Unreadable("who asks ended".to_owned()))?
}

/// The row of this flood, or of the questions alone.
pub fn name(off: &[&str], flood: Option<(Forger, Pace)>) -> String {
    let off = without(off);
    match flood {
        None => format!("floods/akd/alone/{off}"),
        Some((forger, pace)) => format!("floods/akd/{}/{off}/{}", forger.row(), pace.name()),
    }
}

fn rates(found: &[Option<Measured>]) -> Series {
    found.iter().map(|one| one.map(|(borne, _)| borne.rate)).collect()
}

/// How many questions were answered; the ratio is to as many without a flood.
fn row(name: &str, found: &[Option<Measured>], alone: &Series) -> Option<Row> {
    let rate = rates(found);
    let row = Row::new(NAME, name, "1/s", &rate)?.against_plain(&rate, alone);
    let of = |quantity: fn(&Measured) -> f64| {
        median(&present(&found.iter().map(|one| one.as_ref().map(quantity)).collect::<Series>()))
    };
    let row = row.with_stat("delay_median_ms", of(|(borne, _)| borne.delay_median_ms));
    let row = row.with_stat("questions_lost", of(|(borne, _)| borne.lost));
    Some(row.with_stat("memory_mib", of(|(_, memory)| *memory)))
}
