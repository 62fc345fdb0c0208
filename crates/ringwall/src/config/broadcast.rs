//! The keys of section `[cll]` for frames to groups.

use std::path::Path;
use std::time::Duration;

use cll::Broadcasting;
use cll::limits::{GROUP_BATCH_ABOVE_MAX, GROUP_BATCH_DELAY_MAX};
use wire::cll::broadcast::LEAVES_MAX;

use super::Config;
use crate::failure::Failure;

impl Config {
    /// How frames to groups travel.
    pub(super) fn broadcasting(&self, file: &Path) -> Result<Broadcasting, Failure> {
        let cll = &self.cll;
        within(file, "cll.broadcast_batch_above", cll.broadcast_batch_above.into(), GROUP_BATCH_ABOVE_MAX.into())?;
        within(file, "cll.broadcast_batch_delay_ms", cll.broadcast_batch_delay_ms, millis(GROUP_BATCH_DELAY_MAX))?;
        within(file, "cll.broadcast_batch_frames", cll.broadcast_batch_frames.into(), LEAVES_MAX.into())?;
        Ok(Broadcasting {
            carried: cll.broadcast,
            batch_above_per_second: cll.broadcast_batch_above,
            batch_delay: Duration::from_millis(cll.broadcast_batch_delay_ms),
            batch_frames: cll.broadcast_batch_frames,
            to_legacy: cll.broadcast_to_legacy,
            membership_in_clear: cll.igmp_in_clear,
        })
    }
}

fn within(file: &Path, key: &str, value: u64, max: u64) -> Result<(), Failure> {
    if (1..=max).contains(&value) {
        return Ok(());
    }
    Err(Failure::file(file, format!("{key} = {value} is out of range"), &format!("use 1 to {max}")))
}

/// Whole milliseconds of a limit.
pub(super) const fn millis(duration: Duration) -> u64 {
    duration.as_millis() as u64
}
