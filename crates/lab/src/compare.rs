//! `ringwall-lab receivers`: many attacks at all receivers, and one table of who disagreed.

use std::path::PathBuf;
use std::process::ExitCode;

use ringwall_lab::receivers::comparison::{self, Row};
use ringwall_lab::receivers::{Carrier, Comparison, Found, Plan};
use ringwall_lab::stacks::receiving;
use rustix::process::geteuid;

use crate::cleanup;
use crate::failure::Failure;

/// Options of `ringwall-lab receivers`
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Scripts for each of IPv4 fragments, IPv6 fragments, TCP over IPv4 and TCP over IPv6, besides all relations of three chunks
    #[arg(long, value_name = "N", default_value_t = 1000)]
    cases: u64,
    /// The seed of the first script; the next script has the next
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Run models of published policies alone, which is a hundred times as fast
    #[arg(long)]
    models: bool,
    /// Leave the relations of three chunks out
    #[arg(long)]
    scripts: bool,
    /// Where packaging/receivers.sh has put gVisor and lwIP [default: receivers/ in the directory of this build]
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// Write the rows to this file as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

impl Args {
    fn found(&self) -> Result<Found, Failure> {
        if self.models {
            return Ok(Found::default());
        }
        let own = std::env::current_exe().map_err(Failure::io("finding this program"))?;
        let programs = self.programs.clone().unwrap_or_else(|| comparison::programs_beside(&own));
        let run = if geteuid().is_root() { Some(cleanup::begin_transient()?) } else { None };
        Ok(receiving::find(&programs, run))
    }
}

/// Runs the comparison. Fails when receivers disagree behind the scrubber.
///
/// # Errors
/// A receiver is gone, or the rows cannot be written.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let relations_step = (!args.scripts).then_some(1);
    let plan = Plan { cases: args.cases, seed: args.seed, relations_step };
    let comparison = Comparison::run(&plan, args.found()?)?;
    if let Some(file) = &args.json {
        let text = serde_json::to_string_pretty(&comparison).map_err(|error| Failure::Unreadable(error.to_string()))?;
        std::fs::write(file, text).map_err(Failure::file("writing", file))?;
    }
    print(&comparison);
    let disagreements: u64 = comparison.rows.iter().map(|row| row.with).sum();
    Ok(if disagreements == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A cell: disagreements without the scrubber, and behind it.
fn cell(row: Option<&Row>) -> String {
    row.map_or("-".to_owned(), |row| format!("{} / {}", row.without, row.with))
}

fn print(comparison: &Comparison) {
    let mut names: Vec<&str> = Vec::new();
    for row in &comparison.rows {
        if !names.contains(&row.receiver.as_str()) {
            names.push(&row.receiver);
        }
    }
    let heads = Carrier::ALL.map(|carrier| format!("{:>18}", carrier.to_string())).concat();
    println!("cases in which a receiver read something else than the first model: without the scrubber / behind it");
    println!("{:<24}{heads}", "");
    for name in names {
        let of = |carrier: Carrier| comparison.rows_of(name).find(|row| row.carrier == carrier.to_string());
        println!("{name:<24}{}", Carrier::ALL.map(|carrier| format!("{:>18}", cell(of(carrier)))).concat());
    }
    for violation in &comparison.violations {
        println!("DISAGREEMENT {violation}");
    }
    for reason in comparison.missing.iter().chain(&comparison.cannot) {
        println!("SKIPPED {reason}");
    }
    println!("{} cases, scripts from seed {} on, {:.0} s", comparison.cases, comparison.seed, comparison.seconds);
}
