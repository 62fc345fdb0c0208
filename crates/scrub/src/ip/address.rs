//! Which addresses a packet can have (RFC 1122, section 3.2.1.3; RFC 4291, sections 2.5 and 2.7; RFC 6890).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use wire::layer::protocol;

use crate::settings::Network;

/// IGMP (RFC 3376).
pub(crate) const IGMP: u8 = 2;
/// ICMP for IPv6 (RFC 4443).
pub(crate) const ICMPV6: u8 = 58;

/// Whether no host may take an IPv4 packet of `protocol` from `source` to `destination`.
pub(crate) fn is_martian_v4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8) -> bool {
    let [first, ..] = source.octets();
    let is_group = destination.is_multicast() || destination.is_broadcast();
    // A host that has no address yet asks for one (RFC 2131, section 4.1) or joins a group (RFC 3376, section 4.2.13).
    let has_none_yet = source.is_unspecified() && is_group && matches!(protocol, protocol::UDP | IGMP);
    let no_source = (first == 0 && !has_none_yet) || source.is_loopback() || first >= 224;
    let [first, ..] = destination.octets();
    let is_reserved = first >= 240 && !destination.is_broadcast();
    let no_destination = first == 0 || destination.is_loopback() || is_reserved;
    no_source || no_destination || source == destination || is_tcp_to_group(protocol, is_group)
}

/// Whether no host may take an IPv6 packet of `protocol` from `source` to `destination`.
pub(crate) fn is_martian_v6(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8) -> bool {
    let is_group = destination.is_multicast();
    // Duplicate address detection, router solicitation and joining groups (RFC 4862, section 5.4.2; RFC 3590).
    let has_none_yet = source.is_unspecified() && is_group && protocol == ICMPV6;
    let no_source = source.is_multicast() || is_never_sent(source) && !has_none_yet;
    let no_destination = is_never_sent(destination) || (is_group && scope(destination) <= SCOPE_INTERFACE);
    no_source || no_destination || source == destination || is_tcp_to_group(protocol, is_group)
}

/// Whether `address` is unspecified, loopback or a mapped IPv4 address: none of them belongs on a link.
fn is_never_sent(address: Ipv6Addr) -> bool {
    address.is_unspecified() || address.is_loopback() || address.to_ipv4_mapped().is_some()
}

/// Scopes up to this do not leave a host (RFC 4291, section 2.7).
const SCOPE_INTERFACE: u8 = 1;

fn scope(group: Ipv6Addr) -> u8 {
    group.octets()[1] & 0x0f
}

/// TCP speaks to one host (RFC 9293, section 3.9.2.3).
fn is_tcp_to_group(protocol: u8, is_group: bool) -> bool {
    is_group && protocol == protocol::TCP
}

/// Whether more than one host may be meant by `address`: a group, all hosts, or all of a subnet. In those of `subnets` that is the
/// last address. Of others the scrubber knows nothing, but the last address of each ends in two ones at least (RFC 1122, section
/// 3.2.1.3; RFC 3021).
pub(crate) fn may_be_for_all(address: IpAddr, protocol: u8, subnets: &[Network]) -> bool {
    match address {
        IpAddr::V4(address) => address.is_multicast() || protocol != protocol::TCP && may_be_last(address, subnets),
        IpAddr::V6(address) => address.is_multicast(),
    }
}

fn may_be_last(address: Ipv4Addr, subnets: &[Network]) -> bool {
    let mut around = subnets.iter().filter(|subnet| subnet.contains(address.into())).peekable();
    let is_known = around.peek().is_some();
    address.to_bits() & 3 == 3 && (!is_known || around.any(|subnet| subnet.is_last(address.into())))
}

/// Whether packets to `address` never cross a router, or are for groups, so that any hop limit carries them.
pub(crate) fn stays_on_link_or_is_group(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local() || address.is_multicast() || address.is_broadcast(),
        IpAddr::V6(address) => address.is_unicast_link_local() || address.is_multicast(),
    }
}
