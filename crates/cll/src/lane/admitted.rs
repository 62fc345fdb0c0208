//! Which IPv6 addresses of which peers this lane lets through without asking. Control decides (`neighbours`) and names a
//! moment after which it wants to be asked again, so that it hears which addresses are in use.

use std::collections::BTreeMap;
use std::net::Ipv6Addr;

use bump::Instant;
use wire::MacAddress;

use crate::limits::{ADDRESS_REFRESH, ADDRESSES_MAX};
use crate::origin::Claims;

/// The addresses, each with the moment until which no question is needed.
#[derive(Debug, Default)]
pub(super) struct Admitted(BTreeMap<(MacAddress, Ipv6Addr), Instant>);

impl Admitted {
    pub(super) fn admit(&mut self, peer: MacAddress, address: Ipv6Addr, until: Instant) {
        if self.0.len() >= ADDRESSES_MAX {
            self.0.retain(|_, other| until.since(*other) < ADDRESS_REFRESH);
        }
        self.0.insert((peer, address), until);
    }

    pub(super) fn withdraw(&mut self, peer: MacAddress, address: Ipv6Addr) {
        self.0.remove(&(peer, address));
    }

    /// Whether all that `peer` claims was granted. A question is control's.
    pub(super) fn covers(&self, now: Instant, peer: MacAddress, claims: &Claims) -> bool {
        let is_granted = |address: Option<Ipv6Addr>| {
            address.is_none_or(|address| self.0.get(&(peer, address)).is_some_and(|until| *until > now))
        };
        claims.question.is_none() && is_granted(claims.source) && is_granted(claims.target)
    }
}
