//! `ringwall-lab demo`: attacks without and with their guard, in one table. `ringwall-lab attack`: one of them.

mod page;
mod players;
mod terminal;

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Instant;

use players::{Play, Players};

use crate::attack::scene::{Outcome, Row};
use crate::attack::{self, Attack};
use crate::cleanup;
use crate::failure::Failure;
use crate::guard::{self, Guard};
use crate::net::process;

/// The attacks that are shown to who asks for no others, and under which guard: the oldest ones on
/// ARP and DHCP, one on IPv6, listeners and forgers, what replays old keys and answers, and floods
/// that cost their receiver more than their sender.
const TELLING: [(&str, Guard); 12] = [
    ("unsolicited ARP reply", Guard::Sarp),
    ("two-way man in the middle", Guard::Cll),
    ("replayed signed answer", Guard::Sarp),
    ("rogue DHCP server", Guard::Sarp),
    ("rogue router", Guard::Cll),
    ("injected IP with a spoofed source", Guard::Cll),
    ("bit flips in header, ciphertext and tag", Guard::Cll),
    ("eavesdropping for a known payload", Guard::Cll),
    ("MAC cloning steals the switch's entry", Guard::Cll),
    ("b: flood with a wrong nonce", Guard::Cll),
    ("d: flood of handshakes from made-up hosts", Guard::Cll),
    ("a: key distributor's answers replayed and forged", Guard::Sarp),
];

/// What to run; a dozen telling attacks unless it is said.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Every attack under every guard
    #[arg(long)]
    all: bool,
    /// Only these attacks, by number
    #[arg(long, value_delimiter = ',')]
    only: Vec<u16>,
    /// Only under these guards
    #[arg(long, value_delimiter = ',', value_enum)]
    guard: Vec<Guard>,
    /// Write the rows to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write a page with the rows and their evidence to this file, for a browser
    #[arg(long, value_name = "FILE", overrides_with = "page")]
    page: Option<PathBuf>,
    /// Write what all daemons told of attacks to this file, as lines of Suricata's EVE
    #[arg(long, value_name = "FILE")]
    eve: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// What to run, for one attack.
#[derive(Clone, Debug, clap::Args)]
pub struct AttackArgs {
    /// Number of the attack
    number: u16,
    /// Under which guard; by default the one under which it succeeds
    #[arg(long, value_enum)]
    guard: Option<Guard>,
    #[command(flatten)]
    common: Common,
}

#[derive(Clone, Debug, clap::Args)]
struct Common {
    /// The ringwall program; by default the one beside this program
    #[arg(long, value_name = "PATH")]
    ringwall: Option<PathBuf>,
    /// Seed of everything that is drawn by chance
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many rows are played at a time; floods are played alone, and again unguarded rows that were not proved
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=16))]
    jobs: u8,
}

/// Runs the demo. Success only if every row is as it must be.
///
/// # Errors
/// The request makes no sense, or the lab itself fails.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let plays = plays_of(args)?;
    if plays.is_empty() {
        return Err(Failure::Usage("none of these attacks is run under this guard".to_owned()));
    }
    let start = Instant::now();
    let rows = play_all(&plays, &args.common)?;
    print!("{}", table(&rows));
    write_files(args, &rows)?;
    let is_good = rows.iter().all(Row::is_as_it_must_be);
    println!("\n{}", terminal::Colours::of_stdout().verdict(&verdict(&rows), is_good));
    println!("{} rows, {:.0} s", rows.len(), start.elapsed().as_secs_f64());
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The rows in the forms that `args` ask for.
fn write_files(args: &Args, rows: &[Row]) -> Result<(), Failure> {
    let write = |path: &PathBuf, text: String| std::fs::write(path, text).map_err(Failure::file("writing", path));
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(rows).map_err(|error| Failure::Unreadable(error.to_string()))?;
        write(path, text + "\n")?;
    }
    if let Some(path) = &args.page {
        write(path, page::page(rows))?;
        println!("\nevidence of each row, for a browser: {}", path.display());
    }
    if let Some(path) = &args.eve {
        let text: String = rows.iter().map(|row| row.eve.as_str()).collect();
        println!("\nlines of EVE by all daemons: {}, in {}", text.lines().count(), path.display());
        write(path, text)?;
    }
    Ok(())
}

/// The attacks and guards that `args` ask for, by number.
fn plays_of(args: &Args) -> Result<Vec<Play>, Failure> {
    let is_asked = args.all || !args.only.is_empty() || !args.guard.is_empty();
    let plays = chosen(&args.only)?.into_iter().flat_map(|attack| attack.plays().map(move |guard| (attack, guard)));
    let is_wanted = |attack: &Attack, guard: Guard| {
        let is_told = |&(name, under): &(&str, Guard)| name == attack.name && (guard == under || !guard.is_whole());
        if is_asked { args.guard.is_empty() || args.guard.contains(&guard) } else { TELLING.iter().any(is_told) }
    };
    Ok(plays.filter(|(attack, guard)| is_wanted(attack, *guard)).collect())
}

/// What came of all of it, in one line.
fn verdict(rows: &[Row]) -> String {
    let of = |is_whole: bool, outcome: Outcome| {
        let tried = rows.iter().filter(|row| row.guard.is_whole() == is_whole && row.outcome.is_tried());
        let count = tried.clone().filter(|row| row.outcome == outcome).count();
        format!("{count} of {}", tried.count())
    };
    let wrong = rows.iter().filter(|row| !row.is_as_it_must_be()).count();
    let judged = if wrong == 0 { "all as they must be".to_owned() } else { format!("{wrong} not as they must be") };
    let (succeeded, blocked) = (of(false, Outcome::Succeeded), of(true, Outcome::Blocked));
    format!("without its guard {succeeded} succeeded, with it {blocked} were blocked: {judged}")
}

/// Runs one attack and prints what came of it.
///
/// # Errors
/// As [`run`].
pub fn run_one(args: &AttackArgs) -> Result<ExitCode, Failure> {
    let mut plays = Vec::new();
    for attack in chosen(&[args.number])? {
        let guard = args.guard.unwrap_or(attack.unguarded());
        if attack.plays().any(|play| play == guard) {
            plays.push((attack, guard));
        }
    }
    if plays.is_empty() {
        return Err(Failure::Usage(format!("attack {} is not run under this guard", args.number)));
    }
    let rows = play_all(&plays, &args.common)?;
    let as_it_must_be = rows.iter().all(Row::is_as_it_must_be);
    for row in rows {
        println!("{} ({}), guard {}: {}\n{}", row.attack, row.tool, row.guard, row.outcome.word(), row.evidence);
    }
    Ok(if as_it_must_be { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn chosen(numbers: &[u16]) -> Result<Vec<&'static Attack>, Failure> {
    if let Some(unknown) = numbers.iter().find(|&&number| attack::all().all(|attack| attack.number != number)) {
        let mut known: Vec<String> = attack::all().map(|attack| attack.number.to_string()).collect();
        known.dedup();
        return Err(Failure::Usage(format!("there is no attack {unknown}; there are {}", known.join(", "))));
    }
    Ok(attack::all().filter(|attack| numbers.is_empty() || numbers.contains(&attack.number)).collect())
}

fn play_all(plays: &[Play], common: &Common) -> Result<Vec<Row>, Failure> {
    let run = cleanup::begin_transient()?;
    probe_namespaces()?;
    let needs_program = plays.iter().any(|(_, guard)| *guard != Guard::None);
    let program = needs_program.then(|| guard::find_program(common.ringwall.as_deref())).transpose()?;
    let colours = terminal::Colours::of_stderr();
    let players = Players { plays, program: program.as_deref(), seed: common.seed, colours };
    players.play_all(run, usize::from(common.jobs).min(plays.len()))
}

/// One line in the place of as many errors as there are rows.
fn probe_namespaces() -> Result<(), Failure> {
    let mut probe = Command::new("unshare");
    probe.args(["--net", "ip", "link", "add", "name", "probe", "type", "bridge"]);
    match process::must(probe) {
        Err(Failure::Interrupted) => Err(Failure::Interrupted),
        Err(failure) => Err(Failure::NotTestable(format!("no LAN can be made of namespaces here: {failure}"))),
        Ok(_) => Ok(()),
    }
}

/// One line for each attack, its evidence below.
fn table(rows: &[Row]) -> String {
    let mut names: Vec<(&str, &str)> = rows.iter().map(|row| (row.attack.as_str(), row.tool.as_str())).collect();
    names.dedup();
    let width = |of: fn(&(&str, &str)) -> usize| names.iter().map(of).max().unwrap_or(0);
    let (attack_width, tool_width) = (width(|(attack, _)| attack.len()), width(|(_, tool)| tool.len()));
    let line = |attack: &str, tool: &str, unguarded: &str, guarded: &str, evidence: &str| {
        let text = format!("{attack:attack_width$}  {tool:tool_width$}  {unguarded:24}  {guarded:29}  {evidence}");
        text.trim_end().to_owned() + "\n"
    };
    let mut text = line("attack", "tool", "unguarded", "guarded", "evidence");
    for (attack, tool) in names {
        let of = |whole: bool| rows.iter().filter(move |row| row.attack == attack && row.guard.is_whole() == whole);
        let words = |whole: bool| {
            let words: Vec<_> = of(whole).map(|row| format!("{} ({})", row.outcome.word(), row.guard)).collect();
            if words.is_empty() { "-".to_owned() } else { words.join(", ") }
        };
        let mut evidence = of(false).chain(of(true)).map(|row| format!("{}: {}", row.guard, row.evidence));
        text += &line(attack, tool, &words(false), &words(true), &evidence.next().unwrap_or_default());
        for more in evidence {
            text += &line("", "", "", "", &more);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(attack: &str, guard: Guard, outcome: Outcome) -> Row {
        let evidence = format!("seen under {guard}");
        Row { attack: attack.to_owned(), tool: "t".to_owned(), guard, outcome, evidence, eve: String::new() }
    }

    #[test]
    fn the_table_has_both_outcomes_in_one_line() {
        let rows = [row("1 x", Guard::None, Outcome::Succeeded), row("1 x", Guard::Cll, Outcome::Blocked)];
        let text = table(&rows);
        let line = text.lines().nth(1).expect("a line for the attack");
        assert!(
            line.contains("succeeded (none)") && line.contains("blocked (cll)") && line.ends_with("seen under none")
        );
        assert!(text.lines().nth(2).expect("a second line").ends_with("cll: seen under cll"));
    }

    #[test]
    fn rows_have_the_words_that_readers_of_the_file_expect() {
        let text = serde_json::to_string(&row("1 x", Guard::Weakened, Outcome::Succeeded)).expect("plain data");
        assert!(text.contains(r#""guard":"weakened","outcome":"succeeded""#), "{text}");
    }

    #[test]
    fn a_skipped_row_is_not_as_it_must_be() {
        assert!(!row("1 x", Guard::None, Outcome::Skipped).is_as_it_must_be());
        assert!(!row("1 x", Guard::Cll, Outcome::Succeeded).is_as_it_must_be());
        assert!(!row("1 x", Guard::None, Outcome::Blocked).is_as_it_must_be());
    }

    #[test]
    fn what_cannot_be_tried_is_as_it_must_be_with_its_reason_only() {
        for (outcome, word) in [(Outcome::NotTestable, "not testable here"), (Outcome::DoesNotApply, "does not apply")]
        {
            let mut untried = row("1 x", Guard::Cll, outcome);
            assert!(untried.is_as_it_must_be());
            let text = serde_json::to_string(&untried).expect("plain data");
            assert!(text.contains(&format!(r#""outcome":"{word}""#)) && outcome.word() == word, "{text}");
            untried.evidence.clear();
            assert!(!untried.is_as_it_must_be());
        }
    }

    #[test]
    fn a_dozen_attacks_are_shown_each_without_and_with_one_guard() {
        let args = Args {
            all: false,
            only: Vec::new(),
            guard: Vec::new(),
            json: None,
            page: None,
            eve: None,
            common: Common { ringwall: None, seed: 1, jobs: 1 },
        };
        let told = plays_of(&args).expect("plays");
        for (name, guard) in TELLING {
            let under: Vec<Guard> =
                told.iter().filter(|(attack, _)| attack.name == name).map(|(_, guard)| *guard).collect();
            assert!(under.len() == 2 && !under[0].is_whole() && under[1] == guard, "{name}: {under:?}");
        }
        let all = plays_of(&Args { all: true, ..args }).expect("plays");
        assert_eq!(told.len(), 2 * TELLING.len());
        assert_eq!(all.len(), attack::all().map(|attack| attack.plays().count()).sum::<usize>());
    }

    #[test]
    fn the_verdict_counts_what_was_tried() {
        let mut rows = vec![
            row("1 x", Guard::None, Outcome::Succeeded),
            row("1 x", Guard::Cll, Outcome::Blocked),
            row("2 y", Guard::Cll, Outcome::DoesNotApply),
        ];
        let good = "without its guard 1 of 1 succeeded, with it 1 of 1 were blocked: all as they must be";
        assert_eq!(verdict(&rows), good);
        rows.push(row("3 z", Guard::Sarp, Outcome::Succeeded));
        assert!(verdict(&rows).ends_with("with it 1 of 2 were blocked: 1 not as they must be"));
    }

    #[test]
    fn unknown_numbers_are_refused_with_the_known_ones() {
        let failure = chosen(&[1, 99]).expect_err("99 is not here");
        assert!(failure.to_string().contains("no attack 99; there are 1, 2, "), "{failure}");
    }
}
