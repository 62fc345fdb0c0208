//! `bench cll`: the parts in turn, all on the same hosts; with `--profile paper` in the paper's own algorithms.

use std::path::Path;

use identity::Profile;

use super::mode::{Arena, Mode};
use super::row::Row;
use super::{
    Found, Part, Schedule, broadcast, compression, convergence, first_ping, is_wanted, lease, measure_parts,
    post_quantum, resumption, rollover, round_trip, stream, table_1,
};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::guard::{PaperKeys, Site};

/// Length of the paper's RSA keys (Table 2).
const RSA_BITS: u16 = 1024;

/// Measures the parts in `only`, or all; returns their rows. Those in the paper's algorithms have names of their own.
///
/// # Errors
/// The plain way does not work, or the lab is interrupted.
pub fn run(
    run: &Run,
    program: Option<&Path>,
    profile: Profile,
    schedule: Schedule,
    only: &[Part],
) -> Result<Vec<Row>, Failure> {
    let mut rows = without_hosts(schedule, only)?;
    if wants_arena(only) {
        rows.extend(in_arena(run, program, profile, schedule, only)?);
    }
    if profile == Profile::Modern {
        rows.extend(on_own_lans(run, program, schedule, only)?);
    }
    Ok(rows)
}

/// Whether a part is wanted that is measured on the hosts of all modes.
fn wants_arena(only: &[Part]) -> bool {
    [Part::Rtt, Part::Tcp, Part::FirstPing].iter().any(|part| is_wanted(only, part))
}

/// What is measured on the hosts of all modes.
fn in_arena(
    run: &Run,
    program: Option<&Path>,
    profile: Profile,
    schedule: Schedule,
    only: &[Part],
) -> Result<Vec<Row>, Failure> {
    let paper_keys = (profile == Profile::Paper).then_some(PaperKeys::Rsa(RSA_BITS));
    let site = program.map(|program| Site::found_as(run, program, "", paper_keys)).transpose()?;
    let mut arena = Arena::open_on(run, &Mode::ALL, site)?;
    let mut found = on_hosts(&mut arena, schedule, only)?;
    if profile == Profile::Paper {
        found.iter_mut().for_each(|row| row.row = format!("paper/{}", row.row));
    }
    Ok(found)
}

/// What is measured on a LAN of its own each: hosts with tickets are no strangers to each other, those that get addresses have none.
fn on_own_lans(run: &Run, program: Option<&Path>, schedule: Schedule, only: &[Part]) -> Found {
    let site = |suffix: &str| program.map(|program| Site::found_as(run, program, suffix, None)).transpose();
    let arena = |modes: &[Mode], suffix: &str| Arena::open_on(run, modes, site(suffix)?);
    let parts: [(Part, &dyn Fn() -> Found); 6] = [
        (Part::Resumption, &|| resumption::measure(&mut arena(&Mode::RESUMPTION, "-resumption")?, schedule)),
        (Part::PostQuantum, &|| post_quantum::measure(&mut arena(&Mode::POST_QUANTUM, "-post-quantum")?, schedule)),
        (Part::Compression, &|| compression::measure(&arena(&Mode::COMPRESSION, "-compression")?, schedule)),
        (Part::Rollover, &|| rollover::measure(&arena(&Mode::ROLLOVER, "-rollover")?, schedule)),
        (Part::Lease, &|| lease::measure(run, site("-lease")?.as_ref(), schedule)),
        (Part::Convergence, &|| convergence::measure(run, site("-convergence")?.as_ref(), schedule.lighter())),
    ];
    measure_parts(only, &parts)
}

/// What this process measures by itself. Table 1 takes minutes, so it is measured only where it is asked for.
fn without_hosts(schedule: Schedule, only: &[Part]) -> Result<Vec<Row>, Failure> {
    let mut rows = if only.contains(&Part::Table1) { table_1::measure(schedule)? } else { Vec::new() };
    if is_wanted(only, &Part::Broadcast) {
        rows.extend(broadcast::measure(schedule)?);
    }
    Ok(rows)
}

fn on_hosts(arena: &mut Arena, schedule: Schedule, only: &[Part]) -> Result<Vec<Row>, Failure> {
    let wanted = |part| is_wanted(only, &part);
    let mut rows = Vec::new();
    if wanted(Part::Rtt) {
        rows.extend(round_trip::measure(arena, schedule)?);
    }
    if wanted(Part::Tcp) {
        rows.extend(stream::measure(arena, schedule)?);
    }
    // Last, because it restarts the daemons.
    if wanted(Part::FirstPing) {
        rows.extend(first_ping::measure(arena, schedule)?);
    }
    Ok(rows)
}
