//! What the IP header of a trusted host says about its system, said alike for all: identification, hop limit, flow label.
//!
//! A packet that cannot be fragmented needs no identification (RFC 6864), so it gets zero, whatever it carries. Random numbers
//! would hide as much, but receivers and cards join segments to super-frames only where identifications count upwards or stand
//! still. A packet that can be fragmented, or is, gets one that is not used again soon ([`identification`]).

mod identification;

use std::net::IpAddr;

use bump::Side;
use wire::layer::protocol;

use crate::context::Context;
use crate::icmp::kind::Kind;
use crate::ip::{Ip, v4, v6};
use crate::keys::{Key, Subject};
use crate::packet::{Packet, Transport};
use crate::rule::Rule;
use identification::Identifications;

/// What the key is asked for here, beside identifications.
const FLOW_LABEL: u8 = 4;
/// Ports of protocols whose receivers take nothing that passed a router (RFC 5082): BGP, LDP (RFC 6720), and forwarding
/// detection (RFC 5881, RFC 7130).
const PORTS_OF_NEIGHBOURS: [u16; 5] = [179, 646, 3784, 3785, 6784];

/// Makes the IP headers of trusted hosts alike.
#[derive(Debug)]
pub(crate) struct Fingerprint {
    key: Key,
    identifications: Identifications,
}

impl Fingerprint {
    pub(crate) fn new(key: &Key) -> Fingerprint {
        Fingerprint { key: key.clone(), identifications: Identifications::new(key.clone()) }
    }

    /// Rewrites the header of a packet that leaves towards `to`.
    pub(crate) fn rewrite(&mut self, context: &mut Context<'_>, to: Side, packet: &mut Packet<'_>) {
        if to != Side::UNTRUSTED {
            return;
        }
        lower_hop_limit(context, packet);
        forbid_fragments(context, packet);
        let (is_whole, ports, packets) = (packet.longest_fragment.is_none(), packet.ports(), packets(packet));
        match &mut packet.ip {
            Ip::V4(header) => self.identify(context, header, is_whole, packets),
            Ip::V6(header) => {
                self.identify_fragments(context, header);
                self.label(context, header, ports);
            }
        }
    }

    fn identify(&mut self, context: &mut Context<'_>, header: &mut v4::Header, is_whole: bool, packets: u32) {
        if !context.on(Rule::Ipv4Identification) {
            return;
        }
        let identification = match header.fragment {
            Some(_) => self.identifications.same_v4(header),
            None if header.dont_fragment && is_whole => 0,
            None => self.identifications.next_v4(context.now, header, packets),
        };
        context.acts_if(header.identification != identification, Rule::Ipv4Identification);
        header.identification = identification;
    }

    fn identify_fragments(&mut self, context: &mut Context<'_>, header: &mut v6::Header) {
        let Some(came) = header.fragment.map(|fragment| fragment.identification) else { return };
        if !context.acts_if(true, Rule::Ipv6Identification) {
            return;
        }
        let identification = if header.is_fragment() {
            self.identifications.same_v6(header, came)
        } else {
            self.identifications.next_v6(context.now, header)
        };
        if let Some(fragment) = &mut header.fragment {
            fragment.identification = identification;
        }
    }

    /// One label for each flow, the same as long as it lives (RFC 6437), whatever the host made of it.
    fn label(&self, context: &mut Context<'_>, header: &mut v6::Header, ports: u32) {
        // Fragments that are not joined here show no ports, and must look like the flow of the first.
        if !context.on(Rule::Ipv6FlowLabel) || header.is_fragment() {
            return;
        }
        let (source, destination) = (header.source.into(), header.destination.into());
        let label = label_of(&self.key, source, destination, header.protocol, ports);
        context.acts_if(header.flow_label != label, Rule::Ipv6FlowLabel);
        header.flow_label = label;
    }
}

fn label_of(key: &Key, source: IpAddr, destination: IpAddr, protocol: u8, ports: u32) -> u32 {
    let flow = Subject::new(FLOW_LABEL).between(source, destination);
    let number = key.number(&flow.protocol(protocol).number(ports.into()));
    (number as u32 & 0x000f_ffff).max(1)
}

/// The label of all packets of a TCP connection from `source`; `ports` are those of source and
/// destination.
pub(crate) fn flow_label(key: &Key, source: IpAddr, destination: IpAddr, ports: u32) -> u32 {
    label_of(key, source, destination, protocol::TCP, ports)
}

/// Packets that `packet` stands for.
fn packets(packet: &Packet<'_>) -> u32 {
    packet.gso.map_or(1, |gso| (packet.transport.len() / usize::from(gso.size.max(1)) + 1) as u32)
}

/// Hosts begin with 64, 128 or 255. It is never raised, or a loop would not end; and what never leaves the link keeps it, since
/// its receivers ask for 255 to see that no router was passed.
fn lower_hop_limit(context: &mut Context<'_>, packet: &mut Packet<'_>) {
    let is_higher = packet.ip.hop_limit() > context.settings.hop_limit;
    if is_higher && !is_for_neighbours(packet) && context.acts_if(true, Rule::HopLimitUniform) {
        packet.ip.set_hop_limit(context.settings.hop_limit);
    }
}

/// Hosts differ in DF, and by it in the identification. What is no longer than its headers, 120 bytes at most, is cut on no path
/// that a host puts up with (552 bytes, RFC 1191, section 7.1), so that DF changes nothing for it.
fn forbid_fragments(context: &mut Context<'_>, packet: &mut Packet<'_>) {
    let Transport::Tcp(segment) = &packet.transport else { return };
    let Ip::V4(header) = &mut packet.ip else { return };
    let may = segment.data().is_empty() && header.fragment.is_none() && !context.on(Rule::Ipv4DontFragment);
    if may && context.acts_if(!header.dont_fragment, Rule::Ipv4SmallDontFragment) {
        // What came in fragments all the same leaves in one piece.
        (header.dont_fragment, packet.longest_fragment) = (true, None);
    }
}

/// Whether the packet is never meant to pass a router, by its kind or by its addresses.
fn is_for_neighbours(packet: &Packet<'_>) -> bool {
    let is_said_by_ports = || {
        let ports = packet.ports();
        matches!(packet.ip.protocol(), protocol::TCP | protocol::UDP)
            && has_port_of_neighbours([(ports >> 16) as u16, ports as u16])
    };
    if packet.ip.hop_limit() == u8::MAX && (is_discovery(packet) || is_said_by_ports()) {
        return true;
    }
    stays_on_link(packet.ip.source(), packet.ip.destination())
}

/// Whether packets from `source` to `destination` never pass a router.
pub(crate) fn stays_on_link(source: IpAddr, destination: IpAddr) -> bool {
    match (source, destination) {
        (_, IpAddr::V4(destination)) => destination.is_link_local() || matches!(destination.octets(), [224, 0, 0, _]),
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let is_link_multicast = matches!(destination.octets(), [0xff, scope, ..] if scope & 0x0f <= 2);
            source.is_unicast_link_local() || destination.is_unicast_link_local() || is_link_multicast
        }
        _ => false,
    }
}

/// Neighbours that know each other solicit and answer between their global addresses.
fn is_discovery(packet: &Packet<'_>) -> bool {
    let head = packet.transport.bytes().first_chunk().filter(|_| packet.ip.fragment().is_none());
    let kind = head.and_then(|[kind, code]| Kind::of(packet.ip.protocol(), *kind, *code));
    kind == Some(Kind::Neighbour)
}

/// Whether one of the ports is of a protocol between neighbours.
pub(crate) fn has_port_of_neighbours(ports: [u16; 2]) -> bool {
    ports.iter().any(|port| PORTS_OF_NEIGHBOURS.contains(port))
}
