//! Circles of imports between the files of a crate.
//!
//! A part of a folder may use what the folder's own file, or one further up, says to its parts:
//! such an import is none here. What is left leads down or sideways, and should lead nowhere twice.

use std::collections::{BTreeMap, BTreeSet};

use super::source::is_word;

/// A module as the names that lead to it from the crate's root.
type Module = Vec<String>;

/// The files of each circle, sorted; files are given as their names below `src` and their code.
pub(crate) fn circles(files: &[(String, String)]) -> Vec<Vec<String>> {
    let modules: BTreeMap<Module, &(String, String)> = files.iter().map(|file| (module(&file.0), file)).collect();
    let imports: BTreeMap<&Module, BTreeSet<&Module>> =
        modules.iter().map(|(module, (_, code))| (module, imported(module, code, &modules))).collect();
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        modules.keys().map(|module| (module, reached(module, &imports))).collect();
    let mut circles = BTreeSet::new();
    for (module, to) in &reached {
        let circle: BTreeSet<_> = to.iter().filter(|other| reached[*other].contains(module)).collect();
        if !circle.is_empty() {
            circles.insert(circle.into_iter().map(|module| modules[*module].0.clone()).collect());
        }
    }
    circles.into_iter().collect()
}

/// The module that a file is.
fn module(file: &str) -> Module {
    let path = file.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if matches!(path, "lib" | "main") { Vec::new() } else { path.split('/').map(str::to_owned).collect() }
}

/// All modules that `start` leads to; itself only by a circle.
fn reached<'a>(start: &'a Module, imports: &BTreeMap<&'a Module, BTreeSet<&'a Module>>) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![start];
    while let Some(module) = waiting.pop() {
        let new = imports[module].iter().filter(|other| reached.insert(**other));
        waiting.extend(new.copied().collect::<Vec<_>>());
    }
    reached
}

/// The modules that the code of `module` imports.
fn imported<'a>(module: &Module, code: &str, modules: &'a BTreeMap<Module, &(String, String)>) -> BTreeSet<&'a Module> {
    let found = paths(code).into_iter().filter_map(|path| deepest(module, &path, modules));
    found.filter(|other| !module.starts_with(other)).collect()
}

/// The module furthest down that a path names, as seen from `module`.
fn deepest<'a>(
    module: &Module,
    path: &[String],
    modules: &'a BTreeMap<Module, &(String, String)>,
) -> Option<&'a Module> {
    let ups = path.iter().take_while(|name| *name == "super").count();
    let (start, rest) = match path.first()?.as_str() {
        "crate" => (Vec::new(), &path[1..]),
        "self" => (module.clone(), &path[1..]),
        "super" => (module[..module.len().saturating_sub(ups)].to_vec(), &path[ups..]),
        _ => (module.clone(), path),
    };
    let lengths = (start.len()..=start.len() + rest.len()).rev();
    let all: Module = start.iter().chain(rest).cloned().collect();
    let found = lengths.filter_map(|len| modules.get_key_value(&all[..len]));
    found.map(|(found, _)| found).next()
}

/// All paths in `use` items and those in expressions that begin at the crate or above.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, word) in code.match_indices("use ").filter(|(at, _)| !code[..*at].ends_with(is_word)) {
        let tree = code[at + word.len()..].split(';').next().unwrap_or_default();
        expand(&[], tree, &mut found);
    }
    for start in ["crate::", "super::"] {
        for (at, _) in code.match_indices(start).filter(|(at, _)| !code[..*at].ends_with(|c| is_word(c) || c == ':')) {
            let path: String = code[at..].chars().take_while(|letter| is_word(*letter) || *letter == ':').collect();
            found.push(names(&path));
        }
    }
    found
}

fn names(path: &str) -> Vec<String> {
    path.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// The paths of a tree of `use`, such as `a::{b, c::{d, e as f}}`.
fn expand(before: &[String], tree: &str, found: &mut Vec<Vec<String>>) {
    let (path, branches) = tree.split_once('{').map_or((tree, None), |(path, rest)| (path, Some(rest)));
    let path = path.split(" as ").next().unwrap_or_default();
    let path: Vec<String> = before.iter().cloned().chain(names(path)).collect();
    let Some(branches) = branches else {
        found.push(path);
        return;
    };
    let (mut depth, mut start) = (0, 0);
    for (at, letter) in branches.char_indices() {
        match letter {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                expand(&path, &branches[start..at], found);
                start = at + 1;
                if letter == '}' {
                    return;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
}
