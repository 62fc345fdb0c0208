//! Where frames of a port arrive without a system call for each: memory that the kernel fills and this program reads
//! (`packet(7)`, `PACKET_RX_RING`, version 2).
//!
//! A slot belongs to the kernel until its status says otherwise, and again from when this program gives it back. The second
//! version shows each frame at once; the third hands over blocks and would keep a single frame waiting for a timer. The
//! kernel is trusted as far as the lengths that it writes lie within a slot, and those are checked.
#![allow(unsafe_code)]

use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use bump::Meta;
use libc::tpacket2_hdr;

use super::auxiliary::{self, Auxiliary};
use super::limits::{RING_BLOCK_BYTES, RING_SLOT_BYTES, WIRE_BATCH_MAX_FRAMES};
use super::socket::{set_option, take_error};
use super::vnet::{self, PACKET_LEN};

/// Frames that arrived, in memory shared with the kernel.
#[derive(Debug)]
pub(super) struct ReceiveRing {
    memory: NonNull<u8>,
    slots: usize,
    /// The slot of the first frame of the batch.
    first: usize,
    filled: usize,
}

// SAFETY: the mapping belongs to this value alone and is reached through it only, from whatever thread holds it.
unsafe impl Send for ReceiveRing {}

impl ReceiveRing {
    /// Has the kernel put what `socket` hears into a ring for `slots` frames, a multiple of what a block holds. The socket is
    /// not bound yet, and has its vnet header switched on.
    pub(super) fn open(socket: &OwnedFd, slots: usize) -> io::Result<ReceiveRing> {
        let version = libc::tpacket_versions::TPACKET_V2 as i32;
        set_option(socket, libc::SOL_PACKET, libc::PACKET_VERSION, &version)?;
        let request = libc::tpacket_req {
            tp_block_size: RING_BLOCK_BYTES as u32,
            tp_block_nr: (slots * RING_SLOT_BYTES / RING_BLOCK_BYTES) as u32,
            tp_frame_size: RING_SLOT_BYTES as u32,
            tp_frame_nr: slots as u32,
        };
        set_option(socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &request)?;
        let (len, access) = (slots * RING_SLOT_BYTES, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of this program.
        let memory = unsafe { libc::mmap(null_mut(), len, access, libc::MAP_SHARED, socket.as_raw_fd(), 0) };
        let memory = NonNull::new(memory.cast()).filter(|_| memory != libc::MAP_FAILED);
        let memory = memory.ok_or_else(io::Error::last_os_error)?;
        Ok(ReceiveRing { memory, slots, first: 0, filled: 0 })
    }

    /// Gives the batch before back to the kernel and takes what has arrived since; the number of frames.
    pub(super) fn receive(&mut self, socket: &OwnedFd) -> io::Result<usize> {
        for index in 0..self.filled {
            self.status(index).store(libc::TP_STATUS_KERNEL, Ordering::Release);
        }
        self.first = (self.first + self.filled) % self.slots;
        self.filled = 0;
        let is_here = |index| self.status(index).load(Ordering::Acquire) & libc::TP_STATUS_USER != 0;
        self.filled = (0..self.slots.min(WIRE_BATCH_MAX_FRAMES)).take_while(|&index| is_here(index)).count();
        if self.filled == 0 {
            // No call takes frames, so nobody else hears that the interface went down, and waiting would end at once for ever.
            take_error(socket)?;
        }
        Ok(self.filled)
    }

    /// Frame `index` of the batch, its vnet header first, and its metadata; `None` when it is no good.
    pub(super) fn frame(&mut self, index: usize) -> Option<(&mut [u8], Meta)> {
        if index >= self.filled {
            return None;
        }
        // SAFETY: a slot begins with this header, is aligned for it, and is this program's until it is given back.
        let header = unsafe { self.slot(index).cast::<tpacket2_hdr>().read() };
        let (at, len) = (usize::from(header.tp_mac), header.tp_snaplen as usize);
        let fits = at >= size_of::<tpacket2_hdr>() + PACKET_LEN && at + len <= RING_SLOT_BYTES;
        if !fits || len == 0 || header.tp_len != header.tp_snaplen {
            return None;
        }
        // SAFETY: the range lies within the slot and behind its header, the slot is this program's, and `self` is borrowed
        // for as long as the slice.
        let whole =
            unsafe { std::slice::from_raw_parts_mut(self.slot(index).add(at - PACKET_LEN).as_ptr(), PACKET_LEN + len) };
        let mut meta = vnet::read(whole.first_chunk()?)?;
        let (status, tpid, tci) = (header.tp_status, header.tp_vlan_tpid, header.tp_vlan_tci);
        auxiliary::apply(Auxiliary { status, tpid, tci }, &mut meta);
        Some((whole, meta))
    }

    fn slot(&self, index: usize) -> NonNull<u8> {
        let slot = (self.first + index) % self.slots;
        // SAFETY: the mapping holds `slots` slots, and this is one of them.
        unsafe { self.memory.add(slot * RING_SLOT_BYTES) }
    }

    /// Whose slot `index` of the batch is.
    fn status(&self, index: usize) -> &AtomicU32 {
        // SAFETY: the word is aligned, lives as long as the mapping, and the kernel writes it as a whole.
        unsafe { AtomicU32::from_ptr(self.slot(index).add(offset_of!(tpacket2_hdr, tp_status)).cast().as_ptr()) }
    }
}

impl Drop for ReceiveRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length and nothing refers to it any more.
        unsafe { libc::munmap(self.memory.as_ptr().cast(), self.slots * RING_SLOT_BYTES) };
    }
}
