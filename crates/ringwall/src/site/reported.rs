//! `ringwall site hosts` and `ringwall site forecast`: what hosts have reported to the service.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authority::Entry;
use authority::rollout::forecast::{count, shortened};
use authority::rollout::told::{OfGroup, SILENT_AFTER, Told};
use clap::Args;
use identity::certificate::utc_text;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::serve::kept::{Refused, Reports};
use super::{Actor, DEFAULT_DIRECTORY, Surroundings};
use crate::config::duration::parse_time;
use crate::failure::Failure;
use crate::report::forecast::{SCHEMA, SCHEMA_VERSION, SINCE, millis};

/// What the JSON of `site hosts` is called, and its version.
const HOSTS_SCHEMA: &str = "ringwall-site-hosts";
const HOSTS_SCHEMA_VERSION: u32 = 1;
/// The same with `--brief`.
const BRIEF_SCHEMA: &str = "ringwall-site-hosts-brief";
const BRIEF_SCHEMA_VERSION: u32 = 1;
/// Hosts in one brief answer: so many of 700 bytes are below the longest answer to an operator.
const BRIEF_HOSTS_MAX: usize = 5000;
/// Characters of a group's patterns, of which it may have many.
const GROUP_CHARS_MAX: usize = 64;
/// Addresses of one host in it.
const BRIEF_ADDRESSES_MAX: usize = 4;

/// Arguments of `site hosts`.
#[derive(Debug, Args)]
pub(crate) struct HostsArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    pub(super) dir: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// With --json, some facts of each host in the place of its report, and 5,000 hosts at most
    #[arg(long, requires = "json")]
    brief: bool,
    /// The hosts behind this name, to go on where a brief answer ended
    #[arg(long, value_name = "NAME", requires = "brief")]
    after: Option<String>,
}

/// A host, briefly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct BriefHost {
    pub(crate) name: String,
    pub(crate) mac: String,
    /// The first of them.
    pub(crate) addresses: Vec<String>,
    /// The patterns of the policy's group that means it.
    pub(crate) group: String,
    pub(crate) certificate_not_after_unix: u64,
    pub(crate) is_silent: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reported_unix: Option<u64>,
    /// As it has reported, from here on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) migration: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) policy_version: Option<u64>,
    #[serde(default)]
    pub(crate) sealed: u64,
    /// Hosts in clear that it hears.
    #[serde(default)]
    pub(crate) in_clear: u64,
    #[serde(default)]
    pub(crate) attacks_open: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dropped: Option<u64>,
}

/// Hosts, briefly.
#[derive(Debug, Deserialize, Serialize)]
pub(crate) struct Brief {
    #[serde(default)]
    schema: String,
    #[serde(default)]
    schema_version: u32,
    pub(crate) policy_version: Option<u64>,
    /// By name.
    pub(crate) hosts: Vec<BriefHost>,
    /// Whether there are others behind them.
    pub(crate) more: bool,
}

/// Arguments of `site forecast`.
#[derive(Debug, Args)]
pub(crate) struct SiteForecastArguments {
    /// Where the site is kept
    #[arg(long, value_name = "DIR", default_value = DEFAULT_DIRECTORY)]
    pub(super) dir: PathBuf,
    /// Of this group of the policy alone, as 'site policy show' writes it
    #[arg(long, value_name = "GROUP")]
    group: Option<String>,
    /// What was heard within this time: 30s, 5m, 1h, 7d
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = SINCE)]
    since: Duration,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// The site's record beside what was reported, and who was turned away.
pub(super) fn told(dir: &Path, actor: &Actor, unix_s: u64) -> Result<(Told, Vec<Refused>), Failure> {
    let reports = Reports::look(dir)?;
    let (rows, refused) = match &reports {
        Some(reports) => (reports.all()?, reports.refused()?),
        None => (Vec::new(), Vec::new()),
    };
    Ok((Told::of(&actor.record(dir)?, rows, unix_s)?, refused))
}

/// Carries `site hosts` out.
pub(super) fn hosts(arguments: &HostsArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let (told, refused) = told(&arguments.dir, &surroundings.actor, surroundings.unix_s)?;
    let now_ms = surroundings.unix_s.saturating_mul(1000);
    if arguments.brief {
        let brief = brief(&told, arguments.after.as_deref(), now_ms);
        let value = serde_json::to_value(brief).map_err(Failure::new)?;
        return surroundings.print(true, &value, "");
    }
    let brought = Reports::look(&arguments.dir)?.map_or(Ok(0), |reports| reports.count_brought())?;
    let hosts: Vec<Value> = told.enrolled.values().map(|entry| host_json(&told, entry, now_ms)).collect();
    let value = json!({
        "schema": HOSTS_SCHEMA, "schema_version": HOSTS_SCHEMA_VERSION, "policy_version": told.policy_version,
        "hosts": hosts, "turned_away": refused, "brought": brought,
    });
    let mut lines: Vec<String> = told.enrolled.values().map(|entry| host_line(&told, entry, now_ms)).collect();
    let fresh = told.enrolled.keys().filter(|name| told.fresh(name, now_ms).is_some()).count();
    lines.push(format!("{} of {} reported within {} minutes", fresh, count(told.enrolled.len(), "host"), {
        SILENT_AFTER.as_secs() / 60
    }));
    lines.extend(
        refused.iter().map(|one| {
            format!("turned away: {} {}, last {}", one.count, one.reason, utc_text(one.last_unix_ms / 1000))
        }),
    );
    lines.extend(
        (brought > 0)
            .then(|| "hosts have what this site has signed and does not know: see `ringwall site recover`".to_owned()),
    );
    surroundings.print(arguments.json, &value, &lines.join("\n"))
}

fn brief(told: &Told, after: Option<&str>, now_ms: u64) -> Brief {
    let mut behind = told.enrolled.values().filter(|entry| after.is_none_or(|after| entry.name.as_str() > after));
    let hosts = behind.by_ref().take(BRIEF_HOSTS_MAX).map(|entry| brief_host(told, entry, now_ms)).collect();
    Brief {
        schema: BRIEF_SCHEMA.to_owned(),
        schema_version: BRIEF_SCHEMA_VERSION,
        policy_version: told.policy_version,
        hosts,
        more: behind.next().is_some(),
    }
}

fn brief_host(told: &Told, entry: &Entry, now_ms: u64) -> BriefHost {
    let host = BriefHost {
        name: entry.name.clone(),
        mac: entry.mac.to_string(),
        addresses: entry.addresses.iter().take(BRIEF_ADDRESSES_MAX).map(ToString::to_string).collect(),
        group: told
            .groups
            .get(&entry.name)
            .map(|group| group.chars().take(GROUP_CHARS_MAX).collect())
            .unwrap_or_default(),
        certificate_not_after_unix: entry.not_after_unix,
        is_silent: told.fresh(&entry.name, now_ms).is_none(),
        ..BriefHost::default()
    };
    let Some(row) = told.rows.get(&entry.name) else { return host };
    let report = &row.report;
    BriefHost {
        reported_unix: Some(row.received_unix_ms / 1000),
        mode: Some(report.daemon.mode.clone()),
        migration: report.policy.migration.clone(),
        policy_version: report.policy.version,
        sealed: report.sealed,
        in_clear: report.breaks_left_out.saturating_add(report.breaks.len() as u64),
        attacks_open: report.attacks_open,
        dropped: report.dropped,
        ..host
    }
}

fn host_json(told: &Told, entry: &Entry, now_ms: u64) -> Value {
    let row = told.rows.get(&entry.name);
    json!({
        "name": entry.name, "mac": entry.mac.to_string(), "group": told.groups.get(&entry.name),
        "certificate_not_after": utc_text(entry.not_after_unix),
        "is_silent": told.fresh(&entry.name, now_ms).is_none(),
        "reported": row.map(|row| utc_text(row.received_unix_ms / 1000)),
        "report": row.map(|row| &row.report),
    })
}

fn host_line(told: &Told, entry: &Entry, now_ms: u64) -> String {
    let name = &entry.name;
    let Some(row) = told.rows.get(name) else { return format!("{name:<24} has never reported") };
    let report = &row.report;
    let last = utc_text(row.received_unix_ms / 1000);
    if told.fresh(name, now_ms).is_none() {
        return format!("{name:<24} SILENT since {last}");
    }
    let migration = report.policy.migration.as_deref().unwrap_or("-");
    let version = report.policy.version.map_or_else(|| "-".to_owned(), |version| version.to_string());
    let behind = if report.policy.version < told.policy_version { " (behind)" } else { "" };
    let until = utc_text(report.certificate_not_after_unix);
    let attacks = if report.attacks_open > 0 { format!(", ATTACKS {}", report.attacks_open) } else { String::new() };
    format!(
        "{name:<24} {} {} {migration}, policy {version}{behind}, {} sealed, {} in clear, {}, certificate until {until}\
         {attacks}, seen {last}",
        report.daemon.interface,
        report.daemon.mode,
        report.sealed,
        report.breaks_left_out.saturating_add(report.breaks.len() as u64),
        report.daemon.way,
    )
}

/// What is said of one group.
fn group_lines(of_group: &OfGroup<'_>) -> Vec<String> {
    let hosts = count(of_group.hosts.len(), "host");
    let mut lines = vec![format!("{} ({hosts}, {} enforcing):", of_group.group, of_group.enforcing.len())];
    lines.extend(of_group.forecast.lines(&format!("{hosts} of {}", of_group.group)));
    if !of_group.silent.is_empty() {
        let silent = count(of_group.silent.len(), "host");
        lines.push(format!("  not known of {silent} that did not report: {}", shortened(&of_group.silent)));
    }
    lines
}

fn group_json(of_group: &OfGroup<'_>) -> Value {
    json!({
        "group": of_group.group, "hosts": of_group.hosts, "enforcing": of_group.enforcing, "silent": of_group.silent,
        "is_complete": of_group.silent.is_empty() && of_group.forecast.left_out == 0, "forecast": of_group.forecast,
    })
}

/// Carries `site forecast` out.
pub(super) fn forecast(arguments: &SiteForecastArguments, surroundings: &mut Surroundings<'_>) -> Result<(), Failure> {
    let told = told(&arguments.dir, &surroundings.actor, surroundings.unix_s)?.0;
    let now_ms = surroundings.unix_s.saturating_mul(1000);
    let since_ms = now_ms.saturating_sub(millis(arguments.since));
    let groups: BTreeSet<&str> = told.groups.values().map(String::as_str).collect();
    if let Some(group) = arguments.group.as_deref().filter(|group| !groups.contains(group)) {
        let known: Vec<&str> = groups.into_iter().collect();
        return Err(Failure::new(format!("no host is of group \"{group}\"; name one of: {}", known.join("; "))));
    }
    let wanted = groups.into_iter().filter(|group| arguments.group.as_deref().is_none_or(|wanted| wanted == *group));
    let all: Vec<OfGroup<'_>> = wanted.map(|group| OfGroup::of(&told, group, since_ms, now_ms)).collect();
    let value = json!({
        "schema": SCHEMA, "schema_version": SCHEMA_VERSION,
        "groups": all.iter().map(group_json).collect::<Vec<_>>(),
    });
    let lines: Vec<String> = all.iter().flat_map(group_lines).collect();
    let text = if lines.is_empty() { "no host is enrolled".to_owned() } else { lines.join("\n") };
    surroundings.print(arguments.json, &value, &text)
}
