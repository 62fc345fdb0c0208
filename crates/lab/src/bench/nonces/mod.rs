//! `bench nonces`: what forged data frames take from honest ones, layer by layer (Touch and Yang, "Reducing the Impact of DoS
//! Attacks on Endpoint IP Security", section 3), and what a nonce costs.
//!
//! - `stage.rs`: a receiver that has a processor for itself, receive path included, with two peers and an attacker
//! - `stream.rs`: the honest stream; `flood.rs`: the forged frames
//! - `functions.rs`: the nonces alone; `associations.rs`: the checks in front of the tag with very many associations
//! - `saturation`: figures 1 to 5, a stream that keeps its receiver busy; `peer.rs`: who seals it ahead; `message.rs`: of what
//! - `handshakes`: floods of requests for handshakes; `floods`: of frames to all, of ARP and of questions to a key distributor
//! - `soak.rs`: one flood after the other, for long; `gates.rs`: what the layers must leave
//! - `strongswan`: the same on strongSwan's tunnels, bare and behind the shield
//! - `macs`: figures 7 to 10, algorithms for authentication

mod associations;
mod books;
mod flood;
mod floods;
mod functions;
mod gates;
mod handshakes;
mod macs;
mod message;
mod peer;
mod placement;
mod saturation;
mod soak;
mod stage;
mod starting;
mod stream;
mod strongswan;

use std::path::Path;

use clap::ValueEnum;
use shield::{Hook, Layers};

use super::row::Row;
use super::stats::{Series, median, present};
use super::{Found, Schedule, is_wanted, measure_parts, plot, twice};
use crate::cleanup::Run;
use crate::failure::Failure;
use flood::{Attack, Pace};
pub use gates::gates;
use placement::Order;
pub use placement::Receive;
use stage::{Measured, Stage};

/// The experiment's name in its rows.
pub const NAME: &str = "nonces";

/// A part of `bench nonces`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum NoncesPart {
    /// The functions alone, and the checks in front of a tag with one association and with 65,536, in nanoseconds.
    Functions,
    /// A stream between two hosts of CLL while forged frames arrive.
    Cll,
    /// Figures 1 to 3: what a receiver can take, over the size of messages, in clear and with each suite.
    Streams,
    /// Figures 4 and 5: what is left of that beside a second valid stream and beside forged frames.
    Beside,
    /// What floods of handshakes take from a stream and from honest handshakes.
    Handshakes,
    /// Whom a host answers that was started anew, under recorded requests and under many hosts'
    /// own.
    Restarted,
    /// A tunnel of strongSwan, bare and behind the shield: forged packets of ESP, floods of IKE, and rekeying.
    #[value(name = "strongswan")]
    StrongSwan,
    /// What floods of frames to all, of ARP and of questions to a key distributor take from honest traffic.
    Floods,
    /// Figures 7 to 10: clocks for each byte that is authenticated.
    Macs,
}

impl NoncesPart {
    /// Whether its receiver can come first by itself, see [`Order::First`], or there is none.
    fn knows_first(self) -> bool {
        !matches!(self, NoncesPart::Streams | NoncesPart::Beside | NoncesPart::Floods)
    }
}

/// Measures the parts in `only`, or all; returns their rows. Without the program only the functions and algorithms are there.
///
/// # Errors
/// The hosts cannot be set up, or the lab is interrupted.
pub fn run(
    run: &Run,
    program: Option<&Path>,
    schedule: Schedule,
    only: &[NoncesPart],
    (receive, hook): (Receive, Hook),
) -> Result<Vec<Row>, Failure> {
    check_first(only, receive)?;
    check_sealed(receive.sealed && only != [NoncesPart::StrongSwan])?;
    let mut rows = Vec::new();
    if is_wanted(only, &NoncesPart::Functions) {
        rows.extend(functions::measure(schedule));
        rows.extend(associations::measure(schedule));
    }
    if is_wanted(only, &NoncesPart::Macs) {
        rows.extend(macs::measure(run, schedule)?);
    }
    if let Some(program) = program {
        let found = between_hosts(run, program, schedule, only, (receive, hook))?;
        let moderation_us = receive.moderation.as_micros() as f64;
        let noted = |row: Row| {
            row.with_note("receive_path", receive.order.word()).with_stat("moderation_us", Some(moderation_us))
        };
        rows.extend(found.into_iter().map(noted));
    }
    Ok(rows)
}

/// Parts whose receiver cannot come first are refused before anything is measured.
fn check_first(only: &[NoncesPart], receive: Receive) -> Result<(), Failure> {
    if receive.order == Order::First && (only.is_empty() || !only.iter().all(|part| part.knows_first())) {
        let usage = "--receive first is for --only cll,handshakes,strongswan and for --soak";
        return Err(Failure::Usage(usage.to_owned()));
    }
    Ok(())
}

/// Where no stream can be sealed ahead, that is refused before anything is measured.
fn check_sealed(in_vain: bool) -> Result<(), Failure> {
    if in_vain { Err(Failure::Usage("--sealed is for --only strongswan".to_owned())) } else { Ok(()) }
}

/// As [`run`] for `minutes` of floods in turn.
///
/// # Errors
/// As [`run`], or there is no program, or the receiver's books do not add up.
pub fn soak(run: &Run, program: Option<&Path>, minutes: u32, way: (Receive, Hook)) -> Result<Vec<Row>, Failure> {
    check_sealed(way.0.sealed)?;
    let program = program.ok_or_else(|| Failure::MissingTool("ringwall".to_owned()))?;
    soak::measure(run, program, minutes, way)
}

fn between_hosts(
    run: &Run,
    program: &Path,
    schedule: Schedule,
    only: &[NoncesPart],
    (receive, hook): (Receive, Hook),
) -> Found {
    let parts: [(NoncesPart, &dyn Fn() -> Found); 7] = [
        (NoncesPart::Cll, &|| {
            let rows = Layers::ALL.map(|layers| under(run, program, (layers, receive, hook), schedule));
            Ok(rows.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
        }),
        (NoncesPart::Streams, &|| saturation::streams(run, program, schedule, receive)),
        (NoncesPart::Beside, &|| saturation::beside(run, program, schedule, receive)),
        (NoncesPart::Handshakes, &|| handshakes::measure(run, program, schedule, (receive, hook))),
        (NoncesPart::Restarted, &|| handshakes::restarted::measure(run, program, schedule, hook)),
        (NoncesPart::StrongSwan, &|| strongswan::measure(run, program, schedule, (receive, hook))),
        (NoncesPart::Floods, &|| floods::measure(run, program, schedule, (receive, hook))),
    ];
    measure_parts(only, &parts)
}

/// Draws what is in `rows` of the paper's figures into `directory`; returns the names of the files.
///
/// # Errors
/// The directory or a file cannot be written.
pub fn draw(rows: &[Row], directory: &Path) -> Result<Vec<String>, Failure> {
    let beside = saturation::figures_beside();
    let mut figures = saturation::figures(&beside);
    figures.extend(macs::FIGURES);
    plot::draw(&figures, rows, directory)
}

/// Every attack at every pace on a receiver with these layers, each beside the stream alone.
fn under(
    run: &Run,
    program: &Path,
    (layers, receive, hook): (Layers, Receive, Hook),
    schedule: Schedule,
) -> Result<Vec<Row>, Failure> {
    let stage = Stage::open(run, program, (layers, hook), receive)?;
    let attacks: Vec<(Attack, Pace)> =
        Attack::ALL.into_iter().flat_map(|attack| Pace::OF_DATA.map(|pace| (attack, pace))).collect();
    let (mut quiet, mut quiet_runs) = (Series::new(), Vec::new());
    let mut found: Vec<Vec<Option<Measured>>> = vec![Vec::new(); attacks.len()];
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: layers {}, pair {} of {}", layers.word(), pair + 1, schedule.pairs);
        let alone = twice("the stream alone", || stage.measure(None, schedule.seconds))?;
        quiet.push(alone.map(|alone| alone.goodput_mbit));
        quiet_runs.push(alone);
        for (&(attack, pace), found) in attacks.iter().zip(&mut found) {
            let what = name(attack, layers, pace);
            found.push(twice(&what, || stage.measure(Some((attack, pace)), schedule.seconds))?);
        }
    }
    let rows = attacks.iter().zip(&found);
    let made = rows.filter_map(|(&(attack, pace), found)| {
        Some(with_costs(row(&name(attack, layers, pace), found, &quiet)?, found, &quiet_runs))
    });
    let alone = row(&format!("cll/alone/layers={}", layers.word()), &quiet_runs, &quiet);
    let hook = if layers == Layers::Kernel { hook.word() } else { "none" };
    Ok(alone.into_iter().chain(made).map(|row| row.with_note("hook", hook)).collect())
}

/// Processor time for a forged frame at the receiver, for which what it worked for the stream alone is subtracted, and at the
/// attacker; and for one of the stream at its sender. Where a flood fills the receiver's processor the first two say what it got, not
/// what it wanted.
fn with_costs(row: Row, found: &[Option<Measured>], quiet: &[Option<Measured>]) -> Row {
    let of = |quantity: fn(&Measured) -> f64| {
        median(&present(&found.iter().map(|one| one.as_ref().map(quantity)).collect::<Series>()))
    };
    let more = |quantity: fn(&Measured) -> f64| {
        let pairs = found.iter().zip(quiet);
        let each = pairs.map(|(ours, alone)| {
            let ours = ours.as_ref()?;
            Some((quantity(ours) - quantity(alone.as_ref()?)) / ours.forged.max(1.0))
        });
        median(&present(&each.collect::<Series>()))
    };
    let row = row.with_stat("daemon_ns_per_forged", more(|one| one.daemon_ns));
    let row = row.with_stat("receive_ns_per_forged", more(|one| one.receive_ns));
    let row = row.with_stat("attacker_ns_per_forged", of(|one| one.sender_ns_per_forged));
    row.with_stat("sender_daemon_ns_per_valid", of(|one| one.sender_ns_per_valid))
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
