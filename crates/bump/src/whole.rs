//! Control and its lanes as one object on one thread.
//!
//! Messages between the parts are delivered before a call returns, so that after every call each frame has its fate.

use crate::lane::{Control, Lane, LaneId, Outbox};
use crate::time::earlier;
use crate::{Batch, Bump, Instant, Ledger, Mailbox, Now, Side, Sink, Ticket};

/// Messages of one kind that may wait between control and lanes.
pub const MESSAGES_WAITING_MAX: usize = 1024;

/// A bump made of a control and its lanes.
#[allow(missing_debug_implementations)]
pub struct Whole<C: Control, L> {
    /// The slow half, open for queries.
    pub control: C,
    /// The lanes, open for queries.
    pub lanes: Vec<L>,
    requests: Mailbox<C::Request>,
    out: Outbox<C>,
}

impl<C, L> Whole<C, L>
where
    C: Control,
    L: Lane<Request = C::Request, Order = C::Order>,
{
    /// Joins the parts. There is at least one lane.
    #[must_use]
    pub fn new(control: C, lanes: Vec<L>) -> Self {
        debug_assert!(!lanes.is_empty());
        Whole { control, lanes, requests: Mailbox::new(MESSAGES_WAITING_MAX), out: Outbox::new(MESSAGES_WAITING_MAX) }
    }

    /// Lets control say something outside any frame, such as at start.
    pub fn with_control(
        &mut self,
        now: Now,
        sink: &mut dyn Sink,
        act: impl FnOnce(&mut C, &mut dyn Sink, &mut Outbox<C>),
    ) {
        act(&mut self.control, sink, &mut self.out);
        self.deliver(now, 0, sink);
    }

    /// Processes `batch` on the lane of the frames' queue; [`Bump::process`] uses lane 0.
    pub fn process_on(&mut self, lane: usize, now: Now, from: Side, batch: &mut dyn Batch, sink: &mut dyn Sink) {
        let lane = lane % self.lanes.len();
        self.lanes[lane].process(now, from, batch, sink, &mut self.requests);
        self.deliver(now, lane, sink);
    }

    /// Carries requests up and orders down until none is left. Each round empties what the round before caused, and
    /// orders cause requests only for frames that were held, so this ends.
    fn deliver(&mut self, now: Now, mut lane: usize, sink: &mut dyn Sink) {
        loop {
            while let Some(request) = self.requests.pop() {
                self.control.request(now, LaneId(lane as u8), request, sink, &mut self.out);
            }
            let Some((to, order)) = self.out.orders.pop() else { return };
            lane = usize::from(to.0) % self.lanes.len();
            self.lanes[lane].obey(now, order, sink, &mut self.requests);
        }
    }
}

impl<C, L> Bump for Whole<C, L>
where
    C: Control,
    L: Lane<Request = C::Request, Order = C::Order>,
{
    type Job = C::Job;
    type Completion = C::Completion;
    type Effect = C::Effect;
    type Event = C::Event;

    fn process(&mut self, now: Now, from: Side, batch: &mut dyn Batch, sink: &mut dyn Sink) {
        self.process_on(0, now, from, batch, sink);
    }

    fn complete(&mut self, now: Now, ticket: Ticket, completion: C::Completion, sink: &mut dyn Sink) {
        self.control.complete(now, ticket, completion, sink, &mut self.out);
        self.deliver(now, 0, sink);
    }

    fn tick(&mut self, now: Now, budget: usize, sink: &mut dyn Sink) {
        for lane in 0..self.lanes.len() {
            self.lanes[lane].tick(now, budget, sink, &mut self.requests);
            self.deliver(now, lane, sink);
        }
        self.control.tick(now, budget, sink, &mut self.out);
        self.deliver(now, 0, sink);
    }

    fn deadline(&self) -> Option<Instant> {
        self.lanes.iter().map(Lane::deadline).fold(self.control.deadline(), earlier)
    }

    fn next_job(&mut self) -> Option<(Ticket, C::Job)> {
        self.out.jobs.pop()
    }

    fn next_effect(&mut self) -> Option<C::Effect> {
        self.out.effects.pop()
    }

    fn next_event(&mut self) -> Option<C::Event> {
        self.out.events.pop()
    }

    fn add_to_ledger(&self, total: &mut Ledger) {
        total.add(self.control.ledger());
        for lane in &self.lanes {
            total.add(lane.ledger());
        }
    }
}
