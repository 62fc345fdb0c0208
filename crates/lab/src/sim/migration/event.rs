//! What can be due in a world in migration.

use bump::Ticket;
use cll::Job;

use super::scenario::Step;
use crate::sim::course::Happening;
use crate::sim::link_layer::stack::Output;

/// Something that is due.
pub enum Event {
    Arrive { port: usize, frame: Vec<u8> },
    FromStack { host: usize, output: Output },
    Job { host: usize, life: u32, ticket: Ticket, job: Option<Box<Job>> },
    Tick { host: usize },
    StackTick { host: usize },
    Talk { from: usize, to: usize },
    Step { host: usize, step: Step },
    Restart { host: usize },
    Attack,
    AttackEnds,
}

impl Happening for Event {
    fn letter(&self) -> u8 {
        match self {
            Event::Arrive { .. } => b'a',
            Event::FromStack { .. } => b's',
            Event::Job { .. } => b'j',
            Event::Tick { .. } => b't',
            Event::StackTick { .. } => b'n',
            Event::Talk { .. } => b'o',
            Event::Step { .. } => b'x',
            Event::Restart { .. } => b'r',
            Event::Attack => b'm',
            Event::AttackEnds => b'f',
        }
    }

    fn host(&self) -> Option<usize> {
        None
    }

    fn arrival(port: usize, frame: Vec<u8>) -> Event {
        Event::Arrive { port, frame }
    }
}
