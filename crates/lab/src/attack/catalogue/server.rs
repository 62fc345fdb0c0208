//! Attack 59: on the key distributor of S-ARP.

use super::anonymous::{ANSWERED, SENT_AS_ANOTHER};
use crate::attack::{Attack, COMMON, distributor, former_key};
use crate::guard::{DISTRIBUTOR, Guard};
use crate::net::Forwarding;

/// What both attacks with a former key share: b is gone by then.
const FORMER_KEY: Attack = Attack {
    number: 59,
    tools: &["scapy", "tcpreplay", "ip"],
    forwarding: Forwarding::Hub,
    honest: ("a", "c"),
    guards: &[Guard::Sarp],
    weaken: &["reply-check"],
    // The thief answers without having heard the question.
    sarp_lines: "sign_requests = false",
    anonymous: SENT_AS_ANOTHER,
    reasons: &["sarp-unasked"],
    ..COMMON
};

/// Them, by number.
pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        number: 59,
        name: "a: key distributor's answers replayed and forged",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        guards: &[Guard::Sarp],
        weaken: &["reply-check"],
        reasons: &["sarp-unasked"],
        anonymous: SENT_AS_ANOTHER,
        strike: distributor::recorded_answers,
        ..COMMON
    },
    Attack {
        number: 59,
        name: "b: key distributor flooded with questions",
        tools: &["tcpreplay"],
        guards: &[Guard::Sarp],
        weaken: &["site-mac"],
        victim: DISTRIBUTOR,
        reasons: &["sarp-request-check"],
        strike: distributor::flood_of_questions,
        ..COMMON
    },
    Attack {
        number: 59,
        name: "c: key distributor cut off, then poisoning",
        tools: &["scapy"],
        guards: &[Guard::Sarp],
        reasons: &["plain-arp", "answered"],
        anonymous: ANSWERED,
        strike: distributor::cut_off,
        ..COMMON
    },
    Attack { name: "d: former key substituted after a key change", strike: former_key::substituted, ..FORMER_KEY },
    Attack { name: "e: roll-back to a revoked key", strike: former_key::rolled_back, ..FORMER_KEY },
];
