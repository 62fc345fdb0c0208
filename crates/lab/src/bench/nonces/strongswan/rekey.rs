//! Associations that are replaced while the stream runs: what is lost of it behind shields, which nobody tells of new ones.

use std::path::Path;
use std::time::Duration;

use shield::Hook;

use super::super::NAME;
use super::super::stage::Receive;
use super::hosts::{Front, Hosts, busy};
use crate::bench::row::Row;
use crate::bench::stats::{Series, median};
use crate::bench::{Schedule, twice};
use crate::cleanup::Run;
use crate::failure::Failure;

/// How long an association lives.
const LIFE: Duration = Duration::from_secs(2);
/// How long a stream runs, and how often it sees a new association in that time at the least.
const TIME: Duration = Duration::from_secs(8);
const REPLACED_MIN: u64 = 2;

/// What a stream showed.
struct Rekeyed {
    lost: u64,
    sent: u64,
    replaced: u64,
}

/// The row `shield/rekey`: how many datagrams of a stream were lost.
///
/// # Errors
/// The hosts cannot be set up, or the lab is interrupted.
pub fn measure(
    run: &Run,
    program: &Path,
    schedule: Schedule,
    (receive, hook): (Receive, Hook),
) -> Result<Option<Row>, Failure> {
    let hosts = Hosts::open(run, program, Front::Shield(hook), receive, Some(LIFE))?;
    let mut found = Vec::new();
    for pair in 0..schedule.lighter().pairs {
        eprintln!("ringwall-lab: rekeying, run {} of {}", pair + 1, schedule.lighter().pairs);
        found.push(twice("rekeying", || rekeyed(&hosts))?);
    }
    let lost: Series = found.iter().map(|one| one.as_ref().map(|one| one.lost as f64)).collect();
    let of = |quantity: fn(&Rekeyed) -> u64| {
        median(&found.iter().flatten().map(|one| quantity(one) as f64).collect::<Vec<_>>())
    };
    let row = Row::new(NAME, "shield/rekey", "datagrams", &lost);
    let row = row.map(|row| row.with_note("hook", hook.word()));
    Ok(row.map(|row| row.with_stat("sent", of(|one| one.sent)).with_stat("associations", of(|one| one.replaced))))
}

fn rekeyed(hosts: &Hosts) -> Result<Rekeyed, Failure> {
    let before = hosts.learned()?;
    let sample = hosts.stream_alone(TIME)?;
    let replaced = hosts.learned()? - before;
    if replaced < REPLACED_MIN {
        return Err(busy(&format!("{replaced} new associations in {TIME:?}")));
    }
    Ok(Rekeyed { lost: sample.sent - sample.delivered, sent: sample.sent, replaced })
}
