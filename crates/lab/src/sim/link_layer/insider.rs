//! An enrolled host whose stack lies about who it is. Its own link layer is weakened so that it lets the lies out; whether
//! they get in is for the others' link layers to decide.

use bump::{Generator, Meta};
use wire::arp::{Arp, Operation};
use wire::ethernet::HEADER_LEN as ETHERNET_LEN;
use wire::{EtherType, MacAddress};

use super::datagram::{Number, Packed, Parcel, Shape};
use super::scenario::Scenario;
use super::site;
use super::stack::{Output, arp_frame};

/// A lie of `host` to one of `victims`, in the name of another of them.
pub fn lie(
    random: &mut Generator,
    scenario: &Scenario,
    host: usize,
    victims: &[usize],
    number: Number,
) -> Option<Output> {
    let mut any = || victims.get(random.below(victims.len() as u64) as usize).map(|&at| scenario.hosts[at].identity);
    let (target, claimed) = (any()?, any()?);
    if target == claimed {
        return None;
    }
    let own = scenario.hosts[host].identity;
    Some(match random.below(7) {
        0 | 1 => datagram(own, target, claimed, number, false),
        2 => datagram(own, target, claimed, number, true),
        3 => arp(own, target, claimed, Operation::Reply, site::mac(target)),
        4 => arp(own, target, claimed, Operation::Request, site::mac(target)),
        5 => to_group(datagram(own, target, claimed, number, false)),
        _ => arp(own, target, claimed, Operation::Request, MacAddress::BROADCAST),
    })
}

fn datagram(own: usize, target: usize, claimed: usize, number: Number, tagged: bool) -> Output {
    let parcel = Parcel {
        first: number,
        shape: Shape::Udp { payload_len: 100, partial: false },
        source: site::ip(claimed),
        destination: site::ip(target),
        port: 53,
        secret: false,
    };
    let mut bytes = parcel.pack(site::mac(own), site::mac(target)).bytes;
    if tagged {
        // A VLAN tag in front of the packet must not hide its source.
        let at = ETHERNET_LEN - 2;
        bytes.splice(at..at, [EtherType::VLAN.0.to_be_bytes(), [0, 7]].concat());
    }
    Output::Datagrams(Packed { pieces: vec![(number, bytes.clone())], bytes, meta: Meta::plain() })
}

/// The same to all.
fn to_group(mut output: Output) -> Output {
    if let Output::Datagrams(packed) = &mut output {
        for bytes in packed.pieces.iter_mut().map(|(_, bytes)| bytes).chain([&mut packed.bytes]) {
            bytes[..6].copy_from_slice(&MacAddress::BROADCAST.0);
        }
    }
    output
}

fn arp(own: usize, target: usize, claimed: usize, operation: Operation, destination: MacAddress) -> Output {
    let message = Arp {
        operation,
        sender_mac: site::mac(own),
        sender_ip: site::ip(claimed),
        target_mac: site::mac(target),
        target_ip: site::ip(target),
    };
    Output::Arp(arp_frame(destination, &message))
}
