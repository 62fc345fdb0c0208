//! `bench scrub`: the gateway beside a cable, the kernel's bridge and the null bump between the same ports.
//!
//! Bulk goes from the untrusted to the trusted host, because that half is scrubbed and its data is retained; the other direction
//! is shown beside it. In the rows `plain` is the bridge.

mod replay;
mod talk;
mod track;

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::Duration;

use clap::ValueEnum;

use self::track::{Track, Way};
use super::gate::{Bound, Gate, MINUS_NULL, Quantity};
use super::row::Row;
use super::stats::{Series, median, paired};
use super::tcp::Direction;
use super::{Schedule, cpu, is_wanted, twice};
use crate::cleanup::Run;
use crate::failure::Failure;

/// The experiment's name in its rows.
const NAME: &str = "scrub";
/// Echoes in a block, and blocks in a pair.
const ECHOES: usize = 10;
const BLOCKS: usize = 10;

/// A part of `bench scrub`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScrubPart {
    /// TCP throughput with and without offloads.
    Bulk,
    /// Round trips.
    Latency,
    /// Small datagrams.
    Udp64,
    /// TCP connections one after the other.
    Connections,
    /// A capture.
    Replay,
}

/// What must hold, each with the part that measures its row.
pub const GATES: [(ScrubPart, Gate); 5] = [
    (ScrubPart::Bulk, Gate::on("bulk/offload", Quantity::VersusNull, Bound::AtLeast(0.88))),
    (ScrubPart::Bulk, Gate::on("bulk/no_offload", Quantity::VersusNull, Bound::AtLeast(0.88))),
    (ScrubPart::Udp64, Gate::on("udp64", Quantity::VersusNull, Bound::AtLeast(0.9))),
    (ScrubPart::Connections, Gate::on("connections_per_second", Quantity::VersusNull, Bound::AtLeast(0.85))),
    (ScrubPart::Latency, Gate::on("latency", Quantity::MinusNull, Bound::AtMost(8.0))),
];

/// All runs of one quantity: for each way one per pair, missing where it failed.
type Runs = BTreeMap<Way, Series>;

/// Measures the parts in `only`, or all; returns their rows.
///
/// # Errors
/// A cable does not work, or the lab is interrupted.
pub fn run(run: &Run, program: Option<&Path>, schedule: Schedule, only: &[ScrubPart]) -> Result<Vec<Row>, Failure> {
    let ways = Way::ALL.into_iter().filter(|way| program.is_some() || matches!(way, Way::Wire | Way::Bridge));
    let tracks = ways.map(|way| Track::open(run, way, program)).collect::<Result<Vec<_>, _>>()?;
    let wanted = |part| is_wanted(only, &part);
    let mut rows = Vec::new();
    if wanted(ScrubPart::Latency) {
        rows.extend(latency(&tracks, schedule)?);
    }
    if wanted(ScrubPart::Bulk) {
        for (name, on) in [("bulk/no_offload", false), ("bulk/offload", true)] {
            tracks.iter().try_for_each(|track| track.set_offloads(on))?;
            rows.extend(bulk(&tracks, schedule, name)?);
        }
    }
    let time = Duration::from_secs(schedule.seconds.into());
    if wanted(ScrubPart::Udp64) {
        let runs = in_turns(&tracks, schedule, "udp64", |track| talk::small_datagrams(track, time))?;
        rows.extend(rows_of("udp64", "frames/s", &runs));
    }
    if wanted(ScrubPart::Connections) {
        let runs = in_turns(&tracks, schedule, "connections", |track| talk::connections(track, time))?;
        rows.extend(rows_of("connections_per_second", "1/s", &runs));
    }
    drop(tracks);
    if let Some(program) = program.filter(|_| wanted(ScrubPart::Replay)) {
        rows.extend(replay::measure(run, program, schedule)?);
    }
    Ok(rows)
}

/// Does `measure` on every track, pair by pair.
fn in_turns(
    tracks: &[Track],
    schedule: Schedule,
    what: &str,
    measure: impl Fn(&Track) -> Result<f64, Failure>,
) -> Result<Runs, Failure> {
    let mut runs = Runs::new();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: {what}, pair {} of {}", pair + 1, schedule.pairs);
        for track in tracks {
            cpu::settle()?;
            let found = twice(&format!("{what}{}", track.way.suffix()), || measure(track))?;
            runs.entry(track.way).or_default().push(found);
        }
    }
    Ok(runs)
}

fn bulk(tracks: &[Track], schedule: Schedule, name: &str) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for direction in Direction::ALL {
        let held = std::cell::RefCell::new(Vec::new());
        let runs = in_turns(tracks, schedule, name, |track| {
            let (sample, retained) = thread::scope(|scope| {
                let asked = scope.spawn(|| retained(track, schedule.seconds));
                (track.stream(direction, schedule.seconds), asked.join().ok().flatten())
            });
            held.borrow_mut().extend(retained);
            sample.map(|sample| sample.goodput_mbit)
        })?;
        let found = rows_of(&format!("{name}{}", direction.suffix()), "Mbit/s", &runs);
        let retained = median(&held.borrow());
        rows.extend(found.into_iter().map(|row| {
            let ours = row.vs_null.is_some();
            row.with_stat("retained_bytes", retained.filter(|_| ours))
        }));
    }
    Ok(rows)
}

/// Bytes that the scrubber holds in the middle of a stream. The null bump is asked as well, so that both are disturbed alike.
fn retained(track: &Track, seconds: u32) -> Option<f64> {
    thread::sleep(Duration::from_secs(seconds.into()) / 2);
    let bytes = track.status().ok()?["memory_bytes"].as_f64();
    bytes.filter(|_| track.way == Way::Scrubber)
}

/// Round trips in blocks that take turns, because the machine's speed drifts within a second by more than is looked for.
fn latency(tracks: &[Track], schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let blocks = Schedule { pairs: schedule.pairs * BLOCKS as u32, ..schedule };
    let runs = in_turns(tracks, blocks, "latency", |track| {
        let times = talk::echoes(track, ECHOES)?;
        median(&times).ok_or_else(|| Failure::Unreadable("no echo".to_owned()))
    })?;
    let difference = match (runs.get(&Way::Scrubber), runs.get(&Way::Null)) {
        (Some(ours), Some(null)) => paired(ours, null, |one, other| one - other),
        _ => None,
    };
    let rows = rows_of("latency", "us", &runs).into_iter();
    Ok(rows.map(|row| if row.vs_null.is_some() { row.with_stat(MINUS_NULL, difference) } else { row }).collect())
}

/// A row for each way; the scrubber's is compared with the bridge and the null bump.
fn rows_of(name: &str, unit: &'static str, runs: &Runs) -> Vec<Row> {
    let empty = Series::new();
    let (plain, null) = (runs.get(&Way::Bridge).unwrap_or(&empty), runs.get(&Way::Null).unwrap_or(&empty));
    let row = |(way, series): (&Way, &Series)| {
        let row = Row::new(NAME, format!("{name}{}", way.suffix()), unit, series)?.against_plain(series, plain);
        Some(if *way == Way::Scrubber { row.against_null(series, null) } else { row })
    };
    runs.iter().filter_map(row).collect()
}
