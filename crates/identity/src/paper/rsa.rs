//! RSA keys of 1024 to 2048 bits that sign with PSS and SHA-1, SHA-256 or RIPEMD-160 (the CLL paper, Table 1).
//!
//! A certificate names such a key as id-RSASSA-PSS with the hash among its parameters (RFC 4055, section 3.1), so that the hash
//! is the authority's word and no message can choose another.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::hmac::{self, HMAC_SHA256};
use chacha20::ChaCha20Rng;
use digest::{Digest, FixedOutputReset, Update};
use rand_core::SeedableRng;
use ripemd::Ripemd160;
use rsa::pkcs1::{DecodeRsaPrivateKey, DecodeRsaPublicKey, EncodeRsaPrivateKey, EncodeRsaPublicKey};
use rsa::pss::{self, Signature, VerifyingKey, get_default_pss_signature_algo_id};
use rsa::signature::{RandomizedSigner, SignatureEncoding, Verifier};
use rsa::traits::PublicKeyParts;
use rsa::{RsaPrivateKey, RsaPublicKey};
use sha1::Sha1;
use sha2::Sha256;
use x509_cert::der::asn1::BitString;
use x509_cert::der::{Decode, Encode};
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};
use zeroize::Zeroizing;

use crate::KeyError;
use crate::certificate::BadSignature;
use crate::profile::{RSA_RANDOM_LEN, RsaHash, RsaKey};

trait Verify: Send + Sync {
    fn verifies(&self, message: &[u8], signature: &Signature) -> bool;
}

impl<D: Digest + FixedOutputReset + Send + Sync> Verify for VerifyingKey<D> {
    fn verifies(&self, message: &[u8], signature: &Signature) -> bool {
        self.verify(message, signature).is_ok()
    }
}

trait Sign: Send + Sync {
    fn signature(&self, random: &mut ChaCha20Rng, message: &[u8]) -> Option<Vec<u8>>;
}

impl<D: Digest + FixedOutputReset + Update + Send + Sync> Sign for pss::SigningKey<D> {
    fn signature(&self, random: &mut ChaCha20Rng, message: &[u8]) -> Option<Vec<u8>> {
        self.try_sign_with_rng(random, message).ok().map(|signature| signature.to_vec())
    }
}

/// A public key and its hash.
#[derive(Clone)]
pub(crate) struct PublicKey {
    hash: RsaHash,
    modulus_bytes: usize,
    /// RSAPublicKey in DER (RFC 8017, appendix A.1.1).
    bytes: Vec<u8>,
    verify: Arc<dyn Verify>,
}

impl PublicKey {
    fn new(hash: RsaHash, key: RsaPublicKey) -> Option<PublicKey> {
        let modulus_bytes = key.size();
        let bits = u16::try_from(modulus_bytes * 8).ok()?;
        RsaKey::new(bits, hash)?;
        let bytes = key.to_pkcs1_der().ok()?.as_bytes().to_vec();
        let verify: Arc<dyn Verify> = match hash {
            RsaHash::Sha1 => Arc::new(VerifyingKey::<Sha1>::new(key)),
            RsaHash::Sha256 => Arc::new(VerifyingKey::<Sha256>::new(key)),
            RsaHash::Ripemd160 => Arc::new(VerifyingKey::<Ripemd160>::new(key)),
        };
        Some(PublicKey { hash, modulus_bytes, bytes, verify })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Length of the modulus and so of every signature, in bytes.
    pub(crate) fn modulus_len(&self) -> usize {
        self.modulus_bytes
    }

    /// RFC 8017, section 8.1.2, with a salt as long as the hash.
    pub(crate) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        let signature = Signature::try_from(signature).map_err(|_| BadSignature)?;
        if self.verify.verifies(message, &signature) { Ok(()) } else { Err(BadSignature) }
    }

    /// The key in DER; `None` when the encoder fails, which it does for no key.
    pub(crate) fn to_spki(&self) -> Option<Vec<u8>> {
        let subject_public_key = BitString::from_bytes(&self.bytes).ok()?;
        SubjectPublicKeyInfoOwned { algorithm: algorithm(self.hash)?, subject_public_key }.to_der().ok()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicKey").field("hash", &self.hash).finish_non_exhaustive()
    }
}

fn algorithm(hash: RsaHash) -> Option<AlgorithmIdentifierOwned> {
    match hash {
        RsaHash::Sha1 => get_default_pss_signature_algo_id::<Sha1>(),
        RsaHash::Sha256 => get_default_pss_signature_algo_id::<Sha256>(),
        RsaHash::Ripemd160 => get_default_pss_signature_algo_id::<Ripemd160>(),
    }
    .ok()
}

/// The key in `spki`; `None` for any other kind of key.
pub(super) fn public_key(spki: &[u8]) -> Option<PublicKey> {
    let parsed = SubjectPublicKeyInfoOwned::from_der(spki).ok()?;
    let key = RsaPublicKey::from_pkcs1_der(parsed.subject_public_key.as_bytes()?).ok()?;
    let hash = RsaHash::ALL.into_iter().find(|hash| algorithm(*hash).as_ref() == Some(&parsed.algorithm))?;
    PublicKey::new(hash, key).filter(|key| key.to_spki().as_deref() == Some(spki))
}

/// A secret key and its hash.
pub(crate) struct SigningKey {
    /// Makes the salts.
    salting: hmac::Key,
    sign: Box<dyn Sign>,
    public: PublicKey,
}

impl SigningKey {
    /// Reads the key as it is kept: the number of its hash, and RSAPrivateKey in DER.
    pub(crate) fn from_block(hash: RsaHash, der: &[u8]) -> Result<SigningKey, KeyError> {
        let key = RsaPrivateKey::from_pkcs1_der(der).map_err(|_| KeyError::Unsupported)?;
        let public = PublicKey::new(hash, key.to_public_key()).ok_or(KeyError::Unsupported)?;
        let sign: Box<dyn Sign> = match hash {
            RsaHash::Sha1 => Box::new(pss::SigningKey::<Sha1>::new(key)),
            RsaHash::Sha256 => Box::new(pss::SigningKey::<Sha256>::new(key)),
            RsaHash::Ripemd160 => Box::new(pss::SigningKey::<Ripemd160>::new(key)),
        };
        Ok(SigningKey { salting: hmac::Key::new(HMAC_SHA256, der), sign, public })
    }

    pub(crate) fn public(&self) -> &PublicKey {
        &self.public
    }

    /// RFC 8017, section 8.1.1. The salt, and what blinds the secret exponent, follow from key and message, as the secret numbers of
    /// DSA do here: nobody else can tell them, and no source of randomness can be a bad one.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let mut seed = Zeroizing::new([0; 32]);
        seed.copy_from_slice(hmac::sign(&self.salting, message).as_ref());
        let mut random = ChaCha20Rng::from_seed(*seed);
        self.sign.signature(&mut random, message).ok_or(KeyError::Refused)
    }
}

/// A new secret key as [`SigningKey::from_block`] reads it behind the number of its hash, made from `random`. Empty when the
/// library fails, which no reader takes for a key.
#[must_use]
pub fn new_rsa_key_block(kind: RsaKey, random: &[u8; RSA_RANDOM_LEN]) -> Zeroizing<Vec<u8>> {
    let mut generator = ChaCha20Rng::from_seed(*random);
    let der = RsaPrivateKey::new(&mut generator, usize::from(kind.bits()));
    let der = der.ok().and_then(|key| key.to_pkcs1_der().ok());
    let mut block = Zeroizing::default();
    if let Some(der) = der {
        Vec::push(&mut block, kind.hash().block_number());
        block.extend_from_slice(der.as_bytes());
    }
    block
}
