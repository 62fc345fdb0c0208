//! Is the data path quiet enough to do slow work itself?
//!
//! Handing a job to the worker and its result back costs two wake-ups of a sleeping processor, together as much as the
//! signature itself. On a quiet interface nobody waits behind the job, so the data path runs it at once; under traffic,
//! or under a flood of handshakes, jobs go to the worker and no frame waits for them.

use std::time::Duration;

use bump::Instant;

/// Length of the window in which frames are counted.
const WINDOW: Duration = Duration::from_millis(10);
/// More frames than this in a window are traffic.
const QUIET_FRAMES_MAX: u64 = 32;

/// Counts frames in the current window and the one before it.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    window_start: Instant,
    frames_at_start: u64,
    frames_in_last_window: u64,
}

impl Quiet {
    /// Notes that `frames` frames have been received in all by `now`, and tells whether that is quiet.
    pub(super) fn is_quiet(&mut self, now: Instant, frames: u64) -> bool {
        let in_window = frames - self.frames_at_start;
        let age = now.since(self.window_start);
        if age >= WINDOW {
            // A window that ended long ago says nothing about now.
            self.frames_in_last_window = if age < WINDOW * 2 { in_window } else { 0 };
            self.window_start = now;
            self.frames_at_start = frames;
        }
        self.frames_in_last_window.max(frames - self.frames_at_start) <= QUIET_FRAMES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_not_quiet_until_two_windows_later() {
        let mut quiet = Quiet::default();
        let start = Instant::from_millis(1000);
        assert!(quiet.is_quiet(start, 5));
        assert!(quiet.is_quiet(start + Duration::from_millis(1), 30));
        assert!(!quiet.is_quiet(start + Duration::from_millis(2), 100));
        assert!(!quiet.is_quiet(start + Duration::from_millis(11), 101), "the window before had a burst");
        assert!(quiet.is_quiet(start + Duration::from_millis(22), 102));
        assert!(quiet.is_quiet(start + Duration::from_millis(90), 103));
    }
}
