//! From a shared secret to keys: HKDF with SHA-256 (RFC 5869), and in the paper profile KDF2 with RIPEMD-160.
//!
//! The hash of the handshake is the salt, or the first of KDF2's parameters, so that two sides which saw different handshakes get
//! unrelated keys.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::hmac::{self, Context, HMAC_SHA256, Key};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::agreement::{Secret, SharedSecret};
use crate::paper;

const HASH_LEN: usize = 32;
/// Most bytes that HKDF gives for one label (RFC 5869, section 2.3).
const MAX_OUTPUT_LEN: usize = 255 * HASH_LEN;

/// A secret of 32 bytes that goes into keys beside a key agreement, or beside another of its kind:
/// what an ML-KEM exchange gave, a pre-shared key, or what an association hands on to the next. It
/// is overwritten when dropped.
#[derive(Clone)]
pub struct AddedSecret(Zeroizing<[u8; HASH_LEN]>);

impl AddedSecret {
    /// The secret made of `bytes`.
    #[must_use]
    pub fn from_bytes(bytes: [u8; HASH_LEN]) -> AddedSecret {
        AddedSecret(Zeroizing::new(bytes))
    }
}

impl PartialEq for AddedSecret {
    fn eq(&self, other: &AddedSecret) -> bool {
        self.0[..].ct_eq(&other.0[..]).into()
    }
}

impl Eq for AddedSecret {}

impl fmt::Debug for AddedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AddedSecret(redacted)")
    }
}

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

    /// As [`new`](Schedule::new), with other secrets behind the shared one. Each has 32 bytes, and
    /// the transcript says which there are, so no two sequences are one input. `None` if there are
    /// any in the paper profile, which has none.
    #[must_use]
    pub fn with(shared: &SharedSecret, added: &[&AddedSecret], transcript: &[u8; 32]) -> Option<Self> {
        match &shared.0 {
            _ if added.is_empty() => Some(Schedule::new(shared, transcript)),
            Secret::X25519(secret) => Some(Self::extract(transcript, &joined(secret, added))),
            Secret::Group14(_) => None,
        }
    }

    /// The keys that come from an ML-KEM exchange inside an association, and from what that hands
    /// on.
    #[must_use]
    pub fn encapsulated(encapsulated: &AddedSecret, kept: &AddedSecret, transcript: &[u8; 32]) -> Self {
        Self::extract(transcript, &joined(&encapsulated.0, &[kept]))
    }

    /// What this association hands on to the one that replaces it, so that no secret that went in
    /// is ever lost.
    #[must_use]
    pub fn kept(&self) -> AddedSecret {
        AddedSecret(self.expand(&[b"ringwall cll 2 kept"]))
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
    pub fn from_key(key: &[u8; HASH_LEN]) -> Self {
        Schedule(Derivation::Hkdf(Key::new(HMAC_SHA256, key)))
    }

    pub(crate) fn extract(salt: &[u8], input: &[u8]) -> Self {
        let pseudorandom_key = hmac::sign(&Key::new(HMAC_SHA256, salt), input);
        Schedule(Derivation::Hkdf(Key::new(HMAC_SHA256, pseudorandom_key.as_ref())))
    }
}

/// Secrets one behind the other.
pub(crate) fn joined(first: &[u8; HASH_LEN], others: &[&AddedSecret]) -> Zeroizing<Vec<u8>> {
    let mut input = Zeroizing::new(Vec::with_capacity(HASH_LEN * (1 + others.len())));
    input.extend_from_slice(first);
    others.iter().for_each(|other| input.extend_from_slice(&*other.0));
    input
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
    fn each_added_secret_counts_and_so_does_their_order() {
        let one = KeyPair::from_random(&[1; 32]).expect("key");
        let shared = one.agree(KeyPair::from_random(&[2; 32]).expect("key").public()).expect("shared");
        let added = |seed: u8| AddedSecret::from_bytes([seed; 32]);
        let keys =
            |added: &[&AddedSecret]| *Schedule::with(&shared, added, &[3; 32]).expect("X25519").expand::<32>(&[b"key"]);
        assert_eq!(keys(&[]), *Schedule::new(&shared, &[3; 32]).expand::<32>(&[b"key"]));
        let all = [
            keys(&[]),
            keys(&[&added(5)]),
            keys(&[&added(6)]),
            keys(&[&added(5), &added(6)]),
            keys(&[&added(6), &added(5)]),
        ];
        for (at, key) in all.iter().enumerate() {
            assert!(all[..at].iter().all(|other| other != key), "{at}");
        }
        let inside =
            |kem: u8, kept: u8| *Schedule::encapsulated(&added(kem), &added(kept), &[3; 32]).expand::<32>(&[b"key"]);
        assert!(inside(1, 2) != inside(1, 3) && inside(1, 2) != inside(3, 2) && inside(1, 2) == inside(1, 2));
        assert!(Schedule::new(&shared, &[3; 32]).kept() != Schedule::new(&shared, &[4; 32]).kept());
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
