//! A harmless question in place of a segment that must not be believed.
//!
//! What a host alone can judge, such as a SYN or a reset in the middle of its connection, is replaced by an acknowledgement at a
//! sequence number that the host has had already. By RFC 9293, section 3.10.7.4, every host answers it with its own state, as it
//! would answer the original by a challenge (RFC 5961, sections 3 and 4). So an honest peer that lost the connection hears it,
//! resets it at exactly the right number, and goes on; somebody who guesses hears nothing.

use bump::DropReason;

use crate::rule::Rule;
use crate::tcp::agreed::Agreed;
use crate::tcp::half::Half;
use crate::tcp::options::{Options, Timestamps};
use crate::tcp::segment::flag;
use crate::tcp::work::Work;

/// Puts the question in the place of the segment in `work`, if `rule` is on.
pub(crate) fn instead(
    work: &mut Work<'_, '_, '_>,
    rule: Rule,
    sender: &Half,
    receiver: &Half,
    agreed: &Agreed,
) -> Result<(), DropReason> {
    if !work.context.acts_if(true, rule) {
        return Ok(());
    }
    // Where both are known, the stamps are the last that each host heard of the other.
    let timestamps = (agreed.timestamps && sender.has_stamp && receiver.has_stamp)
        .then_some(Timestamps { value: sender.stamp, echo: receiver.stamp });
    let window = receiver.edge.wrapping_sub(receiver.unacknowledged) >> sender.scale.told;
    let segment = &mut *work.segment;
    segment.flags = flag::ACK;
    segment.acknowledgement = receiver.unacknowledged;
    segment.window = window.min(u32::from(u16::MAX)) as u16;
    segment.urgent_pointer = 0;
    segment.options = Options::bare(timestamps);
    at_the_last_byte(work, sender);
    Ok(())
}

/// Puts the segment in `work` at the last byte that the receiver has acknowledged. If it had data, it says that byte again, or
/// none where that is not known: Linux answers segments without data only twice a second.
pub(crate) fn at_the_last_byte(work: &mut Work<'_, '_, '_>, sender: &Half) {
    let segment = &mut *work.segment;
    segment.sequence = sender.unacknowledged.wrapping_sub(1);
    segment.flags &= !(flag::FIN | flag::PSH);
    segment.truncate(usize::from(sender.last_acknowledged.is_some()));
    if let Some(byte) = sender.last_acknowledged {
        segment.change_data(|data| {
            data.fill(byte);
            true
        });
    }
}
