//! From what a daemon says to a report.

use std::path::Path;

use authority::rollout::report::{DaemonPart, PolicyPart, SCHEMA, SCHEMA_VERSION};

use super::{BREAKS_MAX, Break, BreakUse, Report, USES_MAX};
use crate::client;
use crate::failure::Failure;
use crate::modes::cll::peers::ClearUse;
use crate::protocol::{Answer, Ask, Peer, Status};

/// What the daemon that listens on `socket` is to report, at this time.
pub(super) fn gather(socket: &Path, unix_ms: u64) -> Result<Report, Failure> {
    let Answer::Status(status) = client::ask(socket, &Ask::Status)? else {
        return Err(Failure::file(socket, "it is no daemon of a host", "name the file of a host with --config"));
    };
    let peers = match client::ask(socket, &Ask::Peers)? {
        Answer::Peers { peers } => peers,
        // Other modes seal nothing.
        _ => Vec::new(),
    };
    Ok(report(&status, peers, unix_ms))
}

pub(super) fn report(status: &Status, mut peers: Vec<Peer>, unix_ms: u64) -> Report {
    // Who has spoken for longest comes first: a flood of new addresses pushes nobody out.
    peers.sort_by_key(|peer| std::cmp::Reverse(peer.age_s));
    let all = peers.iter().filter(|peer| !peer.in_clear.would_break.is_empty());
    let total = all.clone().count();
    let mut room = USES_MAX;
    let breaks: Vec<Break> = all.take(BREAKS_MAX).map_while(|peer| fitting(peer, unix_ms, &mut room)).collect();
    Report {
        schema: SCHEMA.to_owned(),
        schema_version: SCHEMA_VERSION,
        made_unix_ms: unix_ms,
        daemon: DaemonPart {
            version: status.version.clone(),
            interface: status.interface.clone(),
            mode: status.mode.word().to_owned(),
            state: status.state.clone(),
            way: status.takeover.way.clone(),
            uptime_s: status.uptime_s,
        },
        policy: PolicyPart {
            version: status.parts.policy.as_ref().and_then(|policy| policy.version),
            migration: status.parts.migration.as_ref().map(|migration| migration.mode.mode().word().to_owned()),
        },
        sealed: status.peers as u64,
        attacks_open: status.attacks.open.len() as u64,
        attacks_opened: status.attacks.opened,
        // The daemon does not know it.
        site_key_generation: None,
        dropped: Some(status.drops.values().fold(0, |sum: u64, count| sum.saturating_add(*count))),
        certificate_not_after_unix: status.identity.as_ref().map_or(0, |own| own.certificate_not_after_unix),
        breaks_left_out: (total - breaks.len()) as u64,
        breaks,
    }
}

/// None where it has no room any more.
fn fitting(peer: &Peer, unix_ms: u64, room: &mut usize) -> Option<Break> {
    let uses = &peer.in_clear.would_break;
    *room = room.checked_sub(uses.len())?;
    let of = |one: &ClearUse| BreakUse {
        protocol: one.protocol.clone(),
        frames: one.frames,
        last_unix_ms: unix_ms.saturating_sub(one.last_heard_s.saturating_mul(1000)),
        source: one.source,
        destination: one.destination,
    };
    Some(Break { mac: peer.mac.clone(), uses: uses.iter().map(of).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::tests::link_layer;
    use crate::modes::cll::peers::InClear;

    /// A status with no host in clear, and an association to make others of.
    fn told() -> (Status, Peer) {
        let measured = link_layer();
        let (Answer::Status(status), Answer::Peers { peers }) = (*measured.status, *measured.known) else {
            panic!("a host")
        };
        (*status, peers[0].clone())
    }

    fn plain(model: &Peer, number: usize, uses: usize) -> Peer {
        let one = |port: usize| ClearUse {
            protocol: format!("tcp/{port}"),
            frames: 1,
            last_heard_s: 10,
            source: None,
            destination: None,
        };
        let would_break = (0..uses).map(one).collect();
        Peer {
            mac: format!("02:00:00:00:{:02x}:{:02x}", number / 256, number % 256),
            age_s: 100_000 - number as u64,
            in_clear: InClear { would_break, ..InClear::default() },
            ..model.clone()
        }
    }

    #[test]
    fn however_many_speak_in_clear_the_report_can_be_sent_and_says_how_many_it_left_out() {
        let (status, model) = told();
        for uses in [1, 17] {
            let all: Vec<Peer> = (0..2000).rev().map(|number| plain(&model, number, uses)).collect();
            let report = report(&status, all, 1_000_000);
            assert_eq!(Report::parse(&report.bytes()).as_ref(), Ok(&report));
            assert_eq!(report.breaks.len() as u64 + report.breaks_left_out, 2000);
            assert_eq!(report.breaks[0].mac, "02:00:00:00:00:00", "who was there first");
            assert_eq!(report.breaks[0].uses[0].last_unix_ms, 990_000);
        }
    }

    #[test]
    fn associations_break_nothing() {
        let (status, model) = told();
        let report = report(&status, vec![model], 5);
        assert_eq!((report.breaks.len(), report.breaks_left_out), (0, 0));
    }
}
