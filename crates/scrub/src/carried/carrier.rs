//! Who is carried, and the memory that is shared with the program.

use std::fmt;
use std::sync::atomic::AtomicU64;

use bump::{Instant, Side};

use super::entry::{self, Entry};
use super::layout::PLACES;
use super::rings::{Ring, Rings};
use crate::limits::{CARRIED_IDLE, CARRIED_LOOK_INTERVAL};
use crate::tcp::key::Key;

pub(crate) use super::entry::{Half, StillLocked};

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
    pub(crate) label: u32,
    pub(crate) hop_limit: u8,
    pub(crate) has_stamps: bool,
    /// By the side that sends.
    pub(crate) halves: [Half; 2],
    /// Where bytes are kept, by side: for how many there should be room, and those that are not
    /// acknowledged.
    pub(crate) kept: [Option<(u32, Vec<u8>)>; 2],
}

/// A connection as it was taken back.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) halves: [Half; 2],
    pub(crate) hop_limit: u8,
    /// Bytes from the oldest that was not acknowledged on, by side, where any were kept; in front
    /// of them the last that was acknowledged, if it was while the connection was carried.
    pub(crate) kept: [Option<(Option<u8>, Vec<u8>)>; 2],
    /// Packets and bytes of data that were not told by a look, by the side that sent.
    pub(crate) new: [(u32, u64); 2],
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
    places: Vec<Place>,
    len: usize,
    counts: CarriedCounts,
    look_at: Option<Instant>,
    drains: bool,
}

impl Carrier {
    /// Of the memory of the maps of [entries](super::layout::ENTRIES) and
    /// [pool](super::layout::POOL).
    #[must_use]
    pub fn new(entries: Box<dyn Words>, pool: Box<dyn Words>) -> Carrier {
        let places = (0..PLACES).map(|_| Place::Free).collect();
        let counts = CarriedCounts::default();
        Carrier { entries, pool, rings: Rings::new(), places, len: 0, counts, look_at: None, drains: true }
    }

    /// Has no connection drained, for comparisons: all windows are what they were.
    #[must_use]
    pub fn without_drains(self) -> Carrier {
        Carrier { drains: false, ..self }
    }

    /// Whether a connection is to be drained that will have so many bytes under way.
    pub(crate) fn drains(&self, room: u32) -> bool {
        self.drains && self.rings.has(room)
    }

    /// The place in which a connection is or may be.
    pub(crate) fn place(key: &Key) -> usize {
        entry::place_of(&entry::key_words(key))
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
        !matches!(self.places[Carrier::place(key)], Place::Free)
    }

    fn holds(&self, key: &Key) -> Option<usize> {
        let place = Carrier::place(key);
        self.places[place].held().is_some_and(|held| held.key == *key).then_some(place)
    }

    /// Hands a connection over. False if there is no room for it.
    pub(crate) fn carry(&mut self, now: Instant, carried: &Carried) -> bool {
        let words = entry::key_words(&carried.key);
        let place = entry::place_of(&words);
        let is_free = matches!(self.places[place], Place::Free);
        if !is_free {
            return false;
        }
        let rings = carried.kept.each_ref().map(|kept| kept.as_ref().map(|kept| self.ring_for(kept)));
        if rings.contains(&Some(None)) {
            rings.into_iter().flatten().flatten().for_each(|ring| self.rings.give(ring));
            return false;
        }
        let rings = rings.map(Option::flatten);
        for (side, ring) in rings.iter().enumerate() {
            if let (Some(ring), Some((_, bytes))) = (ring, &carried.kept[side]) {
                ring.write(self.pool.words(), carried.halves[side].unacknowledged, bytes);
            }
        }
        let Some(entry) = Entry::at(self.entries.words(), place) else { return false };
        entry.describe(&words, carried.shifts, carried.label, carried.hop_limit, carried.has_stamps);
        for (side, (half, ring)) in carried.halves.iter().zip(rings).enumerate() {
            entry.enter(side, half, ring.map(|ring| (ring.at, ring.len)));
        }
        entry.free();
        let first = carried.halves.map(|half| half.unacknowledged);
        self.places[place] =
            Place::Held(Held { key: carried.key, rings, first, counted: carried.halves, moved_at: now });
        self.len += 1;
        self.look_at.get_or_insert(now + CARRIED_LOOK_INTERVAL);
        true
    }

    /// A ring with room for more than what is there already.
    fn ring_for(&mut self, (room, bytes): &(u32, Vec<u8>)) -> Option<Ring> {
        let there = u32::try_from(bytes.len()).ok()?;
        let ring = self.rings.take((*room).max(there.saturating_mul(2)))?;
        if ring.len > there {
            return Some(ring);
        }
        self.rings.give(ring);
        None
    }

    /// Takes a connection back, if it is carried.
    pub(crate) fn take_back(&mut self, key: &Key) -> Option<Result<Taken, StillLocked>> {
        let place = self.holds(key)?;
        let entry = Entry::at(self.entries.words(), place)?;
        if let Err(locked) = entry.take() {
            // Neither program finds it any more; whoever asks next may get it.
            entry.hide();
            return Some(Err(locked));
        }
        let Place::Held(held) = std::mem::replace(&mut self.places[place], Place::Free) else { return None };
        self.len -= 1;
        let halves = [entry.half(0), entry.half(1)];
        let mut kept = [None, None];
        for (side, half) in halves.iter().enumerate() {
            let Some(ring) = held.rings[side] else { continue };
            let len = half.in_sequence.wrapping_sub(half.unacknowledged).min(ring.len);
            let mut bytes = vec![0; len as usize];
            ring.read(self.pool.words(), half.unacknowledged, &mut bytes);
            let mut last = [0];
            ring.read(self.pool.words(), half.unacknowledged.wrapping_sub(1), &mut last);
            let last = (half.unacknowledged != held.first[side] && bytes.len() < ring.len as usize).then_some(last[0]);
            kept[side] = Some((last, bytes));
            self.rings.give(ring);
        }
        let hop_limit = entry.hop_limit();
        let new = self.counts.add(&held.counted, &halves);
        Some(Ok(Taken { halves, hop_limit, kept, new }))
    }

    /// What is not acknowledged of the half of `side`, and what comes next, if the connection is
    /// carried.
    pub(crate) fn under_way(&self, key: &Key, side: Side) -> Option<(u32, u32)> {
        let entry = Entry::at(self.entries.words(), self.holds(key)?)?;
        let half = entry.half(side as usize);
        Some((half.unacknowledged, half.in_sequence))
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
        (Carrier::new(Box::new(entries.clone()), Box::new(pool.clone())), entries, pool)
    }

    fn carried(port: u16) -> Carried {
        let (trusted, untrusted) = (Ipv4Addr::new(192, 0, 2, 1).into(), Ipv4Addr::new(198, 51, 100, 7).into());
        let half = |next: u32| Half { in_sequence: next, unacknowledged: next - 4, ..Half::default() };
        Carried {
            key: Key { trusted, untrusted, trusted_port: 443, untrusted_port: port, vlans: 0 },
            shifts: [1, 2],
            label: 3,
            hop_limit: 60,
            has_stamps: false,
            halves: [half(1000), half(5000)],
            kept: [None, Some((0, vec![1, 2, 3, 4]))],
        }
    }

    /// What the program does to the untrusted half: two bytes more, of which its peer has all but one.
    fn go_on(carrier: &Carrier, entries: &Memory, pool: &Memory, key: &Key) {
        let at = Carrier::place(key) * ENTRY_WORDS + 16;
        let ring = carrier.places[Carrier::place(key)].held().expect("carried").rings[1].expect("a ring");
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
        assert_eq!(back.kept[1], Some((None, vec![1, 2, 3, 4])), "nothing was acknowledged meanwhile");
        assert_eq!((back.halves, back.hop_limit, back.new), (one.halves, 60, [(0, 0); 2]));
        assert!(carrier.carry(now(1), &one));
        go_on(&carrier, &entries, &pool, &one.key);
        let back = carrier.take_back(&one.key).expect("carried").expect("free");
        assert_eq!(back.kept, [None, Some((Some(5), vec![6]))]);
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
        entries.0[Carrier::place(&one.key) * ENTRY_WORDS + 21].store(1 << 32 | 1, Ordering::Relaxed);
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
        let at = Carrier::place(&one.key) * ENTRY_WORDS;
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
    fn nothing_is_handed_over_without_a_ring() {
        let (mut carrier, ..) = carrier();
        let wanting = |port, room| Carried { kept: [None, Some((room, vec![]))], ..carried(port) };
        let mut ports = 1..;
        let taken = ports.by_ref().filter(|port| carrier.carry(now(1), &wanting(*port, 4 << 20))).take(4).count();
        assert_eq!((taken, carrier.len()), (4, 4));
        assert!(!carrier.drains(2 << 20) && carrier.drains(1 << 20));
        let next = ports.find(|port| !carrier.is_taken(&carried(*port).key)).expect("a free place");
        assert!(!carrier.carry(now(1), &wanting(next, 4 << 20)));
        assert!(carrier.carry(now(1), &wanting(next, 1 << 20)), "the failed attempt took nothing");
    }
}
