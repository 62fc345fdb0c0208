//! The clocks that bumps are handed.
#![allow(unsafe_code)]

use std::time::Duration;

use bump::{ClockTrust, Instant, Now, Wall};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// A date before this program existed, 2026-11-01T00:00:00Z in milliseconds since 1970: a clock that shows less is wrong.
/// A constant, so that builds of the same source stay equal byte for byte.
const WRITTEN_UNIX_MS: u64 = 1_793_491_200_000;
/// How often the kernel is asked whether the wall clock is synchronised; that takes a system call.
const TRUST_INTERVAL: Duration = Duration::from_secs(1);

/// Reads both clocks.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    synchronised: bool,
    asked: Option<Instant>,
    offset_s: i32,
}

impl Clock {
    /// A clock.
    #[must_use]
    pub fn new() -> Clock {
        Clock::default()
    }

    /// A clock whose wall time is wrong by `offset_s`, for a laboratory. What the kernel says of its clock is passed on: a
    /// clock that is wrong and said to be right is the worst there is.
    #[must_use]
    pub fn wrong_by(offset_s: i32) -> Clock {
        Clock { offset_s, ..Clock::default() }
    }

    /// The time.
    pub fn now(&mut self) -> Now {
        let since_boot = Instant::from_nanos(nanoseconds(clock_gettime(ClockId::Boottime)));
        if self.asked.is_none_or(|asked| since_boot.since(asked) >= TRUST_INTERVAL) {
            self.synchronised = kernel_is_synchronised();
            self.asked = Some(since_boot);
        }
        let unix_ms = nanoseconds(clock_gettime(ClockId::Realtime)) / 1_000_000;
        let unix_ms = unix_ms.saturating_add_signed(i64::from(self.offset_s) * 1000);
        Now { since_boot, wall: Some(Wall { unix_ms, trust: trust(unix_ms, self.synchronised) }) }
    }
}

/// How long processors have worked for this process.
#[must_use]
pub fn processor_time() -> Duration {
    Duration::from_nanos(nanoseconds(clock_gettime(ClockId::ProcessCPUTime)))
}

fn trust(unix_ms: u64, synchronised: bool) -> ClockTrust {
    match (unix_ms < WRITTEN_UNIX_MS, synchronised) {
        (true, _) => ClockTrust::Wrong,
        (false, true) => ClockTrust::Synchronised,
        (false, false) => ClockTrust::Plausible,
    }
}

/// Both clocks are after 1970 and before the year 2500, so the nanoseconds fit.
fn nanoseconds(time: Timespec) -> u64 {
    u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000_000) + u64::try_from(time.tv_nsec).unwrap_or(0)
}

fn kernel_is_synchronised() -> bool {
    // SAFETY: timex is plain data, for which zero bytes are a value; mode 0 only reads.
    let mut state: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer leads to `state`, which outlives the call.
    let result = unsafe { libc::adjtimex(&raw mut state) };
    result >= 0 && result != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_clock_moves_with_real_time() {
        let mut clock = Clock::new();
        let before = clock.now().since_boot;
        std::thread::sleep(Duration::from_millis(5));
        let passed = clock.now().since_boot.since(before);
        assert!(passed >= Duration::from_millis(5) && passed < Duration::from_secs(60), "{passed:?}");
    }

    #[test]
    fn a_date_before_this_program_is_wrong_whatever_the_kernel_says() {
        assert_eq!(trust(0, true), ClockTrust::Wrong);
        assert_eq!(trust(WRITTEN_UNIX_MS - 1, true), ClockTrust::Wrong);
        assert_eq!(trust(WRITTEN_UNIX_MS, true), ClockTrust::Synchronised);
        assert_eq!(trust(WRITTEN_UNIX_MS, false), ClockTrust::Plausible);
    }

    #[test]
    fn a_wrong_clock_is_wrong_by_as_much_and_only_in_wall_time() {
        let (right, back, first) =
            (Clock::new().now(), Clock::wrong_by(-86_400).now(), Clock::wrong_by(i32::MIN).now());
        let unix_s = |now: Now| now.wall.expect("it has one").unix_ms / 1000;
        assert!((86_399..=86_400).contains(&(unix_s(right) - unix_s(back))));
        assert!(back.since_boot >= right.since_boot);
        assert_eq!((unix_s(first), first.wall.expect("it has one").trust), (0, ClockTrust::Wrong));
    }
}
