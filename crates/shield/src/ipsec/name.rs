//! What messages of IKE are known by, here and in front of the card.

/// An SPI of IKE, or what stands in its place.
pub(super) type Spi = [u8; 8];
/// How a message is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Standing {
    /// It has both SPIs of a running association.
    Running = 1,
    /// It has the SPI under which this host's stack has asked for one.
    Opened,
    /// It has both SPIs of an answer with which this host's stack has begun one.
    Answered,
    /// It brings the cookie that this host's stack has asked for.
    Cookie,
}

impl Standing {
    /// How many there are.
    pub(super) const COUNT: usize = 4;
}

/// What a message is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) standing: Standing,
    pub(super) initiator: Spi,
    /// The responder's SPI, or the end of the cookie.
    pub(super) other: Spi,
}
