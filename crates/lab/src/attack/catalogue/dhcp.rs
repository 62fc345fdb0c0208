//! Attacks 19 to 29: DHCP.

use super::anonymous::{SENT_AS_ANOTHER, SENT_AS_NOBODY, WITH_A_STOLEN_KEY};
use crate::attack::{Attack, LEASES, belief, dhcp, stolen_key};
use crate::guard::{DHCP_CLIENT, Guard};
use crate::net::Forwarding;

/// Them, by number.
pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        number: 19,
        name: "starvation by made-up DHCP clients",
        tools: &["scapy"],
        reasons: &["dhcp-chaddr", "unsealed"],
        strike: dhcp::starvation,
        ..LEASES
    },
    Attack {
        number: 19,
        name: "flood of DISCOVER by made-up clients",
        tools: &["yersinia"],
        guards: &[Guard::Cll],
        reasons: &["unsealed"],
        anonymous: SENT_AS_NOBODY,
        strike: dhcp::flood_of_questions,
        ..LEASES
    },
    Attack {
        number: 20,
        name: "starvation, each client with its own frames",
        tools: &["scapy"],
        reasons: &["dhcp-unsigned", "unsealed"],
        anonymous: SENT_AS_NOBODY,
        strike: dhcp::starvation_in_pairs,
        ..LEASES
    },
    Attack {
        number: 21,
        name: "rogue DHCP server",
        tools: &["dnsmasq", "scapy"],
        victim: DHCP_CLIENT,
        reasons: &["dhcp-unsigned", "unsealed"],
        strike: belief::rogue_server,
        ..LEASES
    },
    Attack {
        number: 22,
        name: "release of another's lease",
        tools: &["scapy"],
        reasons: &["dhcp-unsigned", "unsealed"],
        anonymous: SENT_AS_ANOTHER,
        strike: dhcp::foreign_release,
        ..LEASES
    },
    Attack {
        number: 23,
        name: "flood of DECLINE in another's name",
        tools: &["scapy"],
        reasons: &["dhcp-unsigned", "unsealed"],
        anonymous: SENT_AS_ANOTHER,
        strike: dhcp::foreign_decline,
        ..LEASES
    },
    Attack {
        number: 24,
        name: "injected NAK",
        tools: &["scapy"],
        victim: DHCP_CLIENT,
        reasons: &["dhcp-unsigned", "unsealed"],
        strike: belief::injected_refusal,
        ..LEASES
    },
    Attack {
        number: 25,
        name: "replayed REQUEST of a host that left",
        tools: &["tcpreplay"],
        reasons: &["dhcp-stale"],
        anonymous: SENT_AS_ANOTHER,
        strike: dhcp::replayed_request,
        ..LEASES
    },
    Attack {
        number: 25,
        name: "replayed ACK with a former router",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        victim: DHCP_CLIENT,
        reasons: &["dhcp-unasked"],
        anonymous: SENT_AS_ANOTHER,
        strike: belief::replayed_grant,
        ..LEASES
    },
    Attack {
        number: 26,
        name: "injected ACK with router and DNS server",
        tools: &["scapy"],
        victim: DHCP_CLIENT,
        reasons: &["dhcp-unsigned", "unsealed"],
        strike: belief::injected_options,
        ..LEASES
    },
    Attack {
        number: 27,
        name: "made-up relay agent and circuit",
        tools: &["scapy"],
        reasons: &["dhcp-relay", "unsealed"],
        strike: dhcp::forged_relay,
        ..LEASES
    },
    Attack {
        number: 28,
        name: "client renews without end",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        guards: &[Guard::Cll],
        reasons: &["dhcp-budget"],
        anonymous: WITH_A_STOLEN_KEY,
        strike: stolen_key::endless_renewal,
        ..LEASES
    },
    Attack {
        number: 29,
        name: "starvation with the key of one client",
        tools: &["tcpreplay"],
        guards: &[Guard::Cll],
        reasons: &["dhcp-tag", "dhcp-chaddr"],
        anonymous: WITH_A_STOLEN_KEY,
        strike: stolen_key::others_leases,
        ..LEASES
    },
];
