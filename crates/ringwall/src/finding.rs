//! What a command found that looks at something: how bad it is, one line, one remedy.

use serde::Serialize;

use crate::verdict::Level;

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    pub(crate) what: String,
    /// Empty where nothing is to be done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(crate) remedy: String,
}

impl Finding {
    pub(crate) fn good(what: impl Into<String>) -> Finding {
        Finding { level: Level::Good, what: what.into(), remedy: String::new() }
    }

    pub(crate) fn warning(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { level: Level::Warning, what: what.into(), remedy: remedy.into() }
    }

    pub(crate) fn critical(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { level: Level::Critical, what: what.into(), remedy: remedy.into() }
    }

    /// It could not be looked at.
    pub(crate) fn unknown(what: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { level: Level::Unknown, what: what.into(), remedy: remedy.into() }
    }

    /// As a line of a command's answer; `subject` says what was looked at.
    pub(crate) fn line(&self, subject: &str) -> String {
        let word = match self.level {
            Level::Good => "ok",
            Level::Warning => "warning",
            Level::Critical => "critical",
            Level::Unknown => "unknown",
        };
        let remedy = if self.remedy.is_empty() { String::new() } else { format!("; {}", self.remedy) };
        format!("{word:<8}  {subject}: {}{remedy}", self.what)
    }
}

/// What could not be looked at is worse than good, and no more: whoever is not root hears of what
/// he can see.
pub(crate) fn overall(levels: impl Iterator<Item = Level>) -> Level {
    let rank = |level: Level| match level {
        Level::Good => 0,
        Level::Unknown => 1,
        Level::Warning => 2,
        Level::Critical => 3,
    };
    levels.max_by_key(|level| rank(*level)).unwrap_or(Level::Unknown)
}
