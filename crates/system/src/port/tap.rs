//! The inner device's port: a TAP with vnet headers, where the host's own stack is at the other end.
//!
//! One read takes one super-frame of up to 64 KiB. Frames towards the stack are joined while they continue one flow of TCP or UDP,
//! and leave as one gathered write, so that the stack handles 45 of them at the price of one.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use bump::{Batch, Checksum, Frame, Gso, GsoKind, Meta};
use rustix::io::Errno;
use wire::offload::{Kind, Run, SUPER_FRAME_MAX_BYTES};

use super::arena::Arena;
use super::cutter::{Cutter, is_tunnelled};
use super::limits::{ARENA_MAX_FRAMES, JOINED_MAX_FRAMES, STACK_BATCH_MAX_FRAMES};
use super::{Backlog, ReceiveCounters, Receiver, SendCounters, Sender, vnet};
use crate::tap_device;

/// Both halves of a TAP's port.
#[derive(Debug)]
pub struct TapPort {
    /// Frames from the stack.
    pub receiver: TapReceiver,
    /// Frames to the stack.
    pub sender: TapSender,
}

impl TapPort {
    /// The port of an open TAP: non-blocking, without protocol information, with vnet headers of [`vnet::LEN`] bytes.
    #[must_use]
    pub fn new(tap: OwnedFd) -> TapPort {
        let tap = Arc::new(tap);
        TapPort { receiver: TapReceiver::new(Arc::clone(&tap)), sender: TapSender::new(tap) }
    }
}

impl AsFd for TapPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.tap.as_fd()
    }
}

/// The receiving half.
#[derive(Debug)]
pub struct TapReceiver {
    tap: Arc<OwnedFd>,
    buffer: Box<[u8]>,
    /// Length of the frame in the buffer that nobody has taken yet, its vnet header included.
    waiting: Option<usize>,
    reads_left: usize,
    /// Frame in the buffer that is being cut.
    cut_len: usize,
    cutter: Cutter,
    counters: ReceiveCounters,
}

impl TapReceiver {
    pub(super) fn new(tap: Arc<OwnedFd>) -> TapReceiver {
        TapReceiver {
            tap,
            buffer: vec![0; vnet::LEN + SUPER_FRAME_MAX_BYTES].into_boxed_slice(),
            waiting: None,
            reads_left: 0,
            cut_len: 0,
            cutter: Cutter::new(),
            counters: ReceiveCounters::default(),
        }
    }

    /// Reads one frame into the buffer.
    fn read(&mut self) -> io::Result<Option<usize>> {
        loop {
            match rustix::io::read(&self.tap, &mut self.buffer[..]) {
                Ok(len) => return Ok(Some(len)),
                Err(Errno::INTR) => {}
                // The kernel had a super-frame of a kind its own header cannot name, and dropped
                // it.
                Err(Errno::INVAL) => self.counters.unreadable += 1,
                // A TAP whose interface is down, or just going, answers EIO until it is up again.
                Err(Errno::AGAIN | Errno::IO) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Takes over the frame of `len` bytes in the buffer; its metadata, or `None` when it is being cut or no good.
    fn accept(&mut self, len: usize) -> Option<Meta> {
        let Some((header, frame)) =
            self.buffer[..len].split_first_chunk::<{ vnet::PACKET_LEN }>().filter(|_| len > vnet::LEN)
        else {
            self.counters.unreadable += 1;
            return None;
        };
        let Some(meta) = vnet::read(header) else {
            self.counters.unreadable += 1;
            return None;
        };
        let frame = &frame[vnet::LEN - vnet::PACKET_LEN..];
        self.counters.super_frames += u64::from(meta.gso.is_some());
        if !is_tunnelled(frame, &meta) {
            self.counters.frames += 1;
            self.counters.bytes += frame.len() as u64;
            return Some(meta);
        }
        match self.cutter.begin(frame, &meta) {
            Ok(_) => self.cut_len = len,
            Err(_) => self.counters.unreadable += 1,
        }
        None
    }

    /// The next piece of the frame that is being cut.
    fn next_piece(&mut self) -> Option<Frame<'_>> {
        let piece = self.cutter.next(&self.buffer[vnet::LEN..self.cut_len])?;
        self.counters.frames += 1;
        self.counters.segments += 1;
        self.counters.bytes += piece.bytes.len() as u64;
        Some(piece)
    }
}

impl Batch for TapReceiver {
    fn next_frame(&mut self) -> Option<Frame<'_>> {
        loop {
            if self.cutter.is_busy() {
                return self.next_piece();
            }
            let len = match self.waiting.take() {
                Some(len) => len,
                None if self.reads_left == 0 => return None,
                // An error shows again at the next filling, where it can be reported.
                None => self.read().ok().flatten()?,
            };
            self.reads_left = self.reads_left.saturating_sub(1);
            if let Some(meta) = self.accept(len) {
                return Some(Frame { bytes: &mut self.buffer[vnet::LEN..len], meta });
            }
        }
    }
}

impl Receiver for TapReceiver {
    fn fill(&mut self) -> io::Result<bool> {
        // What an earlier batch left behind is still to be handed over.
        if self.cutter.is_busy() || self.waiting.is_some() {
            self.reads_left = STACK_BATCH_MAX_FRAMES;
            return Ok(true);
        }
        self.waiting = self.read()?;
        self.reads_left = if self.waiting.is_some() { STACK_BATCH_MAX_FRAMES } else { 0 };
        Ok(self.waiting.is_some())
    }

    fn counters(&self) -> ReceiveCounters {
        self.counters
    }
}

impl AsFd for TapReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tap.as_fd()
    }
}

/// Frames that leave in one write: one alone, or a run.
#[derive(Clone, Copy, Debug)]
struct Group {
    first: usize,
    count: usize,
    run: Option<Run>,
}

/// The sending half.
#[derive(Debug)]
pub struct TapSender {
    tap: Arc<OwnedFd>,
    arena: Arena,
    groups: Vec<Group>,
    /// Whether the kernel takes datagrams in one piece as it does segments.
    joins_datagrams: bool,
    written: usize,
    backlog: Backlog,
    counters: SendCounters,
}

impl TapSender {
    fn new(tap: Arc<OwnedFd>) -> TapSender {
        TapSender {
            joins_datagrams: tap_device::cuts_datagrams(tap.as_fd()),
            tap,
            arena: Arena::new(),
            groups: Vec::with_capacity(ARENA_MAX_FRAMES),
            written: 0,
            backlog: Backlog::None,
            counters: SendCounters::default(),
        }
    }

    /// Puts frame `index` into the run before it, or begins a new group.
    fn join(&mut self, index: usize) {
        let meta = self.arena.entry(index).meta;
        let may_join = meta.gso.is_none() && matches!(meta.checksum, Checksum::Partial { .. } | Checksum::Complete);
        if let Some(Group { first, count, run: Some(run) }) = self.groups.last_mut()
            && may_join
            && *count < JOINED_MAX_FRAMES
            && run.append(self.arena.frame(*first), self.arena.frame(index)).is_some()
        {
            *count += 1;
            return;
        }
        let run = if may_join { Run::begin(self.arena.frame(index)) } else { None };
        let run = run.filter(|run| self.joins_datagrams || run.kind() != Kind::Udp);
        self.groups.push(Group { first: index, count: 1, run });
    }

    /// Writes one group.
    fn write(&mut self, group: &Group) -> Result<(), Errno> {
        let run = group.run.filter(|run| run.segments() > 1);
        let meta = match run {
            Some(run) => {
                run.finish(self.arena.frame_mut(group.first));
                joined_meta(&run)
            }
            None => self.arena.entry(group.first).meta,
        };
        let head = self.arena.seal(group.first, &meta, vnet::LEN);
        let memory = self.arena.memory();
        let mut slices = [IoSlice::new(&[]); JOINED_MAX_FRAMES];
        slices[0] = IoSlice::new(&memory[head]);
        if let Some(run) = run {
            for (slice, index) in slices[1..].iter_mut().zip(group.first + 1..group.first + group.count) {
                *slice = IoSlice::new(&self.arena.frame(index)[run.headers_len()..]);
            }
        }
        rustix::io::writev(&self.tap, &slices[..group.count])?;
        self.counters.super_frames += u64::from(meta.gso.is_some());
        self.counters.joined += if run.is_some() { group.count as u64 } else { 0 };
        Ok(())
    }
}

#[cfg(test)]
impl TapSender {
    /// From now on as in front of a kernel before Linux 6.2.
    pub(super) fn leave_datagrams_single(&mut self) {
        self.joins_datagrams = false;
    }
}

/// The metadata of the frame that `run` makes.
fn joined_meta(run: &Run) -> Meta {
    let (start, offset) = run.checksum();
    let kind = if run.kind() == Kind::Udp { GsoKind::Udp } else { GsoKind::TcpV4 };
    Meta {
        checksum: Checksum::Partial { start: start as u16, offset: offset as u16 },
        gso: Some(Gso { kind, size: run.size(), ecn: false }),
        ..Meta::default()
    }
}

impl Sender for TapSender {
    fn reserve(&mut self, capacity: usize) -> Option<&mut [u8]> {
        if self.arena.reserve(capacity).is_none() {
            if self.backlog.waits() || !self.arena.could_hold(capacity) {
                return None;
            }
            self.flush();
        }
        self.arena.reserve(capacity)
    }

    fn commit(&mut self, len: usize, meta: Meta) {
        let Some(index) = self.arena.commit(len, meta) else { return };
        self.counters.frames += 1;
        self.counters.bytes += len as u64;
        self.join(index);
    }

    fn flush(&mut self) -> Backlog {
        self.backlog = Backlog::None;
        while let Some(&group) = self.groups.get(self.written) {
            match self.write(&group) {
                Ok(()) => {}
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => {
                    self.counters.backlogs += 1;
                    self.backlog = Backlog::UntilWritable;
                    return self.backlog;
                }
                // A TAP that is down refuses with EIO; a frame the stack finds malformed gets EINVAL.
                Err(_) => self.counters.errors += group.count as u64,
            }
            self.written += 1;
            self.arena.advance(group.count);
        }
        self.groups.clear();
        self.written = 0;
        self.backlog
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn counters(&self) -> SendCounters {
        self.counters
    }
}

impl AsFd for TapSender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tap.as_fd()
    }
}
