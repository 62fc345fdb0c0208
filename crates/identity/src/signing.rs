//! Signing with a host's own key.

use std::fmt;

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _, RSA_PSS_SHA256, RsaKeyPair,
};
use zeroize::Zeroizing;

use crate::certificate::KeyKind;
use crate::profile::{PAIR_RANDOM_LEN, Profile, RsaHash};
use crate::{KeyError, paper, pem};

/// Two numbers of 20 bytes.
const PAPER_SIGNATURE_LEN: usize = 40;

enum Kind {
    Ed25519(Ed25519KeyPair),
    EcdsaP256(EcdsaKeyPair),
    RsaPss(RsaKeyPair),
    Paper(Box<paper::SigningKey>),
    PaperRsa(Box<paper::RsaSigningKey>),
}

/// A private signature key. Its signatures are Ed25519 (RFC 8032, 64 bytes), ECDSA on P-256 with SHA-256 (the two numbers
/// of 32 bytes, without DER), RSA-PSS with SHA-256 and a 32-byte salt (as long as the modulus), or in the paper profile DSA with
/// SHA-1 (the two numbers of 20 bytes) or RSA-PSS with the hash and the salt that its certificate names (as long as the modulus).
pub struct SigningKey(Kind);

impl SigningKey {
    /// Reads the key from a text that holds exactly one PEM block, in PKCS#8.
    ///
    /// # Errors
    /// Malformed PEM, another label (an encrypted key has one), or an algorithm that is not spoken here.
    pub fn from_pkcs8_pem(text: &str) -> Result<Self, KeyError> {
        Self::from_pkcs8_der(&pem::single(text, pem::PRIVATE_KEY)?)
    }

    /// Reads the key from PKCS#8 in DER.
    ///
    /// # Errors
    /// [`KeyError::Unsupported`] for any other structure or algorithm.
    pub fn from_pkcs8_der(der: &[u8]) -> Result<Self, KeyError> {
        if let Ok(key) = Ed25519KeyPair::from_pkcs8(der) {
            return Ok(SigningKey(Kind::Ed25519(key)));
        }
        if let Ok(key) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der) {
            return Ok(SigningKey(Kind::EcdsaP256(key)));
        }
        RsaKeyPair::from_pkcs8(der).map(|key| SigningKey(Kind::RsaPss(key))).map_err(|_| KeyError::Unsupported)
    }

    /// Reads a key of the paper profile: the number of its algorithm, and DSA's secret number of 20 bytes or an RSAPrivateKey in DER.
    ///
    /// # Errors
    /// [`KeyError::Length`], or [`KeyError::Unsupported`] for an unknown algorithm or a number that is no key.
    pub fn from_paper_block(bytes: &[u8]) -> Result<Self, KeyError> {
        match bytes.split_first().and_then(|(number, der)| Some((RsaHash::of_block_number(*number)?, der))) {
            Some((hash, der)) => {
                paper::RsaSigningKey::from_block(hash, der).map(|key| SigningKey(Kind::PaperRsa(Box::new(key))))
            }
            None => paper::SigningKey::from_block(bytes).map(|key| SigningKey(Kind::Paper(Box::new(key)))),
        }
    }

    /// The profile that the key belongs to.
    #[must_use]
    pub fn profile(&self) -> Profile {
        if matches!(self.0, Kind::Paper(_) | Kind::PaperRsa(_)) { Profile::Paper } else { Profile::Modern }
    }

    /// Whether exponentials should be made ahead with [`prepare`](SigningKey::prepare); never for a modern key.
    #[must_use]
    pub fn wants_preparation(&self) -> bool {
        matches!(&self.0, Kind::Paper(key) if key.wants_pairs())
    }

    /// Computes what the next `count` signatures need and what does not depend on what is signed (the paper's section 5.1): work
    /// for an idle moment, up to 0.2 ms for each. `random` is fresh and unguessable.
    pub fn prepare(&self, random: &[u8; PAIR_RANDOM_LEN], count: usize) {
        if let Kind::Paper(key) = &self.0 {
            key.make_pairs(random, count);
        }
    }

    /// The public half of a key of the paper profile as SubjectPublicKeyInfo in DER, for a certificate; `None` for a modern key.
    #[must_use]
    pub fn paper_spki(&self) -> Option<Vec<u8>> {
        match &self.0 {
            Kind::Paper(key) => key.public().to_spki(),
            Kind::PaperRsa(key) => key.public().to_spki(),
            Kind::Ed25519(_) | Kind::EcdsaP256(_) | Kind::RsaPss(_) => None,
        }
    }

    /// The signature of `message`.
    ///
    /// # Errors
    /// [`KeyError::Refused`] when the library fails, which a valid key does not bring about.
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        match &self.0 {
            Kind::Ed25519(key) => key.try_sign(message).map(|signature| signature.as_ref().to_vec()),
            Kind::EcdsaP256(key) => {
                key.sign(&SystemRandom::new(), message).map(|signature| signature.as_ref().to_vec())
            }
            Kind::RsaPss(key) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(&RSA_PSS_SHA256, &SystemRandom::new(), message, &mut signature).map(|()| signature)
            }
            Kind::Paper(key) => return key.sign(message),
            Kind::PaperRsa(key) => return key.sign(message),
        }
        .map_err(|_| KeyError::Refused)
    }

    /// Bytes of each of its signatures.
    #[must_use]
    pub fn signature_len(&self) -> usize {
        match &self.0 {
            Kind::Ed25519(_) | Kind::EcdsaP256(_) => 64,
            Kind::RsaPss(key) => key.public_modulus_len(),
            Kind::Paper(_) => PAPER_SIGNATURE_LEN,
            Kind::PaperRsa(key) => key.public().modulus_len(),
        }
    }

    /// The public half as an S-ARP record names it: the algorithm's number and the bytes. `None` for RSA.
    #[must_use]
    pub fn record_key(&self) -> Option<(u8, &[u8])> {
        let number = match &self.0 {
            Kind::Ed25519(_) => KeyKind::Ed25519.record_number(),
            Kind::EcdsaP256(_) => KeyKind::EcdsaP256.record_number(),
            Kind::RsaPss(_) | Kind::PaperRsa(_) => KeyKind::Rsa.record_number(),
            Kind::Paper(key) => Some(key.public().length().record_number()),
        };
        Some((number?, self.public_bytes()))
    }

    /// The public half, as the bit string of a certificate's SubjectPublicKeyInfo holds it, or as a record does.
    pub(crate) fn public_bytes(&self) -> &[u8] {
        match &self.0 {
            Kind::Ed25519(key) => key.public_key().as_ref(),
            Kind::EcdsaP256(key) => key.public_key().as_ref(),
            Kind::RsaPss(key) => key.public_key().as_ref(),
            Kind::Paper(key) => key.public().bytes(),
            Kind::PaperRsa(key) => key.public().bytes(),
        }
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Ed25519(_) => "SigningKey(Ed25519, redacted)",
            Kind::EcdsaP256(_) => "SigningKey(ECDSA P-256, redacted)",
            Kind::RsaPss(_) => "SigningKey(RSA-PSS, redacted)",
            Kind::Paper(_) => "SigningKey(DSA, redacted)",
            Kind::PaperRsa(_) => "SigningKey(RSA-PSS of the paper profile, redacted)",
        })
    }
}

/// The PKCS#8 form (version 1, which every tool reads) of the Ed25519 key made from `seed`.
///
/// # Errors
/// [`KeyError::Refused`] when the library fails, which it does for no seed.
pub fn ed25519_pkcs8_from_seed(seed: &[u8; 32]) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let key = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| KeyError::Refused)?;
    let document = key.to_pkcs8v1().map_err(|_| KeyError::Refused)?;
    Ok(Zeroizing::new(document.as_ref().to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pem::PemError;
    use crate::test_hex::{array, bytes};

    /// RFC 8032, section 7.1, test 2, and RFC 8410, section 10.3, for the PKCS#8 form around the seed.
    #[test]
    fn a_seed_makes_the_key_of_rfc_8032() {
        let seed = array("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb");
        let der = ed25519_pkcs8_from_seed(&seed).expect("key");
        assert_eq!(**der, [&bytes("302e020100300506032b657004220420")[..], &seed].concat());

        let key = SigningKey::from_pkcs8_pem(&pem::encode(pem::PRIVATE_KEY, &der)).expect("own key");
        assert_eq!(key.public_bytes(), bytes("3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c"));
        let signature = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
        assert_eq!(key.sign(&[0x72]).expect("signature"), bytes(signature));
        assert_eq!(format!("{key:?}"), "SigningKey(Ed25519, redacted)");
    }

    #[test]
    fn other_files_are_refused_by_name() {
        let refusal = |text: &str| SigningKey::from_pkcs8_pem(text).map(drop).expect_err("not a key");
        assert_eq!(refusal("no key"), KeyError::Pem(PemError::Empty));
        assert_eq!(refusal(&pem::encode(pem::PRIVATE_KEY, b"junk")), KeyError::Unsupported);
        let wrong = KeyError::Pem(PemError::WrongLabel(pem::PRIVATE_KEY));
        assert_eq!(refusal(&pem::encode(pem::CERTIFICATE, b"junk")), wrong);
    }
}
