//! Who speaks in clear, and what a stricter mode would have refused: the table that a manager reads before the next step.
//!
//! Its keys are source addresses of frames in clear, so claims: it is bounded, a full one takes no new hosts until old ones have
//! been silent, and nothing is decided by it.

use std::collections::BTreeMap;
use std::time::Duration;

use bump::{DropReason, Instant};
use wire::MacAddress;

use crate::limits::{OBSERVED_MAX, OBSERVED_SILENT_MAX, OBSERVED_TOLD_EVERY, PROVED_MAX};

/// One host that speaks in clear.
#[derive(Clone, Debug)]
struct Observed {
    since: Instant,
    last: Instant,
    tell_at: Instant,
    counts: BTreeMap<DropReason, u64>,
}

/// A host that speaks in clear, as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainReport {
    /// Its hardware address, which is a claim.
    pub mac: MacAddress,
    /// How long ago it was first heard.
    pub since: Duration,
    /// How long ago it was last heard.
    pub heard_ago: Duration,
    /// What mode `enforce` would have refused, in frames by reason.
    pub would_drop: BTreeMap<DropReason, u64>,
}

/// The hosts that speak in clear.
#[derive(Debug, Default)]
pub(crate) struct PlainHosts {
    by_mac: BTreeMap<MacAddress, Observed>,
}

impl PlainHosts {
    /// Notes a frame that a stricter mode would have dropped for `reason`: whether an operator should hear of that host now.
    pub(crate) fn note(&mut self, now: Instant, mac: MacAddress, reason: DropReason) -> bool {
        if !self.by_mac.contains_key(&mac) && !self.has_room(now) {
            return false;
        }
        let fresh = Observed { since: now, last: now, tell_at: now, counts: BTreeMap::new() };
        let host = self.by_mac.entry(mac).or_insert(fresh);
        host.last = now;
        *host.counts.entry(reason).or_default() += 1;
        let tell = host.tell_at <= now;
        if tell {
            host.tell_at = now + OBSERVED_TOLD_EVERY;
        }
        tell
    }

    /// Whether one more fits, after those that have been silent for long are gone.
    fn has_room(&mut self, now: Instant) -> bool {
        if self.by_mac.len() >= OBSERVED_MAX {
            self.by_mac.retain(|_, host| now.since(host.last) < OBSERVED_SILENT_MAX);
        }
        self.by_mac.len() < OBSERVED_MAX
    }

    /// Keeps the hosts of which `keep` says so.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(MacAddress) -> bool) {
        self.by_mac.retain(|mac, _| keep(*mac));
    }

    /// The host proves itself now.
    pub(crate) fn remove(&mut self, mac: MacAddress) {
        self.by_mac.remove(&mac);
    }

    /// Adds what is known here to `reports`.
    pub(crate) fn report(&self, now: Instant, reports: &mut BTreeMap<MacAddress, PlainReport>) {
        for (mac, host) in &self.by_mac {
            let report = reports.entry(*mac).or_insert_with(|| PlainReport {
                mac: *mac,
                since: Duration::ZERO,
                heard_ago: now.since(host.last),
                would_drop: BTreeMap::new(),
            });
            report.since = report.since.max(now.since(host.since));
            report.heard_ago = report.heard_ago.min(now.since(host.last));
            for (reason, count) in &host.counts {
                *report.would_drop.entry(*reason).or_default() += count;
            }
        }
    }
}

/// When each host proved itself last; at most [`PROVED_MAX`].
#[derive(Debug, Default)]
pub(crate) struct Proofs {
    at: BTreeMap<MacAddress, Instant>,
}

impl Proofs {
    pub(crate) fn note(&mut self, now: Instant, mac: MacAddress) {
        if self.at.len() < PROVED_MAX || self.at.contains_key(&mac) {
            self.at.insert(mac, now);
        }
    }

    /// The host may speak in clear again.
    pub(crate) fn forget(&mut self, mac: MacAddress) {
        self.at.remove(&mac);
    }

    /// Whether the host has proved itself since it was last `heard` in clear, and so speaks in
    /// clear no more.
    pub(crate) fn is_since(&self, mac: MacAddress, heard: Instant) -> bool {
        self.at.get(&mac).is_some_and(|at| *at >= heard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mac(number: u32) -> MacAddress {
        let [a, b, c, d] = number.to_be_bytes();
        MacAddress([2, 0, a, b, c, d])
    }

    #[test]
    fn an_operator_hears_of_each_host_once_in_a_while() {
        let (mut hosts, start) = (PlainHosts::default(), Instant::from_millis(1000));
        assert!(hosts.note(start, mac(1), DropReason::PlainArp));
        assert!(!hosts.note(start + Duration::from_secs(60), mac(1), DropReason::Unsealed));
        assert!(hosts.note(start, mac(2), DropReason::Unsealed));
        assert!(hosts.note(start + OBSERVED_TOLD_EVERY, mac(1), DropReason::Unsealed));
        let mut reports = BTreeMap::new();
        hosts.report(start + OBSERVED_TOLD_EVERY, &mut reports);
        let first = &reports[&mac(1)];
        assert_eq!((first.since, first.heard_ago), (OBSERVED_TOLD_EVERY, Duration::ZERO));
        assert_eq!(first.would_drop, BTreeMap::from([(DropReason::PlainArp, 1), (DropReason::Unsealed, 2)]));
        hosts.remove(mac(1));
        assert!(hosts.note(start, mac(1), DropReason::PlainArp), "it is news again");
    }

    #[test]
    fn a_flood_of_forged_addresses_pushes_nobody_out_until_he_is_silent() {
        let (mut hosts, start) = (PlainHosts::default(), Instant::from_millis(1000));
        hosts.note(start, mac(0), DropReason::Unsealed);
        for number in 1..3 * OBSERVED_MAX as u32 {
            hosts.note(start, mac(number), DropReason::Unsealed);
        }
        assert_eq!(hosts.by_mac.len(), OBSERVED_MAX);
        assert!(hosts.by_mac.contains_key(&mac(0)));
        let later = start + OBSERVED_SILENT_MAX;
        assert!(hosts.note(later, mac(99_999), DropReason::Unsealed));
        assert_eq!(hosts.by_mac.len(), 1);
    }
}
