//! What a ticket saves after a reboot of both hosts, and what a rollover costs.

use std::collections::BTreeMap;
use std::time::Duration;

use super::cll::NAME;
use super::first_ping::{first, microseconds};
use super::mode::{Arena, Mode};
use super::row::Row;
use super::stats::Series;
use super::{Schedule, cpu, twice, work};
use crate::failure::Failure;
use crate::net::process;

/// First pings per pair and mode.
const ROUNDS: u32 = 3;
/// After this a host that has been spoken to has given a ticket, and the other has written it.
const TICKETS_WRITTEN: Duration = Duration::from_secs(4);

/// What one side of a rollover has to work out, in the words of `ringwall bench-crypto`: it signs, judges the other's certificate
/// and signature, agrees and derives.
const ROLLOVER: [&str; 5] = ["sign", "certificate_verify", "verify", "agree", "derive"];

/// Everything seen, one entry per round, in microseconds.
#[derive(Default)]
struct Found {
    pings: BTreeMap<Mode, Series>,
    rollovers: Series,
}

/// Pings hosts whose daemons have just been restarted, with tickets and without.
///
/// # Errors
/// The lab is interrupted.
pub fn measure(arena: &mut Arena, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let mut found = Found::default();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: resumptions, pair {} of {}", pair + 1, schedule.pairs);
        found.rollovers.push(time_rollover(arena)?);
        for _ in 0..ROUNDS {
            process::pause(TICKETS_WRITTEN)?;
            for track in &mut arena.tracks {
                let time = twice(&format!("first ping after a restart, {}", track.mode.name()), || first(track))?;
                found.pings.entry(track.mode).or_default().push(time);
            }
        }
    }
    Ok(found.rows())
}

/// The sum of what one side works out in a rollover; missing where the program does not say.
fn time_rollover(arena: &Arena) -> Result<Option<f64>, Failure> {
    let (Some(site), Some(track)) = (&arena.site, arena.track(Mode::Encrypted)) else { return Ok(None) };
    cpu::settle()?;
    let measured = twice("the steps of a rollover", || work::time_operations(site, &track.a))?.unwrap_or_default();
    Ok(sum(&measured))
}

fn sum(measured: &[(String, Duration)]) -> Option<f64> {
    let time =
        |operation: &str| measured.iter().find(|(name, _)| name == operation).map(|(_, time)| microseconds(*time));
    ROLLOVER.iter().map(|operation| time(operation)).sum()
}

impl Found {
    fn rows(&self) -> Vec<Row> {
        let pings = [(Mode::Resuming, "resumption/first_ping"), (Mode::Encrypted, "resumption/first_ping/handshake")];
        let pings = pings.into_iter().filter_map(|(mode, name)| self.ping(mode, name));
        pings.chain(Row::new(NAME, "rollover/cost", "us", &self.rollovers)).collect()
    }

    fn ping(&self, mode: Mode, name: &str) -> Option<Row> {
        let ours = self.pings.get(&mode)?;
        let mut row = Row::new(NAME, name, "us", ours)?;
        if let Some(plain) = self.pings.get(&Mode::Plain) {
            row = row.against_plain(ours, plain);
        }
        if let Some(null) = self.pings.get(&Mode::Null) {
            row = row.against_null(ours, null);
        }
        Some(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rollover_costs_the_sum_of_its_steps_or_is_not_known() {
        let measured = |steps: &[&str]| -> Vec<(String, Duration)> {
            steps.iter().map(|step| ((*step).to_owned(), Duration::from_micros(10))).collect()
        };
        assert_eq!(sum(&measured(&ROLLOVER)), Some(50.0));
        assert_eq!(sum(&measured(&ROLLOVER[1..])), None);
    }
}
