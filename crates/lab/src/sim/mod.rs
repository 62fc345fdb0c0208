//! The in-memory floor of the lab: real bumps on a simulated LAN under virtual time.
//!
//! One seed is one run. There is a world for each mode: `link_layer` (mode `cll`) and `signed_arp` (mode `sarp`, with key
//! distributors and DHCP), and `migration` for hosts on their way from clear to sealed frames. All take the same `course`: `agenda`
//! (virtual time), `fabric` (hub or switch, and what it does to frames), `faults`, `trace` and `report`. Their hosts have the same
//! `clock`, `ports` and `due` (when upkeep is), and their attackers the same `captured` (what is done with frames of others).

mod agenda;
mod captured;
#[cfg(test)]
mod checks;
mod clock;
mod course;
mod due;
mod fabric;
mod faults;
mod link_layer;
mod migration;
mod ports;
mod report;
pub mod rollout;
mod signed_arp;
mod trace;

pub(crate) use clock::START_UNIX_S;
pub(crate) use link_layer::identities;

use std::process::ExitCode;

use bump::{DropReason, Ledger, Side};
use clap::ValueEnum;
use identity::hash::sha256;

use crate::failure::Failure;
use report::Report;
use trace::hexadecimal;

/// Runs in a world unless told otherwise.
const RUNS_USUAL: u64 = 1000;
/// Violating runs that are shown in full.
const SHOWN_MAX: u64 = 10;

/// Options of `ringwall-lab sim`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Seed of the first run; the runs after it count up from there
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many runs, in each world [default: 1000; 1 of rollover]
    #[arg(long)]
    runs: Option<u64>,
    /// What is simulated
    #[arg(long, value_enum, default_value_t = Scope::All)]
    world: Scope,
    /// Switch a layer off on the honest hosts; the invariants must notice. Only the world that has it is run
    #[arg(long, value_enum)]
    weaken: Option<Weakness>,
    /// Tell what each run drew, and what happens in it if it is the only one
    #[arg(long)]
    verbose: bool,
}

/// Which worlds are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scope {
    /// Link layers: handshakes, associations, sealed frames
    Cll,
    /// Signed ARP: hosts, key distributors, DHCP servers and clients
    Sarp,
    /// An hour of link layers under load that replace their keys every 10 s and by frame count: nothing may be lost
    Rollover,
    /// Link layers as in cll, with ML-KEM on half of the hosts or required by all; traces differ
    /// from run to run
    PostQuantum,
    /// Link layers in modes observe, prefer and enforce, a printer, and an attacker who wants hosts to fall back
    Migration,
    /// Link layers whose site key changes under load, and an attacker who has the old one
    SiteKey,
    /// Cll, post-quantum, sarp, migration and site-key, one after the other
    All,
}

/// A world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum World {
    Cll,
    PostQuantum,
    Rollover,
    Sarp,
    Migration,
    SiteKey,
}

/// A layer that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Weakness {
    /// cll: replayed frames are delivered again
    ReplayWindow,
    /// cll: a candidate is used before its peer proved that it has the keys
    Promotion,
    /// cll: what an enrolled host says about its addresses is not compared with its certificate
    CrossLayer,
    /// sarp: a message counts whatever its stamp says
    Stamps,
    /// sarp: a reply counts although nobody asked
    Unasked,
    /// sarp: a distributor's answer counts whatever its nonce
    DistributorNonce,
    /// sarp: the hardware address of a record is not compared
    Binding,
    /// sarp: a distributor answers whatever the tag of a request
    RequestTag,
    /// sarp: a DHCP reply comes in without a proof
    DhcpProof,
}

/// What is switched off, in the world that has it.
#[derive(Clone, Copy, Debug, Default)]
struct Off {
    cll: cll::Weaken,
    sarp: sarp::Weaken,
}

impl Weakness {
    fn is_in(self, world: World) -> bool {
        match self {
            Weakness::ReplayWindow | Weakness::Promotion | Weakness::CrossLayer => {
                matches!(world, World::Cll | World::PostQuantum | World::Rollover)
            }
            _ => world == World::Sarp,
        }
    }

    fn off(self) -> Off {
        let mut off = Off::default();
        *match self {
            Weakness::ReplayWindow => &mut off.cll.replay_window,
            Weakness::Promotion => &mut off.cll.promotion,
            Weakness::CrossLayer => &mut off.cll.cross_layer,
            Weakness::Stamps => &mut off.sarp.stamps,
            Weakness::Unasked => &mut off.sarp.unasked,
            Weakness::DistributorNonce => &mut off.sarp.distributor_nonce,
            Weakness::Binding => &mut off.sarp.binding,
            Weakness::RequestTag => &mut off.sarp.request_tag,
            Weakness::DhcpProof => &mut off.sarp.dhcp_proof,
        } = true;
        off
    }
}

impl World {
    fn word(self) -> &'static str {
        match self {
            World::Cll => "cll",
            World::PostQuantum => "post-quantum",
            World::Rollover => "rollover",
            World::Sarp => "sarp",
            World::Migration => "migration",
            World::SiteKey => "site-key",
        }
    }

    /// One run.
    fn simulate(self, seed: u64, weakness: Option<Weakness>, tells: bool) -> Result<Report, Failure> {
        let off = weakness.map(Weakness::off).unwrap_or_default();
        match self {
            World::Cll => link_layer::simulate(seed, off.cll, tells),
            World::PostQuantum => link_layer::simulate_post_quantum(seed, off.cll, tells),
            World::Rollover => link_layer::simulate_rollover(seed, off.cll, tells),
            World::Sarp => signed_arp::simulate(seed, off.sarp, tells),
            World::Migration => migration::simulate(seed, tells),
            World::SiteKey => link_layer::simulate_site_key(seed, off.cll, tells),
        }
    }
}

impl Args {
    /// The worlds that are asked for.
    ///
    /// # Errors
    /// The layer is in another world.
    fn worlds(&self) -> Result<Vec<World>, Failure> {
        let asked: &[World] = match self.world {
            Scope::Cll => &[World::Cll],
            Scope::PostQuantum => &[World::PostQuantum],
            Scope::Rollover => &[World::Rollover],
            Scope::Sarp => &[World::Sarp],
            Scope::Migration => &[World::Migration],
            Scope::SiteKey => &[World::SiteKey],
            Scope::All => &[World::Cll, World::PostQuantum, World::Sarp, World::Migration, World::SiteKey],
        };
        let worlds: Vec<World> =
            asked.iter().copied().filter(|world| self.weaken.is_none_or(|layer| layer.is_in(*world))).collect();
        if worlds.is_empty() {
            return Err(Failure::Usage("--weaken names a layer of the other world: leave --world out".to_owned()));
        }
        Ok(worlds)
    }
}

/// All runs of a world together.
struct Total {
    runs: u64,
    renewals: u64,
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
/// The simulated site could not be made, or the options contradict each other.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut violations = 0;
    for world in args.worlds()? {
        let total = run_world(args, world)?;
        if args.verbose {
            tell_ledger(&total.ledger);
        }
        let Total { runs, events, deliveries, renewals, .. } = total;
        let renewed = if renewals > 0 { format!(", {renewals} times new keys") } else { String::new() };
        println!("{}: {runs} runs, {events} events, {deliveries} deliveries{renewed}", world.word());
        println!("trace {}", hexadecimal(&total.hash));
        violations += total.violations;
    }
    println!("{violations} violations");
    Ok(if violations == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_world(args: &Args, world: World) -> Result<Total, Failure> {
    let runs = args.runs.unwrap_or(if world == World::Rollover { 1 } else { RUNS_USUAL });
    let mut total = Total::of(runs);
    for seed in args.seed..args.seed.saturating_add(runs) {
        let report = world.simulate(seed, args.weaken, args.verbose && runs == 1)?;
        if args.verbose {
            println!("seed {seed}: {}; {} events, trace {}", report.summary, report.events, hexadecimal(&report.hash));
        }
        total.add(&report);
        if report.violations.count > 0 && total.bad_runs <= SHOWN_MAX {
            tell_violations(world, seed, args.weaken, &report);
        }
    }
    Ok(total)
}

impl Total {
    fn of(runs: u64) -> Total {
        let (hash, ledger) = ([0; 32], Ledger::new());
        Total { runs, renewals: 0, hash, events: 0, deliveries: 0, violations: 0, bad_runs: 0, ledger }
    }

    fn add(&mut self, report: &Report) {
        self.hash = sha256(&[&self.hash, &report.hash]);
        self.events += report.events;
        self.deliveries += report.deliveries;
        self.renewals += report.renewals;
        self.violations += report.violations.count;
        self.bad_runs += u64::from(report.violations.count > 0);
        self.ledger.add(&report.ledger);
    }
}

fn tell_violations(world: World, seed: u64, weakness: Option<Weakness>, report: &Report) {
    let weaken = weakness.and_then(|weakness| weakness.to_possible_value());
    let weaken = weaken.map_or_else(String::new, |value| format!(" --weaken {}", value.get_name()));
    println!("seed {seed}: {} violations ({})", report.violations.count, report.summary);
    for violation in &report.violations.kept {
        println!("  {violation}");
    }
    println!("  again: ringwall-lab sim --world {} --seed {seed} --runs 1 --verbose{weaken}", world.word());
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
