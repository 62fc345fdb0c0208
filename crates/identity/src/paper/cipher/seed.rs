//! SEED (RFC 4269).
//!
//! Its two substitution boxes are powers in the field of 256 elements, mapped linearly; they are computed here, once, and the
//! vectors of the RFC show that they are right.

use std::sync::LazyLock;

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::{OfWords, Words};

const KEY_LEN: usize = 16;
const ROUNDS: usize = 16;
/// x^8 + x^6 + x^5 + x + 1.
const FIELD: u16 = 0x163;
/// The masks m0 to m3 of the function G.
const MASKS: [u8; 4] = [0xfc, 0xf3, 0xcf, 0x3f];
/// KC0; the others are its rotations.
const GOLDEN_RATIO: u32 = 0x9e37_79b9;

/// What makes a box: a power, the columns of a matrix, and what is added.
const BOXES: [(u8, [u8; 8], u8); 2] = [
    (247, [0x2c, 0xd0, 0x69, 0xc2, 0x41, 0x44, 0x58, 0xe2], 0xa9),
    (251, [0xd0, 0x2a, 0xe1, 0x2c, 0x21, 0x30, 0xa2, 0x6c], 0x38),
];

/// G of each byte of a word, which are put together by XOR.
static TABLES: LazyLock<[[u32; 256]; 4]> = LazyLock::new(|| {
    let mut tables = [[0; 256]; 4];
    for (at, table) in tables.iter_mut().enumerate() {
        for (input, entry) in (0..=u8::MAX).zip(table) {
            let output = substitute(&BOXES[at % 2], input);
            let spread: [u8; 4] = std::array::from_fn(|byte| output & MASKS[(byte + at) % 4]);
            *entry = u32::from_le_bytes(spread);
        }
    }
    tables
});

fn multiply(mut one: u16, mut other: u16) -> u16 {
    let mut product = 0;
    while other != 0 {
        product ^= one * (other & 1);
        one <<= 1;
        one ^= FIELD * (one >> 8);
        other >>= 1;
    }
    product
}

fn substitute((exponent, columns, sum): &(u8, [u8; 8], u8), input: u8) -> u8 {
    let power = (0..*exponent).fold(1, |power, _| multiply(power, u16::from(input)));
    let taken = columns.iter().enumerate().filter(|(bit, _)| power >> bit & 1 == 1);
    taken.fold(*sum, |output, (_, column)| output ^ column)
}

fn g(word: u32) -> u32 {
    let parts = word.to_le_bytes().into_iter().zip(TABLES.iter());
    parts.fold(0, |sum, (byte, table)| sum ^ table[usize::from(byte)])
}

/// SEED with a key of 128 bits.
pub(in crate::paper) type Seed = OfWords<Keyed>;

/// The keys of the rounds.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(in crate::paper) struct Keyed([[u32; 2]; ROUNDS]);

impl Seed {
    /// `None` for a key of another length than 16 bytes.
    pub(in crate::paper) fn new(key: &[u8]) -> Option<Seed> {
        let key: &[u8; KEY_LEN] = key.try_into().ok()?;
        let mut whole = u128::from_be_bytes(*key);
        let mut rounds = [[0; 2]; ROUNDS];
        for (round, keys) in (0_u32..).zip(&mut rounds) {
            let [a, b, c, d] = split(whole);
            let constant = GOLDEN_RATIO.rotate_left(round);
            *keys = [g(a.wrapping_add(c).wrapping_sub(constant)), g(b.wrapping_sub(d).wrapping_add(constant))];
            let (high, low) = ((whole >> 64) as u64, whole as u64);
            let (high, low) = if round % 2 == 0 { (high.rotate_right(8), low) } else { (high, low.rotate_left(8)) };
            whole = u128::from(high) << 64 | u128::from(low);
        }
        Some(OfWords(Keyed(rounds)))
    }
}

fn split(whole: u128) -> [u32; 4] {
    [96, 64, 32, 0].map(|shift| (whole >> shift) as u32)
}

impl Keyed {
    fn run<'a>(block: [u32; 4], keys: impl Iterator<Item = &'a [u32; 2]>) -> [u32; 4] {
        let [mut l0, mut l1, mut r0, mut r1] = block;
        for key in keys {
            let [f0, f1] = f([r0, r1], key);
            (l0, l1, r0, r1) = (r0, r1, l0 ^ f0, l1 ^ f1);
        }
        [r0, r1, l0, l1]
    }
}

/// RFC 4269, section 2.2.
fn f([r0, r1]: [u32; 2], key: &[u32; 2]) -> [u32; 2] {
    let (c, d) = (r0 ^ key[0], r1 ^ key[1]);
    let first = g(c ^ d);
    let second = g(first.wrapping_add(c));
    let third = g(second.wrapping_add(first));
    [third.wrapping_add(second), third]
}

impl Words for Keyed {
    fn encrypt(&self, block: [u32; 4]) -> [u32; 4] {
        Keyed::run(block, self.0.iter())
    }

    fn decrypt(&self, block: [u32; 4]) -> [u32; 4] {
        Keyed::run(block, self.0.iter().rev())
    }

    fn word(bytes: [u8; 4]) -> u32 {
        u32::from_be_bytes(bytes)
    }

    fn bytes(word: u32) -> [u8; 4] {
        word.to_be_bytes()
    }
}
