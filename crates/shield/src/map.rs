//! The shapes of maps that the kernel's programs look things up in, common to both programs.

/// What names an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// Its place, from 0; all are there.
    Places,
    /// Any bytes of the key's length.
    Any,
    /// The same; when the map is full, what was unused for longest makes room.
    Recent,
}

/// The shape of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapShape {
    /// What names an entry.
    pub keys: Keys,
    /// Whether this program shares its memory.
    pub shared: bool,
    /// Bytes of a key.
    pub key_len: usize,
    /// Bytes of a value.
    pub value_len: usize,
    /// Most entries.
    pub entries: u32,
}

impl MapShape {
    /// So many places.
    pub(crate) const fn places(value_len: usize, entries: u32) -> MapShape {
        MapShape { keys: Keys::Places, shared: false, key_len: size_of::<u32>(), value_len, entries }
    }

    /// So many places whose memory this program shares.
    pub(crate) const fn shared(value_len: usize, entries: u32) -> MapShape {
        MapShape { shared: true, ..MapShape::places(value_len, entries) }
    }

    /// At most so many entries under any keys.
    pub(crate) const fn any(key_len: usize, value_len: usize, entries: u32) -> MapShape {
        MapShape { keys: Keys::Any, shared: false, key_len, value_len, entries }
    }

    /// The most recent ones of any number of entries.
    pub(crate) const fn recent(key_len: usize, value_len: usize, entries: u32) -> MapShape {
        MapShape { keys: Keys::Recent, ..MapShape::any(key_len, value_len, entries) }
    }
}
