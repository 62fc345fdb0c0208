//! The in-memory floor of the lab: real link layers on a simulated LAN under virtual time.
//!
//! One seed is one run. A seed draws hosts, their configuration and clocks, faults, traffic and attackers (`scenario`);
//! the run is driven event by event (`world`, `agenda`), and a judge with books of its own looks at every frame and, after every
//! call, at every link layer (`judge`). The world around the link layers: `stack` and `datagram` (a small kernel), `host`
//! (its clocks, ports and worker), `fabric` (hub or switch, and what it does to frames), `attacker`, `insider`, `babble` (what nobody carries).

mod agenda;
mod attacker;
mod babble;
mod datagram;
mod fabric;
mod host;
mod insider;
mod judge;
mod scenario;
mod site;
mod stack;
#[cfg(test)]
mod tests;
mod trace;
mod world;

use std::process::ExitCode;

use bump::{DropReason, Ledger, Side};
use clap::ValueEnum;
use cll::Weaken;
use identity::hash::sha256;

use crate::failure::Failure;
use trace::hexadecimal;
use world::{Report, World};

/// Violating runs that are shown in full.
const SHOWN_MAX: u64 = 10;

/// Options of `ringwall-lab sim`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Seed of the first run; the runs after it count up from there
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many runs
    #[arg(long, default_value_t = 1000)]
    runs: u64,
    /// Switch a layer off on the honest hosts; the invariants must notice
    #[arg(long, value_enum)]
    weaken: Option<Weakness>,
    /// Tell what each run drew, and what happens in it if it is the only one
    #[arg(long)]
    verbose: bool,
}

/// A layer that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Weakness {
    /// Replayed frames are delivered again
    ReplayWindow,
    /// A candidate is used before its peer proved that it has the keys
    Promotion,
    /// What an enrolled host says about its addresses is not compared with its certificate
    CrossLayer,
}

impl Weakness {
    fn setting(self) -> Weaken {
        match self {
            Weakness::ReplayWindow => Weaken { replay_window: true, ..Weaken::default() },
            Weakness::Promotion => Weaken { promotion: true, ..Weaken::default() },
            Weakness::CrossLayer => Weaken { cross_layer: true, ..Weaken::default() },
        }
    }
}

/// All runs together.
struct Total {
    hash: [u8; 32],
    events: u64,
    deliveries: u64,
    violations: u64,
    bad_runs: u64,
    ledger: Ledger,
}

/// Runs the simulations and prints what they came to. Fails when an invariant did not hold.
///
/// # Errors
/// The simulated site could not be made.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut total =
        Total { hash: [0; 32], events: 0, deliveries: 0, violations: 0, bad_runs: 0, ledger: Ledger::new() };
    for seed in args.seed..args.seed.saturating_add(args.runs) {
        let report = simulate(seed, args.weaken, args.verbose && args.runs == 1)?;
        if args.verbose {
            println!("seed {seed}: {}; {} events, trace {}", report.summary, report.events, hexadecimal(&report.hash));
        }
        total.add(&report);
        if report.violation_count > 0 && total.bad_runs <= SHOWN_MAX {
            tell_violations(seed, args.weaken, &report);
        }
    }
    if args.verbose {
        tell_ledger(&total.ledger);
    }
    println!("{} runs, {} events, {} deliveries", args.runs, total.events, total.deliveries);
    println!("trace {}", hexadecimal(&total.hash));
    println!("{} violations", total.violations);
    Ok(if total.violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One run.
///
/// # Errors
/// The simulated site could not be made.
pub fn simulate(seed: u64, weakness: Option<Weakness>, tells: bool) -> Result<Report, Failure> {
    let weaken = weakness.map(Weakness::setting).unwrap_or_default();
    Ok(World::new(seed, site::pool()?, weaken, tells).run())
}

impl Total {
    fn add(&mut self, report: &Report) {
        self.hash = sha256(&[&self.hash, &report.hash]);
        self.events += report.events;
        self.deliveries += report.deliveries;
        self.violations += report.violation_count;
        self.bad_runs += u64::from(report.violation_count > 0);
        self.ledger.add(&report.ledger);
    }
}

fn tell_violations(seed: u64, weakness: Option<Weakness>, report: &Report) {
    let weaken = weakness.and_then(|weakness| weakness.to_possible_value());
    let weaken = weaken.map_or_else(String::new, |value| format!(" --weaken {}", value.get_name()));
    println!("seed {seed}: {} violations ({})", report.violation_count, report.summary);
    for violation in &report.violations {
        println!("  {violation}");
    }
    println!("  again: ringwall-lab sim --seed {seed} --runs 1 --verbose{weaken}");
}

/// What became of all frames, so that one sees what the runs reached.
fn tell_ledger(ledger: &Ledger) {
    for (name, side) in [("stack", Side::STACK), ("wire", Side::WIRE)] {
        let at = side as usize;
        let (received, forwarded) = (ledger.received[at], ledger.forwarded[at]);
        println!("from the {name}: {received} frames, {forwarded} forwarded, {} consumed", ledger.consumed[at]);
    }
    for &reason in DropReason::ALL {
        println!("  dropped {:>9} {}", ledger.drops(reason), reason.word());
    }
}
