//! A build without the paper profile: there are no keys of it, so none can be read, and nothing has to be said about them.

use zeroize::Zeroizing;

use crate::KeyError;
use crate::certificate::BadSignature;
use crate::profile::{KEY_RANDOM_LEN, KeyLength, PAIR_RANDOM_LEN};

/// There is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PublicKey {}

impl PublicKey {
    pub(crate) fn new(_length: KeyLength, _bytes: &[u8]) -> Option<PublicKey> {
        None
    }

    pub(crate) fn length(&self) -> KeyLength {
        match *self {}
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match *self {}
    }

    pub(crate) fn verify(&self, _message: &[u8], _signature: &[u8]) -> Result<(), BadSignature> {
        match *self {}
    }

    pub(crate) fn to_spki(&self) -> Option<Vec<u8>> {
        match *self {}
    }
}

/// No certificate names one.
pub(crate) fn public_key(_spki: &[u8]) -> Option<PublicKey> {
    None
}

/// There is none.
pub(crate) enum SigningKey {}

impl SigningKey {
    pub(crate) fn from_block(_bytes: &[u8]) -> Result<SigningKey, KeyError> {
        Err(KeyError::Unsupported)
    }

    pub(crate) fn public(&self) -> &PublicKey {
        match *self {}
    }

    pub(crate) fn sign(&self, _message: &[u8]) -> Result<Vec<u8>, KeyError> {
        match *self {}
    }

    pub(crate) fn wants_pairs(&self) -> bool {
        match *self {}
    }

    pub(crate) fn make_pairs(&self, _random: &[u8; PAIR_RANDOM_LEN], _count: usize) {
        match *self {}
    }
}

/// Nothing, which no build takes for a key.
#[must_use]
pub fn new_key_block(_length: KeyLength, _random: &[u8; KEY_RANDOM_LEN]) -> Zeroizing<Vec<u8>> {
    Zeroizing::default()
}
