//! KDF2 with RIPEMD-160 (IEEE 1363a-2004, section 13.2; ISO 18033-2, section 6.2.3), the paper's key derivation (Table 1).

use ripemd::{Digest, Ripemd160};
use zeroize::Zeroize;

/// Fills `output` from the shared secret and the derivation parameters, whose parts are put one after the other: the hashes
/// of secret, counter from 1 on in four bytes, and parameters.
pub(super) fn kdf2(secret: &[u8], parameters: &[&[u8]], output: &mut [u8]) {
    for (counter, chunk) in (1_u32..).zip(output.chunks_mut(20)) {
        let mut hash = Ripemd160::new_with_prefix(secret);
        hash.update(counter.to_be_bytes());
        parameters.iter().for_each(|part| hash.update(part));
        let mut block = hash.finalize();
        chunk.copy_from_slice(&block[..chunk.len()]);
        block.as_mut_slice().zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_hex::bytes;

    /// Made with Python's hashlib over OpenSSL: RIPEMD-160 of 00 01 .. 1f, the counter, and "label", twice and cut to 36 bytes.
    #[test]
    fn blocks_follow_the_definition() {
        let secret: Vec<u8> = (0..32).collect();
        let mut output = [0; 36];
        kdf2(&secret, &[b"la", b"bel"], &mut output);
        assert_eq!(output.to_vec(), bytes("b2e6dd22ec693c2c1bc583357d455916deb597d7fe02993fe9383282abef9535d6036867"));
    }
}
