//! What is due when: a queue of events in the order of virtual time, and for one moment in the order of scheduling.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use bump::Instant;

/// A run starts at this moment of the simulated clock.
pub const START: Instant = Instant::from_millis(1_000);

struct Scheduled<E> {
    at: Instant,
    order: u64,
    event: E,
}

impl<E> PartialEq for Scheduled<E> {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl<E> Eq for Scheduled<E> {}

impl<E> PartialOrd for Scheduled<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Scheduled<E> {
    /// The heap gives the greatest first, and what is due first is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// All that is due.
pub struct Agenda<E> {
    queue: BinaryHeap<Scheduled<E>>,
    order: u64,
}

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Agenda { queue: BinaryHeap::new(), order: 0 }
    }
}

impl<E> Agenda<E> {
    /// Enters that `event` is due at `at`.
    pub fn schedule(&mut self, at: Instant, event: E) {
        self.order += 1;
        self.queue.push(Scheduled { at, order: self.order, event });
    }

    /// What is due next.
    pub fn next(&mut self) -> Option<(Instant, E)> {
        self.queue.pop().map(|scheduled| (scheduled.at, scheduled.event))
    }
}
