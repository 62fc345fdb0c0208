//! The program in front of an IPsec stack's shield, and its maps.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use bump::DropReason;
use shield::ipsec::kernel::{
    self, ADDRESS_LEN, ASSOCIATION_LEN, Count, IKE_NAME_LEN, NAME_LEN, PEER_LEN, SETTINGS_LEN,
};
use shield::ipsec::{Maps, limits};
use shield::{Hook, Words};
use system::bpf::{Instruction, Map, Program, Shared};

use super::place;

/// What a lister of the kernel's programs reads.
const NAME: &str = "ringwall_ipsec";

/// Makes the maps and loads the program for this place. In front of the socket it takes the place of the filter that says what is
/// kept, which it says as well.
pub(super) fn load(hook: Hook) -> io::Result<(IpsecMaps, Program)> {
    let maps = kernel::MAPS.into_iter().map(place::make).collect::<io::Result<Vec<_>>>()?;
    let program = Program::load(place::kind(hook), NAME, &Instruction::read(kernel::program(hook)), &maps)?;
    let (windows, books) = (maps[kernel::WINDOWS].share()?, Books(maps[kernel::BOOKS].share()?));
    let mut maps = maps.into_iter();
    match (maps.next(), maps.next(), maps.next(), maps.next_back()) {
        (Some(settings), Some(peers), Some(known), Some(exchanges)) => {
            let (joined_unmarked, _link) = (false, None);
            let maps = IpsecMaps { settings, peers, known, exchanges, windows, books, joined_unmarked, _link };
            Ok((maps, program))
        }
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The maps of the program.
pub(crate) struct IpsecMaps {
    settings: Map,
    peers: Map,
    known: Map,
    exchanges: Map,
    windows: Shared,
    books: Books,
    joined_unmarked: bool,
    /// With it the program would leave the card.
    _link: Option<OwnedFd>,
}

impl IpsecMaps {
    /// The same, of a program that `link` holds at `hook`.
    pub(super) fn at(self, hook: Hook, link: Option<OwnedFd>) -> IpsecMaps {
        IpsecMaps { joined_unmarked: hook.hides_joined(), _link: link, ..self }
    }

    /// What it counts.
    pub(super) fn books(&self) -> Books {
        self.books.clone()
    }
}

/// The counters of all peers.
#[derive(Clone, Debug)]
pub(super) struct Books(Shared);

impl Books {
    fn of(&self, peer: u32) -> Count {
        let mut count = Count::default();
        let words = self.0.words().iter().skip(peer as usize * kernel::BOOKS_WORDS);
        count.iter_mut().zip(words).for_each(|(count, word)| *count = word.load(Ordering::Relaxed));
        count
    }

    /// Of all peers and of strangers together, by reason.
    pub(super) fn total(&self) -> Vec<(DropReason, u64)> {
        let mut total = Count::default();
        for of_one in (0..=limits::PEERS_MAX as u32).map(|peer| self.of(peer)) {
            total.iter_mut().zip(of_one).for_each(|(total, count)| *total += count);
        }
        kernel::COUNTED.into_iter().zip(total).collect()
    }
}

impl Maps for IpsecMaps {
    // What finds no room in a map, of which each has as many places as there may be entries, the program takes for unknown.
    fn describe(&mut self, settings: &[u8; SETTINGS_LEN]) {
        let settings = if self.joined_unmarked { kernel::with_joined_unmarked(*settings) } else { *settings };
        let _ = self.settings.put(&[0; 4], &settings);
    }

    fn put_peer(&mut self, address: &[u8; ADDRESS_LEN], peer: &[u8; PEER_LEN]) {
        let _ = self.peers.put(address, peer);
    }

    fn put_known(&mut self, name: &[u8; NAME_LEN], association: &[u8; ASSOCIATION_LEN]) {
        let _ = self.known.put(name, association);
    }

    fn remove_known(&mut self, name: &[u8; NAME_LEN]) {
        // One that is new is not there.
        let _ = self.known.remove(name);
    }

    fn put_ike(&mut self, name: &[u8; IKE_NAME_LEN]) {
        let _ = self.exchanges.put(name, &[1]);
    }

    fn remove_ike(&mut self, name: &[u8; IKE_NAME_LEN]) {
        let _ = self.exchanges.remove(name);
    }

    fn window(&self, slot: u32) -> Option<Box<dyn Words>> {
        let begin = slot as usize * kernel::WINDOW_WORDS;
        let is_there = begin + kernel::WINDOW_WORDS <= self.windows.words().len();
        is_there.then(|| Box::new(SharedWindow { windows: self.windows.clone(), begin }) as Box<dyn Words>)
    }

    fn counts(&self, peer: u32) -> Count {
        self.books.of(peer)
    }
}

/// The memory of one window that the kernel sees.
struct SharedWindow {
    windows: Shared,
    begin: usize,
}

impl Words for SharedWindow {
    fn words(&self) -> &[AtomicU64] {
        &self.windows.words()[self.begin..self.begin + kernel::WINDOW_WORDS]
    }
}

#[cfg(test)]
mod tests;
