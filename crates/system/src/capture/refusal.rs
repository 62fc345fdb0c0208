//! Why a frame of a capture was not read.

/// Why a frame was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Nothing here knows the link.
    Link,
    /// Nobody can read it without a key.
    Encrypted,
    /// It manages the link.
    NoPacket,
}
