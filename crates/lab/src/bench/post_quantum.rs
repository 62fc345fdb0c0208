//! What ML-KEM costs: the first ping between strangers that have it, beside those that do without,
//! and its operations.

use std::collections::BTreeMap;

use super::first_ping::{first, microseconds};
use super::mode::NAME;
use super::mode::{Arena, Mode};
use super::row::Row;
use super::stats::Series;
use super::{Schedule, cpu, twice, work};
use crate::failure::Failure;

/// First pings per pair and mode.
const ROUNDS: u32 = 3;

/// In the words of `ringwall bench-crypto`. The pair is made ahead.
const STEPS: [&str; 3] = ["ml_kem_pair", "ml_kem_encapsulate", "ml_kem_decapsulate"];

/// Everything seen, in microseconds.
#[derive(Default)]
struct Found {
    /// One entry per round.
    pings: BTreeMap<Mode, Series>,
    /// One entry per pair.
    steps: BTreeMap<&'static str, Series>,
}

/// Pings strangers with ML-KEM and without in turn.
///
/// # Errors
/// The lab is interrupted.
pub fn measure(arena: &mut Arena, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let mut found = Found::default();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: first pings with ML-KEM, pair {} of {}", pair + 1, schedule.pairs);
        found.time_steps(arena)?;
        for _ in 0..ROUNDS {
            for track in &mut arena.tracks {
                let time = twice(&format!("first ping, {}", track.mode.name()), || first(track))?;
                found.pings.entry(track.mode).or_default().push(time);
            }
        }
    }
    Ok(found.rows())
}

impl Found {
    fn time_steps(&mut self, arena: &Arena) -> Result<(), Failure> {
        let (Some(site), Some(track)) = (&arena.site, arena.track(Mode::PostQuantum)) else { return Ok(()) };
        cpu::settle()?;
        let measured = twice("the steps of ML-KEM", || work::time_operations(site, &track.a))?.unwrap_or_default();
        for step in STEPS {
            let time = measured.iter().find(|(name, _)| name == step).map(|(_, time)| microseconds(*time));
            self.steps.entry(step).or_default().push(time);
        }
        Ok(())
    }

    fn rows(&self) -> Vec<Row> {
        let none = Series::new();
        let of = |mode| self.pings.get(&mode).unwrap_or(&none);
        let (ours, without) = (of(Mode::PostQuantum), of(Mode::Encrypted));
        let shares: Series = ours.iter().zip(without).map(|(ours, without)| Some((*ours)? / (*without)?)).collect();
        let pings = [
            ("post_quantum/first_ping", "us", ours),
            ("post_quantum/first_ping/without", "us", without),
            ("post_quantum/first_ping/share", "ratio", &shares),
        ];
        let pings = pings.into_iter().filter_map(|(name, unit, series)| Row::new(NAME, name, unit, series));
        let steps = self.steps.iter();
        let steps =
            steps.filter_map(|(step, series)| Row::new(NAME, format!("post_quantum/step/{step}"), "us", series));
        pings.chain(steps).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_taken_round_by_round() {
        let mut found = Found::default();
        found.pings.insert(Mode::PostQuantum, vec![Some(300.0), Some(600.0), None]);
        found.pings.insert(Mode::Encrypted, vec![Some(200.0), Some(400.0), Some(1.0)]);
        let rows = found.rows();
        let share = rows.iter().find(|row| row.row == "post_quantum/first_ping/share").expect("measured");
        assert_eq!((share.median, share.runs, rows.len()), (1.5, 2, 3));
    }
}
