//! The clocks of a simulated machine: one that counts from its boot, and one on the wall that may be wrong or missing.

use std::time::Duration;

use bump::{ClockTrust, Generator, Instant, Now, Wall};

use super::agenda::START;

/// The moment at which every run starts, in seconds since 1970; the certificates are issued an hour before.
pub const START_UNIX_S: u64 = 1_800_000_000;

/// What a machine without a battery shows when it starts: a quarter of an hour after the beginning of 1970, in milliseconds.
const EPOCH_UNIX_MS: u64 = 900_000;
/// Longest time for which a machine has been up when a run starts, in seconds.
const UP_MAX_S: u64 = 1_000_000;

/// How a wall clock stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// It is off by so many milliseconds and nobody knows.
    Off(i64),
    /// It started in 1970 and the machine knows that this is wrong.
    Epoch,
    /// There is none.
    Missing,
}

/// The clocks of one machine.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// How its wall clock stands.
    pub wall: Clock,
    booted_before: Duration,
}

impl Clocks {
    /// Clocks of a machine that has been up for a time that `random` draws.
    pub fn new(wall: Clock, random: &mut Generator) -> Clocks {
        Clocks { wall, booted_before: Duration::from_secs(random.below(UP_MAX_S)) }
    }

    /// What they show at the moment `at` of the run.
    pub fn now(&self, at: Instant) -> Now {
        let since_start_ms = at.since(START).as_millis() as u64;
        let wall = match self.wall {
            Clock::Missing => None,
            Clock::Epoch => Some((EPOCH_UNIX_MS + since_start_ms, ClockTrust::Wrong)),
            Clock::Off(error_ms) => {
                let true_ms = START_UNIX_S * 1000 + since_start_ms;
                Some((true_ms.saturating_add_signed(error_ms), ClockTrust::Plausible))
            }
        };
        let wall = wall.map(|(unix_ms, trust)| Wall { unix_ms, trust });
        Now { since_boot: at + self.booted_before, wall }
    }

    /// The moment of the run that this machine, which counts from its boot, calls `own`.
    pub fn moment(&self, own: Instant) -> Instant {
        own - self.booted_before
    }
}
