//! `ringwall-lab bench`: the papers' tables, measured here.
//!
//! Every figure is made beside its yardsticks, in pairs that lie seconds apart: the plain path and the null bump, which
//! has the same ports, threads and segmentation but neither checks nor cryptography. Wire MTU 1500, no busy polling.

mod broadcast;
mod cll;
mod compression;
mod console;
mod convergence;
mod cpu;
mod dhcp;
mod echo;
mod failover;
mod first_ping;
mod gate;
mod lease;
mod mode;
mod nonces;
mod paper;
mod peers;
mod plot;
mod post_quantum;
mod rate;
mod resumption;
mod rollover;
mod round_trip;
mod row;
mod s_arp;
mod scrub;
mod site;
mod stats;
mod stream;
mod table_1;
mod tcp;
mod work;

use std::fmt::Debug;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use identity::Profile;
use shield::Hook;

use crate::cleanup;
use crate::failure::Failure;
use crate::guard;
use gate::{Gate, Verdict};
use nonces::{NoncesPart, Receive};
use row::Row;
use scrub::ScrubPart;

/// Which experiment.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Debug, Subcommand)]
enum Experiment {
    /// Tables 2 and 3 of the CLL paper: first ping, TCP, CPU and round trip, beside the plain path and the null bump.
    Cll {
        #[command(flatten)]
        options: Options,
        /// In which algorithms: modern, or paper (RSA-1024, Diffie-Hellman with 2048 bits, Twofish and HMAC-MD5). The gates are
        /// those of modern.
        #[arg(long, default_value = "modern", value_parser = parse_profile)]
        profile: Profile,
        /// Measure only these parts; table1 is measured only if it is named.
        #[arg(long, value_enum, value_delimiter = ',')]
        only: Vec<Part>,
    },
    /// Tables 1 to 3 of the S-ARP paper, TCP beside the plain path, and what a key distributor can bear.
    SArp {
        #[command(flatten)]
        options: Options,
        /// Measure only these parts.
        #[arg(long, value_enum, value_delimiter = ',')]
        only: Vec<SarpPart>,
    },
    /// Tables I to VII and figures 5 to 7 of the scrubbing paper, and what else the gateway must bear, beside a cable, the kernel's
    /// bridge, the null bump and Squid.
    Scrub {
        #[command(flatten)]
        options: Options,
        /// Draw figures 5 to 7 into this directory.
        #[arg(long, value_name = "DIR")]
        plots: Option<PathBuf>,
        /// Measure only these parts.
        #[arg(long, value_enum, value_delimiter = ',')]
        only: Vec<ScrubPart>,
    },
    /// Figures 1 to 5 and 7 to 10 of the paper on layered nonces: streams over the size of messages, what forged frames take from honest
    /// ones with the layers in front of the tag and without, and what authentication and nonces cost.
    Nonces {
        #[command(flatten)]
        options: Options,
        /// Draw the paper's figures into this directory.
        #[arg(long, value_name = "DIR")]
        plots: Option<PathBuf>,
        #[command(flatten)]
        receive: Receive,
        /// Where in the kernel the receiver's program stands in the parts cll, handshakes, strongswan and floods, and for a soak: socket, xdp or xdp-generic.
        #[arg(long, value_parser = parse_hook, default_value = "socket")]
        hook: Hook,
        /// Instead of all that, one flood after the other for so long, with the receiver's books audited after each.
        #[arg(long, value_name = "MINUTES", conflicts_with_all = ["only", "plots", "gate"])]
        soak: Option<u32>,
        /// Measure only these parts.
        #[arg(long, value_enum, value_delimiter = ',')]
        only: Vec<NoncesPart>,
    },
    /// The site's service under the reports of thousands of simulated hosts: answers, CPU, memory,
    /// bytes, and how soon all have a changed policy.
    Site {
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        plan: site::Plan,
    },
    /// The console of a machine that knows thousands of hosts: each page's answer and first paint, and
    /// memory.
    Console {
        #[command(flatten)]
        usual: Usual,
        #[command(flatten)]
        plan: console::Plan,
    },
    /// Two gateways of a pair under live connections: what each pays when one of the two fails.
    Failover {
        #[command(flatten)]
        usual: Usual,
        #[command(flatten)]
        plan: failover::Plan,
    },
    /// One TCP stream through other tunnels, beside the plain path and ours.
    Peers {
        #[command(flatten)]
        options: Options,
    },
}

/// A part of `bench cll`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Throughput and CPU time.
    Tcp,
    /// Round trips of 100 pings.
    Rtt,
    /// The first ping and its steps.
    FirstPing,
    /// What a group frame costs its receiver, alone and in a batch; without a wire.
    Broadcast,
    /// The speed of every algorithm of Table 1, in this process.
    Table1,
    /// The first ping after a restart with tickets and without.
    Resumption,
    /// The first ping with ML-KEM and without, and its steps.
    PostQuantum,
    /// What compression saves of the wire and costs in speed, with text and with noise.
    Compression,
    /// What a rollover costs: CPU time of both ends, its own time, and what it takes from a stream.
    Rollover,
    /// DHCP with certificates beside plain DHCP: a lease, the first ping behind it, a renewal.
    Lease,
    /// Twelve hosts from cold until each pair has answered, with addresses by DHCP, plain and guarded.
    Convergence,
}

/// A part of `bench s-arp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SarpPart {
    /// Table 1: signing and verifying.
    Signatures,
    /// Throughput.
    Tcp,
    /// What a datagram costs the processor.
    Datagrams,
    /// Requests per second of a key distributor, and the price of forged ones.
    Akd,
    /// Tables 2 and 3: the first ping with cold and with cached keys.
    FirstPing,
    /// Tables 1 to 3 as the paper has them: DSA of 512 and 1024 bits, and Ed25519 beside them.
    Tables,
}

/// What all experiments take.
#[derive(Clone, Debug, clap::Args)]
struct Usual {
    /// Write the rows to this file.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// End with a failure when a gate of what was to be measured does not hold.
    #[arg(long)]
    gate: bool,
    /// The program under test; by default the one beside this one.
    #[arg(long, value_name = "FILE")]
    ringwall: Option<PathBuf>,
}

/// What those take that are made of pairs of runs.
#[derive(Clone, Debug, clap::Args)]
struct Options {
    /// Interleaved pairs per figure.
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// Seconds per TCP run.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=20))]
    seconds: u32,
    /// One pair of one-second runs: shows that everything works, not how fast.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    usual: Usual,
}

impl Options {
    /// How many pairs of runs, and how many seconds each.
    fn schedule(&self) -> Schedule {
        if self.quick {
            Schedule { pairs: 1, seconds: 1, quick: true }
        } else {
            Schedule { pairs: self.pairs, seconds: self.seconds, quick: false }
        }
    }

    /// The program under test; `None`, said aloud, when it is not there.
    fn program(&self) -> Option<PathBuf> {
        guard::find_program(self.usual.ringwall.as_deref())
            .inspect_err(|failure| eprintln!("ringwall-lab: {failure}; only what does not need it is measured"))
            .ok()
    }
}

/// How often and how long.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    pairs: u32,
    seconds: u32,
    /// Only whether it works is to be seen.
    quick: bool,
}

impl Schedule {
    /// One second a run, where a second tells as much as two.
    fn shorter(self) -> Schedule {
        Schedule { seconds: 1, ..self }
    }

    /// Half of the pairs, one second each: for ratios far from their gates.
    fn halved(self) -> Schedule {
        Schedule { pairs: self.pairs.div_ceil(2), ..self.shorter() }
    }

    /// A quarter of the pairs, one second each: for what no gate stands on.
    fn lighter(self) -> Schedule {
        Schedule { pairs: (self.pairs / 4).max(1), ..self.shorter() }
    }
}

/// Runs an experiment, prints its table and gates, and writes its rows. The exit code is a failure only when `--gate`
/// was given and a gate does not hold.
///
/// # Errors
/// The experiment cannot be set up, or the file cannot be written.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let run = cleanup::begin_transient()?;
    if !cpu::settle()? {
        eprintln!("ringwall-lab: the machine is busy with something else: the figures will not be worth much");
    }
    match &args.experiment {
        Experiment::Cll { options, profile, only } => {
            let program = options.program();
            let rows = cll::run(run, program.as_deref(), *profile, options.schedule(), only)?;
            let gates = if *profile == Profile::Modern { gate::of_parts(&gate::CLL, only) } else { Vec::new() };
            show(&rows, &gates, &options.usual)
        }
        Experiment::SArp { options, only } => {
            let program = options.program();
            let rows = s_arp::run(run, program.as_deref(), options.schedule(), only)?;
            show(&rows, &gate::of_parts(&s_arp::GATES, only), &options.usual)
        }
        Experiment::Scrub { options, plots, only } => {
            let program = options.program();
            let rows = scrub::run(run, program.as_deref(), options.schedule(), only)?;
            if let Some(directory) = plots {
                plot::draw(&scrub::FIGURES, &rows, directory)?.iter().for_each(|name| println!("drawn: {name}"));
            }
            show(&rows, &gate::of_parts(&scrub::GATES, only), &options.usual)
        }
        Experiment::Nonces { options, receive, hook, soak: Some(minutes), .. } => {
            let rows = nonces::soak(run, options.program().as_deref(), *minutes, (*receive, *hook))?;
            show(&rows, &[], &options.usual)
        }
        Experiment::Nonces { options, plots, receive, hook, soak: None, only } => {
            let program = options.program();
            let rows = nonces::run(run, program.as_deref(), options.schedule(), only, (*receive, *hook))?;
            if let Some(directory) = plots {
                nonces::draw(&rows, directory)?.iter().for_each(|name| println!("drawn: {name}"));
            }
            show(&rows, &gate::of_parts(&nonces::gates(), only), &options.usual)
        }
        Experiment::Site { options, plan } => {
            let program = guard::find_program(options.usual.ringwall.as_deref())?;
            show(&site::run(run, &program, *plan)?, &[], &options.usual)
        }
        Experiment::Console { usual, plan } => {
            let program = guard::find_program(usual.ringwall.as_deref())?;
            show(&console::run(run, &program, *plan)?, &console::Plan::gates(), usual)
        }
        Experiment::Failover { usual, plan } => {
            let program = guard::find_program(usual.ringwall.as_deref())?;
            show(&failover::run(run, &program, plan)?, &plan.gates(), usual)
        }
        Experiment::Peers { options } => {
            let program = options.program();
            let rows = peers::run(run, program.as_deref(), options.schedule())?;
            show(&rows, &gate::PEERS, &options.usual)
        }
    }
}

fn parse_hook(word: &str) -> Result<Hook, String> {
    let found = Hook::ALL.into_iter().find(|hook| hook.word() == word);
    found.ok_or_else(|| format!("a hook is one of {}", Hook::ALL.map(Hook::word).join(", ")))
}

fn parse_profile(name: &str) -> Result<Profile, String> {
    Profile::from_name(name).ok_or_else(|| "a profile is 'modern' or 'paper'".to_owned())
}

/// Prints and writes what was found.
fn show(rows: &[Row], gates: &[Gate], usual: &Usual) -> Result<ExitCode, Failure> {
    println!("{}", row::table(rows));
    let verdicts: Vec<Verdict> = gates.iter().map(|gate| Verdict::of(gate, rows)).collect();
    for verdict in &verdicts {
        println!("{verdict}");
    }
    if let Some(path) = &usual.json {
        row::write_json(rows, path)?;
    }
    let hold = verdicts.iter().all(Verdict::holds);
    Ok(if usual.gate && !hold { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Whether a run that was told to measure `only` these parts, or all, measures `part`.
fn is_wanted<P: PartialEq>(only: &[P], part: &P) -> bool {
    only.is_empty() || only.contains(part)
}

/// The rows of a part of an experiment.
type Found = Result<Vec<Row>, Failure>;

/// Measures those of `parts` that are in `only`, or all. One that fails is said aloud and costs its own rows, which a gate on them will
/// miss, and not those of the others: a whole experiment takes an hour.
fn measure_parts<P: PartialEq + Debug>(only: &[P], parts: &[(P, &dyn Fn() -> Found)]) -> Found {
    let mut rows = Vec::new();
    for (part, measure) in parts.iter().filter(|(part, _)| is_wanted(only, part)) {
        match measure() {
            Ok(found) => rows.extend(found),
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(failure) => eprintln!("ringwall-lab: {part:?}: {failure}; its rows are missing"),
        }
    }
    Ok(rows)
}

/// Does `attempt` again once if it fails: one lost run of hundreds is not worth the whole table, a second one in a row
/// leaves a gap in the series and is said aloud.
fn twice<T>(what: &str, mut attempt: impl FnMut() -> Result<T, Failure>) -> Result<Option<T>, Failure> {
    for _ in 0..2 {
        match attempt() {
            Ok(value) => return Ok(Some(value)),
            Err(Failure::Interrupted) => return Err(Failure::Interrupted),
            Err(failure) => eprintln!("ringwall-lab: {what}: {failure}"),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_fails_costs_its_own_rows_and_an_interrupt_ends_all() {
        let row = |name: &str| Row::new("x", name, "us", &vec![Some(1.0)]);
        let good = || Ok(row("good").into_iter().collect());
        let parts: [(u8, &dyn Fn() -> Found); 3] = [(1, &good), (2, &|| Err(Failure::NotRoot)), (3, &good)];
        assert_eq!(measure_parts(&[], &parts).unwrap().len(), 2);
        assert_eq!(measure_parts(&[2, 3], &parts).unwrap().len(), 1);
        let interrupted: [(u8, &dyn Fn() -> Found); 2] = [(1, &good), (2, &|| Err(Failure::Interrupted))];
        assert!(matches!(measure_parts(&[], &interrupted), Err(Failure::Interrupted)));
    }

    #[test]
    fn one_failure_is_forgiven_two_leave_a_gap_and_an_interrupt_ends_all() {
        let mut left = 1;
        let mut once = || {
            left -= 1;
            if left == 0 { Err(Failure::NotRoot) } else { Ok(7) }
        };
        assert_eq!(twice("x", &mut once).unwrap(), Some(7));
        assert_eq!(twice::<()>("x", || Err(Failure::NotRoot)).unwrap(), None);
        assert!(matches!(twice::<()>("x", || Err(Failure::Interrupted)), Err(Failure::Interrupted)));
    }
}
