//! Section `[host]`: which interface is guarded, in which mode, and with what of this machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use identity::profile::HAS_PAPER;
use serde::{Deserialize, Serialize};
use system::takeover;

use super::RealTime;
use super::duration::Span;
use crate::failure::Failure;
use crate::modes::name::Mode;

/// Where configurations are.
pub(crate) const DIRECTORY: &str = "/etc/ringwall";
/// Where the configuration of a host is looked for.
pub(crate) const DEFAULT_FILE: &str = "/etc/ringwall/host.toml";
pub(crate) const POLICY_FILE: &str = "policy.pem";
/// Where the configuration of a gateway is looked for.
pub(crate) const DEFAULT_GATE_FILE: &str = "/etc/ringwall/gate.toml";

/// Warnings before a certificate ends, if the file says nothing else.
const WARN_BEFORE_DAYS: [u32; 3] = [30, 7, 1];

/// Which rules hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Profile {
    /// The only profile for real use.
    #[default]
    Modern,
    /// A laboratory: layers may be switched off.
    Lab,
    /// The papers' own algorithms and order of messages, to measure their tables again.
    Paper,
}

impl Profile {
    /// The word in the configuration and in `status`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Profile::Modern => "modern",
            Profile::Lab => "lab",
            Profile::Paper => "paper",
        }
    }

    /// Which keys may be worked with.
    pub(crate) fn of_keys(self) -> identity::Profile {
        match self {
            Profile::Modern | Profile::Lab => identity::Profile::Modern,
            Profile::Paper => identity::Profile::Paper,
        }
    }
}

/// How the card is kept away from the stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Takeover {
    /// In place where that can be, else by namespace.
    #[default]
    Auto,
    /// In a network namespace of its own.
    Namespace,
    /// Where it is.
    InPlace,
    /// A way of former versions; it counts as `Auto` (record 0115).
    Filter,
}

impl Takeover {
    /// Whether a card that cannot stay in place has another way.
    pub(crate) fn is_open(self) -> bool {
        matches!(self, Takeover::Auto | Takeover::Filter)
    }

    pub(crate) fn warning(self) -> Option<String> {
        let warning = "host.takeover = \"filter\" is gone and counts as \"auto\": write that, or no line at all";
        (self == Takeover::Filter).then(|| warning.to_owned())
    }
}

/// What happens to the interface when the daemon ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OnExit {
    /// It stays taken over: nothing passes until the daemon runs again or `host release`.
    #[default]
    Closed,
    /// It is given back to the stack, in clear.
    Restore,
}

impl OnExit {
    /// The word in the configuration and in `status`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            OnExit::Closed => "closed",
            OnExit::Restore => "restore",
        }
    }
}

/// Section `[host]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Host {
    pub(crate) interface: String,
    #[serde(default)]
    pub(crate) mode: Mode,
    #[serde(default = "default_identity")]
    pub(crate) identity: PathBuf,
    #[serde(default)]
    pub(crate) profile: Profile,
    #[serde(default)]
    pub(crate) on_exit: OnExit,
    #[serde(default)]
    pub(crate) takeover: Takeover,
    #[serde(default = "default_run_dir")]
    pub(crate) run_dir: PathBuf,
    #[serde(default = "default_state_dir")]
    pub(crate) state_dir: PathBuf,
    /// How long before a certificate ends that is warned of.
    #[serde(default = "default_warn_before")]
    pub(crate) warn_before: Vec<Span>,
    /// A shell's command that takes a request for a renewal and gives the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) renew_through: Option<String>,
    /// Before whom the data path runs, if before anybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) real_time_priority: Option<RealTime>,
    /// How long before its end this host's certificate is renewed.
    #[serde(default = "default_renew_before")]
    pub(crate) renew_before: Span,
    /// The site's policy, where it is not beside the revocation list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<PathBuf>,
    /// Whether this file's mode counts also where it is looser than the policy's.
    #[serde(default)]
    pub(crate) loosens_policy: bool,
}

impl Host {
    /// Where the site's policy is looked for if the file does not name it: beside the revocation
    /// list.
    pub(crate) fn policy_file(&self, revocation_list: Option<&Path>) -> PathBuf {
        let default = || revocation_list.and_then(Path::parent).unwrap_or(Path::new(DIRECTORY)).join(POLICY_FILE);
        self.policy.clone().unwrap_or_else(default)
    }

    /// How long before the end of a certificate it is warned of, the longest first.
    pub(crate) fn warn_before(&self) -> Vec<Duration> {
        let mut times: Vec<_> = self.warn_before.iter().map(|span| span.time).collect();
        times.sort_unstable_by(|one, other| other.cmp(one));
        times
    }

    pub(crate) fn check(&self, file: &Path) -> Result<(), Failure> {
        let is_paper = self.profile == Profile::Paper;
        if is_paper && !HAS_PAPER {
            let what = "profile = \"paper\" is not in this build";
            return Err(Failure::file(file, what, "use profile = \"modern\", or a build with the feature \"paper\""));
        }
        if is_paper && !self.mode.has_paper_profile() {
            let what = "profile = \"paper\" needs mode = \"sarp\" or mode = \"cll\"";
            return Err(Failure::file(file, what, "set host.mode, or use profile = \"modern\""));
        }
        if !takeover::is_interface_name(&self.interface) {
            return Err(Failure::file(file, "host.interface is not an interface name", "name one of `ip link`"));
        }
        Ok(())
    }
}

fn default_warn_before() -> Vec<Span> {
    WARN_BEFORE_DAYS.map(Span::of_days).into()
}

/// Before the first warning, so that who renews in time is never warned.
fn default_renew_before() -> Span {
    Span::of_days(45)
}

fn default_identity() -> PathBuf {
    "/etc/ringwall/identity.pem".into()
}

pub(crate) fn default_run_dir() -> PathBuf {
    "/run/ringwall".into()
}

pub(crate) fn default_state_dir() -> PathBuf {
    "/var/lib/ringwall".into()
}

/// The configuration that is meant where none is named.
pub(crate) fn default_file() -> PathBuf {
    let host = PathBuf::from(DEFAULT_FILE);
    let gate = PathBuf::from(DEFAULT_GATE_FILE);
    if gate.exists() && !host.exists() { gate } else { host }
}
