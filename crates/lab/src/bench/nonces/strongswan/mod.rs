//! What floods take from tunnels of strongSwan, bare and behind `ringwall shield` (Touch and Yang, sections 3.3 and 6.1).
//!
//! - `hosts.rs`: the hosts with strongSwan on them, and shields in front or none
//! - `forgery.rs`: forged packets of ESP and messages of IKE
//! - `ike.rs`: floods of IKE; `rekey.rs`: associations replaced under the stream; `losses.rs`: where it loses what

mod forgery;
mod hosts;
mod ike;
mod losses;
mod rekey;

use std::path::Path;

use shield::Hook;

use super::flood::Pace;
use super::placement::Receive;
use super::stage::Measured;
use super::{Series, row, with_costs};
use crate::bench::row::Row;
use crate::bench::{Schedule, twice};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::strongswan::Swan;
pub use forgery::Forgery;
pub use hosts::Front;
use hosts::Hosts;
pub use rekey::BY_SHIELDS;

/// How much memory strongSwan and the shield may take in one run and still be called flat: some buffers, and no queue. Bare, strongSwan
/// was seen to take hundreds.
pub const GROWN_MAX_MIB: f64 = 8.0;

/// All rows. Without strongSwan there are none, which is said aloud.
///
/// # Errors
/// The hosts cannot be set up, or the lab is interrupted.
pub fn measure(
    run: &Run,
    program: &Path,
    schedule: Schedule,
    (receive, hook): (Receive, Hook),
) -> Result<Vec<Row>, Failure> {
    if !Swan::is_installed() {
        eprintln!(
            "ringwall-lab: SKIPPED the rows strongswan and shield/rekey: there is no strongSwan (packages strongswan-charon, \
             strongswan-swanctl and its plugins)"
        );
        return Ok(Vec::new());
    }
    let mut rows = Vec::new();
    for front in Front::all(hook) {
        rows.extend(forged_packets(run, program, (front, receive), schedule)?);
    }
    for front in Front::all(hook) {
        rows.extend(ike::measure(run, program, (front, receive), schedule)?);
    }
    rows.extend(rekey::measure(run, program, schedule, (receive, hook))?);
    Ok(rows)
}

/// Every forgery at every pace, each beside the stream alone.
fn forged_packets(
    run: &Run,
    program: &Path,
    (front, receive): (Front, Receive),
    schedule: Schedule,
) -> Result<Vec<Row>, Failure> {
    let hosts = Hosts::open(run, program, front, receive, None)?;
    let layers = hosts.layers()?;
    let attacks: Vec<(Forgery, Pace)> =
        Forgery::ALL.into_iter().flat_map(|forgery| Pace::OF_DATA.map(|pace| (forgery, pace))).collect();
    let (mut quiet, mut quiet_runs) = (Series::new(), Vec::new());
    let mut found: Vec<Vec<Option<Measured>>> = vec![Vec::new(); attacks.len()];
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: strongSwan {}, pair {} of {}", front.name(), pair + 1, schedule.pairs);
        let alone = twice("the stream alone", || hosts.measure(None, schedule.seconds))?;
        quiet.push(alone.map(|alone| alone.goodput_mbit));
        quiet_runs.push(alone);
        for (&(forgery, pace), found) in attacks.iter().zip(&mut found) {
            let attack = || hosts.measure(Some((forgery, pace)), schedule.seconds);
            found.push(twice(&name(forgery, front, pace), attack)?);
        }
    }
    let made = attacks.iter().zip(&found).filter_map(|(&(forgery, pace), found)| {
        Some(with_costs(row(&name(forgery, front, pace), found, &quiet)?, found, &quiet_runs))
    });
    let alone = row(&format!("strongswan/alone/{}", front.name()), &quiet_runs, &quiet);
    let noted = |row: Row| {
        let row = row.with_note("layers", &layers).with_note("hook", front.hook());
        row.with_stat("sealed_ahead", receive.sealed.then_some(1.0))
    };
    Ok(alone.into_iter().chain(made).map(noted).collect())
}

/// The row of this forgery at this pace.
pub fn name(forgery: Forgery, front: Front, pace: Pace) -> String {
    format!("strongswan/{}/{}/{}", forgery.name(), front.name(), pace.name())
}
