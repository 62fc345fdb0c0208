//! What the link layer says of itself, in the words of the protocol.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bump::{DropReason, Ledger};
use cll::{PeerReport, PlainReport, Policy, ProvedHost, UseReport};
use watch::Known;
use wire::MacAddress;

use super::config::{LegacyHost, MigrationName};
use super::guard::Associations;
use super::parts::{Compression, LinkLease, Migration};
use super::peers::{ClearUse, InClear, Peer, Shown};
use crate::protocol::Answer;

/// Whom it knows, in the answer to `peers`.
pub(super) fn known(link: &Associations, clocks: &BTreeMap<MacAddress, i64>) -> Answer {
    let peer = |report| peer(report, clocks);
    Answer::Peers { peers: link.peers.iter().map(peer).chain(link.in_clear.iter().map(plain)).collect() }
}

/// How many hosts have proved themselves.
pub(super) fn peer_count(link: &Associations) -> usize {
    link.peers.iter().filter(|peer| peer.state == "established").count()
}

/// Those that it knows at this moment.
pub(super) fn met(link: &Associations) -> Vec<Known> {
    let peer = |peer: &PeerReport| {
        let addresses = peer.addresses.iter().map(|ip| IpAddr::V4(*ip));
        let addresses = addresses.chain(peer.ipv6_addresses.iter().map(|ip| IpAddr::V6(*ip)));
        Known { name: Some(peer.name.clone()), mac: Some(peer.mac), addresses: addresses.collect() }
    };
    link.peers.iter().map(peer).collect()
}

pub(super) fn proved_host(host: &ProvedHost) -> Known {
    Known { name: Some(host.name.clone()), mac: Some(host.mac), addresses: host.addresses.clone() }
}

/// Addresses of this host by DHCP.
pub(super) fn leased(link: &Associations) -> Vec<IpAddr> {
    link.leases.iter().filter(|lease| !lease.given).map(|one| one.ip.into()).collect()
}

/// Addresses by DHCP of the link layer.
pub(super) fn leases(link: &Associations) -> Vec<LinkLease> {
    let lease = |report: &cll::LeaseReport| LinkLease {
        address: report.ip.to_string(),
        mac: report.mac.to_string(),
        remaining_s: report.remaining.map(|remaining| remaining.as_secs()),
        given: report.given,
    };
    link.leases.iter().map(lease).collect()
}

fn peer(report: &PeerReport, clocks: &BTreeMap<MacAddress, i64>) -> Peer {
    let addresses = report.addresses.iter().map(ToString::to_string);
    let ipv6_addresses = report.ipv6_addresses.iter().map(ToString::to_string);
    Peer {
        name: report.name.clone(),
        mac: report.mac.to_string(),
        addresses: addresses.chain(ipv6_addresses).collect(),
        router: report.router,
        state: report.state.to_owned(),
        initiated: report.initiated,
        rollovers: report.rollovers,
        resumed: report.resumed,
        age_s: report.age.as_secs(),
        remaining_s: report.remaining.as_secs(),
        last_opened_s: report.last_opened_ago.map(|ago| ago.as_secs()),
        agreement: report.agreement.clone(),
        sends: report.sends.clone(),
        receives: report.receives.clone(),
        shown: Shown {
            certificate_not_after_unix: report.certificate_not_after_unix,
            clock_ahead_s: clocks.get(&report.mac).copied(),
        },
        in_clear: InClear::default(),
    }
}

/// A host that speaks in clear, in the list of peers.
fn plain(report: &PlainReport) -> Peer {
    let in_clear = "in clear";
    Peer {
        name: "-".to_owned(),
        mac: report.mac.to_string(),
        addresses: Vec::new(),
        router: false,
        state: "plain".to_owned(),
        initiated: false,
        resumed: false,
        rollovers: 0,
        age_s: report.since.as_secs(),
        remaining_s: 0,
        last_opened_s: Some(report.heard_ago.as_secs()),
        agreement: "none".to_owned(),
        sends: in_clear.to_owned(),
        receives: in_clear.to_owned(),
        shown: Shown::default(),
        in_clear: InClear {
            would_drop: report.would_drop.iter().map(|(reason, count)| (reason.word().to_owned(), *count)).collect(),
            would_break: report.uses.values().map(clear_use).collect(),
        },
    }
}

fn clear_use(report: &UseReport) -> ClearUse {
    ClearUse {
        protocol: report.protocol.to_string(),
        frames: report.frames,
        last_heard_s: report.heard_ago.as_secs(),
        source: report.source,
        destination: report.destination,
    }
}

/// What compression did, if there was any.
pub(super) fn compression(link: &Associations) -> Option<Compression> {
    let did = &link.compression;
    let compression = Compression {
        compressed_frames: did.compressed_frames,
        left_frames: did.left_frames,
        bytes_before: did.bytes_before,
        bytes_after: did.bytes_after,
        expanded_frames: did.expanded_frames,
        expanded_bytes_before: did.expanded_bytes_before,
        expanded_bytes_after: did.expanded_bytes_after,
    };
    (*did != cll::CompressionReport::default()).then_some(compression)
}

/// How far the move to sealed frames is.
pub(super) fn migration(
    (policy, legacy): (&Policy, &[LegacyHost]),
    proved: usize,
    link: &Associations,
    ledger: &Ledger,
) -> Migration {
    let counts = DropReason::ALL.iter().map(|reason| (*reason, ledger.excused[*reason as usize]));
    Migration {
        mode: MigrationName::of(policy.migration),
        exceptions: policy.exceptions.iter().map(|(mac, mode)| (mac.to_string(), mode.word().to_owned())).collect(),
        management: policy
            .management
            .iter()
            .map(|one| format!("{} ({}), port {}", one.ip, one.mac, one.port))
            .collect(),
        legacy: legacy.iter().map(|one| (one.ip.to_string(), one.mac.mac().to_string())).collect(),
        proved,
        in_clear: link.in_clear.len(),
        would_drop: counts
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| (reason.word().to_owned(), count))
            .collect(),
    }
}
