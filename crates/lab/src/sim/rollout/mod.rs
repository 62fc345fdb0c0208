//! `ringwall-lab rollout --simulated N`: a site of N hosts moves from clear to sealed frames and
//! back, in memory and in virtual time (issue: a site of 300 hosts; record 0116).
//!
//! Real are the authority's directory with all that it signs and keeps, tokens and enrolment as the
//! service does them, what judges reports (`authority::rollout`), and a link layer (`cll`) on each
//! host. Simulated are the LAN, the stacks, the printers and the attacker, the way of reports and
//! of policies to the service and back, and what the daemon does around a link layer: it keeps the
//! newest policy and has it come into force. Nothing here runs the program, surveys, or speaks DHCP.
//!
//! Reading order: `stages` (what happens, in order), `manager` (what is typed), `service`, `host`,
//! `world` (time, LAN and attacker), `pings`.

mod host;
mod manager;
mod pings;
mod service;
mod stages;
#[cfg(test)]
mod succession_tests;
#[cfg(test)]
mod tests;
mod world;

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use crate::failure::Failure;
use pings::Gaps;

/// Most commands of the manager until all hosts enforce, beside one on each host.
pub const COMMANDS_MAX: usize = 12;
/// Longest time for which a pair may be without an answer that is due.
pub const OUTAGE_MAX: Duration = Duration::from_secs(3);

/// What was seen in one stage.
#[derive(Clone, Debug)]
pub struct Stage {
    /// What was done, in words.
    pub name: &'static str,
    /// How long it took, in virtual time.
    pub took: Duration,
    /// What pairs went without.
    pub gaps: Gaps,
    /// Of so many looks at the attacker's victims so many found one deceived.
    pub deceived: (u64, u64),
    /// Hosts with a link layer, and those of them that enforce.
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
    /// Associations when all enforced; each is counted on both sides.
    pub associations: usize,
    /// What must not be.
    pub faults: Vec<String>,
}

/// Rolls out at so many hosts and prints the table. Success only if nothing is at fault.
///
/// # Errors
/// The site could not be made, or refuses what it must not.
pub fn run(hosts: u16) -> Result<ExitCode, Failure> {
    let report = stages::perform(usize::from(hosts), |line| eprintln!("ringwall-lab: {line}"))?;
    print!("{}", report.in_words());
    Ok(if report.faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Report {
    /// The table, what was typed, and what is at fault.
    #[must_use]
    pub fn in_words(&self) -> String {
        let mut text = format!(
            "{:42} {:>7} {:>8} {:>8} {:>9} {:>7}  {:14} {:>10} {:>8} {:>9} {:>8}\n",
            "stage",
            "time s",
            "hosts s",
            "print. s",
            "answers",
            "lost",
            "longest",
            "deceived",
            "guarded",
            "enforcing",
            "commands"
        );
        for Stage { name, took, gaps, deceived, guarded, commands } in &self.stages {
            let seconds = Duration::as_secs_f64;
            let _ = writeln!(
                text,
                "{name:42} {:7.1} {:8.2} {:8.2} {:9} {:7}  {:14} {:>10} {:8} {:9} {commands:8}",
                seconds(took),
                seconds(&gaps.hosts),
                seconds(&gaps.printers),
                gaps.heard,
                gaps.lost,
                gaps.whose,
                format!("{}/{}", deceived.1, deceived.0),
                guarded.0,
                guarded.1
            );
        }
        let every = pings::EVERY.as_secs_f64();
        let _ =
            writeln!(text, "\nhosts and printers: longest time without an answer that was due; asked every {every} s");
        let _ = writeln!(text, "{} ends of associations when all enforced", self.associations);
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
