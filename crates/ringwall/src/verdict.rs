//! In one line: how a daemon is, what is wrong, and what to do; with the exit status that monitoring plugins have.

use serde::Serialize;

use crate::protocol::attacks::{Attack, Attacks};

/// How it is. The numbers are exit statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Good = 0,
    Warning = 1,
    Critical = 2,
    /// Nobody answers.
    Unknown = 3,
}

impl Level {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Level::Good => "GOOD",
            Level::Warning => "WARNING",
            Level::Critical => "CRITICAL",
            Level::Unknown => "UNKNOWN",
        }
    }
}

/// What is to be done first, and how much else there is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Verdict {
    pub(crate) level: Level,
    pub(crate) what: String,
    pub(crate) remedy: String,
    /// Things beside it that are wrong, too.
    pub(crate) others: usize,
}

impl Verdict {
    /// Of a daemon that gives no answer.
    pub(crate) fn unknown(what: &str) -> Verdict {
        let (what, remedy) = (what.to_owned(), "see its log; while it is down its interface stays closed".to_owned());
        Verdict { level: Level::Unknown, what, remedy, others: 0 }
    }

    /// The first line of `status`.
    pub(crate) fn line(&self, interface: &str) -> String {
        let others = if self.others == 0 { String::new() } else { format!(" (and {} more below)", self.others) };
        format!("{} {interface}: {}; {}{others}", self.level.word(), self.what, self.remedy)
    }
}

/// What is wrong with a daemon, in the order in which it was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings(Vec<(Level, String, String)>);

impl Findings {
    /// Enters what is wrong and what to do about it, where `is_so`.
    pub(crate) fn enter(&mut self, is_so: bool, level: Level, what: &str, remedy: &str) {
        if is_so {
            self.0.push((level, what.to_owned(), remedy.to_owned()));
        }
    }

    /// Enters the attacks that are under way.
    pub(crate) fn attacked(&mut self, attacks: &Attacks) {
        for Attack { sort, sentence, .. } in &attacks.open {
            let level = if sort.severity == "error" { Level::Critical } else { Level::Warning };
            self.enter(true, level, &format!("ATTACKED ({}): {sentence}", sort.kind), &sort.advice);
        }
    }

    /// Enters that nobody was told of some.
    pub(crate) fn untold(&mut self, attacks: &Attacks) {
        let lost = attacks.records_lost;
        let what = format!("{lost} records of attacks were not told");
        self.enter(lost > 0, Level::Warning, &what, "look at the places in [records] and at the log");
    }

    /// The worst of these, of equals the first.
    pub(crate) fn verdict(self) -> Verdict {
        let others = self.0.len().saturating_sub(1);
        let worst = self.0.into_iter().reduce(|worst, one| if one.0 > worst.0 { one } else { worst });
        match worst {
            None => Verdict {
                level: Level::Good,
                what: "all is well".to_owned(),
                remedy: "nothing to do".to_owned(),
                others: 0,
            },
            Some((level, what, remedy)) => Verdict { level, what, remedy, others },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(levels: &[Level]) -> Findings {
        let mut found = Findings::default();
        let all = levels.iter().enumerate();
        all.for_each(|(at, level)| found.enter(true, *level, &format!("thing {at}"), "do it"));
        found
    }

    #[test]
    fn the_worst_comes_first_and_of_equals_the_first() {
        let verdict = found(&[Level::Warning, Level::Critical, Level::Critical]).verdict();
        assert_eq!((verdict.level, verdict.what.as_str(), verdict.others), (Level::Critical, "thing 1", 2));
        assert_eq!(verdict.line("eth0"), "CRITICAL eth0: thing 1; do it (and 2 more below)");
    }

    #[test]
    fn nothing_found_is_good_and_exits_with_zero() {
        let verdict = found(&[]).verdict();
        assert_eq!((verdict.level as u8, verdict.line("e0")), (0, "GOOD e0: all is well; nothing to do".to_owned()));
        assert_eq!(Verdict::unknown("x").level as u8, 3);
    }
}
