//! Moments on the S-ARP clock, in units of 2^-32 s as messages carry them.

use std::time::Duration;

/// Whether two moments are at most `window` apart.
pub(crate) fn are_near(one: u64, other: u64, window: Duration) -> bool {
    one.abs_diff(other) <= window.as_secs() << 32
}

/// Whole seconds since 1970.
pub(crate) fn seconds(stamp: u64) -> u64 {
    stamp >> 32
}
