//! The modes of a host by name, and what of them decides whether a file is in order.

use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize};

/// How an interface is guarded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// The cryptographic link layer.
    #[default]
    Cll,
    /// Signed ARP; everything else passes as it is.
    Sarp,
    /// Layered nonces in front of an IPsec stack; everything else passes as it is.
    Shield,
    /// The null bump: same ports, no protection. For benchmarks.
    Null,
}

impl Mode {
    /// The word in the configuration and in `status`.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Mode::Cll => "cll",
            Mode::Sarp => "sarp",
            Mode::Shield => "shield",
            Mode::Null => "null",
        }
    }

    /// The mode that this word means.
    pub(crate) fn from_word(word: &str) -> Option<Mode> {
        Mode::deserialize(word.into_deserializer() as StrDeserializer<'_, serde::de::value::Error>).ok()
    }

    /// Whether a host of this mode shows who it is, and so has an identity of a site.
    pub(crate) fn has_identity(self) -> bool {
        matches!(self, Mode::Cll | Mode::Sarp)
    }

    /// Whether DHCP is proved in this mode.
    pub(crate) fn proves_dhcp(self) -> bool {
        self.has_identity()
    }

    /// Whether it also takes DHCP from a relay.
    pub(crate) fn takes_relays(self) -> bool {
        self == Mode::Sarp
    }

    /// Whether the paper profile of this mode signs with RSA.
    pub(crate) fn paper_signs_with_rsa(self) -> bool {
        self == Mode::Cll
    }

    /// Whether the papers' own algorithms are there.
    pub(crate) fn has_paper_profile(self) -> bool {
        self.has_identity()
    }
}
