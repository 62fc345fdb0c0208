//! What a host says of its bump, in the words of the protocol.

use bump::{DropReason, Ledger, Now, Side};
use cll::{PeerReport, PlainReport, Policy, UseReport};
use sarp::{KeyReport, LeaseReport};

use super::outpost::Standing;
use super::refresh::OwnKeyStanding;
use crate::config;
pub(crate) use crate::daemon::reports::{drops, ports};
use crate::daemon::{Report, Snapshot};
use crate::protocol::{
    Answer, ClearUse, Compression, Distributor, Frames, InClear, Key, Layers, Lease, LinkLease, Migration, OwnKey,
    Peer, Sarp,
};

pub(crate) fn frames(ledger: &Ledger) -> Frames {
    let (stack, wire) = (Side::STACK as usize, Side::WIRE as usize);
    Frames {
        received_from_stack: ledger.received[stack],
        received_from_wire: ledger.received[wire],
        forwarded_to_wire: ledger.forwarded[stack],
        forwarded_to_stack: ledger.forwarded[wire],
        answered: ledger.answered.iter().sum(),
        consumed: ledger.consumed.iter().sum(),
        held: ledger.held,
        dropped: ledger.dropped.iter().sum(),
        made_for_wire: ledger.made[wire],
        made_for_stack: ledger.made[stack],
        emitted_to_wire: ledger.emitted[wire],
        emitted_to_stack: ledger.emitted[stack],
    }
}

/// Whom the bump knows, in the answer to `peers`.
pub(crate) fn known(report: &Report) -> Answer {
    match report {
        Report::Nothing | Report::Scrubbing(_) => Answer::Peers { peers: Vec::new() },
        Report::Associations(link) => {
            Answer::Peers { peers: link.peers.iter().map(peer).chain(link.in_clear.iter().map(plain)).collect() }
        }
        Report::Shielding(pairs) => Answer::Pairs { pairs: pairs.iter().map(crate::shield::reports::pair).collect() },
        Report::Keys(sarp) => Answer::Keys { keys: sarp.keys.iter().map(key).collect() },
    }
}

/// How many hosts have proved themselves; of a shield, how many have an association that is known.
pub(crate) fn peer_count(report: &Report) -> usize {
    match report {
        Report::Nothing | Report::Scrubbing(_) => 0,
        Report::Associations(link) => link.peers.iter().filter(|peer| peer.state == "established").count(),
        Report::Shielding(pairs) => pairs.iter().filter(|pair| pair.known > 0).count(),
        Report::Keys(sarp) => sarp.keys.iter().filter(|key| key.heard).count(),
    }
}

/// What the bump knows, without the host's own key, which it does not keep.
pub(super) fn sarp(report: &sarp::Report, now: Now, whole: &config::Config, distributors: &[Distributor]) -> Sarp {
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

/// Where forged frames end.
pub(super) fn layers(standing: &Standing) -> Layers {
    let counts = standing.dropped_in_kernel().into_iter();
    Layers {
        wanted: standing.wanted.word().to_owned(),
        in_force: standing.in_force.word().to_owned(),
        hook: standing.hook.map(|hook| hook.word().to_owned()),
        reason: standing.reason.clone(),
        dropped_in_kernel: counts.map(|(reason, count)| (reason.word().to_owned(), count)).collect(),
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

/// Addresses by DHCP of the link layer.
pub(super) fn leases(report: &Report) -> Vec<LinkLease> {
    let Report::Associations(link) = report else { return Vec::new() };
    let lease = |report: &cll::LeaseReport| LinkLease {
        address: report.ip.to_string(),
        mac: report.mac.to_string(),
        remaining_s: report.remaining.map(|remaining| remaining.as_secs()),
        given: report.given,
    };
    link.leases.iter().map(lease).collect()
}

fn dated(distributor: &Distributor, now: Now) -> Distributor {
    let certificate_days_left = days_left(distributor.certificate_not_after_unix, now);
    Distributor { certificate_days_left, ..distributor.clone() }
}

/// Whole days until a certificate ends; below zero when it is over.
pub(crate) fn days_left(not_after_unix: u64, now: Now) -> i64 {
    let now_s = now.wall.map_or(0, |wall| wall.unix_ms / 1000);
    let left = i64::try_from(not_after_unix).unwrap_or(i64::MAX) - i64::try_from(now_s).unwrap_or(0);
    left.div_euclid(86_400)
}

fn key(report: &KeyReport) -> Key {
    Key {
        address: report.ip.to_string(),
        mac: report.mac.map(|mac| mac.to_string()),
        fetched_s: report.fetched_ago.as_secs(),
        heard: report.heard,
    }
}

fn peer(report: &PeerReport) -> Peer {
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
        certificate_not_after_unix: report.certificate_not_after_unix,
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
        certificate_not_after_unix: 0,
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
pub(super) fn compression(report: &Report) -> Option<Compression> {
    let Report::Associations(link) = report else { return None };
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
pub(super) fn migration(policy: &Policy, proved: usize, snapshot: &Snapshot) -> Migration {
    let in_clear = match &snapshot.report {
        Report::Associations(link) => link.in_clear.len(),
        _ => 0,
    };
    let counts = DropReason::ALL.iter().map(|reason| (*reason, snapshot.ledger.excused[*reason as usize]));
    Migration {
        mode: policy.migration.word().to_owned(),
        exceptions: policy.exceptions.iter().map(|(mac, mode)| (mac.to_string(), mode.word().to_owned())).collect(),
        management: policy
            .management
            .iter()
            .map(|one| format!("{} ({}), port {}", one.ip, one.mac, one.port))
            .collect(),
        proved,
        in_clear,
        would_drop: counts
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| (reason.word().to_owned(), count))
            .collect(),
    }
}
