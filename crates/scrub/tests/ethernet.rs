//! The link layer: what passes by which rule, and that tags and trailers leave as they should.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]
#![allow(dead_code, reason = "each test uses its share of the helpers")]

mod icmp;

use bump::{DropReason, Meta, Side, VlanTag};
use std::net::{Ipv4Addr, Ipv6Addr};

use icmp::{Gate, INSIDE, INSIDE_V6, Ip, OUTSIDE, OUTSIDE_V6, datagram};
use scrub::settings::Network;
use scrub::{Action, Preset, Rule, Settings};

const UNTRUSTED: Side = Side::UNTRUSTED;
/// Tag protocol identifiers of customer and service tags.
const CUSTOMER: [u8; 2] = [0x81, 0x00];
const SERVICE: [u8; 2] = [0x88, 0xa8];

fn gate(preset: Preset) -> Gate {
    Gate::new(Settings::preset(preset))
}

/// An IPv4 packet behind these tags.
fn tagged(tags: &[([u8; 2], [u8; 2])]) -> Vec<u8> {
    let plain = datagram(OUTSIDE, INSIDE, [53, 5353], b"answer").frame();
    let tags: Vec<u8> = tags.iter().flat_map(|(tpid, tci)| [*tpid, *tci].concat()).collect();
    [&plain[..12], &tags, &plain[12..]].concat()
}

/// A frame of 802.2 that says `len` and holds `rest`.
fn length_frame(len: u16, rest: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &len.to_be_bytes(), rest].concat()
}

fn snap(organisation: u8, ethertype: [u8; 2], packet: &[u8]) -> Vec<u8> {
    let rest = [&[0xaa, 0xaa, 3, 0, 0, organisation][..], &ethertype, packet].concat();
    length_frame(rest.len() as u16, &rest)
}

fn out(gate: &mut Gate, frame: &[u8], meta: Meta) -> Option<(Vec<u8>, Meta)> {
    gate.pass_with(UNTRUSTED, frame, meta).pop().map(|(_, frame, meta)| (frame, meta))
}

#[test]
fn tags_leave_as_they_came_in_the_bytes_and_beside_them() {
    let one = tagged(&[(CUSTOMER, [0xe0, 7])]);
    let two = tagged(&[(SERVICE, [0x30, 9]), (CUSTOMER, [0xe0, 7])]);
    let beside = Meta { vlan: Some(VlanTag { tpid: 0x88a8, tci: 0x3009 }), ..Meta::plain() };
    for preset in [Preset::Paper, Preset::Balanced] {
        // The paper's preset clears DF in the packet, which is another matter.
        let mut settings = Settings::preset(preset);
        settings.rules.set(Rule::Ipv4DontFragment, Action::Off);
        for (frame, meta) in [(&one, Meta::plain()), (&two, Meta::plain()), (&one, beside)] {
            assert_eq!(out(&mut Gate::new(settings.clone()), frame, meta), Some((frame.clone(), meta)));
        }
    }
}

#[test]
fn what_stands_behind_three_tags_does_not_leave() {
    let three = tagged(&[(SERVICE, [0, 9]), (SERVICE, [0, 8]), (CUSTOMER, [0, 7])]);
    let mut balanced = gate(Preset::Balanced);
    assert_eq!(balanced.pass(UNTRUSTED, &three), Err(DropReason::EthertypeNotListed));
    let beside = Meta { vlan: Some(VlanTag { tpid: 0x88a8, tci: 9 }), ..Meta::plain() };
    let two = tagged(&[(SERVICE, [0, 8]), (CUSTOMER, [0, 7])]);
    assert_eq!(out(&mut balanced, &two, beside), None, "the third is beside the bytes");
    assert_eq!(balanced.ledger().drops(DropReason::EthertypeNotListed), 2);
    assert_eq!(out(&mut gate(Preset::Paper), &three, Meta::plain()), Some((three.clone(), Meta::plain())));
}

#[test]
fn a_frame_that_ends_in_its_link_header_is_a_runt() {
    let two = tagged(&[(SERVICE, [0, 9]), (CUSTOMER, [0, 7])]);
    for len in 0..22 {
        let reason = gate(Preset::Balanced).pass(UNTRUSTED, &two[..len]);
        assert_eq!(reason, Err(DropReason::Runt), "{len} bytes");
    }
}

#[test]
fn a_packet_to_one_host_in_a_frame_to_all_does_not_leave() {
    let outcome = |preset, destination: [u8; 4], protocol| {
        let mut frame = Ip::new(OUTSIDE, Ipv4Addr::from(destination), protocol, vec![0; 20]).frame();
        frame[..6].fill(0xff);
        gate(preset).pass(UNTRUSTED, &frame).err()
    };
    for (host, protocol, reason) in [
        ([192, 0, 2, 10], 253, Some(DropReason::IpAddress)),
        ([192, 0, 2, 254], 253, Some(DropReason::IpAddress)),
        // The last of a subnet of any size may be all of it, but not for TCP.
        ([192, 0, 2, 255], 253, None),
        ([192, 0, 2, 7], 253, None),
        ([192, 0, 2, 255], 6, Some(DropReason::IpAddress)),
        ([255; 4], 253, None),
        ([239, 1, 2, 4], 253, None),
    ] {
        assert_eq!(outcome(Preset::Balanced, host, protocol), reason, "{host:?} {protocol}");
        assert_ne!(outcome(Preset::Paper, host, protocol), Some(DropReason::IpAddress));
    }
    let to_all = |destination: Ipv6Addr| {
        let mut frame = Ip::new(OUTSIDE_V6, destination, 253, vec![0; 20]).frame();
        frame[..6].fill(0xff);
        gate(Preset::Balanced).pass(UNTRUSTED, &frame).err()
    };
    assert_eq!(to_all(INSIDE_V6), Some(DropReason::IpAddress));
    assert_eq!(to_all(Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 9)), None);
}

/// Where the subnets are known, hosts whose addresses end as a last one could are hosts.
#[test]
fn of_a_known_subnet_only_the_last_address_is_for_all() {
    let network = |address: [u8; 4], prefix_len| Network { address: Ipv4Addr::from(address).into(), prefix_len };
    let subnets = vec![network([192, 0, 2, 64], 26), network([198, 51, 100, 0], 22), network([203, 0, 113, 6], 31)];
    let passes = |destination: [u8; 4], protocol| {
        let mut frame = Ip::new(OUTSIDE, Ipv4Addr::from(destination), protocol, vec![0; 20]).frame();
        frame[..6].fill(0xff);
        let settings = Settings { subnets: subnets.clone(), ..Settings::preset(Preset::Balanced) };
        Gate::new(settings).pass(UNTRUSTED, &frame).is_ok()
    };
    for (host, is_for_all) in [
        ([192, 0, 2, 127], true),
        ([192, 0, 2, 67], false),
        ([192, 0, 2, 95], false),
        ([198, 51, 103, 255], true),
        ([198, 51, 100, 255], false),
        ([203, 0, 113, 7], false),
        ([255; 4], true),
        // Of a subnet that nobody listed nothing is known.
        ([192, 0, 2, 191], true),
        ([192, 0, 2, 190], false),
    ] {
        assert_eq!(passes(host, 253), is_for_all, "{host:?}");
    }
    assert!(!passes([192, 0, 2, 127], 6), "TCP speaks to one host");
}

#[test]
fn strict_clears_the_bit_of_customer_tags_that_had_two_meanings() {
    let tags = |service: u8, customer: u8| tagged(&[(SERVICE, [service, 9]), (CUSTOMER, [customer, 7])]);
    let came = tags(0x30, 0xf0);
    let mut strict = gate(Preset::Strict);
    assert_eq!(out(&mut strict, &came, Meta::plain()), Some((tags(0x30, 0xe0), Meta::plain())));
    let meta = |tci| Meta { vlan: Some(VlanTag { tpid: 0x8100, tci }), ..Meta::plain() };
    assert_eq!(out(&mut strict, &tagged(&[]), meta(0xf007)), Some((tagged(&[]), meta(0xe007))));
    assert_eq!(strict.count(Rule::VlanDropEligible), 2);
    assert_eq!(out(&mut gate(Preset::Balanced), &came, Meta::plain()), Some((came.clone(), Meta::plain())));
}

#[test]
fn ip_in_snap_does_not_leave() {
    let packet = datagram(OUTSIDE, INSIDE, [53, 5353], b"answer").packet();
    for (organisation, ethertype) in [(0, [8, 0]), (0, [0x86, 0xdd]), (0, [8, 6]), (0xf8, [8, 0]), (0, CUSTOMER)] {
        let wrapped = snap(organisation, ethertype, &packet);
        let outcome = gate(Preset::Balanced).pass(UNTRUSTED, &wrapped);
        assert_eq!(outcome, Err(DropReason::EthertypeNotListed), "{organisation:x} {ethertype:02x?}");
        assert!(out(&mut gate(Preset::Paper), &wrapped, Meta::plain()).is_some());
    }
    let discovery = snap(0x0c, [0x20, 0], b"some switch's own protocol");
    assert_eq!(gate(Preset::Balanced).pass(UNTRUSTED, &discovery), Ok(discovery.clone()));
}

#[test]
fn a_frame_that_says_its_length_is_cut_to_it() {
    // A spanning tree hello: 38 bytes of 802.2, padded by whoever sent it.
    let hello = [0x42; 38];
    let padded = [&hello[..], b"hidden!!"].concat();
    assert_eq!(gate(Preset::Balanced).pass(UNTRUSTED, &length_frame(38, &padded)), Ok(length_frame(38, &hello)));
    let lying = length_frame(1000, &hello);
    assert_eq!(gate(Preset::Balanced).pass(UNTRUSTED, &lying), Ok(lying.clone()), "who reads it finds nothing more");
}

#[test]
fn only_strict_asks_for_a_list_of_ethertypes() {
    let frame = |ethertype: u16| [&[2; 12][..], &ethertype.to_be_bytes(), &[1; 46]].concat();
    for (ethertype, passes) in [(0x0806, true), (0x888e, true), (0x88cc, true), (0x88f7, true), (0x8892, false)] {
        let expected = if passes { Ok(frame(ethertype)) } else { Err(DropReason::EthertypeNotListed) };
        assert_eq!(gate(Preset::Strict).pass(UNTRUSTED, &frame(ethertype)), expected, "{ethertype:04x}");
        assert_eq!(gate(Preset::Balanced).pass(UNTRUSTED, &frame(ethertype)), Ok(frame(ethertype)));
    }
}

#[test]
fn what_follows_an_ip_packet_in_its_frame_does_not_leave() {
    let honest = datagram(OUTSIDE, INSIDE, [53, 5353], b"answer").frame();
    let padded = [&honest[..], b"hidden"].concat();
    assert_eq!(gate(Preset::Balanced).pass(UNTRUSTED, &padded), Ok(honest));
}
