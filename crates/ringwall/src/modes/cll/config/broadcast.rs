//! The keys of section `[cll]` for frames to groups.

use std::path::Path;
use std::time::Duration;

use cll::Broadcasting;
use cll::limits::{GROUP_BATCH_ABOVE_MAX, GROUP_BATCH_DELAY_MAX};
use wire::cll::broadcast::LEAVES_MAX;

use super::Cll;
use crate::failure::Failure;

impl Cll {
    pub(super) fn check_broadcasting(&self, file: &Path) -> Result<(), Failure> {
        within(file, "cll.broadcast_batch_above", self.broadcast_batch_above.into(), GROUP_BATCH_ABOVE_MAX.into())?;
        within(file, "cll.broadcast_batch_delay_ms", self.broadcast_batch_delay_ms, millis(GROUP_BATCH_DELAY_MAX))?;
        within(file, "cll.broadcast_batch_frames", self.broadcast_batch_frames.into(), LEAVES_MAX.into())
    }

    /// How frames to groups travel.
    pub(super) fn broadcasting(&self) -> Broadcasting {
        Broadcasting {
            carried: self.broadcast,
            batch_above_per_second: self.broadcast_batch_above,
            batch_delay: Duration::from_millis(self.broadcast_batch_delay_ms),
            batch_frames: self.broadcast_batch_frames,
            to_legacy: self.broadcast_to_legacy,
            membership_in_clear: self.igmp_in_clear,
        }
    }
}

fn within(file: &Path, key: &str, value: u64, max: u64) -> Result<(), Failure> {
    if (1..=max).contains(&value) {
        return Ok(());
    }
    Err(Failure::file(file, format!("{key} = {value} is out of range"), &format!("use 1 to {max}")))
}

/// Whole milliseconds of a limit.
const fn millis(duration: Duration) -> u64 {
    duration.as_millis() as u64
}
