//! What is due when: a queue of events in the order of virtual time, and for one moment in the order of scheduling.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use bump::{Instant, Ticket};
use cll::Job;

use super::scenario::Step;
use super::stack::Output;

/// Something that is due.
pub enum Event {
    Arrive { port: usize, frame: Vec<u8> },
    Poll { host: usize },
    FromStack { host: usize, output: Output, is_lie: bool },
    Job { host: usize, life: u32, ticket: Ticket, job: Option<Box<Job>> },
    Tick { host: usize },
    StackTick { host: usize },
    Application { flow: usize },
    Step { host: usize, step: Step },
    Restart { host: usize },
    Attack,
    Lie { host: usize },
    Babble { host: usize },
    Pass { host: usize },
    FaultsStop,
}

impl Event {
    /// A letter for the trace.
    pub fn letter(&self) -> u8 {
        match self {
            Event::Arrive { .. } => b'a',
            Event::Poll { .. } => b'p',
            Event::FromStack { .. } => b's',
            Event::Job { .. } => b'j',
            Event::Tick { .. } => b't',
            Event::StackTick { .. } => b'n',
            Event::Application { .. } => b'o',
            Event::Step { .. } => b'x',
            Event::Restart { .. } => b'r',
            Event::Attack => b'm',
            Event::Lie { .. } => b'l',
            Event::Babble { .. } => b'b',
            Event::Pass { .. } => b'c',
            Event::FaultsStop => b'f',
        }
    }

    /// The host that must be awake for it.
    pub fn host(&self) -> Option<usize> {
        match self {
            Event::Poll { host }
            | Event::FromStack { host, .. }
            | Event::Job { host, .. }
            | Event::Tick { host }
            | Event::StackTick { host }
            | Event::Lie { host }
            | Event::Babble { host }
            | Event::Pass { host } => Some(*host),
            _ => None,
        }
    }
}

struct Scheduled {
    at: Instant,
    order: u64,
    event: Event,
}

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}

impl Eq for Scheduled {}

impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scheduled {
    /// The heap gives the greatest first, and what is due first is the greatest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

/// All that is due.
#[derive(Default)]
pub struct Agenda {
    queue: BinaryHeap<Scheduled>,
    order: u64,
}

impl Agenda {
    /// Enters that `event` is due at `at`.
    pub fn schedule(&mut self, at: Instant, event: Event) {
        self.order += 1;
        self.queue.push(Scheduled { at, order: self.order, event });
    }

    /// What is due next.
    pub fn next(&mut self) -> Option<(Instant, Event)> {
        self.queue.pop().map(|scheduled| (scheduled.at, scheduled.event))
    }
}
