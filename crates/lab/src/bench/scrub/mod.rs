//! `bench scrub`: the gateway beside a cable, the kernel's bridge, the null bump between the same ports, and Squid; tables I to VII
//! and figures 5 to 7 of the paper.
//!
//! Bulk goes from the untrusted to the trusted host, because that half is scrubbed and its data is retained; the other direction
//! is shown beside it. In the rows `plain` is the bridge. Record 0023 says what each ratio is.

mod bulk;
mod flood;
mod forge;
mod hop;
mod loss;
mod memory;
mod pages;
mod replay;
mod tables;
mod talk;
mod track;
mod turns;
mod vxlan;
mod web;

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use self::talk::Datagrams;
use self::track::{Track, Way};
use self::turns::{in_turns, open, rows_of};
use super::gate::{Bound, Gate, MINUS_NULL, Quantity};
use super::plot::Figure;
use super::row::Row;
use super::stats::{median, paired};
use super::{Found, Schedule, is_wanted, measure_parts};
use crate::cleanup::Run;
use crate::failure::Failure;

/// The experiment's name in its rows.
const NAME: &str = "scrub";
/// Echoes in a block, and blocks in a pair.
const ECHOES: usize = 10;
const BLOCKS: u32 = 10;
/// Flows that are many: more than fit into the caches of a processor together with their frames.
const MANY_FLOWS: usize = 4096;

/// A part of `bench scrub`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ScrubPart {
    /// TCP throughput with and without offloads; table II.
    Bulk,
    /// TCP throughput in the preset `strict`.
    Strict,
    /// Round trips.
    Latency,
    /// Small datagrams of one flow and of many.
    Udp64,
    /// TCP connections one after the other.
    Connections,
    /// A capture.
    Replay,
    /// TCP in VXLAN.
    Vxlan,
    /// Table I: a segment with little and with much data.
    Table1,
    /// Tables III to VII: the fingerprint scrubber.
    Tables,
    /// Figures 5 and 6: web pages, also by Squid.
    Pages,
    /// Lossy lines; figure 7.
    Loss,
    /// Idle connections.
    Memory,
    /// Streams under floods.
    Flood,
}

/// What must hold, each with the part that measures its row.
pub const GATES: [(ScrubPart, Gate); 14] = [
    (ScrubPart::Bulk, Gate::on("bulk/offload", Quantity::VersusNull, Bound::AtLeast(0.88))),
    (ScrubPart::Bulk, Gate::on("bulk/no_offload", Quantity::VersusNull, Bound::AtLeast(0.88))),
    (ScrubPart::Udp64, Gate::on("udp64", Quantity::VersusNull, Bound::AtLeast(0.9))),
    (ScrubPart::Udp64, Gate::on("udp64_many", Quantity::VersusNull, Bound::AtLeast(0.9))),
    (ScrubPart::Connections, Gate::on("connections_per_second", Quantity::VersusNull, Bound::AtLeast(0.85))),
    (ScrubPart::Latency, Gate::on("latency", Quantity::MinusNull, Bound::AtMost(8.0))),
    (ScrubPart::Vxlan, Gate::on("vxlan", Quantity::VersusPlain, Bound::AtLeast(0.5))),
    (ScrubPart::Loss, Gate::on("loss/1pct", Quantity::VersusPlain, Bound::AtLeast(0.95))),
    (ScrubPart::Loss, Gate::on("loss/5pct", Quantity::VersusPlain, Bound::AtLeast(0.95))),
    (ScrubPart::Loss, Gate::on("loss/10pct", Quantity::VersusPlain, Bound::AtLeast(0.95))),
    (ScrubPart::Memory, Gate::on("bytes_per_idle_connection", Quantity::Median, Bound::AtMost(256.0))),
    (ScrubPart::Memory, Gate::on("connections_held", Quantity::Median, Bound::AtLeast(1e6))),
    (ScrubPart::Flood, Gate::on("flood/syn", Quantity::VersusPlain, Bound::AtLeast(0.9))),
    (ScrubPart::Flood, Gate::on("flood/fragments", Quantity::VersusPlain, Bound::AtLeast(0.9))),
];

/// What is drawn, from the rows whose names begin so.
pub const FIGURES: [Figure<'static>; 3] = [
    Figure {
        name: "figure5",
        rows: "figure5",
        title: "Throughput over the size of the page",
        x: "page, bytes",
        y: "Mbit/s",
        is_logarithmic: true,
        is_logarithmic_up: false,
    },
    Figure {
        name: "figure6",
        rows: "figure6",
        title: "Connections over simultaneous clients",
        x: "clients",
        y: "connections/s",
        is_logarithmic: true,
        is_logarithmic_up: false,
    },
    Figure {
        name: "figure7",
        rows: "figure7",
        title: "Requests over loss",
        x: "loss each way, percent",
        y: "requests/s",
        is_logarithmic: false,
        is_logarithmic_up: false,
    },
];

/// Measures the parts in `only`, or all; returns their rows.
///
/// # Errors
/// A way does not work, or the lab is interrupted.
pub fn run(run: &Run, program: Option<&Path>, schedule: Schedule, only: &[ScrubPart]) -> Found {
    raise_descriptor_limit();
    let wanted = |part| is_wanted(only, &part);
    let mut rows = between_hosts(run, program, schedule, &wanted)?;
    let on = |ways: &[Way]| open(run, ways, program);
    let ours = |measure: &dyn Fn(&Path) -> Found| program.map_or_else(|| Ok(Vec::new()), measure);
    let parts: [(ScrubPart, &dyn Fn() -> Found); 8] = [
        (ScrubPart::Strict, &|| ours(&|_| bulk::strict(&on(&Way::PRICED)?, schedule.lighter()))),
        (ScrubPart::Tables, &|| tables::measure(on(&Way::FINGERPRINTS)?, schedule.lighter())),
        (ScrubPart::Pages, &|| pages::measure(&on(&Way::PAGES)?, schedule.lighter())),
        (ScrubPart::Loss, &|| loss::measure(run, program, schedule)),
        (ScrubPart::Memory, &|| ours(&|program| memory::measure(run, program, schedule))),
        (ScrubPart::Flood, &|| ours(&|program| flood::measure(run, program, schedule.halved()))),
        (ScrubPart::Table1, &|| ours(&|program| replay::table_1(run, program, schedule))),
        (ScrubPart::Replay, &|| ours(&|program| replay::measure(run, program, schedule))),
    ];
    rows.extend(measure_parts(only, &parts)?);
    Ok(rows)
}

/// The parts on the four usual ways.
fn between_hosts(
    run: &Run,
    program: Option<&Path>,
    schedule: Schedule,
    wanted: &dyn Fn(ScrubPart) -> bool,
) -> Result<Vec<Row>, Failure> {
    type Measure = fn(&[Track], Schedule) -> Result<Vec<Row>, Failure>;
    const PARTS: [(ScrubPart, Measure); 6] = [
        (ScrubPart::Latency, latency),
        (ScrubPart::Table1, |tracks, schedule| tables::round_trips(tracks, schedule.lighter())),
        (ScrubPart::Bulk, bulk::measure),
        (ScrubPart::Udp64, small_datagrams),
        (ScrubPart::Connections, connections),
        (ScrubPart::Vxlan, |tracks, schedule| vxlan::measure(tracks, schedule.halved())),
    ];
    let mut rows = Vec::new();
    if PARTS.iter().any(|(part, _)| wanted(*part)) {
        let tracks = open(run, &Way::USUAL, program)?;
        for (_, measure) in PARTS.iter().filter(|(part, _)| wanted(*part)) {
            rows.extend(measure(&tracks, schedule)?);
        }
    }
    Ok(rows)
}

/// Clients and flows by the hundred need as many descriptors. Where there are no more, opening them says so.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _refused = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

fn small_datagrams(tracks: &[Track], schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let schedule = schedule.shorter();
    let time = Duration::from_secs(schedule.seconds.into());
    let mut rows = Vec::new();
    for (name, flows) in [("udp64", 1), ("udp64_many", MANY_FLOWS)] {
        let flood = Datagrams::small(flows, time);
        let runs = in_turns(tracks, schedule, name, |track| talk::datagrams(track, &flood))?;
        rows.extend(rows_of(name, "frames/s", &runs));
    }
    Ok(rows)
}

fn connections(tracks: &[Track], schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let schedule = schedule.shorter();
    let time = Duration::from_secs(schedule.seconds.into());
    let runs = in_turns(tracks, schedule, "connections", |track| talk::connections(track, time))?;
    Ok(rows_of("connections_per_second", "1/s", &runs))
}

/// Round trips in blocks that take turns, because the machine's speed drifts within a second by more than is looked for.
fn latency(tracks: &[Track], schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let blocks = Schedule { pairs: schedule.pairs * BLOCKS, ..schedule };
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
