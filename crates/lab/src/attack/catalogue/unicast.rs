//! Attacks 41 to 52: frames for one host, and the switch between hosts.

use super::anonymous::{AS_A_SWITCH, LISTENS, ON_THE_WIRE, SENT_AS_ANOTHER, SENT_AS_NOBODY};
use crate::attack::{Attack, COMMON, Untried, cloning, eavesdropping, flipping, injection, path, replay, switching};
use crate::guard::Guard;
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
        anonymous: SENT_AS_ANOTHER,
        strike: replay::replayed_frame,
        ..COMMON
    },
    Attack {
        number: 43,
        name: "frames doubled and reordered",
        tools: &["impairing link"],
        reasons: &["replayed"],
        anonymous: ON_THE_WIRE,
        strike: path::doubled_and_reordered,
        ..COMMON
    },
    Attack {
        number: 44,
        name: "bit flips in header, ciphertext and tag",
        tools: &["impairing link"],
        reasons: &["bad-tag", "bad-spin"],
        anonymous: ON_THE_WIRE,
        strike: flipping::flipped_bits,
        ..COMMON
    },
    Attack {
        number: 45,
        name: "frames cut short and lengthened",
        tools: &["impairing link"],
        reasons: &["bad-tag", "malformed"],
        anonymous: ON_THE_WIRE,
        strike: path::resized,
        ..COMMON
    },
    Attack {
        number: 46,
        name: "eavesdropping for a known payload",
        tools: &["tcpdump"],
        forwarding: Forwarding::Hub,
        anonymous: LISTENS,
        strike: eavesdropping::known_payload,
        ..COMMON
    },
    Attack {
        number: 47,
        name: "reflection to the sender",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        reasons: &["unknown-index", "wrong-peer", "bad-tag", "bad-spin"],
        anonymous: SENT_AS_ANOTHER,
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
        anonymous: SENT_AS_ANOTHER,
        strike: replay::splice,
        ..COMMON
    },
    Attack {
        number: 49,
        name: "MAC cloning steals the switch's entry",
        tools: &["ip", "scapy"],
        honest: ("b", "c"),
        reasons: &["own-source", "plain-arp"],
        anonymous: SENT_AS_ANOTHER,
        strike: cloning::stolen_switch_entry,
        ..COMMON
    },
    Attack {
        number: 50,
        name: "switch's table flooded, frames overheard",
        tools: &["macof"],
        anonymous: SENT_AS_NOBODY,
        strike: switching::full_table,
        ..COMMON
    },
    Attack {
        number: 51,
        name: "hop to another VLAN by a double tag",
        tools: &["yersinia"],
        reasons: &["vlan-tagged", "unsealed"],
        untried: &[Untried::not_testable(Guard::None, NO_VLANS), Untried::not_testable(Guard::Cll, NO_VLANS)],
        ..COMMON
    },
    Attack {
        number: 51,
        name: "datagram behind two tags of VLAN 0",
        tools: &["scapy"],
        reasons: &["vlan-tagged", "unsealed"],
        strike: switching::hidden_behind_tags,
        ..COMMON
    },
    Attack {
        number: 52,
        name: "false spanning tree root, CDP and DTP",
        tools: &["yersinia"],
        reasons: &["unsealed"],
        anonymous: AS_A_SWITCH,
        strike: switching::false_switch,
        ..COMMON
    },
];

/// Why the first attack 51 is not tried.
const NO_VLANS: &str = "it needs two switches with VLANs, and the lab's have none: that takes 802.1Q in the kernel, which many do not have";
