//! The wire's port: a packet socket with vnet headers on one interface.
//!
//! Receiving takes many frames per call into buffers that hold super-frames, sending hands many frames per call over
//! from the arena. What the kernel's header cannot say is repaired here: VLAN tags come out of auxiliary data into
//! metadata and go back into the frame, tunnelled super-frames are cut. What the kernel can cut, it is given whole: frames
//! of one flow leave as a train.
#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

use bump::{Batch, Checksum, Frame, Meta, VlanTag};
use libc::{iovec, mmsghdr};

use super::arena::Arena;
use super::cutter::{Cutter, is_tunnelled};
use super::limits::{RECEIVE_STRIDE_BYTES, SEND_BATCH_MAX_FRAMES, WIRE_BATCH_MAX_FRAMES};
use super::packet_socket::{self, PacketOptions, PortError};
use super::send_slab::SendSlab;
use super::train::{TrainOptions, Unloading};
use super::vnet::{self, PACKET_LEN};
use super::{Backlog, ReceiveCounters, Receiver, SendCounters, Sender};

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
        let socket = Arc::new(packet_socket::open(options)?);
        let receiver = PacketReceiver::new(Arc::clone(&socket), options.trains);
        Ok(PacketPort { receiver, sender: PacketSender::new(socket, options.trains) })
    }
}

impl AsFd for PacketPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.receiver.socket.as_fd()
    }
}

/// Auxiliary data of one frame, as the kernel lays it out: a control message header, then `tpacket_auxdata`.
const CONTROL_WORDS: usize = 8;
const _: () = assert!(CONTROL_WORDS * 8 >= size_of::<libc::cmsghdr>() + size_of::<libc::tpacket_auxdata>() + 8);

/// Message headers and what they point to. The pointers lead into boxes that live and move with this value.
#[derive(Debug)]
struct ReceiveSlab {
    buffers: Box<[u8]>,
    controls: Box<[[u64; CONTROL_WORDS]]>,
    // Read by the kernel only, through `messages`.
    _vectors: Box<[iovec]>,
    messages: Box<[mmsghdr]>,
}

// SAFETY: every pointer in `vectors` and `messages` leads into a box of the same value and is used by nobody else, so
// moving the value to another thread moves all of it.
unsafe impl Send for ReceiveSlab {}

impl ReceiveSlab {
    fn new() -> ReceiveSlab {
        let mut buffers = vec![0; WIRE_BATCH_MAX_FRAMES * RECEIVE_STRIDE_BYTES].into_boxed_slice();
        let mut controls = vec![[0; CONTROL_WORDS]; WIRE_BATCH_MAX_FRAMES].into_boxed_slice();
        let chunks = buffers.chunks_exact_mut(RECEIVE_STRIDE_BYTES);
        let mut vectors: Box<[iovec]> =
            chunks.map(|chunk| iovec { iov_base: chunk.as_mut_ptr().cast(), iov_len: chunk.len() }).collect();
        let messages = vectors.iter_mut().zip(controls.iter_mut()).map(|(vector, control)| {
            // SAFETY: mmsghdr is plain data, for which zero bytes are a value.
            let mut message: mmsghdr = unsafe { zeroed() };
            message.msg_hdr.msg_iov = vector;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = CONTROL_WORDS * 8;
            message
        });
        let messages = messages.collect();
        ReceiveSlab { buffers, controls, _vectors: vectors, messages }
    }

    /// Takes what has arrived; the number of messages. `used` of the last batch need their headers set up again.
    fn receive(&mut self, socket: &OwnedFd, used: usize) -> io::Result<usize> {
        for message in &mut self.messages[..used] {
            message.msg_hdr.msg_controllen = CONTROL_WORDS * 8;
        }
        // SAFETY: the headers point to buffers, vectors and control areas of this value with their true lengths, and
        // nothing else refers to those during the call.
        let count = unsafe {
            let messages = self.messages.as_mut_ptr();
            libc::recvmmsg(socket.as_raw_fd(), messages, WIRE_BATCH_MAX_FRAMES as u32, libc::MSG_DONTWAIT, null_mut())
        };
        Ok(packet_socket::checked(count)? as usize)
    }

    /// Bytes of message `index`, its vnet header first, and its metadata; `None` when it is no good.
    fn message(&mut self, index: usize) -> Option<(&mut [u8], Meta)> {
        let message = &self.messages[index];
        let len = message.msg_len as usize;
        if message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 || !(PACKET_LEN + 1..=RECEIVE_STRIDE_BYTES).contains(&len) {
            return None;
        }
        let control_len = message.msg_hdr.msg_controllen;
        let whole = &mut self.buffers[index * RECEIVE_STRIDE_BYTES..][..len];
        let mut meta = vnet::read(whole.first_chunk()?)?;
        apply_auxiliary(&self.controls[index], control_len, &mut meta);
        Some((whole, meta))
    }
}

/// Enters into `meta` what the kernel said beside the frame: its tag, and whether its checksum was verified.
fn apply_auxiliary(control: &[u64; CONTROL_WORDS], control_len: usize, meta: &mut Meta) {
    const HEADER_LEN: usize = size_of::<libc::cmsghdr>();
    const DATA_LEN: usize = size_of::<libc::tpacket_auxdata>();
    if control_len < HEADER_LEN + DATA_LEN {
        return;
    }
    // SAFETY: the array is aligned for both structures, larger than both together, and every byte pattern is a value of
    // either; the kernel filled them in, or a former batch did.
    let (header, data) = unsafe {
        let header = control.as_ptr().cast::<libc::cmsghdr>();
        (&*header, &*header.add(1).cast::<libc::tpacket_auxdata>())
    };
    if (header.cmsg_level, header.cmsg_type) != (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
        return;
    }
    if data.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
        let says_tpid = data.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
        let tpid = if says_tpid { data.tp_vlan_tpid } else { wire::EtherType::VLAN.0 };
        meta.vlan = Some(VlanTag { tpid, tci: data.tp_vlan_tci });
    }
    if meta.checksum == Checksum::Unknown && data.tp_status & libc::TP_STATUS_CSUM_VALID != 0 {
        meta.checksum = Checksum::Complete;
    }
}

/// The receiving half.
#[derive(Debug)]
pub struct PacketReceiver {
    socket: Arc<OwnedFd>,
    slab: ReceiveSlab,
    filled: usize,
    next: usize,
    cutter: Cutter,
    trains: Option<TrainOptions>,
    unloading: Option<Unloading>,
    counters: ReceiveCounters,
}

impl PacketReceiver {
    fn new(socket: Arc<OwnedFd>, trains: Option<TrainOptions>) -> PacketReceiver {
        PacketReceiver {
            socket,
            slab: ReceiveSlab::new(),
            filled: 0,
            next: 0,
            cutter: Cutter::new(),
            trains,
            unloading: None,
            counters: ReceiveCounters::default(),
        }
    }

    /// Asks the kernel how many frames it dropped since the last call, and enters them into the counters.
    pub fn count_kernel_drops(&mut self) {
        self.counters.kernel_drops += packet_socket::take_drops(&self.socket);
    }

    /// Takes over message `index`; the length of its frame and its metadata, or `None` when it is being cut or unloaded, or
    /// no good.
    fn accept(&mut self, index: usize) -> Option<(usize, Meta)> {
        let Some((whole, meta)) = self.slab.message(index) else {
            self.counters.unreadable += 1;
            return None;
        };
        let frame = &whole[PACKET_LEN..];
        self.counters.super_frames += u64::from(meta.gso.is_some());
        self.unloading = self.trains.and_then(|trains| Unloading::begin(frame, &meta, trains.ethertype));
        if self.unloading.is_some() {
            return None;
        }
        if !is_tunnelled(frame, &meta) {
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
        let (whole, _) = self.slab.message(self.next - 1)?;
        let piece = self.cutter.next(&whole[PACKET_LEN..])?;
        count_piece(&mut self.counters, &piece);
        Some(piece)
    }

    /// The next frame of the train that is being unloaded, which is the message last taken.
    fn next_of_train(&mut self) -> Option<Frame<'_>> {
        let at = (self.next - 1) * RECEIVE_STRIDE_BYTES;
        let whole = &mut self.slab.buffers[at + PACKET_LEN..at + RECEIVE_STRIDE_BYTES];
        let frame = self.unloading.as_mut()?.next(whole)?;
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

impl Batch for PacketReceiver {
    fn next_frame(&mut self) -> Option<Frame<'_>> {
        loop {
            if self.cutter.is_busy() {
                return self.next_piece();
            }
            if self.unloading.as_ref().is_some_and(|train| !train.is_empty()) {
                return self.next_of_train();
            }
            if self.next == self.filled {
                return None;
            }
            let index = self.next;
            self.next += 1;
            if let Some((len, meta)) = self.accept(index) {
                let whole = &mut self.slab.buffers[index * RECEIVE_STRIDE_BYTES..][..len];
                return Some(Frame { bytes: &mut whole[PACKET_LEN..], meta });
            }
        }
    }
}

impl Receiver for PacketReceiver {
    fn fill(&mut self) -> io::Result<bool> {
        // What an earlier batch left behind is still to be handed over.
        let unloads = self.unloading.as_ref().is_some_and(|train| !train.is_empty());
        if self.cutter.is_busy() || unloads || self.next < self.filled {
            return Ok(true);
        }
        let used = std::mem::take(&mut self.filled);
        self.next = 0;
        match self.slab.receive(&self.socket, used) {
            Ok(count) => self.filled = count,
            Err(error) => match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR | libc::ENETDOWN) => {}
                // The kernel had a super-frame of a kind its own header cannot name, and dropped it.
                Some(libc::EINVAL) => self.counters.unreadable += 1,
                _ => return Err(error),
            },
        }
        Ok(self.filled > 0)
    }

    fn counters(&self) -> ReceiveCounters {
        self.counters
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
        if self.arena.commit(len, meta).is_some() {
            self.counters.frames += 1;
            self.counters.bytes += len as u64;
            self.counters.super_frames += u64::from(meta.gso.is_some());
        }
    }

    fn flush(&mut self) -> Backlog {
        self.backlog = Backlog::None;
        while !self.arena.is_empty() {
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
