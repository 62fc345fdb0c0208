//! The evasions at the network layer, one test for each: its first line says what leaves.
#![allow(clippy::panic, reason = "helpers of tests fail like tests")]

#[path = "receivers/ip.rs"]
mod receivers;
#[path = "support/ip.rs"]
mod support;

use std::time::Duration;

use bump::sink::Collected;
use bump::{Bump, DropReason, Frame, Gso, GsoKind, Meta, Now, Side, VlanTag};
use receivers::{Fragment, Policy};
use scrub::settings::Network;
use scrub::{Action, Preset, Rule, Settings, limits};
use support::{
    DESTINATION, DONT_FRAGMENT, FRAGMENT, Gate, HOP_BY_HOP, ICMPV6, MORE, NO_NEXT, OPAQUE, RESERVED, ROUTING, TCP, V4,
    V6, checksum, cut, fix_checksum, fragment_header, is_fragment, payload, read,
};

/// Eight-byte blocks of one letter each, from block `start` on.
fn blocks(start: usize, letters: &str, more: bool) -> Fragment {
    let bytes = letters.bytes().flat_map(|letter| [letter; 8]).collect();
    Fragment { offset: start * 8, bytes, more }
}

/// What hosts of all policies read from `frames`, as letters, if it is one packet and they agree.
fn agreed(frames: &[Vec<u8>]) -> Option<String> {
    let first = read(Policy::First, frames);
    for policy in Policy::ALL {
        assert_eq!(read(policy, frames), first, "{policy:?}");
    }
    let [bytes] = &first[..] else { return None };
    Some(bytes.iter().step_by(8).map(|byte| *byte as char).collect())
}

/// What leaves of the packet that comes in these fragments, in this order; hosts would not agree about what came.
fn v4(fragments: &[Fragment]) -> Option<String> {
    let sent: Vec<_> = fragments.iter().map(|fragment| V4::default().fragment(fragment)).collect();
    let unscrubbed = Policy::ALL.map(|policy| read(policy, &sent));
    assert!(unscrubbed.iter().any(|read| *read != unscrubbed[0]));
    agreed(&Gate::new().send_all(&sent))
}

/// Why a frame from the untrusted side is dropped.
fn refusal(frame: &[u8]) -> DropReason {
    let mut gate = Gate::new();
    assert_eq!(gate.send(frame), [] as [Vec<u8>; 0]);
    let dropped: Vec<_> = DropReason::ALL.iter().filter(|reason| gate.drops(**reason) == 1).collect();
    let [reason] = dropped[..] else { panic!("{dropped:?}, {} held", gate.held()) };
    *reason
}

/// What leaves of a frame that leaves as one.
fn scrubbed(frame: &[u8]) -> Vec<u8> {
    let mut left = Gate::new().send(frame);
    assert_eq!(left.len(), 1);
    left.remove(0)
}

fn off(rule: Rule) -> Gate {
    let mut settings = Settings::preset(Preset::Balanced);
    settings.rules.set(rule, Action::Off);
    Gate::with(settings)
}

#[test]
fn case_01_new_inside_old() {
    // The old bytes leave.
    assert_eq!(v4(&[blocks(0, "hAAA", true), blocks(2, "B", true), blocks(4, "z", false)]).as_deref(), Some("hAAAz"));
}

#[test]
fn case_02_new_covers_old() {
    // The old bytes leave, with the new ones on either side.
    let fragments = [blocks(0, "h", true), blocks(2, "A", true), blocks(1, "BBB", true), blocks(4, "z", false)];
    assert_eq!(v4(&fragments).as_deref(), Some("hBABz"));
}

#[test]
fn case_03_new_overlaps_the_head_of_old() {
    // The old bytes leave.
    let fragments = [blocks(0, "h", true), blocks(2, "AA", true), blocks(1, "BB", true), blocks(4, "z", false)];
    assert_eq!(v4(&fragments).as_deref(), Some("hBAAz"));
}

#[test]
fn case_04_new_overlaps_the_tail_of_old() {
    // The old bytes leave.
    let fragments = [blocks(0, "h", true), blocks(1, "AA", true), blocks(2, "BB", true), blocks(4, "z", false)];
    assert_eq!(v4(&fragments).as_deref(), Some("hAABz"));
}

#[test]
fn case_05_three_chunks() {
    // Each byte leaves as it came first, which no rule for pairs foretells (all relations: tests/fragments_ip.rs).
    let fragments = [
        blocks(0, "h", true),
        blocks(1, "AA", true),
        blocks(4, "CC", true),
        blocks(2, "BBB", true),
        blocks(6, "z", false),
    ];
    assert_eq!(v4(&fragments).as_deref(), Some("hAABCCz"));
}

#[test]
fn case_06_overlapping_last_fragment_leaves_a_hole() {
    // Nothing leaves before the hole is filled, although the last fragment has come.
    let mut gate = Gate::new();
    let send = |gate: &mut Gate, fragment| gate.send(&V4::default().fragment(&fragment));
    assert!(send(&mut gate, blocks(0, "hA", true)).is_empty());
    assert!(send(&mut gate, blocks(3, "A", true)).is_empty());
    assert!(send(&mut gate, blocks(3, "Bz", false)).is_empty());
    assert_eq!(agreed(&send(&mut gate, blocks(2, "C", true))).as_deref(), Some("hACAz"));
    assert_eq!(gate.held(), 0);
}

#[test]
fn case_07_two_ends() {
    // Nothing leaves: two last fragments that end apart end the packet.
    for (one, other) in [("zz", "z"), ("z", "zz")] {
        let mut gate = Gate::new();
        let fragments = [blocks(1, one, false), blocks(1, other, false), blocks(0, "h", true)];
        let sent: Vec<_> = fragments.iter().map(|fragment| V4::default().fragment(fragment)).collect();
        assert!(gate.send_all(&sent).is_empty());
        assert_eq!((gate.drops(DropReason::FragmentConflict), gate.held()), (2, 1));
    }
}

#[test]
fn case_08_data_behind_the_end() {
    // Nothing leaves: a fragment behind the last ends the packet, whichever came first.
    let (end, behind, rest) = (blocks(2, "zz", false), blocks(4, "x", true), blocks(0, "hh", true));
    // One that ends with it and says that more follows is no different.
    let contrary = blocks(3, "x", true);
    for order in [[&end, &behind, &rest], [&behind, &end, &rest], [&end, &contrary, &rest], [&contrary, &end, &rest]] {
        let mut gate = Gate::new();
        assert!(gate.send_all(&order.map(|fragment| V4::default().fragment(fragment))).is_empty());
        assert_eq!((gate.drops(DropReason::FragmentConflict), gate.held()), (2, 1));
    }
}

#[test]
fn case_09_length_that_nothing_can_follow() {
    // The fragment is dropped: another cannot begin where it ends.
    let odd = Fragment { offset: 8, bytes: vec![b'x'; 13], more: true };
    assert_eq!(refusal(&V4::default().fragment(&odd)), DropReason::FragmentMalformed);
    assert_eq!(refusal(&V6::default().fragment(&odd)), DropReason::FragmentMalformed);
}

#[test]
fn case_10_empty_fragment() {
    // The fragment is dropped, as a last one and as another.
    for more in [true, false] {
        let empty = Fragment { offset: 8, bytes: Vec::new(), more };
        assert_eq!(refusal(&V4::default().fragment(&empty)), DropReason::FragmentMalformed);
        assert_eq!(refusal(&V6::default().fragment(&empty)), DropReason::FragmentMalformed);
    }
}

#[test]
fn case_11_ping_of_death() {
    // The fragment is dropped: its packet would be longer than a packet can be.
    let beyond = Fragment { offset: 65_528, bytes: vec![0; 8], more: false };
    assert_eq!(refusal(&V4::default().fragment(&beyond)), DropReason::FragmentMalformed);
    assert_eq!(refusal(&V6::default().fragment(&beyond)), DropReason::FragmentMalformed);
    // The longest that there can be does leave.
    for (len, count) in [(65_515, 45), (65_516, 0)] {
        let sent: Vec<_> = cut(&vec![b'x'; len], 1480).iter().map(|one| V4::default().fragment(one)).collect();
        assert_eq!(Gate::new().send_all(&sent).len(), count, "{len}");
    }
}

#[test]
fn case_12_tiny_first_fragment() {
    // The packet leaves in one piece, or in pieces of which the first has ports and flags.
    let short: Vec<_> = cut(&[b'x'; 40], 8).iter().map(|one| V4::default().fragment(one)).collect();
    let left = Gate::new().send_all(&short);
    assert_eq!((left.len(), is_fragment(&left[0]), payload(&left[0])), (1, false, &[b'x'; 40][..]));
    let long: Vec<_> = cut(&[b'x'; 200], 8).iter().map(|one| V4::default().fragment(one)).collect();
    let left = Gate::new().send_all(&long);
    assert!(left.len() > 1 && payload(&left[0]).len() >= 40);
    assert_eq!(agreed(&left), Some("x".repeat(25)));
}

#[test]
fn case_13_reverse_order() {
    // The packet leaves once, when its last missing fragment has come, in order.
    let sent: Vec<_> = cut(&[b'x'; 100], 48).iter().rev().map(|one| V4::default().fragment(one)).collect();
    let mut gate = Gate::new();
    assert!(gate.send_all(&sent[..2]).is_empty());
    let left = gate.send(&sent[2]);
    assert!(left.iter().eq(sent.iter().rev()));
    assert_eq!(gate.ledger().forwarded[Side::UNTRUSTED as usize], 3);
}

#[test]
fn case_14_duplicates() {
    // The packet leaves once: what comes twice changes nothing.
    for size in [1448, 1232] {
        let pieces = cut(&[b'x'; 3000], size);
        let v4: Vec<_> = pieces.iter().map(|piece| V4::default().fragment(piece)).collect();
        let v6: Vec<_> = pieces.iter().map(|piece| V6::default().fragment(piece)).collect();
        for sent in [v4, v6] {
            let mut gate = Gate::new();
            let order = [0, 0, 1, 0, 1, 2].map(|at: usize| sent[at].clone());
            assert!(gate.send_all(&order) == sent);
            assert_eq!(gate.held(), 0);
        }
    }
}

#[test]
fn case_15_identification_used_again() {
    // Nothing leaves of two packets with one identification whose first fragments differ.
    let mut gate = Gate::new();
    let packets = [blocks(0, "aa", true), blocks(0, "bb", true), blocks(2, "bb", false)];
    let sent: Vec<_> = packets.iter().map(|fragment| V4::default().fragment(fragment)).collect();
    assert!(gate.send_all(&sent).is_empty());
    assert_eq!(gate.drops(DropReason::FragmentConflict), 2);
    // In other VLANs, for other protocols and from the other side they are other packets.
    let mut gate = Gate::new();
    let (first, last) = (blocks(0, "aa", true), blocks(2, "bb", false));
    gate.send(&V4::default().fragment(&first));
    let vlan = Some(VlanTag { tpid: 0x8100, tci: 5 });
    let last_frame = V4::default().fragment(&last);
    assert!(gate.send_from(Side::UNTRUSTED, &last_frame, Meta { vlan, ..Meta::plain() }).is_empty());
    assert!(gate.send_from(Side::TRUSTED, &last_frame, Meta::plain()).is_empty());
    assert!(gate.send(&V4 { protocol: 254, ..V4::default() }.fragment(&last)).is_empty());
    let mut tagged = last_frame.clone();
    tagged.splice(12..12, [0x81, 0, 0, 9]);
    assert!(gate.send(&tagged).is_empty());
    assert_eq!(agreed(&gate.send(&last_frame)).as_deref(), Some("aabb"));
    assert_eq!(gate.held(), 4);
}

#[test]
fn case_16_chaff_that_expires() {
    // The fragment that would not arrive is dropped and not taken in.
    let chaff = V4 { time_to_live: 3, ..V4::default() }.fragment(&blocks(1, "X", true));
    assert_eq!(refusal(&chaff), DropReason::HopLimit);
    let fragments = [blocks(0, "h", true), blocks(1, "A", true), blocks(2, "z", false)];
    let mut sent: Vec<_> = fragments.iter().map(|fragment| V4::default().fragment(fragment)).collect();
    sent.insert(0, chaff);
    assert_eq!(agreed(&Gate::new().send_all(&sent)).as_deref(), Some("hAz"));
}

#[test]
fn case_17_chaff_with_a_bad_option() {
    // The fragment that hosts would refuse is dropped and not taken in.
    let chaff = V4 { options: vec![7, 40, 4, 0], ..V4::default() }.fragment(&blocks(1, "X", true));
    assert_eq!(refusal(&chaff), DropReason::IpOptions);
    let fragments = [blocks(0, "h", true), blocks(1, "A", true), blocks(2, "z", false)];
    let mut sent: Vec<_> = fragments.iter().map(|fragment| V4::default().fragment(fragment)).collect();
    sent.insert(0, chaff);
    assert_eq!(agreed(&Gate::new().send_all(&sent)).as_deref(), Some("hAz"));
}

/// Sends `count` first fragments of packets that never become whole, each from the source that `source` gives.
fn flood(gate: &mut Gate, count: u32, source: impl Fn(u32) -> [u8; 4], mut each: impl FnMut(&Gate)) {
    for number in 0..count {
        let packet = V4 { source: source(number), identification: number as u16, ..V4::default() };
        let fragment = Fragment { offset: 0, bytes: vec![0; 1480], more: true };
        assert!(gate.send(&packet.fragment(&fragment)).is_empty());
        each(gate);
    }
}

#[test]
fn case_18_fragment_flood() {
    // Honest packets leave throughout, no part of another does, and memory stays below its limit.
    let memory_max_bytes = 8 << 20;
    let limit = memory_max_bytes / limits::FRAGMENTS_MEMORY_PART;
    let mut gate = Gate::with(Settings { memory_max_bytes, ..Settings::preset(Preset::Balanced) });
    let honest = cut(&[b'x'; 3000], 1480);
    let mut most = 0;
    for round in 0..20_u32 {
        let source = |number: u32| (0x0a00_0000 + round * 1000 + number).to_be_bytes();
        flood(&mut gate, 200, source, |gate| most = most.max(gate.scrubber.fragments_memory_bytes()));
        for piece in &honest[..2] {
            assert!(gate.send(&V4::default().fragment(piece)).is_empty());
        }
        flood(&mut gate, 50, source, |_| ());
        assert_eq!(gate.send(&V4::default().fragment(&honest[2])).len(), 3);
    }
    assert!(most > limit / 2 && most <= limit, "{most} of {limit}");
    assert!(gate.drops(DropReason::FragmentsFull) > 4000);
    assert!(gate.held() < 1000);

    // One source alone has a part of that, and the packets of others stay.
    let mut gate = Gate::with(Settings { memory_max_bytes, ..Settings::preset(Preset::Balanced) });
    for piece in &honest[..2] {
        assert!(gate.send(&V4::default().fragment(piece)).is_empty());
    }
    flood(&mut gate, 5000, |_| [10, 0, 0, 1], |_| ());
    assert!(gate.scrubber.fragments_memory_bytes() <= limit / limits::FRAGMENTS_SOURCE_PART + 8192);
    assert_eq!(gate.send(&V4::default().fragment(&honest[2])).len(), 3);
}

#[test]
fn case_18_fragments_of_one_packet_and_their_time_are_limited() {
    // Nothing leaves of a packet in too many fragments, nor of one whose rest does not come in time.
    let mut gate = Gate::new();
    let dup = V4::default().fragment(&blocks(0, "a", true));
    for _ in 0..limits::FRAGMENTS_PER_PACKET_MAX + 10 {
        gate.send(&dup);
    }
    assert_eq!(gate.drops(DropReason::FragmentsFull), 10);
    assert_eq!(gate.held(), limits::FRAGMENTS_PER_PACKET_MAX as u64);
    gate.wait(limits::FRAGMENTS_TIMEOUT - Duration::from_nanos(1));
    assert_eq!(gate.drops(DropReason::FragmentExpired), 0);
    gate.wait(Duration::from_nanos(1));
    assert_eq!(gate.drops(DropReason::FragmentExpired), limits::FRAGMENTS_PER_PACKET_MAX as u64);
    assert_eq!((gate.held(), gate.scrubber.fragments_memory_bytes()), (0, 0));
    assert!(gate.send(&V4::default().fragment(&blocks(1, "z", false))).is_empty());
    // The example that is kept of them is a whole header.
    let examples = gate.ledger().examples();
    let expired = examples.iter().find(|example| example.reason == DropReason::FragmentExpired);
    assert_eq!(expired.map(|example| &example.head[..]), Some(&dup[..34]));
}

#[test]
fn case_19_fragments_that_must_not_be() {
    // The packet leaves in pieces without DF, under the identification that it came with.
    let packet = V4 { flags: DONT_FRAGMENT, identification: 0x1234, ..V4::default() };
    let sent: Vec<_> = cut(&[b'x'; 3000], 1480).iter().map(|piece| packet.fragment(piece)).collect();
    let plain = V4 { flags: 0, ..packet };
    let expected: Vec<_> = cut(&[b'x'; 3000], 1480).iter().map(|piece| plain.fragment(piece)).collect();
    assert_eq!(Gate::new().send_all(&sent), expected);
}

#[test]
fn case_20_reserved_bit() {
    // The packet leaves with the bit cleared.
    let frame = V4 { flags: RESERVED | DONT_FRAGMENT, ..V4::default() }.frame();
    assert_eq!(scrubbed(&frame), V4 { flags: DONT_FRAGMENT, ..V4::default() }.frame());
    assert_eq!(off(Rule::Ipv4ReservedBit).send(&frame), [frame]);
}

#[test]
fn case_21_bad_header_checksum() {
    // Nothing leaves.
    let mut frame = V4::default().frame();
    frame[24] ^= 1;
    assert_eq!(refusal(&frame), DropReason::IpChecksum);
}

#[test]
fn case_22_bad_header_length() {
    // Nothing leaves of a header that is too short, or longer than packet or frame.
    for first in [0x44, 0x40, 0x4f] {
        let mut frame = V4::default().frame();
        frame[14] = first;
        fix_checksum(&mut frame);
        assert_eq!(refusal(&frame), DropReason::IpHeader, "{first:02x}");
    }
    assert_eq!(refusal(&V4::default().frame()[..30]), DropReason::IpHeader);
    assert_eq!(refusal(&V6::default().frame()[..50]), DropReason::IpHeader);
}

#[test]
fn case_23_bad_version() {
    // Nothing leaves of a packet whose version is not that of the frame.
    let mut frame = V4::default().frame();
    for first in [0x55, 0x65, 0x05, 0xf5] {
        frame[14] = first;
        fix_checksum(&mut frame);
        assert_eq!(refusal(&frame), DropReason::IpHeader);
    }
    let mut frame = V6::default().frame();
    frame[14] = 0x40;
    assert_eq!(refusal(&frame), DropReason::IpHeader);
}

#[test]
fn case_24_longer_than_the_frame() {
    // Nothing leaves.
    let mut frame = V4::default().frame();
    frame[17] += 1;
    fix_checksum(&mut frame);
    assert_eq!(refusal(&frame), DropReason::IpHeader);
    let mut frame = V6::default().frame();
    frame[19] += 1;
    assert_eq!(refusal(&frame), DropReason::IpHeader);
    // Nor of one that is shorter than its own header.
    let mut frame = V4::default().frame();
    frame[17] = 19;
    fix_checksum(&mut frame);
    assert_eq!(refusal(&frame), DropReason::IpHeader);
}

#[test]
fn case_25_shorter_than_the_frame() {
    // The packet leaves without what follows it.
    for frame in [V4::default().frame(), V6::default().frame()] {
        let longer = [&frame[..], b"a trailer"].concat();
        assert_eq!(scrubbed(&longer), frame);
    }
}

#[test]
fn case_26_wrong_protocol() {
    // A TCP segment under another protocol's number leaves as that protocol or not at all, and opens no connection.
    let segment = [0, 80, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 16, 0, 0, 0, 0, 0];
    let packet = V4 { protocol: OPAQUE, payload: segment.to_vec(), ..V4::default() };
    assert_eq!(scrubbed(&packet.frame()), packet.frame());
}

#[test]
fn case_27_source_routes_and_bad_options() {
    // Nothing leaves of a source route or a malformed option; other packets leave without their options.
    let with = |options: &[u8]| V4 { options: options.to_vec(), ..V4::default() }.frame();
    let plain = V4::default().frame();
    for wrong in [
        &[131, 7, 4, 10, 0, 0, 1, 0][..],
        &[137, 7, 4, 10, 0, 0, 1, 0],
        &[7, 1, 4, 0],
        &[7, 0, 4, 0],
        &[7, 9, 4, 0],
        &[1, 1, 1, 7],
    ] {
        assert_eq!(refusal(&with(wrong)), DropReason::IpOptions, "{wrong:?}");
    }
    for other in [&[7, 7, 4, 0, 0, 0, 0, 0][..], &[1, 1, 1, 1], &[0, 7, 9, 9], &[148, 4, 0, 0], &[1, 130, 3, 9]] {
        assert_eq!(scrubbed(&with(other)), plain, "{other:?}");
    }
    // IGMP's router alert stays, alone.
    let report = V4 { destination: [224, 0, 0, 22], protocol: 2, time_to_live: 1, ..V4::default() };
    let alert = V4 { options: vec![148, 4, 0, 0], ..report.clone() }.frame();
    assert_eq!(scrubbed(&alert), alert);
    assert_eq!(scrubbed(&V4 { options: vec![148, 4, 0, 0, 7, 3, 4, 0], ..report }.frame()), alert);
}

#[test]
fn case_27_options_that_stay_are_copied_as_rfc_791_says() {
    // With the rule off the pieces carry the options: all of them in the first, the copied ones in the others.
    let packet = V4 { options: vec![7, 3, 4, 1, 148, 4, 0, 0], payload: vec![b'x'; 3000], ..V4::default() };
    let sent: Vec<_> = cut(&packet.payload, 1472).iter().map(|piece| packet.fragment(piece)).collect();
    let left = off(Rule::Ipv4Options).send_all(&sent);
    let headers: Vec<u8> = left.iter().map(|frame| frame[14]).collect();
    assert_eq!(headers, [0x47, 0x46, 0x46]);
    assert_eq!(left[1][34..38], [148, 4, 0, 0]);
    assert_eq!(read(Policy::First, &left), [packet.payload]);
}

#[test]
fn case_28_hop_limit_that_does_not_reach_the_hosts() {
    // Nothing leaves of a packet that expires behind the scrubber; where no router is on its way any hop limit will do.
    let hops = limits::HOPS_BEHIND;
    for (hop_limit, leaves) in [(0, false), (1, false), (hops - 1, false), (hops, true), (255, true)] {
        let frames =
            [V4 { time_to_live: hop_limit, ..V4::default() }.frame(), V6 { hop_limit, ..V6::default() }.frame()];
        for frame in frames {
            let left = Gate::new().send(&frame);
            assert_eq!(left == [frame.clone()], leaves, "{hop_limit}");
            // What leaves the trusted side is not ours to judge.
            assert_eq!(Gate::new().send_from(Side::TRUSTED, &frame, Meta::plain()).len(), 1);
        }
    }
    let group = V4 { destination: [224, 0, 0, 5], time_to_live: 1, ..V4::default() };
    assert_eq!(scrubbed(&group.frame()), group.frame());
    assert_eq!(refusal(&V4 { time_to_live: 0, ..group }.frame()), DropReason::HopLimit);
    let on_link = [0xfe80, 0, 0, 0, 0, 0, 0, 9];
    let neighbour = V6 { destination: on_link, hop_limit: 1, ..V6::default() }.frame();
    assert_eq!(scrubbed(&neighbour), neighbour);
}

#[test]
fn routing_between_neighbours_passes_with_a_hop_limit_of_one() {
    // OSPF (RFC 2328, A.1) speaks to single neighbours too while databases are exchanged.
    let ospf = V4 { protocol: 89, time_to_live: 1, ..V4::default() }.frame();
    assert_eq!(scrubbed(&ospf), ospf);
    let mut syn = [&[0xc0, 0, 0, 179, 0, 0, 0, 1][..], &[0; 4], &[0x50, 2, 0xff, 0xff], &[0; 4]].concat();
    let pseudo = [&[192, 0, 2, 1, 198, 51, 100, 2, 0, TCP, 0, 20], &syn[..]].concat();
    syn[16..18].copy_from_slice(&checksum(&pseudo).to_be_bytes());
    let bgp = V4 { protocol: TCP, time_to_live: 1, payload: syn, ..V4::default() };
    assert_eq!(scrubbed(&bgp.frame()), bgp.frame());
    // In fragments no port shows, and other ports are not between neighbours.
    let in_fragments = V4 { flags: MORE, ..bgp.clone() };
    assert_eq!(refusal(&in_fragments.frame()), DropReason::HopLimit);
    let mut other = bgp;
    other.payload[3] = 180;
    assert_eq!(refusal(&other.frame()), DropReason::HopLimit);
}

/// A host on the link takes what no router carries any further: who is on it is known by subnet or by what it says.
#[test]
fn neighbours_are_reached_with_a_hop_limit_of_one() {
    let near = V4 { protocol: 103, time_to_live: 1, ..V4::default() }.frame();
    let near_v6 = V6 { hop_limit: 1, ..V6::default() };
    assert_eq!(refusal(&near), DropReason::HopLimit);
    let network = |address: std::net::IpAddr, prefix_len| Network { address, prefix_len };
    let (v4, v6) = (V4::default().destination, V6::default().destination);
    let subnets = vec![network(v4.into(), 24), network(v6.into(), 64)];
    let mut gate = Gate::with(Settings { subnets, ..Settings::preset(Preset::Balanced) });
    assert_eq!(gate.send(&near), std::slice::from_ref(&near));
    assert_eq!(gate.send(&near_v6.frame()), [near_v6.frame()]);
    assert!(gate.send(&V4 { time_to_live: 0, ..V4::default() }.frame()).is_empty());
    // The host says by ARP that it is there, and only if it is trusted.
    let arp =
        [&[0xff; 6][..], &[2, 0, 0, 0, 0, 2, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2], &v4, &[0; 10]].concat();
    let mut gate = Gate::new();
    let tell = |gate: &mut Gate, from| {
        let (now, meta) = (Now { since_boot: gate.now, wall: None }, Meta::plain());
        let frame = Frame { bytes: &mut arp.clone(), meta };
        gate.scrubber.process(now, from, &mut Some(frame), &mut Collected::new());
    };
    tell(&mut gate, Side::UNTRUSTED);
    assert!(gate.send(&near).is_empty());
    tell(&mut gate, Side::TRUSTED);
    assert_eq!(gate.send(&near), [near]);
}

#[test]
fn case_29_the_hop_limit_is_never_raised() {
    // The network layer lets a packet live no longer than it came: the lowest hop limit of its fragments is the packet's.
    let fragments = cut(&[b'x'; 3000], 1480);
    let hop_limits = [60, 20, 64];
    let sent: Vec<_> = fragments
        .iter()
        .zip(hop_limits)
        .map(|(fragment, time_to_live)| V4 { time_to_live, ..V4::default() }.fragment(fragment))
        .collect();
    let left = Gate::new().send_all(&sent);
    assert_eq!(left.iter().map(|frame| frame[22]).collect::<Vec<_>>(), [20, 20, 20]);
}

#[test]
fn case_30_addresses_that_no_host_has() {
    // Nothing leaves.
    let default = V4::default();
    let from = |source| V4 { source, ..V4::default() }.frame();
    let to = |destination| V4 { destination, ..V4::default() }.frame();
    for source in
        [default.destination, [127, 0, 0, 1], [0, 0, 0, 0], [0, 1, 2, 3], [224, 0, 0, 1], [240, 0, 0, 1], [255; 4]]
    {
        assert_eq!(refusal(&from(source)), DropReason::IpAddress, "{source:?}");
    }
    for destination in [[127, 0, 0, 1], [0, 0, 0, 0], [240, 0, 0, 1]] {
        assert_eq!(refusal(&to(destination)), DropReason::IpAddress, "{destination:?}");
    }
    for destination in [[255; 4], [224, 0, 0, 1]] {
        let tcp = V4 { destination, protocol: TCP, ..V4::default() };
        assert_eq!(refusal(&tcp.frame()), DropReason::IpAddress);
        assert_eq!(scrubbed(&to(destination)), to(destination));
    }
}

#[test]
fn case_30_addresses_that_no_host_has_over_ipv6() {
    // Nothing leaves.
    let default = V6::default();
    let from = |source| V6 { source, ..V6::default() }.frame();
    let to = |destination| V6 { destination, ..V6::default() }.frame();
    let mapped = [0, 0, 0, 0, 0, 0xffff, 0xc000, 0x0201];
    let loopback = [0, 0, 0, 0, 0, 0, 0, 1];
    for source in [default.destination, [0; 8], loopback, mapped, [0xff02, 0, 0, 0, 0, 0, 0, 1]] {
        assert_eq!(refusal(&from(source)), DropReason::IpAddress, "{source:x?}");
    }
    for destination in [[0; 8], loopback, mapped, [0xff01, 0, 0, 0, 0, 0, 0, 1], [0xff00, 0, 0, 0, 0, 0, 0, 1]] {
        assert_eq!(refusal(&to(destination)), DropReason::IpAddress, "{destination:x?}");
    }
    let tcp = V6 { destination: [0xff0e, 0, 0, 0, 0, 0, 0, 1], protocol: TCP, ..V6::default() };
    assert_eq!(refusal(&tcp.frame()), DropReason::IpAddress);
}

#[test]
fn a_host_without_an_address_may_ask_for_one() {
    // DHCP and IGMP from 0.0.0.0 leave.
    let discover = {
        let mut payload = vec![0, 68, 0, 67, 0, 12, 0, 0];
        payload.extend(b"ask!");
        let pseudo = [&[0; 4][..], &[255; 4], &[0, 17, 0, 12], &payload].concat();
        payload[6..8].copy_from_slice(&support::checksum(&pseudo).to_be_bytes());
        V4 { source: [0; 4], destination: [255; 4], protocol: 17, payload, ..V4::default() }.frame()
    };
    assert_eq!(scrubbed(&discover), discover);
    let join = V4 { source: [0; 4], destination: [224, 0, 0, 22], protocol: 2, time_to_live: 1, ..V4::default() };
    assert_eq!(scrubbed(&join.frame()), join.frame());
}

#[test]
fn case_32_overlap_over_ipv6() {
    // Nothing leaves of a packet whose fragments overlap, nor of what comes of it afterwards.
    let mut gate = Gate::new();
    let send = |gate: &mut Gate, fragment| gate.send(&V6::default().fragment(&fragment));
    let hole = cut(&[b'x'; 2464], 1232);
    assert!(send(&mut gate, hole[0].clone()).is_empty());
    assert!(send(&mut gate, Fragment { offset: 1224, bytes: vec![b'x'; 16], more: true }).is_empty());
    assert_eq!((gate.drops(DropReason::FragmentConflict), gate.held()), (2, 0));
    for piece in &hole {
        assert!(send(&mut gate, piece.clone()).is_empty());
    }
    assert_eq!(gate.drops(DropReason::FragmentConflict), 4);
    // After its time the identification is free again.
    gate.wait(limits::FRAGMENTS_TIMEOUT);
    assert!(send(&mut gate, hole[0].clone()).is_empty());
    assert_eq!(send(&mut gate, hole[1].clone()).len(), 2);
    assert_eq!(gate.scrubber.fragments_memory_bytes(), 0);
}

#[test]
fn case_33_atomic_fragment() {
    // The packet leaves at once and without its Fragment header, whatever waits under its identification.
    let mut gate = Gate::new();
    let pieces = cut(&[b'x'; 2464], 1232);
    assert!(gate.send(&V6::default().fragment(&pieces[0])).is_empty());
    let atomic = V6 { extensions: vec![(FRAGMENT, fragment_header(0, false, 7))], ..V6::default() };
    assert_eq!(gate.send(&atomic.frame()), [V6::default().frame()]);
    assert_eq!(gate.send(&V6::default().fragment(&pieces[1])).len(), 2);
}

#[test]
fn case_34_nested_fragment_headers() {
    // Nothing leaves of a packet with two Fragment headers, atomic or not, in one packet or one inside the other.
    let header = |offset, more| (FRAGMENT, fragment_header(offset, more, 9));
    let with = |extensions: &[(u8, Vec<u8>)]| V6 { extensions: extensions.to_vec(), ..V6::default() };
    let atomic_twice = with(&[header(0, false), header(0, false)]);
    assert_eq!(refusal(&atomic_twice.frame()), DropReason::FragmentMalformed);
    assert_eq!(refusal(&with(&[header(0, false), header(0, true)]).frame()), DropReason::FragmentMalformed);
    let mut gate = Gate::new();
    let inside = V6 { protocol: OPAQUE, payload: vec![0; 1224], ..with(&[header(0, true), header(0, false)]) };
    assert!(gate.send(&inside.frame()).is_empty());
    let last = V6 { payload: vec![0; 100], ..with(&[header(1232, false)]) };
    assert!(gate.send(&last.frame()).is_empty());
    assert_eq!((gate.drops(DropReason::FragmentMalformed), gate.held()), (2, 0));
}

#[test]
fn case_35_first_fragment_without_all_headers() {
    // Nothing leaves of a packet whose extension headers or TCP header go beyond its first fragment.
    let options = (DESTINATION, [&[0, 2, 1, 20][..], &[0; 20]].concat());
    let with = |offset, more, extensions: &[(u8, Vec<u8>)], payload: &[u8]| {
        let extensions = [&[(FRAGMENT, fragment_header(offset, more, 7))], extensions].concat();
        V6 { extensions, payload: payload.to_vec(), ..V6::default() }
    };
    let mut gate = Gate::new();
    let mut cut_options = with(0, true, std::slice::from_ref(&options), &[]).frame();
    cut_options.truncate(cut_options.len() - 8);
    cut_options[19] -= 8;
    assert!(gate.send(&cut_options).is_empty());
    assert!(gate.send(&with(16, false, &[], &[0; 64]).frame()).is_empty());
    assert_eq!((gate.drops(DropReason::FragmentMalformed), gate.held()), (2, 0));

    let segment = [0, 80, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 16, 0, 0, 0, 0, 0];
    let mut gate = Gate::new();
    for (offset, more, bytes) in [(0, true, &segment[..16]), (16, false, &segment[16..])] {
        let fragment = V6 { protocol: TCP, ..with(offset, more, &[], bytes) };
        assert!(gate.send(&fragment.frame()).is_empty());
    }
    assert_eq!((gate.drops(DropReason::FragmentMalformed), gate.held()), (2, 0));
}

#[test]
fn case_36_next_headers_differ() {
    // The packet leaves as what its first fragment says that it is.
    let pieces = cut(&[b'x'; 2464], 1232);
    let (honest, lie) = (V6::default(), V6 { protocol: TCP, ..V6::default() });
    let expected: Vec<_> = pieces.iter().map(|piece| honest.fragment(piece)).collect();
    for order in [[0, 1], [1, 0]] {
        let sent = order.map(|at| if at == 0 { &honest } else { &lie }.fragment(&pieces[at]));
        assert_eq!(Gate::new().send_all(&sent), expected);
    }
}

#[test]
fn case_37_extension_headers_differ() {
    // The packet leaves with the extension headers of its first fragment.
    let pieces = cut(&[b'x'; 2464], 1232);
    let routing = (ROUTING, vec![0, 0, 4, 0, 0, 0, 0, 0]);
    let with = V6 { extensions: vec![routing], ..V6::default() };
    let without = V6::default();
    // They are cut as the longest fragment was, whichever that is.
    for (first, second, size) in [(&with, &without, 1232), (&without, &with, 1240)] {
        let sent = [first.fragment(&pieces[0]), second.fragment(&pieces[1])];
        let expected: Vec<_> = cut(&[b'x'; 2464], size).iter().map(|piece| first.fragment(piece)).collect();
        assert_eq!(Gate::new().send_all(&sent), expected);
        assert_eq!(Gate::new().send_all(&[sent[1].clone(), sent[0].clone()]), expected);
    }
}

/// Eight bytes of padding as an options header.
fn padding(kind: u8) -> (u8, Vec<u8>) {
    (kind, vec![0, 0, 1, 4, 0, 0, 0, 0])
}

fn extended(extensions: &[(u8, Vec<u8>)]) -> Vec<u8> {
    V6 { extensions: extensions.to_vec(), ..V6::default() }.frame()
}

#[test]
fn case_38_two_hop_by_hop_headers() {
    // Nothing leaves.
    let refused = refusal(&extended(&[padding(HOP_BY_HOP), padding(HOP_BY_HOP)]));
    assert_eq!(refused, DropReason::Ipv6Extensions);
}

#[test]
fn case_39_headers_that_hide_the_transport() {
    // The packet leaves without headers that say nothing, so that the simplest reader finds what it carries.
    let atomic = (FRAGMENT, fragment_header(0, false, 3));
    for extensions in [&[padding(HOP_BY_HOP)][..], &[padding(DESTINATION)], std::slice::from_ref(&atomic)] {
        assert_eq!(scrubbed(&extended(extensions)), V6::default().frame());
    }
    let all = [padding(HOP_BY_HOP), atomic, padding(DESTINATION)];
    assert_eq!(scrubbed(&extended(&all)), V6::default().frame());
}

#[test]
fn case_40_order_number_and_repetition_of_headers() {
    // Nothing leaves of a packet whose headers stand where no sender puts them.
    let routing = (ROUTING, vec![0, 0, 4, 0, 0, 0, 0, 0]);
    let atomic = (FRAGMENT, fragment_header(0, false, 3));
    let wrong = [
        vec![padding(DESTINATION), padding(HOP_BY_HOP)],
        vec![routing.clone(), padding(HOP_BY_HOP)],
        vec![atomic.clone(), padding(HOP_BY_HOP)],
        vec![padding(DESTINATION), padding(DESTINATION)],
        vec![padding(DESTINATION), atomic.clone(), padding(DESTINATION)],
        vec![routing.clone(), routing.clone()],
        vec![routing.clone(), padding(DESTINATION), routing.clone()],
        vec![atomic, routing.clone()],
    ];
    for extensions in &wrong {
        assert_eq!(refusal(&extended(extensions)), DropReason::Ipv6Extensions, "{extensions:?}");
    }
    // Too many, even where the rule for their order is off; and one that leaves the packet.
    let many = extended(&vec![padding(DESTINATION); limits::EXTENSION_HEADERS_MAX + 1]);
    let mut gate = off(Rule::Ipv6Extensions);
    assert!(gate.send(&many).is_empty());
    assert_eq!(gate.drops(DropReason::Ipv6Extensions), 1);
    assert_eq!(refusal(&extended(&[(DESTINATION, vec![0, 40, 1, 4, 0, 0, 0, 0])])), DropReason::Ipv6Extensions);
    // Those of a sender who follows RFC 8200, section 4.1 do leave.
    let right = [padding(HOP_BY_HOP), padding(DESTINATION), routing.clone(), padding(DESTINATION)];
    assert_eq!(scrubbed(&extended(&right)), extended(&[routing]));
}

#[test]
fn case_41_routing_headers() {
    // Nothing leaves of a routing header of type 0, nor of one that is still to be followed.
    for (kind, segments_left) in [(0, 0), (0, 1), (2, 1), (4, 1)] {
        let routing = (ROUTING, vec![0, 0, kind, segments_left, 0, 0, 0, 0]);
        assert_eq!(refusal(&extended(&[routing])), DropReason::Ipv6Extensions);
    }
}

#[test]
fn case_42_unknown_options() {
    // The packet leaves without an option that hosts skip, and does not leave with one for which they drop it.
    for (option, leaves) in [(0x1e, true), (0x5e, false), (0x9e, false), (0xde, false)] {
        for kind in [HOP_BY_HOP, DESTINATION] {
            let frame = extended(&[(kind, vec![0, 0, option, 4, 1, 2, 3, 4])]);
            match leaves {
                true => assert_eq!(scrubbed(&frame), V6::default().frame()),
                false => assert_eq!(refusal(&frame), DropReason::Ipv6Extensions),
            }
        }
    }
    assert_eq!(refusal(&extended(&[(DESTINATION, vec![0, 0, 0x1e, 5, 1, 2, 3, 4])])), DropReason::Ipv6Extensions);
    // MLD's router alert stays, in one form.
    let report = |alert: [u8; 6]| {
        let header = (HOP_BY_HOP, [&[0, 0][..], &alert].concat());
        let destination = [0xff02, 0, 0, 0, 0, 0, 0, 0x16];
        V6 { destination, hop_limit: 1, extensions: vec![header], ..V6::default() }.frame()
    };
    let usual = report([5, 2, 0, 0, 1, 0]);
    assert_eq!(scrubbed(&usual), usual);
    assert_eq!(scrubbed(&report([1, 0, 5, 2, 0, 0])), usual);
    assert_eq!(scrubbed(&report([0, 0, 5, 2, 0, 0])), usual);
}

#[test]
fn case_43_padding_that_says_something() {
    // The packet leaves without the bytes in its padding.
    let covert = [(DESTINATION, vec![0, 1, 1, 12, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12])];
    assert_eq!(scrubbed(&extended(&covert)), V6::default().frame());
    let beside_alert = [(HOP_BY_HOP, vec![0, 1, 5, 2, 0, 0, 1, 8, 1, 2, 3, 4, 5, 6, 7, 8])];
    let clean = [(HOP_BY_HOP, vec![0, 0, 5, 2, 0, 0, 1, 0])];
    assert_eq!(scrubbed(&extended(&beside_alert)), extended(&clean));
    assert_eq!(off(Rule::Ipv6Options).send(&extended(&covert)), [extended(&covert)]);
}

#[test]
fn case_43_headers_behind_the_fragment_header() {
    // They are scrubbed like those in front of it; with the rule off they are cut with the packet, as they came.
    let bytes = [&[OPAQUE, 0, 1, 4, 1, 2, 3, 4][..], &[b'x'; 3000]].concat();
    let packet = V6 { protocol: DESTINATION, ..V6::default() };
    let sent: Vec<_> = cut(&bytes, 1232).iter().map(|piece| packet.fragment(piece)).collect();
    assert!(off(Rule::Ipv6Options).send_all(&sent) == sent);
    let plain: Vec<_> = cut(&[b'x'; 3000], 1232).iter().map(|piece| V6::default().fragment(piece)).collect();
    assert!(Gate::new().send_all(&sent) == plain);
}

#[test]
fn case_44_jumbograms() {
    // Nothing leaves of a packet that says its length elsewhere, or says none.
    let jumbo = (HOP_BY_HOP, vec![0, 0, 0xc2, 4, 0, 1, 0, 0]);
    assert_eq!(refusal(&extended(std::slice::from_ref(&jumbo))), DropReason::Ipv6Extensions);
    let mut lengthless = extended(&[jumbo]);
    lengthless[18..20].fill(0);
    assert_eq!(refusal(&lengthless), DropReason::IpHeader);
    let mut lengthless = V6::default().frame();
    lengthless[18..20].fill(0);
    assert_eq!(refusal(&lengthless), DropReason::IpHeader);
}

#[test]
fn case_45_data_behind_no_next_header() {
    // The packet leaves without them.
    let void = V6 { protocol: NO_NEXT, payload: Vec::new(), ..V6::default() };
    assert_eq!(scrubbed(&V6 { payload: b"hidden".to_vec(), ..void.clone() }.frame()), void.frame());
    assert_eq!(scrubbed(&void.frame()), void.frame());
}

#[test]
fn case_46_reserved_bits_of_fragment_headers() {
    // The pieces leave with the bits cleared.
    let pieces = cut(&[b'x'; 2464], 1232);
    let expected: Vec<_> = pieces.iter().map(|piece| V6::default().fragment(piece)).collect();
    let mut sent = expected.clone();
    for frame in &mut sent {
        frame[55] = 0xff;
        frame[57] |= 0x06;
    }
    assert_eq!(Gate::new().send_all(&sent), expected);
    assert_eq!(off(Rule::Ipv6Fragments).send_all(&sent), sent);
}

#[test]
fn case_48_fragmented_neighbour_discovery() {
    // Nothing leaves of neighbour discovery that came with a Fragment header, whole or cut.
    let on_link = [0xfe80, 0, 0, 0, 0, 0, 0, 9];
    for kind in [133, 134, 135, 136, 137, 148, 149] {
        let mut payload = vec![kind, 0, 0, 0];
        payload.resize(1400, 0);
        let message = V6 { destination: on_link, hop_limit: 255, protocol: ICMPV6, ..V6::default() };
        let atomic = V6 {
            extensions: vec![(FRAGMENT, fragment_header(0, false, 3))],
            payload: payload[..32].to_vec(),
            ..message.clone()
        };
        assert_eq!(refusal(&atomic.frame()), DropReason::NeighbourDiscovery);
        let mut gate = Gate::new();
        for piece in cut(&payload, 1232) {
            assert!(gate.send(&message.fragment(&piece)).is_empty());
        }
        assert_eq!((gate.drops(DropReason::NeighbourDiscovery), gate.held()), (2, 0));
    }
}

#[test]
fn classes_that_nobody_assigned_are_cleared_and_congestion_bits_are_kept() {
    for (field, leaves) in [(0xb8, 0xb8), (0xbb, 0xbb), (0x07, 0x07), (0x0b, 0x03), (0xff, 0x03), (0x02, 0x02)] {
        let v4 = |type_of_service| V4 { type_of_service, ..V4::default() }.frame();
        let v6 = |traffic_class| V6 { traffic_class, ..V6::default() }.frame();
        assert_eq!(scrubbed(&v4(field)), v4(leaves), "{field:02x}");
        assert_eq!(scrubbed(&v6(field)), v6(leaves), "{field:02x}");
    }
}

#[test]
fn df_is_cleared_by_the_papers_preset_where_the_link_carries_the_packet() {
    let frame = |flags, len| V4 { flags, payload: vec![0; len], ..V4::default() }.frame();
    let settings = Settings { mtu: 1500, ..Settings::preset(Preset::Paper) };
    let mut gate = Gate::with(settings);
    assert_eq!(gate.send(&frame(DONT_FRAGMENT, 1480)), [frame(0, 1480)]);
    assert_eq!(gate.send(&frame(DONT_FRAGMENT, 1481)), [frame(DONT_FRAGMENT, 1481)]);
    assert_eq!(scrubbed(&frame(DONT_FRAGMENT, 100)), frame(DONT_FRAGMENT, 100));
}

#[test]
fn a_full_port_costs_the_packet_and_every_frame_has_its_fate() {
    let mut gate = Gate::new();
    let mut sent: Vec<_> = cut(&[b'x'; 3000], 1480).iter().map(|piece| V4::default().fragment(piece)).collect();
    gate.send_all(&sent[..2]);
    let mut sink = Collected::with_room_for(1);
    let mut batch = Some(Frame { bytes: &mut sent[2], meta: Meta::plain() });
    gate.scrubber.process(Now { since_boot: gate.now, wall: None }, Side::UNTRUSTED, &mut batch, &mut sink);
    assert_eq!((sink.take().len(), gate.drops(DropReason::PortFull), gate.held()), (1, 3, 0));
    assert_eq!(gate.ledger().balance(), 0);
}

#[test]
fn a_super_frame_is_no_fragment() {
    // What says both is dropped.
    let gso = Some(Gso { kind: GsoKind::TcpV4, size: 1448, ecn: false });
    let frame = V4 { flags: MORE, ..V4::default() }.frame();
    let mut gate = Gate::new();
    assert!(gate.send_from(Side::UNTRUSTED, &frame, Meta { gso, ..Meta::plain() }).is_empty());
    assert_eq!(gate.drops(DropReason::BadSuperFrame), 1);
}

#[test]
fn congestion_on_the_way_of_one_fragment_is_told_with_all() {
    let pieces = cut(&[b'x'; 3000], 1480);
    let sent: Vec<_> = pieces
        .iter()
        .zip([2, 3, 2])
        .map(|(piece, type_of_service)| V4 { type_of_service, ..V4::default() }.fragment(piece))
        .collect();
    let marked: Vec<_> =
        pieces.iter().map(|piece| V4 { type_of_service: 3, ..V4::default() }.fragment(piece)).collect();
    assert_eq!(Gate::new().send_all(&sent), marked);
}

#[test]
fn fragments_that_are_not_joined_are_not_read_as_what_they_carry() {
    // With the rule off they pass, and no stage takes their bytes for a header, in either direction.
    let pieces = cut(&[0xff; 3000], 1232);
    for from in [Side::UNTRUSTED, Side::TRUSTED] {
        for protocol in [1, 6, 17, 58] {
            for piece in &pieces {
                let v4 = V4 { protocol, ..V4::default() }.fragment(piece);
                let left = off(Rule::Ipv4Fragments).send_from(from, &v4, Meta::plain());
                assert!(left.len() == 1 && payload(&left[0]) == piece.bytes);
                let v6 = V6 { protocol, hop_limit: 32, ..V6::default() }.fragment(piece);
                let left = off(Rule::Ipv6Fragments).send_from(from, &v6, Meta::plain());
                assert!(left.len() == 1 && left[0][62..] == v6[62..]);
            }
        }
    }
}

#[test]
fn with_all_rules_off_fragments_pass_as_they_are() {
    let mut gate = Gate::with(Settings::null());
    let frames = [
        V4 { flags: RESERVED | DONT_FRAGMENT, options: vec![131, 3, 4, 0], ..V4::default() }
            .fragment(&blocks(1, "ab", true)),
        V6 { extensions: vec![padding(DESTINATION)], ..V6::default() }.fragment(&blocks(1, "ab", true)),
        extended(&[padding(HOP_BY_HOP), (FRAGMENT, fragment_header(0, false, 3)), padding(DESTINATION)]),
    ];
    for frame in frames {
        assert_eq!(gate.send(&frame), [frame]);
    }
}
