//! IPv6 between hosts of one site: neighbour discovery opens and completes handshakes, and hosts speak for their own
//! addresses only.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests fail like tests")]

mod common;

use std::net::Ipv6Addr;
use std::time::Duration;

use bump::{DropReason, Meta};
use cll::Settings;
use common::{Lan, Site, ip, mac, request, settings};
use wire::cll::PacketType;
use wire::ethernet::Header;
use wire::nd::{Kind, Message, advertisement, group_mac, solicitation, solicited_node};
use wire::{EtherType, MacAddress};

const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// The link-local address that host `number` makes of its hardware address.
fn local(number: u8) -> Ipv6Addr {
    format!("fe80::ff:fe00:{number:x}").parse().unwrap()
}

/// An address that has nothing to do with a hardware address.
fn free(number: u8) -> Ipv6Addr {
    format!("2001:db8::1234:5678:9abc:{number:x}").parse().unwrap()
}

fn frame(source: MacAddress, destination: MacAddress, packet: &[u8]) -> Vec<u8> {
    let header = Header { destination, source, ethertype: EtherType::IPV6 };
    [&header.emit()[..], packet].concat()
}

/// A UDP datagram, without a checksum, which nobody here looks at.
fn datagram(from: u8, source: Ipv6Addr, to: u8, destination: Ipv6Addr) -> Vec<u8> {
    let payload = [0x12, 0x34, 0x56, 0x78, 0, 9, 0, 0, 7];
    let header = wire::ipv6::header(source, destination, 17, 64, payload.len() as u16);
    frame(mac(from), mac(to), &[&header[..], &payload].concat())
}

/// Host `from` asks who has `target`.
fn question(from: u8, source: Ipv6Addr, target: Ipv6Addr) -> Vec<u8> {
    let group = solicited_node(target);
    frame(mac(from), group_mac(group), &solicitation(source, mac(from), group, target))
}

/// Host `from` says on its own that it has `address`.
fn announcement(from: u8, address: Ipv6Addr) -> Vec<u8> {
    frame(mac(from), group_mac(ALL_NODES), &advertisement(address, mac(from), ALL_NODES, false))
}

/// The neighbour discovery in the last frame that a stack was given.
fn last_heard(lan: &Lan, host: usize) -> (Header, Message) {
    let (frame, _) = lan.hosts[host].delivered.last().expect("a frame");
    let (header, packet) = Header::parse(frame).unwrap();
    assert_eq!(header.ethertype, EtherType::IPV6);
    (header, Message::parse(&packet[wire::ipv6::HEADER_LEN..]).unwrap())
}

/// Hosts 1 to `count`, which have no IPv4 address, and whose stacks have said what they have.
fn lan_without_ipv4(count: u8) -> Lan {
    let mut site = Site::new(1);
    let bare = |number: u8| authority::Request::new(&format!("h{number}"), mac(number), Vec::new()).unwrap();
    let all: Vec<_> =
        (1..=count).map(|number| settings(site.identity_for(bare(number), common::START_UNIX_S))).collect();
    let mut lan = Lan::new(all);
    lan.pass(seconds(1));
    for number in 1..=count {
        for address in [local(number), free(number)] {
            lan.send(usize::from(number) - 1, announcement(number, address));
        }
    }
    lan
}

/// The stack of host `asks` resolves `target`, which the stack of host `has` answers for.
fn resolve(lan: &mut Lan, (asks, source): (u8, Ipv6Addr), (has, target): (u8, Ipv6Addr)) {
    lan.send(usize::from(asks) - 1, question(asks, source, target));
    lan.send(usize::from(has) - 1, frame(mac(has), mac(asks), &advertisement(target, mac(has), source, false)));
}

#[test]
fn a_solicitation_opens_a_handshake_and_an_advertisement_completes_it() {
    let mut lan = lan_without_ipv4(2);
    lan.send(0, question(1, local(1), local(2)));
    let (header, asked) = last_heard(&lan, 1);
    assert_eq!((header.source, header.destination), (mac(1), mac(2)));
    let expected =
        Message { kind: Kind::Solicitation, target: Some(local(2)), source_link: Some(mac(1)), target_link: None };
    assert_eq!(asked, expected, "the proved question");
    assert!(!lan.hosts[0].established_with(2), "the stack has not answered yet");
    lan.send(1, frame(mac(2), mac(1), &advertisement(local(2), mac(2), local(1), false)));
    assert!(lan.hosts[0].established_with(2) && lan.hosts[1].established_with(1));
    let (header, answered) = last_heard(&lan, 0);
    assert_eq!((header.source, header.destination), (mac(2), mac(1)));
    assert_eq!(
        (answered.kind, answered.target, answered.target_link),
        (Kind::Advertisement, Some(local(2)), Some(mac(2)))
    );
    for (from, to) in [(1, 2), (2, 1)] {
        let sent = datagram(from, local(from), to, local(to));
        lan.send(usize::from(from) - 1, sent.clone());
        let delivered = lan.hosts[usize::from(to) - 1].delivered.last();
        assert_eq!(delivered, Some(&(sent, Meta::plain())));
    }
}

#[test]
fn a_second_address_is_asked_for_under_the_seal() {
    let mut lan = lan_without_ipv4(2);
    resolve(&mut lan, (1, local(1)), (2, local(2)));
    lan.send(1, datagram(2, free(2), 1, local(1)));
    let before = lan.seen.len();
    lan.send(0, question(1, local(1), free(2)));
    assert_eq!(lan.seen.len(), before + 1);
    assert_eq!(lan.seen.last().unwrap().1[14], PacketType::Unicast.first_byte());
    assert_eq!(last_heard(&lan, 1).1.target, Some(free(2)));
}

#[test]
fn privacy_addresses_of_one_host_pass_as_they_come() {
    let mut lan = lan_without_ipv4(2);
    resolve(&mut lan, (1, local(1)), (2, local(2)));
    for number in 10..20 {
        let sent = datagram(1, free(number), 2, local(2));
        lan.send(0, sent.clone());
        assert_eq!(lan.hosts[1].delivered.last().unwrap().0, sent);
    }
    let peers = lan.hosts[1].cll.control.peers(lan.at);
    assert_eq!(peers[0].ipv6_addresses.len(), 12);
    assert_eq!(lan.hosts[1].drops(DropReason::AddressTaken), 0);
}

#[test]
fn what_another_host_has_is_refused_and_the_manager_hears_the_name() {
    let mut lan = lan_without_ipv4(3);
    for other in [1, 3] {
        resolve(&mut lan, (other, local(other)), (2, local(2)));
    }
    lan.send(0, datagram(1, free(1), 2, local(2)));
    let before = lan.hosts[1].delivered.len();
    // Host 3 speaks for an address that host 1 uses, for one made of host 1's hardware address, and for host 2's own.
    for stolen in [free(1), local(1), free(2)] {
        lan.send(2, datagram(3, stolen, 2, local(2)));
    }
    lan.send(2, frame(mac(3), mac(2), &advertisement(free(1), mac(3), local(2), false)));
    assert_eq!(lan.hosts[1].delivered.len(), before);
    assert_eq!(lan.hosts[1].drops(DropReason::AddressTaken), 4);
    let told: Vec<_> = lan.hosts[1].events.iter().filter(|event| event.word() == "claim-refused").collect();
    assert!(told.len() == 4 && told[0].to_string().starts_with("h3 ("), "{told:?}");
}

#[test]
fn an_answer_for_an_address_that_another_has_is_not_believed() {
    let mut lan = lan_without_ipv4(3);
    resolve(&mut lan, (1, local(1)), (2, local(2)));
    lan.send(1, datagram(2, free(2), 1, local(1)));
    // The association with host 2 is gone, and host 3, which knows no better, answers for an address of host 2.
    lan.restart(1);
    lan.restart(2);
    lan.pass(seconds(1));
    lan.send(2, announcement(3, free(2)));
    let before = lan.hosts[0].drops(DropReason::AddressTaken);
    lan.wire = Box::new(|_, from, to| from != 1 && to != 1);
    lan.pass(seconds(15));
    resolve(&mut lan, (1, local(1)), (3, free(2)));
    assert!(!lan.hosts[0].established_with(3));
    assert_eq!(lan.hosts[0].drops(DropReason::AddressTaken), before + 1);
}

#[test]
fn a_request_in_the_name_of_an_address_that_another_has_is_refused() {
    let mut lan = lan_without_ipv4(3);
    resolve(&mut lan, (1, free(1)), (2, local(2)));
    resolve(&mut lan, (3, free(1)), (2, local(2)));
    assert!(lan.hosts[1].established_with(1) && !lan.hosts[1].established_with(3));
    assert_eq!(lan.hosts[1].drops(DropReason::AddressTaken), 1);
    assert!(lan.hosts[1].count("refused") == 1);
}

#[test]
fn a_certificate_wins_over_who_came_first() {
    let mut site = Site::new(1);
    let named = request(2).with_ipv6(vec![free(2)]).unwrap();
    let all = [
        settings(site.identity(1)),
        settings(site.identity_for(named, common::START_UNIX_S)),
        settings(site.identity(3)),
    ];
    let mut lan = Lan::new(all);
    lan.ask(0, 3);
    let sent = datagram(3, free(2), 1, local(1));
    lan.send(2, sent.clone());
    assert_eq!(lan.hosts[0].delivered.last().unwrap().0, sent, "nobody else was heard of");
    lan.ask(0, 2);
    let before = lan.hosts[0].delivered.len();
    lan.send(2, datagram(3, free(2), 1, local(1)));
    assert_eq!((lan.hosts[0].delivered.len(), lan.hosts[0].drops(DropReason::AddressTaken)), (before, 1));
    let sent = datagram(2, free(2), 1, local(1));
    lan.send(1, sent.clone());
    assert_eq!(lan.hosts[0].delivered.last().unwrap().0, sent);
}

#[test]
fn a_host_that_started_anew_asks_its_stack_what_it_has() {
    let mut lan = lan_without_ipv4(2);
    lan.restart(1);
    lan.send(0, question(1, local(1), free(2)));
    let (header, asked) = last_heard(&lan, 1);
    assert_eq!((header.source, asked.target, asked.source_link), (mac(2), Some(free(2)), None), "in nobody's name");
    let before = lan.seen.len();
    lan.send(1, announcement(2, free(2)));
    assert_eq!(lan.seen.len(), before, "the answer is for us");
    lan.pass(seconds(2));
    assert_eq!(last_heard(&lan, 1).1.source_link, Some(mac(1)), "the request came again");
    lan.send(1, frame(mac(2), mac(1), &advertisement(free(2), mac(2), local(1), false)));
    assert!(lan.hosts[0].established_with(2));
}

#[test]
fn a_stranger_does_not_make_a_host_ask_its_stack() {
    let mut lan = lan_without_ipv4(2);
    let before = lan.hosts[1].delivered.len();
    lan.wire = Box::new(|frame, _, _| {
        frame[20] ^= 1;
        true
    });
    lan.send(0, question(1, local(1), free(9)));
    assert_eq!(lan.hosts[1].delivered.len(), before, "the site tag is wrong");
    lan.wire = Box::new(|_, _, _| true);
    lan.pass(seconds(1));
    assert_eq!(lan.hosts[1].delivered.len(), before + 1);
}

#[test]
fn a_stack_that_lost_an_address_is_named_and_the_address_is_free() {
    let mut lan = lan_without_ipv4(3);
    lan.send(0, question(1, local(1), free(2)));
    lan.pass(seconds(3));
    assert_eq!(lan.hosts[1].count("stack-silent"), 1);
    resolve(&mut lan, (2, local(2)), (3, local(3)));
    let sent = datagram(3, free(2), 2, local(2));
    lan.send(2, sent.clone());
    assert_eq!(lan.hosts[1].delivered.last().unwrap().0, sent);
}

/// Host `from`, which has no such address yet, asks whether somebody has it.
fn duplicate_question(from: u8, address: Ipv6Addr) -> Vec<u8> {
    question(from, Ipv6Addr::UNSPECIFIED, address)
}

/// What a router says to all: a lifetime of half an hour, and its hardware address.
fn router_advertisement(from: u8) -> Vec<u8> {
    let mut message = vec![134, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1];
    message.extend(mac(from).0);
    let header = wire::ipv6::header(local(from), ALL_NODES, 58, 255, message.len() as u16);
    frame(mac(from), group_mac(ALL_NODES), &[&header[..], &message].concat())
}

#[test]
fn who_has_an_address_defends_it() {
    let mut lan = lan_without_ipv4(2);
    lan.send(0, duplicate_question(1, free(2)));
    let (header, asked) = last_heard(&lan, 1);
    assert_eq!((header.source, asked.kind, asked.target), (mac(1), Kind::Solicitation, Some(free(2))));
    lan.send(1, announcement(2, free(2)));
    let (header, answered) = last_heard(&lan, 0);
    assert_eq!((header.source, answered.kind, answered.target), (mac(2), Kind::Advertisement, Some(free(2))));
}

#[test]
fn who_says_of_every_address_that_it_has_it_is_believed_twice() {
    let mut lan = lan_without_ipv4(3);
    let heard = |lan: &Lan| lan.hosts[0].delivered.len();
    for count in 0..4 {
        let wanted = free(100 + count);
        lan.send(0, duplicate_question(1, wanted));
        let before = heard(&lan);
        lan.send(2, announcement(3, wanted));
        assert_eq!(heard(&lan) - before, usize::from(count < 2), "denial {count}");
        lan.pass(seconds(1));
    }
    assert_eq!((lan.hosts[0].count("address-denied"), lan.hosts[0].drops(DropReason::AddressTaken)), (2, 2));
    let denied = lan.hosts[0].events.iter().find(|event| event.word() == "address-denied").unwrap();
    assert!(denied.to_string().starts_with("h3 ("), "the manager hears who: {denied}");
    // The address that host 1 makes of its own hardware address is not for others to deny, nor to ask for at once.
    lan.restart(0);
    lan.pass(seconds(1));
    lan.send(0, duplicate_question(1, local(1)));
    let before = heard(&lan);
    lan.send(2, announcement(3, local(1)));
    lan.send(2, duplicate_question(3, local(1)));
    assert_eq!(heard(&lan), before);
}

#[test]
fn only_a_router_advertises_itself() {
    let mut site = Site::new(1);
    let router = request(2).with_role(identity::Role::Router);
    let all = [
        settings(site.identity(1)),
        settings(site.identity_for(router, common::START_UNIX_S)),
        settings(site.identity(3)),
    ];
    let mut lan = Lan::new(all);
    lan.pass(seconds(1));
    lan.send(1, router_advertisement(2));
    assert_eq!(lan.hosts[0].delivered.last().unwrap().0, router_advertisement(2));
    let before = lan.hosts[0].delivered.len();
    lan.send(2, router_advertisement(3));
    assert_eq!((lan.hosts[0].delivered.len(), lan.hosts[0].drops(DropReason::InnerRole)), (before, 1));
    lan.ask(2, 1);
    let mut unicast = router_advertisement(3);
    unicast[..6].copy_from_slice(&mac(1).0);
    lan.send(2, unicast);
    assert_eq!(lan.hosts[0].drops(DropReason::InnerRole), 2);
}

#[test]
fn a_multicast_datagram_comes_from_its_senders_own_address() {
    let mut lan = lan_without_ipv4(3);
    let to_group = |from: u8, source: Ipv6Addr| {
        let mut frame = datagram(from, source, 1, "ff02::fb".parse().unwrap());
        frame[..6].copy_from_slice(&[0x33, 0x33, 0, 0, 0, 0xfb]);
        frame
    };
    lan.send(1, to_group(2, free(2)));
    assert_eq!(lan.hosts[0].delivered.last().unwrap().0, to_group(2, free(2)));
    let before = lan.hosts[0].delivered.len();
    lan.send(2, to_group(3, free(2)));
    assert_eq!((lan.hosts[0].delivered.len(), lan.hosts[0].drops(DropReason::AddressTaken)), (before, 1));
    let mut for_one = datagram(3, free(3), 1, local(1));
    for_one[..6].copy_from_slice(&[0x33, 0x33, 0, 0, 0, 0xfb]);
    lan.send(2, for_one);
    assert_eq!((lan.hosts[0].delivered.len(), lan.hosts[0].drops(DropReason::GroupUnicast)), (before, 1));
}

#[test]
fn switched_off_ipv6_passes_neither_way() {
    let mut site = Site::new(1);
    let off = Settings { ipv6: false, ..settings(site.identity(1)) };
    let mut lan = Lan::new([off, settings(site.identity(2))]);
    lan.ask(0, 2);
    let before = (lan.hosts[0].delivered.len(), lan.hosts[1].delivered.len());
    lan.send(0, datagram(1, local(1), 2, local(2)));
    lan.send(1, datagram(2, local(2), 1, local(1)));
    lan.send(1, question(2, local(2), local(1)));
    assert_eq!((lan.hosts[0].delivered.len(), lan.hosts[1].delivered.len()), before);
    assert_eq!(lan.hosts[0].drops(DropReason::Ipv6), 2);
}

#[test]
fn a_stack_that_speaks_for_another_is_stopped_at_home() {
    let mut lan = lan_without_ipv4(2);
    let before = lan.seen.len();
    lan.send(0, frame(mac(1), mac(2), &advertisement(free(1), mac(7), local(2), false)));
    assert_eq!(lan.hosts[0].drops(DropReason::DiscoveryNotOurs), 1);
    lan.send(0, frame(mac(1), mac(2), &advertisement(free(1), mac(1), local(2), false)));
    assert_eq!(lan.hosts[0].drops(DropReason::DiscoveryUnasked), 1);
    assert_eq!(lan.seen.len(), before);
}

#[test]
fn revoked_hosts_lose_their_addresses() {
    let mut site = Site::new(1);
    let mut lan = Lan::new([settings(site.identity(1)), settings(site.identity(2)), settings(site.identity(3))]);
    for other in [1, 2] {
        lan.ask(other, 1);
    }
    lan.send(1, datagram(2, free(9), 1, local(1)));
    let list = site.revocation_of(&lan.hosts[1].settings.identity);
    lan.revoke(0, &list);
    let sent = datagram(3, free(9), 1, local(1));
    lan.send(2, sent.clone());
    assert_eq!(lan.hosts[0].delivered.last().unwrap().0, sent);
    assert_eq!(ip(1), lan.hosts[0].settings.identity.certificate().addresses()[0]);
}

/// Took the host itself, which its certificate names, for another host that has the address: nobody asked the stack.
#[test]
fn a_quiet_stack_is_asked_also_for_the_address_that_its_certificate_names() {
    let mut site = Site::new(1);
    let named = |number: u8| {
        let request = request(number).with_ipv6(vec![free(number)]).unwrap();
        settings(site.identity_for(request, common::START_UNIX_S))
    };
    let mut lan = Lan::new([1, 2].map(named));
    lan.pass(seconds(1));
    lan.send(0, question(1, free(1), free(2)));
    let (header, asked) = last_heard(&lan, 1);
    assert_eq!((header.source, asked.target, asked.source_link), (mac(2), Some(free(2)), None));
    lan.send(1, announcement(2, free(2)));
    // The request comes again.
    lan.pass(seconds(2));
    assert_eq!(last_heard(&lan, 1).1.source_link, Some(mac(1)), "the proved question");
    lan.send(1, frame(mac(2), mac(1), &advertisement(free(2), mac(2), free(1), false)));
    assert!(lan.hosts[0].established_with(2));
}
