//! When full-sized frames trickle in fast, let a few of them gather before the next look.
//!
//! A paced link delivers a frame every few microseconds. Taken one by one, each costs a wake-up, a read and a write to the
//! stack, and a core is full at 1 Gbit/s. Cards solve this with interrupt moderation; this is the same in software. It
//! acts only while much data arrives in small portions, so it touches neither single packets nor acknowledgements, and
//! it sleeps: it never spins.

use std::time::Duration;

use bump::Instant;
use system::port::ReceiveCounters;

/// Length of the window in which bytes are counted.
const WINDOW: Duration = Duration::from_millis(10);
/// Bytes in a window from which on data counts as dense: 250 Mbit/s.
const DENSE_BYTES: u64 = 250_000_000 / 8 / 100;
/// A turn that took as many frames is worth its cost.
const PORTION_FRAMES: u64 = 24;
/// Shorter frames are acknowledgements and requests, which nobody should wait for.
const FULL_FRAME_BYTES: u64 = 512;
/// How long frames gather: eight of them at 1 Gbit/s. The timer of an ordinary thread adds up to 50 us.
const PAUSE: Duration = Duration::from_micros(60);

/// Decides after each turn whether to let frames gather.
#[derive(Debug, Default)]
pub(super) struct Gather {
    window_start: Instant,
    at_window_start: u64,
    in_last_window: u64,
    last: ReceiveCounters,
}

impl Gather {
    /// How long to pause after a turn after which the wire's counters are `counters`.
    pub(super) fn pause_after(&mut self, now: Instant, counters: ReceiveCounters) -> Option<Duration> {
        let dense = self.is_dense(now, counters.bytes);
        let frames = counters.frames - self.last.frames;
        let bytes = counters.bytes - self.last.bytes;
        self.last = counters;
        let small_portion = (1..PORTION_FRAMES).contains(&frames);
        (dense && small_portion && bytes >= frames * FULL_FRAME_BYTES).then_some(PAUSE)
    }

    fn is_dense(&mut self, now: Instant, bytes: u64) -> bool {
        let age = now.since(self.window_start);
        if age >= WINDOW {
            self.in_last_window = if age < WINDOW * 2 { bytes - self.at_window_start } else { 0 };
            self.window_start = now;
            self.at_window_start = bytes;
        }
        self.in_last_window >= DENSE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds portions of `frames` frames of `len` bytes every 50 us and counts the pauses among the last hundred.
    fn pauses(frames: u64, len: u64) -> usize {
        let mut gather = Gather::default();
        let mut counters = ReceiveCounters::default();
        let mut pauses = Vec::new();
        for turn in 1..=1000_u64 {
            counters.frames += frames;
            counters.bytes += frames * len;
            let now = Instant::from_nanos(1_000_000_000 + turn * 50_000);
            pauses.push(gather.pause_after(now, counters).is_some());
        }
        pauses[900..].iter().filter(|paused| **paused).count()
    }

    #[test]
    fn only_much_data_in_small_portions_waits() {
        assert_eq!(pauses(4, 1500), 100, "960 Mbit/s, four frames at a time");
        assert_eq!(pauses(64, 1500), 0, "full portions");
        assert_eq!(pauses(1, 1500), 0, "240 Mbit/s");
        assert_eq!(pauses(20, 90), 0, "acknowledgements");
    }
}
