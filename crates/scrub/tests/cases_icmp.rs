//! What a scrubber does to the evasions by ICMP, UDP and opaque protocols: cases 26, 31, 48 and 101 to 113, one test each. The
//! table in `docs/scrubbing.md` names them.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail like tests")]
#![allow(dead_code, reason = "each test uses its share of the helpers")]

mod icmp;

use std::time::Duration;

use bump::{DropReason, Meta, Side};
use icmp::{
    Gate, HOSTS, INSIDE, INSIDE_V6, Ip, OUTSIDE, OUTSIDE_V6, ROUTER, carried, datagram, error, message, ping, pong,
    rest, sum, transport_sum_is_right,
};
use scrub::settings::Network;
use scrub::{Preset, Rule, Settings};

const TRUSTED: Side = Side::TRUSTED;
const UNTRUSTED: Side = Side::UNTRUSTED;
const PORT_UNREACHABLE: (u8, u8) = (3, 3);
const NOTHING: [u8; 4] = [0; 4];

fn balanced() -> Gate {
    Gate::new(Settings::preset(Preset::Balanced))
}

fn strict() -> Gate {
    Gate::new(Settings::preset(Preset::Strict))
}

/// nmap's probe U1: 300 times C to a closed port, with this identification.
fn probe() -> Ip {
    Ip {
        identification: 0x1042,
        dont_fragment: false,
        hop_limit: 57,
        ..datagram(OUTSIDE, INSIDE, [44_000, 31_337], &[b'C'; 300])
    }
}

/// TCP in the protocol number of UDP is judged as the datagram that its receiver would read, and never as TCP.
#[test]
fn case_26_tcp_under_another_protocol_number() {
    let segment = [0x1f, 0x90, 0xc0, 0x00, 0, 0, 0, 7, 0, 0, 0, 0, 0x50, 0x02, 0x01, 0xf6, 0, 0, 0, 0];
    let mut gate = balanced();
    let as_udp = Ip::new(OUTSIDE, INSIDE, 17, segment.to_vec());
    assert_eq!(gate.pass(UNTRUSTED, &as_udp.frame()), Err(DropReason::UdpLength));
    let as_unknown = Ip::new(OUTSIDE, INSIDE, 253, segment.to_vec());
    assert_eq!(gate.pass(UNTRUSTED, &as_unknown.frame()), Ok(as_unknown.frame()), "it passes as it is");
    assert_eq!(strict().pass(UNTRUSTED, &as_unknown.frame()), Err(DropReason::ProtocolNotListed));
}

/// A tunnel passes whole or not at all: only between hosts that are listed for it, and in `strict` whatever it carries.
#[test]
fn case_31_nested_and_tunnelled() {
    let inner = ping(OUTSIDE, INSIDE, 1).packet();
    let teredo = datagram(OUTSIDE, INSIDE, [3544, 3544], &ping(OUTSIDE_V6, INSIDE_V6, 1).packet());
    let gre = Ip::new(OUTSIDE, INSIDE, 47, [&[0, 0, 8, 0], &inner[..]].concat());
    let tunnels = [Ip::new(OUTSIDE, INSIDE, 4, inner.clone()), Ip::new(OUTSIDE, INSIDE, 41, inner), gre];
    let host = |address: std::net::Ipv4Addr| Network { address: address.into(), prefix_len: 32 };
    let mut settings = Settings::preset(Preset::Strict);
    settings.tunnels = vec![(host(INSIDE), host(OUTSIDE))];
    let mut listed = Gate::new(settings);
    for tunnel in tunnels.iter().chain([&teredo]) {
        let frame = tunnel.frame();
        let outcome = balanced().pass(UNTRUSTED, &frame);
        assert_eq!(outcome, Err(DropReason::ProtocolNotListed), "protocol {}", tunnel.protocol);
        assert_eq!(strict().pass(UNTRUSTED, &frame), Err(DropReason::ProtocolNotListed));
        assert_eq!(listed.pass(UNTRUSTED, &frame), Ok(frame.clone()));
    }
    let empty = Ip::new(OUTSIDE, INSIDE, 47, vec![0, 0, 0x88, 0xcc]).frame();
    assert_eq!(balanced().pass(UNTRUSTED, &empty), Ok(empty.clone()), "no IP in it");
    assert_eq!(strict().pass(UNTRUSTED, &empty), Err(DropReason::ProtocolNotListed));
    let esp = Ip::new(OUTSIDE, INSIDE, 50, vec![0x51; 40]).frame();
    assert_eq!(balanced().pass(UNTRUSTED, &esp), Ok(esp.clone()));
    assert_eq!(listed.pass(UNTRUSTED, &esp), Err(DropReason::ProtocolNotListed), "a tunnel is not encryption");
}

/// Neighbour discovery that crossed a router does not leave; of the link's own it keeps its hop limit of 255.
#[test]
fn case_48_neighbour_discovery_from_another_link() {
    let advertisement =
        |hop_limit| Ip { hop_limit, ..message(OUTSIDE_V6, INSIDE_V6, (134, 0), [64, 0, 0, 30], &[0; 8]) };
    let mut gate = balanced();
    // One that could not even reach the hosts is refused for that.
    assert_eq!(gate.pass(UNTRUSTED, &advertisement(1).frame()), Err(DropReason::HopLimit));
    for hop_limit in [254, 64, 8] {
        let outcome = gate.pass(UNTRUSTED, &advertisement(hop_limit).frame());
        assert_eq!(outcome, Err(DropReason::NeighbourDiscovery), "hop limit {hop_limit}");
    }
    assert!(gate.pass(UNTRUSTED, &advertisement(255).frame()).is_ok());
    let link_local = std::net::Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    let all_nodes = std::net::Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let answer = Ip { hop_limit: 255, ..message(link_local, all_nodes, (136, 0), [0x20, 0, 0, 0], &[0xfe; 16]) };
    let out = gate.pass(TRUSTED, &answer.frame()).expect("the link needs it");
    assert_eq!(out[21], 255, "receivers would refuse any other");
}

/// The code of an echo message leaves as zero, under a right checksum, in both directions.
#[test]
fn case_101_code_of_an_echo_message() {
    let mut gate = balanced();
    for (inside, outside) in HOSTS {
        let (mut request, mut reply): (Ip, Ip) = (ping(outside, inside, 295), pong(inside, outside, 295));
        request.payload[1] = 9;
        reply.payload[1] = 9;
        for (from, sent) in [(UNTRUSTED, request), (TRUSTED, reply)] {
            let out = gate.pass(from, &sent.summed(2).frame()).expect("it passes");
            assert_eq!(carried(&out)[1], 0);
            assert_eq!(transport_sum_is_right(&out), Some(true));
        }
    }
    assert_eq!(gate.count(Rule::IcmpEchoCode), 4);
}

/// Whatever a trusted host makes of the packet that it quotes, the same error leaves: eight bytes, the header as it was sent.
#[test]
fn case_102_quotes_of_different_systems() {
    let honest = error(INSIDE, PORT_UNREACHABLE, NOTHING, &probe(), 28);
    // Where the quote begins, and what systems do to it.
    let quote = 8;
    type Habit = fn(&mut Vec<u8>);
    let habits: [(&str, Habit); 8] = [
        ("quotes all", |_| {}),
        ("gives the identification in another byte order", |bytes| bytes.swap(12, 13)),
        ("takes the header off the length", |bytes| bytes[10..12].copy_from_slice(&[0x01, 0x34])),
        ("clears the header checksum", |bytes| bytes[18..20].fill(0)),
        ("clears the UDP checksum", |bytes| bytes[34..36].fill(0)),
        ("quotes after its own hops", |bytes| bytes[16] = 56),
        ("says something in the unused field", |bytes| bytes[4..8].fill(0xee)),
        ("gives length and offset in another byte order", |bytes| {
            bytes.swap(10, 11);
            bytes.swap(14, 15);
        }),
    ];
    for (what, habit) in habits {
        let mut gate = balanced();
        gate.pass(UNTRUSTED, &probe().frame()).expect("the probe passes");
        let mut answer = Ip { class: 0xc0, ..error(INSIDE, PORT_UNREACHABLE, NOTHING, &probe(), 328) };
        habit(&mut answer.payload);
        let out = gate.pass(TRUSTED, &answer.summed(2).frame()).expect(what);
        assert_eq!(carried(&out), honest.payload, "a host that {what}");
        assert_eq!(out[15], 0, "type of service");
        assert_eq!(sum(&carried(&out)[quote..quote + 20]), 0, "the quoted header's own checksum");
    }
}

/// An error passes only if its receiver sent what it quotes, lately, and to where it says.
#[test]
fn case_103_errors_about_nothing_that_was_sent() {
    let mut gate = balanced();
    let sent = datagram(INSIDE, OUTSIDE, [5353, 53], b"question");
    let refusal = |about: &Ip| error(ROUTER, PORT_UNREACHABLE, NOTHING, about, 28).frame();
    assert_eq!(gate.pass(UNTRUSTED, &refusal(&sent)), Err(DropReason::IcmpUnsolicited), "not sent yet");
    gate.pass(TRUSTED, &sent.frame()).expect("a question");
    assert!(gate.pass(UNTRUSTED, &refusal(&sent)).is_ok());
    let other_port = datagram(INSIDE, OUTSIDE, [5354, 53], b"question");
    assert_eq!(gate.pass(UNTRUSTED, &refusal(&other_port)), Err(DropReason::IcmpUnsolicited));
    gate.wait(scrub::limits::EXCHANGE_LIFETIME);
    assert_eq!(gate.pass(UNTRUSTED, &refusal(&sent)), Err(DropReason::IcmpUnsolicited), "too late");
    // The other side's own packets are no reason for its errors.
    gate.pass(UNTRUSTED, &datagram(OUTSIDE, INSIDE, [53, 5355], b"answer").frame()).expect("an answer");
    let reflected = datagram(INSIDE, OUTSIDE, [5355, 53], b"question");
    assert_eq!(gate.pass(UNTRUSTED, &refusal(&reflected)), Err(DropReason::IcmpUnsolicited));
}

/// Errors that announce an MTU below the least of IP do not leave; others keep their MTU.
#[test]
fn case_104_mtu_below_the_least() {
    let mut gate = balanced();
    let sent = datagram(INSIDE, OUTSIDE, [5353, 53], &[0; 1400]);
    let sent_v6 = datagram(INSIDE_V6, OUTSIDE_V6, [5353, 53], &[0; 1400]);
    gate.pass(TRUSTED, &sent.frame()).expect("a question");
    gate.pass(TRUSTED, &sent_v6.frame()).expect("a question");
    for (mtu, passes) in [(0, false), (68, false), (575, false), (576, true), (1400, true)] {
        let report = error(ROUTER, (3, 4), rest(0, mtu), &sent, 28).frame();
        let expected = if passes { Ok(report.clone()) } else { Err(DropReason::IcmpMtu) };
        assert_eq!(gate.pass(UNTRUSTED, &report), expected, "MTU {mtu}");
    }
    for (mtu, passes) in [(0, false), (1279, false), (1280, true), (1400, true)] {
        let report = error(OUTSIDE_V6, (2, 0), rest(0, mtu), &sent_v6, 48).frame();
        let expected = if passes { Ok(report.clone()) } else { Err(DropReason::IcmpMtu) };
        assert_eq!(gate.pass(UNTRUSTED, &report), expected, "MTU {mtu} over IPv6");
    }
}

/// An echo request to everybody does not leave, whether the address or the link says so.
#[test]
fn case_105_echo_request_to_everybody() {
    let mut gate = balanced();
    let groups = ["255.255.255.255", "224.0.0.1"].map(|group| group.parse::<std::net::Ipv4Addr>().unwrap());
    for group in groups {
        let request = ping(OUTSIDE, group, 1).frame();
        assert_eq!(gate.pass(UNTRUSTED, &request), Err(DropReason::IcmpBroadcast), "{group}");
    }
    let all_nodes = std::net::Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    assert_eq!(gate.pass(UNTRUSTED, &ping(OUTSIDE_V6, all_nodes, 1).frame()), Err(DropReason::IcmpBroadcast));
    let subnet = std::net::Ipv4Addr::new(192, 0, 2, 255);
    for (destination, reason) in [(subnet, DropReason::IcmpBroadcast), (INSIDE, DropReason::IpAddress)] {
        let mut directed = ping(OUTSIDE, destination, 1).frame();
        directed[..6].fill(0xff);
        assert_eq!(gate.pass(UNTRUSTED, &directed), Err(reason), "a router made it a broadcast");
    }
}

/// What a trusted host asks of everybody is answered by each with his own address, and passes.
#[test]
fn answers_to_a_request_to_everybody_pass() {
    let mut gate = balanced();
    let all_nodes = std::net::Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    assert_eq!(gate.pass(UNTRUSTED, &pong(OUTSIDE_V6, INSIDE_V6, 1).frame()), Err(DropReason::IcmpUnsolicited));
    gate.pass(TRUSTED, &ping(INSIDE_V6, all_nodes, 1).frame()).expect("a question to all");
    assert!(gate.pass(UNTRUSTED, &pong(OUTSIDE_V6, INSIDE_V6, 1).frame()).is_ok());
}

/// Redirects, source quench, timestamp, mask and information messages do not leave, nor types that nobody assigned.
#[test]
fn case_106_messages_without_use() {
    let mut gate = balanced();
    for kind in [4, 5, 6, 13, 14, 15, 16, 17, 18, 30, 37, 44, 253] {
        let sent = message(OUTSIDE, INSIDE, (kind, 0), NOTHING, &probe().packet()[..28]).frame();
        assert_eq!(gate.pass(UNTRUSTED, &sent), Err(DropReason::IcmpType), "type {kind}");
        let answer = message(INSIDE, OUTSIDE, (kind, 0), NOTHING, &[0; 12]).frame();
        assert_eq!(gate.pass(TRUSTED, &answer), Err(DropReason::IcmpType), "type {kind} of a trusted host");
    }
    for kind in [0, 5, 100, 127, 137, 138, 139, 140, 162, 200, 255] {
        let sent = message(OUTSIDE_V6, INSIDE_V6, (kind, 0), NOTHING, &[0; 32]).frame();
        assert_eq!(gate.pass(UNTRUSTED, &sent), Err(DropReason::IcmpType), "ICMPv6 type {kind}");
    }
}

/// Types that are assigned pass, but those that the case above names.
#[test]
fn assigned_types_pass() {
    let mut gate = balanced();
    for kind in [9, 10, 40, 41, 42, 43] {
        let sent = message(OUTSIDE, INSIDE, (kind, 0), NOTHING, &[0; 12]).frame();
        assert!(gate.pass(UNTRUSTED, &sent).is_ok(), "type {kind}");
    }
    for kind in (141..=161).filter(|kind| ![141, 142].contains(kind)) {
        let sent = message(OUTSIDE_V6, INSIDE_V6, (kind, 0), NOTHING, &[0; 32]).frame();
        assert!(gate.pass(UNTRUSTED, &sent).is_ok(), "ICMPv6 type {kind}");
    }
}

/// A reply passes only to the one who asked, from the one he asked, with the numbers of the question.
#[test]
fn case_107_replies_that_nobody_asked_for() {
    let mut gate = balanced();
    for (inside, outside) in HOSTS {
        assert_eq!(gate.pass(UNTRUSTED, &pong(outside, inside, 7).frame()), Err(DropReason::IcmpUnsolicited));
        gate.pass(TRUSTED, &ping(inside, outside, 7).frame()).expect("a question");
        assert!(gate.pass(UNTRUSTED, &pong(outside, inside, 7).frame()).is_ok());
        assert_eq!(gate.pass(UNTRUSTED, &pong(outside, inside, 8).frame()), Err(DropReason::IcmpUnsolicited));
    }
    let stranger = pong(ROUTER, INSIDE, 7).frame();
    assert_eq!(gate.pass(UNTRUSTED, &stranger), Err(DropReason::IcmpUnsolicited));
}

/// In `strict` an echo message that does not fit the packet that every host takes does not leave.
#[test]
fn case_108_echo_messages_that_carry_much() {
    let long = |len: usize| message(OUTSIDE, INSIDE, (8, 0), rest(1, 1), &vec![b'x'; len - 8]).frame();
    assert_eq!(strict().pass(UNTRUSTED, &long(557)), Err(DropReason::IcmpSize));
    assert_eq!(strict().pass(UNTRUSTED, &long(556)), Ok(long(556)));
    assert_eq!(balanced().pass(UNTRUSTED, &long(1400)), Ok(long(1400)));
}

/// An error that comes in pieces is joined before it is judged, so that no piece hides what it quotes.
#[test]
fn case_109_error_in_fragments() {
    let mut gate = balanced();
    let sent = datagram(INSIDE, OUTSIDE, [5353, 53], &[7; 100]);
    let report = error(ROUTER, PORT_UNREACHABLE, NOTHING, &sent, 128);
    let last = |gate: &mut Gate| {
        let mut outcomes = report.pieces(8).into_iter().map(|piece| {
            let out = gate.pass_with(UNTRUSTED, &piece, Meta::plain());
            out.into_iter().map(|(_, frame, _)| frame).next()
        });
        outcomes.by_ref().find_map(|out| out)
    };
    assert_eq!(last(&mut gate), None, "nothing was sent that it could be about");
    assert_eq!(gate.ledger().drops(DropReason::IcmpUnsolicited), report.pieces(8).len() as u64);
    gate.pass(TRUSTED, &sent.frame()).expect("a question");
    let out = last(&mut gate).expect("it is true now");
    assert_eq!(carried(&out)[..8], report.payload[..8], "the first of the pieces in which it leaves");
}

/// An error whose quoted source is not its own receiver does not leave.
#[test]
fn case_110_error_about_a_packet_of_somebody_else() {
    let mut gate = balanced();
    let somebody = std::net::Ipv4Addr::new(192, 0, 2, 99);
    let sent = datagram(somebody, OUTSIDE, [5353, 53], b"question");
    gate.pass(TRUSTED, &sent.frame()).expect("a question");
    let to_another = message(OUTSIDE, INSIDE, PORT_UNREACHABLE, NOTHING, &sent.packet()[..28]).frame();
    assert_eq!(gate.pass(UNTRUSTED, &to_another), Err(DropReason::IcmpUnsolicited));
    assert!(gate.pass(UNTRUSTED, &error(OUTSIDE, PORT_UNREACHABLE, NOTHING, &sent, 28).frame()).is_ok());
}

/// A datagram that says less than its packet holds is cut to what it says; one that says more, or nothing, does not leave.
#[test]
fn case_111_length_of_a_datagram() {
    let mut gate = balanced();
    let honest = datagram(OUTSIDE, INSIDE, [53, 5353], b"answer");
    for len in [0_u16, 7, 15, 1000, u16::MAX] {
        let mut lying = honest.clone();
        lying.payload[4..6].copy_from_slice(&len.to_be_bytes());
        assert_eq!(gate.pass(UNTRUSTED, &lying.summed(6).frame()), Err(DropReason::UdpLength), "length {len}");
    }
    let cut_short = Ip { payload: honest.payload[..7].to_vec(), ..honest.clone() };
    assert_eq!(gate.pass(UNTRUSTED, &cut_short.frame()), Err(DropReason::UdpLength));
    let mut longer = honest.clone();
    longer.payload.extend(b"hidden");
    assert_eq!(gate.pass(UNTRUSTED, &longer.frame()), Ok(honest.frame()), "what follows it is gone");
    assert_eq!(gate.pass(UNTRUSTED, &honest.frame()), Ok(honest.frame()));
}

/// Over IPv6 a datagram without a checksum leaves only between hosts that are listed as ends of a tunnel; over IPv4 it leaves.
#[test]
fn case_112_datagrams_without_checksum() {
    let without = |mut sent: Ip| {
        sent.payload[6..8].fill(0);
        sent.frame()
    };
    let v6 = without(datagram(OUTSIDE_V6, INSIDE_V6, [4789, 4789], b"tunnelled"));
    let v4 = without(datagram(OUTSIDE, INSIDE, [53, 5353], b"answer"));
    assert_eq!(balanced().pass(UNTRUSTED, &v6), Err(DropReason::UdpChecksum));
    assert_eq!(balanced().pass(UNTRUSTED, &v4), Ok(v4.clone()));
    let mut settings = Settings::preset(Preset::Balanced);
    let host = |address: std::net::Ipv6Addr| Network { address: address.into(), prefix_len: 128 };
    settings.tunnels = vec![(host(OUTSIDE_V6), host(INSIDE_V6))];
    assert_eq!(Gate::new(settings).pass(UNTRUSTED, &v6), Ok(v6.clone()));
    let mut wrong = datagram(OUTSIDE, INSIDE, [53, 5353], b"answer");
    wrong.payload[6] ^= 1;
    assert_eq!(balanced().pass(UNTRUSTED, &wrong.frame()), Err(DropReason::UdpChecksum));
}

/// What a datagram carries is nobody's business here: it leaves byte for byte.
#[test]
fn case_113_tampering_above_udp() {
    let mut gate = balanced();
    for data in [&b""[..], b"\0", b"\xff\xff\xff\xff", &[0x40; 1400]] {
        let sent = datagram(OUTSIDE, INSIDE, [443, 50_000], data).frame();
        assert_eq!(gate.pass(UNTRUSTED, &sent), Ok(sent.clone()));
    }
}

/// Figure 9: a request every 20 ms, replies at least 50 ms apart, so that one leaves every 60 ms.
#[test]
fn figure_9_of_the_paper() {
    for preset in [Preset::Paper, Preset::Balanced, Preset::Strict] {
        let mut gate = Gate::new(Settings::preset(preset));
        let start = gate.now;
        let mut left = Vec::new();
        for sequence in 0..16_u16 {
            gate.pass(UNTRUSTED, &ping(OUTSIDE, INSIDE, sequence).frame()).expect("requests pass as they are");
            match gate.pass(TRUSTED, &pong(INSIDE, OUTSIDE, sequence).frame()) {
                Ok(_) => left.push(gate.now.since(start).as_millis()),
                Err(reason) => assert_eq!(reason, DropReason::IcmpRate),
            }
            gate.wait(Duration::from_millis(20));
        }
        assert_eq!(left, [0, 60, 120, 180, 240, 300], "{preset:?}");
    }
}
