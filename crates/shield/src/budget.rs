//! Token buckets: how much of something costly strangers may cause in a second.

use std::collections::{BTreeMap, BTreeSet};
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

/// A budget of so much for each source and so much for all, for those who have proved themselves
/// and for strangers.
#[derive(Debug)]
struct Shares {
    all: Apart<Bucket>,
    per_source: Apart<PerSource>,
}

impl Shares {
    fn take(&mut self, now: Instant, source: MacAddress, is_proved: bool) -> bool {
        self.per_source.of(is_proved).take(now, source) && self.all.of(is_proved).take(now)
    }
}

/// What may be caused by messages that carry their sender's time under a tag that outsiders cannot
/// make.
#[derive(Clone, Copy, Debug)]
pub struct RecencyRates {
    /// Of one source, in a second.
    pub per_source: u32,
    /// Sources that are counted apart.
    pub sources_max: usize,
    /// Of all sources that have proved themselves, in a second.
    pub proved: u32,
    /// Of all other sources, and of all messages that are not the newest of their source, in a
    /// second.
    pub others: u32,
}

/// Budgets for such messages. The newest of each source has a budget apart from older ones: an
/// outsider has nothing but recordings, and a recording is never newer than what its sender says
/// now. So recordings exhaust the budget of older messages, which an honest host needs only if its
/// clock was set back.
#[derive(Debug)]
pub struct ByRecency {
    newest: BTreeMap<MacAddress, u64>,
    by_time: BTreeSet<(u64, MacAddress)>,
    sources_max: usize,
    of_newest: Shares,
    of_older: Shares,
}

impl ByRecency {
    /// Full budgets, and nothing heard yet.
    #[must_use]
    pub fn new(rates: RecencyRates) -> ByRecency {
        let shares = |proved: u32| Shares {
            all: Apart { proved: Bucket::new(proved, proved), strangers: Bucket::new(rates.others, rates.others) },
            per_source: Apart::new(|| PerSource::new(rates.per_source, rates.sources_max)),
        };
        ByRecency {
            newest: BTreeMap::new(),
            by_time: BTreeSet::new(),
            sources_max: rates.sources_max,
            of_newest: shares(rates.proved),
            of_older: shares(rates.others),
        }
    }

    /// `source` said something at `time`, in whatever unit its messages have.
    pub fn hear(&mut self, source: MacAddress, time: u64) {
        match self.newest.get(&source) {
            Some(known) if *known >= time => return,
            Some(known) => _ = self.by_time.remove(&(*known, source)),
            // The source that was silent for longest loses the least.
            None if self.newest.len() >= self.sources_max => {
                self.by_time.pop_first().map(|(_, oldest)| self.newest.remove(&oldest));
            }
            None => {}
        }
        self.newest.insert(source, time);
        self.by_time.insert((time, source));
    }

    /// Takes a token for a message that `source` made at `time`. The same message again is as new
    /// as before.
    pub fn take(&mut self, now: Instant, source: MacAddress, is_proved: bool, time: u64) -> bool {
        let is_newest = self.newest.get(&source).is_none_or(|newest| time >= *newest);
        if is_newest {
            self.hear(source, time);
        }
        let shares = if is_newest { &mut self.of_newest } else { &mut self.of_older };
        shares.take(now, source, is_proved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: RecencyRates = RecencyRates { per_source: 4, sources_max: 8, proved: 100, others: 10 };

    fn mac(last: u8) -> MacAddress {
        MacAddress([2, 0, 0, 0, 0, last])
    }

    #[test]
    fn older_messages_leave_the_newest_of_every_source_its_share() {
        let mut budget = ByRecency::new(RATES);
        let now = Instant::from_millis(1_000_000);
        (1..=4).for_each(|source| budget.hear(mac(source), 1000));
        let recorded = (0..400).filter(|n| budget.take(now, mac(1 + (n % 4) as u8), true, 500 + n)).count();
        assert_eq!(recorded, 10, "recordings of all sources share one budget");
        assert!((1..=4).all(|source| budget.take(now, mac(source), true, 1001)));
    }

    #[test]
    fn ascending_recordings_end_with_the_first_message_of_today() {
        let mut budget = ByRecency::new(RATES);
        let now = Instant::from_millis(1_000_000);
        assert_eq!((0..50).filter(|n| budget.take(now, mac(1), true, 500 + n)).count(), 4);
        // Refused once, because its share is used up; known as the newest from then on.
        assert!(!budget.take(now, mac(1), true, 2000));
        let later = now + Duration::from_secs(1);
        assert_eq!((0..50).filter(|n| budget.take(later, mac(1), true, 600 + n)).count(), 4, "of the older ones");
        assert!(budget.take(later, mac(1), true, 2000));
    }

    #[test]
    fn the_table_of_sources_is_bounded_and_forgets_the_one_silent_for_longest() {
        let mut budget = ByRecency::new(RATES);
        (1..=9).for_each(|source| budget.hear(mac(source), u64::from(source)));
        assert_eq!((budget.newest.len(), budget.by_time.len()), (8, 8));
        assert!(!budget.newest.contains_key(&mac(1)));
    }

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
