//! Tables III to VII of the paper: its fingerprint scrubber beside forwarding, at the paper's 100 Mbit/s and, in the last one, as
//! fast as the machine. Table I is in `replay` and below, table II is the row `bulk/offload`.

use std::time::Duration;

use super::talk::{self, Datagrams};
use super::track::{Track, Way};
use super::turns::{in_turns, rows_of, samples_in_turns};
use crate::bench::Schedule;
use crate::bench::row::Row;
use crate::bench::tcp::Direction;
use crate::failure::Failure;

/// The paper's link.
const LINK_MBIT: u32 = 100;
/// Tables III and IV: forwarding, without and with fragment reassembly.
const PAPER_TCP: [(&str, Direction, [f64; 3]); 2] =
    [("table3", Direction::Forward, [87.06, 86.86, 87.00]), ("table4", Direction::Reverse, [87.06, 86.79, 86.84])];
/// A column of tables V and VI: bytes of a datagram, then what forwarding and the scrubber with fragment reassembly carried of them.
type Column = (usize, [f64; 2]);
/// Tables V and VI.
const PAPER_UDP: [(&str, Direction, [Column; 4]); 2] = [
    (
        "table5",
        Direction::Forward,
        [(64, [14.39, 14.48]), (1472, [89.39, 89.35]), (2048, [92.76, 92.76]), (8192, [90.11, 90.11])],
    ),
    (
        "table6",
        Direction::Reverse,
        [(64, [14.39, 14.40]), (1472, [89.39, 89.37]), (2048, [92.76, 92.76]), (8192, [90.11, 90.12])],
    ),
];
/// Table VII: crossover cable, bridge, scrubber.
const PAPER_GIGABIT: [f64; 3] = [359.13, 333.81, 333.45];
/// Payload of the two rows of table I: the paper's one byte, and a full segment.
const PAYLOADS: [(&str, usize, Option<[f64; 2]>); 2] =
    [("1_byte", 1, Some([8.00, 13.19])), ("full", 1448, Some([8.00, 31.85]))];
/// Echoes in a block of table I, and blocks in a pair.
const ECHOES: usize = 20;
const BLOCKS: u32 = 4;

/// Tables III to VII, on the ways of [`Way::FINGERPRINTS`], each table on those that it has and the null bump.
///
/// # Errors
/// The lab is interrupted, or a rate cannot be set.
pub fn measure(mut tracks: Vec<Track>, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    let runs = in_turns(&tracks, schedule, "table7", |track| stream(track, Direction::Forward, schedule.seconds))?;
    rows.extend(rows_of("table7", "Mbit/s", &runs).into_iter().map(|row| {
        let paper = paper(&row, [Way::Wire, Way::Bridge, Way::FingerprintFragments], PAPER_GIGABIT);
        row.with_paper(paper)
    }));
    tracks.retain(|track| track.way != Way::Wire);
    tracks.iter().try_for_each(|track| track.limit(LINK_MBIT))?;
    for (name, direction, papers) in PAPER_TCP {
        let runs = in_turns(&tracks, schedule, name, |track| stream(track, direction, schedule.seconds))?;
        rows.extend(rows_of(name, "Mbit/s", &runs).into_iter().map(|row| {
            let paper = paper(&row, [Way::Bridge, Way::Fingerprint, Way::FingerprintFragments], papers);
            row.with_paper(paper)
        }));
    }
    tracks.retain(|track| track.way != Way::Fingerprint);
    for (name, direction, sizes) in PAPER_UDP {
        for column in sizes {
            rows.extend(datagrams(&tracks, schedule, (name, direction), column)?);
        }
    }
    Ok(rows)
}

fn stream(track: &Track, direction: Direction, seconds: u32) -> Result<f64, Failure> {
    Ok(track.stream(direction, seconds)?.goodput_mbit)
}

/// One column of table V or VI.
fn datagrams(
    tracks: &[Track],
    schedule: Schedule,
    (table, direction): (&str, Direction),
    (len, papers): Column,
) -> Result<Vec<Row>, Failure> {
    let name = format!("{table}/{len}");
    let flood = Datagrams { direction, len, flows: 1, time: Duration::from_secs(1) };
    let runs = in_turns(tracks, schedule, &name, |track| Ok(talk::datagrams(track, &flood)? * len as f64 * 8e-6))?;
    let rows = rows_of(&name, "Mbit/s", &runs).into_iter();
    Ok(rows
        .map(|row| {
            let paper = paper(&row, [Way::Bridge, Way::FingerprintFragments], papers);
            row.with_paper(paper)
        })
        .collect())
}

/// The paper's value for the way of a row, if it has one.
fn paper<const N: usize>(row: &Row, ways: [Way; N], values: [f64; N]) -> Option<f64> {
    let at = ways.iter().position(|way| row.row.rsplit('/').next() == Some(way.name()))?;
    Some(values[at])
}

/// Table I over the network: round trips of a TCP segment with little and with much data and of an answer of one byte. The paper
/// times the kernel's routine that takes a packet in; its mean is beside the bridge and the scrubber.
///
/// # Errors
/// The lab is interrupted.
pub fn round_trips(tracks: &[Track], schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (name, len, papers) in PAYLOADS {
        let name = format!("table1/{name}");
        let blocks = Schedule { pairs: schedule.pairs * BLOCKS, ..schedule };
        let runs = samples_in_turns(tracks, blocks, &name, ECHOES, |track| talk::segments(track, len, ECHOES))?;
        let [forwarding, scrubbing] = papers.unwrap_or_default();
        rows.extend(rows_of(&name, "us", &runs).into_iter().map(|row| {
            let of_bridge = row.row.ends_with(&Way::Bridge.suffix());
            let of_scrubber = row.row == name;
            row.with_paper(of_bridge.then_some(forwarding).or(of_scrubber.then_some(scrubbing)))
        }));
    }
    Ok(rows)
}
