//! One TCP stream as fast as it goes, with and without offloads, both ways; the first with offloads is the paper's table II.

use std::cell::RefCell;
use std::thread;
use std::time::Duration;

use super::track::{Track, Way};
use super::turns::{in_turns, rows_of};
use crate::bench::Schedule;
use crate::bench::row::Row;
use crate::bench::stats::{median, paired};
use crate::bench::tcp::Direction;
use crate::failure::Failure;

/// Name of the ratio of `strict` to `balanced`, among a row's statistics.
const VERSUS_BALANCED: &str = "vs_balanced";

/// Table II of the paper: crossover cable, bridge, scrubber, in Mbit/s.
const PAPER: [(Way, f64); 3] = [(Way::Wire, 359.13), (Way::Bridge, 333.81), (Way::Scrubber, 322.30)];

/// All four rows.
///
/// # Errors
/// The lab is interrupted, or offloads cannot be switched.
pub fn measure(tracks: &[Track], schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (name, on) in [("bulk/no_offload", false), ("bulk/offload", true)] {
        tracks.iter().try_for_each(|track| track.set_offloads(on))?;
        // The other direction is shown, not gated.
        for (direction, schedule) in [(Direction::Forward, schedule), (Direction::Reverse, schedule.lighter())] {
            rows.extend(streams(tracks, schedule, name, direction)?);
        }
    }
    for row in rows.iter_mut() {
        let way = PAPER.iter().find(|(way, _)| row.row == format!("bulk/offload{}", way.suffix()));
        row.paper = way.map(|(_, mbit)| *mbit);
    }
    Ok(rows)
}

/// What the preset `strict` costs: a stream with offloads through it, in turn with the same stream through `balanced`.
///
/// # Errors
/// As [`measure`].
pub fn strict(tracks: &[Track], schedule: Schedule) -> Result<Vec<Row>, Failure> {
    tracks.iter().try_for_each(|track| track.set_offloads(true))?;
    let stream = |track: &Track| Ok(track.stream(Direction::Forward, schedule.seconds)?.goodput_mbit);
    let runs = in_turns(tracks, schedule, "bulk/strict", stream)?;
    let versus_balanced = match (runs.get(&Way::Strict), runs.get(&Way::Scrubber)) {
        (Some(strict), Some(balanced)) => paired(strict, balanced, |one, other| one / other),
        _ => None,
    };
    let is_strict = |row: &Row| row.row.ends_with(&Way::Strict.suffix());
    let rows = rows_of("bulk", "Mbit/s", &runs).into_iter().filter(is_strict);
    Ok(rows.map(|row| row.with_stat(VERSUS_BALANCED, versus_balanced)).collect())
}

fn streams(tracks: &[Track], schedule: Schedule, name: &str, direction: Direction) -> Result<Vec<Row>, Failure> {
    let held = RefCell::new(Vec::new());
    let runs = in_turns(tracks, schedule, name, |track| {
        let (sample, retained) = thread::scope(|scope| {
            let asked = scope.spawn(|| retained(track, schedule.seconds));
            (track.stream(direction, schedule.seconds), asked.join().ok().flatten())
        });
        held.borrow_mut().extend(retained);
        sample.map(|sample| sample.goodput_mbit)
    })?;
    let retained = median(&held.borrow());
    let rows = rows_of(&format!("{name}{}", direction.suffix()), "Mbit/s", &runs).into_iter();
    Ok(rows
        .map(|row| {
            let ours = row.vs_null.is_some();
            row.with_stat("retained_bytes", retained.filter(|_| ours))
        })
        .collect())
}

/// Bytes that the scrubber holds in the middle of a stream. The null bump is asked as well, so that both are disturbed alike.
fn retained(track: &Track, seconds: u32) -> Option<f64> {
    thread::sleep(Duration::from_secs(seconds.into()) / 2);
    let bytes = track.status().ok()?["memory_bytes"].as_f64();
    bytes.filter(|_| track.way == Way::Scrubber)
}
