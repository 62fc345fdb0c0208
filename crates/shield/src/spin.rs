//! Spinning nonces: keyed functions of the sequence number (Touch and Yang, section 4), worthless for the next frame.
//!
//! A forged frame is told by one at the price of a few nanoseconds, ahead of any cryptography worth the name. Two time scales can
//! stand in one frame: [`Spin`] is another for every frame, [`SlowSpin`] for every 1,024, which its receiver therefore has at hand.
//! [`SpinTable`] is the same sequence computed ahead, for comparison; record 0027 says what it is worth.

use std::cell::Cell;
use std::hash::Hasher;

use siphasher::sip::SipHasher24;

use crate::limits::{SLOW_SHIFT, TABLE_REACH};

/// Bytes of the key of a spinning nonce.
pub const KEY_LEN: usize = 16;

/// A nonce for each frame of one direction, lane and epoch.
#[derive(Clone)]
pub struct Spin {
    keyed: SipHasher24,
}

impl Spin {
    /// The nonces under `key`.
    #[must_use]
    pub fn new(key: &[u8; KEY_LEN]) -> Spin {
        Spin { keyed: SipHasher24::new_with_key(key) }
    }

    /// The nonce of the frame with this sequence number: the low half of SipHash-2-4 over its four bytes.
    #[must_use]
    pub fn at(&self, sequence: u32) -> u32 {
        let mut hasher = self.keyed;
        hasher.write(&sequence.to_be_bytes());
        hasher.finish() as u32
    }
}

/// A nonce for every 1,024 frames; the last one that was asked for is kept.
pub struct SlowSpin {
    spin: Spin,
    last: Cell<(u32, u32)>,
}

impl SlowSpin {
    /// The nonces under `key`.
    #[must_use]
    pub fn new(key: &[u8; KEY_LEN]) -> SlowSpin {
        let spin = Spin::new(key);
        let last = Cell::new((0, spin.at(0)));
        SlowSpin { spin, last }
    }

    /// The nonce of the frame with this sequence number.
    #[must_use]
    pub fn at(&self, sequence: u32) -> u32 {
        let period = sequence >> SLOW_SHIFT;
        let (known, nonce) = self.last.get();
        if known == period {
            return nonce;
        }
        let nonce = self.spin.at(period);
        self.last.set((period, nonce));
        nonce
    }
}

/// The nonces of [`Spin`], computed ahead around the newest sequence number: a forged frame costs one look-up, an honest one the
/// function and a store besides.
pub struct SpinTable {
    spin: Spin,
    nonces: Box<[u32]>,
    /// The lowest sequence number that the table answers.
    first: u32,
}

impl SpinTable {
    /// A table around `newest`.
    #[must_use]
    pub fn new(key: &[u8; KEY_LEN], newest: u32) -> SpinTable {
        let (spin, first) = (Spin::new(key), newest.saturating_sub(TABLE_REACH));
        let mut nonces = vec![0; 2 * TABLE_REACH as usize].into_boxed_slice();
        for sequence in (0..2 * TABLE_REACH).filter_map(|ahead| first.checked_add(ahead)) {
            nonces[place(sequence)] = spin.at(sequence);
        }
        SpinTable { spin, nonces, first }
    }

    /// The lowest sequence number that it answers.
    #[must_use]
    pub fn first(&self) -> u32 {
        self.first
    }

    /// The nonce of the frame with this sequence number, if it is near the newest.
    #[must_use]
    pub fn at(&self, sequence: u32) -> Option<u32> {
        let is_near = sequence >= self.first && sequence - self.first < 2 * TABLE_REACH;
        is_near.then(|| self.nonces[place(sequence)])
    }

    /// The newest sequence number is `newest` now: the nonces that come within reach take the places of those that leave it.
    pub fn advance(&mut self, newest: u32) {
        let first = newest.saturating_sub(TABLE_REACH).max(self.first);
        let begin = (self.first + 2 * TABLE_REACH).max(first);
        for sequence in begin..first.saturating_add(2 * TABLE_REACH) {
            self.nonces[place(sequence)] = self.spin.at(sequence);
        }
        self.first = first;
    }
}

fn place(sequence: u32) -> usize {
    (sequence % (2 * TABLE_REACH)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; KEY_LEN] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

    /// Entry 4 of the table that comes with the reference implementation of SipHash-2-4: key 00..0f, message 00..03.
    #[test]
    fn agrees_with_the_reference_table() {
        let published = u64::from_le_bytes([0xb7, 0x87, 0x71, 0x27, 0xe0, 0x94, 0x27, 0xcf]);
        assert_eq!(Spin::new(&KEY).at(0x0001_0203), published as u32);
        assert_eq!(SlowSpin::new(&KEY).at(0x0001_0203 << SLOW_SHIFT), published as u32);
    }

    #[test]
    fn a_slow_nonce_changes_with_its_period_and_comes_back() {
        let slow = SlowSpin::new(&KEY);
        let period = 1 << SLOW_SHIFT;
        let (first, second) = (slow.at(5 * period), slow.at(6 * period));
        assert_ne!(first, second);
        assert_eq!([slow.at(5 * period + 1), slow.at(6 * period - 1), slow.at(6 * period)], [first, first, second]);
    }

    #[test]
    fn a_table_holds_what_the_function_says_wherever_it_moves() {
        let spin = Spin::new(&KEY);
        for start in [0, 7, 1_000_000] {
            let mut table = SpinTable::new(&KEY, start);
            for newest in [start, start + 1, start + 700, start + 9_000, start + 100_000, start + 99_000] {
                table.advance(newest);
                for sequence in (newest.saturating_sub(8192)..newest + 8192).step_by(61) {
                    assert!(
                        table.at(sequence).is_none_or(|nonce| nonce == spin.at(sequence)),
                        "{sequence} of {newest}"
                    );
                }
            }
            let newest = start + 100_000;
            assert!(table.at(newest).is_some() && table.at(newest - TABLE_REACH).is_some());
            assert!(table.at(newest + TABLE_REACH).is_none() && table.at(newest - TABLE_REACH - 1).is_none());
        }
    }
}
