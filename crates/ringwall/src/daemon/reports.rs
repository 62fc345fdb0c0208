//! Snapshots of the data path in the words of the protocol, as far as every daemon has them.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use bump::{DropReason, Ledger, Side};
use system::port::{ReceiveCounters, SendCounters};
use wire::ethernet::Header;
use wire::layer::{self, protocol};
use wire::{EtherType, icmp, ipv4, ipv6};

use super::data_path::Snapshot;
use super::guard::Kind;
use crate::protocol::{Answer, Example};
use crate::status::REAL_TIME;

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
pub(crate) fn ports<K: Kind>(snapshot: &Snapshot<K>, names: SideNames) -> BTreeMap<String, u64> {
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

/// With which priority the data path runs, among what was found out about the kernel.
pub(crate) fn precedence<K: Kind>(snapshot: &Snapshot<K>) -> Option<(String, String)> {
    snapshot.precedence.clone().map(|outcome| (REAL_TIME.to_owned(), outcome))
}

/// Recent examples of dropped frames.
pub(crate) fn examples<K: Kind>(snapshot: &Snapshot<K>, names: SideNames) -> Vec<Example> {
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
            packet: packet(&drop.head),
            head_hex: drop.head.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    };
    snapshot.ledger.examples().into_iter().map(describe).collect()
}

/// An IP packet in an operator's words, as far as the beginning of its frame tells.
fn packet(head: &[u8]) -> Option<String> {
    let (ethertype, start) = layer::network_layer(head)?;
    let (source, destination): (IpAddr, IpAddr) = match ethertype {
        EtherType::IPV4 => {
            let header = ipv4::View::new(&head[start..]).ok()?;
            (header.source().into(), header.destination().into())
        }
        EtherType::IPV6 => {
            let header = ipv6::View::new(&head[start..]).ok()?;
            (header.source().into(), header.destination().into())
        }
        _ => return None,
    };
    let Some((protocol, at)) = layer::transport_of(head, ethertype, start) else {
        return Some(format!("{source} -> {destination}, a fragment"));
    };
    let ports = head.get(at..at + 4).filter(|_| matches!(protocol, protocol::TCP | protocol::UDP));
    let name = match protocol {
        protocol::TCP => "TCP".to_owned(),
        protocol::UDP => "UDP".to_owned(),
        icmp::PROTOCOL_V4 | icmp::PROTOCOL_V6 => "ICMP".to_owned(),
        other => format!("protocol {other}"),
    };
    let Some(&[a, b, c, d]) = ports else { return Some(format!("{source} -> {destination}, {name}")) };
    let (from, to) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    Some(format!("{} -> {}, {name}", SocketAddr::new(source, from), SocketAddr::new(destination, to)))
}

/// The answer where the data path gives none.
pub(crate) fn silence() -> Answer {
    Answer::Error { line: "the data path does not answer".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The beginning of an IPv4 packet with `protocol` and these ports in a frame with a tag.
    fn head(protocol: u8, fragment: u8) -> Vec<u8> {
        let ip = [0x45, 0, 0, 40, 0, 0, 0, fragment, 64, protocol, 0, 0, 10, 6, 0, 2, 10, 6, 0, 1];
        [&[2; 12][..], &[0x81, 0, 0, 7, 8, 0], &ip, &[0x9c, 0x40, 0, 22], &[0; 16]].concat()
    }

    #[test]
    fn a_dropped_packet_is_named_as_far_as_it_shows() {
        assert_eq!(packet(&head(6, 0)).as_deref(), Some("10.6.0.2:40000 -> 10.6.0.1:22, TCP"));
        assert_eq!(packet(&head(1, 0)).as_deref(), Some("10.6.0.2 -> 10.6.0.1, ICMP"));
        assert_eq!(packet(&head(47, 0)).as_deref(), Some("10.6.0.2 -> 10.6.0.1, protocol 47"));
        assert_eq!(packet(&head(6, 9)).as_deref(), Some("10.6.0.2 -> 10.6.0.1, a fragment"));
        let six = [&[2; 12][..], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 4, 17, 64], &[0xfd; 32], &[0, 53, 0, 99]].concat();
        assert_eq!(
            packet(&six).as_deref(),
            Some("[fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd]:53 -> [fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd:fdfd]:99, UDP")
        );
        assert_eq!(packet(&[2; 60]), None);
        for len in 0..58 {
            let _never_panics = packet(&head(6, 0)[..len.min(58)]);
        }
    }
}
