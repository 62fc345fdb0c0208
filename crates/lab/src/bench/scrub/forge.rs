//! Frames that no stack sends: segments of connections that exist nowhere but in the scrubber, SYNs and fragments of a flood.

use std::net::SocketAddrV4;

use wire::{checksum, ipv4, udp};

/// Where the IP header begins.
const IP_AT: usize = 14;
/// Where the transport header begins.
const TRANSPORT_AT: usize = IP_AT + 20;
/// Hardware addresses of nobody here: the kernels of the hosts take no notice of such frames.
const MAC_ADDRESSES: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
/// "More fragments" (RFC 791).
const MORE: u16 = 0x2000;
/// "Don't fragment".
const WHOLE: u16 = 0x4000;

/// TCP flags.
pub const SYN: u8 = 2;
/// An acknowledgement.
pub const ACK: u8 = 16;

/// From where to where.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Who sends.
    pub source: SocketAddrV4,
    /// To whom.
    pub destination: SocketAddrV4,
}

impl Path {
    /// The way back.
    pub fn back(self) -> Path {
        Path { source: self.destination, destination: self.source }
    }
}

/// A TCP segment with a header of 20 bytes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment<'a> {
    /// Its flags.
    pub flags: u8,
    /// Sequence number.
    pub sequence: u32,
    /// Acknowledgement number.
    pub acknowledgement: u32,
    /// Data.
    pub data: &'a [u8],
}

fn ip(path: Path, protocol: u8, flags: u16, identification: u16, payload_len: usize) -> Vec<u8> {
    let mut frame = MAC_ADDRESSES.to_vec();
    frame.extend([8, 0, 0x45, 0]);
    frame.extend((20 + payload_len as u16).to_be_bytes());
    frame.extend(identification.to_be_bytes());
    frame.extend(flags.to_be_bytes());
    frame.extend([64, protocol, 0, 0]);
    frame.extend(path.source.ip().octets());
    frame.extend(path.destination.ip().octets());
    ipv4::fill_checksum(&mut frame[IP_AT..]);
    frame
}

/// The frame of a segment.
pub fn tcp(path: Path, segment: Segment<'_>) -> Vec<u8> {
    let len = 20 + segment.data.len();
    let mut frame = ip(path, 6, WHOLE, 0, len);
    frame.extend(path.source.port().to_be_bytes());
    frame.extend(path.destination.port().to_be_bytes());
    frame.extend(segment.sequence.to_be_bytes());
    frame.extend(segment.acknowledgement.to_be_bytes());
    frame.extend([0x50, segment.flags, 0xff, 0xff, 0, 0, 0, 0]);
    frame.extend(segment.data);
    let sum = checksum::pseudo_header_v4(*path.source.ip(), *path.destination.ip(), 6, len as u16);
    let sum = sum.bytes(&frame[TRANSPORT_AT..]).checksum();
    frame[TRANSPORT_AT + 16..TRANSPORT_AT + 18].copy_from_slice(&sum.to_be_bytes());
    frame
}

/// The first fragment of a datagram whose rest never comes.
pub fn first_fragment(path: Path, identification: u16) -> Vec<u8> {
    let payload = [0_u8; 16];
    let mut frame = ip(path, 17, MORE, identification, udp::HEADER_LEN + payload.len());
    frame.extend(path.source.port().to_be_bytes());
    frame.extend(path.destination.port().to_be_bytes());
    frame.extend([4, 0, 0, 0]);
    frame.extend(payload);
    frame
}
