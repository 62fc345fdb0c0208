//! What the site's authority signs for all hosts, as this host has it: a part of each mode that goes
//! by it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::part::{Part, count_lines};
use crate::metrics::family::Families;

/// How many certificates the list of revoked ones names, where one is configured.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(transparent)]
pub(crate) struct Revoked(pub(crate) usize);

impl Part for Revoked {
    fn lines(&self) -> Vec<String> {
        vec![format!("revoked certificates: {}", self.0)]
    }
}

/// The policy of the site, as this host has it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct SitePolicy {
    /// Its number; none if all that came was refused.
    pub(crate) version: Option<u64>,
    /// When the authority signed it.
    pub(crate) issued: Option<String>,
    /// Since when it is in force on this host.
    pub(crate) since: Option<String>,
    /// From where it came.
    pub(crate) origin: String,
    /// The group that means this host.
    pub(crate) group: Option<String>,
    /// The mode of that group.
    pub(crate) mode: Option<String>,
    /// The mode that follows, and when.
    pub(crate) changes: Option<String>,
    /// Where this host's own file differs.
    pub(crate) own_file: Vec<String>,
    /// Policies that were refused, by reason.
    pub(crate) refused: BTreeMap<String, u64>,
}

impl Part for SitePolicy {
    /// Which version runs, since when, and where this host's own file differs.
    fn lines(&self) -> Vec<String> {
        let mut lines = vec![match (self.version, &self.since) {
            (Some(version), Some(since)) => {
                format!("site policy: version {version}, in force since {since}, {}", self.origin)
            }
            (Some(version), None) => format!("site policy: version {version}, {}", self.origin),
            (None, _) => "site policy: none".to_owned(),
        }];
        if let (Some(group), Some(mode)) = (&self.group, &self.mode) {
            let changes = self.changes.as_ref().map_or_else(String::new, |changes| format!(", {changes}"));
            lines.push(format!("site policy for this host (group {group}): {mode}{changes}"));
        }
        lines.extend(self.own_file.iter().map(|note| format!("own file: {note}")));
        if !self.refused.is_empty() {
            lines.push("site policies refused:".to_owned());
            lines.extend(count_lines(&self.refused));
        }
        lines
    }

    fn measure(&self, families: &mut Families) {
        let help = "Version of the site's policy in force; 0 if all that came was refused.";
        families.gauge("ringwall_site_policy_version", help, &[], self.version.unwrap_or(0));
        let help = "Site policies that were refused, by reason.";
        families.by_reason("ringwall_refused_site_policies", help, &self.refused);
    }
}
