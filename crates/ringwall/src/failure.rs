//! An error for the operator: one line that names what failed and what to do about it.

use std::fmt;
use std::path::Path;

/// One line for the operator.
#[derive(Debug)]
pub(crate) struct Failure {
    line: String,
    /// How the program is to end, where that says more than that it failed.
    status: Option<u8>,
}

impl Failure {
    pub(crate) fn new(line: impl fmt::Display) -> Failure {
        Failure { line: line.to_string(), status: None }
    }

    /// Something about `file` is wrong.
    pub(crate) fn file(file: &Path, what: impl fmt::Display, remedy: &str) -> Failure {
        Failure::new(format_args!("{}: {what}; {remedy}", file.display()))
    }

    /// The same, and the program ends with this status.
    pub(crate) fn with_status(self, status: u8) -> Failure {
        Failure { status: Some(status), ..self }
    }

    pub(crate) fn status(&self) -> Option<u8> {
        self.status
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)
    }
}

impl From<system::takeover::TakeoverError> for Failure {
    fn from(error: system::takeover::TakeoverError) -> Failure {
        Failure::new(error)
    }
}
