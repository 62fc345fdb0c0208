//! The secrets of a scrubber, handed in when it is made. Each purpose has its own, so that what one of them shows on the wire
//! tells nothing about another.

use std::fmt;

use zeroize::{Zeroize, ZeroizeOnDrop};

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
