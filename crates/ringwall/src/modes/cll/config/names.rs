//! The words of section `[cll]`, each read into what it means.

use std::net::Ipv4Addr;

use ::shield::Layers;
use cll::{Migration, PostQuantum};
use identity::aead::Suite;
use serde::{Deserialize, Serialize};
use wire::EtherType;
use wire::cll::compression::Algorithm;

use crate::config::Station;

/// The EtherType of sealed frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "u16", into = "u16")]
pub(crate) struct SealedType(EtherType);

impl SealedType {
    /// Numbers below it are lengths.
    const LEAST: u16 = 0x0600;

    pub(crate) fn ethertype(self) -> EtherType {
        self.0
    }
}

impl Default for SealedType {
    fn default() -> Self {
        SealedType(EtherType::CLL)
    }
}

impl TryFrom<u16> for SealedType {
    type Error = String;

    fn try_from(value: u16) -> Result<SealedType, String> {
        let told = (value >= SealedType::LEAST).then_some(SealedType(EtherType(value)));
        told.ok_or_else(|| format!("0x{value:04x} is a length, not an EtherType; use 0x07d0 or a value above it"))
    }
}

impl From<SealedType> for u16 {
    fn from(SealedType(ethertype): SealedType) -> u16 {
        ethertype.0
    }
}

/// Whether bulk leaves in trains, see docs/protocol.md.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Trains {
    /// On wires that prove to be faster than 1 Gbit/s.
    #[default]
    Auto,
    /// On every wire.
    Always,
    /// Never; the guarded interface's MTU is larger then.
    Off,
}

/// Where forged frames end, see [`shield::Layers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LayersName {
    None,
    Twin,
    Kernel,
}

impl LayersName {
    pub(super) fn layers(self) -> Layers {
        match self {
            LayersName::None => Layers::None,
            LayersName::Twin => Layers::Twin,
            LayersName::Kernel => Layers::Kernel,
        }
    }
}

/// A host that cannot speak CLL.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LegacyHost {
    pub(crate) ip: Ipv4Addr,
    pub(crate) mac: Station,
    #[serde(default)]
    pub(crate) role: LegacyRole,
    #[serde(default)]
    pub(crate) broadcast: bool,
}

/// What a legacy host is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LegacyRole {
    #[default]
    Host,
    Router,
}

/// With what this host compresses the frames that it sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CompressName {
    #[default]
    None,
    Lz4,
}

impl CompressName {
    pub(super) fn algorithm(self) -> Option<Algorithm> {
        match self {
            CompressName::None => None,
            CompressName::Lz4 => Some(Algorithm::Lz4),
        }
    }
}

/// Whether keys also come from ML-KEM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PostQuantumName {
    #[default]
    Off,
    Prefer,
    Require,
}

impl From<PostQuantumName> for PostQuantum {
    fn from(name: PostQuantumName) -> PostQuantum {
        match name {
            PostQuantumName::Off => PostQuantum::Off,
            PostQuantumName::Prefer => PostQuantum::Prefer,
            PostQuantumName::Require => PostQuantum::Require,
        }
    }
}

/// Modes of migration by the word an operator uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MigrationName {
    Observe,
    Prefer,
    #[default]
    Enforce,
}

impl MigrationName {
    /// The word for a mode.
    pub(crate) fn of(mode: Migration) -> MigrationName {
        match mode {
            Migration::Observe => MigrationName::Observe,
            Migration::Prefer => MigrationName::Prefer,
            Migration::Enforce => MigrationName::Enforce,
        }
    }

    pub(crate) fn mode(self) -> Migration {
        match self {
            MigrationName::Observe => Migration::Observe,
            MigrationName::Prefer => Migration::Prefer,
            MigrationName::Enforce => Migration::Enforce,
        }
    }
}

/// A host that is treated otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExceptionHost {
    pub(crate) mac: Station,
    pub(crate) mode: MigrationName,
}

/// A manager's machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ManagementHost {
    pub(crate) ip: Ipv4Addr,
    pub(crate) mac: Station,
    #[serde(default = "ssh")]
    pub(crate) port: u16,
}

fn ssh() -> u16 {
    SSH
}

/// The port that a management machine reaches where the file names none: SSH.
const SSH: u16 = 22;
/// Stands for the fastest suite that is safe on this processor.
const AUTO: &str = "auto";

/// A suite by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct SuiteName(pub(super) Suite);

impl SuiteName {
    /// Those that are accepted where nothing else is said.
    pub(super) fn all() -> Vec<SuiteName> {
        Suite::ALL.iter().copied().map(SuiteName).collect()
    }
}

impl TryFrom<String> for SuiteName {
    type Error = String;

    fn try_from(name: String) -> Result<SuiteName, String> {
        Suite::from_name(&name).map(SuiteName).ok_or_else(|| match name.as_str() {
            NONCE_ONLY => format!("{NO_TAG}, which is not in this build; {USE_ANOTHER}"),
            _ => {
                let known = Suite::of_profile(identity::Profile::Modern);
                let names: Vec<_> = known.iter().map(|suite| suite.name()).collect();
                format!("unknown suite \"{name}\"; use one of {}", names.join(", "))
            }
        })
    }
}

impl From<SuiteName> for String {
    fn from(SuiteName(suite): SuiteName) -> String {
        suite.name().to_owned()
    }
}

/// The suite that this host sends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) enum SendSuite {
    /// The fastest of those that this host would accept.
    Auto,
    Named(SuiteName),
}

impl TryFrom<String> for SendSuite {
    type Error = String;

    fn try_from(name: String) -> Result<SendSuite, String> {
        if name == AUTO { Ok(SendSuite::Auto) } else { SuiteName::try_from(name).map(SendSuite::Named) }
    }
}

impl From<SendSuite> for String {
    fn from(chosen: SendSuite) -> String {
        match chosen {
            SendSuite::Auto => AUTO.to_owned(),
            SendSuite::Named(name) => name.into(),
        }
    }
}

/// The word that names the suite without a tag.
pub(super) const NONCE_ONLY: &str = "nonce-only";

/// What is said of it outside the paper profile.
pub(super) const NO_TAG: &str =
    "cll: suite \"nonce-only\" has no tag, so anybody could change frames, and needs profile = \"paper\"";
pub(super) const USE_ANOTHER: &str = "use another suite: this one is for measurements";
