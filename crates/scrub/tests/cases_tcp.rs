//! Cases 49 to 100 of known evasions, one test each: what leaves has one interpretation. `docs/scrubbing.md` lists them.
//!
//! Unless a test says otherwise the client is the attacker outside and the server is inside, and the numbers of the server are
//! left as they are.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod tcp_support;

use std::time::Duration;

use bump::DropReason as Reason;
use bump::Side;
use scrub::settings::{Adopt, OutOfOrder};
use scrub::{Action, Event, Rule};
use scrub::{FlowLimits, Settings};

use tcp_support::*;

/// The client's and the server's next sequence numbers in a fresh connection.
const C: u32 = CLIENT + 1;
const S: u32 = SERVER + 1;

fn gate() -> Gate {
    Gate::established(plain())
}

/// Data of the client.
fn said(at: u32, data: &[u8]) -> Seg {
    seg(ACK | PSH, at, S).data(data)
}

#[test]
fn case_49_syn_with_data_leaves_without_it() {
    let mut gate = Gate::default();
    let out = gate.client(seg(SYN, CLIENT, 0).data(b"early"));
    assert_eq!(*out.to_server(), seg(SYN, CLIENT, 0));
    assert_eq!(gate.count(Rule::TcpSynData), 1);
    // The cookie of Fast Open goes too, in both its forms, so that the client sends the data again.
    for option in [&[34, 6, 1, 2, 3, 4][..], &[254, 8, 0xf9, 0x89, 1, 2, 3, 4]] {
        let mut gate = Gate::default();
        let out = gate.client(seg(SYN, CLIENT, 0).options(option).data(b"early"));
        assert_eq!(*out.to_server(), seg(SYN, CLIENT, 0));
    }
    // The server's cookie to a client inside goes as well, and data on a SYN-ACK.
    gate.client(seg(SYN, CLIENT, 0));
    let out = gate.server(seg(SYN | ACK, SERVER, C).options(&[34, 6, 1, 2, 3, 4]).data(b"early"));
    assert_eq!(*out.to_client(), hidden(seg(SYN | ACK, SERVER, C)));
}

#[test]
fn case_50_data_on_a_repeated_syn_never_leaves() {
    let mut gate = Gate::default();
    gate.client(seg(SYN, CLIENT, 0));
    gate.server(seg(SYN | ACK, SERVER, C));
    let out = gate.client(seg(SYN, CLIENT, 0).data(b"evil"));
    assert_eq!(*out.to_server(), seg(SYN, CLIENT, 0));
}

#[test]
fn case_51_of_two_syns_the_one_counts_that_is_answered() {
    let mut gate = Gate::default();
    gate.client(seg(SYN, CLIENT + 5_000_000, 0));
    gate.client(seg(SYN, CLIENT, 0));
    gate.server(seg(SYN | ACK, SERVER, C));
    gate.client(seg(SYN, CLIENT + 5_000_000, 0)).is_dropped_for(Reason::TcpHandshake);
    gate.client(seg(ACK, CLIENT + 5_000_001, S).data(b"evil")).is_dropped_for(Reason::TcpSequence);
    assert_eq!(gate.client(said(C, b"GET")).to_server().data, b"GET");
    // And its options are those of the first, so that no window or segment size has two meanings.
    let mut gate = Gate::default();
    gate.client(seg(SYN, CLIENT, 0).options(&[2, 4, 5, 0xb4, 1, 3, 3, 7]));
    let out = gate.client(seg(SYN, CLIENT, 0).options(&[2, 4, 2, 0, 1, 3, 3, 2]));
    assert_eq!(out.to_server().options, [2, 4, 5, 0xb4, 1, 3, 3, 7]);
}

#[test]
fn case_52_an_acknowledgement_number_without_ack_is_cleared_and_the_connection_followed() {
    let mut gate = Gate::default();
    assert_eq!(*gate.client(seg(SYN, CLIENT, 77)).to_server(), seg(SYN, CLIENT, 0));
    gate.server(seg(SYN | ACK, SERVER, C));
    gate.client(seg(ACK, C, S));
    assert_eq!(gate.client(said(C, b"GET")).to_server().data, b"GET");
    assert_eq!(gate.client(said(C, b"PUT")).to_server().data, b"GET");
}

#[test]
fn case_53_syn_with_fin_never_leaves_and_changes_nothing() {
    let mut gate = Gate::default();
    gate.client(seg(SYN | FIN, CLIENT, 0)).is_dropped_for(Reason::TcpFlags);
    assert_eq!(gate.scrubber.flows(gate.now).count(), 0);
}

#[test]
fn case_54_flags_that_nobody_combines_never_leave() {
    let mut gate = gate();
    for flags in [SYN | RST, 0, FIN, PSH, URG, FIN | PSH | URG, SYN | FIN | PSH | URG, RST | FIN | ACK, FIN | PSH] {
        gate.client(seg(flags, C, S).data(b"x")).is_dropped_for(Reason::TcpFlags);
    }
    assert_eq!(gate.client(said(C, b"GET")).to_server().data, b"GET");
}

#[test]
fn case_55_a_syn_ack_that_nobody_asked_for_never_leaves() {
    let mut gate = Gate::default();
    gate.client(seg(SYN | ACK, CLIENT, 5)).is_dropped_for(Reason::TcpNoConnection);
    assert_eq!(gate.scrubber.flows(gate.now).count(), 0);
}

#[test]
fn case_56_split_handshakes_and_simultaneous_open_never_leave() {
    let mut gate = Gate::default();
    gate.server(seg(SYN, SERVER, 0));
    // The outside server answers a SYN by a SYN, or by an ACK and a SYN.
    gate.client(seg(SYN, CLIENT, 0)).is_dropped_for(Reason::TcpHandshake);
    gate.client(seg(ACK, CLIENT, S)).is_dropped_for(Reason::TcpHandshake);
    gate.client(seg(SYN, CLIENT, 0)).is_dropped_for(Reason::TcpHandshake);
}

#[test]
fn case_57_of_two_syn_acks_the_one_counts_that_the_client_acknowledges() {
    // The client is inside, the hostile server outside.
    let mut gate = Gate::default();
    gate.server(seg(SYN, SERVER, 0));
    gate.client(seg(SYN | ACK, CLIENT, S));
    gate.client(seg(SYN | ACK, CLIENT + 9000, S));
    gate.client(seg(SYN | ACK, CLIENT + 18_000, S)).is_dropped_for(Reason::TcpHandshake);
    // One that would make the agreed options depend on which was heard does not count at all.
    gate.client(seg(SYN | ACK, CLIENT + 9000, S).options(&[4, 2])).to_server();
    gate.server(seg(ACK, S, CLIENT + 9001));
    let data = |at: u32| seg(ACK, at, S).data(b"right");
    gate.client(data(CLIENT + 1_000_000)).is_dropped_for(Reason::TcpSequence);
    assert_eq!(gate.client(data(CLIENT + 9001)).to_server().data, b"right");
    let out = gate.client(data(C));
    assert!(out.inside.iter().all(|seg| seg.data.is_empty()), "the other answer's numbers carry nothing: {out:?}");
}

#[test]
fn case_58_a_reset_in_the_handshake_needs_a_fitting_echo() {
    let mut gate = Gate::default();
    gate.server(seg(SYN, SERVER, 0).stamps(500, 0));
    gate.client(seg(RST | ACK, 0, S).stamps(7, 400)).is_dropped_for(Reason::TcpTimestamp);
    gate.client(seg(RST | ACK, 0, S + 1)).is_dropped_for(Reason::TcpReset);
    gate.client(seg(RST, 0, 0)).is_dropped_for(Reason::TcpReset);
    // The connection still opens.
    gate.client(seg(SYN | ACK, CLIENT, S).stamps(7, 400)).is_dropped_for(Reason::TcpTimestamp);
    gate.client(seg(SYN | ACK, CLIENT, S).stamps(7, 500)).to_server();
    // Timestamps that the SYN did not offer: a reset with them is refused.
    let mut gate = Gate::default();
    gate.server(seg(SYN, SERVER, 0));
    gate.client(seg(RST | ACK, 0, S).stamps(7, 400)).is_dropped_for(Reason::TcpTimestamp);
    // A plain one closes, and the next SYN begins anew.
    assert_eq!(*gate.client(seg(RST | ACK, 0, S).window(0)).to_server(), seg(RST | ACK, 0, S).window(0));
    gate.server(seg(SYN, SERVER + 7, 0)).to_client();
}

#[test]
fn case_59_the_first_data_may_carry_the_acknowledgement_of_the_handshake() {
    let mut gate = Gate::default();
    gate.client(seg(SYN, CLIENT, 0));
    gate.server(seg(SYN | ACK, SERVER, C));
    assert_eq!(gate.client(said(C, b"GET")).to_server().data, b"GET");
    assert_eq!(gate.server(seg(ACK, S, C + 3).data(b"200")).to_client().data, b"200");
}

#[test]
fn case_60_data_before_the_handshake_is_complete_never_leaves() {
    // The hostile server outside sends its answer before the client inside has acknowledged.
    let mut gate = Gate::default();
    gate.server(seg(SYN, SERVER, 0));
    gate.client(seg(SYN | ACK, CLIENT, S));
    gate.client(seg(ACK, C, S).data(b"inject")).is_dropped_for(Reason::TcpHandshake);
    gate.server(seg(ACK, S, C));
    assert_eq!(gate.client(seg(ACK, C, S).data(b"answer")).to_server().data, b"answer");
}

#[test]
fn case_61_a_wrong_checksum_never_leaves_and_is_never_made_right() {
    let mut gate = gate();
    for sent in [seg(RST, C, 0), said(C, b"evil"), seg(SYN, CLIENT + 9, 0), seg(FIN | ACK, C, S)] {
        let mut frame = gate.ends.frame(Side::UNTRUSTED, &sent);
        frame[14 + 20 + 16] ^= 0x10;
        gate.frame(Side::UNTRUSTED, frame, bump::Meta::plain()).0.is_dropped_for(Reason::TcpChecksum);
    }
    assert_eq!(gate.client(said(C, b"GET")).to_server().data, b"GET");
}

#[test]
fn case_62_a_reset_in_the_window_becomes_a_question() {
    let mut gate = gate();
    gate.client(said(C, b"GET"));
    gate.server(seg(ACK, S, C + 3));
    let out = gate.client(seg(RST, C + 100, 0));
    // At the last byte that the server has had: it answers with its own state, and nobody's connection ends.
    assert_eq!((out.to_server().flags, out.to_server().sequence, out.to_server().acknowledgement), (ACK, C + 2, S));
    assert_eq!(gate.client(said(C + 3, b" /")).to_server().data, b" /");
    // The honest host, thus challenged, resets exactly.
    gate.server(seg(ACK, S, C + 5)).to_client();
    assert_eq!(gate.client(seg(RST, C + 5, 0)).to_server().flags, RST);
    // Outside of the window nothing leaves at all.
    let mut gate = Gate::established(plain());
    gate.client(seg(RST, C + 1_000_000, 0)).is_dropped_for(Reason::TcpReset);
    gate.client(seg(RST, C - 2, 0)).is_dropped_for(Reason::TcpReset);
}

#[test]
fn case_62b_a_syn_in_the_middle_of_a_connection_becomes_a_question() {
    let mut gate = gate();
    gate.client(said(C, b"GET"));
    gate.server(seg(ACK, S, C + 3));
    for sequence in [C + 3, C + 500, CLIENT, C - 70_000, C.wrapping_add(1 << 31)] {
        let out = gate.client(seg(SYN, sequence, 0));
        let asked = out.to_server();
        assert_eq!((asked.flags, asked.sequence, asked.acknowledgement), (ACK, C + 2, S), "SYN at {sequence}");
    }
    assert_eq!(gate.client(said(C + 3, b" /")).to_server().data, b" /");
}

#[test]
fn case_63_a_reset_at_the_right_edge_of_what_was_acknowledged_selectively_becomes_a_question() {
    let mut gate = gate();
    gate.client(said(C + 100, b"behind a hole"));
    gate.server(seg(ACK, S, C));
    let out = gate.client(seg(RST, C + 113, 0));
    assert_eq!((out.to_server().flags, out.to_server().sequence), (ACK, C - 1));
}

#[test]
fn case_64_a_reset_with_a_bad_acknowledgement_never_leaves() {
    let mut gate = gate();
    gate.client(seg(RST | ACK, C, S + 5000)).is_dropped_for(Reason::TcpReset);
    gate.client(seg(RST | ACK, C, S - 1_000_000)).is_dropped_for(Reason::TcpReset);
    // With a bad timestamp it may pass, but without the timestamp, so that every host reads the same.
    let mut gate = Gate::default();
    gate.open_with_stamps(1000, 2000);
    let out = gate.client(seg(RST, C, 0).stamps(1, 1));
    assert_eq!((out.to_server().flags, out.to_server().options.len()), (RST, 0));
}

#[test]
fn case_65_a_signature_that_was_not_agreed_on_never_leaves() {
    let mut gate = gate();
    let signature = [&[19, 18][..], &[7; 16], &[0, 0]].concat();
    for sent in [seg(RST, C, 0), seg(FIN | ACK, C, S), said(C, b"evil")] {
        gate.client(sent.options(&signature)).is_dropped_for(Reason::TcpOptions);
    }
    assert_eq!(gate.client(said(C, b"GET")).to_server().data, b"GET");
}

#[test]
fn case_66_data_in_a_reset_never_leaves() {
    let mut gate = gate();
    let out = gate.client(seg(RST, C, 0).data(b"evil"));
    assert_eq!(*out.to_server(), seg(RST, C, 0));
}

#[test]
fn case_67_after_a_reset_that_may_be_lost_the_connection_is_still_known() {
    let mut gate = gate();
    gate.client(seg(RST, C, 0)).to_server();
    // It was lost behind the scrubber: the server goes on, hears nothing but a question's answer, and the reset again.
    let out = gate.server(seg(ACK, S, C).data(b"hello"));
    assert!(out.to_client().data.is_empty());
    assert_eq!(gate.client(seg(RST, C, 0)).to_server().flags, RST);
    gate.client(said(C, b"evil")).is_dropped_for(Reason::TcpNoConnection);
    // A new connection may begin at once.
    gate.client(seg(SYN, CLIENT - 9, 0)).to_server();
}

#[test]
fn case_68_a_fin_counts_only_in_sequence_and_with_ack() {
    let mut gate = gate();
    gate.client(seg(FIN, C, 0)).is_dropped_for(Reason::TcpFlags);
    gate.client(seg(FIN | ACK, C - 100, S)).to_server().has(FIN).then(|| panic!("a FIN in the past"));
    assert!(!gate.client(seg(FIN | ACK, C + 50, S)).to_server().has(FIN), "behind a hole it stays here");
    gate.client(seg(FIN | ACK, C + 1_000_000, S)).is_dropped_for(Reason::TcpSequence);
    assert_eq!(gate.client(said(C, b"GET")).to_server().data, b"GET");
}

#[test]
fn case_69_a_fin_over_the_next_data_does_not_count() {
    let mut gate = gate();
    gate.client(said(C, b"GET"));
    gate.client(said(C + 5, b"more"));
    // At the number of bytes that went on already, and inside of a hole.
    gate.client(seg(FIN | ACK, C + 5, S)).is_dropped_for(Reason::TcpFin);
    gate.client(seg(FIN | ACK, C + 3, S)).is_dropped_for(Reason::TcpFin);
    assert_eq!(gate.client(said(C + 3, b" /")).to_server().data, b" /");
}

#[test]
fn case_70_nothing_leaves_behind_a_fin() {
    let mut gate = gate();
    gate.client(seg(FIN | ACK, C, S).data(b"bye"));
    gate.client(said(C + 4, b"evil")).is_dropped_for(Reason::TcpFin);
    gate.client(seg(FIN | ACK, C + 9, S)).is_dropped_for(Reason::TcpFin);
    let out = gate.client(said(C, b"bye and evil"));
    assert_eq!(out.to_server().data, b"bye");
    // The acknowledgement of the server's own data still passes, and a reset only at exactly the next number.
    gate.server(seg(ACK, S, C + 4).data(b"last words"));
    assert_eq!(gate.client(seg(ACK, C + 4, S + 10)).to_server().acknowledgement, S + 10);
    assert_eq!(gate.client(seg(RST, C + 8, 0)).to_server().flags, ACK);
    assert_eq!(gate.client(seg(RST, C + 4, 0)).to_server().flags, RST);
}

/// Both sides say FIN and acknowledge it.
fn close(gate: &mut Gate) {
    gate.client(seg(FIN | ACK, C, S));
    gate.server(seg(FIN | ACK, S, C + 1));
    gate.client(seg(ACK, C + 1, S + 1));
    assert_eq!(gate.scrubber.flows(gate.now).next().expect("the connection").state, "closed");
}

#[test]
fn case_71_a_port_is_used_again_as_rfc_6191_says() {
    let mut gate = gate();
    close(&mut gate);
    // Below the last number: the server, which remembers, is asked; an honest client hears its answer and resets.
    let out = gate.client(seg(SYN, CLIENT - 5000, 0));
    assert_eq!((out.to_server().flags, out.to_server().sequence), (ACK, C));
    assert_eq!(gate.count(Rule::TcpPortReuse), 1);
    assert_eq!(*gate.client(seg(SYN, CLIENT + 5000, 0)).to_server(), seg(SYN, CLIENT + 5000, 0));
    // A later timestamp is as good.
    let mut gate = Gate::default();
    gate.open_with_stamps(1000, 2000);
    gate.client(seg(FIN | ACK, C, S).stamps(1001, 2000));
    gate.server(seg(FIN | ACK, S, C + 1).stamps(2001, 1001));
    gate.client(seg(ACK, C + 1, S + 1).stamps(1001, 2001));
    assert_eq!(gate.client(seg(SYN, CLIENT - 5000, 0).stamps(1000, 0)).to_server().flags, ACK);
    assert_eq!(gate.client(seg(SYN, CLIENT - 5000, 0).stamps(1500, 0)).to_server().flags, SYN);
}

#[test]
fn case_72_data_without_a_handshake_never_leaves() {
    let mut gate = Gate::default();
    gate.client(said(C, b"evil")).is_dropped_for(Reason::TcpNoConnection);
    gate.server(seg(ACK, S, C)).is_dropped_for(Reason::TcpNoConnection);
    gate.client(said(C, b"evil")).is_dropped_for(Reason::TcpNoConnection);
}

#[test]
fn case_73_a_retransmission_says_what_was_said_first() {
    let mut gate = gate();
    assert_eq!(gate.client(said(C, b"root")).to_server().data, b"root");
    assert_eq!(gate.client(said(C, b"user")).to_server().data, b"root");
    assert_eq!(gate.client(said(C + 2, b"ZZyz")).to_server().data, b"otyz");
    assert_eq!(gate.count(Rule::TcpRetransmission), 2);
}

#[test]
fn case_74_what_was_acknowledged_is_never_heard_again() {
    let mut gate = gate();
    gate.client(said(C, b"root"));
    gate.server(seg(ACK, S, C + 4));
    let out = gate.client(said(C, b"user"));
    // The last byte that was acknowledged, as it was: the server answers at once, and the client hears that.
    assert_eq!((out.to_server().sequence, &out.to_server().data[..]), (C + 3, &b"t"[..]));
    // After a FIN was acknowledged it is the FIN that is repeated.
    gate.client(seg(FIN | ACK, C + 4, S));
    gate.server(seg(ACK, S, C + 5));
    let out = gate.client(seg(FIN | ACK, C, S).data(b"user"));
    assert_eq!((out.to_server().sequence, out.to_server().flags, out.to_server().data.len()), (C + 4, FIN | ACK, 0));
}

#[test]
fn case_75_of_a_retransmission_that_straddles_only_the_overlap_is_written_over() {
    let mut gate = gate();
    gate.client(said(C, b"abcdef"));
    gate.server(seg(ACK, S, C + 3));
    let out = gate.client(said(C + 1, b"ZZZZZZnew"));
    assert_eq!((out.to_server().sequence, &out.to_server().data[..]), (C + 3, &b"defZnew"[..]));
}

#[test]
fn case_76_bytes_behind_a_hole_are_pinned_when_they_are_first_seen() {
    let mut gate = gate();
    assert_eq!(gate.client(said(C + 4, b"fake")).to_server().data, b"fake");
    assert_eq!(gate.client(said(C, b"realreal")).to_server().data, b"realfake");
    // The paper's way: they never leave.
    let mut settings = plain();
    settings.out_of_order = OutOfOrder::Drop;
    let mut gate = Gate::established(settings);
    gate.client(said(C + 4, b"fake")).is_dropped_for(Reason::TcpBehindHole);
    assert_eq!(gate.client(said(C, b"realreal")).to_server().data, b"realreal");
}

#[test]
fn case_77_a_fake_prefix_to_the_left_is_cut_off() {
    let mut gate = gate();
    gate.client(said(C, b"seen"));
    gate.server(seg(ACK, S, C + 4));
    let out = gate.client(said(C, b"fakeGET"));
    assert_eq!((out.to_server().sequence, &out.to_server().data[..]), (C + 4, &b"GET"[..]));
}

#[test]
fn case_78_bytes_before_the_first_are_cut_off() {
    let mut gate = gate();
    let out = gate.client(said(CLIENT - 3, b"fakeGET"));
    assert_eq!((out.to_server().sequence, &out.to_server().data[..]), (C, &b"GET"[..]));
    let out = gate.client(said(CLIENT - 30, b"fake"));
    assert!(out.to_server().data.is_empty(), "nothing remains but a question");
}

#[test]
fn case_79_data_beyond_the_window_never_leaves() {
    let mut gate = gate();
    gate.client(said(C + 60_001, b"x")).is_dropped_for(Reason::TcpSequence);
    gate.client(said(C.wrapping_add(1 << 30), b"x")).is_dropped_for(Reason::TcpSequence);
}

#[test]
fn case_80_data_without_ack_never_leaves() {
    let mut gate = gate();
    gate.client(seg(0, C, 0).data(b"evil")).is_dropped_for(Reason::TcpFlags);
    gate.client(seg(PSH, C, S).data(b"evil")).is_dropped_for(Reason::TcpFlags);
    assert_eq!(gate.client(said(C, b"GET!")).to_server().data, b"GET!");
}

#[test]
fn case_81_data_with_an_impossible_acknowledgement_never_leaves() {
    let mut gate = gate();
    gate.client(seg(ACK, C, S + 1).data(b"evil")).is_dropped_for(Reason::TcpAcknowledgement);
    gate.client(seg(ACK, C, S - 70_000).data(b"evil")).is_dropped_for(Reason::TcpAcknowledgement);
    gate.client(seg(ACK, C, S.wrapping_add(1 << 31)).data(b"evil")).is_dropped_for(Reason::TcpAcknowledgement);
    assert_eq!(gate.client(said(C, b"GET!")).to_server().data, b"GET!");
}

fn stamped() -> Gate {
    let mut gate = Gate::default();
    gate.open_with_stamps(1000, 2000);
    gate
}

/// An old acknowledgement is within the window for a host, and beside it for whoever does not know its scale.
#[test]
fn data_with_an_old_acknowledgement_says_the_newest() {
    let mut gate = Gate::default();
    let scaled = [2, 4, 5, 0xb4, 1, 3, 3, 14];
    gate.client(seg(SYN, CLIENT, 0).options(&scaled));
    gate.server(seg(SYN | ACK, SERVER, C).options(&scaled));
    gate.client(seg(ACK, C, S));
    gate.server(seg(ACK, S, C).data(&[1; 1000]));
    gate.client(seg(ACK, C, S + 1000));
    for old in [S, S + 999, S.wrapping_sub(1 << 29)] {
        let out = gate.client(seg(ACK, C, old).window(60_000).data(b"GET /harmls"));
        assert_eq!(out.to_server().acknowledgement, S + 1000);
        assert!(out.to_server().window < 60_000, "what is granted ends where it ended");
    }
    // A bare one may be late.
    assert_eq!(gate.client(seg(ACK, C, S)).to_server().acknowledgement, S);
}

#[test]
fn case_82_data_with_an_old_timestamp_never_leaves() {
    let mut gate = stamped();
    gate.client(said(C, b"evil").stamps(400, 2000)).is_dropped_for(Reason::TcpTimestamp);
    assert_eq!(gate.client(said(C, b"GET!").stamps(1001, 2000)).to_server().data, b"GET!");
    // A pure duplicate is made to be answered.
    gate.server(seg(ACK, S, C + 4).stamps(2001, 1001));
    let out = gate.client(said(C, b"GET!").stamps(400, 2000));
    assert_eq!((out.to_server().sequence, out.to_server().read_stamps()), (C + 3, Some((1001, 2000))));
}

#[test]
fn case_83_a_timestamp_one_tick_old_is_made_the_last_one() {
    let mut gate = stamped();
    let out = gate.client(said(C, b"GET!").stamps(999, 2000));
    assert_eq!((&out.to_server().data[..], out.to_server().read_stamps()), (&b"GET!"[..], Some((1000, 2000))));
}

#[test]
fn case_84_after_24_days_any_timestamp_passes() {
    let mut settings = plain();
    settings.adopt = Adopt::No;
    let mut gate = stamped();
    // The clock of timestamps may have gone half way round; the connection itself is kept alive by the server.
    for _ in 0..25 * 24 {
        gate.wait(Duration::from_secs(3600));
        gate.server(seg(ACK, S, C).stamps(2000, 1000));
    }
    assert_eq!(gate.client(said(C, b"GET!").stamps(400, 2000)).to_server().data, b"GET!");
}

#[test]
fn case_85_a_data_offset_that_lies_never_leaves() {
    let mut gate = gate();
    for words in [0_u8, 4, 15] {
        let mut frame = gate.ends.frame(Side::UNTRUSTED, &said(C, b"GET!"));
        frame[14 + 20 + 12] = words << 4;
        gate.frame(Side::UNTRUSTED, frame, bump::Meta::plain()).0.is_dropped_for(Reason::TcpHeader);
    }
}

#[test]
fn case_86_malformed_options_never_leave() {
    let mut gate = gate();
    for options in [
        &[8, 0, 0, 0][..],
        &[8, 1, 0, 0],
        &[8, 11, 0, 0],
        &[1, 1, 8, 9, 0, 0, 0, 0, 0, 0, 0],
        &[8, 10, 0, 0, 0, 1, 0, 0, 0, 1, 8, 10, 0, 0, 0, 2, 0, 0, 0, 2],
        &[5, 9, 0, 0, 0, 0, 0, 0, 0],
        &[5, 2],
    ] {
        gate.client(said(C, b"evil").options(options)).is_dropped_for(Reason::TcpOptions);
    }
    let mut gate = Gate::default();
    gate.client(seg(SYN, CLIENT, 0).options(&[2, 4, 5, 0xb4, 2, 4, 2, 0])).is_dropped_for(Reason::TcpOptions);
    // What stands behind the end of the list is nothing.
    let out = gate.client(seg(SYN, CLIENT, 0).options(&[2, 4, 5, 0xb4, 0, 19, 18, 3]));
    assert_eq!(out.to_server().options, [2, 4, 5, 0xb4]);
}

#[test]
fn case_87_options_out_of_place_are_taken_out() {
    let mut gate = gate();
    let out = gate.client(said(C, b"GET").options(&[1, 3, 3, 12, 2, 4, 1, 0, 4, 2, 28, 4, 0, 1]));
    assert_eq!((&out.to_server().data[..], out.to_server().options.len()), (&b"GET"[..], 0));
    // A scale beyond 14 means 14 (RFC 7323, section 2.3).
    let mut gate = Gate::default();
    assert_eq!(gate.client(seg(SYN, CLIENT, 0).options(&[1, 3, 3, 200])).to_server().options, [1, 3, 3, 14]);
}

#[test]
fn case_88_urgent_data_is_read_in_line() {
    let mut gate = gate();
    let mut sent = said(C, b"GxET");
    (sent.flags, sent.urgent) = (sent.flags | URG, 2);
    let out = gate.client(sent);
    assert_eq!(*out.to_server(), said(C, b"GxET"));
}

#[test]
fn case_89_urgent_pointers_that_mean_nothing_are_cleared() {
    let mut gate = gate();
    for (flags, urgent) in [(URG, 900), (0, 2), (URG, 0)] {
        let mut sent = said(C, b"GET!");
        (sent.flags, sent.urgent) = (sent.flags | flags, urgent);
        assert_eq!(*gate.client(sent).to_server(), said(C, b"GET!"));
    }
    let mut sent = seg(ACK | URG, C + 4, S);
    sent.urgent = 5;
    assert_eq!(*gate.client(sent).to_server(), seg(ACK, C + 4, S));
}

#[test]
fn case_90_single_bytes_in_any_order_make_one_stream_in_bounded_memory() {
    let mut gate = gate();
    let text = b"GET /secret HTTP/1.1";
    for index in (0..text.len()).rev() {
        let fake = text[index].wrapping_add(1);
        let at = C + index as u32;
        assert_eq!(gate.client(said(at, &text[index..=index])).to_server().data, text[index..=index]);
        assert_eq!(gate.client(said(at, &[fake])).to_server().data, text[index..=index]);
    }
    assert!(gate.scrubber.retained_bytes() <= 512);
    // More holes than there may be are refused, and the connection goes on.
    let mut gate = Gate::established(plain());
    let outs: Vec<Out> = (1..600).map(|index| gate.client(said(C + 2 * index, b"x"))).collect();
    assert_eq!(outs.iter().filter(|out| out.dropped == Some(Reason::TcpRetainedFull)).count(), 599 - 256);
    assert_eq!(gate.client(said(C, b"ab")).to_server().data, b"ab");
}

#[test]
fn case_91_a_window_that_was_granted_stays_and_none_is_invented() {
    let mut gate = gate();
    gate.server(seg(ACK, S, C).window(100));
    // Granted in the handshake was 60000: what the server takes back, the client may have under way.
    assert_eq!(gate.client(said(C, &[b'a'; 1000])).to_server().data.len(), 1000);
    // The attacker's own window says nothing about what it may send.
    gate.client(seg(ACK, C + 1000, S).window(0));
    gate.server(seg(ACK, S, C + 1000).window(50));
    let mut gate = Gate::default();
    gate.client(seg(SYN, CLIENT, 0));
    gate.server(seg(SYN | ACK, SERVER, C).window(100));
    gate.client(seg(ACK, C, S));
    let out = gate.client(said(C, &[b'a'; 1000]));
    assert_eq!(out.to_server().data.len(), 101, "and one byte to probe with");
}

#[test]
fn case_92_probes_and_keep_alives_pass_with_the_byte_that_was_there() {
    let mut gate = gate();
    gate.client(said(C, b"GET"));
    gate.server(seg(ACK, S, C + 3));
    // A keep-alive with garbage, and one without.
    let out = gate.client(said(C + 2, b"\0"));
    assert_eq!((out.to_server().sequence, &out.to_server().data[..]), (C + 2, &b"T"[..]));
    assert_eq!(*gate.client(seg(ACK, C + 2, S)).to_server(), seg(ACK, C + 2, S));
    // A probe of a closed window, again with another byte.
    let mut gate = Gate::default();
    gate.client(seg(SYN, CLIENT, 0));
    gate.server(seg(SYN | ACK, SERVER, C).window(3));
    gate.client(said(C, b"GET"));
    gate.server(seg(ACK, S, C + 3).window(0));
    assert_eq!(gate.client(said(C + 3, b"a")).to_server().data, b"a");
    assert_eq!(gate.client(said(C + 3, b"b")).to_server().data, b"a");
    gate.server(seg(ACK, S, C + 3).window(10));
    assert_eq!(gate.client(said(C + 3, b"bcd")).to_server().data, b"acd");
}

#[test]
fn case_93_segments_longer_than_the_receiver_takes_never_leave_where_that_is_on() {
    let mut settings = plain();
    settings.rules.set(Rule::TcpMss, Action::Scrub);
    let mut gate = Gate::new(settings);
    gate.client(seg(SYN, CLIENT, 0));
    gate.server(seg(SYN | ACK, SERVER, C).options(&[2, 4, 2, 0]));
    gate.client(seg(ACK, C, S));
    gate.client(said(C, &[1; 513])).is_dropped_for(Reason::TcpMss);
    assert_eq!(gate.client(said(C, &[1; 512])).to_server().data.len(), 512);
    // A super-frame is as long as its pieces.
    let sent = said(C + 512, &[1; 5120]);
    assert_eq!(gate.super_frame(Side::UNTRUSTED, &sent, 512).0.to_server().data.len(), 5120);
    gate.super_frame(Side::UNTRUSTED, &said(C + 5632, &[1; 5120]), 640).0.is_dropped_for(Reason::TcpMss);
}

#[test]
fn case_94_a_connection_that_fell_silent_is_refused_also_where_connections_are_adopted() {
    let mut settings = plain();
    settings.adopt = Adopt::All;
    let mut gate = Gate::established(settings);
    gate.client(said(C, b"root"));
    gate.wait(scrub::limits::ESTABLISHED_TIMEOUT + Duration::from_secs(1));
    let out = gate.client(said(C, b"user"));
    assert_eq!(out.dropped, Some(Reason::TcpNoConnection));
    // Both hosts hear that it is over, once, each at exactly the number that it waits for.
    let resets = [out.to_server(), out.to_client()].map(|seg| (seg.flags, seg.sequence, seg.data.len()));
    assert_eq!(resets, [(RST | ACK, C + 4, 0), (RST | ACK, S, 0)]);
    gate.client(said(C, b"user")).is_dropped_for(Reason::TcpNoConnection);
    gate.server(seg(ACK, S, C)).is_dropped_for(Reason::TcpNoConnection);
    assert_eq!(gate.scrubber.retained_bytes(), 0);
    assert_eq!(gate.client(seg(SYN, CLIENT - 7, 0)).to_server().flags, SYN);
}

#[test]
fn case_95_a_flood_of_syns_pushes_out_syns_only() {
    // One host fills the table.
    let settings = Settings { flows: FlowLimits { source_part: 0, ..FlowLimits::at_most(64) }, ..plain() };
    let mut gate = Gate::established(settings);
    let honest = gate.ends;
    for port in 1..5000 {
        gate.ends.client.set_port(port);
        assert_eq!(gate.client(seg(SYN, port.into(), 0)).inside.len(), 1, "nobody is refused for a flood");
    }
    assert!(gate.scrubber.flows(gate.now).count() <= 64);
    gate.ends = honest;
    assert_eq!(gate.client(said(C, b"GET")).to_server().data, b"GET");
    assert!(gate.events().is_empty());
    // A table of established connections refuses, and says so.
    for port in 5000..5063 {
        gate.ends.client.set_port(port);
        gate.open();
    }
    gate.ends.client.set_port(6000);
    gate.client(seg(SYN, 1, 0)).is_dropped_for(Reason::FlowsFull);
    assert_eq!(gate.events(), [Event::FlowsFull]);
}

#[test]
fn case_96_an_acknowledgement_of_what_never_went_on_frees_nothing() {
    let mut gate = gate();
    gate.client(said(C, b"root"));
    // Data behind a hole was seen, the hole was not: nobody can acknowledge beyond.
    gate.client(said(C + 10, b"later"));
    gate.server(seg(ACK, S, C + 15)).is_dropped_for(Reason::TcpAcknowledgement);
    assert_eq!(gate.events(), [Event::AsymmetricPath { flow: gate.id() }]);
    assert_eq!(gate.client(said(C, b"user")).to_server().data, b"root");
}

#[test]
fn case_97_selective_acknowledgements_outside_of_what_was_sent_are_taken_out() {
    let blocks = |blocks: &[(u32, u32)]| {
        let mut option = vec![1, 1, 5, 2 + 8 * blocks.len() as u8];
        option.extend(blocks.iter().flat_map(|(left, right)| [left.to_be_bytes(), right.to_be_bytes()]).flatten());
        option
    };
    let mut gate = Gate::default();
    gate.open_with_stamps(1000, 2000);
    gate.server(seg(ACK, S, C).stamps(2000, 1000).data(&[1; 3000]));
    let send = |gate: &mut Gate, given: &[(u32, u32)]| {
        let stamps = seg(ACK, C, S + 1000).stamps(1000, 2000).options;
        let out = gate.client(seg(ACK, C, S + 1000).options(&[stamps, blocks(given)].concat()));
        out.to_server().option(5).map(<[u8]>::to_vec)
    };
    let right = blocks(&[(S + 2000, S + 3000)])[4..].to_vec();
    assert_eq!(send(&mut gate, &[(S + 2000, S + 3000)]), Some(right.clone()));
    assert_eq!(send(&mut gate, &[(S + 2000, S + 3000), (S + 2500, S + 3001)]), Some(right.clone()));
    assert_eq!(send(&mut gate, &[(S + 3000, S + 2000)]), None);
    // The first block may tell of a duplicate (RFC 2883), the others may not.
    let duplicate = [(S, S + 500), (S + 2000, S + 3000)];
    assert_eq!(send(&mut gate, &duplicate), Some(blocks(&duplicate)[4..].to_vec()));
    assert_eq!(send(&mut gate, &[(S + 2000, S + 3000), (S, S + 500)]), Some(right));
}

#[test]
fn case_98_congestion_flags_that_were_not_agreed_on_are_cleared() {
    let mut gate = gate();
    let mut sent = said(C, b"GET");
    sent.flags |= ECE | CWR | AE | 0xe00;
    assert_eq!(*gate.client(sent).to_server(), said(C, b"GET"));
    // Agreed on: classic ECN keeps two flags, the accurate one all three; the other reserved bits go.
    for (offer, answer, kept) in [(ECE | CWR, ECE, ECE | CWR), (AE | ECE | CWR, CWR, AE | ECE | CWR), (ECE | CWR, 0, 0)]
    {
        let mut gate = Gate::default();
        assert_eq!(gate.client(seg(SYN | offer | 0xe00, CLIENT, 0)).to_server().flags, SYN | offer);
        assert_eq!(gate.server(seg(SYN | ACK | answer, SERVER, C)).to_client().flags, SYN | ACK | answer);
        let out = gate.client(seg(ACK | ECE | CWR | AE | 0xe00, C, S));
        assert_eq!(out.to_server().flags, ACK | kept);
    }
    // What is no offer is cleared.
    assert_eq!(Gate::default().client(seg(SYN | CWR, CLIENT, 0)).to_server().flags, SYN);
}

#[test]
fn case_99_data_of_a_fast_open_that_fell_back_has_one_version() {
    let mut gate = Gate::default();
    let out = gate.client(seg(SYN, CLIENT, 0).options(&[34, 10, 1, 2, 3, 4, 5, 6, 7, 8]).data(b"first"));
    assert_eq!(*out.to_server(), seg(SYN, CLIENT, 0), "the first version was never heard");
    gate.server(seg(SYN | ACK, SERVER, C));
    assert_eq!(gate.client(said(C, b"other")).to_server().data, b"other");
    assert_eq!(gate.client(said(C, b"third")).to_server().data, b"other");
}

#[test]
fn case_100_the_other_half_is_scrubbed_where_both_are() {
    let mut settings = plain();
    settings.both_directions = true;
    let mut gate = Gate::established(settings);
    assert_eq!(gate.server(seg(ACK, S, C).data(b"first")).to_client().data, b"first");
    assert_eq!(gate.server(seg(ACK, S, C).data(b"other")).to_client().data, b"first");
    assert_eq!(gate.server(seg(RST, S + 9, 0)).to_client().flags, ACK);
    gate.server(seg(FIN | ACK, S + 5, C));
    gate.server(seg(ACK, S + 6, C).data(b"evil")).is_dropped_for(Reason::TcpFin);
}
