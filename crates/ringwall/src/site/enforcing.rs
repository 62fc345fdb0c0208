//! `ringwall site enforce`: a group enforces on trial, and for good only if every host of it goes
//! on reporting.
//!
//! The policy itself goes back at a time (record 0082), so nothing need live for that: neither this
//! command, nor the service, nor the machine they run on.

use std::path::PathBuf;
use std::time::Duration;

use authority::rollout::forecast::{count, shortened};
use authority::rollout::told::OfGroup;
use authority::rollout::trial::{Outcome, Trial, allows, begin, keep};
use clap::Args;
use identity::certificate::utc_text;
use serde::{Deserialize, Serialize};
use serde_json::json;
use wire::MacAddress;

use super::reported::told;
use super::{Actor, DEFAULT_DIRECTORY, Surroundings};
use crate::config::duration::parse_time;
use crate::failure::Failure;
use crate::report::forecast::{SINCE, millis, now_unix_ms};

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
    let actor = surroundings.actor.clone();
    let step = |step: Step| taken(arguments, &step, now_unix_ms(), &actor);
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
    let stepped = taken(arguments, step, surroundings.unix_s.saturating_mul(1000), &surroundings.actor)?;
    surroundings.print(true, &json!(stepped), "")
}

fn taken(arguments: &EnforceArguments, step: &Step, now_ms: u64, actor: &Actor) -> Result<Stepped, Failure> {
    let EnforceArguments { group, lasts, dir, .. } = arguments;
    let unix_s = now_ms / 1000;
    let since_ms = now_ms.saturating_sub(millis(arguments.since));
    match step {
        Step::Check => {
            let told = told(dir, actor, unix_s)?.0;
            allows(&OfGroup::of(&told, group, since_ms, now_ms).without(&arguments.except)).map_err(Failure::new)?;
            Ok(Stepped::Ready)
        }
        Step::Begin => {
            let version = begin(&actor.open(dir)?, group, unix_s, *lasts).map_err(Failure::new)?;
            Ok(Stepped::Begun(Trial { began_ms: now_ms, lasts_ms: millis(*lasts), version }))
        }
        Step::Look(trial) => {
            let told = told(dir, actor, unix_s)?.0;
            Ok(Stepped::Looked(trial.judge(&OfGroup::of(&told, group, since_ms, now_ms), &told, now_ms)))
        }
        Step::Keep(trial) => {
            keep(&actor.open(dir)?, group, unix_s, trial.version).map(Stepped::Kept).map_err(Failure::new)
        }
    }
}
