//! The null bump: the same ports and the same cutting, no checks and no cryptography. It is the yardstick of every
//! benchmark, and the simplest complete bump to read.

use std::convert::Infallible;

use bump::{Batch, Bump, DropReason, Fate, Frame, Instant, Ledger, Meta, Now, Side, Sink, Ticket, sink};
use wire::offload::Plan;

use crate::port::cutter::{plan_of, segment_meta};

/// Forwards every frame. What leaves on the wire is cut into plain frames, as it would be if each had to be sealed; on
/// the way to the stack frames stay as they are.
#[derive(Debug, Default)]
pub struct NullBump {
    ledger: Ledger,
}

impl NullBump {
    /// A null bump.
    #[must_use]
    pub fn new() -> NullBump {
        NullBump::default()
    }

    fn forward(&mut self, to: Side, frame: &Frame<'_>, sink: &mut dyn Sink) -> Fate {
        let plan = match (to, frame.meta.gso) {
            (Side::Outer, Some(_)) => plan_of(frame.bytes, &frame.meta).map(Some),
            _ => Ok(None),
        };
        let emitted = match plan {
            Err(_) => return Fate::Dropped(DropReason::BadSuperFrame),
            Ok(None) => usize::from(sink::copy(sink, to, frame.bytes, frame.meta)),
            Ok(Some(plan)) => emit_segments(&plan, frame.bytes, &segment_meta(&plan, &frame.meta), to, sink),
        };
        self.ledger.emitted[to as usize] += emitted as u64;
        if emitted == 0 { Fate::Dropped(DropReason::PortFull) } else { Fate::Forwarded }
    }
}

/// Writes all segments that find room; how many did.
fn emit_segments(plan: &Plan, frame: &[u8], meta: &Meta, to: Side, sink: &mut dyn Sink) -> usize {
    for index in 0..plan.segments() {
        let Some(room) = sink.reserve(to, plan.segment_len(index)) else { return index };
        let Some(len) = plan.write(frame, index, room) else { return index };
        sink.commit(to, len, *meta);
    }
    plan.segments()
}

impl Bump for NullBump {
    type Job = Infallible;
    type Completion = Infallible;
    type Effect = Infallible;
    type Event = Infallible;

    fn process(&mut self, now: Now, from: Side, batch: &mut dyn Batch, sink: &mut dyn Sink) {
        while let Some(frame) = batch.next_frame() {
            self.ledger.receive(from);
            let fate = self.forward(from.other(), &frame, sink);
            self.ledger.settle(now.since_boot, from, fate, frame.bytes);
        }
    }

    fn complete(&mut self, _now: Now, _ticket: Ticket, completion: Infallible, _sink: &mut dyn Sink) {
        match completion {}
    }

    fn tick(&mut self, _now: Now, _budget: usize, _sink: &mut dyn Sink) {}

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn next_job(&mut self) -> Option<(Ticket, Infallible)> {
        None
    }

    fn next_effect(&mut self) -> Option<Infallible> {
        None
    }

    fn next_event(&mut self) -> Option<Infallible> {
        None
    }

    fn add_to_ledger(&self, total: &mut Ledger) {
        total.add(&self.ledger);
    }
}
