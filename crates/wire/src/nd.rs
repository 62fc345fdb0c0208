//! Neighbour discovery of IPv6 (RFC 4861): what its five messages say about link-layer addresses, and the two that a host
//! resolves addresses with, made from values.
//!
//! A message is the ICMPv6 message behind an IPv6 header. What RFC 4861 says about that header, the hop limit among it, is
//! looked at by who has it. The checksum is left to the receiving stack.

use std::net::Ipv6Addr;

use crate::checksum::pseudo_header_v6;
use crate::icmp::{self, PROTOCOL_V6, v6};
use crate::ipv6::{self, HEADER_LEN as IPV6_LEN};
use crate::{Error, Field, MacAddress};

/// The hop limit of every message: no router has forwarded it (RFC 4861, section 7.1.1).
pub const HOP_LIMIT: u8 = 255;

const TARGET: std::ops::Range<usize> = 8..24;
const OPTION_SOURCE_LINK: u8 = 1;
const OPTION_TARGET_LINK: u8 = 2;
const FLAG_ROUTER: u8 = 0x80;
const FLAG_SOLICITED: u8 = 0x40;
const FLAG_OVERRIDE: u8 = 0x20;

/// Which message it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// "Is there a router?"
    RouterSolicitation,
    /// A router says what holds on this link.
    RouterAdvertisement,
    /// "Who has this address?"
    Solicitation,
    /// "I have this address."
    Advertisement,
    /// A router names a better first hop.
    Redirect,
}

/// What a message says about addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Which message it is.
    pub kind: Kind,
    /// The address it is about, of a solicitation, an advertisement and a redirect.
    pub target: Option<Ipv6Addr>,
    /// The sender's own link-layer address, if it says one.
    pub source_link: Option<MacAddress>,
    /// The target's link-layer address, if it says one.
    pub target_link: Option<MacAddress>,
}

/// Whether an ICMPv6 message of this type is one of neighbour discovery.
#[must_use]
pub fn is_discovery(icmp_type: u8) -> bool {
    (v6::ROUTER_SOLICITATION..=v6::REDIRECT).contains(&icmp_type)
}

impl Message {
    /// Reads the ICMPv6 message in `bytes`.
    ///
    /// # Errors
    /// Cut short, no message of neighbour discovery, a code that is not zero, an option without length, one link-layer
    /// address twice or not of Ethernet's length, a target that is a group.
    pub fn parse(bytes: &[u8]) -> Result<Message, Error> {
        let invalid = Error::Invalid(Field::NeighbourDiscovery);
        let cut = Error::Truncated(Field::NeighbourDiscovery);
        let [icmp_type, code] = *bytes.first_chunk().ok_or(cut)?;
        let (kind, options_at) = match icmp_type {
            v6::ROUTER_SOLICITATION => (Kind::RouterSolicitation, 8),
            v6::ROUTER_ADVERTISEMENT => (Kind::RouterAdvertisement, 16),
            v6::NEIGHBOUR_SOLICITATION => (Kind::Solicitation, 24),
            v6::NEIGHBOUR_ADVERTISEMENT => (Kind::Advertisement, 24),
            v6::REDIRECT => (Kind::Redirect, 40),
            _ => return Err(invalid),
        };
        let options = bytes.get(options_at..).ok_or(cut)?;
        if code != 0 {
            return Err(invalid);
        }
        let has_target = matches!(kind, Kind::Solicitation | Kind::Advertisement | Kind::Redirect);
        let target = if has_target { Some(target_of(bytes).ok_or(cut)?) } else { None };
        if target.is_some_and(|target| target.is_multicast()) {
            return Err(invalid);
        }
        let mut message = Message { kind, target, source_link: None, target_link: None };
        message.read_options(options)?;
        Ok(message)
    }

    fn read_options(&mut self, mut options: &[u8]) -> Result<(), Error> {
        let invalid = Error::Invalid(Field::NeighbourDiscovery);
        while let [kind, units, ..] = *options {
            let len = usize::from(units) * 8;
            if len == 0 {
                return Err(invalid);
            }
            let (option, rest) = options.split_at_checked(len).ok_or(Error::Truncated(Field::NeighbourDiscovery))?;
            options = rest;
            let place = match kind {
                OPTION_SOURCE_LINK => &mut self.source_link,
                OPTION_TARGET_LINK => &mut self.target_link,
                _ => continue,
            };
            let address: [u8; 6] = option[2..].try_into().map_err(|_| invalid)?;
            if place.replace(MacAddress(address)).is_some() {
                return Err(invalid);
            }
        }
        if options.is_empty() { Ok(()) } else { Err(Error::Truncated(Field::NeighbourDiscovery)) }
    }
}

fn target_of(message: &[u8]) -> Option<Ipv6Addr> {
    let octets: [u8; 16] = message.get(TARGET)?.try_into().ok()?;
    Some(octets.into())
}

/// The group of those that have `address` (RFC 4291, section 2.7.1).
#[must_use]
pub fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

/// The Ethernet address of a group (RFC 2464, section 7).
#[must_use]
pub fn group_mac(group: Ipv6Addr) -> MacAddress {
    let [.., a, b, c, d] = group.octets();
    MacAddress([0x33, 0x33, a, b, c, d])
}

/// The last 64 bits of an address that a host makes from its hardware address (modified EUI-64; RFC 4291, appendix A).
#[must_use]
pub fn interface_identifier(mac: MacAddress) -> [u8; 8] {
    let [a, b, c, d, e, f] = mac.0;
    [a ^ 0x02, b, c, 0xff, 0xfe, d, e, f]
}

/// A solicitation as an IPv6 packet: `source`, whose link-layer address is `mac`, asks `destination` who has `target`.
/// An unspecified source asks without saying who it is (RFC 4862, section 5.4.2).
#[must_use]
pub fn solicitation(source: Ipv6Addr, mac: MacAddress, destination: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    let link = (!source.is_unspecified()).then_some((OPTION_SOURCE_LINK, mac));
    packet(source, destination, v6::NEIGHBOUR_SOLICITATION, 0, target, link)
}

/// The advertisement as an IPv6 packet with which the owner of `target` at `mac` answers a solicitation of `destination`.
#[must_use]
pub fn advertisement(target: Ipv6Addr, mac: MacAddress, destination: Ipv6Addr, is_router: bool) -> Vec<u8> {
    let flags = FLAG_SOLICITED | FLAG_OVERRIDE | if is_router { FLAG_ROUTER } else { 0 };
    packet(target, destination, v6::NEIGHBOUR_ADVERTISEMENT, flags, target, Some((OPTION_TARGET_LINK, mac)))
}

fn packet(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    icmp_type: u8,
    flags: u8,
    target: Ipv6Addr,
    link: Option<(u8, MacAddress)>,
) -> Vec<u8> {
    let mut message = vec![icmp_type, 0, 0, 0, flags, 0, 0, 0];
    message.extend(target.octets());
    if let Some((option, mac)) = link {
        message.extend([option, 1]);
        message.extend(mac.0);
    }
    let len = message.len() as u16;
    let sum = pseudo_header_v6(source, destination, PROTOCOL_V6, u32::from(len)).bytes(&message).checksum();
    message[icmp::CHECKSUM..icmp::CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    let mut packet = Vec::with_capacity(IPV6_LEN + message.len());
    packet.extend(ipv6::header(source, destination, PROTOCOL_V6, HOP_LIMIT, len));
    packet.extend(message);
    packet
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0xa);
    const B: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0x12, 0x3456);
    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 0xa]);

    #[test]
    fn what_is_made_reads_back() {
        let packet = solicitation(A, MAC, solicited_node(B), B);
        let header = ipv6::View::new(&packet).expect("valid");
        assert_eq!((header.source(), header.hop_limit(), header.next_header()), (A, 255, 58));
        let message = Message::parse(&packet[40..]).expect("valid");
        let expected = Message { kind: Kind::Solicitation, target: Some(B), source_link: Some(MAC), target_link: None };
        assert_eq!(message, expected);
        let answer = advertisement(B, MAC, A, true);
        let message = Message::parse(&answer[40..]).expect("valid");
        assert_eq!((message.kind, message.target, message.target_link), (Kind::Advertisement, Some(B), Some(MAC)));
        assert_eq!(answer[44], 0xe0);
    }

    #[test]
    fn the_bytes_are_those_of_rfc_4861() {
        let (one, two) = ("fe80::ff:fe00:1", "fe80::ff:fe00:2");
        let [one, two] = [one, two].map(|text| text.parse::<Ipv6Addr>().expect("an address"));
        let packet = solicitation(one, MacAddress([2, 0, 0, 0, 0, 1]), solicited_node(two), two);
        let sum = pseudo_header_v6(one, solicited_node(two), PROTOCOL_V6, 32).bytes(&packet[40..]);
        assert_eq!(sum.fold(), 0xffff, "a sum over its own checksum is all ones (RFC 1071)");
        assert_eq!(packet[..8], [0x60, 0, 0, 0, 0, 32, 58, 255]);
        assert_eq!(packet[24..40], [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 2]);
        assert_eq!(packet[40..42], [135, 0]);
        assert_eq!(packet[64..], [1, 1, 2, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let good = solicitation(A, MAC, B, B)[40..].to_vec();
        let changed = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[at] = value;
            Message::parse(&bytes)
        };
        let invalid = Err(Error::Invalid(Field::NeighbourDiscovery));
        assert_eq!(changed(0, 128), invalid, "no message of neighbour discovery");
        assert_eq!(changed(1, 1), invalid, "a code");
        assert_eq!(changed(8, 0xff), invalid, "a group as target");
        assert_eq!(changed(25, 0), invalid, "an option without length");
        assert_eq!(changed(25, 2), Err(Error::Truncated(Field::NeighbourDiscovery)));
        assert_eq!(Message::parse(&[&good[..], &good[24..]].concat()), invalid, "one address twice");
        for len in (0..good.len()).filter(|len| *len != 24) {
            assert_eq!(Message::parse(&good[..len]), Err(Error::Truncated(Field::NeighbourDiscovery)), "{len} bytes");
        }
    }

    #[test]
    fn derived_addresses_are_those_of_the_standards() {
        // RFC 4291, appendix A, and RFC 2464, section 7.
        assert_eq!(
            interface_identifier(MacAddress([0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde])),
            [0x36, 0x56, 0x78, 0xff, 0xfe, 0x9a, 0xbc, 0xde]
        );
        // RFC 4291, section 2.7.1: 4037::01:800:200E:8C6C has the group ff02::1:ff0e:8c6c.
        let group = solicited_node("4037::01:800:200e:8c6c".parse().expect("an address"));
        assert_eq!(group, "ff02::1:ff0e:8c6c".parse::<Ipv6Addr>().expect("an address"));
        assert_eq!(group_mac(group), MacAddress([0x33, 0x33, 0xff, 0x0e, 0x8c, 0x6c]));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(head in 130_u8..140, bytes: Vec<u8>) {
            let _ = Message::parse(&[&[head, 0], &bytes[..]].concat());
        }
    }
}
