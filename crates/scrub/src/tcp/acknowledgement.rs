//! Acknowledgements and windows: what one host says about the other's half.

use bump::{DropReason, Side};

use crate::rule::Rule;
use crate::tcp::agreed::Agreed;
use crate::tcp::events;
use crate::tcp::events::Event;
use crate::tcp::half::Half;
use crate::tcp::serial::{ahead, is_within, later};
use crate::tcp::work::Work;

/// Judges what the segment in `work` acknowledges of `receiver`'s half (RFC 5961, section 5), and its selective
/// acknowledgements (RFC 2018, section 3).
pub(crate) fn judge(work: &mut Work<'_, '_, '_>, receiver: &mut Half, agreed: &Agreed) -> Result<(), DropReason> {
    let acknowledgement = work.segment.acknowledgement;
    let is_new = ahead(acknowledgement, receiver.in_sequence) > 0;
    let last = if is_new && is_believed(work, receiver, agreed) { acknowledgement } else { receiver.in_sequence };
    let is_wrong = !receiver.may_be_acknowledged(acknowledgement, last);
    if is_new && !is_wrong && work.context.settings.misses_segments {
        work.events.count_missing(ahead(acknowledgement, receiver.in_sequence).unsigned_abs());
    }
    if is_wrong && is_new && work.context.from == Side::TRUSTED {
        let event = Event::AsymmetricPath { flow: work.key.id() };
        work.events.report_rarely(work.context.now, events::Kind::AsymmetricPath, event);
    }
    work.context.refuse_if(is_wrong, Rule::TcpAcknowledgement, DropReason::TcpAcknowledgement)?;
    selective(work, receiver, agreed);
    Ok(())
}

/// Either host may have bytes from before its connection was adopted. A trusted host is believed; what an untrusted one says is
/// for the trusted host to judge, as far as a window goes: acknowledgements may have been lost with the scrubber before, and
/// who is not heard then is sent the same bytes for ever.
fn is_believed(work: &Work<'_, '_, '_>, receiver: &Half, agreed: &Agreed) -> bool {
    let distance = ahead(work.segment.acknowledgement, receiver.in_sequence);
    let is_in_window = u32::try_from(distance).is_ok_and(|distance| distance <= receiver.window_max);
    let misses_segments = work.context.settings.misses_segments && is_in_window;
    misses_segments || agreed.may_lag() && (work.context.from == Side::TRUSTED || is_in_window)
}

/// Takes out blocks that acknowledge what was not sent. The first may tell of a duplicate, and then lies below the
/// acknowledgement (RFC 2883, section 4).
fn selective(work: &mut Work<'_, '_, '_>, receiver: &Half, agreed: &Agreed) {
    let segment = &mut *work.segment;
    if segment.options.sack.as_slice().is_empty() || !work.context.on(Rule::TcpSack) {
        return;
    }
    let lowest = receiver.unacknowledged.wrapping_sub(receiver.window_max.max(u32::from(u16::MAX)));
    let mut is_first = true;
    let had_wrong = segment.options.sack.retain(|(left, right)| {
        let floor = if std::mem::replace(&mut is_first, false) { lowest } else { segment.acknowledgement };
        // One more than its host has reached is a FIN, which another scrubber may hold.
        let sent = later(receiver.end, receiver.reached.wrapping_add(1));
        let ceiling = if agreed.may_lag() { later(sent, right) } else { sent };
        agreed.sack && ahead(right, left) > 0 && is_within(left, floor, ceiling) && is_within(right, floor, ceiling)
    });
    work.context.acts_if(had_wrong, Rule::TcpSack);
}

/// Data never says less of the other half than its sender has said before: how old an
/// acknowledgement may be is judged by the largest window, and who watches knows that only by guess
/// where it is scaled. The window ends where it ended.
fn repeat_newest(work: &mut Work<'_, '_, '_>, sender: &Half, receiver: &Half) {
    let segment = &mut *work.segment;
    let behind = ahead(receiver.unacknowledged, segment.acknowledgement);
    let is_old = behind > 0 && !segment.data().is_empty() && work.context.scrubs();
    if work.context.acts_if(is_old, Rule::TcpAcknowledgement) {
        let units = behind.unsigned_abs().div_ceil(1 << sender.scale.own).min(u32::from(u16::MAX));
        segment.acknowledgement = receiver.unacknowledged;
        segment.window = segment.window.saturating_sub(units as u16);
    }
}

/// Enters what the segment in `work`, which goes on, acknowledges and grants.
pub(crate) fn take(work: &mut Work<'_, '_, '_>, sender: &Half, receiver: &mut Half, agreed: &Agreed) {
    repeat_newest(work, sender, receiver);
    let acknowledgement = work.segment.acknowledgement;
    let (window, told) = sender.window(work.segment.window);
    work.segment.window = told;
    if ahead(acknowledgement, receiver.in_sequence) > 0 && !is_believed(work, receiver, agreed) {
        return;
    }
    receiver.acknowledge(acknowledgement, work.memory);
    receiver.edge = later(receiver.edge, acknowledgement.wrapping_add(window));
    receiver.window_max = receiver.window_max.max(window);
}
