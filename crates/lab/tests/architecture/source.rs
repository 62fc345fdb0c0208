//! The tree's files, and Rust source without what is not code: comments, the insides of strings, and tests.

use std::fs;
use std::path::{Path, PathBuf};

/// The root of the tree.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the tree")
}

/// The text of a file, named from the root.
pub(crate) fn read(name: &str) -> String {
    let path = root().join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// All files below `directory` (named from the root) but build results and the repository's own, as names from the root.
pub(crate) fn files_below(directory: &str) -> Vec<String> {
    const LEFT_OUT: [&str; 4] = ["target", ".git", "artifacts", "corpus"];
    let mut found = Vec::new();
    let mut waiting = vec![root().join(directory)];
    while let Some(path) = waiting.pop() {
        for entry in fs::read_dir(&path).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.path().is_dir() && !LEFT_OUT.contains(&name.as_str()) {
                waiting.push(entry.path());
            } else if entry.path().is_file() {
                let from_root = entry.path().strip_prefix(root()).expect("below the root").to_owned();
                found.push(from_root.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// The Rust files of a crate that end up in its program or library.
pub(crate) fn product_files(room: &str) -> Vec<String> {
    let is_test = |name: &String| {
        let stem = name.trim_end_matches(".rs");
        stem.ends_with("/tests") || stem.ends_with("_tests") || name.contains("/tests/")
    };
    let all = files_below(&format!("crates/{room}/src")).into_iter();
    all.filter(|name| name.ends_with(".rs")).filter(|name| !is_test(name)).collect()
}

/// The code of a file: what the compiler sees outside of tests, with every line where it was.
pub(crate) fn code(name: &str) -> String {
    outside_of_tests(&read(name))
}

/// Of a source text, what the compiler sees outside of tests.
pub(crate) fn outside_of_tests(source: &str) -> String {
    without_tests(&without_text(source))
}

/// What stands at one place of a source text.
enum Piece {
    Code,
    /// A comment or a literal, and how many characters it takes.
    Text(usize),
}

/// Blanks comments and the insides of string and character literals.
pub(crate) fn without_text(source: &str) -> String {
    let letters: Vec<char> = source.chars().collect();
    let mut code = String::with_capacity(source.len());
    let mut at = 0;
    while at < letters.len() {
        match piece(&letters, at) {
            Piece::Code => {
                code.push(letters[at]);
                at += 1;
            }
            Piece::Text(len) => {
                let blank = |letter: &char| if *letter == '\n' { '\n' } else { ' ' };
                let end = (at + len).min(letters.len());
                code.extend(letters[at..end].iter().map(blank));
                at = end;
            }
        }
    }
    code
}

fn piece(letters: &[char], at: usize) -> Piece {
    let rest = &letters[at..];
    let in_word = at > 0 && is_word(letters[at - 1]);
    match rest {
        ['/', '/', ..] => Piece::Text(rest.iter().position(|letter| *letter == '\n').unwrap_or(rest.len())),
        ['/', '*', ..] => {
            Piece::Text(rest.windows(2).skip(2).position(|two| two == ['*', '/']).map_or(rest.len(), |at| at + 4))
        }
        ['r', '"' | '#', ..] if !in_word => raw_string(rest),
        ['b', 'r', '"' | '#', ..] if !in_word => match raw_string(&rest[1..]) {
            Piece::Text(len) => Piece::Text(len + 1),
            Piece::Code => Piece::Code,
        },
        ['"', ..] => Piece::Text(quoted(rest, '"')),
        ['\'', '\\', ..] => Piece::Text(quoted(rest, '\'')),
        ['\'', _, '\'', ..] => Piece::Text(3),
        _ => Piece::Code,
    }
}

/// Length of a literal in `mark`s, both included.
fn quoted(rest: &[char], mark: char) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != mark {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

fn raw_string(rest: &[char]) -> Piece {
    let marks = rest[1..].iter().take_while(|letter| **letter == '#').count();
    if rest.get(1 + marks) != Some(&'"') {
        return Piece::Code;
    }
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', marks)).collect();
    let body = &rest[2 + marks..];
    let len = body.windows(end.len()).position(|some| some == end).unwrap_or(body.len());
    Piece::Text(2 + marks + len + end.len())
}

pub(crate) fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// Blanks every item that is compiled for tests only.
fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut code = code.to_owned();
    while let Some(start) = code.find(MARK) {
        let end = item_end(&code, start + MARK.len());
        let blanked: String = code[start..end].chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }).collect();
        code.replace_range(start..end, &blanked);
    }
    code
}

/// Where the item ends that begins at `from`: behind its closing brace, or behind a semicolon before the first brace. A
/// semicolon in parentheses or brackets, as in `[u8; 4]`, ends nothing.
pub(crate) fn item_end(code: &str, from: usize) -> usize {
    let (mut braces, mut brackets) = (0, 0);
    for (at, letter) in code[from..].char_indices() {
        match letter {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            ';' if braces == 0 && brackets == 0 => return from + at + 1,
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                if braces <= 0 {
                    return from + at + 1;
                }
            }
            _ => {}
        }
    }
    code.len()
}
