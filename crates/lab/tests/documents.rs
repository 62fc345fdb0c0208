//! Documents hold together: every link leads somewhere, and every decision record is in the index.
//!
//! It reads the tree as text and needs neither root nor a network.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[path = "architecture/source.rs"]
#[expect(dead_code, reason = "the architecture test uses the rest")]
mod source;

use std::path::{Component, Path, PathBuf};

use source::{files_below, read, root};

/// Files of Markdown in the tree, named from the root.
fn documents() -> Vec<String> {
    let mut found = files_below(".");
    found.retain(|name| name.ends_with(".md"));
    found
}

/// The targets of all links of a document, outside of code.
fn links(document: &str) -> Vec<String> {
    let mut in_block = false;
    let mut found = Vec::new();
    for line in document.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if !in_block {
            let prose: String = line.split('`').step_by(2).collect();
            found.extend(prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0.to_owned())));
        }
    }
    found
}

/// The names by which the headings of a document are linked to, as forges make them.
fn anchors(document: &str) -> Vec<String> {
    let mut in_block = false;
    let mut found = Vec::new();
    for line in document.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if !in_block && line.starts_with('#') {
            found.push(anchor(line.trim_start_matches('#').trim()));
        }
    }
    found
}

fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'));
    kept.map(|letter| if letter == ' ' { '-' } else { letter }).collect()
}

/// `target` as a name from the root, when it stands in `document`; `None` when it leaves the tree.
fn resolve(document: &str, target: &str) -> Option<String> {
    let mut parts = Vec::new();
    let from = Path::new(document).parent().unwrap_or(Path::new(""));
    for part in from.join(target).components() {
        match part {
            Component::Normal(name) => parts.push(name.to_owned()),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.iter().collect::<PathBuf>().to_string_lossy().into_owned())
}

/// What is wrong with a link, if anything is.
fn fault(document: &str, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() { Some(document.to_owned()) } else { resolve(document, path) };
    let Some(target) = target.filter(|target| root().join(target).exists()) else {
        return Some(format!("{document}: {link}: there is no such file"));
    };
    let is_there = heading.is_empty() || anchors(&read(&target)).iter().any(|name| name == heading);
    (!is_there).then(|| format!("{document}: {link}: there is no such heading"))
}

#[test]
fn every_link_leads_somewhere() {
    let documents = documents();
    let all: Vec<(String, String)> = documents
        .iter()
        .flat_map(|document| links(&read(document)).into_iter().map(|link| (document.clone(), link)))
        .collect();
    assert!(all.len() > 100, "documents are read: {} links", all.len());
    let faults: Vec<String> = all.iter().filter_map(|(document, link)| fault(document, link)).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let document = "Read [this](no-such-file.md), not `[that](neither.md)`.\n```\n[code](x.md)\n```\n";
    assert_eq!(links(document), ["no-such-file.md"]);
    assert!(fault("docs/threats.md", "no-such-file.md").is_some());
    assert!(fault("docs/threats.md", "../README.md#no such heading").is_some());
    assert!(fault("docs/threats.md", "../../elsewhere.md").is_some());
    assert!(fault("docs/threats.md", "../README.md").is_none());
    assert_eq!(anchors("# Words: `code`, and more\n```\n# none\n```\n"), ["words-code-and-more"]);
}

/// Records are not in it: `packaging/book.sh` puts them behind their index.
#[test]
fn the_book_has_every_page() {
    const SUMMARY: &str = "docs/SUMMARY.md";
    let pages: Vec<String> = links(&read(SUMMARY)).iter().filter_map(|link| resolve(SUMMARY, link)).collect();
    let is_record = |name: &str| name.starts_with("docs/decisions/") && name != "docs/decisions/README.md";
    let missing: Vec<String> =
        documents().into_iter().filter(|name| name != SUMMARY && !is_record(name) && !pages.contains(name)).collect();
    assert!(pages.len() > 40, "{} pages", pages.len());
    assert!(missing.is_empty(), "pages that {SUMMARY} lacks: {missing:?}");
}

/// The numbers of records that have a heading in `file`, with the link by which the index leads there.
fn records_in(file: &str) -> Vec<(String, String)> {
    let name = file.trim_start_matches("docs/decisions/");
    let text = read(file);
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let titles = headings.map(|line| (line.starts_with("# "), line.trim_start_matches('#').trim()));
    titles
        .filter_map(|(is_first, title)| {
            let (number, _) = title.split_once(' ')?;
            let is_number = number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit());
            let link = if is_first { name.to_owned() } else { format!("{name}#{}", anchor(title)) };
            is_number.then(|| (number.to_owned(), link))
        })
        .collect()
}

#[test]
fn every_decision_record_is_in_the_index_with_its_status() {
    const INDEX: &str = "docs/decisions/README.md";
    let index = read(INDEX);
    let rows: Vec<&str> = index.lines().filter(|line| line.starts_with("| [")).collect();
    let mut wrong = Vec::new();
    for file in files_below("docs/decisions").iter().filter(|file| *file != INDEX) {
        let mut records = records_in(file);
        if records.is_empty() {
            let name = file.trim_start_matches("docs/decisions/");
            records.push((name.trim_end_matches(".md").to_owned(), name.to_owned()));
        }
        for (number, link) in records {
            let of_it: Vec<_> = rows.iter().filter(|row| row.starts_with(&format!("| [{number}]"))).collect();
            if of_it.len() != 1 || !of_it[0].contains(&format!("]({link})")) {
                wrong.push(format!("{file}: {number}: {} rows in {INDEX}, none to {link}", of_it.len()));
            }
        }
    }
    let has_status = |row: &&&str| row.split('|').nth(3).is_some_and(|status| !status.trim().is_empty());
    wrong.extend(rows.iter().filter(|row| !has_status(row)).map(|row| format!("no status: {row}")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The numbers behind the word `record` or `records` in `text`.
fn named_records(text: &str) -> Vec<String> {
    let words: Vec<&str> =
        text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is_number =
        |word: &str| word.len() == 4 && word.starts_with('0') && word.bytes().all(|byte| byte.is_ascii_digit());
    let pairs = words.windows(2).filter(|pair| pair[0].eq_ignore_ascii_case("record") || pair[0] == "records");
    pairs.map(|pair| pair[1]).filter(|word| is_number(word)).map(str::to_owned).collect()
}

#[test]
fn every_record_that_is_named_is_in_the_index() {
    let index = read("docs/decisions/README.md");
    let kinds = [".rs", ".md", ".sh", ".c", ".h", ".py", ".toml", ".service"];
    let files = files_below(".").into_iter().filter(|name| kinds.iter().any(|kind| name.ends_with(kind)));
    let named: Vec<(String, String)> = files
        .flat_map(|file| named_records(&read(&file)).into_iter().map(move |number| (file.clone(), number)))
        .collect();
    assert!(named.len() > 200, "{} are named", named.len());
    let missing: Vec<_> = named.iter().filter(|(_, number)| !index.contains(&format!("\n| [{number}]("))).collect();
    assert!(missing.is_empty(), "records that the index lacks: {missing:?}");
    assert_eq!(named_records("(Record 0001, records 0002; record 12, 0003)"), ["0001", "0002"]);
}
