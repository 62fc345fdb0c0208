//! Resets (RFC 5961, section 3).
//!
//! A reset that goes on may be lost behind the scrubber, so the connection is remembered for a while. Who reset it says nothing
//! more, and what its peer says becomes a question, to which the answer is another reset.

use bump::{DropReason, Side};

use crate::rule::Rule;
use crate::tcp::agreed::Agreed;
use crate::tcp::half::Half;
use crate::tcp::options::Options;
use crate::tcp::question;
use crate::tcp::segment::flag;
use crate::tcp::serial::is_within;
use crate::tcp::work::Work;

/// Judges a reset in the middle of a connection.
pub(crate) fn reset(
    work: &mut Work<'_, '_, '_>,
    sender: &mut Half,
    receiver: &Half,
    agreed: &Agreed,
) -> Result<(), DropReason> {
    if work.context.scrubs() && work.context.on(Rule::TcpReset) {
        let (sequence, acknowledgement) = (work.segment.sequence, work.segment.acknowledgement);
        let is_wrong = work.segment.has(flag::ACK) && !receiver.may_be_acknowledged(acknowledgement, receiver.end);
        let is_inside = is_within(sequence, sender.unacknowledged, sender.edge);
        if sequence != sender.in_sequence {
            if is_inside && !is_wrong && !sender.is_reset {
                return question::instead(work, Rule::TcpReset, sender, receiver, agreed);
            }
            return Err(work.context.refused(Rule::TcpReset, DropReason::TcpReset));
        }
        work.context.refuse_if(is_wrong, Rule::TcpReset, DropReason::TcpReset)?;
    }
    sender.is_reset |= !work.context.scrubs() || work.segment.sequence == sender.in_sequence;
    reset_form(work);
    Ok(())
}

/// Leaves nothing of a reset but what makes it one. A trusted host's has no acknowledgement either: what it would acknowledge
/// tells hosts apart, and nobody looks at it (RFC 9293, section 3.10.7.4).
pub(crate) fn reset_form(work: &mut Work<'_, '_, '_>) {
    strip(work);
    if work.context.from == Side::TRUSTED && work.context.on(Rule::TcpResetForm) {
        let segment = &mut *work.segment;
        work.context.acted(Rule::TcpResetForm);
        (segment.flags, segment.acknowledgement, segment.window) = (flag::RST, 0, 0);
    }
}

/// Takes data and options out of a reset.
pub(crate) fn strip(work: &mut Work<'_, '_, '_>) {
    let segment = &mut *work.segment;
    let is_bare = segment.data().is_empty() && segment.options.is_empty();
    if work.context.acts_if(!is_bare, Rule::TcpReset) {
        segment.truncate(0);
        if !segment.options.is_signed() {
            segment.options = Options::default();
        }
    }
}
