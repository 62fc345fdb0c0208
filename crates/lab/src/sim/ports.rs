//! The two ports of a bump on the simulated LAN, which may have no room, and what one call into it brought forth.

use bump::{Bump, Generator, Meta, Side, Sink, Ticket};

/// What a byte of a frame is that nobody wrote: it shows in the output instead of looking like padding.
const UNWRITTEN: u8 = 0xa5;

/// What one call into a bump brought forth.
pub struct Outcome<B: Bump> {
    /// Frames for the wire.
    pub wire: Vec<Vec<u8>>,
    /// Frames for the stack.
    pub stack: Vec<(Vec<u8>, Meta)>,
    /// Work to be done elsewhere.
    pub jobs: Vec<(Ticket, B::Job)>,
    /// News.
    pub events: Vec<B::Event>,
}

impl<B: Bump> Default for Outcome<B> {
    fn default() -> Self {
        Outcome { wire: Vec::new(), stack: Vec::new(), jobs: Vec::new(), events: Vec::new() }
    }
}

/// The ports, for one call.
pub struct Ports<'a> {
    wire: Vec<Vec<u8>>,
    stack: Vec<(Vec<u8>, Meta)>,
    room: Vec<u8>,
    full_one_in: u64,
    random: &'a mut Generator,
}

impl<'a> Ports<'a> {
    /// Ports without room once in `full_one_in` times, never if that is zero.
    pub fn new(full_one_in: u64, random: &'a mut Generator) -> Self {
        Ports { wire: Vec::new(), stack: Vec::new(), room: Vec::new(), full_one_in, random }
    }

    /// What the call came to: what the ports took, and the jobs and news that wait in `bump`.
    pub fn outcome<B: Bump>(self, bump: &mut B) -> Outcome<B> {
        Outcome {
            wire: self.wire,
            stack: self.stack,
            jobs: std::iter::from_fn(|| bump.next_job()).collect(),
            events: std::iter::from_fn(|| bump.next_event()).collect(),
        }
    }
}

impl Sink for Ports<'_> {
    fn reserve(&mut self, _to: Side, capacity: usize) -> Option<&mut [u8]> {
        if self.random.chance(self.full_one_in) {
            return None;
        }
        self.room.clear();
        self.room.resize(capacity, UNWRITTEN);
        Some(&mut self.room)
    }

    fn commit(&mut self, to: Side, len: usize, meta: Meta) {
        let frame = self.room[..len].to_vec();
        match to {
            Side::WIRE => self.wire.push(frame),
            Side::STACK => self.stack.push((frame, meta)),
        }
    }
}
