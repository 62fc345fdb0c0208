//! Control and its lanes as one object on one thread.
//!
//! Messages between the parts are delivered before a call returns, so that after every call each frame has its fate.

use crate::lane::{Control, Lane, LaneId, Outbox};
use crate::time::earlier;
use crate::{Batch, Bump, Instant, Ledger, Mailbox, Now, Side, Sink, Ticket, Torn};

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
    /// What is under way beyond the lanes' own judgement of a frame, should a panic cut it short.
    in_hand: Option<Torn>,
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
        Whole {
            control,
            lanes,
            requests: Mailbox::new(MESSAGES_WAITING_MAX),
            out: Outbox::new(MESSAGES_WAITING_MAX),
            in_hand: None,
        }
    }

    /// Lets control say something outside any frame, such as at start.
    pub fn with_control(
        &mut self,
        now: Now,
        sink: &mut dyn Sink,
        act: impl FnOnce(&mut C, &mut dyn Sink, &mut Outbox<C>),
    ) {
        self.in_hand = Some(Torn::Anything);
        act(&mut self.control, sink, &mut self.out);
        self.deliver(now, 0, sink);
    }

    /// Processes `batch` on the lane of the frames' queue; [`Bump::process`] uses lane 0.
    pub fn process_on(&mut self, lane: usize, now: Now, from: Side, batch: &mut dyn Batch, sink: &mut dyn Sink) {
        let lane = lane % self.lanes.len();
        self.in_hand = None;
        self.lanes[lane].process(now, from, batch, sink, &mut self.requests);
        self.deliver(now, lane, sink);
    }

    /// Carries requests up and orders down until none is left. Each round empties what the round before caused, and
    /// orders cause requests only for frames that were held, so this ends.
    fn deliver(&mut self, now: Now, mut lane: usize, sink: &mut dyn Sink) {
        loop {
            while let Some(request) = self.requests.pop() {
                self.in_hand = Some(self.control.about(&request));
                self.control.request(now, LaneId(lane as u8), request, sink, &mut self.out);
            }
            match self.next_order(now, sink) {
                Some(to) => lane = to,
                None => break,
            }
        }
        self.in_hand = None;
    }

    /// Has a lane carry out the oldest order; which lane.
    fn next_order(&mut self, now: Now, sink: &mut dyn Sink) -> Option<usize> {
        let (to, order) = self.out.orders.pop()?;
        let lane = usize::from(to.0) % self.lanes.len();
        self.in_hand = Some(self.lanes[lane].about(&order));
        self.lanes[lane].obey(now, order, sink, &mut self.requests);
        Some(lane)
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
        self.in_hand = Some(Torn::Anything);
        self.control.complete(now, ticket, completion, sink, &mut self.out);
        self.deliver(now, 0, sink);
    }

    fn tick(&mut self, now: Now, budget: usize, sink: &mut dyn Sink) {
        for lane in 0..self.lanes.len() {
            self.in_hand = Some(Torn::Anything);
            self.lanes[lane].tick(now, budget, sink, &mut self.requests);
            self.deliver(now, lane, sink);
        }
        self.in_hand = Some(Torn::Anything);
        self.control.tick(now, budget, sink, &mut self.out);
        self.deliver(now, 0, sink);
    }

    /// The lanes' keys go first, so that no order that waits seals under one of them; then the
    /// associations, with the keys that such orders have just brought.
    fn mend(&mut self, now: Now, torn: Torn, sink: &mut dyn Sink) {
        let torn = self.in_hand.take().unwrap_or(torn);
        self.lanes.iter_mut().for_each(|lane| lane.mend(now, torn));
        while self.next_order(now, sink).is_some() {}
        self.control.mend(now, torn, sink, &mut self.out);
        self.lanes.iter_mut().for_each(|lane| lane.mend(now, torn));
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
