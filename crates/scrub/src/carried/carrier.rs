//! Who is carried, and the memory that is shared with the program.

use std::fmt;
use std::sync::atomic::AtomicU64;

use bump::{Instant, Side};

use super::entry::{self, Entry, StillLocked};
use super::layout::PLACES;
use super::rings::{Ring, Rings};
use super::shares::Shares;
use crate::limits::{CARRIED_IDLE, CARRIED_LOOK_INTERVAL};
use crate::settings::Network;
use crate::tcp::key::Key;
use crate::tcp::sources;

pub(crate) use super::entry::{Half, Headers};

/// Memory of a map, in words of eight bytes.
pub trait Words: fmt::Debug + Send {
    /// All words. The program may read and write them at the same time.
    fn words(&self) -> &[AtomicU64];
}

/// A connection as it is handed over.
#[derive(Clone, Debug)]
pub(crate) struct Carried {
    pub(crate) key: Key,
    /// Of sequence numbers and of timestamps.
    pub(crate) shifts: [u32; 2],
    pub(crate) headers: Headers,
    /// By the side that sends.
    pub(crate) halves: [Half; 2],
    /// Where bytes are kept, by side: for how many there is to be room, and those that are not
    /// acknowledged.
    pub(crate) kept: [Option<(Room, Vec<u8>)>; 2],
}

/// How long a ring should be, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Room {
    pub(crate) least: u32,
    /// If there is one.
    pub(crate) wanted: u32,
}

/// A connection as it was taken back.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) halves: [Half; 2],
    pub(crate) hop_limit: u8,
    /// What was kept, by side.
    pub(crate) kept: [Option<Kept>; 2],
    /// Packets and bytes of data that were not told by a look, by the side that sent.
    pub(crate) new: [(u32, u64); 2],
}

/// Why a connection stays in the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotTaken {
    /// A processor has a half of it.
    Locked,
    /// Whoever asked does not take it as it stands.
    Unwanted,
}

/// What the ring of a half held.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The last byte that was acknowledged, if it was while the connection was carried.
    pub(crate) last: Option<u8>,
    /// From the oldest that was not acknowledged on.
    pub(crate) bytes: Vec<u8>,
    /// What went on behind a hole, and how far behind the oldest it begins.
    pub(crate) island: Option<(u32, Vec<u8>)>,
}

/// Segments that came to the program, by the side that sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CarriedCounts {
    /// Those that it passed on.
    pub(crate) segments: [u64; 2],
    /// Those that it dropped for a wrong checksum.
    pub(crate) bad_checksums: [u64; 2],
    /// Those that it dropped because the kernel could not read or write them.
    pub(crate) failed: [u64; 2],
}

impl CarriedCounts {
    /// Adds what is new in `halves`; packets and bytes of data of that.
    fn add(&mut self, before: &[Half; 2], halves: &[Half; 2]) -> [(u32, u64); 2] {
        let mut new = [(0, 0); 2];
        for (side, (half, before)) in halves.iter().zip(before).enumerate() {
            let packets = half.packets.wrapping_sub(before.packets);
            self.segments[side] += u64::from(packets);
            self.bad_checksums[side] += u64::from(half.bad_checksums.wrapping_sub(before.bad_checksums));
            self.failed[side] += u64::from(half.failed.wrapping_sub(before.failed));
            new[side] = (packets, half.bytes.wrapping_sub(before.bytes));
        }
        new
    }
}

/// A connection, and packets and bytes of data of it that were carried, by the side that sent.
pub(crate) type Moved = (Key, [(u32, u64); 2]);

/// Whose a place is.
#[derive(Debug)]
enum Place {
    Free,
    Held(Held),
}

impl Place {
    fn held(&self) -> Option<&Held> {
        if let Place::Held(held) = self { Some(held) } else { None }
    }
}

/// What is known of a connection that is carried.
#[derive(Debug)]
struct Held {
    key: Key,
    rings: [Option<Ring>; 2],
    /// What was not acknowledged when it was handed over.
    first: [u32; 2],
    /// What was counted when it was looked at last, and when that was something new.
    counted: [Half; 2],
    moved_at: Instant,
}

/// The memory that is shared with the program, and who has which of it.
#[derive(Debug)]
pub struct Carrier {
    entries: Box<dyn Words>,
    pool: Box<dyn Words>,
    rings: Rings,
    shares: Shares,
    places: Vec<Place>,
    len: usize,
    counts: CarriedCounts,
    look_at: Option<Instant>,
    drains: bool,
    seed: u64,
}

impl Ring {
    /// The last byte of `half` that was acknowledged, if it was after the handover, when `first`
    /// was not.
    fn last(self, pool: &[AtomicU64], half: &Half, first: u32) -> Option<u8> {
        let begin = half.unacknowledged;
        let mut byte = [0];
        self.read(pool, begin.wrapping_sub(1), &mut byte);
        (begin != first && half.end().wrapping_sub(begin) < self.len).then_some(byte[0])
    }

    /// What it holds of `half`, of which `first` was not acknowledged when it was handed over.
    fn kept(self, pool: &[AtomicU64], half: &Half, first: u32) -> Kept {
        let read = |from: u32, to: u32| {
            let mut bytes = vec![0; to.wrapping_sub(from).min(self.len) as usize];
            self.read(pool, from, &mut bytes);
            bytes
        };
        let begin = half.unacknowledged;
        let (from, to) = half.island;
        Kept {
            last: self.last(pool, half, first),
            bytes: read(begin, half.in_sequence),
            island: (from != to).then(|| (from.wrapping_sub(begin), read(from, to))),
        }
    }
}

impl Carrier {
    /// Of the memory of the maps of [entries](super::layout::ENTRIES) and
    /// [pool](super::layout::POOL), where the programs were told of `seed`.
    #[must_use]
    pub fn new(entries: Box<dyn Words>, pool: Box<dyn Words>, seed: u64) -> Carrier {
        let places = (0..PLACES).map(|_| Place::Free).collect();
        let counts = CarriedCounts::default();
        let (rings, shares) = (Rings::new(), Shares::default());
        Carrier { entries, pool, rings, shares, places, len: 0, counts, look_at: None, drains: true, seed }
    }

    /// Has no connection drained, for comparisons: all windows are what they were.
    #[must_use]
    pub fn without_drains(self) -> Carrier {
        Carrier { drains: false, ..self }
    }

    /// Whether the connection of `key` is to be drained, of which so many halves will be kept and have
    /// so many bytes under way.
    pub(crate) fn drains(&self, key: &Key, halves: u32, room: u32) -> bool {
        let host = sources::untrusted(key);
        let left = |size| self.shares.rings_left(&host, size);
        self.drains && self.shares.has_place(&host) && self.rings.has(halves, room, left)
    }

    /// The place in which a connection is or may be.
    pub(crate) fn place(&self, key: &Key) -> usize {
        entry::place_of(&entry::key_words(key), self.seed)
    }

    /// Connections that are carried.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn counts(&self) -> CarriedCounts {
        self.counts
    }

    /// Whether the place of `key` is taken, by whomever.
    pub(crate) fn is_taken(&self, key: &Key) -> bool {
        !matches!(self.places[self.place(key)], Place::Free)
    }

    /// The place of `key`, if its connection is carried.
    pub(crate) fn holds(&self, key: &Key) -> Option<usize> {
        let place = self.place(key);
        self.places[place].held().is_some_and(|held| held.key == *key).then_some(place)
    }

    /// Hands a connection over. False if there is no room for it.
    pub(crate) fn carry(&mut self, now: Instant, carried: &Carried) -> bool {
        let words = entry::key_words(&carried.key);
        let place = entry::place_of(&words, self.seed);
        let host = sources::untrusted(&carried.key);
        if !matches!(self.places[place], Place::Free) || !self.shares.has_place(&host) {
            return false;
        }
        let rings = carried.kept.each_ref().map(|kept| kept.as_ref().map(|kept| self.ring_for(host, kept)));
        if rings.contains(&Some(None)) {
            rings.into_iter().flatten().flatten().for_each(|ring| self.give_ring(host, ring));
            return false;
        }
        let rings = rings.map(Option::flatten);
        for (side, ring) in rings.iter().enumerate() {
            if let (Some(ring), Some((_, bytes))) = (ring, &carried.kept[side]) {
                ring.write(self.pool.words(), carried.halves[side].unacknowledged, bytes);
            }
        }
        let Some(entry) = Entry::at(self.entries.words(), place) else { return false };
        entry.describe(&words, carried.shifts, &carried.headers);
        for (side, (half, ring)) in carried.halves.iter().zip(rings).enumerate() {
            entry.enter(side, half, ring.map(|ring| (ring.at, ring.len)));
        }
        entry.free();
        let first = carried.halves.map(|half| half.unacknowledged);
        self.places[place] =
            Place::Held(Held { key: carried.key, rings, first, counted: carried.halves, moved_at: now });
        self.len += 1;
        self.shares.take_place(host);
        self.look_at.get_or_insert(now + CARRIED_LOOK_INTERVAL);
        true
    }

    /// A ring of those that `host` may have, with room for more than what is there already.
    fn ring_for(&mut self, host: Network, (room, bytes): &(Room, Vec<u8>)) -> Option<Ring> {
        let there = u32::try_from(bytes.len()).ok()?;
        let (shares, rings) = (&self.shares, &mut self.rings);
        let mut take = |len: u32| rings.take(len.max(there.saturating_mul(2)), |size| shares.rings_left(&host, size));
        let ring = take(room.wanted).or_else(|| take(room.least))?;
        self.shares.take_ring(host, ring);
        if ring.len > there {
            return Some(ring);
        }
        self.give_ring(host, ring);
        None
    }

    fn give_ring(&mut self, host: Network, ring: Ring) {
        self.shares.give_ring(host, ring);
        self.rings.give(ring);
    }

    /// Takes a connection back, if it is carried.
    #[cfg(test)]
    fn take_back(&mut self, key: &Key) -> Option<Result<Taken, NotTaken>> {
        self.take_back_if(key, |_| true)
    }

    /// Takes a connection back, if it is carried, and `may` finds its halves such that it can be.
    pub(crate) fn take_back_if(
        &mut self,
        key: &Key,
        may: impl FnOnce(&[Half; 2]) -> bool,
    ) -> Option<Result<Taken, NotTaken>> {
        let place = self.holds(key)?;
        let entry = Entry::at(self.entries.words(), place)?;
        if let Err(StillLocked) = entry.take() {
            // Neither program finds it any more; whoever asks next may get it.
            entry.hide();
            return Some(Err(NotTaken::Locked));
        }
        if !may(&[entry.half(0), entry.half(1)]) {
            entry.free();
            return Some(Err(NotTaken::Unwanted));
        }
        let Place::Held(held) = std::mem::replace(&mut self.places[place], Place::Free) else { return None };
        self.len -= 1;
        let host = sources::untrusted(key);
        let (halves, hop_limit) = ([entry.half(0), entry.half(1)], entry.hop_limit());
        let mut kept = [None, None];
        for (side, half) in halves.iter().enumerate() {
            let Some(ring) = held.rings[side] else { continue };
            kept[side] = Some(ring.kept(self.pool.words(), half, held.first[side]));
            self.give_ring(host, ring);
        }
        self.shares.give_place(host);
        let new = self.counts.add(&held.counted, &halves);
        Some(Ok(Taken { halves, hop_limit, kept, new }))
    }

    /// Both halves as they stand, that of `side` in hand, and the largest hop limit: for a segment
    /// that changes neither's data. [`give`](Carrier::give) ends it. `None` if the connection is
    /// not carried, or a processor keeps the half.
    pub(crate) fn borrow(&mut self, key: &Key, side: Side) -> Option<([Half; 2], Option<u8>, u8)> {
        let place = self.holds(key)?;
        let entry = Entry::at(self.entries.words(), place)?;
        if !entry.take_in_hand(side as usize) {
            return None;
        }
        let halves = [entry.half(0), entry.half(1)];
        let (held, half) = (self.places[place].held()?, &halves[side as usize]);
        let ring = held.rings[side as usize];
        let last = ring.and_then(|ring| ring.last(self.pool.words(), half, held.first[side as usize]));
        Some((halves, last, entry.hop_limit()))
    }

    /// Gives a half that was [borrowed](Carrier::borrow) back, with what its segment has changed.
    pub(crate) fn give(&mut self, key: &Key, side: Side, changed: Option<(&Half, &Half, u8)>) {
        let Some(entry) = self.holds(key).and_then(|place| Entry::at(self.entries.words(), place)) else { return };
        if let Some((sender, receiver, hop_limit)) = changed {
            entry.enter_heard(side as usize, sender, receiver, hop_limit);
        }
        entry.put_down(side as usize);
    }

    /// The first number of the half of `side` that is not acknowledged, and the one behind all, if
    /// the connection is carried.
    pub(crate) fn under_way(&self, key: &Key, side: Side) -> Option<(u32, u32)> {
        let entry = Entry::at(self.entries.words(), self.holds(key)?)?;
        let half = entry.half(side as usize);
        Some((half.unacknowledged, half.end()))
    }

    /// When [`look`](Carrier::look) next has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.look_at
    }

    /// Packets and bytes of data of all connections of which something was carried since the last
    /// look, and those of which nothing was for long.
    pub(crate) fn look(&mut self, now: Instant) -> (Vec<Moved>, Vec<Key>) {
        let (mut moved, mut idle) = (Vec::new(), Vec::new());
        if self.look_at.is_none_or(|at| at > now) {
            return (moved, idle);
        }
        for (place, known) in self.places.iter_mut().enumerate() {
            let (Place::Held(held), Some(entry)) = (known, Entry::at(self.entries.words(), place)) else { continue };
            let halves = [entry.half(0), entry.half(1)];
            let new = self.counts.add(&held.counted, &halves);
            held.counted = halves;
            if new != [(0, 0); 2] {
                held.moved_at = now;
                moved.push((held.key, new));
            } else if now >= held.moved_at + CARRIED_IDLE {
                idle.push(held.key);
            }
        }
        self.look_at = (self.len > 0).then(|| now + CARRIED_LOOK_INTERVAL);
        (moved, idle)
    }

    /// All that are carried.
    pub(crate) fn all(&self) -> Vec<Key> {
        self.places.iter().filter_map(Place::held).map(|held| held.key).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::sync::atomic::Ordering;

    use super::super::layout::{ENTRY_WORDS, POOL_LEN};
    use super::*;

    #[derive(Clone, Debug)]
    struct Memory(std::sync::Arc<Vec<AtomicU64>>);

    impl Words for Memory {
        fn words(&self) -> &[AtomicU64] {
            &self.0
        }
    }

    fn memory(words: usize) -> Memory {
        Memory(std::sync::Arc::new((0..words).map(|_| AtomicU64::new(0)).collect()))
    }

    /// A carrier, and both maps as the program sees them.
    fn carrier() -> (Carrier, Memory, Memory) {
        let (entries, pool) = (memory(PLACES as usize * ENTRY_WORDS), memory(POOL_LEN / 8));
        (Carrier::new(Box::new(entries.clone()), Box::new(pool.clone()), 7), entries, pool)
    }

    fn carried(port: u16) -> Carried {
        let (trusted, untrusted) = (Ipv4Addr::new(192, 0, 2, 1).into(), Ipv4Addr::new(198, 51, 100, 7).into());
        let half = |next: u32| Half { in_sequence: next, unacknowledged: next - 4, ..Half::default() };
        Carried {
            key: Key { trusted, untrusted, trusted_port: 443, untrusted_port: port, vlans: 0 },
            shifts: [1, 2],
            headers: Headers { label: 3, hop_limit: 60, has_stamps: false, has_sack: true },
            halves: [half(1000), half(5000)],
            kept: [None, Some((Room::default(), vec![1, 2, 3, 4]))],
        }
    }

    /// What the program does to the untrusted half: two bytes more, of which its peer has all but one.
    fn go_on(carrier: &Carrier, entries: &Memory, pool: &Memory, key: &Key) {
        let at = carrier.place(key) * ENTRY_WORDS + 16;
        let ring = carrier.places[carrier.place(key)].held().expect("carried").rings[1].expect("a ring");
        ring.write(pool.words(), 5000, &[5, 6]);
        entries.0[at + 1].store(5001 << 32 | 5002, Ordering::Relaxed);
        entries.0[at + 5].store(1, Ordering::Relaxed);
        entries.0[at + 6].store(2, Ordering::Relaxed);
    }

    fn now(seconds: u64) -> Instant {
        Instant::default() + std::time::Duration::from_secs(seconds)
    }

    #[test]
    fn what_comes_back_is_what_was_handed_over_and_carried() {
        let (mut carrier, entries, pool) = carrier();
        let (one, other) = (carried(1), carried(2));
        assert!(carrier.carry(now(1), &one) && carrier.is_taken(&one.key));
        assert!(!carrier.carry(now(1), &one), "its place is taken");
        assert!(carrier.take_back(&other.key).is_none());
        assert_eq!(carrier.under_way(&one.key, Side::UNTRUSTED), Some((4996, 5000)));
        let back = carrier.take_back(&one.key).expect("carried").expect("free");
        let kept = Kept { bytes: vec![1, 2, 3, 4], ..Kept::default() };
        assert_eq!(back.kept[1], Some(kept), "nothing was acknowledged meanwhile");
        assert_eq!((back.halves, back.hop_limit, back.new), (one.halves, 60, [(0, 0); 2]));
        assert!(carrier.carry(now(1), &one));
        go_on(&carrier, &entries, &pool, &one.key);
        let back = carrier.take_back(&one.key).expect("carried").expect("free");
        assert_eq!(back.kept, [None, Some(Kept { last: Some(5), bytes: vec![6], island: None })]);
        assert_eq!(back.new, [(0, 0), (1, 2)]);
        assert_eq!((carrier.counts().segments, carrier.len()), ([0, 1], 0));
    }

    #[test]
    fn a_look_tells_what_moved_and_what_is_idle() {
        let (mut carrier, entries, pool) = carrier();
        let one = carried(1);
        assert!(carrier.deadline().is_none() && carrier.carry(now(1), &one));
        assert_eq!(carrier.deadline(), Some(now(2)));
        go_on(&carrier, &entries, &pool, &one.key);
        assert_eq!(carrier.look(now(2)), (vec![(one.key, [(0, 0), (1, 2)])], vec![]));
        // One that is dropped for its checksum is counted once, however often it is looked.
        entries.0[carrier.place(&one.key) * ENTRY_WORDS + 21].store(1 << 32 | 1, Ordering::Relaxed);
        assert_eq!(carrier.look(now(5)), (vec![], vec![]));
        assert_eq!(carrier.look(now(11)), (vec![], vec![]));
        assert_eq!(carrier.counts().bad_checksums, [0, 1]);
        assert_eq!(carrier.look(now(12)), (vec![], vec![one.key]));
        assert_eq!(carrier.take_back(&one.key).expect("carried").expect("free").new, [(0, 0); 2], "it was told");
        assert_eq!((carrier.look(now(13)), carrier.deadline()), ((vec![], vec![]), None));
    }

    #[test]
    fn a_half_that_a_processor_has_is_waited_for_and_no_other_goes_on() {
        let (mut carrier, entries, _pool) = carrier();
        let one = carried(1);
        assert!(carrier.carry(now(1), &one));
        let at = carrier.place(&one.key) * ENTRY_WORDS;
        let (locked, free, of_daemon) = (2, 1, 0);
        entries.0[at + 8].store(locked, Ordering::Relaxed);
        assert!(carrier.take_back(&one.key).expect("carried").is_err());
        assert_eq!(entries.0[at + 16].load(Ordering::Relaxed), of_daemon, "the other half is taken at once");
        assert!(entries.0[at..at + 5].iter().all(|word| word.load(Ordering::Relaxed) == 0), "nobody finds it");
        assert!(carrier.is_taken(&one.key) && !carrier.carry(now(1), &one));
        entries.0[at + 8].store(free, Ordering::Relaxed);
        assert!(carrier.take_back(&one.key).expect("carried").is_ok() && !carrier.is_taken(&one.key));
    }

    #[test]
    fn what_is_not_wanted_as_it_stands_stays_with_the_kernel() {
        let (mut carrier, entries, _pool) = carrier();
        let one = carried(1);
        assert!(carrier.carry(now(1), &one));
        let at = carrier.place(&one.key) * ENTRY_WORDS;
        // The untrusted host has sent 5,010 to 5,019, and nobody has heard what comes before.
        entries.0[at + 16 + 7].store(5020 << 32 | 5010, Ordering::Relaxed);
        let refused = carrier.take_back_if(&one.key, |[_, untrusted]| !untrusted.has_island());
        assert_eq!(refused.expect("carried").expect_err("not wanted"), NotTaken::Unwanted);
        let free = 1;
        assert!([8, 16].iter().all(|lock| entries.0[at + lock].load(Ordering::Relaxed) == free));
        let back = carrier.take_back(&one.key).expect("carried").expect("free");
        let island = back.kept[1].as_ref().and_then(|kept| kept.island.as_ref()).expect("an island");
        assert_eq!((island.0, island.1.len(), back.halves[1].end()), (14, 10, 5020));
    }

    #[test]
    fn a_borrowed_half_is_in_hand_until_it_is_given() {
        let (mut carrier, entries, _pool) = carrier();
        let one = carried(1);
        assert!(carrier.carry(now(1), &one));
        let at = carrier.place(&one.key) * ENTRY_WORDS;
        let lock_of = |side: usize| entries.0[at + 8 + 8 * side].load(Ordering::Relaxed);
        let (locked, free) = (2, 1);
        let ([_, sender], last, hop_limit) = carrier.borrow(&one.key, Side::UNTRUSTED).expect("free");
        assert_eq!((lock_of(0), lock_of(1), last, hop_limit), (free, locked, None, 60));
        assert!(carrier.borrow(&one.key, Side::UNTRUSTED).is_none(), "a processor has it, as far as anybody knows");
        // The trusted host goes on meanwhile, from 1,000 to 1,004.
        entries.0[at + 9].store(996 << 32 | 1004, Ordering::Relaxed);
        let heard = Half { unacknowledged: 1000, edge: 7000, window_max: 600, ..one.halves[0] };
        let changed = Half { stamp: 9, is_reached: true, ..sender };
        carrier.give(&one.key, Side::UNTRUSTED, Some((&changed, &heard, 61)));
        assert_eq!((lock_of(0), lock_of(1)), (free, free));
        let back = carrier.take_back(&one.key).expect("carried").expect("free");
        let [trusted, untrusted] = &back.halves;
        assert_eq!((trusted.in_sequence, trusted.unacknowledged), (1004, 1000));
        assert_eq!((trusted.edge, trusted.window_max, back.hop_limit), (7000, 600, 61));
        assert_eq!((untrusted.stamp, untrusted.is_reached, untrusted.in_sequence), (9, true, 5000));
        assert!(carrier.borrow(&one.key, Side::UNTRUSTED).is_none(), "it is not carried any more");
    }

    /// A connection of the untrusted host with this number that wants so much room.
    fn wanting(host: u8, port: u16, room: u32) -> Carried {
        let room = Room { least: room, wanted: room };
        let mut carried = Carried { kept: [None, Some((room, vec![]))], ..carried(port) };
        carried.key.untrusted = Ipv4Addr::new(198, 51, 100, host).into();
        carried
    }

    #[test]
    fn nothing_is_handed_over_without_a_ring() {
        let (mut carrier, ..) = carrier();
        for host in 0..4 {
            assert!((1..99).any(|port| carrier.carry(now(1), &wanting(host, port, 4 << 20))), "{host}");
        }
        let of_fifth = |port| wanting(4, port, 4 << 20);
        let next = (1..99).find(|port| !carrier.is_taken(&of_fifth(*port).key)).expect("a free place");
        let key = of_fifth(next).key;
        assert!(!carrier.drains(&key, 1, 2 << 20) && carrier.drains(&key, 1, 1 << 20));
        assert!(!carrier.carry(now(1), &of_fifth(next)));
        let mut content = of_fifth(next);
        content.kept[1] = Some((Room { least: 1 << 20, wanted: 4 << 20 }, vec![]));
        assert!(carrier.carry(now(1), &content), "the failed attempt took nothing, and a shorter one will do");
    }

    #[test]
    fn an_untrusted_host_has_a_part_of_places_and_rings() {
        let (mut carrier, ..) = carrier();
        let mut carry_all = |host, room| {
            let wanted = (1..9999).map(|port| wanting(host, port, room));
            wanted.filter(|wanted| carrier.carry(now(1), wanted)).map(|wanted| wanted.key).collect::<Vec<_>>()
        };
        assert_eq!(carry_all(1, 2 << 20).len(), 1, "of four");
        assert_eq!(carry_all(1, 1 << 20).len(), 8, "of 32");
        assert_eq!(carry_all(1, 1).len(), 128 + 24, "of 512, and of 96");
        let of_other = carry_all(2, 1);
        assert_eq!(of_other.len(), 128 + 24 + 8 + 1, "it may have as many, the longer ones too");
        for key in &of_other {
            assert!(carrier.take_back(key).is_some_and(|taken| taken.is_ok()));
        }
        assert!(carrier.drains(&of_other[0], 1, 2 << 20) && carrier.carry(now(1), &wanting(2, 1, 2 << 20)));
        assert_eq!(carrier.shares.holders(), 2);
        let all = carrier.all();
        assert!(all.iter().all(|key| carrier.take_back(key).is_some_and(|taken| taken.is_ok())));
        assert_eq!(carrier.shares.holders(), 0, "nothing is kept of who holds nothing");
    }
}
