//! How large the types of a crate are: methods over all `impl` blocks, wherever these stand, and fields.

use std::collections::BTreeMap;

use super::source::{is_word, item_end};

/// What of a type is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Of {
    Methods,
    Fields,
}

/// A type: the file that defines it, and its name.
pub(crate) type Name = (String, String);

/// How many methods and fields each type has, in all files of a crate, given as their names and their code.
pub(crate) fn sizes(files: &[(String, String)]) -> BTreeMap<(Name, Of), usize> {
    let mut sizes = BTreeMap::new();
    for (file, code) in files {
        for word in ["struct", "enum", "union"] {
            for at in items(code, word) {
                let (name, fields) = definition(code, at + word.len());
                sizes.insert(((file.clone(), name.clone()), Of::Methods), 0);
                sizes.insert(((file.clone(), name), Of::Fields), if word == "enum" { 0 } else { fields });
            }
        }
    }
    let types: Vec<Name> = sizes.keys().map(|(name, _)| name.clone()).collect();
    for (file, code) in files {
        for at in items(code, "impl") {
            let (name, methods) = implementation(code, at + "impl".len());
            // Two types of a crate may have the same name: it is the one next to here.
            let same = types.iter().filter(|(_, other)| *other == name);
            let next = same.max_by_key(|(other, _)| (other == file, in_common(other, file)));
            if let Some(count) = next.and_then(|next| sizes.get_mut(&(next.clone(), Of::Methods))) {
                *count += methods;
            }
        }
    }
    sizes
}

/// How many letters two file names have in common at their beginning.
fn in_common(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

/// Where items begin with `word`; `impl` in the type of an argument is none.
fn items(code: &str, word: &str) -> Vec<usize> {
    let is_item = |at: &usize| {
        let before = code[..*at].trim_end();
        let before =
            ["unsafe", "pub", "default"].iter().fold(before, |text, word| text.trim_end_matches(word).trim_end());
        let is_start = before.is_empty() || before.ends_with([';', '{', '}', ']', ')']);
        is_start && !code[..*at].ends_with(is_word) && !code[at + word.len()..].starts_with(is_word)
    };
    code.match_indices(word).map(|(at, _)| at).filter(is_item).collect()
}

/// Name and number of fields of the type whose definition goes on at `at`.
fn definition(code: &str, at: usize) -> (String, usize) {
    let text = &code[at..item_end(code, at)];
    let name: String = text.trim_start().chars().take_while(|letter| is_word(*letter)).collect();
    // A bound may have round brackets, too, but only a type without braces has its fields in them.
    let open = text.find('{').or_else(|| text.find('('));
    (name, open.map_or(0, |open| parts(&text[open..])))
}

/// How many parts between commas stand in the brackets that `text` begins with.
fn parts(text: &str) -> usize {
    let (mut depth, mut count, mut is_filled, mut last) = (0_i32, 0, false, ' ');
    for letter in text.chars() {
        match letter {
            ',' if depth == 1 => count += usize::from(std::mem::take(&mut is_filled)),
            '{' | '(' | '[' | '<' => depth += 1,
            '>' if last == '-' => {}
            '}' | ')' | ']' | '>' if depth == 1 => break,
            '}' | ')' | ']' | '>' => depth -= 1,
            _ => is_filled |= !letter.is_whitespace(),
        }
        last = letter;
    }
    count + usize::from(is_filled)
}

/// Name of the type that an implementation is for, and its methods.
fn implementation(code: &str, at: usize) -> (String, usize) {
    let text = &code[at..item_end(code, at)];
    let open = text.find('{').unwrap_or(text.len());
    let head = without_angles(&text[..open]);
    let head = head.split(" where ").next().unwrap_or_default();
    let target = head.rsplit(" for ").next().unwrap_or_default().trim();
    let name = target.rsplit(|letter| !is_word(letter)).next().unwrap_or_default();
    (name.to_owned(), methods(&text[open..]))
}

/// A text without what stands in angle brackets.
fn without_angles(text: &str) -> String {
    let (mut depth, mut last, mut left) = (0_i32, ' ', String::new());
    for letter in text.split_whitespace().flat_map(|word| word.chars().chain([' '])) {
        match letter {
            '<' => depth += 1,
            '>' if last != '-' => depth -= 1,
            _ if depth == 0 => left.push(letter),
            _ => {}
        }
        last = letter;
    }
    left
}

/// Functions directly in the block that `text` begins with.
fn methods(text: &str) -> usize {
    let (mut depth, mut count) = (0_i32, 0);
    for (at, letter) in text.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' => depth -= 1,
            'f' if depth == 1 && text[at..].starts_with("fn ") && !text[..at].ends_with(is_word) => count += 1,
            _ => {}
        }
    }
    count
}
