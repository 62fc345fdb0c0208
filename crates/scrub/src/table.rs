//! Tables whose order a stranger cannot foresee: the standard library's, hashed with a key that is handed in.

use std::collections::HashMap;

use crate::keys::Key;

/// A table hashed with a key.
pub(crate) type Table<K, V> = HashMap<K, V, Key>;
