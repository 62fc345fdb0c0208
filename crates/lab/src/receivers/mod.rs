//! One attack, many receivers: who reads what, without the scrubber and behind it.
//!
//! A receiver is a host with one narrow side: frames in, frames out, and the bytes that its application read. Some are real
//! (`stacks::receiving`, which knows this room and not the other way round), some are models of published policies. Without the
//! scrubber they disagree about overlapping fragments and segments, which is what evasion lives on; behind it none may.
//!
//! Reading order: `attack` (what is sent), `trial` (one case at one receiver), `comparison` (all cases at all receivers), `model`.

pub mod attack;
pub mod comparison;
pub mod connection;
mod gate;
pub mod model;
pub(crate) mod neighbour;
pub mod packet;
mod relations;
mod script;
mod trial;

pub use attack::{Attack, Carrier};
pub use comparison::{Comparison, Plan};
pub use model::Model;
pub use trial::transcript;

use crate::failure::Failure;

/// What an application read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// All bytes of its connection.
    pub stream: Vec<u8>,
    /// Its datagrams, in the order of their arrival.
    pub datagrams: Vec<Vec<u8>>,
}

/// A host that listens on TCP and UDP port [`PORT`](packet::PORT), and has nobody else on its link.
pub trait Receiver {
    /// What it is called in tables.
    fn name(&self) -> &str;

    /// Why it cannot take part in attacks by `carrier`, if so.
    fn cannot(&self, carrier: Carrier) -> Option<&'static str>;

    /// Ends its connection and forgets what was read.
    ///
    /// # Errors
    /// It is gone.
    fn begin_anew(&mut self) -> Result<(), Failure>;

    /// Takes a frame; gives those that it sends.
    ///
    /// # Errors
    /// It is gone.
    fn take(&mut self, frame: &[u8]) -> Result<Vec<Vec<u8>>, Failure>;

    /// What its application has read since it began anew.
    ///
    /// # Errors
    /// It is gone.
    fn read(&mut self) -> Result<Reading, Failure>;
}

/// The real receivers that this machine can run, and what it lacks for the others, by name.
#[derive(Default)]
pub struct Found {
    /// Those that run.
    pub receivers: Vec<Box<dyn Receiver>>,
    /// Those that do not, and why.
    pub missing: Vec<String>,
}
