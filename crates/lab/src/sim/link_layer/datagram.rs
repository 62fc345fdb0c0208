//! What the simulated stacks send: numbered datagrams, alone or as super-frames with the kernel's metadata.
//!
//! A super-frame is made from the frames that it stands for, not the other way round, so that the judge knows byte by byte
//! what must arrive without trusting the code that cuts.

use std::net::Ipv4Addr;

use bump::{Checksum, Gso, GsoKind, Meta};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};
use wire::layer::protocol;
use wire::{EtherType, MacAddress, ipv4, tcp, udp};

/// Names one datagram of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Number(pub u64);

/// Bytes of a number in a payload.
pub const NUMBER_LEN: usize = 8;
/// Stands in every payload that has room and that must be encrypted on the wire.
pub const MARKER: [u8; 8] = *b"PLAINTXT";
/// The EtherType for local experiments (IEEE 802).
pub const EXPERIMENT: EtherType = EtherType(0x88b5);

const TRANSPORT_AT: usize = ETHERNET_LEN + ipv4::HEADER_LEN;

/// How a parcel is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One UDP datagram; the checksum may be left to the port.
    Udp { payload_len: usize, partial: bool },
    /// UDP datagrams in one super-frame.
    UdpSuper { size: usize, count: usize },
    /// TCP segments in one super-frame.
    TcpSuper { size: usize, count: usize },
    /// A frame of no IP at all.
    Raw { payload_len: usize },
}

impl Shape {
    /// How many datagrams it carries.
    pub fn count(self) -> usize {
        match self {
            Shape::UdpSuper { count, .. } | Shape::TcpSuper { count, .. } => count,
            Shape::Udp { .. } | Shape::Raw { .. } => 1,
        }
    }

    fn payload_len(self) -> usize {
        match self {
            Shape::Udp { payload_len, .. } | Shape::Raw { payload_len } => payload_len.max(NUMBER_LEN),
            Shape::UdpSuper { size, .. } | Shape::TcpSuper { size, .. } => size.max(NUMBER_LEN),
        }
    }
}

/// Something to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Parcel {
    /// The number of its first datagram.
    pub first: Number,
    /// How it is packed.
    pub shape: Shape,
    /// The address it claims to come from.
    pub source: Ipv4Addr,
    /// Where it goes.
    pub destination: Ipv4Addr,
    /// Tells flows apart.
    pub port: u16,
    /// Whether nobody on the wire may read it.
    pub secret: bool,
}

/// A frame as a stack hands it over, and the frames it stands for.
#[derive(Clone, Debug)]
pub struct Packed {
    /// The frame or super-frame.
    pub bytes: Vec<u8>,
    /// What the stack says about it.
    pub meta: Meta,
    /// What must arrive.
    pub pieces: Vec<(Number, Vec<u8>)>,
}

impl Parcel {
    /// Packs the parcel for a host with the hardware address `to`.
    pub fn pack(&self, from: MacAddress, to: MacAddress) -> Packed {
        let numbers = (0..self.shape.count()).map(|at| Number(self.first.0 + at as u64));
        let pieces: Vec<_> =
            numbers.enumerate().map(|(at, number)| (number, self.piece(from, to, at, number))).collect();
        let whole = match self.shape {
            Shape::Raw { .. } | Shape::Udp { partial: false, .. } => (pieces[0].1.clone(), Meta::plain()),
            Shape::Udp { partial: true, .. } => self.join(&pieces, udp::HEADER_LEN, None),
            Shape::UdpSuper { size, .. } => self.join(&pieces, udp::HEADER_LEN, Some((GsoKind::Udp, size))),
            Shape::TcpSuper { size, .. } => self.join(&pieces, tcp::HEADER_LEN, Some((GsoKind::TcpV4, size))),
        };
        Packed { bytes: whole.0, meta: whole.1, pieces }
    }

    /// The payload of one datagram: its number, the marker, and bytes that follow from the number.
    fn payload(&self, number: Number) -> Vec<u8> {
        let len = self.shape.payload_len();
        let mut payload = number.0.to_be_bytes().to_vec();
        if self.secret {
            payload.extend(MARKER);
        }
        let filler = |at: usize| (number.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (at % 8 * 8)) as u8 ^ at as u8;
        payload.extend((payload.len()..len).map(filler));
        payload.truncate(len);
        payload
    }

    fn piece(&self, from: MacAddress, to: MacAddress, at: usize, number: Number) -> Vec<u8> {
        let payload = self.payload(number);
        let last = at + 1 == self.shape.count();
        let (ethertype, packet) = match self.shape {
            Shape::Raw { .. } => (EXPERIMENT, payload),
            Shape::Udp { .. } | Shape::UdpSuper { .. } => (EtherType::IPV4, self.udp(at, &payload)),
            Shape::TcpSuper { .. } => (EtherType::IPV4, self.tcp(at, last, &payload)),
        };
        [&Header { destination: to, source: from, ethertype }.emit()[..], &packet].concat()
    }

    fn udp(&self, at: usize, payload: &[u8]) -> Vec<u8> {
        let len = (udp::HEADER_LEN + payload.len()) as u16;
        let mut segment = [self.port, self.port, len, 0].map(u16::to_be_bytes).concat();
        segment.extend_from_slice(payload);
        self.packet(at, protocol::UDP, udp::CHECKSUM, segment)
    }

    fn tcp(&self, at: usize, last: bool, payload: &[u8]) -> Vec<u8> {
        let sequence = (self.first.0 as u32).wrapping_add((at * payload.len()) as u32);
        let push = if last { tcp::flag::PSH } else { 0 };
        let mut segment = [self.port, self.port].map(u16::to_be_bytes).concat();
        segment.extend(sequence.to_be_bytes());
        segment.extend([0, 0, 0, 1, 0x50, tcp::flag::ACK | push, 0x20, 0, 0, 0, 0, 0]);
        segment.extend_from_slice(payload);
        self.packet(at, protocol::TCP, tcp::CHECKSUM, segment)
    }

    /// An IPv4 packet around `segment`, both checksums complete.
    fn packet(&self, at: usize, protocol: u8, checksum_at: usize, mut segment: Vec<u8>) -> Vec<u8> {
        let pseudo = pseudo_header(self.source, self.destination, protocol, segment.len());
        let checksum = fold(pseudo + sum(&segment));
        let checksum = if checksum == u16::MAX { checksum } else { !checksum };
        segment[checksum_at..checksum_at + 2].copy_from_slice(&checksum.to_be_bytes());
        let mut packet = self.ip_header(at, protocol, segment.len());
        packet.extend(segment);
        packet
    }

    fn ip_header(&self, at: usize, protocol: u8, segment_len: usize) -> Vec<u8> {
        let total = (ipv4::HEADER_LEN + segment_len) as u16;
        let identification = (self.first.0 as u16).wrapping_add(at as u16);
        let mut header = vec![0x45, 0];
        header.extend(total.to_be_bytes());
        header.extend(identification.to_be_bytes());
        header.extend([0x40, 0, 64, protocol, 0, 0]);
        header.extend(self.source.octets());
        header.extend(self.destination.octets());
        let checksum = !fold(sum(&header));
        header[ipv4::CHECKSUM..ipv4::CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
        header
    }

    /// The super-frame that stands for `pieces`: headers of the first, all payloads, flags of the last, a partial checksum.
    fn join(
        &self,
        pieces: &[(Number, Vec<u8>)],
        transport_len: usize,
        gso: Option<(GsoKind, usize)>,
    ) -> (Vec<u8>, Meta) {
        let payload_at = TRANSPORT_AT + transport_len;
        let mut bytes = pieces[0].1[..payload_at].to_vec();
        for (_, piece) in pieces {
            bytes.extend_from_slice(&piece[payload_at..]);
        }
        let segment_len = bytes.len() - TRANSPORT_AT;
        let is_tcp = transport_len == tcp::HEADER_LEN;
        let protocol = if is_tcp { protocol::TCP } else { protocol::UDP };
        bytes[ETHERNET_LEN..TRANSPORT_AT].copy_from_slice(&self.ip_header(0, protocol, segment_len));
        if let (true, Some((_, last))) = (is_tcp, pieces.last()) {
            bytes[TRANSPORT_AT + tcp::FLAGS] = last[TRANSPORT_AT + tcp::FLAGS];
        } else {
            bytes[TRANSPORT_AT + udp::LENGTH..][..2].copy_from_slice(&(segment_len as u16).to_be_bytes());
        }
        let offset = if is_tcp { tcp::CHECKSUM } else { udp::CHECKSUM };
        let partial = fold(pseudo_header(self.source, self.destination, protocol, segment_len));
        bytes[TRANSPORT_AT + offset..][..2].copy_from_slice(&partial.to_be_bytes());
        let checksum = Checksum::Partial { start: TRANSPORT_AT as u16, offset: offset as u16 };
        let gso = gso.map(|(kind, size)| Gso { kind, size: size as u16, ecn: false });
        (bytes, Meta { checksum, gso, ..Meta::plain() })
    }
}

/// What a port does with a frame whose checksum was left to it. Padding counts as zeros and changes nothing.
pub fn complete(frame: &mut [u8], meta: Meta) {
    let Checksum::Partial { start, offset } = meta.checksum else { return };
    let (start, at) = (usize::from(start), usize::from(start) + usize::from(offset));
    if frame.len() < at + 2 {
        return;
    }
    let checksum = fold(sum(&frame[start..]));
    let checksum = if checksum == u16::MAX { checksum } else { !checksum };
    frame[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}

/// The number in a delivered frame, if it is one of ours.
pub fn number_in(frame: &[u8]) -> Option<Number> {
    let (header, packet) = Header::parse(frame).ok()?;
    let payload = match header.ethertype {
        EXPERIMENT => packet,
        EtherType::IPV4 => {
            let view = ipv4::View::new(packet).ok()?;
            let headers = if view.protocol() == protocol::TCP { tcp::HEADER_LEN } else { udp::HEADER_LEN };
            packet.get(view.header_len() + headers..)?
        }
        _ => return None,
    };
    payload.first_chunk().map(|bytes| Number(u64::from_be_bytes(*bytes)))
}

/// A sum of 16-bit words written down for this laboratory alone (RFC 1071), so that it can disagree with the program's.
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum()
}

fn pseudo_header(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, len: usize) -> u32 {
    sum(&source.octets()) + sum(&destination.octets()) + u32::from(protocol) + len as u32
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
