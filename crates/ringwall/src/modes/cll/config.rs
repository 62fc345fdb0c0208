//! Section `[cll]`: what the link layer demands of frames, and whom it lets pass without.
//!
//! - `names.rs`: its words; `suites.rs`: algorithms; `nonce_only.rs`: the one without a tag;
//!   `compression.rs`, `secrets.rs`,
//!   `broadcast.rs`, `kernel_rate.rs`: keys that belong together.
//! - `migration.rs`: frames in clear.

mod broadcast;
mod compression;
mod kernel_rate;
pub(crate) mod migration;
mod names;
mod nonce_only;
mod secrets;
mod suites;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::shield::Layers;
use ::shield::kernel::Rates;
use ::shield::limits::{KERNEL_GROUP_MESSAGES_PER_SECOND, KERNEL_HANDSHAKES_PER_SECOND};
use cll::{Legacy, Settings, Weaken, limits};
use identity::HostIdentity;
use serde::{Deserialize, Serialize};
use wire::EtherType;
use wire::cll::broadcast::LEAVES_MAX;

use self::kernel_rate::KernelRate;
use self::names::{
    CompressName, ExceptionHost, LayersName, LegacyRole, ManagementHost, PostQuantumName, SealedType, SendSuite,
    SuiteName,
};
pub(crate) use self::names::{LegacyHost, MigrationName, Trains};
use crate::config::{HookName, Host, Lab, Passed, Profile, Switch};
use crate::failure::Failure;
use crate::modes::name::Mode;

/// Longest clock tolerance; it stays below the shortest lifetime of an association.
const CLOCK_TOLERANCE_MAX: Duration = Duration::from_secs(10 * 60);
const _: () = assert!(CLOCK_TOLERANCE_MAX.as_secs() < limits::LIFETIME_MIN.as_secs());

const _: () = assert!(
    KERNEL_GROUP_MESSAGES_PER_SECOND >= limits::GROUP_CHECKS_PER_SOURCE_PER_SECOND * LEAVES_MAX as u32,
    "all that one sender can prove passes the kernel"
);

/// Section `[cll]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Cll {
    pub(crate) ethertype: SealedType,
    pub(crate) send_suite: SendSuite,
    pub(crate) confidentiality: bool,
    pub(crate) require_suites: Vec<SuiteName>,
    pub(crate) require_confidentiality: bool,
    pub(crate) lifetime_s: u64,
    pub(crate) idle_s: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revocation_list: Option<PathBuf>,
    pub(crate) clock_tolerance_s: u64,
    pub(crate) pass: Vec<Passed>,
    pub(crate) trains: Trains,
    pub(crate) layers: LayersName,
    pub(crate) kernel_hook: HookName,
    pub(crate) kernel_handshakes_per_second: KernelRate,
    pub(crate) kernel_group_frames_per_second: KernelRate,
    pub(crate) slow_nonce: bool,
    pub(crate) compress: CompressName,
    pub(crate) decompress: bool,
    pub(crate) post_quantum: PostQuantumName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pre_shared_key: Option<PathBuf>,
    pub(crate) migration: MigrationName,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) exception: Vec<ExceptionHost>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) management: Vec<ManagementHost>,
    pub(crate) ipv6: bool,
    pub(crate) broadcast: bool,
    pub(crate) broadcast_batch_above: u32,
    pub(crate) broadcast_batch_delay_ms: u64,
    pub(crate) broadcast_batch_frames: u8,
    pub(crate) broadcast_to_legacy: bool,
    pub(crate) igmp_in_clear: bool,
    pub(crate) resumption: bool,
    pub(crate) ticket_lifetime_s: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) legacy: Vec<LegacyHost>,
}

impl Default for Cll {
    fn default() -> Self {
        Cll {
            ethertype: SealedType::default(),
            send_suite: SendSuite::Auto,
            confidentiality: true,
            require_suites: SuiteName::all(),
            require_confidentiality: false,
            lifetime_s: limits::LIFETIME_DEFAULT.as_secs(),
            idle_s: limits::IDLE_DEFAULT.as_secs(),
            revocation_list: None,
            clock_tolerance_s: limits::CLOCK_TOLERANCE.as_secs(),
            pass: Vec::new(),
            trains: Trains::Auto,
            layers: LayersName::Kernel,
            kernel_hook: HookName::Socket,
            kernel_handshakes_per_second: KernelRate::of_default(KERNEL_HANDSHAKES_PER_SECOND),
            kernel_group_frames_per_second: KernelRate::of_default(KERNEL_GROUP_MESSAGES_PER_SECOND),
            slow_nonce: false,
            compress: CompressName::None,
            decompress: false,
            post_quantum: PostQuantumName::Off,
            pre_shared_key: None,
            migration: MigrationName::Enforce,
            exception: Vec::new(),
            management: Vec::new(),
            ipv6: true,
            broadcast: true,
            broadcast_batch_above: limits::GROUP_BATCH_ABOVE_DEFAULT,
            broadcast_batch_delay_ms: limits::GROUP_BATCH_DELAY_DEFAULT.as_millis() as u64,
            broadcast_batch_frames: LEAVES_MAX,
            broadcast_to_legacy: false,
            igmp_in_clear: false,
            resumption: false,
            ticket_lifetime_s: limits::TICKET_LIFETIME_DEFAULT.as_secs(),
            legacy: Vec::new(),
        }
    }
}

impl Cll {
    /// That its keys go together, and with the rest of the file.
    pub(crate) fn check(&self, host: &Host, file: &Path) -> Result<(), Failure> {
        self.check_nonce_only(host.profile, file)?;
        self.check_times(host.profile, file)?;
        self.check_suites(host.profile, file)?;
        self.check_migration(host.mode, file)?;
        self.check_compression(file)?;
        if host.mode == Mode::Cll && host.profile == Profile::Paper {
            self.check_secrets(file)?;
        }
        self.check_broadcasting(file)
    }

    fn check_times(&self, profile: Profile, file: &Path) -> Result<(), Failure> {
        let tolerance_max = CLOCK_TOLERANCE_MAX.as_secs();
        if self.clock_tolerance_s > tolerance_max {
            let what = format!("cll.clock_tolerance_s = {} is too long", self.clock_tolerance_s);
            return Err(Failure::file(file, what, &format!("use at most {tolerance_max}")));
        }
        for (key, value, shortest) in [
            ("lifetime_s", self.lifetime_s, limits::LIFETIME_MIN.as_secs()),
            ("idle_s", self.idle_s, limits::IDLE_MIN.as_secs()),
        ] {
            if value < shortest && profile != Profile::Lab {
                let what = format!("cll.{key} = {value} is too short");
                return Err(Failure::file(file, what, &format!("use at least {shortest}")));
            }
        }
        let longest = limits::LIFETIME_MAX.as_secs();
        if self.lifetime_s > longest {
            let what = format!("cll.lifetime_s = {} is too long", self.lifetime_s);
            return Err(Failure::file(file, what, &format!("use at most {longest}")));
        }
        let (least, most) = (limits::TICKET_LIFETIME_MIN.as_secs(), limits::TICKET_LIFETIME_MAX.as_secs());
        if !(least..=most).contains(&self.ticket_lifetime_s) {
            let what = format!("cll.ticket_lifetime_s = {} is out of range", self.ticket_lifetime_s);
            return Err(Failure::file(file, what, &format!("use {least} to {most}")));
        }
        Ok(())
    }

    /// EtherTypes that are configured to pass in clear.
    pub(crate) fn pass(&self) -> Vec<EtherType> {
        self.pass.iter().map(|passed| passed.ethertype()).collect()
    }

    /// Hosts admitted in clear.
    pub(crate) fn legacy(&self) -> Vec<Legacy> {
        let read = |host: &LegacyHost| {
            let router = host.role == LegacyRole::Router;
            Legacy { mac: host.mac.mac(), ip: host.ip, router, broadcast: host.broadcast }
        };
        self.legacy.iter().map(read).collect()
    }

    /// Where forged frames are to end. A laboratory that weakens checks sees every frame: the
    /// kernel's are never weakened.
    pub(crate) fn layers(&self, lab: Option<&Lab>) -> Layers {
        match self.layers.layers() {
            Layers::Kernel if lab.is_some_and(|lab| !lab.weaken.is_empty()) => Layers::Twin,
            layers => layers,
        }
    }

    /// Which frames leave in trains where the kernel cuts them or not. Under `auto` none do where
    /// it does not, and nothing is kept free for them.
    pub(crate) fn trains(&self, kernel_cuts: Option<bool>) -> Trains {
        let cuts = kernel_cuts.unwrap_or(true);
        if self.trains == Trains::Auto && !cuts { Trains::Off } else { self.trains }
    }

    /// Whether some frames in clear may be let in.
    pub(crate) fn lets_clear_in(&self, lab: Option<&Lab>) -> bool {
        let is_listed = !(self.legacy.is_empty() && self.exception.is_empty() && self.management.is_empty());
        is_listed || self.migration != MigrationName::Enforce || lab.is_some()
    }

    /// What the kernel passes of messages with a right tag.
    pub(crate) fn kernel_rates(&self) -> Rates {
        Rates {
            handshake_messages_per_second: self.kernel_handshakes_per_second.into(),
            group_messages_per_second: self.kernel_group_frames_per_second.into(),
            ..Rates::default()
        }
    }

    /// The link layer's settings for `identity` on an interface with this MTU.
    ///
    /// # Errors
    /// The pre-shared keys cannot be read.
    pub(crate) fn settings(
        &self,
        profile: Profile,
        lab: Option<&Lab>,
        identity: Arc<HostIdentity>,
        wire_mtu: u16,
    ) -> Result<Settings, Failure> {
        let mut settings = Settings::new(identity, wire_mtu);
        settings.ethertype = self.ethertype.ethertype();
        settings.send_suite = self.send_suite(profile);
        settings.confidential = self.confidentiality;
        settings.slow_nonce = self.slow_nonce;
        settings.compression = self.compression();
        settings.post_quantum = self.post_quantum.into();
        settings.pre_shared = self.pre_shared()?;
        settings.ipv6 = self.ipv6;
        settings.resumption = self.resumption.then(|| Duration::from_secs(self.ticket_lifetime_s));
        settings.layers = self.layers(lab);
        settings.require = self.requirement(profile);
        settings.lifetime = Duration::from_secs(self.lifetime_s);
        settings.idle = Duration::from_secs(self.idle_s);
        settings.clock_tolerance = Duration::from_secs(self.clock_tolerance_s);
        settings.legacy = self.legacy();
        settings.policy = self.policy();
        settings.broadcasting = self.broadcasting();
        if let Some(lab) = lab {
            settings.weaken = weaken(&lab.weaken);
            settings.lifetime_min = lab.lifetime_min_s.map_or(settings.lifetime_min, Duration::from_secs);
            settings.rekey_after_frames = lab.rekey_after_frames.unwrap_or(settings.rekey_after_frames);
            settings.rekey_every = lab.rekey_every_s.map(Duration::from_secs);
        }
        Ok(settings)
    }

    /// What is allowed and yet unwise, one line each.
    pub(crate) fn warnings(&self) -> Vec<String> {
        self.migration_warnings().into_iter().chain(self.compression_warning()).collect()
    }
}

/// What `lab.weaken` means in this mode.
fn weaken(off: &[Switch]) -> Weaken {
    let is_off = |switch| off.contains(&switch);
    Weaken {
        replay_window: is_off(Switch::ReplayWindow),
        cross_layer: is_off(Switch::CrossLayer),
        promotion: is_off(Switch::Promotion),
        freshness: is_off(Switch::Freshness),
        site_tag: is_off(Switch::SiteMac),
        reply_check: is_off(Switch::ReplyCheck),
        budgets: is_off(Switch::Budgets),
        tag: is_off(Switch::Tag),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each word has the switch of its name and no other.
    #[test]
    fn each_layer_has_its_own_switch() {
        let off = |layer| weaken(&[layer]);
        assert_eq!(off(Switch::Tag), Weaken { tag: true, ..Weaken::default() });
        assert_eq!(off(Switch::SiteMac), Weaken { site_tag: true, ..Weaken::default() });
        assert_eq!(off(Switch::ReplyCheck), Weaken { reply_check: true, ..Weaken::default() });
        assert_eq!(weaken(&[]), Weaken::default());
    }
}
