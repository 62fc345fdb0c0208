//! The attacker as a neighbour: it says where it is when a receiver asks, so that no receiver needs to be told in its own way.

use wire::EtherType;
use wire::arp::{Arp, Operation};
use wire::checksum::pseudo_header_v6;
use wire::icmp::PROTOCOL_V6;
use wire::layer;

use super::packet::{ATTACKER_MAC, ATTACKER_V4, ATTACKER_V6, Packet, RECEIVER_MAC, RECEIVER_V6, Version};

/// Types of ICMPv6: who asks for a neighbour, and the answer (RFC 4861, section 4).
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Solicited, and override what was known.
const FLAGS: u8 = 0x60;
const IPV6_LEN: usize = 40;

/// What a frame of a receiver is, as far as its link goes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    /// It asks for the attacker; this answers it.
    Question(Vec<u8>),
    /// It concerns its link alone.
    Chatter,
    /// It is for the attacker.
    Traffic,
}

/// Looks at a frame that a receiver sent.
pub(crate) fn judge(frame: &[u8]) -> Said {
    match layer::network_layer(frame) {
        Some((EtherType::ARP, at)) => question_v4(&frame[at..]).map_or(Said::Chatter, Said::Question),
        Some((EtherType::IPV6, at)) if layer::transport_of(frame, EtherType::IPV6, at).is_some_and(is_icmp) => {
            question_v6(&frame[at..]).map_or(Said::Chatter, Said::Question)
        }
        Some((EtherType::IPV4 | EtherType::IPV6, _)) if frame[..6] == ATTACKER_MAC => Said::Traffic,
        _ => Said::Chatter,
    }
}

fn is_icmp((protocol, _): (u8, usize)) -> bool {
    protocol == PROTOCOL_V6
}

fn question_v4(message: &[u8]) -> Option<Vec<u8>> {
    let asked = Arp::parse(message).ok()?;
    let is_for_us = asked.operation == Operation::Request && asked.target_ip == ATTACKER_V4;
    let answer = Arp {
        operation: Operation::Reply,
        sender_mac: wire::MacAddress(ATTACKER_MAC),
        sender_ip: ATTACKER_V4,
        target_mac: asked.sender_mac,
        target_ip: asked.sender_ip,
    };
    is_for_us.then(|| [&RECEIVER_MAC[..], &ATTACKER_MAC, &[8, 6], &answer.emit()[..]].concat())
}

fn question_v6(packet: &[u8]) -> Option<Vec<u8>> {
    let message = packet.get(IPV6_LEN..)?;
    let is_for_us = message.first() == Some(&SOLICITATION) && message.get(8..24)? == ATTACKER_V6.octets();
    let head = [&[ADVERTISEMENT, 0, 0, 0, FLAGS, 0, 0, 0][..], &ATTACKER_V6.octets(), &[2, 1], &ATTACKER_MAC];
    let mut answer = head.concat();
    let pseudo = pseudo_header_v6(ATTACKER_V6, RECEIVER_V6, PROTOCOL_V6, answer.len() as u32);
    let sum = pseudo.bytes(&answer).checksum();
    answer[2..4].copy_from_slice(&sum.to_be_bytes());
    let packet = Packet { hop_limit: 255, ..Packet::new(Version::V6, PROTOCOL_V6, 0, answer) };
    is_for_us.then(|| packet.frame())
}
