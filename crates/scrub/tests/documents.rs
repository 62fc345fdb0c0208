//! `docs/scrubbing.md` says what the code does: its table of rules is that of `rule.rs`, and the tests that it names exist.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

use std::fs;
use std::path::{Path, PathBuf};

use scrub::Rule;

fn room() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn document() -> String {
    read(&room().join("../../docs/scrubbing.md"))
}

/// The row of a rule: name, what it does, what it can break, where it is written down, and the presets that have it on.
fn row(rule: Rule) -> String {
    let names = ["paper", "balanced", "strict"].into_iter().zip(rule.is_on());
    let on: Vec<&str> = names.filter(|(_, is_on)| *is_on).map(|(name, _)| name).collect();
    let presets = if on.len() == 3 { "all".to_owned() } else { on.join(", ") };
    format!("| `{rule}` | {} | {} | {} | {presets} |", rule.does(), rule.risk(), rule.source())
}

#[test]
fn every_rule_has_its_row() {
    let document = document();
    let rows = document.lines().skip_while(|line| !line.starts_with("| rule |")).skip(2);
    let there: Vec<&str> = rows.take_while(|line| line.starts_with('|')).collect();
    let expected: Vec<String> = Rule::ALL.iter().map(|rule| row(*rule)).collect();
    let missing: Vec<&str> = expected.iter().map(String::as_str).filter(|row| !there.contains(row)).collect();
    assert!(missing.is_empty(), "rows that docs/scrubbing.md lacks or has otherwise:\n{}", missing.join("\n"));
    assert_eq!(there, expected, "rows of rules that are gone, or in another order");
}

/// The tests that a document names as `case_…`.
fn named_tests(text: &str) -> Vec<String> {
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter(|span| span.starts_with("case_")).map(str::to_owned).collect()
}

#[test]
fn every_case_that_is_named_has_its_test() {
    let tests: String = files_in(&room().join("tests"), "rs").iter().map(|file| read(file)).collect();
    let documents = files_in(&room().join("../../docs"), "md");
    let about_scrubbing = documents.iter().filter(|file| file.to_string_lossy().contains("scrubbing"));
    let named: Vec<String> = about_scrubbing.flat_map(|file| named_tests(&read(file))).collect();
    let missing: Vec<&String> = named.iter().filter(|name| !tests.contains(&format!("fn {name}("))).collect();
    assert!(named.len() > 10, "the documents are read: {} tests", named.len());
    assert!(missing.is_empty(), "tests that docs name and that do not exist: {missing:?}");
}

#[test]
fn no_case_is_missing() {
    let documents = files_in(&room().join("../../docs"), "md");
    let about_scrubbing = documents.iter().filter(|file| file.to_string_lossy().contains("scrubbing"));
    let rows: String = about_scrubbing.map(|file| read(file)).collect();
    let cases = (1..=114).map(|number| number.to_string()).chain(["62b".to_owned()]);
    let missing: Vec<String> = cases.filter(|case| !rows.contains(&format!("\n| {case} |"))).collect();
    assert!(missing.is_empty(), "cases without a row: {missing:?}");
}

fn files_in(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("the directory").map(|entry| entry.expect("an entry").path());
    entries.filter(|path| path.extension().is_some_and(|found| found == extension)).collect()
}
