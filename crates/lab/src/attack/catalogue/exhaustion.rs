//! Attack 58: floods that cost their receiver more than their sender.

use super::anonymous::{SENT_AS_ANOTHER, SENT_AS_NOBODY};
use crate::attack::{Attack, COMMON, exhaustion};
use crate::net::Forwarding;

/// Them, by number.
pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        number: 58,
        name: "a: flood with a wrong receiver index",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        weakened_cll_lines: "layers = \"none\"",
        reasons: &["unknown-index"],
        anonymous: SENT_AS_ANOTHER,
        strike: exhaustion::wrong_index,
        ..COMMON
    },
    Attack {
        number: 58,
        name: "b: flood with a wrong nonce",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        weakened_cll_lines: "layers = \"none\"",
        reasons: &["bad-spin"],
        anonymous: SENT_AS_ANOTHER,
        strike: exhaustion::wrong_nonce,
        ..COMMON
    },
    Attack {
        number: 58,
        name: "c: flood with right nonces and a wrong tag",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        // Who heard a nonce is behind the frame that it was of; without the window that does not matter.
        weaken: &["replay-window"],
        reasons: &["replayed", "too-old"],
        anonymous: SENT_AS_ANOTHER,
        strike: exhaustion::wrong_tag,
        ..COMMON
    },
    Attack {
        number: 58,
        name: "d: flood of handshakes from made-up hosts",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        // Where a stranger's time is believed as well; otherwise a challenge takes the place of the missing tag.
        weaken: &["site-mac", "freshness"],
        reasons: &["handshake-site-mac"],
        anonymous: SENT_AS_NOBODY,
        strike: exhaustion::handshake_flood,
        ..COMMON
    },
    Attack {
        number: 58,
        name: "e: flood of a replayed handshake request",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        weaken: &["freshness"],
        // Some are answered, by a challenge that is cheap and that b never asked for.
        reasons: &["repeated", "handshake-stale", "handshake-budget", "answered"],
        anonymous: SENT_AS_ANOTHER,
        strike: exhaustion::handshake_replay,
        ..COMMON
    },
    Attack {
        number: 58,
        name: "e: the same, without budgets behind freshness",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        weaken: &["freshness", "budgets"],
        reasons: &["repeated", "handshake-stale", "handshake-budget", "answered"],
        anonymous: SENT_AS_ANOTHER,
        strike: exhaustion::handshake_replay_without_budgets,
        ..COMMON
    },
    Attack {
        number: 58,
        name: "f: flood of forged signatures to all",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        weaken: &["site-mac"],
        reasons: &["group-tag"],
        anonymous: SENT_AS_ANOTHER,
        strike: exhaustion::group_flood,
        ..COMMON
    },
    Attack {
        number: 58,
        name: "g: sequence numbers burnt",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        weaken: &["tag"],
        readable: true,
        reasons: &["bad-spin"],
        anonymous: SENT_AS_ANOTHER,
        strike: exhaustion::burnt_numbers,
        ..COMMON
    },
];
