//! What stands around a card that stays where it is.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::belt::Belt;
use super::guard::Guard;

/// What stands around a card that stays in place. It stays when this is dropped.
#[derive(Clone, Debug)]
pub struct Fence {
    /// None where the kernel carries the bulk.
    pub(super) guard: Option<Guard>,
    pub(super) belt: Belt,
}

impl Fence {
    /// Messages of ARP in clear that ended in front of the card since this daemon took it.
    #[must_use]
    pub fn arp_dropped(&self) -> u64 {
        self.guard.as_ref().map_or(0, Guard::arp_dropped)
    }

    /// Other frames that ended there since then.
    #[must_use]
    pub fn others_dropped(&self) -> u64 {
        self.guard.as_ref().map_or(0, Guard::others_dropped)
    }

    /// Hands all frames in clear to the daemon, which judges them by its rules; or, as at the
    /// start, a sample.
    pub fn set_open(&self, open: bool) {
        if let Some(guard) = &self.guard {
            guard.set_open(open);
        }
    }

    /// The TAP by which frames in clear come, with vnet headers of
    /// [`VNET_HEADER_LEN`](crate::tap_device::VNET_HEADER_LEN) bytes, non-blocking.
    #[must_use]
    pub fn clear(&self) -> Option<Arc<OwnedFd>> {
        self.guard.as_ref().and_then(Guard::clear)
    }

    /// Whether somebody has taken the rules away. Nothing leaves then, until the card is taken
    /// again.
    #[must_use]
    pub fn is_torn(&self) -> bool {
        self.belt.dropped() > 0
    }
}
