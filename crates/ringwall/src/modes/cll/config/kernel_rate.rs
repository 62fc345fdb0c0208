//! How much of what has a right tag the kernel passes: the two rates of section `[cll]`.

use serde::{Deserialize, Serialize};
use shield::limits::KERNEL_RATE_RANGE;

/// Messages in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "u32", into = "u32")]
pub(crate) struct KernelRate(u32);

impl KernelRate {
    /// One of the defaults, which are in range.
    pub(super) const fn of_default(value: u32) -> KernelRate {
        assert!(
            value >= *KERNEL_RATE_RANGE.start() && value <= *KERNEL_RATE_RANGE.end(),
            "a rate that can be configured"
        );
        KernelRate(value)
    }
}

impl TryFrom<u32> for KernelRate {
    type Error = String;

    fn try_from(value: u32) -> Result<KernelRate, String> {
        let (least, most) = (KERNEL_RATE_RANGE.start(), KERNEL_RATE_RANGE.end());
        let told = KERNEL_RATE_RANGE.contains(&value).then_some(KernelRate(value));
        told.ok_or_else(|| format!("{value} messages a second; use {least} to {most}"))
    }
}

impl From<KernelRate> for u32 {
    fn from(KernelRate(value): KernelRate) -> u32 {
        value
    }
}
