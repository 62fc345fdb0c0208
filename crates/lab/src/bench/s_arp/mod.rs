//! `bench s-arp`: tables 1 to 3 of the S-ARP paper, TCP beside the plain path, and what a key distributor can bear.
//!
//! The paper's captions give microseconds where its text gives milliseconds; its values are taken as milliseconds.

mod datagrams;
mod distributor;
mod first_ping;
mod load;
mod tables;

pub use distributor::Forger;
pub use load::HOSTS;
pub use load::{Borne, Ends, Load, Parties};

use std::path::Path;

use super::gate::{Bound, Gate, Quantity};
use super::mode::{Arena, Mode};
use super::row::Row;
use super::stats::Series;
use super::tcp::Direction;
use super::work::{self, Operation};
use super::{SarpPart, Schedule, cpu, is_wanted, twice};
use crate::cleanup::Run;
use crate::failure::Failure;

/// The experiment's name in its rows.
const NAME: &str = "s-arp";
/// Length of what a host signs in an answer: ARP, the header of S-ARP and the fraction of a second.
const SIGNED_LEN: &str = "44";
/// Operations in a row of table 1, as in the paper.
const OPERATIONS: &str = "1000";
/// Table 1 of the paper: mean microseconds to sign with precomputed factors and to verify, with keys of 512 and 1024 bits.
const PAPER_SIGN_US: [f64; 2] = [33.45, 35.36];
const PAPER_VERIFY_US: [f64; 2] = [1201.46, 3346.24];

/// What must hold, each with the part that measures its row.
pub const GATES: [(SarpPart, Gate); 6] = [
    (SarpPart::FirstPing, Gate::on("first_ping/cached/overhead", Quantity::Median, Bound::AtMost(1.8))),
    (SarpPart::FirstPing, Gate::on("first_ping/cold/overhead", Quantity::Median, Bound::AtMost(1.8))),
    (SarpPart::Tcp, Gate::on("tcp/unlimited/sarp", Quantity::VersusPlain, Bound::AtLeast(0.97))),
    (SarpPart::Datagrams, Gate::on("cpu/datagram/sarp", Quantity::VersusPlain, Bound::AtMost(1.2))),
    (SarpPart::Akd, Gate::on("akd/share_of_signing_rate", Quantity::Median, Bound::AtLeast(0.8))),
    (SarpPart::Akd, Gate::on("akd/forged_request_per_signature", Quantity::Median, Bound::AtMost(0.1))),
];

/// Measures the parts in `only`, or all; returns their rows.
///
/// # Errors
/// The plain way does not work, or the lab is interrupted.
pub fn run(run: &Run, program: Option<&Path>, schedule: Schedule, only: &[SarpPart]) -> Result<Vec<Row>, Failure> {
    let wanted = |part| is_wanted(only, &part);
    let mut rows = Vec::new();
    if wanted(SarpPart::Tables) {
        rows.extend(tables::measure(run, program, schedule)?);
    }
    if only == [SarpPart::Tables] {
        return Ok(rows);
    }
    let mut arena = Arena::open(run, &Mode::S_ARP, program)?;
    if wanted(SarpPart::Signatures) {
        rows.extend(signatures(&arena)?);
    }
    if wanted(SarpPart::Tcp) {
        rows.extend(streams(&arena, schedule)?);
    }
    if wanted(SarpPart::Datagrams) {
        rows.extend(datagrams::measure(&arena, schedule)?);
    }
    if wanted(SarpPart::Akd) {
        rows.extend(distributor::measure(&mut arena, schedule)?);
    }
    // Last, because it restarts the daemons.
    if wanted(SarpPart::FirstPing) {
        rows.extend(first_ping::measure(&mut arena, schedule)?);
    }
    Ok(rows)
}

/// Table 1: one operation after the other, without a rest.
fn signatures(arena: &Arena) -> Result<Vec<Row>, Failure> {
    let (Some(site), Some(track)) = (&arena.site, arena.track(Mode::Sarp)) else { return Ok(Vec::new()) };
    cpu::settle()?;
    let options = ["--runs", OPERATIONS, "--message-len", SIGNED_LEN];
    let found = twice("table 1", || work::time_with(site, &track.a, &options))?.unwrap_or_default();
    let row = |name: &str, paper: Option<[f64; 2]>| {
        let operation = found.iter().find(|operation| operation.name == name)?;
        let row = Row::new(NAME, format!("signature/ed25519/{name}"), "us", &vec![Some(median_us(operation))])?;
        let [min, mean, max, deviation] = operation.spread_us;
        let row = row.with_stat("min", Some(min)).with_stat("mean", Some(mean)).with_stat("max", Some(max));
        let row = row.with_stat("deviation", Some(deviation)).with_stat("operations", Some(1000.0));
        Some(row.with_stat("paper_512_bit", paper.map(|us| us[0])).with_stat("paper_1024_bit", paper.map(|us| us[1])))
    };
    let rows = [row("sign", Some(PAPER_SIGN_US)), row("verify", Some(PAPER_VERIFY_US)), row("request_tag", None)];
    Ok(rows.into_iter().flatten().collect())
}

fn median_us(operation: &Operation) -> f64 {
    operation.median.as_secs_f64() * 1e6
}

/// One TCP stream as fast as it goes, plain and under S-ARP in turn.
fn streams(arena: &Arena, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let mut found: Vec<(Mode, Series)> = Mode::S_ARP.map(|mode| (mode, Series::new())).to_vec();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: TCP, pair {} of {}", pair + 1, schedule.pairs);
        for track in &arena.tracks {
            let what = format!("TCP, {}", track.mode.name());
            let sample = twice(&what, || track.stream(Direction::Forward, schedule.seconds))?;
            let series = found.iter_mut().find(|(mode, _)| *mode == track.mode);
            if let Some((_, series)) = series {
                series.push(sample.map(|sample| sample.goodput_mbit));
            }
        }
    }
    let plain = found[0].1.clone();
    let row = |(mode, series): &(Mode, Series)| {
        let row = Row::new(NAME, format!("tcp/unlimited/{}", mode.name()), "Mbit/s", series)?;
        Some(row.against_plain(series, &plain))
    };
    Ok(found.iter().filter_map(row).collect())
}
