//! The configuration file: what an operator may say, its defaults, and errors that name file, line and remedy.
//!
//! Each section belongs to one part of the program. Unknown keys are errors, because a misspelt key that is silently
//! ignored is a hole that nobody sees.

mod broadcast;
mod changes;
mod compression;
mod dhcp;
pub(crate) mod duration;
mod file;
mod gate;
mod kernel_hook;
mod kernel_rate;
mod migration;
mod near;
mod nonce_only;
mod real_time;
mod records;
mod sarp;
mod secrets;
mod shield;
mod site;
mod weakened;

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::shield::Layers;
use ::shield::kernel::Rates;
use ::shield::limits::{KERNEL_GROUP_MESSAGES_PER_SECOND, KERNEL_HANDSHAKES_PER_SECOND};
use cll::{Legacy, Requirement, Settings, Weaken, limits};
use identity::HostIdentity;
use identity::aead::Suite;
use identity::profile::HAS_PAPER;
use serde::{Deserialize, Serialize};
use system::clock::Clock;
use system::takeover::{self, Way};
use wire::cll::broadcast::LEAVES_MAX;
use wire::{EtherType, MacAddress};

pub(crate) use self::changes::{changed_keys, restart_line};
use self::compression::CompressName;
pub(crate) use self::dhcp::Dhcp;
pub(crate) use self::file::ConfigFile;
pub(crate) use self::gate::{Gate, GateConfig, PresetName, network};
pub(crate) use self::kernel_hook::HookName;
use self::kernel_rate::KernelRate;
pub(crate) use self::migration::{ExceptionHost, ManagementHost, MigrationName, exception, legacy_host};
pub(crate) use self::real_time::RealTime;
pub(crate) use self::records::{MetricsAddress, Records, SyslogAddress};
pub(crate) use self::sarp::{Akd, Keeper, Sarp};
use self::secrets::PostQuantumName;
pub(crate) use self::shield::{Shield, ShieldPeer, Strangers};
pub(crate) use self::site::Site;
use crate::failure::Failure;

/// Where configurations are.
pub(crate) const DIRECTORY: &str = "/etc/ringwall";
/// Where the configuration of a host is looked for.
pub(crate) const DEFAULT_FILE: &str = "/etc/ringwall/host.toml";
/// Where the site's policy is looked for if no revocation list is named.
const DEFAULT_POLICY_DIR: &str = "/etc/ringwall";
const POLICY_FILE: &str = "policy.pem";
/// Where the configuration of a gateway is looked for.
pub(crate) const DEFAULT_GATE_FILE: &str = "/etc/ringwall/gate.toml";

/// The whole file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) host: Host,
    #[serde(default)]
    pub(crate) cll: Cll,
    #[serde(default)]
    pub(crate) sarp: Sarp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) akd: Option<Akd>,
    #[serde(default)]
    pub(crate) dhcp: Dhcp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shield: Option<Shield>,
    #[serde(default)]
    pub(crate) records: Records,
    #[serde(default)]
    pub(crate) site: Site,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lab: Option<Lab>,
    /// Whether this kernel cuts joined datagrams, once it was asked.
    #[serde(skip)]
    pub(crate) kernel_cuts: Option<bool>,
}

/// How an interface is guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// The cryptographic link layer.
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
    pub(crate) fn word(self) -> &'static str {
        match self {
            Mode::Cll => "cll",
            Mode::Sarp => "sarp",
            Mode::Shield => "shield",
            Mode::Null => "null",
        }
    }

    /// What is not carried under a seal in this version.
    fn not_carried(self) -> &'static [&'static str] {
        match self {
            Mode::Cll => &["IPv6 of legacy hosts", "frames with VLAN tags on the wire"],
            Mode::Sarp | Mode::Shield => &["frames with VLAN tags"],
            Mode::Null => &[],
        }
    }

    /// What passes as it came, for anybody to forge.
    pub(crate) fn not_protected(self) -> &'static [&'static str] {
        match self {
            Mode::Cll => &[],
            Mode::Sarp => &["everything but ARP (and DHCP where [dhcp] guards it), so IPv6 neighbour discovery, too"],
            Mode::Shield => &["everything but the IPsec stack's processor time: what passes is proved by IPsec itself"],
            Mode::Null => &["everything"],
        }
    }
}

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

/// What an operator reads of the paper profile wherever it is in force, by the word of the mode.
pub(crate) fn paper_warning(mode: &str) -> &'static str {
    if mode == Mode::Cll.word() { CLL_PAPER_WARNING } else { PAPER_WARNING }
}

const CLL_PAPER_WARNING: &str = "profile paper: frames are sealed with CBC and HMAC and handshakes signed with short RSA keys, as \
    in 2008: for measurements, NOT for real use";
const PAPER_WARNING: &str = "profile paper: S-ARP is signed with DSA of 512 or 1024 bits and SHA-1, as in 2003, \
    and can be forged: for measurements, NOT for real use";

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
    #[serde(default = "default_mode")]
    pub(crate) mode: Mode,
    #[serde(default = "default_identity")]
    pub(crate) identity: PathBuf,
    #[serde(default)]
    pub(crate) profile: Profile,
    #[serde(default)]
    pub(crate) on_exit: OnExit,
    #[serde(default = "default_takeover")]
    pub(crate) takeover: Way,
    #[serde(default = "default_run_dir")]
    pub(crate) run_dir: PathBuf,
    #[serde(default = "default_state_dir")]
    pub(crate) state_dir: PathBuf,
    /// How long before a certificate ends that is warned of.
    #[serde(default = "migration::default_warn_before")]
    pub(crate) warn_before: Vec<String>,
    /// A shell's command that takes a request for a renewal and gives the bundle.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) renew_through: Option<String>,
    /// Before whom the data path runs, if before anybody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) real_time_priority: Option<RealTime>,
    /// How long before its end this host's certificate is renewed.
    #[serde(default = "migration::default_renew_before")]
    pub(crate) renew_before: String,
    /// The site's policy, where it is not beside the revocation list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<PathBuf>,
    /// Whether this file's mode counts also where it is looser than the policy's.
    #[serde(default)]
    pub(crate) loosens_policy: bool,
    /// Whether this file names a mode of migration.
    #[serde(skip)]
    pub(super) sets_mode: bool,
}

impl Host {
    /// Where the site's policy is looked for: beside the revocation list of `cll` if nothing else
    /// is said.
    pub(crate) fn policy_file(&self, cll: &Cll) -> PathBuf {
        let beside = cll.revocation_list.as_ref().and_then(|file| file.parent());
        let default = || beside.unwrap_or(Path::new(DEFAULT_POLICY_DIR)).join(POLICY_FILE);
        self.policy.clone().unwrap_or_else(default)
    }
}

fn default_mode() -> Mode {
    Mode::Cll
}

fn default_identity() -> PathBuf {
    "/etc/ringwall/identity.pem".into()
}

fn default_takeover() -> Way {
    Way::Auto
}

pub(crate) fn default_run_dir() -> PathBuf {
    "/run/ringwall".into()
}

fn default_state_dir() -> PathBuf {
    "/var/lib/ringwall".into()
}

/// The configuration that is meant where none is named.
pub(crate) fn default_file() -> PathBuf {
    let host = PathBuf::from(DEFAULT_FILE);
    let gate = PathBuf::from(DEFAULT_GATE_FILE);
    if gate.exists() && !host.exists() { gate } else { host }
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
    fn layers(self) -> Layers {
        match self {
            LayersName::None => Layers::None,
            LayersName::Twin => Layers::Twin,
            LayersName::Kernel => Layers::Kernel,
        }
    }
}

const _: () = assert!(
    KERNEL_GROUP_MESSAGES_PER_SECOND >= limits::GROUP_CHECKS_PER_SOURCE_PER_SECOND * LEAVES_MAX as u32,
    "all that one sender can prove passes the kernel"
);

/// Section `[cll]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Cll {
    pub(crate) ethertype: u16,
    pub(crate) send_suite: String,
    pub(crate) confidentiality: bool,
    pub(crate) require_suites: Vec<String>,
    pub(crate) require_confidentiality: bool,
    pub(crate) lifetime_s: u64,
    pub(crate) idle_s: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) revocation_list: Option<PathBuf>,
    pub(crate) clock_tolerance_s: u64,
    pub(crate) pass: Vec<String>,
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
            ethertype: EtherType::CLL.0,
            send_suite: SUITE_AUTO.to_owned(),
            confidentiality: true,
            require_suites: Suite::ALL.iter().map(|suite| suite.name().to_owned()).collect(),
            require_confidentiality: false,
            lifetime_s: cll::limits::LIFETIME_DEFAULT.as_secs(),
            idle_s: cll::limits::IDLE_DEFAULT.as_secs(),
            revocation_list: None,
            clock_tolerance_s: cll::limits::CLOCK_TOLERANCE.as_secs(),
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
            broadcast_batch_above: cll::limits::GROUP_BATCH_ABOVE_DEFAULT,
            broadcast_batch_delay_ms: broadcast::millis(cll::limits::GROUP_BATCH_DELAY_DEFAULT),
            broadcast_batch_frames: LEAVES_MAX,
            broadcast_to_legacy: false,
            igmp_in_clear: false,
            resumption: false,
            ticket_lifetime_s: cll::limits::TICKET_LIFETIME_DEFAULT.as_secs(),
            legacy: Vec::new(),
        }
    }
}

/// A host that cannot speak CLL.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LegacyHost {
    pub(crate) ip: Ipv4Addr,
    pub(crate) mac: String,
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

/// Section `[lab]`, refused outside `profile = "lab"`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Lab {
    pub(crate) weaken: Vec<String>,
    pub(crate) lifetime_min_s: Option<u64>,
    pub(crate) rekey_after_frames: Option<u32>,
    pub(crate) rekey_every_s: Option<u64>,
    /// By how much the wall clock that the daemon sees is wrong.
    pub(crate) clock_offset_s: i32,
}

/// Stands for the fastest suite that is safe on this processor.
const SUITE_AUTO: &str = "auto";

/// The EtherTypes that may pass in clear, by the name an operator uses.
const PASSABLE: [(&str, EtherType); 4] =
    [("802.1x", EtherType::EAPOL), ("lldp", EtherType::LLDP), ("lacp", EtherType::SLOW), ("ptp", EtherType::PTP)];

/// Longest clock tolerance; it stays below the shortest lifetime of an association.
const CLOCK_TOLERANCE_MAX: Duration = Duration::from_secs(10 * 60);
const _: () = assert!(CLOCK_TOLERANCE_MAX.as_secs() < cll::limits::LIFETIME_MIN.as_secs());

/// What to do about a configuration that cannot be read.
pub(crate) const UNREADABLE: &str = "write it, or name another with --config";

impl Config {
    /// Reads and checks `file`.
    pub(crate) fn load(file: &Path) -> Result<Config, Failure> {
        Config::read(file, &read_text(file)?)
    }

    /// Reads and checks `text`, the content of `file`.
    pub(crate) fn read(file: &Path, text: &str) -> Result<Config, Failure> {
        let mut config: Config = toml::from_str(text).map_err(|error| syntax(file, text, &error))?;
        config.host.sets_mode = migration::sets_mode(text);
        config.check(file)?;
        config.akd.iter_mut().for_each(Akd::fill);
        Ok(config)
    }

    fn check(&self, file: &Path) -> Result<(), Failure> {
        let lab = self.host.profile == Profile::Lab;
        if self.lab.is_some() && !lab {
            return Err(Failure::file(
                file,
                "[lab] needs profile = \"lab\"",
                "remove the section: it is not for real use",
            ));
        }
        if self.host.mode == Mode::Null && !lab {
            let what = "mode = \"null\" protects nothing and needs profile = \"lab\"";
            return Err(Failure::file(file, what, "use mode = \"cll\""));
        }
        self.check_paper(file)?;
        self.check_nonce_only(file)?;
        if !takeover::is_interface_name(&self.host.interface) {
            return Err(Failure::file(file, "host.interface is not an interface name", "name one of `ip link`"));
        }
        if self.cll.ethertype < 0x0600 {
            let what = format!("cll.ethertype = 0x{:04x} is a length, not an EtherType", self.cll.ethertype);
            return Err(Failure::file(file, what, "use 0x07d0 or a value above it"));
        }
        self.check_in_place(file)?;
        self.check_times(file)?;
        self.check_akd(file)?;
        self.check_dhcp(file)?;
        self.check_shield(file)?;
        self.records.check(file)?;
        self.site.check(file)?;
        self.sarp.check(file)?;
        self.send_suite(file)?;
        self.requirement(file)?;
        self.pass(file)?;
        self.check_migration(file)?;
        self.check_compression(file)?;
        self.check_secrets(file)?;
        self.broadcasting(file)?;
        if self.host.mode == Mode::Sarp {
            self.sarp_weaken(file)?;
        }
        self.weaken(file).map(|_| ())
    }

    fn check_paper(&self, file: &Path) -> Result<(), Failure> {
        let is_paper = self.host.profile == Profile::Paper;
        if is_paper && !HAS_PAPER {
            let what = "profile = \"paper\" is not in this build";
            return Err(Failure::file(file, what, "use profile = \"modern\", or a build with the feature \"paper\""));
        }
        if is_paper && !matches!(self.host.mode, Mode::Sarp | Mode::Cll) {
            let what = "profile = \"paper\" needs mode = \"sarp\" or mode = \"cll\"";
            return Err(Failure::file(file, what, "set host.mode, or use profile = \"modern\""));
        }
        if self.dhcp.order == dhcp::Order::Paper && !is_paper {
            let what = "dhcp.order = \"paper\" needs profile = \"paper\"";
            let remedy = "remove the key: in that order a server commits what may then be refused";
            return Err(Failure::file(file, what, remedy));
        }
        Ok(())
    }

    fn check_times(&self, file: &Path) -> Result<(), Failure> {
        let tolerance = Duration::from_secs(self.cll.clock_tolerance_s);
        if tolerance > CLOCK_TOLERANCE_MAX {
            let what = format!("cll.clock_tolerance_s = {} is too long", self.cll.clock_tolerance_s);
            let remedy = format!("use at most {}", CLOCK_TOLERANCE_MAX.as_secs());
            return Err(Failure::file(file, what, &remedy));
        }
        let shortest = cll::limits::LIFETIME_MIN.as_secs();
        if self.cll.lifetime_s < shortest && self.host.profile != Profile::Lab {
            let what = format!("cll.lifetime_s = {} is too short", self.cll.lifetime_s);
            return Err(Failure::file(file, what, &format!("use at least {shortest}")));
        }
        let longest = cll::limits::LIFETIME_MAX.as_secs();
        if self.cll.lifetime_s > longest {
            let what = format!("cll.lifetime_s = {} is too long", self.cll.lifetime_s);
            return Err(Failure::file(file, what, &format!("use at most {longest}")));
        }
        let shortest = cll::limits::IDLE_MIN.as_secs();
        if self.cll.idle_s < shortest && self.host.profile != Profile::Lab {
            let what = format!("cll.idle_s = {} is too short", self.cll.idle_s);
            return Err(Failure::file(file, what, &format!("use at least {shortest}")));
        }
        let (least, most) = (limits::TICKET_LIFETIME_MIN.as_secs(), limits::TICKET_LIFETIME_MAX.as_secs());
        if !(least..=most).contains(&self.cll.ticket_lifetime_s) {
            let what = format!("cll.ticket_lifetime_s = {} is out of range", self.cll.ticket_lifetime_s);
            return Err(Failure::file(file, what, &format!("use {least} to {most}")));
        }
        Ok(())
    }

    fn send_suite(&self, file: &Path) -> Result<Suite, Failure> {
        match self.cll.send_suite.as_str() {
            SUITE_AUTO => {
                let paper = Suite::of_profile(identity::Profile::Paper).first().copied();
                let fastest = paper.filter(|_| self.host.profile == Profile::Paper).unwrap_or_else(Suite::fastest_here);
                Ok(self.requirement(file)?.choose(fastest))
            }
            name => self.suite(file, "cll.send_suite", name),
        }
    }

    fn suite(&self, file: &Path, key: &str, name: &str) -> Result<Suite, Failure> {
        let known = Suite::of_profile(self.host.profile.of_keys());
        let suite = Suite::from_name(name).ok_or_else(|| {
            let names: Vec<_> = known.iter().map(|suite| suite.name()).collect();
            Failure::file(file, format!("{key}: unknown suite \"{name}\""), &format!("use one of {}", names.join(", ")))
        })?;
        if suite.profile() == self.host.profile.of_keys() {
            return Ok(suite);
        }
        let what = format!("{key}: \"{name}\" is of the {} profile, and host.profile is another", suite.profile());
        let first = known.first().map_or("none", |suite| suite.name());
        Err(Failure::file(file, what, &format!("use a suite of the host's profile, such as {first}")))
    }

    fn requirement(&self, file: &Path) -> Result<Requirement, Failure> {
        if self.host.profile == Profile::Paper && self.cll.require_suites == Cll::default().require_suites {
            let suites = Suite::of_profile(identity::Profile::Paper);
            return Ok(Requirement { suites, confidential: self.cll.require_confidentiality });
        }
        let suites = self.cll.require_suites.iter();
        let suites = suites.map(|name| self.suite(file, "cll.require_suites", name)).collect::<Result<Vec<_>, _>>()?;
        if suites.is_empty() {
            return Err(Failure::file(
                file,
                "cll.require_suites is empty",
                "list at least one suite, or remove the key",
            ));
        }
        Ok(Requirement { suites, confidential: self.cll.require_confidentiality })
    }

    fn pass(&self, file: &Path) -> Result<Vec<EtherType>, Failure> {
        let named = self.cll.pass.iter().map(|name| {
            passable(name).ok_or_else(|| {
                let words: Vec<_> = PASSABLE.iter().map(|(word, _)| *word).collect();
                let remedy = format!("use any of {}", words.join(", "));
                Failure::file(file, format!("cll.pass: unknown protocol \"{name}\""), &remedy)
            })
        });
        named.collect()
    }

    /// EtherTypes that pass in clear.
    pub(crate) fn pass_list(&self) -> Vec<EtherType> {
        self.cll.pass.iter().filter_map(|name| passable(name)).collect()
    }

    /// Hosts admitted in clear.
    pub(crate) fn legacy(&self, file: &Path) -> Result<Vec<Legacy>, Failure> {
        let parse = |host: &LegacyHost| {
            let mac = station(file, "cll.legacy", "one host", &host.mac)?;
            Ok(Legacy { mac, ip: host.ip, router: host.role == LegacyRole::Router, broadcast: host.broadcast })
        };
        self.cll.legacy.iter().map(parse).collect()
    }

    fn weaken(&self, file: &Path) -> Result<Weaken, Failure> {
        let mut weaken = Weaken::default();
        for word in self.lab.iter().flat_map(|lab| &lab.weaken) {
            let switch = match word.as_str() {
                "replay-window" => &mut weaken.replay_window,
                "cross-layer" => &mut weaken.cross_layer,
                "promotion" => &mut weaken.promotion,
                "freshness" => &mut weaken.freshness,
                "site-mac" => &mut weaken.site_tag,
                "reply-check" => &mut weaken.reply_check,
                "budgets" => &mut weaken.budgets,
                "tag" => &mut weaken.tag,
                _ => {
                    let remedy =
                        "use replay-window, cross-layer, promotion, freshness, site-mac, reply-check, budgets or tag";
                    return Err(Failure::file(file, format!("lab.weaken: unknown layer \"{word}\""), remedy));
                }
            };
            *switch = true;
        }
        Ok(weaken)
    }

    /// Where forged frames are to end. A laboratory that weakens checks sees every frame: the kernel's are never weakened.
    pub(crate) fn layers(&self) -> Layers {
        match self.cll.layers.layers() {
            Layers::Kernel if self.lab.as_ref().is_some_and(|lab| !lab.weaken.is_empty()) => Layers::Twin,
            layers => layers,
        }
    }

    /// Which frames leave in trains. Under `auto` none do where the kernel does not cut them, and
    /// nothing is kept free for them.
    pub(crate) fn trains(&self) -> Trains {
        let cuts = self.kernel_cuts.unwrap_or(true);
        if self.cll.trains == Trains::Auto && !cuts { Trains::Off } else { self.cll.trains }
    }

    /// Whether some frames in clear may be let in.
    pub(crate) fn lets_clear_in(&self) -> bool {
        let cll = &self.cll;
        let is_listed = !(cll.legacy.is_empty() && cll.exception.is_empty() && cll.management.is_empty());
        is_listed || cll.migration != MigrationName::Enforce || self.lab.is_some()
    }

    /// Whether a card can stay in place under this configuration; if not, the words that stand
    /// against it, and a remedy. There is no room for a second program in front of a sealed card,
    /// and programs behind packet sockets would hear DHCP that nobody proved.
    fn stays_in_place(&self) -> Result<(), (&'static str, &'static str)> {
        match self.host.mode {
            Mode::Cll if self.cll.kernel_hook != HookName::Socket => {
                Err(("cll.kernel_hook, which wants the same place in front of the card", "use \"socket\" there"))
            }
            Mode::Sarp if self.dhcp.client || self.dhcp.server => {
                Err(("[dhcp] in mode = \"sarp\"", "use host.takeover = \"namespace\""))
            }
            Mode::Cll | Mode::Sarp => Ok(()),
            Mode::Shield | Mode::Null => Err(("this mode", "use host.takeover = \"namespace\"")),
        }
    }

    /// The way to try first: "auto" leaves a card where it is if that goes with the rest. If not,
    /// also what it does not go with.
    pub(crate) fn way(&self) -> (Way, Option<&'static str>) {
        match (self.host.takeover, self.stays_in_place()) {
            (Way::Auto, Ok(())) => (Way::InPlace, None),
            (Way::Auto, Err((what, _))) => (Way::Auto, Some(what)),
            (way, _) => (way, None),
        }
    }

    fn check_in_place(&self, file: &Path) -> Result<(), Failure> {
        match self.stays_in_place() {
            Err((what, remedy)) if self.host.takeover == Way::InPlace => {
                Err(Failure::file(file, format!("host.takeover = \"in-place\" does not go with {what}"), remedy))
            }
            _ => Ok(()),
        }
    }

    /// What the kernel passes of messages with a right tag.
    pub(crate) fn kernel_rates(&self) -> Rates {
        Rates {
            handshake_messages_per_second: self.cll.kernel_handshakes_per_second.into(),
            group_messages_per_second: self.cll.kernel_group_frames_per_second.into(),
            ..Rates::default()
        }
    }

    /// The link layer's settings for `identity` on an interface with this MTU.
    pub(crate) fn settings(
        &self,
        file: &Path,
        identity: Arc<HostIdentity>,
        wire_mtu: u16,
    ) -> Result<Settings, Failure> {
        let mut settings = Settings::new(identity, wire_mtu);
        settings.ethertype = EtherType(self.cll.ethertype);
        settings.send_suite = self.send_suite(file)?;
        settings.confidential = self.cll.confidentiality;
        settings.slow_nonce = self.cll.slow_nonce;
        settings.compression = self.compression();
        settings.post_quantum = self.cll.post_quantum.into();
        settings.pre_shared = self.pre_shared()?;
        settings.ipv6 = self.cll.ipv6;
        settings.resumption = self.cll.resumption.then(|| Duration::from_secs(self.cll.ticket_lifetime_s));
        settings.layers = self.layers();
        settings.require = self.requirement(file)?;
        settings.lifetime = Duration::from_secs(self.cll.lifetime_s);
        settings.idle = Duration::from_secs(self.cll.idle_s);
        settings.clock_tolerance = Duration::from_secs(self.cll.clock_tolerance_s);
        settings.legacy = self.legacy(file)?;
        settings.policy = self.policy(file)?;
        settings.broadcasting = self.broadcasting(file)?;
        settings.pass = self.pass(file)?;
        settings.weaken = self.weaken(file)?;
        if let Some(lab) = &self.lab {
            settings.lifetime_min = lab.lifetime_min_s.map_or(settings.lifetime_min, Duration::from_secs);
            settings.rekey_after_frames = lab.rekey_after_frames.unwrap_or(settings.rekey_after_frames);
            settings.rekey_every = lab.rekey_every_s.map(Duration::from_secs);
        }
        Ok(settings)
    }

    /// What is allowed and yet unwise, one line each.
    pub(crate) fn warnings(&self) -> Vec<String> {
        if let Some(shield) = &self.shield {
            return shield.warnings();
        }
        let mut warnings = match self.host.mode {
            Mode::Sarp => self.sarp.warnings(),
            _ => self.migration_warnings(),
        };
        warnings.extend(self.compression_warning());
        if self.host.profile == Profile::Paper {
            warnings.push(paper_warning(self.host.mode.word()).to_owned());
        }
        warnings.extend(self.nonce_only_warning());
        warnings
    }

    /// The clock that the daemon goes by.
    pub(crate) fn clock(&self) -> Clock {
        self.lab.as_ref().map_or_else(Clock::new, |lab| Clock::wrong_by(lab.clock_offset_s))
    }

    /// What a laboratory has switched off or set wrong.
    pub(crate) fn weakened(&self) -> Vec<String> {
        let shield = self.shield.iter().flat_map(Shield::weakened);
        let Some(lab) = &self.lab else { return shield.collect() };
        let offset_s = lab.clock_offset_s;
        let clock = (offset_s != 0).then(|| format!("right time (clock_offset_s = {offset_s})"));
        lab.weaken.iter().cloned().chain(clock).chain(shield).collect()
    }

    /// Where the daemon listens for commands.
    pub(crate) fn socket(&self) -> PathBuf {
        socket(&self.host.run_dir, &self.host.interface)
    }
}

/// Where the daemon of `interface` listens for commands.
pub(crate) fn socket(run_dir: &Path, interface: &str) -> PathBuf {
    run_dir.join(format!("{interface}.sock"))
}

/// What a word in `cll.pass` stands for.
fn passable(name: &str) -> Option<EtherType> {
    PASSABLE.iter().find(|(word, _)| *word == name).map(|(_, ethertype)| *ethertype)
}

fn read_text(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file).map_err(|error| Failure::file(file, error, UNREADABLE))
}

/// The hardware address, given under `key`, of what is `one` and no group.
fn station(file: &Path, key: &str, one: &str, text: &str) -> Result<MacAddress, Failure> {
    text.parse::<MacAddress>().ok().filter(|mac| !mac.is_group()).ok_or_else(|| {
        let what = format!("{key}: \"{text}\" is not a hardware address of {one}");
        Failure::file(file, what, "write it as 02:00:00:00:00:01")
    })
}

fn syntax(file: &Path, text: &str, error: &toml::de::Error) -> Failure {
    let line = error.span().map_or(1, |span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let message = error.message().replace('\n', ", ");
    let message = near::hint(&message).unwrap_or(message);
    Failure::new(format!("{}:{line}: {message}; ringwall.toml(5) has the keys that there are", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn load(text: &str) -> Result<Config, String> {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("host.toml");
        std::fs::write(&file, text).expect("written");
        Config::load(&file).map_err(|failure| failure.to_string())
    }

    #[test]
    fn the_shortest_file_gets_the_defaults() {
        let config = load("[host]\ninterface = \"eth0\"\n").expect("valid");
        assert_eq!(config.host.mode, Mode::Cll);
        assert_eq!(config.host.on_exit, OnExit::Closed);
        assert_eq!(config.cll.ethertype, 0x07d0);
        assert!(config.cll.confidentiality);
    }

    #[test]
    fn auto_leaves_the_card_where_it_is_unless_the_rest_speaks_against_it() {
        let way = |host: &str, rest: &str| {
            load(&format!("[host]\ninterface = \"eth0\"\n{host}\n{rest}")).expect("valid").way()
        };
        let (cll, sarp) = ("mode = \"cll\"", "mode = \"sarp\"");
        assert_eq!(way("", ""), (Way::InPlace, None));
        assert_eq!(way(cll, "[cll]\nmigration = \"observe\"\n[dhcp]\nclient = true\n"), (Way::InPlace, None));
        assert_eq!(way(sarp, ""), (Way::InPlace, None));
        let (elsewhere, why) = way(cll, "[cll]\nkernel_hook = \"xdp\"\n");
        assert!(elsewhere == Way::Auto && why.is_some_and(|why| why.starts_with("cll.kernel_hook")));
        let (elsewhere, why) = way(sarp, "[dhcp]\nclient = true\n");
        assert!(elsewhere == Way::Auto && why.is_some_and(|why| why.starts_with("[dhcp]")));
        assert_eq!(way("takeover = \"namespace\"", "[cll]\nkernel_hook = \"xdp\"\n"), (Way::Namespace, None));
    }

    #[test]
    fn a_suite_chosen_here_is_one_that_this_host_would_accept() {
        let chosen = |suites: &str| {
            let config = load(&format!("[host]\ninterface = \"eth0\"\n[cll]\nrequire_suites = [{suites}]\n"));
            config.expect("valid").send_suite(Path::new("host.toml")).expect("a suite")
        };
        assert_eq!(chosen("\"aes-128-gcm\", \"aes-256-gcm\""), Suite::Aes128Gcm);
        let all: Vec<_> = Suite::ALL.iter().rev().map(|suite| format!("\"{}\"", suite.name())).collect();
        assert_eq!(chosen(&all.join(", ")), Suite::fastest_here());
    }

    #[test]
    fn what_config_show_prints_is_read_back() {
        let text = "[host]\ninterface = \"eth0\"\n[[cll.legacy]]\nip = \"10.0.0.9\"\nmac = \"02:00:00:00:00:09\"\n";
        let config = load(text).expect("valid");
        let shown = toml::to_string(&config).expect("printable");
        let again = load(&shown).expect("what is shown is valid");
        assert_eq!(toml::to_string(&again).expect("printable"), shown);
    }

    #[test]
    fn a_long_window_draws_a_warning_where_it_counts() {
        let warnings = |mode: &str, window_s: u32| {
            let text = format!("[host]\ninterface = \"eth0\"\nmode = \"{mode}\"\n[sarp]\nwindow_s = {window_s}\n");
            load(&text).expect("valid").warnings()
        };
        assert!(warnings("sarp", 60).is_empty() && warnings("cll", 61).is_empty());
        assert!(warnings("sarp", 61)[0].starts_with("sarp.window_s = 61 "), "it names the key");
    }

    #[test]
    fn the_paper_profile_is_called_what_it_is() {
        let signed = load("[host]\ninterface = \"eth0\"\nmode = \"sarp\"\nprofile = \"paper\"\n");
        if !HAS_PAPER {
            let line = signed.expect_err("no such profile");
            assert!(line.contains("not in this build") && line.contains("the feature \"paper\""), "{line}");
            return;
        }
        let config = signed.expect("valid");
        assert_eq!(config.warnings(), [PAPER_WARNING]);
        assert_eq!(config.host.profile.of_keys(), identity::Profile::Paper);
        let text = "[host]\ninterface = \"eth0\"\nprofile = \"paper\"\n";
        let config = load(text).expect("valid");
        assert_eq!(config.warnings(), [CLL_PAPER_WARNING]);
        let suite = |config: &Config| config.send_suite(Path::new("x")).expect("a suite").name();
        assert_eq!(suite(&config), "twofish-128-hmac-md5");
        assert_eq!(config.requirement(Path::new("x")).expect("valid").suites.len(), 136);
        let config = load(&format!("{text}[cll]\nsend_suite = \"gost-256-hmac-has160\"\n")).expect("valid");
        assert_eq!(suite(&config), "gost-256-hmac-has160");
        assert_eq!(Profile::Lab.of_keys(), identity::Profile::Modern);
    }

    macro_rules! SHIELD {
        ($lines:literal) => {
            concat!("[host]\ninterface = \"eth0\"\nmode = \"shield\"\n[shield]\n", $lines)
        };
    }

    #[test]
    fn a_shield_says_what_it_lets_pass_and_what_is_off() {
        let text = SHIELD!("strangers = \"pass\"\n[[shield.peers]]\naddress = \"10.0.0.9\"\n");
        let config = load(text).expect("valid");
        assert!(config.warnings()[0].starts_with("shield.strangers = \"pass\": "), "{:?}", config.warnings());
        assert!(config.weakened().is_empty());
        let text = text
            .replace("strangers = \"pass\"", "off = [\"window\"]")
            .replace("[shield]\n", "profile = \"lab\"\n[shield]\n");
        assert_eq!(load(&text).expect("valid").weakened(), ["shield layer window"]);
    }

    macro_rules! AKD {
        ($lines:literal) => {
            concat!("[host]\ninterface = \"eth0\"\nmode = \"sarp\"\n[akd]\n", $lines, "\n")
        };
    }

    #[test]
    fn a_distributor_looks_hosts_up_in_one_place() {
        let shown = |text: &str| toml::to_string(&load(text).expect("valid").akd.expect("there")).expect("text");
        assert_eq!(shown(AKD!("")), "repository = \"/etc/ringwall/site/hosts.db\"\n");
        let cluster = shown(AKD!("etcd = [\"https://10.0.0.21:2379\"]\netcd_ca = \"ca.pem\""));
        assert_eq!(cluster, "etcd = [\"https://10.0.0.21:2379\"]\netcd_ca = \"ca.pem\"\n");
    }

    #[test]
    fn mistakes_name_file_line_and_remedy_in_one_line() {
        let cases = [
            ("[host]\ninterface = \"eth0\"\nmoed = \"cll\"\n", "host.toml:3", "did you mean \"mode\"?"),
            ("[host]\n", "host.toml:1", "interface"),
            ("[host]\ninterface = \"eth0\"\n[lab]\nweaken = []\n", "host.toml", "profile = \"lab\""),
            ("[host]\ninterface = \"eth0\"\n[lab]\nclock_offset_s = 5\n", "host.toml", "profile = \"lab\""),
            ("[host]\ninterface = \"eth0\"\nmode = \"null\"\n", "host.toml", "profile = \"lab\""),
            ("[host]\ninterface = \"eth0\"\n[cll]\nsend_suite = \"des\"\n", "host.toml", "aes-256-gcm"),
            ("[host]\ninterface = \"eth0\"\n[cll]\nethertype = 1500\n", "host.toml", "0x07d0"),
            ("[host]\ninterface = \"eth0\"\n[cll]\nlifetime_s = 10\n", "host.toml", "at least 900"),
            ("[host]\ninterface = \"eth0\"\n[cll]\nlifetime_s = 86401\n", "host.toml", "at most 86400"),
            ("[host]\ninterface = \"eth0\"\n[cll]\nidle_s = 59\n", "host.toml", "at least 60"),
            ("[host]\ninterface = \"eth0\"\n[cll]\npass = [\"ipx\"]\n", "host.toml", "lldp"),
            (
                "[host]\ninterface = \"eth0\"\n[cll]\nkernel_handshakes_per_second = 999\n",
                "host.toml:4",
                "1000 to 1000000",
            ),
            (
                "[host]\ninterface = \"eth0\"\n[cll]\nkernel_group_frames_per_second = 1000001\n",
                "host.toml:4",
                "1000 to 1000000",
            ),
            ("[host]\ninterface = \"eth0\"\n[cll]\nbroadcast_batch_above = 251\n", "host.toml", "1 to 250"),
            ("[host]\ninterface = \"eth0\"\n[cll]\nbroadcast_batch_delay_ms = 101\n", "host.toml", "1 to 100"),
            ("[host]\ninterface = \"eth0\"\n[cll]\nbroadcast_batch_frames = 65\n", "host.toml", "1 to 64"),
            ("[host]\ninterface = \"eth0\"\n[cll]\nticket_lifetime_s = 86401\n", "host.toml", "60 to 86400"),
            ("[host]\ninterface = \"eth0\"\n[cll]\nclock_tolerance_s = 901\n", "host.toml", "at most 600"),
            ("[host]\ninterface = \"eth0\"\n[sarp]\nwindow_s = 301\n", "host.toml", "1 to 300"),
            ("[host]\ninterface = \"eth0\"\n[sarp]\nwindow_s = 0\n", "host.toml", "1 to 300"),
            (
                "[host]\ninterface = \"eth0\"\n[[sarp.known_hosts]]\nip = \"10.0.0.9\"\nmac = \"02:00:00:00:00:09\"\n\
                 [[sarp.known_hosts]]\nip = \"10.0.0.9\"\nmac = \"02:00:00:00:00:0a\"\n",
                "host.toml",
                "10.0.0.9 twice",
            ),
            (
                "[host]\ninterface = \"eth0\"\nmode = \"shield\"\nprofile = \"paper\"\n",
                "host.toml",
                "needs mode = \"sarp\" or mode = \"cll\"",
            ),
            (
                "[host]\ninterface = \"eth0\"\n[cll]\nsend_suite = \"twofish-128-hmac-md5\"\n",
                "host.toml",
                "is of the paper profile",
            ),
            (
                "[host]\ninterface = \"eth0\"\n[cll]\nrequire_suites = [\"aes-128-hmac-sha1\"]\n",
                "host.toml",
                "is of the paper profile",
            ),
            (
                "[host]\ninterface = \"eth0\"\nprofile = \"paper\"\n[cll]\nsend_suite = \"aes-256-gcm\"\n",
                "host.toml",
                "is of the modern profile",
            ),
            (
                "[host]\ninterface = \"eth0\"\nmode = \"sarp\"\n[dhcp]\nserver = true\norder = \"paper\"\n",
                "host.toml",
                "needs profile = \"paper\"",
            ),
            (
                "[host]\ninterface = \"eth0\"\nmode = \"sarp\"\nprofile = \"paper\"\n[lab]\n",
                "host.toml",
                "profile = \"lab\"",
            ),
            ("[host]\ninterface = \"eth0\"\n[sarp]\nrefresh_key_every = \"59m\"\n", "host.toml", "\"1h\" to \"3650d\""),
            ("[host]\ninterface = \"eth0\"\n[sarp]\nrefresh_key_every = \"often\"\n", "host.toml", "30d"),
            ("[host]\ninterface = \"eth0\"\n[akd]\n", "host.toml", "needs mode = \"sarp\""),
            (SHIELD!("[dhcp]\nclient = true\n"), "host.toml", "needs mode = \"cll\" or \"sarp\""),
            ("[host]\ninterface = \"eth0\"\n[dhcp]\nmessages_per_minute = 3\n", "host.toml", "at least 4"),
            (
                "[host]\ninterface = \"eth0\"\n[dhcp]\nserver = true\n[[dhcp.relays]]\nip = \"10.0.0.9\"\nmac = \"02:00:00:00:00:09\"\n",
                "host.toml",
                "no relayed DHCP",
            ),
            (
                "[host]\ninterface = \"eth0\"\nmode = \"sarp\"\n[akd]\n[dhcp]\nserver = true\n",
                "host.toml",
                "exclude each other",
            ),
            (
                "[host]\ninterface = \"eth0\"\n[[dhcp.relays]]\nip = \"10.0.0.9\"\nmac = \"02:00:00:00:00:09\"\n",
                "host.toml",
                "dhcp.server",
            ),
            (
                "[host]\ninterface = \"eth0\"\nmode = \"sarp\"\n[dhcp]\nserver = true\n\
                 [[dhcp.relays]]\nip = \"10.0.0.9\"\nmac = \"x\"\n",
                "host.toml",
                "one relay",
            ),
            (AKD!("etcd = [\"https://10.0.0.21:2379\"]"), "host.toml: akd.etcd_ca: ", "name the file of the authority"),
            (
                AKD!("etcd = [\"http://10.0.0.21:2379\"]"),
                "host.toml: akd.etcd: http://10.0.0.21:2379 ",
                "akd.etcd_unprotected",
            ),
            (AKD!("etcd = [\"10.0.0.21\"]"), "host.toml: akd.etcd: ", "write https://ADDRESS:PORT"),
            (
                AKD!("etcd = [\"http://127.0.0.1:1\"]\nrepository = \"x\""),
                "host.toml: akd.repository and akd.etcd",
                "keep",
            ),
            (AKD!("etcd = [\"http://127.0.0.1:1\"]\netcd_key = \"x\""), "host.toml: akd.etcd_certificate: ", "both"),
            (AKD!("etcd_ca = \"x\""), "host.toml: keys akd.etcd_... without akd.etcd", "name the cluster's members"),
            (
                "[host]\ninterface = \"eth0\"\n[[sarp.known_hosts]]\nip = \"10.0.0.9\"\nmac = \"x\"\n",
                "host.toml",
                "one host",
            ),
            ("[host]\ninterface = \"eth0\"\nmode = \"shield\"\n", "host.toml", "needs the section [shield]"),
            ("[host]\ninterface = \"eth0\"\n[shield]\n", "host.toml", "needs mode = \"shield\""),
            (SHIELD!(""), "host.toml", "0 sections [[shield.peers]]"),
            (SHIELD!("spi_min = 255\n"), "host.toml", "charon.spi_min"),
            (SHIELD!("spi_min = 9000\nspi_max = 8999\n"), "host.toml", "are no range"),
            (SHIELD!("ike_per_second = 0\n"), "host.toml", "shield.ike_per_second = 0"),
            (SHIELD!("off = [\"window\"]\n"), "host.toml", "shield.off needs profile = \"lab\""),
            (SHIELD!("[[shield.peers]]\naddress = \"10.0.0.300\"\n"), "host.toml:6", "IP address"),
            (
                SHIELD!("[[shield.peers]]\naddress = \"fd00::2\"\n[[shield.peers]]\naddress = \"fd00::2\"\n"),
                "host.toml",
                "fd00::2 twice",
            ),
            (
                "[host]\ninterface = \"eth0\"\n[[cll.legacy]]\nip = \"10.0.0.9\"\nmac = \"ff:ff:ff:ff:ff:ff\"\n",
                "host.toml",
                "one host",
            ),
        ];
        for (text, place, word) in cases {
            let line = load(text).expect_err("a mistake");
            let word = mistake_of(text, word);
            assert!(line.contains(place) && line.contains(word) && !line.contains('\n'), "{line}");
        }
    }

    /// What is said of `text`: a build without the paper profile refuses it before all else, and knows no suite of it.
    pub(super) fn mistake_of<'a>(text: &str, word: &'a str) -> &'a str {
        match word {
            _ if HAS_PAPER => word,
            "is of the paper profile" => "unknown suite",
            _ if text.contains("profile = \"paper\"\n") && !text.contains("[lab]") => "not in this build",
            _ => word,
        }
    }
}
