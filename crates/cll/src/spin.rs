//! The spinning nonce: a keyed function of the sequence number (Touch and Yang's proposal, carried in every data frame).
//!
//! It costs a few nanoseconds to check and is worthless for the next frame, so that a flood of forged frames can be
//! dropped ahead of any cryptography. Today it is computed and carried, and checked after the tag; a later layer moves
//! the check to the front.

use std::hash::Hasher;

use siphasher::sip::SipHasher24;

/// Bytes of the key of a spinning nonce.
pub(crate) const KEY_LEN: usize = 16;

/// The nonces of one direction, lane and epoch.
#[derive(Clone)]
pub(crate) struct Spin {
    keyed: SipHasher24,
}

impl Spin {
    pub(crate) fn new(key: &[u8; KEY_LEN]) -> Spin {
        Spin { keyed: SipHasher24::new_with_key(key) }
    }

    /// The nonce of the frame with this sequence number: the low half of SipHash-2-4 over its four bytes.
    pub(crate) fn at(&self, sequence: u32) -> u32 {
        let mut hasher = self.keyed;
        hasher.write(&sequence.to_be_bytes());
        hasher.finish() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entry 4 of the table that comes with the reference implementation of SipHash-2-4: key 00..0f, message 00..03.
    #[test]
    fn agrees_with_the_reference_table() {
        let key: [u8; KEY_LEN] = std::array::from_fn(|at| at as u8);
        let published = u64::from_le_bytes([0xb7, 0x87, 0x71, 0x27, 0xe0, 0x94, 0x27, 0xcf]);
        assert_eq!(Spin::new(&key).at(0x0001_0203), published as u32);
    }
}
