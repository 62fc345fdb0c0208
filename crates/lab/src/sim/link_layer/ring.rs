//! The receive ring of a simulated host's card.

use std::collections::VecDeque;

/// Frames that the card keeps while the program is busy. More than any flood of the attacker, whose worth is judged by
/// what the link layer does with it, not by what a card loses.
const RECEIVE_RING: usize = 4096;

/// Frames that arrived and that the program has not looked at yet.
#[derive(Debug, Default)]
pub struct Ring {
    frames: VecDeque<Vec<u8>>,
    is_look_scheduled: bool,
}

impl Ring {
    /// A frame arrives; whether a look is to be scheduled. Without room the frame is lost.
    pub fn arrive(&mut self, frame: Vec<u8>) -> bool {
        if self.frames.len() < RECEIVE_RING {
            self.frames.push_back(frame);
        }
        !std::mem::replace(&mut self.is_look_scheduled, true)
    }

    /// The scheduled look: up to `most` frames, and whether another look is to be scheduled.
    pub fn look(&mut self, most: usize) -> (Vec<Vec<u8>>, bool) {
        let count = self.frames.len().min(most);
        let frames = self.frames.drain(..count).collect();
        self.is_look_scheduled = !self.frames.is_empty();
        (frames, self.is_look_scheduled)
    }

    /// The program died: nobody will look at what is here.
    pub fn clear(&mut self) {
        self.frames.clear();
    }
}
