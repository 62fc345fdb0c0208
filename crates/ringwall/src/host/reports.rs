//! What a host says of itself in every mode, in the words of the protocol.

use bump::{Ledger, Now, Side};

use super::kernel::Standing;
use crate::modes::layers::Layers;
use crate::status::Frames;

pub(crate) fn frames(ledger: &Ledger) -> Frames {
    let (stack, wire) = (Side::STACK as usize, Side::WIRE as usize);
    Frames {
        received_from_stack: ledger.received[stack],
        received_from_wire: ledger.received[wire],
        forwarded_to_wire: ledger.forwarded[stack],
        forwarded_to_stack: ledger.forwarded[wire],
        answered: ledger.answered.iter().sum(),
        consumed: ledger.consumed.iter().sum(),
        held: ledger.held,
        dropped: ledger.dropped.iter().sum(),
        made_for_wire: ledger.made[wire],
        made_for_stack: ledger.made[stack],
        emitted_to_wire: ledger.emitted[wire],
        emitted_to_stack: ledger.emitted[stack],
    }
}

/// Where forged frames end.
pub(crate) fn layers(standing: &Standing) -> Layers {
    let counts = standing.dropped_in_kernel().into_iter();
    Layers {
        wanted: standing.wanted.word().to_owned(),
        in_force: standing.in_force.word().to_owned(),
        hook: standing.hook.map(|hook| hook.word().to_owned()),
        reason: standing.reason.clone(),
        dropped_in_kernel: counts.map(|(reason, count)| (reason.word().to_owned(), count)).collect(),
    }
}

/// Whole days until a certificate ends; below zero when it is over.
pub(crate) fn days_left(not_after_unix: u64, now: Now) -> i64 {
    let now_s = now.wall.map_or(0, |wall| wall.unix_ms / 1000);
    let left = i64::try_from(not_after_unix).unwrap_or(i64::MAX) - i64::try_from(now_s).unwrap_or(0);
    left.div_euclid(86_400)
}
