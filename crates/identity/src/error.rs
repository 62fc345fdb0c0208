//! What a key did wrong.

use std::fmt;

use crate::pem::PemError;

/// Why a key could not be made or used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// The suite wants a key of another length, in bytes.
    Length {
        /// What the suite wants.
        expected: usize,
        /// What was given.
        found: usize,
    },
    /// The text is not one well-formed PEM block.
    Pem(PemError),
    /// Neither Ed25519, nor ECDSA on P-256, nor RSA of 2048 to 8192 bits, in PKCS#8.
    Unsupported,
    /// The keys that hosts share are not one or two of different generations, or the newest one has
    /// an end.
    Succession,
    /// The library refused to compute; with a valid key this means a message beyond its limits.
    Refused,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Length { expected, found } => write!(f, "the key has {found} bytes instead of {expected}"),
            KeyError::Pem(error) => error.fmt(f),
            KeyError::Unsupported => {
                f.write_str("the key is neither Ed25519, ECDSA P-256 nor RSA of 2048 to 8192 bits in PKCS#8")
            }
            KeyError::Succession => f.write_str("the keys are not one or two that follow each other"),
            KeyError::Refused => f.write_str("the cryptographic library refused the operation"),
        }
    }
}

impl std::error::Error for KeyError {}

impl From<PemError> for KeyError {
    fn from(error: PemError) -> Self {
        KeyError::Pem(error)
    }
}
