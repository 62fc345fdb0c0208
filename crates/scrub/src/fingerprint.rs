//! What the IP header of a trusted host says about its system, said alike for all: identification, hop limit, flow label.
//!
//! **Identification.** A packet that cannot be fragmented needs none (RFC 6864), so it gets zero, whatever it carries. Random
//! numbers would hide as much, but receivers and cards join segments to super-frames only where identifications count upwards
//! or stand still. A packet that can be fragmented gets the next of all 65,536 numbers in an order that depends on source,
//! destination and protocol and that nobody without the key can tell, so that none comes back while fragments of the last one
//! may be under way.

use std::net::{IpAddr, Ipv4Addr};

use bump::Side;

use crate::context::Context;
use crate::icmp::kind::Kind;
use crate::ip::{Ip, v4, v6};
use crate::keys::{Key, Subject};
use crate::limits;
use crate::packet::Packet;
use crate::rule::Rule;

/// What the key is asked for here.
const START: u8 = 1;
const TUPLE: u8 = 2;
const ROUND: u8 = 3;
const FLOW_LABEL: u8 = 4;
/// Rounds of the cipher that orders the identifications of a tuple.
const ROUNDS: u8 = 6;

/// Makes the IP headers of trusted hosts alike.
#[derive(Debug)]
pub(crate) struct Fingerprint {
    key: Key,
    /// Next places in the orders of identifications; empty before the first is needed.
    counters: Vec<u16>,
}

impl Fingerprint {
    pub(crate) fn new(key: &Key) -> Fingerprint {
        Fingerprint { key: key.clone(), counters: Vec::new() }
    }

    /// Rewrites the header of a packet that leaves towards `to`.
    pub(crate) fn rewrite(&mut self, context: &mut Context<'_>, to: Side, packet: &mut Packet<'_>) {
        if to != Side::UNTRUSTED {
            return;
        }
        lower_hop_limit(context, packet);
        let segments = segments(packet);
        let (ports, is_whole) = (packet.ports(), packet.longest_fragment.is_none());
        match &mut packet.ip {
            Ip::V4(header) => self.identify(context, header, is_whole, segments),
            Ip::V6(header) => self.label(context, header, ports),
        }
    }

    fn identify(&mut self, context: &mut Context<'_>, header: &mut v4::Header, is_whole: bool, segments: u16) {
        if !context.on(Rule::Ipv4Identification) {
            return;
        }
        let identification = if header.fragment.is_some() {
            // One of several that are not joined here: they must go on having the same number.
            let tuple = self.tuple(header.source, header.destination, header.protocol);
            self.nth(tuple, header.identification)
        } else if header.dont_fragment && is_whole {
            0
        } else {
            self.next(context, header, segments)
        };
        context.acts_if(header.identification != identification, Rule::Ipv4Identification);
        header.identification = identification;
    }

    /// The next identification of the packet's hosts and protocol; a super-frame takes as many as it has segments.
    fn next(&mut self, context: &Context<'_>, header: &v4::Header, segments: u16) -> u16 {
        if self.counters.is_empty() {
            // Where the last run ended is not known, so this one begins elsewhere.
            let start = self.key.number(&Subject::new(START).number(context.now.as_nanos())) as u16;
            self.counters = vec![start; limits::IDENTIFICATION_COUNTERS];
        }
        let tuple = self.tuple(header.source, header.destination, header.protocol);
        let shared = (tuple % limits::IDENTIFICATION_COUNTERS as u64) as usize;
        let count = self.counters[shared];
        self.counters[shared] = count.wrapping_add(segments);
        self.nth(tuple, count)
    }

    fn tuple(&self, source: Ipv4Addr, destination: Ipv4Addr, protocol: u8) -> u64 {
        self.key.number(&Subject::new(TUPLE).between(source.into(), destination.into()).protocol(protocol))
    }

    /// Number `count` in the order of `tuple`: a Feistel cipher over 16 bits, so no number comes twice.
    fn nth(&self, tuple: u64, count: u16) -> u16 {
        let [mut left, mut right] = count.to_be_bytes();
        for round in 0..ROUNDS {
            let mixed = self.key.number(&Subject::new(ROUND).protocol(round).protocol(right).number(tuple));
            (left, right) = (right, left ^ mixed as u8);
        }
        u16::from_be_bytes([left, right])
    }

    /// One label for each flow, the same as long as it lives (RFC 6437), whatever the host made of it.
    fn label(&self, context: &mut Context<'_>, header: &mut v6::Header, ports: u32) {
        // Fragments that are not joined here show no ports, and must look like the flow of the first.
        if !context.on(Rule::Ipv6FlowLabel) || header.is_fragment() {
            return;
        }
        let flow = Subject::new(FLOW_LABEL).between(header.source.into(), header.destination.into());
        let number = self.key.number(&flow.protocol(header.protocol).number(ports.into()));
        let label = (number as u32 & 0x000f_ffff).max(1);
        context.acts_if(header.flow_label != label, Rule::Ipv6FlowLabel);
        header.flow_label = label;
    }
}

/// Packets that `packet` stands for.
fn segments(packet: &Packet<'_>) -> u16 {
    packet.gso.map_or(1, |gso| (packet.transport.len() / usize::from(gso.size.max(1)) + 1) as u16)
}

/// Hosts begin with 64, 128 or 255. It is never raised, or a loop would not end; and what never leaves the link keeps it, since
/// its receivers ask for 255 to see that no router was passed (RFC 4861, RFC 5798, RFC 6762).
fn lower_hop_limit(context: &mut Context<'_>, packet: &mut Packet<'_>) {
    let is_higher = packet.ip.hop_limit() > context.settings.hop_limit;
    if is_higher && !stays_on_link(packet) && context.acts_if(true, Rule::HopLimitUniform) {
        packet.ip.set_hop_limit(context.settings.hop_limit);
    }
}

fn stays_on_link(packet: &Packet<'_>) -> bool {
    let kind =
        packet.transport.bytes().first_chunk().and_then(|[kind, code]| Kind::of(packet.ip.protocol(), *kind, *code));
    // Neighbours that know each other solicit and answer between their global addresses.
    if kind == Some(Kind::Neighbour) {
        return true;
    }
    match (packet.ip.source(), packet.ip.destination()) {
        (_, IpAddr::V4(destination)) => destination.is_link_local() || matches!(destination.octets(), [224, 0, 0, _]),
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let is_link_multicast = matches!(destination.octets(), [0xff, scope, ..] if scope & 0x0f <= 2);
            source.is_unicast_link_local() || destination.is_unicast_link_local() || is_link_multicast
        }
        _ => false,
    }
}
