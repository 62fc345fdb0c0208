//! The secrets of a scrubber, handed in when it is made. Each purpose has its own, so that what one of them shows on the wire
//! tells nothing about another.

use std::fmt;
use std::hash::BuildHasher;
use std::net::IpAddr;

use siphasher::sip::{SipHasher13, SipHasher24};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

/// Bytes of each key: those of SipHash.
pub const KEY_LEN: usize = 16;

/// One key for each purpose. Whoever keeps them over a restart keeps flows whose numbers are shifted alive.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Keys {
    /// Where entries lie in tables, so that nobody can choose what collides, and how long a delayed message waits.
    pub tables: [u8; KEY_LEN],
    /// What is added to sequence numbers and timestamps.
    pub sequence: [u8; KEY_LEN],
    /// IP identifications and flow labels.
    pub identification: [u8; KEY_LEN],
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys(..)")
    }
}

/// One of the keys in the hands of the stage that uses it.
#[derive(Clone)]
pub(crate) struct Key(Zeroizing<[u8; KEY_LEN]>);

impl Key {
    pub(crate) fn new(key: &[u8; KEY_LEN]) -> Key {
        Key(Zeroizing::new(*key))
    }

    /// A place in a table. It never leaves the scrubber, so fewer rounds do.
    pub(crate) fn place(&self, subject: &Subject) -> u64 {
        self.build_hasher().hash(subject.bytes())
    }

    /// A number that may show on the wire: who has seen others cannot tell it.
    pub(crate) fn number(&self, subject: &Subject) -> u64 {
        SipHasher24::new_with_key(&self.0).hash(subject.bytes())
    }
}

/// The standard library's tables ask for a place in this way.
impl BuildHasher for Key {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_key(&self.0)
    }
}

/// What a place or a number is asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Subject {
    bytes: [u8; Subject::LEN_MAX],
    len: usize,
}

impl Subject {
    /// A purpose, two IPv6 addresses, a protocol and two numbers.
    const LEN_MAX: usize = 1 + 2 * 16 + 1 + 2 * 8;

    /// Keys that serve several purposes tell them apart by a number.
    pub(crate) fn new(purpose: u8) -> Subject {
        let mut bytes = [0; Subject::LEN_MAX];
        bytes[0] = purpose;
        Subject { bytes, len: 1 }
    }

    /// Between whom; comes first, so that addresses of both versions and what follows them cannot be mistaken.
    pub(crate) fn between(self, source: IpAddr, destination: IpAddr) -> Subject {
        self.address(source).address(destination)
    }

    fn address(self, address: IpAddr) -> Subject {
        match address {
            IpAddr::V4(address) => self.with(&address.octets()),
            IpAddr::V6(address) => self.with(&address.octets()),
        }
    }

    pub(crate) fn protocol(self, protocol: u8) -> Subject {
        self.with(&[protocol])
    }

    pub(crate) fn number(self, number: u64) -> Subject {
        self.with(&number.to_be_bytes())
    }

    fn with(mut self, part: &[u8]) -> Subject {
        let end = self.len + part.len();
        debug_assert!(end <= Subject::LEN_MAX, "a subject of {end} bytes");
        if let Some(place) = self.bytes.get_mut(self.len..end) {
            place.copy_from_slice(part);
            self.len = end;
        }
        self
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree_with_the_reference_table_of_siphash() {
        // Entry 4 of the table that comes with the reference implementation: key 00..0f, message 00..03.
        let key = Key::new(&std::array::from_fn(|at| at as u8));
        let subject = Subject::new(0).with(&[1, 2, 3]);
        assert_eq!(key.number(&subject), 0xcf27_94e0_2771_87b7);
    }

    #[test]
    fn keys_do_not_show_in_logs() {
        let keys = Keys { tables: [0xaa; 16], sequence: [0xbb; 16], identification: [0xcc; 16] };
        assert_eq!(format!("{keys:?} {:?}", Key::new(&keys.tables)), "Keys(..) Key(..)");
    }
}
