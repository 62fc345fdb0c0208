//! ML-KEM-768 (FIPS 203): a key encapsulation that no quantum computer is known to break.
//!
//! It stands beside X25519, never in its place: what it gives is mixed into keys as a second secret
//! ([`AddedSecret`]), so that whoever wants them must break both.

use std::fmt;

use aws_lc_rs::kem::{Ciphertext, DecapsulationKey, EncapsulationKey, ML_KEM_768};

use crate::schedule::AddedSecret;
use crate::{BadKeyShare, KeyError};

/// Bytes of an encapsulation key (FIPS 203, table 3).
pub const ENCAPSULATION_KEY_LEN: usize = 1184;
/// Bytes of a ciphertext.
pub const CIPHERTEXT_LEN: usize = 1088;

/// A pair of keys for one exchange.
pub struct KemPair {
    private: DecapsulationKey,
    public: Vec<u8>,
}

impl KemPair {
    /// A new pair. The library draws it from the kernel's generator; it takes no other.
    ///
    /// # Errors
    /// [`KeyError::Refused`] when the library has no randomness.
    pub fn generate() -> Result<KemPair, KeyError> {
        let private = DecapsulationKey::generate(&ML_KEM_768).map_err(|_| KeyError::Refused)?;
        let public = private.encapsulation_key().and_then(|key| key.key_bytes()).map_err(|_| KeyError::Refused)?;
        Ok(KemPair { private, public: public.as_ref().to_vec() })
    }

    /// A pair that was made before: 2,400 bytes and [`ENCAPSULATION_KEY_LEN`]. For golden examples;
    /// an exchange takes a new one.
    ///
    /// # Errors
    /// [`KeyError::Refused`] for another number of bytes.
    pub fn from_bytes(private: &[u8], public: &[u8]) -> Result<KemPair, KeyError> {
        let private = DecapsulationKey::new(&ML_KEM_768, private).map_err(|_| KeyError::Refused)?;
        Ok(KemPair { private, public: public.to_vec() })
    }

    /// The half that goes to the peer.
    #[must_use]
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// The secret in `ciphertext`. One that was not made for this pair gives a secret that nobody
    /// else has (FIPS 203, section 6.3), so it is refused only by what is sealed under it.
    ///
    /// # Errors
    /// [`BadKeyShare`] when it has another length.
    pub fn decapsulate(&self, ciphertext: &[u8]) -> Result<AddedSecret, BadKeyShare> {
        if ciphertext.len() != CIPHERTEXT_LEN {
            return Err(BadKeyShare);
        }
        let secret = self.private.decapsulate(Ciphertext::from(ciphertext)).map_err(|_| BadKeyShare)?;
        secret.as_ref().try_into().map(AddedSecret::from_bytes).map_err(|_| BadKeyShare)
    }
}

impl fmt::Debug for KemPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KemPair(redacted)")
    }
}

/// A fresh secret for the owner of `public`, and the ciphertext that takes it there.
///
/// # Errors
/// [`BadKeyShare`] when `public` is no encapsulation key (FIPS 203, section 7.2).
pub fn encapsulate(public: &[u8]) -> Result<(Vec<u8>, AddedSecret), BadKeyShare> {
    let public = EncapsulationKey::new(&ML_KEM_768, public).map_err(|_| BadKeyShare)?;
    let (ciphertext, secret) = public.encapsulate().map_err(|_| BadKeyShare)?;
    let secret = secret.as_ref().try_into().map_err(|_| BadKeyShare)?;
    Ok((ciphertext.as_ref().to_vec(), AddedSecret::from_bytes(secret)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sides_have_one_secret_and_each_exchange_another() {
        let pair = KemPair::generate().expect("a pair");
        let (ciphertext, secret) = encapsulate(pair.public()).expect("encapsulated");
        assert_eq!((pair.public().len(), ciphertext.len()), (ENCAPSULATION_KEY_LEN, CIPHERTEXT_LEN));
        assert!(pair.decapsulate(&ciphertext).expect("decapsulated") == secret);
        let (_, other) = encapsulate(pair.public()).expect("encapsulated");
        assert!(other != secret);
        assert_ne!(KemPair::generate().expect("a pair").public(), pair.public());
    }

    #[test]
    fn a_changed_ciphertext_gives_another_secret_and_a_short_one_none() {
        let pair = KemPair::generate().expect("a pair");
        let (mut ciphertext, secret) = encapsulate(pair.public()).expect("encapsulated");
        assert!(pair.decapsulate(&ciphertext[1..]).is_err());
        ciphertext[7] ^= 1;
        assert!(pair.decapsulate(&ciphertext).expect("decapsulated") != secret);
        assert!(KemPair::generate().expect("a pair").decapsulate(&ciphertext).expect("decapsulated") != secret);
    }

    /// FIPS 203, section 7.2: the length, and no number that is not below the modulus.
    #[test]
    fn what_is_no_key_is_refused() {
        let pair = KemPair::generate().expect("a pair");
        for public in [&pair.public()[1..], &[pair.public(), &[0]].concat(), &[], &[0xff; ENCAPSULATION_KEY_LEN]] {
            assert_eq!(encapsulate(public).map(drop), Err(BadKeyShare), "{} bytes", public.len());
        }
    }

    #[test]
    fn nothing_secret_is_printed() {
        let pair = KemPair::generate().expect("a pair");
        let (_, secret) = encapsulate(pair.public()).expect("encapsulated");
        assert_eq!(format!("{pair:?} {secret:?}"), "KemPair(redacted) AddedSecret(redacted)");
    }
}
