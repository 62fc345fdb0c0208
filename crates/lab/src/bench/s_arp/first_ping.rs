//! Tables 2 and 3: the first ping with keys that have to be fetched, and with keys that are there.

use std::collections::BTreeMap;
use std::time::Duration;

use super::super::echo::Pinger;
use super::super::mode::{Arena, Mode, Track};
use super::super::row::Row;
use super::super::stats::Series;
use super::super::work;
use super::super::{Schedule, cpu, twice};
use super::{NAME, SIGNED_LEN};
use crate::failure::Failure;

/// First pings per pair, mode and state of the keys: nine pairs make more than the paper's twenty.
const ROUNDS: u32 = 3;

/// Whether the keys of the two hosts are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Keys {
    Cold,
    Cached,
}

/// What a state of the keys means for a first ping.
struct Case {
    keys: Keys,
    name: &'static str,
    /// The operations that it waits for, in the words of `ringwall bench-crypto`. With cached keys the question is signed and
    /// checked, and so is the answer. With cold keys each host signs a question for the other and an answer, which the other
    /// checks; and each asks the distributor, who checks a tag and signs, and checks that.
    path: &'static [(&'static str, f64)],
    /// The paper's milliseconds for keys of 512 and 1024 bits, and for classic ARP.
    paper_ms: [f64; 3],
}

const CASES: [Case; 2] = [
    Case {
        keys: Keys::Cold,
        name: "cold",
        path: &[("sign", 6.0), ("verify", 4.0), ("request_tag", 2.0), ("request_check", 2.0)],
        paper_ms: [17.86, 48.49, 0.70],
    },
    Case { keys: Keys::Cached, name: "cached", path: &[("sign", 2.0), ("verify", 2.0)], paper_ms: [8.96, 24.00, 0.46] },
];

#[derive(Default)]
struct Found {
    pings: BTreeMap<(Keys, Mode), Series>,
    steps: BTreeMap<String, Series>,
}

/// Pings through every track in turn, with cold keys and with cached ones.
///
/// # Errors
/// The lab is interrupted.
pub fn measure(arena: &mut Arena, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let mut found = Found::default();
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: first pings, pair {} of {}", pair + 1, schedule.pairs);
        time_steps(arena, &mut found)?;
        for _ in 0..ROUNDS {
            for track in &mut arena.tracks {
                for case in &CASES {
                    let time = twice(&format!("first ping, {}", track.mode.name()), || first(track, case.keys))?;
                    found.pings.entry((case.keys, track.mode)).or_default().push(time);
                }
            }
        }
    }
    Ok(found.rows())
}

/// The first ping of two hosts without neighbour entries. With cold keys their daemons are new; the cached case comes right
/// after the cold one.
fn first(track: &mut Track, keys: Keys) -> Result<f64, Failure> {
    match keys {
        Keys::Cold => track.estrange()?,
        Keys::Cached => track.forget_neighbours()?,
    }
    let mut pinger = Pinger::open(&track.a, track.b.ip)?;
    cpu::settle()?;
    // What is left of the caches after a rest is the same for all.
    std::thread::sleep(Duration::from_millis(20));
    Ok(pinger.once()?.as_secs_f64() * 1e6)
}

/// Has the program time its operations as they occur, after a rest, with the distributor's identity, which has all keys.
fn time_steps(arena: &Arena, found: &mut Found) -> Result<(), Failure> {
    let (Some(site), Some(distributor)) = (&arena.site, arena.distributor()?) else { return Ok(()) };
    cpu::settle()?;
    let options = ["--runs", "50", "--rest-ms", "5", "--message-len", SIGNED_LEN];
    let measured =
        twice("the steps of an answer", || work::time_with(site, &distributor, &options))?.unwrap_or_default();
    for name in CASES[0].path.iter().map(|(name, _)| *name) {
        let time = measured.iter().find(|operation| operation.name == name).map(super::median_us);
        found.steps.entry(name.to_owned()).or_default().extend((0..ROUNDS).map(|_| time));
    }
    Ok(())
}

impl Found {
    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for case in &CASES {
            rows.extend(Mode::S_ARP.iter().filter_map(|&mode| self.ping(case, mode)));
            let cryptography = self.cryptography(case);
            rows.extend(Row::new(NAME, format!("first_ping/{}/cryptography", case.name), "us", &cryptography));
            rows.extend(self.overhead(case, &cryptography));
        }
        rows
    }

    fn ping(&self, case: &Case, mode: Mode) -> Option<Row> {
        let ours = self.pings.get(&(case.keys, mode))?;
        let mut row = Row::new(NAME, format!("first_ping/{}/{}", case.name, mode.name()), "us", ours)?;
        if let Some(plain) = self.pings.get(&(case.keys, Mode::Plain)) {
            row = row.against_plain(ours, plain);
        }
        if let Some(null) = self.pings.get(&(case.keys, Mode::Null)).filter(|_| mode != Mode::Plain) {
            row = row.against_null(ours, null);
        }
        let [short, long, classic] = case.paper_ms;
        Some(match mode {
            Mode::Plain => row.with_paper(Some(classic * 1e3)),
            Mode::Sarp => row
                .with_stat("paper_512_bit", Some(short * 1e3))
                .with_stat("paper_1024_bit", Some(long * 1e3))
                .with_stat("paper_ratio_512_bit", Some(short / classic)),
            _ => row,
        })
    }

    /// The sum of the operations on the path; missing in a round in which one of them is.
    fn cryptography(&self, case: &Case) -> Series {
        let rounds = self.steps.values().map(Vec::len).min().unwrap_or(0);
        let sum = |round: usize| {
            let costs =
                case.path.iter().map(|(name, count)| Some(self.steps.get(*name)?.get(round).copied()?? * count));
            costs.sum::<Option<f64>>()
        };
        (0..rounds).map(sum).collect()
    }

    /// What S-ARP adds to the null bump's first ping, over what its cryptography costs.
    fn overhead(&self, case: &Case, cryptography: &Series) -> Option<Row> {
        let (ours, null) = (self.pings.get(&(case.keys, Mode::Sarp))?, self.pings.get(&(case.keys, Mode::Null))?);
        let rounds = ours.iter().zip(null).zip(cryptography);
        let shares = rounds.map(|((ours, null), cost)| Some(((*ours)? - (*null)?) / (*cost)?)).collect();
        Row::new(NAME, format!("first_ping/{}/overhead", case.name), "ratio", &shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overhead_is_what_signing_adds_over_its_cryptography() {
        let mut found = Found::default();
        for (name, _) in CASES[0].path {
            found.steps.insert((*name).to_owned(), vec![Some(10.0)]);
        }
        for case in &CASES {
            found.pings.insert((case.keys, Mode::Null), vec![Some(100.0)]);
            found.pings.insert((case.keys, Mode::Sarp), vec![Some(240.0)]);
        }
        let overhead = |at: usize| found.overhead(&CASES[at], &found.cryptography(&CASES[at])).unwrap().median;
        // Fourteen operations of 10 us with cold keys, four with cached ones.
        assert_eq!((overhead(0), overhead(1)), (1.0, 3.5));
    }
}
