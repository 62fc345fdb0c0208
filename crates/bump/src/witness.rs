//! Who was dropped lately: one sighting for each thing that somebody claimed, so that a person can
//! be told of an attacker among a hundred honest strangers.
//!
//! A table of fixed size. A frame like one that was seen costs a comparison; a new one costs a copy
//! of its beginning, and only so many of those are made in a time, so a flood with changing
//! addresses costs no more than its counters.

use std::time::Duration;

use crate::{DropReason, Instant, Side};

/// First bytes of a frame that are kept: a neighbour advertisement with its option, and a tag.
pub const SIGHTING_BYTES: usize = 96;
/// Groups of places; what a frame claims says in which one it stands.
const GROUPS: usize = 64;
/// Places of a group. The one that was silent for longest makes room.
const PLACES: usize = 4;
/// New sightings in one interval.
const NEWCOMERS_MAX: u32 = 256;
/// Length of that interval.
const NEWCOMERS_INTERVAL: Duration = Duration::from_millis(250);
/// Bytes of a frame that say what it claims, at most.
const CLAIM_BYTES: usize = 40;

/// What a frame says that tells it from those of others, in bytes.
type Claim = [u8; CLAIM_BYTES];

/// Frames that claimed the same and were dropped for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Why they were dropped.
    pub reason: DropReason,
    /// Where they came from.
    pub from: Side,
    /// When the first came.
    pub first: Instant,
    /// When the last came.
    pub last: Instant,
    /// How many.
    pub count: u64,
    /// Length of the first, in bytes.
    pub len: usize,
    /// The first bytes of the first.
    pub head: Vec<u8>,
    /// What it claims, as a number: the same for the same claim, and most likely for no other.
    pub name: u64,
    claim: Claim,
}

/// The table.
#[derive(Clone, Debug, Default)]
pub struct Witness {
    /// Empty until something is dropped.
    places: Vec<Option<Sighting>>,
    interval: Instant,
    newcomers: u32,
}

impl Witness {
    /// Enters a frame that was dropped.
    pub(crate) fn see(&mut self, now: Instant, from: Side, reason: DropReason, bytes: &[u8]) {
        let claim = claim_of(bytes);
        let place = match self.find(reason, from, &claim) {
            Ok(sighting) => {
                sighting.count += 1;
                sighting.last = now;
                return;
            }
            Err(place) => place,
        };
        if now.since(self.interval) >= NEWCOMERS_INTERVAL {
            (self.interval, self.newcomers) = (now, 0);
        }
        self.newcomers = self.newcomers.saturating_add(1);
        if self.newcomers > NEWCOMERS_MAX {
            return;
        }
        let head = bytes[..bytes.len().min(SIGHTING_BYTES)].to_vec();
        let (name, len) = (hash(reason, &claim), bytes.len());
        let sighting = Sighting { reason, from, first: now, last: now, count: 1, len, head, name, claim };
        self.places[place] = Some(sighting);
    }

    /// The sighting of this claim, or the place for it.
    fn find(&mut self, reason: DropReason, from: Side, claim: &Claim) -> Result<&mut Sighting, usize> {
        if self.places.is_empty() {
            self.places.resize(GROUPS * PLACES, None);
        }
        let start = (hash(reason, claim) >> 32) as usize % GROUPS * PLACES;
        let group = &self.places[start..start + PLACES];
        let is_it = |one: &Sighting| one.reason == reason && one.from == from && one.claim == *claim;
        if let Some(at) = group.iter().position(|place| place.as_ref().is_some_and(is_it)) {
            return self.places[start + at].as_mut().ok_or(start);
        }
        let oldest = (0..PLACES).min_by_key(|at| group[*at].as_ref().map(|one| one.last)).unwrap_or(0);
        Err(start + oldest)
    }

    /// All that is remembered.
    pub fn sightings(&self) -> impl Iterator<Item = &Sighting> {
        self.places.iter().flatten()
    }

    /// Adds what `other` has seen; of two in one place the later stays.
    pub(crate) fn add(&mut self, other: &Witness) {
        for theirs in other.sightings() {
            match self.find(theirs.reason, theirs.from, &theirs.claim) {
                Ok(mine) => {
                    mine.count += theirs.count;
                    mine.last = mine.last.max(theirs.last);
                }
                Err(place) => {
                    let room = &mut self.places[place];
                    if room.as_ref().is_none_or(|mine| mine.last < theirs.last) {
                        *room = Some(theirs.clone());
                    }
                }
            }
        }
    }
}

/// Eight bytes at a time, which is enough: whoever finds claims of one group makes room only for his
/// own frames.
fn hash(reason: DropReason, claim: &Claim) -> u64 {
    let words = claim.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
    words.fold(reason as u64, |hash, word| {
        let mixed = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 32)
    })
}

/// Both hardware addresses and the type; of ARP the operation and the sender, of IP the source and
/// what begins behind the header; to a DHCP server also the addresses that a client says are its own.
/// This crate reads no protocol: these are places of bytes, and a frame of another form is told from
/// others less well, nothing else.
fn claim_of(bytes: &[u8]) -> Claim {
    let mut claim = [0; CLAIM_BYTES];
    let mut filled = 0;
    let mut take = |from: usize, to: usize| {
        if let Some(part) = bytes.get(from..to) {
            claim[filled..filled + part.len()].copy_from_slice(part);
            filled += part.len();
        }
    };
    take(0, 14);
    match bytes.get(12..14) {
        Some([0x08, 0x06]) => take(20, 32),
        Some([0x08, 0x00]) => {
            take(23, 24);
            take(26, 30);
            match (bytes.get(34..36), bytes.get(36..38)) {
                (_, Some([0, 67])) => {
                    take(34, 38);
                    take(54, 58);
                    take(66, 76);
                }
                (Some([0, 67]), _) => take(34, 36),
                _ => {}
            }
        }
        Some([0x86, 0xdd]) => {
            take(54, 55);
            take(62, 78);
        }
        _ => {}
    }
    claim
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(source: u32, address: u8) -> Vec<u8> {
        let mut bytes = vec![0; 60];
        bytes[8..12].copy_from_slice(&source.to_be_bytes());
        bytes[12..14].copy_from_slice(&[8, 6]);
        bytes[31] = address;
        bytes
    }

    fn see(witness: &mut Witness, millis: u64, source: u32, address: u8) {
        let now = Instant::from_millis(millis);
        witness.see(now, Side::WIRE, DropReason::PlainArp, &frame(source, address));
    }

    #[test]
    fn the_same_claim_is_one_sighting_with_its_count() {
        let mut witness = Witness::default();
        for millis in 1..=200 {
            see(&mut witness, millis, 7, 12);
        }
        see(&mut witness, 300, 7, 13);
        let mut seen: Vec<_> = witness.sightings().map(|one| (one.head[31], one.count)).collect();
        seen.sort_unstable();
        assert_eq!(seen, [(12, 200), (13, 1)]);
    }

    #[test]
    fn a_liar_among_fifty_talkers_is_seen() {
        let mut witness = Witness::default();
        for second in 1..=60 {
            for guest in 0..50 {
                see(&mut witness, second * 1000 + u64::from(guest), guest, guest as u8);
            }
            see(&mut witness, second * 1000 + 100, 0x66, 250);
            let liar = witness.sightings().find(|one| one.head[31] == 250);
            assert!(liar.is_some_and(|one| one.last == Instant::from_millis(second * 1000 + 100)));
        }
    }

    #[test]
    fn a_flood_of_changing_sources_keeps_few() {
        let mut witness = Witness::default();
        for source in 0..100_000 {
            see(&mut witness, 1000, source, 1);
        }
        assert!(witness.sightings().count() <= GROUPS * PLACES);
        assert_eq!(witness.newcomers, 100_000, "one interval, and all but the first were only counted");
    }

    #[test]
    fn two_books_add_up() {
        let (mut one, mut other) = (Witness::default(), Witness::default());
        see(&mut one, 1, 7, 12);
        see(&mut other, 2, 7, 12);
        see(&mut other, 3, 8, 12);
        one.add(&other);
        let mut counts: Vec<_> = one.sightings().map(|sighting| sighting.count).collect();
        counts.sort_unstable();
        assert_eq!(counts, [1, 2]);
    }
}
