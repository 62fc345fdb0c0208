//! What IP headers towards the untrusted side say: the same for every host behind the scrubber.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]
#![allow(dead_code, reason = "each test uses its share of the helpers")]

mod icmp;

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use bump::{Checksum, Gso, GsoKind, Meta, Side};
use icmp::{Gate, HOSTS, INSIDE, INSIDE_V6, Ip, OUTSIDE, OUTSIDE_V6, datagram, message, ping, pong, rest};
use scrub::settings::IcmpTiming;
use scrub::{Action, Preset, Rule, Settings};

const TRUSTED: Side = Side::TRUSTED;
const UNTRUSTED: Side = Side::UNTRUSTED;

fn balanced() -> Gate {
    Gate::new(Settings::preset(Preset::Balanced))
}

fn identification(frame: &[u8]) -> u16 {
    u16::from_be_bytes([frame[18], frame[19]])
}

fn flow_label(frame: &[u8]) -> u32 {
    u32::from_be_bytes([0, frame[15] & 0x0f, frame[16], frame[17]])
}

#[test]
fn packets_that_cannot_be_fragmented_have_the_identification_zero() {
    let mut gate = balanced();
    for identification_of_host in [0, 1, 0x1234, 0xffff] {
        for protocol in [6, 17, 47] {
            let identification_of_host = Ip { identification: identification_of_host, ..reply_of(protocol) };
            let out = gate.pass(TRUSTED, &identification_of_host.frame()).expect("it passes");
            assert_eq!(identification(&out), 0, "protocol {protocol}");
        }
    }
    let sent = Ip { identification: 7, ..datagram(OUTSIDE, INSIDE, [1, 2], b"") };
    assert_eq!(gate.pass(UNTRUSTED, &sent.frame()), Ok(sent.frame()), "untrusted hosts are not hidden");
}

/// A packet of a trusted host that must not be fragmented.
fn reply_of(protocol: u8) -> Ip {
    match protocol {
        17 => datagram(INSIDE, OUTSIDE, [53, 5353], b"answer"),
        6 => Ip::new(INSIDE, OUTSIDE, 6, opening(80)).summed(16),
        other => Ip::new(INSIDE, OUTSIDE, other, vec![0; 24]),
    }
}

/// A SYN segment.
fn opening(port: u8) -> Vec<u8> {
    vec![0xc0, 0, 0, port, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0xfa, 0xf0, 0, 0, 0, 0]
}

#[test]
fn segments_without_data_are_alike_in_df_and_identification() {
    let mut gate = balanced();
    for (port, dont_fragment) in [(80, false), (81, true)] {
        let sent = Ip { identification: 7, dont_fragment, ..Ip::new(INSIDE, OUTSIDE, 6, opening(port)).summed(16) };
        let out = gate.pass(TRUSTED, &sent.frame()).expect("it passes");
        assert_eq!((out[20], identification(&out)), (0x40, 0), "DF was {dont_fragment}");
    }
    let untrusted = Ip { dont_fragment: false, ..Ip::new(OUTSIDE, INSIDE, 6, opening(82)).summed(16) };
    assert_eq!(gate.pass(UNTRUSTED, &untrusted.frame()).expect("it passes")[20], 0, "untrusted hosts are not hidden");
    let datagram = Ip { dont_fragment: false, ..datagram(INSIDE, OUTSIDE, [53, 5353], b"answer") };
    assert_eq!(gate.pass(TRUSTED, &datagram.frame()).expect("it passes")[20], 0, "what carries data may be cut");
}

#[test]
fn no_identification_comes_back_before_all_were_there() {
    let mut gate = balanced();
    let sent =
        Ip { dont_fragment: false, identification: 0, ..datagram(INSIDE, OUTSIDE, [53, 5353], b"answer") }.frame();
    let mut seen = HashSet::new();
    let mut rises = 0_u32;
    let mut last = 0;
    for _ in 0..=u16::MAX {
        let (_, out, _) = gate.pass_with(TRUSTED, &sent, Meta::plain()).pop().expect("it passes");
        let next = identification(&out);
        assert!(seen.insert(next), "{next} came back after {} others", seen.len());
        rises += u32::from(next > last);
        last = next;
    }
    assert!((30_000..35_000).contains(&rises), "their order says nothing: {rises} of 65536 are larger than the last");
}

#[test]
fn other_hosts_other_orders() {
    let first_ten = |destination: Ipv4Addr| {
        let mut gate = balanced();
        let sent = Ip { dont_fragment: false, ..datagram(INSIDE, destination, [53, 5353], b"answer") }.frame();
        (0..10).map(|_| identification(&gate.pass(TRUSTED, &sent).expect("it passes"))).collect::<Vec<_>>()
    };
    assert_eq!(first_ten(OUTSIDE), first_ten(OUTSIDE));
    assert_ne!(first_ten(OUTSIDE), first_ten(Ipv4Addr::new(198, 51, 100, 8)));
}

#[test]
fn a_super_frame_takes_the_identifications_of_its_segments() {
    let mut gate = balanced();
    let sent = Ip { dont_fragment: false, ..datagram(INSIDE, OUTSIDE, [53, 5353], &[0; 4000]) }.frame();
    let gso = Some(Gso { kind: GsoKind::Udp, size: 1000, ecn: false });
    let mut seen = HashSet::new();
    for meta in [Meta { gso, ..Meta::plain() }, Meta::plain()] {
        let (_, out, left) = gate.pass_with(TRUSTED, &sent, meta).pop().expect("it passes");
        assert_eq!((left.gso, out.len()), (meta.gso, sent.len()), "it stays whole");
        assert!(seen.insert(identification(&out)));
    }
}

/// From the outside it is one long datagram, whose checksum nobody has completed yet.
#[test]
fn a_super_frame_in_a_tunnel_stays_whole_and_is_scrubbed_as_one_datagram() {
    let gso = Some(Gso { kind: GsoKind::TunnelledTcpV4, size: 1000, ecn: false });
    let meta = Meta { gso, checksum: Checksum::Partial { start: 84, offset: 16 }, ..Meta::plain() };
    let mut gate = balanced();
    for (from, source, destination) in [(TRUSTED, INSIDE, OUTSIDE), (UNTRUSTED, OUTSIDE, INSIDE)] {
        let mut sent = Ip { dont_fragment: false, ..datagram(source, destination, [40000, 4789], &[7; 4070]) }.frame();
        // A sum of the pseudo header that is no right checksum.
        sent[40..42].copy_from_slice(&[0x12, 0x34]);
        let (_, out, left) = gate.pass_with(from, &sent, meta).pop().expect("it passes");
        assert_eq!(left, meta);
        assert_eq!(identification(&out) == identification(&sent), from == UNTRUSTED);
        assert_eq!((&out[..18], &out[26..]), (&sent[..18], &sent[26..]));
    }
    let mut strict = Gate::new(Settings::preset(Preset::Strict));
    let sent = datagram(OUTSIDE, INSIDE, [40000, 4789], &[7; 4070]).frame();
    assert!(strict.pass_with(UNTRUSTED, &sent, meta).is_empty(), "nobody listed it");
}

/// The paper's figure 9: requests come every 20 ms and answers may leave every 50 ms, so that one in three is answered.
#[test]
fn figure_9_of_pings_every_20_ms_one_in_three_is_answered() {
    let icmp = IcmpTiming::Limit(Duration::from_millis(50));
    for preset in [Preset::Paper, Preset::Balanced, Preset::Strict] {
        for (inside, outside) in HOSTS {
            let mut gate = Gate::new(Settings { icmp, ..Settings::preset(preset) });
            let mut answered = Vec::new();
            for number in 1..=12 {
                let asked = ping(outside, inside, number).frame();
                assert!(gate.pass(UNTRUSTED, &asked).is_ok(), "every request goes on");
                if gate.pass(TRUSTED, &pong(inside, outside, number).frame()).is_ok() {
                    answered.push(number);
                }
                gate.wait(Duration::from_millis(20));
            }
            assert_eq!(answered, [1, 4, 7, 10], "{preset:?} {inside}");
        }
    }
}

#[test]
fn hop_limits_are_one_and_never_raised() {
    let mut gate = balanced();
    for (inside, outside) in HOSTS {
        for (came, leaves) in [(255, 56), (128, 56), (64, 56), (57, 56), (56, 56), (55, 55), (1, 1)] {
            let sent = Ip { hop_limit: came, ..datagram(inside, outside, [53, 5353], b"answer") };
            let out = gate.pass(TRUSTED, &sent.frame()).expect("it passes");
            assert_eq!(if inside.is_ipv4() { out[22] } else { out[21] }, leaves, "{came} of {inside}");
        }
    }
    let sent = Ip { hop_limit: 255, ..datagram(OUTSIDE, INSIDE, [1, 2], b"") }.frame();
    assert_eq!(gate.pass(UNTRUSTED, &sent), Ok(sent.clone()));
}

#[test]
fn what_never_leaves_the_link_keeps_its_hop_limit() {
    let mut gate = balanced();
    let names = Ip { hop_limit: 255, ..datagram(INSIDE, Ipv4Addr::new(224, 0, 0, 251), [5353, 5353], b"name") };
    let router = Ip { hop_limit: 255, ..Ip::new(INSIDE, Ipv4Addr::new(224, 0, 0, 18), 112, vec![0x21; 20]) };
    for sent in [names, router] {
        assert_eq!(gate.pass(TRUSTED, &sent.frame()).expect("it passes")[22], 255);
    }
    let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let advertisement = message(link_local, all_nodes, (136, 0), [0x20, 0, 0, 0], &[0xfe; 16]);
    let to_a_neighbour = message(INSIDE_V6, OUTSIDE_V6, (136, 0), [0x60, 0, 0, 0], &[0xfe; 16]);
    let names = datagram(link_local, Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb), [5353, 5353], b"name");
    for sent in [advertisement, to_a_neighbour, names] {
        let sent = Ip { hop_limit: 255, ..sent };
        assert_eq!(gate.pass(TRUSTED, &sent.frame()).expect("it passes")[21], 255);
    }
}

#[test]
fn what_checks_for_255_keeps_it() {
    let mut gate = balanced();
    for (inside, outside) in HOSTS {
        for (port, leaves) in [(3784, 255), (3785, 255), (646, 255), (53, 56)] {
            let sent = Ip { hop_limit: 255, ..datagram(inside, outside, [50_000, port], b"hello") };
            let out = gate.pass(TRUSTED, &sent.frame()).expect("it passes");
            assert_eq!(if inside.is_ipv4() { out[22] } else { out[21] }, leaves, "port {port} of {inside}");
        }
    }
    let routes = Ip { hop_limit: 255, ..Ip::new(INSIDE, OUTSIDE, 6, opening(179)) }.summed(16);
    assert_eq!(gate.pass(TRUSTED, &routes.frame()).expect("it passes")[22], 255);
    let multihop = Ip { hop_limit: 254, ..routes };
    assert_eq!(gate.pass(TRUSTED, &multihop.frame()).expect("it passes")[22], 56);
}

#[test]
fn fragments_of_one_packet_share_an_identification_that_is_not_the_hosts() {
    let mut gate = balanced();
    let mut seen = HashSet::new();
    for _ in 0..20 {
        let sent = Ip { identification: 7, ..datagram(INSIDE, OUTSIDE, [53, 5353], &[5; 3000]) };
        let pieces = sent.pieces(1480);
        let last = pieces.len() - 1;
        for piece in &pieces[..last] {
            assert!(gate.pass_with(TRUSTED, piece, Meta::plain()).is_empty(), "it waits for the rest");
        }
        let out = gate.pass_with(TRUSTED, &pieces[last], Meta::plain());
        let identifications: HashSet<u16> = out.iter().map(|(_, frame, _)| identification(frame)).collect();
        assert_eq!((out.len(), identifications.len()), (3, 1));
        seen.extend(identifications);
    }
    assert_eq!(seen.len(), 20);
    // Where nobody joins them they must still fit each other.
    let mut settings = Settings::preset(Preset::Balanced);
    settings.rules.set(Rule::Ipv4Fragments, Action::Off);
    let mut gate = Gate::new(settings);
    let sent = Ip { identification: 7, ..datagram(INSIDE, OUTSIDE, [53, 5353], &[5; 3000]) };
    let out = sent.pieces(1480).into_iter().flat_map(|piece| gate.pass_with(TRUSTED, &piece, Meta::plain()));
    let identifications: Vec<u16> = out.map(|(_, frame, _)| identification(&frame)).collect();
    assert_eq!(identifications, [identifications[0]; 3]);
    assert_ne!(identifications[0], 7);
}

#[test]
fn over_ipv6_too_fragments_have_an_identification_that_is_not_the_hosts() {
    let mut gate = balanced();
    let mut seen = HashSet::new();
    for _ in 0..20 {
        let sent = datagram(INSIDE_V6, OUTSIDE_V6, [53, 5353], &[5; 2000]);
        let piece = |offset: usize, bytes: &[u8]| {
            let place = (offset as u16) | u16::from(offset + bytes.len() < sent.payload.len());
            let header = [&[17, 0][..], &place.to_be_bytes(), &7_u32.to_be_bytes()].concat();
            Ip::new(INSIDE_V6, OUTSIDE_V6, 44, [&header, bytes].concat()).frame()
        };
        let (first, second) = sent.payload.split_at(1400);
        assert!(gate.pass_with(TRUSTED, &piece(0, first), Meta::plain()).is_empty());
        let out = gate.pass_with(TRUSTED, &piece(1400, second), Meta::plain());
        let identifications: HashSet<Vec<u8>> = out.iter().map(|(_, frame, _)| frame[58..62].to_vec()).collect();
        assert_eq!((out.len(), identifications.len()), (2, 1));
        seen.extend(identifications);
    }
    assert_eq!(seen.len(), 20);
    assert!(!seen.contains(&7_u32.to_be_bytes()[..]));
}

#[test]
fn case_47_a_flow_keeps_one_label_whatever_the_host_writes() {
    let mut gate = balanced();
    let mut label_of = |ports: [u16; 2], flow_label_of_host| {
        let sent = Ip { flow_label: flow_label_of_host, ..datagram(INSIDE_V6, OUTSIDE_V6, ports, b"answer") };
        flow_label(&gate.pass(TRUSTED, &sent.frame()).expect("it passes"))
    };
    let label = label_of([53, 5353], 0);
    assert_ne!(label, 0);
    for other in [0, 1, 0xf_ffff] {
        assert_eq!(label_of([53, 5353], other), label);
    }
    let others: HashSet<u32> = (1000..1100).map(|port| label_of([53, port], 0)).collect();
    assert!(others.len() > 95 && !others.contains(&label), "{} labels of 100 flows", others.len());
}

#[test]
fn replies_say_nothing_by_class_or_df() {
    let mut gate = balanced();
    for (inside, outside) in HOSTS {
        let request = Ip { class: 4, ..ping(outside, inside, 1) };
        gate.pass(UNTRUSTED, &request.frame()).expect("a question");
        let repeats = Ip { class: 4, dont_fragment: true, ..pong(inside, outside, 1) };
        let out = gate.pass(TRUSTED, &repeats.frame()).expect("an answer");
        let class = if inside.is_ipv4() { out[15] } else { (out[14] << 4) | (out[15] >> 4) };
        assert_eq!(class, 0);
        assert!(inside.is_ipv6() || out[20] & 0x40 == 0, "DF");
    }
}

#[test]
fn a_request_of_a_trusted_host_keeps_its_class() {
    let request = Ip { class: 0x28, ..message(INSIDE, OUTSIDE, (8, 0), rest(1, 1), b"ping") };
    let out = balanced().pass(TRUSTED, &request.frame()).expect("a question");
    assert_eq!((out[15], out[20] & 0x40), (0x28, 0x40));
}
