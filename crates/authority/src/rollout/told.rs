//! The site's record beside what hosts have reported, by the groups of the policy.

use std::collections::BTreeMap;
use std::time::Duration;

use wire::MacAddress;

use super::forecast::Forecast;
use super::report::Report;
use crate::directory::Record;
use crate::{Entry, Error};

/// A host that has not reported for this long is silent: it reports each minute.
pub const SILENT_AFTER: Duration = Duration::from_secs(5 * 60);
/// Hosts that no group of the policy means.
const NO_GROUP: &str = "no group";

/// A report, as it is kept.
#[derive(Clone, Debug)]
pub struct Row {
    /// Name of the host, by its certificate.
    pub host: String,
    /// When it came.
    pub received_unix_ms: u64,
    /// What it says.
    pub report: Report,
}

/// The site's record beside what was reported.
#[derive(Clone, Debug)]
pub struct Told {
    /// The newest certificate of each host that has a good one, by name.
    pub enrolled: BTreeMap<String, Entry>,
    /// By name of the host, whether or not it is enrolled still.
    pub rows: BTreeMap<String, Row>,
    /// That of the policy in force.
    pub policy_version: Option<u64>,
    /// The group of the policy that means each host.
    pub groups: BTreeMap<String, String>,
}

impl Told {
    /// What `record` has of a site whose hosts have reported this.
    ///
    /// # Errors
    /// What is wrong with the record.
    pub fn of(record: &Record, rows: Vec<Row>, unix_s: u64) -> Result<Told, Error> {
        let mut enrolled = BTreeMap::<String, Entry>::new();
        for entry in record.list()?.into_iter().filter(|entry| entry.is_live(unix_s)) {
            let is_newer = enrolled.get(&entry.name).is_none_or(|one| one.not_before_unix <= entry.not_before_unix);
            if is_newer {
                enrolled.insert(entry.name.clone(), entry);
            }
        }
        let policy = record.policy()?;
        let group_of = |name: &str| {
            let group = policy.as_ref().and_then(|policy| policy.group_of(name));
            group.map_or_else(|| NO_GROUP.to_owned(), |group| group.patterns.join(","))
        };
        let groups = enrolled.keys().map(|name| (name.clone(), group_of(name))).collect();
        let rows = rows.into_iter().map(|row| (row.host.clone(), row)).collect();
        Ok(Told { enrolled, rows, policy_version: policy.map(|policy| policy.version()), groups })
    }

    /// What a host reported last, if that was not too long ago.
    #[must_use]
    pub fn fresh(&self, name: &str, now_ms: u64) -> Option<&Row> {
        let silent_ms = u64::try_from(SILENT_AFTER.as_millis()).unwrap_or(u64::MAX);
        self.rows.get(name).filter(|row| now_ms.saturating_sub(row.received_unix_ms) < silent_ms)
    }

    /// Who has this hardware address by the site's record.
    fn name_of(&self, mac: &str) -> Option<String> {
        let mac = mac.parse().ok()?;
        self.enrolled.values().find(|entry| entry.mac == mac).map(|entry| entry.name.clone())
    }
}

/// What is said of one group.
#[derive(Clone, Debug)]
pub struct OfGroup<'a> {
    /// Its patterns, as `ringwall site policy show` writes them.
    pub group: &'a str,
    /// The enrolled hosts that it means.
    pub hosts: Vec<&'a str>,
    /// Those of them that enforce already.
    pub enforcing: Vec<&'a str>,
    /// Those of them that have not reported lately.
    pub silent: Vec<&'a str>,
    /// What would break if all of them enforced.
    pub forecast: Forecast,
}

impl<'a> OfGroup<'a> {
    /// That of `group`, by what was heard since then.
    #[must_use]
    pub fn of(told: &'a Told, group: &'a str, since_ms: u64, now_ms: u64) -> OfGroup<'a> {
        let members = told.groups.iter().filter(|(_, of)| *of == group).map(|(name, _)| name.as_str());
        let hosts: Vec<&str> = members.collect();
        let silent = hosts.iter().copied().filter(|name| told.fresh(name, now_ms).is_none()).collect();
        let report = |name: &&'a str| Some((*name, &told.rows.get(*name)?.report));
        let enforcing = hosts.iter().filter_map(report);
        let enforcing = enforcing.filter(|(_, report)| !report.is_lenient()).map(|(name, _)| name).collect();
        let forecast = Forecast::of(hosts.iter().filter_map(report), since_ms, |mac| told.name_of(mac));
        OfGroup { group, hosts, enforcing, silent, forecast }
    }

    /// The same where these may be cut off.
    #[must_use]
    pub fn without(self, macs: &[MacAddress]) -> OfGroup<'a> {
        OfGroup { forecast: self.forecast.without(macs), ..self }
    }
}
