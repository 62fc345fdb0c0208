//! Where a connection is in the table, and what links it to its neighbours there.

use crate::tcp::class::Class;

/// The place of a connection in the table.
pub(crate) type Index = u32;

/// No place.
pub(super) const NONE: Index = u32::MAX;

/// The links of a connection.
#[derive(Debug)]
pub(crate) struct Place {
    /// The next in the chain of its hash.
    pub(super) chain: Index,
    pub(super) previous: Index,
    pub(super) next: Index,
    pub(super) class: Class,
    /// When it came to its place in the list, in whole seconds since boot.
    pub(super) queued_at: u32,
}

impl Place {
    /// Nowhere yet.
    pub(crate) fn none() -> Place {
        Place { chain: NONE, previous: NONE, next: NONE, class: Class::HalfOpen, queued_at: 0 }
    }

    /// In whose list it is.
    pub(crate) fn class(&self) -> Class {
        self.class
    }
}
