//! `bench failover`: two gateways of a pair under thousands of live connections, one of which fails
//! again and again, the two in turn.
//!
//! An outage is the longest time that any of the connections waited for an answer; beside it stands
//! the longest time in which none of them had one.

use std::path::Path;
use std::time::Duration;

use clap::ValueEnum;

use super::Found;
use super::gate::{Bound, Gate, Quantity};
use super::is_wanted;
use super::row::Row;
use super::stats::Series;
use crate::cleanup::Run;
use crate::failover::{Ended, Fault, Outage, Pair, Talks};
use crate::failure::Failure;

const NAME: &str = "failover";
/// Whoever waits for so long is named, so that it is found in a capture.
const LONG_WAIT: Duration = Duration::from_secs(2);

/// What fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailoverPart {
    /// The active gateway's program is killed.
    Kill,
    /// A cable of the active gateway is cut.
    Cable,
    /// The active gateway's machine is gone at once, program, cards and sync link.
    Machine,
    /// An operator hands over.
    Handover,
}

impl FailoverPart {
    fn fault(self) -> Fault {
        match self {
            FailoverPart::Kill => Fault::Kill,
            FailoverPart::Cable => Fault::Cable,
            FailoverPart::Machine => Fault::Machine,
            FailoverPart::Handover => Fault::Handover,
        }
    }
}

/// How often, and under how much.
#[derive(Clone, Debug, clap::Args)]
pub struct Plan {
    /// Failures of each kind.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    runs: u32,
    /// Connections that talk all the time.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    connections: u32,
    /// Milliseconds between two heartbeats of the pair, if not the default of the program.
    #[arg(long, value_name = "MS")]
    heartbeat_ms: Option<u32>,
    /// Measure only these kinds.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<FailoverPart>,
}

impl Plan {
    fn wanted(&self) -> impl Iterator<Item = FailoverPart> {
        FailoverPart::value_variants().iter().copied().filter(|part| is_wanted(&self.only, part))
    }

    /// What must hold of the kinds that are measured.
    pub fn gates(&self) -> Vec<Gate> {
        let of = |part: FailoverPart| {
            let row = |what: &str| format!("{}/{what}", part.fault().word());
            [
                Gate::on_row(row("outage"), Quantity::Statistic("max"), Bound::AtMost(1000.0)),
                Gate::on_row(row("runs_failed"), Quantity::Median, Bound::AtMost(0.0)),
                Gate::on_row(row("connections_lost"), Quantity::Median, Bound::AtMost(0.0)),
                Gate::on_row(row("bytes_wrong"), Quantity::Median, Bound::AtMost(0.0)),
            ]
        };
        self.wanted().flat_map(of).collect()
    }
}

/// Measures; returns the rows. A run that fails ends its kind, and the next one has a pair of its
/// own.
///
/// # Errors
/// The pair does not start, the connections cannot be opened, or the lab is interrupted.
pub fn run(run: &Run, program: &Path, plan: &Plan) -> Found {
    let more = plan.heartbeat_ms.map_or_else(String::new, |ms| format!("heartbeat_ms = {ms}\n"));
    let mut pair = None;
    let mut rows = Vec::new();
    for part in plan.wanted() {
        let mut standing = pair.take().map_or_else(|| Pair::start(run, program, &more), Ok)?;
        let (measured, failed) = measure(&mut standing, part.fault(), plan)?;
        rows.extend(measured);
        pair = (failed == 0).then_some(standing);
    }
    Ok(rows)
}

/// The rows of a kind, and how many of its runs failed.
fn measure(pair: &mut Pair, fault: Fault, plan: &Plan) -> Result<(Vec<Row>, u32), Failure> {
    let talks = Talks::start(pair, plan.connections as usize)?;
    let (mut outages, mut failed) = (Vec::new(), 0);
    for round in 0..plan.runs.next_multiple_of(2) {
        match fault.try_on(pair, &talks, round as usize) {
            Ok(outage) => {
                remark(fault, round + 1, &outages, &outage);
                outages.push(outage);
            }
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(failure) => {
                eprintln!("ringwall-lab: {}, run {}: {failure}", fault.word(), round + 1);
                failed += 1;
                break;
            }
        }
        if (round + 1) % 10 == 0 {
            eprintln!("ringwall-lab: {}, {} runs", fault.word(), round + 1);
        }
    }
    Ok((rows(fault, &outages, failed, &talks.end()), failed))
}

/// Says what is worth a look in a capture or a log.
fn remark(fault: Fault, run: u32, before: &[Outage], outage: &Outage) {
    let word = fault.word();
    if outage.wait >= LONG_WAIT {
        eprintln!("ringwall-lab: {word}, run {run}: port {} waited {:?}", outage.port, outage.wait);
    }
    if is_unasked(before.last(), outage) {
        eprintln!("ringwall-lab: {word}, run {run}: gateway {} was active again, unasked", outage.struck);
    }
}

/// Whether the gateway that had failed before was active again by then, though nothing failed
/// between the two runs.
fn is_unasked(before: Option<&Outage>, outage: &Outage) -> bool {
    before.is_some_and(|before| before.struck == outage.struck)
}

fn rows(fault: Fault, outages: &[Outage], failed: u32, ended: &Ended) -> Vec<Row> {
    let word = fault.word();
    for line in ended.broken.iter().take(10) {
        eprintln!("ringwall-lab: {word}: {line}");
    }
    let row = |what: &str, unit, series: &Series| Row::new(NAME, format!("{word}/{what}"), unit, series);
    let ms = |time: fn(&Outage) -> Duration| -> Series {
        outages.iter().map(|outage| Some(time(outage).as_secs_f64() * 1e3)).collect()
    };
    let single = |value: f64| vec![Some(value)];
    let unasked = outages.windows(2).filter(|pair| is_unasked(pair.first(), &pair[1])).count();
    [
        row("outage", "ms", &ms(|outage| outage.wait)),
        row("silence", "ms", &ms(|outage| outage.silence)),
        row("runs_failed", "runs", &single(f64::from(failed))),
        row("takeovers_unasked", "takeovers", &single(unasked as f64)),
        row("connections_lost", "connections", &single(ended.broken.len() as f64)),
        row("bytes_wrong", "bytes", &single(ended.wrong_bytes as f64))
            .map(|row| row.with_stat("words", Some(ended.words as f64))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::super::gate::Verdict;
    use super::*;

    #[test]
    fn one_run_that_fails_one_outage_too_long_one_lost_connection_or_one_wrong_byte_fails() {
        let plan = Plan { runs: 2, connections: 1, heartbeat_ms: None, only: vec![FailoverPart::Kill] };
        let outage = |ms| Outage {
            wait: Duration::from_millis(ms),
            silence: Duration::from_millis(ms / 2),
            port: 1,
            struck: usize::from(ms == 400),
        };
        let failed_with = |runs_failed, ms, broken: &[&str], wrong_bytes| {
            let broken = broken.iter().map(|line| (*line).to_owned()).collect();
            let rows =
                rows(Fault::Kill, &[outage(400), outage(ms)], runs_failed, &Ended { broken, wrong_bytes, words: 7 });
            plan.gates().iter().filter(|gate| !Verdict::of(gate, &rows).holds()).count()
        };
        let failed = |ms, broken: &[&str], wrong_bytes| failed_with(0, ms, broken, wrong_bytes);
        assert_eq!(plan.gates().len(), 4);
        assert_eq!(failed_with(1, 500, &[], 0), 1, "whatever the others took");
        assert_eq!([failed(1000, &[], 0), failed(1001, &[], 0)], [0, 1]);
        assert_eq!([failed(500, &["one"], 0), failed(500, &[], 1)], [1, 1]);
    }
}
