//! Connections that are over, one record each.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod tcp_support;

use std::time::Duration;

use bump::Side;
use scrub::{Came, FlowEnd, FlowLimits, Over, Settings};

use tcp_support::*;

const C: u32 = CLIENT + 1;
const S: u32 = SERVER + 1;
const MANY: usize = 100;

fn followed(settings: Settings) -> Gate {
    let mut gate = Gate::new(settings);
    assert_eq!(gate.scrubber.take_ended(MANY), (Vec::new(), 0));
    gate
}

fn ended(gate: &mut Gate) -> Vec<FlowEnd> {
    gate.scrubber.take_ended(MANY).0
}

fn why(gate: &mut Gate) -> Vec<(Came, Over)> {
    ended(gate).iter().map(|end| (end.came, end.over)).collect()
}

#[test]
fn a_connection_that_is_closed_has_one_record_of_what_passed() {
    let mut gate = followed(plain());
    gate.open();
    gate.client(seg(ACK, C, S).data(b"question"));
    gate.server(seg(ACK, S, C + 8).data(b"the answer"));
    gate.wait(Duration::from_secs(7));
    gate.client(seg(FIN | ACK, C + 8, S + 10));
    gate.server(seg(FIN | ACK, S + 10, C + 9));
    assert_eq!(ended(&mut gate), [], "the last word is missing");
    gate.client(seg(ACK, C + 9, S + 11));
    let [end] = ended(&mut gate)[..] else { panic!("one") };
    assert_eq!((end.flow, end.opened_by, end.came, end.over), (gate.id(), Side::UNTRUSTED, Came::Closed, Over::Closed));
    // SYN, ACK, data, FIN, ACK; SYN-ACK, data, FIN.
    assert_eq!((end.packets, end.bytes), ([3, 5], [10, 8]));
    assert_eq!(end.last_seen - end.opened, Duration::from_secs(7));
    gate.client(seg(ACK, C + 9, S + 11));
    gate.wait(Duration::from_secs(1000));
    assert_eq!((gate.scrubber.flow_counts(gate.now).all, ended(&mut gate)), (0, Vec::new()), "once");
}

#[test]
fn each_end_has_its_reason() {
    let mut gate = followed(plain());
    gate.open();
    gate.client(seg(RST, C, 0));
    assert_eq!(why(&mut gate), [(Came::Closed, Over::Reset)]);
    gate.client(seg(SYN, CLIENT + 99, 0));
    assert_eq!(why(&mut gate), [], "the one before is told already");
    gate.wait(Duration::from_secs(40));
    assert_eq!(why(&mut gate), [(Came::New, Over::Silent)], "nobody answered");
    gate.open();
    gate.server(seg(SYN, SERVER + 500, 0));
    assert_eq!(why(&mut gate), [(Came::Established, Over::Reused)]);
    let mut gate = followed(plain());
    gate.open();
    let id = gate.id();
    assert!(gate.scrubber.block(gate.now, &id));
    assert_eq!(why(&mut gate), [(Came::Closed, Over::Blocked)]);
    assert!(gate.scrubber.unblock(&id));
    assert_eq!(why(&mut gate), []);
}

#[test]
fn silence_ends_where_it_began() {
    let idle = Duration::from_secs(500);
    let mut gate = followed(Settings { idle, ..plain() });
    gate.open();
    gate.wait(Duration::from_secs(20));
    gate.client(seg(ACK, C, S).data(b"last"));
    gate.wait(Duration::from_secs(600));
    let [end] = ended(&mut gate)[..] else { panic!("one") };
    assert_eq!((end.came, end.over), (Came::Closed, Over::Silent));
    assert_eq!(end.last_seen - end.opened, Duration::from_secs(20));
}

#[test]
fn a_full_table_tells_of_what_it_forgets_and_a_flood_is_counted() {
    let mut gate = followed(Settings { flows: FlowLimits::at_most(4), ..plain() });
    for port in 1..=200 {
        gate.ends.client.set_port(port);
        gate.client(seg(SYN, CLIENT, 0));
    }
    let (ends, left_out) = gate.scrubber.take_ended(1);
    assert!(ends.len() == MANY && ends.iter().all(|end| (end.came, end.over) == (Came::New, Over::Evicted)));
    // All but those that are still known.
    let known = gate.scrubber.flow_counts(gate.now).all as u64;
    assert_eq!(left_out, 200 - known - MANY as u64);
    gate.ends.client.set_port(300);
    gate.client(seg(SYN, CLIENT, 0));
    gate.ends.client.set_port(301);
    gate.client(seg(SYN, CLIENT, 0));
    let (ends, still_left_out) = gate.scrubber.take_ended(0);
    assert_eq!((ends.len(), still_left_out), (1, left_out + 1));
}

/// A record of another gateway takes the place of an older one, which is not over.
#[test]
fn what_another_gateway_tells_ends_nothing() {
    let mut first = Gate::new(plain());
    first.scrubber.follow_changes();
    first.open();
    let mut record = Vec::new();
    first.scrubber.next_record(first.now, &mut record);
    let mut second = followed(plain());
    (second.ends, second.now) = (first.ends, first.now);
    for _ in 0..3 {
        assert_eq!(second.scrubber.take_record(second.now, &record), Ok(()));
    }
    assert_eq!(ended(&mut second), []);
    second.client(seg(ACK, C, S).data(b"x"));
    second.server(seg(ACK, S, C));
    second.client(seg(FIN | ACK, C + 1, S));
    second.server(seg(FIN | ACK, S, C + 2));
    second.client(seg(ACK, C + 2, S + 1));
    let [end] = ended(&mut second)[..] else { panic!("one") };
    assert_eq!((end.opened_by, end.over), (Side::UNTRUSTED, Over::Closed));
}
