//! Where frames of a port arrive by system calls: many a call, into buffers that hold super-frames.
#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::null_mut;

use bump::Meta;
use libc::{iovec, mmsghdr};

use super::auxiliary::{self, Auxiliary};
use super::limits::{BIG_BATCH_MAX_FRAMES, BIG_STRIDE_BYTES, RECEIVE_STRIDE_BYTES, WIRE_BATCH_MAX_FRAMES};
use super::socket::checked;
use super::vnet::{self, PACKET_LEN};

/// Auxiliary data of one frame, as the kernel lays it out: a control message header, then `tpacket_auxdata`.
const CONTROL_WORDS: usize = 8;
const _: () = assert!(CONTROL_WORDS * 8 >= size_of::<libc::cmsghdr>() + size_of::<libc::tpacket_auxdata>() + 8);

/// Message headers and what they point to. The pointers lead into boxes that live and move with this value.
#[derive(Debug)]
pub(super) struct ReceiveSlab {
    buffers: Box<[u8]>,
    controls: Box<[[u64; CONTROL_WORDS]]>,
    // Read by the kernel only, through `messages`.
    _vectors: Box<[iovec]>,
    messages: Box<[mmsghdr]>,
    /// Distance between buffers, in bytes.
    stride: usize,
    /// Whether a frame came that no buffer holds.
    has_met_big: bool,
}

// SAFETY: every pointer in `vectors` and `messages` leads into a box of the same value and is used by nobody else, so
// moving the value to another thread moves all of it.
unsafe impl Send for ReceiveSlab {}

impl ReceiveSlab {
    pub(super) fn new() -> ReceiveSlab {
        Self::of(WIRE_BATCH_MAX_FRAMES, RECEIVE_STRIDE_BYTES)
    }

    fn of(count: usize, stride: usize) -> ReceiveSlab {
        let mut buffers = vec![0; count * stride].into_boxed_slice();
        let mut controls = vec![[0; CONTROL_WORDS]; count].into_boxed_slice();
        let chunks = buffers.chunks_exact_mut(stride);
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
        ReceiveSlab { buffers, controls, _vectors: vectors, messages, stride, has_met_big: false }
    }

    /// Takes what has arrived; the number of messages. `used` of the last batch need their headers set up again.
    pub(super) fn receive(&mut self, socket: &OwnedFd, used: usize) -> io::Result<usize> {
        if self.has_met_big && self.stride < BIG_STRIDE_BYTES {
            *self = Self::of(BIG_BATCH_MAX_FRAMES, BIG_STRIDE_BYTES);
        }
        for message in self.messages.iter_mut().take(used) {
            message.msg_hdr.msg_controllen = CONTROL_WORDS * 8;
        }
        // SAFETY: the headers point to buffers, vectors and control areas of this value with their true lengths, and
        // nothing else refers to those during the call.
        let count = unsafe {
            let messages = self.messages.as_mut_ptr();
            let count = self.messages.len() as u32;
            libc::recvmmsg(socket.as_raw_fd(), messages, count, libc::MSG_DONTWAIT, null_mut())
        };
        Ok(checked(count)? as usize)
    }

    /// Frame `index`, its vnet header first, and its metadata; `None` when it is no good.
    pub(super) fn frame(&mut self, index: usize) -> Option<(&mut [u8], Meta)> {
        let message = &self.messages[index];
        let len = message.msg_len as usize;
        let is_cut = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
        // It is lost; those that follow find longer buffers.
        self.has_met_big |= is_cut;
        if is_cut || !(PACKET_LEN + 1..=self.stride).contains(&len) {
            return None;
        }
        let control_len = message.msg_hdr.msg_controllen;
        let whole = &mut self.buffers[index * self.stride..][..len];
        let mut meta = vnet::read(whole.first_chunk()?)?;
        apply_auxiliary(&self.controls[index], control_len, &mut meta);
        Some((whole, meta))
    }

    /// All the room that frame `index` lies in, its vnet header first.
    pub(super) fn room(&mut self, index: usize) -> &mut [u8] {
        &mut self.buffers[index * self.stride..][..self.stride]
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
    auxiliary::apply(Auxiliary { status: data.tp_status, tpid: data.tp_vlan_tpid, tci: data.tp_vlan_tci }, meta);
}
