//! HAS-160 (TTAS.KO-12.0011/R1): Korea's hash of 160 bits, which no well-kept crate has.
//!
//! A relative of SHA-1 whose message words are taken in another order in each of the four rounds, with four sums of words
//! among them.

use digest::block_buffer::{BlockBuffer, Eager};
use digest::common::BlockSizeUser;
use digest::consts::{U20, U64};
use digest::{FixedOutput, FixedOutputReset, HashMarker, Output, OutputSizeUser, Reset, Update};

const START: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
/// The first rotation of each step, the same in all rounds.
const ROTATIONS: [u32; 20] = [5, 11, 7, 15, 6, 13, 8, 14, 7, 12, 9, 11, 8, 15, 6, 12, 9, 14, 5, 13];

/// What makes a round.
struct Round {
    mix: fn(u32, u32, u32) -> u32,
    constant: u32,
    /// The second rotation.
    rotation: u32,
    /// The order in which the words of the message are taken.
    order: [usize; 16],
}

const ROUNDS: [Round; 4] = [
    Round {
        mix: |x, y, z| (x & y) | (!x & z),
        constant: 0,
        rotation: 10,
        order: [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    },
    Round {
        mix: |x, y, z| x ^ y ^ z,
        constant: 0x5a82_7999,
        rotation: 17,
        order: [3, 6, 9, 12, 15, 2, 5, 8, 11, 14, 1, 4, 7, 10, 13, 0],
    },
    Round {
        mix: |x, y, z| y ^ (x | !z),
        constant: 0x6ed9_eba1,
        rotation: 25,
        order: [12, 5, 14, 7, 0, 9, 2, 11, 4, 13, 6, 15, 8, 1, 10, 3],
    },
    Round {
        mix: |x, y, z| x ^ y ^ z,
        constant: 0x8f1b_bcdc,
        rotation: 30,
        order: [7, 2, 13, 8, 3, 14, 9, 4, 15, 10, 5, 0, 11, 6, 1, 12],
    },
];

/// A hash under way.
#[derive(Clone)]
pub(super) struct Has160 {
    state: [u32; 5],
    buffer: BlockBuffer<U64, Eager>,
    blocks: u64,
}

impl Default for Has160 {
    fn default() -> Self {
        Has160 { state: START, buffer: BlockBuffer::default(), blocks: 0 }
    }
}

impl HashMarker for Has160 {}

impl OutputSizeUser for Has160 {
    type OutputSize = U20;
}

impl BlockSizeUser for Has160 {
    type BlockSize = U64;
}

impl Reset for Has160 {
    fn reset(&mut self) {
        *self = Has160::default();
    }
}

impl Update for Has160 {
    fn update(&mut self, data: &[u8]) {
        let Has160 { state, buffer, blocks } = self;
        buffer.digest_blocks(data, |whole| {
            *blocks += whole.len() as u64;
            whole.iter().for_each(|block| compress(state, block.as_ref()));
        });
    }
}

impl FixedOutput for Has160 {
    fn finalize_into(mut self, out: &mut Output<Self>) {
        let bits = 8 * (64 * self.blocks + self.buffer.get_pos() as u64);
        let Has160 { state, buffer, .. } = &mut self;
        buffer.len64_padding_le(bits, |block| compress(state, block.as_ref()));
        for (place, word) in out.chunks_exact_mut(4).zip(self.state) {
            place.copy_from_slice(&word.to_le_bytes());
        }
    }
}

impl FixedOutputReset for Has160 {
    fn finalize_into_reset(&mut self, out: &mut Output<Self>) {
        std::mem::take(self).finalize_into(out);
    }
}

/// Works one block of 64 bytes into `state`.
fn compress(state: &mut [u32; 5], block: &[u8]) {
    let words: Vec<u32> = block.as_chunks().0.iter().map(|bytes: &[u8; 4]| u32::from_le_bytes(*bytes)).collect();
    let mut rolling = *state;
    for round in &ROUNDS {
        let taken = schedule(&words, &round.order);
        for (word, rotation) in taken.into_iter().zip(ROTATIONS) {
            let [a, b, c, d, e] = rolling;
            let sum = a.rotate_left(rotation).wrapping_add((round.mix)(b, c, d)).wrapping_add(e);
            let first = sum.wrapping_add(word).wrapping_add(round.constant);
            rolling = [first, a, b.rotate_left(round.rotation), c, d];
        }
    }
    for (word, more) in state.iter_mut().zip(rolling) {
        *word = word.wrapping_add(more);
    }
}

/// The twenty words of a round: in front of each four that are taken, the sum of four others.
fn schedule(words: &[u32], order: &[usize; 16]) -> [u32; 20] {
    let taken = order.map(|at| words[at]);
    let sum = |group: usize| taken[4 * group..4 * group + 4].iter().fold(0, |sum, word| sum ^ word);
    let mut all = [0; 20];
    for (group, five) in all.chunks_exact_mut(5).enumerate() {
        five[0] = sum((group + 2) % 4);
        five[1..].copy_from_slice(&taken[4 * group..4 * group + 4]);
    }
    all
}

#[cfg(test)]
mod tests {
    use digest::Digest;

    use super::*;
    use crate::test_hex::bytes;

    /// The first two as rhash 1.4.3 prints them (`rhash --has160`); the longer ones are those of the standard, appendix.
    #[test]
    fn published_hashes() {
        let vectors: [(&[u8], &str); 5] = [
            (b"", "307964ef34151d37c8047adec7ab50f4ff89762d"),
            (b"abc", "975e810488cf2a3d49838478124afce4b1c78804"),
            (b"a", "4872bcbc4cd0f0a9dc7c2f7045e5b43b6c830db8"),
            (b"message digest", "2338dbc8638d31225f73086246ba529f96710bc6"),
            (
                b"12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "07f05c8c0773c55ca3a5a695ce6aca4c438911b5",
            ),
        ];
        for (message, hash) in vectors {
            assert_eq!(Has160::digest(message).to_vec(), bytes(hash));
            let mut parts = Has160::new();
            message.chunks(7).for_each(|part| Digest::update(&mut parts, part));
            assert_eq!(parts.finalize().to_vec(), bytes(hash), "in parts");
        }
    }
}
