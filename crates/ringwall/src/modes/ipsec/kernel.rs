//! The programs around an IPsec stack's shield, and their maps: the one that judges, in front of
//! the socket or the card, and the one that hands on to the stack what needs no daemon (record
//! 0055).

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use bump::DropReason;
use shield::ipsec::kernel::{
    self, ADDRESS_LEN, ASSOCIATION_LEN, Count, IKE_NAME_LEN, NAME_LEN, PEER_LEN, SETTINGS_LEN,
};
use shield::ipsec::{Maps, limits};
use shield::{Hook, Layers, Words};
use system::bpf::{Instruction, Map, Program, Shared};
use system::ingress;
use system::port::PacketPort;

use crate::host::kernel::{self as place, Front, Standing};

/// What a lister of the kernel's programs reads.
const NAME: &str = "ringwall_ipsec";
const ONWARD_NAME: &str = "ringwall_onward";

/// The way from the card to the stack that needs no daemon.
pub(super) struct Way<'a> {
    /// Puts a program behind the sockets on the card, for as long as the descriptor is open.
    pub(super) attach: &'a dyn Fn(&Program) -> io::Result<OwnedFd>,
    /// Index of the interface whose other end is the stack's.
    pub(super) outer: u32,
}

/// The programs that make that way, before they stand anywhere.
struct Onward {
    program: Program,
    /// What keeps from the socket what goes that way, where the judging program stands elsewhere.
    at_socket: Program,
}

impl Onward {
    fn load(maps: &[Map]) -> io::Result<Onward> {
        let program = Program::load(ingress::KIND, ONWARD_NAME, &Instruction::read(kernel::onward()), maps)?;
        let instructions = Instruction::read(kernel::program(Hook::Socket));
        let at_socket = Program::load(place::kind(Hook::Socket), NAME, &instructions, maps)?;
        Ok(Onward { program, at_socket })
    }

    /// Takes their places; what holds the programs there.
    fn stand(&self, hook: Hook, port: &PacketPort, way: &Way<'_>) -> io::Result<Vec<OwnedFd>> {
        let mut links = vec![(way.attach)(&self.program)?];
        if hook != Hook::Socket {
            links.extend(port.filter_by(&self.at_socket)?);
        }
        Ok(links)
    }
}

/// The program in front of the shield's port or card, if `wanted`; its maps, if the kernel took it.
pub(super) fn open(wanted: bool, front: &Front<'_>, way: Option<&Way<'_>>) -> (Option<IpsecMaps>, Standing) {
    if !wanted {
        return (None, Standing::without_kernel(Layers::Twin));
    }
    match front.post(load) {
        Ok(posted) => {
            let standing = {
                let books = posted.maps.books();
                Standing::in_kernel(&posted, move || books.total())
            };
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

/// Makes the maps and loads the program for this place. In front of the socket it takes the place
/// of the filter that says what is kept, which it says as well.
pub(super) fn load(hook: Hook) -> io::Result<(IpsecMaps, Program)> {
    let maps = kernel::MAPS.into_iter().map(place::make).collect::<io::Result<Vec<_>>>()?;
    let program = Program::load(place::kind(hook), NAME, &Instruction::read(kernel::program(hook)), &maps)?;
    let onward = Onward::load(&maps);
    let (windows, books) = (maps[kernel::WINDOWS].share()?, Books(maps[kernel::BOOKS].share()?));
    let mut maps = maps.into_iter();
    match (maps.next(), maps.next(), maps.next(), maps.next_back()) {
        (Some(settings), Some(peers), Some(known), Some(exchanges)) => {
            let (onward, way, links) = (Some(onward), None, Vec::new());
            Ok((IpsecMaps { settings, peers, known, exchanges, windows, books, hook, onward, way, links }, program))
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
    /// Where packets are judged.
    hook: Hook,
    onward: Option<io::Result<Onward>>,
    /// The interface whose other end is the stack's, if the kernel hands on by itself.
    way: Option<u32>,
    /// With them the programs would leave their places.
    links: Vec<OwnedFd>,
}

impl IpsecMaps {
    /// The same, of a program that `link` holds in its place.
    pub(super) fn held_by(mut self, link: Option<OwnedFd>) -> IpsecMaps {
        self.links.extend(link);
        self
    }

    /// From now on the kernel hands on by itself what needs no daemon.
    ///
    /// # Errors
    /// It cannot; then all comes to the socket as before.
    pub(super) fn open_way(&mut self, port: &PacketPort, way: &Way<'_>) -> io::Result<()> {
        let onward = self.onward.take().ok_or(io::ErrorKind::AlreadyExists)??;
        self.links.extend(onward.stand(self.hook, port, way)?);
        self.way = Some(way.outer);
        Ok(())
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
    // What finds no room in a map, of which each has as many places as there may be entries, the
    // program takes for unknown.
    fn describe(&mut self, settings: &[u8; SETTINGS_LEN]) {
        let mut settings = *settings;
        if self.hook.hides_joined() {
            settings = kernel::with_joined_unmarked(settings);
        }
        if let Some(outer) = self.way {
            settings = kernel::with_way_onward(settings, outer, self.hook != Hook::Socket);
        }
        let _ = self.settings.put(&[0; 4], &settings);
    }

    fn put_peer(&mut self, address: &[u8; ADDRESS_LEN], peer: &[u8; PEER_LEN]) {
        let _ = self.peers.put(address, peer);
    }

    fn put_known(&mut self, name: &[u8; NAME_LEN], association: &[u8; ASSOCIATION_LEN]) {
        let _ = self.known.put(name, association);
    }

    fn put_sieve(&mut self, peer: u32, word: usize, bits: u64) {
        let at = peer as usize * kernel::BOOKS_WORDS + kernel::SIEVE_AT + word;
        self.books.0.words().get(at).into_iter().for_each(|place| place.store(bits, Ordering::Release));
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

    fn passed(&self, peer: u32) -> u64 {
        let at = peer as usize * kernel::BOOKS_WORDS + kernel::PASSED_AT;
        self.books.0.words().get(at).map_or(0, |word| word.load(Ordering::Relaxed))
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
