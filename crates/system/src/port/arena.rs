//! Where outgoing frames wait: one piece of memory, filled from the front, sent in order, used again from the front.
//!
//! In front of every frame is room for the kernel's header and for a VLAN tag, so that a frame leaves as one piece
//! wherever it was made.

use std::ops::Range;

use bump::{Checksum, Meta, VlanTag};

use super::limits::{ARENA_BYTES, ARENA_MAX_FRAMES};
use super::vnet;

/// Length of the two addresses in front of a tag.
const ADDRESSES_LEN: usize = 12;
/// Length of a VLAN tag in a frame.
const TAG_LEN: usize = 4;
/// Bytes kept free in front of every frame.
const HEADROOM: usize = vnet::LEN + TAG_LEN;
/// Frames begin this many bytes apart at least, so that two never share a cache line.
const ALIGNMENT: usize = 64;

/// A committed frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    at: usize,
    len: usize,
    pub(crate) meta: Meta,
}

impl Entry {
    /// Where the frame lies.
    pub(crate) fn range(&self) -> Range<usize> {
        self.at..self.at + self.len
    }
}

/// Frames that wait to be sent.
#[derive(Debug)]
pub(crate) struct Arena {
    memory: Box<[u8]>,
    entries: Vec<Entry>,
    sent: usize,
    tail: usize,
    reserved: Range<usize>,
}

impl Arena {
    pub(crate) fn new() -> Arena {
        Arena {
            memory: vec![0; ARENA_BYTES].into_boxed_slice(),
            entries: Vec::with_capacity(ARENA_MAX_FRAMES),
            sent: 0,
            tail: 0,
            reserved: 0..0,
        }
    }

    /// Room for `capacity` bytes; `None` until more has been sent.
    pub(crate) fn reserve(&mut self, capacity: usize) -> Option<&mut [u8]> {
        let at = self.tail.next_multiple_of(ALIGNMENT) + HEADROOM;
        let end = at.checked_add(capacity)?;
        if end > self.memory.len() || self.entries.len() == ARENA_MAX_FRAMES {
            return None;
        }
        self.reserved = at..end;
        Some(&mut self.memory[at..end])
    }

    /// Whether `capacity` bytes would fit if nothing waited.
    pub(crate) fn could_hold(&self, capacity: usize) -> bool {
        capacity <= ARENA_BYTES - HEADROOM
    }

    /// The first `len` bytes of the latest reservation, or all of it if it is shorter.
    pub(crate) fn written(&self, len: usize) -> &[u8] {
        let written = &self.memory[self.reserved.clone()];
        &written[..len.min(written.len())]
    }

    /// Makes a frame of the first `len` bytes of the latest reservation and returns its index. `None`, and a panic in
    /// debug builds, when there is no such reservation.
    pub(crate) fn commit(&mut self, len: usize, meta: Meta) -> Option<usize> {
        let reserved = std::mem::take(&mut self.reserved);
        debug_assert!(len <= reserved.len() && !reserved.is_empty(), "committed {len} bytes of {}", reserved.len());
        if len > reserved.len() || reserved.is_empty() {
            return None;
        }
        self.tail = reserved.start + len;
        let mut entry = Entry { at: reserved.start, len, meta };
        if let Some(tag) = meta.vlan {
            self.insert_tag(&mut entry, tag);
        }
        self.entries.push(entry);
        Some(self.entries.len() - 1)
    }

    /// Moves the addresses into the headroom and writes `tag` behind them.
    fn insert_tag(&mut self, entry: &mut Entry, tag: VlanTag) {
        if entry.len < ADDRESSES_LEN {
            return;
        }
        let at = entry.at - TAG_LEN;
        self.memory.copy_within(entry.at..entry.at + ADDRESSES_LEN, at);
        let place = &mut self.memory[at + ADDRESSES_LEN..][..TAG_LEN];
        place[..2].copy_from_slice(&tag.tpid.to_be_bytes());
        place[2..].copy_from_slice(&tag.tci.to_be_bytes());
        entry.at = at;
        entry.len += TAG_LEN;
        entry.meta.vlan = None;
        if let Checksum::Partial { start, .. } = &mut entry.meta.checksum {
            *start = start.saturating_add(TAG_LEN as u16);
        }
    }

    /// Frames not sent yet, as indices of [`Arena::entry`].
    pub(crate) fn waiting(&self) -> Range<usize> {
        self.sent..self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    pub(crate) fn entry(&self, index: usize) -> Entry {
        self.entries[index]
    }

    /// The bytes of a frame.
    pub(crate) fn frame(&self, index: usize) -> &[u8] {
        &self.memory[self.entries[index].range()]
    }

    /// The bytes of a frame, to patch its headers.
    pub(crate) fn frame_mut(&mut self, index: usize) -> &mut [u8] {
        &mut self.memory[self.entries[index].range()]
    }

    /// All memory, for ranges returned by [`Arena::seal`] and [`Entry::range`].
    pub(crate) fn memory(&self) -> &[u8] {
        &self.memory
    }

    /// Puts the kernel's header, its first `header_len` bytes, in front of frame `index` and returns where the whole lies.
    /// `meta` is the frame's own or that of a run that begins with it.
    pub(crate) fn seal(&mut self, index: usize, meta: &Meta, header_len: usize) -> Range<usize> {
        let Range { start: at, end } = self.entries[index].range();
        let header = vnet::write(meta, &self.memory[at..end]);
        self.memory[at - header_len..at].copy_from_slice(&header[..header_len]);
        at - header_len..end
    }

    /// Marks the first `count` waiting frames as sent.
    pub(crate) fn advance(&mut self, count: usize) {
        self.sent = (self.sent + count).min(self.entries.len());
        if self.sent == self.entries.len() {
            self.entries.clear();
            self.sent = 0;
            self.tail = 0;
            self.reserved = 0..0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(arena: &mut Arena, bytes: &[u8], meta: Meta) -> usize {
        arena.reserve(bytes.len()).expect("room").copy_from_slice(bytes);
        arena.commit(bytes.len(), meta).expect("reserved")
    }

    #[test]
    fn a_tag_returns_to_its_place_between_addresses_and_ethertype() {
        let mut arena = Arena::new();
        let meta = Meta {
            vlan: Some(VlanTag { tpid: 0x8100, tci: 0x2007 }),
            checksum: Checksum::Partial { start: 34, offset: 16 },
            ..Meta::default()
        };
        let frame: Vec<u8> = (0..60).collect();
        let index = fill(&mut arena, &frame, meta);
        let sealed = arena.frame(index);
        assert_eq!(sealed[..12], frame[..12]);
        assert_eq!(sealed[12..16], [0x81, 0x00, 0x20, 0x07]);
        assert_eq!(sealed[16..], frame[12..]);
        assert_eq!(arena.entry(index).meta.checksum, Checksum::Partial { start: 38, offset: 16 });
        assert_eq!(arena.entry(index).meta.vlan, None);
    }

    #[test]
    fn neighbours_stay_intact_and_the_front_is_used_again() {
        let mut arena = Arena::new();
        let tagged = Meta { vlan: Some(VlanTag { tpid: 0x88a8, tci: 1 }), ..Meta::default() };
        for value in 0..4_u8 {
            fill(&mut arena, &[value; 100], tagged);
        }
        for index in 0..4 {
            let meta = arena.entry(index).meta;
            let whole = arena.seal(index, &meta, vnet::LEN);
            assert_eq!(whole.len(), vnet::LEN + 104);
        }
        for index in 0..4 {
            assert_eq!(arena.frame(index)[16..], [index as u8; 88]);
        }
        let first = arena.entry(0).range();
        arena.advance(3);
        assert_eq!(arena.waiting(), 3..4);
        arena.advance(1);
        assert!(arena.is_empty());
        let index = fill(&mut arena, &[9; 100], tagged);
        assert_eq!(arena.entry(index).range(), first);
    }

    #[test]
    fn a_full_arena_refuses_until_something_is_sent() {
        let mut arena = Arena::new();
        let mut frames = 0;
        while arena.reserve(65_536).is_some() {
            arena.commit(65_536, Meta::plain());
            frames += 1;
        }
        assert!(frames >= 8, "{frames}");
        arena.advance(frames);
        assert!(arena.reserve(65_536).is_some());
        assert!(arena.reserve(ARENA_BYTES).is_none() && !arena.could_hold(ARENA_BYTES));
        for _ in 0..ARENA_MAX_FRAMES {
            arena.reserve(1).expect("room");
            arena.commit(1, Meta::plain());
        }
        assert!(arena.reserve(1).is_none());
    }

    #[test]
    fn a_reservation_without_a_commit_is_given_back() {
        let mut arena = Arena::new();
        let first = arena.reserve(100).expect("room").as_ptr();
        assert_eq!(arena.reserve(50).expect("room").as_ptr(), first);
        assert!(arena.is_empty());
    }
}
