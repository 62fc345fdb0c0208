//! What those who judge a segment work with.

use crate::context::Context;
use crate::tcp::events::Events;
use crate::tcp::key::Key;
use crate::tcp::made::Made;
use crate::tcp::memory::{Holder, Memory};
use crate::tcp::segment::Segment;
use crate::tcp::shift::Shift;

/// What a judge of a segment works with.
pub(crate) struct Work<'w, 'c, 's> {
    pub(crate) context: &'w mut Context<'c>,
    pub(crate) segment: &'w mut Segment<'s>,
    pub(crate) key: &'w Key,
    /// On whose account the connection is.
    pub(crate) holder: Holder,
    /// The connection's shift; numbers in `segment` are those of the trusted host.
    pub(crate) shift: &'w mut Shift,
    pub(crate) memory: &'w mut Memory,
    pub(crate) events: &'w mut Events,
    /// Segments that the scrubber itself wants sent.
    pub(crate) made: &'w mut Vec<Made>,
    /// Bytes of data in each piece of the segment, if it stands for several.
    pub(crate) piece_len: usize,
}

impl Work<'_, '_, '_> {
    /// Whole seconds since boot.
    pub(crate) fn seconds(&self) -> u32 {
        seconds(self.context.now)
    }
}

/// Whole seconds since boot; enough for 136 years.
pub(crate) fn seconds(now: bump::Instant) -> u32 {
    (now.as_nanos() / 1_000_000_000) as u32
}
