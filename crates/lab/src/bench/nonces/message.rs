//! Datagrams as a stack hands them to its interface: UDP over IPv4, in as many fragments as the interface's MTU wants.

use std::net::Ipv4Addr;

use wire::{EtherType, MacAddress, ethernet, ipv4, udp};

/// What a payload is made of.
const FILLING: u8 = 0x5a;
/// "More fragments" (RFC 791).
const MORE: u16 = 0x2000;
const PROTOCOL_UDP: u8 = 17;

/// Who says it to whom.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    pub source: (MacAddress, Ipv4Addr),
    pub destination: (MacAddress, Ipv4Addr),
    /// Port of the receiver, and of the sender as well.
    pub port: u16,
}

/// Frames that a message of `size` bytes of payload takes over an interface with this MTU.
pub fn frames_of(size: usize, mtu: usize) -> usize {
    (udp::HEADER_LEN + size).div_ceil(fragment_len(mtu))
}

/// Payload of a fragment: whole units of eight bytes (RFC 791, section 3.2).
fn fragment_len(mtu: usize) -> usize {
    (mtu - ipv4::HEADER_LEN) / 8 * 8
}

/// The frames of a message of `size` bytes of payload, without UDP checksum (RFC 768).
pub fn frames(path: &Path, size: usize, identification: u16, mtu: usize) -> Vec<Vec<u8>> {
    let mut datagram = Vec::with_capacity(udp::HEADER_LEN + size);
    datagram.extend(path.port.to_be_bytes());
    datagram.extend(path.port.to_be_bytes());
    datagram.extend(((udp::HEADER_LEN + size) as u16).to_be_bytes());
    datagram.extend([0, 0]);
    datagram.resize(udp::HEADER_LEN + size, FILLING);
    let pieces = datagram.chunks(fragment_len(mtu)).enumerate();
    let last = datagram.len().div_ceil(fragment_len(mtu)) - 1;
    pieces.map(|(at, piece)| fragment(path, piece, identification, (at * fragment_len(mtu), at == last))).collect()
}

/// A frame with the piece that begins at `offset` bytes of a datagram.
fn fragment(path: &Path, piece: &[u8], identification: u16, (offset, is_last): (usize, bool)) -> Vec<u8> {
    let header =
        ethernet::Header { destination: path.destination.0, source: path.source.0, ethertype: EtherType::IPV4 };
    let mut frame = header.emit().to_vec();
    let more = if is_last { 0 } else { MORE };
    frame.extend([0x45, 0]);
    frame.extend(((ipv4::HEADER_LEN + piece.len()) as u16).to_be_bytes());
    frame.extend(identification.to_be_bytes());
    frame.extend((more | (offset / 8) as u16).to_be_bytes());
    frame.extend([64, PROTOCOL_UDP, 0, 0]);
    frame.extend(path.source.1.octets());
    frame.extend(path.destination.1.octets());
    ipv4::fill_checksum(&mut frame[ethernet::HEADER_LEN..][..ipv4::HEADER_LEN]);
    frame.extend(piece);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path = Path {
        source: (MacAddress([2, 0, 0, 0, 0, 1]), Ipv4Addr::new(10, 0, 0, 1)),
        destination: (MacAddress([2, 0, 0, 0, 0, 2]), Ipv4Addr::new(10, 0, 0, 2)),
        port: 7000,
    };

    /// Reads the pieces with the reader of the product and puts them together by their offsets.
    fn datagram(frames: &[Vec<u8>]) -> Vec<u8> {
        let mut whole = Vec::new();
        for (at, frame) in frames.iter().enumerate() {
            let packet = ipv4::View::new(&frame[14..]).expect("IPv4");
            assert!(packet.checksum_is_right());
            assert_eq!(packet.fragment_offset(), whole.len());
            assert_eq!(packet.more_fragments(), at + 1 < frames.len());
            whole.extend(packet.payload());
        }
        whole
    }

    #[test]
    fn a_message_is_whole_whatever_the_mtu() {
        for (size, mtu, pieces) in [(64, 1460, 1), (1432, 1460, 1), (1433, 1460, 2), (8192, 1460, 6), (8192, 1500, 6)] {
            let frames = frames(&PATH, size, 9, mtu);
            assert_eq!((frames.len(), frames_of(size, mtu)), (pieces, pieces), "{size} bytes over {mtu}");
            assert!(frames.iter().all(|frame| frame.len() <= 14 + mtu));
            let datagram = datagram(&frames);
            let udp = udp::View::new(&datagram).expect("UDP");
            assert_eq!((udp.destination_port(), usize::from(udp.length())), (7000, 8 + size));
        }
    }
}
