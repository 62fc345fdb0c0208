//! Connections that are over, on their way from the scrubber to the recorder.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;

use bump::{Now, Side};
use scrub::{Came, FlowEnd, Over};

use crate::protocol::flow_record::FlowRecord;

/// Numbers of flows are below this, which every reader of JSON can hold.
const ID_MASK: u64 = (1 << 53) - 1;
const TCP: u8 = 6;

/// What the data path says of connections that are over.
pub(crate) struct Ended {
    pub(crate) flows: Vec<FlowEnd>,
    /// How many more there ever were.
    pub(crate) left_out: u64,
    /// When it said so.
    pub(crate) now: Now,
}

impl Ended {
    /// The records, `unix_ms` being now.
    pub(crate) fn records(&self, unix_ms: u64) -> Vec<FlowRecord> {
        let boot_ms = unix_ms.saturating_sub(self.now.since_boot.as_nanos() / 1_000_000);
        self.flows.iter().map(|end| record(end, boot_ms)).collect()
    }
}

fn record(end: &FlowEnd, boot_ms: u64) -> FlowRecord {
    let FlowEnd { flow, opened_by, opened, last_seen, packets, bytes, came, over } = end;
    let (client, server, to_server, to_client) = match *opened_by {
        Side::TRUSTED => (flow.trusted, flow.untrusted, Side::TRUSTED, Side::UNTRUSTED),
        Side::UNTRUSTED => (flow.untrusted, flow.trusted, Side::UNTRUSTED, Side::TRUSTED),
    };
    let both = [to_server as usize, to_client as usize];
    let name = |end: SocketAddr| (end.ip().to_string(), end.port());
    let at = |time: &std::time::Duration| boot_ms + u64::try_from(time.as_millis()).unwrap_or(0);
    let vlans = [flow.vlans >> 12, flow.vlans & 0xfff].into_iter().filter(|vlan| *vlan != 0);
    let state = match came {
        Came::New => "new",
        Came::Established => "established",
        Came::Closed => "closed",
    };
    let mut hasher = DefaultHasher::new();
    (flow.trusted, flow.untrusted, flow.vlans, opened, last_seen).hash(&mut hasher);
    FlowRecord {
        id: hasher.finish() & ID_MASK,
        community_id: watch::community::of(TCP, (client.ip(), client.port()), (server.ip(), server.port())),
        client: name(client),
        server: name(server),
        vlans: vlans.map(|vlan| vlan as u16).collect(),
        packets: both.map(|side| packets[side]),
        bytes: both.map(|side| bytes[side]),
        start_unix_ms: at(opened),
        end_unix_ms: at(last_seen),
        state: state.to_owned(),
        reason: over.word().to_owned(),
        is_cut: matches!(over, Over::Severed | Over::Blocked),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bump::Instant;
    use scrub::FlowId;

    use super::*;

    fn ended(opened_by: Side) -> FlowRecord {
        let flow = FlowId {
            trusted: "192.0.2.1:80".parse().expect("an address"),
            untrusted: "198.51.100.2:40000".parse().expect("an address"),
            vlans: 5 << 12 | 7,
        };
        let [opened, last_seen] = [10, 25].map(Duration::from_secs);
        let (packets, bytes, came, over) = ([3, 4], [30, 40], Came::Closed, Over::Closed);
        let end = FlowEnd { flow, opened_by, opened, last_seen, packets, bytes, came, over };
        let now = Now { since_boot: Instant::from_millis(30_500), wall: None };
        Ended { flows: vec![end], left_out: 0, now }.records(1_000_030_500).remove(0)
    }

    #[test]
    fn who_began_is_the_client_and_times_are_those_of_the_wall() {
        let [theirs, ours] = [Side::UNTRUSTED, Side::TRUSTED].map(ended);
        assert_eq!((theirs.client.clone(), theirs.server.1), (("198.51.100.2".to_owned(), 40_000), 80));
        assert_eq!((theirs.packets, theirs.bytes, theirs.vlans.clone()), ([4, 3], [40, 30], vec![5, 7]));
        assert_eq!((theirs.start_unix_ms, theirs.end_unix_ms), (1_000_010_000, 1_000_025_000));
        assert_eq!((ours.client.1, ours.packets, ours.bytes), (80, [3, 4], [30, 40]));
        assert_eq!((theirs.id, theirs.community_id.clone()), (ours.id, ours.community_id));
        assert!(theirs.id <= ID_MASK);
    }
}
