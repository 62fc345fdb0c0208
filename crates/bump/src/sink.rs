//! Where frames leave a bump: space in the outgoing port's own buffers.
//!
//! One super-frame may become 45 sealed frames and many frames one super-frame, with no copy in between. A bump asks for
//! room *before* it takes a sequence number, so that a full port never costs a hole in a counter.

use crate::{Meta, Side};

/// The ports of a bump, as seen from inside.
pub trait Sink {
    /// Room for a frame of up to `capacity` bytes towards `to`, or `None` while that port can take no more.
    ///
    /// The bytes are uninitialised in the sense that they may hold an older frame; whoever commits must have written
    /// every byte up to the committed length. A reservation that is not committed is given back by the next call.
    fn reserve(&mut self, to: Side, capacity: usize) -> Option<&mut [u8]>;

    /// Hands over the first `len` bytes of the latest reservation on side `to`.
    ///
    /// # Panics
    /// Debug builds panic when there is no reservation of at least `len` bytes.
    fn commit(&mut self, to: Side, len: usize, meta: Meta);
}

/// Copies `bytes` towards `to`; false when the port had no room.
pub fn copy(sink: &mut dyn Sink, to: Side, bytes: &[u8], meta: Meta) -> bool {
    let Some(room) = sink.reserve(to, bytes.len()) else { return false };
    room[..bytes.len()].copy_from_slice(bytes);
    sink.commit(to, bytes.len(), meta);
    true
}

/// Copies `parts`, one behind the other, towards `to`, and zeros behind them up to `min_len` bytes; false when the port had no
/// room.
pub fn copy_parts(sink: &mut dyn Sink, to: Side, parts: &[&[u8]], min_len: usize, meta: Meta) -> bool {
    let written: usize = parts.iter().map(|part| part.len()).sum();
    let len = written.max(min_len);
    let Some(mut room) = sink.reserve(to, len) else { return false };
    for part in parts {
        let (front, rest) = room.split_at_mut(part.len());
        front.copy_from_slice(part);
        room = rest;
    }
    room[..len - written].fill(0);
    sink.commit(to, len, meta);
    true
}

/// A sink that keeps what it is given: the in-memory port of tests, the lab and fuzzers.
#[derive(Debug, Default)]
pub struct Collected {
    frames: Vec<(Side, Vec<u8>, Meta)>,
    reservation: Vec<u8>,
    room_left: Option<usize>,
}

impl Collected {
    /// A sink without limit.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A sink that takes `frames` frames and then has no room.
    #[must_use]
    pub fn with_room_for(frames: usize) -> Self {
        Collected { room_left: Some(frames), ..Self::default() }
    }

    /// Everything committed since the last call, oldest first.
    pub fn take(&mut self) -> Vec<(Side, Vec<u8>, Meta)> {
        std::mem::take(&mut self.frames)
    }
}

impl Sink for Collected {
    fn reserve(&mut self, _to: Side, capacity: usize) -> Option<&mut [u8]> {
        if self.room_left == Some(0) {
            return None;
        }
        self.reservation.clear();
        // A byte that nobody wrote shows in the output instead of looking like a zero.
        self.reservation.resize(capacity, 0xa5);
        Some(&mut self.reservation)
    }

    fn commit(&mut self, to: Side, len: usize, meta: Meta) {
        debug_assert!(len <= self.reservation.len(), "committed {len} bytes of {}", self.reservation.len());
        self.reservation.truncate(len);
        self.frames.push((to, std::mem::take(&mut self.reservation), meta));
        self.room_left = self.room_left.map(|room| room - 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_behind_each_other_with_zeros_up_to_the_least_length() {
        let mut sink = Collected::with_room_for(2);
        let parts: [&[u8]; 3] = [&[1, 2], &[], &[3]];
        assert!(copy_parts(&mut sink, Side::WIRE, &parts, 5, Meta::plain()));
        assert!(copy_parts(&mut sink, Side::STACK, &parts, 0, Meta::plain()));
        assert!(!copy_parts(&mut sink, Side::WIRE, &parts, 0, Meta::plain()), "no room");
        let left: Vec<_> = sink.take().into_iter().map(|(to, bytes, _)| (to, bytes)).collect();
        assert_eq!(left, [(Side::WIRE, vec![1, 2, 3, 0, 0]), (Side::STACK, vec![1, 2, 3])]);
    }
}
