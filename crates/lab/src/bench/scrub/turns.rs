//! Runs in turns on all ways, and the rows that come of them.

use std::collections::BTreeMap;
use std::path::Path;

use super::NAME;
use super::track::{Track, Way};
use crate::bench::row::Row;
use crate::bench::stats::Series;
use crate::bench::{Schedule, cpu, twice};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::process;

/// All runs of one quantity: for each way one per pair, missing where it failed.
pub type Runs = BTreeMap<Way, Series>;

/// Opens `ways`. What a machine cannot do is said by name: without the program under test what has no gateway is there, without
/// Squid all but the proxy.
///
/// # Errors
/// A way does not work.
pub fn open(run: &Run, ways: &[Way], program: Option<&Path>) -> Result<Vec<Track>, Failure> {
    let mut tracks = Vec::new();
    for &way in ways {
        if way == Way::Squid && !process::installed("squid") {
            eprintln!("ringwall-lab: SKIPPED the rows of squid: install Debian's package squid");
        } else if program.is_some() || !way.has_gateway() {
            tracks.extend(unless_too_old(Track::open(run, way, program)?)?);
        }
    }
    Ok(tracks)
}

/// The track, unless its kernel cannot carry what it should: that is said by name.
///
/// # Errors
/// The gateway does not answer.
pub fn unless_too_old(track: Track) -> Result<Option<Track>, Failure> {
    let Some(why) = track.is_not_carried()? else { return Ok(Some(track)) };
    eprintln!("ringwall-lab: SKIPPED the rows of carried segments: {why}");
    Ok(None)
}

/// Does `measure` on every track, pair by pair.
///
/// # Errors
/// The lab is interrupted.
pub fn in_turns(
    tracks: &[Track],
    schedule: Schedule,
    what: &str,
    measure: impl Fn(&Track) -> Result<f64, Failure>,
) -> Result<Runs, Failure> {
    samples_in_turns(tracks, schedule, what, 1, |track| Ok(vec![measure(track)?]))
}

/// As [`in_turns`], where one run makes `count` samples that all count.
///
/// # Errors
/// As there.
pub fn samples_in_turns(
    tracks: &[Track],
    schedule: Schedule,
    what: &str,
    count: usize,
    measure: impl Fn(&Track) -> Result<Vec<f64>, Failure>,
) -> Result<Runs, Failure> {
    let mut runs = Runs::new();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: {what}, pair {} of {}", pair + 1, schedule.pairs);
        for track in tracks {
            cpu::settle()?;
            let found = twice(&format!("{what}{}", track.way.suffix()), || measure(track))?;
            let mut samples: Series = found.unwrap_or_default().into_iter().map(Some).collect();
            samples.resize(count, None);
            runs.entry(track.way).or_default().extend(samples);
        }
    }
    Ok(runs)
}

/// A row for each way; what has a gateway is compared with the bridge and the null bump.
pub fn rows_of(name: &str, unit: &'static str, runs: &Runs) -> Vec<Row> {
    let empty = Series::new();
    let (plain, null) = (runs.get(&Way::Bridge).unwrap_or(&empty), runs.get(&Way::Null).unwrap_or(&empty));
    let row = |(way, series): (&Way, &Series)| {
        let row = Row::new(NAME, format!("{name}{}", way.suffix()), unit, series)?.against_plain(series, plain);
        Some(if way.is_ours() { row.against_null(series, null) } else { row })
    };
    runs.iter().filter_map(row).collect()
}

/// Notes where each row stands in a figure: on which line, and at which `x`.
pub fn at(rows: Vec<Row>, x: f64) -> impl Iterator<Item = Row> {
    rows.into_iter().map(move |row| row.with_stat("x", Some(x)))
}
