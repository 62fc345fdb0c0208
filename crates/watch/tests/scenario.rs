//! Whole scenes, as a ledger hears them: who is an attacker, and who only talks.
#![allow(clippy::expect_used, clippy::panic, reason = "tests fail by panics")]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use bump::record::{HardwareAddress, Kind, Party, Phase, Record};
use bump::{DropReason, Fate, Instant, Ledger, Side};
use proptest::prelude::*;
use watch::{Around, Known, Look, Watch, attacks};
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;
use wire::{EtherType, MacAddress, nd};

/// 2026, in milliseconds.
const START_MS: u64 = 1_790_000_000_000;
const VICTIM: MacAddress = mac(0x0a);
const OWNER: MacAddress = mac(0x0b);
const LIAR: MacAddress = mac(0x66);

const fn mac(last: u8) -> MacAddress {
    MacAddress([2, 0, 0, 0, 0, last])
}

fn ip(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 0, 2, last)
}

fn known(name: &str, mac: MacAddress, last: u8) -> Known {
    Known { name: Some(name.to_owned()), mac: Some(mac), addresses: vec![ip(last).into()] }
}

/// A guarded host that enforces, and a peer that has proved itself.
struct Scene {
    ledger: Ledger,
    watch: Watch,
    around: Around,
    now: Instant,
    told: Vec<Record>,
}

impl Scene {
    fn new() -> Scene {
        let around = Around {
            met: 0,
            own: known("desk-10", VICTIM, 10),
            known: vec![known("desk-11", OWNER, 11)],
            asks_in_clear: false,
            known_are_sealed: true,
        };
        let now = Instant::from_millis(1000);
        Scene { ledger: Ledger::new(), watch: Watch::default(), around, now, told: Vec::new() }
    }

    fn drop(&mut self, reason: DropReason, frame: &[u8]) {
        self.ledger.receive(Side::WIRE);
        self.ledger.settle(self.now, Side::WIRE, Fate::Dropped(reason), frame);
    }

    /// Lets a time pass, with a look in each second as a daemon takes it.
    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.look();
            self.now = self.now + Duration::from_secs(1);
        }
    }

    fn look(&mut self) {
        let unix_ms = START_MS + self.now.as_nanos() / 1_000_000;
        let look = Look { now: self.now, unix_ms, ledger: &self.ledger, around: &self.around };
        self.told.extend(self.watch.look(&look));
    }

    fn opened(&self) -> Vec<&Record> {
        self.told.iter().filter(|record| record.phase == Phase::Opened).collect()
    }
}

fn frame(destination: MacAddress, source: MacAddress, ethertype: EtherType, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Header { destination, source, ethertype }.emit().to_vec();
    bytes.extend_from_slice(payload);
    bytes.resize(bytes.len().max(60), 0);
    bytes
}

fn arp(to: MacAddress, from: MacAddress, operation: Operation, sender: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let arp = Arp { operation, sender_mac: from, sender_ip: sender, target_mac: to, target_ip: target };
    frame(to, from, EtherType::ARP, &arp.emit())
}

/// IPv6 of `source` to a group; the payload is an ICMPv6 message.
fn ipv6(source: MacAddress, from: Ipv6Addr, next: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend_from_slice(&u16::try_from(payload.len()).expect("short").to_be_bytes());
    packet.extend_from_slice(&[next, 255]);
    packet.extend_from_slice(&from.octets());
    packet.extend_from_slice(&Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1).octets());
    packet.extend_from_slice(payload);
    frame(MacAddress([0x33, 0x33, 0, 0, 0, 1]), source, EtherType::IPV6, &packet)
}

fn link_local(last: u8) -> Ipv6Addr {
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0x1234, 0, 0, u16::from(last))
}

fn udp(source: MacAddress, from: Ipv4Addr, ports: (u16, u16)) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0];
    packet.extend_from_slice(&from.octets());
    packet.extend_from_slice(&[255; 4]);
    packet.extend_from_slice(&ports.0.to_be_bytes());
    packet.extend_from_slice(&ports.1.to_be_bytes());
    packet.extend_from_slice(&[0, 20, 0, 0]);
    packet.resize(40, 0);
    frame(MacAddress::BROADCAST, source, EtherType::IPV4, &packet)
}

/// A DHCP client's message to all: its card, and the address that it says it holds.
fn dhcp(source: MacAddress, hardware: MacAddress, held: Ipv4Addr, relay: Ipv4Addr) -> Vec<u8> {
    let mut message = vec![0; 236];
    message[..3].copy_from_slice(&[1, 1, 6]);
    message[12..16].copy_from_slice(&held.octets());
    message[24..28].copy_from_slice(&relay.octets());
    message[28..34].copy_from_slice(&hardware.0);
    let mut bytes = udp(source, held, (68, 67));
    bytes.truncate(14 + 28);
    bytes.extend_from_slice(&message);
    bytes
}

/// What an unguarded host says in a second of its life, for its own addresses only.
fn small_talk(scene: &mut Scene, source: MacAddress, last: u8) {
    let (everybody, own) = (MacAddress::BROADCAST, ip(last));
    scene.drop(DropReason::PlainArp, &arp(everybody, source, Operation::Request, own, ip(11)));
    scene.drop(DropReason::PlainArp, &arp(everybody, source, Operation::Reply, own, own));
    scene.drop(DropReason::PlainArp, &arp(everybody, source, Operation::Request, Ipv4Addr::UNSPECIFIED, ip(10)));
    let nothing = Ipv4Addr::UNSPECIFIED;
    scene.drop(DropReason::Dhcp, &dhcp(source, source, nothing, nothing));
    scene.drop(DropReason::Unsealed, &udp(source, own, (5353, 5353)));
    let address = link_local(last);
    let group = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let payload = &nd::advertisement(address, source, group, false)[40..].to_vec();
    scene.drop(DropReason::Unsealed, &ipv6(source, address, 58, payload));
    scene.drop(DropReason::Unsealed, &ipv6(source, address, 58, &[143, 0, 0, 0, 0, 0, 0, 0]));
    scene.drop(DropReason::Unsealed, &frame(everybody, source, EtherType::LLDP, &[2; 40]));
}

#[test]
fn two_hundred_forged_replies_are_one_attack_with_names() {
    let mut scene = Scene::new();
    for _ in 0..200 {
        scene.drop(DropReason::PlainArp, &arp(VICTIM, LIAR, Operation::Reply, ip(11), ip(10)));
    }
    scene.pass(1);
    let [attack] = scene.opened()[..] else { panic!("one attack: {:?}", scene.told) };
    assert_eq!((attack.kind, attack.count), (Kind::ArpSpoofing, 200));
    assert_eq!(attack.source.mac, Some(HardwareAddress(LIAR.0)));
    assert_eq!(attack.claimed.name.as_deref(), Some("desk-11"));
    assert_eq!(attack.claimed.mac, Some(HardwareAddress(OWNER.0)));
    assert_eq!(attack.claimed.ip, Some(IpAddr::V4(ip(11))));
    assert_eq!(attack.target.name.as_deref(), Some("desk-10"));
    let began = START_MS + 1000;
    assert_eq!((attack.first_ms, attack.last_ms), (began, began));
}

#[test]
fn an_unasked_answer_for_a_host_that_nobody_knows_is_an_attack_too() {
    let mut scene = Scene::new();
    for _ in 0..200 {
        scene.drop(DropReason::PlainArp, &arp(VICTIM, LIAR, Operation::Reply, ip(12), ip(10)));
    }
    scene.pass(1);
    assert_eq!(scene.opened().len(), 1, "{:?}", scene.told);
    let mut asking = Scene::new();
    asking.around.asks_in_clear = true;
    asking.drop(DropReason::PlainArp, &arp(VICTIM, LIAR, Operation::Reply, ip(12), ip(10)));
    asking.pass(1);
    assert!(asking.told.is_empty(), "who asks in clear is answered so: {:?}", asking.told);
}

#[test]
fn an_hour_of_fifty_guests_with_changing_addresses_and_one_spoofer_is_one_attack() {
    let mut scene = Scene::new();
    for second in 0..3600_u64 {
        // Ten guests a second, and each comes back with another card and another address after some minutes.
        for turn in 0..10 {
            let guest = (second * 10 + turn) % 50;
            let life = u8::try_from(second / 300).expect("twelve lives");
            let card = MacAddress([0x6a, life, 0, 0, 1, u8::try_from(guest).expect("fifty")]);
            small_talk(&mut scene, card, 100 + u8::try_from((guest + u64::from(life) * 7) % 100).expect("small"));
        }
        if second % 2 == 0 {
            scene.drop(DropReason::PlainArp, &arp(VICTIM, LIAR, Operation::Reply, ip(11), ip(10)));
        }
        scene.pass(1);
    }
    let opened = scene.opened();
    assert_eq!(opened.len(), 1, "{opened:?}");
    assert_eq!(opened[0].source.mac, Some(HardwareAddress(LIAR.0)));
    let open = scene.watch.open();
    assert_eq!(open[0].count, 1800, "every one of its frames is counted");
}

#[test]
fn an_attack_grows_is_told_again_seldom_and_closes_after_a_quiet_time() {
    let mut scene = Scene::new();
    for _ in 0..180 {
        scene.drop(DropReason::PlainArp, &arp(VICTIM, LIAR, Operation::Reply, ip(11), ip(10)));
        scene.pass(1);
    }
    scene.pass(attacks::QUIET_MS / 1000 + 2);
    let phases: Vec<Phase> = scene.told.iter().map(|record| record.phase).collect();
    assert_eq!(phases.first(), Some(&Phase::Opened));
    assert_eq!(phases.last(), Some(&Phase::Closed));
    let grown = phases.iter().filter(|phase| **phase == Phase::Growing).count();
    assert!((1..=3).contains(&grown), "{phases:?}");
    assert!(scene.watch.open().is_empty());
    assert!(scene.told.iter().all(|record| record.number == 1));
}

#[test]
fn each_kind_is_told_from_the_others() {
    let forged = |payload: &[u8]| frame(VICTIM, LIAR, EtherType::CLL, payload);
    let nothing = Ipv4Addr::UNSPECIFIED;
    let advertisement = ipv6(LIAR, link_local(9), 58, &[134, 0, 0, 0, 64, 0, 0, 30, 0, 0, 0, 0, 0, 0, 0, 0]);
    let cases: Vec<(DropReason, Vec<u8>, usize, Kind)> = vec![
        (DropReason::Downgrade, arp(VICTIM, LIAR, Operation::Request, ip(11), ip(10)), 1, Kind::ArpSpoofing),
        (DropReason::ArpConflict, arp(VICTIM, LIAR, Operation::Reply, ip(10), ip(11)), 1, Kind::ArpSpoofing),
        (DropReason::Unsealed, advertisement, 1, Kind::RogueRouter),
        (DropReason::Dhcp, udp(LIAR, ip(66), (67, 68)), 1, Kind::RogueDhcp),
        (DropReason::Downgrade, frame(VICTIM, OWNER, EtherType::IPV4, &[0x45; 40]), 0, Kind::ClonedMac),
        (DropReason::OwnSource, frame(OWNER, VICTIM, EtherType::IPV4, &[0x45; 40]), 9, Kind::ClonedMac),
        (DropReason::AddressTaken, forged(&[1; 40]), 1, Kind::IdentityTwice),
        (DropReason::Replayed, forged(&[2; 40]), 40, Kind::Replay),
        (DropReason::BadSpin, forged(&[3; 40]), 40, Kind::ForgedSealed),
        (DropReason::IpAddress, udp(LIAR, Ipv4Addr::LOCALHOST, (9, 9)), 9, Kind::SpoofedSource),
        (DropReason::Unsealed, udp(LIAR, ip(11), (9, 9)), 9, Kind::SpoofedSource),
        (DropReason::InnerSource, udp(LIAR, ip(11), (9, 9)), 9, Kind::IdentityTwice),
        (DropReason::InnerArp, arp(VICTIM, LIAR, Operation::Reply, ip(11), ip(10)), 1, Kind::ArpSpoofing),
        (DropReason::SarpMalformed, arp(VICTIM, LIAR, Operation::Reply, ip(11), ip(10)), 1, Kind::ArpSpoofing),
        (DropReason::Malformed, forged(&[4; 40]), 40, Kind::ForgedSealed),
        (DropReason::HandshakeSiteMac, forged(&[5; 40]), 300, Kind::Flood),
        (DropReason::DhcpChaddr, dhcp(LIAR, mac(0x77), nothing, nothing), 9, Kind::DhcpSpoofing),
        (DropReason::Unsealed, dhcp(LIAR, OWNER, nothing, nothing), 1, Kind::DhcpSpoofing),
        (DropReason::DhcpUnsigned, dhcp(LIAR, LIAR, ip(11), nothing), 1, Kind::DhcpSpoofing),
        (DropReason::Unsealed, udp(LIAR, ip(66), (67, 68)), 1, Kind::RogueDhcp),
        (DropReason::DhcpRelay, dhcp(LIAR, LIAR, nothing, ip(66)), 1, Kind::DhcpSpoofing),
        (DropReason::Unsealed, dhcp(LIAR, LIAR, nothing, ip(66)), 1, Kind::DhcpSpoofing),
        (DropReason::Unsealed, dhcp(LIAR, LIAR, nothing, nothing), 40, Kind::Flood),
        (DropReason::FragmentConflict, udp(LIAR, ip(66), (9, 9)), 1, Kind::Evasion),
        (DropReason::FlowsOfSource, udp(LIAR, ip(66), (9, 9)), 9, Kind::ConnectionFlood),
        (DropReason::AddressNotValidated, udp(LIAR, ip(66), (9, 9)), 300, Kind::SynFlood),
    ];
    for (reason, bytes, count, kind) in cases {
        let mut scene = Scene::new();
        for _ in 0..count.max(1) {
            scene.drop(reason, &bytes);
        }
        scene.pass(1);
        let kinds: Vec<Kind> = scene.opened().iter().map(|record| record.kind).collect();
        // A packet that cannot be read is no clone yet.
        let wanted: &[Kind] = if count == 0 { &[] } else { &[kind] };
        assert_eq!(kinds, wanted, "{}", reason.word());
    }
}

/// Of a flood each address may be spoofed: nobody is accused by one, and it is one attack.
#[test]
fn a_flood_of_syns_in_many_names_is_one_attack_without_a_claim() {
    let mut scene = Scene::new();
    for number in 0..200 {
        for port in 0..5 {
            scene.drop(DropReason::AddressNotValidated, &udp(LIAR, ip(number), (port, 9)));
        }
        scene.pass(1);
    }
    let opened = scene.opened();
    let [attack] = &opened[..] else { panic!("{opened:?}") };
    assert_eq!((attack.kind, &attack.claimed), (Kind::SynFlood, &Party::default()));
    assert!(attack.source.mac.is_some() && attack.target.ip.is_some(), "{attack:?}");
}

/// Hosts that are made up for one frame each are too small for an attack each.
#[test]
fn a_flood_of_made_up_hosts_is_one_attack_of_several() {
    let nothing = Ipv4Addr::UNSPECIFIED;
    let card = |number: u32| MacAddress([6, 0, 0, 0, (number >> 8) as u8, number as u8]);
    let reply = |number| arp(VICTIM, card(number), Operation::Reply, Ipv4Addr::from(0x0a00_0000 + number), ip(10));
    let question = |number| dhcp(card(number), MacAddress([8, 0, 0, 0, 0, number as u8]), nothing, nothing);
    let handshake = |number| frame(VICTIM, card(number), EtherType::CLL, &[5; 40]);
    type MadeUp<'a> = &'a dyn Fn(u32) -> Vec<u8>;
    let cases: [(DropReason, MadeUp<'_>, Kind); 3] = [
        (DropReason::PlainArp, &reply, Kind::ArpSpoofing),
        (DropReason::Unsealed, &question, Kind::DhcpSpoofing),
        (DropReason::HandshakeSiteMac, &handshake, Kind::Flood),
    ];
    for (reason, made_up, kind) in cases {
        let mut scene = Scene::new();
        for second in 0..10 {
            (0..200).for_each(|number| scene.drop(reason, &made_up(second * 200 + number)));
            scene.pass(1);
        }
        let [attack] = scene.opened()[..] else { panic!("one attack for {}: {:?}", reason.word(), scene.told) };
        assert_eq!((attack.kind, attack.is_sum, attack.source.is_known()), (kind, true, false));
        assert!(scene.watch.open()[0].count > 1000, "all are counted: {:?}", scene.watch.open());
        // As many in the time of an hour are what guests and hosts of another site send.
        let mut slow = Scene::new();
        for number in 0..720 {
            slow.drop(reason, &made_up(if kind == Kind::Flood { number } else { 1 + 64 * number }));
            slow.pass(5);
        }
        assert!(slow.told.is_empty(), "{}: {:?}", reason.word(), slow.told);
    }
}

#[test]
fn a_flood_in_many_names_from_one_card_names_the_card() {
    let mut scene = Scene::new();
    for number in 0..1000 {
        let name = Ipv4Addr::from(0x0a00_0000 + number);
        scene.drop(DropReason::PlainArp, &arp(VICTIM, LIAR, Operation::Reply, name, ip(10)));
    }
    scene.pass(2);
    let [attack] = scene.opened()[..] else { panic!("one attack: {:?}", scene.told) };
    assert_eq!((attack.kind, attack.is_sum), (Kind::ArpSpoofing, true));
    assert_eq!(attack.source.mac, Some(HardwareAddress(LIAR.0)));
}

/// Each reason has a bound of its own: what is below each is no flood in the sum.
#[test]
fn what_comes_for_several_reasons_is_not_added_up() {
    let mut scene = Scene::new();
    for second in 0..60_u8 {
        for number in 0..20 {
            let card = MacAddress([6, 1, 0, 0, second, number]);
            scene.drop(DropReason::GroupUnasked, &frame(VICTIM, card, EtherType::CLL, &[8; 40]));
            scene.drop(DropReason::HandshakeSiteMac, &frame(VICTIM, card, EtherType::CLL, &[9; 40]));
            scene.drop(DropReason::Unsealed, &dhcp(card, card, Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED));
        }
        scene.pass(1);
    }
    assert!(scene.told.is_empty(), "{:?}", scene.told);
}

#[test]
fn a_liar_that_is_seen_again_after_a_pause_is_told() {
    let mut scene = Scene::new();
    let lie = arp(VICTIM, LIAR, Operation::Reply, ip(12), ip(10));
    scene.drop(DropReason::PlainArp, &lie);
    scene.pass(11);
    scene.drop(DropReason::PlainArp, &lie);
    scene.pass(1);
    assert_eq!(scene.opened().len(), 1, "{:?}", scene.told);
    // One question an hour ago does not hide a flood of them.
    let mut scene = Scene::new();
    let question = dhcp(LIAR, LIAR, Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED);
    scene.drop(DropReason::Unsealed, &question);
    scene.pass(50);
    for _ in 0..3 {
        (0..20).for_each(|_| scene.drop(DropReason::Unsealed, &question));
        scene.pass(1);
    }
    let [attack] = scene.opened()[..] else { panic!("one attack: {:?}", scene.told) };
    assert_eq!((attack.kind, attack.source.mac), (Kind::Flood, Some(HardwareAddress(LIAR.0))));
}

/// An hour that is there twice adds nothing up.
#[test]
fn a_clock_that_is_put_back_makes_no_flood() {
    let mut attacks = attacks::Attacks::default();
    let mut add = |at_ms| {
        let finding = watch::judge::counted(DropReason::HandshakeSiteMac).expect("it is counted");
        attacks.add(finding, 200, at_ms, at_ms);
        attacks.turn(at_ms).len()
    };
    assert_eq!((add(START_MS), add(START_MS - 3_600_000)), (0, 0));
    assert_eq!(add(START_MS - 3_599_000), 1, "two hundred more within the time are one");
}

/// The first question of a card is its own; what it says later in other names is judged by itself.
#[test]
fn an_honest_question_hides_no_other() {
    let mut scene = Scene::new();
    let nothing = Ipv4Addr::UNSPECIFIED;
    scene.drop(DropReason::Unsealed, &dhcp(LIAR, LIAR, nothing, nothing));
    (0..20).for_each(|last| scene.drop(DropReason::Unsealed, &dhcp(LIAR, mac(0x70 + last), nothing, nothing)));
    scene.pass(1);
    let kinds: Vec<Kind> = scene.opened().iter().map(|record| record.kind).collect();
    assert_eq!(kinds, [Kind::DhcpSpoofing]);
}

#[test]
fn what_belongs_to_another_vlan_is_no_lie_here() {
    let mut scene = Scene::new();
    let own = |bytes: &mut Vec<u8>| bytes[..6].copy_from_slice(&VICTIM.0);
    for _ in 0..20 {
        scene.drop(DropReason::Vlan, &udp(LIAR, ip(66), (67, 68)));
        scene.drop(DropReason::Vlan, &arp(MacAddress::BROADCAST, LIAR, Operation::Reply, ip(11), ip(11)));
        scene.drop(DropReason::Vlan, &udp(LIAR, ip(11), (9, 9)));
    }
    scene.pass(1);
    assert!(scene.told.is_empty(), "{:?}", scene.told);
    // What is for this card alone is no frame of another network.
    let mut hidden = udp(LIAR, ip(11), (9, 9));
    own(&mut hidden);
    (0..9).for_each(|_| scene.drop(DropReason::Vlan, &hidden));
    scene.pass(1);
    assert_eq!(scene.opened()[0].kind, Kind::SpoofedSource, "{:?}", scene.told);
}

#[test]
fn who_wants_the_packets_of_another_is_known_by_the_address_that_gets_them() {
    let mut scene = Scene::new();
    let mut lie = arp(VICTIM, LIAR, Operation::Reply, ip(11), ip(10));
    lie[6..12].copy_from_slice(&mac(0x99).0);
    scene.drop(DropReason::ArpSource, &lie);
    scene.pass(1);
    assert_eq!(scene.opened()[0].source.mac, Some(HardwareAddress(LIAR.0)), "{:?}", scene.told);
}

#[test]
fn what_a_container_of_an_enrolled_host_leaks_is_no_attack() {
    let mut scene = Scene::new();
    for _ in 0..100 {
        scene.drop(DropReason::InnerSource, &udp(OWNER, Ipv4Addr::new(172, 17, 0, 2), (9, 9)));
    }
    scene.pass(1);
    assert!(scene.told.is_empty(), "{:?}", scene.told);
}

#[test]
fn a_few_of_what_links_and_loops_make_are_no_attack() {
    let mut scene = Scene::new();
    for (reason, count) in [(DropReason::Replayed, 20), (DropReason::BadTag, 20), (DropReason::UnknownIndex, 9000)] {
        for _ in 0..count {
            scene.drop(reason, &frame(VICTIM, OWNER, EtherType::CLL, &[7; 40]));
        }
    }
    scene.pass(2);
    assert!(scene.told.is_empty(), "{:?}", scene.told);
}

#[test]
fn what_was_only_counted_has_no_source_and_strangers_that_were_only_counted_are_none() {
    let mut scene = Scene::new();
    scene.ledger.dropped[DropReason::BadSpin as usize] += 1_000_000;
    scene.ledger.dropped[DropReason::PlainArp as usize] += 1_000_000;
    scene.pass(1);
    let [attack] = scene.opened()[..] else { panic!("one attack: {:?}", scene.told) };
    assert_eq!((attack.kind, attack.count, attack.source.is_known()), (Kind::ForgedSealed, 1_000_000, false));
    assert!(attack.sentence().contains("only counted"));
}

#[test]
fn a_lie_in_a_frame_to_all_is_one_attack_with_its_claim() {
    let mut scene = Scene::new();
    let sealed = frame(MacAddress::BROADCAST, LIAR, EtherType::CLL, &[7; 60]);
    scene.drop(DropReason::InnerArp, &sealed);
    let opened = arp(MacAddress::BROADCAST, LIAR, Operation::Reply, ip(11), ip(10));
    scene.ledger.expose(scene.now, Side::WIRE, DropReason::InnerArp, &opened);
    scene.pass(1);
    let [attack] = scene.opened()[..] else { panic!("one attack: {:?}", scene.told) };
    assert_eq!((attack.kind, attack.claimed.ip), (Kind::ArpSpoofing, Some(ip(11).into())));
    assert_eq!(attack.source.mac, Some(HardwareAddress(LIAR.0)));
}

/// A program in the kernel counts, and lets answers of these senders pass, which are dropped for
/// this reason. Somebody looks in between. Who is told to flood, and with how much.
fn counted(count: u64, reason: DropReason, sampled: &[MacAddress]) -> (Option<HardwareAddress>, u64) {
    let mut scene = Scene::new();
    scene.around.asks_in_clear = true;
    for (last, source) in (1..).zip(sampled) {
        scene.drop(reason, &arp(VICTIM, *source, Operation::Reply, Ipv4Addr::new(198, 51, 100, last), ip(10)));
        scene.ledger.dropped[DropReason::SarpUnasked as usize] += count / sampled.len() as u64;
        scene.look();
    }
    scene.ledger.dropped[DropReason::SarpUnasked as usize] += count % sampled.len().max(1) as u64;
    if sampled.is_empty() {
        scene.ledger.dropped[DropReason::SarpUnasked as usize] += count;
    }
    scene.pass(3);
    let open = scene.watch.open();
    let [attack] = &open[..] else { panic!("{open:?}") };
    assert_eq!(attack.kind, Kind::Flood);
    (attack.source.mac, attack.count)
}

#[test]
fn what_was_only_counted_is_his_of_whom_all_samples_are() {
    let liar = Some(HardwareAddress(LIAR.0));
    let unasked = DropReason::SarpUnasked;
    assert_eq!(counted(1000, unasked, &[LIAR; 8]), (liar, 1008));
    assert_eq!(counted(1000, DropReason::PlainArp, &[LIAR; 8]), (liar, 1000), "the daemon has another reason");
    assert_eq!(counted(1000, unasked, &[LIAR; 4]).0, None, "four frames may be anybody's");
    assert_eq!(counted(1000, unasked, &[LIAR, LIAR, LIAR, LIAR, LIAR, OWNER]).0, None, "two talk");
    assert_eq!(counted(1000, DropReason::PlainArp, &[OWNER, LIAR, OWNER, OWNER, OWNER, OWNER]).0, None);
    assert_eq!(counted(1000, unasked, &[]), (None, 1000));
}

#[test]
fn what_our_own_stack_says_is_no_sample() {
    let mut scene = Scene::new();
    let own = arp(OWNER, VICTIM, Operation::Reply, ip(10), ip(11));
    for _ in 0..8 {
        scene.ledger.receive(Side::STACK);
        scene.ledger.settle(scene.now, Side::STACK, Fate::Dropped(DropReason::PortFull), &own);
    }
    scene.ledger.dropped[DropReason::SarpUnasked as usize] += 1000;
    scene.pass(3);
    let [attack] = scene.opened()[..] else { panic!("one attack: {:?}", scene.told) };
    assert_eq!((attack.kind, attack.source.mac), (Kind::Flood, None));
}

#[test]
fn only_what_the_kernel_samples_has_the_sender_of_samples() {
    let mut scene = Scene::new();
    for number in 0..8 {
        scene.drop(DropReason::BadSpin, &frame(VICTIM, OWNER, EtherType::CLL, &[number; 60]));
    }
    scene.ledger.dropped[DropReason::BadSpin as usize] += 1000;
    scene.pass(3);
    let [attack] = scene.opened()[..] else { panic!("one attack: {:?}", scene.told) };
    assert_eq!((attack.kind, attack.source.mac), (Kind::ForgedSealed, None));
}

#[test]
fn a_scan_in_every_name_and_a_flood_from_every_card_stay_few_records() {
    let mut scene = Scene::new();
    for last in 1..=250 {
        scene.around.known.push(known(&format!("host-{last}"), MacAddress([4, 0, 0, 0, 0, last]), last));
    }
    for second in 0..60_u32 {
        for last in 12..250 {
            scene.drop(DropReason::PlainArp, &arp(VICTIM, LIAR, Operation::Reply, ip(last), ip(10)));
            let card = MacAddress([6, 0, 0, 0, second as u8, last]);
            scene.drop(DropReason::PlainArp, &arp(VICTIM, card, Operation::Reply, ip(last), ip(10)));
        }
        scene.pass(1);
    }
    let open = scene.watch.open();
    assert!(open.len() <= attacks::OF_KIND_MAX + 1, "{} open", open.len());
    assert!(open.iter().any(|record| record.is_sum) && scene.watch.folded() > 0);
    assert!(scene.told.len() <= 3 * (attacks::OF_KIND_MAX + 1), "{} told", scene.told.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever bytes are dropped for whatever reason: no panic, and no more than the bounds.
    #[test]
    fn any_frames_make_a_bounded_number_of_attacks(
        frames in proptest::collection::vec((0..DropReason::ALL.len(), proptest::collection::vec(any::<u8>(), 0..120), 1..50_u32), 0..200)
    ) {
        let mut scene = Scene::new();
        for (reason, mut bytes, times) in frames {
            if bytes.len() > 14 {
                let kinds = [[8, 6], [8, 0], [0x86, 0xdd], [7, 0xd0]];
                let at = usize::from(bytes[0]) % kinds.len();
                bytes[12..14].copy_from_slice(&kinds[at]);
            }
            for _ in 0..times {
                scene.drop(DropReason::ALL[reason], &bytes);
            }
            scene.pass(1);
        }
        prop_assert!(scene.watch.open().len() <= Kind::ALL.len() * (attacks::OF_KIND_MAX + 1));
        for record in &scene.told {
            prop_assert!(record.sample.len() <= bump::record::SAMPLE_BYTES);
        }
    }

    /// Guests that speak for themselves are never attackers, in whatever order and with whatever addresses.
    #[test]
    fn honest_strangers_are_no_attack(guests in proptest::collection::vec((any::<[u8; 4]>(), 12..255_u8), 1..100)) {
        let mut scene = Scene::new();
        for ([a, b, c, d], last) in guests {
            small_talk(&mut scene, MacAddress([0x6a, 9, a, b, c, d]), last);
            scene.pass(1);
        }
        prop_assert!(scene.told.is_empty(), "{:?}", scene.told);
    }
}
