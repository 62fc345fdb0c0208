//! Table 2 of the paper: the first ping between strangers, and what the cryptography on its way costs.

use std::collections::BTreeMap;
use std::time::Duration;

use super::echo::Pinger;
use super::mode::NAME;
use super::mode::{Arena, Mode, Track};
use super::row::Row;
use super::stats::Series;
use super::{Schedule, cpu, paper, twice, work};
use crate::failure::Failure;

/// First pings per pair and mode: single events scatter more than series.
const ROUNDS: u32 = 3;

/// The cryptographic operations that a first ping waits for, in the words of `ringwall bench-crypto`, and how many of
/// each. Both daemons are new, so the responder cannot judge the request's age and challenges it: the initiator signs
/// its request twice; the responder checks certificate and signature, agrees, derives and signs its reply; the initiator
/// checks that, agrees and derives. Each of the four messages gets a site tag and has it checked. Ephemeral keys are made
/// ahead, as in the paper.
const CRITICAL_PATH: [(&str, u32); 6] =
    [("sign", 3), ("certificate_verify", 2), ("verify", 2), ("agree", 2), ("derive", 2), ("site_tag", 8)];

/// What is done ahead of it: a pair of ephemeral keys.
const AHEAD: &str = "key_pair";

/// Everything seen, one entry per round, in microseconds.
#[derive(Default)]
struct Found {
    pings: BTreeMap<Mode, Series>,
    steps: BTreeMap<&'static str, Series>,
}

/// Pings strangers through the plain path, the null bump and the encrypting daemon in turn.
///
/// # Errors
/// The lab is interrupted.
pub fn measure(arena: &mut Arena, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let mut found = Found::default();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: first pings, pair {} of {}", pair + 1, schedule.pairs);
        time_steps(arena, &mut found)?;
        for _ in 0..ROUNDS {
            for track in arena.tracks.iter_mut().filter(|track| track.mode != Mode::Authenticated) {
                let time = twice(&format!("first ping, {}", track.mode.name()), || first(track))?;
                found.pings.entry(track.mode).or_default().push(time);
            }
        }
    }
    Ok(found.rows())
}

/// The first ping of two hosts that have no association and no neighbour entry, in microseconds.
///
/// # Errors
/// A daemon does not start again, or nobody answers.
pub fn first(track: &mut Track) -> Result<f64, Failure> {
    track.estrange()?;
    let mut pinger = Pinger::open(&track.a, track.b.ip)?;
    cpu::settle()?;
    pinger.once().map(microseconds)
}

/// Has the program time its operations, once per pair, and counts that for each round of the pair.
fn time_steps(arena: &Arena, found: &mut Found) -> Result<(), Failure> {
    let (Some(site), Some(track)) = (&arena.site, arena.track(Mode::Encrypted)) else { return Ok(()) };
    cpu::settle()?;
    let measured = twice("the steps of a handshake", || work::time_operations(site, &track.a))?.unwrap_or_default();
    for operation in CRITICAL_PATH.map(|(operation, _)| operation).into_iter().chain([AHEAD]) {
        let time = measured.iter().find(|(name, _)| name == operation).map(|(_, time)| microseconds(*time));
        found.steps.entry(operation).or_default().extend((0..ROUNDS).map(|_| time));
    }
    Ok(())
}

/// The time in microseconds.
pub fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

impl Found {
    fn rows(&self) -> Vec<Row> {
        let pings = Mode::ALL.iter().filter_map(|&mode| self.ping(mode));
        let steps = CRITICAL_PATH.iter().filter_map(|(operation, count)| self.step(operation, *count));
        let ahead = self.step(AHEAD, 0);
        pings.chain(steps).chain(ahead).chain(self.cryptography_row()).chain(self.overhead()).collect()
    }

    fn ping(&self, mode: Mode) -> Option<Row> {
        let ours = self.pings.get(&mode)?;
        let mut row = Row::new(NAME, format!("first_ping/{}", mode.name()), "us", ours)?;
        if let Some(plain) = self.pings.get(&Mode::Plain) {
            row = row.against_plain(ours, plain);
        }
        if let Some(null) = self.pings.get(&Mode::Null).filter(|_| mode != Mode::Plain) {
            row = row.against_null(ours, null);
        }
        let paper_ratio = (mode == Mode::Encrypted).then_some(paper::FIRST_PING_RATIO);
        Some(row.with_paper(paper::first_ping_us(mode)).with_stat("paper_ratio", paper_ratio))
    }

    /// One operation; those that are done ahead are on the critical path no time.
    fn step(&self, operation: &str, count: u32) -> Option<Row> {
        let row = Row::new(NAME, format!("first_ping/step/{operation}"), "us", self.steps.get(operation)?)?;
        Some(row.with_paper(paper::step_us(operation)).with_stat("on_critical_path", Some(f64::from(count))))
    }

    /// The sum of the critical path; missing in a round in which one of its operations is.
    fn cryptography(&self) -> Series {
        let on_path = CRITICAL_PATH.iter().filter_map(|(operation, _)| self.steps.get(operation));
        let rounds = on_path.map(Vec::len).min().unwrap_or(0);
        let sum = |round: usize| {
            let costs = CRITICAL_PATH.iter().map(|(operation, count)| {
                let time = self.steps.get(operation)?.get(round).copied().flatten()?;
                Some(time * f64::from(*count))
            });
            costs.sum::<Option<f64>>()
        };
        (0..rounds).map(sum).collect()
    }

    fn cryptography_row(&self) -> Option<Row> {
        Row::new(NAME, "first_ping/cryptography", "us", &self.cryptography())
    }

    /// What a handshake adds to the null bump's first ping, over what its cryptography costs.
    fn overhead(&self) -> Option<Row> {
        let (encrypted, null) = (self.pings.get(&Mode::Encrypted)?, self.pings.get(&Mode::Null)?);
        let rounds = encrypted.iter().zip(null).zip(self.cryptography());
        let shares = rounds.map(|((encrypted, null), cost)| Some(((*encrypted)? - (*null)?) / cost?)).collect();
        Row::new(NAME, "first_ping/overhead", "ratio", &shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(sign: Option<f64>) -> Found {
        let mut found = Found::default();
        for (operation, _) in CRITICAL_PATH {
            found.steps.insert(operation, vec![Some(10.0), sign.filter(|_| operation == "sign").or(Some(10.0))]);
        }
        if sign.is_none() {
            found.steps.insert("sign", vec![Some(10.0), None]);
        }
        found.pings.insert(Mode::Null, vec![Some(100.0), Some(100.0)]);
        found.pings.insert(Mode::Encrypted, vec![Some(250.0), Some(300.0)]);
        found
    }

    #[test]
    fn overhead_is_what_the_handshake_adds_over_its_cryptography() {
        let overhead = found(Some(20.0)).overhead().unwrap();
        // 19 operations of 10 us are 190; three of 20 among them make 220. 150 / 190 = 0.789 and 200 / 220 = 0.909.
        assert_eq!((overhead.runs, overhead.q1 < overhead.q3), (2, true));
        assert!((overhead.median - 0.849_3).abs() < 1e-3, "{}", overhead.median);
    }

    #[test]
    fn a_round_without_an_operation_does_not_count() {
        assert_eq!(found(None).cryptography(), [Some(190.0), None]);
        assert_eq!(found(None).overhead().unwrap().runs, 1);
    }
}
