//! Sections `[sarp]` and `[akd]`: signed ARP, and being one of the site's key distributors.

mod weakened;

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use authority::repository::etcd::Access;
use serde::{Deserialize, Serialize};

use crate::config::duration::Span;
use crate::config::{HookName, Host, Lab, Station};
use crate::failure::Failure;
use crate::modes::name::Mode;

/// Longest window. Within it a recorded answer of a host that has left can deceive whoever asks
/// without `sign_requests`.
const WINDOW_MAX: Duration = Duration::from_secs(5 * 60);
/// A longer window draws a warning: it makes up for clocks, and the clocks of S-ARP need no such
/// help.
const WINDOW_ADVISED: Duration = Duration::from_secs(60);

/// A key is not changed more often than this: each change is a write to the repository, and others
/// learn of it by a signature that fails.
const REFRESH_MIN: Duration = Duration::from_secs(60 * 60);
const REFRESH_MAX: Duration = Duration::from_secs(3650 * 24 * 60 * 60);

/// How old a key may become.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct RefreshEvery(Span);

impl TryFrom<String> for RefreshEvery {
    type Error = String;

    fn try_from(text: String) -> Result<RefreshEvery, String> {
        let span = Span::try_from(text.clone()).ok();
        let usable = span.filter(|span| (REFRESH_MIN..=REFRESH_MAX).contains(&span.time));
        let refused = || format!("\"{text}\" does not serve; use \"1h\" to \"3650d\"; \"30d\" is usual");
        usable.map(RefreshEvery).ok_or_else(refused)
    }
}

impl From<RefreshEvery> for String {
    fn from(RefreshEvery(span): RefreshEvery) -> String {
        span.into()
    }
}

/// Section `[sarp]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Sarp {
    /// How far the time in a message may be from this host's S-ARP clock.
    pub(crate) window_s: u64,
    /// Whether questions are signed, and answers tied to them.
    pub(crate) sign_requests: bool,
    /// Whether the kernel drops messages that need no signature to be told, before this program
    /// hears them.
    pub(crate) kernel: bool,
    /// And where in the kernel.
    pub(crate) kernel_hook: HookName,
    /// How old this host's key may become before it is changed for another; for ever if there is
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) refresh_key_every: Option<RefreshEvery>,
    /// Certificates of distributors beside those in the identity.
    pub(crate) distributors: Vec<PathBuf>,
    /// Hosts without S-ARP whose plain messages are believed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) known_hosts: Vec<KnownHost>,
}

impl Default for Sarp {
    fn default() -> Self {
        Sarp {
            window_s: sarp::limits::WINDOW.as_secs(),
            sign_requests: true,
            kernel: true,
            kernel_hook: HookName::Socket,
            refresh_key_every: None,
            distributors: Vec::new(),
            known_hosts: Vec::new(),
        }
    }
}

/// A host that cannot speak S-ARP.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KnownHost {
    pub(crate) ip: Ipv4Addr,
    pub(crate) mac: Station,
}

/// Section `[akd]`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Akd {
    /// The file in which the hosts of the site are kept; there unless `etcd` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) repository: Option<PathBuf>,
    /// The members of the cluster that keeps the hosts in the file's place.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) etcd: Vec<String>,
    /// Certificates of the authority that the members' certificates come from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) etcd_ca: Option<PathBuf>,
    /// This machine's certificate for the members.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) etcd_certificate: Option<PathBuf>,
    /// The key of that certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) etcd_key: Option<PathBuf>,
    /// Whether `http` may leave this machine.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) etcd_unprotected: bool,
}

/// Where a distributor looks hosts up.
pub(crate) enum Keeper<'a> {
    File(&'a Path),
    Cluster(Access),
}

const DEFAULT_REPOSITORY: &str = "/etc/ringwall/site/hosts.db";

impl Akd {
    /// That it stands where it belongs, and names one place.
    pub(crate) fn check(&self, host: &Host, file: &Path) -> Result<(), Failure> {
        if host.mode != Mode::Sarp {
            let what = "[akd] needs mode = \"sarp\"";
            return Err(Failure::file(file, what, "set host.mode, or remove the section"));
        }
        self.check_keeper(file)
    }

    fn check_keeper(&self, file: &Path) -> Result<(), Failure> {
        let Keeper::Cluster(access) = self.keeper() else {
            let Akd { etcd_ca, etcd_certificate, etcd_key, etcd_unprotected, .. } = self;
            let files = [etcd_ca, etcd_certificate, etcd_key];
            if *etcd_unprotected || files.iter().any(|file| file.is_some()) {
                let what = "keys akd.etcd_... without akd.etcd";
                return Err(Failure::file(file, what, "name the cluster's members in akd.etcd, or remove them"));
            }
            return Ok(());
        };
        if self.repository.is_some() {
            let what = "akd.repository and akd.etcd are both there";
            return Err(Failure::file(file, what, "keep the one that the site uses"));
        }
        access.check().map_err(|bad| {
            let key = if bad.setting() == "etcd" { "etcd".to_owned() } else { format!("etcd_{}", bad.setting()) };
            Failure::file(
                file,
                format!("akd.{key}: {bad}"),
                &bad.remedy().replace("\"unprotected\"", "akd.etcd_unprotected"),
            )
        })
    }

    /// Where the hosts are kept.
    pub(crate) fn keeper(&self) -> Keeper<'_> {
        if self.etcd.is_empty() {
            return Keeper::File(self.repository.as_deref().unwrap_or(Path::new(DEFAULT_REPOSITORY)));
        }
        Keeper::Cluster(Access {
            members: self.etcd.clone(),
            ca: self.etcd_ca.clone(),
            certificate: self.etcd_certificate.clone(),
            key: self.etcd_key.clone(),
            unprotected: self.etcd_unprotected,
        })
    }

    /// Writes down the default, for whoever asks what is in force.
    pub(crate) fn fill(&mut self) {
        if self.etcd.is_empty() {
            self.repository.get_or_insert_with(|| DEFAULT_REPOSITORY.into());
        }
    }
}

impl Sarp {
    pub(crate) fn check(&self, host: &Host, lab: Option<&Lab>, file: &Path) -> Result<(), Failure> {
        let longest = WINDOW_MAX.as_secs();
        if self.window_s == 0 || self.window_s > longest {
            let what = format!("sarp.window_s = {} does not serve", self.window_s);
            return Err(Failure::file(file, what, &format!("use 1 to {longest}; 30 is usual")));
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = self.known_hosts.iter().find(|host| !seen.insert(host.ip)) {
            let what = format!("sarp.known_hosts has {} twice", twice.ip);
            return Err(Failure::file(file, what, "keep the entry with the hardware address that it has"));
        }
        match lab.filter(|_| host.mode == Mode::Sarp) {
            Some(lab) => weakened::check(lab, file),
            None => Ok(()),
        }
    }

    /// How old this host's key may become.
    pub(crate) fn refresh_key_every(&self) -> Option<Duration> {
        self.refresh_key_every.as_ref().map(|RefreshEvery(span)| span.time)
    }

    /// What is allowed and yet unwise.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let long = self.window() > WINDOW_ADVISED;
        let text = "lets answers of a host that has left be replayed for as long; 30 is usual, at most 60 is advised";
        long.then(|| format!("sarp.window_s = {} {text}", self.window_s)).into_iter().collect()
    }

    pub(crate) fn window(&self) -> Duration {
        Duration::from_secs(self.window_s)
    }

    /// The hosts without S-ARP.
    pub(crate) fn known_hosts(&self) -> Vec<sarp::KnownHost> {
        self.known_hosts.iter().map(|host| sarp::KnownHost { ip: host.ip, mac: host.mac.mac() }).collect()
    }

    /// Whether the kernel checks in front of signed ARP. A laboratory that weakens checks sees
    /// every message.
    pub(crate) fn is_in_kernel(&self, lab: Option<&Lab>) -> bool {
        self.kernel && lab.is_none_or(|lab| lab.weaken.is_empty())
    }

    /// The layers that a laboratory has switched off.
    pub(crate) fn weaken(lab: Option<&Lab>) -> sarp::Weaken {
        lab.map(weakened::weaken).unwrap_or_default()
    }
}
