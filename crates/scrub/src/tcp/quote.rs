//! Segments that ICMP errors quote: whether they are of a connection and under way, and with the numbers that their sender
//! knows.

use bump::Side;
use wire::tcp::SEQUENCE;

use crate::ethernet::Link;
use crate::exchange::Exchange;
use crate::tcp::Flows;
use crate::tcp::report::{Quoted, QuotedShift};

/// Offset of the acknowledgement number.
const ACKNOWLEDGEMENT: usize = 8;

impl Flows {
    /// Whether the segment that an error from side `from`, with link header `link`, quotes can be under way. `segment` begins
    /// with its header and may end after eight bytes; its numbers are put back as its sender sent them.
    pub(crate) fn know(&self, from: Side, link: &Link<'_>, exchange: &Exchange, segment: &mut [u8]) -> bool {
        let Some(head) = segment.first_chunk::<{ ACKNOWLEDGEMENT }>() else { return false };
        let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let shift = self.quoted(&Quoted {
            from,
            link,
            source: exchange.source,
            destination: exchange.destination,
            source_port: word(0),
            destination_port: word(2),
            sequence: u32::from_be_bytes([head[4], head[5], head[6], head[7]]),
        });
        if let Some(shift) = shift {
            put_back(segment, &shift);
        }
        shift.is_some()
    }
}

/// Adds `shift` to the numbers that are there. What a longer quote says beyond them is cut by a rule of its own.
fn put_back(segment: &mut [u8], shift: &QuotedShift) {
    for (at, by) in [(SEQUENCE, shift.sequence), (ACKNOWLEDGEMENT, shift.acknowledgement)] {
        if let Some(number) = segment.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            *number = u32::from_be_bytes(*number).wrapping_add(by).to_be_bytes();
        }
    }
}
