//! Tables whose order a stranger cannot foresee: the standard library's, hashed with a key that is handed in.

use std::collections::HashMap;
use std::hash::BuildHasher;

use siphasher::sip::SipHasher13;

/// A table hashed with a key.
pub(crate) type Table<K, V> = HashMap<K, V, Keyed>;

/// Makes hashers with one key.
#[derive(Clone)]
pub(crate) struct Keyed([u8; 16]);

impl Keyed {
    pub(crate) fn new(key: [u8; 16]) -> Keyed {
        Keyed(key)
    }
}

impl BuildHasher for Keyed {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_key(&self.0)
    }
}

impl std::fmt::Debug for Keyed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keyed")
    }
}
