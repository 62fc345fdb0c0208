//! What one host may hold of the table of connections, and what that leaves to others.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod tcp_support;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bump::{DropReason as Reason, Side};
use scrub::limits::{ESTABLISHED_TIMEOUT, SOURCE_FLOWS_MIN};
use scrub::settings::{Adopt, Network};
use scrub::{Event, FlowLimits, Settings, Told};

use tcp_support::*;

const C: u32 = CLIENT + 1;
const S: u32 = SERVER + 1;
const FLOWS_MAX: usize = 4096;
/// What a host may hold that is alone: as many as a sixteenth of what is left then.
const ALONE: usize = FLOWS_MAX / 17 + 1;

fn small() -> Settings {
    Settings { flows: FlowLimits::at_most(FLOWS_MAX), ..plain() }
}

fn host(number: usize) -> IpAddr {
    Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 0).to_bits() + number as u32).into()
}

fn is_refusal(reason: Reason) -> bool {
    [Reason::FlowsOfSource, Reason::FlowsOfNetwork].contains(&reason)
}

/// Opens a connection from a host's port; whether both hosts have it then.
fn opens(gate: &mut Gate, host: IpAddr, port: usize) -> bool {
    gate.ends.client = SocketAddr::new(host, 1024 + port as u16);
    if gate.client(seg(SYN, CLIENT, 0)).dropped.is_some_and(is_refusal) {
        return false;
    }
    gate.server(seg(SYN | ACK, SERVER, CLIENT + 1)).to_client();
    gate.client(seg(ACK, C, S)).to_server();
    true
}

/// How many a host opens, of at most `most`, before it is refused.
fn opens_all(gate: &mut Gate, host: IpAddr, most: usize) -> usize {
    (0..most).take_while(|port| opens(gate, host, *port)).count()
}

#[test]
fn one_host_leaves_the_table_to_others() {
    let mut gate = Gate::new(small());
    assert_eq!(opens_all(&mut gate, host(1), FLOWS_MAX), ALONE);
    assert_eq!(gate.events(), [Event::SourceFull { source: Network::host(host(1)) }]);
    gate.client(seg(SYN, CLIENT, 0)).is_dropped_for(Reason::FlowsOfSource);
    assert_eq!(gate.events(), [], "not again so soon");
    assert!(opens(&mut gate, host(2), 0));
    // What ends makes room.
    for port in [1024, 1025] {
        gate.ends.client = SocketAddr::new(host(1), port);
        gate.client(seg(RST, C, 0)).to_server();
    }
    assert!(opens(&mut gate, host(1), FLOWS_MAX));
}

/// Each of many hosts opens what it may, in turn, until none may any more. Whoever comes then finds
/// room, though all that is held is as good as his.
#[test]
fn case_114_many_hosts_that_take_all_they_may_leave_room_for_more() {
    let mut gate = Gate::new(small());
    let mut held = 0;
    for port in 0..FLOWS_MAX {
        let before = held;
        held += (0..100).filter(|number| opens(&mut gate, host(*number), port)).count();
        if held == before {
            break;
        }
    }
    // As many as a sixteenth of the free places, for each of a hundred.
    assert!(held > FLOWS_MAX * 100 / 117 && held < FLOWS_MAX * 9 / 10, "{held}");
    for number in 1000..1100 {
        assert_eq!(opens_all(&mut gate, host(number), 3), 3, "{number}");
    }
}

/// Handshakes that were begun before the share was used up do not come to their end beyond it.
#[test]
fn who_opens_many_at_a_time_gets_no_more() {
    let mut gate = Gate::new(small());
    let at_a_time = 2 * ALONE;
    for port in 0..at_a_time {
        gate.ends.client = SocketAddr::new(host(1), 1024 + port as u16);
        gate.client(seg(SYN, CLIENT, 0)).to_server();
        gate.server(seg(SYN | ACK, SERVER, CLIENT + 1)).to_client();
    }
    for port in 0..at_a_time {
        gate.ends.client = SocketAddr::new(host(1), 1024 + port as u16);
        let out = gate.client(seg(ACK, C, S).data(b"word"));
        if port < ALONE {
            assert_eq!(out.to_server().data, b"word");
            continue;
        }
        assert_eq!(out.dropped, Some(Reason::FlowsOfSource));
        let resets = [&out.inside[..], &out.outside].concat();
        let told: Vec<_> = resets.iter().map(|seg| (seg.flags & RST, seg.sequence)).collect();
        assert_eq!(told, [(RST, C), (RST, S)], "each of the two hears of it, where it stands");
        gate.client(seg(ACK, C + 4, S).data(b"more")).is_dropped_for(Reason::TcpNoConnection);
    }
    assert_eq!(gate.scrubber.flow_counts(gate.now).all, ALONE, "nothing is kept of the others");
}

/// Where a host's byte stands that makes the gateway keep 64 KiB.
const FAR: u32 = 40_000;
const KEPT: usize = 64 << 10;
/// Of 8 MiB an eighth is for fragments.
const MEMORY: usize = 8 << 20;
const RETAINED: usize = MEMORY / 8 * 7;

fn in_small_memory() -> Gate {
    Gate::new(Settings { memory_max_bytes: MEMORY, ..small() })
}

/// One byte far behind a hole, in each of many connections: a fifth of what there is for holes, and
/// no more. Whoever comes then may have holes as ever.
#[test]
fn one_host_leaves_memory_behind_holes_to_others() {
    let mut gate = in_small_memory();
    let leaves_hole = |gate: &mut Gate, number: usize, port: usize| {
        assert!(opens(gate, host(number), port));
        gate.client(seg(ACK, C + FAR, S).data(b"x")).dropped
    };
    let held = (0..200).map(|port| leaves_hole(&mut gate, 1, port)).take_while(Option::is_none).count();
    assert_eq!(held, RETAINED / 4 * 3 / KEPT / 5 + 1);
    assert_eq!(gate.events(), [Event::SourceMemoryFull { source: Network::host(host(1)) }]);
    assert_eq!(leaves_hole(&mut gate, 1, 201), Some(Reason::MemoryOfSource));
    assert_eq!(gate.events(), [], "not again so soon");
    assert_eq!(leaves_hole(&mut gate, 2, 0), None);
    assert_eq!(leaves_hole(&mut gate, 1, 202), Some(Reason::MemoryOfSource));
    // What is filled and acknowledged counts no more.
    for port in [1024, 1025] {
        gate.ends.client = SocketAddr::new(host(1), port);
        (0..FAR).step_by(1000).for_each(|at| drop(gate.client(seg(ACK, C + at, S).data(&[b'a'; 1000]))));
        gate.server(seg(ACK, S, C + FAR + 1)).to_client();
    }
    assert_eq!(leaves_hole(&mut gate, 1, 203), None);
}

/// A network of 64 bits has twice the share of a host, one of 48 bits three times, whatever addresses
/// of it connections come from.
#[test]
fn networks_of_ipv6_leave_memory_to_others() {
    let address = |site: u16, network: u16, number: usize| -> IpAddr {
        IpAddr::from([0x2001, 0xdb8, site, network, 0, 0, 0, number as u16])
    };
    // Rings of 64 KiB that there is room for behind holes. With n of them a network gets one more if
    // n + 1 is no more than so many fourths of the rest.
    let room = RETAINED / 4 * 3 / KEPT;
    for (steps, times) in [([0, 1], 2), ([1, 1], 3)] {
        let mut gate = in_small_memory();
        gate.ends.server = SocketAddr::new(address(0xffff, 0, 1), 80);
        let leaves_hole = |gate: &mut Gate, host: IpAddr| {
            assert!(opens(gate, host, 0));
            gate.client(seg(ACK, C + FAR, S).data(b"x")).dropped
        };
        let hosts = (0..200).map(|number| address(1, steps[0] * number, usize::from(steps[1] * number) + 1));
        let held = hosts.map(|host| leaves_hole(&mut gate, host)).take_while(Option::is_none).count();
        assert_eq!(held, (room * times - 4) / (4 + times) + 1);
        assert_eq!(leaves_hole(&mut gate, address(2, 0, 1)), None, "of another network");
    }
}

/// Who opened a connection and acknowledges nothing pays for what is sent to him, where that is
/// scrubbed.
#[test]
fn who_acknowledges_nothing_uses_up_his_own_share() {
    let mut gate = Gate::new(Settings { memory_max_bytes: MEMORY, both_directions: true, ..small() });
    let tells = |gate: &mut Gate, number: usize, port: usize| {
        assert!(opens(gate, host(number), port));
        let told = (0..FAR).step_by(1000).map(|at| gate.server(seg(ACK, S + at, C).data(&[b'a'; 1000])).dropped);
        told.fold(None, Option::or)
    };
    let held = (0..200).map(|port| tells(&mut gate, 1, port)).take_while(Option::is_none).count();
    // The ring before a larger one counts until that is there.
    assert!((18..=RETAINED / KEPT / 5 + 1).contains(&held), "{held}");
    assert_eq!(tells(&mut gate, 1, 201), Some(Reason::MemoryOfSource));
    assert_eq!(tells(&mut gate, 2, 0), None);
}

/// A source of half-open connections may be spoofed.
#[test]
fn spoofed_syns_take_nothing_from_a_host() {
    let mut gate = Gate::new(small());
    for port in 0..10_000 {
        gate.ends.client = SocketAddr::new(host(1), 20_000 + port);
        gate.client(seg(SYN, CLIENT, 0)).to_server();
    }
    assert_eq!(opens_all(&mut gate, host(1), ALONE), ALONE);
    assert_eq!(gate.events(), []);
}

/// An untrusted host of IPv6 has as many addresses as it likes: a network of 64 bits has four shares,
/// and one of 48 bits eight.
#[test]
fn networks_of_ipv6_have_their_share_as_well() {
    let address =
        |site: u16, network: u16, number: usize| IpAddr::from([0x2001, 0xdb8, site, network, 0, 0, 0, number as u16]);
    // Of one address, of a network of 64 bits, of one of 48 bits. Who has used up that of a network is not known.
    let cases = [
        ([0, 0], ALONE, 128, Reason::FlowsOfSource),
        ([0, 1], FLOWS_MAX / 5, 64, Reason::FlowsOfNetwork),
        ([1, 1], FLOWS_MAX / 3, 48, Reason::FlowsOfNetwork),
    ];
    for ([network, own], expected, prefix_len, reason) in cases {
        let mut gate = Gate::new(small());
        gate.ends = Ends::v6();
        let at = |number: usize| address(7, (network * number) as u16, own * number);
        let held = (0..FLOWS_MAX).take_while(|number| opens(&mut gate, at(*number), *number)).count();
        assert_eq!(held, expected);
        gate.client(seg(SYN, CLIENT, 0)).is_dropped_for(reason);
        let last = at(if prefix_len == 64 { 0 } else { held });
        let address = if prefix_len == 48 { address(7, 0, 0) } else { last };
        assert_eq!(gate.events(), [Event::SourceFull { source: Network { address, prefix_len } }]);
        assert!(opens(&mut gate, [0x2001, 0xdb8, 8, 0, 0, 0, 0, 1].into(), 0), "elsewhere");
    }
}

/// All hosts of IPv4 behind a translator are in one network (RFC 6052).
#[test]
fn translated_hosts_have_a_share_each() {
    let mut gate = Gate::new(small());
    gate.ends = Ends::v6();
    for number in 0..FLOWS_MAX / 2 {
        assert!(opens(&mut gate, [0x64, 0xff9b, 0, 0, 0, 0, 0xc612, number as u16].into(), 0), "{number}");
    }
}

/// Neighbours within share a network, and one of them must not use up what all have.
#[test]
fn networks_within_have_none() {
    let mut gate = Gate::new(small());
    gate.ends = Ends::v6();
    let within = |number: usize| SocketAddr::new([0x2001, 0xdb8, 2, 0, 0, 0, 0, number as u16].into(), 80);
    for number in 0..FLOWS_MAX / 2 {
        gate.ends.server = within(number);
        assert!(opens_from_within(&mut gate, 80), "{number}");
    }
}

/// Opens a connection from a port of the trusted host; whether both hosts have it then.
fn opens_from_within(gate: &mut Gate, port: usize) -> bool {
    gate.ends.server.set_port(1024 + port as u16);
    if gate.server(seg(SYN, SERVER, 0)).dropped == Some(Reason::FlowsOfSource) {
        return false;
    }
    gate.client(seg(SYN | ACK, CLIENT, SERVER + 1)).to_server();
    gate.server(seg(ACK, S, C)).to_client();
    true
}

/// Whoever opens it, from within or from outside, is the one who holds it.
#[test]
fn hosts_within_have_their_share_as_well() {
    let mut gate = Gate::new(small());
    assert_eq!((0..FLOWS_MAX).take_while(|port| opens_from_within(&mut gate, *port)).count(), ALONE);
    assert_eq!(gate.events(), [Event::SourceFull { source: Network::host(gate.ends.server.ip()) }]);
}

#[test]
fn a_host_may_hold_all_if_the_settings_say_so_and_a_few_in_any_case() {
    let mut gate = Gate::new(Settings { flows: FlowLimits { source_part: 0, ..FlowLimits::at_most(300) }, ..plain() });
    assert!((0..300).all(|port| opens(&mut gate, host(1), port)));
    gate.ends.client.set_port(9);
    gate.client(seg(SYN, CLIENT, 0)).is_dropped_for(Reason::FlowsFull);
    let mut gate =
        Gate::new(Settings { flows: FlowLimits { source_part: 1_000_000, ..FlowLimits::at_most(300) }, ..plain() });
    assert_eq!(opens_all(&mut gate, host(1), 300), SOURCE_FLOWS_MIN);
}

/// However connections end, nobody is counted for one that is over.
#[test]
fn whatever_ends_is_not_counted_any_more() {
    let idle = Duration::from_secs(500);
    let ends: [fn(&mut Gate); 6] = [
        |gate| drop(gate.server(seg(RST, S, 0))),
        |gate| {
            gate.client(seg(ACK | FIN, C, S));
            gate.server(seg(ACK | FIN, S, C + 1));
            gate.client(seg(ACK, C + 1, S + 1));
        },
        |gate| {
            assert!(gate.scrubber.block(gate.now, &gate.id()));
            assert!(gate.scrubber.unblock(&gate.id()));
        },
        |gate| gate.wait(Duration::from_secs(1000)),
        |gate| drop(gate.server(seg(SYN, SERVER + 70_000, 0))),
        |gate| {
            // The same gateway's record takes the connection's place, twice.
            gate.scrubber.begin_round();
            let mut record = Vec::new();
            while gate.scrubber.next_record(gate.now, &mut record) == Told::Record {
                gate.scrubber.take_record(gate.now, &record).expect("a record");
                gate.scrubber.take_record(gate.now, &record).expect("a record");
                record.clear();
            }
            gate.pass(Side::TRUSTED, &seg(RST, S, 0));
        },
    ];
    for (number, end) in ends.into_iter().enumerate() {
        let mut gate = Gate::new(Settings { idle, ..small() });
        gate.scrubber.follow_changes();
        for port in 0..2 * ALONE {
            assert!(opens(&mut gate, host(1), port), "{port} of {number}");
            end(&mut gate);
        }
        gate.elapse(ESTABLISHED_TIMEOUT);
        assert_eq!(opens_all(&mut gate, host(1), FLOWS_MAX), ALONE, "{number}");
    }
}

/// Another gateway knows who opened what, whatever the ports say.
#[test]
fn a_gateway_that_takes_over_knows_whose_they_are() {
    let mut first = Gate::new(small());
    first.scrubber.follow_changes();
    first.ends.server.set_port(60_000);
    assert_eq!(opens_all(&mut first, host(1), FLOWS_MAX), ALONE);
    let mut second = Gate::new(small());
    let mut record = Vec::new();
    while first.scrubber.next_record(first.now, &mut record) == Told::Record {
        second.scrubber.take_record(second.now, &record).expect("a record");
        record.clear();
    }
    second.ends = first.ends;
    assert!(!opens(&mut second, host(1), FLOWS_MAX), "who opened them");
    second.ends = first.ends;
    assert!((0..ALONE / 2).all(|port| opens_from_within(&mut second, port)), "to whom they were opened");
}

/// Two hosts that say that they have connections need no share for them while half of the table is
/// free: after a restart that is what honest ones do.
#[test]
fn adopted_connections_fill_half_of_the_table() {
    let mut gate = Gate::new(Settings { adopt: Adopt::All, ..small() });
    let adopts = |gate: &mut Gate, port: usize| {
        gate.ends.client.set_port(1024 + port as u16);
        gate.server(seg(ACK, S, C));
        let out = gate.client(seg(ACK, C, S).data(b"word"));
        let resets: Vec<_> = out.inside.iter().chain(&out.outside).map(|seg| (seg.flags & RST, seg.sequence)).collect();
        let is_refused = out.dropped == Some(Reason::FlowsOfNetwork);
        assert_eq!(is_refused, resets == [(RST, C), (RST, S)], "{out:?}");
        !is_refused
    };
    assert_eq!((0..FLOWS_MAX).take_while(|port| adopts(&mut gate, *port)).count(), FLOWS_MAX / 2 + 1);
    assert!(opens(&mut gate, host(2), 0));
}

/// Connections that are over, and handshakes that nobody completes, do not push out each other.
#[test]
fn who_makes_many_of_one_kind_pushes_out_that_kind() {
    let mut gate = Gate::new(Settings { flows: FlowLimits::at_most(64), ..plain() });
    gate.ends.client = SocketAddr::new(host(2), 9);
    gate.client(seg(SYN, CLIENT, 0)).to_server();
    let handshake = gate.ends;
    for port in 0..500 {
        assert!(opens(&mut gate, host(1), port));
        gate.client(seg(RST, C, 0)).to_server();
    }
    gate.ends = handshake;
    gate.server(seg(SYN | ACK, SERVER, CLIENT + 1)).to_client();
    gate.client(seg(ACK, C, S)).to_server();
}
