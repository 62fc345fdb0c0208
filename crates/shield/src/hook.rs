//! At which place in the kernel the checks are made; the checks are the same at each (record 0042).

/// A place in the kernel's receive path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hook {
    /// In front of the daemon's packet socket, whatever the card.
    #[default]
    Socket,
    /// In front of the card's receive path, where its driver calls a program.
    Xdp,
    /// The same, where the kernel calls it in the driver's place.
    XdpGeneric,
}

impl Hook {
    /// All of them.
    pub const ALL: [Hook; 3] = [Hook::Socket, Hook::Xdp, Hook::XdpGeneric];

    /// The word in the configuration and in `status`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Hook::Socket => "socket",
            Hook::Xdp => "xdp",
            Hook::XdpGeneric => "xdp-generic",
        }
    }

    /// Whether what arrives there may be several frames that were joined, with nothing that says so.
    #[must_use]
    pub fn hides_joined(self) -> bool {
        self == Hook::XdpGeneric
    }
}
