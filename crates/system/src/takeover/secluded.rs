//! The card where nobody else reaches it.

use std::os::fd::OwnedFd;

use super::in_place::fence::Fence;
use crate::netlink::Connection;
use crate::netlink::link::Link;

/// The card where nobody else reaches it.
pub(super) struct Secluded {
    /// The card.
    pub(super) link: Link,
    /// Its namespace, if it has one of its own.
    pub(super) own: Option<OwnNamespace>,
    /// What stands around it, if it stays where it is.
    pub(super) fence: Option<Fence>,
}

/// The card's own namespace.
pub(super) struct OwnNamespace {
    /// The namespace.
    pub(super) descriptor: OwnedFd,
    /// A routing socket in it.
    pub(super) wire: Connection,
}
