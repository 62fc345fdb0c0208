//! How long and how dearly connections are remembered.

use std::time::Duration;

use crate::limits;

/// How long and how dearly a connection is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Class {
    HalfOpen,
    Closed,
    Ended,
    Closing,
    Established,
    Blocked,
}

/// Number of classes.
pub(crate) const CLASSES: usize = Class::Blocked as usize + 1;

impl Class {
    pub(crate) const ALL: [Class; CLASSES] =
        [Class::HalfOpen, Class::Closed, Class::Ended, Class::Closing, Class::Established, Class::Blocked];

    /// Whether nothing of it passes any more but what is late.
    pub(crate) fn is_over(self) -> bool {
        matches!(self, Class::Closed | Class::Ended | Class::Blocked)
    }

    /// Whether its handshake is complete, and it is not over.
    pub(crate) fn is_held(self) -> bool {
        matches!(self, Class::Established | Class::Closing)
    }

    /// How long a connection may be silent, an established one for `idle`; `None` if for ever.
    pub(crate) fn timeout(self, idle: Duration) -> Option<Duration> {
        match self {
            Class::HalfOpen => Some(limits::HALF_OPEN_TIMEOUT),
            Class::Closed => Some(limits::CLOSED_TIMEOUT),
            Class::Ended => Some(limits::ENDED_TIMEOUT),
            Class::Closing => Some(limits::CLOSING_TIMEOUT),
            Class::Established => Some(idle),
            Class::Blocked => None,
        }
    }
}
