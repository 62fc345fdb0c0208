//! `ringwall-lab rollout`: a LAN moves from clear to sealed frames and back by the commands of the
//! manual, with the real program, under constant traffic and constant attack.
//!
//! Reading order: this file (what is asked and what is told), `stages` (what happens, in order),
//! `network` (who is on the LAN), `site` (what the manager types), `pings` (who answers whom),
//! `attacker`.

mod attacker;
mod network;
mod pings;
mod site;
mod stages;

use std::fmt::Write as _;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub use network::{HOSTS_MAX, HOSTS_MIN};
pub use pings::Gaps;
pub use stages::perform;

use crate::cleanup;
use crate::failure::Failure;
use crate::guard::find_program;

/// Most commands of the manager until all hosts enforce, beside one on each host.
pub const COMMANDS_MAX: usize = 12;

/// Fewest: the servers and a few others. Most: what a switch of the simulation learns.
const SIMULATED: RangeInclusive<i64> = 6..=1000;
const HOSTS: RangeInclusive<i64> = HOSTS_MIN as i64..=HOSTS_MAX as i64;

/// What to roll out.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Hosts of the site, its servers among them
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u8).range(HOSTS))]
    hosts: u8,
    /// Enforce without `site enforce`, whose trial takes minutes
    #[arg(long)]
    quick: bool,
    /// So many hosts in memory and in virtual time instead, without the program
    #[arg(long, value_name = "HOSTS", conflicts_with_all = ["hosts", "quick", "ringwall"])]
    #[arg(value_parser = clap::value_parser!(u16).range(SIMULATED))]
    pub simulated: Option<u16>,
    /// The ringwall program; by default the one beside this program
    #[arg(long, value_name = "PATH")]
    ringwall: Option<PathBuf>,
}

/// How to do it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The program.
    pub program: PathBuf,
    /// Hosts of the site.
    pub hosts: usize,
    /// Whether hosts enforce by a change of the policy alone, and not on a trial first.
    pub is_quick: bool,
    /// How often each host reports.
    pub report_every: Duration,
}

/// What was seen in one stage.
#[derive(Clone, Debug)]
pub struct Stage {
    /// What was done, in words.
    pub name: &'static str,
    /// How long it took.
    pub took: Duration,
    /// The longest times without an answer.
    pub gaps: Gaps,
    /// Of so many looks at the attacker's victims so many found one deceived.
    pub deceived: (u32, u32),
    /// Hosts with a daemon, and those of them that enforce.
    pub guarded: (usize, usize),
    /// Commands of the manager so far.
    pub commands: usize,
}

/// What was seen in all.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// In the order in which they were.
    pub stages: Vec<Stage>,
    /// The commands of the manager.
    pub typed: Vec<String>,
    /// How many of them there were when all hosts enforced.
    pub until_enforced: usize,
    /// From the command to the last host that reached the new printer.
    pub replaced: Duration,
    /// What must not be.
    pub faults: Vec<String>,
}

/// Rolls out and prints the table. Success only if nothing is at fault.
///
/// # Errors
/// The lab itself fails, or a command that must not.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let program = find_program(args.ringwall.as_deref())?;
    let run = cleanup::begin_transient()?;
    let report_every = Duration::from_secs(60);
    let plan = Plan { program, hosts: usize::from(args.hosts), is_quick: args.quick, report_every };
    let report = perform(run, &plan)?;
    print!("{}", report.in_words());
    Ok(if report.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Report {
    /// The table, what was typed, and what is at fault.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut text = format!(
            "{:44} {:>7} {:>9} {:>9}  {:16} {:>9} {:>10} {:>9} {:>8}\n",
            "stage", "time s", "hosts s", "printers", "longest", "deceived", "guarded", "enforcing", "commands"
        );
        for stage in &self.stages {
            let Stage { name, took, gaps, deceived, guarded, commands } = stage;
            let seconds = Duration::as_secs_f64;
            let _ = writeln!(
                text,
                "{name:44} {:7.1} {:9.1} {:9.1}  {:16} {:>9} {:10} {:9} {commands:8}",
                seconds(took),
                seconds(&gaps.hosts),
                seconds(&gaps.printers),
                gaps.whose,
                format!("{}/{}", deceived.1, deceived.0),
                guarded.0,
                guarded.1
            );
        }
        let _ = writeln!(
            text,
            "\nhosts and printers: longest time without an answer to one of them, asked {:.1} times a second",
            1.0 / pings::EVERY.as_secs_f64()
        );
        let _ = writeln!(text, "a printer was replaced in {:.1} s", self.replaced.as_secs_f64());
        let _ = writeln!(text, "{} commands until all enforced, and one on each host:", self.until_enforced);
        for (number, line) in (1..).zip(&self.typed) {
            let _ = writeln!(text, "{number:4}  {line}");
        }
        for fault in &self.faults {
            let _ = writeln!(text, "FAULT: {fault}");
        }
        text
    }
}
