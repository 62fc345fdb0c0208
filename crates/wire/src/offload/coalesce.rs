//! Joining consecutive segments of one TCP flow, or datagrams of one UDP flow, into a super-frame for the stack, as the kernel's
//! receive offload does.
//!
//! Joined is only what [`super::segment`] would cut the same way again: equal headers but for length, identification,
//! sequence number, checksums and a final PSH. The checksums of the segments must have been verified, or covered by
//! something stronger, before they get here, because the joined frame carries a fresh one.

use std::ops::Range;

use super::IP_PACKET_MAX_BYTES;
use super::segment::{Kind, TCP_SIZE_MIN_BYTES, put};
use crate::checksum::pseudo_header_v4;
use crate::layer::{network_layer, protocol};
use crate::tcp::flag;
use crate::{EtherType, dhcp, ipv4, tcp, udp};

/// A run of segments that follow each other. The first frame stays where it is and lends its headers.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    network: usize,
    transport: usize,
    headers_len: usize,
    size: usize,
    payload_len: usize,
    segments: usize,
    last_identification: u16,
    flow: Flow,
}

/// What the next frame of a run must continue.
#[derive(Clone, Copy, Debug)]
enum Flow {
    Tcp {
        next_sequence: u32,
        pushed: bool,
    },
    /// Datagrams have no order but the one in which they came.
    Udp,
}

/// The parts of a frame that could be in a run.
struct Candidate<'a> {
    network: usize,
    ip: ipv4::View<'a>,
    transport: Transport<'a>,
}

enum Transport<'a> {
    Tcp(tcp::View<'a>),
    Udp(udp::View<'a>),
}

impl<'a> Candidate<'a> {
    /// `frame` as a segment of plain data, or as a datagram: IPv4 without options or padding.
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
            && ip.checksum_is_right();
        if !plain {
            return None;
        }
        let segment = &packet[ipv4::HEADER_LEN..];
        let transport = match ip.protocol() {
            protocol::TCP => Transport::Tcp(plain_segment(segment)?),
            protocol::UDP => Transport::Udp(plain_datagram(segment)?),
            _ => return None,
        };
        Some(Candidate { network, ip, transport }).filter(|candidate| candidate.payload_len() > 0)
    }

    fn payload_len(&self) -> usize {
        match self.transport {
            Transport::Tcp(tcp) => tcp.payload().len(),
            Transport::Udp(udp) => udp.payload().len(),
        }
    }

    fn headers_len(&self) -> usize {
        let transport = match self.transport {
            Transport::Tcp(tcp) => tcp.header_len(),
            Transport::Udp(_) => udp::HEADER_LEN,
        };
        self.network + ipv4::HEADER_LEN + transport
    }

    /// What a run that ends with this frame must be continued by.
    fn flow(&self) -> Flow {
        match self.transport {
            Transport::Tcp(tcp) => Flow::Tcp {
                next_sequence: tcp.sequence().wrapping_add(tcp.payload().len() as u32),
                pushed: tcp.flags() & flag::PSH != 0,
            },
            Transport::Udp(_) => Flow::Udp,
        }
    }
}

/// TCP with ACK and at most PSH.
fn plain_segment(segment: &[u8]) -> Option<tcp::View<'_>> {
    let tcp = tcp::View::new(segment).ok()?;
    // The low half of byte 12 are the reserved bits.
    (tcp.flags() & !flag::PSH == flag::ACK && segment[12] & 0x0f == 0).then_some(tcp)
}

/// UDP with a checksum, which each datagram gets again when the run is cut. Not DHCP: its programs listen beside the stack, where
/// what was joined would arrive in one piece.
fn plain_datagram(datagram: &[u8]) -> Option<udp::View<'_>> {
    let udp = udp::View::new(datagram).ok()?;
    let is_dhcp = dhcp::is_port(udp.source_port()) || dhcp::is_port(udp.destination_port());
    let plain = usize::from(udp.length()) == datagram.len() && udp.checksum() != 0 && !is_dhcp;
    plain.then_some(udp)
}

impl Flow {
    /// Whether `next` continues it.
    fn goes_on_with(self, next: &Candidate<'_>) -> bool {
        match (self, &next.transport) {
            (Flow::Tcp { next_sequence, pushed: false }, Transport::Tcp(tcp)) => tcp.sequence() == next_sequence,
            (Flow::Udp, Transport::Udp(_)) => true,
            _ => false,
        }
    }

    fn is_pushed(self) -> bool {
        matches!(self, Flow::Tcp { pushed: true, .. })
    }
}

impl Run {
    /// A run that begins with `frame`; `None` when nothing may follow it.
    #[must_use]
    pub fn begin(frame: &[u8]) -> Option<Run> {
        let first = Candidate::read(frame)?;
        let (flow, payload_len) = (first.flow(), first.payload_len());
        // What is too small to be cut again must not be joined.
        let too_small = matches!(flow, Flow::Tcp { .. }) && payload_len < usize::from(TCP_SIZE_MIN_BYTES);
        if flow.is_pushed() || too_small {
            return None;
        }
        Some(Run {
            network: first.network,
            transport: first.network + ipv4::HEADER_LEN,
            headers_len: first.headers_len(),
            size: payload_len,
            payload_len,
            segments: 1,
            last_identification: first.ip.identification(),
            flow,
        })
    }

    /// Appends `frame` if it continues the run that begins with `first`, and returns where its payload lies in it.
    pub fn append(&mut self, first: &[u8], frame: &[u8]) -> Option<Range<usize>> {
        if self.is_closed() || !same_headers(self, first, frame) {
            return None;
        }
        let next = Candidate::read(frame)?;
        let len = next.payload_len();
        let in_order = self.flow.goes_on_with(&next)
            && (next.ip.dont_fragment() || next.ip.identification() == self.last_identification.wrapping_add(1));
        let fits = len <= self.size && self.headers_len - self.network + self.payload_len + len <= IP_PACKET_MAX_BYTES;
        if !in_order || !fits || next.headers_len() != self.headers_len {
            return None;
        }
        self.segments += 1;
        self.payload_len += len;
        self.flow = next.flow();
        self.last_identification = next.ip.identification();
        Some(self.headers_len..frame.len())
    }

    /// Whether nothing more may be appended: the last segment was pushed or shorter than the others.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.flow.is_pushed() || self.payload_len != self.size * self.segments
    }

    /// What kind of super-frame it makes.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self.flow {
            Flow::Tcp { .. } => Kind::TcpV4,
            Flow::Udp => Kind::Udp,
        }
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
        (self.transport, self.kind().checksum_offset())
    }

    /// Writes the headers of the joined frame over those of `first`: lengths, checksums, PSH. A run of one segment needs
    /// nothing.
    pub fn finish(&self, first: &mut [u8]) {
        let Some(headers) = first.get_mut(..self.headers_len).filter(|_| self.segments > 1) else { return };
        let (ip, transport) = headers[self.network..].split_at_mut(ipv4::HEADER_LEN);
        let total_len = (self.frame_len() - self.network) as u16;
        put(ip, ipv4::TOTAL_LENGTH, total_len);
        ipv4::fill_checksum(ip);
        let transport_len = total_len - ipv4::HEADER_LEN as u16;
        match self.flow {
            Flow::Tcp { pushed: true, .. } => transport[tcp::FLAGS] |= flag::PSH,
            Flow::Tcp { .. } => {}
            Flow::Udp => put(transport, udp::LENGTH, transport_len),
        }
        let Ok(view) = ipv4::View::new(ip) else { return };
        let sum = pseudo_header_v4(view.source(), view.destination(), view.protocol(), transport_len).fold();
        put(transport, self.checksum().1, sum);
    }
}

/// Whether all header fields that one super-frame has only once are the same in both frames.
fn same_headers(run: &Run, first: &[u8], frame: &[u8]) -> bool {
    if first.len() < run.headers_len || frame.len() < run.headers_len {
        return false;
    }
    let same = |range: Range<usize>| first[range.clone()] == frame[range];
    let (ip, transport) = (run.network, run.transport);
    // Addresses, tags and EtherType; version and type of service; fragmentation, hops and protocol; IP addresses and ports.
    let same_packets = same(0..ip + 2) && same(ip + 6..ip + ipv4::CHECKSUM) && same(ip + ipv4::SOURCE..transport + 4);
    // Acknowledgement and header length; window; urgent pointer and options.
    let same_segments = || {
        same(transport + 8..transport + tcp::FLAGS)
            && same(transport + 14..transport + tcp::CHECKSUM)
            && same(transport + tcp::URGENT..run.headers_len)
    };
    same_packets && (matches!(run.flow, Flow::Udp) || same_segments())
}

#[cfg(test)]
#[path = "coalesce_tests.rs"]
mod tests;
