//! Associations that are replaced while a stream runs: what is lost of it bare, and behind shields, which nobody tells of new ones.
//!
//! strongSwan loses datagrams by itself when it is pressed, so each loss is looked for where it can be counted, and what shields must not
//! do is lose any.

use std::path::Path;
use std::time::Duration;

use shield::Hook;

use super::super::NAME;
use super::super::books::busy;
use super::super::placement::Receive;
use super::super::stream::PER_SECOND;
use super::hosts::{Front, Hosts};
use super::losses::Losses;
use crate::bench::row::Row;
use crate::bench::stats::{Series, median};
use crate::bench::{Schedule, twice};
use crate::cleanup::Run;
use crate::failure::Failure;

/// The statistic that says how many datagrams shields have dropped.
pub const BY_SHIELDS: &str = "lost_in_shields";
/// How long an association lives.
const LIFE: Duration = Duration::from_secs(2);
/// How long a stream runs, and how often it sees a new association in that time at the least.
const TIME: Duration = Duration::from_secs(8);
const REPLACED_MIN: u64 = 2;
/// How many datagrams a second streams have, and what that adds to a row's name: as many as in other rows, and so few that nobody is pressed.
const RATES: [(f64, &str); 2] = [(PER_SECOND, ""), (1000.0, "/1k")];

/// What a stream showed.
struct Rekeyed {
    lost: u64,
    sent: u64,
    replaced: u64,
    losses: Losses,
}

/// The rows `strongswan/rekey/bare` and `shield/rekey` at both rates: how many datagrams of a stream were lost, and where.
///
/// # Errors
/// The hosts cannot be set up, or the lab is interrupted.
pub fn measure(
    run: &Run,
    program: &Path,
    schedule: Schedule,
    (receive, hook): (Receive, Hook),
) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for front in [Front::Bare, Front::Shield(hook)] {
        let hosts = Hosts::open(run, program, front, receive, Some(LIFE))?;
        let pairs = schedule.lighter().pairs;
        for (rate, suffix) in RATES {
            let mut found = Vec::new();
            for pair in 0..pairs {
                eprintln!("ringwall-lab: rekeying {}, {rate} a second, run {} of {pairs}", front.name(), pair + 1);
                found.push(twice("rekeying", || rekeyed(&hosts, rate))?);
            }
            let row = row(&format!("{}{suffix}", name(front)), &found);
            rows.extend(row.map(|row| row.with_note("hook", front.hook())));
        }
    }
    Ok(rows)
}

fn name(front: Front) -> &'static str {
    match front {
        Front::Bare => "strongswan/rekey/bare",
        Front::Shield(_) => "shield/rekey",
    }
}

fn row(name: &str, found: &[Option<Rekeyed>]) -> Option<Row> {
    let lost: Series = found.iter().map(|one| one.as_ref().map(|one| one.lost as f64)).collect();
    let of = |quantity: fn(&Rekeyed) -> u64| {
        median(&found.iter().flatten().map(|one| quantity(one) as f64).collect::<Vec<_>>())
    };
    let row = Row::new(NAME, name, "datagrams", &lost)?;
    let row = row.with_stat("sent", of(|one| one.sent)).with_stat("associations", of(|one| one.replaced));
    // One datagram in one run is one too many.
    let by_shields = found.iter().flatten().map(|one| one.losses.shields).max();
    let row = row.with_stat(BY_SHIELDS, by_shields.map(|count| count as f64));
    let row = row.with_stat("lost_before_strongswan", of(|one| one.losses.sender_queue));
    let row = row.with_stat("lost_at_strongswan_socket", of(|one| one.losses.strongswan_socket));
    let row = row.with_stat("lost_at_other_sockets", of(|one| one.losses.other_sockets));
    let row = row.with_stat("lost_elsewhere", of(|one| one.lost.saturating_sub(one.losses.placed())));
    let reasons = found.iter().flatten().flat_map(|one| &one.losses.reasons);
    let said: Vec<String> = reasons.map(|(reason, count)| format!("{reason} {count}")).collect();
    Some(if said.is_empty() { row } else { row.with_note("shields_dropped", &said.join(", ")) })
}

fn rekeyed(hosts: &Hosts, rate: f64) -> Result<Rekeyed, Failure> {
    let (before, opened) = (Losses::look(hosts)?, hosts.opened()?);
    let sample = hosts.stream_alone(rate, TIME)?;
    let replaced = hosts.opened()? - opened;
    if replaced < REPLACED_MIN {
        return Err(busy(&format!("{replaced} new associations in {TIME:?}")));
    }
    let losses = Losses::look(hosts)?.since(&before);
    Ok(Rekeyed { lost: sample.sent - sample.delivered, sent: sample.sent, replaced, losses })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_loss_in_a_shield_in_one_run_is_in_the_row() {
        let run = |lost, shields| {
            let reasons = (shields > 0).then(|| ("shield-spi".to_owned(), shields)).into_iter().collect();
            let losses = Losses { shields, reasons, strongswan_socket: 10, ..Losses::default() };
            Some(Rekeyed { lost, sent: 1000, replaced: 3, losses })
        };
        let row = row("shield/rekey", &[run(10, 0), run(13, 1), run(12, 0), None]).expect("a run");
        let stat = |name: &str| row.stats[name].as_f64();
        assert_eq!((row.median, stat(BY_SHIELDS), stat("lost_elsewhere")), (12.0, Some(1.0), Some(2.0)));
        assert_eq!(row.stats["shields_dropped"], "shield-spi 1");
    }
}
