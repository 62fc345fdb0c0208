//! When a packet leaves that nothing refused.

use bump::Instant;

/// When a packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    Now,
    At(Instant),
    /// It was for the scrubber itself.
    Never,
}
