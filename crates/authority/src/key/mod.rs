//! The authority's private key: in a file, or in a token behind PKCS#11 that never gives it out
//! (record 0121).

mod token;
mod uri;

use std::sync::Arc;

use identity::{KeyError, pem};
use rcgen::{KeyPair, PublicKeyData, SignatureAlgorithm, SigningKey};
use zeroize::Zeroizing;

pub use self::token::TokenError;
use self::token::TokenKey;
pub use self::uri::{BadUri, TokenUri};
use crate::Error;

/// Who has one is the authority.
pub(crate) enum Key {
    /// In memory, with its file.
    Here(KeyPair, Zeroizing<String>),
    /// Elsewhere. What is signed goes there.
    InToken(Arc<TokenKey>),
}

impl Key {
    /// One that was made here, as PKCS#8.
    pub(crate) fn from_der(der: &[u8]) -> Result<Key, Error> {
        let pair = KeyPair::try_from(der).map_err(|_| Error::Key(KeyError::Unsupported))?;
        Ok(Key::Here(pair, pem::encode(pem::PRIVATE_KEY, der)))
    }

    /// The one that the text of the authority's key file means: a key in PEM, or the URI of one in
    /// a token.
    pub(crate) fn from_text(text: &str) -> Result<Key, Error> {
        if TokenUri::is_meant(text) {
            let uri = text.trim().parse().map_err(TokenError::from_uri)?;
            return Ok(Key::InToken(token::open(&uri)?));
        }
        let der = pem::single(text, pem::PRIVATE_KEY).map_err(KeyError::from)?;
        Key::from_der(&der)
    }

    /// The one that this URI names, which the token makes if it has none of that name.
    pub(crate) fn in_token(uri: &TokenUri) -> Result<Key, Error> {
        Ok(Key::InToken(token::open_or_make(uri)?))
    }

    /// Whether it signs, as it may not if it is in a token.
    pub(crate) fn check(&self) -> Result<(), TokenError> {
        if let Key::InToken(key) = self { key.check() } else { Ok(()) }
    }

    /// The text of its file.
    pub(crate) fn text(&self) -> Zeroizing<String> {
        match self {
            Key::Here(_, pem) => pem.clone(),
            Key::InToken(key) => Zeroizing::new(format!("{}\n", key.uri())),
        }
    }
}

impl PublicKeyData for Key {
    fn der_bytes(&self) -> &[u8] {
        match self {
            Key::Here(pair, _) => pair.der_bytes(),
            Key::InToken(key) => key.public(),
        }
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        match self {
            Key::Here(pair, _) => pair.algorithm(),
            Key::InToken(_) => &rcgen::PKCS_ED25519,
        }
    }
}

impl SigningKey for Key {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        match self {
            Key::Here(pair, _) => pair.sign(message),
            // The encoder has no error of ours; `check` says why.
            Key::InToken(key) => key.sign(message).map_err(|_| rcgen::Error::RemoteKeyError),
        }
    }
}
