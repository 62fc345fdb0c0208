//! What the first segments of a connection say.

use crate::tcp::options::Few;

/// Kinds of options beside the known ones that a connection can agree on.
pub(crate) const OTHERS_AGREED_MAX: usize = 4;

/// What a SYN or a SYN-ACK said.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Greeting {
    pub(crate) sequence: u32,
    /// Bytes of data that came with it and went on.
    pub(crate) data_len: u16,
    pub(crate) window: u16,
    pub(crate) mss: Option<u16>,
    /// The scale of the host itself.
    pub(crate) window_scale: Option<u8>,
    /// The scale that its peer was told.
    pub(crate) told_scale: Option<u8>,
    pub(crate) sack_permitted: bool,
    /// The timestamps of the first one and of the latest.
    pub(crate) stamps: Option<(u32, u32)>,
    /// See [`flag::ECN`].
    pub(crate) ecn: u16,
    pub(crate) others: Few<u8, OTHERS_AGREED_MAX>,
}
