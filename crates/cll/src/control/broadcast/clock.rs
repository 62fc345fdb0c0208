//! The stamps that this host gives to what it says to all (paper, section 5.5: a timestamp, and a counter within it).
//!
//! The time starts at the wall clock and then counts with the time since boot. So it never goes back while this program
//! runs, whatever happens to the wall clock; which run it belongs to is said by a number that is drawn at its start.

use bump::{Generator, Instant, Now};
use wire::cll::broadcast::{INCARNATION_LEN, Stamp};

#[derive(Debug)]
pub(super) struct Clock {
    incarnation: [u8; INCARNATION_LEN],
    started: Instant,
    started_ms: u64,
    last: (u64, u32),
}

impl Clock {
    pub(super) fn new(random: &mut Generator, now: Now) -> Clock {
        let started_ms = now.wall.map_or(0, |wall| wall.unix_ms);
        Clock { incarnation: random.bytes(), started: now.since_boot, started_ms, last: (started_ms, 0) }
    }

    pub(super) fn incarnation(&self) -> [u8; INCARNATION_LEN] {
        self.incarnation
    }

    /// The next stamp. Two in a row at one moment have the same time and counters that follow each other.
    pub(super) fn next(&mut self, now: Instant) -> Stamp {
        let since_start = u64::try_from(now.since(self.started).as_millis()).unwrap_or(u64::MAX);
        let time_ms = self.started_ms.saturating_add(since_start).max(self.last.0);
        let counter = if time_ms == self.last.0 { self.last.1 + 1 } else { 0 };
        self.last = (time_ms, counter);
        Stamp { incarnation: self.incarnation, time_ms, counter }
    }
}

#[cfg(test)]
mod tests {
    use bump::{ClockTrust, Wall};

    use super::*;

    #[test]
    fn stamps_rise_also_within_a_millisecond() {
        let wall = Some(Wall { unix_ms: 5000, trust: ClockTrust::Plausible });
        let start = Now { since_boot: Instant::from_millis(100), wall };
        let mut clock = Clock::new(&mut Generator::from_seed([1; 32]), start);
        let mut at = |ms| {
            let stamp = clock.next(Instant::from_millis(ms));
            (stamp.time_ms, stamp.counter)
        };
        assert_eq!(
            [at(100), at(100), at(101), at(101), at(2100)],
            [(5000, 1), (5000, 2), (5001, 0), (5001, 1), (7000, 0)]
        );
    }

    #[test]
    fn each_run_has_its_own_incarnation() {
        let now = Now { since_boot: Instant::default(), wall: None };
        let mut random = Generator::from_seed([1; 32]);
        assert_ne!(Clock::new(&mut random, now).incarnation(), Clock::new(&mut random, now).incarnation());
    }
}
