//! In one line: how a daemon is, what is wrong, and what to do; with the exit status that monitoring plugins have.

use serde::Serialize;

use crate::config::Profile;
use crate::protocol::{Attack, GateStatus, Status};

/// Days before its end at which a certificate is pressing.
const PRESSING_DAYS: i64 = 1;

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
    fn word(self) -> &'static str {
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
    /// The worst of these, of equals the first.
    fn of(found: Vec<(Level, String, String)>) -> Verdict {
        let others = found.len().saturating_sub(1);
        let worst = found.into_iter().reduce(|worst, one| if one.0 > worst.0 { one } else { worst });
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

type Found = Vec<(Level, String, String)>;

fn find(found: &mut Found, is_so: bool, level: Level, what: &str, remedy: &str) {
    if is_so {
        found.push((level, what.to_owned(), remedy.to_owned()));
    }
}

/// How a host is.
pub(crate) fn of_host(status: &Status) -> Verdict {
    let mut found = Found::new();
    let takeover = &status.takeover;
    let is_weak = !status.weakened.is_empty() || status.mode == "null" || status.profile == Profile::Paper.word();
    find(
        &mut found,
        is_weak,
        Level::Critical,
        "NOT PROTECTED: layers are switched off",
        "remove [lab] and host.profile",
    );
    if let Some(identity) = &status.identity {
        let days = identity.certificate_days_left.min(identity.authority_days_left);
        let what = format!("a certificate ends in {days} days");
        find(&mut found, days < PRESSING_DAYS, Level::Critical, &what, "renew it: `ringwall host renew`");
    }
    let is_silent = status.sarp.as_ref().is_some_and(|sarp| sarp.distributors_silent);
    let remedy = "see whether a distributor runs and can be reached";
    find(&mut found, is_silent, Level::Critical, "no key distributor answers", remedy);
    let is_observing = status.migration.as_ref().is_some_and(|migration| migration.mode == "observe");
    let remedy = "set cll.migration to \"prefer\" once all hosts are guarded";
    find(&mut found, is_observing, Level::Warning, "NOT PROTECTED: mode observe lets everything pass", remedy);
    attacked(&mut found, &status.attacks.open);
    if let Some(seconds) = takeover.reverts_in_s {
        let what = format!("on trial, given back in {seconds} s");
        find(&mut found, true, Level::Warning, &what, "keep it with `ringwall host confirm`");
    }
    find(&mut found, !takeover.carrier, Level::Warning, "the card has no carrier", "look at cable and switch");
    for warning in takeover.warnings.iter().chain(&status.warnings) {
        find(&mut found, true, Level::Warning, warning, "see docs/operating.md");
    }
    untold(&mut found, status.attacks.records_lost);
    Verdict::of(found)
}

/// How a gateway is.
pub(crate) fn of_gate(status: &GateStatus) -> Verdict {
    let mut found = Found::new();
    attacked(&mut found, &status.attacks.open);
    for card in [&status.trusted, &status.untrusted, &status.mirror].into_iter().flatten() {
        let what = format!("{} has no carrier", card.interface);
        find(&mut found, !card.carrier, Level::Warning, &what, "look at cable and switch");
    }
    for warning in &status.warnings {
        let is_null = warning.contains("NOTHING is scrubbed");
        let level = if is_null { Level::Critical } else { Level::Warning };
        find(&mut found, true, level, warning, "see docs/operating.md");
    }
    untold(&mut found, status.attacks.records_lost);
    Verdict::of(found)
}

fn attacked(found: &mut Found, attacks: &[Attack]) {
    for attack in attacks {
        let level = if attack.sort.severity == "error" { Level::Critical } else { Level::Warning };
        find(found, true, level, &format!("ATTACKED ({}): {}", attack.sort.kind, attack.sentence), &attack.sort.advice);
    }
}

fn untold(found: &mut Found, lost: u64) {
    let what = format!("{lost} records of attacks were not told");
    find(found, lost > 0, Level::Warning, &what, "look at the places in [records] and at the log");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(levels: &[Level]) -> Vec<(Level, String, String)> {
        levels.iter().enumerate().map(|(at, level)| (*level, format!("thing {at}"), "do it".to_owned())).collect()
    }

    #[test]
    fn the_worst_comes_first_and_of_equals_the_first() {
        let verdict = Verdict::of(found(&[Level::Warning, Level::Critical, Level::Critical]));
        assert_eq!((verdict.level, verdict.what.as_str(), verdict.others), (Level::Critical, "thing 1", 2));
        assert_eq!(verdict.line("eth0"), "CRITICAL eth0: thing 1; do it (and 2 more below)");
    }

    #[test]
    fn nothing_found_is_good_and_exits_with_zero() {
        let verdict = Verdict::of(Vec::new());
        assert_eq!((verdict.level as u8, verdict.line("e0")), (0, "GOOD e0: all is well; nothing to do".to_owned()));
        assert_eq!(Verdict::unknown("x").level as u8, 3);
    }
}
