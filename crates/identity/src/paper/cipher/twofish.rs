//! Twofish ("Twofish: a 128-bit block cipher", Schneier and others, 1998) with tables made for each key.
//!
//! The cipher of the paper's Tables 2 and 3. The crate `twofish` works the keyed boxes out anew for every byte that it looks up, which
//! takes several times as long; here they are worked out once for each key ("full keying"). Tests compare the two.

use std::sync::LazyLock;

use zeroize::{Zeroize, ZeroizeOnDrop};

use super::{OfWords, Words};

const ROUNDS: usize = 16;
/// Words of an expanded key: four before the rounds, four behind them, two for each.
const KEY_WORDS: usize = 8 + 2 * ROUNDS;
/// Most words of 32 bits that a box is keyed with.
const BOX_WORDS_MAX: usize = 4;
/// x^8 + x^6 + x^5 + x^3 + 1, for the MDS matrix.
const MDS_FIELD: u16 = 0x169;
/// x^8 + x^6 + x^3 + x^2 + 1, for the RS matrix.
const RS_FIELD: u16 = 0x14d;

const MDS: [[u8; 4]; 4] =
    [[0x01, 0xef, 0x5b, 0x5b], [0x5b, 0xef, 0xef, 0x01], [0xef, 0x5b, 0x01, 0xef], [0xef, 0x01, 0xef, 0x5b]];
const RS: [[u8; 8]; 4] = [
    [0x01, 0xa4, 0x55, 0x87, 0x5a, 0x58, 0xdb, 0x9e],
    [0xa4, 0x56, 0x82, 0xf3, 0x1e, 0xc6, 0x68, 0xe5],
    [0x02, 0xa1, 0xfc, 0xc1, 0x47, 0xae, 0x3d, 0x19],
    [0xa4, 0x55, 0x87, 0x5a, 0x58, 0xdb, 0x9e, 0x03],
];

/// The boxes of four bits, from which the two permutations of bytes are made (section 4.3.5).
const NIBBLES: [[[u8; 16]; 4]; 2] = [
    [
        [0x8, 0x1, 0x7, 0xd, 0x6, 0xf, 0x3, 0x2, 0x0, 0xb, 0x5, 0x9, 0xe, 0xc, 0xa, 0x4],
        [0xe, 0xc, 0xb, 0x8, 0x1, 0x2, 0x3, 0x5, 0xf, 0x4, 0xa, 0x6, 0x7, 0x0, 0x9, 0xd],
        [0xb, 0xa, 0x5, 0xe, 0x6, 0xd, 0x9, 0x0, 0xc, 0x8, 0xf, 0x3, 0x2, 0x4, 0x7, 0x1],
        [0xd, 0x7, 0xf, 0x4, 0x1, 0x2, 0x6, 0xe, 0x9, 0xb, 0x3, 0x0, 0x8, 0x5, 0xc, 0xa],
    ],
    [
        [0x2, 0x8, 0xb, 0xd, 0xf, 0x7, 0x6, 0xe, 0x3, 0x1, 0x9, 0x4, 0x0, 0xa, 0xc, 0x5],
        [0x1, 0xe, 0x2, 0xb, 0x4, 0xc, 0x3, 0x7, 0x6, 0xd, 0xa, 0x5, 0xf, 0x9, 0x0, 0x8],
        [0x4, 0xc, 0x7, 0x5, 0x1, 0x6, 0x9, 0xa, 0x0, 0xe, 0xd, 0x8, 0x2, 0xb, 0x3, 0xf],
        [0xb, 0x9, 0x5, 0x1, 0xc, 0x3, 0xd, 0xe, 0x6, 0x4, 0x7, 0xf, 0x2, 0x0, 0x8, 0xa],
    ],
];

/// Which permutation comes when, for each byte of a word; shorter keys leave the first ones out (section 4.3.2).
const ORDER: [[usize; BOX_WORDS_MAX + 1]; 4] = [[1, 1, 0, 0, 1], [0, 1, 1, 0, 0], [0, 0, 0, 1, 1], [1, 0, 1, 1, 0]];

static PERMUTATIONS: LazyLock<[[u8; 256]; 2]> = LazyLock::new(|| {
    NIBBLES.map(|boxes| {
        let mut permutation = [0; 256];
        for (input, output) in (0..=u8::MAX).zip(&mut permutation) {
            *output = permute(&boxes, input);
        }
        permutation
    })
});

fn permute(boxes: &[[u8; 16]; 4], input: u8) -> u8 {
    let (mut high, mut low) = (input >> 4, input & 15);
    for pair in boxes.chunks_exact(2) {
        let turned = (low >> 1 | low << 3) & 15;
        let (one, other) = (high ^ low, high ^ turned ^ (high << 3) & 15);
        (high, low) = (pair[0][usize::from(one)], pair[1][usize::from(other)]);
    }
    low << 4 | high
}

fn multiply(field: u16, one: u8, other: u8) -> u8 {
    let (mut one, mut product) = (u16::from(one), 0);
    for bit in 0..8 {
        product ^= one * u16::from(other >> bit & 1);
        one <<= 1;
        one ^= field * (one >> 8);
    }
    product as u8
}

/// One byte of the function h, on its way through the matrix: what byte `at` with the value `input` adds to the word.
fn keyed_byte(at: usize, input: u8, words: &[u32]) -> u32 {
    let order = &ORDER[at][BOX_WORDS_MAX - words.len()..];
    let mut byte = input;
    for (permutation, word) in order.iter().zip(words.iter().rev()) {
        byte = PERMUTATIONS[*permutation][usize::from(byte)] ^ word.to_le_bytes()[at];
    }
    byte = PERMUTATIONS[ORDER[at][BOX_WORDS_MAX]][usize::from(byte)];
    u32::from_le_bytes(MDS.map(|row| multiply(MDS_FIELD, row[at], byte)))
}

/// The function h of section 4.3.2.
fn h(input: u32, words: &[u32]) -> u32 {
    let bytes = input.to_le_bytes().into_iter().enumerate();
    bytes.fold(0, |sum, (at, byte)| sum ^ keyed_byte(at, byte, words))
}

/// Twofish with a key of 128, 192 or 256 bits.
pub(in crate::paper) type Twofish = OfWords<Keyed>;

/// The expanded key and its boxes.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(in crate::paper) struct Keyed {
    words: [u32; KEY_WORDS],
    boxes: Box<[[u32; 256]; 4]>,
}

impl Twofish {
    /// `None` for a key of another length than 16, 24 or 32 bytes.
    pub(in crate::paper) fn new(key: &[u8]) -> Option<Twofish> {
        if !matches!(key.len(), 16 | 24 | 32) {
            return None;
        }
        let pairs = key.as_chunks::<8>().0;
        let half =
            |at: usize| pairs.iter().map(move |pair| u32::from_le_bytes(std::array::from_fn(|byte| pair[at + byte])));
        let mut even: Vec<u32> = half(0).collect();
        let mut odd: Vec<u32> = half(4).collect();
        let mut of_boxes: Vec<u32> = pairs.iter().rev().map(box_word).collect();
        let keyed = Keyed { words: expand(&even, &odd), boxes: boxes(&of_boxes) };
        [&mut even, &mut odd, &mut of_boxes].into_iter().for_each(Zeroize::zeroize);
        Some(OfWords(keyed))
    }
}

/// Eight bytes of the key through the RS matrix.
fn box_word(pair: &[u8; 8]) -> u32 {
    let row =
        |row: [u8; 8]| row.iter().zip(pair).fold(0, |sum, (factor, byte)| sum ^ multiply(RS_FIELD, *factor, *byte));
    u32::from_le_bytes(RS.map(row))
}

/// Section 4.3.3.
fn expand(even: &[u32], odd: &[u32]) -> [u32; KEY_WORDS] {
    const RHO: u32 = 0x0101_0101;
    let mut words = [0; KEY_WORDS];
    for (number, pair) in (0_u32..).step_by(2).zip(words.chunks_exact_mut(2)) {
        let a = h(number * RHO, even);
        let b = h((number + 1) * RHO, odd).rotate_left(8);
        pair[0] = a.wrapping_add(b);
        pair[1] = a.wrapping_add(b).wrapping_add(b).rotate_left(9);
    }
    words
}

fn boxes(words: &[u32]) -> Box<[[u32; 256]; 4]> {
    let mut boxes = Box::new([[0; 256]; 4]);
    for (at, table) in boxes.iter_mut().enumerate() {
        for (input, entry) in (0..=u8::MAX).zip(table) {
            *entry = keyed_byte(at, input, words);
        }
    }
    boxes
}

impl Keyed {
    #[inline]
    fn g(&self, word: u32) -> u32 {
        let [a, b, c, d] = word.to_le_bytes().map(usize::from);
        self.boxes[0][a] ^ self.boxes[1][b] ^ self.boxes[2][c] ^ self.boxes[3][d]
    }

    /// The function F of section 4.3.
    #[inline]
    fn f(&self, one: u32, other: u32, round: usize) -> [u32; 2] {
        let (a, b) = (self.g(one), self.g(other.rotate_left(8)));
        let sum = a.wrapping_add(b);
        [sum.wrapping_add(self.words[2 * round + 8]), sum.wrapping_add(b).wrapping_add(self.words[2 * round + 9])]
    }

    fn whiten(&self, block: [u32; 4], at: usize) -> [u32; 4] {
        std::array::from_fn(|word| block[word] ^ self.words[at + word])
    }
}

impl Words for Keyed {
    #[inline]
    fn encrypt(&self, block: [u32; 4]) -> [u32; 4] {
        let [mut a, mut b, mut c, mut d] = self.whiten(block, 0);
        for round in 0..ROUNDS {
            let [x, y] = self.f(a, b, round);
            (a, b, c, d) = ((c ^ x).rotate_right(1), d.rotate_left(1) ^ y, a, b);
        }
        self.whiten([c, d, a, b], 4)
    }

    #[inline]
    fn decrypt(&self, block: [u32; 4]) -> [u32; 4] {
        let [mut c, mut d, mut a, mut b] = self.whiten(block, 4);
        for round in (0..ROUNDS).rev() {
            let [x, y] = self.f(c, d, round);
            (a, b, c, d) = (c, d, a.rotate_left(1) ^ x, (b ^ y).rotate_right(1));
        }
        self.whiten([a, b, c, d], 0)
    }

    #[inline]
    fn word(bytes: [u8; 4]) -> u32 {
        u32::from_le_bytes(bytes)
    }

    #[inline]
    fn bytes(word: u32) -> [u8; 4] {
        word.to_le_bytes()
    }
}
