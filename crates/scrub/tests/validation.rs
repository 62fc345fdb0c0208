//! Address validation: while many connections are half open, who opens one shows first that it
//! receives.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

mod tcp_support;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bump::{DropReason as Reason, Side};
use scrub::limits::{
    CHALLENGE_LIFETIME, HOP_LIMIT, REQUEST_PERIOD, VALIDATED_ANSWERS, VALIDATED_LIFETIME, VALIDATED_UNASKED,
};
use scrub::{Event, FlowLimits, Settings};

use tcp_support::*;

/// Requests that come to nothing with which addresses are validated.
const FROM: u32 = 8;
const C: u32 = CLIENT + 1;
const S: u32 = SERVER + 1;

fn validating(from: u32) -> Settings {
    let flows = FlowLimits { half_open: Some(from), ..FlowLimits::at_most(1 << 12) };
    Settings { flows, ..plain() }
}

fn host(number: u32) -> IpAddr {
    Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 0).to_bits() + number).into()
}

/// A gate under a flood of SYNs from addresses where nobody answers.
fn flooded() -> Gate {
    let mut gate = Gate::new(validating(FROM));
    flood(&mut gate);
    gate
}

/// SYNs of as many hosts as are admitted without having answered, and one more.
fn flood(gate: &mut Gate) {
    let honest = gate.ends.client;
    for number in 0..FROM {
        gate.ends.client = SocketAddr::new(host(number), 1024);
        gate.client(seg(SYN, CLIENT, 0)).to_server();
    }
    gate.ends.client = SocketAddr::new(host(FROM), 1024);
    assert_eq!(gate.client(seg(SYN, CLIENT, 0)).dropped, Some(Reason::AddressNotValidated));
    gate.ends.client = honest;
}

/// The number with which the client's SYN is answered.
fn challenge(gate: &mut Gate) -> u32 {
    let out = gate.client(seg(SYN, CLIENT, 0));
    assert_eq!((out.dropped, out.inside.len()), (Some(Reason::AddressNotValidated), 0), "{out:?}");
    let asked = out.to_client();
    assert_eq!((asked.flags, asked.window, asked.hop_limit), (ACK, 0, HOP_LIMIT));
    assert_eq!((asked.data.len(), asked.options.len()), (0, 0));
    assert_ne!(asked.acknowledgement, C, "it is no answer to what the client sent");
    asked.acknowledgement
}

/// Answers as RFC 9293, section 3.10.7.3, has it: `<SEQ=SEG.ACK><CTL=RST>`.
fn answer(gate: &mut Gate, number: u32) {
    let consumed = |gate: &Gate| gate.ledger().consumed[Side::UNTRUSTED as usize];
    let before = consumed(gate);
    let out = gate.client(seg(RST, number, 0));
    assert_eq!(out, Out::default(), "it goes no further");
    assert_eq!(consumed(gate), before + 1);
}

/// Asks for a connection from each of these ports, and answers each question three times, as a host
/// does that hears it so often. How many SYNs go on.
fn begins(gate: &mut Gate, ports: std::ops::Range<u16>) -> usize {
    let mut begun = 0;
    for port in ports {
        gate.ends.client.set_port(port);
        let out = gate.client(seg(SYN, CLIENT, 0));
        begun += out.inside.len();
        if let [asked] = &out.outside[..] {
            (0..3).for_each(|_| answer(gate, asked.acknowledgement));
            begun += gate.client(seg(SYN, CLIENT, 0)).inside.len();
        }
    }
    begun
}

/// The rest of a handshake whose SYN went on.
fn complete(gate: &mut Gate) {
    gate.server(seg(SYN | ACK, SERVER, C)).to_client();
    gate.client(seg(ACK, C, S)).to_server();
}

#[test]
fn case_115_who_answers_gets_through_a_flood_and_nobody_else_does() {
    let mut gate = flooded();
    assert_eq!(gate.events(), [Event::ValidatesAddresses { requests: FROM + 1 }]);
    let number = challenge(&mut gate);
    assert_eq!(challenge(&mut gate), number, "nothing is remembered of who asks, so it is asked the same");
    answer(&mut gate, number);
    assert_eq!(gate.client(seg(SYN, CLIENT, 0)).to_server().sequence, CLIENT);
    complete(&mut gate);
    assert_eq!(gate.client(seg(ACK | PSH, C, S).data(b"word")).to_server().data, b"word");
    assert_eq!(gate.events(), [], "not again so soon");
}

#[test]
fn without_a_flood_and_where_nobody_chose_it_no_one_is_asked() {
    let mut gate = Gate::new(validating(FROM));
    for port in 0..100 {
        gate.ends.client.set_port(2000 + port);
        gate.open();
    }
    // Of this many, each in its own name, none is asked.
    let mut by_default = Gate::new(plain());
    for number in 0..1000 {
        by_default.ends.client = SocketAddr::new(host(number), 1024);
        by_default.client(seg(SYN, CLIENT, 0)).to_server();
    }
}

#[test]
fn a_trusted_host_is_never_asked() {
    let mut gate = Gate::new(validating(0));
    gate.server(seg(SYN, SERVER, 0)).to_client();
    gate.client(seg(SYN | ACK, CLIENT, S)).to_server();
    gate.server(seg(ACK, S, C)).to_client();
}

#[test]
fn a_flood_that_ends_is_forgotten_and_so_is_an_answer_after_a_while() {
    let mut gate = flooded();
    gate.wait(2 * REQUEST_PERIOD);
    gate.client(seg(SYN, CLIENT, 0)).to_server();

    let mut gate = Gate::new(validating(0));
    let number = challenge(&mut gate);
    answer(&mut gate, number);
    gate.wait(VALIDATED_LIFETIME + Duration::from_secs(1));
    challenge(&mut gate);
}

/// A challenge is good in the period in which it was made and in the next one.
#[test]
fn an_answer_may_be_late_but_not_old() {
    for (later, is_good) in [(CHALLENGE_LIFETIME, true), (2 * CHALLENGE_LIFETIME, false)] {
        let mut gate = Gate::new(validating(0));
        let number = challenge(&mut gate);
        gate.wait(later);
        if is_good {
            answer(&mut gate, number);
            gate.client(seg(SYN, CLIENT, 0)).to_server();
        } else {
            gate.client(seg(RST, number, 0)).is_dropped_for(Reason::TcpNoConnection);
            challenge(&mut gate);
        }
    }
}

#[test]
fn an_answer_is_worth_nothing_from_another_address_or_port_or_of_another_form() {
    let mut gate = Gate::new(validating(0));
    let honest = gate.ends.client;
    let number = challenge(&mut gate);
    for other in [SocketAddr::new(host(1), honest.port()), SocketAddr::new(honest.ip(), honest.port() + 1)] {
        gate.ends.client = other;
        gate.client(seg(RST, number, 0)).is_dropped_for(Reason::TcpNoConnection);
        challenge(&mut gate);
    }
    gate.ends.client = honest;
    for wrong in [seg(RST, number ^ 1, 0), seg(RST | ACK, number, 1), seg(ACK, number, S)] {
        assert_eq!(gate.client(wrong).dropped, Some(Reason::TcpNoConnection));
    }
    // A trusted host cannot answer for it.
    gate.server(seg(RST, number, 0)).is_dropped_for(Reason::TcpNoConnection);
    challenge(&mut gate);
}

/// A validated host may open more connections, as many at a time as it completes.
#[test]
fn a_validated_address_opens_others_and_what_it_completes_does_not_count() {
    let mut gate = Gate::new(validating(0));
    let number = challenge(&mut gate);
    answer(&mut gate, number);
    for port in 0..4 * u16::from(VALIDATED_UNASKED) {
        gate.ends.client.set_port(2000 + port);
        gate.client(seg(SYN, CLIENT, 0)).to_server();
        complete(&mut gate);
    }
}

/// Somebody spoofs the address of a validated host. What he uses up is what it may begin without an
/// answer for the very connection.
#[test]
fn who_spoofs_a_validated_address_does_not_keep_its_host_out() {
    let mut gate = Gate::new(validating(0));
    let number = challenge(&mut gate);
    answer(&mut gate, number);
    let admitted = |gate: &mut Gate, first: u16| {
        let syn = |gate: &mut Gate, port| {
            gate.ends.client.set_port(port);
            gate.client(seg(SYN, CLIENT, 0)).inside.len()
        };
        (first..first + 100).map(|port| syn(gate, port)).sum::<usize>()
    };
    assert_eq!(admitted(&mut gate, 2000), usize::from(VALIDATED_UNASKED));
    for round in 0..10 {
        // What was completed is given back, and he has it at once.
        assert_eq!(admitted(&mut gate, 3000 + 200 * round), usize::from(round > 0));
        gate.ends.client.set_port(2500 + round);
        let number = challenge(&mut gate);
        answer(&mut gate, number);
        assert_eq!(admitted(&mut gate, 3100 + 200 * round), 0, "an answer is for the one connection");
        gate.ends.client.set_port(2500 + round);
        gate.client(seg(SYN, CLIENT, 0)).to_server();
        complete(&mut gate);
    }
}

/// Whoever has an address answers for many connections that he never completes: as many as an
/// address may have, however often he says the same again, and one more in a second.
#[test]
fn who_answers_and_completes_nothing_gets_no_further() {
    let mut gate = Gate::new(validating(0));
    let at_once = usize::from(VALIDATED_UNASKED) + usize::from(VALIDATED_ANSWERS);
    assert_eq!(begins(&mut gate, 1000..2000), at_once);
    gate.wait(Duration::from_secs(10));
    assert_eq!(begins(&mut gate, 2000..3000), 10);
}

/// A host resets what others ask in its name, as if it had asked itself. So whoever spoofs it uses
/// up its answers, too, and keeps it out no longer than until the next one comes back.
#[test]
fn a_host_that_answers_for_a_spoofer_gets_in_later() {
    let mut gate = Gate::new(validating(0));
    begins(&mut gate, 2000..2200);
    gate.ends.client.set_port(5000);
    let number = challenge(&mut gate);
    answer(&mut gate, number);
    challenge(&mut gate);
    gate.wait(Duration::from_secs(1));
    answer(&mut gate, number);
    gate.client(seg(SYN, CLIENT, 0)).to_server();
}

/// An answer is for one connection, and not for any number of SYNs from its port.
#[test]
fn an_answer_admits_a_few_syns() {
    let mut gate = Gate::new(validating(0));
    assert_eq!(begins(&mut gate, 2000..2001 + u16::from(VALIDATED_UNASKED)), 1 + usize::from(VALIDATED_UNASKED));
    gate.ends.client.set_port(5000);
    let number = challenge(&mut gate);
    answer(&mut gate, number);
    let passed = (0..100).map(|number| gate.client(seg(SYN, CLIENT + number, 0)).inside.len()).sum::<usize>();
    assert!((1..=4).contains(&passed), "{passed}");
}

/// Where nothing is adopted segments of no connection become questions to trusted hosts. A flood of
/// those ends here as well.
#[test]
fn a_flood_of_segments_of_no_connection_asks_no_trusted_host() {
    let mut gate = Gate::new(Settings { adopt: scrub::settings::Adopt::End, ..validating(FROM) });
    let mut asked = 0;
    for port in 0..1000 {
        gate.ends.client.set_port(1024 + port);
        asked += gate.client(seg(ACK, C, S)).inside.len();
    }
    assert_eq!(asked, FROM as usize);
}

/// What the table forgets of a flood makes no room for more of it.
#[test]
fn a_flood_that_lasts_gets_no_further_than_at_its_beginning() {
    let mut gate = flooded();
    let mut reached = 0;
    for second in 0..300 {
        for number in 0..10 {
            gate.ends.client = SocketAddr::new(host(1000 + second * 10 + number), 1024);
            reached += gate.client(seg(SYN, CLIENT, 0)).inside.len();
        }
        gate.wait(Duration::from_millis(970));
    }
    assert_eq!(reached, 0);
    assert_eq!(gate.scrubber.flow_counts(gate.now).half_open, 0);
}

/// One SYN that was admitted is no way for others between the same ports.
#[test]
fn a_syn_with_another_number_is_another_request() {
    let mut gate = flooded();
    gate.ends.client = SocketAddr::new(host(0), 1024);
    gate.client(seg(SYN, CLIENT, 0)).to_server();
    for number in 1..100 {
        assert_eq!(gate.client(seg(SYN, CLIENT + number, 0)).dropped, Some(Reason::AddressNotValidated));
    }
    gate.server(seg(SYN | ACK, SERVER, C)).to_client();
}

/// A SYN in return to a trusted host's is no request. It is refused as it is without a flood.
#[test]
fn a_syn_from_both_ends_is_no_request() {
    let mut gate = Gate::new(validating(0));
    gate.server(seg(SYN, SERVER, 0)).to_client();
    gate.client(seg(SYN, CLIENT, 0)).is_dropped_for(Reason::TcpHandshake);
}

/// What trusted hosts begin, and what is older than the scrubber, is no untrusted host's request.
#[test]
fn only_what_untrusted_hosts_begin_counts() {
    let mut gate = Gate::new(Settings { adopt: scrub::settings::Adopt::All, ..validating(FROM) });
    for port in 0..100 {
        gate.ends.server.set_port(1024 + port);
        gate.server(seg(SYN, SERVER, 0)).to_client();
        gate.ends.server.set_port(2024 + port);
        gate.client(seg(ACK, C, S)).to_server();
    }
    assert!(!gate.scrubber.flow_counts(gate.now).validates_addresses);
    gate.ends = Ends::v4();
    gate.client(seg(SYN, CLIENT, 0)).to_server();
}

/// Each of two scrubbers in a row asks by itself, and lets the other one ask.
#[test]
fn a_client_behind_a_scrubber_of_its_own_gets_through() {
    // The client is trusted here and the server there.
    let mut near = Gate::new(Settings::preset(scrub::Preset::Strict));
    let mut far = Gate::new(validating(0));
    far.ends = Ends { client: near.ends.server, server: near.ends.client };
    let syn = near.server(seg(SYN, CLIENT, 0)).to_client().clone();
    let asked = far.client(Seg { hop_limit: 64, ..syn.clone() }).to_client().clone();
    let question = near.client(asked).to_server().clone();
    assert_eq!(question.flags, ACK);
    let reset = near.server(seg(RST, question.acknowledgement, 0)).to_client().clone();
    let consumed = far.ledger().consumed[Side::UNTRUSTED as usize];
    assert_eq!(far.client(Seg { hop_limit: 64, ..reset }), Out::default());
    assert_eq!(far.ledger().consumed[Side::UNTRUSTED as usize], consumed + 1);
    let again = near.server(seg(SYN, CLIENT, 0)).to_client().clone();
    assert_eq!(far.client(Seg { hop_limit: 64, ..again }).to_server().flags, SYN);
}

/// A connection that is over stays what it was until who would begin another one has answered.
#[test]
fn a_syn_that_is_not_answered_for_ends_nothing() {
    let mut gate = Gate::established(validating(1));
    gate.client(seg(FIN | ACK, C, S)).to_server();
    gate.server(seg(FIN | ACK, S, C + 1)).to_client();
    gate.client(seg(ACK, C + 1, S + 1)).to_server();
    let before = gate.scrubber.flow_counts(gate.now).all;
    let honest = gate.ends.client;
    gate.ends.client = SocketAddr::new(host(1), 1024);
    gate.client(seg(SYN, CLIENT, 0)).to_server();
    gate.ends.client = honest;
    let out = gate.client(seg(SYN, CLIENT + 100_000, 0));
    assert_eq!(out.dropped, Some(Reason::AddressNotValidated));
    assert_eq!(gate.scrubber.flow_counts(gate.now).all, before + 1);
    answer(&mut gate, out.to_client().acknowledgement);
    gate.client(seg(SYN, CLIENT + 100_000, 0)).to_server();
}

/// Data of a Fast Open may be acknowledged with the SYN; a question never does.
#[test]
fn a_syn_with_data_is_asked_as_well() {
    let mut gate = Gate::new(validating(0));
    let out = gate.client(seg(SYN, CLIENT, 0).data(&[7; 1000]));
    let number = out.to_client().acknowledgement;
    assert!(!(CLIENT..=CLIENT + 1001).contains(&number));
    answer(&mut gate, number);
    gate.client(seg(SYN, CLIENT, 0).data(&[7; 1000])).to_server();
}

/// An untrusted host of IPv6 may have any address of its network.
#[test]
fn a_network_of_ipv6_is_validated_as_one() {
    let mut gate = Gate::new(validating(0));
    gate.ends = Ends::v6();
    let number = challenge(&mut gate);
    answer(&mut gate, number);
    let mut opened = 0;
    for last in 0..2 * u16::from(VALIDATED_UNASKED) {
        gate.ends.client = format!("[2001:db8:1::a:{last:x}]:40000").parse().expect("an address");
        opened += gate.client(seg(SYN, CLIENT, 0)).inside.len();
    }
    assert_eq!(opened, usize::from(VALIDATED_UNASKED));
    gate.ends.client = "[2001:db8:1:1::7]:40000".parse().expect("an address");
    challenge(&mut gate);
}

/// The rest of the handshake works whatever the shift of the trusted host's numbers is.
#[test]
fn numbers_are_shifted_as_without_a_challenge() {
    let flows = FlowLimits { half_open: Some(0), ..FlowLimits::at_most(1 << 12) };
    let mut gate = Gate::new(Settings { flows, ..Settings::preset(scrub::Preset::Balanced) });
    let number = challenge(&mut gate);
    answer(&mut gate, number);
    gate.client(seg(SYN, CLIENT, 0)).to_server();
    let answered = gate.server(seg(SYN | ACK, SERVER, C)).to_client().clone();
    assert_eq!(answered.acknowledgement, C);
    assert_ne!(answered.sequence, SERVER);
    let out = gate.client(seg(ACK, C, answered.sequence.wrapping_add(1)));
    assert_eq!(out.to_server().acknowledgement, S);
}
