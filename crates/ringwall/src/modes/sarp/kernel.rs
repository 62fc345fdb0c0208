//! The program in front of signed ARP, and its maps.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use bump::{DropReason, Instant};
use shield::sarp::{
    self, ACQUAINTED, COUNTERS, Count, HOST_WORDS, HOSTS, Key, MASTERS_MAX, Own, PLACE_WORDS, PLACES, SETTINGS,
    WHOLE_SHARE,
};
use shield::{Hook, Layers};
use system::bpf::{Instruction, Map, Program, Shared};
use wire::MacAddress;

use crate::host::kernel::{self as place, Front, Standing};

/// What a lister of the kernel's programs reads.
const NAME: &str = "ringwall_sarp";

/// The program in front of the port or card of a host that signs ARP, if `wanted`; its maps, if the
/// kernel took it.
pub(super) fn open(wanted: bool, own: &Own, front: &Front<'_>) -> (Option<SarpMaps>, Standing) {
    if !wanted {
        return (None, Standing::without_kernel(Layers::Twin));
    }
    match front.post(|hook| load(hook, own)) {
        Ok(posted) => {
            let standing = {
                let books = posted.maps.books();
                Standing::in_kernel(&posted, move || books.total())
            };
            (Some(posted.maps.held_by(posted.link)), standing)
        }
        Err(error) => (None, Standing::refused(&error)),
    }
}

/// Makes the maps, describes this host in them and loads the program for this place: from its first
/// frame on, what it says of a request is right, and in front of the socket it takes the place of
/// the filter that says what is kept.
pub(super) fn load(hook: Hook, own: &Own) -> io::Result<(SarpMaps, Program)> {
    let mut maps = sarp::maps(!own.numbers.is_empty()).into_iter().map(place::make).collect::<io::Result<Vec<_>>>()?;
    maps[SETTINGS].put(&[0; 4], &own.emit()[..])?;
    let program = Program::load(place::kind(hook), NAME, &Instruction::read(sarp::program(hook)), &maps)?;
    let (places, counters, hosts) = (maps[PLACES].share()?, Books(maps[COUNTERS].share()?), maps[HOSTS].share()?);
    let (acquainted, settings) = (maps.swap_remove(ACQUAINTED), maps.swap_remove(SETTINGS));
    Ok((SarpMaps { own: own.clone(), settings, places, counters, hosts, acquainted, _link: None }, program))
}

/// What the daemon writes and reads of the program's maps.
#[derive(Debug)]
pub(crate) struct SarpMaps {
    own: Own,
    settings: Map,
    places: Shared,
    counters: Books,
    hosts: Shared,
    acquainted: Map,
    /// With it the program would leave the card.
    _link: Option<OwnedFd>,
}

impl SarpMaps {
    /// The same, of a program that `link` holds in its place.
    pub(super) fn held_by(self, link: Option<OwnedFd>) -> SarpMaps {
        SarpMaps { _link: link, ..self }
    }

    /// What it counts.
    pub(super) fn books(&self) -> Books {
        self.counters.clone()
    }

    /// Puts `word` of the place of `ip` off to `until`, if it is not later already: another address
    /// may have this place.
    fn extend(&self, ip: Ipv4Addr, word: usize, until: Instant) {
        if let Some(word) = self.places.words().get(sarp::place_of(ip) * PLACE_WORDS + word) {
            word.fetch_max(until.as_nanos(), Ordering::Relaxed);
        }
    }
}

/// The program's counters.
#[derive(Clone, Debug)]
pub(super) struct Books(Shared);

impl Books {
    fn counts(&self) -> Count {
        let mut count = Count::default();
        count.iter_mut().zip(self.0.words()).for_each(|(count, word)| *count = word.load(Ordering::Relaxed));
        count
    }

    /// By reason.
    pub(super) fn total(&self) -> Vec<(DropReason, u64)> {
        sarp::COUNTED.into_iter().zip(self.counts()).collect()
    }
}

impl sarp::Outpost for SarpMaps {
    fn expect(&mut self, ip: Ipv4Addr, until: Instant) {
        self.extend(ip, 0, until);
    }

    fn own(&mut self, ip: Ipv4Addr, until: Instant) {
        self.extend(ip, 1, until);
    }

    fn acquaint(&mut self, mac: MacAddress, ip: Ipv4Addr) {
        // One without a share comes behind the others in a flood.
        let _ = self.acquainted.put(&sarp::source(mac, ip), &WHOLE_SHARE);
    }

    /// The program takes a key whose first half is not zero for whole, and those of a host whose
    /// first key is there, so what it looks at first is written last.
    fn know(&mut self, host: u64, check_keys: &[Key]) {
        let at = usize::try_from(host).ok().and_then(|host| host.checked_mul(HOST_WORDS));
        let words = at.and_then(|at| self.hosts.words().get(at..)?.get(..2 * MASTERS_MAX));
        let places = words.into_iter().flat_map(|words| words.chunks_exact(2)).zip(check_keys);
        let half = |half: &[u8]| u64::from_ne_bytes(std::array::from_fn(|at| half[at]));
        for (place, key) in places.collect::<Vec<_>>().into_iter().rev() {
            place[1].store(half(&key[8..]), Ordering::Release);
            place[0].store(half(&key[..8]), Ordering::Release);
        }
    }

    /// A message that is judged while the numbers are written may be dropped; who applies repeats
    /// it.
    fn begin_anew(&mut self, numbers: &[Key]) {
        for host in self.hosts.words().chunks_exact(HOST_WORDS) {
            // The first word first: without it the others are not looked at.
            host[..2 * MASTERS_MAX].iter().step_by(2).for_each(|word| word.store(0, Ordering::Release));
        }
        self.own.numbers = numbers.to_vec();
        // The place is there, so nothing is left to fail.
        let _ = self.settings.put(&[0; 4], &self.own.emit()[..]);
    }

    fn dropped(&self) -> Count {
        self.counters.counts()
    }
}

#[cfg(test)]
mod tests;
