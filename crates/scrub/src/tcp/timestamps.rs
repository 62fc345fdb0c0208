//! Timestamps: old duplicates (PAWS, RFC 7323, section 5) and whether the option may be there at all (section 3.2).

use bump::DropReason;

use crate::rule::Rule;
use crate::tcp::agreed::Agreed;
use crate::tcp::half::Half;
use crate::tcp::segment::flag;
use crate::tcp::serial::ahead;
use crate::tcp::work::Work;

/// After this long a connection without traffic takes any timestamp (RFC 7323, section 5.5): 24 days, in seconds.
const STAMP_VALID_S: u32 = 24 * 24 * 3600;

/// Judges the timestamps of a segment that is no reset.
pub(crate) fn judge(work: &mut Work<'_, '_, '_>, sender: &Half, agreed: &Agreed) -> Result<(), DropReason> {
    let Some(stamps) = work.segment.options.timestamps else {
        // "SHOULD silently drop" says RFC 7323; some hosts do and some do not.
        let is_missing = agreed.is_known && agreed.timestamps && work.context.scrubs();
        return work.context.refuse_if(is_missing, Rule::TcpTimestamps, DropReason::TcpTimestamp);
    };
    if work.context.acts_if(!agreed.timestamps, Rule::TcpTimestamps) {
        work.segment.options.timestamps = None;
        return Ok(());
    }
    let is_valid = sender.has_stamp && work.seconds().saturating_sub(sender.stamp_at) < STAMP_VALID_S;
    let age = ahead(sender.stamp, stamps.value);
    if !is_valid || age <= 0 || !work.context.scrubs() || !work.context.on(Rule::TcpTimestamps) {
        return Ok(());
    }
    let segment = &mut *work.segment;
    let says_nothing_new = ahead(sender.unacknowledged, segment.end()) >= i32::from(segment.has(flag::FIN));
    // Linux takes what is one tick old, others do not; and what says nothing new is made to be answered.
    if age > 1 && !says_nothing_new && (!segment.data().is_empty() || segment.has(flag::FIN)) {
        return Err(work.context.refused(Rule::TcpTimestamps, DropReason::TcpTimestamp));
    }
    work.context.acted(Rule::TcpTimestamps);
    if let Some(stamps) = &mut segment.options.timestamps {
        stamps.value = sender.stamp;
    }
    Ok(())
}

/// Remembers the timestamp of a segment that went on, as its receiver does (RFC 7323, section 4.3).
pub(crate) fn remember(work: &mut Work<'_, '_, '_>, sender: &mut Half) {
    let Some(stamps) = work.segment.options.timestamps else { return };
    let now = work.seconds();
    let is_old = ahead(stamps.value, sender.stamp) < 0 && now.saturating_sub(sender.stamp_at) < STAMP_VALID_S;
    let is_next = ahead(work.segment.sequence, sender.unacknowledged) <= 0;
    if !sender.has_stamp || (is_next && !is_old) {
        (sender.stamp, sender.stamp_at, sender.has_stamp) = (stamps.value, now, true);
    }
}
