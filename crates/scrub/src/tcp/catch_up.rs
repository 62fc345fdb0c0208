//! Connections that another scrubber had: what passed there and is not acknowledged is not known
//! here, so the receiver of each half that is scrubbed is asked how far it is.

use bump::{DropReason, Side};

use crate::context::Context;
use crate::rule::Rule;
use crate::tcp::agreed::Agreed;
use crate::tcp::half::{Fin, Half};
use crate::tcp::question;
use crate::tcp::segment::{Segment, flag};
use crate::tcp::serial::{ahead, is_within, later};
use crate::tcp::work::Work;

/// How far an acknowledgement may be from what it acknowledges. RFC 7323, section 2.3, allows
/// sixteen times as much, but hosts have far less under way, and the wider this is the more numbers
/// agree by chance.
pub(super) const DISTANCE_MAX: u32 = 1 << 26;

/// Makes the segment a question that every host answers, whether it has such a connection or not: a
/// keep-alive. It stands before `unacknowledged`, where that is known: behind a hole at its
/// receiver a segment without data is not answered.
pub(super) fn ask(context: &mut Context<'_>, segment: &mut Segment<'_>, unacknowledged: Option<u32>) {
    segment.truncate(0);
    let known = unacknowledged.filter(|known| ahead(*known, segment.sequence) < 0);
    segment.sequence = known.unwrap_or(segment.sequence).wrapping_sub(1);
    (segment.flags, segment.urgent_pointer) = (flag::ACK, 0);
    context.acted(Rule::TcpHandshake);
}

/// Where a segment begins, what it acknowledges, and whether it is bare: without data or FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) is_bare: bool,
}

impl Piece {
    /// Whether `other` is the same said again: data from the same number on, or bare as well.
    pub(crate) fn repeats(&self, other: &Piece) -> bool {
        (self.sequence, self.is_bare) == (other.sequence, other.is_bare)
    }
}

/// Where a segment lies by what another scrubber told of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lies {
    /// Where its receiver takes it.
    Inside(Piece),
    /// Further than the window that was told. More may have been granted since.
    Beyond(Piece),
    /// Before what is acknowledged, behind the end, or so far ahead that it is not kept.
    Outside,
}

/// Where `segment` lies, if it is one that may wait: judged as [`stream`](crate::tcp::stream) does
/// (RFC 9293, section 3.10.7.4), but that the window is as old as what was told. A SYN or a reset
/// becomes a question of its own kind.
pub(crate) fn lies(segment: &Segment<'_>, sender: &Half) -> Option<Lies> {
    if segment.flags & (flag::SYN | flag::RST) != 0 {
        return None;
    }
    let (sequence, acknowledgement) = (segment.sequence, segment.acknowledgement);
    let piece = Piece { sequence, acknowledgement, is_bare: !segment.says() };
    let end = segment.end().wrapping_add(u32::from(segment.has(flag::FIN)));
    // What has no data lies behind a number only when it is further; a bare one may follow a FIN.
    let no_data = i32::from(segment.data().is_empty());
    let is_behind = |limit: u32, least: i32| ahead(piece.sequence, limit) >= least;
    let is_acknowledged = ahead(end, sender.unacknowledged) < i32::from(!piece.is_bare);
    if is_acknowledged || matches!(sender.fin, Fin::At(fin) if is_behind(fin, no_data + i32::from(piece.is_bare))) {
        return Some(Lies::Outside);
    }
    if !is_behind(reach(sender), no_data) {
        return Some(Lies::Inside(piece));
    }
    let is_near = ahead(piece.sequence, sender.unacknowledged).unsigned_abs() <= DISTANCE_MAX;
    Some(if is_near { Lies::Beyond(piece) } else { Lies::Outside })
}

/// Behind which number a segment lies further than what was told. The window of an adopted
/// connection is not known and taken for the largest there is, which a guess would hit too often.
fn reach(sender: &Half) -> u32 {
    let (edge, far) = (sender.edge.wrapping_add(1), sender.unacknowledged.wrapping_add(DISTANCE_MAX));
    if ahead(edge, far) > 0 { far } else { edge }
}

/// Goes on with a connection of which another scrubber told. What passed there and is not
/// acknowledged is not known here: so the receiver of each scrubbed half says first how far it is,
/// and until then what comes becomes a question, which it answers. True for a segment that did.
pub(crate) fn catch_up(
    work: &mut Work<'_, '_, '_>,
    sender: &mut Half,
    receiver: &mut Half,
    agreed: &Agreed,
    awaits: &mut [bool; 2],
) -> Result<bool, DropReason> {
    let (from, to) = (work.context.from, work.context.from.other());
    let is_reset = work.segment.has(flag::RST);
    if awaits[to as usize] && !is_reset {
        if has_say(work, sender) {
            hear_word(work, sender, receiver, awaits)?;
        } else {
            // Nothing is known by that, but who answers the question by a reset repeats it.
            receiver.reached = work.segment.acknowledgement;
        }
    }
    if !awaits[from as usize] || !work.context.scrubs() {
        return Ok(false);
    }
    if is_reset {
        may_reset(work, sender)?;
        if *awaits == [true; 2] && from == Side::TRUSTED && work.segment.sequence == sender.reached {
            // Asking its receiver would go on for ever: that one's word does not count before this
            // host's, and this host has none. The number is exact (RFC 9293, section 3.10.7.1).
            sender.go_on_at(sender.reached, work.memory);
            return Ok(false);
        }
        question::instead(work, Rule::TcpReset, sender, receiver, agreed)?;
    } else {
        ask(work.context, work.segment, Some(sender.unacknowledged));
    }
    Ok(true)
}

/// Whether what the segment acknowledges counts. Of an untrusted host it does where its own number
/// is one that the trusted host takes, which is checked first (RFC 9293, section 3.10.7.4). Who
/// does not see the connection would have to guess both.
fn has_say(work: &Work<'_, '_, '_>, sender: &Half) -> bool {
    let first = sender.unacknowledged.wrapping_sub(sender.window_max.min(DISTANCE_MAX));
    let is_taken = is_within(work.segment.sequence, first, reach(sender));
    is_taken || work.context.from == Side::TRUSTED
}

/// Refuses a reset that no receiver believes or asks about (RFC 5961, section 3.2). The window is
/// as old as what was told, so what may be under way counts as inside.
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
        receiver.reached = receiver.end;
        let (window, _) = sender.window(work.segment.window);
        receiver.edge = later(receiver.edge, acknowledgement.wrapping_add(window));
        receiver.window_max = receiver.window_max.max(window);
        awaits[work.context.from.other() as usize] = false;
    }
    Ok(())
}
