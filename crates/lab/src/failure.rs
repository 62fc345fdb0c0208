//! What can go wrong in the lab, told to the person at the terminal in one line.

use std::fmt;
use std::path::Path;
use std::time::Duration;

/// Why the lab could not do what it was asked. An attack that fails is a result, not a failure.
#[derive(Debug)]
pub enum Failure {
    /// Ctrl-C or a termination signal came; the clean-up is under way.
    Interrupted,
    /// The lab was not started as root.
    NotRoot,
    /// A program is not installed: its name, and what to do.
    MissingTool(String),
    /// A program ended with an error: the command and what it said.
    Command {
        /// The program with its arguments.
        command: String,
        /// The last line of its error output.
        said: String,
    },
    /// A file or a socket could not be used.
    Io {
        /// What was being done to what.
        doing: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// Something that was awaited did not happen.
    Late {
        /// What was awaited.
        what: String,
        /// How long.
        limit: Duration,
    },
    /// A program's output could not be understood: whose, and why.
    Unreadable(String),
    /// The request makes no sense: why, and what would.
    Usage(String),
    /// The kernel lacks what an attack needs: what that is.
    NotTestable(String),
}

impl Failure {
    /// Wraps an error of the system with what was being done.
    pub fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Failure {
        let doing = doing.into();
        move |source| Failure::Io { doing, source }
    }

    /// Wraps an error of the system that concerns the file at `path`.
    pub fn file(doing: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Failure + use<> {
        Failure::io(format!("{doing} {}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Interrupted => write!(f, "interrupted"),
            Failure::NotRoot => write!(f, "the lab makes network namespaces and must run as root: use sudo"),
            Failure::MissingTool(tool) => write!(f, "{tool} is missing: install its Debian package"),
            Failure::Command { command, said } => write!(f, "`{command}` failed: {said}"),
            Failure::Io { doing, source } => write!(f, "{doing}: {source}"),
            Failure::Late { what, limit } => write!(f, "{what} did not happen within {:.1} s", limit.as_secs_f64()),
            Failure::Unreadable(what) => write!(f, "unreadable output: {what}"),
            Failure::Usage(what) | Failure::NotTestable(what) => write!(f, "{what}"),
        }
    }
}

impl std::error::Error for Failure {}
