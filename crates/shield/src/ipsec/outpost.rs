//! The kernel as the shield's outpost: told which SPIs are known, shown which numbers have passed.
//!
//! It only ever drops what the shield would drop. An association is entered when it becomes known and removed when it is forgotten, and
//! its window is shown after every packet that passes; between the two the kernel knows less than the shield and lets more pass.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::Ordering;

use super::ike::Name;
use super::kernel::{self, ADDRESS_LEN, ASSOCIATION_LEN, Count, IKE_NAME_LEN, NAME_LEN, PEER_LEN, SETTINGS_LEN};
use super::limits::KERNEL_WINDOWS_MAX;
use super::permutation::KEY_LEN;
use super::settings::Settings;
use super::window::Window;
use crate::Words;

/// The maps that the kernel's program looks things up in.
pub trait Maps: Send {
    /// Replaces what the operator decided.
    fn describe(&mut self, settings: &[u8; SETTINGS_LEN]);

    /// Enters a peer, or replaces it.
    fn put_peer(&mut self, address: &[u8; ADDRESS_LEN], peer: &[u8; PEER_LEN]);

    /// Enters an association, or replaces it.
    fn put_known(&mut self, name: &[u8; NAME_LEN], association: &[u8; ASSOCIATION_LEN]);

    /// Forgets an association.
    fn remove_known(&mut self, name: &[u8; NAME_LEN]);

    /// Enters what messages of IKE are known by.
    fn put_ike(&mut self, name: &[u8; IKE_NAME_LEN]);

    /// Forgets it.
    fn remove_ike(&mut self, name: &[u8; IKE_NAME_LEN]);

    /// The memory of the window in place `slot`, below [`KERNEL_WINDOWS_MAX`].
    fn window(&self, slot: u32) -> Option<Box<dyn Words>>;

    /// What was dropped of the peer with this number, or of strangers (number 0).
    fn counts(&self, peer: u32) -> Count;
}

/// The kernel, as it is told.
pub struct Outpost {
    maps: Box<dyn Maps>,
    /// The window of each association that has one the kernel sees, by peer and SPI.
    slots: BTreeMap<(u32, u32), u32>,
    free: Vec<u32>,
}

impl fmt::Debug for Outpost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outpost with {} windows", self.slots.len())
    }
}

/// Where the kernel sees the window of an association.
pub(super) struct Mirror(Box<dyn Words>);

impl fmt::Debug for Mirror {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mirror")
    }
}

impl Mirror {
    /// Shows `window` as it is now. The highest number comes last: a number that is no longer told apart is forgotten before it counts as
    /// one above the highest does.
    pub(super) fn show(&self, window: &Window) {
        let words = self.0.words();
        for (place, word) in words.iter().skip(1).zip(window.passed()) {
            place.store(*word, Ordering::Release);
        }
        if let Some(highest) = words.first() {
            highest.store(window.highest(), Ordering::Release);
        }
    }
}

impl Outpost {
    pub(super) fn new(mut maps: Box<dyn Maps>, settings: &Settings) -> Outpost {
        maps.describe(&kernel::settings(settings));
        Outpost { maps, slots: BTreeMap::new(), free: (0..KERNEL_WINDOWS_MAX).rev().collect() }
    }

    /// The peer with this number has this address, sends under `keys`, and may be in a later lap.
    pub(super) fn put_peer(&mut self, address: IpAddr, number: u32, keys: Option<&[[u8; KEY_LEN]]>, has_laps: bool) {
        self.maps.put_peer(&kernel::address(address), &kernel::peer(number, keys, has_laps));
    }

    /// An association is known. Where its window is to be shown, if the kernel sees so many.
    pub(super) fn learn(&mut self, peer: u32, spi: u32, window: &Window) -> Option<Mirror> {
        self.forget(peer, spi);
        let slot = self.free.pop();
        let mirror = slot.and_then(|slot| self.maps.window(slot)).map(Mirror);
        if let Some(mirror) = &mirror {
            mirror.show(window);
        }
        self.slots.extend(slot.map(|slot| ((peer, spi), slot)));
        self.maps.put_known(&kernel::name(peer, spi), &kernel::association(slot.filter(|_| mirror.is_some())));
        mirror
    }

    /// An association is not known any more.
    pub(super) fn forget(&mut self, peer: u32, spi: u32) {
        self.maps.remove_known(&kernel::name(peer, spi));
        self.free.extend(self.slots.remove(&(peer, spi)));
    }

    /// Messages of IKE are known by this.
    pub(super) fn learn_ike(&mut self, peer: u32, name: &Name) {
        self.maps.put_ike(&kernel::ike_name(peer, name));
    }

    /// They are no more.
    pub(super) fn forget_ike(&mut self, peer: u32, name: &Name) {
        self.maps.remove_ike(&kernel::ike_name(peer, name));
    }

    pub(super) fn counts(&self, peer: u32) -> Count {
        self.maps.counts(peer)
    }
}
