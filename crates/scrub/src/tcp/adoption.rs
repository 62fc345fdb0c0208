//! Connections that are older than the scrubber (the paper's section III-C).
//!
//! A packet of a trusted host shows that a connection exists. One of an untrusted host shows nothing: it becomes a question, and
//! what the trusted host answers decides. From what each side says of the trusted host's sequence numbers follows whether an
//! earlier run of the scrubber, with the same keys, had shifted them.
//!
//! Where the keys are new an earlier run may have shifted them by numbers that nobody knows any more. Then only numbers that
//! agree to the byte are a proof that they were not, and until there is one no byte of either host goes on.

use bump::{DropReason, Side};

use crate::limits::PROOF_TIME;
use crate::rule::Rule;
use crate::settings::Adopt;
use crate::tcp::catch_up::{DISTANCE_MAX, ask};
use crate::tcp::closing;
use crate::tcp::established::Established;
use crate::tcp::key::Key;
use crate::tcp::made::{self, Made};
use crate::tcp::segment::{Segment, flag};
use crate::tcp::serial::ahead;
use crate::tcp::shift::Shift;
use crate::tcp::work::Work;

/// A connection of which one side was heard.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AwaitProof {
    heard: Option<Heard>,
    /// What the untrusted host acknowledges, the shift taken off.
    acknowledged: Option<u32>,
    /// Whole seconds since boot.
    since: u32,
}

/// What a trusted host says of its numbers.
#[derive(Clone, Copy, Debug)]
struct Heard {
    /// The lowest sequence number.
    first: u32,
    /// Where the last segment began and ended.
    last: [u32; 2],
    /// What it acknowledges.
    acknowledges: u32,
}

/// Whether a segment may be the first of a connection that is to be adopted.
pub(crate) fn may_begin(segment: &Segment<'_>) -> bool {
    segment.flags & (flag::SYN | flag::RST | flag::ACK) == flag::ACK
}

impl AwaitProof {
    /// Awaits what either side says from `now` on, in whole seconds since boot.
    pub(crate) fn begin(now: u32) -> AwaitProof {
        AwaitProof { heard: None, acknowledged: None, since: now }
    }

    pub(crate) fn receive(&mut self, work: &mut Work<'_, '_, '_>) -> Result<Option<Established>, DropReason> {
        if work.segment.has(flag::RST) {
            return self.disprove(work);
        }
        work.context.refuse_if(!may_begin(work.segment), Rule::TcpHandshake, DropReason::TcpHandshake)?;
        self.hear(work.context.from, work.segment);
        let adopt = work.context.settings.adopt;
        let knows_shifts = adopt == Adopt::All;
        let is_over = adopt == Adopt::End || work.seconds().wrapping_sub(self.since) >= PROOF_TIME.as_secs() as u32;
        match (self.heard, self.acknowledged) {
            (Some(heard), Some(acknowledged)) if knows_shifts => take_up(work, heard.last[1], acknowledged).map(Some),
            (Some(heard), Some(acknowledged)) if adopt != Adopt::End && heard.agrees(acknowledged) => {
                take_over(work, acknowledged).map(Some)
            }
            (Some(_), Some(_)) if is_over => Err(work.context.severed(Rule::TcpHandshake)),
            (Some(_), None) if knows_shifts => Ok(None),
            _ => {
                ask(work.context, work.segment, None);
                Ok(None)
            }
        }
    }

    fn hear(&mut self, from: Side, segment: &Segment<'_>) {
        if from == Side::UNTRUSTED {
            self.acknowledged = Some(segment.acknowledgement);
            return;
        }
        let begin = segment.sequence;
        let end = segment.end().wrapping_add(u32::from(segment.has(flag::FIN)));
        let first = self.heard.map_or(begin, |heard| if ahead(begin, heard.first) < 0 { begin } else { heard.first });
        self.heard = Some(Heard { first, last: [begin, end], acknowledges: segment.acknowledgement });
    }

    /// The next sequence number of each half, by side, as its receiver has it, where both have said it.
    pub(crate) fn next(&self) -> Option<[u32; 2]> {
        Some([self.acknowledged?, self.heard?.acknowledges])
    }

    /// The resets that end it at both hosts, where both were heard. Each has numbers that its
    /// receiver said itself: what the other says of them may have been shifted.
    pub(crate) fn resets(&self, key: &Key) -> Option<[Made; 2]> {
        let (heard, acknowledged) = (self.heard?, self.acknowledged?);
        Some([
            made::reset(key, Side::TRUSTED, heard.acknowledges, Some(heard.last[1])),
            made::reset(key, Side::UNTRUSTED, acknowledged, Some(heard.acknowledges)),
        ])
    }

    /// A host knows no such connection, and says so: the trusted one, or the other at exactly the
    /// number that the trusted one waits for.
    fn disprove(&mut self, work: &mut Work<'_, '_, '_>) -> Result<Option<Established>, DropReason> {
        let is_exact = self.heard.is_some_and(|heard| heard.acknowledges == work.segment.sequence);
        let is_wrong = work.context.from == Side::UNTRUSTED && !is_exact;
        work.context.refuse_if(is_wrong, Rule::TcpReset, DropReason::TcpNoConnection)?;
        closing::reset_form(work);
        Ok(None)
    }
}

impl Heard {
    /// Whether `acknowledged` is where a segment began or ended: an untrusted host that has nothing more to acknowledge waits at
    /// the first one that did not reach it. By chance that happens once in a thousand million times.
    fn agrees(&self, acknowledged: u32) -> bool {
        acknowledged == self.first || self.last.contains(&acknowledged)
    }
}

/// Both sides know the connection. Which of the trusted host's numbers the untrusted host has seen is told by their distance.
fn take_up(work: &mut Work<'_, '_, '_>, next: u32, acknowledged: u32) -> Result<Established, DropReason> {
    let distance = |seen: u32| ahead(seen, next).unsigned_abs();
    let (plain, shifted) = (distance(acknowledged.wrapping_add(work.shift.sequence)), distance(acknowledged));
    let is_far = plain.min(shifted) > DISTANCE_MAX;
    work.context.refuse_if(is_far, Rule::TcpAcknowledgement, DropReason::TcpAcknowledgement)?;
    if plain < shifted {
        if work.context.from == Side::UNTRUSTED {
            work.shift.undo(work.segment);
        }
        *work.shift = Shift::default();
    }
    let trusted = if work.context.from == Side::TRUSTED { work.segment.sequence } else { next };
    take_over(work, trusted)
}

/// Goes on with the trusted host at `next` and the untrusted one where it is.
fn take_over(work: &mut Work<'_, '_, '_>, next: u32) -> Result<Established, DropReason> {
    let of_untrusted = match work.context.from {
        Side::TRUSTED => work.segment.acknowledgement,
        Side::UNTRUSTED => work.segment.sequence,
    };
    let mut established = Established::adopt(next, of_untrusted, work.seconds());
    established.receive(work)?;
    Ok(established)
}
