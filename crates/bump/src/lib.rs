//! The contract of a *bump in the wire*.
//!
//! Everything Ringwall does to traffic sits between two sides, sees frames, and gives each frame exactly one fate:
//! forwarded, answered, held, consumed, or dropped for one named reason. A bump is a plain state machine. It opens no
//! socket, reads no clock and draws no randomness of its own, so the same object runs in the daemon, in the lab over a
//! simulated network, over a capture file and under a fuzzer.
//!
//! Reading order: [`frame`] (what goes in), [`sink`] (what comes out), [`fate`] (what became of it), [`time`], [`lane`]
//! (how a bump is split for several queues), and [`whole`] (how the parts run as one object on one thread). [`witness`]
//! remembers who was dropped, and a [`record`] is what a person is told.
//!
//! This crate trusts nobody and knows no protocol.

pub mod fate;
pub mod frame;
#[cfg_attr(not(feature = "inject"), doc(hidden))]
pub mod inject;
pub mod lane;
pub mod mailbox;
pub mod random;
pub mod record;
pub mod sink;
pub mod time;
pub mod torn;
pub mod whole;
pub mod witness;

pub use fate::{Drop, DropReason, Fate, Ledger};
pub use frame::{Batch, Checksum, Frame, Gso, GsoKind, Meta, Side, VlanTag};
pub use lane::{Control, Lane, LaneId, Outbox};
pub use mailbox::Mailbox;
pub use random::{ErasingGenerator, Generator, SecretSource};
pub use sink::Sink;
pub use time::{ClockTrust, Instant, Now, Wall};
pub use torn::Torn;
pub use whole::Whole;
pub use witness::Sighting;

/// Names a job while it is under way; the completion carries it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A bump that runs on one thread: what the lab, the fuzzers, capture files and single-queue daemons drive.
///
/// The canonical loop has four kinds of call. *Frames in*: [`process`](Bump::process). *Results in*:
/// [`complete`](Bump::complete) for every job, also when it failed. *Time*: [`tick`](Bump::tick) at or after
/// [`deadline`](Bump::deadline). *Out*: after any of these, drain [`next_job`](Bump::next_job),
/// [`next_effect`](Bump::next_effect) and [`next_event`](Bump::next_event) before the next call in. `now` never goes
/// back between calls.
pub trait Bump {
    /// Slow work that must not run on the data path.
    type Job;
    /// What a job came to.
    type Completion;
    /// Something the host around the bump must do, such as setting a neighbour entry.
    type Effect;
    /// Something worth telling an operator.
    type Event;

    /// Takes every frame of `batch`, which arrived on side `from`, and gives each its fate.
    fn process(&mut self, now: Now, from: Side, batch: &mut dyn Batch, sink: &mut dyn Sink);

    /// Takes the result of a job.
    fn complete(&mut self, now: Now, ticket: Ticket, completion: Self::Completion, sink: &mut dyn Sink);

    /// Runs what is due, at most `budget` pieces of it; call again while [`deadline`](Bump::deadline) is not after `now`.
    fn tick(&mut self, now: Now, budget: usize, sink: &mut dyn Sink);

    /// A panic cut the call before this one short: ends whatever it may have left half done, so
    /// that the next call finds a state that holds together. `torn` says whom the call was about,
    /// as far as who drives the bump can tell.
    fn mend(&mut self, now: Now, torn: Torn, sink: &mut dyn Sink);

    /// When [`tick`](Bump::tick) next has something to do.
    fn deadline(&self) -> Option<Instant>;

    /// The next job to run, if any.
    fn next_job(&mut self) -> Option<(Ticket, Self::Job)>;

    /// The next effect to carry out, if any.
    fn next_effect(&mut self) -> Option<Self::Effect>;

    /// The next event to report, if any.
    fn next_event(&mut self) -> Option<Self::Event>;

    /// Adds this bump's counts to `total`.
    fn add_to_ledger(&self, total: &mut Ledger);
}
