//! Attacks 53 to 57: frames for many hosts.

use crate::attack::{Attack, COMMON, group};
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
];
