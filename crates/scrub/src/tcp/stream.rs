//! The bytes of one half: every receiver gets one version of each (the paper's section III-A and III-B).

use bump::{DropReason, Side};

use crate::context::Context;
use crate::limits::HOP_LIMIT_FIRST;
use crate::rule::Rule;
use crate::settings::OutOfOrder;
use crate::tcp::agreed::Agreed;
use crate::tcp::events;
use crate::tcp::events::Event;
use crate::tcp::half::{Fin, Half};
use crate::tcp::key::Key;
use crate::tcp::made::Made;
use crate::tcp::memory::NoRoom;
use crate::tcp::options::Timestamps;
use crate::tcp::question;
use crate::tcp::retained::{Bytes, Reconciled};
use crate::tcp::segment::flag;
use crate::tcp::serial::{ahead, later};
use crate::tcp::sources;
use crate::tcp::work::Work;

/// Follows a half that is not scrubbed: its host is believed.
pub(crate) fn follow(work: &mut Work<'_, '_, '_>, sender: &mut Half) {
    let segment = &*work.segment;
    let mut end = segment.end();
    // What its peer has acknowledged is not the end: it is a duplicate of an earlier connection.
    if segment.has(flag::FIN) && ahead(end, sender.unacknowledged) >= 0 {
        sender.fin = Fin::At(end);
        end = end.wrapping_add(1);
    }
    sender.end = later(sender.end, end);
    sender.in_sequence = sender.end;
    sender.reached = later(sender.reached, segment.sequence);
}

/// Judges the data and the FIN of a half that is scrubbed, and makes them what they were when they were first sent.
pub(crate) fn judge(
    work: &mut Work<'_, '_, '_>,
    sender: &mut Half,
    receiver: &Half,
    agreed: &Agreed,
) -> Result<(), DropReason> {
    longest_piece(work, sender)?;
    if repeats_acknowledged(work, sender) {
        return Ok(());
    }
    inside_window(work, sender)?;
    before_end(work, sender)?;
    behind_hole(work, sender)?;
    reconcile(work, sender)?;
    finish(work, sender, receiver, agreed)?;
    sender.reached = later(sender.reached, work.segment.sequence);
    Ok(())
}

fn longest_piece(work: &mut Work<'_, '_, '_>, sender: &Half) -> Result<(), DropReason> {
    let is_too_long = work.piece_len > usize::from(sender.mss);
    work.context.refuse_if(is_too_long, Rule::TcpMss, DropReason::TcpMss)
}

/// Takes off what the receiver has acknowledged: nobody knows any more what it was. What is nothing else goes on as a question,
/// so that the sender hears the acknowledgement that it missed; true then.
fn repeats_acknowledged(work: &mut Work<'_, '_, '_>, sender: &Half) -> bool {
    let behind = ahead(sender.unacknowledged, work.segment.sequence);
    if behind <= 0 || !work.context.on(Rule::TcpSequence) {
        return false;
    }
    let behind = behind as usize;
    let has_fin = work.segment.has(flag::FIN);
    let len = work.segment.data().len();
    if behind < len + usize::from(has_fin) {
        work.context.acted(Rule::TcpSequence);
        work.segment.trim_front(behind);
        return false;
    }
    if len + usize::from(has_fin) == 0 {
        // A keep-alive, or an acknowledgement that others have overtaken.
        return true;
    }
    work.context.acted(Rule::TcpSequence);
    if has_fin && sender.fin == Fin::At(work.segment.end()) && behind == len + 1 {
        work.segment.trim_front(len);
    } else {
        question::at_the_last_byte(work, sender);
    }
    true
}

/// Cuts at the right edge of the window. One byte more may pass, or a closed window would never be probed (RFC 9293, section
/// 3.8.6.1).
fn inside_window(work: &mut Work<'_, '_, '_>, sender: &Half) -> Result<(), DropReason> {
    let limit = sender.edge.wrapping_add(1);
    let room = ahead(limit, work.segment.sequence);
    let has_data = !work.segment.data().is_empty();
    let is_outside = room < 0 || (room == 0 && has_data);
    work.context.refuse_if(is_outside, Rule::TcpSequence, DropReason::TcpSequence)?;
    let is_too_long = room >= 0 && work.segment.data().len() > room as usize;
    if work.context.acts_if(is_too_long, Rule::TcpWindow) {
        work.segment.truncate(room as usize);
    }
    Ok(())
}

/// Nothing comes behind a FIN that went on, and there is one end only.
fn before_end(work: &mut Work<'_, '_, '_>, sender: &Half) -> Result<(), DropReason> {
    let Fin::At(fin) = sender.fin else { return Ok(()) };
    let room = ahead(fin, work.segment.sequence);
    let says_more = !work.segment.data().is_empty() || work.segment.has(flag::FIN);
    let is_behind = room < 0 || (room == 0 && !work.segment.data().is_empty());
    work.context.refuse_if(is_behind && says_more, Rule::TcpFin, DropReason::TcpFin)?;
    let is_too_long = room >= 0 && work.segment.data().len() > room as usize;
    if work.context.acts_if(is_too_long, Rule::TcpFin) {
        work.segment.truncate(room as usize);
    }
    Ok(())
}

/// The paper drops what comes behind a hole.
fn behind_hole(work: &mut Work<'_, '_, '_>, sender: &Half) -> Result<(), DropReason> {
    let is_behind = ahead(work.segment.sequence, sender.in_sequence) > 0 && !work.segment.data().is_empty();
    let drops = work.context.settings.out_of_order == OutOfOrder::Drop;
    work.context.refuse_if(is_behind && drops, Rule::TcpOutOfOrder, DropReason::TcpBehindHole)
}

/// Compares the data with what is retained, and retains what is new.
fn reconcile(work: &mut Work<'_, '_, '_>, sender: &mut Half) -> Result<(), DropReason> {
    if work.segment.data().is_empty() {
        return Ok(());
    }
    let end = work.segment.end();
    if work.context.on(Rule::TcpRetransmission) {
        let offset = work.segment.sequence.wrapping_sub(sender.unacknowledged);
        let memory = &mut *work.memory;
        let (key, holder) = (work.key, work.holder);
        let usual = sender.store.usual_room();
        let begin = || Box::new(Bytes::with_room(memory.account(key, holder), usual));
        let retained = sender.store.bytes.get_or_insert_with(begin);
        let mut reconciled = Reconciled::AsItWas;
        work.segment.change_data(|data| {
            reconciled = retained.reconcile(offset, data, memory);
            reconciled == Reconciled::Rewritten
        });
        work.context.acts_if(reconciled == Reconciled::Rewritten, Rule::TcpRetransmission);
        if let Reconciled::Full(why) = reconciled {
            return Err(no_room(work, sender, why));
        }
    }
    sender.end = later(sender.end, end);
    sender.in_sequence = in_sequence(work.context, sender, end);
    Ok(())
}

/// The end of what went on without a hole, after bytes up to `end` went on.
fn in_sequence(context: &Context<'_>, sender: &Half, end: u32) -> u32 {
    match &sender.store.bytes {
        // A FIN is behind all bytes, so nothing that is retained reaches beyond it.
        Some(retained) if context.on(Rule::TcpOutOfOrder) => {
            later(sender.in_sequence, sender.unacknowledged.wrapping_add(retained.in_sequence()))
        }
        _ => later(sender.in_sequence, end),
    }
}

fn no_room(work: &mut Work<'_, '_, '_>, sender: &mut Half, why: NoRoom) -> DropReason {
    if sender.store.bytes.as_ref().is_some_and(|retained| retained.memory_len() == 0) {
        sender.store.bytes = None;
    }
    let (kind, event, reason) = refusal(work.key, work.holder.side, why);
    work.events.report_rarely(work.context.now, kind, event);
    // No rule is broken: where one ends connections, this must not.
    reason
}

/// How it is told that there is no memory for a segment of the connection of `key`, which the host on
/// side `holder` began.
pub(crate) fn refusal(key: &Key, holder: Side, why: NoRoom) -> (events::Kind, Event, DropReason) {
    let source = match why {
        NoRoom::Source(level) => sources::network(key, holder, level),
        NoRoom::Connection | NoRoom::All => None,
    };
    match source {
        Some(source) => {
            (events::Kind::SourceMemoryFull, Event::SourceMemoryFull { source }, DropReason::MemoryOfSource)
        }
        None => (events::Kind::MemoryFull, Event::MemoryFull { flow: key.id() }, DropReason::TcpRetainedFull),
    }
}

/// Lets a FIN count only in sequence. One behind a hole stays here; when the hole is filled it is sent in its sender's name, so
/// that nobody waits for it.
fn finish(work: &mut Work<'_, '_, '_>, sender: &mut Half, receiver: &Half, agreed: &Agreed) -> Result<(), DropReason> {
    let end = work.segment.end();
    if work.segment.has(flag::FIN) {
        if !work.context.on(Rule::TcpFin) || (end == sender.in_sequence && end == sender.end) {
            sender.fin = Fin::At(end);
            sender.end = end.wrapping_add(1);
            sender.in_sequence = sender.end;
            return Ok(());
        }
        if sender.fin == Fin::At(end) {
            return Ok(());
        }
        hold_fin(work, sender, receiver, agreed)?;
    }
    let Fin::Waiting(fin) = sender.fin else { return Ok(()) };
    if ahead(sender.end, fin) > 0 {
        // More was sent behind it, so it was none.
        sender.fin = Fin::None;
    } else if fin == sender.in_sequence {
        send_fin(work, sender, receiver);
    }
    Ok(())
}

/// Takes a FIN behind a hole out of its segment, and tells its sender that the hole is there.
fn hold_fin(
    work: &mut Work<'_, '_, '_>,
    sender: &mut Half,
    receiver: &Half,
    agreed: &Agreed,
) -> Result<(), DropReason> {
    let end = work.segment.end();
    work.context.acted(Rule::TcpFin);
    let waits = sender.fin == Fin::None && ahead(end, sender.end) >= 0;
    // Where data came with it, its receiver says so itself.
    let is_bare = work.segment.data().is_empty();
    let came_bare = sender.fin == Fin::Waiting(end) && sender.reached == end;
    if is_bare && (waits || came_bare) {
        tell_hole(work, sender, receiver, agreed);
    }
    if is_bare && !waits {
        return Err(DropReason::TcpFin);
    }
    work.segment.flags &= !flag::FIN;
    if waits {
        sender.fin = Fin::Waiting(end);
    }
    Ok(())
}

/// Says to the sender what its peer would say if it had the FIN: that it is there and what stands
/// before it is not. So the hole is filled in one round trip, where otherwise the sender would wait
/// for its timer (RFC 8985, section 3.3). A sender keeps what is only acknowledged selectively (RFC
/// 2018, section 8), so nothing is lost if it is sent in vain.
fn tell_hole(work: &mut Work<'_, '_, '_>, sender: &Half, receiver: &Half, agreed: &Agreed) {
    let has_stamps = sender.has_stamp && receiver.has_stamp;
    let may_tell = agreed.is_known && agreed.sack && (has_stamps || !agreed.timestamps);
    if !may_tell || work.context.settings.out_of_order == OutOfOrder::Drop {
        return;
    }
    let end = work.segment.end();
    let window = sender.edge.wrapping_sub(sender.unacknowledged) >> receiver.scale.told;
    work.made.push(Made {
        key: *work.key,
        to: work.context.from,
        hop_limit: HOP_LIMIT_FIRST,
        flags: flag::ACK,
        sequence: receiver.in_sequence,
        acknowledgement: sender.unacknowledged,
        window: window.min(u32::from(u16::MAX)) as u16,
        timestamps: has_stamps.then_some(Timestamps { value: receiver.stamp, echo: sender.stamp }),
        sack: Some((end, end.wrapping_add(1))),
    });
}

fn send_fin(work: &mut Work<'_, '_, '_>, sender: &mut Half, receiver: &Half) {
    let segment = &*work.segment;
    work.made.push(Made {
        key: *work.key,
        to: work.context.from.other(),
        hop_limit: HOP_LIMIT_FIRST,
        flags: flag::FIN | flag::ACK,
        sequence: sender.in_sequence,
        acknowledgement: later(segment.acknowledgement, receiver.unacknowledged),
        window: sender.window(segment.window).1,
        timestamps: segment.options.timestamps,
        sack: None,
    });
    sender.fin = Fin::At(sender.in_sequence);
    sender.end = sender.in_sequence.wrapping_add(1);
    sender.in_sequence = sender.end;
}
