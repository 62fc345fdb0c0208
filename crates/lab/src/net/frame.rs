//! A captured frame and the questions that attacks ask of it.

use std::net::Ipv4Addr;

use wire::arp::Arp;
use wire::cll::{DhcpFrame, PacketType};
use wire::ethernet::{HEADER_LEN, Header};
use wire::{EtherType, MacAddress};

const IPV4_HEADER_LEN: usize = 20;
const UDP_HEADER_LEN: usize = 8;
const PROTOCOL_UDP: u8 = 17;

/// A frame as it was on a wire, without the check sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame(pub Vec<u8>);

impl Frame {
    fn header(&self) -> Header {
        let none = Header { destination: MacAddress::ZERO, source: MacAddress::ZERO, ethertype: EtherType(0) };
        Header::parse(&self.0).map_or(none, |(header, _)| header)
    }

    fn payload(&self) -> &[u8] {
        self.0.get(HEADER_LEN..).unwrap_or_default()
    }

    /// Who sent it, as it claims; zero for a runt.
    #[must_use]
    pub fn source(&self) -> MacAddress {
        self.header().source
    }

    /// To whom; zero for a runt.
    #[must_use]
    pub fn destination(&self) -> MacAddress {
        self.header().destination
    }

    /// Whether it goes from `source` to `destination`.
    #[must_use]
    pub fn is_between(&self, source: MacAddress, destination: MacAddress) -> bool {
        self.source() == source && self.destination() == destination
    }

    /// Whether its payload is of this kind.
    #[must_use]
    pub fn is(&self, ethertype: EtherType) -> bool {
        self.header().ethertype == ethertype
    }

    /// What kind of CLL message it is, if it is one.
    #[must_use]
    pub fn cll_type(&self) -> Option<PacketType> {
        self.is(EtherType::CLL).then(|| PacketType::of(self.payload()).ok()).flatten()
    }

    /// The plain ARP message in it, if it has one.
    #[must_use]
    pub fn arp(&self) -> Option<Arp> {
        self.is(EtherType::ARP).then(|| Arp::parse(self.payload()).ok()).flatten()
    }

    /// Whether it is plain ARP that says that `ip` is at `mac`.
    #[must_use]
    pub fn claims(&self, ip: Ipv4Addr, mac: MacAddress) -> bool {
        self.arp().is_some_and(|arp| arp.sender_ip == ip && arp.sender_mac == mac)
    }

    /// Whether `bytes` occur anywhere in it.
    #[must_use]
    pub fn contains(&self, bytes: &[u8]) -> bool {
        !bytes.is_empty() && self.0.windows(bytes.len()).any(|window| window == bytes)
    }

    /// The source address of the plain IPv4 packet in it, if it has one.
    #[must_use]
    pub fn ipv4_source(&self) -> Option<Ipv4Addr> {
        let packet = self.ipv4()?;
        packet[12..16].first_chunk::<4>().map(|&octets| Ipv4Addr::from(octets))
    }

    /// The DHCP message in it, plain or in a DHCP frame of CLL, if it is a UDP datagram to one of DHCP's ports and as long as its fixed
    /// fields.
    #[must_use]
    pub fn dhcp(&self) -> Option<&[u8]> {
        let carried = self.dhcp_frame().map(|frame| frame.packet).filter(|packet| packet.len() >= IPV4_HEADER_LEN);
        let packet = self.ipv4().or(carried).filter(|packet| packet[0] == 0x45 && packet[9] == PROTOCOL_UDP)?;
        let datagram = packet.get(IPV4_HEADER_LEN..)?;
        let port = datagram.get(2..4)?;
        datagram.get(UDP_HEADER_LEN..).filter(|message| (port == [0, 67] || port == [0, 68]) && message.len() >= 240)
    }

    /// The DHCP frame of CLL in it, if it is one.
    #[must_use]
    pub fn dhcp_frame(&self) -> Option<DhcpFrame<'_>> {
        self.is(EtherType::CLL).then(|| DhcpFrame::parse(self.payload()).ok()).flatten()
    }

    fn ipv4(&self) -> Option<&[u8]> {
        (self.is(EtherType::IPV4) && self.payload().len() >= IPV4_HEADER_LEN).then(|| self.payload())
    }

    /// The same frame with other Ethernet addresses.
    #[must_use]
    pub fn with_addresses(&self, source: MacAddress, destination: MacAddress) -> Frame {
        let mut bytes = self.0.clone();
        bytes[..6].copy_from_slice(&destination.0);
        bytes[6..12].copy_from_slice(&source.0);
        Frame(bytes)
    }

    /// The same frame with other addresses in its plain IPv4 packet, if it has one, and right checksums; the UDP
    /// checksum becomes "none" (RFC 768). Frames without plain IPv4, and IPv4 with options, come back unchanged.
    #[must_use]
    pub fn with_ipv4(&self, source: Ipv4Addr, destination: Ipv4Addr) -> Frame {
        let mut bytes = self.0.clone();
        let is_plain = self.ipv4().is_some_and(|packet| packet[0] == 0x45);
        let at = HEADER_LEN;
        if is_plain {
            bytes[at + 12..at + 16].copy_from_slice(&source.octets());
            bytes[at + 16..at + 20].copy_from_slice(&destination.octets());
            bytes[at + 10..at + 12].fill(0);
            let sum = internet_checksum(&bytes[at..at + IPV4_HEADER_LEN]);
            bytes[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
            if bytes[at + 9] == PROTOCOL_UDP && bytes.len() >= at + IPV4_HEADER_LEN + 8 {
                bytes[at + IPV4_HEADER_LEN + 6..at + IPV4_HEADER_LEN + 8].fill(0);
            }
        }
        Frame(bytes)
    }
}

/// The checksum of RFC 1071 over an even number of bytes.
fn internet_checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = bytes.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example header of many textbooks: 172.16.10.99 to 172.16.10.12, checksum 0xb1e6.
    #[test]
    fn checksum_of_a_known_header() {
        let header =
            [0x45, 0, 0, 0x3c, 0x1c, 0x46, 0x40, 0, 0x40, 0x06, 0, 0, 0xac, 0x10, 0x0a, 0x63, 0xac, 0x10, 0x0a, 0x0c];
        assert_eq!(internet_checksum(&header), 0xb1e6);
    }

    #[test]
    fn readdressing_touches_addresses_and_checksums_only() {
        let mut bytes = vec![0xaa; 60];
        bytes[12..14].copy_from_slice(&[8, 0]);
        bytes[14] = 0x45;
        bytes[23] = PROTOCOL_UDP;
        let frame = Frame(bytes);
        let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        let changed = frame.with_ipv4(from, to);
        assert_eq!(changed.ipv4_source(), Some(from));
        assert_eq!(internet_checksum(&changed.0[14..34]), 0);
        assert_eq!(changed.0[40..42], [0, 0]);
        assert_eq!(changed.0[42..], frame.0[42..]);
        let arp = Frame(vec![0; 20]);
        assert_eq!(arp.with_ipv4(from, to), arp);
    }

    #[test]
    fn dhcp_is_udp_to_its_ports_and_whole() {
        let mut bytes = vec![0; 14 + 20 + 8 + 240];
        bytes[12..14].copy_from_slice(&[8, 0]);
        (bytes[14], bytes[23], bytes[37]) = (0x45, PROTOCOL_UDP, 67);
        let with = |at: usize, value| {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            Frame(bytes)
        };
        assert_eq!(with(37, 67).dhcp().map(<[u8]>::len), Some(240));
        assert!(with(37, 68).dhcp().is_some());
        assert!(with(37, 69).dhcp().is_none() && with(23, 6).dhcp().is_none() && with(13, 6).dhcp().is_none());
        assert!(Frame(bytes[..281].to_vec()).dhcp().is_none());
        // The same packet in a DHCP frame of CLL (docs/protocol.md, section 22), behind a certificate of three bytes.
        let mut carried = [&[0; 12][..], &[0x07, 0xd0, 0x2b, 0], &[0; 74], &[0, 3, 9, 9, 9], &bytes[14..]].concat();
        carried[14 + 78 + 3 + 20 + 3] = 67;
        assert_eq!(Frame(carried.clone()).dhcp().map(<[u8]>::len), Some(240));
        carried[14] = 0x21;
        assert!(Frame(carried).dhcp().is_none());
    }
}
