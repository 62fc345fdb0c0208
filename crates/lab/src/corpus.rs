//! `ringwall-lab corpus`: a folder of captures through `gate replay` in every preset, and one table
//! of what it made of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::Value;

use crate::failure::Failure;

const PRESETS: [&str; 3] = ["paper", "balanced", "strict"];
/// Names of captures end so, before the ending of a compressed one.
const ENDINGS: [&str; 4] = ["pcap", "pcapng", "cap", "ntar"];
const PACKED: [&str; 2] = ["gz", "zst"];
/// Captures that are named of each line, where they are more.
const NAMED_MAX: usize = 3;

/// Options of `ringwall-lab corpus`
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The folder; those in it are searched as well
    folder: PathBuf,
    /// The program under test
    #[arg(long, value_name = "FILE", default_value = "ringwall")]
    program: PathBuf,
    /// Addresses of the trusted side, as gate replay takes them
    #[arg(long, value_name = "NET")]
    trusted: Option<String>,
}

/// What became of captures in one preset: under each word those to which it applies.
type Outcomes = BTreeMap<String, Vec<PathBuf>>;

/// Runs all captures of the folder and prints the table; fails if the program crashed, hung up or refused one.
///
/// # Errors
/// The folder cannot be read, or nothing can be written beside it.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let mut captures = Vec::new();
    find(&args.folder, &mut captures)?;
    captures.sort();
    let folders: BTreeSet<_> = captures.iter().filter_map(|capture| capture.parent()).collect();
    println!("{} captures in {} folders", captures.len(), folders.len());
    let written = std::env::temp_dir().join(format!("ringwall-corpus-{}", std::process::id()));
    let mut is_well = !captures.is_empty();
    for preset in PRESETS {
        let mut outcomes = Outcomes::new();
        for capture in &captures {
            let word = replay(args, preset, capture, &written)?;
            is_well &= !word.starts_with("refused") && !word.starts_with("crashed");
            outcomes.entry(word).or_default().push(capture.clone());
        }
        print(preset, &args.folder, &outcomes);
    }
    // Nothing is there if the program never began a file.
    let _ = fs::remove_file(&written);
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let failed = |error| Failure::file("reading", folder)(error);
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            find(&path, found)?;
        } else if is_capture(&path) {
            found.push(path);
        }
    }
    Ok(())
}

fn is_capture(path: &Path) -> bool {
    let ends = |path: &Path, endings: &[&str]| {
        path.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| endings.contains(&ending))
    };
    let packed = ends(path, &PACKED);
    let name = if packed { path.with_extension("") } else { path.to_owned() };
    ends(&name, &ENDINGS)
}

/// One capture in one preset: unchanged, changed by which rules, or refused with which words.
fn replay(args: &Args, preset: &str, capture: &Path, written: &Path) -> Result<String, Failure> {
    let mut command = Command::new(&args.program);
    command
        .args(["gate", "replay", "--json", "--preset", preset])
        .arg("--read")
        .arg(capture)
        .arg("--write")
        .arg(written);
    command.args(args.trusted.iter().flat_map(|net| ["--trusted", net]));
    let output = command.output().map_err(Failure::file("starting", &args.program))?;
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().last().unwrap_or_default();
    Ok(match (output.status.code(), serde_json::from_slice::<Value>(&output.stdout)) {
        (Some(0), Ok(report)) => changes(&report),
        (Some(1), _) => format!("refused: {}", last.rsplit_once(": ").map_or(last, |(_, why)| why)),
        (code, _) => format!("crashed: {code:?} {last}"),
    })
}

/// The rules that acted and the reasons for which frames were dropped.
fn changes(report: &Value) -> String {
    let names = |key: &str| report[key].as_object().into_iter().flat_map(|counts| counts.keys().cloned());
    let mut acted: Vec<_> = names("rules").chain(names("drops")).collect();
    acted.dedup();
    if acted.is_empty() { "unchanged".to_owned() } else { format!("changed: {}", acted.join(", ")) }
}

fn print(preset: &str, folder: &Path, outcomes: &Outcomes) {
    println!("\n{preset}");
    for (word, captures) in outcomes {
        let names = captures
            .iter()
            .take(NAMED_MAX)
            .map(|capture| capture.strip_prefix(folder).unwrap_or(capture).display().to_string());
        let more = if captures.len() > NAMED_MAX { ", …" } else { "" };
        println!("  {:>6}  {word}\n          {}{more}", captures.len(), names.collect::<Vec<_>>().join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn captures_are_known_by_their_names() {
        for name in ["a.pcap", "b.pcapng", "c.cap", "d.pcap.gz", "e.pcapng.zst"] {
            assert!(is_capture(Path::new(name)), "{name}");
        }
        for name in ["a.txt", "b.gz", "c.txt.zst", "pcap", "d.pcap.txt"] {
            assert!(!is_capture(Path::new(name)), "{name}");
        }
    }
}
