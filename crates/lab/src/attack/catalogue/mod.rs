//! The attacks, a file for each chapter of numbers: what each needs, what may stop it, and the function that carries it out.

mod anonymous;
mod arp;
mod dhcp;
mod exhaustion;
mod group;
mod ipv6;
mod server;
mod unicast;

use super::Attack;

/// All chapters, by number.
pub(super) const CHAPTERS: &[&[Attack]] = &[
    arp::ATTACKS,
    dhcp::ATTACKS,
    ipv6::ATTACKS,
    unicast::ATTACKS,
    group::ATTACKS,
    exhaustion::ATTACKS,
    server::ATTACKS,
];
