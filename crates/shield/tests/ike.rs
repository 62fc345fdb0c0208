//! Floods of IKE in a peer's own name, as a shield sees them: what its host's stack has sent before has a budget of its own.
#![allow(clippy::expect_used, reason = "helpers of tests fail like tests")]

use std::net::Ipv4Addr;

use bump::sink::Collected;
use bump::{Bump, DropReason, Frame, Instant, Ledger, Meta, Now, Side};
use shield::ipsec::limits::IKE_KNOWN_MAX;
use shield::ipsec::{PeerSettings, Rates, Settings, Shield};
use wire::checksum::pseudo_header_v4;

const OWN: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Exchanges (RFC 7296, section 3.1).
const INIT: u8 = 34;
const AUTH: u8 = 35;
const CHILD: u8 = 36;
const INFORMATIONAL: u8 = 37;
/// First payloads.
const SA: u8 = 33;
const NOTIFY: u8 = 41;
const ENCRYPTED: u8 = 46;
/// Flags.
const INITIATOR: u8 = 0x08;
const RESPONSE: u8 = 0x20;

fn now(milliseconds: u64) -> Now {
    Now { since_boot: Instant::from_millis(1_000_000 + milliseconds), wall: None }
}

fn shield() -> Shield {
    let rates = Rates { ike: 10, ..Rates::default() };
    Shield::new(Settings {
        peers: vec![PeerSettings { address: PEER.into(), keys: None }],
        rates,
        ..Settings::default()
    })
}

/// A message of version 2 with these SPIs.
fn message(initiator: u64, responder: u64, [first, exchange, flags]: [u8; 3], body: &[u8]) -> Vec<u8> {
    let len = 28 + body.len() as u32;
    let head = [&initiator.to_be_bytes()[..], &responder.to_be_bytes(), &[first, 0x20, exchange, flags, 0, 0, 0, 1]];
    [&head.concat()[..], &len.to_be_bytes(), body].concat()
}

fn with_cookie(initiator: u64, flags: u8, cookie: &[u8]) -> Vec<u8> {
    let len = (8 + cookie.len()) as u16;
    let notify = [&[SA, 0][..], &len.to_be_bytes(), &[0, 0, 0x40, 0x06], cookie, &[0; 40]].concat();
    message(initiator, 0, [NOTIFY, INIT, flags], &notify)
}

/// On its own port, or behind the marker.
fn frame(from: Ipv4Addr, to: Ipv4Addr, port: u16, message: &[u8]) -> Vec<u8> {
    let payload = if port == 500 { message.to_vec() } else { [&[0; 4], message].concat() };
    let len = (8 + payload.len()) as u16;
    let ports = [port.to_be_bytes(), port.to_be_bytes()].concat();
    let mut udp = [&ports[..], &len.to_be_bytes(), &[0, 0], &payload].concat();
    let sum = pseudo_header_v4(from, to, 17, len).bytes(&udp).checksum();
    udp[6..8].copy_from_slice(&sum.to_be_bytes());
    let ip = [&[0x45, 0][..], &(20 + len).to_be_bytes(), &[0, 1, 0, 0, 64, 17, 0, 0], &from.octets(), &to.octets()];
    [&[2; 12][..], &[8, 0], &ip.concat(), &udp].concat()
}

fn passes(shield: &mut Shield, at: Now, from: Side, mut bytes: Vec<u8>) -> bool {
    let mut sink = Collected::new();
    shield.process(at, from, &mut Some(Frame { bytes: &mut bytes, meta: Meta::plain() }), &mut sink);
    !sink.take().is_empty()
}

/// This host's stack sends it.
fn sends(shield: &mut Shield, message: &[u8]) {
    assert!(passes(shield, now(0), Side::STACK, frame(OWN, PEER, 500, message)));
}

/// Whether it passes behind a flood of first messages in the peer's name.
fn passes_behind_a_flood(shield: &mut Shield, message: &[u8]) -> bool {
    let mut forged = |initiator: u64| {
        let first = self::message(0xbad0_0000 + initiator, 0, [SA, INIT, INITIATOR], &[0; 40]);
        passes(shield, now(0), Side::WIRE, frame(PEER, OWN, 500, &first))
    };
    let passed = (0..100).filter(|initiator| forged(*initiator)).count();
    assert!(passed <= 10, "{passed} of a flood");
    assert!(!forged(100), "nothing is left for what nobody knows");
    let passed = [500, 4500].map(|port| passes(shield, now(0), Side::WIRE, frame(PEER, OWN, port, message)));
    assert_eq!(passed[0], passed[1], "both ports are one");
    passed[0]
}

fn drops(shield: &Shield) -> u64 {
    let mut ledger = Ledger::new();
    shield.add_to_ledger(&mut ledger);
    ledger.drops(DropReason::ShieldIkeBudget)
}

#[test]
fn a_running_pair_is_rekeyed_under_a_flood() {
    let mut shield = shield();
    let rekey = message(1, 2, [ENCRYPTED, CHILD, INITIATOR], &[9; 60]);
    assert!(!passes_behind_a_flood(&mut shield, &rekey), "nobody knows the pair");
    sends(&mut shield, &message(1, 2, [ENCRYPTED, AUTH, RESPONSE], &[9; 60]));
    assert!(passes_behind_a_flood(&mut shield, &rekey));
    for (initiator, responder) in [(1, 3), (3, 2), (2, 1), (1, 0), (0, 2)] {
        let other = message(initiator, responder, [ENCRYPTED, CHILD, INITIATOR], &[9; 60]);
        assert!(!passes_behind_a_flood(&mut shield, &other), "{initiator} and {responder}");
    }
}

#[test]
fn what_runs_is_bounded_as_well() {
    let mut shield = shield();
    sends(&mut shield, &message(1, 2, [ENCRYPTED, AUTH, RESPONSE], &[9; 60]));
    let heard = frame(PEER, OWN, 500, &message(1, 2, [ENCRYPTED, INFORMATIONAL, INITIATOR], &[9; 60]));
    let passed = (0..100).filter(|_| passes(&mut shield, now(0), Side::WIRE, heard.clone()));
    assert_eq!(passed.count(), 10);
    assert_eq!(drops(&shield), 90);
    let first = message(7, 0, [SA, INIT, INITIATOR], &[0; 40]);
    assert!(passes(&mut shield, now(0), Side::WIRE, frame(PEER, OWN, 500, &first)), "it takes nothing from others");
}

#[test]
fn the_answer_to_our_own_first_message_passes_under_a_flood() {
    let mut shield = shield();
    let answer = message(1, 2, [SA, INIT, RESPONSE], &[0; 40]);
    assert!(!passes_behind_a_flood(&mut shield, &answer));
    sends(&mut shield, &message(1, 0, [SA, INIT, INITIATOR], &[0; 40]));
    assert!(passes_behind_a_flood(&mut shield, &answer));
    assert!(!passes_behind_a_flood(&mut shield, &message(3, 2, [SA, INIT, RESPONSE], &[0; 40])));
}

#[test]
fn an_exchange_that_has_been_answered_goes_on_under_a_flood() {
    let mut shield = shield();
    sends(&mut shield, &message(1, 2, [SA, INIT, RESPONSE], &[0; 40]));
    assert!(passes_behind_a_flood(&mut shield, &message(1, 2, [ENCRYPTED, AUTH, INITIATOR], &[9; 60])));
    assert!(!passes_behind_a_flood(&mut shield, &message(1, 3, [ENCRYPTED, AUTH, INITIATOR], &[9; 60])));
}

#[test]
fn an_error_in_clear_vouches_for_nothing() {
    let mut shield = shield();
    // INVALID_IKE_SPI repeats whatever SPIs were sent, and so does a refusal of a first message.
    sends(&mut shield, &message(1, 2, [NOTIFY, INFORMATIONAL, RESPONSE], &[0, 0, 0, 8, 0, 0, 0, 4]));
    sends(&mut shield, &message(1, 2, [NOTIFY, INIT, RESPONSE], &[0, 0, 0, 8, 0, 0, 0, 14]));
    sends(&mut shield, &message(1, 0, [NOTIFY, INIT, RESPONSE], &[0, 0, 0, 8, 0, 0, 0, 14]));
    for responder in [0, 2] {
        assert!(!passes_behind_a_flood(&mut shield, &message(1, responder, [ENCRYPTED, AUTH, INITIATOR], &[9; 60])));
    }
}

#[test]
fn a_cookie_that_was_asked_for_is_told_from_one_that_was_not() {
    let mut shield = shield();
    let cookie = *b"0001a hash of twenty by.";
    let mut asked = with_cookie(1, RESPONSE, &cookie);
    asked[28] = 0;
    sends(&mut shield, &asked);
    assert!(passes_behind_a_flood(&mut shield, &with_cookie(1, INITIATOR, &cookie)));
    assert!(!passes_behind_a_flood(&mut shield, &with_cookie(2, INITIATOR, &cookie)), "for another SPI");
    assert!(!passes_behind_a_flood(&mut shield, &with_cookie(1, INITIATOR, b"0001a hash of twenty by!")));
    assert!(!passes_behind_a_flood(&mut shield, &message(1, 0, [SA, INIT, INITIATOR], &[0; 40])), "without it");
    // What is too short to be one says nothing, wherever it ends.
    let short = with_cookie(1, INITIATOR, &cookie);
    for len in 0..28 + 8 + cookie.len() {
        assert!(!passes_behind_a_flood(&mut shield, &short[..len]), "{len} bytes");
    }
}

#[test]
fn a_pair_of_version_1_is_known_by_what_is_encrypted() {
    let mut shield = shield();
    let of_version_1 = |responder, [first, exchange, flags]: [u8; 3]| {
        let mut message = message(1, responder, [first, exchange, flags], &[9; 60]);
        message[17] = 0x10;
        message
    };
    let quick = of_version_1(2, [8, 32, 1]);
    sends(&mut shield, &of_version_1(2, [11, 5, 0]));
    assert!(!passes_behind_a_flood(&mut shield, &quick), "an error in clear");
    sends(&mut shield, &of_version_1(2, [5, 2, 1]));
    assert!(passes_behind_a_flood(&mut shield, &quick));
}

#[test]
fn what_a_flood_makes_known_does_not_push_out_what_runs() {
    let mut shield = shield();
    sends(&mut shield, &message(1, 2, [ENCRYPTED, AUTH, RESPONSE], &[9; 60]));
    for initiator in 10..1010 {
        sends(&mut shield, &message(initiator, 2, [SA, INIT, RESPONSE], &[0; 40]));
        let cookie = [b"a cookie", &initiator.to_be_bytes()[..]].concat();
        sends(&mut shield, &with_cookie(initiator, RESPONSE, &cookie));
    }
    assert!(passes_behind_a_flood(&mut shield, &message(1, 2, [ENCRYPTED, CHILD, INITIATOR], &[9; 60])));
    let begun = |initiator| message(initiator, 2, [ENCRYPTED, AUTH, INITIATOR], &[9; 60]);
    assert!(passes_behind_a_flood(&mut shield, &begun(1009)), "the youngest");
    assert!(!passes_behind_a_flood(&mut shield, &begun(1009 - IKE_KNOWN_MAX as u64)), "one too many");
}
