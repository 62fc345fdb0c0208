//! Does so much leave by the wire that trains pay?
//!
//! A train saves the kernel most of its work on a frame and costs the wire 28 bytes for each. On a wire of 1 Gbit/s or less
//! the wire is the narrow place, and frames go one by one. What is faster than that is never full before the processor is.

use std::time::Duration;

use bump::Instant;

/// Length of the window in which bytes are counted: long enough that what queues on the way swallow at once does not look
/// like a fast wire.
const WINDOW: Duration = Duration::from_millis(100);
/// Bytes in a window from which on the wire must be faster than 1 Gbit/s: 1.5 Gbit/s.
const BULK_BYTES: u64 = 1_500_000_000 / 8 / 10;

/// Counts bytes in the current window, and remembers what the one before it said.
#[derive(Debug)]
pub(super) struct Bulk {
    always: bool,
    window_start: Instant,
    at_window_start: u64,
    is_bulk: bool,
}

impl Bulk {
    /// `always` calls everything bulk, as a configuration may ask for.
    pub(super) fn new(always: bool) -> Bulk {
        Bulk { always, window_start: Instant::default(), at_window_start: 0, is_bulk: false }
    }

    /// Notes that `bytes` bytes have left in all by `now`, and tells whether that is bulk.
    pub(super) fn is_bulk(&mut self, now: Instant, bytes: u64) -> bool {
        let age = now.since(self.window_start);
        if age >= WINDOW {
            // A window that ended long ago says nothing about now.
            self.is_bulk = age < WINDOW * 2 && bytes - self.at_window_start >= BULK_BYTES;
            self.window_start = now;
            self.at_window_start = bytes;
        }
        self.is_bulk || self.always
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said after a second of sending at this rate, 100 us apart, then `rest` without sending.
    fn after_sending(mbit: u64, rest: Duration) -> bool {
        let mut bulk = Bulk::new(false);
        let mut bytes = 0;
        for turn in 0..10_000_u64 {
            bytes += mbit * 100 / 8;
            bulk.is_bulk(Instant::from_nanos(1_000_000_000 + turn * 100_000), bytes);
        }
        bulk.is_bulk(Instant::from_nanos(2_000_000_000) + rest, bytes)
    }

    #[test]
    fn only_more_than_a_gigabit_is_bulk() {
        assert!(!after_sending(1_000, Duration::ZERO));
        assert!(after_sending(2_500, Duration::ZERO));
        assert!(!after_sending(2_500, Duration::from_millis(300)));
    }
}
