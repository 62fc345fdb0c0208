//! Snapshots of the data path in the words of the protocol, as far as every daemon has them.

use std::collections::BTreeMap;

use bump::{DropReason, Ledger, Side};
use scrub::{FlowId, FlowReport};
use system::port::{ReceiveCounters, SendCounters};
use wire::ethernet::Header;

use super::data_path::{Command, Snapshot};
use super::guard::{Blocking, Wanted};
use super::supervisor::Link;
use crate::protocol::{Answer, Ask, Example, Flow};

/// Connections in one answer: the data path stands still while it lists them, about a millisecond for so many.
pub(crate) const FLOWS_LISTED_MAX: usize = 10_000;

/// What the two sides of a daemon are called.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SideNames {
    pub(crate) inner: &'static str,
    pub(crate) outer: &'static str,
}

/// All drop counters, those at zero too: a name that is missing would look like one that does not exist.
pub(crate) fn drops(ledger: &Ledger) -> BTreeMap<String, u64> {
    DropReason::ALL.iter().map(|reason| (reason.word().to_owned(), ledger.drops(*reason))).collect()
}

/// What passed the ports.
pub(crate) fn ports(snapshot: &Snapshot, names: SideNames) -> BTreeMap<String, u64> {
    let mut counters = BTreeMap::new();
    let sides: [(&str, &(ReceiveCounters, SendCounters)); 2] =
        [(names.inner, &snapshot.inner), (names.outer, &snapshot.outer)];
    for (side, (received, sent)) in sides {
        let named = [
            ("received_frames", received.frames),
            ("received_bytes", received.bytes),
            ("received_super_frames", received.super_frames),
            ("received_segments", received.segments),
            ("received_unreadable", received.unreadable),
            ("kernel_drops", received.kernel_drops),
            ("sent_frames", sent.frames),
            ("sent_bytes", sent.bytes),
            ("sent_super_frames", sent.super_frames),
            ("sent_joined", sent.joined),
            ("send_backlogs", sent.backlogs),
            ("send_errors", sent.errors),
        ];
        counters.extend(named.map(|(name, value)| (format!("{side}_{name}"), value)));
    }
    counters.insert("news_lost".to_owned(), snapshot.news_lost);
    counters
}

/// Recent examples of dropped frames.
pub(crate) fn examples(snapshot: &Snapshot, names: SideNames) -> Vec<Example> {
    let describe = |drop: bump::Drop| {
        let header = Header::parse(&drop.head).ok().map(|(header, _)| header);
        let field = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        Example {
            reason: drop.reason.word().to_owned(),
            from: if drop.from == Side::Inner { names.inner } else { names.outer }.to_owned(),
            ago_ms: u64::try_from(snapshot.now.since_boot.since(drop.at).as_millis()).unwrap_or(u64::MAX),
            len: drop.len,
            source: field(header.map(|header| header.source.to_string())),
            destination: field(header.map(|header| header.destination.to_string())),
            ethertype: field(header.map(|header| format!("{:?}", header.ethertype))),
            head_hex: drop.head.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    };
    snapshot.ledger.examples().into_iter().map(describe).collect()
}

/// The answer where the data path gives none.
pub(crate) fn silence() -> Answer {
    Answer::Error { line: "the data path does not answer".to_owned() }
}

/// The answer to a question or an order about connections.
pub(crate) fn of_flows(ask: &Ask, link: &Link) -> Answer {
    match ask {
        Ask::Flows { limit, address, state } => {
            let limit = (*limit).min(FLOWS_LISTED_MAX);
            let wanted = Wanted { limit, address: *address, state: state.clone() };
            let told = link.question(|reply| Command::Flows(wanted, reply));
            told.map(|flows| flows.map(|flows| Answer::Flows { flows: flows.iter().map(flow).collect() }))
        }
        Ask::Block { trusted, untrusted, vlans, undo } => {
            let flow = FlowId { trusted: *trusted, untrusted: *untrusted, vlans: *vlans };
            let told = link.question(|reply| Command::Block(Blocking { flow, undo: *undo }, reply));
            told.map(|changed| changed.map(|changed| Answer::Blocked { changed }))
        }
        _ => None,
    }
    .map_or_else(silence, |answer| {
        answer.unwrap_or_else(|| Answer::Error { line: "only a gateway knows connections".to_owned() })
    })
}

fn flow(report: &FlowReport) -> Flow {
    Flow {
        trusted: report.flow.trusted,
        untrusted: report.flow.untrusted,
        vlans: report.flow.vlans,
        state: report.state.to_owned(),
        idle_s: report.idle.as_secs(),
        retained_bytes: report.retained_bytes,
        packets_from_trusted: report.packets[Side::TRUSTED as usize],
        packets_from_untrusted: report.packets[Side::UNTRUSTED as usize],
        bytes_from_trusted: report.bytes[Side::TRUSTED as usize],
        bytes_from_untrusted: report.bytes[Side::UNTRUSTED as usize],
    }
}
