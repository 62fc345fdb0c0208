//! Tables 1 to 3 of the S-ARP paper as it has them: DSA of 512 and 1024 bits under the paper profile, Ed25519 beside them.
//!
//! Each kind of key has a LAN of its own with two hosts and a distributor, one kind after the other within minutes. As in
//! section 5.2 the first ping is timed 20 times: the ARP caches of both hosts are emptied before each, and for table 2 their
//! key rings, too, by a restart of their daemons. How often was signed and checked on the way is counted, not calculated.

use std::path::Path;
use std::time::Duration;

use super::super::echo::Pinger;
use super::super::row::Row;
use super::super::stats::{Series, median, present};
use super::super::work::{self, Operation};
use super::super::{Schedule, cpu, twice};
use super::{NAME, OPERATIONS, SIGNED_LEN};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::guard::{DISTRIBUTOR, Daemon, PaperKeys, Setting, Site};
use crate::net::{Host, Lan, LanPlan, lan, process};

/// First pings for each kind of key and state of the rings.
const PINGS: usize = 20;
/// A daemon that is ready goes on preparing signatures for as long.
const PREPARE: Duration = Duration::from_millis(300);
/// What is left of an exchange when the ping is back.
const REST: Duration = Duration::from_millis(20);

/// The paper's minimum, maximum, mean and deviation.
type Printed = [f64; 4];

/// What hosts sign with, and what the paper printed about it.
struct Kind {
    name: &'static str,
    keys: Keys,
    /// Table 1, in microseconds: one exponential, a signature with one at hand, a verification.
    operations: Option<[Printed; 3]>,
    /// Tables 2 and 3, in milliseconds; their captions say microseconds, the text of section 5.2 does not.
    pings: Option<[Printed; 2]>,
}

enum Keys {
    /// ARP as it is.
    None,
    Ed25519,
    Dsa(u16),
}

const KINDS: [Kind; 4] = [
    Kind {
        name: "classic",
        keys: Keys::None,
        operations: None,
        pings: Some([[0.6, 0.8, 0.70, 0.05], [0.4, 0.5, 0.46, 0.05]]),
    },
    Kind { name: "ed25519", keys: Keys::Ed25519, operations: None, pings: None },
    Kind {
        name: "dsa-512",
        keys: Keys::Dsa(512),
        operations: Some([[923.0, 1082.0, 982.47, 16.91], [32.0, 58.0, 33.45, 1.53], [1133.0, 1255.0, 1201.46, 15.45]]),
        pings: Some([[17.7, 18.1, 17.86, 0.12], [8.8, 9.3, 8.96, 0.13]]),
    },
    Kind {
        name: "dsa-1024",
        keys: Keys::Dsa(1024),
        operations: Some([
            [2565.0, 2819.0, 2721.67, 38.05],
            [34.0, 59.0, 35.36, 1.50],
            [3204.0, 3458.0, 3346.24, 38.07],
        ]),
        pings: Some([[48.0, 48.8, 48.49, 0.22], [23.6, 24.4, 24.00, 0.20]]),
    },
];

/// The states of the key rings, with the paper's table.
const STATES: [&str; 2] = ["table2/cold", "table3/cached"];

/// Measures the three tables, of which classic ARP needs no program.
///
/// # Errors
/// The plain way does not work, or the lab is interrupted.
pub fn measure(run: &Run, program: Option<&Path>, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let count = if schedule.pairs > 1 { PINGS } else { 3 };
    let mut rows = Vec::new();
    let mut classic = [Series::new(), Series::new()];
    for kind in &KINDS {
        eprintln!("ringwall-lab: the paper's tables, {}", kind.name);
        let Some(mut bench) = twice(kind.name, || Bench::open(run, program, kind))?.flatten() else { continue };
        rows.extend(bench.operations(kind)?);
        let found = bench.pings(count)?;
        if matches!(kind.keys, Keys::None) {
            classic = found.each_ref().map(|state| state.times.clone());
        }
        for (at, state) in found.iter().enumerate() {
            rows.extend(state.row(kind, at, &classic[at]));
        }
    }
    rows.sort_by(|one, other| one.row.split('/').next().cmp(&other.row.split('/').next()));
    Ok(rows)
}

/// A LAN with hosts that have keys of one kind. Daemons go before the LAN.
struct Bench {
    hosts: Vec<Daemon>,
    distributor: Option<Daemon>,
    a: Host,
    b: Host,
    site: Option<Site>,
    lan: Lan,
}

/// First pings with the key rings in one state, and what was signed and checked for each.
#[derive(Default)]
struct State {
    times: Series,
    signatures: Series,
    verifications: Series,
}

impl Bench {
    /// `None` without the program, where it is needed.
    fn open(run: &Run, program: Option<&Path>, kind: &Kind) -> Result<Option<Bench>, Failure> {
        let paper_keys = match (&kind.keys, program) {
            (Keys::Dsa(bits), Some(_)) => Some(PaperKeys::Dsa(*bits)),
            (Keys::Dsa(_) | Keys::Ed25519, None) => return Ok(None),
            _ => None,
        };
        let lan = Lan::create(run, &LanPlan { hosts: vec![DISTRIBUTOR, "a", "b"], ..LanPlan::default() })?;
        let [a, b] = ["a", "b"].map(|name| lan.host(name).cloned());
        let mut bench = Bench { hosts: Vec::new(), distributor: None, a: a?, b: b?, site: None, lan };
        if let (false, Some(program)) = (matches!(kind.keys, Keys::None), program) {
            bench.guard(Site::found_as(run, program, &format!("-{}", kind.name), paper_keys)?, paper_keys.is_some())?;
        }
        bench.lan.acquaint(&bench.a, &bench.b)?;
        Ok(Some(bench))
    }

    fn guard(&mut self, site: Site, paper: bool) -> Result<(), Failure> {
        // The paper's questions are plain.
        let setting = Setting { sarp: true, paper, sarp_lines: "sign_requests = false", ..Setting::default() };
        let start = |host: &Host| -> Result<Daemon, Failure> {
            let mut daemon = site.guard(&self.lan, host, &setting)?;
            daemon.await_ready()?;
            Ok(daemon)
        };
        let distributor = start(self.lan.host(DISTRIBUTOR)?)?;
        self.hosts = vec![start(&self.a)?, start(&self.b)?];
        (self.distributor, self.site) = (Some(distributor), Some(site));
        Ok(())
    }

    /// Table 1: one operation after the other, without a rest.
    fn operations(&self, kind: &Kind) -> Result<Vec<Row>, Failure> {
        let Some(site) = &self.site else { return Ok(Vec::new()) };
        cpu::settle()?;
        let options = ["--runs", OPERATIONS, "--message-len", SIGNED_LEN];
        let found = twice("table 1", || work::time_with(site, &self.a, &options))?.unwrap_or_default();
        // What a modern key lacks is not there.
        let wanted = [("exponential", Some(0)), ("sign", Some(1)), ("verify", Some(2)), ("sign_whole", None)];
        let row = |(name, printed): (&str, Option<usize>)| {
            let operation = found.iter().find(|operation| operation.name == name)?;
            let paper = printed.and_then(|at| Some(kind.operations?[at]));
            Some(timed(
                operation,
                Row::new(NAME, format!("table1/{}/{name}", kind.name), "us", &series(operation))?,
                paper,
            ))
        };
        Ok(wanted.into_iter().filter_map(row).collect())
    }

    /// Tables 2 and 3. The cached case comes right after the cold one.
    fn pings(&mut self, count: usize) -> Result<[State; 2], Failure> {
        let mut found = [State::default(), State::default()];
        for _ in 0..count {
            for (at, state) in found.iter_mut().enumerate() {
                let Some((time, [signed, checked])) = twice("first ping", || self.first(at == 0))? else { continue };
                state.times.push(Some(time));
                state.signatures.push(signed);
                state.verifications.push(checked);
            }
        }
        Ok(found)
    }

    /// Microseconds of a first ping, and what all three machines signed and checked for it.
    fn first(&mut self, cold: bool) -> Result<(f64, [Option<f64>; 2]), Failure> {
        if cold {
            self.hosts.iter_mut().try_for_each(Daemon::restart)?;
            process::pause(PREPARE)?;
        }
        for host in [&self.a, &self.b] {
            host.namespace.ip(&format!("neigh flush dev {}", lan::INTERFACE))?;
        }
        let before = self.counted()?;
        let mut pinger = Pinger::open(&self.a, self.b.ip)?;
        cpu::settle()?;
        std::thread::sleep(REST);
        let time = pinger.once()?;
        std::thread::sleep(REST);
        let after = self.counted()?;
        let spent = |at: usize| self.site.is_some().then(|| after[at].saturating_sub(before[at]) as f64);
        Ok((time.as_secs_f64() * 1e6, [spent(0), spent(1)]))
    }

    fn counted(&self) -> Result<[u64; 2], Failure> {
        let mut sum = [0; 2];
        for daemon in self.hosts.iter().chain(&self.distributor) {
            let [signed, checked] = daemon.signatures()?;
            sum = [sum[0] + signed, sum[1] + checked];
        }
        Ok(sum)
    }
}

impl State {
    fn row(&self, kind: &Kind, at: usize, classic: &Series) -> Option<Row> {
        let mut row = Row::new(NAME, format!("{}/{}", STATES[at], kind.name), "us", &self.times)?;
        if !matches!(kind.keys, Keys::None) {
            row = row.against_plain(&self.times, classic);
        }
        let per_ping = |series: &Series| median(&present(series));
        row = row.with_stat("signatures", per_ping(&self.signatures));
        row = row.with_stat("verifications", per_ping(&self.verifications));
        Some(match kind.pings {
            Some(printed) => with_printed(row, printed[at].map(|milliseconds| milliseconds * 1e3)),
            None => row,
        })
    }
}

fn series(operation: &Operation) -> Series {
    vec![Some(super::median_us(operation))]
}

/// The row of one operation, with its spread as the paper prints it.
fn timed(operation: &Operation, row: Row, paper: Option<Printed>) -> Row {
    let [min, mean, max, deviation] = operation.spread_us;
    let row = row.with_stat("min", Some(min)).with_stat("mean", Some(mean)).with_stat("max", Some(max));
    let row = row.with_stat("deviation", Some(deviation)).with_stat("operations", OPERATIONS.parse().ok());
    paper.map_or(row.clone(), |paper| with_printed(row, paper))
}

fn with_printed(row: Row, [min, max, mean, deviation]: Printed) -> Row {
    let row = row.with_paper(Some(mean)).with_stat("paper_min", Some(min));
    row.with_stat("paper_max", Some(max)).with_stat("paper_deviation", Some(deviation))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 2 of the paper says 48.49 for 1024 bits, in a caption that says microseconds.
    #[test]
    fn rows_stand_beside_the_papers_values_in_one_unit() {
        let kind = KINDS.iter().find(|kind| kind.name == "dsa-1024").unwrap();
        let state = State { times: vec![Some(2000.0), Some(3000.0)], ..State::default() };
        let row = state.row(kind, 0, &vec![Some(100.0), Some(100.0)]).unwrap();
        assert_eq!((row.row.as_str(), row.unit, row.median), ("table2/cold/dsa-1024", "us", 2500.0));
        assert_eq!((row.paper, row.plain, row.ratio), (Some(48_490.0), Some(100.0), Some(25.0)));
        assert_eq!(row.stats["paper_min"], 48_000.0);
    }

    #[test]
    fn an_operation_keeps_its_spread() {
        let operation = Operation {
            name: "sign".to_owned(),
            median: Duration::from_micros(12),
            spread_us: [10.0, 13.0, 20.0, 1.5],
        };
        let row = Row::new(NAME, "x", "us", &series(&operation)).unwrap();
        let row = timed(&operation, row, KINDS[2].operations.map(|printed| printed[1]));
        assert_eq!((row.median, row.paper), (12.0, Some(33.45)));
        assert_eq!(
            [&row.stats["min"], &row.stats["max"], &row.stats["mean"]].map(|one| one.as_f64()),
            [Some(10.0), Some(20.0), Some(13.0)]
        );
    }
}
