//! Sequence numbers and timestamps of trusted hosts as the untrusted side sees them (the paper's section IV-B3).
//!
//! The shift is a keyed function of the connection's addresses and ports (as RFC 6528 builds initial sequence numbers), so
//! there is nothing to store over a restart, and a host that uses a port again still counts upwards.

use crate::context::Context;
use crate::keys;
use crate::rule::Rule;
use crate::tcp::key::Key;
use crate::tcp::segment::{Segment, flag};

/// What is added to the numbers of a trusted host on their way out; zero where nothing is hidden.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shift {
    pub(crate) sequence: u32,
    pub(crate) timestamps: u32,
}

impl Shift {
    /// The shift of a connection.
    pub(crate) fn of(context: &Context<'_>, secret: &keys::Key, flow: &Key) -> Shift {
        let both = secret.number(&flow.subject());
        Shift {
            sequence: if context.on(Rule::TcpSequenceShift) { both as u32 } else { 0 },
            timestamps: if context.on(Rule::TcpTimestampShift) { (both >> 32) as u32 } else { 0 },
        }
    }

    /// Makes what an untrusted host says of a trusted host's numbers mean the host's own.
    pub(crate) fn back(self, segment: &mut Segment<'_>) {
        if !segment.has(flag::ACK) {
            return;
        }
        segment.acknowledgement = segment.acknowledgement.wrapping_sub(self.sequence);
        if self.sequence != 0 {
            for (left, right) in segment.options.sack.as_mut_slice() {
                *left = left.wrapping_sub(self.sequence);
                *right = right.wrapping_sub(self.sequence);
            }
        }
        if let Some(stamps) = &mut segment.options.timestamps {
            stamps.echo = stamps.echo.wrapping_sub(self.timestamps);
        }
    }

    /// Undoes [`back`](Shift::back).
    pub(crate) fn undo(self, segment: &mut Segment<'_>) {
        let opposite = Shift { sequence: self.sequence.wrapping_neg(), timestamps: self.timestamps.wrapping_neg() };
        opposite.back(segment);
    }

    /// Hides a trusted host's numbers.
    pub(crate) fn forth(self, segment: &mut Segment<'_>) {
        segment.sequence = segment.sequence.wrapping_add(self.sequence);
        if let Some(stamps) = &mut segment.options.timestamps {
            stamps.value = stamps.value.wrapping_add(self.timestamps);
        }
    }
}
