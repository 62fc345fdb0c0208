//! Two shields back to back, as an IPsec stack and an attacker between them see it.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

use std::net::IpAddr;
use std::time::Duration;

use bump::sink::Collected;
use bump::{Bump, Checksum, DropReason, Frame, Gso, GsoKind, Instant, Ledger, Meta, Now, Side, VlanTag};
use shield::ipsec::limits::{NEAR_PACKETS, WINDOW_PACKETS};
use shield::ipsec::{End, EpochKey, Layers, PairKeys, PeerSettings, Permutation, Rates, Settings, Shield};
use wire::checksum::{pseudo_header_v4, pseudo_header_v6};

const KEY: [u8; 16] = *b"one pair's key..";
const NEXT_KEY: [u8; 16] = *b"the next epoch's";
const A: &str = "10.0.0.1";
const B: &str = "10.0.0.2";
const SPI: u32 = 0xc0de_0001;
const ESP_IN_UDP: usize = 14 + 20 + 8;

fn at(milliseconds: u64) -> Now {
    Now { since_boot: Instant::from_millis(1_000_000 + milliseconds), wall: None }
}

fn keys(end: End) -> PairKeys {
    PairKeys { end, epochs: vec![EpochKey { number: 1, key: KEY }], send: 1 }
}

fn settings(peer: &str, keys: Option<PairKeys>) -> Settings {
    let address = peer.parse().expect("an address");
    Settings { peers: vec![PeerSettings { address, keys }], ..Settings::default() }
}

fn shields() -> (Shield, Shield) {
    (Shield::new(settings(B, Some(keys(End::A)))), Shield::new(settings(A, Some(keys(End::B)))))
}

/// A datagram in IPv4 or IPv6, by its addresses, with a right checksum.
fn datagram(source: &str, destination: &str, ports: [u16; 2], payload: &[u8]) -> Vec<u8> {
    let len = (8 + payload.len()) as u16;
    let mut udp = [&ports[0].to_be_bytes()[..], &ports[1].to_be_bytes(), &len.to_be_bytes(), &[0, 0], payload].concat();
    let pseudo = match (source.parse().expect("an address"), destination.parse().expect("an address")) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => pseudo_header_v4(source, destination, 17, len),
        (IpAddr::V6(source), IpAddr::V6(destination)) => pseudo_header_v6(source, destination, 17, len.into()),
        _ => panic!("two families"),
    };
    let checksum = Some(pseudo.bytes(&udp).checksum()).filter(|sum| *sum != 0).unwrap_or(0xffff);
    udp[6..8].copy_from_slice(&checksum.to_be_bytes());
    packet(source, destination, 17, &udp)
}

/// A frame with an IP packet.
fn packet(source: &str, destination: &str, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    match (source.parse().expect("an address"), destination.parse().expect("an address")) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let len = (20 + payload.len()) as u16;
            frame.extend([8, 0, 0x45, 0]);
            frame.extend(len.to_be_bytes());
            frame.extend([0, 1, 0, 0, 64, protocol, 0, 0]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
            frame.extend((payload.len() as u16).to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
        }
        _ => panic!("two families"),
    }
    frame.extend(payload);
    frame
}

fn esp(spi: u32, sequence: u32) -> Vec<u8> {
    [&spi.to_be_bytes()[..], &sequence.to_be_bytes(), b"ciphertext and tag"].concat()
}

/// AH in front of `next`, with an ICV of 96 bits.
fn ah(spi: u32, sequence: u32, next: u8, behind: &[u8]) -> Vec<u8> {
    [&[next, 4, 0, 0][..], &spi.to_be_bytes(), &sequence.to_be_bytes(), &[0xcc; 12], behind].concat()
}

/// ESP in UDP from A to B.
fn esp_in_udp(spi: u32, sequence: u32) -> Vec<u8> {
    datagram(A, B, [4500, 4500], &esp(spi, sequence))
}

fn send(shield: &mut Shield, now: Now, from: Side, bytes: &[u8], meta: Meta) -> Vec<Vec<u8>> {
    let (mut sink, mut bytes) = (Collected::new(), bytes.to_vec());
    shield.process(now, from, &mut Some(Frame { bytes: &mut bytes, meta }), &mut sink);
    let sent = sink.take();
    assert!(sent.iter().all(|(to, ..)| *to == from.other()));
    sent.into_iter().map(|(_, bytes, _)| bytes).collect()
}

/// What one plain frame becomes.
fn pass(shield: &mut Shield, now: Now, from: Side, bytes: &[u8]) -> Option<Vec<u8>> {
    send(shield, now, from, bytes, Meta::plain()).pop()
}

fn ledger(shield: &Shield) -> Ledger {
    let mut ledger = Ledger::new();
    shield.add_to_ledger(&mut ledger);
    assert_eq!(ledger.balance(), 0);
    ledger
}

fn drops(shield: &Shield, reason: DropReason) -> u64 {
    ledger(shield).drops(reason)
}

fn word(frame: &[u8], place: usize) -> u32 {
    u32::from_be_bytes(frame[place..place + 4].try_into().expect("four bytes"))
}

/// Whether the UDP checksum of an IPv4 frame without options is right.
fn checksum_is_right(frame: &[u8]) -> bool {
    let octets = |place: usize| std::net::Ipv4Addr::from(word(frame, place));
    let udp = &frame[34..];
    pseudo_header_v4(octets(26), octets(30), 17, udp.len() as u16).bytes(udp).checksum() == 0
}

/// Has B learn SPI by two packets.
fn acquaint(a: &mut Shield, b: &mut Shield) {
    for sequence in [1, 2] {
        let sealed = pass(a, at(0), Side::STACK, &esp_in_udp(SPI, sequence)).expect("sealed");
        assert!(pass(b, at(0), Side::WIRE, &sealed).is_some());
    }
}

#[test]
fn a_packet_comes_out_as_it_went_in_and_looks_different_on_the_way() {
    let (mut a, mut b) = shields();
    for sequence in 1..=100 {
        let plain = esp_in_udp(SPI, sequence);
        let sealed = pass(&mut a, at(0), Side::STACK, &plain).expect("sealed");
        assert_eq!(sealed.len(), plain.len());
        assert_ne!(word(&sealed, ESP_IN_UDP), SPI);
        assert!(checksum_is_right(&sealed), "{sequence}");
        assert_eq!(pass(&mut b, at(0), Side::WIRE, &sealed).expect("opened"), plain, "{sequence}");
    }
    let report = &b.report()[0];
    assert_eq!((report.known, report.counters.learned, report.counters.on_trial), (1, 1, 1));
    assert_eq!((report.counters.passed, a.report()[0].counters.sealed), (100, 100));
    assert!(matches!(b.next_event(), Some(shield::ipsec::Event::SpiLearned { spi: SPI, .. })));
}

#[test]
fn raw_esp_and_ipv6_pass_as_well() {
    let (a6, b6) = ("fd00::1", "fd00::2");
    let mut a = Shield::new(settings(b6, Some(keys(End::A))));
    let mut b = Shield::new(settings(a6, Some(keys(End::B))));
    for (sequence, place, plain) in [
        (1, 14 + 40, packet(a6, b6, 50, &esp(SPI, 1))),
        (2, 14 + 48, datagram(a6, b6, [4500, 4500], &esp(SPI, 2))),
        // Behind a destination options header.
        (3, 14 + 48, packet(a6, b6, 60, &[&[50, 0, 1, 4, 0, 0, 0, 0][..], &esp(SPI, 3)].concat())),
        // The first fragment of more.
        (4, 14 + 48, packet(a6, b6, 44, &[&[50, 0, 0, 1, 0, 0, 0, 9][..], &esp(SPI, 4)].concat())),
    ] {
        let sealed = pass(&mut a, at(0), Side::STACK, &plain).expect("sealed");
        assert_eq!(word(&sealed, place), Permutation::new(&KEY, End::A).seal(SPI, sequence));
        assert_eq!(pass(&mut b, at(0), Side::WIRE, &sealed).expect("opened"), plain, "{sequence}");
    }
}

/// Passed unchecked from anybody in IPv4, and was looked through in IPv6. Its ICV covers the SPI,
/// so that must be back when the stack sees it.
#[test]
fn ah_is_judged_as_esp_is() {
    let inner = esp(SPI + 7, 1);
    for (a, b, header) in [(A, B, None), ("fd00::1", "fd00::2", None), ("fd00::1", "fd00::2", Some(60))] {
        let framed = |next, sequence, behind: &[u8]| match header {
            Some(option) => {
                packet(a, b, option, &[&[51, 0, 1, 4, 0, 0, 0, 0][..], &ah(SPI, sequence, next, behind)].concat())
            }
            None => packet(a, b, 51, &ah(SPI, sequence, next, behind)),
        };
        let mut sender = Shield::new(settings(b, Some(keys(End::A))));
        let mut receiver = Shield::new(settings(a, Some(keys(End::B))));
        for (sequence, next, behind) in [(1, 6, &[1; 40][..]), (2, 50, &inner), (3, 6, &[1; 40])] {
            let plain = framed(next, sequence, behind);
            let wire = pass(&mut sender, at(0), Side::STACK, &plain).expect("sealed");
            assert_ne!(wire, plain);
            let changed: Vec<usize> = (0..plain.len()).filter(|&at| plain[at] != wire[at]).collect();
            let place = plain.len() - ah(SPI, sequence, next, behind).len() + 4;
            assert!(changed.iter().all(|at| (place..place + 4).contains(at)), "only its SPI: {changed:?}");
            assert_eq!(pass(&mut receiver, at(0), Side::WIRE, &wire), Some(plain));
            if sequence == 3 {
                assert_eq!(pass(&mut receiver, at(0), Side::WIRE, &wire), None);
                assert_eq!(drops(&receiver, DropReason::ShieldReplay), 1);
            }
        }
        // Forged ones cost the peer's budget of unknown SPIs, and no more come to the stack.
        let forged = (0..1000_u32).filter(|number| {
            let packet = packet(a, b, 51, &ah(0x4000_0000 + number * 7919, number * 100_000, 6, &[1; 40]));
            pass(&mut receiver, at(0), Side::WIRE, &packet).is_some()
        });
        assert!(forged.count() <= 200);
        assert!(drops(&receiver, DropReason::ShieldSpi) > 700);
    }
}

#[test]
fn ah_of_strangers_and_pieces_of_it_end() {
    let (_, mut b) = shields();
    assert!(pass(&mut b, at(0), Side::WIRE, &packet("10.0.0.9", B, 51, &ah(SPI, 1, 6, &[1; 40]))).is_none());
    assert_eq!(drops(&b, DropReason::ShieldStranger), 1);
    // Cut before its sequence number, and with an SPI that is reserved.
    assert!(pass(&mut b, at(0), Side::WIRE, &packet(A, B, 51, &ah(SPI, 1, 6, &[])[..11])).is_none());
    assert!(pass(&mut b, at(0), Side::WIRE, &packet(A, B, 51, &ah(200, 1, 6, &[]))).is_none());
    assert_eq!(drops(&b, DropReason::ShieldUnreadable), 2);
    // Later fragments have the budget of fragments, whoever says they are of AH.
    let mut later = packet(A, B, 51, &[1; 40]);
    later[14 + 7] = 9;
    let passed = (0..20_000).filter(|_| pass(&mut b, at(0), Side::WIRE, &later).is_some()).count();
    assert_eq!(drops(&b, DropReason::ShieldFragmentBudget) as usize, 20_000 - passed);
}

#[test]
fn no_checksum_and_one_still_to_be_completed_stay_what_they_are() {
    let (mut a, _) = shields();
    let mut plain = esp_in_udp(SPI, 7);
    plain[40..42].fill(0);
    let sealed = pass(&mut a, at(0), Side::STACK, &plain).expect("sealed");
    assert_eq!(sealed[40..42], [0, 0]);
    plain[40..42].copy_from_slice(&[0x12, 0x34]);
    let meta = Meta { checksum: Checksum::Partial { start: 34, offset: 6 }, ..Meta::plain() };
    let sealed = send(&mut a, at(0), Side::STACK, &plain, meta).pop().expect("sealed");
    assert_eq!(sealed[40..42], [0x12, 0x34]);
}

#[test]
fn a_sum_that_comes_out_as_zero_is_written_as_ffff() {
    let (mut a, _) = shields();
    // Among so many packets some have the sum zero, which would say that there is none (RFC 768).
    let mut met = false;
    for sequence in 1..200_000 {
        let sealed = pass(&mut a, at(0), Side::STACK, &esp_in_udp(SPI, sequence)).expect("sealed");
        assert!(sealed[40..42] != [0, 0], "{sequence}");
        met |= sealed[40..42] == [0xff, 0xff] && checksum_is_right(&sealed);
    }
    assert!(met);
}

#[test]
fn forged_packets_pass_in_small_numbers_only() {
    let (mut a, mut b) = shields();
    acquaint(&mut a, &mut b);
    let allowed = Rates::default().unknown_spi as usize;
    let passed = |b: &mut Shield, now| {
        (0..5000_u32).filter(|n| pass(b, now, Side::WIRE, &esp_in_udp(0x1000_0000 + n, 5 + n)).is_some()).count()
    };
    assert_eq!(passed(&mut b, at(0)), allowed - 1, "one of this second was the first packet of the association");
    assert_eq!(passed(&mut b, at(1000)), allowed);
    assert_eq!(drops(&b, DropReason::ShieldSpi), 10_000 - 2 * allowed as u64 + 1);
    let honest = pass(&mut a, at(1000), Side::STACK, &esp_in_udp(SPI, 3)).expect("sealed");
    assert!(pass(&mut b, at(1000), Side::WIRE, &honest).is_some());
}

#[test]
fn a_recorded_index_is_worthless_under_another_number_and_passes_once_under_its_own() {
    let (mut a, mut b) = shields();
    acquaint(&mut a, &mut b);
    let recorded = pass(&mut a, at(0), Side::STACK, &esp_in_udp(SPI, 3)).expect("sealed");
    for n in 0..1000 {
        pass(&mut b, at(0), Side::WIRE, &esp_in_udp(0x7000_0000 + n, n)); // uses this second's budget up
    }
    let mut forged = recorded.clone();
    forged[ESP_IN_UDP + 4..ESP_IN_UDP + 8].copy_from_slice(&4_u32.to_be_bytes());
    let before = drops(&b, DropReason::ShieldSpi);
    assert!(pass(&mut b, at(0), Side::WIRE, &forged).is_none());
    assert_eq!(drops(&b, DropReason::ShieldSpi), before + 1);
    assert!(pass(&mut b, at(0), Side::WIRE, &recorded).is_some());
    assert!(pass(&mut b, at(0), Side::WIRE, &recorded).is_none());
    assert_eq!(drops(&b, DropReason::ShieldReplay), 1);
}

#[test]
fn rekeying_under_traffic_loses_nothing() {
    let (mut a, mut b) = shields();
    for association in 0..1000_u32 {
        for sequence in 1..=20 {
            let plain = esp_in_udp(SPI + association, sequence);
            let sealed = pass(&mut a, at(u64::from(association) * 20), Side::STACK, &plain).expect("sealed");
            let opened = pass(&mut b, at(u64::from(association) * 20), Side::WIRE, &sealed);
            assert_eq!(opened, Some(plain), "association {association}, packet {sequence}");
        }
    }
    assert_eq!(b.report()[0].known, shield::ipsec::limits::KNOWN_MAX);
}

#[test]
fn one_lucky_guess_does_not_move_the_window() {
    let (mut a, mut b) = shields();
    acquaint(&mut a, &mut b);
    let mut sealed = |sequence| pass(&mut a, at(0), Side::STACK, &esp_in_udp(SPI, sequence)).expect("sealed");
    let far = 3 + NEAR_PACKETS as u32;
    let (lucky, next, after) = (sealed(far), sealed(3), sealed(far + 1));
    assert!(pass(&mut b, at(0), Side::WIRE, &lucky).is_some(), "on trial");
    assert!(pass(&mut b, at(0), Side::WIRE, &next).is_some(), "the window is where it was");
    assert!(pass(&mut b, at(0), Side::WIRE, &after).is_some(), "the second one near it proves the first");
    let old = sealed(far - WINDOW_PACKETS as u32);
    assert!(pass(&mut b, at(0), Side::WIRE, &old).is_none());
    assert_eq!(drops(&b, DropReason::ShieldReplay), 1);
}

#[test]
fn a_flood_of_far_numbers_is_bounded() {
    let (mut a, mut b) = shields();
    acquaint(&mut a, &mut b);
    let passed = (0..500_u32).filter(|n| {
        let far = 1_000_000 + n * 2 * NEAR_PACKETS as u32;
        let sealed = pass(&mut a, at(0), Side::STACK, &esp_in_udp(SPI, far)).expect("sealed");
        pass(&mut b, at(0), Side::WIRE, &sealed).is_some()
    });
    assert_eq!(passed.count(), Rates::default().unknown_spi as usize - 1);
    assert_eq!(drops(&b, DropReason::ShieldFar), 401);
}

#[test]
fn an_association_of_extended_numbers_goes_on_in_its_next_lap() {
    let (mut a, mut b) = shields();
    let through = |a: &mut Shield, b: &mut Shield, low: u32| {
        let sealed = pass(a, at(0), Side::STACK, &esp_in_udp(SPI, low)).expect("sealed");
        (word(&sealed, ESP_IN_UDP), pass(b, at(0), Side::WIRE, &sealed).is_some())
    };
    let (first, _) = through(&mut a, &mut b, 5);
    let steps = (0..=u32::MAX).step_by(NEAR_PACKETS as usize - 1).chain([u32::MAX - 1, 3, 4]);
    for low in steps {
        assert!(through(&mut a, &mut b, low).1, "{low:#x}");
    }
    let (again, passed) = through(&mut a, &mut b, 5);
    assert!(passed && first != again, "no index comes twice in an association");
}

#[test]
fn ike_keepalives_and_fragments_have_budgets_of_their_own() {
    let (_, mut b) = shields();
    let mut fragment = packet(A, B, 17, &[7; 64]);
    fragment[14 + 7] = 9;
    let rates = Rates { fragment: 10_000, ..Rates::default() };
    for (frame, allowed, reason) in [
        (datagram(A, B, [4500, 4500], &[0, 0, 0, 0, 1, 2, 3, 4]), rates.ike, DropReason::ShieldIkeBudget),
        (datagram(A, B, [4500, 4500], &[0xff]), rates.keepalive, DropReason::ShieldKeepaliveBudget),
        (fragment, rates.fragment, DropReason::ShieldFragmentBudget),
    ] {
        let passed =
            (0..allowed + 50).filter(|_| pass(&mut b, at(0), Side::WIRE, &frame).is_some_and(|out| out == frame));
        assert_eq!((passed.count(), drops(&b, reason)), (allowed as usize, 50));
    }
    let ike = datagram(A, B, [500, 500], &[1, 2, 3]);
    assert!(pass(&mut b, at(0), Side::WIRE, &ike).is_none(), "both ports share the budget");
    assert!(pass(&mut b, at(100), Side::WIRE, &ike).is_some());
}

#[test]
fn strangers_end_and_what_is_no_ipsec_passes_untouched() {
    let (_, mut b) = shields();
    let stranger = datagram("10.0.0.9", B, [4500, 4500], &esp(SPI, 1));
    assert!(pass(&mut b, at(0), Side::WIRE, &stranger).is_none());
    assert!(pass(&mut b, at(0), Side::WIRE, &datagram("10.0.0.9", B, [500, 500], &[1])).is_none());
    assert_eq!(drops(&b, DropReason::ShieldStranger), 2);
    let dns = datagram("10.0.0.9", B, [53, 33_333], b"answer");
    let arp = [&[0xff; 12][..], &[8, 6], &[0; 46]].concat();
    for other in [dns, arp, packet(A, B, 6, &[1; 40]), vec![0; 20]] {
        assert_eq!(pass(&mut b, at(0), Side::WIRE, &other).as_ref(), Some(&other));
        assert_eq!(pass(&mut b, at(0), Side::STACK, &other).as_ref(), Some(&other));
    }
    let open = Settings { layers: Layers { source: false, ..Layers::default() }, ..settings(A, None) };
    assert!(pass(&mut Shield::new(open), at(0), Side::WIRE, &stranger).is_some());
}

#[test]
fn what_only_pretends_to_be_ipsec_ends() {
    let (_, mut b) = shields();
    let mut contradiction = datagram(A, B, [4500, 4500], &esp(SPI, 1));
    contradiction[38..40].copy_from_slice(&200_u16.to_be_bytes());
    let mut hidden = esp_in_udp(SPI, 1);
    hidden[14 + 6] = 0x20; // A first fragment that ends before the SPI.
    hidden.truncate(14 + 20 + 8);
    hidden[16..18].copy_from_slice(&28_u16.to_be_bytes());
    let chain = [&[60_u8, 0, 1, 4, 0, 0, 0, 0].repeat(10)[..], &[0; 40]].concat();
    let mut deep = Shield::new(settings("fd00::1", Some(keys(End::B))));
    let frames = [
        datagram(A, B, [4500, 4500], &[]),
        datagram(A, B, [4500, 4500], &[1, 2, 3]),
        datagram(A, B, [4500, 4500], &esp(200, 1)),
        packet(A, B, 50, &[1, 2, 3, 4]),
        contradiction,
        hidden,
    ];
    for (count, frame) in (1..).zip(&frames) {
        assert!(pass(&mut b, at(0), Side::WIRE, frame).is_none(), "{frame:?}");
        assert_eq!(drops(&b, DropReason::ShieldUnreadable), count);
    }
    assert!(pass(&mut deep, at(0), Side::WIRE, &packet("fd00::1", "fd00::2", 60, &chain)).is_none());
    let tag = VlanTag { tpid: 0x8100, tci: 0 };
    let tagged = Meta { vlan: Some(tag), ..Meta::plain() };
    assert!(send(&mut b, at(0), Side::WIRE, &esp_in_udp(SPI, 1), tagged).is_empty());
    assert_eq!(drops(&b, DropReason::Vlan), 1);
}

#[test]
fn a_peer_without_a_shield_is_served_in_clear() {
    let mut b = Shield::new(settings(A, None));
    for sequence in [1, 2, 2, 1, 900_000] {
        let frame = esp_in_udp(SPI, sequence);
        assert_eq!(pass(&mut b, at(0), Side::WIRE, &frame).as_ref(), Some(&frame));
    }
    let passed = (0..1000).filter(|n| pass(&mut b, at(0), Side::WIRE, &esp_in_udp(0x2000_0000 + n, *n)).is_some());
    assert_eq!(passed.count(), Rates::default().unknown_spi as usize - 2);
    let out = datagram(B, A, [4500, 4500], &esp(SPI, 1));
    assert_eq!(pass(&mut b, at(0), Side::STACK, &out).as_ref(), Some(&out));
}

#[test]
fn the_range_of_the_stack_spares_the_budget() {
    let narrow = Settings { spis: 0xc000_0000..=0xc000_0fff, ..settings(A, Some(keys(End::B))) };
    let mut b = Shield::new(narrow);
    let passed =
        (0..100_000_u32).filter(|n| pass(&mut b, at(0), Side::WIRE, &esp_in_udp(0x1000_0000 + n * 7, *n)).is_some());
    assert!(passed.count() <= 2, "one forged packet in 2^20 falls into a range of 2^12");
    assert!(drops(&b, DropReason::ShieldRange) >= 99_998);
    let mut a = Shield::new(settings(B, Some(keys(End::A))));
    let sealed = pass(&mut a, at(0), Side::STACK, &esp_in_udp(0xc000_0123, 1)).expect("sealed");
    assert!(pass(&mut b, at(0), Side::WIRE, &sealed).is_some(), "a new association is not kept out by the flood");
}

#[test]
fn the_epoch_changes_without_a_gap() {
    let (mut a, mut b) = shields();
    acquaint(&mut a, &mut b);
    let pair = |end, numbers: &[u32], send| {
        let key = |number: &u32| EpochKey { number: *number, key: if *number == 1 { KEY } else { NEXT_KEY } };
        Some(PairKeys { end, epochs: numbers.iter().map(key).collect(), send })
    };
    let mut sequence = 2;
    let mut steps = |a: &mut Shield, b: &mut Shield, numbers: [&[u32]; 2], sends: [u32; 2]| {
        a.set_keys(&settings(B, pair(End::A, numbers[0], sends[0])).peers);
        b.set_keys(&settings(A, pair(End::B, numbers[1], sends[1])).peers);
        sequence += 1;
        let plain = esp_in_udp(SPI, sequence);
        let sealed = pass(a, at(0), Side::STACK, &plain).expect("sealed");
        assert_eq!(pass(b, at(0), Side::WIRE, &sealed), Some(plain), "{numbers:?} {sends:?}");
    };
    steps(&mut a, &mut b, [&[1, 2], &[1]], [1, 1]);
    steps(&mut a, &mut b, [&[1, 2], &[1, 2]], [1, 1]);
    steps(&mut a, &mut b, [&[1, 2], &[1, 2]], [2, 1]);
    steps(&mut a, &mut b, [&[1, 2], &[1, 2]], [2, 2]);
    steps(&mut a, &mut b, [&[2], &[1, 2]], [2, 2]);
    assert_eq!(b.report()[0].counters.on_trial, 1, "only the first packet of all");
    assert_eq!(a.report()[0].epochs, Some((2, vec![2])));
}

#[test]
fn every_datagram_of_a_super_frame_is_judged_for_itself() {
    let (mut a, mut b) = shields();
    acquaint(&mut a, &mut b);
    let one = esp(SPI, 3);
    let payload = [one.clone(), esp(SPI, 4), esp(SPI, 2)].concat();
    let mut frame = datagram(A, B, [4500, 4500], &payload);
    let pseudo = pseudo_header_v4(A.parse().expect("one"), B.parse().expect("one"), 17, 8 + payload.len() as u16);
    frame[40..42].copy_from_slice(&pseudo.fold().to_be_bytes());
    let gso = Gso { kind: GsoKind::Udp, size: one.len() as u16, ecn: false };
    let meta = Meta { checksum: Checksum::Partial { start: 34, offset: 6 }, gso: Some(gso), ..Meta::plain() };
    let sealed = send(&mut a, at(0), Side::STACK, &frame, meta);
    let permutation = Permutation::new(&KEY, End::A);
    let expected = [3, 4, 2].map(|sequence| permutation.seal(SPI, sequence));
    assert_eq!(sealed.iter().map(|frame| word(frame, ESP_IN_UDP)).collect::<Vec<_>>(), expected);
    let plain = Meta { checksum: Checksum::Partial { start: 34, offset: 6 }, ..Meta::plain() };
    let opened: usize = sealed.iter().map(|frame| send(&mut b, at(0), Side::WIRE, frame, plain).len()).sum();
    assert_eq!(opened, 2, "2 has passed before");
    assert_eq!(ledger(&a).received[0], 3);
}

#[test]
fn each_layer_can_be_switched_off() {
    let with =
        |layers| Shield::new(Settings { layers, spis: 0xc000_0000..=0xcfff_ffff, ..settings(A, Some(keys(End::B))) });
    let all = Layers::default();
    let mut no_spi = with(Layers { spi: false, range: false, ..all });
    let passed = (0..1000).filter(|n| pass(&mut no_spi, at(0), Side::WIRE, &esp_in_udp(0x5000_0000 + n, *n)).is_some());
    assert_eq!(passed.count(), 1000);
    let mut a = Shield::new(settings(B, Some(keys(End::A))));
    let mut no_window = with(Layers { window: false, ..all });
    acquaint(&mut a, &mut no_window);
    let sealed = pass(&mut a, at(0), Side::STACK, &esp_in_udp(SPI, 3)).expect("sealed");
    assert!((0..5).all(|_| pass(&mut no_window, at(0), Side::WIRE, &sealed).is_some()));
    let mut no_budgets = with(Layers { budgets: false, ..all });
    let ike = datagram(A, B, [500, 500], &[1]);
    assert!((0..1000).all(|_| pass(&mut no_budgets, at(0), Side::WIRE, &ike).is_some()));
}

#[test]
fn the_golden_indexes_of_the_written_protocol() {
    let text = include_str!("../../../vectors/shield-ipsec.txt");
    let number = |text: &str| u64::from_str_radix(text, 16).expect("hex");
    let mut checked = 0;
    for line in text.lines().filter(|line| line.starts_with("index.")) {
        let (name, value) = line.split_once(" = ").expect("a value");
        let [_, end, spi, sequence] = name.split('.').collect::<Vec<_>>().try_into().expect("four parts");
        let end = if end == "a" { End::A } else { End::B };
        let key = text.lines().find_map(|line| line.strip_prefix("key = ")).expect("a key");
        let key: [u8; 16] = std::array::from_fn(|at| number(&key[2 * at..2 * at + 2]) as u8);
        let permutation = Permutation::new(&key, end);
        assert_eq!(u64::from(permutation.seal(number(spi) as u32, number(sequence))), number(value), "{line}");
        checked += 1;
    }
    assert!(checked >= 20, "{checked}");
}

proptest::proptest! {
    #[test]
    fn no_bytes_panic_and_the_books_balance(frames: Vec<(bool, Vec<u8>)>, head in 0_usize..4) {
        let (_, mut b) = shields();
        for (outwards, tail) in frames {
            let start = esp_in_udp(SPI, 9);
            let bytes = [&start[..head * 14], &tail].concat();
            pass(&mut b, at(0), if outwards { Side::STACK } else { Side::WIRE }, &bytes);
        }
        proptest::prop_assert_eq!(ledger(&b).balance(), 0);
    }
}

#[test]
fn time_fills_the_budget_again() {
    let (_, mut b) = shields();
    let frame = |n: u32| esp_in_udp(0x1000_0000 + n, n);
    assert_eq!((0..1000).filter(|n| pass(&mut b, at(0), Side::WIRE, &frame(*n)).is_some()).count(), 100);
    let later = Now { since_boot: at(0).since_boot + Duration::from_millis(500), wall: None };
    assert_eq!((0..1000).filter(|n| pass(&mut b, later, Side::WIRE, &frame(*n)).is_some()).count(), 50);
}
