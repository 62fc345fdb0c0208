//! What can be judged about a segment without knowing its connection.

use bump::DropReason;

use crate::context::Context;
use crate::rule::Rule;
use crate::tcp::segment::{Segment, flag};

/// Largest shift of a window (RFC 7323, section 2.3).
const WINDOW_SCALE_MAX: u8 = 14;

/// Drops what no correct sender makes and clears what means nothing.
pub(crate) fn judge(context: &mut Context<'_>, segment: &mut Segment<'_>) -> Result<(), DropReason> {
    flags(context, segment)?;
    reserved(context, segment);
    urgent(context, segment);
    options(context, segment);
    Ok(())
}

/// Cases of RFC 9293, section 3.10.7, that only a scan or an attack makes.
fn flags(context: &mut Context<'_>, segment: &mut Segment<'_>) -> Result<(), DropReason> {
    let has = |flags: u16| segment.flags & flags == flags;
    let is_wrong = has(flag::SYN | flag::FIN)
        || has(flag::SYN | flag::RST)
        || has(flag::RST | flag::FIN)
        || segment.flags & (flag::SYN | flag::RST | flag::ACK) == 0;
    context.refuse_if(is_wrong, Rule::TcpFlags, DropReason::TcpFlags)?;
    let is_bare = segment.flags & (flag::SYN | flag::RST) != 0;
    if context.acts_if(is_bare && segment.flags & (flag::PSH | flag::URG) != 0, Rule::TcpFlags) {
        segment.flags &= !(flag::PSH | flag::URG);
    }
    Ok(())
}

/// Fields that no flag makes valid.
fn reserved(context: &mut Context<'_>, segment: &mut Segment<'_>) {
    let acknowledges = segment.has(flag::ACK);
    let is_set = segment.flags & flag::RESERVED != 0
        || (!acknowledges && segment.acknowledgement != 0)
        || (!segment.has(flag::URG) && segment.urgent_pointer != 0);
    if !context.acts_if(is_set, Rule::TcpReservedBits) {
        return;
    }
    segment.flags &= !flag::RESERVED;
    if !acknowledges {
        segment.acknowledgement = 0;
    }
    if !segment.has(flag::URG) {
        segment.urgent_pointer = 0;
    }
}

/// RFC 6093, section 5, advises to read urgent data in line; hosts differ in which byte they take out otherwise.
fn urgent(context: &mut Context<'_>, segment: &mut Segment<'_>) {
    if context.scrubs() && context.acts_if(segment.has(flag::URG), Rule::TcpUrgent) {
        segment.flags &= !flag::URG;
        segment.urgent_pointer = 0;
    }
}

/// Options in segments where they have no place.
fn options(context: &mut Context<'_>, segment: &mut Segment<'_>) {
    let opens = segment.has(flag::SYN);
    let options = &mut segment.options;
    if opens {
        let is_stray = !options.sack.as_slice().is_empty() || options.window_scale > Some(WINDOW_SCALE_MAX);
        if context.acts_if(is_stray, Rule::TcpOptions) {
            options.sack.retain(|_| false);
            options.window_scale = options.window_scale.map(|scale| scale.min(WINDOW_SCALE_MAX));
        }
    } else if context.on(Rule::TcpOptions) {
        let is_stray = options.mss.is_some() || options.window_scale.is_some() || options.sack_permitted;
        (options.mss, options.window_scale, options.sack_permitted) = (None, None, false);
        let had_fast_open = options.remove_fast_open();
        context.acts_if(is_stray || had_fast_open, Rule::TcpOptions);
    }
    if let Some(stamps) = &mut options.timestamps
        && segment.flags & flag::ACK == 0
        && context.acts_if(stamps.echo != 0, Rule::TcpTimestamps)
    {
        // It is valid only beside an acknowledgement (RFC 7323, section 3.2).
        stamps.echo = 0;
    }
}
