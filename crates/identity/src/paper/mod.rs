//! The paper profile. Here the keys of S-ARP: DSA (FIPS 186-2) with SHA-1, of 512 or 1024 bits, as in section 3.3 of its paper.
//!
//! Never for real use. It is here so that the paper's tables can be measured again, with the paper's optimisation (section
//! 5.1): the exponentials of signatures are made ahead. All keys of one length share the primes and the generator of a
//! standard, so that a key is one number and nobody can bring primes of his own. The arithmetic is crypto-bigint's, in
//! constant time where a secret takes part; hashes are those of AWS-LC.
//!
//! `group.rs`: the primes and what is computed with them. `secret.rs`: the secret numbers of signatures. `spki.rs`: a public
//! key in a certificate.
//!
//! For CLL (its paper's Table 1, record 0037): `suite.rs` names the suites of CBC and HMAC, `frames.rs` seals with them, `cipher`
//! and `has160.rs` are algorithms that no well-kept crate has, `diffie_hellman.rs` and `derivation.rs` make keys, `rsa.rs` signs
//! handshakes, `second_key.rs` is what a certificate names.

mod cipher;
mod derivation;
mod diffie_hellman;
mod frames;
mod group;
mod has160;
mod rsa;
mod second_key;
mod secret;
mod spki;
mod suite;

use std::sync::{Mutex, MutexGuard, PoisonError};

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use zeroize::{Zeroize, Zeroizing};

use self::group::{Arithmetic, Scalar};
use self::secret::Secrets;
use crate::KeyError;
use crate::certificate::BadSignature;
use crate::limits::{PAIRS_AHEAD_MAX, PAIRS_PER_BATCH};
use crate::profile::{KEY_RANDOM_LEN, KeyLength, PAIR_RANDOM_LEN};

pub(crate) use self::diffie_hellman::{GroupSecret, KeyPair as GroupKeyPair};
pub(crate) use self::frames::FrameKey;
pub(crate) use self::rsa::SigningKey as RsaSigningKey;
pub use self::rsa::new_rsa_key_block;
pub(crate) use self::second_key::SecondKey;
pub use self::suite::PaperSuite;

/// Bytes of q, of a secret key, and of SHA-1.
const SCALAR_LEN: usize = 20;
/// Bytes of a signature: r and s, without DER.
const SIGNATURE_LEN: usize = 2 * SCALAR_LEN;
fn arithmetic(length: KeyLength) -> &'static dyn Arithmetic {
    match length {
        KeyLength::Bits512 => &*group::BITS_512,
        KeyLength::Bits1024 => &*group::BITS_1024,
    }
}

/// A public key: the number y, as long as the prime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PublicKey {
    length: KeyLength,
    bytes: Vec<u8>,
}

impl PublicKey {
    /// The key whose number is `bytes`; `None` outside of its range. That it is a power of g is looked at in certificates; who
    /// proves that he signs with another number harms himself.
    pub(crate) fn new(length: KeyLength, bytes: &[u8]) -> Option<PublicKey> {
        let is_one = bytes.len() == length.bytes() && arithmetic(length).is_in_range(bytes);
        is_one.then(|| PublicKey { length, bytes: bytes.to_vec() })
    }

    pub(crate) fn length(&self) -> KeyLength {
        self.length
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// FIPS 186-2, section 6.
    pub(crate) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        let signature: &[u8; SIGNATURE_LEN] = signature.try_into().map_err(|_| BadSignature)?;
        let (r, s) = signature.split_at(SCALAR_LEN);
        let group = arithmetic(self.length);
        let r = group.scalar(r).ok_or(BadSignature)?;
        let inverse = group.invert(&group.scalar(s).ok_or(BadSignature)?).ok_or(BadSignature)?;
        let z = group.reduce(&hash(message));
        let found = group.combine(&self.bytes, &group.multiply(&z, &inverse), &group.multiply(&r, &inverse));
        if found == r { Ok(()) } else { Err(BadSignature) }
    }
}

/// The half of a signature that does not depend on the message: r, and the inverse of the secret number k behind it. It
/// serves once, because two signatures with one k give the key away, and is overwritten then.
struct Pair {
    r: Scalar,
    inverse: Scalar,
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.r.zeroize();
        self.inverse.zeroize();
    }
}

/// A secret key, and what was computed ahead for its signatures.
pub(crate) struct SigningKey {
    x: Zeroizing<[u8; SCALAR_LEN]>,
    public: PublicKey,
    pairs: Mutex<Vec<Pair>>,
}

impl SigningKey {
    /// Reads the key as it is kept: the number of its algorithm, and x.
    pub(crate) fn from_block(bytes: &[u8]) -> Result<SigningKey, KeyError> {
        let wrong = || KeyError::Length { expected: 1 + SCALAR_LEN, found: bytes.len() };
        let (number, x) = bytes.split_first().ok_or_else(wrong)?;
        let x: &[u8; SCALAR_LEN] = x.try_into().map_err(|_| wrong())?;
        let length = KeyLength::of_record_number(*number).ok_or(KeyError::Unsupported)?;
        let secret = Zeroizing::new(arithmetic(length).scalar(x).ok_or(KeyError::Unsupported)?);
        let public = PublicKey { length, bytes: arithmetic(length).public(&secret) };
        Ok(SigningKey { x: Zeroizing::new(*x), public, pairs: Mutex::default() })
    }

    pub(crate) fn public(&self) -> &PublicKey {
        &self.public
    }

    /// FIPS 186-2, section 5. Without a pair that was made ahead, the secret number follows from key and message (RFC 6979).
    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let group = arithmetic(self.public.length);
        let z = group.reduce(&hash(message));
        let x = Zeroizing::new(group.scalar(&*self.x).ok_or(KeyError::Refused)?);
        let ahead = self.pairs().pop();
        let pair = match ahead {
            Some(pair) => pair,
            None => self.pair(&mut Secrets::new(&self.x, &group.bytes(&z), &[])),
        };
        let s = group.multiply(&pair.inverse, &group.add(&z, &group.multiply(&x, &pair.r)));
        // It is zero once in 2^160 signatures.
        let s = group.scalar(&group.bytes(&s)).ok_or(KeyError::Refused)?;
        Ok([group.bytes(&pair.r), group.bytes(&s)].concat())
    }

    /// Whether a batch of pairs has room.
    pub(crate) fn wants_pairs(&self) -> bool {
        self.pairs().len() + PAIRS_PER_BATCH <= PAIRS_AHEAD_MAX
    }

    /// Makes so many pairs ahead and keeps those that have room. Their secret numbers follow from the key and `random`, so that neither a weak source nor
    /// one that repeats itself gives the key away by itself.
    pub(crate) fn make_pairs(&self, random: &[u8; PAIR_RANDOM_LEN], count: usize) {
        let mut secrets = Secrets::new(&self.x, &[0; SCALAR_LEN], random);
        let made: Vec<Pair> = (0..count.min(PAIRS_AHEAD_MAX)).map(|_| self.pair(&mut secrets)).collect();
        let mut pairs = self.pairs();
        let room = PAIRS_AHEAD_MAX - pairs.len();
        pairs.extend(made.into_iter().take(room));
    }

    /// The next secret number that serves, and what follows from it.
    fn pair(&self, secrets: &mut Secrets) -> Pair {
        let group = arithmetic(self.public.length);
        loop {
            let Some(k) = group.scalar(&*secrets.next()).map(Zeroizing::new) else { continue };
            let (r, inverse) = (group.exponential(&k), group.invert(&k));
            // r is zero once in 2^160 numbers, and none but zero lacks an inverse.
            if let (Some(_), Some(inverse)) = (group.scalar(&group.bytes(&r)), inverse) {
                return Pair { r, inverse };
            }
        }
    }

    fn pairs(&self) -> MutexGuard<'_, Vec<Pair>> {
        // A thread that died took what it held with it; what is left is whole.
        self.pairs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A new secret key as [`SigningKey::from_block`] reads it, made from `random`.
#[must_use]
pub fn new_key_block(length: KeyLength, random: &[u8; KEY_RANDOM_LEN]) -> Zeroizing<Vec<u8>> {
    let x = arithmetic(length).secret(random);
    let mut block = Zeroizing::new(vec![length.record_number()]);
    block.extend_from_slice(&*x);
    block
}

fn hash(message: &[u8]) -> [u8; SCALAR_LEN] {
    let mut hash = [0; SCALAR_LEN];
    hash.copy_from_slice(digest(&SHA1_FOR_LEGACY_USE_ONLY, message).as_ref());
    hash
}

#[cfg(test)]
mod tests;
