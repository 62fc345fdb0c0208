//! How a bump is split: one slow [`Control`], and for each queue a [`Lane`] that owns its keys, counters and windows.
//!
//! A lane touches nothing that another lane touches, so there is no lock on the data path. Lanes and control speak by
//! bounded messages: a lane sends *requests* up, control sends *orders* down. [`crate::Whole`] runs all of them on one
//! thread; a daemon with several queues gives each lane a thread and puts control beside lane 0.

use crate::{Batch, Instant, Ledger, Mailbox, Now, Side, Sink, Ticket, Torn};

/// Which lane. Lane 0 always exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(pub u8);

/// One queue's share of a bump: everything that happens to every frame.
pub trait Lane {
    /// What this lane asks of control.
    type Request;
    /// What control tells this lane.
    type Order;

    /// Takes every frame of `batch`. A frame that only control can judge leaves as a request.
    fn process(
        &mut self,
        now: Now,
        from: Side,
        batch: &mut dyn Batch,
        sink: &mut dyn Sink,
        requests: &mut Mailbox<Self::Request>,
    );

    /// Carries out an order.
    fn obey(&mut self, now: Now, order: Self::Order, sink: &mut dyn Sink, requests: &mut Mailbox<Self::Request>);

    /// Runs what is due, at most `budget` pieces of it.
    fn tick(&mut self, now: Now, budget: usize, sink: &mut dyn Sink, requests: &mut Mailbox<Self::Request>);

    /// Whom `order` is about, should a panic cut its carrying out short.
    fn about(&self, order: &Self::Order) -> Torn;

    /// As [`Bump::mend`](crate::Bump::mend). A key that may have sealed a frame without counting it
    /// seals nothing any more.
    fn mend(&mut self, now: Now, torn: Torn);

    /// When [`tick`](Lane::tick) next has something to do.
    fn deadline(&self) -> Option<Instant>;

    /// This lane's books.
    fn ledger(&self) -> &Ledger;
}

/// The slow half of a bump: handshakes, tables, policy.
pub trait Control {
    /// What a lane asks.
    type Request;
    /// What a lane is told.
    type Order;
    /// Slow work.
    type Job;
    /// What a job came to.
    type Completion;
    /// Something the host around the bump must do.
    type Effect;
    /// Something worth telling an operator.
    type Event;

    /// Handles a request of `lane`.
    fn request(&mut self, now: Now, lane: LaneId, request: Self::Request, sink: &mut dyn Sink, out: &mut Outbox<Self>);

    /// Takes the result of a job.
    fn complete(
        &mut self,
        now: Now,
        ticket: Ticket,
        completion: Self::Completion,
        sink: &mut dyn Sink,
        out: &mut Outbox<Self>,
    );

    /// Runs what is due, at most `budget` pieces of it.
    fn tick(&mut self, now: Now, budget: usize, sink: &mut dyn Sink, out: &mut Outbox<Self>);

    /// Whom `request` is about, should a panic cut its handling short.
    fn about(&self, request: &Self::Request) -> Torn;

    /// As [`Bump::mend`](crate::Bump::mend).
    fn mend(&mut self, now: Now, torn: Torn, sink: &mut dyn Sink, out: &mut Outbox<Self>);

    /// When [`tick`](Control::tick) next has something to do.
    fn deadline(&self) -> Option<Instant>;

    /// The books of the frames that lanes handed over, and of the frames that control made.
    fn ledger(&self) -> &Ledger;
}

/// What control wants done by others. Jobs and orders are refused when full; effects and events push the oldest out.
#[allow(missing_debug_implementations)]
pub struct Outbox<C: Control + ?Sized> {
    /// Orders to single lanes.
    pub orders: Mailbox<(LaneId, C::Order)>,
    /// Jobs to be run elsewhere.
    pub jobs: Mailbox<(Ticket, C::Job)>,
    /// Effects on the host.
    pub effects: Mailbox<C::Effect>,
    /// News for the operator.
    pub events: Mailbox<C::Event>,
    /// Events and effects that were pushed out because nobody drained them.
    pub overflowed: u64,
}

impl<C: Control + ?Sized> Outbox<C> {
    /// An outbox that holds at most `limit` messages of each kind.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Outbox {
            orders: Mailbox::new(limit),
            jobs: Mailbox::new(limit),
            effects: Mailbox::new(limit),
            events: Mailbox::new(limit),
            overflowed: 0,
        }
    }

    /// Reports `event`; the oldest goes when nobody has drained them.
    pub fn event(&mut self, event: C::Event) {
        if self.events.is_full() {
            self.events.pop();
            self.overflowed += 1;
        }
        let _ = self.events.push(event);
    }

    /// Asks for `effect`; the oldest goes when nobody has drained them.
    pub fn effect(&mut self, effect: C::Effect) {
        if self.effects.is_full() {
            self.effects.pop();
            self.overflowed += 1;
        }
        let _ = self.effects.push(effect);
    }
}
