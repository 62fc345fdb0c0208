//! The modes of a host by name, and what of them decides whether a file is in order.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use serde::{Deserialize, Serialize};

/// What an operator reads wherever the paper profile is in force: of the link layer, and of signed
/// ARP.
const PAPER_CLL: &str = "profile paper: frames are sealed with CBC and HMAC and \
    handshakes signed with short RSA keys, as in 2008: for measurements, NOT for real use";
const PAPER_SARP: &str = "profile paper: S-ARP is signed with DSA of 512 or 1024 \
    bits and SHA-1, as in 2003, and can be forged: for measurements, NOT for real use";

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

    /// Whether it protects a host at all.
    pub(crate) fn protects(self) -> bool {
        self != Mode::Null
    }

    /// What an operator reads of the paper profile wherever it is in force.
    pub(crate) fn paper_warning(self) -> &'static str {
        if self == Mode::Cll { PAPER_CLL } else { PAPER_SARP }
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

/// The modes in which a host may join a site by one command.
impl ValueEnum for Mode {
    fn value_variants<'a>() -> &'a [Mode] {
        &[Mode::Cll, Mode::Sarp]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.word()))
    }
}
