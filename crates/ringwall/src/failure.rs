//! An error for the operator: one line that names what failed and what to do about it.

use std::fmt;
use std::path::Path;

/// One line for the operator.
#[derive(Debug)]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(line: impl fmt::Display) -> Failure {
        Failure(line.to_string())
    }

    /// Something about `file` is wrong.
    pub(crate) fn file(file: &Path, what: impl fmt::Display, remedy: &str) -> Failure {
        Failure(format!("{}: {what}; {remedy}", file.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<system::takeover::TakeoverError> for Failure {
    fn from(error: system::takeover::TakeoverError) -> Failure {
        Failure::new(error)
    }
}
