//! Time as a bump sees it: handed in, never read.
//!
//! Two clocks, because they fail differently. `since_boot` never goes back and counts suspended time; every timer hangs
//! on it. The wall clock may be wrong by decades on a host that has just booted, so it comes with its trust and nothing
//! may refuse a first contact because of it.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A moment on the clock that counts from boot, suspended time included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The moment `nanoseconds` after boot.
    #[must_use]
    pub const fn from_nanos(nanoseconds: u64) -> Instant {
        Instant(nanoseconds)
    }

    /// The moment `milliseconds` after boot.
    #[must_use]
    pub const fn from_millis(milliseconds: u64) -> Instant {
        Instant(milliseconds.saturating_mul(1_000_000))
    }

    /// Nanoseconds since boot.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time that passed since `earlier`, zero if it is later.
    #[must_use]
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;

    fn add(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Instant;

    fn sub(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_sub(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// How far the wall clock may be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockTrust {
    /// The kernel says it is synchronised.
    Synchronised,
    /// It is plausible, no more.
    Plausible,
    /// It is known to be wrong, such as a date before this program was built.
    Wrong,
}

/// The wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wall {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub unix_ms: u64,
    /// How far to believe them.
    pub trust: ClockTrust,
}

/// The two clocks, read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Never goes back; every timer hangs on it.
    pub since_boot: Instant,
    /// For certificates and handshake stamps only.
    pub wall: Option<Wall>,
}

impl Now {
    /// The wall clock in milliseconds, if there is one that is not known to be wrong.
    #[must_use]
    pub fn trusted_unix_ms(&self) -> Option<u64> {
        self.wall.filter(|wall| wall.trust != ClockTrust::Wrong).map(|wall| wall.unix_ms)
    }
}

/// The earlier of two deadlines, where `None` is never.
#[must_use]
pub fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}
