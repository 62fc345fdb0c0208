//! `ringwall-lab demo`: every attack without and with its guard, in one table. `ringwall-lab attack`: one of them.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use crate::attack::scene::{self, Row};
use crate::attack::{self, Attack};
use crate::cleanup::{self, Run};
use crate::failure::Failure;
use crate::guard::{self, Guard, Site};

/// What to run.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Only these attacks, by number
    #[arg(long, value_delimiter = ',')]
    only: Vec<u16>,
    /// Only under these guards
    #[arg(long, value_delimiter = ',', value_enum)]
    guard: Vec<Guard>,
    /// Write the rows to this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
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
}

/// Runs the demo. Success only if every row is as it must be.
///
/// # Errors
/// The request makes no sense, or the lab itself fails.
pub fn run(args: &Args) -> Result<ExitCode, Failure> {
    let attacks = chosen(&args.only)?;
    let plays: Vec<(&Attack, Guard)> = attacks
        .into_iter()
        .flat_map(|attack| attack.plays().map(move |guard| (attack, guard)))
        .filter(|(_, guard)| args.guard.is_empty() || args.guard.contains(guard))
        .collect();
    if plays.is_empty() {
        return Err(Failure::Usage("none of these attacks is run under this guard".to_owned()));
    }
    let start = Instant::now();
    let rows = play_all(&plays, &args.common)?;
    print!("{}", table(&rows));
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&rows).map_err(|error| Failure::Unreadable(error.to_string()))?;
        std::fs::write(path, text + "\n").map_err(Failure::file("writing", path))?;
    }
    let wrong = rows.iter().filter(|row| !row.is_as_it_must_be()).count();
    let verdict = if wrong == 0 { "all as they must be".to_owned() } else { format!("{wrong} not as they must be") };
    println!("\n{} rows, {verdict}, {:.0} s", rows.len(), start.elapsed().as_secs_f64());
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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

fn play_all(plays: &[(&Attack, Guard)], common: &Common) -> Result<Vec<Row>, Failure> {
    let run = cleanup::begin_transient()?;
    let site = if plays.iter().any(|(_, guard)| *guard != Guard::None) { Some(found_site(run, common)?) } else { None };
    let mut rows = Vec::new();
    for (at, (attack, guard)) in plays.iter().enumerate() {
        eprintln!("[{}/{}] {} {}, guard {guard}", at + 1, plays.len(), attack.number, attack.name);
        let row = scene::play(attack, *guard, run, site.as_ref(), common.seed)?;
        if !row.is_as_it_must_be() {
            eprintln!("        {}: {}", row.outcome.word(), row.evidence);
        }
        rows.push(row);
    }
    Ok(rows)
}

fn found_site(run: &Run, common: &Common) -> Result<Site, Failure> {
    let program = guard::find_program(common.ringwall.as_deref())?;
    Site::found(run, &program)
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
    use crate::attack::scene::Outcome;

    fn row(attack: &str, guard: Guard, outcome: Outcome) -> Row {
        Row { attack: attack.to_owned(), tool: "t".to_owned(), guard, outcome, evidence: format!("seen under {guard}") }
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
    fn unknown_numbers_are_refused_with_the_known_ones() {
        let failure = chosen(&[1, 99]).expect_err("99 is not here");
        assert!(failure.to_string().contains("no attack 99; there are 1, 2, "), "{failure}");
    }
}
