//! Who gets in: hosts of the site with a valid certificate, as themselves, and legacy hosts on the list.

mod common;

use std::time::Duration;

use bump::DropReason;
use cll::{Legacy, Weaken};
use common::{Lan, START_UNIX_S, Site, arp_frame, arp_request, datagram, datagram_from, ip, mac, request, settings};
use identity::Role;
use identity::aead::Suite;
use wire::arp::{Arp, Operation};
use wire::{EtherType, MacAddress};

/// Nobody got further than a handshake message.
fn assert_strangers(lan: &Lan) {
    for host in &lan.hosts {
        assert_eq!(host.cll.control.peers(lan.at).len(), 0);
        assert!(host.delivered.is_empty());
    }
}

#[test]
fn a_host_of_another_site_is_turned_away_at_the_first_tag() {
    let mut lan = Lan::new([settings(Site::new(1).identity(1)), settings(Site::new(2).identity(2))]);
    lan.ask(0, 2);
    lan.ask(1, 1);
    assert_strangers(&lan);
    assert!(
        lan.hosts[1].drops(DropReason::HandshakeSiteMac) > 0 && lan.hosts[0].drops(DropReason::HandshakeSiteMac) > 0
    );
}

#[test]
fn without_the_site_tag_another_sites_certificate_is_still_refused() {
    let weak = |site: &mut Site, number| {
        let mut settings = settings(site.identity(number));
        settings.weaken = Weaken { site_tag: true, ..Weaken::default() };
        settings
    };
    let mut lan = Lan::new([weak(&mut Site::new(1), 1), weak(&mut Site::new(2), 2)]);
    lan.ask(0, 2);
    assert_strangers(&lan);
    assert_eq!(lan.hosts[1].drops(DropReason::BadCertificate), 1);
    assert_eq!(lan.hosts[1].count("refused"), 1);
}

#[test]
fn an_expired_certificate_is_refused_on_either_side() {
    const DAY_S: u64 = 86_400;
    for asks in [0, 1] {
        let mut site = Site::new(1);
        let short = request(1).with_validity(Duration::from_secs(DAY_S)).unwrap();
        let expired = site.identity_for(short, START_UNIX_S - 3 * DAY_S);
        let mut lan = Lan::new([settings(expired), settings(site.identity_for(request(2), START_UNIX_S - 3 * DAY_S))]);
        lan.ask(asks, 2 - asks as u8);
        assert!(lan.hosts[1].drops(DropReason::BadCertificate) > 0, "host {asks} asks");
        assert!(!lan.hosts[1].established_with(1) && !lan.hosts[0].established_with(2));
    }
}

#[test]
fn a_peer_that_promises_too_little_is_refused() {
    let mut site = Site::new(1);
    let (mut weak, mut strict) = (settings(site.identity(1)), settings(site.identity(2)));
    weak.confidential = false;
    strict.require.confidential = true;
    let mut lan = Lan::new([weak, strict]);
    lan.ask(0, 2);
    lan.ask(1, 1);
    assert!(lan.hosts[1].drops(DropReason::WeakOffer) >= 2);
    assert!(!lan.hosts[1].established_with(1));

    let (mut other, mut choosy) = (settings(site.identity(1)), settings(site.identity(2)));
    other.send_suite = Suite::ChaCha20Poly1305;
    choosy.require.suites = vec![Suite::Aes256Gcm];
    let mut lan = Lan::new([other, choosy]);
    lan.ask(0, 2);
    assert_eq!(lan.hosts[1].drops(DropReason::WeakOffer), 1);
}

/// Host 3 is enrolled and lets its lies out; `victims_weak` takes the check from the others too.
fn with_insider(victims_weak: bool) -> Lan {
    let mut site = Site::new(1);
    let cross_layer = |off: bool| Weaken { cross_layer: off, ..Weaken::default() };
    let mut lan = Lan::new([1, 2, 3].map(|number| {
        let mut settings = settings(site.identity(number));
        settings.weaken = cross_layer(number == 3 || victims_weak);
        settings
    }));
    lan.ask(2, 2);
    lan.ask(0, 2);
    lan
}

#[test]
fn an_insider_speaks_for_itself_only() {
    for weak in [false, true] {
        let mut lan = with_insider(weak);
        let lie = datagram_from(3, ip(1), 2, b"I am host 1");
        lan.send(2, lie.clone());
        assert_eq!(lan.hosts[1].delivered.iter().any(|(frame, _)| *frame == lie), weak);
        lan.send(
            2,
            arp_frame(
                mac(2),
                Arp {
                    operation: Operation::Reply,
                    sender_mac: mac(3),
                    sender_ip: ip(1),
                    target_mac: mac(2),
                    target_ip: ip(2),
                },
            ),
        );
        let told =
            |payload: &Vec<u8>| Arp::parse(payload).is_ok_and(|arp| arp.sender_mac == mac(3) && arp.sender_ip == ip(1));
        assert_eq!(lan.hosts[1].payloads(EtherType::ARP).iter().any(told), weak);
        assert_eq!(lan.hosts[1].drops(DropReason::InnerSource), u64::from(!weak));
        assert_eq!(lan.hosts[1].drops(DropReason::InnerArp), u64::from(!weak));
        // Whose name was used is seen in what was sealed only.
        let ledger = lan.hosts[1].ledger();
        let seen = ledger.sightings().find(|sighting| sighting.reason == DropReason::InnerSource);
        assert_eq!(seen.map(|sighting| &sighting.head[..]), (!weak).then(|| &lie[..lie.len().min(96)]));
    }
}

#[test]
fn a_vlan_tag_hides_no_false_source() {
    let mut lan = with_insider(false);
    let mut lie = datagram_from(3, ip(1), 2, b"I am host 1");
    lie.splice(12..12, [0x81, 0, 0, 7]);
    lan.send(2, lie);
    assert_eq!(lan.hosts[1].drops(DropReason::InnerSource), 1);
}

#[test]
fn an_insider_cannot_open_a_handshake_in_anothers_name() {
    let mut lan = with_insider(false);
    lan.restart(1);
    let false_question = arp_frame(
        MacAddress::BROADCAST,
        Arp {
            operation: Operation::Request,
            sender_mac: mac(3),
            sender_ip: ip(1),
            target_mac: MacAddress::ZERO,
            target_ip: ip(2),
        },
    );
    lan.pass(Duration::from_secs(20));
    lan.send(2, false_question);
    assert!(lan.hosts[1].drops(DropReason::CertificateAddress) > 0);
    assert!(lan.hosts[1].payloads(EtherType::ARP).iter().all(|payload| {
        Arp::parse(payload).unwrap().sender_mac != mac(3) || Arp::parse(payload).unwrap().sender_ip == ip(3)
    }));
}

#[test]
fn a_router_may_carry_others_packets_but_no_others_arp() {
    let mut site = Site::new(1);
    let router = site.identity_for(request(1).with_role(Role::Router), START_UNIX_S);
    let mut lan = Lan::new([settings(router), settings(site.identity(2))]);
    lan.ask(0, 2);
    let carried = datagram_from(1, [192, 0, 2, 7].into(), 2, b"from far away");
    lan.send(0, carried.clone());
    assert_eq!(lan.hosts[1].delivered.last().unwrap().0, carried);
    lan.hosts[0].settings.weaken.cross_layer = true;
    lan.restart(0);
    lan.ask(0, 2);
    lan.send(
        0,
        arp_frame(
            mac(2),
            Arp {
                operation: Operation::Request,
                sender_mac: mac(1),
                sender_ip: [192, 0, 2, 7].into(),
                target_mac: mac(2),
                target_ip: ip(2),
            },
        ),
    );
    assert_eq!(lan.hosts[1].drops(DropReason::InnerArp), 1);
}

#[test]
fn a_legacy_host_talks_in_clear_in_both_directions_and_only_as_itself() {
    let mut site = Site::new(1);
    let mut guarded = settings(site.identity(1));
    guarded.legacy = vec![Legacy { mac: mac(9), ip: ip(9), router: false, broadcast: false }];
    let mut lan = Lan::new([guarded]);

    lan.ask(0, 9);
    let answer = Arp::parse(&lan.hosts[0].payloads(EtherType::ARP)[0]).unwrap();
    assert_eq!((answer.sender_mac, answer.sender_ip), (mac(9), ip(9)));
    assert!(lan.seen.is_empty(), "the list answers, nobody else");
    lan.send(0, datagram(1, 9, b"in clear"));
    assert_eq!(lan.seen.last().unwrap().1, datagram(1, 9, b"in clear"));

    lan.inject(0, arp_request(9, 1));
    let (_, reply) = lan.seen.last().unwrap();
    assert_eq!(reply[..14], [&mac(9).0[..], &mac(1).0, &[8, 6]].concat());
    lan.inject(0, datagram(9, 1, b"and back"));
    assert_eq!(lan.hosts[0].delivered.last().unwrap().0, datagram(9, 1, b"and back"));

    let before = lan.hosts[0].delivered.len();
    lan.inject(0, datagram_from(9, ip(2), 1, b"as another"));
    lan.inject(0, datagram(8, 1, b"not on the list"));
    assert_eq!(lan.hosts[0].drops(DropReason::LegacyAddress), 1);
    assert_eq!(lan.hosts[0].drops(DropReason::Unsealed), 1);
    assert_eq!(lan.hosts[0].delivered.len(), before);
}

#[test]
fn a_forger_in_a_lively_peers_name_cannot_have_the_association_replaced() {
    let mut lan = Lan::pair();
    lan.ask(0, 2);
    for number in 0..60_u8 {
        lan.send(1, datagram(2, 1, &[number; 30]));
        let mut forged = [&mac(1).0[..], &mac(2).0, &[0x07, 0xd0, 0x21, 0]].concat();
        forged.extend([number; 60]);
        lan.inject(0, forged);
        lan.pass(Duration::from_secs(1));
    }
    assert_eq!(lan.hosts[0].drops(DropReason::UnknownIndex), 60);
    assert_eq!((lan.hosts[0].count("established"), lan.hosts[1].count("established")), (1, 1));
}

#[test]
fn a_flood_of_unknown_indices_leaves_room_for_our_own_handshakes() {
    let mut lan = Lan::pair();
    for number in 0..40_000_u32 {
        if number % 200 == 0 {
            lan.pass(Duration::from_millis(100));
        }
        let [_, a, b, c] = number.to_be_bytes();
        let mut frame = [&mac(1).0[..], &[2, 9, 9, a, b, c], &[0x07, 0xd0, 0x21, 0]].concat();
        frame.extend([b ^ 0x5a; 60]);
        lan.inject(0, frame);
    }
    assert!(lan.hosts[0].drops(DropReason::UnknownIndex) > 39_000);
    lan.ask(0, 2);
    assert!(lan.hosts[0].established_with(2));
}
