//! A bounded memory of what was seen last, by keyed digest.
//!
//! Entries lie in sets of two, and a new one takes the place of the older of its set. So a flood can push others out but not
//! make the memory grow, and nobody without the key can choose whom it pushes out. An entry is known by its digest alone: two
//! things that share 64 bits under a secret key are not to be found.

use std::time::Duration;

use bump::Instant;

/// Entries of a set: a cache line of the larger kind of entry, since many flows at once cost a miss for each.
const WAYS: usize = 2;

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

/// What was seen in the last `lifetime`, in at most about `entries_max` entries. Takes memory with its first entry.
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
        if self.sets.is_empty() {
            self.sets.resize(self.sets_max, Set::default());
        }
        let digest = never_zero(digest);
        let index = self.index(digest);
        let [first, second] = &mut self.sets[index].0;
        let is_for_second = second.digest == digest || (first.digest != digest && second.at < first.at);
        *if is_for_second { second } else { first } = Entry { digest, at: now, value };
    }

    /// Which set a digest belongs to: its upper half, scaled to the number of sets.
    fn index(&self, digest: u64) -> usize {
        (((digest >> 32) * self.sets_max as u64) >> 32) as usize
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
}
