//! Errors and their timing: what trusted hosts report leaves in one form and at a time that says nothing.
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]
#![allow(dead_code, reason = "each test uses its share of the helpers")]

mod icmp;

use std::collections::HashSet;
use std::time::Duration;

use bump::{Bump, Checksum, DropReason, Meta, Side};
use icmp::{
    Gate, HOSTS, INSIDE, INSIDE_V6, Ip, OUTSIDE, OUTSIDE_V6, ROUTER, assert_valid, carried, datagram, error, message,
    ping, pong, rest, sum,
};
use scrub::settings::IcmpTiming;
use scrub::{Action, Preset, Rule, Settings};

const TRUSTED: Side = Side::TRUSTED;
const UNTRUSTED: Side = Side::UNTRUSTED;
const NOTHING: [u8; 4] = [0; 4];

fn balanced() -> Gate {
    Gate::new(Settings::preset(Preset::Balanced))
}

/// The longest wait that these tests let a message have.
const WAIT_MAX: Duration = Duration::from_millis(30);

fn jittered() -> Gate {
    Gate::new(Settings { icmp: IcmpTiming::Jitter(WAIT_MAX), ..Settings::preset(Preset::Balanced) })
}

#[test]
fn over_ipv6_too_only_eight_bytes_leave_as_they_were_sent() {
    let sent =
        Ip { flow_label: 0x777, hop_limit: 57, ..datagram(OUTSIDE_V6, INSIDE_V6, [44_000, 31_337], &[b'C'; 300]) };
    let honest = error(INSIDE_V6, (1, 4), NOTHING, &sent, 48);
    type Habit = fn(&mut Vec<u8>);
    let habits: [(&str, Habit); 4] = [
        ("quotes all", |_| {}),
        ("quotes after its own hops", |bytes| bytes[15] = 56),
        ("clears label and length", |bytes| bytes[9..14].fill(0)),
        ("says something in the unused field", |bytes| bytes[4..8].fill(0xee)),
    ];
    for (what, habit) in habits {
        let mut gate = balanced();
        gate.pass(UNTRUSTED, &sent.frame()).expect("the probe passes");
        let mut answer = error(INSIDE_V6, (1, 4), NOTHING, &sent, 348);
        habit(&mut answer.payload);
        let out = gate.pass(TRUSTED, &answer.summed(2).frame()).expect(what);
        assert_eq!(carried(&out), honest.payload, "a host that {what}");
    }
}

#[test]
fn the_mtu_and_the_length_that_was_too_long_stay() {
    let mut gate = balanced();
    let long = Ip { identification: 1, ..datagram(OUTSIDE, INSIDE, [4000, 5000], &[0; 1400]) };
    let short = Ip { identification: 2, ..datagram(OUTSIDE, INSIDE, [4000, 5000], &[0; 10]) };
    gate.pass(UNTRUSTED, &long.frame()).expect("a long one");
    gate.pass(UNTRUSTED, &short.frame()).expect("a short one");
    let out = gate.pass(TRUSTED, &error(ROUTER, (3, 4), rest(0xeeee, 1300), &long, 200).frame()).expect("it is true");
    assert_eq!(carried(&out), error(ROUTER, (3, 4), rest(0, 1300), &long, 28).payload);
}

/// `balanced`, where everybody may tunnel.
fn with_tunnels() -> Settings {
    let mut settings = Settings::preset(Preset::Balanced);
    settings.rules.set(Rule::TunnelledPackets, Action::Off);
    settings
}

#[test]
fn a_tunnel_gets_the_longer_quote_where_that_is_chosen() {
    let inner = ping(OUTSIDE, INSIDE, 1).packet();
    let tunnels = [Ip::new(OUTSIDE, INSIDE, 4, inner.clone()), datagram(OUTSIDE, INSIDE, [4789, 4789], &inner)];
    for (quote_len, leaves) in [(8, 8), (40, 40), (0, 8), (5000, 68)] {
        for tunnel in &tunnels {
            let settings = Settings { icmp_quote_len: quote_len, ..with_tunnels() };
            let mut gate = Gate::new(settings);
            gate.pass(UNTRUSTED, &tunnel.frame()).expect("a tunnel");
            let leaves = leaves.min(tunnel.payload.len());
            let report = error(ROUTER, (3, 1), NOTHING, tunnel, 2000);
            let out = gate.pass(TRUSTED, &report.frame()).expect("it is true");
            assert_eq!(carried(&out), error(ROUTER, (3, 1), NOTHING, tunnel, 20 + leaves).payload, "{quote_len}");
        }
    }
}

#[test]
fn extensions_behind_a_long_quote_are_cut_off() {
    let tunnel = Ip::new(OUTSIDE, INSIDE, 4, vec![0x45; 400]);
    let settings = Settings { icmp_quote_len: 500, ..with_tunnels() };
    let mut gate = Gate::new(settings);
    gate.pass(UNTRUSTED, &tunnel.frame()).expect("a tunnel");
    // RFC 4884: 128 bytes of the packet, counted in words in the second byte, and then a label stack of the router's.
    let body = [&tunnel.packet()[..128], &[0x20, 0, 0, 0, 0, 8, 1, 1, 0xde, 0xad, 0xbe, 0xef]].concat();
    let report = message(ROUTER, OUTSIDE, (11, 0), [0, 32, 0, 0], &body);
    let out = gate.pass(TRUSTED, &report.frame()).expect("it is true");
    assert_eq!(carried(&out), error(ROUTER, (11, 0), NOTHING, &tunnel, 128).payload);
}

#[test]
fn pointers_stay_and_the_bytes_beside_them_go() {
    let mut gate = balanced();
    for (inside, outside) in HOSTS {
        let sent = datagram(outside, inside, [4000, 5000], b"question");
        gate.pass(UNTRUSTED, &sent.frame()).expect("a question");
        let (kind, header, leaves) =
            if inside.is_ipv4() { (12, [20, 9, 9, 9], [20, 0, 0, 0]) } else { (4, [0, 0, 1, 44], [0, 0, 1, 44]) };
        let out = gate.pass(TRUSTED, &error(inside, (kind, 0), header, &sent, 200).frame()).expect("it is true");
        assert_eq!(carried(&out)[4..8], leaves);
    }
}

#[test]
fn an_error_that_quotes_too_little_does_not_leave() {
    let mut gate = balanced();
    let sent = datagram(OUTSIDE, INSIDE, [4000, 5000], b"question");
    gate.pass(UNTRUSTED, &sent.frame()).expect("a question");
    for quoted in [0, 19, 20, 27] {
        let report = error(INSIDE, (3, 3), NOTHING, &sent, quoted);
        assert_eq!(gate.pass(TRUSTED, &report.frame()), Err(DropReason::IcmpMalformed), "{quoted} bytes");
    }
    assert!(gate.pass(TRUSTED, &error(INSIDE, (3, 3), NOTHING, &sent, 28).frame()).is_ok());
}

#[test]
fn an_error_about_an_error_is_unsolicited() {
    let mut gate = balanced();
    let sent = datagram(OUTSIDE, INSIDE, [4000, 5000], b"question");
    gate.pass(UNTRUSTED, &sent.frame()).expect("a question");
    let report = error(INSIDE, (3, 3), NOTHING, &sent, 28);
    gate.pass(TRUSTED, &report.frame()).expect("it is true");
    let about = error(ROUTER, (11, 0), NOTHING, &report, 28);
    assert_eq!(gate.pass(UNTRUSTED, &about.frame()), Err(DropReason::IcmpUnsolicited));
}

/// A segment between client and server, outside and inside, or the other way round.
fn segment(from: Side, flags: u8, numbers: [u32; 2]) -> Ip {
    let (source, destination, ports) = match from {
        UNTRUSTED => (OUTSIDE, INSIDE, [40_000_u16, 80]),
        TRUSTED => (INSIDE, OUTSIDE, [80, 40_000]),
    };
    let mut header = Vec::new();
    ports.iter().for_each(|port| header.extend(port.to_be_bytes()));
    numbers.iter().for_each(|number| header.extend(number.to_be_bytes()));
    header.extend([0x50, flags, 0xfa, 0xf0, 0, 0, 0, 0]);
    Ip::new(source, destination, 6, header).summed(16)
}

fn sequence(frame: &[u8]) -> u32 {
    u32::from_be_bytes(carried(frame)[4..8].try_into().expect("four bytes"))
}

#[test]
fn an_error_about_a_segment_finds_its_sender() {
    const SYN: u8 = 2;
    const ACK: u8 = 16;
    let mut gate = balanced();
    gate.pass(UNTRUSTED, &segment(UNTRUSTED, SYN, [1000, 0]).frame()).expect("a client");
    let seen = gate.pass(TRUSTED, &segment(TRUSTED, SYN | ACK, [9000, 1001]).frame()).expect("a server");
    let shown = sequence(&seen);
    assert_ne!(shown, 9000, "shifted");
    gate.pass(UNTRUSTED, &segment(UNTRUSTED, ACK, [1001, shown.wrapping_add(1)]).frame()).expect("the client");
    let mut sent = segment(TRUSTED, ACK, [9001, 1001]);
    sent.payload.extend([b'x'; 1000]);
    let seen = gate.pass(TRUSTED, &sent.summed(16).frame()).expect("data of the server");
    let quoted = Ip::new(INSIDE, OUTSIDE, 6, carried(&seen).to_vec());
    // A router outside could not carry it. The server knows its own numbers only.
    let report = gate.pass(UNTRUSTED, &error(ROUTER, (3, 4), rest(0, 800), &quoted, 28).frame()).expect("it is true");
    assert_eq!(carried(&report)[32..36], 9001_u32.to_be_bytes());
    assert_eq!(carried(&report)[6..8], 800_u16.to_be_bytes());
    // Whoever guesses is wrong about what is under way.
    let mut guessed = quoted.clone();
    guessed.payload[4..8].copy_from_slice(&9001_u32.to_be_bytes());
    let blind = error(ROUTER, (3, 4), rest(0, 800), &guessed, 28).frame();
    assert_eq!(gate.pass(UNTRUSTED, &blind), Err(DropReason::IcmpUnsolicited));
    guessed.payload[0] = 0x77;
    let blind = error(ROUTER, (3, 1), NOTHING, &guessed, 28).frame();
    assert_eq!(gate.pass(UNTRUSTED, &blind), Err(DropReason::IcmpUnsolicited), "no such connection");
}

#[test]
fn what_was_sent_in_one_vlan_is_no_reason_for_errors_in_another() {
    let mut gate = balanced();
    let tagged = |id, ip: &Ip| {
        let frame = ip.frame();
        [&frame[..12], &[0x81, 0, 0, id], &frame[12..]].concat()
    };
    let sent = datagram(INSIDE, OUTSIDE, [5353, 53], b"question");
    let report = error(OUTSIDE, (3, 3), NOTHING, &sent, 28);
    assert_eq!(gate.pass_with(TRUSTED, &tagged(7, &sent), Meta::plain()).len(), 1);
    assert!(gate.pass_with(UNTRUSTED, &tagged(8, &report), Meta::plain()).is_empty());
    assert_eq!(gate.pass_with(UNTRUSTED, &tagged(7, &report), Meta::plain()).len(), 1);
}

#[test]
fn a_wrong_checksum_is_never_made_right() {
    let settings = [Settings::preset(Preset::Balanced), Settings::null()];
    for (settings, is_dropped) in settings.into_iter().zip([true, false]) {
        let mut gate = Gate::new(settings);
        let mut sent = ping(OUTSIDE, INSIDE, 1);
        sent.payload[1] = 9;
        let frame = sent.frame();
        let out = gate.pass_with(UNTRUSTED, &frame, Meta::plain()).pop();
        assert_eq!(out.is_none(), is_dropped);
        assert!(out.is_none_or(|(_, left, _)| left == frame), "what no rule touches leaves as it came");
    }
    let bad = Meta { checksum: Checksum::Bad, ..Meta::plain() };
    for sent in [ping(OUTSIDE, INSIDE, 1), datagram(OUTSIDE, INSIDE, [1, 2], b"data")] {
        assert!(balanced().pass_with(UNTRUSTED, &sent.frame(), bad).is_empty(), "the port knows better");
    }
}

#[test]
fn a_partial_checksum_of_a_datagram_stays_partial() {
    let mut sent = datagram(OUTSIDE, INSIDE, [1, 2], b"data");
    sent.payload[6..8].copy_from_slice(&[0x12, 0x34]);
    let meta = Meta { checksum: Checksum::Partial { start: 34, offset: 6 }, ..Meta::plain() };
    let mut gate = balanced();
    let out = gate.pass_with(UNTRUSTED, &sent.frame(), meta);
    assert_eq!(out, [(TRUSTED, sent.frame(), meta)]);
    sent.payload.push(0);
    assert!(
        gate.pass_with(UNTRUSTED, &sent.frame(), meta).is_empty(),
        "no kernel leaves a sum open for less than it sends"
    );
}

#[test]
fn neighbour_discovery_is_never_paced() {
    let mut gate = balanced();
    for _ in 0..100 {
        let solicitation = Ip { hop_limit: 255, ..message(INSIDE_V6, OUTSIDE_V6, (135, 0), NOTHING, &[0xfe; 16]) };
        gate.pass(TRUSTED, &solicitation.frame()).expect("the link needs it");
        let report = Ip { hop_limit: 1, ..message(INSIDE_V6, OUTSIDE_V6, (143, 0), NOTHING, &[]) };
        gate.pass(TRUSTED, &report.frame()).expect("the link needs it");
    }
    assert_eq!(gate.count(Rule::IcmpRate), 0);
}

#[test]
fn requests_of_trusted_hosts_are_paced_only_where_the_paper_is_followed() {
    for (preset, passes) in [(Preset::Paper, 1), (Preset::Balanced, 10), (Preset::Strict, 1)] {
        let mut gate = Gate::new(Settings::preset(preset));
        let out = (0..10).filter(|sequence| gate.pass(TRUSTED, &ping(INSIDE, OUTSIDE, *sequence).frame()).is_ok());
        assert_eq!(out.count(), passes, "{preset:?}");
    }
}

#[test]
fn one_pair_does_not_slow_another() {
    let mut gate = balanced();
    for last in 1..=200 {
        let outside = std::net::Ipv4Addr::new(198, 51, 100, last);
        gate.pass(UNTRUSTED, &ping(outside, INSIDE, 1).frame()).expect("a question");
        gate.pass(TRUSTED, &pong(INSIDE, outside, 1).frame()).expect("the first answer");
        gate.pass(UNTRUSTED, &ping(outside, INSIDE, 2).frame()).expect("a question");
        assert_eq!(gate.pass(TRUSTED, &pong(INSIDE, outside, 2).frame()), Err(DropReason::IcmpRate));
    }
}

#[test]
fn with_jitter_every_reply_waits_for_a_time_of_its_own_and_none_is_lost() {
    let mut gate = jittered();
    let start = gate.now;
    let mut waits = HashSet::new();
    for sequence in 0..100 {
        gate.pass(UNTRUSTED, &ping(OUTSIDE, INSIDE, sequence).frame()).expect("a question");
        assert!(gate.pass_with(TRUSTED, &pong(INSIDE, OUTSIDE, sequence).frame(), Meta::plain()).is_empty());
    }
    assert_eq!(gate.ledger().held, 100);
    let mut left = 0;
    while let Some(deadline) = gate.scrubber.deadline() {
        gate.now = deadline;
        waits.insert(deadline);
        assert!(deadline.since(start) < WAIT_MAX);
        for (to, frame, _) in gate.tick() {
            assert_eq!(to, UNTRUSTED);
            assert_valid(&frame);
            left += 1;
        }
    }
    assert_eq!((left, gate.ledger().held, gate.ledger().balance()), (100, 0, 0));
    assert!(waits.len() > 90, "{} times of departure", waits.len());
    let (first, last) = (waits.iter().min().expect("some"), waits.iter().max().expect("some"));
    assert!(last.since(*first) > WAIT_MAX / 2, "they are spread");
}

#[test]
fn a_flood_of_replies_cannot_make_the_queue_grow() {
    let mut gate = jittered();
    let mut held = 0;
    for sequence in 0..2000 {
        gate.pass(UNTRUSTED, &ping(OUTSIDE, INSIDE, sequence).frame()).expect("a question");
        let mut reply = pong(INSIDE, OUTSIDE, sequence);
        reply.payload.resize(1400, 0x55);
        gate.pass_with(TRUSTED, &reply.summed(2).frame(), Meta::plain());
        held = held.max(gate.ledger().held);
    }
    let most = scrub::limits::ICMP_DELAYED_MAX_BYTES / 1400;
    assert!((held as usize) < most && held > 500, "{held} wait");
    assert_eq!(gate.ledger().drops(DropReason::IcmpRate), 2000 - held);
}

#[test]
fn a_flood_pushes_out_what_is_old_and_nothing_more() {
    let settings = Settings { exchanges_max: 64, ..Settings::preset(Preset::Balanced) };
    let mut gate = Gate::new(settings);
    let mine = datagram(INSIDE, OUTSIDE, [5353, 53], b"question");
    gate.pass(TRUSTED, &mine.frame()).expect("a question");
    for port in 0..5000 {
        gate.pass(UNTRUSTED, &datagram(OUTSIDE, INSIDE, [port, 9], b"").frame()).expect("a flood");
    }
    let report = error(OUTSIDE, (3, 3), NOTHING, &mine, 28).frame();
    assert!(gate.pass(UNTRUSTED, &report).is_ok(), "the other side's flood does not touch what this side sent");
    for port in 0..5000 {
        gate.pass(TRUSTED, &datagram(INSIDE, OUTSIDE, [port, 9], b"").frame()).expect("its own flood");
    }
    assert_eq!(gate.pass(UNTRUSTED, &report), Err(DropReason::IcmpUnsolicited), "forgotten, and refused");
}

#[test]
fn the_paper_only_cuts_and_paces() {
    let mut gate = Gate::new(Settings::preset(Preset::Paper));
    let sent = datagram(OUTSIDE, INSIDE, [4000, 5000], b"question of some length");
    let mut report = error(INSIDE, (3, 3), [0, 0, 0, 7], &sent, 200);
    report.payload[16] = 33;
    let report = report.summed(2);
    let out = gate.pass(TRUSTED, &report.frame()).expect("also about what nobody saw");
    let mut cut = error(INSIDE, (3, 3), [0, 0, 0, 7], &sent, 28);
    cut.payload[16] = 33;
    assert_eq!(carried(&out), cut.summed(2).payload);
    assert_eq!(sum(carried(&out)), 0);
}
