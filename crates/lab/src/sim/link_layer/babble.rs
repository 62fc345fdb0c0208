//! What real stacks also send and the link layer does not carry: it must be dropped by name, and none of it may leave.

use std::net::Ipv4Addr;

use bump::{Checksum, Generator, Gso, GsoKind, Meta, VlanTag};
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;
use wire::{EtherType, MacAddress};

use super::datagram::{EXPERIMENT, Number, Packed, Parcel, Shape};
use super::scenario::Scenario;
use super::site;
use super::stack::{Output, arp_frame};

/// Longer than any frame that fits once it is sealed.
const TOO_LONG: usize = 1_500;

/// A frame that the stack of `host` sends and that must not arrive anywhere.
pub fn babble(random: &mut Generator, scenario: &Scenario, host: usize, number: Number) -> Output {
    let own = scenario.hosts[host].identity;
    let other = scenario.hosts[random.below(scenario.hosts.len() as u64) as usize].identity;
    let to = if other < site::POOL && other != own { site::mac(other) } else { MacAddress([2, 0, 0, 0, 9, 9]) };
    let from = site::mac(own);
    // The last two are held for a handshake first, which a clean run has no need for.
    match random.below(if scenario.clean { 6 } else { 8 }) {
        0 => plain(to, from, EtherType::IPV6, vec![0x60; 60]),
        1 => plain(MacAddress([0x33, 0x33, 0, 0, 0, 1]), from, EtherType::IPV6, vec![0x60; 60]),
        2 => datagram(number, own, Ipv4Addr::BROADCAST, MacAddress::BROADCAST, 67),
        3 => probe(own, Ipv4Addr::UNSPECIFIED, site::ip(own)),
        4 => probe(own, Ipv4Addr::new(192, 0, 2, 1), site::ip(other)),
        5 => plain(to, MacAddress([2, 0, 0, 0, 8, 8]), EXPERIMENT, vec![7; 60]),
        6 => plain(to, from, EXPERIMENT, vec![8; TOO_LONG]),
        _ => contradiction(random, to, from),
    }
}

fn output(bytes: Vec<u8>, meta: Meta) -> Output {
    Output::Datagrams(Packed { bytes, meta, pieces: Vec::new() })
}

fn plain(destination: MacAddress, source: MacAddress, ethertype: EtherType, payload: Vec<u8>) -> Output {
    let header = Header { destination, source, ethertype };
    output([&header.emit()[..], &payload].concat(), Meta::plain())
}

fn datagram(number: Number, own: usize, destination: Ipv4Addr, to: MacAddress, port: u16) -> Output {
    let shape = Shape::Udp { payload_len: 60, partial: false };
    let parcel = Parcel { first: number, shape, source: site::ip(own), destination, port, secret: false };
    output(parcel.pack(site::mac(own), to).bytes, Meta::plain())
}

/// An address probe, or a question in the name of an address that is not ours.
fn probe(own: usize, sender_ip: Ipv4Addr, target_ip: Ipv4Addr) -> Output {
    let target_mac = MacAddress::ZERO;
    let question = Arp { operation: Operation::Request, sender_mac: site::mac(own), sender_ip, target_mac, target_ip };
    output(arp_frame(MacAddress::BROADCAST, &question), Meta::plain())
}

/// Metadata that does not fit the frame.
fn contradiction(random: &mut Generator, to: MacAddress, from: MacAddress) -> Output {
    let header = Header { destination: to, source: from, ethertype: EXPERIMENT };
    let bytes = [&header.emit()[..], &[9; 200]].concat();
    let gso = Gso { kind: GsoKind::TcpV4, size: random.below(100) as u16, ecn: false };
    let meta = match random.below(3) {
        0 => Meta { gso: Some(gso), ..Meta::plain() },
        1 => Meta { checksum: Checksum::Partial { start: 900, offset: 6 }, ..Meta::plain() },
        _ => Meta { vlan: Some(VlanTag { tpid: 0x8100, tci: 7 }), ..Meta::plain() },
    };
    output(bytes, meta)
}
