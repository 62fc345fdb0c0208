//! Who makes the same checks in front of this program, and is told what to check by: the kernel.
//!
//! Of data frames an outpost only ever drops what [`Checks`](crate::Checks) would drop; of what has a tag under the site key, what the daemon
//! would refuse by that tag, and repetitions that come too soon. It is told of a key before the peer can use it, and of its
//! end after the last frame, so nothing is lost when keys change.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use bump::{Ledger, Side};
use wire::MacAddress;
use zeroize::Zeroizing;

use crate::checks::NonceKeys;
use crate::kernel::{self, Count};
use crate::limits::KERNEL_WINDOWS_MAX;
use crate::window::{Window, Words};

/// The checks in front of this program.
pub trait Outpost: Send {
    /// Frames with `index` come from `peer` under `keys` from now on. The window that both look at, or one of this program's own
    /// where the outpost sees no further one.
    fn admit(&mut self, index: u32, peer: MacAddress, keys: &NonceKeys) -> Window;

    /// No frame with `index` is wanted any more, and its window is gone.
    fn dismiss(&mut self, index: u32);

    /// Tags have the hints of these keys from now on.
    fn expect(&mut self, hint_keys: &[Zeroizing<[u8; kernel::HINT_KEY_LEN]>]);

    /// How often it dropped a frame, for each of [`kernel::COUNTED`].
    fn dropped(&self) -> [u64; kernel::COUNTED.len()];
}

/// Enters what an outpost dropped, as if it had come this far.
pub fn enter(outpost: &dyn Outpost, ledger: &mut Ledger) {
    for (reason, count) in kernel::COUNTED.iter().zip(outpost.dropped()) {
        ledger.received[Side::WIRE as usize] += count;
        ledger.dropped[*reason as usize] += count;
    }
}

/// The maps that the kernel's program looks things up in.
pub trait Maps: Send {
    /// Enters what is known of a receiver index, or replaces it; false if there is no room.
    fn put(&mut self, index: u32, receiver: &[u8; kernel::RECEIVER_LEN]) -> bool;

    /// Forgets a receiver index.
    fn remove(&mut self, index: u32);

    /// Gives this peer a share of its own.
    fn acquaint(&mut self, peer: MacAddress);

    /// Replaces what is known of this host.
    fn describe(&mut self, own: &[u8; kernel::SETTINGS_LEN]);

    /// The memory of the window in place `slot`, below [`KERNEL_WINDOWS_MAX`].
    fn window(&self, slot: u32) -> Option<Box<dyn Words>>;

    /// The counters.
    fn counts(&self) -> Count;
}

/// The kernel as an outpost.
pub struct KernelPost<M> {
    maps: M,
    own: kernel::Own,
    /// The window of each index that has one the kernel sees.
    slots: BTreeMap<u32, u32>,
    free: Vec<u32>,
}

impl<M: Maps> KernelPost<M> {
    /// The outpost of the host that `own` describes; nobody is admitted yet.
    pub fn new(mut maps: M, own: kernel::Own) -> KernelPost<M> {
        maps.describe(&own.emit());
        let free = (0..KERNEL_WINDOWS_MAX).rev().collect();
        KernelPost { maps, own, slots: BTreeMap::new(), free }
    }

    /// Gives a host that has proved itself before a share of its own, ahead of its first association.
    pub fn acquaint(&mut self, peer: MacAddress) {
        self.maps.acquaint(peer);
    }

    /// A window that the kernel sees, emptied.
    fn window(&mut self, index: u32) -> Option<Window> {
        let slot = self.free.pop()?;
        let Some(memory) = self.maps.window(slot) else {
            self.free.push(slot);
            return None;
        };
        memory.words().iter().for_each(|word| word.store(0, Ordering::Relaxed));
        let window = Window::within(memory)?;
        self.slots.insert(index, slot);
        Some(window)
    }
}

impl<M: Maps> Outpost for KernelPost<M> {
    fn admit(&mut self, index: u32, peer: MacAddress, keys: &NonceKeys) -> Window {
        let window = self.window(index);
        let slot = self.slots.get(&index).copied();
        self.maps.acquaint(peer);
        let is_known = self.maps.put(index, &kernel::receiver(peer, keys, slot));
        if !is_known && !self.own.strangers_pass {
            // Better a check too few than a peer shut out.
            self.own.strangers_pass = true;
            self.maps.describe(&self.own.emit());
        }
        window.unwrap_or_default()
    }

    fn dismiss(&mut self, index: u32) {
        self.maps.remove(index);
        self.free.extend(self.slots.remove(&index));
    }

    fn expect(&mut self, hint_keys: &[Zeroizing<[u8; kernel::HINT_KEY_LEN]>]) {
        self.own.hint_keys = hint_keys.to_vec();
        self.maps.describe(&self.own.emit());
    }

    fn dropped(&self) -> [u64; kernel::COUNTED.len()] {
        self.maps.counts()
    }
}
