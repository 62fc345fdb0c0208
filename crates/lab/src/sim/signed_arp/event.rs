//! What can be due in a world of signed ARP.

use bump::Ticket;
use sarp::Job;

use super::scenario::Step;
use crate::sim::course::Happening;

/// Something that is due.
pub enum Event {
    Arrive { port: usize, frame: Vec<u8> },
    FromStack { station: usize, frame: Vec<u8> },
    Job { station: usize, life: u32, ticket: Ticket, job: Option<Box<Job>> },
    Tick { station: usize },
    Curiosity { station: usize },
    Step { station: usize, step: Step },
    Restart { station: usize },
    Attack,
    FromAttacker { frame: Vec<u8> },
    FaultsStop,
    AskAll,
}

impl Happening for Event {
    fn letter(&self) -> u8 {
        match self {
            Event::Arrive { .. } => b'a',
            Event::FromStack { .. } => b's',
            Event::Job { .. } => b'j',
            Event::Tick { .. } => b't',
            Event::Curiosity { .. } => b'o',
            Event::Step { .. } => b'x',
            Event::Restart { .. } => b'r',
            Event::Attack => b'm',
            Event::FromAttacker { .. } => b'l',
            Event::FaultsStop => b'f',
            Event::AskAll => b'q',
        }
    }

    fn host(&self) -> Option<usize> {
        match self {
            Event::FromStack { station, .. }
            | Event::Job { station, .. }
            | Event::Tick { station }
            | Event::Curiosity { station } => Some(*station),
            _ => None,
        }
    }

    fn arrival(port: usize, frame: Vec<u8>) -> Event {
        Event::Arrive { port, frame }
    }
}
