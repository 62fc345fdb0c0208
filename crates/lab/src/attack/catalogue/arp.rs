//! Attacks 1 to 18: ARP, and what takes its place.

use super::anonymous::{AS_A_ROUTER, BEYOND_THE_LAN, NOT_MET, SENT_AS_ANOTHER, SENT_AS_NOBODY};
use crate::attack::{
    Attack, BOTH, COMMON, Untried, cloning, conflict, handshake, insider, poisoning, signed, strangers,
};
use crate::guard::Guard;
use crate::net::Forwarding;

/// Them, by number.
pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        number: 1,
        name: "unsolicited ARP reply",
        tools: &["arpspoof"],
        guards: BOTH,
        reasons: &["plain-arp"],
        strike: poisoning::unsolicited_reply,
        ..COMMON
    },
    Attack {
        number: 2,
        name: "two-way man in the middle",
        tools: &["ettercap"],
        guards: BOTH,
        reasons: &["plain-arp"],
        strike: poisoning::man_in_the_middle,
        ..COMMON
    },
    Attack {
        number: 3,
        name: "man in the middle with discovery",
        tools: &["bettercap"],
        guards: BOTH,
        reasons: &["plain-arp"],
        strike: poisoning::discovery_and_poisoning,
        ..COMMON
    },
    Attack {
        number: 4,
        name: "spoofed ARP request",
        tools: &["scapy"],
        guards: BOTH,
        reasons: &["plain-arp", "answered"],
        anonymous: NOT_MET,
        strike: poisoning::spoofed_request,
        ..COMMON
    },
    Attack {
        number: 5,
        name: "resolution triggered, then raced",
        tools: &["scapy"],
        guards: BOTH,
        reasons: &["plain-arp"],
        strike: poisoning::triggered_race,
        ..COMMON
    },
    Attack {
        number: 6,
        name: "race for the genuine answer",
        tools: &["scapy"],
        guards: BOTH,
        reasons: &["plain-arp"],
        strike: poisoning::race_for_the_answer,
        ..COMMON
    },
    Attack {
        number: 7,
        name: "gratuitous ARP takeover",
        tools: &["arping"],
        guards: BOTH,
        reasons: &["plain-arp", "arp-target"],
        strike: poisoning::gratuitous_takeover,
        ..COMMON
    },
    Attack {
        number: 8,
        name: "address denied to who probes for it",
        tools: &["arping", "scapy"],
        guards: BOTH,
        reasons: &["plain-arp", "arp-conflict"],
        strike: conflict::denied_address,
        ..COMMON
    },
    Attack {
        number: 9,
        name: "fake address conflict",
        tools: &["scapy"],
        guards: BOTH,
        reasons: &["plain-arp", "arp-conflict"],
        strike: conflict::fake_conflict,
        ..COMMON
    },
    Attack {
        number: 10,
        name: "Ethernet source differs from ARP sender",
        tools: &["scapy"],
        guards: BOTH,
        reasons: &["plain-arp", "arp-source"],
        strike: poisoning::other_ethernet_source,
        ..COMMON
    },
    Attack {
        number: 11,
        name: "replayed handshake request and reply",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        weaken: &["freshness", "promotion"],
        // The old request only earns a challenge, which b never asked for either; what is dropped is dropped at b.
        victim: "b",
        reasons: &["handshake-unasked", "repeated"],
        anonymous: SENT_AS_ANOTHER,
        strike: handshake::replayed_handshake,
        ..COMMON
    },
    Attack {
        number: 11,
        name: "replayed signed answer",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        honest: ("a", "c"),
        // Shows what the stamp is worth without a nonce.
        sarp_lines: "sign_requests = false",
        guards: &[Guard::Sarp],
        reasons: &["sarp-stale"],
        anonymous: SENT_AS_ANOTHER,
        strike: signed::replayed_answer,
        ..COMMON
    },
    Attack {
        number: 12,
        name: "replay after a host left, its MAC cloned",
        tools: &["tcpreplay", "ip"],
        forwarding: Forwarding::Hub,
        honest: ("a", "c"),
        reasons: &["replayed", "too-old", "handshake-stale", "handshake-unasked", "repeated"],
        anonymous: SENT_AS_ANOTHER,
        strike: cloning::replay_of_the_departed,
        ..COMMON
    },
    Attack {
        number: 12,
        name: "the same, unheard answer, signed requests",
        tools: &["tcpreplay", "ip"],
        forwarding: Forwarding::Hub,
        honest: ("a", "c"),
        guards: &[Guard::Sarp],
        reasons: &["sarp-nonce"],
        anonymous: SENT_AS_ANOTHER,
        strike: signed::unheard_answer_at_once,
        ..COMMON
    },
    Attack {
        number: 12,
        name: "the same, unheard answer, window over",
        tools: &["tcpreplay", "ip"],
        forwarding: Forwarding::Hub,
        honest: ("a", "c"),
        sarp_lines: "sign_requests = false\nwindow_s = 2",
        guards: &[Guard::Sarp],
        reasons: &["sarp-stale"],
        anonymous: SENT_AS_ANOTHER,
        strike: signed::unheard_answer_later,
        ..COMMON
    },
    Attack {
        number: 13,
        name: "enrolled insider claims another's address",
        tools: &["scapy"],
        weaken: &["cross-layer"],
        reasons: &["inner-source"],
        strike: insider::claims_another_address,
        ..COMMON
    },
    Attack {
        number: 13,
        name: "enrolled insider signs a false hardware address",
        tools: &["scapy"],
        // The tool does not repeat the question's nonce, and what stops an insider who does is the record.
        sarp_lines: "sign_requests = false",
        guards: &[Guard::Sarp],
        reasons: &["sarp-mac"],
        strike: signed::false_hardware_address,
        ..COMMON
    },
    Attack {
        number: 14,
        name: "answer for an address beyond the LAN",
        tools: &["scapy"],
        guards: BOTH,
        reasons: &["plain-arp"],
        anonymous: BEYOND_THE_LAN,
        strike: poisoning::proxy_hijack,
        ..COMMON
    },
    Attack {
        number: 15,
        name: "takeover of a router's virtual address",
        tools: &["yersinia"],
        reasons: &["unsealed"],
        untried: &[
            Untried::does_not_apply(Guard::None, VIRTUAL_ADDRESSES),
            Untried::does_not_apply(Guard::Cll, VIRTUAL_ADDRESSES),
        ],
        ..COMMON
    },
    Attack {
        number: 16,
        name: "malformed messages of CLL",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        untried: &[Untried::does_not_apply(Guard::None, "a bare LAN has nobody who reads them")],
        reasons: &["malformed", "bad-version"],
        strike: strangers::malformed_messages,
        ..COMMON
    },
    Attack {
        number: 16,
        name: "malformed trailer of S-ARP",
        tools: &["scapy"],
        guards: &[Guard::Sarp],
        reasons: &["sarp-malformed"],
        strike: signed::malformed,
        ..COMMON
    },
    Attack {
        number: 17,
        name: "flood of made-up hosts",
        tools: &["scapy"],
        guards: BOTH,
        reasons: &["sarp-unasked", "sarp-budget", "plain-arp"],
        strike: signed::flood_of_strangers,
        ..COMMON
    },
    Attack {
        number: 17,
        name: "flood of peers that were never known",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        untried: &[Untried::does_not_apply(Guard::None, "a bare LAN has no associations that could be lost")],
        reasons: &["unknown-index"],
        anonymous: SENT_AS_NOBODY,
        strike: strangers::forgotten_peers,
        ..COMMON
    },
    Attack {
        number: 18,
        name: "neighbour table swept full",
        tools: &["scapy"],
        forwarding: Forwarding::Hub,
        reasons: &["unsealed"],
        anonymous: AS_A_ROUTER,
        strike: strangers::swept_table,
        ..COMMON
    },
];

/// Why attack 15 is not tried.
const VIRTUAL_ADDRESSES: &str = "a certificate binds one hardware address, so no host of the lab has one that moves";
