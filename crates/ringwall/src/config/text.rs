//! From the text of a file to what it says, with errors that name file, line, key and remedy.

use std::path::{Path, PathBuf};

use super::near;
use crate::failure::Failure;

/// What to do about a configuration that cannot be read.
pub(crate) const UNREADABLE: &str = "write it, or name another with --config";

pub(crate) fn read_text(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| Failure::file(file, error, UNREADABLE))
}

pub(crate) fn syntax(file: &Path, text: &str, error: &toml::de::Error) -> Failure {
    let before = error.span().map_or("", |span| text.get(..span.start).unwrap_or(text));
    let line = before.matches('\n').count() + 1;
    let message = error.message().replace('\n', ", ");
    let message = near::hint(&message).unwrap_or(message);
    let key = key_of(before).map_or_else(String::new, |key| format!("{key}: "));
    Failure::new(format!("{}:{line}: {key}{message}; ringwall.toml(5) has the keys that there are", file.display()))
}

/// The key, with its section, whose value begins behind `before`.
fn key_of(before: &str) -> Option<String> {
    let (above, line) = before.rsplit_once('\n').unwrap_or(("", before));
    let header = above.lines().rev().find_map(|line| line.trim().strip_prefix('['))?;
    let section = header.trim_start_matches('[').split(']').next()?;
    let key = line.split_once('=')?.0.trim();
    let is_bare =
        |word: &str| !word.is_empty() && word.chars().all(|one| one.is_ascii_alphanumeric() || "_-.".contains(one));
    (is_bare(section) && is_bare(key)).then(|| format!("{section}.{key}"))
}

/// Where the daemon of `interface` listens for commands.
pub(crate) fn socket(run_dir: &Path, interface: &str) -> PathBuf {
    run_dir.join(format!("{interface}.sock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_named_by_its_key_and_section() {
        assert_eq!(key_of("# [x]\n[host]\nmode = ").as_deref(), Some("host.mode"));
        assert_eq!(key_of("[host]\na = 1\n[[cll.legacy]]\nmac = ").as_deref(), Some("cll.legacy.mac"));
        assert_eq!(key_of("[host]\npass = [\"ipx\", ").as_deref(), Some("host.pass"));
        // The key itself is wrong, or stands on another line, or is no plain word.
        for before in ["[host]\n", "", "[host]\npass = [\n    ", "[host]\n\"a\u{1b}\" = ", "mode = "] {
            assert_eq!(key_of(before), None, "{before:?}");
        }
    }
}
