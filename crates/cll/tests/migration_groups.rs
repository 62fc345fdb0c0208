//! Frames to groups and IPv6 while a site moves to sealed frames: hosts in every mode and hosts that were never touched hear each
//! other, nobody hears anything twice, and who has proved himself is not spoken for in clear.

mod common;

use std::net::Ipv6Addr;
use std::time::Duration;

use bump::DropReason;
use cll::limits::CLEAR_WAIT;
use cll::{Migration, Settings};
use common::{Lan, Site, arp_frame, ip, mac, settings, to_group};
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;
use wire::nd::{advertisement, group_mac, solicitation, solicited_node};
use wire::{EtherType, MacAddress};

const MDNS: MacAddress = MacAddress([1, 0, 0x5e, 0, 0, 0xfb]);
const STRANGER: u8 = 9;
const LOOSE: [Migration; 2] = [Migration::Observe, Migration::Prefer];

fn mode(mut settings: Settings, migration: Migration) -> Settings {
    settings.policy.migration = migration;
    settings
}

/// Hosts of one site in these modes.
fn lan_in(modes: &[Migration]) -> Lan {
    let mut site = Site::new(1);
    let all: Vec<_> = (1..).zip(modes).map(|(number, one)| mode(settings(site.identity(number)), *one)).collect();
    let mut lan = Lan::new(all);
    lan.pass(Duration::from_secs(1));
    lan
}

fn heard(lan: &Lan, host: usize, frame: &[u8]) -> usize {
    lan.hosts[host].delivered.iter().filter(|(delivered, _)| delivered == frame).count()
}

fn on_the_wire(lan: &Lan, frame: &[u8]) -> usize {
    lan.seen.iter().filter(|(_, seen)| seen == frame).count()
}

fn announcement_by_arp(number: u8) -> Vec<u8> {
    let (operation, sender_mac, sender_ip) = (Operation::Request, mac(number), ip(number));
    let arp = Arp { operation, sender_mac, sender_ip, target_mac: MacAddress::default(), target_ip: sender_ip };
    arp_frame(MacAddress::BROADCAST, arp)
}

/// An address that has nothing to do with a hardware address.
fn address(number: u8) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0x1234, 0x5678, 0x9abc, number.into())
}

fn ipv6_frame(source: MacAddress, destination: MacAddress, packet: &[u8]) -> Vec<u8> {
    let header = Header { destination, source, ethertype: EtherType::IPV6 };
    [&header.emit()[..], packet].concat()
}

/// Host `from` asks who has the address of host `to`.
fn solicits(from: u8, to: u8) -> Vec<u8> {
    let group = solicited_node(address(to));
    let packet = solicitation(address(from), mac(from), group, address(to));
    ipv6_frame(mac(from), group_mac(group), &packet)
}

/// Host `from` tells host 1 that it has the address of host `claimed`.
fn advertises(from: u8, claimed: u8) -> Vec<u8> {
    ipv6_frame(mac(from), mac(1), &advertisement(address(claimed), mac(from), address(1), false))
}

fn datagram(from: u8, source: u8, to: u8) -> Vec<u8> {
    let payload = [0x12, 0x34, 0x56, 0x78, 0, 9, 0, 0, 7];
    let header = wire::ipv6::header(address(source), address(to), 17, 64, payload.len() as u16);
    ipv6_frame(mac(from), mac(to), &[&header[..], &payload].concat())
}

/// The stack of host `number` says that it has its address, and so everybody learns it who believes it.
fn says_what_it_has(lan: &mut Lan, number: u8) {
    let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let packet = advertisement(address(number), mac(number), all_nodes, false);
    lan.send(usize::from(number) - 1, ipv6_frame(mac(number), group_mac(all_nodes), &packet));
}

#[test]
fn a_group_frame_leaves_signed_and_in_clear_and_is_heard_once() {
    for sender in Migration::ALL {
        let mut lan = lan_in(&[sender, Migration::Observe, Migration::Prefer, Migration::Enforce]);
        for host in [1, 2, 3] {
            lan.ask(host, 1);
        }
        for frame in [to_group(1, MDNS, b"hello"), to_group(1, MacAddress::BROADCAST, b"all"), announcement_by_arp(1)] {
            lan.send(0, frame.clone());
            assert_eq!(on_the_wire(&lan, &frame), usize::from(sender != Migration::Enforce), "{sender:?}");
            for host in [1, 2, 3] {
                assert_eq!(heard(&lan, host, &frame), 1, "{sender:?} to host {host}");
            }
        }
        let copies = if sender == Migration::Enforce { 0 } else { 3 };
        for host in [1, 2] {
            assert_eq!(lan.hosts[host].drops(DropReason::GroupDuplicate), copies, "{sender:?}");
            assert_eq!(lan.hosts[host].count("downgrade") + lan.hosts[host].count("ended"), 0, "{sender:?}");
        }
    }
}

#[test]
fn a_sender_that_has_proved_itself_to_groups_alone_is_heard_once_from_then_on() {
    for receiver in LOOSE {
        let mut lan = lan_in(&[Migration::Observe, receiver]);
        lan.send(0, to_group(1, MDNS, b"first"));
        assert_eq!(lan.hosts[1].count("established"), 0);
        let second = to_group(1, MDNS, b"second");
        lan.send(0, second.clone());
        assert_eq!(heard(&lan, 1, &second), 1, "{receiver:?}");
    }
}

#[test]
fn who_switched_signed_groups_off_sends_and_hears_them_in_clear() {
    let mut site = Site::new(1);
    let mut all = [1, 2].map(|number| mode(settings(site.identity(number)), Migration::Prefer));
    all.iter_mut().for_each(|settings| settings.broadcasting.carried = false);
    let mut lan = Lan::new(all);
    lan.ask(0, 2);
    let frame = to_group(1, MDNS, b"hello");
    lan.send(0, frame.clone());
    assert_eq!((on_the_wire(&lan, &frame), heard(&lan, 1, &frame)), (1, 1));
}

#[test]
fn a_host_that_fell_back_in_mode_observe_is_heard_in_clear_again() {
    let mut lan = lan_in(&[Migration::Observe, Migration::Observe]);
    lan.ask(0, 2);
    lan.wire = Box::new(|_, _, _| false);
    for number in 0..8_u8 {
        lan.inject(0, common::datagram(2, 1, &[number]));
        lan.pass(Duration::from_millis(200));
    }
    assert!(!lan.hosts[0].established_with(2));
    let frame = to_group(2, MDNS, b"in clear");
    lan.inject(0, frame.clone());
    assert_eq!(heard(&lan, 0, &frame), 1);
}

#[test]
fn a_copy_in_clear_cannot_speak_for_another() {
    let mut lan = lan_in(&[Migration::Prefer, Migration::Enforce]);
    lan.ask(0, 2);
    let lie =
        [&to_group(STRANGER, MDNS, b"lie")[..26], &ip(2).octets(), &to_group(STRANGER, MDNS, b"lie")[30..]].concat();
    lan.inject(0, lie.clone());
    assert_eq!((heard(&lan, 0, &lie), lan.hosts[0].drops(DropReason::Downgrade)), (0, 1));
}

#[test]
fn an_ipv6_host_without_cll_is_talked_to_in_clear_both_ways() {
    for migration in LOOSE {
        let mut lan = lan_in(&[migration]);
        says_what_it_has(&mut lan, 1);
        let question = solicits(1, STRANGER);
        lan.send(0, question.clone());
        assert_eq!(on_the_wire(&lan, &question), usize::from(migration == Migration::Observe), "{migration:?}");
        lan.pass(CLEAR_WAIT);
        assert_eq!(on_the_wire(&lan, &question), 1, "{migration:?}");
        let answer = advertises(STRANGER, STRANGER);
        lan.inject(0, answer.clone());
        assert_eq!(heard(&lan, 0, &answer), 1, "{migration:?}");
        let (there, back) = (datagram(1, 1, STRANGER), datagram(STRANGER, STRANGER, 1));
        lan.send(0, there.clone());
        lan.inject(0, back.clone());
        assert_eq!((on_the_wire(&lan, &there), heard(&lan, 0, &back)), (1, 1), "{migration:?}");
        // It asks, too, and is answered in clear.
        lan.inject(0, solicits(STRANGER, 1));
        assert_eq!(heard(&lan, 0, &solicits(STRANGER, 1)), 1, "{migration:?}");
        let reply = ipv6_frame(mac(1), mac(STRANGER), &advertisement(address(1), mac(1), address(STRANGER), false));
        lan.send(0, reply.clone());
        assert_eq!(on_the_wire(&lan, &reply), 1, "{migration:?}");
    }
}

#[test]
fn in_mode_enforce_no_ipv6_passes_in_clear() {
    let mut lan = lan_in(&[Migration::Enforce]);
    says_what_it_has(&mut lan, 1);
    lan.seen.clear();
    lan.send(0, solicits(1, STRANGER));
    for frame in [advertises(STRANGER, STRANGER), datagram(STRANGER, STRANGER, 1), solicits(STRANGER, 1)] {
        lan.inject(0, frame);
    }
    lan.pass(CLEAR_WAIT);
    assert!(lan.hosts[0].delivered.is_empty());
    assert_eq!(lan.hosts[0].drops(DropReason::Unsealed), 3);
    assert!(lan.seen.iter().all(|(_, frame)| frame[12..14] != EtherType::IPV6.0.to_be_bytes()));
}

#[test]
fn an_ipv6_address_of_a_host_that_has_proved_itself_is_not_believed_in_clear() {
    for (migration, heard_lies) in [(Migration::Prefer, 0), (Migration::Observe, 1)] {
        let mut lan = lan_in(&[migration, Migration::Enforce]);
        for number in [1, 2] {
            says_what_it_has(&mut lan, number);
        }
        lan.ask(0, 2);
        lan.send(1, datagram(2, 2, 1));
        assert_eq!(heard(&lan, 0, &datagram(2, 2, 1)), 1, "sealed");
        lan.wire = Box::new(|_, _, _| false);
        for lie in [advertises(STRANGER, 2), advertises(2, 2), datagram(STRANGER, 2, 1)] {
            lan.inject(0, lie.clone());
            assert_eq!(heard(&lan, 0, &lie), heard_lies, "{migration:?}");
        }
        let refused = lan.hosts[0].drops(DropReason::Downgrade);
        assert_eq!(refused, if heard_lies == 0 { 3 } else { 0 }, "{migration:?}");
        // Nor is our own stack told that somebody else has its address.
        lan.inject(0, advertises(STRANGER, 1));
        assert_eq!(heard(&lan, 0, &advertises(STRANGER, 1)), 0, "{migration:?}");
    }
}
