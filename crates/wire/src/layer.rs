//! Where the layers of a frame begin: past VLAN tags to the network layer, past IP headers to the transport layer.
//!
//! Nothing here is trusted: every offset that comes back lies inside the frame, and no more than two VLAN tags and four
//! IPv6 extension headers are followed.

use std::net::Ipv4Addr;

use crate::ethernet::Header;
use crate::{EtherType, ipv4, ipv6, tcp, udp};

/// VLAN tags that are looked through (802.1Q inside 802.1ad).
pub const VLAN_TAGS_MAX: usize = 2;

/// Protocol numbers of the transport and tunnel headers this crate knows (IANA, protocol numbers).
pub mod protocol {
    /// Group membership (RFC 3376).
    pub const IGMP: u8 = 2;
    /// IPv4 in IP (RFC 2003).
    pub const IPV4: u8 = 4;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// IPv6 in IP (RFC 4213).
    pub const IPV6: u8 = 41;
    /// Generic routing encapsulation (RFC 2784).
    pub const GRE: u8 = 47;
}

/// The EtherType behind up to two VLAN tags and the offset of what it describes, from the first byte of the frame.
#[must_use]
pub fn network_layer(frame: &[u8]) -> Option<(EtherType, usize)> {
    let (header, payload) = Header::parse(frame).ok()?;
    let (ethertype, packet) = behind_tags(header.ethertype, payload)?;
    Some((ethertype, frame.len() - packet.len()))
}

/// As [`network_layer`], of a frame whose header says `ethertype` and is followed by `payload`: the EtherType behind up to two
/// VLAN tags, and what it describes.
#[must_use]
pub fn behind_tags(mut ethertype: EtherType, mut payload: &[u8]) -> Option<(EtherType, &[u8])> {
    for _ in 0..VLAN_TAGS_MAX {
        if !ethertype.is_vlan() {
            break;
        }
        let ([_, _, high, low], packet) = payload.split_first_chunk()?;
        (ethertype, payload) = (EtherType(u16::from_be_bytes([*high, *low])), packet);
    }
    (!ethertype.is_vlan()).then_some((ethertype, payload))
}

/// The source address of the IPv4 packet in `frame`, behind up to two VLAN tags.
#[must_use]
pub fn ipv4_source(frame: &[u8]) -> Option<Ipv4Addr> {
    let (ethertype, offset) = network_layer(frame)?;
    if ethertype != EtherType::IPV4 {
        return None;
    }
    ipv4::View::new(frame.get(offset..)?).ok().map(|header| header.source())
}

/// The protocol of the transport layer in `frame` and its offset from the first byte of the frame.
///
/// `None` for what is neither IPv4 nor IPv6, and for every fragment but a first one.
#[must_use]
pub fn transport_layer(frame: &[u8]) -> Option<(u8, usize)> {
    let (ethertype, offset) = network_layer(frame)?;
    transport_of(frame, ethertype, offset)
}

/// As [`transport_layer`], from a network layer of type `ethertype` that begins at `offset`.
#[must_use]
pub fn transport_of(frame: &[u8], ethertype: EtherType, offset: usize) -> Option<(u8, usize)> {
    let packet = frame.get(offset..)?;
    match ethertype {
        EtherType::IPV4 => {
            let header = ipv4::View::new(packet).ok()?;
            (header.fragment_offset() == 0).then(|| (header.protocol(), offset + header.header_len()))
        }
        EtherType::IPV6 => {
            let header = ipv6::View::new(packet).ok()?;
            let (next_header, behind) = header.skip_extensions()?;
            Some((next_header, offset + behind))
        }
        _ => None,
    }
}

/// Where the checksum of the outermost TCP or UDP header in `frame` starts and, counted from there, is stored.
#[must_use]
pub fn transport_checksum(frame: &[u8]) -> Option<(usize, usize)> {
    let (protocol, start) = transport_layer(frame)?;
    let offset = match protocol {
        protocol::TCP => tcp::CHECKSUM,
        protocol::UDP => udp::CHECKSUM,
        _ => return None,
    };
    (start + offset + 2 <= frame.len()).then_some((start, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(tags: &[u16], ethertype: u16, packet: &[u8]) -> Vec<u8> {
        let mut frame = vec![2; 12];
        for tag in tags {
            frame.extend(tag.to_be_bytes());
            frame.extend([0, 7]);
        }
        frame.extend(ethertype.to_be_bytes());
        frame.extend(packet);
        frame
    }

    const PACKET: [u8; 20] = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];

    #[test]
    fn up_to_two_tags_are_looked_through() {
        assert_eq!(network_layer(&frame(&[], 0x0800, &[])), Some((EtherType::IPV4, 14)));
        assert_eq!(network_layer(&frame(&[0x8100], 0x0806, &[])), Some((EtherType::ARP, 18)));
        assert_eq!(network_layer(&frame(&[0x88a8, 0x8100], 0x0800, &[])), Some((EtherType::IPV4, 22)));
        assert_eq!(network_layer(&frame(&[0x88a8, 0x8100, 0x8100], 0x0800, &[])), None);
        assert_eq!(network_layer(&frame(&[0x8100], 0x0800, &[])[..17]), None);
        assert_eq!(network_layer(&[0; 13]), None);
    }

    #[test]
    fn source_and_transport_are_found_behind_tags() {
        let tagged = frame(&[0x88a8, 0x8100], 0x0800, &PACKET);
        assert_eq!(ipv4_source(&tagged), Some(Ipv4Addr::new(10, 0, 0, 1)));
        assert_eq!(transport_layer(&tagged), Some((protocol::TCP, 42)));
        assert_eq!(ipv4_source(&frame(&[], 0x86dd, &PACKET)), None);
        assert_eq!(ipv4_source(&tagged[..41]), None);
    }

    #[test]
    fn a_later_fragment_has_no_transport_layer() {
        let mut packet = PACKET;
        packet[7] = 1;
        assert_eq!(transport_layer(&frame(&[], 0x0800, &packet)), None);
        packet[6..8].copy_from_slice(&[0x20, 0]);
        assert_eq!(transport_layer(&frame(&[], 0x0800, &packet)), Some((protocol::TCP, 34)));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(bytes: Vec<u8>) {
            let _ = ipv4_source(&bytes);
            if let Some((_, offset)) = transport_layer(&bytes) {
                proptest::prop_assert!(offset <= bytes.len());
            }
        }
    }
}
