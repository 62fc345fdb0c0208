//! Who speaks in clear, and what a stricter mode would have refused: the table that a manager reads before the next step.
//!
//! Its keys are source addresses of frames in clear, so claims: it is bounded, a full one takes no new hosts until old ones have
//! been silent, and nothing is decided by it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use bump::{DropReason, Instant};
use wire::MacAddress;

use crate::glimpse::{Glimpse, Protocol};
use crate::limits::{
    OBSERVED_MAX, OBSERVED_PROTOCOLS_MAX, OBSERVED_SILENT_MAX, OBSERVED_TOLD_EVERY, PROOF_SETTLES, PROVED_MAX,
};

/// One host that speaks in clear.
#[derive(Clone, Debug)]
struct Observed {
    since: Instant,
    last: Instant,
    tell_at: Instant,
    counts: BTreeMap<DropReason, u64>,
    uses: BTreeMap<Protocol, Use>,
}

/// One use that it makes of the network.
#[derive(Clone, Debug)]
struct Use {
    frames: u64,
    last: Instant,
    sample: Glimpse,
}

/// One use that a host in clear makes of the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UseReport {
    /// Which.
    pub protocol: Protocol,
    /// Frames that mode `enforce` would have refused.
    pub frames: u64,
    /// How long ago the last of them came.
    pub heard_ago: Duration,
    /// The addresses in the last of them, which are claims.
    pub source: Option<IpAddr>,
    /// Where it went.
    pub destination: Option<IpAddr>,
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
    /// The same by what they were for; at most [`OBSERVED_PROTOCOLS_MAX`] for each lane and
    /// control, and one that stands for all others.
    pub uses: BTreeMap<Protocol, UseReport>,
}

impl Observed {
    /// A host that scans ports, or says so of another, makes no more of them than fit.
    fn note_use(&mut self, now: Instant, sample: Glimpse) {
        let is_known = self.uses.contains_key(&sample.protocol) || self.uses.len() < OBSERVED_PROTOCOLS_MAX;
        let protocol = if is_known { sample.protocol } else { Protocol::Other };
        let one = self.uses.entry(protocol).or_insert(Use { frames: 0, last: now, sample });
        one.frames += 1;
        (one.last, one.sample) = (now, sample);
    }
}

/// The hosts that speak in clear.
#[derive(Debug, Default)]
pub(crate) struct PlainHosts {
    by_mac: BTreeMap<MacAddress, Observed>,
    /// When each host proved itself, if that was within [`PROOF_SETTLES`].
    proved: BTreeMap<MacAddress, Instant>,
}

impl PlainHosts {
    /// Notes a frame that a stricter mode would have dropped for `reason`: whether an operator
    /// should hear of that host now. What a host sent in clear before it had a key may arrive after
    /// its proof; under a stricter mode it would not have sent it.
    pub(crate) fn note(&mut self, now: Instant, mac: MacAddress, reason: DropReason, glimpse: Glimpse) -> bool {
        if glimpse.protocol != Protocol::Sealed && self.was_under_way(now, mac) {
            return false;
        }
        if !self.by_mac.contains_key(&mac) && !self.has_room(now) {
            return false;
        }
        let (counts, uses) = (BTreeMap::new(), BTreeMap::new());
        let fresh = Observed { since: now, last: now, tell_at: now, counts, uses };
        let host = self.by_mac.entry(mac).or_insert(fresh);
        host.last = now;
        *host.counts.entry(reason).or_default() += 1;
        host.note_use(now, glimpse);
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

    /// Nothing is told of this host any more.
    pub(crate) fn remove(&mut self, mac: MacAddress) {
        self.by_mac.remove(&mac);
    }

    /// The host proves itself now: what it said in clear before is history.
    pub(crate) fn remove_proved(&mut self, now: Instant, mac: MacAddress) {
        self.remove(mac);
        self.proved.retain(|_, at| now.since(*at) < PROOF_SETTLES);
        if self.proved.len() < OBSERVED_MAX {
            self.proved.insert(mac, now);
        }
    }

    /// Whether a frame in clear of this host was probably sent before its proof.
    fn was_under_way(&self, now: Instant, mac: MacAddress) -> bool {
        self.proved.get(&mac).is_some_and(|at| now.since(*at) < PROOF_SETTLES)
    }

    /// Adds what is known here to `reports`.
    pub(crate) fn report(&self, now: Instant, reports: &mut BTreeMap<MacAddress, PlainReport>) {
        for (mac, host) in &self.by_mac {
            let report = reports.entry(*mac).or_insert_with(|| PlainReport {
                mac: *mac,
                since: Duration::ZERO,
                heard_ago: now.since(host.last),
                would_drop: BTreeMap::new(),
                uses: BTreeMap::new(),
            });
            report.since = report.since.max(now.since(host.since));
            report.heard_ago = report.heard_ago.min(now.since(host.last));
            for (reason, count) in &host.counts {
                *report.would_drop.entry(*reason).or_default() += count;
            }
            for (protocol, one) in &host.uses {
                report_use(now, *protocol, one, &mut report.uses);
            }
        }
    }
}

/// The newest of several is the sample.
fn report_use(now: Instant, protocol: Protocol, one: &Use, uses: &mut BTreeMap<Protocol, UseReport>) {
    let heard_ago = now.since(one.last);
    let (source, destination) = (one.sample.source, one.sample.destination);
    let fresh = UseReport { protocol, frames: 0, heard_ago, source, destination };
    let report = uses.entry(protocol).or_insert_with(|| fresh.clone());
    let frames = report.frames + one.frames;
    if heard_ago < report.heard_ago {
        *report = fresh;
    }
    report.frames = frames;
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
        assert!(hosts.note(start, mac(1), DropReason::PlainArp, Glimpse::SEALED));
        assert!(!hosts.note(start + Duration::from_secs(60), mac(1), DropReason::Unsealed, Glimpse::SEALED));
        assert!(hosts.note(start, mac(2), DropReason::Unsealed, Glimpse::SEALED));
        assert!(hosts.note(start + OBSERVED_TOLD_EVERY, mac(1), DropReason::Unsealed, Glimpse::SEALED));
        let mut reports = BTreeMap::new();
        hosts.report(start + OBSERVED_TOLD_EVERY, &mut reports);
        let first = &reports[&mac(1)];
        assert_eq!((first.since, first.heard_ago), (OBSERVED_TOLD_EVERY, Duration::ZERO));
        assert_eq!(first.would_drop, BTreeMap::from([(DropReason::PlainArp, 1), (DropReason::Unsealed, 2)]));
        hosts.remove(mac(1));
        assert!(hosts.note(start, mac(1), DropReason::PlainArp, Glimpse::SEALED), "it is news again");
    }

    #[test]
    fn what_was_under_way_when_a_host_proved_itself_is_not_told_of_it() {
        let (mut hosts, start) = (PlainHosts::default(), Instant::from_millis(1000));
        let clear = Glimpse { protocol: Protocol::Tcp(80), source: None, destination: None };
        hosts.note(start, mac(1), DropReason::Unsealed, clear);
        hosts.remove_proved(start, mac(1));
        let soon = start + PROOF_SETTLES / 2;
        assert!(!hosts.note(soon, mac(1), DropReason::Downgrade, clear) && hosts.by_mac.is_empty());
        assert!(hosts.note(soon, mac(2), DropReason::Unsealed, clear), "another host");
        assert!(hosts.note(soon, mac(1), DropReason::InnerSource, Glimpse::SEALED), "what it seals is of now");
        hosts.remove(mac(1));
        assert!(hosts.note(start + PROOF_SETTLES, mac(1), DropReason::Downgrade, clear), "it speaks in clear again");
        for number in 0..2 * OBSERVED_MAX as u32 {
            hosts.remove_proved(soon, mac(number));
        }
        assert_eq!(hosts.proved.len(), OBSERVED_MAX);
    }

    #[test]
    fn a_flood_of_forged_addresses_pushes_nobody_out_until_he_is_silent() {
        let (mut hosts, start) = (PlainHosts::default(), Instant::from_millis(1000));
        hosts.note(start, mac(0), DropReason::Unsealed, Glimpse::SEALED);
        for number in 1..3 * OBSERVED_MAX as u32 {
            hosts.note(start, mac(number), DropReason::Unsealed, Glimpse::SEALED);
        }
        assert_eq!(hosts.by_mac.len(), OBSERVED_MAX);
        assert!(hosts.by_mac.contains_key(&mac(0)));
        let later = start + OBSERVED_SILENT_MAX;
        assert!(hosts.note(later, mac(99_999), DropReason::Unsealed, Glimpse::SEALED));
        assert_eq!(hosts.by_mac.len(), 1);
    }

    #[test]
    fn uses_are_told_apart_and_a_scan_makes_no_more_of_them_than_fit() {
        let (mut hosts, start) = (PlainHosts::default(), Instant::from_millis(1000));
        let ip = |last| IpAddr::from([192, 0, 2, last]);
        let to = |port: u16, last: u8| Glimpse {
            protocol: Protocol::Tcp(port),
            source: Some(ip(9)),
            destination: Some(ip(last)),
        };
        hosts.note(start, mac(1), DropReason::Unsealed, to(9100, 10));
        let later = start + Duration::from_secs(5);
        hosts.note(later, mac(1), DropReason::Unsealed, to(9100, 11));
        let mut reports = BTreeMap::new();
        hosts.report(later, &mut reports);
        // What another lane heard counts as well, and the newest is the sample.
        let mut lane = PlainHosts::default();
        lane.note(start, mac(1), DropReason::Unsealed, to(9100, 12));
        lane.report(later, &mut reports);
        let told = &reports[&mac(1)].uses[&Protocol::Tcp(9100)];
        assert_eq!((told.frames, told.heard_ago, told.destination), (3, Duration::ZERO, Some(ip(11))));
        for port in 0..1000 {
            hosts.note(later, mac(1), DropReason::Unsealed, to(port, 10));
        }
        let mut reports = BTreeMap::new();
        hosts.report(later, &mut reports);
        let uses = &reports[&mac(1)].uses;
        assert_eq!(uses.len(), OBSERVED_PROTOCOLS_MAX + 1);
        assert_eq!(uses.values().map(|one| one.frames).sum::<u64>(), 1002, "none is lost");
    }
}
