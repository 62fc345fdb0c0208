//! A cable in memory: two ports without a kernel, for tests of run loops and for programs that drive a bump by hand.
//!
//! What one port flushes the other receives, in order, metadata included. A cable holds few frames, so that a slow
//! reader shows as a backlog, as it does with a kernel.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use bump::{Batch, Frame, Meta};

use crate::port::{Backlog, ReceiveCounters, Receiver, SendCounters, Sender};

/// Frames that a cable holds in each direction.
pub const CABLE_MAX_FRAMES: usize = 1024;
/// Frames that a sender holds for a flush.
pub const UNFLUSHED_MAX_FRAMES: usize = 256;

/// One direction of a cable.
type Direction = Arc<Mutex<VecDeque<(Vec<u8>, Meta)>>>;

/// Two ports joined by a cable.
#[must_use]
pub fn cable() -> (MemoryPort, MemoryPort) {
    let (there, back) = (Direction::default(), Direction::default());
    (MemoryPort::new(&back, &there), MemoryPort::new(&there, &back))
}

/// One end of a cable.
#[derive(Debug)]
pub struct MemoryPort {
    /// Frames from the other end.
    pub receiver: MemoryReceiver,
    /// Frames to the other end.
    pub sender: MemorySender,
}

impl MemoryPort {
    fn new(incoming: &Direction, outgoing: &Direction) -> MemoryPort {
        MemoryPort {
            receiver: MemoryReceiver {
                incoming: Arc::clone(incoming),
                batch: VecDeque::new(),
                current: Vec::new(),
                counters: ReceiveCounters::default(),
            },
            sender: MemorySender {
                outgoing: Arc::clone(outgoing),
                unflushed: VecDeque::new(),
                reservation: Vec::new(),
                backlog: Backlog::None,
                counters: SendCounters::default(),
            },
        }
    }

    /// Sends one frame at once; false when the cable is full.
    pub fn send(&mut self, bytes: &[u8], meta: Meta) -> bool {
        let Some(room) = self.sender.reserve(bytes.len()) else { return false };
        room.copy_from_slice(bytes);
        self.sender.commit(bytes.len(), meta);
        !self.sender.flush().waits()
    }

    /// Everything that has arrived.
    pub fn receive(&mut self) -> Vec<(Vec<u8>, Meta)> {
        let mut frames = Vec::new();
        while let Ok(true) = self.receiver.fill() {
            while let Some(frame) = self.receiver.next_frame() {
                frames.push((frame.bytes.to_vec(), frame.meta));
            }
        }
        frames
    }
}

/// The receiving half of an end.
#[derive(Debug)]
pub struct MemoryReceiver {
    incoming: Direction,
    batch: VecDeque<(Vec<u8>, Meta)>,
    current: Vec<u8>,
    counters: ReceiveCounters,
}

impl Batch for MemoryReceiver {
    fn next_frame(&mut self) -> Option<Frame<'_>> {
        let (bytes, meta) = self.batch.pop_front()?;
        self.current = bytes;
        self.counters.frames += 1;
        self.counters.bytes += self.current.len() as u64;
        self.counters.super_frames += u64::from(meta.gso.is_some());
        Some(Frame { bytes: &mut self.current, meta })
    }
}

impl Receiver for MemoryReceiver {
    fn fill(&mut self) -> io::Result<bool> {
        if self.batch.is_empty() {
            // A thread that died while it held the queue left whole frames in it.
            let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::swap(&mut *incoming, &mut self.batch);
        }
        Ok(!self.batch.is_empty())
    }

    fn counters(&self) -> ReceiveCounters {
        self.counters
    }
}

/// The sending half of an end.
#[derive(Debug)]
pub struct MemorySender {
    outgoing: Direction,
    unflushed: VecDeque<(Vec<u8>, Meta)>,
    reservation: Vec<u8>,
    backlog: Backlog,
    counters: SendCounters,
}

impl Sender for MemorySender {
    fn reserve(&mut self, capacity: usize) -> Option<&mut [u8]> {
        if self.unflushed.len() == UNFLUSHED_MAX_FRAMES && self.flush().waits() {
            return None;
        }
        self.reservation.clear();
        // A byte that nobody wrote shows in the output instead of looking like a zero.
        self.reservation.resize(capacity, 0xa5);
        Some(&mut self.reservation)
    }

    fn commit(&mut self, len: usize, meta: Meta) {
        debug_assert!(len <= self.reservation.len(), "committed {len} bytes of {}", self.reservation.len());
        self.reservation.truncate(len);
        self.counters.frames += 1;
        self.counters.bytes += len as u64;
        self.counters.super_frames += u64::from(meta.gso.is_some());
        self.unflushed.push_back((std::mem::take(&mut self.reservation), meta));
    }

    fn flush(&mut self) -> Backlog {
        let mut outgoing = self.outgoing.lock().unwrap_or_else(PoisonError::into_inner);
        let room = CABLE_MAX_FRAMES.saturating_sub(outgoing.len()).min(self.unflushed.len());
        outgoing.extend(self.unflushed.drain(..room));
        self.backlog = if self.unflushed.is_empty() { Backlog::None } else { Backlog::UntilWritable };
        self.counters.backlogs += u64::from(self.backlog.waits());
        self.backlog
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn counters(&self) -> SendCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_cross_in_order_with_their_metadata() {
        let (mut a, mut b) = cable();
        let tagged = Meta { vlan: Some(bump::VlanTag { tpid: 0x8100, tci: 3 }), ..Meta::default() };
        assert!(a.send(&[1, 2, 3], tagged) && a.send(&[4], Meta::plain()) && b.send(&[5], Meta::plain()));
        assert_eq!(b.receive(), [(vec![1, 2, 3], tagged), (vec![4], Meta::plain())]);
        assert_eq!(a.receive(), [(vec![5], Meta::plain())]);
        assert_eq!((a.sender.counters().frames, b.receiver.counters().bytes), (2, 4));
    }

    #[test]
    fn a_full_cable_is_a_backlog_and_loses_nothing() {
        let (mut a, mut b) = cable();
        let mut committed = 0_usize;
        while let Some(room) = a.sender.reserve(2) {
            room.copy_from_slice(&(committed as u16).to_be_bytes());
            a.sender.commit(2, Meta::plain());
            committed += 1;
        }
        assert_eq!(committed, CABLE_MAX_FRAMES + UNFLUSHED_MAX_FRAMES);
        assert_eq!(a.sender.backlog(), Backlog::UntilWritable);
        let mut received = b.receive();
        assert_eq!(a.sender.flush(), Backlog::None);
        received.extend(b.receive());
        let numbers: Vec<_> =
            received.iter().map(|(bytes, _)| usize::from(bytes[0]) << 8 | usize::from(bytes[1])).collect();
        assert_eq!(numbers, (0..committed).collect::<Vec<_>>());
    }
}
