//! Attacks 30 to 40: IPv6.

use super::anonymous::{AS_A_GUEST, AS_A_SWITCH, SENT_AS_ANOTHER, SENT_AS_NOBODY};
use crate::attack::ipv6::{groups, leases, neighbours, routers};
use crate::attack::{Attack, WITH_IPV6};
use crate::guard::ROUTER;
use crate::net::Forwarding;

/// Them, by number.
pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        number: 30,
        name: "overriding neighbour advertisements",
        tools: &["atk6-parasite6", "scapy"],
        strike: neighbours::overridden_entry,
        ..WITH_IPV6
    },
    Attack {
        number: 31,
        name: "solicitation with a false link-layer address",
        tools: &["scapy"],
        strike: neighbours::false_solicitation,
        ..WITH_IPV6
    },
    Attack {
        number: 32,
        name: "rogue router",
        tools: &["atk6-fake_router6"],
        strike: routers::rogue_router,
        ..WITH_IPV6
    },
    Attack {
        number: 33,
        name: "rogue router behind an extension header",
        tools: &["atk6-fake_router26"],
        strike: routers::hidden_router,
        ..WITH_IPV6
    },
    Attack {
        number: 34,
        name: "flood of routers",
        tools: &["atk6-flood_router26"],
        anonymous: SENT_AS_NOBODY,
        strike: routers::flood_of_routers,
        ..WITH_IPV6
    },
    Attack {
        number: 35,
        name: "router's farewell in its name",
        tools: &["atk6-kill_router6"],
        strike: routers::killed_router,
        ..WITH_IPV6
    },
    Attack {
        number: 36,
        name: "IPv6 address denied to who asks for it",
        tools: &["atk6-dos-new-ip6", "scapy"],
        strike: neighbours::denied_address,
        ..WITH_IPV6
    },
    Attack {
        number: 37,
        name: "redirect in the router's name",
        // The attacker sends in the router's name, and a switch would give him the router's frames as well.
        forwarding: Forwarding::Hub,
        tools: &["atk6-redir6", "scapy"],
        anonymous: SENT_AS_ANOTHER,
        strike: routers::false_redirect,
        ..WITH_IPV6
    },
    Attack {
        number: 38,
        name: "rogue DHCPv6 server",
        tools: &["atk6-fake_dhcps6", "scapy"],
        strike: leases::rogue_server,
        ..WITH_IPV6
    },
    Attack {
        number: 39,
        name: "exhaustion of a router's neighbour table",
        tools: &["atk6-ndpexhaust26", "scapy"],
        victim: ROUTER,
        honest: (ROUTER, "b"),
        anonymous: AS_A_GUEST,
        strike: neighbours::exhausted_table,
        ..WITH_IPV6
    },
    Attack {
        number: 40,
        name: "takeover of the multicast querier",
        tools: &["atk6-fake_mldrouter6", "atk6-fake_mld26"],
        anonymous: AS_A_SWITCH,
        strike: groups::querier_takeover,
        ..WITH_IPV6
    },
];
