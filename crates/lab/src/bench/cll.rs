//! `bench cll`: the parts in turn, all on the same hosts.

use std::path::Path;

use super::mode::{Arena, Mode};
use super::row::Row;
use super::{Part, Schedule, first_ping, is_wanted, resumption, round_trip, stream};
use crate::cleanup::Run;
use crate::failure::Failure;

/// The experiment's name in its rows.
pub const NAME: &str = "cll";

/// Measures the parts in `only`, or all; returns their rows.
///
/// # Errors
/// The plain way does not work, or the lab is interrupted.
pub fn run(run: &Run, program: Option<&Path>, schedule: Schedule, only: &[Part]) -> Result<Vec<Row>, Failure> {
    let mut arena = Arena::open(run, &Mode::ALL, program)?;
    let wanted = |part| is_wanted(only, &part);
    let mut rows = Vec::new();
    if wanted(Part::Rtt) {
        rows.extend(round_trip::measure(&arena, schedule)?);
    }
    if wanted(Part::Tcp) {
        rows.extend(stream::measure(&arena, schedule)?);
    }
    // Last, because it restarts the daemons.
    if wanted(Part::FirstPing) {
        rows.extend(first_ping::measure(&mut arena, schedule)?);
    }
    if wanted(Part::Resumption) {
        // On a LAN of its own, because hosts with tickets are no strangers to each other.
        drop(arena);
        let mut arena = Arena::open(run, &Mode::RESUMPTION, program)?;
        rows.extend(resumption::measure(&mut arena, schedule)?);
    }
    Ok(rows)
}
