//! An entry of the shared map, in words of eight bytes: who, and both halves. Numbers are the
//! host's own.

use std::hint::spin_loop;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::layout::{ENTRY_WORDS, PLACE_BITS};
use crate::tcp::key::Key;
use crate::tcp::serial::later;

const KEY_WORDS: usize = 5;
const SHIFTS: usize = 5;
const HEADERS: usize = 6;
const FAILED: usize = 7;
const HALVES: usize = 8;
const HALF_WORDS: usize = 8;

// Words of a half.
const LOCK: usize = 0;
const SEQUENCE: usize = 1;
const WINDOW: usize = 2;
const STAMP: usize = 3;
const RING: usize = 4;
const PACKETS: usize = 5;
const BYTES: usize = 6;
const ISLAND: usize = 7;

// Options of a connection, and of what is marked of a half the one bit that counts here.
const HAS_STAMPS: u32 = 1;
const HAS_BLOCKS: u32 = 2;
const IS_REACHED: u64 = 2;
/// Where in the word of headers the largest hop limit stands, and the marks of each half, in bits.
const HOP_LIMIT_AT: u32 = 40;
const MARKS_AT: [u32; 2] = [48, 56];

// Whose a half is.
const OF_DAEMON: u64 = 0;
const FREE: u64 = 1;
const IN_HAND: u64 = 2;

/// How often a half is looked at that another processor has: about a millisecond, where it takes a
/// microsecond.
const ATTEMPTS_MAX: u32 = 1 << 15;

/// A processor has a half yet: its program was stopped where it stood, or another program took the frame
/// away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StillLocked;

/// What one host sends, as the program has it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Half {
    pub(crate) in_sequence: u32,
    pub(crate) unacknowledged: u32,
    /// What went on behind a hole, if these differ: its first number, and the next one above.
    pub(crate) island: (u32, u32),
    /// A segment without data has come behind all that went on.
    pub(crate) is_reached: bool,
    pub(crate) edge: u32,
    pub(crate) window_max: u32,
    pub(crate) stamp: u32,
    /// Most bytes of data in one packet.
    pub(crate) piece_max: u16,
    /// Of windows, as its host grants them and as its peer is told.
    pub(crate) scales: [u8; 2],
    /// Segments that were carried, those that were dropped for their checksum, and bytes of
    /// data.
    pub(crate) packets: u32,
    pub(crate) bad_checksums: u32,
    pub(crate) bytes: u64,
    /// Segments that the kernel could not read or write.
    pub(crate) failed: u32,
}

impl Half {
    /// Whether something went on behind a hole.
    pub(crate) fn has_island(&self) -> bool {
        self.island.0 != self.island.1
    }

    /// The number behind all that went on. Where it was read while the hole was filled, the island
    /// may be the older of both.
    pub(crate) fn end(&self) -> u32 {
        if self.has_island() { later(self.island.1, self.in_sequence) } else { self.in_sequence }
    }
}

/// What the headers of a connection have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headers {
    /// The flow label on the untrusted side.
    pub(crate) label: u32,
    /// The largest hop limit of a packet to the trusted side.
    pub(crate) hop_limit: u8,
    pub(crate) has_stamps: bool,
    /// Whether selective acknowledgements were agreed on.
    pub(crate) has_sack: bool,
}

/// An entry in the shared memory.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a>(&'a [AtomicU64]);

fn pair(low: u32, high: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn unpaired(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// A connection as its key stands in the map: addresses and ports as they stand in frames.
pub(super) fn key_words(key: &Key) -> [u64; KEY_WORDS] {
    let mut bytes = [0; KEY_WORDS * 8];
    for (at, address) in [(0, key.trusted), (16, key.untrusted)] {
        match address {
            IpAddr::V4(address) => bytes[at..at + 4].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => bytes[at..at + 16].copy_from_slice(&address.octets()),
        }
    }
    bytes[32..34].copy_from_slice(&key.trusted_port.to_be_bytes());
    bytes[34..36].copy_from_slice(&key.untrusted_port.to_be_bytes());
    let version: u32 = if key.trusted.is_ipv4() { 4 } else { 6 };
    bytes[36..40].copy_from_slice(&version.to_ne_bytes());
    let mut words = [0; KEY_WORDS];
    words.iter_mut().zip(bytes.as_chunks().0).for_each(|(word, bytes)| *word = u64::from_ne_bytes(*bytes));
    words
}

/// The one place in which a connection may be, which nobody knows who does not know `seed`.
pub(super) fn place_of(words: &[u64; KEY_WORDS], seed: u64) -> usize {
    let mixed = words.iter().fold(seed, |mixed, word| {
        let mixed = (mixed ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ mixed >> 32
    });
    (mixed >> (64 - PLACE_BITS)) as usize
}

impl<'a> Entry<'a> {
    /// The entry of this place in the map's words.
    pub(super) fn at(words: &'a [AtomicU64], place: usize) -> Option<Entry<'a>> {
        words.get(place * ENTRY_WORDS..(place + 1) * ENTRY_WORDS).map(Entry)
    }

    fn put(self, at: usize, value: u64) {
        self.0[at].store(value, Ordering::Relaxed);
    }

    fn get(self, at: usize) -> u64 {
        self.0[at].load(Ordering::Relaxed)
    }

    /// Enters who it is of, the shifts of numbers and of timestamps, and what its headers have.
    pub(super) fn describe(self, key: &[u64; KEY_WORDS], shifts: [u32; 2], headers: &Headers) {
        key.iter().enumerate().for_each(|(at, word)| self.put(at, *word));
        self.put(SHIFTS, pair(shifts[0], shifts[1]));
        let label = u32::from_ne_bytes(headers.label.to_be_bytes());
        self.put(FAILED, 0);
        let stamps = if headers.has_stamps { HAS_STAMPS } else { 0 };
        let options = stamps | if headers.has_sack { HAS_BLOCKS } else { 0 };
        self.put(HEADERS, pair(label, options | u32::from(headers.hop_limit) << 8));
    }

    /// The largest hop limit of a packet to the trusted side.
    pub(super) fn hop_limit(self) -> u8 {
        (self.get(HEADERS) >> HOP_LIMIT_AT) as u8
    }

    /// Enters a half and the place and length of its ring, if it has one.
    pub(super) fn enter(self, side: usize, half: &Half, ring: Option<(u32, u32)>) {
        let at = HALVES + side * HALF_WORDS;
        let (ring_at, ring_len) = ring.unwrap_or((0, 1));
        let sizes = u32::from(half.piece_max) | u32::from(half.scales[0]) << 16 | u32::from(half.scales[1]) << 24;
        self.put(at + SEQUENCE, pair(half.in_sequence, half.unacknowledged));
        self.put(at + WINDOW, pair(half.edge, half.window_max));
        self.put(at + STAMP, pair(half.stamp, ring_at));
        self.put(at + RING, pair(ring_len - 1, sizes));
        self.put(at + PACKETS, 0);
        self.put(at + BYTES, 0);
        self.put(at + ISLAND, 0);
        let mark = if half.is_reached { IS_REACHED << MARKS_AT[side] } else { 0 };
        self.put(HEADERS, self.get(HEADERS) | mark);
    }

    /// A half as it stands. Unless it is the daemon's, it may be on the way from one state to
    /// another.
    pub(super) fn half(self, side: usize) -> Half {
        let at = HALVES + side * HALF_WORDS;
        // First: who fills the hole writes what comes next before he clears it.
        let island = unpaired(self.0[at + ISLAND].load(Ordering::Acquire));
        let (in_sequence, unacknowledged) = unpaired(self.get(at + SEQUENCE));
        let (edge, window_max) = unpaired(self.get(at + WINDOW));
        let (stamp, _) = unpaired(self.get(at + STAMP));
        let (_, sizes) = unpaired(self.get(at + RING));
        let (packets, bad_checksums) = unpaired(self.get(at + PACKETS));
        let failed = unpaired(self.get(FAILED));
        Half {
            in_sequence,
            unacknowledged,
            island,
            is_reached: self.get(HEADERS) >> MARKS_AT[side] & IS_REACHED != 0,
            edge,
            window_max,
            stamp,
            piece_max: sizes as u16,
            scales: [(sizes >> 16) as u8, (sizes >> 24) as u8],
            packets,
            bad_checksums,
            bytes: self.get(at + BYTES),
            failed: if side == 0 { failed.0 } else { failed.1 },
        }
    }

    /// Enters what a segment of `side` has changed, which has that half in hand: of its own half
    /// the timestamp and whether it is reached, of the other what is acknowledged and granted. The
    /// other may be in hand of a processor, which writes what comes next there.
    pub(super) fn enter_heard(self, side: usize, sender: &Half, receiver: &Half, hop_limit: u8) {
        let (own, peer) = (HALVES + side * HALF_WORDS, HALVES + (1 - side) * HALF_WORDS);
        let (_, ring_at) = unpaired(self.get(own + STAMP));
        self.put(own + STAMP, pair(sender.stamp, ring_at));
        self.put(peer + WINDOW, pair(receiver.edge, receiver.window_max));
        self.change(peer + SEQUENCE, |word| pair(unpaired(word).0, receiver.unacknowledged));
        let mark = IS_REACHED << MARKS_AT[side];
        let mark_it = |word| if sender.is_reached { word | mark } else { word & !mark };
        let clear = !(u64::from(u8::MAX) << HOP_LIMIT_AT);
        let largest = |word: u64| u64::from(hop_limit.max((word >> HOP_LIMIT_AT) as u8)) << HOP_LIMIT_AT;
        self.change(HEADERS, |word| mark_it(word) & clear | largest(word));
    }

    /// Changes a word of which others write other parts at the same time.
    fn change(self, at: usize, change: impl Fn(u64) -> u64) {
        let mut word = self.get(at);
        while let Err(other) =
            self.0[at].compare_exchange_weak(word, change(word), Ordering::Relaxed, Ordering::Relaxed)
        {
            word = other;
        }
    }

    /// Takes a free half in hand as a processor does: who has the next segment of it waits a
    /// moment. False if it is the daemon's, or a processor keeps it.
    pub(super) fn take_in_hand(self, side: usize) -> bool {
        self.take_half(side, IN_HAND) == Ok(FREE)
    }

    /// Gives a half that is [in hand](Entry::take_in_hand) back.
    pub(super) fn put_down(self, side: usize) {
        self.0[HALVES + side * HALF_WORDS + LOCK].store(FREE, Ordering::Release);
    }

    /// Has neither program find it.
    pub(super) fn hide(self) {
        (0..KEY_WORDS).for_each(|at| self.put(at, 0));
    }

    /// Lets the program have both halves.
    pub(super) fn free(self) {
        (0..2).for_each(|side| self.put_down(side));
    }

    /// Takes both halves from the program, or what it can of them.
    pub(super) fn take(self) -> Result<(), StillLocked> {
        let taken = [0, 1].map(|side| self.take_half(side, OF_DAEMON).map(drop));
        taken.into_iter().collect()
    }

    /// Makes a free half `state`; whose it was. One that is the daemon's stays so.
    fn take_half(self, side: usize, state: u64) -> Result<u64, StillLocked> {
        let lock = &self.0[HALVES + side * HALF_WORDS + LOCK];
        for _ in 0..ATTEMPTS_MAX {
            match lock.compare_exchange(FREE, state, Ordering::AcqRel, Ordering::Acquire) {
                Ok(was) | Err(was @ OF_DAEMON) => return Ok(was),
                Err(_) => spin_loop(),
            }
        }
        Err(StillLocked)
    }
}
