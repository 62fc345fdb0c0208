//! A build without the paper profile: there are no keys of it, so none can be read, and nothing has to be said about them.

use zeroize::Zeroizing;

use crate::aead::TAG_LEN;
use crate::certificate::BadSignature;
use crate::profile::{KEY_RANDOM_LEN, KeyLength, PAIR_RANDOM_LEN, RSA_RANDOM_LEN, RsaHash, RsaKey};
use crate::{BadKeyShare, BadTag, KeyError};

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

    pub(crate) fn modulus_len(&self) -> usize {
        match *self {}
    }

    pub(crate) fn verify(&self, _message: &[u8], _signature: &[u8]) -> Result<(), BadSignature> {
        match *self {}
    }

    pub(crate) fn to_spki(&self) -> Option<Vec<u8>> {
        match *self {}
    }
}

/// There is none.
#[derive(Clone, Debug)]
pub(crate) enum SecondKey {}

impl SecondKey {
    /// No certificate names one.
    pub(crate) fn from_spki(_spki: &[u8]) -> Option<SecondKey> {
        None
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match *self {}
    }

    pub(crate) fn dsa_length(&self) -> Option<KeyLength> {
        match *self {}
    }

    pub(crate) fn signs_handshakes(&self) -> bool {
        match *self {}
    }

    pub(crate) fn verify(&self, _message: &[u8], _signature: &[u8]) -> Result<(), BadSignature> {
        match *self {}
    }
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

/// There is none.
pub(crate) enum RsaSigningKey {}

impl RsaSigningKey {
    pub(crate) fn from_block(_hash: RsaHash, _der: &[u8]) -> Result<RsaSigningKey, KeyError> {
        Err(KeyError::Unsupported)
    }

    pub(crate) fn public(&self) -> &PublicKey {
        match *self {}
    }

    pub(crate) fn sign(&self, _message: &[u8]) -> Result<Vec<u8>, KeyError> {
        match *self {}
    }
}

/// Nothing, which no build takes for a key.
#[must_use]
pub fn new_rsa_key_block(_kind: RsaKey, _random: &[u8; RSA_RANDOM_LEN]) -> Zeroizing<Vec<u8>> {
    Zeroizing::default()
}

/// There is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PaperSuite {}

impl PaperSuite {
    /// None.
    pub fn all() -> impl Iterator<Item = PaperSuite> {
        std::iter::empty()
    }

    /// None.
    #[must_use]
    pub fn of_the_tables() -> Option<PaperSuite> {
        None
    }

    /// The number that names it in a handshake.
    #[must_use]
    pub fn id(self) -> u8 {
        match self {}
    }

    /// No number names one.
    #[must_use]
    pub fn from_id(_id: u8) -> Option<PaperSuite> {
        None
    }

    /// The word that names it in a configuration file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {}
    }

    /// No word names one.
    #[must_use]
    pub fn from_name(_name: &str) -> Option<PaperSuite> {
        None
    }

    /// Bytes of its keys.
    #[must_use]
    pub fn key_len(self) -> usize {
        match self {}
    }

    /// Whether frames carry no tag.
    #[must_use]
    pub fn is_nonce_only(self) -> bool {
        match self {}
    }
}

/// There is none.
pub(crate) enum FrameKey {}

impl FrameKey {
    pub(crate) fn new(suite: PaperSuite, _key: &[u8]) -> Result<FrameKey, KeyError> {
        match suite {}
    }

    pub(crate) fn seal(
        &self,
        _nonce: &[u8; 12],
        _associated: &[u8],
        _in_out: &mut [u8],
    ) -> Result<[u8; TAG_LEN], KeyError> {
        match *self {}
    }

    pub(crate) fn open(
        &self,
        _nonce: &[u8; 12],
        _associated: &[u8],
        _ciphertext: &[u8],
        _tag: &[u8; TAG_LEN],
        _plaintext_out: &mut [u8],
    ) -> Result<(), BadTag> {
        match *self {}
    }
}

/// There is none.
pub(crate) enum GroupKeyPair {}

impl GroupKeyPair {
    pub(crate) fn from_random(_random: &[u8; 32]) -> Result<GroupKeyPair, KeyError> {
        Err(KeyError::Unsupported)
    }

    pub(crate) fn public(&self) -> &[u8] {
        match *self {}
    }

    pub(crate) fn agree(&self, _peer: &[u8]) -> Result<GroupSecret, BadKeyShare> {
        match *self {}
    }
}

/// There is none.
pub(crate) enum GroupSecret {}

impl GroupSecret {
    pub(crate) fn derive(&self, _transcript: &[u8; 32], _label: &[&[u8]], _output: &mut [u8]) {
        match *self {}
    }
}
