//! The index on the wire: a keyed permutation of the real SPI, another one for every sequence number (docs/protocol.md, section
//! 20).
//!
//! The numbers 256 to 2^32 - 1 are permuted among themselves: four rounds of a Feistel network over two halves of 16 bits, whose
//! round function is SipHash-2-4, and whatever falls among the reserved numbers 0 to 255 (RFC 4303, section 2.1) goes round
//! again (Black and Rogaway's cycle walking). Four rounds with a pseudorandom function are a strong pseudorandom permutation
//! (Luby and Rackoff) for far more than the handful of SPIs that one sequence number ever sees. Who watches learns nothing about
//! the next packet's index. The caller vouches that `index` and `spi` are not reserved.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;
use zeroize::Zeroizing;

/// Bytes of a key.
pub const KEY_LEN: usize = 16;
/// The lowest number that names an association.
pub const LOWEST: u32 = 256;

const ROUNDS: u8 = 4;
const LABEL: &[u8] = b"ringwall shield ipsec";

/// Which of the two ends of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The one with the file of end `a`.
    A,
    /// The other one.
    B,
}

impl End {
    /// The other end.
    #[must_use]
    pub fn other(self) -> End {
        match self {
            End::A => End::B,
            End::B => End::A,
        }
    }

    fn letter(self) -> u8 {
        match self {
            End::A => b'a',
            End::B => b'b',
        }
    }
}

/// The permutations of one direction and epoch.
#[derive(Clone)]
pub struct Permutation {
    keyed: SipHasher24,
}

impl std::fmt::Debug for Permutation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Permutation")
    }
}

impl Permutation {
    /// Those of what `sender` sends under the pair's key of an epoch.
    #[must_use]
    pub fn new(pair_key: &[u8; KEY_LEN], sender: End) -> Permutation {
        Permutation { keyed: SipHasher24::new_with_key(&Permutation::key(pair_key, sender)) }
    }

    /// The key of what `sender` sends under the pair's key of an epoch.
    pub(super) fn key(pair_key: &[u8; KEY_LEN], sender: End) -> Zeroizing<[u8; KEY_LEN]> {
        let half = |number: u8| {
            let mut hasher = SipHasher24::new_with_key(pair_key);
            hasher.write(LABEL);
            hasher.write(&[sender.letter(), number]);
            hasher.finish().to_le_bytes()
        };
        let mut key = Zeroizing::new([0; KEY_LEN]);
        key[..8].copy_from_slice(&half(0));
        key[8..].copy_from_slice(&half(1));
        key
    }

    /// What stands on the wire in place of `spi` in the packet with this sequence number of 64 bits.
    #[must_use]
    pub fn seal(&self, spi: u32, sequence: u64) -> u32 {
        walk(spi, |number| {
            let (left, right) = (0..ROUNDS)
                .fold(halves(number), |(left, right), round| (right, left ^ self.round(sequence, round, right)));
            join(left, right)
        })
    }

    /// The SPI that stands behind `index` in the packet with this sequence number.
    #[must_use]
    pub fn open(&self, index: u32, sequence: u64) -> u32 {
        walk(index, |number| {
            let (left, right) = (0..ROUNDS)
                .rev()
                .fold(halves(number), |(left, right), round| (right ^ self.round(sequence, round, left), left));
            join(left, right)
        })
    }

    fn round(&self, sequence: u64, round: u8, half: u16) -> u16 {
        let mut hasher = self.keyed;
        hasher.write(&sequence.to_be_bytes());
        let [high, low] = half.to_be_bytes();
        hasher.write(&[high, low, round]);
        hasher.finish() as u16
    }
}

/// Permutes until the number is none of the reserved ones. It ends after 257 turns at the latest, because it began with none; hardly
/// ever is there a second one.
fn walk(start: u32, permute: impl Fn(u32) -> u32) -> u32 {
    let mut number = permute(start);
    let mut turns_left = LOWEST;
    while number < LOWEST && turns_left > 0 {
        number = permute(number);
        turns_left -= 1;
    }
    number
}

fn halves(number: u32) -> (u16, u16) {
    ((number >> 16) as u16, number as u16)
}

fn join(left: u16, right: u16) -> u32 {
    u32::from(left) << 16 | u32::from(right)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; KEY_LEN] = *b"0123456789abcdef";

    proptest::proptest! {
        #[test]
        fn what_is_sealed_is_opened_and_never_reserved(spi in LOWEST.., sequence: u64) {
            let permutation = Permutation::new(&KEY, End::A);
            let index = permutation.seal(spi, sequence);
            proptest::prop_assert!(index >= LOWEST);
            proptest::prop_assert_eq!(permutation.open(index, sequence), spi);
        }
    }

    #[test]
    fn direction_key_and_sequence_number_each_change_the_index() {
        let index = |key: &[u8; KEY_LEN], end, sequence| Permutation::new(key, end).seal(0xc123_4567, sequence);
        let one = index(&KEY, End::A, 7);
        assert_ne!(one, index(&KEY, End::B, 7));
        assert_ne!(one, index(&[1; KEY_LEN], End::A, 7));
        assert_ne!(one, index(&KEY, End::A, 8));
        assert_ne!(one, index(&KEY, End::A, 7 | 1 << 32));
    }

    #[test]
    fn two_associations_differ_in_another_way_under_every_sequence_number() {
        // Their SPIs differ in one bit: in the low half or in the high one, which the rounds meet at different places.
        for other in [0xc123_4566, 0x4123_4567] {
            let permutation = Permutation::new(&KEY, End::A);
            let difference = |sequence| permutation.seal(0xc123_4567, sequence) ^ permutation.seal(other, sequence);
            let differences: std::collections::BTreeSet<u32> = (0..10_000).map(difference).collect();
            // By chance two of ten thousand numbers of 32 bits are equal once in a hundred such tests.
            assert!(differences.len() >= 9_995, "{}", differences.len());
        }
    }

    #[test]
    fn a_walk_goes_on_until_it_leaves_the_reserved_numbers() {
        // A permutation that leads from 300 through three reserved numbers.
        let permute = |number| match number {
            300 => 5,
            5 => 17,
            17 => 255,
            255 => 301,
            other => other,
        };
        assert_eq!(walk(300, permute), 301);
    }
}
