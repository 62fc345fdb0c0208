//! Token buckets: how much of something costly strangers may cause in a second.

use std::collections::BTreeMap;
use std::time::Duration;

use bump::Instant;
use wire::MacAddress;

const NANOS_PER_SECOND: u64 = 1_000_000_000;
/// A full table is swept at most this often: a flood from random addresses must not cost a walk through it for each frame.
const SWEEP_INTERVAL: Duration = Duration::from_millis(100);

/// A bucket that fills at a steady rate up to its burst.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    nanos_per_token: u64,
    burst_nanos: u64,
    /// The bucket is full at this moment; every token taken moves it on.
    full_at: Instant,
}

impl Bucket {
    /// A full bucket of `burst` tokens that gains `per_second`.
    #[must_use]
    pub fn new(per_second: u32, burst: u32) -> Bucket {
        let nanos_per_token = NANOS_PER_SECOND / u64::from(per_second.max(1));
        Bucket { nanos_per_token, burst_nanos: nanos_per_token * u64::from(burst), full_at: Instant::default() }
    }

    /// Takes a token if there is one.
    pub fn take(&mut self, now: Instant) -> bool {
        let start = self.full_at.max(now);
        let after = start + Duration::from_nanos(self.nanos_per_token);
        if after.since(now).as_nanos() > u128::from(self.burst_nanos) {
            return false;
        }
        self.full_at = after;
        true
    }

    fn is_full(&self, now: Instant) -> bool {
        self.full_at <= now
    }
}

/// A bucket for each source, at most `limit` of them.
#[derive(Debug)]
pub struct PerSource<K = MacAddress> {
    buckets: BTreeMap<K, Bucket>,
    per_second: u32,
    limit: usize,
    next_sweep: Instant,
}

impl<K: Ord> PerSource<K> {
    /// No source yet; each may cause `per_second`, at most `limit` are counted apart.
    #[must_use]
    pub fn new(per_second: u32, limit: usize) -> PerSource<K> {
        PerSource { buckets: BTreeMap::new(), per_second, limit, next_sweep: Instant::default() }
    }

    /// Takes a token of `source`. Once the table is full of busy sources a new one is refused: a flood from random
    /// addresses is bounded by the table, and those who were there before keep their share.
    pub fn take(&mut self, now: Instant, source: K) -> bool {
        if let Some(bucket) = self.buckets.get_mut(&source) {
            return bucket.take(now);
        }
        if !self.has_room(now) {
            return false;
        }
        let mut fresh = Bucket::new(self.per_second, self.per_second);
        let taken = fresh.take(now);
        self.buckets.insert(source, fresh);
        taken
    }

    fn has_room(&mut self, now: Instant) -> bool {
        if self.buckets.len() >= self.limit && self.next_sweep <= now {
            self.next_sweep = now + SWEEP_INTERVAL;
            self.buckets.retain(|_, bucket| !bucket.is_full(now));
        }
        self.buckets.len() < self.limit
    }
}

/// The same budget twice: for those who have proved who they are, and for strangers. A stranger is whatever address a frame names, so
/// strangers are as many as an attacker likes, and use up nothing but their own.
#[derive(Clone, Copy, Debug)]
pub struct Apart<B> {
    /// Of those who have proved who they are.
    pub proved: B,
    /// Of everybody else.
    pub strangers: B,
}

impl<B> Apart<B> {
    /// What `make` makes, for either.
    pub fn new(make: impl Fn() -> B) -> Apart<B> {
        Apart { proved: make(), strangers: make() }
    }

    /// The budget of a host that has proved itself, or else that of strangers.
    pub fn of(&mut self, is_proved: bool) -> &mut B {
        if is_proved { &mut self.proved } else { &mut self.strangers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_leave_those_who_have_proved_themselves_theirs() {
        let mut apart = Apart::new(|| Bucket::new(1, 3));
        let now = Instant::from_millis(1_000_000);
        assert_eq!((0..20).filter(|_| apart.of(false).take(now)).count(), 3);
        assert_eq!((0..20).filter(|_| apart.of(true).take(now)).count(), 3);
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let mut bucket = Bucket::new(10, 5);
        let start = Instant::from_millis(1_000_000);
        assert_eq!((0..20).filter(|_| bucket.take(start)).count(), 5);
        let later = start + Duration::from_secs(1);
        assert_eq!((0..20).filter(|_| bucket.take(later)).count(), 5);
        let ticks = (0..1000).map(|tick| later + Duration::from_millis(10 * tick));
        assert_eq!(ticks.filter(|&at| bucket.take(at)).count(), 99);
    }

    #[test]
    fn sources_are_bounded_and_idle_ones_make_room() {
        let mut sources = PerSource::new(1, 2);
        let now = Instant::from_millis(1);
        let source = |last| MacAddress([2, 0, 0, 0, 0, last]);
        assert!(sources.take(now, source(1)));
        assert!(!sources.take(now, source(1)));
        assert!(sources.take(now, source(2)));
        assert!(!sources.take(now, source(3)));
        let later = now + Duration::from_secs(2);
        assert!(sources.take(later, source(3)));
    }

    #[test]
    fn a_full_table_is_not_swept_for_every_newcomer() {
        let mut sources = PerSource::new(1000, 1);
        let now = Instant::from_millis(1000);
        assert!(sources.take(now, 1));
        assert!(!sources.take(now, 2));
        // The first source's bucket is full again after a millisecond, the next sweep is not due.
        let soon = now + Duration::from_millis(2);
        assert!(!sources.take(soon, 2) && sources.take(soon, 1));
        assert!(sources.take(now + SWEEP_INTERVAL, 2));
    }
}
