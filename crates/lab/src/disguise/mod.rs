//! `ringwall-lab disguise`: how hosts look to nmap and p0f without the gateway and behind it (the scrubber paper's section IV-C,
//! figure 10), and how much nmap's fields still tell.
//!
//! Reading order: this file (the table and what must hold of it), `path` (who stands where), `tools` (what nmap and p0f say),
//! `information` (nmap's list in bits).

pub mod information;
mod path;
mod tools;

use std::collections::BTreeMap;
use std::path::{Path as FilePath, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use serde::Serialize;

use crate::cleanup::{self, Run};
use crate::failure::Failure;
use crate::guard::find_program;
use crate::net::process;
use crate::stacks::standing::Stack;

pub use path::Path;

/// What to look at.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Only these stacks
    #[arg(long, value_delimiter = ',', value_enum)]
    stack: Vec<Stack>,
    /// Only with these between stack and prober
    #[arg(long, value_delimiter = ',', value_enum)]
    guard: Vec<Guard>,
    /// Only count the information in nmap's list
    #[arg(long)]
    information: bool,
    /// Write the rows to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// The ringwall program; by default the one beside this program
    #[arg(long, value_name = "PATH")]
    ringwall: Option<PathBuf>,
    /// nmap's list of fingerprints
    #[arg(long, value_name = "FILE", default_value = information::LIST)]
    list: PathBuf,
}

/// What stands between a stack and its prober.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Guard {
    /// The kernel's bridge.
    None,
    /// The gateway with its preset `paper`.
    Paper,
    /// The gateway with its preset `balanced`.
    Balanced,
    /// The gateway with its preset `strict`.
    Strict,
}

impl Guard {
    /// The order of the table.
    pub const ALL: [Guard; 4] = [Guard::None, Guard::Paper, Guard::Balanced, Guard::Strict];

    /// The gateway's preset, if there is one.
    #[must_use]
    pub fn preset(self) -> Option<&'static str> {
        match self {
            Guard::None => None,
            Guard::Paper => Some("paper"),
            Guard::Balanced => Some("balanced"),
            Guard::Strict => Some("strict"),
        }
    }

    fn name(self) -> &'static str {
        self.preset().unwrap_or("none")
    }
}

/// How one stack looks.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Which.
    pub stack: &'static str,
    /// From behind what.
    pub guard: Guard,
    /// nmap's guesses, best first.
    pub nmap: Vec<String>,
    /// What nmap measured, by test.
    pub nmap_fields: BTreeMap<String, String>,
    /// p0f's guess and the signature of the stack's SYN.
    pub p0f_client: [String; 2],
    /// The same of its SYN-ACK.
    pub p0f_server: [String; 2],
    /// What each scan says of the open port and of the closed one.
    pub scans: BTreeMap<String, [String; 2]>,
}

/// Something that the rows say.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// In words.
    pub what: String,
    /// Whether it is what must hold; none where nothing must.
    pub holds: Option<bool>,
}

impl Verdict {
    /// Whether what must hold does not.
    #[must_use]
    pub fn fails(&self) -> bool {
        self.holds == Some(false)
    }

    fn word(&self) -> &'static str {
        match self.holds {
            Some(true) => "pass",
            Some(false) => "FAIL",
            None => "seen",
        }
    }
}

#[derive(Serialize)]
struct Report<'a> {
    rows: &'a [Row],
    verdicts: &'a [Verdict],
    information: Option<&'a information::Report>,
}

/// Runs the experiment. Success only if everything holds.
///
/// # Errors
/// A tool is missing, or the lab itself fails.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let information = if args.list.is_file() { Some(information::count(&args.list)?) } else { None };
    let rows = if args.information { Vec::new() } else { play_all(args)? };
    let verdicts = judge(&rows);
    print!("{}", table(&rows));
    match &information {
        Some(report) => print!("\n{report}"),
        None => eprintln!("skipped: the information in nmap's fields, because there is no {}", args.list.display()),
    }
    for verdict in &verdicts {
        println!("{}  {}", verdict.word(), verdict.what);
    }
    if let Some(path) = &args.json {
        let report = Report { rows: &rows, verdicts: &verdicts, information: information.as_ref() };
        let text = serde_json::to_string_pretty(&report).map_err(|error| Failure::Unreadable(error.to_string()))?;
        std::fs::write(path, text + "\n").map_err(Failure::file("writing", path))?;
    }
    let any_fails = verdicts.iter().any(Verdict::fails);
    Ok(if any_fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn play_all(args: &Args) -> Result<Vec<Row>, Failure> {
    for tool in tools::TOOLS {
        if !process::installed(tool) {
            return Err(Failure::MissingTool(tool.to_owned()));
        }
    }
    let run = cleanup::begin_transient()?;
    let program = find_program(args.ringwall.as_deref())?;
    let mut rows = Vec::new();
    for stack in Stack::ALL.into_iter().filter(|stack| args.stack.is_empty() || args.stack.contains(stack)) {
        if let Some(missing) = stack.missing() {
            eprintln!("skipped: {}, because this machine lacks {missing}", stack.name());
            continue;
        }
        for guard in Guard::ALL.into_iter().filter(|guard| args.guard.is_empty() || args.guard.contains(guard)) {
            eprintln!("{} behind {}", stack.name(), guard.name());
            rows.push(play(run, &program, stack, guard)?);
        }
    }
    Ok(rows)
}

/// Looks at one stack from behind one guard.
///
/// # Errors
/// A tool, the stack or the gateway fails.
pub fn play(run: &Run, program: &FilePath, stack: Stack, guard: Guard) -> Result<Row, Failure> {
    let path = Path::lay(run, program, stack, guard, "")?;
    let passive = tools::watch(&path)?;
    let detection = tools::detect(&path)?;
    let mut scans = BTreeMap::new();
    for kind in tools::STEALTHY {
        scans.insert(kind.to_owned(), tools::scan(&path, kind)?);
    }
    Ok(Row {
        stack: stack.name(),
        guard,
        nmap: detection.guesses,
        nmap_fields: detection.fields,
        p0f_client: passive.client,
        p0f_server: passive.server,
        scans,
    })
}

/// What the tools that the experiment needs are called and whether they are here.
#[must_use]
pub fn missing_tools() -> Vec<&'static str> {
    tools::TOOLS.into_iter().filter(|tool| !process::installed(tool)).collect()
}

/// What the rows that are there say, and whether it is what must hold.
#[must_use]
pub fn judge(rows: &[Row]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for guard in Guard::ALL {
        let of: Vec<&Row> = rows.iter().filter(|row| row.guard == guard).collect();
        if of.len() < 2 {
            continue;
        }
        let (guesses, signatures) = (kinds(&of, guesses), kinds(&of, signature));
        let measured = kinds(&of, measured);
        let count = of.len();
        let mut say = |what: String, holds| verdicts.push(Verdict { what: format!("{}: {what}", guard.name()), holds });
        match guard {
            Guard::None => {
                say(format!("nmap tells {guesses} of {count} stacks apart by its guesses"), Some(guesses == count));
                say(
                    format!("p0f tells {signatures} of {count} stacks apart by their signatures"),
                    Some(signatures == count),
                );
            }
            Guard::Strict => {
                say(format!("nmap measures {measured} kind of stack"), Some(measured == 1));
                say(format!("nmap guesses {guesses} kind of stack"), Some(guesses == 1));
                say(format!("p0f sees {signatures} kind of signature"), Some(signatures == 1));
            }
            Guard::Paper | Guard::Balanced => {
                let text =
                    format!("of {count} stacks nmap's guesses leave {guesses} kinds, p0f's signatures {signatures}");
                say(text, None);
            }
        }
        if guard != Guard::None {
            let learnt = of.iter().filter(|row| row.learns()).count();
            say(
                format!("FIN, null, Xmas and ACK scans learn something about {learnt} of {count} stacks"),
                Some(learnt == 0),
            );
        }
    }
    verdicts
}

fn kinds(rows: &[&Row], of: fn(&Row) -> Vec<&str>) -> usize {
    rows.iter().map(|row| of(row)).collect::<std::collections::BTreeSet<_>>().len()
}

fn guesses(row: &Row) -> Vec<&str> {
    row.nmap.iter().map(String::as_str).collect()
}

/// What nmap measured, but what it says of itself and of the moment, and what differs from run to run of any stack whose sequence
/// numbers are random: how random they looked. Unlike a guess this is not a matter of a threshold.
fn measured(row: &Row) -> Vec<&str> {
    const OF_THE_RUN: [&str; 3] = ["SP=", "GCD=", "ISR="];
    let tests = row.nmap_fields.iter().filter(|(test, _)| *test != "SCAN");
    let fields = tests.flat_map(|(test, values)| std::iter::once(test.as_str()).chain(values.split('%')));
    fields.filter(|field| !OF_THE_RUN.iter().any(|prefix| field.starts_with(prefix))).collect()
}

fn signature(row: &Row) -> Vec<&str> {
    vec![&row.p0f_client[1], &row.p0f_server[1]]
}

impl Row {
    /// Whether a scan that begins no connection tells the open port from the closed one, or that there is a host.
    fn learns(&self) -> bool {
        self.scans.values().flatten().any(|state| !matches!(state.as_str(), "open|filtered" | "filtered"))
    }

    fn scanned(&self) -> String {
        let states = self.scans.iter().map(|(kind, [open, closed])| format!("{} {open}/{closed}", &kind[1..]));
        states.collect::<Vec<_>>().join(", ")
    }
}

/// Several lines for each stack and guard.
fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    for row in rows {
        let [best, rest] = match &row.nmap[..] {
            [] => ["no match".to_owned(), String::new()],
            [only] => [only.clone(), String::new()],
            [best, rest @ ..] => [best.clone(), format!(", and {} more", rest.len())],
        };
        text += &format!("{:12} {:9} nmap   {best}{rest}\n", row.stack, row.guard.name());
        for (kind, [guess, signature]) in [("syn", &row.p0f_client), ("syn+ack", &row.p0f_server)] {
            text += &format!("{:22} p0f    {kind}: {guess}  {signature}\n", "");
        }
        text += &format!("{:22} ports  {}\n", "", row.scanned());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(stack: &'static str, guard: Guard, guess: &str, scan: &str) -> Row {
        let pair = || ["???".to_owned(), guess.to_owned()];
        Row {
            stack,
            guard,
            nmap: vec![guess.to_owned()],
            nmap_fields: BTreeMap::new(),
            p0f_client: pair(),
            p0f_server: pair(),
            scans: [("-sF".to_owned(), [scan.to_owned(), scan.to_owned()])].into(),
        }
    }

    fn failures(rows: &[Row]) -> Vec<String> {
        judge(rows).into_iter().filter(Verdict::fails).map(|verdict| verdict.what).collect()
    }

    #[test]
    fn stacks_must_differ_without_the_gateway_and_be_one_behind_it() {
        let bare = [row("a", Guard::None, "x", "closed"), row("b", Guard::None, "y", "closed")];
        assert!(failures(&bare).is_empty());
        let same = [row("a", Guard::Strict, "x", "filtered"), row("b", Guard::Strict, "x", "filtered")];
        assert!(failures(&same).is_empty());
        let wrong = [row("a", Guard::Strict, "x", "closed"), row("b", Guard::Strict, "y", "filtered")];
        assert_eq!(failures(&wrong).len(), 3, "{:?}", failures(&wrong));
        let mut unlike = same.clone();
        unlike[0].nmap_fields = [("SCAN", "M=1"), ("SEQ", "SP=106%GCD=1%ISR=10D%TI=Z"), ("T5", "R=Y%DF=Y")]
            .map(|(test, values)| (test.to_owned(), values.to_owned()))
            .into();
        unlike[1].nmap_fields = unlike[0].nmap_fields.clone();
        unlike[1]
            .nmap_fields
            .extend([("SCAN".to_owned(), "M=2".to_owned()), ("SEQ".to_owned(), "SP=EE%TI=Z".to_owned())]);
        assert!(failures(&unlike).is_empty(), "{:?}", failures(&unlike));
        unlike[1].nmap_fields.insert("T5".to_owned(), "R=Y%DF=N".to_owned());
        assert_eq!(failures(&unlike), ["strict: nmap measures 2 kind of stack"]);
        let alike = [row("a", Guard::None, "x", "closed"), row("b", Guard::None, "x", "closed")];
        assert_eq!(failures(&alike).len(), 2);
    }
}
