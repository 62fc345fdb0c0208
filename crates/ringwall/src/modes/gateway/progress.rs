//! How far a replay is, where somebody watches.

use std::io::{IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Frames between two looks at the clock.
const FRAMES: u32 = 256;
/// How often the line is written anew.
const INTERVAL: Duration = Duration::from_millis(250);

/// A line on the terminal.
#[derive(Debug)]
pub(super) struct Progress {
    /// Bytes read of the file as it lies on disk, compressed or not.
    taken: Arc<AtomicU64>,
    /// Its length, where it is a file.
    len: Option<u64>,
    began: Instant,
    shown: Instant,
    frames: u32,
    is_watched: bool,
    is_shown: bool,
}

impl Progress {
    pub(super) fn new(taken: Arc<AtomicU64>, len: Option<u64>) -> Progress {
        let now = Instant::now();
        let is_watched = std::io::stderr().is_terminal();
        Progress { taken, len, began: now, shown: now, frames: 0, is_watched, is_shown: false }
    }

    /// One frame more has passed.
    pub(super) fn step(&mut self) {
        self.frames = self.frames.wrapping_add(1);
        if !self.is_watched || !self.frames.is_multiple_of(FRAMES) || self.shown.elapsed() < INTERVAL {
            return;
        }
        (self.shown, self.is_shown) = (Instant::now(), true);
        let text = line(self.taken.load(Ordering::Relaxed), self.len, self.began.elapsed());
        // A terminal that went away misses nothing.
        let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
    }

    /// Takes the line away.
    pub(super) fn end(&mut self) {
        if std::mem::take(&mut self.is_shown) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(taken: u64, len: Option<u64>, elapsed: Duration) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let per_s = taken as f64 / elapsed.as_secs_f64().max(1e-3);
    let rate = format!("{:.0} MB/s", per_s / 1e6);
    let Some(len) = len.filter(|len| *len > 0) else { return format!("{:.1} MB, {rate}", megabytes(taken)) };
    let taken = taken.min(len);
    let left_s = (len - taken) as f64 / per_s.max(1.0);
    let percent = taken as f64 * 100.0 / len as f64;
    let (done, whole) = (megabytes(taken), megabytes(len));
    format!("{percent:3.0} %, {done:.1} of {whole:.1} MB, {rate}, {left_s:.0} s left")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 50 MB of 200 in 2 s are 25 MB/s, so 150 MB take 6 s.
    #[test]
    fn the_line_says_bytes_and_the_time_left() {
        let two = Duration::from_secs(2);
        assert_eq!(line(50_000_000, Some(200_000_000), two), " 25 %, 50.0 of 200.0 MB, 25 MB/s, 6 s left");
        assert_eq!(line(50_000_000, None, two), "50.0 MB, 25 MB/s");
        assert_eq!(line(300, Some(200), two), "100 %, 0.0 of 0.0 MB, 0 MB/s, 0 s left");
    }
}
