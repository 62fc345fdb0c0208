//! Trains: frames between the same two hosts, all of one size but the last, one behind the other in one UDP datagram that
//! the card or the kernel cuts into one datagram for each.
//!
//! The kernel's cost of a frame does not depend on its size, but it cuts only what it understands, and that is UDP. A
//! train passes through the kernel once and leaves the card as frames that any switch carries and any receive queue can
//! be chosen by. Nothing here is protected and nothing needs to be: what a datagram carries is a whole CLL message, which
//! answers for itself and for the Ethernet addresses in front of it.
//!
//! ```text
//! +----------+---------------+--------------+-------------+-------------+ .. +----------------+
//! | Ethernet | IPv4, 20 bytes| UDP, 8 bytes | CLL message | CLL message |    | CLL message    |
//! | (14)     | link-local    | port 52000   | (size)      | (size)      |    | (size or less) |
//! +----------+---------------+--------------+-------------+-------------+ .. +----------------+
//! ```

use std::net::Ipv4Addr;
use std::ops::Range;

use crate::checksum::pseudo_header_v4;
use crate::ethernet::{self, Header, MacAddress};
use crate::{EtherType, ipv4, udp};

/// The UDP port that trains go to.
pub const PORT: u16 = 52_000;
/// What a datagram adds to the CLL message that it carries.
pub const OVERHEAD: usize = ipv4::HEADER_LEN + udp::HEADER_LEN;
/// Bytes in front of the first message.
pub const HEAD_LEN: usize = ethernet::HEADER_LEN + OVERHEAD;
/// Where the UDP header starts.
pub const UDP_AT: usize = ethernet::HEADER_LEN + ipv4::HEADER_LEN;
/// The most that all messages of a train can have together, in bytes.
pub const MESSAGES_MAX_BYTES: usize = u16::MAX as usize - OVERHEAD;

const PROTOCOL_UDP: u8 = 17;
/// Source ports are dynamic ones (RFC 6335, section 6): these bits, and 14 bits that follow the receiver index.
const SOURCE_PORT_BASE: u16 = 0xc000;

/// The address that stands for `mac` in a train: link-local, so that no router forwards it (RFC 3927, section 7), outside
/// of the reserved first and last 256.
#[must_use]
pub fn address_of(mac: MacAddress) -> Ipv4Addr {
    Ipv4Addr::new(169, 254, 1 + mac.0[4] % 254, mac.0[5])
}

/// The port that a train with `message` in front comes from. It follows the receiver index, so that cards and bonds spread
/// associations and lanes, and keep the trains of each in order. Single frames between them may take another queue; the
/// replay window has room for that.
fn source_port(message: &[u8]) -> u16 {
    let index = message.get(2..6).unwrap_or_default();
    let folded = index.chunks_exact(2).fold(0, |folded, pair| folded ^ u16::from_be_bytes([pair[0], pair[1]]));
    SOURCE_PORT_BASE | folded
}

/// Everything in front of the messages of a train that begins with the message of `first`, a whole frame; together they
/// have `messages_len` bytes, at most [`MESSAGES_MAX_BYTES`]. The UDP checksum is the sum of the pseudo header alone: who
/// cuts the train completes it. `None` when `first` is no frame or the length is out of bounds.
#[must_use]
pub fn head(first: &[u8], messages_len: usize) -> Option<[u8; HEAD_LEN]> {
    let (ethernet, message) = Header::parse(first).ok()?;
    let udp_len = u16::try_from(udp::HEADER_LEN.checked_add(messages_len)?).ok()?;
    let total_len = udp_len.checked_add(ipv4::HEADER_LEN as u16)?;
    let (source, destination) = (address_of(ethernet.source), address_of(ethernet.destination));
    let mut head = [0; HEAD_LEN];
    head[..ethernet::HEADER_LEN].copy_from_slice(&Header { ethertype: EtherType::IPV4, ..ethernet }.emit());
    let packet = &mut head[ethernet::HEADER_LEN..];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&total_len.to_be_bytes());
    // Not to be fragmented, and not to be forwarded.
    packet[6] = 0x40;
    packet[8] = 1;
    packet[9] = PROTOCOL_UDP;
    packet[12..16].copy_from_slice(&source.octets());
    packet[16..20].copy_from_slice(&destination.octets());
    ipv4::fill_checksum(&mut packet[..ipv4::HEADER_LEN]);
    let datagram = &mut packet[ipv4::HEADER_LEN..];
    datagram[..2].copy_from_slice(&source_port(message).to_be_bytes());
    datagram[2..4].copy_from_slice(&PORT.to_be_bytes());
    datagram[4..6].copy_from_slice(&udp_len.to_be_bytes());
    let pseudo = pseudo_header_v4(source, destination, PROTOCOL_UDP, udp_len).fold();
    datagram[6..8].copy_from_slice(&pseudo.to_be_bytes());
    Some(head)
}

/// Where the messages of a train lie in `frame`; `None` when it is none. Its checksums are not looked at: the messages
/// have better ones.
#[must_use]
pub fn messages(frame: &[u8]) -> Option<Range<usize>> {
    let (ethernet, packet) = Header::parse(frame).ok()?;
    if ethernet.ethertype != EtherType::IPV4 || packet.first() != Some(&0x45) {
        return None;
    }
    let ip = ipv4::View::new(packet).ok()?;
    let addresses = (address_of(ethernet.source), address_of(ethernet.destination));
    if ip.protocol() != PROTOCOL_UDP || ip.is_fragment() || (ip.source(), ip.destination()) != addresses {
        return None;
    }
    let datagram = udp::View::new(ip.payload()).ok()?;
    let len = usize::from(datagram.length());
    let is_whole = len > udp::HEADER_LEN && len + ipv4::HEADER_LEN == usize::from(ip.total_len());
    (datagram.destination_port() == PORT && is_whole && UDP_AT + len <= frame.len()).then_some(HEAD_LEN..UDP_AT + len)
}

#[cfg(test)]
mod tests {
    use etherparse::{NetHeaders, PacketHeaders, TransportHeader};
    use proptest::prelude::*;

    use super::*;

    /// From 02:00:00:00:07:01 to 02:00:00:00:ff:02, receiver index 0x1234_5678.
    const FIRST: [u8; 24] =
        [2, 0, 0, 0, 0xff, 2, 2, 0, 0, 0, 7, 1, 0x07, 0xd0, 0x21, 0, 0x12, 0x34, 0x56, 0x78, 0, 0, 0, 9];

    fn train(messages: &[u8]) -> Vec<u8> {
        [&head(&FIRST, messages.len()).expect("within bounds")[..], messages].concat()
    }

    #[test]
    fn another_implementation_reads_the_headers() {
        let train = train(&[7; 3000]);
        let headers = PacketHeaders::from_ethernet_slice(&train).expect("valid");
        let Some(NetHeaders::Ipv4(ip, _)) = headers.net else { panic!("no IPv4") };
        assert_eq!(ip.source, [169, 254, 8, 1]);
        // 0xff is 255, which is 1 beyond a multiple of 254.
        assert_eq!(ip.destination, [169, 254, 2, 2]);
        assert_eq!((ip.total_len, ip.time_to_live, ip.dont_fragment), (3028, 1, true));
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        let Some(TransportHeader::Udp(udp)) = headers.transport else { panic!("no UDP") };
        assert_eq!((udp.source_port, udp.destination_port), (0xc000 | 0x1234 ^ 0x5678, PORT));
        assert_eq!(udp.length, 3008);
    }

    /// What completes the checksum adds the UDP header and the payload to what stands in the field (RFC 768).
    #[test]
    fn the_checksum_needs_only_the_datagram_to_be_complete() {
        let mut train = train(b"payload");
        let sum = crate::checksum::Sum::ZERO.bytes(&train[UDP_AT..]).checksum();
        train[UDP_AT + 6..UDP_AT + 8].copy_from_slice(&sum.to_be_bytes());
        let headers = PacketHeaders::from_ethernet_slice(&train).expect("valid");
        let (Some(NetHeaders::Ipv4(ip, _)), Some(TransportHeader::Udp(udp))) = (headers.net, headers.transport) else {
            panic!("no UDP over IPv4")
        };
        assert_eq!(udp.checksum, udp.calc_checksum_ipv4(&ip, b"payload").expect("short"));
    }

    #[test]
    fn only_whole_datagrams_to_the_port_between_the_right_addresses_are_trains() {
        let good = train(&[7; 100]);
        assert_eq!(messages(&good), Some(42..142));
        let padded = [&good[..], &[0; 9]].concat();
        assert_eq!(messages(&padded), Some(42..142));
        let changed = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            messages(&bytes)
        };
        for at in [5, 11, 12, 13, 14, 17, 20, 23, 26, 29, 30, 33, 36, 37, 38, 39] {
            assert_eq!(changed(at, good[at] ^ 0x11), None, "byte {at}");
        }
        for len in 0..good.len() {
            assert_eq!(messages(&good[..len]), None, "{len} bytes");
        }
        assert_eq!(messages(&train(&[])), None);
    }

    #[test]
    fn lengths_end_where_their_fields_do() {
        assert!(head(&FIRST, MESSAGES_MAX_BYTES).is_some());
        assert_eq!(head(&FIRST, MESSAGES_MAX_BYTES + 1), None);
        assert_eq!(head(&FIRST, usize::MAX), None);
        assert_eq!(head(&FIRST[..13], 100), None);
    }

    proptest! {
        #[test]
        fn what_was_put_in_comes_out(first in proptest::collection::vec(any::<u8>(), 14..80), len in 1_usize..2000) {
            let carried = vec![0x5a; len];
            let train = [&head(&first, len).expect("within bounds")[..], &carried].concat();
            prop_assert_eq!(messages(&train), Some(HEAD_LEN..HEAD_LEN + len));
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Some(range) = messages(&bytes) {
                prop_assert!(range.start < range.end && range.end <= bytes.len());
            }
        }
    }
}
