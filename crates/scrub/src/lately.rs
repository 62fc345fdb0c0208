//! A bounded memory of what was seen last, by keyed digest.
//!
//! Entries lie in sets of two, and a new one takes the place of the older of its set. So a flood can push others out but not
//! make the memory grow, and nobody without the key can choose whom it pushes out. An entry is known by its digest alone: two
//! things that share 64 bits under a secret key are not to be found.

use std::time::Duration;

use bump::Instant;

/// Entries of a set: a cache line of the larger kind of entry, since many flows at once cost a miss for each.
const WAYS: usize = 2;
/// Sets of the first entry: a page. They become twice as many when one would lose what it should still remember.
const SETS_FIRST: usize = 64;

#[derive(Clone, Copy, Debug, Default)]
struct Entry<V> {
    /// Zero: nothing.
    digest: u64,
    at: Instant,
    value: V,
}

/// The entries between which a digest has the choice, in one cache line.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Set<V>([Entry<V>; WAYS]);

/// What was seen in the last `lifetime`, in at most about `entries_max` entries. Takes memory as it fills, so that a scrubber
/// for a few flows is not the price of one for many.
#[derive(Debug)]
pub(crate) struct Lately<V> {
    lifetime: Duration,
    sets_max: usize,
    sets: Vec<Set<V>>,
}

impl<V: Copy + Default> Lately<V> {
    pub(crate) fn new(entries_max: usize, lifetime: Duration) -> Lately<V> {
        Lately { lifetime, sets_max: (entries_max / WAYS).max(1), sets: Vec::new() }
    }

    /// What was put under `digest` last, and when.
    pub(crate) fn get(&self, now: Instant, digest: u64) -> Option<(Instant, &V)> {
        let digest = never_zero(digest);
        let entry = self.sets.get(self.index(digest))?.0.iter().find(|entry| entry.digest == digest)?;
        (now.since(entry.at) < self.lifetime).then_some((entry.at, &entry.value))
    }

    /// Remembers `value` under `digest`.
    pub(crate) fn put(&mut self, now: Instant, digest: u64, value: V) {
        let entry = Entry { digest: never_zero(digest), at: now, value };
        while self.sets.len() < self.sets_max && self.would_forget(&entry) {
            self.grow();
        }
        let index = self.index(entry.digest);
        if let Some(set) = self.sets.get_mut(index) {
            set.put(entry);
        }
    }

    /// Whether there is no place for `entry` but that of another that still counts.
    fn would_forget(&self, entry: &Entry<V>) -> bool {
        let counts = |other: &Entry<V>| {
            let is_another = other.digest != 0 && other.digest != entry.digest;
            is_another && entry.at.since(other.at) < self.lifetime
        };
        self.sets.get(self.index(entry.digest)).is_none_or(|set| set.0.iter().all(counts))
    }

    /// Makes twice as many sets, where every entry finds its place again.
    fn grow(&mut self) {
        let sets = (self.sets.len() * 2).clamp(SETS_FIRST.min(self.sets_max), self.sets_max);
        let before = std::mem::replace(&mut self.sets, vec![Set::default(); sets]);
        for entry in before.into_iter().flat_map(|set| set.0).filter(|entry| entry.digest != 0) {
            let index = self.index(entry.digest);
            self.sets[index].put(entry);
        }
    }

    /// Which set a digest belongs to: its upper half, scaled to the number of sets.
    fn index(&self, digest: u64) -> usize {
        (((digest >> 32) * self.sets.len() as u64) >> 32) as usize
    }
}

impl<V> Set<V> {
    /// In the place of the same digest, or of the older entry.
    fn put(&mut self, entry: Entry<V>) {
        let [first, second] = &mut self.0;
        let is_for_second = second.digest == entry.digest || (first.digest != entry.digest && second.at < first.at);
        *if is_for_second { second } else { first } = entry;
    }
}

fn never_zero(digest: u64) -> u64 {
    digest.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIFETIME: Duration = Duration::from_millis(100);

    #[test]
    fn what_was_put_is_there_until_its_lifetime_ends() {
        let mut lately = Lately::new(64, LIFETIME);
        assert!(lately.get(Instant::from_millis(1), 0).is_none(), "an empty entry has the digest zero");
        for digest in [0, 7, u64::MAX] {
            lately.put(Instant::from_millis(10), digest, digest);
            assert_eq!(lately.get(Instant::from_millis(109), digest), Some((Instant::from_millis(10), &digest)));
            assert_eq!(lately.get(Instant::from_millis(110), digest), None);
        }
    }

    #[test]
    fn the_newest_value_counts_and_its_time() {
        let mut lately = Lately::new(64, LIFETIME);
        lately.put(Instant::from_millis(10), 7, 1);
        lately.put(Instant::from_millis(20), 7, 2);
        assert_eq!(lately.get(Instant::from_millis(110), 7), Some((Instant::from_millis(20), &2)));
    }

    #[test]
    fn a_flood_pushes_out_the_oldest_and_takes_no_more_memory() {
        let mut lately = Lately::new(WAYS, LIFETIME);
        for number in 0..1000_u64 {
            lately.put(Instant::from_nanos(number), number << 20 | 1, number);
        }
        let left = (0..1000_u64).filter(|number| lately.get(Instant::from_nanos(1000), number << 20 | 1).is_some());
        assert_eq!(left.collect::<Vec<_>>(), [998, 999]);
        assert_eq!(lately.sets.len(), 1);
    }

    /// Digests that are spread over all 64 bits.
    fn spread(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn memory_grows_with_what_is_remembered_and_no_further_than_it_may() {
        let mut lately = Lately::new(1 << 12, LIFETIME);
        lately.put(Instant::from_millis(1), spread(1), 1);
        assert_eq!(lately.sets.len(), SETS_FIRST);
        for number in 1..=100 {
            lately.put(Instant::from_millis(1), spread(number), number);
        }
        assert!((1..=100).all(|number| lately.get(Instant::from_millis(1), spread(number)).is_some()));
        assert!(lately.sets.len() < lately.sets_max, "{} sets for 100 entries", lately.sets.len());
        for number in 0..1 << 16 {
            lately.put(Instant::from_millis(1), spread(number), number);
        }
        assert_eq!(lately.sets.len(), lately.sets_max);
    }

    #[test]
    fn what_is_long_past_makes_room_instead_of_memory() {
        let mut lately = Lately::new(1 << 12, LIFETIME);
        for number in 0..1 << 12 {
            lately.put(Instant::from_millis(number * 10), spread(number), number);
        }
        assert_eq!(lately.sets.len(), SETS_FIRST);
    }
}
