//! The wire's port: a packet socket with vnet headers on one interface.
//!
//! Receiving takes many frames per call into buffers that hold super-frames, or finds small ones in a ring without any call;
//! sending hands many frames per call over from the arena. What the kernel's header cannot say is repaired here: VLAN tags come
//! out of auxiliary data into metadata and go back into the frame, tunnelled super-frames are cut or have a way out of their own.
//! What the kernel can cut, it is given whole: frames of one flow leave as a train.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use bump::{Batch, Frame, Meta, VlanTag};
use rustix::io::Errno;
use wire::ethernet::{HEADER_LEN, Header};
use wire::offload::{IP_PACKET_MAX_BYTES, SUPER_FRAME_MAX_BYTES};

use super::arena::Arena;
use super::big::Big;
use super::cutter::{Cutter, is_tunnelled, kept_whole, plan_of, segment_meta};
use super::limits::SEND_BATCH_MAX_FRAMES;
use super::packet_socket::{self, PacketOptions, PortError};
use super::receive_slab::ReceiveSlab;
use super::ring::ReceiveRing;
use super::send_slab::SendSlab;
use super::tap::TapReceiver;
use super::train::{TrainOptions, Unloading};
use super::tunnel_way::TunnelWay;
use super::vnet::PACKET_LEN;
use super::{Backlog, ReceiveCounters, Receiver, SendCounters, Sender};
use crate::bpf;

/// How long to wait when the queue behind the device is full: 100 full frames at 1 Gbit/s.
const QUEUE_FULL_WAIT: Duration = Duration::from_millis(1);

/// Both halves of a packet socket's port.
#[derive(Debug)]
pub struct PacketPort {
    /// Frames from the wire.
    pub receiver: PacketReceiver,
    /// Frames to the wire.
    pub sender: PacketSender,
}

impl PacketPort {
    /// Opens a port on an interface in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel refuses: no privilege, or no such interface.
    pub fn open(options: &PacketOptions) -> Result<PacketPort, PortError> {
        let (socket, ring) = packet_socket::open(options)?;
        let (socket, source) = (Arc::new(socket), ring.map_or_else(|| Source::Calls(ReceiveSlab::new()), Source::Ring));
        let receiver = PacketReceiver::new(Arc::clone(&socket), source, options.trains);
        let mut sender = PacketSender::new(socket, options.trains);
        if options.tunnels {
            match TunnelWay::open(options.interface_index, options.buffer_bytes) {
                Ok(way) => sender.tunnels = Some(way),
                Err(error) => sender.tunnels_refused = Some(error),
            }
        }
        Ok(PacketPort { receiver, sender })
    }
}

impl PacketPort {
    /// Has this port also receive what comes to `tap`, whose queue nobody else reads, behind vnet
    /// headers of [`VNET_HEADER_LEN`](crate::tap_device::VNET_HEADER_LEN) bytes.
    pub fn receive_also(&mut self, tap: Arc<OwnedFd>) {
        self.receiver.beside = Some(Box::new(TapReceiver::new(tap)));
    }

    /// What there is to wait for beside the socket; the socket once more if nothing is.
    #[must_use]
    pub fn beside(&self) -> BorrowedFd<'_> {
        self.receiver.beside.as_ref().map_or_else(|| self.as_fd(), |tap| tap.as_fd())
    }

    /// Has `program` judge every frame before this port hears it; gives what is to be kept for as
    /// long, if that is anything.
    ///
    /// # Errors
    /// The program is no socket filter.
    pub fn filter_by(&self, program: &bpf::Program) -> io::Result<Option<OwnedFd>> {
        program.attach_to(self)
    }
}

impl AsFd for PacketPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.socket.as_fd()
    }
}

/// Where frames that arrive are found.
#[derive(Debug)]
enum Source {
    Calls(ReceiveSlab),
    Ring(ReceiveRing),
}

impl Source {
    /// Takes what has arrived, in place of a batch of `used` frames; how many there are.
    fn receive(&mut self, socket: &OwnedFd, used: usize) -> io::Result<usize> {
        match self {
            Source::Calls(slab) => slab.receive(socket, used),
            Source::Ring(ring) => ring.receive(socket),
        }
    }

    /// Frame `index` of the batch, its vnet header first, and its metadata; `None` when it is no good.
    fn frame(&mut self, index: usize) -> Option<(&mut [u8], Meta)> {
        match self {
            Source::Calls(slab) => slab.frame(index),
            Source::Ring(ring) => ring.frame(index),
        }
    }

    /// The room that frame `index` lies in, its vnet header first; it may be longer than the frame.
    fn room(&mut self, index: usize) -> Option<&mut [u8]> {
        match self {
            Source::Calls(slab) => Some(slab.room(index)),
            Source::Ring(ring) => ring.frame(index).map(|(whole, _)| whole),
        }
    }
}

/// The receiving half.
#[derive(Debug)]
pub struct PacketReceiver {
    socket: Arc<OwnedFd>,
    source: Source,
    filled: usize,
    next: usize,
    cutter: Cutter,
    big: Option<Box<Big>>,
    trains: Option<TrainOptions>,
    unloading: Option<Unloading>,
    keeps_tunnels: bool,
    /// A TAP by which frames of the wire come as well.
    beside: Option<Box<TapReceiver>>,
    counters: ReceiveCounters,
}

impl PacketReceiver {
    fn new(socket: Arc<OwnedFd>, source: Source, trains: Option<TrainOptions>) -> PacketReceiver {
        PacketReceiver {
            socket,
            source,
            filled: 0,
            next: 0,
            cutter: Cutter::new(),
            big: None,
            trains,
            unloading: None,
            keeps_tunnels: false,
            beside: None,
            counters: ReceiveCounters::default(),
        }
    }

    /// From now on super-frames inside of tunnels are handed over in one piece, where every port that they may leave by
    /// [carries](PacketSender::carries_tunnels) them.
    pub fn keep_tunnels(&mut self) {
        self.keeps_tunnels = true;
    }

    /// Takes over message `index`; the length of its frame and its metadata, or `None` when it is being cut or unloaded, or
    /// no good.
    fn accept(&mut self, index: usize) -> Option<(usize, Meta)> {
        let Some((whole, meta)) = self.source.frame(index) else {
            self.counters.unreadable += 1;
            return None;
        };
        self.counters.super_frames += u64::from(meta.gso.is_some());
        let len = whole.len() - PACKET_LEN;
        if len > HEADER_LEN + IP_PACKET_MAX_BYTES {
            self.big = Big::begin(&mut whole[PACKET_LEN..], &meta).map(Box::new);
            self.counters.unreadable += u64::from(self.big.is_none() && len > SUPER_FRAME_MAX_BYTES);
            if self.big.is_some() || len > SUPER_FRAME_MAX_BYTES {
                return None;
            }
        }
        let frame = &whole[PACKET_LEN..];
        self.unloading = self.trains.and_then(|trains| Unloading::begin(frame, &meta, trains.ethertype));
        if self.unloading.is_some() {
            return None;
        }
        let goes_whole = if !is_tunnelled(frame, &meta) {
            Some(meta)
        } else if self.keeps_tunnels {
            kept_whole(frame, &meta)
        } else {
            None
        };
        if let Some(meta) = goes_whole {
            self.counters.frames += 1;
            self.counters.bytes += frame.len() as u64;
            return Some((whole.len(), meta));
        }
        if self.cutter.begin(frame, &meta).is_err() {
            self.counters.unreadable += 1;
        }
        None
    }

    /// The next piece of the message that is being cut, which is the last one taken.
    fn next_piece(&mut self) -> Option<Frame<'_>> {
        let (whole, _) = self.source.frame(self.next - 1)?;
        let piece = self.cutter.next(&whole[PACKET_LEN..])?;
        count_piece(&mut self.counters, &piece);
        Some(piece)
    }

    /// The next piece of the message that is longer than a super-frame, which is the one last
    /// taken.
    fn next_of_big(&mut self) -> Option<Frame<'_>> {
        let (whole, _) = self.source.frame(self.next - 1)?;
        let frame = &mut whole[PACKET_LEN..];
        let (place, meta) = self.big.as_mut()?.next(frame)?;
        let piece = Frame { bytes: &mut frame[place], meta };
        count_piece(&mut self.counters, &piece);
        Some(piece)
    }

    /// Whether a message is still to be handed over piece by piece.
    fn is_in_pieces(&self) -> bool {
        self.cutter.is_busy() || self.big.as_ref().is_some_and(|big| big.is_busy())
    }

    /// The next frame of the train that is being unloaded, which is the message last taken.
    fn next_of_train(&mut self) -> Option<Frame<'_>> {
        let room = &mut self.source.room(self.next - 1)?[PACKET_LEN..];
        let frame = self.unloading.as_mut()?.next(room)?;
        count_piece(&mut self.counters, &frame);
        Some(frame)
    }
}

/// A frame made out of a larger one counts as both.
fn count_piece(counters: &mut ReceiveCounters, piece: &Frame<'_>) {
    counters.frames += 1;
    counters.segments += 1;
    counters.bytes += piece.bytes.len() as u64;
}

/// The next frame of a TAP. Its tag is told as a packet socket tells it, and stays in the bytes.
fn next_tagged(tap: &mut TapReceiver) -> Option<Frame<'_>> {
    let mut frame = tap.next_frame()?;
    frame.meta.vlan = tag_of(frame.bytes);
    Some(frame)
}

fn tag_of(frame: &[u8]) -> Option<VlanTag> {
    let (header, payload) = Header::parse(frame).ok()?;
    let tci = payload.first_chunk().map_or(0, |tci| u16::from_be_bytes(*tci));
    header.ethertype.is_vlan().then_some(VlanTag { tpid: header.ethertype.0, tci })
}

impl Batch for PacketReceiver {
    fn next_frame(&mut self) -> Option<Frame<'_>> {
        loop {
            if self.cutter.is_busy() {
                return self.next_piece();
            }
            if self.big.as_ref().is_some_and(|big| big.is_busy()) {
                return self.next_of_big();
            }
            if self.unloading.as_ref().is_some_and(|train| !train.is_empty()) {
                return self.next_of_train();
            }
            if self.next == self.filled {
                return next_tagged(self.beside.as_mut()?);
            }
            let index = self.next;
            self.next += 1;
            if let Some((len, meta)) = self.accept(index) {
                return self.source.room(index).map(|room| Frame { bytes: &mut room[PACKET_LEN..len], meta });
            }
        }
    }
}

impl Receiver for PacketReceiver {
    fn fill(&mut self) -> io::Result<bool> {
        let beside = self.beside.as_mut().map_or(Ok(false), |tap| tap.fill())?;
        // What an earlier batch left behind is still to be handed over.
        let unloads = self.unloading.as_ref().is_some_and(|train| !train.is_empty());
        if self.is_in_pieces() || unloads || self.next < self.filled {
            return Ok(true);
        }
        let used = std::mem::take(&mut self.filled);
        self.next = 0;
        match self.source.receive(&self.socket, used) {
            Ok(count) => self.filled = count,
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR | libc::ENETDOWN) => {}
                // The kernel had a super-frame of a kind its own header cannot name, and dropped it.
                Some(libc::EINVAL) => self.counters.unreadable += 1,
                _ => return Err(error),
            },
        }
        Ok(beside || self.filled > 0)
    }

    fn counters(&self) -> ReceiveCounters {
        let beside = self.beside.as_ref().map_or_else(ReceiveCounters::default, |tap| tap.counters());
        self.counters + beside
    }

    fn count_kernel_drops(&mut self) {
        self.counters.kernel_drops += packet_socket::take_drops(&self.socket);
    }
}

impl AsFd for PacketReceiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The sending half.
#[derive(Debug)]
pub struct PacketSender {
    socket: Arc<OwnedFd>,
    arena: Arena,
    slab: SendSlab,
    trains: Option<TrainOptions>,
    couples_now: bool,
    tunnels: Option<TunnelWay>,
    tunnels_refused: Option<io::Error>,
    backlog: Backlog,
    last_error: Option<i32>,
    counters: SendCounters,
}

impl PacketSender {
    fn new(socket: Arc<OwnedFd>, trains: Option<TrainOptions>) -> PacketSender {
        PacketSender {
            socket,
            arena: Arena::new(),
            slab: SendSlab::new(),
            trains: trains.filter(|trains| trains.couple),
            couples_now: true,
            tunnels: None,
            tunnels_refused: None,
            backlog: Backlog::None,
            last_error: None,
            counters: SendCounters::default(),
        }
    }

    /// Why the kernel last refused a frame for good.
    #[must_use]
    pub fn last_error(&self) -> Option<io::Error> {
        self.last_error.map(io::Error::from_raw_os_error)
    }

    /// The wire carries packets of this size from now on, in bytes.
    pub fn set_wire_mtu(&mut self, wire_mtu: u16) {
        if let Some(trains) = &mut self.trains {
            trains.wire_mtu = wire_mtu;
        }
    }

    /// Whether frames are to leave in trains from now on, if they may.
    pub fn couple(&mut self, couple: bool) {
        self.couples_now = couple;
    }

    /// Whether frames may leave in trains; no longer once the kernel has refused to cut one.
    #[must_use]
    pub fn may_couple(&self) -> bool {
        self.trains.is_some()
    }

    /// Whether super-frames inside of tunnels leave in one piece; where they do not, they are cut here.
    #[must_use]
    pub fn carries_tunnels(&self) -> bool {
        self.tunnels.is_some()
    }

    /// Why the kernel does not take super-frames inside of tunnels, if it was asked and refused.
    #[must_use]
    pub fn tunnels_refused(&self) -> Option<&io::Error> {
        self.tunnels_refused.as_ref()
    }

    /// Sends the first waiting frame, a super-frame inside of a tunnel; false when the rest has to wait.
    fn send_tunnelled(&mut self) -> bool {
        let index = self.arena.waiting().start;
        let meta = self.arena.entry(index).meta;
        let sent = self.tunnels.as_ref().map_or(Err(Errno::NOSYS), |way| way.send(self.arena.frame_mut(index), &meta));
        match sent {
            Ok(()) => self.arena.advance(1),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN | Errno::NOBUFS) => {
                self.backlog = Backlog::After(QUEUE_FULL_WAIT);
                self.counters.backlogs += 1;
                return false;
            }
            Err(error) => {
                // From now on they are cut as they are committed.
                self.tunnels_refused = self.tunnels.take().map(|_| error.into()).or(self.tunnels_refused.take());
                self.last_error = Some(error.raw_os_error());
                self.counters.errors += 1;
                self.arena.advance(1);
            }
        }
        true
    }

    /// Commits the pieces of the super-frame of `len` bytes that was written last.
    fn commit_in_pieces(&mut self, len: usize, meta: &Meta) {
        let whole = self.arena.written(len).to_vec();
        let Ok(plan) = plan_of(&whole, meta) else {
            self.counters.errors += 1;
            return;
        };
        for piece in 0..plan.segments() {
            let room = self.reserve(plan.segment_len(piece));
            match room.and_then(|room| plan.write(&whole, piece, room)) {
                Some(len) => self.commit(len, segment_meta(&plan, meta)),
                None => self.counters.errors += 1,
            }
        }
    }

    /// Whether the frame that is to leave next is a super-frame inside of a tunnel.
    fn begins_with_tunnelled(&self) -> bool {
        self.arena.entry(self.arena.waiting().start).meta.is_tunnelled()
    }

    /// Decides what a failed call means for the first waiting frame; true when the rest may be tried at once.
    fn go_on_after(&mut self, error: &io::Error) -> bool {
        self.backlog = match error.raw_os_error() {
            Some(libc::EINTR) => return true,
            Some(libc::EAGAIN) => Backlog::UntilWritable,
            Some(libc::ENOBUFS) => Backlog::After(QUEUE_FULL_WAIT),
            // Linux before 6.2 does not cut UDP for a packet socket. The frames of the train go one by one.
            Some(libc::EINVAL | libc::EMSGSIZE | libc::EOPNOTSUPP) if self.slab.began_with_train() => {
                self.trains = None;
                return true;
            }
            code => {
                self.last_error = code;
                self.counters.errors += 1;
                self.arena.advance(1);
                return true;
            }
        };
        self.counters.backlogs += 1;
        false
    }
}

#[cfg(test)]
impl PacketSender {
    /// Hears, after a call that began with a train, what Linux before 6.2 says to one.
    pub(super) fn refuse_trains_as_an_old_kernel_does(&mut self) {
        assert!(self.go_on_after(&io::Error::from_raw_os_error(libc::EINVAL)));
    }
}

impl Sender for PacketSender {
    fn reserve(&mut self, capacity: usize) -> Option<&mut [u8]> {
        if !self.backlog.waits() && self.arena.waiting().len() >= SEND_BATCH_MAX_FRAMES {
            // A full call's worth leaves while it is still in the cache.
            self.flush();
        }
        if self.arena.reserve(capacity).is_none() {
            if self.backlog.waits() || !self.arena.could_hold(capacity) {
                return None;
            }
            self.flush();
        }
        self.arena.reserve(capacity)
    }

    fn commit(&mut self, len: usize, meta: Meta) {
        if meta.is_tunnelled() && self.tunnels.is_none() {
            return self.commit_in_pieces(len, &meta);
        }
        if self.arena.commit(len, meta).is_some() {
            self.counters.frames += 1;
            self.counters.bytes += len as u64;
            self.counters.super_frames += u64::from(meta.gso.is_some());
        }
    }

    fn flush(&mut self) -> Backlog {
        self.backlog = Backlog::None;
        while !self.arena.is_empty() {
            if self.begins_with_tunnelled() {
                if self.send_tunnelled() {
                    continue;
                }
                break;
            }
            let trains = self.trains.as_ref().filter(|_| self.couples_now);
            match self.slab.send(&self.socket, &mut self.arena, trains) {
                Ok(sent) => {
                    self.arena.advance(sent.frames);
                    self.counters.super_frames += sent.trains as u64;
                    self.counters.joined += sent.coupled as u64;
                }
                Err(error) if self.go_on_after(&error) => {}
                Err(_) => break,
            }
        }
        self.backlog
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn counters(&self) -> SendCounters {
        self.counters
    }
}

impl AsFd for PacketSender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
