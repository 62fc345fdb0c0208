//! The kernel as a host's outpost: the shield's program in front of the wire's socket, and its maps.
//!
//! It is opened with the privileges of the start. Afterwards the daemon keeps nothing but the descriptors, which is enough to enter
//! keys and to read counters, and which end with it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use shield::kernel::{self, Count, Own};
use shield::{KernelPost, Layers, Maps, Words};
use system::bpf::{Instruction, Kind, Map, Program, Shape, Shared};
use system::port::PacketPort;

/// What a lister of the kernel's programs reads.
const NAME: &str = "ringwall_shield";

/// Where forged frames end, and what the kernel has dropped of them.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    /// As configured.
    pub(super) wanted: Layers,
    /// As it is.
    pub(super) in_force: Layers,
    /// Why it is another, in one line.
    pub(super) reason: Option<String>,
    counters: Option<Shared>,
}

impl Standing {
    /// As configured, without the kernel.
    pub(super) fn without_kernel(wanted: Layers) -> Standing {
        let in_force = if wanted == Layers::Kernel { Layers::Twin } else { wanted };
        Standing { wanted, in_force, reason: None, counters: None }
    }

    /// How often the kernel has dropped a frame, for each of [`kernel::COUNTED`].
    pub(super) fn dropped_in_kernel(&self) -> Count {
        self.counters.as_ref().map(counts).unwrap_or_default()
    }
}

/// The kernel as outpost.
pub(super) type Outpost = KernelPost<KernelMaps>;

/// Puts the program in front of `port` if `wanted` says so. Where the kernel has none, the twin makes the same checks.
pub(super) fn open(wanted: Layers, own: Own, port: &PacketPort) -> (Option<Outpost>, Standing) {
    let standing = Standing::without_kernel(wanted);
    if wanted != Layers::Kernel {
        return (None, standing);
    }
    match attach(port) {
        Ok(maps) => {
            let counters = Some(maps.counters.clone());
            (Some(KernelPost::new(maps, own)), Standing { in_force: Layers::Kernel, counters, ..standing })
        }
        Err(error) => {
            let reason = format!("the kernel does not take the shield's program: {error}");
            (None, Standing { reason: Some(reason), ..standing })
        }
    }
}

fn attach(port: &PacketPort) -> io::Result<KernelMaps> {
    let (maps, program) = load()?;
    port.filter_by(&program)?;
    Ok(maps)
}

/// Makes the maps and loads the program.
fn load() -> io::Result<(KernelMaps, Program)> {
    let shape = |shape: kernel::MapShape| Shape {
        hashed: shape.hashed,
        shared: shape.shared,
        value_len: shape.value_len,
        entries: shape.entries,
    };
    let maps = kernel::MAPS.into_iter().map(|of| Map::create(shape(of))).collect::<io::Result<Vec<_>>>()?;
    let program = Program::load(Kind::SocketFilter, NAME, &Instruction::read(kernel::PROGRAM), &maps)?;
    let windows = maps[kernel::WINDOWS].share()?;
    let counters = maps[kernel::COUNTERS].share()?;
    let mut maps = maps.into_iter();
    match (maps.next(), maps.next()) {
        (Some(settings), Some(receivers)) => Ok((KernelMaps { settings, receivers, windows, counters }, program)),
        _ => Err(io::ErrorKind::InvalidData.into()),
    }
}

/// The maps of the program.
pub(super) struct KernelMaps {
    settings: Map,
    receivers: Map,
    windows: Shared,
    counters: Shared,
}

impl Maps for KernelMaps {
    fn put(&mut self, index: u32, receiver: &[u8; kernel::RECEIVER_LEN]) -> bool {
        self.receivers.put(index, receiver).is_ok()
    }

    fn remove(&mut self, index: u32) {
        // One that found no room is not there.
        let _ = self.receivers.remove(index);
    }

    fn describe(&mut self, own: &[u8; kernel::SETTINGS_LEN]) {
        // Without an entry the program lets everything pass, and the twin decides.
        let _ = self.settings.put(0, own);
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
mod tests;
