//! What fragments of one packet have in common, and who answers for the memory that they take.

use std::net::{IpAddr, Ipv6Addr};

use bump::Side;

use crate::ethernet::Link;
use crate::ip::Ip;

/// What fragments of one packet have in common (RFC 791, section 3.2; RFC 8200, section 4.5), and the link they came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    source: IpAddr,
    destination: IpAddr,
    /// IPv4 only: in IPv6 the first fragment alone says what the packet carries.
    protocol: Option<u8>,
    identification: u32,
    /// Identifiers of the VLANs, the outermost first, zero for none.
    vlans: [u16; 3],
    from: Side,
}

/// One sender as far as the network can tell: an address of IPv4, a network of 64 bits of IPv6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Source(Side, IpAddr);

impl Key {
    pub(super) fn of(from: Side, link: &Link<'_>, ip: &Ip) -> Key {
        let (protocol, identification) = match ip {
            Ip::V4(header) => (Some(header.protocol), u32::from(header.identification)),
            Ip::V6(header) => (None, header.fragment.map_or(0, |fragment| fragment.identification)),
        };
        let (source, destination) = (ip.source(), ip.destination());
        Key { source, destination, protocol, identification, vlans: vlans(link), from }
    }

    pub(super) fn from(&self) -> Side {
        self.from
    }

    pub(super) fn source(&self) -> Source {
        let network = match self.source {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address @ IpAddr::V4(_) => address,
        };
        Source(self.from, network)
    }
}

fn vlans(link: &Link<'_>) -> [u16; 3] {
    let identifier = |tci: u16| tci & 0x0fff;
    let mut vlans = [0; 3];
    vlans[0] = link.vlan.map_or(0, |tag| identifier(tag.tci));
    // Two addresses, any tags of four bytes, the EtherType.
    let tags = link.header.get(12..).unwrap_or(&[]).chunks_exact(4);
    for (vlan, tag) in vlans[1..].iter_mut().zip(tags) {
        *vlan = identifier(u16::from_be_bytes([tag[2], tag[3]]));
    }
    vlans
}

#[cfg(test)]
mod tests {
    use bump::VlanTag;
    use wire::EtherType;

    use super::*;

    #[test]
    fn tags_count_in_the_bytes_and_beside_them() {
        let mut header = [0; 12].to_vec();
        header.extend([0x88, 0xa8, 0x20, 7, 0x81, 0, 0xe1, 9, 8, 0]);
        let vlan = Some(VlanTag { tpid: 0x8100, tci: 0x6005 });
        let link = Link { header: &header, ethertype: EtherType::IPV4, vlan, queue: 0 };
        assert_eq!(vlans(&link), [5, 7, 0x109]);
        let link = Link { header: &header[..14], ethertype: EtherType::IPV4, vlan: None, queue: 0 };
        assert_eq!(vlans(&link), [0; 3]);
    }
}
