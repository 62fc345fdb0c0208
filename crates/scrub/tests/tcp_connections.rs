//! What the TCP stage does beside the listed evasions: shifts, adoption, severing and blocking, super-frames, forms.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod tcp_support;

use std::time::Duration;

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump, DropReason as Reason, Meta, Now, Side, VlanTag};
use scrub::settings::{Adopt, OptionKind, OutOfOrder};
use scrub::{Action, Event, Keys, Preset, Rule, Scrubber, Settings};

use tcp_support::*;

const C: u32 = CLIENT + 1;
const S: u32 = SERVER + 1;

fn balanced() -> Settings {
    Settings::preset(Preset::Balanced)
}

/// What a Linux client offers.
fn offer(value: u32, echo: u32) -> Vec<u8> {
    let stamps = [value.to_be_bytes(), echo.to_be_bytes()].concat();
    [&[2, 4, 5, 0xb4, 4, 2, 8, 10][..], &stamps, &[1, 3, 3, 7]].concat()
}

/// Opens a connection to a server whose numbers are shifted; gives both shifts as the client can tell them.
fn open_shifted(gate: &mut Gate) -> (u32, u32) {
    gate.client(seg(SYN, CLIENT, 0).options(&offer(1000, 0)));
    let out = gate.server(seg(SYN | ACK, SERVER, C).options(&offer(2000, 1000)));
    let answer = out.to_client();
    let shifts = (answer.sequence.wrapping_sub(SERVER), answer.read_stamps().expect("timestamps").0.wrapping_sub(2000));
    assert_eq!(answer.read_stamps().expect("timestamps").1, 1000, "the echo is the client's own");
    let out = gate.client(seg(ACK, C, S.wrapping_add(shifts.0)).stamps(1000, shifts.1.wrapping_add(2000)));
    assert_eq!((out.to_server().acknowledgement, out.to_server().read_stamps()), (S, Some((1000, 2000))));
    shifts
}

#[test]
fn numbers_of_the_server_are_shifted_and_everything_about_them_is_shifted_back() {
    let mut gate = Gate::new(balanced());
    let (shift, stamp_shift) = open_shifted(&mut gate);
    assert!(shift != 0 && stamp_shift != 0);
    let out = gate.server(seg(ACK, S, C).stamps(2001, 1000).data(&[1; 3000]));
    assert_eq!(out.to_client().sequence, S.wrapping_add(shift));
    assert_eq!(out.to_client().read_stamps(), Some((2001_u32.wrapping_add(stamp_shift), 1000)));
    let seen = |number: u32| number.wrapping_add(shift);
    let mut options = seg(0, 0, 0).stamps(1000, 2001_u32.wrapping_add(stamp_shift)).options;
    options.extend([1, 1, 5, 10]);
    options.extend([seen(S + 1000).to_be_bytes(), seen(S + 2000).to_be_bytes()].concat());
    let out = gate.client(seg(ACK, C, seen(S)).options(&options));
    let heard = out.to_server();
    assert_eq!((heard.acknowledgement, heard.read_stamps()), (S, Some((1000, 2001))));
    assert_eq!(heard.option(5), Some(&[(S + 1000).to_be_bytes(), (S + 2000).to_be_bytes()].concat()[..]));
    // The client's own numbers are its own business.
    let out = gate.server(seg(ACK, S, C).stamps(2002, 1000));
    assert_eq!(out.to_client().acknowledgement, C);
}

#[test]
fn shifts_follow_from_the_key_and_the_connection() {
    let shifts = |gate: &mut Gate| open_shifted(gate);
    let mut gate = Gate::new(balanced());
    let first = shifts(&mut gate);
    assert_eq!(shifts(&mut Gate::new(balanced())), first, "the same after a restart");
    let mut other = Gate::new(balanced());
    other.ends.client.set_port(40_001);
    assert_ne!(shifts(&mut other), first, "another for another connection");
    let mut other = Gate::new(balanced());
    other.scrubber = Scrubber::new(balanced(), Keys { sequence: [9; 16], ..keys() });
    assert_ne!(shifts(&mut other), first, "another for another key");
}

#[test]
fn a_connection_survives_a_restart_by_adoption_shifts_included() {
    for trusted_first in [true, false] {
        let mut settings = balanced();
        settings.adopt = Adopt::All;
        let mut gate = Gate::new(settings.clone());
        let (shift, stamp_shift) = open_shifted(&mut gate);
        gate.scrubber = Scrubber::new(settings, keys());
        let of_client =
            seg(ACK, C, S.wrapping_add(shift)).stamps(1005, 2000_u32.wrapping_add(stamp_shift)).data(b"GET");
        if trusted_first {
            let out = gate.server(seg(ACK, S, C).stamps(2005, 1000));
            assert_eq!(out.to_client().sequence, S.wrapping_add(shift));
        } else {
            let out = gate.client(of_client.clone());
            let asked = out.to_server();
            assert_eq!((asked.flags, asked.sequence, asked.data.len()), (ACK, C - 1, 0), "a question, and no data");
            let out = gate.server(seg(ACK, S, C).stamps(2005, 1000));
            assert_eq!((out.to_client().sequence, out.to_client().acknowledgement), (S.wrapping_add(shift), C));
        }
        let out = gate.client(of_client.clone());
        assert_eq!((out.to_server().acknowledgement, &out.to_server().data[..]), (S, &b"GET"[..]));
        assert_eq!(out.to_server().read_stamps(), Some((1005, 2000)));
        let mut other = of_client;
        other.data = b"PUT".to_vec();
        assert_eq!(gate.client(other).to_server().data, b"GET", "from here on the first version stays");
    }
}

/// Acknowledgements that were lost with the scrubber before are heard when the first bytes of a window are sent again.
#[test]
fn an_adopted_connection_is_not_stuck_behind_lost_acknowledgements() {
    for both_directions in [false, true] {
        let settings = Settings { adopt: Adopt::All, both_directions, ..plain() };
        let mut gate = Gate::established(settings.clone());
        gate.server(seg(ACK, S, C).data(&[7; 1000]));
        gate.client(seg(ACK, C, S));
        gate.scrubber = Scrubber::new(settings, keys());
        gate.server(seg(ACK, S, C).data(&[7; 100])).to_client();
        assert_eq!(gate.client(seg(ACK, C, S + 1000)).to_server().acknowledgement, S + 1000);
        assert_eq!(gate.server(seg(ACK, S + 1000, C).data(b"new")).to_client().data, b"new");
        assert_eq!(gate.client(seg(ACK, C, S + 1003)).to_server().acknowledgement, S + 1003);
        // Further than any window goes nobody is believed.
        gate.client(seg(ACK, C, S + (1 << 30) + 70_000)).is_dropped_for(Reason::TcpAcknowledgement);
    }
}

#[test]
fn a_connection_older_than_any_scrubber_is_adopted_with_its_own_numbers() {
    for trusted_first in [true, false] {
        let mut settings = balanced();
        settings.adopt = Adopt::All;
        let mut gate = Gate::new(settings);
        if trusted_first {
            // It leaves shifted, the client does not understand it, and says where it stands.
            gate.server(seg(ACK, S, C).data(b"hello")).to_client();
            assert_eq!(gate.client(seg(ACK, C, S)).to_server().acknowledgement, S);
        } else {
            gate.client(seg(ACK, C, S).data(b"GET"));
        }
        let out = gate.server(seg(ACK, S, C).data(b"hello"));
        assert_eq!(out.to_client().sequence, S);
        assert_eq!(gate.client(seg(ACK, C, S + 5).data(b"GET")).to_server().data, b"GET");
    }
}

/// A scrubber whose keys are new, and which so cannot know what an earlier run did with the numbers.
fn with_new_keys() -> Gate {
    Gate::new(Settings { adopt: Adopt::Unshifted, ..balanced() })
}

#[test]
fn with_new_keys_a_connection_is_adopted_whose_numbers_agree_to_the_byte() {
    // At rest, whoever speaks first; and under way, where segments beyond the first that was not passed on are lost.
    let mut gate = with_new_keys();
    let asked = gate.client(seg(ACK, C, S).data(b"GET"));
    assert_eq!((asked.to_server().sequence, asked.to_server().data.len()), (C - 1, 0), "a question, and no data");
    assert_eq!(gate.server(seg(ACK, S, C)).to_client().sequence, S);
    assert_eq!(gate.client(seg(ACK, C, S).data(b"GET")).to_server().data, b"GET");
    let mut gate = with_new_keys();
    for number in 0..3 {
        let asked = gate.server(seg(ACK, S + 1000 * number, C).data(&[7; 1000]));
        assert_eq!((asked.to_client().sequence, asked.to_client().data.len()), (S + 1000 * number - 1, 0));
    }
    for late in [2000, 1000] {
        assert!(gate.client(seg(ACK, C, S - late)).to_server().data.is_empty(), "on its way before");
    }
    assert_eq!(gate.client(seg(ACK, C, S)).to_server().acknowledgement, S);
    let again = gate.server(seg(ACK, S, C).data(&[7; 1000]));
    assert_eq!((again.to_client().sequence, again.to_client().data.len()), (S, 1000));
    assert_eq!(gate.client(seg(ACK, C, S + 1000)).to_server().acknowledgement, S + 1000);
}

/// What was shifted with keys that are lost is neither shifted anew nor passed on as it is, however near the numbers are.
#[test]
fn with_new_keys_a_connection_that_was_shifted_before_is_ended_and_no_byte_of_it_goes_on() {
    for lost_shift in [1, 999, 1001, 30_000, 1 << 20, 1 << 31, u32::MAX] {
        let mut gate = with_new_keys();
        let as_seen = S.wrapping_add(lost_shift);
        let mut bytes = 0;
        for _ in 0..10 {
            bytes += gate.server(seg(ACK, S, C).data(&[7; 1000])).to_client().data.len();
            bytes += gate.client(seg(ACK, C, as_seen).data(b"GET")).to_server().data.len();
            gate.wait(Duration::from_millis(499));
        }
        assert_eq!(bytes, 0, "shifted by {lost_shift}");
        gate.wait(Duration::from_millis(499));
        let out = gate.client(seg(ACK, C, as_seen).data(b"GET"));
        assert_eq!(out.dropped, Some(Reason::FlowSevered));
        // Both hosts hear it at exactly the number that they wait for.
        assert_eq!((out.to_client().flags, out.to_client().sequence), (RST | ACK, as_seen));
        assert_eq!((out.to_server().flags, out.to_server().sequence), (RST | ACK, C));
        assert_eq!(gate.events(), [Event::OlderEnded { count: 1 }]);
        assert_eq!(gate.server(seg(ACK, S, C).data(b"more")).dropped, Some(Reason::TcpNoConnection));
        // A host that keeps its port begins anew at once.
        gate.client(seg(SYN, CLIENT + 5, 0)).to_server();
    }
}

/// A gateway that adopts nothing says so to both hosts as soon as both were heard, whoever speaks
/// first and however the numbers were shifted before. None of the trusted host's own numbers shows.
#[test]
fn without_adoption_older_connections_end_at_both_hosts_as_soon_as_both_were_heard() {
    for (speaker, lost_shift) in [(Side::TRUSTED, 0), (Side::UNTRUSTED, 0), (Side::TRUSTED, 77), (Side::UNTRUSTED, 77)]
    {
        let mut gate = Gate::new(Settings { adopt: Adopt::End, ..balanced() });
        let as_seen = S.wrapping_add(lost_shift);
        let of_server = seg(ACK, S, C).data(b"hello").stamps(2000, 1000);
        let of_client = seg(ACK, C, as_seen).data(b"GET");
        if speaker == Side::UNTRUSTED {
            let asked = gate.client(of_client.clone());
            assert_eq!((asked.to_server().flags, asked.to_server().data.len()), (ACK, 0));
            assert_eq!(gate.scrubber.flow_counts(gate.now).all, 0, "nothing is kept of who may be nobody");
        }
        let asked = gate.server(of_server.clone());
        let question = asked.to_client();
        assert_eq!((question.flags, question.data.len()), (ACK, 0));
        assert_ne!(question.sequence, S - 1);
        assert_ne!(question.read_stamps().expect("timestamps").0, 2000);
        let out = gate.client(of_client.clone());
        assert_eq!(out.dropped, Some(Reason::FlowSevered));
        // Each at the number that its receiver waits for, acknowledging what it has sent.
        let reset = out.to_client();
        assert_eq!((reset.flags, reset.sequence, reset.acknowledgement), (RST | ACK, as_seen, C));
        let reset = out.to_server();
        assert_eq!((reset.flags, reset.sequence, reset.acknowledgement), (RST | ACK, C, S + 5));
        assert_eq!(gate.events(), [Event::OlderEnded { count: 1 }]);
        // Who did not hear it hears it again, as a closed port says it.
        let out = gate.client(of_client);
        assert_eq!(
            (out.dropped, out.to_client().flags, out.to_client().sequence),
            (Some(Reason::TcpNoConnection), RST, as_seen)
        );
        let out = gate.server(of_server);
        assert_eq!(
            (out.dropped, out.to_server().flags, out.to_server().sequence),
            (Some(Reason::TcpNoConnection), RST, C)
        );
        gate.client(seg(SYN, CLIENT + 5, 0)).to_server();
    }
}

/// A host that knows the connection no more resets it, and the other one hears that.
#[test]
fn without_adoption_a_reset_passes_from_who_was_asked() {
    let mut gate = Gate::new(Settings { adopt: Adopt::End, ..balanced() });
    gate.server(seg(ACK, S, C)).to_client();
    gate.client(seg(RST, C + 1, 0)).is_dropped_for(Reason::TcpNoConnection);
    assert_eq!(gate.client(seg(RST, C, 0)).to_server().sequence, C);
}

/// Who sends a segment of a connection that is none hears nothing, or a scan would find hosts.
#[test]
fn without_adoption_a_segment_of_no_connection_is_not_answered() {
    let mut gate = Gate::new(Settings { adopt: Adopt::End, ..balanced() });
    assert_eq!(gate.client(seg(ACK, C, S)).to_server().data.len(), 0);
    gate.server(seg(RST, S, 0)).is_dropped_for(Reason::TcpNoConnection);
    assert_eq!(gate.client(seg(ACK, C, S)).outside, []);
}

/// Of thousands that end as a gateway begins anew one event in ten seconds says how many there were.
#[test]
fn connections_that_end_with_a_restart_are_told_by_their_count() {
    let mut gate = Gate::new(Settings { adopt: Adopt::End, ..balanced() });
    for port in 1..=100 {
        gate.ends.client.set_port(port);
        gate.server(seg(ACK, S, C)).to_client();
        assert_eq!(gate.client(seg(ACK, C, S)).dropped, Some(Reason::FlowSevered));
    }
    assert_eq!(gate.events(), [Event::OlderEnded { count: 1 }]);
    gate.wait(Duration::from_secs(11));
    assert_eq!(gate.events(), [Event::OlderEnded { count: 100 }]);
    gate.wait(Duration::from_secs(11));
    assert_eq!(gate.events(), []);
}

/// What begins under the new keys is shifted, and taken over with them later.
#[test]
fn with_new_keys_new_connections_are_shifted() {
    let mut gate = with_new_keys();
    assert_ne!(open_shifted(&mut gate).0, 0);
}

#[test]
fn nothing_is_adopted_that_the_server_does_not_know() {
    let mut settings = balanced();
    settings.adopt = Adopt::All;
    let mut gate = Gate::new(settings.clone());
    gate.client(seg(ACK, C, S).data(b"evil"));
    let out = gate.server(seg(RST, S, 0));
    assert_eq!(out.to_client().flags, RST);
    assert!(gate.client(seg(ACK, C, S).data(b"evil")).to_server().data.is_empty());
    gate.client(seg(RST, C, 0)).is_dropped_for(Reason::TcpNoConnection);
    // Nor by numbers that have nothing to do with each other.
    let mut gate = Gate::new(settings);
    gate.server(seg(ACK, S, C));
    let shift = gate.server(seg(ACK, S, C)).to_client().sequence.wrapping_sub(S);
    // The middle of the larger arc between the two numbers that would do.
    let far = S.wrapping_add(shift / 2).wrapping_add(if shift < 1 << 31 { 1 << 31 } else { 0 });
    gate.client(seg(ACK, C, far).data(b"evil")).is_dropped_for(Reason::TcpAcknowledgement);
}

#[test]
fn a_rule_that_severs_ends_the_connection_for_both_sides() {
    let mut settings = balanced();
    settings.rules.set(Rule::TcpRetransmission, Action::Sever);
    let mut gate = Gate::new(settings);
    let (shift, stamp_shift) = open_shifted(&mut gate);
    let said =
        |data: &[u8]| seg(ACK, C, S.wrapping_add(shift)).stamps(1000, 2000_u32.wrapping_add(stamp_shift)).data(data);
    gate.client(said(b"root"));
    let out = gate.client(said(b"user"));
    assert_eq!(out.dropped, Some(Reason::FlowSevered));
    assert_eq!((out.to_server().flags, out.to_server().sequence), (RST | ACK, C + 4));
    assert_eq!((out.to_client().flags, out.to_client().sequence), (RST | ACK, S.wrapping_add(shift)));
    assert_eq!(gate.events(), [Event::Severed { rule: Rule::TcpRetransmission, flow: gate.id() }]);
    gate.client(said(b"root")).is_dropped_for(Reason::FlowSevered);
    gate.server(seg(ACK, S, C + 4)).is_dropped_for(Reason::FlowSevered);
    gate.client(seg(SYN, CLIENT + 50_000, 0)).is_dropped_for(Reason::FlowSevered);
    assert_eq!(gate.scrubber.retained_bytes(), 0);
    gate.wait(Duration::from_secs(601));
    gate.client(seg(SYN, CLIENT + 50_000, 0)).to_server();
}

#[test]
fn a_rule_may_sever_in_the_handshake() {
    let mut settings = balanced();
    settings.rules.set(Rule::TcpSynData, Action::Sever);
    let mut gate = Gate::new(settings);
    let out = gate.client(seg(SYN, CLIENT, 0).data(b"early"));
    assert_eq!(out.dropped, Some(Reason::FlowSevered));
    assert_eq!((out.to_client().flags, out.to_client().sequence, out.to_client().acknowledgement), (RST | ACK, 0, C));
    assert_eq!((out.to_server().flags, out.to_server().sequence), (RST, C));
}

#[test]
fn an_operator_blocks_a_connection() {
    let mut gate = Gate::established(plain());
    let id = gate.id();
    assert!(gate.scrubber.block(gate.now, &id));
    let out = gate.server(seg(ACK, S, C).data(b"secret"));
    assert_eq!(out.dropped, Some(Reason::FlowSevered));
    assert_eq!((out.to_server().flags, out.to_server().sequence), (RST | ACK, C));
    assert_eq!((out.to_client().flags, out.to_client().sequence), (RST | ACK, S));
    gate.wait(Duration::from_secs(100_000));
    gate.client(seg(SYN, CLIENT, 0)).is_dropped_for(Reason::FlowSevered);
    let report = gate.scrubber.flows(gate.now).next().expect("it is listed");
    assert_eq!((report.flow, report.state), (id, "blocked"));
    assert!(gate.scrubber.unblock(&id) && !gate.scrubber.unblock(&id));
    gate.client(seg(SYN, CLIENT, 0)).to_server();
    // One that nobody has opened yet, too.
    gate.ends.client.set_port(7);
    assert!(gate.scrubber.block(gate.now, &gate.id()));
    gate.client(seg(SYN, CLIENT, 0)).is_dropped_for(Reason::FlowSevered);
}

#[test]
fn what_operators_see_of_a_connection() {
    let mut gate = Gate::established(plain());
    gate.client(seg(ACK, C, S).data(b"GET / HTTP/1.1"));
    gate.wait(Duration::from_secs(5));
    let report = gate.scrubber.flows(gate.now).next().expect("one");
    assert_eq!((report.flow, report.state, report.retained_bytes), (gate.id(), "established", 512));
    assert_eq!((report.packets, report.bytes, report.idle), ([1, 3], [0, 14], Duration::from_secs(5)));
    gate.server(seg(ACK, S, C + 14));
    assert_eq!(gate.scrubber.flows(gate.now).next().expect("one").retained_bytes, 0);
}

#[test]
fn a_super_frame_stays_one_and_is_trimmed_like_any_segment() {
    for ends in [Ends::v4(), Ends::v6()] {
        let mut gate = Gate::new(plain());
        gate.ends = ends;
        gate.open();
        let first: Vec<u8> = (0..5000_u32).map(|at| at as u8).collect();
        let (out, metas) = gate.super_frame(Side::UNTRUSTED, &seg(ACK, C, S).data(&first), 1000);
        assert_eq!((&out.to_server().data, metas[0].gso.map(|gso| gso.size)), (&first, Some(1000)));
        gate.server(seg(ACK, S, C + 4500));
        // What is left fits one piece: it is none any more.
        let (out, metas) = gate.super_frame(Side::UNTRUSTED, &seg(ACK, C, S).data(&[9; 5003]), 1000);
        assert_eq!((out.to_server().sequence, metas[0].gso), (C + 4500, None));
        assert_eq!(out.to_server().data, [&first[4500..], &[9; 3]].concat());
    }
}

#[test]
fn a_fin_behind_a_hole_is_sent_when_the_hole_is_filled() {
    for mode in [OutOfOrder::Retain, OutOfOrder::Drop] {
        let mut settings = plain();
        settings.out_of_order = mode;
        let mut gate = Gate::new(settings);
        gate.open_with_stamps(1000, 2000);
        let out = gate.client(seg(FIN | ACK, C + 8, S).stamps(1001, 2000));
        assert_eq!(out.to_server().flags, ACK, "the acknowledgement passes, the end does not");
        let out = gate.client(seg(ACK, C, S).data(b"complete").stamps(1002, 2000));
        let [data, fin] = &out.inside[..] else { panic!("not two: {out:?}") };
        assert_eq!(data.data, b"complete");
        assert_eq!((fin.flags, fin.sequence, fin.read_stamps()), (FIN | ACK, C + 8, Some((1002, 2000))));
        // The acknowledgement of both is right, and the FIN may be repeated.
        gate.server(seg(ACK, S, C + 9).stamps(2001, 1002)).to_client();
        assert_eq!(gate.client(seg(FIN | ACK, C + 8, S).stamps(1003, 2001)).to_server().flags, FIN | ACK);
    }
    // More data behind it shows that it was none.
    let mut gate = Gate::established(plain());
    gate.client(seg(FIN | ACK, C + 4, S));
    gate.client(seg(ACK, C + 4, S).data(b"more"));
    let out = gate.client(seg(ACK, C, S).data(b"some"));
    assert_eq!(out.to_server().flags, ACK);
}

#[test]
fn a_hop_limit_never_falls_below_the_largest_seen() {
    let mut gate = Gate::established(plain());
    let mut low = seg(ACK, C, S).data(b"evil");
    low.hop_limit = 20;
    assert_eq!(gate.client(low).to_server().hop_limit, 64);
    let mut high = seg(ACK, C + 4, S);
    high.hop_limit = 100;
    gate.client(high);
    assert_eq!(gate.client(seg(ACK, C + 4, S)).to_server().hop_limit, 100);
    assert_eq!(gate.count(Rule::HopLimitFloor), 2);
}

#[test]
fn options_leave_in_one_order() {
    let stamps = [8, 10, 0, 0, 3, 232, 0, 0, 0, 0];
    let orders = [
        [&[4, 2][..], &[3, 3, 7], &stamps, &[2, 4, 5, 0xb4], &[1]].concat(),
        [&[1, 3, 3, 7][..], &[1, 1], &stamps, &[2, 4, 5, 0xb4], &[4, 2]].concat(),
        [&stamps[..], &[4, 2], &[2, 4, 5, 0xb4], &[3, 3, 7, 0]].concat(),
    ];
    for order in orders {
        let mut gate = Gate::new(plain());
        assert_eq!(gate.client(seg(SYN, CLIENT, 0).options(&order)).to_server().options, offer(1000, 0));
    }
    // In the operator's order, unknown ones behind, or as they came.
    let unknown = [&[77, 3, 1][..], &[4, 2], &[2, 4, 5, 0xb4]].concat();
    let mut settings = plain();
    settings.option_order.swap(0, 1);
    assert_eq!(settings.option_order[0], OptionKind::SackPermitted);
    let mut gate = Gate::new(settings.clone());
    let out = gate.client(seg(SYN, CLIENT, 0).options(&unknown));
    assert_eq!(out.to_server().options, [1, 1, 4, 2, 2, 4, 5, 0xb4, 77, 3, 1, 0]);
    settings.rules.set(Rule::TcpOptionOrder, Action::Off);
    let mut gate = Gate::new(settings);
    let out = gate.client(seg(SYN, CLIENT, 0).options(&unknown));
    assert_eq!(out.to_server().options, [&unknown[..], &[0, 0, 0]].concat());
}

#[test]
fn resets_of_trusted_hosts_have_one_form() {
    let mut gate = Gate::new(balanced());
    gate.client(seg(SYN, CLIENT, 0));
    let refusals = [seg(RST | ACK, 0, C).window(512), seg(RST | ACK, 77, C).data(b"no listener"), seg(RST | ACK, C, C)];
    for refusal in refusals {
        let out = gate.server(refusal);
        assert_eq!(*out.to_client(), hidden(seg(RST | ACK, 0, C).window(0)));
    }
    for reset in [seg(RST, S, 0), seg(RST | ACK, S, C), seg(RST | ACK | PSH, S, C).window(9).data(b"bye")] {
        let mut gate = Gate::new(plain());
        gate.open();
        assert_eq!(*gate.server(reset).to_client(), hidden(seg(RST, S, 0).window(0)));
    }
}

#[test]
fn signed_connections_are_left_alone() {
    let signature = [&[19, 18][..], &[7; 16]].concat();
    let signed = |seg: Seg| seg.options(&signature);
    let mut gate = Gate::new(balanced());
    gate.client(signed(seg(SYN, CLIENT, 0)));
    let out = gate.server(signed(seg(SYN | ACK, SERVER, C)));
    assert_eq!((out.to_client().sequence, &out.to_client().options[..18]), (SERVER, &signature[..]));
    let out = gate.client(signed(seg(ACK, C, S).data(b"OPEN")));
    assert_eq!((out.to_server().acknowledgement, &out.to_server().data[..]), (S, &b"OPEN"[..]));
    // A signature that only the client offers buys no look at the server's own numbers.
    let mut gate = Gate::new(balanced());
    gate.client(signed(seg(SYN, CLIENT, 0)));
    assert_ne!(gate.server(seg(SYN | ACK, SERVER, C)).to_client().sequence, SERVER);
}

#[test]
fn multipath_tcp_works_unless_it_is_taken_out_of_the_handshake() {
    let capable = [30, 4, 0x01, 0x81];
    let two = [30, 4, 0x20, 0, 30, 8, 0x40, 1, 2, 3, 4, 5];
    let mut gate = Gate::new(plain());
    assert_eq!(gate.client(seg(SYN, CLIENT, 0).options(&capable)).to_server().options, capable);
    assert_eq!(gate.server(seg(SYN | ACK, SERVER, C).options(&capable)).to_client().options, capable);
    assert_eq!(gate.client(seg(ACK, C, S).options(&two)).to_server().options, two);
    let mut settings = plain();
    settings.rules.set(Rule::TcpUnknownOptions, Action::Scrub);
    let mut gate = Gate::new(settings);
    assert!(gate.client(seg(SYN, CLIENT, 0).options(&capable)).to_server().options.is_empty());
    // What a server answers that nobody offered goes as well.
    let mut gate = Gate::new(plain());
    gate.client(seg(SYN, CLIENT, 0));
    assert!(gate.server(seg(SYN | ACK, SERVER, C).options(&capable)).to_client().options.is_empty());
}

#[test]
fn initial_windows_of_trusted_hosts_are_alike_and_later_ones_keep_their_meaning() {
    let mut settings = plain();
    settings.rules.set(Rule::TcpInitialWindow, Action::Scrub);
    for (scale, window, told) in [(2_u8, 6400, 200), (7, 300, 300), (10, 100, 800), (14, 60_000, 65_535), (0, 100, 0)] {
        let mut gate = Gate::new(settings.clone());
        gate.client(seg(SYN, CLIENT, 0).options(&[2, 4, 5, 0xb4, 1, 3, 3, 7]));
        let answer = seg(SYN | ACK, SERVER, C).options(&[2, 4, 0x22, 0xc0, 1, 3, 3, scale]).window(65_160);
        let out = gate.server(answer);
        assert_eq!((out.to_client().window, &out.to_client().options[..]), (4001, &[2, 4, 5, 0xb0, 1, 3, 3, 7][..]));
        gate.client(seg(ACK, C, S));
        assert_eq!(gate.server(seg(ACK, S, C).window(window)).to_client().window, told, "scale {scale}");
    }
}

#[test]
fn a_plain_handshake_offers_the_segment_size_and_nothing_else_from_either_side() {
    let mut settings = plain();
    settings.rules.set(Rule::TcpPlainHandshake, Action::Scrub);
    let rich = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7];
    let mut gate = Gate::new(settings);
    for _ in 0..2 {
        let asked = gate.client(seg(SYN | ECE | CWR, CLIENT, 0).options(&rich));
        assert_eq!((asked.to_server().flags, &asked.to_server().options[..]), (SYN, &rich[..4]));
    }
    // Even a server that answers more than it was asked.
    let answered = gate.server(seg(SYN | ACK | ECE, SERVER, C).options(&rich).window(1000));
    assert_eq!((answered.to_client().flags, &answered.to_client().options[..]), (SYN | ACK, &rich[..4]));
    gate.client(seg(ACK, C, S)).to_server();
    assert_eq!(gate.server(seg(ACK, S, C).window(1000)).to_client().window, 1000, "no window is scaled");
    assert_eq!(gate.client(seg(ACK, C, S).data(b"hello")).to_server().data, b"hello");
}

#[test]
fn the_edge_of_the_window_follows_its_scale() {
    let mut gate = Gate::new(plain());
    gate.client(seg(SYN, CLIENT, 0).options(&[1, 3, 3, 0]));
    gate.server(seg(SYN | ACK, SERVER, C).options(&[1, 3, 3, 4]).window(10));
    gate.client(seg(ACK, C, S));
    assert_eq!(gate.client(seg(ACK, C, S).data(&[1; 100])).to_server().data.len(), 11, "a first window is not scaled");
    gate.server(seg(ACK, S, C + 10).window(10));
    let out = gate.client(seg(ACK, C + 10, S).data(&[1; 300]));
    assert_eq!(out.to_server().data.len(), 161);
}

#[test]
fn an_asymmetric_path_is_reported() {
    // The server's answer went another way: the client goes on all the same.
    let mut gate = Gate::new(balanced());
    gate.client(seg(SYN, CLIENT, 0));
    gate.client(seg(ACK, C, S)).is_dropped_for(Reason::TcpHandshake);
    assert_eq!(gate.events(), [Event::AsymmetricPath { flow: gate.id() }]);
    gate.client(seg(ACK, C, S).data(b"GET")).is_dropped_for(Reason::TcpHandshake);
    assert!(gate.events().is_empty(), "once");
    // The client's SYN went another way.
    let mut gate = Gate::new(balanced());
    gate.server(seg(SYN | ACK, SERVER, C)).is_dropped_for(Reason::TcpNoConnection);
    assert_eq!(gate.events(), [Event::AsymmetricPath { flow: gate.id() }]);
}

#[test]
fn a_host_that_lost_its_connection_gets_a_new_one() {
    // RFC 9293, figure 9: the client inside crashed, the server outside remembers.
    let mut gate = Gate::new(plain());
    gate.server(seg(SYN, SERVER, 0));
    let out = gate.client(seg(ACK, 77_000, 300).data(b"leftover"));
    assert_eq!((out.to_server().flags, out.to_server().acknowledgement, out.to_server().data.len()), (ACK, 300, 0));
    assert_eq!(gate.server(seg(RST, 300, 0)).to_client().flags, RST);
    gate.server(seg(SYN, SERVER, 0)).to_client();
    gate.client(seg(SYN | ACK, CLIENT, S)).to_server();
    // And a trusted host that begins again in the middle of a connection is believed.
    let mut gate = Gate::established(plain());
    gate.server(seg(SYN, 5, 0)).to_client();
    gate.client(seg(SYN | ACK, CLIENT + 99, 6)).to_server();
}

#[test]
fn vlans_are_apart() {
    let mut gate = Gate::established(plain());
    let frame = gate.ends.frame(Side::UNTRUSTED, &seg(ACK, C, S).data(b"GET"));
    let tag = VlanTag { tpid: 0x8100, tci: 0x2007 };
    let (out, _) = gate.frame(Side::UNTRUSTED, frame.clone(), Meta { vlan: Some(tag), ..Meta::plain() });
    out.is_dropped_for(Reason::TcpNoConnection);
    let mut tagged = frame.clone();
    tagged.splice(12..12, [0x81, 0, 0x20, 7]);
    let before = gate.ledger().drops(Reason::TcpNoConnection);
    let mut sink = Collected::new();
    let now = Now { since_boot: gate.now, wall: None };
    gate.scrubber.process(now, Side::UNTRUSTED, &mut Frames::new(&mut [(tagged, Meta::plain())]), &mut sink);
    assert_eq!((gate.ledger().drops(Reason::TcpNoConnection), sink.take().len()), (before + 1, 0));
    assert_eq!(gate.frame(Side::UNTRUSTED, frame, Meta::plain()).0.to_server().data, b"GET");
}

#[test]
fn connections_are_forgotten_in_time() {
    let mut gate = Gate::established(plain());
    gate.ends.client.set_port(5);
    gate.client(seg(SYN, CLIENT, 0));
    gate.wait(Duration::from_secs(32));
    assert_eq!(gate.scrubber.flows(gate.now).count(), 1, "half open");
    gate.ends.client.set_port(40_000);
    gate.client(seg(FIN | ACK, C, S));
    gate.server(seg(FIN | ACK, S, C + 1));
    gate.wait(Duration::from_secs(242));
    assert_eq!(gate.scrubber.flows(gate.now).count(), 0, "closing");
    assert_eq!(gate.scrubber.deadline(), None);
}

#[test]
fn a_port_without_room_loses_a_segment_and_nothing_else() {
    let mut gate = Gate::established(plain());
    let frame = gate.ends.frame(Side::UNTRUSTED, &seg(ACK, C, S).data(b"GET"));
    let now = Now { since_boot: gate.now, wall: None };
    let mut sink = Collected::with_room_for(0);
    gate.scrubber.process(now, Side::UNTRUSTED, &mut Frames::new(&mut [(frame, Meta::plain())]), &mut sink);
    assert_eq!((gate.ledger().drops(Reason::PortFull), gate.ledger().balance()), (1, 0));
    assert_eq!(gate.client(seg(ACK, C, S).data(b"PUT")).to_server().data, b"GET");
}

#[test]
fn with_every_rule_off_segments_pass_as_they_are() {
    let mut gate = Gate::new(Settings::null());
    for odd in [seg(SYN | FIN, 5, 9).data(b"x"), seg(0, 7, 7), seg(ACK, C, S).options(&[8, 0, 0, 0])] {
        assert_eq!(*gate.client(odd.clone()).to_server(), odd);
    }
}
