//! From a shared secret to keys: HKDF with SHA-256 (RFC 5869), and in the paper profile KDF2 with RIPEMD-160.
//!
//! The hash of the handshake is the salt, or the first of KDF2's parameters, so that two sides which saw different handshakes get
//! unrelated keys.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::hmac::{self, Context, HMAC_SHA256, Key};
use zeroize::Zeroizing;

use crate::agreement::{Secret, SharedSecret};
use crate::paper;

const HASH_LEN: usize = 32;
/// Most bytes that HKDF gives for one label (RFC 5869, section 2.3).
const MAX_OUTPUT_LEN: usize = 255 * HASH_LEN;

/// The keys of one association, made as they are asked for.
pub struct Schedule(Derivation);

// One lives through a handshake, on the stack; an allocation would cost more than its size.
#[expect(clippy::large_enum_variant)]
enum Derivation {
    /// HKDF's pseudorandom key.
    Hkdf(Key),
    /// The shared secret, and the transcript.
    Kdf2(Arc<paper::GroupSecret>, [u8; HASH_LEN]),
}

impl Schedule {
    /// `transcript` is the SHA-256 of the whole handshake; HKDF-Extract takes it as salt.
    #[must_use]
    pub fn new(shared: &SharedSecret, transcript: &[u8; 32]) -> Self {
        match &shared.0 {
            Secret::X25519(secret) => Self::extract(transcript, &**secret),
            Secret::Group14(secret) => Schedule(Derivation::Kdf2(Arc::clone(secret), *transcript)),
        }
    }

    /// `N` bytes for `label`, whose parts are put one after the other with nothing between them. Callers
    /// keep labels unambiguous: fixed words first, then fields of fixed length.
    #[must_use]
    pub fn expand<const N: usize>(&self, label: &[&[u8]]) -> Zeroizing<[u8; N]> {
        const { assert!(N <= MAX_OUTPUT_LEN, "HKDF gives at most 255 blocks") };
        let mut output = Zeroizing::new([0; N]);
        match &self.0 {
            Derivation::Hkdf(key) => hkdf_expand(key, label, &mut *output),
            Derivation::Kdf2(secret, transcript) => secret.derive(transcript, label, &mut *output),
        }
        output
    }

    /// A key that is uniformly random already needs no HKDF-Extract (RFC 5869, section 3.3).
    #[must_use]
    pub(crate) fn from_key(key: &[u8; HASH_LEN]) -> Self {
        Schedule(Derivation::Hkdf(Key::new(HMAC_SHA256, key)))
    }

    pub(crate) fn extract(salt: &[u8], input: &[u8]) -> Self {
        let pseudorandom_key = hmac::sign(&Key::new(HMAC_SHA256, salt), input);
        Schedule(Derivation::Hkdf(Key::new(HMAC_SHA256, pseudorandom_key.as_ref())))
    }
}

/// HKDF-Expand (RFC 5869, section 2.3).
fn hkdf_expand(key: &Key, label: &[&[u8]], output: &mut [u8]) {
    let mut previous = Zeroizing::new([0; HASH_LEN]);
    let mut previous_len = 0;
    for (chunk, counter) in output.chunks_mut(HASH_LEN).zip(1u8..=255) {
        let mut context = Context::with_key(key);
        context.update(&previous[..previous_len]);
        for part in label {
            context.update(part);
        }
        context.update(&[counter]);
        previous.copy_from_slice(context.sign().as_ref());
        previous_len = HASH_LEN;
        chunk.copy_from_slice(&previous[..chunk.len()]);
    }
}

impl fmt::Debug for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schedule(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::KeyPair;
    use crate::test_hex::{array, bytes};

    /// RFC 5869, appendix A.1: the usual case, the label given in parts.
    #[test]
    fn the_first_vector_of_rfc_5869() {
        let schedule = Schedule::extract(&bytes("000102030405060708090a0b0c"), &[0x0b; 22]);
        let expected = "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865";
        let label = bytes("f0f1f2f3f4f5f6f7f8f9");
        assert_eq!(*schedule.expand::<42>(&[&label]), array(expected));
        assert_eq!(*schedule.expand::<42>(&[&label[..3], &[], &label[3..]]), array(expected));
    }

    /// RFC 5869, appendix A.2: long inputs, an output of three blocks.
    #[test]
    fn the_second_vector_of_rfc_5869() {
        let range = |from: u8, until: u8| (from..=until).collect::<Vec<u8>>();
        let schedule = Schedule::extract(&range(0x60, 0xaf), &range(0, 0x4f));
        let expected = "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09\
                        da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87";
        assert_eq!(*schedule.expand::<82>(&[&range(0xb0, 0xff)]), array(expected));
    }

    /// RFC 5869, appendix A.3: neither salt nor label.
    #[test]
    fn the_third_vector_of_rfc_5869() {
        let schedule = Schedule::extract(&[], &[0x0b; 22]);
        let expected = "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8";
        assert_eq!(*schedule.expand::<42>(&[]), array(expected));
    }

    #[test]
    fn another_transcript_gives_unrelated_keys() {
        let one = KeyPair::from_random(&[1; 32]).expect("key");
        let shared = one.agree(KeyPair::from_random(&[2; 32]).expect("key").public()).expect("shared");
        let keys = |transcript: [u8; 32]| *Schedule::new(&shared, &transcript).expand::<32>(&[b"key"]);
        assert_eq!(keys([3; 32]), keys([3; 32]));
        assert_ne!(keys([3; 32]), keys([4; 32]));
    }
}
