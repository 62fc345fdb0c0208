//! Memory for retained bytes: one account for all connections, and a store of buffers that are used again.

use std::fmt;

use crate::limits::{POOL_MAX_BYTES, RETAINED_MAX_BYTES, RETAINED_MIN_BYTES};

/// Sizes of buffers: every power of two from the least to the most.
const SIZES: usize = (RETAINED_MAX_BYTES / RETAINED_MIN_BYTES).ilog2() as usize + 1;

/// What memory is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Bytes in sequence.
    InSequence,
    /// Bytes behind a hole. They may not take the last quarter: whoever leaves holes on purpose must not stop connections
    /// that are in sequence.
    BehindHole,
}

/// The account of all connections.
pub(crate) struct Memory {
    used: usize,
    max: usize,
    /// Buffers that nobody uses, by size.
    idle: [Vec<Box<[u8]>>; SIZES],
    idle_bytes: usize,
}

impl Memory {
    /// An account of at most `max` bytes.
    pub(crate) fn new(max: usize) -> Memory {
        Memory { used: 0, max, idle: std::array::from_fn(|_| Vec::new()), idle_bytes: 0 }
    }

    /// Bytes that connections hold.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Bytes of buffers that nobody uses. Together with [`used`](Memory::used) they are never more than the account has.
    pub(crate) fn idle(&self) -> usize {
        self.idle_bytes
    }

    /// A buffer of at least `len` bytes, its length a power of two, with anything in it. `None` when there is no memory left
    /// for `purpose`, or `len` is more than a connection may have.
    pub(crate) fn take(&mut self, len: usize, purpose: Purpose) -> Option<Box<[u8]>> {
        if len > RETAINED_MAX_BYTES {
            return None;
        }
        let len = len.next_power_of_two().max(RETAINED_MIN_BYTES);
        let max = if purpose == Purpose::BehindHole { self.max / 4 * 3 } else { self.max };
        if self.used + len > max {
            return None;
        }
        self.used += len;
        if let Some(again) = self.idle[size_of_buffer(len)].pop() {
            self.idle_bytes -= len;
            return Some(again);
        }
        self.shrink_idle();
        Some(vec![0; len].into_boxed_slice())
    }

    /// Frees idle buffers, the largest first, until they and those in use are within the account.
    fn shrink_idle(&mut self) {
        while self.used + self.idle_bytes > self.max {
            let Some(largest) = self.idle.iter_mut().rev().find_map(Vec::pop) else { return };
            self.idle_bytes -= largest.len();
        }
    }

    /// Takes back a buffer that [`take`](Memory::take) gave; an empty one is none.
    pub(crate) fn give(&mut self, buffer: Box<[u8]>) {
        let len = buffer.len();
        self.used -= len;
        if len != 0 && self.idle_bytes + len <= POOL_MAX_BYTES {
            self.idle_bytes += len;
            self.idle[size_of_buffer(len)].push(buffer);
        }
    }
}

/// The index of the size `len`, a power of two.
fn size_of_buffer(len: usize) -> usize {
    (len / RETAINED_MIN_BYTES).ilog2() as usize
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("used", &self.used).field("max", &self.max).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_is_kept_and_the_last_quarter_is_for_what_is_in_sequence() {
        let mut memory = Memory::new(4096);
        let first = memory.take(3000, Purpose::InSequence).expect("room");
        assert_eq!((first.len(), memory.used()), (4096, 4096));
        assert!(memory.take(1, Purpose::InSequence).is_none());
        memory.give(first);
        let hole = memory.take(2048, Purpose::BehindHole).expect("room");
        let other = memory.take(600, Purpose::BehindHole).expect("room");
        assert!(memory.take(1, Purpose::BehindHole).is_none());
        let last = memory.take(1, Purpose::InSequence).expect("the last quarter");
        assert_eq!(last.len(), RETAINED_MIN_BYTES);
        [hole, other, last].into_iter().for_each(|buffer| memory.give(buffer));
        assert_eq!(memory.used(), 0);
        // The first one went when the second was taken, for there was no room for both.
        assert_eq!(memory.idle(), 2048 + 1024 + 512);
    }

    /// What an operator allows is all that the gateway takes: buffers of one size that wait leave for those of another.
    #[test]
    fn idle_buffers_count_towards_the_account() {
        let mut memory = Memory::new(8192);
        let buffers: Vec<_> = (0..16).filter_map(|_| memory.take(512, Purpose::InSequence)).collect();
        assert_eq!(buffers.len(), 16);
        buffers.into_iter().for_each(|buffer| memory.give(buffer));
        assert_eq!((memory.used(), memory.idle()), (0, 8192));
        let large = memory.take(4096, Purpose::InSequence).expect("nobody uses anything");
        assert_eq!((memory.used(), memory.idle()), (4096, 4096));
        memory.give(large);
        let small = memory.take(512, Purpose::InSequence).expect("one that waits");
        assert_eq!((small.len(), memory.used(), memory.idle()), (512, 512, 8192 - 512));
        memory.take(2048, Purpose::InSequence).expect("room");
        assert_eq!((memory.used(), memory.idle()), (2560, 3584), "the largest goes first");
    }

    #[test]
    fn no_connection_has_more_than_its_share() {
        let mut memory = Memory::new(usize::MAX);
        assert!(memory.take(RETAINED_MAX_BYTES + 1, Purpose::InSequence).is_none());
        let buffer = memory.take(RETAINED_MAX_BYTES, Purpose::InSequence).expect("room");
        assert_eq!(buffer.len(), RETAINED_MAX_BYTES);
    }
}
