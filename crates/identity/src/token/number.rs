//! Numbers of tokens, which a distributor tells from made-up ones without asking anybody and for next to nothing (record 0017).
//!
//! ```text
//! 63 .. 24  drawn at random, below 2^39   23 .. 0  the lowest bits of SipHash-2-4 over the drawn ones in five bytes
//! ```

use std::fmt;
use std::hash::Hasher;

use siphasher::sip::SipHasher24;
use zeroize::Zeroizing;

use crate::distributor::RequestMaster;
use crate::site_key::TAG_LEN;

/// Bytes of a number that are drawn.
pub const DRAWN_LEN: usize = 5;

const LABEL: &[u8] = b"s-arp token number";
const CHECK_BITS: u32 = 24;
const CHECK_MASK: u64 = (1 << CHECK_BITS) - 1;
/// SQLite numbers have 63 bits.
const DRAWN_MASK: u64 = (1 << 39) - 1;

/// What numbers of tokens are made and told by.
#[derive(Clone)]
pub struct NumberKey(Zeroizing<[u8; TAG_LEN]>);

impl NumberKey {
    /// The key that follows from the site's request master.
    #[must_use]
    pub fn of(master: &RequestMaster) -> NumberKey {
        NumberKey(Zeroizing::new(master.site_key().tag(LABEL, &[])))
    }

    /// The key of SipHash that numbers are made with.
    #[must_use]
    pub fn bytes(&self) -> &Zeroizing<[u8; TAG_LEN]> {
        &self.0
    }

    /// The number made of what was drawn at random; below 2^63.
    #[must_use]
    pub fn number(&self, drawn: [u8; DRAWN_LEN]) -> u64 {
        let drawn = drawn.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)) & DRAWN_MASK;
        drawn << CHECK_BITS | self.check(drawn)
    }

    /// Whether the site made a token with this number. Of made-up numbers one in 2^24 passes.
    #[must_use]
    pub fn knows(&self, number: u64) -> bool {
        let drawn = number >> CHECK_BITS;
        drawn <= DRAWN_MASK && self.check(drawn) == number & CHECK_MASK
    }

    fn check(&self, drawn: u64) -> u64 {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        hasher.write(&drawn.to_be_bytes()[8 - DRAWN_LEN..]);
        hasher.finish() & CHECK_MASK
    }
}

impl fmt::Debug for NumberKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NumberKey(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(seed: u8) -> NumberKey {
        NumberKey::of(&RequestMaster::from_bytes([seed; 32]))
    }

    #[test]
    fn a_number_is_known_to_its_site_and_no_other() {
        for drawn in [[0; 5], [0xff; 5], [1, 2, 3, 4, 5]] {
            let number = key(1).number(drawn);
            assert!(number < 1 << 63 && key(1).knows(number), "{number:016x}");
            assert!(!key(2).knows(number));
            assert!((0..64).all(|bit| !key(1).knows(number ^ 1 << bit)), "{number:016x}");
        }
        assert_ne!(key(1).number([0; 5]) >> CHECK_BITS, key(1).number([0, 0, 0, 0, 1]) >> CHECK_BITS);
        assert_eq!(format!("{:?}", key(1)), "NumberKey(redacted)");
    }

    #[test]
    fn made_up_numbers_are_refused() {
        let known = (0..100_000_u64).filter(|at| key(1).knows(at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 1));
        assert!(known.count() <= 1);
    }
}
