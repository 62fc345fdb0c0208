//! Segments of the scrubber's own: resets that end a connection, a FIN that its sender sent before
//! it could count, and what tells that sender of the hole before it. They are sent beside a packet
//! of the connection, because hardware addresses are not remembered.

use std::net::IpAddr;

use bump::{Checksum, Side};
use wire::layer::protocol;

use crate::ethernet::Link;
use crate::ip::Ip;
use crate::limits::HOP_LIMIT_FIRST;
use crate::packet::{Packet, Transport};
use crate::settings::OPTION_ORDER;
use crate::tcp::key::Key;
use crate::tcp::options::{Options, Timestamps};
use crate::tcp::segment::{Segment, flag};
use crate::tcp::shift::Shift;

/// A segment without data. Its numbers are those of the trusted host until [`finish`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) key: Key,
    pub(crate) to: Side,
    pub(crate) hop_limit: u8,
    pub(crate) flags: u16,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) window: u16,
    pub(crate) timestamps: Option<Timestamps>,
    /// What it acknowledges selectively, in the numbers of the host that it goes to.
    pub(crate) sack: Option<(u32, u32)>,
}

/// The resets that end a connection, at exactly the next sequence number of each half. `next` is by the side that sends.
pub(crate) fn resets(key: &Key, next: [u32; 2]) -> [Made; 2] {
    [Side::TRUSTED, Side::UNTRUSTED]
        .map(|from| reset(key, from.other(), next[from as usize], Some(next[from.other() as usize])))
}

/// The resets that end a connection that `initiator` has just begun, `next` being the sequence number behind its SYN.
pub(crate) fn refusals(key: &Key, initiator: Side, next: u32, shift: Shift) -> [Made; 2] {
    // As a closed port answers: at sequence number zero, also once it is shifted.
    let zero = if initiator == Side::UNTRUSTED { 0_u32.wrapping_sub(shift.sequence) } else { 0 };
    [reset(key, initiator, zero, Some(next)), reset(key, initiator.other(), next, None)]
}

/// A reset to one host.
pub(crate) fn reset(key: &Key, to: Side, sequence: u32, acknowledgement: Option<u32>) -> Made {
    let flags = flag::RST | acknowledgement.map_or(0, |_| flag::ACK);
    let acknowledgement = acknowledgement.unwrap_or(0);
    let (window, timestamps, sack) = (0, None, None);
    Made { key: *key, to, hop_limit: HOP_LIMIT_FIRST, flags, sequence, acknowledgement, window, timestamps, sack }
}

/// Gives segments in a trusted host's name the numbers that the untrusted side knows, and those to it a hop limit that is not
/// below `hop_limit`.
pub(crate) fn finish(made: &mut [Made], shift: Shift, hop_limit: u8) {
    for made in made {
        if made.to == Side::UNTRUSTED {
            made.hide(shift);
        } else {
            made.hop_limit = made.hop_limit.max(hop_limit);
        }
    }
}

impl Made {
    /// As [`forth`](Shift::forth), for a segment in the trusted host's name.
    fn hide(&mut self, shift: Shift) {
        self.sequence = self.sequence.wrapping_add(shift.sequence);
        if let Some(stamps) = &mut self.timestamps {
            stamps.value = stamps.value.wrapping_add(shift.timestamps);
        }
    }

    /// It as a segment between two ports, in its final form.
    fn segment(&self, ports: (u16, u16)) -> Segment<'static> {
        let mut segment = Segment::fresh(ports, Options::of(self.timestamps, self.sack));
        (segment.sequence, segment.acknowledgement) = (self.sequence, self.acknowledgement);
        (segment.flags, segment.window) = (self.flags, self.window);
        segment.settle(Some(&OPTION_ORDER));
        segment
    }

    /// Source and destination, addresses and ports.
    fn ends(&self) -> ((IpAddr, u16), (IpAddr, u16)) {
        let trusted = (self.key.trusted, self.key.trusted_port);
        let untrusted = (self.key.untrusted, self.key.untrusted_port);
        if self.to == Side::UNTRUSTED { (trusted, untrusted) } else { (untrusted, trusted) }
    }

    /// The packet in which it leaves, beside one with link header `link` from side `from`. `header` is room for its own link
    /// header. `None` for a connection between addresses of two versions, which there is none of.
    pub(crate) fn packet<'a>(&self, link: &Link<'_>, from: Side, header: &'a mut Vec<u8>) -> Option<Packet<'a>> {
        header.clear();
        header.extend_from_slice(link.header);
        if self.to == from {
            header.get_mut(..12)?.rotate_left(6);
        }
        let (source, destination) = self.ends();
        let mut ip = Ip::fresh(source.0, destination.0, protocol::TCP)?;
        ip.set_hop_limit(self.hop_limit);
        Some(Packet {
            link: Link { header, ethertype: link.ethertype, vlan: link.vlan, queue: link.queue },
            ip,
            transport: Transport::Tcp(self.segment((source.1, destination.1))),
            checksum: Checksum::Complete,
            gso: None,
            longest_fragment: None,
        })
    }
}
