//! `bench cll`: the parts in turn, all on the same hosts.

use std::path::Path;

use super::mode::{Arena, Mode};
use super::row::Row;
use super::{Part, Schedule, broadcast, first_ping, is_wanted, round_trip, stream};
use crate::cleanup::Run;
use crate::failure::Failure;

/// The experiment's name in its rows.
pub const NAME: &str = "cll";

/// Measures the parts in `only`, or all; returns their rows.
///
/// # Errors
/// The plain way does not work, or the lab is interrupted.
pub fn run(run: &Run, program: Option<&Path>, schedule: Schedule, only: &[Part]) -> Result<Vec<Row>, Failure> {
    let wanted = |part| is_wanted(only, &part);
    let mut rows = if wanted(Part::Broadcast) { broadcast::measure(schedule)? } else { Vec::new() };
    if only == [Part::Broadcast] {
        return Ok(rows);
    }
    let mut arena = Arena::open(run, &Mode::ALL, program)?;
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
    Ok(rows)
}
