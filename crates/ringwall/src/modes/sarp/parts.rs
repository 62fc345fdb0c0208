//! Signed ARP's part of `status`, and the keys that `peers` lists.

use serde::{Deserialize, Serialize};

use crate::metrics::family::Families;
use crate::modes::part::{Known, Part, lease_end};
use crate::verdict::{Findings, Level};

/// How signed ARP is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Sarp {
    /// The S-ARP clock; absent before a distributor has told the time.
    pub(crate) clock_unix_s: Option<u32>,
    pub(crate) window_s: u64,
    pub(crate) sign_requests: bool,
    pub(crate) keys: usize,
    pub(crate) open_requests: usize,
    pub(crate) distributors_silent: bool,
    pub(crate) asked_first: Option<String>,
    pub(crate) distributors: Vec<Distributor>,
    pub(crate) known_hosts: usize,
    /// Signatures made and checked since the start.
    #[serde(default)]
    pub(crate) signatures: u64,
    #[serde(default)]
    pub(crate) verifications: u64,
    /// Whether this host distributes keys itself.
    #[serde(default)]
    pub(crate) distributes: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) leases: Vec<Lease>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) own_key: Option<OwnKey>,
}

/// The key that this host signs ARP with.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct OwnKey {
    /// By the S-ARP clock; absent while that is not set.
    pub(crate) age_s: Option<u64>,
    /// Absent if the host does not change it by itself, or the clock is not set.
    pub(crate) changes_in_s: Option<u64>,
    /// Whether distributors are being asked to take another one.
    pub(crate) is_changing: bool,
}

/// An address by DHCP: one that this host has, or one that it gave as a server.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Lease {
    pub(crate) address: String,
    /// The number of the host that has it.
    pub(crate) host: u64,
    /// Absent if it lasts for ever.
    pub(crate) remaining_s: Option<u64>,
    pub(crate) given: bool,
}

/// A key distributor that this host asks.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Distributor {
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) mac: String,
    pub(crate) certificate_not_after_unix: u64,
    pub(crate) certificate_days_left: i64,
}

/// A key that a distributor vouched for.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Key {
    pub(crate) address: String,
    /// The only hardware address that may speak for it, if the site binds one.
    pub(crate) mac: Option<String>,
    pub(crate) fetched_s: u64,
    /// Whether a message of its owner has been verified.
    pub(crate) heard: bool,
}

impl Part for Sarp {
    fn lines(&self) -> Vec<String> {
        let clock = self.clock_unix_s.map_or_else(|| "not set yet".to_owned(), |seconds| format!("{seconds} s"));
        let (window_s, keys, open) = (self.window_s, self.keys, self.open_requests);
        let mut lines = vec![format!("S-ARP clock: {clock}, window {window_s} s; keys: {keys}; requests open: {open}")];
        lines.extend(self.own_key.iter().map(|key| format!("own key: {}", own_key(key))));
        if self.distributes {
            lines.push("this host distributes keys".to_owned());
        }
        lines.extend(self.distributors.iter().map(|distributor| self.distributor_line(distributor)));
        lines.extend(self.leases.iter().map(Lease::line));
        if self.distributors_silent {
            let line = "NO KEY DISTRIBUTOR ANSWERS: keys that are known go on working, others cannot be fetched";
            lines.push(line.to_owned());
        }
        lines
    }

    fn judge(&self, found: &mut Findings) {
        let remedy = "see whether a distributor runs and can be reached";
        found.enter(self.distributors_silent, Level::Critical, "no key distributor answers", remedy);
    }

    fn measure(&self, families: &mut Families) {
        let is_clock_set = u64::from(self.clock_unix_s.is_some());
        let is_silent = u64::from(self.distributors_silent);
        let leases = "Addresses by DHCP that this host has or gave.";
        let gauges = [
            ("ringwall_sarp_keys", "Keys in the ring of S-ARP.", self.keys as u64),
            ("ringwall_sarp_leases", leases, self.leases.len() as u64),
            ("ringwall_sarp_clock_set", "Whether a distributor has told the time.", is_clock_set),
            ("ringwall_sarp_distributors_silent", "Whether no key distributor answers.", is_silent),
        ];
        gauges.into_iter().for_each(|(name, help, value)| families.gauge(name, help, &[], value));
        families.count("ringwall_sarp_signatures", "Signatures that were made.", &[], self.signatures);
        families.count("ringwall_sarp_verifications", "Signatures that were checked.", &[], self.verifications);
        for distributor in &self.distributors {
            let name = "ringwall_sarp_distributor_certificate_not_after_timestamp_seconds";
            let help = "When the certificate of a key distributor ends, in seconds since 1970.";
            let ends = distributor.certificate_not_after_unix;
            families.gauge(name, help, &[("distributor", &distributor.name)], ends);
        }
    }
}

impl Sarp {
    fn distributor_line(&self, distributor: &Distributor) -> String {
        let Distributor { name, address, mac, certificate_days_left: days, .. } = distributor;
        let note = if self.asked_first.as_ref() == Some(name) { ", asked first" } else { "" };
        format!("key distributor: {name} ({address}, {mac}), {days} days left{note}")
    }
}

impl Lease {
    fn line(&self) -> String {
        let whose = if self.given { format!("given to host number {}", self.host) } else { "this host's".to_owned() };
        format!("lease: {}, {whose}, {}", self.address, lease_end(self.remaining_s))
    }
}

/// How old this host's key is, and when the next takes its place.
fn own_key(key: &OwnKey) -> String {
    let age = key.age_s.map_or_else(|| "of unknown age".to_owned(), |seconds| format!("{} old", long_time(seconds)));
    match (key.is_changing, key.changes_in_s) {
        (true, _) => format!("{age}, being changed now"),
        (false, Some(0)) => format!("{age}, to be changed now"),
        (false, Some(seconds)) => format!("{age}, changed in {}", long_time(seconds)),
        (false, None) => age,
    }
}

/// A time in the largest unit of which there are two at least.
fn long_time(seconds: u64) -> String {
    match seconds {
        172_800.. => format!("{} days", seconds / 86_400),
        7200.. => format!("{} h", seconds / 3600),
        _ => format!("{seconds} s"),
    }
}

impl Known for Vec<Key> {
    fn lines(&self) -> Vec<String> {
        let columns = format!("{:<16} {:<18} {:>9}  heard", "address", "bound to", "fetched");
        let row = |key: &Key| {
            let (mac, heard) = (key.mac.as_deref().unwrap_or("any"), if key.heard { "yes" } else { "no" });
            format!("{:<16} {mac:<18} {:>5} s ago  {heard}", key.address, key.fetched_s)
        };
        std::iter::once(columns).chain(self.iter().map(row)).collect()
    }

    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_says_how_old_the_own_key_is_and_when_it_changes() {
        let said = |age_s, changes_in_s, is_changing| own_key(&OwnKey { age_s, changes_in_s, is_changing });
        assert_eq!(said(Some(12 * 86_400 + 5), Some(18 * 86_400), false), "12 days old, changed in 18 days");
        assert_eq!(said(Some(86_400), None, false), "24 h old");
        assert_eq!(said(Some(7199), Some(0), false), "7199 s old, to be changed now");
        assert_eq!(said(Some(31 * 86_400), Some(600), true), "31 days old, being changed now");
        assert_eq!(said(None, None, false), "of unknown age");
    }
}
