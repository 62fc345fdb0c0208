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
use crate::tcp::closing;
use crate::tcp::established::{Agreed, Established, Fin, Half};
use crate::tcp::flow::{State, Work};
use crate::tcp::question;
use crate::tcp::segment::{Segment, flag};
use crate::tcp::serial::{ahead, is_within, later};
use crate::tcp::shift::Shift;

/// How far an acknowledgement may be from what it acknowledges. RFC 7323, section 2.3, allows sixteen times as much, but hosts
/// have far less under way, and the wider this is the more numbers agree by chance.
const DISTANCE_MAX: u32 = 1 << 26;

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

    pub(crate) fn receive(&mut self, work: &mut Work<'_, '_, '_>) -> Result<Option<State>, DropReason> {
        if work.segment.has(flag::RST) {
            return self.disprove(work);
        }
        work.context.refuse_if(!may_begin(work.segment), Rule::TcpHandshake, DropReason::TcpHandshake)?;
        self.hear(work.context.from, work.segment);
        let knows_shifts = work.context.settings.adopt != Adopt::Unshifted;
        match (self.heard, self.acknowledged) {
            (Some(heard), Some(acknowledged)) if knows_shifts => adopt(work, heard.last[1], acknowledged).map(Some),
            (Some(heard), Some(acknowledged)) if heard.agrees(acknowledged) => take_over(work, acknowledged).map(Some),
            (Some(_), Some(_)) if work.seconds().wrapping_sub(self.since) >= PROOF_TIME.as_secs() as u32 => {
                Err(work.context.severed(Rule::TcpHandshake))
            }
            (Some(_), None) if knows_shifts => Ok(None),
            _ => {
                ask(work, None);
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

    /// The trusted host knows no such connection, and says so. An untrusted host has no say.
    fn disprove(&mut self, work: &mut Work<'_, '_, '_>) -> Result<Option<State>, DropReason> {
        work.context.refuse_if(work.context.from == Side::UNTRUSTED, Rule::TcpReset, DropReason::TcpNoConnection)?;
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

/// Makes the segment a question that every host answers, whether it has such a connection or not: a
/// keep-alive. It stands before `unacknowledged`, where that is known: behind a hole at its receiver
/// a segment without data is not answered.
fn ask(work: &mut Work<'_, '_, '_>, unacknowledged: Option<u32>) {
    let segment = &mut *work.segment;
    segment.truncate(0);
    let known = unacknowledged.filter(|known| ahead(*known, segment.sequence) < 0);
    segment.sequence = known.unwrap_or(segment.sequence).wrapping_sub(1);
    (segment.flags, segment.urgent_pointer) = (flag::ACK, 0);
    work.context.acted(Rule::TcpHandshake);
}

/// Where a segment lies by what another scrubber told of its sender, and its sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lies {
    /// Where its receiver takes it.
    Inside(u32),
    /// Further than the window that was told. More may have been granted since.
    Beyond(u32),
    /// Where no receiver takes it.
    Outside,
}

/// Where `segment` lies, if it is one that is sent again until it is acknowledged: judged as
/// [`stream`](crate::tcp::stream) does (RFC 9293, section 3.10.7.4), but that the window is as old
/// as what was told.
pub(crate) fn lies(segment: &Segment<'_>, sender: &Half) -> Option<Lies> {
    if !segment.says() || segment.flags & (flag::SYN | flag::RST) != 0 {
        return None;
    }
    let sequence = segment.sequence;
    let end = segment.end().wrapping_add(u32::from(segment.has(flag::FIN)));
    let has_data = !segment.data().is_empty();
    let is_behind = |limit: u32| ahead(sequence, limit) >= i32::from(!has_data);
    let is_acknowledged = ahead(end, sender.unacknowledged) <= 0;
    if is_acknowledged || matches!(sender.fin, Fin::At(fin) if is_behind(fin)) {
        return Some(Lies::Outside);
    }
    if !is_behind(sender.edge.wrapping_add(1)) {
        return Some(Lies::Inside(sequence));
    }
    let is_near = ahead(sequence, sender.unacknowledged).unsigned_abs() <= DISTANCE_MAX;
    Some(if is_near { Lies::Beyond(sequence) } else { Lies::Outside })
}

/// Goes on with a connection of which another scrubber told. What passed there and is not
/// acknowledged is not known here: so the receiver of each scrubbed half says first how far it is,
/// and until then what comes becomes a question, which it answers. True for a segment that did.
pub(crate) fn catch_up(
    work: &mut Work<'_, '_, '_>,
    sender: &Half,
    receiver: &mut Half,
    agreed: &Agreed,
    awaits: &mut [bool; 2],
) -> Result<bool, DropReason> {
    let (from, to) = (work.context.from, work.context.from.other());
    let is_reset = work.segment.has(flag::RST);
    if awaits[to as usize] && !is_reset && has_say(work, sender) {
        hear_word(work, sender, receiver, awaits)?;
    }
    if !awaits[from as usize] || !work.context.scrubs() {
        return Ok(false);
    }
    if is_reset {
        may_reset(work, sender)?;
        question::instead(work, Rule::TcpReset, sender, receiver, agreed)?;
    } else {
        ask(work, Some(sender.unacknowledged));
    }
    Ok(true)
}

/// Whether what the segment acknowledges counts. Of an untrusted host it does where its own number
/// is one that the trusted host takes, which is checked first (RFC 9293, section 3.10.7.4). Who does
/// not see the connection would have to guess both.
fn has_say(work: &Work<'_, '_, '_>, sender: &Half) -> bool {
    let first = sender.unacknowledged.wrapping_sub(sender.window_max);
    let is_taken = is_within(work.segment.sequence, first, sender.edge.wrapping_add(1));
    is_taken || work.context.from == Side::TRUSTED
}

/// Refuses a reset that no receiver believes or asks about (RFC 5961, section 3.2). The window is as
/// old as what was told, so what may be under way counts as inside.
fn may_reset(work: &mut Work<'_, '_, '_>, sender: &Half) -> Result<(), DropReason> {
    let last = later(sender.edge, sender.unacknowledged.wrapping_add(DISTANCE_MAX));
    let is_outside = !is_within(work.segment.sequence, sender.unacknowledged, last);
    work.context.refuse_if(is_outside, Rule::TcpReset, DropReason::TcpReset)
}

/// What the segment acknowledges is how far the other half is. A trusted host is believed; an
/// untrusted one as far as any host has data under way.
fn hear_word(
    work: &mut Work<'_, '_, '_>,
    sender: &Half,
    receiver: &mut Half,
    awaits: &mut [bool; 2],
) -> Result<(), DropReason> {
    let acknowledgement = work.segment.acknowledgement;
    let distance = ahead(acknowledgement, receiver.unacknowledged);
    let is_far = work.context.from == Side::UNTRUSTED && distance.unsigned_abs() > DISTANCE_MAX;
    work.context.refuse_if(is_far, Rule::TcpAcknowledgement, DropReason::TcpAcknowledgement)?;
    if distance >= 0 {
        receiver.go_on_at(acknowledgement, work.memory);
        let (window, _) = sender.window(work.segment.window);
        receiver.edge = later(receiver.edge, acknowledgement.wrapping_add(window));
        receiver.window_max = receiver.window_max.max(window);
        awaits[work.context.from.other() as usize] = false;
    }
    Ok(())
}

/// Both sides know the connection. Which of the trusted host's numbers the untrusted host has seen is told by their distance.
fn adopt(work: &mut Work<'_, '_, '_>, next: u32, acknowledged: u32) -> Result<State, DropReason> {
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
fn take_over(work: &mut Work<'_, '_, '_>, next: u32) -> Result<State, DropReason> {
    let of_untrusted = match work.context.from {
        Side::TRUSTED => work.segment.acknowledgement,
        Side::UNTRUSTED => work.segment.sequence,
    };
    let mut established = Established::adopt(next, of_untrusted, work.seconds());
    established.receive(work)?;
    Ok(State::Established(established))
}
