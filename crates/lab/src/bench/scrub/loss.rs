//! Lossy lines (the paper's figure 7): what a hop loses in front of the scrubber and in front of a plain bridge.
//!
//! Streams of all ways run at the same time, each behind a hop of its own with the same seed. What limits them is the loss and the
//! time under way, not the processors, and so a pair meets the same machine in the same second. The web clients of figure 7 could
//! keep all processors busy, and take turns.

use std::path::Path;
use std::thread;
use std::time::Duration;

use super::hop::Setting;
use super::track::{Track, Way};
use super::turns::{Runs, at, rows_of, unless_too_old};
use super::web::{self, ENDLESS, Ends, Fetched, Load};
use crate::bench::row::Row;
use crate::bench::stats::{Summary, present};
use crate::bench::{Schedule, cpu, twice};
use crate::cleanup::Run;
use crate::failure::Failure;

/// Pairs behind a gate: loss scatters more than anything else here.
const PAIRS_MIN: u32 = 15;
/// Losses behind gates: the row, the percentage each way, and how many streams share the line, so that enough segments are sent in
/// a run at each.
const LOSSES: [(&str, u8, usize); 3] = [("loss/1pct", 1, 12), ("loss/5pct", 5, 32), ("loss/10pct", 10, 64)];
/// Time under way, each way: so much that all ways together leave the processors idle most of the time.
const DELAY: Duration = Duration::from_millis(10);
/// How long streams run before they are looked at, and how long they are.
const WARM_UP: Duration = Duration::from_millis(1100);
const TIME: Duration = Duration::from_secs(2);

/// The paper's clients, page and link.
const CLIENTS: usize = 480;
const PAGE_LEN: u64 = 1024;
const LINK_MBIT: u32 = 100;
/// Loss along the axis of figure 7, in percent each way.
const AXIS: [u8; 5] = [0, 1, 2, 5, 10];
/// Pairs of each point of the figure.
const POINT_PAIRS: u32 = 3;
/// Student's t for 99 % two-sided confidence, from two samples on (any table of the distribution).
const STUDENT: [f64; 14] =
    [63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055, 3.012, 2.977];
/// The same for more samples than that.
const NORMAL: f64 = 2.947;

/// Streams, then web pages.
///
/// # Errors
/// A way does not work, or the lab is interrupted.
pub fn measure(run: &Run, program: Option<&Path>, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let ways = Way::LOSSY.into_iter().filter(|way| program.is_some() || !way.has_gateway());
    let open = |way| Track::open_lossy(run, way, program).and_then(unless_too_old);
    let mut tracks: Vec<_> = ways.filter_map(|way| open(way).transpose()).collect::<Result<_, _>>()?;
    let mut rows = Vec::new();
    let pairs = if schedule.quick { 1 } else { schedule.pairs.max(PAIRS_MIN) };
    for (name, loss_percent, clients) in LOSSES {
        let load = Load { page_len: ENDLESS, clients, warm_up: WARM_UP, time: TIME };
        let hop = Setting { loss_percent, delay: DELAY, rate_mbit: None, seed: 0 };
        let runs = at_once(&mut tracks, name, pairs, hop, load)?;
        rows.extend(rows_of(name, "Mbit/s", &runs));
    }
    tracks.retain(|track| !matches!(track.way, Way::Drop | Way::Carried));
    for loss_percent in AXIS {
        rows.extend(point(&mut tracks, schedule, loss_percent)?);
    }
    Ok(rows)
}

/// A point of figure 7 of each way.
fn point(tracks: &mut [Track], schedule: Schedule, loss_percent: u8) -> Result<Vec<Row>, Failure> {
    let name = format!("figure7/{loss_percent}pct");
    let load = Load { page_len: PAGE_LEN, clients: CLIENTS, warm_up: WARM_UP, time: TIME };
    let pairs = if schedule.quick { 1 } else { POINT_PAIRS };
    let mut runs = Runs::new();
    for pair in 1..=pairs {
        eprintln!("ringwall-lab: {name}, pair {pair} of {pairs}");
        let hop = Setting { loss_percent, delay: Duration::ZERO, rate_mbit: Some(LINK_MBIT), seed: pair.into() };
        for track in tracks.iter_mut() {
            cpu::settle()?;
            let fetched = twice(&name, || fetch(track, hop, &load))?;
            runs.entry(track.way).or_default().push(fetched.map(|fetched| fetched.pages_per_second));
        }
    }
    Ok(at(confident(rows_of(&name, "requests/s", &runs), &runs), loss_percent.into()).collect())
}

/// Runs all ways at a time, pair by pair, each pair with a seed of its own; the payload in Mbit/s.
fn at_once(tracks: &mut [Track], what: &str, pairs: u32, hop: Setting, load: Load) -> Result<Runs, Failure> {
    let mut runs = Runs::new();
    for pair in 1..=pairs {
        eprintln!("ringwall-lab: {what}, pair {pair} of {pairs}");
        let hop = Setting { seed: pair.into(), ..hop };
        let found: Vec<_> = thread::scope(|scope| {
            let started: Vec<_> = tracks
                .iter_mut()
                .map(|track| (track.way, scope.spawn(move || twice(what, || fetch(track, hop, &load)))))
                .collect();
            started.into_iter().map(|(way, run)| (way, run.join())).collect()
        });
        for (way, outcome) in found {
            let fetched = outcome.unwrap_or_else(|cause| std::panic::resume_unwind(cause))?;
            runs.entry(way).or_default().push(fetched.map(|fetched| fetched.goodput_mbit));
        }
    }
    Ok(runs)
}

/// The clients are on the trusted side, so that the pages are what is retained (the paper's section III-D).
fn fetch(track: &mut Track, setting: Setting, load: &Load) -> Result<Fetched, Failure> {
    if let Some(hop) = &mut track.hop {
        hop.restart(setting)?;
    }
    web::fetch(&Ends { server: &track.untrusted, clients: &track.trusted, proxy: None }, load)
}

/// Adds the 99 % confidence interval of the mean that the paper draws.
fn confident(rows: Vec<Row>, runs: &Runs) -> Vec<Row> {
    let interval = |way: Way| runs.get(&way).and_then(|series| half_interval(&present(series)));
    let of = |row: &Row| runs.keys().copied().find(|way| row.row.ends_with(&way.suffix()) && *way != Way::Scrubber);
    rows.into_iter()
        .map(|row| {
            let half = interval(of(&row).unwrap_or(Way::Scrubber));
            row.with_stat("confidence_99", half)
        })
        .collect()
}

/// Half the width of the 99 % confidence interval of the mean.
fn half_interval(samples: &[f64]) -> Option<f64> {
    let summary = Summary::of(samples)?;
    let factor = STUDENT.get(samples.len().checked_sub(2)?).copied().unwrap_or(NORMAL);
    Some(factor * summary.deviation / (samples.len() as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R: `qt(.995, 4) * sd(c(8,9,10,11,12)) / sqrt(5)` is 3.2557.
    #[test]
    fn a_confidence_interval_agrees_with_r() {
        let half = half_interval(&[8.0, 9.0, 10.0, 11.0, 12.0]).unwrap();
        assert!((half - 3.2557).abs() < 1e-3, "{half}");
        assert_eq!(half_interval(&[1.0]), None);
    }
}
