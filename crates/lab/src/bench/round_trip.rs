//! Table 3 of the paper, lower half: the round trip of 100 pings between hosts that know each other.

use std::collections::BTreeMap;
use std::time::Duration;

use super::echo::Pinger;
use super::gate::MINUS_NULL;
use super::mode::NAME;
use super::mode::{Arena, Mode, Track};
use super::row::Row;
use super::stats::{Series, Summary, median, paired};
use super::{Schedule, cpu, paper, twice};
use crate::failure::Failure;

/// Pings in a series, as in the paper.
const PINGS: usize = 100;
/// Blocks that a series comes in. The modes take turns block by block, because the machine's speed drifts within a second by more
/// than the difference that is looked for.
const BLOCKS: usize = 10;
/// Pings ahead of a block that are not counted: a handshake and cold caches are another row's business.
const WARM_UP: usize = 3;
/// Pause between two pings. After longer ones the caches are cold, and their misses, not the path, are measured.
const INTERVAL: Duration = Duration::from_millis(2);

/// What one mode showed.
#[derive(Default)]
struct Found {
    /// The median of each block, in microseconds.
    medians: Series,
    /// Every ping, in microseconds.
    all: Vec<f64>,
}

/// Pings through every track in turn; returns a row per mode.
///
/// # Errors
/// The lab is interrupted.
pub fn measure(arena: &Arena, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let mut found: BTreeMap<Mode, Found> = BTreeMap::new();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: round trips, pair {} of {}", pair + 1, schedule.pairs);
        cpu::settle()?;
        for turn in 0..BLOCKS {
            take_turns(arena, turn, &mut found)?;
        }
    }
    Ok(Mode::ALL.iter().filter_map(|&mode| row(mode, &found)).collect())
}

/// One block of each track, every other time in reverse order, so that nobody is always the later one.
fn take_turns(arena: &Arena, turn: usize, found: &mut BTreeMap<Mode, Found>) -> Result<(), Failure> {
    let mut tracks: Vec<&Track> = arena.tracks.iter().collect();
    if turn % 2 == 1 {
        tracks.reverse();
    }
    for track in tracks {
        let times = twice(&format!("round trips, {}", track.mode.name()), || block(track))?.unwrap_or_default();
        let entry = found.entry(track.mode).or_default();
        entry.medians.push(median(&times));
        entry.all.extend(times);
    }
    Ok(())
}

fn block(track: &Track) -> Result<Vec<f64>, Failure> {
    let mut pinger = Pinger::open(&track.a, track.b.ip)?;
    pinger.series(WARM_UP, INTERVAL)?;
    let times = pinger.series(PINGS / BLOCKS, INTERVAL)?;
    Ok(times.iter().map(|time| time.as_secs_f64() * 1e6).collect())
}

fn row(mode: Mode, found: &BTreeMap<Mode, Found>) -> Option<Row> {
    let ours = found.get(&mode)?;
    let mut row = Row::new(NAME, format!("rtt/{}", mode.name()), "us", &ours.medians)?;
    if let Some(plain) = found.get(&Mode::Plain) {
        row = row.against_plain(&ours.medians, &plain.medians);
    }
    if let Some(null) = found.get(&Mode::Null).filter(|_| mode != Mode::Plain) {
        let difference = paired(&ours.medians, &null.medians, |one, other| one - other);
        row = row.against_null(&ours.medians, &null.medians).with_stat(MINUS_NULL, difference);
    }
    // The paper's four figures are about single pings, not about the medians of blocks.
    let pings = Summary::of(&ours.all)?;
    let row = row.with_stat("min", Some(pings.min)).with_stat("mean", Some(pings.mean));
    let row = row.with_stat("max", Some(pings.max)).with_stat("deviation", Some(pings.deviation));
    Some(row.with_stat("pings", Some(pings.runs as f64)).with_paper(paper::round_trip_us(mode)))
}
