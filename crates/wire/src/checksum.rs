//! The Internet checksum: RFC 1071 (the sum), RFC 1624 (changing it), RFC 9293 section 3.1 and RFC 8200 section 8.1 (the
//! pseudo headers).

use std::net::{Ipv4Addr, Ipv6Addr};

/// A one's complement sum of 16-bit words that is not yet folded.
///
/// Room for 2^32 words of 32 bits before it could overflow, far beyond any frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum(u64);

impl Sum {
    /// The sum of nothing.
    pub const ZERO: Sum = Sum(0);

    /// Adds `bytes`; an odd last byte is padded with zero (RFC 1071, section 1), so only the last call may have one.
    #[must_use]
    pub fn bytes(self, bytes: &[u8]) -> Sum {
        // The sum of longer words folds to the same 16 bits as that of 16-bit words, and in the machine's own order of bytes to
        // the same two bytes (RFC 1071, sections 2 (B) and (C)). Two sums of halves need no carry and no exchange of bytes.
        let (words, rest) = bytes.as_chunks::<8>();
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        let halves = |[low, high]: [u64; 2], word: &[u8; 8]| {
            let word = u64::from_ne_bytes(*word);
            // Neither can overflow, and a check of it would keep the compiler from adding several at a time.
            [low.wrapping_add(word & 0xffff_ffff), high.wrapping_add(word >> 32)]
        };
        let [low, high] = halves(words.iter().fold([0; 2], halves), &last);
        self.word(u16::from_be_bytes(Sum(low + high).fold().to_ne_bytes()))
    }

    /// Adds one 16-bit word.
    #[must_use]
    pub fn word(self, word: u16) -> Sum {
        Sum(self.0 + u64::from(word))
    }

    /// The sum in 16 bits, not complemented: what stands in a partial checksum field.
    #[must_use]
    pub fn fold(self) -> u16 {
        let once = (self.0 & 0xffff_ffff) + (self.0 >> 32);
        let twice = (once & 0xffff) + ((once >> 16) & 0xffff) + (once >> 32);
        let thrice = (twice & 0xffff) + (twice >> 16);
        ((thrice & 0xffff) + (thrice >> 16)) as u16
    }

    /// The checksum: the complement of the sum.
    #[must_use]
    pub fn checksum(self) -> u16 {
        !self.fold()
    }
}

/// The sum of the pseudo header of a segment of `len` bytes over IPv4.
#[must_use]
pub fn pseudo_header_v4(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8, len: u16) -> Sum {
    Sum::ZERO.bytes(&source.octets()).bytes(&destination.octets()).word(u16::from(protocol)).word(len)
}

/// The sum of the pseudo header of a segment of `len` bytes over IPv6.
#[must_use]
pub fn pseudo_header_v6(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8, len: u32) -> Sum {
    Sum::ZERO.bytes(&source.octets()).bytes(&destination.octets()).bytes(&len.to_be_bytes()).word(u16::from(protocol))
}

/// The checksum after one of the summed words changed from `old` to `new` (RFC 1624, equation 3).
#[must_use]
pub fn update(checksum: u16, old: u16, new: u16) -> u16 {
    Sum::ZERO.word(!checksum).word(!old).word(new).checksum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_1071() {
        // Section 3: the words 0001 f203 f4f5 f6f7 sum to ddf2.
        let sum = Sum::ZERO.bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.fold(), 0xddf2);
        assert_eq!(sum.checksum(), !0xddf2);
    }

    #[test]
    fn the_example_of_rfc_1624() {
        // Section 4: checksum dd2f, a word changes from 5555 to 3285, the new checksum is 0000.
        assert_eq!(update(0xdd2f, 0x5555, 0x3285), 0x0000);
    }

    #[test]
    fn an_odd_byte_counts_as_the_high_half_of_a_word() {
        assert_eq!(Sum::ZERO.bytes(&[0xab]).fold(), 0xab00);
        assert_eq!(Sum::ZERO.bytes(&[1, 2, 3]).fold(), 0x0402);
    }

    #[test]
    fn a_real_ipv4_header_sums_to_zero() {
        // The header in the Wikipedia article "Internet checksum", checksum b861.
        let header = [
            0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8,
            0x00, 0xc7,
        ];
        assert_eq!(Sum::ZERO.bytes(&header).checksum(), 0);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_sum_like_the_definition(bytes: Vec<u8>) {
            let mut naive: u32 = 0;
            for pair in bytes.chunks(2) {
                naive += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
                naive = (naive & 0xffff) + (naive >> 16);
            }
            proptest::prop_assert_eq!(u32::from(Sum::ZERO.bytes(&bytes).fold()), naive);
        }

        #[test]
        fn an_update_equals_summing_anew(mut words: [u16; 8], at in 0_usize..8, new: u16) {
            let sum = |words: &[u16; 8]| words.iter().fold(Sum::ZERO, |sum, &word| sum.word(word));
            let before = sum(&words).checksum();
            let old = std::mem::replace(&mut words[at], new);
            let (updated, anew) = (update(before, old, new), sum(&words).checksum());
            // 0000 and ffff are both zero in one's complement; RFC 1624 section 3 shows when they differ.
            proptest::prop_assert!(updated == anew || (updated ^ anew == 0xffff && (updated == 0 || anew == 0)));
        }
    }
}
