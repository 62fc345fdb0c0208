//! What can be due in a world of link layers.

use bump::Ticket;
use cll::Job;

use super::scenario::Step;
use super::stack::Output;
use crate::sim::course::Happening;

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
    Shout { host: usize },
    FaultsStop,
}

impl Happening for Event {
    fn letter(&self) -> u8 {
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
            Event::Shout { .. } => b'g',
            Event::FaultsStop => b'f',
        }
    }

    fn host(&self) -> Option<usize> {
        match self {
            Event::Poll { host }
            | Event::FromStack { host, .. }
            | Event::Job { host, .. }
            | Event::Tick { host }
            | Event::StackTick { host }
            | Event::Lie { host }
            | Event::Babble { host }
            | Event::Pass { host }
            | Event::Shout { host } => Some(*host),
            _ => None,
        }
    }

    fn arrival(port: usize, frame: Vec<u8>) -> Event {
        Event::Arrive { port, frame }
    }
}
