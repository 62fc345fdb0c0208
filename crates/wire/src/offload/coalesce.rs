//! Joining consecutive segments of one TCP flow into a super-frame for the stack, as the kernel's receive offload does.
//!
//! Joined is only what [`super::segment`] would cut the same way again: equal headers but for length, identification,
//! sequence number, checksums and a final PSH. The checksums of the segments must have been verified, or covered by
//! something stronger, before they get here, because the joined frame carries a fresh one.

use std::ops::Range;

use super::IP_PACKET_MAX_BYTES;
use super::segment::TCP_SIZE_MIN_BYTES;
use crate::checksum::pseudo_header_v4;
use crate::layer::{network_layer, protocol};
use crate::tcp::flag;
use crate::{EtherType, ipv4, tcp};

/// A run of segments that follow each other. The first frame stays where it is and lends its headers.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    network: usize,
    transport: usize,
    headers_len: usize,
    size: usize,
    payload_len: usize,
    segments: usize,
    next_sequence: u32,
    last_identification: u16,
    pushed: bool,
}

/// The parts of a frame that could be in a run.
struct Candidate<'a> {
    network: usize,
    ip: ipv4::View<'a>,
    tcp: tcp::View<'a>,
}

impl<'a> Candidate<'a> {
    /// `frame` as a segment of plain data: IPv4 without options or padding, TCP with ACK and at most PSH.
    fn read(frame: &'a [u8]) -> Option<Candidate<'a>> {
        let (ethertype, network) = network_layer(frame)?;
        if ethertype != EtherType::IPV4 {
            return None;
        }
        let packet = &frame[network..];
        let ip = ipv4::View::new(packet).ok()?;
        let plain = ip.header_len() == ipv4::HEADER_LEN
            && usize::from(ip.total_len()) == packet.len()
            && !ip.is_fragment()
            && ip.protocol() == protocol::TCP
            && ip.checksum_is_right();
        if !plain {
            return None;
        }
        let segment = &packet[ipv4::HEADER_LEN..];
        let tcp = tcp::View::new(segment).ok()?;
        // The low half of byte 12 are the reserved bits.
        let data_only = tcp.flags() & !flag::PSH == flag::ACK && segment[12] & 0x0f == 0;
        (data_only && !tcp.payload().is_empty()).then_some(Candidate { network, ip, tcp })
    }

    fn is_pushed(&self) -> bool {
        self.tcp.flags() & flag::PSH != 0
    }

    fn headers_len(&self) -> usize {
        self.network + ipv4::HEADER_LEN + self.tcp.header_len()
    }
}

impl Run {
    /// A run that begins with `frame`; `None` when nothing may follow it.
    #[must_use]
    pub fn begin(frame: &[u8]) -> Option<Run> {
        let first = Candidate::read(frame)?;
        if first.is_pushed() {
            return None;
        }
        let payload_len = first.tcp.payload().len();
        // What is too small to be cut again must not be joined.
        if payload_len < usize::from(TCP_SIZE_MIN_BYTES) {
            return None;
        }
        Some(Run {
            network: first.network,
            transport: first.network + ipv4::HEADER_LEN,
            headers_len: first.headers_len(),
            size: payload_len,
            payload_len,
            segments: 1,
            next_sequence: first.tcp.sequence().wrapping_add(payload_len as u32),
            last_identification: first.ip.identification(),
            pushed: false,
        })
    }

    /// Appends `frame` if it continues the run that begins with `first`, and returns where its payload lies in it.
    pub fn append(&mut self, first: &[u8], frame: &[u8]) -> Option<Range<usize>> {
        if self.is_closed() || !same_headers(self, first, frame) {
            return None;
        }
        let next = Candidate::read(frame)?;
        let len = next.tcp.payload().len();
        let in_order = next.tcp.sequence() == self.next_sequence
            && (next.ip.dont_fragment() || next.ip.identification() == self.last_identification.wrapping_add(1));
        let fits = len <= self.size && self.headers_len - self.network + self.payload_len + len <= IP_PACKET_MAX_BYTES;
        if !in_order || !fits || next.headers_len() != self.headers_len {
            return None;
        }
        self.segments += 1;
        self.payload_len += len;
        self.next_sequence = self.next_sequence.wrapping_add(len as u32);
        self.last_identification = next.ip.identification();
        self.pushed = next.is_pushed();
        Some(self.headers_len..frame.len())
    }

    /// Whether nothing more may be appended: the last segment was pushed or shorter than the others.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.pushed || self.payload_len != self.size * self.segments
    }

    /// How many segments it has; at least one.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.segments
    }

    /// Payload bytes of each segment but the last.
    #[must_use]
    pub fn size(&self) -> u16 {
        self.size as u16
    }

    /// Bytes of headers in front of the joined payload.
    #[must_use]
    pub fn headers_len(&self) -> usize {
        self.headers_len
    }

    /// Length of the joined frame in bytes.
    #[must_use]
    pub fn frame_len(&self) -> usize {
        self.headers_len + self.payload_len
    }

    /// Where the partial checksum of the joined frame starts and, counted from there, is stored.
    #[must_use]
    pub fn checksum(&self) -> (usize, usize) {
        (self.transport, tcp::CHECKSUM)
    }

    /// Writes the headers of the joined frame over those of `first`: lengths, checksums, PSH. A run of one segment needs
    /// nothing.
    pub fn finish(&self, first: &mut [u8]) {
        let Some(headers) = first.get_mut(..self.headers_len).filter(|_| self.segments > 1) else { return };
        let (ip, tcp) = headers[self.network..].split_at_mut(ipv4::HEADER_LEN);
        let total_len = (self.frame_len() - self.network) as u16;
        ip[ipv4::TOTAL_LENGTH..ipv4::TOTAL_LENGTH + 2].copy_from_slice(&total_len.to_be_bytes());
        ipv4::fill_checksum(ip);
        if self.pushed {
            tcp[tcp::FLAGS] |= flag::PSH;
        }
        let Ok(view) = ipv4::View::new(ip) else { return };
        let transport_len = total_len - ipv4::HEADER_LEN as u16;
        let sum = pseudo_header_v4(view.source(), view.destination(), protocol::TCP, transport_len).fold();
        tcp[tcp::CHECKSUM..tcp::CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Whether all header fields that one super-frame has only once are the same in both frames.
fn same_headers(run: &Run, first: &[u8], frame: &[u8]) -> bool {
    if first.len() < run.headers_len || frame.len() < run.headers_len {
        return false;
    }
    let same = |range: Range<usize>| first[range.clone()] == frame[range];
    let (ip, tcp) = (run.network, run.transport);
    // Addresses, tags and EtherType; version and type of service; fragmentation, hops and protocol; IP addresses and
    // ports; acknowledgement and header length; window; urgent pointer and options.
    same(0..ip + 2)
        && same(ip + 6..ip + ipv4::CHECKSUM)
        && same(ip + ipv4::SOURCE..tcp + tcp::SEQUENCE)
        && same(tcp + 8..tcp + tcp::FLAGS)
        && same(tcp + 14..tcp + tcp::CHECKSUM)
        && same(tcp + tcp::URGENT..run.headers_len)
}

#[cfg(test)]
#[path = "coalesce_tests.rs"]
mod tests;
