//! Attacks 41 to 52: frames for one host, and the switch between hosts.

use crate::attack::{Attack, COMMON, cloning, eavesdropping, flipping, injection, replay};
use crate::net::Forwarding;

/// Them, by number.
pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        number: 41,
        name: "injected IP with a spoofed source",
        tools: &["hping3", "scapy"],
        forwarding: Forwarding::Hub,
        reasons: &["unsealed"],
        strike: injection::spoofed_source,
        ..COMMON
    },
    Attack {
        number: 42,
        name: "replayed frame",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        reasons: &["replayed", "too-old"],
        strike: replay::replayed_frame,
        ..COMMON
    },
    Attack {
        number: 44,
        name: "bit flips in header, ciphertext and tag",
        tools: &["impairing link"],
        reasons: &["bad-tag", "bad-spin"],
        strike: flipping::flipped_bits,
        ..COMMON
    },
    Attack {
        number: 46,
        name: "eavesdropping for a known payload",
        tools: &["tcpdump"],
        forwarding: Forwarding::Hub,
        strike: eavesdropping::known_payload,
        ..COMMON
    },
    Attack {
        number: 47,
        name: "reflection to the sender",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        reasons: &["unknown-index", "wrong-peer", "bad-tag", "bad-spin"],
        strike: replay::reflection,
        ..COMMON
    },
    Attack {
        number: 48,
        name: "splice into another association",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        victim: "c",
        reasons: &["unknown-index", "wrong-peer", "bad-tag", "bad-spin"],
        strike: replay::splice,
        ..COMMON
    },
    Attack {
        number: 49,
        name: "MAC cloning steals the switch's entry",
        tools: &["ip", "scapy"],
        honest: ("b", "c"),
        reasons: &["own-source"],
        strike: cloning::stolen_switch_entry,
        ..COMMON
    },
];
