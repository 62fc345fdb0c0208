//! The local S-ARP clock (sections 3.1 and 3.4): the distributor's time, carried on by this host's own timer. It needs no
//! wall clock, so a host that boots in 1970 takes part like any other.

use std::time::Duration;

use bump::Instant;

use crate::limits::CLOCK_GOOD_FOR;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// A moment on the S-ARP clock: seconds since 1970 in the upper half, the fraction in units of 2^-32 s in the lower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp(u64);

impl Stamp {
    /// The moment `seconds` and `fraction` of a message.
    #[must_use]
    pub fn new(seconds: u32, fraction: u32) -> Stamp {
        Stamp(u64::from(seconds) << 32 | u64::from(fraction))
    }

    /// The moment `unix_ms` milliseconds after 1970.
    #[must_use]
    pub fn from_unix_ms(unix_ms: u64) -> Stamp {
        Stamp((unix_ms / 1000) << 32).plus(Duration::from_millis(unix_ms % 1000))
    }

    /// The moment as messages carry it: units of 2^-32 s since 1970.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// Whole seconds since 1970.
    #[must_use]
    pub fn seconds(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The fraction of the second in units of 2^-32 s.
    #[must_use]
    pub fn fraction(self) -> u32 {
        self.0 as u32
    }

    /// How far apart two moments are.
    #[must_use]
    pub fn distance(self, other: Stamp) -> Duration {
        let units = u128::from(self.0.abs_diff(other.0));
        Duration::from_nanos(u64::try_from((units * NANOS_PER_SECOND) >> 32).unwrap_or(u64::MAX))
    }

    fn plus(self, time: Duration) -> Stamp {
        let units = (time.as_nanos() << 32) / NANOS_PER_SECOND;
        Stamp(self.0.saturating_add(u64::try_from(units).unwrap_or(u64::MAX)))
    }

    fn next(self) -> Stamp {
        Stamp(self.0.saturating_add(1))
    }
}

/// The clock of one host; not running until a distributor has set it.
#[derive(Debug, Default)]
pub struct Clock {
    set: Option<(Instant, Stamp)>,
    last_given: Stamp,
}

impl Clock {
    /// What time it is; `None` before the clock was first set.
    #[must_use]
    pub fn read(&self, now: Instant) -> Option<Stamp> {
        self.set.map(|(at, stamp)| stamp.plus(now.since(at)))
    }

    /// A stamp for a message of our own: never the same twice, and never older than one before, so that no receiver takes
    /// it for a replay.
    pub fn stamp(&mut self, now: Instant) -> Option<Stamp> {
        let stamp = self.read(now)?.max(self.last_given.next());
        self.last_given = stamp;
        Some(stamp)
    }

    /// Sets the clock; returns by how much it was wrong, and whether it was ahead.
    pub fn set(&mut self, now: Instant, stamp: Stamp) -> Option<(Duration, bool)> {
        let before = self.read(now);
        self.set = Some((now, stamp));
        before.map(|before| (before.distance(stamp), before > stamp))
    }

    /// Forgets what was given out, after a step back that everybody takes: stamps begin again from the new time.
    pub fn begin_again(&mut self) {
        self.last_given = Stamp::default();
    }

    /// When it will be time to ask for the time again; `None` before it was first told.
    #[must_use]
    pub fn due_at(&self) -> Option<Instant> {
        self.set.map(|(at, _)| at + CLOCK_GOOD_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_runs_from_the_moment_it_was_set() {
        let mut clock = Clock::default();
        let start = Instant::from_millis(5000);
        assert_eq!((clock.read(start), clock.stamp(start), clock.due_at()), (None, None, None));
        assert_eq!(clock.set(start, Stamp::new(1000, 0)), None);
        // 250 ms are a quarter of 2^32 units.
        assert_eq!(clock.read(start + Duration::from_millis(1250)), Some(Stamp::new(1001, 1 << 30)));
        assert_eq!(clock.due_at(), Some(start + CLOCK_GOOD_FOR));
    }

    #[test]
    fn stamps_grow_even_when_the_clock_is_set_back() {
        let mut clock = Clock::default();
        let now = Instant::from_millis(1);
        clock.set(now, Stamp::new(1000, 0));
        let first = clock.stamp(now).expect("set");
        let second = clock.stamp(now).expect("set");
        assert!(second > first);
        assert_eq!(clock.set(now, Stamp::new(900, 0)), Some((Duration::from_secs(100), true)));
        assert!(clock.stamp(now).expect("set") > second);
        clock.begin_again();
        assert_eq!(clock.stamp(now), Some(Stamp::new(900, 0)));
    }

    #[test]
    fn milliseconds_become_fractions() {
        assert_eq!(Stamp::from_unix_ms(1_500_500), Stamp::new(1500, 1 << 31));
        assert_eq!(Stamp::new(10, 0).distance(Stamp::new(12, 1 << 31)), Duration::from_millis(2500));
    }
}
