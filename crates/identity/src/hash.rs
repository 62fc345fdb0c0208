//! SHA-256 (FIPS 180-4).

use aws_lc_rs::digest::{Context, SHA256};

/// The SHA-256 digest of `parts`, one after the other and with nothing between them.
#[must_use]
pub fn sha256(parts: &[&[u8]]) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-2, appendix B.2: the message of 448 bits, whole and in parts.
    #[test]
    fn parts_hash_like_the_whole() {
        let expected = [
            0x24, 0x8d, 0x6a, 0x61, 0xd2, 0x06, 0x38, 0xb8, 0xe5, 0xc0, 0x26, 0x93, 0x0c, 0x3e, 0x60, 0x39, 0xa3, 0x3c,
            0xe4, 0x59, 0x64, 0xff, 0x21, 0x67, 0xf6, 0xec, 0xed, 0xd4, 0x19, 0xdb, 0x06, 0xc1,
        ];
        assert_eq!(sha256(&[b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"]), expected);
        assert_eq!(sha256(&[b"abcdbcdecdefdefgefghfghighij", b"", b"hijkijkljklmklmnlmnomnopnopq"]), expected);
    }
}
