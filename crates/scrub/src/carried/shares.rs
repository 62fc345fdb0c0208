//! What one untrusted host may have of the kernel's places and rings: a part of each, so that who
//! opens many connections leaves some to others. Those beyond it stay with the daemon.

use std::collections::HashMap;

use super::layout::PLACES;
use super::rings::{Ring, SIZES};
use crate::limits::CARRIED_SOURCE_PART;
use crate::settings::Network;

/// What a host holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Share {
    places: u32,
    /// By size.
    rings: [u32; SIZES.len()],
}

/// What each untrusted host holds, or [network](crate::tcp::sources::untrusted): of those that hold
/// anything, so no more than there are places.
#[derive(Debug, Default)]
pub(super) struct Shares(HashMap<Network, Share>);

/// A part of `all`, but one in any case.
fn part(all: u32) -> u32 {
    (all / CARRIED_SOURCE_PART).max(1)
}

impl Shares {
    /// How many hosts hold anything.
    #[cfg(test)]
    pub(super) fn holders(&self) -> usize {
        self.0.len()
    }

    fn of(&self, host: &Network) -> Share {
        self.0.get(host).copied().unwrap_or_default()
    }

    /// Whether `host` may have one more place.
    pub(super) fn has_place(&self, host: &Network) -> bool {
        self.of(host).places < part(PLACES)
    }

    /// How many rings more of `size` `host` may have.
    pub(super) fn rings_left(&self, host: &Network, size: usize) -> u32 {
        part(SIZES[size].1).saturating_sub(self.of(host).rings[size])
    }

    /// `host` has one more place.
    pub(super) fn take_place(&mut self, host: Network) {
        self.0.entry(host).or_default().places += 1;
    }

    /// `host` has `ring`.
    pub(super) fn take_ring(&mut self, host: Network, ring: Ring) {
        self.0.entry(host).or_default().rings[ring.size()] += 1;
    }

    /// `host` has given `ring` back.
    pub(super) fn give_ring(&mut self, host: Network, ring: Ring) {
        self.change(host, |share| share.rings[ring.size()] = share.rings[ring.size()].saturating_sub(1));
    }

    /// `host` has given a place back.
    pub(super) fn give_place(&mut self, host: Network) {
        self.change(host, |share| share.places = share.places.saturating_sub(1));
    }

    fn change(&mut self, host: Network, change: impl FnOnce(&mut Share)) {
        let Some(share) = self.0.get_mut(&host) else { return };
        change(share);
        if *share == Share::default() {
            self.0.remove(&host);
        }
    }
}
