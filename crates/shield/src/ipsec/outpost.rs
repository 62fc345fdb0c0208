//! The kernel as the shield's outpost: told which SPIs are known, with a window that both write.
//!
//! It only ever drops what the shield would drop. An association is entered when it becomes known and removed when it is forgotten. From
//! then on the kernel may hand its packets to the stack by itself, where it can, and this program does not hear of those.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

use super::kernel::{self, ADDRESS_LEN, ASSOCIATION_LEN, Count, IKE_NAME_LEN, NAME_LEN, PEER_LEN, SETTINGS_LEN};
use super::limits::KERNEL_WINDOWS_MAX;
use super::name::Name;
use super::permutation::KEY_LEN;
use super::settings::Settings;
use super::window::{WORDS, Window};
use crate::Words;

/// The maps that the kernel's program looks things up in.
pub trait Maps: Send {
    /// Replaces what the operator decided.
    fn describe(&mut self, settings: &[u8; SETTINGS_LEN]);

    /// Enters a peer, or replaces it.
    fn put_peer(&mut self, address: &[u8; ADDRESS_LEN], peer: &[u8; PEER_LEN]);

    /// Enters an association, or replaces it.
    fn put_known(&mut self, name: &[u8; NAME_LEN], association: &[u8; ASSOCIATION_LEN]);

    /// Replaces a word of the sieve of the peer with this number.
    fn put_sieve(&mut self, peer: u32, word: usize, bits: u64);

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

    /// How many packets of the peer with this number went on to the stack without this program.
    fn passed(&self, peer: u32) -> u64;
}

/// The kernel, as it is told.
pub struct Outpost {
    maps: Box<dyn Maps>,
    /// Each known association, by peer and SPI, with its window if it has one that the kernel sees.
    known: BTreeMap<(u32, u32), Option<u32>>,
    free: Vec<u32>,
}

impl fmt::Debug for Outpost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Outpost with {} associations", self.known.len())
    }
}

impl Outpost {
    pub(super) fn new(mut maps: Box<dyn Maps>, settings: &Settings) -> Outpost {
        maps.describe(&kernel::settings(settings));
        Outpost { maps, known: BTreeMap::new(), free: (0..KERNEL_WINDOWS_MAX).rev().collect() }
    }

    /// The peer with this number has this address, sends under `keys`, and may be in a later lap.
    pub(super) fn put_peer(&mut self, address: IpAddr, number: u32, keys: Option<&[[u8; KEY_LEN]]>, has_laps: bool) {
        self.maps.put_peer(&kernel::address(address), &kernel::peer(number, keys, has_laps));
    }

    /// An association is known, of which `highest` has passed. Its window, if the kernel sees so many.
    pub(super) fn learn(&mut self, peer: u32, spi: u32, highest: u64) -> Option<Window> {
        self.forget(peer, spi);
        let slot = self.free.pop();
        self.known.insert((peer, spi), slot);
        self.sift(peer, spi);
        let memory = slot.and_then(|slot| self.maps.window(slot)).filter(|memory| memory.words().len() >= WORDS);
        let window = memory.map(|memory| Window::within(memory, highest));
        // Last, so that nobody enters anything before. Who finds nothing in the sieve does not look for it here.
        self.maps.put_known(&kernel::name(peer, spi), &kernel::association(slot.filter(|_| window.is_some())));
        window
    }

    /// An association is not known any more.
    pub(super) fn forget(&mut self, peer: u32, spi: u32) {
        self.maps.remove_known(&kernel::name(peer, spi));
        self.free.extend(self.known.remove(&(peer, spi)).flatten());
        self.sift(peer, spi);
    }

    /// Makes the word of the peer's sieve in which `spi` has its bit say which SPIs are known.
    fn sift(&mut self, peer: u32, spi: u32) {
        let (word, _) = kernel::sieve_bit(spi);
        let of_peer = self.known.range((peer, 0)..=(peer, u32::MAX)).map(|((_, spi), _)| kernel::sieve_bit(*spi));
        let bits = of_peer.filter(|(its_word, _)| *its_word == word).fold(0, |bits, (_, bit)| bits | bit);
        self.maps.put_sieve(peer, word, bits);
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

    pub(super) fn passed(&self, peer: u32) -> u64 {
        self.maps.passed(peer)
    }
}
