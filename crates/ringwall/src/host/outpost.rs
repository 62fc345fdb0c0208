//! The kernel as a host's outpost: the shield's program in front of the wire's socket or of the card, and its maps; `ipsec.rs` has those
//! in front of IPsec, `sarp.rs` those in front of signed ARP, `place.rs` where a program stands.
//!
//! It is opened with the privileges of the start. Afterwards the daemon keeps nothing but the descriptors, which is enough to enter
//! keys and to read counters, and which end with it.

mod ipsec;
mod place;
mod sarp;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use bump::DropReason;
use shield::kernel::{self, Count, Own};
use shield::{Hook, KernelPost, Layers, Maps, Words};
use system::bpf::{Instruction, Map, Program, Shared};
use wire::MacAddress;

pub(super) use ipsec::{IpsecMaps, Way};
use place::Posted;
pub(super) use place::{AttachToCard, Front};
pub(super) use sarp::SarpMaps;

/// What a lister of the kernel's programs reads.
const NAME: &str = "ringwall_shield";

/// Where forged frames end, and what the kernel has dropped of them.
#[derive(Clone, Debug)]
pub(super) struct Standing {
    /// As configured.
    pub(super) wanted: Layers,
    /// As it is.
    pub(super) in_force: Layers,
    /// At which place in the kernel.
    pub(super) hook: Option<Hook>,
    /// Why it is another, or at another place, in one line.
    pub(super) reason: Option<String>,
    counters: Option<Counters>,
}

/// What the kernel counts, by what its program is in front of.
#[derive(Clone, Debug)]
enum Counters {
    LinkLayer(Shared),
    Ipsec(ipsec::Books),
    Sarp(sarp::Books),
}

impl Standing {
    /// As configured, without the kernel.
    pub(super) fn without_kernel(wanted: Layers) -> Standing {
        let in_force = if wanted == Layers::Kernel { Layers::Twin } else { wanted };
        Standing { wanted, in_force, hook: None, reason: None, counters: None }
    }

    /// The kernel should have taken a program, and did not.
    fn refused(error: &io::Error) -> Standing {
        let reason = format!("the kernel does not take the shield's program: {error}");
        Standing { reason: Some(reason), ..Standing::without_kernel(Layers::Kernel) }
    }

    fn in_kernel<M>(counters: Counters, posted: &Posted<M>) -> Standing {
        let (wanted, reason) = (Layers::Kernel, posted.refused.clone());
        Standing { wanted, in_force: wanted, hook: Some(posted.hook), reason, counters: Some(counters) }
    }

    /// Who drops forged frames, as the end of a sentence.
    pub(super) fn who(&self) -> &'static str {
        match self.hook {
            Some(Hook::Socket) => "in front of the socket",
            Some(Hook::Xdp | Hook::XdpGeneric) => "in front of the card",
            None => "by this program",
        }
    }

    /// How often the kernel has dropped a frame, by reason.
    pub(super) fn dropped_in_kernel(&self) -> Vec<(DropReason, u64)> {
        match &self.counters {
            None => Vec::new(),
            Some(Counters::LinkLayer(counters)) => kernel::COUNTED.into_iter().zip(counts(counters)).collect(),
            Some(Counters::Ipsec(books)) => books.total(),
            Some(Counters::Sarp(books)) => books.total(),
        }
    }
}

/// The program in front of the shield's port or card, if `wanted`; its maps, if the kernel took it.
pub(super) fn open_for_ipsec(wanted: bool, front: &Front<'_>, way: Option<&Way<'_>>) -> (Option<IpsecMaps>, Standing) {
    if !wanted {
        return (None, Standing::without_kernel(Layers::Twin));
    }
    match front.post(ipsec::load) {
        Ok(posted) => {
            let standing = Standing::in_kernel(Counters::Ipsec(posted.maps.books()), &posted);
            let mut maps = posted.maps.held_by(posted.link);
            if let Some(Err(error)) = way.map(|way| maps.open_way(front.port, way)) {
                tracing::info!(
                    "all of IPsec passes this program, since the kernel cannot hand it on by itself: {error}"
                );
            }
            (Some(maps), standing)
        }
        Err(error) => (None, Standing::refused(&error)),
    }
}

/// The program in front of the port or card of a host that signs ARP, if `wanted`; its maps, if the kernel took it.
pub(super) fn open_for_sarp(wanted: bool, own: &shield::sarp::Own, front: &Front<'_>) -> (Option<SarpMaps>, Standing) {
    if !wanted {
        return (None, Standing::without_kernel(Layers::Twin));
    }
    match front.post(|hook| sarp::load(hook, own)) {
        Ok(posted) => {
            let standing = Standing::in_kernel(Counters::Sarp(posted.maps.books()), &posted);
            (Some(posted.maps.held_by(posted.link)), standing)
        }
        Err(error) => (None, Standing::refused(&error)),
    }
}

/// The kernel as outpost.
pub(super) type Outpost = KernelPost<KernelMaps>;

/// Puts the program where `front` says if `wanted` says so. Where the kernel has none, the twin makes the same checks.
pub(super) fn open(wanted: Layers, own: Own, front: &Front<'_>) -> (Option<Outpost>, Standing) {
    if wanted != Layers::Kernel {
        return (None, Standing::without_kernel(wanted));
    }
    match front.post(load) {
        Ok(posted) => {
            let standing = Standing::in_kernel(Counters::LinkLayer(posted.maps.counters.clone()), &posted);
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
mod tests;
