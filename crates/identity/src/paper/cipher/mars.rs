//! MARS, IBM's candidate for the AES ("MARS: a candidate cipher for AES", 1999, with the key setup of August 1999).
//!
//! Its box of 512 words is defined by SHA-1 and computed here, once; the vectors of the submission show that it is right.

use std::sync::LazyLock;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use zeroize::{Zeroize, ZeroizeOnDrop};

use super::{OfWords, Words};

const BOX_LEN: usize = 512;
const HALF_LEN: usize = BOX_LEN / 2;
/// Words of an expanded key.
const KEY_WORDS: usize = 40;
/// Words of the array that a key is expanded in.
const STATE_WORDS: usize = 15;
/// The numbers c1 to c3 from which the box is made: fractions of e and pi, and what the designers searched for.
const BOX_SEED: [u32; 3] = [0xb7e1_5162, 0x243f_6a88, 0x0291_7d59];
/// Where the four words that fix weak multipliers stand in the box.
const FIXES_AT: usize = 265;

/// Words 5i to 5i + 4 are the SHA-1 of 5i and the seed, all in little-endian order.
static BOX: LazyLock<[u32; BOX_LEN]> = LazyLock::new(|| {
    let mut words = [0; BOX_LEN];
    for (number, five) in (0_u32..).step_by(5).zip(words.chunks_mut(5)) {
        let input: Vec<u8> = [[number].as_slice(), &BOX_SEED].concat().into_iter().flat_map(u32::to_le_bytes).collect();
        let hash = digest(&SHA1_FOR_LEGACY_USE_ONLY, &input);
        for (word, bytes) in five.iter_mut().zip(hash.as_ref().as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
    }
    // Words of one half are to differ in three bytes at least; of two that do not, the first is tripled.
    for at in 0..BOX_LEN {
        let half = if at < HALF_LEN { HALF_LEN } else { BOX_LEN };
        if words[at + 1..half].iter().any(|other| are_close(words[at], *other)) {
            words[at] = words[at].wrapping_mul(3);
        }
    }
    words
});

/// Whether two of the four bytes, or more, are equal.
fn are_close(one: u32, other: u32) -> bool {
    (one ^ other).to_le_bytes().iter().filter(|byte| **byte == 0).count() >= 2
}

fn whole_box(index: u32) -> u32 {
    BOX[index as usize % BOX_LEN]
}

fn box_0(index: u32) -> u32 {
    BOX[index as usize % HALF_LEN]
}

fn box_1(index: u32) -> u32 {
    BOX[HALF_LEN + index as usize % HALF_LEN]
}

/// MARS with a key of 128 to 256 bits.
pub(in crate::paper) type Mars = OfWords<Keyed>;

/// The expanded key.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(in crate::paper) struct Keyed([u32; KEY_WORDS]);

impl Mars {
    /// `None` for a key of another length than 16, 24 or 32 bytes.
    pub(in crate::paper) fn new(key: &[u8]) -> Option<Mars> {
        if !matches!(key.len(), 16 | 24 | 32) {
            return None;
        }
        let mut keyed = Keyed([0; KEY_WORDS]);
        let mut state = [0; STATE_WORDS];
        for (word, bytes) in state.iter_mut().zip(key.as_chunks().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        state[key.len() / 4] = key.len() as u32 / 4;
        for (pass, ten) in (0_u32..).zip(keyed.0.chunks_exact_mut(10)) {
            stir(&mut state, pass);
            for (at, word) in ten.iter_mut().enumerate() {
                *word = state[4 * at % STATE_WORDS];
            }
        }
        state.zeroize();
        fix_multipliers(&mut keyed.0);
        Some(OfWords(keyed))
    }
}

/// The linear transformation, then four rounds of stirring.
fn stir(state: &mut [u32; STATE_WORDS], pass: u32) {
    for at in 0..STATE_WORDS {
        let mixed = (state[(at + 8) % STATE_WORDS] ^ state[(at + 13) % STATE_WORDS]).rotate_left(3);
        state[at] ^= mixed ^ (4 * at as u32 + pass);
    }
    for at in (0..STATE_WORDS).cycle().take(4 * STATE_WORDS) {
        let before = state[(at + STATE_WORDS - 1) % STATE_WORDS];
        state[at] = state[at].wrapping_add(whole_box(before)).rotate_left(9);
    }
}

/// Key words that multiply become odd ones without ten equal bits in a row.
fn fix_multipliers(words: &mut [u32; KEY_WORDS]) {
    for at in (5..37).step_by(2) {
        let word = words[at] | 3;
        let fix = BOX[FIXES_AT + (words[at] & 3) as usize].rotate_left(words[at - 1] % 32);
        words[at] = word ^ (fix & long_runs(word));
    }
}

/// The bits in the inside of ten or more equal bits in a row, but the lowest two and the highest.
fn long_runs(word: u32) -> u32 {
    // A bit here says that this bit, the one below and the one above are equal.
    let middle = !(word ^ (word << 1)) & !(word ^ (word >> 1)) & 0x7fff_fffe;
    // Eight such bits in a row are the inside of ten equal ones.
    let starts = (0..8).fold(u32::MAX, |starts, shift| starts & (middle >> shift));
    let inside = (0..8).fold(0, |inside, shift| inside | (starts << shift));
    inside & 0x7fff_fffc
}

/// What a step of the core makes of one word: the three words L, M and R, from which the others are changed.
fn expand(word: u32, add: u32, multiply: u32) -> [u32; 3] {
    let right = word.rotate_left(13).wrapping_mul(multiply).rotate_left(10);
    let middle = word.wrapping_add(add);
    let turn = right.rotate_right(5);
    let left = (whole_box(middle) ^ turn ^ right).rotate_left(right % 32);
    [left, middle.rotate_left(turn % 32), right]
}

impl Keyed {
    fn plus(&self, block: [u32; 4], at: usize) -> [u32; 4] {
        std::array::from_fn(|word| block[word].wrapping_add(self.0[at + word]))
    }

    fn minus(&self, block: [u32; 4], at: usize) -> [u32; 4] {
        std::array::from_fn(|word| block[word].wrapping_sub(self.0[at + word]))
    }
}

/// Eight rounds of mixing without a key.
fn mix_forward(mut block: [u32; 4]) -> [u32; 4] {
    for round in 0..8 {
        let [mut a, mut b, mut c, mut d] = block;
        b = (b ^ box_0(a)).wrapping_add(box_1(a >> 8));
        c = c.wrapping_add(box_0(a >> 16));
        d ^= box_1(a >> 24);
        a = a.rotate_right(24);
        a = a.wrapping_add(match round % 4 {
            0 => d,
            1 => b,
            _ => 0,
        });
        block = [b, c, d, a];
    }
    block
}

/// Eight rounds that mix the other way.
fn mix_backward(mut block: [u32; 4]) -> [u32; 4] {
    for round in 0..8 {
        let [mut a, mut b, mut c, mut d] = block;
        a = a.wrapping_sub(match round % 4 {
            2 => d,
            3 => b,
            _ => 0,
        });
        b ^= box_1(a);
        c = c.wrapping_sub(box_0(a >> 24));
        d = d.wrapping_sub(box_1(a >> 16)) ^ box_0(a >> 8);
        a = a.rotate_left(24);
        block = [b, c, d, a];
    }
    block
}

fn reversed([a, b, c, d]: [u32; 4]) -> [u32; 4] {
    [d, c, b, a]
}

impl Words for Keyed {
    fn encrypt(&self, block: [u32; 4]) -> [u32; 4] {
        let mut block = mix_forward(self.plus(block, 0));
        for round in 0..16 {
            let [a, mut b, mut c, mut d] = block;
            let [left, middle, right] = expand(a, self.0[2 * round + 4], self.0[2 * round + 5]);
            c = c.wrapping_add(middle);
            if round < 8 {
                (b, d) = (b.wrapping_add(left), d ^ right);
            } else {
                (b, d) = (b ^ right, d.wrapping_add(left));
            }
            block = [b, c, d, a.rotate_left(13)];
        }
        self.minus(mix_backward(block), 36)
    }

    /// The same backwards. Mixing backwards undoes mixing forwards if the words are counted from the other end.
    fn decrypt(&self, block: [u32; 4]) -> [u32; 4] {
        let mut block = reversed(mix_forward(reversed(self.plus(block, 36))));
        for round in (0..16).rev() {
            let [mut b, mut c, mut d, turned] = block;
            let a = turned.rotate_right(13);
            let [left, middle, right] = expand(a, self.0[2 * round + 4], self.0[2 * round + 5]);
            c = c.wrapping_sub(middle);
            if round < 8 {
                (b, d) = (b.wrapping_sub(left), d ^ right);
            } else {
                (b, d) = (b ^ right, d.wrapping_sub(left));
            }
            block = [a, b, c, d];
        }
        self.minus(reversed(mix_backward(reversed(block))), 0)
    }

    fn word(bytes: [u8; 4]) -> u32 {
        u32::from_le_bytes(bytes)
    }

    fn bytes(word: u32) -> [u8; 4] {
        word.to_le_bytes()
    }
}
