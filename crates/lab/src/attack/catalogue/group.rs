//! Attacks 53 to 57: frames for many hosts.

use super::anonymous::{AS_A_BALANCER, SENT_AS_ANOTHER};
use crate::attack::{Attack, COMMON, Untried, group, signed_group};
use crate::guard::Guard;
use crate::net::Forwarding;

/// Them, by number.
pub(super) const ATTACKS: &[Attack] = &[
    Attack {
        number: 53,
        name: "forged service discovery (mDNS)",
        // The forger sends in b's name, and a switch would give him b's frames as well.
        forwarding: Forwarding::Hub,
        tools: &["scapy"],
        reasons: &["unsealed"],
        anonymous: SENT_AS_ANOTHER,
        strike: group::forged_discovery,
        ..COMMON
    },
    Attack {
        number: 54,
        name: "smurf: echo to all in another's name",
        tools: &["hping3"],
        reasons: &["unsealed"],
        strike: group::smurf,
        ..COMMON
    },
    Attack {
        number: 55,
        name: "frame to all replayed across a restart",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        reasons: &["group-unproved", "group-replayed", "repeated"],
        anonymous: SENT_AS_ANOTHER,
        strike: signed_group::replay_across_a_restart,
        ..COMMON
    },
    Attack {
        number: 56,
        name: "packet for one host in a frame to all",
        tools: &["scapy"],
        reasons: &["group-unicast"],
        anonymous: AS_A_BALANCER,
        strike: signed_group::packet_for_one,
        ..COMMON
    },
    Attack {
        number: 57,
        name: "flood of certificates",
        tools: &["tcpreplay"],
        forwarding: Forwarding::Hub,
        untried: &[Untried::does_not_apply(Guard::None, "a bare LAN has no certificates")],
        reasons: &["group-unasked", "group-tag", "repeated"],
        anonymous: SENT_AS_ANOTHER,
        strike: signed_group::flood_of_certificates,
        ..COMMON
    },
];
