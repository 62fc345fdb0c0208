//! What honest hosts do and a scrubber easily cuts: repeated SYNs, lost ones, ends behind holes, signatures.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod tcp_support;

use bump::{DropReason as Reason, Side};
use scrub::settings::OutOfOrder;
use scrub::{Preset, Settings};

use tcp_support::*;

const C: u32 = CLIENT + 1;
const S: u32 = SERVER + 1;

/// Timestamps and selective acknowledgement permitted, as a SYN offers them.
fn offer(value: u32, echo: u32) -> Vec<u8> {
    let stamps = [value.to_be_bytes(), echo.to_be_bytes()].concat();
    [&[2, 4, 5, 0xb4, 4, 2, 8, 10][..], &stamps, &[1, 3, 3, 7]].concat()
}

/// The client is inside: its ACK was lost or overtaken, and its SYN comes once more.
#[test]
fn the_syn_of_a_connection_that_comes_again_ends_it_for_neither_side() {
    for preset in [Preset::Paper, Preset::Balanced, Preset::Strict] {
        let mut settings = plain();
        settings.rules = Settings::preset(preset).rules;
        settings.rules.set(scrub::Rule::TcpSequenceShift, scrub::Action::Off);
        let mut gate = Gate::new(settings);
        gate.server(seg(SYN, SERVER, 0));
        gate.client(seg(SYN | ACK, CLIENT, S));
        gate.server(seg(ACK, S, C));
        let again = gate.server(seg(SYN, SERVER, 0));
        assert_eq!(again.to_client().flags, ACK, "a question, which the server answers");
        assert_eq!(gate.client(seg(ACK, C, S)).to_server().flags, ACK);
        assert_eq!(gate.server(seg(ACK, S, C).data(b"GET")).to_client().data, b"GET");
        assert_eq!(gate.client(seg(ACK, C, S + 3).data(b"200")).to_server().data, b"200");
        assert!(gate.events().is_empty(), "and no path is taken for asymmetric");
    }
}

/// A host inside that has forgotten its connection begins another by another number.
#[test]
fn another_syn_of_a_trusted_host_still_begins_anew() {
    let mut gate = Gate::new(plain());
    gate.server(seg(SYN, SERVER, 0));
    gate.client(seg(SYN | ACK, CLIENT, S));
    gate.server(seg(ACK, S, C));
    assert_eq!(gate.server(seg(SYN, SERVER + 77, 0)).to_client().flags, SYN);
    assert_eq!(gate.client(seg(SYN | ACK, CLIENT + 5, SERVER + 78)).to_server().flags, SYN | ACK);
}

#[test]
fn a_syn_that_nobody_answered_gives_way_to_the_next() {
    let mut gate = Gate::default();
    for number in 0..50 {
        assert_eq!(gate.client(seg(SYN, CLIENT + number * 1000, 0)).to_server().sequence, CLIENT + number * 1000);
    }
    let last = CLIENT + 49_000;
    assert_eq!(gate.server(seg(SYN | ACK, SERVER, last + 1)).to_client().flags, SYN | ACK);
    gate.client(seg(ACK, last + 1, S));
    assert_eq!(gate.client(seg(ACK, last + 1, S).data(b"GET")).to_server().data, b"GET");
}

/// A forged SYN comes between the honest one and its answer: the answer says which of them counts.
#[test]
fn the_answer_to_the_syn_before_counts_if_it_comes() {
    let mut gate = Gate::default();
    gate.client(seg(SYN, CLIENT, 0));
    gate.client(seg(SYN, CLIENT + 5_000_000, 0));
    gate.server(seg(SYN | ACK, SERVER, C + 5)).is_dropped_for(Reason::TcpHandshake);
    assert_eq!(gate.server(seg(SYN | ACK, SERVER, C)).to_client().flags, SYN | ACK);
    gate.client(seg(ACK, C, S));
    gate.client(seg(ACK, CLIENT + 5_000_001, S).data(b"evil")).is_dropped_for(Reason::TcpSequence);
    assert_eq!(gate.client(seg(ACK, C, S).data(b"GET")).to_server().data, b"GET");
}

/// The client gives up: what it began is over, and an answer that comes late opens nothing.
#[test]
fn a_reset_of_its_own_syn_forgets_it() {
    let mut gate = Gate::default();
    gate.client(seg(SYN, CLIENT, 0));
    gate.client(seg(RST, C + 1, 0)).is_dropped_for(Reason::TcpReset);
    assert_eq!(gate.client(seg(RST, C, 0)).to_server().flags, RST);
    gate.server(seg(SYN | ACK, SERVER, C)).is_dropped_for(Reason::TcpHandshake);
    assert_eq!(gate.client(seg(SYN, CLIENT + 9, 0)).to_server().sequence, CLIENT + 9);
    assert_eq!(gate.server(seg(SYN | ACK, SERVER, C + 9)).to_client().flags, SYN | ACK);
}

/// The data before a FIN was lost in front of the scrubber. Its sender hears so at once and needs no timer.
#[test]
fn a_fin_behind_a_hole_is_acknowledged_selectively_and_sent_when_the_hole_is_filled() {
    let mut gate = Gate::default();
    gate.open_with_stamps(1000, 2000);
    let fin = |value| seg(FIN | ACK, C + 100, S).stamps(value, 2000);
    let block = [(C + 100).to_be_bytes(), (C + 101).to_be_bytes()].concat();
    for value in [1001, 1002] {
        let out = gate.client(fin(value));
        assert!(out.inside.iter().all(|seg| !seg.has(FIN)), "it does not count yet");
        let [told] = &out.outside[..] else { panic!("not one segment: {out:?}") };
        assert_eq!((told.flags, told.sequence, told.acknowledgement), (ACK, S, C));
        assert_eq!(told.option(5), Some(&block[..]), "what is there, and by that what is not");
        assert_eq!(told.read_stamps(), Some((2000, 1000)));
    }
    let out = gate.client(seg(ACK, C, S).stamps(1003, 2000).data(&[7; 100]));
    let [data, end] = &out.inside[..] else { panic!("data and FIN: {out:?}") };
    assert_eq!((data.data.len(), end.has(FIN), end.sequence), (100, true, C + 100));
}

/// Who cannot read it is told nothing, and where the paper's way is chosen nothing is made up.
#[test]
fn no_fin_is_acknowledged_selectively_where_that_was_not_agreed_on() {
    let mut gate = Gate::established(plain());
    assert!(gate.client(seg(FIN | ACK, C + 100, S)).outside.is_empty());
    let mut settings = plain();
    settings.out_of_order = OutOfOrder::Drop;
    let mut gate = Gate::new(settings);
    gate.open_with_stamps(1000, 2000);
    assert!(gate.client(seg(FIN | ACK, C + 100, S).stamps(1001, 2000)).outside.is_empty());
}

/// A signature covers the header's length and flags, so nothing of such a handshake may change.
#[test]
fn a_signed_handshake_passes_unchanged_in_strict() {
    for (kind, len) in [(19, 18), (29, 16)] {
        let signature: Vec<u8> = [&[kind, len][..], &vec![0xab; usize::from(len) - 2]].concat();
        let options = |rest: &[u8]| [&signature[..], rest].concat();
        let mut gate = Gate::new(Settings::preset(Preset::Strict));
        let syn = options(&offer(1000, 0)[..4]);
        for (from, sent) in [
            (Side::TRUSTED, seg(SYN | ECE | CWR, SERVER, 0).options(&syn)),
            (Side::UNTRUSTED, seg(SYN | ACK, CLIENT, S).options(&syn)),
            (Side::TRUSTED, seg(ACK, S, C).options(&signature)),
            (Side::TRUSTED, seg(ACK | PSH, S, C).options(&signature).data(b"OPEN")),
            (Side::UNTRUSTED, seg(ACK | PSH, C, S + 4).options(&signature).data(b"OPEN")),
        ] {
            let out = gate.pass(from, &sent);
            let seen = if from == Side::TRUSTED { out.to_client() } else { out.to_server() };
            let numbers = (seen.flags, seen.sequence, seen.acknowledgement, seen.window);
            assert_eq!(numbers, (sent.flags, sent.sequence, sent.acknowledgement, sent.window));
            assert_eq!(seen.options.len(), sent.options.len().next_multiple_of(4), "as long as it was");
            assert_eq!(seen.option(kind), Some(&signature[2..]));
            assert_eq!(seen.data, sent.data);
        }
    }
}

/// What a connection retained is free as soon as it is reset, from whichever side.
#[test]
fn a_reset_connection_holds_no_memory() {
    for from in [Side::UNTRUSTED, Side::TRUSTED] {
        let mut gate = Gate::established(plain());
        gate.client(seg(ACK, C, S).data(&[1; 1000]));
        assert!(gate.scrubber.retained_bytes() > 0);
        let reset = if from == Side::UNTRUSTED { seg(RST, C + 1000, 0) } else { seg(RST, S, 0) };
        gate.pass(from, &reset);
        assert_eq!(gate.scrubber.flows(gate.now).next().expect("the connection").state, "reset");
        assert_eq!(gate.scrubber.retained_bytes(), 0);
    }
}

fn captured() -> Gate {
    let mut settings = plain();
    settings.misses_segments = true;
    settings.rules.set(scrub::Rule::TcpSynData, scrub::Action::Off);
    Gate::new(settings)
}

/// A capture lost a segment that the server has and acknowledges: what follows goes on, and the hole is counted.
#[test]
fn a_segment_that_a_capture_missed_costs_itself_only() {
    let mut gate = captured();
    gate.open();
    gate.client(seg(ACK, C, S).data(b"0123456789"));
    assert_eq!(gate.server(seg(ACK, S, C + 20).data(b"heard")).to_client().data, b"heard");
    assert_eq!(gate.scrubber.missing(), (1, 10));
    assert_eq!(gate.client(seg(ACK, C + 20, S + 5).data(b"later")).to_server().data, b"later");
    assert_eq!(gate.server(seg(ACK, S + 5, C + 25)).to_client().acknowledgement, C + 25);
    // What lies beyond every window was never sent.
    gate.server(seg(ACK, S + 5, C + 100_000_000)).is_dropped_for(Reason::TcpAcknowledgement);
}

#[test]
fn segments_of_a_handshake_may_be_captured_in_another_order_or_not_at_all() {
    for answer_comes in [true, false] {
        let mut gate = captured();
        gate.client(seg(SYN, CLIENT, 0));
        assert_eq!(gate.client(seg(ACK, C, S)).to_server().flags, ACK);
        if answer_comes {
            assert_eq!(gate.server(seg(SYN | ACK, SERVER, C)).to_client().flags, SYN | ACK);
        }
        assert_eq!(gate.client(seg(ACK, C, S).data(b"GET")).to_server().data, b"GET");
        assert_eq!(gate.server(seg(ACK, S, C + 3).data(b"200")).to_client().data, b"200");
        assert!(gate.events().is_empty());
    }
}

/// The server in a capture took the data of the SYN: nobody can take that back.
#[test]
fn data_of_a_fast_open_that_was_taken_passes() {
    let mut gate = captured();
    assert_eq!(gate.client(seg(SYN, CLIENT, 0).data(b"GET /")).to_server().data, b"GET /");
    gate.server(seg(SYN | ACK, SERVER, C + 6)).is_dropped_for(Reason::TcpHandshake);
    assert_eq!(gate.server(seg(SYN | ACK, SERVER, C + 5)).to_client().flags, SYN | ACK);
    assert_eq!(gate.client(seg(ACK, C + 5, S)).to_server().flags, ACK);
    assert_eq!(gate.server(seg(ACK, S, C + 5).data(b"200")).to_client().data, b"200");
    assert_eq!(gate.client(seg(ACK, C + 5, S + 3).data(b"more")).to_server().data, b"more");
}
