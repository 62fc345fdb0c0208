//! ringwall-lab: a LAN on one machine, its attackers, and the experiments on Ringwall.
//!
//! Reading order: `net` (the LAN), `guard` (the real program on it), `attack` (who tries what),
//! `demo` (the table), `bench` (the papers' tables), `disguise` (what scanners see of a host),
//! `sim` (a LAN in memory), `receivers` (who reads what of an attack), which `compare` prints;
//! `rollout` (a site from clear to sealed and back); `corpus` (other people's captures); `stacks` has
//! the hosts that `disguise` and `receivers` try.
//! `cleanup` says how nothing stays behind.

// A program has no outside; `pub` marks what a module offers to its neighbours.
#![allow(unreachable_pub)]

mod attack;
mod bench;
mod compare;
mod corpus;
mod demo;
mod sim;
mod standing;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ringwall_lab::{cleanup, disguise, failover, failure, guard, hindrance, net, rollout};

use crate::failure::Failure;

/// A LAN on one machine, its attackers, and the experiments on Ringwall.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Subject,
    /// How hosts of mode cll keep their cards away from the stack, as `host.takeover` of their configuration
    #[arg(long, global = true, value_name = "WAY")]
    takeover: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Subject {
    /// Run every attack without and with its guard and print one table
    Demo(demo::Args),
    /// Run one attack under one guard
    Attack(demo::AttackArgs),
    /// Measure the papers' tables here, beside the plain path, the null bump and other tunnels
    Bench(bench::Args),
    /// Look at several network stacks with nmap and p0f, without the gateway and behind it
    Disguise(disguise::Args),
    /// Run link layers and signed ARP on simulated LANs with faults and attackers and check what must always hold
    Sim(sim::Args),
    /// Move a LAN from clear to sealed frames and back by the manual's commands, under constant traffic and attack
    Rollout(rollout::Args),
    /// Attack real network stacks and models of others, without the scrubber and behind it, and print who read what others did not
    Receivers(compare::Args),
    /// Take a folder of captures through `gate replay` in every preset and print what changed in which and why
    Corpus(corpus::Args),
    /// Make a LAN of hosts a, b, c and the attacker m, and leave it standing
    Up(standing::UpArgs),
    /// Run a command on a host of the standing LAN
    Exec(standing::ExecArgs),
    /// Remove the standing LAN and whatever dead runs left
    Down,
    /// Join two interfaces of this namespace by a link that treats frames badly
    #[command(hide = true)]
    Link(net::link::LinkArgs),
    /// Flood an interface of this namespace with forged frames
    #[command(hide = true)]
    Flood(net::flood::FloodArgs),
}

fn main() -> ExitCode {
    let Arguments { command, takeover } = Arguments::parse();
    takeover.into_iter().for_each(guard::take_over);
    let outcome = match &command {
        Subject::Demo(args) => demo::run(args),
        Subject::Attack(args) => demo::run_one(args),
        Subject::Bench(args) => bench::run(args),
        Subject::Disguise(args) => disguise::run(args),
        Subject::Sim(args) => sim::run(args),
        Subject::Rollout(args) => match args.simulated {
            Some(hosts) => sim::rollout::run(hosts),
            None => rollout::run(args),
        },
        Subject::Receivers(args) => compare::run(args),
        Subject::Corpus(args) => corpus::run(args),
        Subject::Up(args) => standing::up(args),
        Subject::Exec(args) => standing::exec(args),
        Subject::Down => standing::down(),
        Subject::Link(args) => net::link::run(args),
        Subject::Flood(args) => net::flood::run(args),
    };
    finish(outcome)
}

/// Removes what this run made, unless it is to stay, and says in one line what went wrong.
fn finish(outcome: Result<ExitCode, Failure>) -> ExitCode {
    if let Err(Failure::Interrupted) = outcome {
        // The clean-up runs on a thread of its own and ends the program.
        loop {
            std::thread::park();
        }
    }
    if let Err(failure) = &outcome {
        eprintln!("ringwall-lab: {failure}");
    }
    let left = cleanup::sweep_own(outcome.is_ok());
    cleanup::report(&left);
    match outcome {
        Ok(code) if left.is_empty() => code,
        _ => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn no_two_options_of_a_command_are_in_each_others_way() {
        super::Arguments::command().debug_assert();
    }
}
