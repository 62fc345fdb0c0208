//! When frames trickle in fast, let a few of them gather before the next look.
//!
//! A paced link delivers a frame every few microseconds. Taken one by one, each costs a wake-up, a read and a write to the
//! stack, and a core is full at 1 Gbit/s. Cards solve this with interrupt moderation; this is the same in software. It
//! acts only while much data arrives in small portions, so it touches neither single packets nor acknowledgements, and
//! it sleeps: it never spins.
//!
//! Where only ARP and DHCP come to the daemon nobody sends much of it but a flood, or all hosts of a site that ask their
//! distributor at once. To refuse a forged request takes less time than to fall asleep behind it and to be woken, so there many
//! frames are enough, whatever their length, and the next look comes after the pause whether or not there was anything.

use std::time::Duration;

use bump::Instant;
use system::port::ReceiveCounters;
use system::port::limits::WIRE_BATCH_MAX_FRAMES;

/// Length of the window in which bytes are counted.
const WINDOW: Duration = Duration::from_millis(10);
/// Bytes in a window from which on data counts as dense: 250 Mbit/s.
const DENSE_BYTES: u64 = 250_000_000 / 8 / 100;
/// A turn that took as many frames, or bytes, is worth its cost: super-frames come one by one.
const PORTION_FRAMES: u64 = 24;
const PORTION_BYTES: u64 = PORTION_FRAMES * 1500;
/// Shorter frames are acknowledgements and requests, which nobody should wait for.
const FULL_FRAME_BYTES: u64 = 512;
/// How long frames gather: eight of them at 1 Gbit/s. The timer of an ordinary thread adds up to 50 us.
const PAUSE: Duration = Duration::from_micros(60);

/// Frames in a window from which on what is kept for the daemon counts as dense: 10,000 in a second.
const DENSE_KEPT_FRAMES: u64 = 100;
/// How long those gather, a small part of what a ring holds.
const KEPT_PAUSE: Duration = Duration::from_micros(250);
/// Frames in a window from which on it is a flood: 40,000 in a second. To wake up costs as much as to refuse tens of them.
const FLOOD_KEPT_FRAMES: u64 = 400;
/// How long those of a flood gather: forty of 80,000 in a second.
const FLOOD_KEPT_PAUSE: Duration = Duration::from_micros(500);

/// What comes to the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Traffic {
    #[default]
    Everything,
    Kept,
}

/// Decides after each turn whether to let frames gather.
#[derive(Debug, Default)]
pub(super) struct Gather {
    traffic: Traffic,
    window_start: Instant,
    at_window_start: u64,
    in_last_window: u64,
    last: ReceiveCounters,
}

impl Gather {
    /// For ports that hear only what is kept for the daemon.
    pub(super) fn of_kept() -> Gather {
        Gather { traffic: Traffic::Kept, ..Gather::default() }
    }

    /// How long to pause after a turn after which the wire's counters are `counters`, instead of waiting for the next frame.
    pub(super) fn pause_after(&mut self, now: Instant, counters: ReceiveCounters) -> Option<Duration> {
        let frames = counters.frames - self.last.frames;
        let bytes = counters.bytes - self.last.bytes;
        self.last = counters;
        match self.traffic {
            Traffic::Everything => {
                let dense = self.in_window(now, counters.bytes) >= DENSE_BYTES;
                let small_portion = (1..PORTION_FRAMES).contains(&frames) && bytes < PORTION_BYTES;
                (dense && small_portion && bytes >= frames * FULL_FRAME_BYTES).then_some(PAUSE)
            }
            Traffic::Kept => {
                let pause = match self.in_window(now, counters.frames) {
                    FLOOD_KEPT_FRAMES.. => FLOOD_KEPT_PAUSE,
                    DENSE_KEPT_FRAMES.. => KEPT_PAUSE,
                    _ => return None,
                };
                (frames < WIRE_BATCH_MAX_FRAMES as u64).then_some(pause)
            }
        }
    }

    /// By how much a counter grew in the last window, which is `count` now.
    fn in_window(&mut self, now: Instant, count: u64) -> u64 {
        let age = now.since(self.window_start);
        if age >= WINDOW {
            self.in_last_window = if age < WINDOW * 2 { count - self.at_window_start } else { 0 };
            self.window_start = now;
            self.at_window_start = count;
        }
        self.in_last_window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds portions of `frames` frames of `len` bytes every 50 us and counts the pauses among the last hundred.
    fn pauses(frames: u64, len: u64) -> usize {
        pauses_every(Gather::default(), 50, frames, len)
    }

    fn pauses_every(mut gather: Gather, interval_us: u64, frames: u64, len: u64) -> usize {
        let mut counters = ReceiveCounters::default();
        let mut pauses = Vec::new();
        for turn in 1..=1000_u64 {
            counters.frames += frames;
            counters.bytes += frames * len;
            let now = Instant::from_nanos(1_000_000_000 + turn * interval_us * 1000);
            pauses.push(gather.pause_after(now, counters).is_some());
        }
        pauses[900..].iter().filter(|paused| **paused).count()
    }

    #[test]
    fn only_much_data_in_small_portions_waits() {
        assert_eq!(pauses(4, 1500), 100, "960 Mbit/s, four frames at a time");
        assert_eq!(pauses(64, 1500), 0, "full portions");
        assert_eq!(pauses(1, 1500), 0, "240 Mbit/s");
        assert_eq!(pauses(1, 65_000), 0, "super-frames one by one");
        assert_eq!(pauses(64, 540), 0, "full portions of shorter frames");
        assert_eq!(pauses(30, 1000), 0, "half a portion");
        assert_eq!(pauses(20, 90), 0, "acknowledgements");
    }

    #[test]
    fn of_what_is_kept_a_flood_waits_and_single_frames_do_not() {
        let of_kept = |interval_us, frames| pauses_every(Gather::of_kept(), interval_us, frames, 90);
        assert_eq!(of_kept(50, 1), 100, "20,000 frames a second");
        assert_eq!(of_kept(50, 64), 0, "full portions");
        assert_eq!(of_kept(1000, 1), 0, "1,000 frames a second");
        assert_eq!(of_kept(50, 0), 0, "nothing");
    }
}
