//! Message headers for one sending call: what waits in an arena, as the kernel wants to be told.
#![allow(unsafe_code)]

use std::io;
use std::mem::zeroed;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::null_mut;

use libc::{iovec, mmsghdr};
use wire::cll::train::HEAD_LEN;
use wire::ethernet;

use super::arena::Arena;
use super::limits::{SEND_BATCH_MAX_FRAMES, TRAIN_MIN_FRAMES};
use super::socket::checked;
use super::train::{TrainOptions, train_meta};
use super::vnet::{self, PACKET_LEN};

/// One for each frame, and one for the headers of each train.
const VECTORS: usize = SEND_BATCH_MAX_FRAMES + TRAINS_MAX;
const TRAINS_MAX: usize = SEND_BATCH_MAX_FRAMES / TRAIN_MIN_FRAMES;

/// What the kernel took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sent {
    /// Frames, those in trains included.
    pub(super) frames: usize,
    /// Trains.
    pub(super) trains: usize,
    /// Frames in trains.
    pub(super) coupled: usize,
}

/// Message headers and what they point to, written anew before each call.
#[derive(Debug)]
pub(super) struct SendSlab {
    vectors: Box<[iovec]>,
    messages: Box<[mmsghdr]>,
    /// The kernel's header and all headers up to UDP's, of each train.
    heads: Box<[[u8; PACKET_LEN + HEAD_LEN]]>,
    /// Frames in each message.
    loads: Vec<usize>,
    vectors_used: usize,
    heads_used: usize,
}

// SAFETY: the pointers are written right before the call that uses them and read by nobody afterwards.
unsafe impl Send for SendSlab {}

impl SendSlab {
    pub(super) fn new() -> SendSlab {
        let empty = iovec { iov_base: null_mut(), iov_len: 0 };
        // SAFETY: mmsghdr is plain data, for which zero bytes are a value.
        let message: mmsghdr = unsafe { zeroed() };
        SendSlab {
            vectors: vec![empty; VECTORS].into_boxed_slice(),
            messages: vec![message; SEND_BATCH_MAX_FRAMES].into_boxed_slice(),
            heads: vec![[0; PACKET_LEN + HEAD_LEN]; TRAINS_MAX].into_boxed_slice(),
            loads: Vec::with_capacity(SEND_BATCH_MAX_FRAMES),
            vectors_used: 0,
            heads_used: 0,
        }
    }

    /// Whether the first message of the last call was a train.
    pub(super) fn began_with_train(&self) -> bool {
        self.loads.first().is_some_and(|&frames| frames > 1)
    }

    /// Sends up to a batch of the frames that wait in `arena`, in trains if `trains` says so.
    pub(super) fn send(
        &mut self,
        socket: &OwnedFd,
        arena: &mut Arena,
        trains: Option<&TrainOptions>,
    ) -> io::Result<Sent> {
        self.load(arena, trains);
        let count = self.loads.len() as u32;
        // SAFETY: the first `count` headers point to vectors of this value, those to heads of this value and to frames in
        // `arena`; all of them outlive the call, and the kernel only reads what a vector of an outgoing message points to.
        let sent = unsafe { libc::sendmmsg(socket.as_raw_fd(), self.messages.as_mut_ptr(), count, libc::MSG_DONTWAIT) };
        let taken = &self.loads[..checked(sent)? as usize];
        let trains = taken.iter().filter(|&&frames| frames > 1);
        Ok(Sent { frames: taken.iter().sum(), trains: trains.clone().count(), coupled: trains.sum() })
    }

    fn load(&mut self, arena: &mut Arena, trains: Option<&TrainOptions>) {
        self.loads.clear();
        self.vectors_used = 0;
        self.heads_used = 0;
        let Range { start: mut next, end } = arena.waiting();
        let end = end.min(next + SEND_BATCH_MAX_FRAMES);
        // What is tunnelled has another way out, and what follows it waits for it.
        while next < end && !arena.entry(next).meta.is_tunnelled() {
            let frames = trains.map_or(1, |options| options.coupled(arena, next..end));
            let first_vector = self.vectors_used;
            if frames == 1 || !self.load_train(arena, next..next + frames) {
                self.load_frame(arena, next);
                next += 1;
                self.finish(first_vector, 1);
            } else {
                next += frames;
                self.finish(first_vector, frames);
            }
        }
    }

    fn load_frame(&mut self, arena: &mut Arena, index: usize) {
        let meta = arena.entry(index).meta;
        let whole = arena.seal(index, &meta, PACKET_LEN);
        self.push(&raw const arena.memory()[whole]);
    }

    /// Loads a train of the frames `indices`; false, with nothing loaded, when it would be too long.
    fn load_train(&mut self, arena: &Arena, indices: Range<usize>) -> bool {
        let first = arena.frame(indices.start);
        let messages_len = indices.clone().map(|index| arena.frame(index).len() - ethernet::HEADER_LEN).sum();
        let Some(head) = wire::cll::train::head(first, messages_len) else { return false };
        let place = &mut self.heads[self.heads_used];
        self.heads_used += 1;
        place[..PACKET_LEN].copy_from_slice(&vnet::write(&train_meta(first.len()), &head)[..PACKET_LEN]);
        place[PACKET_LEN..].copy_from_slice(&head);
        let place: *const [u8] = place.as_slice();
        self.push(place);
        for index in indices {
            self.push(&raw const arena.frame(index)[ethernet::HEADER_LEN..]);
        }
        true
    }

    fn push(&mut self, bytes: *const [u8]) {
        self.vectors[self.vectors_used] = iovec { iov_base: bytes.cast_mut().cast(), iov_len: bytes.len() };
        self.vectors_used += 1;
    }

    /// Makes a message of the vectors from `first_vector` on, which hold `frames`.
    fn finish(&mut self, first_vector: usize, frames: usize) {
        let message = &mut self.messages[self.loads.len()];
        message.msg_hdr.msg_iov = &raw mut self.vectors[first_vector];
        message.msg_hdr.msg_iovlen = self.vectors_used - first_vector;
        self.loads.push(frames);
    }
}
