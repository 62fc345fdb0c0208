//! Connections that are older than the scrubber (the paper's section III-C).
//!
//! A packet of a trusted host shows that a connection exists. One of an untrusted host shows nothing: it becomes a question, and
//! what the trusted host answers decides. From what each side says of the trusted host's sequence numbers follows whether an
//! earlier run of the scrubber, with the same keys, had shifted them.

use bump::{DropReason, Side};

use crate::rule::Rule;
use crate::tcp::closing;
use crate::tcp::established::Established;
use crate::tcp::flow::{State, Work};
use crate::tcp::segment::{Segment, flag};
use crate::tcp::serial::ahead;
use crate::tcp::shift::Shift;

/// How far an acknowledgement may be from what it acknowledges: the largest window (RFC 7323, section 2.3).
const DISTANCE_MAX: u32 = 1 << 30;

/// A connection of which one side was heard.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AwaitProof {
    /// The trusted host's next sequence number, by itself.
    next: Option<u32>,
    /// The trusted host's next sequence number as the untrusted host has it.
    next_as_seen: Option<u32>,
}

/// Whether a segment may be the first of a connection that is to be adopted.
pub(crate) fn may_begin(segment: &Segment<'_>) -> bool {
    segment.flags & (flag::SYN | flag::RST | flag::ACK) == flag::ACK
}

impl AwaitProof {
    pub(crate) fn receive(&mut self, work: &mut Work<'_, '_, '_>) -> Result<Option<State>, DropReason> {
        if work.segment.has(flag::RST) {
            return self.disprove(work);
        }
        work.context.refuse_if(!may_begin(work.segment), Rule::TcpHandshake, DropReason::TcpHandshake)?;
        if work.context.from == Side::TRUSTED {
            self.next = Some(work.segment.end().wrapping_add(u32::from(work.segment.has(flag::FIN))));
        } else {
            self.next_as_seen = Some(work.segment.acknowledgement.wrapping_add(work.shift.sequence));
        }
        match (self.next, self.next_as_seen) {
            (Some(next), Some(as_seen)) => adopt(work, next, as_seen).map(Some),
            (None, _) => {
                ask(work);
                Ok(None)
            }
            (Some(_), None) => Ok(None),
        }
    }

    /// The trusted host knows no such connection, and says so. An untrusted host has no say.
    fn disprove(&mut self, work: &mut Work<'_, '_, '_>) -> Result<Option<State>, DropReason> {
        work.context.refuse_if(work.context.from == Side::UNTRUSTED, Rule::TcpReset, DropReason::TcpNoConnection)?;
        closing::reset_form(work);
        Ok(None)
    }
}

/// Makes the segment a question that every host answers, whether it has such a connection or not: a keep-alive.
fn ask(work: &mut Work<'_, '_, '_>) {
    let segment = &mut *work.segment;
    segment.truncate(0);
    segment.sequence = segment.sequence.wrapping_sub(1);
    (segment.flags, segment.urgent_pointer) = (flag::ACK, 0);
    work.context.acted(Rule::TcpHandshake);
}

/// Both sides know the connection. Which of the trusted host's numbers the untrusted host has seen is told by their distance.
fn adopt(work: &mut Work<'_, '_, '_>, next: u32, as_seen: u32) -> Result<State, DropReason> {
    let distance = |seen: u32| ahead(seen, next).unsigned_abs();
    let (plain, shifted) = (distance(as_seen), distance(as_seen.wrapping_sub(work.shift.sequence)));
    let is_far = plain.min(shifted) > DISTANCE_MAX;
    work.context.refuse_if(is_far, Rule::TcpAcknowledgement, DropReason::TcpAcknowledgement)?;
    if plain < shifted {
        if work.context.from == Side::UNTRUSTED {
            work.shift.undo(work.segment);
        }
        *work.shift = Shift::default();
    }
    let (trusted, untrusted) = match work.context.from {
        Side::TRUSTED => (work.segment.sequence, work.segment.acknowledgement),
        Side::UNTRUSTED => (next, work.segment.sequence),
    };
    let mut established = Established::adopt(trusted, untrusted, work.seconds());
    established.receive(work)?;
    Ok(State::Established(established))
}
