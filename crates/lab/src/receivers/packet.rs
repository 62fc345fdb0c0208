//! What an attacker puts on the wire: IP packets as fields, so that each can be made wrong on purpose, and TCP and UDP in them.

use std::net::{Ipv4Addr, Ipv6Addr};

use wire::checksum::{pseudo_header_v4, pseudo_header_v6};
use wire::layer::protocol::{TCP, UDP};
use wire::{ipv4, tcp};

/// The attacker's hardware address, and the receivers'.
pub const ATTACKER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 7];
/// See [`ATTACKER_MAC`].
pub const RECEIVER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0x10];
/// The attacker's addresses.
pub const ATTACKER_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
/// See [`ATTACKER_V4`].
pub const ATTACKER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7);
/// The receivers' addresses.
pub const RECEIVER_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 16);
/// See [`RECEIVER_V4`].
pub const RECEIVER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 16);
/// Where receivers listen, by TCP and by UDP.
pub const PORT: u16 = 7777;

/// Bytes of the headers, and where IP begins in a frame.
pub const ETHERNET_LEN: usize = 14;
const IPV6_LEN: usize = 40;
const IPV6_FRAGMENT_LEN: usize = 8;
const IPV6_FRAGMENT: u8 = 44;
const UDP_LEN: usize = 8;

/// The version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Version {
    /// Both.
    pub const ALL: [Version; 2] = [Version::V4, Version::V6];
}

/// A part of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Where it begins, in bytes, a multiple of 8.
    pub offset: usize,
    /// Whether others follow.
    pub more: bool,
}

/// An IP packet from the attacker to the receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Its version.
    pub version: Version,
    /// Its protocol.
    pub protocol: u8,
    /// Its hop limit.
    pub hop_limit: u8,
    /// Its class of service.
    pub class: u8,
    /// What its fragments have in common.
    pub identification: u16,
    /// Set in a fragment.
    pub part: Option<Part>,
    /// Options of IPv4 in whole words; over IPv6 there are none.
    pub options: Vec<u8>,
    /// What it carries.
    pub payload: Vec<u8>,
}

impl Packet {
    /// A packet that is whole.
    #[must_use]
    pub fn new(version: Version, protocol: u8, identification: u16, payload: Vec<u8>) -> Packet {
        Packet { version, protocol, hop_limit: 64, class: 0, identification, part: None, options: Vec::new(), payload }
    }

    /// The fragment of it that carries `bytes` from `offset` on.
    #[must_use]
    pub fn fragment(&self, offset: usize, bytes: &[u8], more: bool) -> Packet {
        Packet { part: Some(Part { offset, more }), payload: bytes.to_vec(), ..self.clone() }
    }

    /// Its frame.
    #[must_use]
    pub fn frame(&self) -> Vec<u8> {
        let mut frame = [RECEIVER_MAC, ATTACKER_MAC].concat();
        match self.version {
            Version::V4 => self.write_v4(&mut frame),
            Version::V6 => self.write_v6(&mut frame),
        }
        frame.extend(&self.payload);
        frame
    }

    fn write_v4(&self, frame: &mut Vec<u8>) {
        let header_len = ipv4::HEADER_LEN + self.options.len();
        let part = self.part.map_or(0, |part| (part.offset / 8) as u16 | u16::from(part.more) << 13);
        frame.extend([8, 0, 0x40 | (header_len / 4) as u8, self.class]);
        frame.extend(((header_len + self.payload.len()) as u16).to_be_bytes());
        frame.extend(self.identification.to_be_bytes());
        frame.extend(part.to_be_bytes());
        frame.extend([self.hop_limit, self.protocol, 0, 0]);
        frame.extend(ATTACKER_V4.octets());
        frame.extend(RECEIVER_V4.octets());
        frame.extend(&self.options);
        ipv4::fill_checksum(&mut frame[ETHERNET_LEN..]);
    }

    fn write_v6(&self, frame: &mut Vec<u8>) {
        let extension_len = if self.part.is_some() { IPV6_FRAGMENT_LEN } else { 0 };
        let next = if self.part.is_some() { IPV6_FRAGMENT } else { self.protocol };
        frame.extend([0x86, 0xdd, 0x60 | self.class >> 4, self.class << 4, 0, 0]);
        frame.extend(((extension_len + self.payload.len()) as u16).to_be_bytes());
        frame.extend([next, self.hop_limit]);
        frame.extend(ATTACKER_V6.octets());
        frame.extend(RECEIVER_V6.octets());
        if let Some(part) = self.part {
            frame.extend([self.protocol, 0]);
            frame.extend((part.offset as u16 | u16::from(part.more)).to_be_bytes());
            frame.extend(u32::from(self.identification).to_be_bytes());
        }
    }
}

/// The checksum of `bytes` as the payload of a packet from the attacker to the receiver; its field holds zero.
fn checksum(version: Version, protocol: u8, bytes: &[u8]) -> u16 {
    let pseudo = match version {
        Version::V4 => pseudo_header_v4(ATTACKER_V4, RECEIVER_V4, protocol, bytes.len() as u16),
        Version::V6 => pseudo_header_v6(ATTACKER_V6, RECEIVER_V6, protocol, bytes.len() as u32),
    };
    pseudo.bytes(bytes).checksum()
}

/// Whether `bytes`, the payload of a packet between the two, have the right checksum; a datagram over IPv4 may have none.
#[must_use]
pub fn has_right_checksum(version: Version, protocol: u8, bytes: &[u8]) -> bool {
    let has_none = protocol == UDP && version == Version::V4 && bytes.get(6..8) == Some(&[0, 0]);
    has_none || matches!(checksum(version, protocol, bytes), 0 | u16::MAX)
}

/// The same frame on its way back: addresses and ports swapped, which leaves every checksum as it is.
#[must_use]
pub fn turned(mut frame: Vec<u8>) -> Vec<u8> {
    let (network, len, transport) =
        if frame[12] == 8 { (26, 4, ETHERNET_LEN + ipv4::HEADER_LEN) } else { (22, 16, ETHERNET_LEN + IPV6_LEN) };
    for (place, len) in [(0, 6), (network, len), (transport, 2)] {
        let (one, other) = frame[place..place + 2 * len].split_at_mut(len);
        one.swap_with_slice(other);
    }
    frame
}

/// A UDP datagram with `data` from `source_port`.
#[must_use]
pub fn datagram(version: Version, source_port: u16, data: &[u8]) -> Vec<u8> {
    let len = (UDP_LEN + data.len()) as u16;
    let mut bytes = [source_port.to_be_bytes(), PORT.to_be_bytes(), len.to_be_bytes(), [0, 0]].concat();
    bytes.extend(data);
    // Zero would say that there is none (RFC 768).
    let sum = match checksum(version, UDP, &bytes) {
        0 => u16::MAX,
        sum => sum,
    };
    bytes[6..8].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// A TCP segment in the making.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its sender's port.
    pub source_port: u16,
    /// Its sequence number.
    pub sequence: u32,
    /// What it acknowledges.
    pub acknowledgement: u32,
    /// Its flags.
    pub flags: u8,
    /// Its options, in whole words.
    pub options: Vec<u8>,
    /// Its data.
    pub data: Vec<u8>,
}

impl Segment {
    /// Its bytes with the right checksum.
    #[must_use]
    pub fn bytes(&self, version: Version) -> Vec<u8> {
        let header_words = (tcp::HEADER_LEN + self.options.len()) as u8 / 4;
        let mut bytes = [self.source_port.to_be_bytes(), PORT.to_be_bytes()].concat();
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.acknowledgement.to_be_bytes());
        bytes.extend([header_words << 4, self.flags, 0xfa, 0xf0, 0, 0, 0, 0]);
        bytes.extend(&self.options);
        bytes.extend(&self.data);
        let sum = checksum(version, TCP, &bytes);
        bytes[tcp::CHECKSUM..tcp::CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
        bytes
    }
}
