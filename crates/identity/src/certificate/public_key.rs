//! The public key in a host's certificate.

use std::fmt;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, ParsedPublicKey, RSA_PSS_2048_8192_SHA256, VerificationAlgorithm,
};
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::spki::SubjectPublicKeyInfoOwned;

use super::Refusal;

const ID_ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const ID_EC_PUBLIC_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const ID_P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const ID_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");

/// The signature is not that of this key over this message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadSignature;

impl fmt::Display for BadSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the signature does not match")
    }
}

impl std::error::Error for BadSignature {}

/// The kinds of key that a host may have. The algorithm of its signatures follows from the kind, as in
/// [`SigningKey`](crate::signing::SigningKey).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// Edwards curve 25519 (RFC 8410).
    Ed25519,
    /// NIST's curve P-256 (RFC 5480).
    EcdsaP256,
    /// RSA of 2048 to 8192 bits (RFC 3279).
    Rsa,
}

impl KeyKind {
    pub(super) fn of(spki: &SubjectPublicKeyInfoOwned) -> Result<Self, Refusal> {
        let curve = || spki.algorithm.parameters.as_ref().and_then(|any| any.decode_as().ok());
        match spki.algorithm.oid {
            ID_ED25519 => Ok(KeyKind::Ed25519),
            ID_EC_PUBLIC_KEY if curve() == Some(ID_P256) => Ok(KeyKind::EcdsaP256),
            ID_RSA => Ok(KeyKind::Rsa),
            _ => Err(Refusal::UnsupportedAlgorithm),
        }
    }

    /// The number of the algorithm in S-ARP records; none for RSA, whose signatures exceed the one byte of their length.
    #[must_use]
    pub fn record_number(self) -> Option<u8> {
        match self {
            KeyKind::Ed25519 => Some(1),
            KeyKind::EcdsaP256 => Some(2),
            KeyKind::Rsa => None,
        }
    }

    fn of_record_number(number: u8) -> Option<Self> {
        [KeyKind::Ed25519, KeyKind::EcdsaP256].into_iter().find(|kind| kind.record_number() == Some(number))
    }

    fn verification(self) -> &'static dyn VerificationAlgorithm {
        match self {
            KeyKind::Ed25519 => &ED25519,
            KeyKind::EcdsaP256 => &ECDSA_P256_SHA256_FIXED,
            KeyKind::Rsa => &RSA_PSS_2048_8192_SHA256,
        }
    }
}

/// A key that was parsed once and verifies many times.
#[derive(Clone)]
pub(crate) struct PublicKey {
    kind: KeyKind,
    parsed: ParsedPublicKey,
    bytes: Vec<u8>,
}

impl PublicKey {
    pub(super) fn from_spki(spki: &SubjectPublicKeyInfoOwned) -> Result<Self, Refusal> {
        let kind = KeyKind::of(spki)?;
        let bytes = spki.subject_public_key.as_bytes().ok_or(Refusal::Malformed("public key"))?.to_vec();
        let parsed = ParsedPublicKey::new(kind.verification(), &bytes).map_err(|_| Refusal::Malformed("public key"))?;
        Ok(PublicKey { kind, parsed, bytes })
    }

    /// The key that an S-ARP record names by number and bytes.
    pub(crate) fn from_record(number: u8, bytes: &[u8]) -> Option<Self> {
        let kind = KeyKind::of_record_number(number)?;
        let parsed = ParsedPublicKey::new(kind.verification(), bytes).ok()?;
        Some(PublicKey { kind, parsed, bytes: bytes.to_vec() })
    }

    pub(super) fn kind(&self) -> KeyKind {
        self.kind
    }

    pub(crate) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        self.parsed.verify_sig(message, signature).map_err(|_| BadSignature)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
