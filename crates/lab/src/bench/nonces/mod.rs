//! `bench nonces`: what forged data frames take from honest ones, layer by layer (Touch and Yang, "Reducing the Impact of DoS
//! Attacks on Endpoint IP Security", section 3), and what a nonce costs.
//!
//! - `stage.rs`: a receiver that has a processor for itself, receive path included, with two peers and an attacker
//! - `stream.rs`: the honest stream; `flood.rs`: the forged frames
//! - `functions.rs`: the nonces alone

mod flood;
mod functions;
mod stage;
mod stream;

use std::path::Path;

use clap::ValueEnum;
use shield::Layers;

use super::gate::{Bound, Gate, Quantity};
use super::row::Row;
use super::stats::{Series, median, present};
use super::{Schedule, is_wanted, twice};
use crate::cleanup::Run;
use crate::failure::Failure;
use flood::{Attack, Pace};
use stage::{Measured, Stage};

/// The experiment's name in its rows.
pub const NAME: &str = "nonces";

/// A part of `bench nonces`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NoncesPart {
    /// The functions alone, in nanoseconds.
    Functions,
    /// A stream between two hosts of CLL while forged frames arrive.
    Cll,
}

/// A gate on what is left of the stream.
const fn left(row: &'static str, least: f64) -> (NoncesPart, Gate) {
    (NoncesPart::Cll, Gate::on(row, Quantity::VersusPlain, Bound::AtLeast(least)))
}

/// What the layers are for.
pub const GATES: [(NoncesPart, Gate); 7] = [
    left("cll/wrong_index/layers=kernel/200k", 0.97),
    left("cll/wrong_index/layers=kernel/max", 0.95),
    left("cll/wrong_nonce/layers=kernel/200k", 0.97),
    left("cll/wrong_nonce/layers=kernel/max", 0.95),
    left("cll/replayed/layers=kernel/200k", 0.97),
    left("cll/replayed/layers=kernel/max", 0.95),
    left("cll/wrong_key/layers=kernel/200k", 0.95),
];

/// Measures the parts in `only`, or all; returns their rows. Without the program only the functions are there.
///
/// # Errors
/// The hosts cannot be set up, or the lab is interrupted.
pub fn run(run: &Run, program: Option<&Path>, schedule: Schedule, only: &[NoncesPart]) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    if is_wanted(only, &NoncesPart::Functions) {
        rows.extend(functions::measure(schedule));
    }
    if let Some(program) = program.filter(|_| is_wanted(only, &NoncesPart::Cll)) {
        for layers in Layers::ALL {
            rows.extend(under(run, program, layers, schedule)?);
        }
    }
    Ok(rows)
}

/// Every attack at every pace on a receiver with these layers, each beside the stream alone.
fn under(run: &Run, program: &Path, layers: Layers, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let stage = Stage::open(run, program, layers)?;
    let attacks: Vec<(Attack, Pace)> =
        Attack::ALL.into_iter().flat_map(|attack| Pace::ALL.map(|pace| (attack, pace))).collect();
    let mut quiet = Series::new();
    let mut found: Vec<Vec<Option<Measured>>> = vec![Vec::new(); attacks.len()];
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: layers {}, pair {} of {}", layers.word(), pair + 1, schedule.pairs);
        let alone = twice("the stream alone", || stage.measure(None, schedule.seconds))?;
        quiet.push(alone.map(|alone| alone.goodput_mbit));
        for (&(attack, pace), found) in attacks.iter().zip(&mut found) {
            let what = name(attack, layers, pace);
            found.push(twice(&what, || stage.measure(Some((attack, pace)), schedule.seconds))?);
        }
    }
    let rows = attacks.iter().zip(&found);
    Ok(rows.filter_map(|(&(attack, pace), found)| row(&name(attack, layers, pace), found, &quiet)).collect())
}

fn name(attack: Attack, layers: Layers, pace: Pace) -> String {
    format!("cll/{}/layers={}/{}", attack.name(), layers.word(), pace.name())
}

/// What is left of the stream, with all that was seen beside it.
fn row(name: &str, found: &[Option<Measured>], quiet: &Series) -> Option<Row> {
    let series =
        |quantity: fn(&Measured) -> f64| found.iter().map(|one| one.as_ref().map(quantity)).collect::<Series>();
    let of = |quantity| median(&present(&series(quantity)));
    let goodput = series(|measured| measured.goodput_mbit);
    let row = Row::new(NAME, name, "Mbit/s", &goodput)?.against_plain(&goodput, quiet);
    let row = row.with_stat("forged_per_second_on_wire", of(|measured| measured.forged_per_second));
    let row = row.with_stat("valid_on_wire", of(|measured| measured.valid_on_wire));
    let row = row.with_stat("delay_median_ms", of(|measured| measured.delay_median_ms));
    let row = row.with_stat("delay_p99_ms", of(|measured| measured.delay_p99_ms));
    let row = row.with_stat("memory_mib", of(|measured| measured.memory_mib));
    Some(row.with_stat("memory_grown_mib", of(|measured| measured.memory_grown_mib)))
}
