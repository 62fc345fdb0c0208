//! Serial numbers of certificates, as numbers and not as they are encoded.

use std::fmt;

/// A serial number: its bytes, the highest first, without a zero in front. In DER one is there
/// where the number would be negative without it (X.690, section 8.3); tools such as openssl do
/// not print it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Serial(Vec<u8>);

impl Serial {
    /// The number that `bytes` are, the highest first.
    pub(crate) fn of(bytes: &[u8]) -> Serial {
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        Serial(bytes[zeros.min(bytes.len().saturating_sub(1))..].to_vec())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// In lower-case hexadecimal digits.
impl fmt::Display for Serial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
