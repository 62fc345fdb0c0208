//! What a frame in clear is for, as far as its headers say: what a manager goes by who wants to
//! know which device and which use of it a stricter mode would break.

use std::fmt;
use std::net::IpAddr;

use wire::ethernet::{HEADER_LEN, Header};
use wire::layer::{self, network_layer, protocol};
use wire::{EtherType, ipv4, ipv6};

/// A use of the network. Ports and numbers are claims, as everything in a frame in clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// A protocol on Ethernet itself, by its type.
    Ethernet(EtherType),
    /// A protocol on IP, by its number.
    Ip(u8),
    /// TCP, by the lower of both ports, which is the server's as a rule.
    Tcp(u16),
    /// UDP, likewise.
    Udp(u16),
    /// It came under a seal, and contradicted its sender's certificate.
    Sealed,
    /// Too many others were told apart already.
    Other,
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Protocol::Ethernet(EtherType::ARP) => f.write_str("arp"),
            Protocol::Ethernet(EtherType(number)) => write!(f, "ethertype/0x{number:04x}"),
            Protocol::Ip(number) => write!(f, "ip/{number}"),
            Protocol::Tcp(port) => write!(f, "tcp/{port}"),
            Protocol::Udp(port) => write!(f, "udp/{port}"),
            Protocol::Sealed => f.write_str("sealed"),
            Protocol::Other => f.write_str("other"),
        }
    }
}

/// A frame in a few words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Glimpse {
    pub(crate) protocol: Protocol,
    pub(crate) source: Option<IpAddr>,
    pub(crate) destination: Option<IpAddr>,
}

impl Glimpse {
    /// Of a frame whose inside contradicted a certificate.
    pub(crate) const SEALED: Glimpse = Glimpse { protocol: Protocol::Sealed, source: None, destination: None };

    /// Of a frame in clear; looks through VLAN tags.
    pub(crate) fn of(frame: &[u8]) -> Glimpse {
        let on_ethernet = Header::parse(frame).map_or(EtherType(0), |(header, _)| header.ethertype);
        let (ethertype, at) = network_layer(frame).unwrap_or((on_ethernet, HEADER_LEN));
        let packet = frame.get(at..).unwrap_or_default();
        let (source, destination) = addresses(ethertype, packet).unzip();
        let is_ip = matches!(ethertype, EtherType::IPV4 | EtherType::IPV6) && source.is_some();
        let protocol = match layer::transport_of(frame, ethertype, at) {
            Some((number, at)) if is_ip => on_ip(number, frame.get(at..).unwrap_or_default()),
            // Later fragments, and what has extensions that nobody knows.
            None if is_ip => Protocol::Ip(ipv4::View::new(packet).map_or(u8::MAX, |packet| packet.protocol())),
            _ => Protocol::Ethernet(ethertype),
        };
        Glimpse { protocol, source, destination }
    }
}

fn on_ip(number: u8, segment: &[u8]) -> Protocol {
    let ports = segment.first_chunk::<4>().map(|[a, b, c, d]| {
        let (source, destination) = (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]));
        source.min(destination)
    });
    match (number, ports) {
        (protocol::TCP, Some(port)) => Protocol::Tcp(port),
        (protocol::UDP, Some(port)) => Protocol::Udp(port),
        _ => Protocol::Ip(number),
    }
}

fn addresses(ethertype: EtherType, packet: &[u8]) -> Option<(IpAddr, IpAddr)> {
    match ethertype {
        EtherType::IPV4 => {
            ipv4::View::new(packet).ok().map(|packet| (packet.source().into(), packet.destination().into()))
        }
        EtherType::IPV6 => {
            ipv6::View::new(packet).ok().map(|packet| (packet.source().into(), packet.destination().into()))
        }
        EtherType::ARP => wire::arp::Arp::parse(packet).ok().map(|arp| (arp.sender_ip.into(), arp.target_ip.into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame with this type and this packet.
    fn frame(ethertype: u16, packet: &[u8]) -> Vec<u8> {
        [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &ethertype.to_be_bytes(), packet].concat()
    }

    /// RFC 791: version 4, five words, this protocol, this fragment offset, 192.0.2.9 to
    /// 192.0.2.10.
    fn ipv4(protocol: u8, fragment: u8, segment: &[u8]) -> Vec<u8> {
        let len = u8::try_from(20 + segment.len()).expect("short");
        let head = [0x45, 0, 0, len, 0, 1, 0, fragment, 64, protocol, 0, 0, 192, 0, 2, 9, 192, 0, 2, 10];
        [&head[..], segment].concat()
    }

    #[test]
    fn what_a_frame_is_for_is_told_by_its_headers() {
        let ports = [0x23, 0x8c, 0xc0, 0x01, 0, 0, 0, 0];
        for (bytes, word) in [
            (frame(0x0800, &ipv4(6, 0, &ports)), "tcp/9100"),
            (frame(0x0800, &ipv4(17, 0, &ports)), "udp/9100"),
            (frame(0x0800, &ipv4(1, 0, &ports)), "ip/1"),
            (frame(0x0800, &ipv4(17, 7, &ports)), "ip/17"),
            (frame(0x0800, &ipv4(6, 0, &[0x23])), "ip/6"),
            (frame(0x88cc, &[2, 7]), "ethertype/0x88cc"),
            (frame(0x8100, &[&[0, 5, 8, 0][..], &ipv4(6, 0, &ports)].concat()), "tcp/9100"),
            (vec![1, 2, 3], "ethertype/0x0000"),
        ] {
            assert_eq!(Glimpse::of(&bytes).protocol.to_string(), word, "{bytes:?}");
        }
        let glimpse = Glimpse::of(&frame(0x0800, &ipv4(6, 0, &ports)));
        let addresses = ["192.0.2.9", "192.0.2.10"].map(|text| text.parse::<IpAddr>().ok());
        assert_eq!([glimpse.source, glimpse.destination], addresses);
    }

    #[test]
    fn an_arp_message_is_named_with_both_its_addresses() {
        // RFC 826: a request of 192.0.2.9 for 192.0.2.10.
        let head = [0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2, 192, 0, 2, 9, 0, 0, 0, 0, 0, 0, 192, 0, 2, 10];
        let glimpse = Glimpse::of(&frame(0x0806, &head));
        assert_eq!(glimpse.protocol.to_string(), "arp");
        assert_eq!(glimpse.source, "192.0.2.9".parse().ok());
    }
}
