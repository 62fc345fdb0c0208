//! How many questions are answered: so many at once and so many a second, and few of each host. A
//! service that somebody has taken over cannot have the authority sign without end.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Refusal;

/// Questions that are answered at once: hosts that were off come back together.
const BURST: u32 = 256;
/// Time for one more.
const EVERY: Duration = Duration::from_millis(100);
/// The same of one host or token.
const BURST_OF_ONE: u32 = 8;
const EVERY_OF_ONE: Duration = Duration::from_secs(2);
/// Hosts that are remembered; one whose bucket is full again is forgotten.
const REMEMBERED_MAX: usize = 4096;

/// Fills with time, and each question takes one.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: u32,
    /// Up to when it is filled.
    at: Instant,
}

impl Bucket {
    fn take(&mut self, now: Instant, most: u32, every: Duration) -> bool {
        self.fill(now, most, every);
        let may = self.left > 0;
        self.left -= u32::from(may);
        may
    }

    fn fill(&mut self, now: Instant, most: u32, every: Duration) {
        let more = now.saturating_duration_since(self.at).as_millis() / every.as_millis();
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(more).min(most);
        // What is no whole one yet is not lost.
        self.at = if self.left == most { now } else { self.at + every * more };
    }
}

/// All of it.
#[derive(Debug)]
pub(super) struct Pace {
    all: Bucket,
    each: BTreeMap<String, Bucket>,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Pace {
        Pace { all: Bucket { left: BURST, at: now }, each: BTreeMap::new() }
    }

    /// Whether one more of `who` is answered.
    pub(super) fn check(&mut self, who: &str, now: Instant) -> Result<(), Refusal> {
        if self.each.len() >= REMEMBERED_MAX {
            self.each.retain(|_, bucket| {
                bucket.fill(now, BURST_OF_ONE, EVERY_OF_ONE);
                bucket.left < BURST_OF_ONE
            });
        }
        if self.each.len() >= REMEMBERED_MAX && !self.each.contains_key(who) {
            return Err(Refusal::TooOften);
        }
        let own = self.each.entry(who.to_owned()).or_insert(Bucket { left: BURST_OF_ONE, at: now });
        // One that asks too often takes nothing from others.
        let may = own.take(now, BURST_OF_ONE, EVERY_OF_ONE) && self.all.take(now, BURST, EVERY);
        if may { Ok(()) } else { Err(Refusal::TooOften) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_asks_without_end_gets_few_and_takes_nothing_from_others() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let mut answered = |who: &str, after_s: u64| {
            (0..1000).filter(|_| pace.check(who, start + Duration::from_secs(after_s)).is_ok()).count()
        };
        assert_eq!((answered("a", 0), answered("b", 0)), (8, 8));
        assert_eq!(answered("a", 1), 0);
        assert_eq!(answered("a", 2), 1);
        assert_eq!(answered("a", 3600), 8, "no more is saved up");
    }

    #[test]
    fn all_together_get_so_many_and_what_is_remembered_has_an_end() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let mut answered = |from: usize, after_s: u64| {
            let names = (from..from + 10_000).map(|number| number.to_string());
            names.filter(|who| pace.check(who, start + Duration::from_secs(after_s)).is_ok()).count()
        };
        assert_eq!(answered(0, 0), 256);
        assert_eq!(answered(10_000, 0), 0);
        assert_eq!(answered(20_000, 10), 100, "ten a second");
        assert!(pace.each.len() <= REMEMBERED_MAX);
    }
}
