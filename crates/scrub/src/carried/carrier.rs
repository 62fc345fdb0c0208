//! Who is carried, and the memory that is shared with the program.

use std::fmt;
use std::sync::atomic::AtomicU64;

use bump::{Instant, Side};

use super::entry::{self, Entry};
use super::layout::PLACES;
use super::rings::{Ring, Rings};
use crate::limits::{CARRIED_IDLE, CARRIED_LOOK_INTERVAL};
use crate::tcp::key::Key;

pub(crate) use super::entry::{Half, Stuck};

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
}

/// Segments that the program has passed on, and what it dropped for a wrong checksum, by the side
/// that sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarriedCounts {
    /// Passed on.
    pub segments: [u64; 2],
    /// Dropped.
    pub bad_checksums: [u64; 2],
}

impl CarriedCounts {
    /// Adds what is new in `halves`; whether anything is.
    fn add(&mut self, before: &[Half; 2], halves: &[Half; 2]) -> bool {
        let had = *self;
        for (side, (half, before)) in halves.iter().zip(before).enumerate() {
            self.segments[side] += u64::from(half.packets.wrapping_sub(before.packets));
            self.bad_checksums[side] += u64::from(half.bad_checksums.wrapping_sub(before.bad_checksums));
        }
        *self != had
    }
}

/// Whose a place is.
#[derive(Debug)]
enum Place {
    Free,
    Held(Held),
    /// A half of it stayed in hand. Nobody gets it any more, nor its rings.
    Lost,
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
    calms: bool,
}

impl Carrier {
    /// Of the memory of the maps of [entries](super::layout::ENTRIES) and
    /// [pool](super::layout::POOL).
    #[must_use]
    pub fn new(entries: Box<dyn Words>, pool: Box<dyn Words>) -> Carrier {
        let places = (0..PLACES).map(|_| Place::Free).collect();
        let counts = CarriedCounts::default();
        Carrier { entries, pool, rings: Rings::new(), places, len: 0, counts, look_at: None, calms: true }
    }

    /// Has no connection calmed, for comparisons: all windows are what they were.
    #[must_use]
    pub fn without_calm(self) -> Carrier {
        Carrier { calms: false, ..self }
    }

    pub(crate) fn calms(&self) -> bool {
        self.calms
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
    pub(crate) fn take_back(&mut self, key: &Key) -> Option<Result<Taken, Stuck>> {
        let place = self.holds(key)?;
        let entry = Entry::at(self.entries.words(), place)?;
        let taken = entry.take();
        let after = if taken.is_ok() { Place::Free } else { Place::Lost };
        let Place::Held(held) = std::mem::replace(&mut self.places[place], after) else { return None };
        self.len -= 1;
        if let Err(stuck) = taken {
            return Some(Err(stuck));
        }
        let halves = [entry.half(0), entry.half(1)];
        let mut kept = [None, None];
        for (side, half) in halves.iter().enumerate() {
            let Some(ring) = held.rings[side] else { continue };
            let mut bytes = vec![0; half.in_sequence.wrapping_sub(half.unacknowledged) as usize];
            ring.read(self.pool.words(), half.unacknowledged, &mut bytes);
            let mut last = [0];
            ring.read(self.pool.words(), half.unacknowledged.wrapping_sub(1), &mut last);
            let last = (half.unacknowledged != held.first[side]).then_some(last[0]);
            kept[side] = Some((last, bytes));
            self.rings.give(ring);
        }
        let hop_limit = entry.hop_limit();
        self.counts.add(&held.counted, &halves);
        Some(Ok(Taken { halves, hop_limit, kept }))
    }

    /// How far both halves are, if the connection is carried: what is not acknowledged, and what
    /// comes next.
    pub(crate) fn under_way(&self, key: &Key, side: Side) -> Option<(u32, u32)> {
        let entry = Entry::at(self.entries.words(), self.holds(key)?)?;
        let half = entry.half(side as usize);
        Some((half.unacknowledged, half.in_sequence))
    }

    /// When [`look`](Carrier::look) next has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.look_at
    }

    /// All connections of which something was carried since the last look, and those of which
    /// nothing was for long.
    pub(crate) fn look(&mut self, now: Instant) -> (Vec<Key>, Vec<Key>) {
        let (mut moved, mut idle) = (Vec::new(), Vec::new());
        if self.look_at.is_none_or(|at| at > now) {
            return (moved, idle);
        }
        for (place, known) in self.places.iter_mut().enumerate() {
            let (Place::Held(held), Some(entry)) = (known, Entry::at(self.entries.words(), place)) else { continue };
            let halves = [entry.half(0), entry.half(1)];
            if self.counts.add(&held.counted, &halves) {
                (held.counted, held.moved_at) = (halves, now);
                moved.push(held.key);
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
