//! Sealed frames: what they hide, what they carry, which fit, and which are delivered.

mod common;

use bump::{Checksum, DropReason, Gso, GsoKind, Meta, VlanTag};
use common::{EXPERIMENT, Lan, Site, arp_frame, datagram, ip, mac, partial, plain_frame, settings};
use identity::aead::Suite;
use wire::MacAddress;
use wire::arp::{Arp, Operation};
use wire::cll::PacketType;
use wire::cll::data::{OVERHEAD_MAX, PAYLOAD_MIN};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, MIN_LEN};

const SECRET: &[u8] = b"nobody on the wire reads this";

/// Two hosts with an association, each configured by `configure` with its number.
fn talking(configure: impl Fn(u8, &mut cll::Settings)) -> Lan {
    let mut site = Site::new(1);
    let mut lan = Lan::new([1, 2].map(|number| {
        let mut settings = settings(site.identity(number));
        configure(number, &mut settings);
        settings
    }));
    lan.ask(0, 2);
    assert!(lan.hosts[0].established_with(2));
    lan
}

fn last_sent(lan: &Lan) -> Vec<u8> {
    lan.seen.last().map(|(_, frame)| frame.clone()).unwrap_or_default()
}

fn is_visible(frame: &[u8]) -> bool {
    frame.windows(SECRET.len()).any(|window| window == SECRET)
}

#[test]
fn each_side_sends_with_its_own_suite_and_protection() {
    for (first, second) in [(0, 1), (1, 2), (2, 3), (3, 0), (0, 0)].map(|(a, b)| (Suite::ALL[a], Suite::ALL[b])) {
        for confidential in [true, false] {
            let mut lan = talking(|number, settings| {
                settings.send_suite = if number == 1 { first } else { second };
                settings.confidential = confidential == (number == 1);
            });
            for (from, to, hidden) in [(0, 1, confidential), (1, 0, !confidential)] {
                let frame = datagram(from as u8 + 1, to as u8 + 1, SECRET);
                lan.send(from, frame.clone());
                assert_eq!(lan.hosts[to].delivered.last().unwrap().0, frame, "{first:?} {second:?}");
                assert_eq!(is_visible(&last_sent(&lan)), !hidden);
            }
        }
    }
}

#[test]
fn several_lanes_on_either_side_keep_their_counters_apart() {
    for lanes in [(1, 3), (3, 1), (2, 3)] {
        let mut lan = talking(|number, settings| settings.lanes = if number == 1 { lanes.0 } else { lanes.1 });
        for host in [0, 1] {
            let frame = datagram(host as u8 + 1, 2 - host as u8, SECRET);
            lan.send(host, frame.clone());
            assert_eq!(lan.hosts[1 - host].delivered.last().unwrap().0, frame, "{lanes:?}");
        }
    }
}

#[test]
fn a_changed_bit_anywhere_is_noticed() {
    for confidential in [true, false] {
        let mut lan = talking(|_, settings| settings.confidential = confidential);
        lan.wire = Box::new(|_, _, _| false);
        lan.send(0, datagram(1, 2, SECRET));
        let frame = last_sent(&lan);
        let before = lan.hosts[1].delivered.len();
        for at in 0..frame.len() {
            for bit in 0..8 {
                let mut changed = frame.clone();
                changed[at] ^= 1 << bit;
                lan.inject(1, changed);
                assert_eq!(lan.hosts[1].delivered.len(), before, "byte {at} bit {bit}");
            }
        }
        let replayed = lan.hosts[1].drops(DropReason::Replayed);
        lan.inject(1, frame.clone());
        assert_eq!(lan.hosts[1].delivered.len(), before + 1, "the true one still arrives");
        lan.inject(1, frame);
        assert_eq!(lan.hosts[1].delivered.len(), before + 1);
        assert_eq!(lan.hosts[1].drops(DropReason::Replayed), replayed + 1);
    }
}

#[test]
fn reflected_and_spliced_frames_are_dropped() {
    let mut site = Site::new(1);
    let mut lan = Lan::new([1, 2, 3].map(|number| settings(site.identity(number))));
    lan.ask(0, 2);
    lan.ask(2, 2);
    lan.send(0, datagram(1, 2, SECRET));
    let frame = last_sent(&lan);
    lan.wire = Box::new(|_, _, _| false);
    let counts = |lan: &Lan| lan.hosts.iter().map(|host| host.delivered.len()).collect::<Vec<_>>();
    let before = counts(&lan);
    lan.inject(0, frame.clone());
    assert_eq!(lan.hosts[0].drops(DropReason::OwnSource), 1);
    let mut turned = frame.clone();
    turned[..12].rotate_left(6);
    lan.inject(0, turned);
    assert_eq!(lan.hosts[0].drops(DropReason::UnknownIndex), 1);
    let mut spliced = frame.clone();
    spliced[6..12].copy_from_slice(&mac(3).0);
    lan.inject(1, spliced);
    assert_eq!(lan.hosts[1].drops(DropReason::WrongPeer), 1);
    assert_eq!(counts(&lan), before);
}

#[test]
fn short_payloads_are_padded_so_that_no_card_moves_the_tag() {
    let mut lan = talking(|_, _| {});
    for len in 0..PAYLOAD_MIN + 2 {
        lan.send(0, plain_frame(1, 2, &SECRET[..len]));
        assert!(last_sent(&lan).len() >= MIN_LEN);
        let payload = lan.hosts[1].payloads(EXPERIMENT).pop().unwrap();
        assert_eq!(payload[..len], SECRET[..len]);
        assert!(payload[len..].iter().all(|&byte| byte == 0) && payload.len() == len.max(PAYLOAD_MIN));
    }
}

#[test]
fn what_fits_the_inner_mtu_fits_the_wire_and_what_does_not_is_named() {
    let mut lan = talking(|_, _| {});
    let mtu = usize::from(lan.hosts[0].settings.inner_mtu());
    assert_eq!(mtu, 1500 - OVERHEAD_MAX);
    lan.send(0, plain_frame(1, 2, &vec![7; mtu]));
    assert_eq!(lan.hosts[1].payloads(EXPERIMENT).last().unwrap().len(), mtu);
    assert!(last_sent(&lan).len() <= 1500 + ETHERNET_LEN);
    lan.send(0, plain_frame(1, 2, &vec![7; 1500]));
    assert_eq!(lan.hosts[0].drops(DropReason::TooBig), 1);
}

#[test]
fn a_partial_checksum_arrives_as_one_and_a_complete_one_as_it_was() {
    let mut lan = talking(|_, _| {});
    lan.send_with(0, datagram(1, 2, SECRET), partial(34, 6));
    let (frame, meta) = lan.hosts[1].delivered.last().unwrap();
    assert_eq!((frame, meta.checksum), (&datagram(1, 2, SECRET), Checksum::Partial { start: 34, offset: 6 }));
    lan.send(0, datagram(1, 2, SECRET));
    assert_eq!(lan.hosts[1].delivered.last().unwrap().1.checksum, Checksum::Unknown);
}

#[test]
fn a_super_frame_leaves_in_pieces_and_a_contradictory_one_not_at_all() {
    let mut lan = talking(|_, _| {});
    let gso = Gso { kind: GsoKind::Udp, size: 1000, ecn: false };
    let meta = Meta { gso: Some(gso), ..partial(34, 6) };
    let before = lan.hosts[1].delivered.len();
    lan.send_with(0, datagram(1, 2, &[5; 2500]), meta);
    let lengths: Vec<usize> = lan.hosts[1].delivered[before..].iter().map(|(frame, _)| frame.len() - 42).collect();
    assert_eq!(lengths, [1000, 1000, 500]);
    lan.send_with(0, plain_frame(1, 2, &[5; 2500]), meta);
    assert_eq!(lan.hosts[0].drops(DropReason::BadSuperFrame), 1);
}

#[test]
fn what_is_not_carried_yet_is_dropped_by_name_and_nothing_of_it_leaves() {
    let mut lan = talking(|_, settings| settings.ipv6 = false);
    let before = lan.seen.len();
    let to = |destination: MacAddress, ethertype: u16| {
        let mut frame = datagram(1, 2, SECRET);
        frame[..6].copy_from_slice(&destination.0);
        frame[12..14].copy_from_slice(&ethertype.to_be_bytes());
        frame
    };
    lan.send(0, to(mac(2), 0x86dd));
    lan.send(0, datagram(2, 1, SECRET));
    let tagged = Meta { vlan: Some(VlanTag { tpid: 0x8100, tci: 7 }), ..Meta::plain() };
    lan.send_with(0, datagram(1, 2, SECRET), tagged);
    for reason in [DropReason::Ipv6, DropReason::SourceNotOurs, DropReason::Vlan] {
        assert_eq!(lan.hosts[0].drops(reason), 1, "{reason:?}");
    }
    assert_eq!(lan.seen.len(), before);
}

#[test]
fn plain_frames_of_strangers_are_dropped() {
    let mut lan = talking(|_, _| {});
    let before = lan.hosts[1].delivered.len();
    lan.inject(1, datagram(1, 2, SECRET));
    lan.inject(
        1,
        arp_frame(
            mac(2),
            Arp {
                operation: Operation::Reply,
                sender_mac: mac(9),
                sender_ip: ip(1),
                target_mac: mac(2),
                target_ip: ip(2),
            },
        ),
    );
    assert_eq!(lan.hosts[1].drops(DropReason::Unsealed), 1);
    assert_eq!(lan.hosts[1].drops(DropReason::PlainArp), 1);
    assert_eq!(lan.hosts[1].delivered.len(), before);
}

#[test]
fn an_arp_request_to_a_peer_is_sealed_and_answered_under_the_seal() {
    let mut lan = talking(|_, _| {});
    let (before, arp_before) = (lan.seen.len(), lan.hosts[0].payloads(wire::EtherType::ARP).len());
    lan.ask(0, 2);
    assert!(lan.seen[before..].iter().all(|(_, frame)| frame[14] == PacketType::Unicast.first_byte()));
    assert_eq!(lan.seen.len(), before + 2);
    assert_eq!(lan.hosts[0].payloads(wire::EtherType::ARP).len(), arp_before + 1);
}
