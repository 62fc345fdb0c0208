//! The program in front of the link layer, and its maps.
//!
//! It is opened with the privileges of the start. Afterwards the daemon keeps nothing but the
//! descriptors, which is enough to enter keys and to read counters, and which end with it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use shield::kernel::{self, Count, Own};
use shield::{Hook, KernelPost, Layers, Maps, Words};
use system::bpf::{Instruction, Map, Program, Shared};
use wire::MacAddress;

use crate::host::kernel::{self as place, Front, Standing};

/// What a lister of the kernel's programs reads.
const NAME: &str = "ringwall_shield";

/// The kernel as outpost.
pub(super) type Outpost = KernelPost<KernelMaps>;

/// Puts the program where `front` says if `wanted` says so. Where the kernel has none, the twin
/// makes the same checks.
pub(super) fn open(wanted: Layers, own: Own, front: &Front<'_>) -> (Option<Outpost>, Standing) {
    if wanted != Layers::Kernel {
        return (None, Standing::without_kernel(wanted));
    }
    match front.post(load) {
        Ok(posted) => {
            let counters = posted.maps.counters.clone();
            let standing =
                Standing::in_kernel(&posted, move || kernel::COUNTED.into_iter().zip(counts(&counters)).collect());
            let own = Own { joined_unmarked: posted.hook.hides_joined(), ..own };
            (Some(KernelPost::new(posted.maps.held_by(posted.link), own)), standing)
        }
        Err(error) => (None, Standing::refused(&error)),
    }
}

/// Makes the maps and loads the program for this place.
fn load(hook: Hook) -> io::Result<(KernelMaps, Program)> {
    let maps = kernel::MAPS.into_iter().map(place::make).collect::<io::Result<Vec<_>>>()?;
    let program = Program::load(place::kind(hook), NAME, &Instruction::read(kernel::program(hook)), &maps)?;
    let windows = maps[kernel::WINDOWS].share()?;
    let counters = maps[kernel::COUNTERS].share()?;
    let [settings, receivers, _, _, _, peers]: [Map; kernel::MAPS.len()] =
        maps.try_into().map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    Ok((KernelMaps { settings, receivers, peers, windows, counters, _link: None }, program))
}

/// The maps of the program.
pub(super) struct KernelMaps {
    settings: Map,
    receivers: Map,
    peers: Map,
    windows: Shared,
    counters: Shared,
    /// With it the program would leave the card.
    _link: Option<OwnedFd>,
}

impl KernelMaps {
    /// The same, of a program that `link` holds in its place.
    fn held_by(self, link: Option<OwnedFd>) -> KernelMaps {
        KernelMaps { _link: link, ..self }
    }
}

impl Maps for KernelMaps {
    fn put(&mut self, index: u32, receiver: &[u8; kernel::RECEIVER_LEN]) -> bool {
        self.receivers.put(&index.to_ne_bytes(), receiver).is_ok()
    }

    fn remove(&mut self, index: u32) {
        // One that found no room is not there.
        let _ = self.receivers.remove(&index.to_ne_bytes());
    }

    fn acquaint(&mut self, peer: MacAddress) {
        // One without a share comes behind the others in a flood.
        let _ = self.peers.put(&kernel::peer(peer), &kernel::WHOLE_SHARE);
    }

    fn describe(&mut self, own: &[u8; kernel::SETTINGS_LEN]) {
        // Without an entry the program lets everything pass, and the twin decides.
        let _ = self.settings.put(&[0; 4], own);
    }

    fn window(&self, slot: u32) -> Option<Box<dyn Words>> {
        let begin = slot as usize * shield::window::WORDS;
        let is_there = begin + shield::window::WORDS <= self.windows.words().len();
        is_there.then(|| Box::new(SharedWindow { windows: self.windows.clone(), begin }) as Box<dyn Words>)
    }

    fn counts(&self) -> Count {
        counts(&self.counters)
    }
}

fn counts(counters: &Shared) -> Count {
    let mut counts = Count::default();
    counts.iter_mut().zip(counters.words()).for_each(|(count, word)| *count = word.load(Ordering::Relaxed));
    counts
}

/// The memory of one window that the kernel sees.
struct SharedWindow {
    windows: Shared,
    begin: usize,
}

impl Words for SharedWindow {
    fn words(&self) -> &[AtomicU64] {
        &self.windows.words()[self.begin..self.begin + shield::window::WORDS]
    }
}

#[cfg(test)]
pub(in crate::modes) mod tests;
