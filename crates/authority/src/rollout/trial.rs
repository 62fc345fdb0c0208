//! A group of hosts enforces on trial, and for good only if every host of it goes on reporting.
//!
//! The policy itself goes back at a time (record 0082), so whoever began a trial need not live on.

use std::fmt;
use std::time::Duration;

use identity::policy::{Group, Mode};
use serde::{Deserialize, Serialize};

use super::forecast::{count, shortened};
use super::told::{OfGroup, Told};
use crate::directory::change_policy;
use crate::{Directory, Error};

/// Why something is not done, in words for the manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(String);

impl Refused {
    fn new(line: impl fmt::Display) -> Refused {
        Refused(line.to_string())
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::new(error)
    }
}

/// Whether the forecast speaks for it.
///
/// # Errors
/// What speaks against it, in words.
pub fn allows(of_group: &OfGroup<'_>) -> Result<(), Refused> {
    let group = of_group.group;
    let remedy = format!("see `ringwall site forecast --group '{group}'`, or give --except or --anyway");
    if of_group.hosts.is_empty() {
        return Err(Refused::new(format!("no enrolled host is of group \"{group}\"; see `ringwall site policy show`")));
    }
    if !of_group.silent.is_empty() {
        let silent = shortened(&of_group.silent);
        return Err(Refused::new(format!("nothing is known of {silent}, which did not report lately; {remedy}")));
    }
    let forecast = &of_group.forecast;
    if !forecast.sources.is_empty() || forecast.left_out > 0 {
        let hosts = count(forecast.sources.len(), "host");
        let protocols = count(forecast.protocols.len(), "protocol");
        return Err(Refused::new(format!("{hosts} and {protocols} would break; {remedy}")));
    }
    Ok(())
}

/// A group on trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub struct Trial {
    /// When it began.
    pub began_ms: u64,
    /// How long it is.
    pub lasts_ms: u64,
    /// Of the policy that has it enforce.
    pub version: u64,
}

/// What has come of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Nothing yet.
    Open,
    /// So many hosts have reported.
    Kept(usize),
    /// These have not reported that they enforce.
    Failed(Vec<String>),
}

impl Trial {
    /// When the group goes back by itself.
    #[must_use]
    pub fn back_ms(&self) -> u64 {
        self.began_ms.saturating_add(self.lasts_ms)
    }

    /// Kept is what every host has reported in the second half of the trial: who cut himself off
    /// has not. The last tenth is left for hosts to hear that it is kept before they go back.
    #[must_use]
    pub fn judge(&self, of_group: &OfGroup<'_>, told: &Told, now_ms: u64) -> Outcome {
        let half_ms = self.began_ms.saturating_add(self.lasts_ms / 2);
        let is_good = |name: &&str| {
            told.rows.get(*name).is_some_and(|row| {
                let policy = &row.report.policy;
                let enforces = !row.report.is_lenient() && policy.version >= Some(self.version);
                row.received_unix_ms >= half_ms && enforces
            })
        };
        let missing: Vec<String> =
            of_group.hosts.iter().filter(|name| !is_good(name)).map(|name| (*name).to_owned()).collect();
        if missing.is_empty() {
            return Outcome::Kept(of_group.hosts.len());
        }
        let end_ms = self.back_ms().saturating_sub(self.lasts_ms / 10);
        if now_ms >= end_ms { Outcome::Failed(missing) } else { Outcome::Open }
    }
}

/// Has the group enforce for a while; the version of the policy that says so.
///
/// # Errors
/// Why it cannot, in words.
pub fn begin(site: &Directory, group: &str, unix_s: u64, lasts: Duration) -> Result<u64, Refused> {
    change(site, unix_s, |groups| {
        let known = groups.iter_mut().find(|one| one.patterns.join(",") == group);
        let line = format!("\"{group}\" is no group of the policy; see `ringwall site policy show`");
        let one = known.ok_or_else(|| Refused::new(line))?;
        // A change whose time has come is made: a trial that was not kept is over.
        if let Some((_, mode)) = one.next.filter(|(at, _)| *at <= unix_s) {
            (one.mode, one.next) = (mode, None);
        }
        if (one.mode, one.next) == (Mode::Enforce, None) {
            return Err(Refused::new(format!("{group} enforces for good already")));
        }
        if one.next.is_some() {
            let line = format!("{group} changes its mode already; set one first with `ringwall site policy mode`");
            return Err(Refused::new(line));
        }
        (one.next, one.mode) = (Some((unix_s.saturating_add(lasts.as_secs()), one.mode)), Mode::Enforce);
        Ok(())
    })
}

/// Has it enforce for good, if nobody has changed its mode meanwhile.
///
/// # Errors
/// That somebody has, or what is wrong with the site.
pub fn keep(site: &Directory, group: &str, unix_s: u64, version: u64) -> Result<u64, Refused> {
    change(site, unix_s, |groups| {
        let one = groups.iter_mut().find(|one| one.patterns.join(",") == group);
        // What has gone back already is not kept.
        let is_open = |one: &Group| one.next.is_some_and(|(at, _)| at > unix_s);
        match one.filter(|one| one.mode == Mode::Enforce && is_open(one)) {
            Some(one) => one.next = None,
            None => {
                let line = format!("{group} was changed after version {version}; that is left as it is");
                return Err(Refused::new(line));
            }
        }
        Ok(())
    })
}

fn change(
    site: &Directory,
    unix_s: u64,
    change: impl FnOnce(&mut Vec<Group>) -> Result<(), Refused>,
) -> Result<u64, Refused> {
    change_policy(site, unix_s, |content| change(&mut content.groups)).map(|policy| policy.version())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use wire::MacAddress;

    use super::super::report::example::report;
    use super::super::told::Row;
    use super::*;

    const BEGAN_MS: u64 = 1_000_000;
    const HALF_MS: u64 = BEGAN_MS + 450_000;

    fn trial() -> Trial {
        Trial { began_ms: BEGAN_MS, lasts_ms: 900_000, version: 5 }
    }

    /// Two hosts of one group; each reported then, under that version, in that mode.
    fn told(reports: [(u64, u64, &str); 2]) -> Told {
        let rows = ["a", "b"].into_iter().zip(reports).map(|(host, (received_unix_ms, version, mode))| {
            let mut report = report(received_unix_ms);
            (report.policy.version, report.policy.migration) = (Some(version), Some(mode.to_owned()));
            (host.to_owned(), Row { host: host.to_owned(), received_unix_ms, report })
        });
        let rows: BTreeMap<String, Row> = rows.collect();
        let groups = rows.keys().map(|name| (name.clone(), "*".to_owned())).collect();
        Told { enrolled: BTreeMap::new(), rows, policy_version: Some(5), groups }
    }

    fn outcome(reports: [(u64, u64, &str); 2], now_ms: u64) -> Outcome {
        let told = told(reports);
        trial().judge(&OfGroup::of(&told, "*", 0, now_ms), &told, now_ms)
    }

    #[test]
    fn a_trial_is_kept_when_all_have_reported_in_its_second_half_that_they_enforce() {
        let good = (HALF_MS, 5, "enforce");
        assert_eq!(outcome([good, good], HALF_MS), Outcome::Kept(2));
        for other in [(HALF_MS - 1, 5, "enforce"), (HALF_MS, 4, "enforce"), (HALF_MS, 5, "observe")] {
            assert_eq!(outcome([good, other], HALF_MS), Outcome::Open, "{other:?}");
            let end = BEGAN_MS + 810_000;
            assert_eq!(outcome([good, other], end - 1), Outcome::Open, "{other:?}");
            assert_eq!(outcome([good, other], end), Outcome::Failed(vec!["b".to_owned()]), "{other:?}");
        }
    }

    #[test]
    fn what_the_forecast_speaks_against_is_not_begun() {
        let lenient = (HALF_MS, 5, "observe");
        let printer = told([lenient, lenient]);
        let line = allows(&OfGroup::of(&printer, "*", 0, HALF_MS)).expect_err("a printer").to_string();
        assert!(line.starts_with("1 host and 1 protocol would break; "), "{line}");
        let line = allows(&OfGroup::of(&printer, "*", 0, HALF_MS + 600_000)).expect_err("silent").to_string();
        assert!(line.starts_with("nothing is known of a, b, "), "{line}");
        assert!(allows(&OfGroup::of(&printer, "*", HALF_MS + 1, HALF_MS)).is_ok(), "the printer has gone");
        let all = || OfGroup::of(&printer, "*", 0, HALF_MS);
        let mac = all().forecast.sources[0].mac.parse().expect("a hardware address");
        assert!(allows(&all().without(&[mac])).is_ok(), "it may be cut off");
        assert!(allows(&all().without(&[MacAddress::BROADCAST])).is_err(), "another");
        let silent = OfGroup::of(&printer, "*", 0, HALF_MS + 600_000).without(&[mac]);
        assert!(allows(&silent).is_err(), "who is silent is not pardoned");
        let line = allows(&OfGroup::of(&printer, "desk-*", 0, HALF_MS)).expect_err("nobody").to_string();
        assert!(line.starts_with("no enrolled host is of group"), "{line}");
    }

    #[test]
    fn a_group_goes_back_by_itself_until_it_is_kept_and_what_others_decide_stays() {
        let place = tempfile::tempdir().expect("directory");
        let dir = place.path().join("site");
        let (unix_s, lasts) = (1_800_000_000, Duration::from_secs(900));
        let mut next = 0_u8;
        let mut random = |bytes: &mut [u8]| {
            bytes.fill(next);
            next = next.wrapping_add(1);
        };
        let site =
            Directory::init(&dir, "s", 100 * lasts, identity::Profile::Modern, &mut random, unix_s).expect("founded");
        assert!(begin(&site, "*", unix_s, lasts).expect_err("no group").to_string().contains("is no group"));
        let group = Group { patterns: vec!["*".to_owned()], mode: Mode::Prefer, next: None };
        let set = |one: Group| {
            let to_one = |groups: &mut Vec<Group>| {
                *groups = vec![one];
                Ok(())
            };
            change(&site, unix_s, to_one).expect("set")
        };
        set(group.clone());
        let mode = |unix_s: u64| {
            let directory = Directory::open(&dir).expect("opened");
            let policy = crate::directory::policy(&directory).expect("read").expect("there");
            policy.mode_of("a", Some(unix_s))
        };
        let version = begin(&site, "*", unix_s, lasts).expect("begun");
        assert_eq!((mode(unix_s), mode(unix_s + 900)), (Some(Mode::Enforce), Some(Mode::Prefer)));
        assert!(begin(&site, "*", unix_s, lasts).is_err(), "one at a time");
        keep(&site, "*", unix_s, version).expect("kept");
        assert_eq!(mode(unix_s + 900), Some(Mode::Enforce));
        assert!(begin(&site, "*", unix_s, lasts).expect_err("kept").to_string().contains("for good already"));
        set(group.clone());
        let version = begin(&site, "*", unix_s, lasts).expect("begun");
        assert!(keep(&site, "*", unix_s + 900, version).is_err(), "it has gone back");
        begin(&site, "*", unix_s + 900, lasts).expect("and may be tried again");
        assert_eq!((mode(unix_s + 1799), mode(unix_s + 1800)), (Some(Mode::Enforce), Some(Mode::Prefer)));
        set(group.clone());
        begin(&site, "*", unix_s, lasts).expect("begun");
        set(group);
        assert!(keep(&site, "*", unix_s, version).is_err(), "somebody has taken it back");
        assert_eq!(mode(unix_s), Some(Mode::Prefer));
    }
}
