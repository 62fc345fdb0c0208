//! Tables whose order a stranger cannot foresee: the standard library's, hashed with a key that is handed in.

use std::collections::HashMap;
use std::hash::BuildHasher;

use siphasher::sip::SipHasher13;
use zeroize::Zeroizing;

use crate::keys::KEY_LEN;

/// A table hashed with a key.
pub(crate) type Table<K, V> = HashMap<K, V, Keyed>;

/// Makes hashers with one key.
#[derive(Clone)]
pub(crate) struct Keyed(Zeroizing<[u8; KEY_LEN]>);

impl Keyed {
    pub(crate) fn new(key: &[u8; KEY_LEN]) -> Keyed {
        Keyed(Zeroizing::new(*key))
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
        f.write_str("Keyed(..)")
    }
}
