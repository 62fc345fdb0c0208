//! Frames that wait for a handshake: copied out of the port's buffer and bounded in frames and bytes.

use std::collections::{BTreeMap, VecDeque};

use bump::{Frame, Meta};
use wire::MacAddress;

use crate::limits::{HELD_BYTES_MAX, HELD_BYTES_PER_PEER_MAX, HELD_FRAMES_PER_PEER_MAX};

/// A frame that waits.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) bytes: Vec<u8>,
    pub(crate) meta: Meta,
}

#[derive(Debug, Default)]
struct Queue {
    frames: VecDeque<Held>,
    bytes: usize,
}

/// All frames of a lane that wait, by destination.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    queues: BTreeMap<MacAddress, Queue>,
    bytes: usize,
}

/// What became of a frame that was to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It waits, and is the first for its destination.
    First,
    /// It waits behind others.
    Behind,
    /// There is no room for it.
    Full,
}

impl Hold {
    /// Keeps a copy of `frame` for `destination`.
    pub(crate) fn keep(&mut self, destination: MacAddress, frame: &Frame<'_>) -> Kept {
        let len = frame.bytes.len();
        let queue = self.queues.entry(destination).or_default();
        let full = queue.frames.len() >= HELD_FRAMES_PER_PEER_MAX
            || queue.bytes + len > HELD_BYTES_PER_PEER_MAX
            || self.bytes + len > HELD_BYTES_MAX;
        if full {
            if queue.frames.is_empty() {
                self.queues.remove(&destination);
            }
            return Kept::Full;
        }
        queue.bytes += len;
        self.bytes += len;
        queue.frames.push_back(Held { bytes: frame.bytes.to_vec(), meta: frame.meta });
        if queue.frames.len() == 1 { Kept::First } else { Kept::Behind }
    }

    /// Takes out everything that waits for `destination`, oldest first.
    pub(crate) fn take(&mut self, destination: MacAddress) -> VecDeque<Held> {
        let queue = self.queues.remove(&destination).unwrap_or_default();
        self.bytes -= queue.bytes;
        queue.frames
    }

    /// Frames that wait.
    pub(crate) fn frames(&self) -> u64 {
        self.queues.values().map(|queue| queue.frames.len() as u64).sum()
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(hold: &mut Hold, to: u8, len: usize) -> Kept {
        let mut bytes = vec![0; len];
        hold.keep(MacAddress([2, 0, 0, 0, 0, to]), &Frame { bytes: &mut bytes, meta: Meta::plain() })
    }

    #[test]
    fn limits_hold_and_everything_comes_back_in_order() {
        let mut hold = Hold::default();
        assert_eq!(keep(&mut hold, 1, 60), Kept::First);
        for _ in 1..HELD_FRAMES_PER_PEER_MAX {
            assert_eq!(keep(&mut hold, 1, 60), Kept::Behind);
        }
        assert_eq!(keep(&mut hold, 1, 60), Kept::Full);
        assert_eq!(hold.take(MacAddress([2, 0, 0, 0, 0, 1])).len(), HELD_FRAMES_PER_PEER_MAX);
        assert_eq!(hold.bytes(), 0);
    }

    #[test]
    fn bytes_are_bounded_for_one_peer_and_for_all() {
        let mut hold = Hold::default();
        assert_eq!(keep(&mut hold, 1, HELD_BYTES_PER_PEER_MAX), Kept::First);
        assert_eq!(keep(&mut hold, 1, 1), Kept::Full);
        let mut kept = HELD_BYTES_PER_PEER_MAX;
        for to in 2..100 {
            if keep(&mut hold, to, HELD_BYTES_PER_PEER_MAX) == Kept::First {
                kept += HELD_BYTES_PER_PEER_MAX;
            }
        }
        assert!(kept <= HELD_BYTES_MAX && kept + HELD_BYTES_PER_PEER_MAX > HELD_BYTES_MAX);
        assert_eq!(hold.bytes(), kept);
    }
}
