//! What signed ARP says of itself, in the words of the protocol.

use std::net::IpAddr;

use bump::Now;
use sarp::{KeyReport, LeaseReport, Report};
use watch::Known;

use super::parts::{Distributor, Key, Lease, OwnKey, Sarp};
use super::refresh::OwnKeyStanding;
use crate::host::reports::days_left;
use crate::modes::file::Config;
use crate::protocol::Answer;

/// Whom it knows, in the answer to `peers`.
pub(super) fn known(report: &Report) -> Answer {
    Answer::Keys { keys: report.keys.iter().map(key).collect() }
}

/// How many hosts have proved themselves.
pub(super) fn peer_count(report: &Report) -> usize {
    report.keys.iter().filter(|key| key.heard).count()
}

/// Those that it knows at this moment.
pub(super) fn met(report: &Report) -> Vec<Known> {
    let key = |key: &KeyReport| Known { name: None, mac: key.mac, addresses: vec![key.ip.into()] };
    report.keys.iter().map(key).collect()
}

/// A host that is believed without a signature.
pub(super) fn believed(host: &sarp::KnownHost) -> Known {
    Known { name: None, mac: Some(host.mac), addresses: vec![host.ip.into()] }
}

/// Addresses of this host by DHCP.
pub(super) fn leased(report: &Report) -> Vec<IpAddr> {
    report.leases.iter().filter(|lease| !lease.given).map(|one| one.ip.into()).collect()
}

/// What the bump knows, without the host's own key, which it does not keep.
pub(super) fn standing(report: &Report, now: Now, whole: &Config, distributors: &[Distributor]) -> Sarp {
    let config = &whole.sarp;
    Sarp {
        distributes: whole.akd.is_some(),
        clock_unix_s: report.clock_unix_s,
        window_s: config.window_s,
        sign_requests: config.sign_requests,
        keys: report.keys.len(),
        open_requests: report.open_requests,
        distributors_silent: report.distributors_silent,
        asked_first: distributors.get(report.preferred_distributor).map(|first| first.name.clone()),
        distributors: distributors.iter().map(|distributor| dated(distributor, now)).collect(),
        known_hosts: config.known_hosts.len(),
        signatures: report.signatures,
        verifications: report.verifications,
        leases: report.leases.iter().map(lease).collect(),
        own_key: None,
    }
}

pub(super) fn own_key(standing: OwnKeyStanding) -> OwnKey {
    OwnKey {
        age_s: standing.age.map(|age| age.as_secs()),
        changes_in_s: standing.changes_in.map(|left| left.as_secs()),
        is_changing: standing.is_changing,
    }
}

fn lease(report: &LeaseReport) -> Lease {
    Lease {
        address: report.ip.to_string(),
        host: report.host,
        remaining_s: report.remaining.map(|remaining| remaining.as_secs()),
        given: report.given,
    }
}

fn dated(distributor: &Distributor, now: Now) -> Distributor {
    let certificate_days_left = days_left(distributor.certificate_not_after_unix, now);
    Distributor { certificate_days_left, ..distributor.clone() }
}

fn key(report: &KeyReport) -> Key {
    Key {
        address: report.ip.to_string(),
        mac: report.mac.map(|mac| mac.to_string()),
        fetched_s: report.fetched_ago.as_secs(),
        heard: report.heard,
    }
}
