//! Attacks 19 to 29: DHCP.

use crate::attack::{Attack, LEASES, belief, dhcp};
use crate::guard::DHCP_CLIENT;
use crate::net::Forwarding;

/// Them, by number.
pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        number: 19,
        name: "starvation by made-up DHCP clients",
        tools: &["scapy"],
        reasons: &["dhcp-chaddr"],
        strike: dhcp::starvation,
        ..LEASES
    },
    Attack {
        number: 20,
        name: "starvation, each client with its own frames",
        tools: &["scapy"],
        reasons: &["dhcp-unsigned"],
        strike: dhcp::starvation_in_pairs,
        ..LEASES
    },
    Attack {
        number: 21,
        name: "rogue DHCP server",
        tools: &["dnsmasq"],
        victim: DHCP_CLIENT,
        reasons: &["dhcp-unsigned"],
        strike: belief::rogue_server,
        ..LEASES
    },
    Attack {
        number: 22,
        name: "release of another's lease",
        tools: &["scapy"],
        reasons: &["dhcp-unsigned"],
        strike: dhcp::foreign_release,
        ..LEASES
    },
    Attack {
        number: 23,
        name: "flood of DECLINE in another's name",
        tools: &["scapy"],
        reasons: &["dhcp-unsigned"],
        strike: dhcp::foreign_decline,
        ..LEASES
    },
    Attack {
        number: 24,
        name: "injected NAK",
        tools: &["scapy"],
        victim: DHCP_CLIENT,
        reasons: &["dhcp-unsigned"],
        strike: belief::injected_refusal,
        ..LEASES
    },
    Attack {
        number: 25,
        name: "replayed REQUEST of a host that left",
        tools: &["tcpreplay"],
        reasons: &["dhcp-stale"],
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
        strike: belief::replayed_grant,
        ..LEASES
    },
    Attack {
        number: 26,
        name: "injected ACK with router and DNS server",
        tools: &["scapy"],
        victim: DHCP_CLIENT,
        reasons: &["dhcp-unsigned"],
        strike: belief::injected_options,
        ..LEASES
    },
    Attack {
        number: 27,
        name: "made-up relay agent and circuit",
        tools: &["scapy"],
        reasons: &["dhcp-relay"],
        strike: dhcp::forged_relay,
        ..LEASES
    },
];
