//! `ringwall site enforce`: a group enforces on trial, and for good only if every host of it goes
//! on reporting.
//!
//! The policy itself goes back at a time (record 0082), so nothing need live for that: neither this
//! command, nor the service, nor the machine they run on.

use std::path::PathBuf;
use std::time::Duration;

use authority::Directory;
use authority::directory::{acting, change_policy};
use clap::Args;
use identity::certificate::utc_text;
use identity::policy::{Group, Mode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use wire::MacAddress;

use super::reported::{OfGroup, Told};
use super::{DEFAULT_DIRECTORY, Surroundings};
use crate::config::duration::parse_time;
use crate::failure::Failure;
use crate::report::forecast::{SINCE, count, millis, now_unix_ms, shortened};

/// Shortest trial: two reports of each host, and the way of the policy to it.
const TRIAL_MIN: Duration = Duration::from_secs(5 * 60);
/// How often reports are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Arguments of `site enforce`.
#[derive(Debug, Args)]
pub(crate) struct EnforceArguments {
    /// A group of the policy, as 'site policy show' writes it
    group: String,
    /// How long the trial is, 5 minutes at least: 15m, 1h
    #[arg(long = "for", value_name = "TIME", value_parser = parse_time, default_value = "15m")]
    lasts: Duration,
    /// A hardware address that may be cut off, such as an attacker's; the forecast is judged without
    /// it. Repeat it for several
    #[arg(long, value_name = "MAC")]
    except: Vec<MacAddress>,
    /// Also where the forecast says that something would break, or is not complete
    #[arg(long)]
    anyway: bool,
    /// What was heard within this time counts in the forecast: 30s, 5m, 1h, 7d
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = SINCE)]
    since: Duration,
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    pub(super) dir: PathBuf,
}

/// One step of it. An operator's program takes each by an order of its own: what waits between them
/// is that program, and not the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Step {
    /// Whether the forecast speaks against it.
    Check,
    /// Has the group enforce for a while.
    Begin,
    /// What has come of the trial.
    Look(Trial),
    /// Has it enforce for good.
    Keep(Trial),
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Stepped {
    Ready,
    Begun(Trial),
    Looked(Outcome),
    /// Under this version of the policy.
    Kept(u64),
}

/// Carries `site enforce` out.
pub(super) fn enforce(arguments: &EnforceArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let by = surroundings.by.clone();
    let step = |step: Step| taken(arguments, &step, now_unix_ms(), &by);
    drive(arguments, step, |line| surroundings.say(line))
}

/// Takes all steps, one after the other.
pub(super) fn drive(
    arguments: &EnforceArguments,
    mut step: impl FnMut(Step) -> Result<Stepped, Failure>,
    mut say: impl FnMut(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let EnforceArguments { group, lasts, anyway, .. } = arguments;
    if *lasts < TRIAL_MIN {
        return Err(Failure::new(format!("--for: a trial takes {} minutes at least", TRIAL_MIN.as_secs() / 60)));
    }
    let other = || Err(Failure::new("the service answers another question; use one version"));
    if !anyway {
        step(Step::Check)?;
    }
    let Stepped::Begun(trial) = step(Step::Begin)? else { return other() };
    let back = utc_text(trial.back_ms() / 1000);
    say(&format!("{group} enforces until {back}, version {} of the policy", trial.version))?;
    loop {
        std::thread::sleep(LOOK_EVERY);
        match step(Step::Look(trial))? {
            Stepped::Looked(Outcome::Open) => {}
            Stepped::Looked(Outcome::Kept(hosts)) => {
                let Stepped::Kept(version) = step(Step::Keep(trial))? else { return other() };
                let hosts = count(hosts, "host");
                return say(&format!("{group} enforces for good, version {version}: {hosts} reported"));
            }
            Stepped::Looked(Outcome::Failed(missing)) => {
                let names: Vec<&str> = missing.iter().map(String::as_str).collect();
                let what = format!("{} did not report that it enforces", shortened(&names));
                return Err(Failure::new(format!("{what}; {group} goes back by itself at {back}")));
            }
            _ => return other(),
        }
    }
}

/// Takes one step, and prints what came of it.
pub(super) fn step(
    arguments: &EnforceArguments,
    step: &Step,
    surroundings: &mut Surroundings<'_>,
) -> Result<(), Failure> {
    let stepped = taken(arguments, step, surroundings.unix_s.saturating_mul(1000), &surroundings.by)?;
    surroundings.print(true, &json!(stepped), "")
}

fn taken(arguments: &EnforceArguments, step: &Step, now_ms: u64, by: &str) -> Result<Stepped, Failure> {
    let EnforceArguments { group, lasts, dir, .. } = arguments;
    let unix_s = now_ms / 1000;
    let since_ms = now_ms.saturating_sub(millis(arguments.since));
    let site = || Ok::<_, Failure>(acting(Directory::open(dir)?, by));
    match step {
        Step::Check => {
            let told = Told::read(dir, unix_s)?;
            allows(&OfGroup::of(&told, group, since_ms, now_ms).without(&arguments.except))?;
            Ok(Stepped::Ready)
        }
        Step::Begin => {
            let version = begin(&site()?, group, unix_s, *lasts)?;
            Ok(Stepped::Begun(Trial { began_ms: now_ms, lasts_ms: millis(*lasts), version }))
        }
        Step::Look(trial) => {
            let told = Told::read(dir, unix_s)?;
            Ok(Stepped::Looked(trial.judge(&OfGroup::of(&told, group, since_ms, now_ms), &told, now_ms)))
        }
        Step::Keep(trial) => Ok(Stepped::Kept(keep(&site()?, group, unix_s, trial.version)?)),
    }
}

/// Whether the forecast speaks against it.
fn allows(of_group: &OfGroup<'_>) -> Result<(), Failure> {
    let group = of_group.group;
    let remedy = format!("see `ringwall site forecast --group '{group}'`, or give --except or --anyway");
    if of_group.hosts.is_empty() {
        return Err(Failure::new(format!("no enrolled host is of group \"{group}\"; see `ringwall site policy show`")));
    }
    if !of_group.silent.is_empty() {
        let silent = shortened(&of_group.silent);
        return Err(Failure::new(format!("nothing is known of {silent}, which did not report lately; {remedy}")));
    }
    let forecast = &of_group.forecast;
    if !forecast.sources.is_empty() || forecast.left_out > 0 {
        let hosts = count(forecast.sources.len(), "host");
        let protocols = count(forecast.protocols.len(), "protocol");
        return Err(Failure::new(format!("{hosts} and {protocols} would break; {remedy}")));
    }
    Ok(())
}

/// A group on trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(super) struct Trial {
    began_ms: u64,
    lasts_ms: u64,
    /// Of the policy that has it enforce.
    version: u64,
}

/// What has come of it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Outcome {
    Open,
    /// So many hosts have reported.
    Kept(usize),
    /// These have not reported that they enforce.
    Failed(Vec<String>),
}

impl Trial {
    fn back_ms(&self) -> u64 {
        self.began_ms.saturating_add(self.lasts_ms)
    }

    /// Kept is what every host has reported in the second half of the trial: who cut himself off
    /// has not. The last tenth is left for hosts to hear that it is kept before they go back.
    fn judge(&self, of_group: &OfGroup<'_>, told: &Told, now_ms: u64) -> Outcome {
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
fn begin(site: &Directory, group: &str, unix_s: u64, lasts: Duration) -> Result<u64, Failure> {
    change(site, unix_s, |groups| {
        let known = groups.iter_mut().find(|one| one.patterns.join(",") == group);
        let line = format!("\"{group}\" is no group of the policy; see `ringwall site policy show`");
        let one = known.ok_or_else(|| Failure::new(line))?;
        if (one.mode, one.next) == (Mode::Enforce, None) {
            return Err(Failure::new(format!("{group} enforces for good already")));
        }
        if one.next.is_some() {
            let line = format!("{group} changes its mode already; set one first with `ringwall site policy mode`");
            return Err(Failure::new(line));
        }
        (one.next, one.mode) = (Some((unix_s.saturating_add(lasts.as_secs()), one.mode)), Mode::Enforce);
        Ok(())
    })
}

/// Has it enforce for good, if nobody has changed its mode meanwhile.
fn keep(site: &Directory, group: &str, unix_s: u64, version: u64) -> Result<u64, Failure> {
    change(site, unix_s, |groups| {
        let one = groups.iter_mut().find(|one| one.patterns.join(",") == group);
        match one.filter(|one| one.mode == Mode::Enforce && one.next.is_some()) {
            Some(one) => one.next = None,
            None => {
                let line = format!("{group} was changed after version {version}; that is left as it is");
                return Err(Failure::new(line));
            }
        }
        Ok(())
    })
}

fn change(
    site: &Directory,
    unix_s: u64,
    change: impl FnOnce(&mut Vec<Group>) -> Result<(), Failure>,
) -> Result<u64, Failure> {
    change_policy(site, unix_s, |content| change(&mut content.groups)).map(|policy| policy.version())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::serve::kept::Row;
    use super::*;
    use crate::report::tests::report;

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
        Told { enrolled: BTreeMap::new(), rows, refused: Vec::new(), policy_version: Some(5), groups }
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
        let mut secrets = crate::randomness::secrets().expect("randomness");
        let (unix_s, lasts) = (now_unix_ms() / 1000, Duration::from_secs(900));
        let mut random = |bytes: &mut [u8]| secrets.fill(bytes);
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
            let policy = authority::directory::policy(&directory).expect("read").expect("there");
            policy.mode_of("a", Some(unix_s))
        };
        let version = begin(&site, "*", unix_s, lasts).expect("begun");
        assert_eq!((mode(unix_s), mode(unix_s + 900)), (Some(Mode::Enforce), Some(Mode::Prefer)));
        assert!(begin(&site, "*", unix_s, lasts).is_err(), "one at a time");
        keep(&site, "*", unix_s, version).expect("kept");
        assert_eq!(mode(unix_s + 900), Some(Mode::Enforce));
        assert!(begin(&site, "*", unix_s, lasts).expect_err("kept").to_string().contains("for good already"));
        set(group.clone());
        begin(&site, "*", unix_s, lasts).expect("begun");
        set(group);
        assert!(keep(&site, "*", unix_s, version).is_err(), "somebody has taken it back");
        assert_eq!(mode(unix_s), Some(Mode::Prefer));
    }
}
