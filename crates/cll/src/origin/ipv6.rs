//! The cross-layer check of IPv6, of which the paper knows nothing: what a packet says about addresses and roles.
//!
//! What a packet proves by itself is judged here: link-layer addresses in neighbour discovery are the sender's own, routers'
//! and DHCP servers' messages come from hosts with that role, and no discovery hides behind extension headers or in fragments
//! (RFC 6980; RFC 7113 tells how guards that skip this are passed by). Whether the sender has an address is not in the packet;
//! such claims are returned, for `neighbours` to judge.

use std::net::Ipv6Addr;

use bump::DropReason;
use wire::ipv6::{Upper, View};
use wire::nd::{self, Kind, Message};
use wire::{icmp, layer::protocol};

use super::Origin;

/// Where DHCPv6 clients listen; only servers and relays send there (RFC 8415, section 7.2).
const DHCPV6_CLIENT_PORT: [u8; 2] = 546_u16.to_be_bytes();

/// What a packet says about IPv6 addresses and only a table of them can judge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    /// The sender has this address and sends from it.
    pub(crate) source: Option<Ipv6Addr>,
    /// The sender says that it has this address.
    pub(crate) target: Option<Ipv6Addr>,
    /// The sender is about to take this address and asks whether somebody has it (RFC 4862, section 5.4).
    pub(crate) question: Option<Ipv6Addr>,
}

/// Checks an IPv6 packet of the host with this origin.
pub(super) fn check(origin: &Origin, packet: &[u8]) -> Result<Claims, DropReason> {
    let header = View::new(packet).map_err(|_| DropReason::InnerMalformed)?;
    let source = header.source();
    if source.is_multicast() || source.is_loopback() || source.to_ipv4_mapped().is_some() {
        return Err(DropReason::InnerSource);
    }
    let upper = header.upper_layer().map_err(|_| DropReason::InnerMalformed)?;
    let Some(upper) = upper else { return claim_of_source(origin, source) };
    match (upper.protocol, upper.bytes) {
        (icmp::PROTOCOL_V6, [icmp_type, ..]) if nd::is_discovery(*icmp_type) => discovery(origin, &header, &upper),
        (icmp::PROTOCOL_V6, [icmp_type, ..]) if is_of_multicast_router(*icmp_type) && !origin.router => {
            Err(DropReason::InnerRole)
        }
        (icmp::PROTOCOL_V6, [icmp_type, ..]) if source.is_unspecified() => multicast_listener(*icmp_type),
        (protocol::UDP, [_, _, high, low, ..]) if [*high, *low] == DHCPV6_CLIENT_PORT && !origin.serves_dhcp() => {
            Err(DropReason::InnerRole)
        }
        // The second piece of such a packet would say what it is (RFC 7112).
        (icmp::PROTOCOL_V6 | protocol::UDP, bytes) if upper.is_fragment && bytes.len() < 4 => {
            Err(DropReason::InnerMalformed)
        }
        _ => claim_of_source(origin, source),
    }
}

/// A router forwards for others (paper, section 5.3), but nobody's link-local packets (RFC 4291, section 2.5.6).
fn claim_of_source(origin: &Origin, source: Ipv6Addr) -> Result<Claims, DropReason> {
    if source.is_unspecified() {
        return Err(DropReason::InnerSource);
    }
    let is_foreign = origin.router && !source.is_unicast_link_local();
    Ok(Claims { source: (!is_foreign).then_some(source), ..Claims::default() })
}

/// Who asks which groups are wanted decides what is forwarded to them (RFC 3810, section 5.1), and who says that it is a
/// multicast router is sent all of it (RFC 4286, sections 3 and 5).
fn is_of_multicast_router(icmp_type: u8) -> bool {
    use icmp::v6::{LISTENER_QUERY, MULTICAST_ROUTER, MULTICAST_ROUTER_TERMINATION};
    matches!(icmp_type, LISTENER_QUERY | MULTICAST_ROUTER | MULTICAST_ROUTER_TERMINATION)
}

/// A host without an address speaks of its groups (RFC 3810, section 5.2.13).
fn multicast_listener(icmp_type: u8) -> Result<Claims, DropReason> {
    use icmp::v6::{LISTENER_DONE, LISTENER_QUERY, LISTENER_REPORT_V2};
    let is_listener = (LISTENER_QUERY..=LISTENER_DONE).contains(&icmp_type) || icmp_type == LISTENER_REPORT_V2;
    if is_listener { Ok(Claims::default()) } else { Err(DropReason::InnerSource) }
}

fn discovery(origin: &Origin, header: &View<'_>, upper: &Upper<'_>) -> Result<Claims, DropReason> {
    if upper.is_behind_extensions || header.hop_limit() != nd::HOP_LIMIT {
        return Err(DropReason::InnerDiscovery);
    }
    let message = Message::parse(upper.bytes).map_err(|_| DropReason::InnerDiscovery)?;
    check_link_addresses(origin, &message)?;
    let source = header.source();
    match message.kind {
        Kind::RouterAdvertisement | Kind::Redirect if !origin.router => Err(DropReason::InnerRole),
        // RFC 4861, sections 6.1.2 and 8.1.
        Kind::RouterAdvertisement | Kind::Redirect if !source.is_unicast_link_local() => {
            Err(DropReason::InnerDiscovery)
        }
        Kind::RouterAdvertisement | Kind::Redirect => Ok(Claims { source: Some(source), ..Claims::default() }),
        Kind::Solicitation | Kind::RouterSolicitation if source.is_unspecified() => {
            // RFC 4861, sections 4.1 and 4.3: who has no address says no link-layer address.
            let says_link = message.source_link.is_some();
            if says_link {
                return Err(DropReason::InnerDiscovery);
            }
            Ok(Claims { question: message.target, ..Claims::default() })
        }
        _ if source.is_unspecified() => Err(DropReason::InnerDiscovery),
        Kind::Solicitation | Kind::RouterSolicitation => Ok(Claims { source: Some(source), ..Claims::default() }),
        Kind::Advertisement => Ok(Claims { source: Some(source), target: message.target, question: None }),
    }
}

/// What a message says about its sender's link-layer address is what the frame says. In a redirect the target is another
/// host, of which the router tells.
fn check_link_addresses(origin: &Origin, message: &Message) -> Result<(), DropReason> {
    let of_target = message.target_link.filter(|_| message.kind != Kind::Redirect);
    let is_own = |link: Option<wire::MacAddress>| link.is_none_or(|mac| mac == origin.mac);
    if is_own(message.source_link) && is_own(of_target) { Ok(()) } else { Err(DropReason::InnerDiscovery) }
}

#[cfg(test)]
mod tests {
    use wire::MacAddress;
    use wire::ipv6::header;
    use wire::nd::{advertisement, solicitation};

    use super::*;

    const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const OTHER: MacAddress = MacAddress([2, 0, 0, 0, 0, 2]);

    fn address(text: &str) -> Ipv6Addr {
        text.parse().expect("an address")
    }

    fn host() -> Origin {
        Origin { mac: MAC, addresses: Vec::new(), router: false, dhcp_server: false }
    }

    fn router() -> Origin {
        Origin { router: true, ..host() }
    }

    fn packet(source: &str, next: u8, hop_limit: u8, payload: &[u8]) -> Vec<u8> {
        let header = header(address(source), address("ff02::1"), next, hop_limit, payload.len() as u16);
        [&header[..], payload].concat()
    }

    fn icmp(icmp_type: u8, rest: &[u8]) -> Vec<u8> {
        [&[icmp_type, 0, 0, 0][..], rest].concat()
    }

    /// A router advertisement with a lifetime of half an hour and this source link-layer address.
    fn router_advertisement(mac: MacAddress) -> Vec<u8> {
        icmp(134, &[&[64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1][..], &mac.0].concat())
    }

    #[test]
    fn a_source_is_a_claim_and_a_routers_only_on_the_link() {
        let udp = [0, 9, 0, 9, 0, 8, 0, 0];
        let of = |origin: &Origin, source: &str| check(origin, &packet(source, 17, 64, &udp));
        let claims = |source: &str| Ok(Claims { source: Some(address(source)), ..Claims::default() });
        assert_eq!(of(&host(), "2001:db8::1"), claims("2001:db8::1"));
        assert_eq!(of(&router(), "2001:db8::1"), Ok(Claims::default()));
        assert_eq!(of(&router(), "fe80::1"), claims("fe80::1"), "nobody forwards link-local packets");
        for nobody in ["::", "::1", "ff02::1", "::ffff:10.0.0.1"] {
            assert_eq!(of(&host(), nobody), Err(DropReason::InnerSource), "{nobody}");
            assert_eq!(of(&router(), nobody), Err(DropReason::InnerSource), "{nobody} of a router");
        }
    }

    #[test]
    fn solicitations_and_advertisements_claim_what_they_say() {
        let (own, target) = (address("fe80::1"), address("fe80::2"));
        let asks = solicitation(own, MAC, target, target);
        assert_eq!(check(&host(), &asks), Ok(Claims { source: Some(own), ..Claims::default() }));
        let takes = solicitation(Ipv6Addr::UNSPECIFIED, MAC, target, target);
        assert_eq!(check(&host(), &takes), Ok(Claims { question: Some(target), ..Claims::default() }));
        let says = advertisement(own, MAC, target, false);
        assert_eq!(check(&host(), &says), Ok(Claims { source: Some(own), target: Some(own), question: None }));
    }

    #[test]
    fn anothers_link_layer_address_is_refused() {
        let (own, target) = (address("fe80::1"), address("fe80::2"));
        for lie in [solicitation(own, OTHER, target, target), advertisement(own, OTHER, target, false)] {
            assert_eq!(check(&host(), &lie), Err(DropReason::InnerDiscovery));
            assert_eq!(check(&router(), &lie), Err(DropReason::InnerDiscovery), "routers are no exception");
        }
        let advertised = packet("fe80::1", 58, 255, &router_advertisement(OTHER));
        assert_eq!(check(&router(), &advertised), Err(DropReason::InnerDiscovery));
    }

    #[test]
    fn routers_and_servers_messages_need_the_role() {
        let advertised = packet("fe80::1", 58, 255, &router_advertisement(MAC));
        assert_eq!(check(&host(), &advertised), Err(DropReason::InnerRole));
        assert_eq!(check(&router(), &advertised).map(|claims| claims.source), Ok(Some(address("fe80::1"))));
        let from_afar = packet("2001:db8::1", 58, 255, &router_advertisement(MAC));
        assert_eq!(check(&router(), &from_afar), Err(DropReason::InnerDiscovery));
        let redirect = packet("fe80::1", 58, 255, &icmp(137, &[0xfe; 36]));
        assert_eq!(check(&host(), &redirect), Err(DropReason::InnerRole));
        assert!(check(&router(), &redirect).is_ok());
        let dhcp = packet("fe80::1", 17, 64, &[2, 35, 2, 34, 0, 8, 0, 0]);
        assert_eq!(check(&host(), &dhcp), Err(DropReason::InnerRole));
        assert!(check(&Origin { dhcp_server: true, ..host() }, &dhcp).is_ok());
        assert!(check(&router(), &dhcp).is_ok(), "a relay");
    }

    #[test]
    fn who_decides_about_groups_is_a_router() {
        // A query, an advertisement and a termination; behind the alert for routers, as they are sent.
        for icmp_type in [130, 151, 153] {
            let message = [&[58, 0, 5, 2, 0, 0, 0, 0][..], &icmp(icmp_type, &[0; 20])].concat();
            let sent = packet("fe80::1", 0, 1, &message);
            assert_eq!(check(&host(), &sent), Err(DropReason::InnerRole), "type {icmp_type}");
            assert!(check(&router(), &sent).is_ok(), "type {icmp_type}");
        }
        let asks = packet("fe80::1", 58, 1, &icmp(152, &[0; 4]));
        assert!(check(&host(), &asks).is_ok(), "anybody may ask who is a multicast router");
    }

    #[test]
    fn discovery_does_not_hide() {
        let advertisement = router_advertisement(MAC);
        let behind = |next: u8, extension: &[u8]| packet("fe80::1", next, 255, &[extension, &advertisement].concat());
        let lies = [
            behind(60, &[58, 0, 1, 4, 0, 0, 0, 0]),
            behind(0, &[58, 0, 1, 4, 0, 0, 0, 0]),
            behind(44, &[58, 0, 0, 0, 0, 0, 0, 1]),
            behind(44, &[60, 0, 0, 1, 0, 0, 0, 1, 58, 0, 1, 4, 0, 0, 0, 0]),
            packet("fe80::1", 58, 254, &advertisement),
        ];
        for lie in lies {
            assert_eq!(check(&router(), &lie), Err(DropReason::InnerDiscovery));
        }
        let empty_first = packet("fe80::1", 44, 255, &[60, 0, 0, 1, 0, 0, 0, 1, 58, 0, 1, 4, 0, 0, 0, 0]);
        assert_eq!(check(&host(), &empty_first), Err(DropReason::InnerMalformed), "its type is in the next piece");
        let later = packet("fe80::1", 44, 255, &[58, 0, 0, 8, 0, 0, 0, 1, 134, 0]);
        assert_eq!(check(&host(), &later).map(|claims| claims.source), Ok(Some(address("fe80::1"))));
        let many = packet("fe80::1", 60, 255, &[[60, 0, 1, 4, 0, 0, 0, 0].repeat(5), advertisement.clone()].concat());
        assert_eq!(check(&host(), &many), Err(DropReason::InnerMalformed));
    }

    #[test]
    fn without_an_address_a_host_speaks_of_its_groups_only() {
        let of = |icmp_type: u8| check(&host(), &packet("::", 58, 1, &icmp(icmp_type, &[0; 4])));
        assert_eq!(of(143), Ok(Claims::default()));
        assert_eq!(of(131), Ok(Claims::default()));
        assert_eq!(of(130), Err(DropReason::InnerRole), "a router's question");
        assert_eq!(of(128), Err(DropReason::InnerSource), "an echo request");
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_panic(next: u8, payload: Vec<u8>) {
            let _ = check(&host(), &packet("fe80::1", next, 255, &payload));
        }
    }
}
