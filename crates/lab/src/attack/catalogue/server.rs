//! Attack 59: on the key distributor of S-ARP.

use crate::attack::{Attack, COMMON, distributor};
use crate::guard::{DISTRIBUTOR, Guard};
use crate::net::Forwarding;

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
        strike: distributor::cut_off,
        ..COMMON
    },
];
