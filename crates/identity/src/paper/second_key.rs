//! What a certificate of a paper site names beside its own key: a DSA key that signs S-ARP, or an RSA key that signs the
//! handshakes of CLL.

use super::{PublicKey, rsa, spki};
use crate::certificate::BadSignature;
use crate::profile::KeyLength;

/// The second public key of a certificate.
#[derive(Clone, Debug)]
pub(crate) enum SecondKey {
    /// For S-ARP.
    Dsa(PublicKey),
    /// For CLL.
    Rsa(rsa::PublicKey),
}

impl SecondKey {
    /// The key in `spki`; `None` for kinds that are none of ours.
    pub(crate) fn from_spki(spki: &[u8]) -> Option<SecondKey> {
        spki::public_key(spki).map(SecondKey::Dsa).or_else(|| rsa::public_key(spki).map(SecondKey::Rsa))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            SecondKey::Dsa(key) => key.bytes(),
            SecondKey::Rsa(key) => key.bytes(),
        }
    }

    /// The length of a key that signs S-ARP.
    pub(crate) fn dsa_length(&self) -> Option<KeyLength> {
        match self {
            SecondKey::Dsa(key) => Some(key.length()),
            SecondKey::Rsa(_) => None,
        }
    }

    /// Whether it signs the handshakes of CLL.
    pub(crate) fn signs_handshakes(&self) -> bool {
        matches!(self, SecondKey::Rsa(_))
    }

    pub(crate) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        match self {
            SecondKey::Dsa(key) => key.verify(message, signature),
            SecondKey::Rsa(key) => key.verify(message, signature),
        }
    }
}
