//! Figures 1 to 5 of the paper: what a receiver can take of a stream, over the size of its messages, in clear and with each suite
//! (section 3.1), and what is left of it beside other frames (sections 3.2 and 3.3).
//!
//! Two processors cannot be the paper's three hosts at once. So senders seal ahead, the receiver has a processor for itself with
//! its receive path, and what comes beside the stream comes one for one with it. Trains, by which a daemon hands several
//! frames over at the price of one, are not used: each frame counts for itself. The paper's figure 6 compares IPsec's two modes;
//! a link layer has one.

mod hosts;
mod suites;
mod turn;

use std::path::Path;
use std::time::Duration;

use identity::aead::Suite;
use shield::Layers;

use super::NAME;
use super::placement::Receive;
use crate::bench::plot::Figure;
use crate::bench::row::Row;
use crate::bench::stats::{Series, median, present};
use crate::bench::{Schedule, twice};
use crate::cleanup::Run;
use crate::failure::Failure;
use hosts::{Beside, Extent, Hosts};
use turn::Measured;

/// Bytes of a message in figures 1 to 3: to two sides of an MTU and the paper's longest.
const SIZES: [usize; 8] = [64, 128, 256, 512, 1024, 1400, 4096, 8192];
/// Bytes of a message in figures 4 and 5: one frame each.
const SIZES_BESIDE: [usize; 3] = [64, 512, 1400];
/// With which layers figures 4 and 5 are made.
const LAYERS: [Layers; 2] = [Layers::Kernel, Layers::None];

/// Measures figures 1 to 3.
///
/// # Errors
/// The hosts cannot be set up, or the lab is interrupted.
pub fn streams(run: &Run, program: &Path, schedule: Schedule, receive: Receive) -> Result<Vec<Row>, Failure> {
    let hosts = Hosts::open(run, program, receive, "streams")?;
    let lines = || std::iter::once(None).chain(suites::measured().map(Some));
    let mut found: Vec<(usize, Option<Suite>, Vec<Option<Measured>>)> =
        SIZES.into_iter().flat_map(|size| lines().map(move |suite| (size, suite, Vec::new()))).collect();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: streams, pair {} of {}", pair + 1, schedule.pairs);
        for (size, suite, found) in &mut found {
            let what = format!("{size} bytes, {}", line(*suite));
            found.push(twice(&what, || match suite {
                None => hosts.plain(*size, extent(schedule)),
                Some(suite) => hosts.sealed(Layers::Kernel, *suite, *size, Beside::Nothing, extent(schedule)),
            })?);
        }
    }
    let plain = |size: usize| {
        let of = found.iter().find(|(theirs, suite, _)| *theirs == size && suite.is_none());
        of.map(|(_, _, found)| found.as_slice()).unwrap_or_default()
    };
    Ok(found.iter().flat_map(|(size, suite, found)| stream_rows(*size, line(*suite), found, plain(*size))).collect())
}

fn extent(schedule: Schedule) -> Extent {
    Extent { time: Duration::from_secs(schedule.shorter().seconds.into()), quick: schedule.quick }
}

fn line(suite: Option<Suite>) -> &'static str {
    suite.map_or("plain", Suite::name)
}

fn rates(found: &[Option<Measured>]) -> Series {
    found.iter().map(|one| one.map(|one| one.messages_per_second)).collect()
}

fn in_mbit(rates: &Series, size: usize) -> Series {
    rates.iter().map(|rate| rate.map(|rate| rate * size as f64 * 8.0 / 1e6)).collect()
}

/// A point of figure 1, which is one of figure 2 as well, and one of figure 3.
fn stream_rows(size: usize, line: &str, found: &[Option<Measured>], plain: &[Option<Measured>]) -> Vec<Row> {
    let (rates, plain) = (rates(found), rates(plain));
    let (mbit, plain_mbit) = (in_mbit(&rates, size), in_mbit(&plain, size));
    let throughput = Row::new(NAME, format!("figure1/{size}/{line}"), "Mbit/s", &mbit);
    let messages = Row::new(NAME, format!("figure3/{size}/{line}"), "messages/s", &rates);
    let rows = [
        throughput.map(|row| with_stats(row.against_plain(&mbit, &plain_mbit), found)),
        messages.map(|row| row.against_plain(&rates, &plain)),
    ];
    rows.into_iter().flatten().map(|row| row.with_stat("x", Some(size as f64))).collect()
}

/// What was seen beside the rate.
fn with_stats(row: Row, found: &[Option<Measured>]) -> Row {
    let of = |quantity: fn(&Measured) -> f64| {
        median(&present(&found.iter().map(|one| one.as_ref().map(quantity)).collect::<Series>()))
    };
    let row = row.with_stat("receiver_load", of(|one| one.load)).with_stat("lost", of(|one| one.lost));
    row.with_stat("daemon_ns_per_frame", of(|one| one.daemon_ns))
        .with_stat("receive_ns_per_frame", of(|one| one.receive_ns))
}

/// Where a point of figures 4 and 5 stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    suite: Suite,
    size: usize,
    layers: Layers,
    beside: Beside,
}

impl Place {
    /// Every place; those of the longest messages where only whether it works is to be seen.
    fn all(quick: bool) -> impl Iterator<Item = Place> {
        let from = if quick { SIZES_BESIDE.len() - 1 } else { 0 };
        let sizes =
            suites::measured().flat_map(move |suite| SIZES_BESIDE[from..].iter().map(move |&size| (suite, size)));
        let layers = sizes.flat_map(|(suite, size)| LAYERS.map(|layers| (suite, size, layers)));
        layers.flat_map(|(suite, size, layers)| Beside::ALL.map(|beside| Place { suite, size, layers, beside }))
    }

    fn name(self) -> String {
        let Place { suite, size, layers, beside } = self;
        format!("{}/{size}/{} {}", figure_of(suite), beside.name(), layers.word())
    }
}

/// The figure of a suite.
fn figure_of(suite: Suite) -> String {
    format!("figure4/{}", suite.name())
}

/// Measures figures 4 and 5.
///
/// # Errors
/// As [`streams`].
pub fn beside(run: &Run, program: &Path, schedule: Schedule, receive: Receive) -> Result<Vec<Row>, Failure> {
    let hosts = Hosts::open(run, program, receive, "beside")?;
    let mut found: Vec<(Place, Vec<Option<Measured>>)> =
        Place::all(schedule.quick).map(|place| (place, Vec::new())).collect();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: streams beside others, pair {} of {}", pair + 1, schedule.pairs);
        for (place, found) in &mut found {
            let Place { suite, size, layers, beside } = *place;
            found.push(twice(&place.name(), || hosts.sealed(layers, suite, size, beside, extent(schedule)))?);
        }
    }
    let alone = |place: Place| {
        let alone = Place { beside: Beside::Nothing, ..place };
        found.iter().find(|(other, _)| *other == alone).map(|(_, found)| rates(found)).unwrap_or_default()
    };
    let rows = found.iter().filter_map(|(place, found)| row_beside(*place, found, &alone(*place)));
    Ok(rows.chain(gains(&found)).collect())
}

/// What the layers are worth, over what a suite takes to refuse a forgery: how many times more of a stream is left with them than
/// without, beside forgeries that they tell. The paper expects more of them the more the suite costs (section 3.3, figures 4 and 5).
fn gains(found: &[(Place, Vec<Option<Measured>>)]) -> Vec<Row> {
    let at = |place: Place| found.iter().find(|(other, _)| *other == place).map(|(_, found)| found.as_slice());
    let row = |place: Place| {
        let (with, without) = (at(place)?, at(Place { layers: Layers::None, ..place })?);
        let pairs = rates(with).into_iter().zip(rates(without));
        let gain = pairs.map(|(with, without)| Some(with? / without?)).collect();
        let Place { suite, size, beside, .. } = place;
        let name = format!("gain/{}/{} {size} bytes", suite.name(), beside.name());
        Some(Row::new(NAME, name, "times", &gain)?.with_stat("x", suites::refusal_ns(suite, size)))
    };
    let told = |place: &Place| place.layers == Layers::Kernel && place.beside.is_told_before_the_tag();
    found.iter().map(|(place, _)| *place).filter(told).filter_map(row).collect()
}

/// What is left of a stream; the ratio is to the same stream alone.
fn row_beside(place: Place, found: &[Option<Measured>], alone: &Series) -> Option<Row> {
    let (mbit, alone) = (in_mbit(&rates(found), place.size), in_mbit(alone, place.size));
    let row = Row::new(NAME, place.name(), "Mbit/s", &mbit)?.against_plain(&mbit, &alone);
    Some(with_stats(row, found).with_stat("x", Some(place.size as f64)))
}

/// Names of the rows and titles of figures 4 and 5, one for each suite.
pub fn figures_beside() -> Vec<(String, String)> {
    suites::measured().map(|suite| (figure_of(suite), format!("Beside other frames, {}", suite.name()))).collect()
}

/// Figures 1 to 3, what the layers are worth, and of `beside` those that [`figures_beside`] names.
pub fn figures(beside: &[(String, String)]) -> Vec<Figure<'_>> {
    let throughput = Figure {
        name: "figure1",
        rows: "figure1",
        title: "Streams in clear and sealed",
        x: "message, bytes",
        y: "Mbit/s",
        is_logarithmic: true,
        is_logarithmic_up: false,
    };
    let mut figures = vec![
        throughput,
        Figure { name: "figure2", is_logarithmic_up: true, ..throughput },
        Figure { name: "figure3", rows: "figure3", y: "messages/s", ..throughput },
    ];
    figures.push(Figure {
        name: "gain",
        rows: "gain",
        title: "What the layers are worth",
        x: "a wrong tag, refused, ns",
        y: "times more left of a stream",
        ..throughput
    });
    figures.extend(beside.iter().map(|(rows, title)| Figure { name: rows, rows, title, ..throughput }));
    figures
}

#[cfg(test)]
mod tests {
    use super::super::flood::Attack;
    use super::*;

    #[test]
    fn what_is_left_is_compared_with_the_same_stream_alone() {
        let measured = |rate| Some(Measured { messages_per_second: rate, ..Measured::default() });
        let place = Place { suite: Suite::Aes256Gcm, size: 512, layers: Layers::None, beside: Beside::Valid };
        let row = row_beside(place, &[measured(5e4), None, measured(4e4)], &vec![Some(1e5), Some(1e5), Some(1e5)]);
        let row = row.expect("two runs");
        assert_eq!(row.row, "figure4/aes-256-gcm/512/ok none");
        assert_eq!((row.runs, row.ratio, row.stats["x"].as_f64()), (2, Some(0.45), Some(512.0)));
        assert_eq!(row.median, 184.32, "45,000 messages of 4,096 bits");
    }

    #[test]
    fn the_gain_is_beside_the_same_forgeries_and_over_the_price_of_refusing_one() {
        let measured = |rate| vec![Some(Measured { messages_per_second: rate, ..Measured::default() })];
        let forged = Beside::Forged(Attack::WrongNonce);
        let place = |layers, beside| Place { suite: Suite::Aes256Gcm, size: 512, layers, beside };
        let found = [
            (place(Layers::Kernel, Beside::Nothing), measured(2e5)),
            (place(Layers::Kernel, forged), measured(1.5e5)),
            (place(Layers::None, Beside::Nothing), measured(2e5)),
            (place(Layers::None, forged), measured(1e5)),
        ];
        let rows = gains(&found);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].row, "gain/aes-256-gcm/wrong_nonce 512 bytes");
        assert_eq!(rows[0].median, 1.5);
        assert!(rows[0].stats["x"].as_f64() > Some(0.0), "a price");
    }

    #[test]
    fn every_place_has_a_name_of_its_own_and_a_figure() {
        let mut names: Vec<String> = Place::all(false).map(Place::name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        let figures = figures_beside();
        assert!(names.iter().all(|name| figures.iter().any(|(rows, _)| name.starts_with(&format!("{rows}/")))));
    }
}
