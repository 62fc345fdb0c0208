//! Section `[gate]`: what a gateway scrubs, and between which interfaces.
//!
//! What the file leaves unsaid comes from the preset, so that a newer version may improve it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use scrub::settings::{Adopt, IcmpTiming, OutOfOrder, Pair};
use scrub::{FlowLimits, Preset, Rule, Settings};
use serde::{Deserialize, Serialize};
use system::takeover;

use super::values::{Block, Bounded, Carried, List, Order, RuleAction, RuleName};
use crate::config::{OnExit, RealTime, Records, default_run_dir, default_state_dir, read_text, syntax};
use crate::failure::Failure;

/// Longest time by which the timing of ICMP is hidden, in milliseconds: a ping gives up after some
/// seconds.
const ICMP_INTERVAL_MAX_MS: u64 = 1000;
/// Longest silence of a connection that is remembered, in seconds: thirty days.
const IDLE_MAX_S: u64 = 30 * 24 * 3600;
/// Smallest link MTU: what every IPv6 link carries (RFC 8200, section 5).
const MTU_MIN: u64 = 1280;
/// Largest link MTU: the longest IP packet.
const MTU_MAX: u64 = 65_535;

/// Bounds of the memory that a gateway takes, in bytes.
const MEMORY_MIN: u64 = 1 << 20;
const MEMORY_MAX: u64 = 1 << 40;
/// Most connections, and most exchanges of other protocols, that can be remembered.
const FLOWS_MAX: u64 = 1 << 26;
const EXCHANGES_MAX: u64 = 1 << 24;

/// The longest packet of a link, in bytes.
pub(crate) type Mtu = Bounded<MTU_MIN, MTU_MAX>;

/// The whole file of a gateway.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GateConfig {
    #[serde(default)]
    pub(crate) gate: Gate,
    /// The other gateway, where there are two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pair: Option<PairSection>,
    #[serde(default)]
    pub(crate) shares: Shares,
    #[serde(default)]
    pub(crate) mirror: Mirroring,
    #[serde(default)]
    pub(crate) kernel: InKernel,
    #[serde(default)]
    pub(crate) records: Records,
}

/// The least share of a host, by its part.
const PART_MAX: u64 = 1 << 20;

/// Highest number of a VLAN (IEEE 802.1Q, 9.6).
const VLAN_MAX: u64 = 4094;

/// Section `[mirror]`: the form of what `gate.mirror` gets.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Mirroring {
    /// VLANs that tell who sent: the trusted side, and the untrusted one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) vlans: Option<[Bounded<1, VLAN_MAX>; 2]>,
}

impl Mirroring {
    /// The VLANs by side.
    pub(crate) fn vlans(&self) -> Option<[u16; 2]> {
        Some(self.vlans.as_ref()?.each_ref().map(|vlan| u16::try_from(vlan.get()).unwrap_or_default()))
    }
}

/// Section `[kernel]`: what the kernel does without the daemon.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct InKernel {
    /// Whether it carries clean segments of established connections. Without it: where both cards
    /// have a device of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) carry: Option<bool>,
}

/// Fewer connections that are begun and not completed are no flood.
const HALF_OPEN_MIN: u64 = 16;

/// Section `[shares]`: what one host may have of what all share.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Shares {
    /// Of the free places for connections one part in so many; as many as it likes if zero.
    pub(crate) flows: Bounded<0, PART_MAX>,
    /// The same of the free memory for unacknowledged data.
    pub(crate) memory: Bounded<0, PART_MAX>,
    /// With as many connections that were begun and not completed untrusted addresses are validated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) half_open: Option<Bounded<HALF_OPEN_MIN, FLOWS_MAX>>,
}

impl Default for Shares {
    fn default() -> Self {
        Shares {
            flows: Bounded::of_preset(scrub::limits::SOURCE_PART.into()),
            memory: Bounded::of_preset(scrub::limits::SOURCE_MEMORY_PART.into()),
            half_open: None,
        }
    }
}

impl Shares {
    /// Tells the scrubber.
    pub(crate) fn enter(&self, limits: &mut FlowLimits) {
        let part = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        (limits.source_part, limits.memory_part) = (part(self.flows.get()), part(self.memory.get()));
        limits.half_open = self.half_open.map(|many| u32::try_from(many.get()).unwrap_or(u32::MAX));
    }
}

/// Bounds of the time between two heartbeats, in milliseconds, and of records in a second.
const HEARTBEAT_MIN_MS: u64 = 20;
const HEARTBEAT_MAX_MS: u64 = 1000;
const RECORDS_MIN: u64 = 100;
const RECORDS_MAX: u64 = 1_000_000;

/// Section `[pair]`: this gateway is one of two.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PairSection {
    /// The file with the key that both have.
    pub(crate) key_file: PathBuf,
    /// Address and port of the sync link here and there.
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
    /// The higher one forwards where both could.
    #[serde(default = "priority")]
    pub(crate) priority: u8,
    /// Whether it takes the turn from an active one with a lower priority.
    #[serde(default)]
    pub(crate) preempt: bool,
    #[serde(default = "heartbeat")]
    pub(crate) heartbeat_ms: Bounded<HEARTBEAT_MIN_MS, HEARTBEAT_MAX_MS>,
    #[serde(default = "records_per_s")]
    pub(crate) records_per_s: Bounded<RECORDS_MIN, RECORDS_MAX>,
}

impl PairSection {
    /// Between two heartbeats.
    pub(crate) fn heartbeat(&self) -> Duration {
        Duration::from_millis(self.heartbeat_ms.get())
    }
}

fn priority() -> u8 {
    100
}

fn heartbeat() -> Bounded<HEARTBEAT_MIN_MS, HEARTBEAT_MAX_MS> {
    Bounded::of_preset(50)
}

fn records_per_s() -> Bounded<RECORDS_MIN, RECORDS_MAX> {
    Bounded::of_preset(20_000)
}

/// A choice of rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PresetName {
    /// What the paper does, and nothing that it does not.
    Paper,
    /// Everything that neither stalls nor slows honest traffic.
    #[default]
    Balanced,
    /// Everything, at a price.
    Strict,
}

impl PresetName {
    /// The word in the configuration and in `status`.
    pub(crate) fn word(self) -> &'static str {
        match self {
            PresetName::Paper => "paper",
            PresetName::Balanced => "balanced",
            PresetName::Strict => "strict",
        }
    }

    fn preset(self) -> Preset {
        match self {
            PresetName::Paper => Preset::Paper,
            PresetName::Balanced => Preset::Balanced,
            PresetName::Strict => Preset::Strict,
        }
    }
}

impl FromStr for PresetName {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let all = [PresetName::Paper, PresetName::Balanced, PresetName::Strict];
        all.into_iter().find(|preset| preset.word() == text).ok_or("use paper, balanced or strict")
    }
}

/// What becomes of bytes behind a hole in the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum BehindHole {
    Retain,
    Drop,
}

/// How the timing of ICMP is hidden.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Icmp {
    #[default]
    Limit,
    Jitter,
}

/// Section `[gate]`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Gate {
    /// The interface towards the hosts that are to be protected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trusted: Option<String>,
    /// The interface towards everybody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) untrusted: Option<String>,
    /// The interface that is given a copy of all that leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mirror: Option<String>,
    pub(crate) preset: PresetName,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) both_directions: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) out_of_order: Option<BehindHole>,
    pub(crate) option_order: Order,
    /// Without it, connections are adopted where the keys of the run before are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) adopt: Option<bool>,
    /// How long a connection may be silent, in seconds.
    pub(crate) idle_s: Bounded<300, IDLE_MAX_S>,
    /// Subnets on either link.
    pub(crate) subnets: List<Block>,
    pub(crate) icmp: Icmp,
    pub(crate) icmp_interval_ms: Bounded<0, ICMP_INTERVAL_MAX_MS>,
    pub(crate) icmp_quote_len: Bounded<8, MTU_MIN>,
    pub(crate) icmp_echo_max_bytes: Bounded<8, MTU_MAX>,
    pub(crate) encrypted: List<[Block; 2]>,
    pub(crate) tunnels: List<[Block; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ethertypes: Option<List<Carried>>,
    pub(crate) hops_behind: u8,
    pub(crate) hop_limit: Bounded<1, 255>,
    /// Longest packet on either link; without it what the interfaces say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mtu: Option<Mtu>,
    pub(crate) memory_max_bytes: Bounded<MEMORY_MIN, MEMORY_MAX>,
    pub(crate) flows_max: Bounded<1, FLOWS_MAX>,
    pub(crate) exchanges_max: Bounded<1, EXCHANGES_MAX>,
    pub(crate) on_exit: OnExit,
    /// Before whom the data path runs, if before anybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) real_time_priority: Option<RealTime>,
    pub(crate) run_dir: PathBuf,
    pub(crate) state_dir: PathBuf,
    /// What single rules do, by name, where it is not what the preset says.
    pub(crate) rules: BTreeMap<RuleName, RuleAction>,
}

impl Default for Gate {
    fn default() -> Self {
        let settings = Settings::preset(Preset::Balanced);
        Gate {
            trusted: None,
            untrusted: None,
            mirror: None,
            preset: PresetName::Balanced,
            both_directions: None,
            out_of_order: None,
            option_order: Order::usual(),
            adopt: None,
            idle_s: Bounded::of_preset(settings.idle.as_secs()),
            subnets: List::EMPTY,
            icmp: Icmp::Limit,
            icmp_interval_ms: Bounded::of_preset(scrub::limits::ICMP_INTERVAL.as_millis() as u64),
            icmp_quote_len: Bounded::of_preset(settings.icmp_quote_len as u64),
            icmp_echo_max_bytes: Bounded::of_preset(settings.icmp_echo_max_bytes as u64),
            encrypted: List::EMPTY,
            tunnels: List::EMPTY,
            ethertypes: None,
            hops_behind: settings.hops_behind,
            hop_limit: Bounded::of_preset(settings.hop_limit.into()),
            mtu: None,
            memory_max_bytes: Bounded::of_preset(settings.memory_max_bytes as u64),
            flows_max: Bounded::of_preset(settings.flows.max as u64),
            exchanges_max: Bounded::of_preset(settings.exchanges_max as u64),
            on_exit: OnExit::default(),
            real_time_priority: None,
            run_dir: default_run_dir(),
            state_dir: default_state_dir(),
            rules: BTreeMap::new(),
        }
    }
}

impl GateConfig {
    /// Reads and checks `file`.
    pub(crate) fn load(file: &Path) -> Result<GateConfig, Failure> {
        GateConfig::read(file, &read_text(file)?)
    }

    pub(crate) fn read(file: &Path, text: &str) -> Result<GateConfig, Failure> {
        let config: GateConfig = toml::from_str(text).map_err(|error| syntax(file, text, &error))?;
        config.gate.check_interfaces(file)?;
        config.records.check(file)?;
        if config.pair.as_ref().is_some_and(|pair| pair.local == pair.peer) {
            return Err(Failure::file(file, "pair.local and pair.peer are one address", "name the other gateway's"));
        }
        Ok(config)
    }
}

impl Gate {
    /// Every name can be one, and none stands twice.
    pub(crate) fn check_interfaces(&self, file: &Path) -> Result<(), Failure> {
        let named = [("trusted", &self.trusted), ("untrusted", &self.untrusted), ("mirror", &self.mirror)];
        let mut seen: Vec<&str> = Vec::new();
        for (key, name) in named {
            let Some(name) = name else { continue };
            if !takeover::is_interface_name(name) {
                return Err(Failure::file(
                    file,
                    format!("gate.{key} is not an interface name"),
                    "name one of `ip link`",
                ));
            }
            if seen.contains(&name.as_str()) {
                return Err(Failure::file(
                    file,
                    format!("gate.{key}: {name} is named twice"),
                    "name another interface",
                ));
            }
            seen.push(name);
        }
        Ok(())
    }

    /// What the scrubber is told, on links that carry packets of `link_mtu` bytes.
    pub(crate) fn settings(&self, link_mtu: usize) -> Settings {
        let mut settings = Settings::preset(self.preset.preset());
        self.rules.iter().for_each(|(rule, action)| settings.rules.set(rule.0, action.0));
        settings.both_directions = self.both_directions.unwrap_or(settings.both_directions);
        settings.out_of_order = match self.out_of_order {
            Some(BehindHole::Retain) => OutOfOrder::Retain,
            Some(BehindHole::Drop) => OutOfOrder::Drop,
            None => settings.out_of_order,
        };
        settings.option_order = self.option_order.order;
        settings.adopt = if self.adopt == Some(true) { Adopt::All } else { Adopt::End };
        settings.idle = Duration::from_secs(self.idle_s.get());
        settings.subnets = self.subnets.iter().map(|block| block.network).collect();
        let interval = Duration::from_millis(self.icmp_interval_ms.get());
        settings.icmp = match self.icmp {
            Icmp::Limit => IcmpTiming::Limit(interval),
            Icmp::Jitter => IcmpTiming::Jitter(interval),
        };
        settings.icmp_quote_len = self.icmp_quote_len.size();
        settings.icmp_echo_max_bytes = self.icmp_echo_max_bytes.size();
        settings.encrypted = pairs(&self.encrypted);
        settings.tunnels = pairs(&self.tunnels);
        if let Some(listed) = &self.ethertypes {
            settings.ethertypes = listed.iter().map(|carried| carried.ethertype).collect();
        }
        settings.hops_behind = self.hops_behind;
        settings.hop_limit = u8::try_from(self.hop_limit.get()).unwrap_or(u8::MAX);
        settings.mtu = self.mtu.map_or(link_mtu, Mtu::size);
        settings.memory_max_bytes = self.memory_max_bytes.size();
        settings.flows.max = self.flows_max.size();
        settings.exchanges_max = self.exchanges_max.size();
        settings
    }

    /// The whole of what is in force, as `config show` prints it: every rule by name, and nothing
    /// left to the preset.
    pub(crate) fn filled(&self) -> Gate {
        let settings = self.settings(scrub::limits::MTU);
        let rules = Rule::ALL.iter().map(|rule| (RuleName(*rule), RuleAction(settings.rules.action(*rule))));
        let behind_hole = if settings.out_of_order == OutOfOrder::Drop { BehindHole::Drop } else { BehindHole::Retain };
        let ethertypes: Vec<_> = settings.ethertypes.iter().map(|ethertype| Carried::of(*ethertype)).collect();
        Gate {
            both_directions: Some(settings.both_directions),
            out_of_order: Some(behind_hole),
            ethertypes: List::try_from(ethertypes).ok(),
            rules: rules.collect(),
            ..self.clone()
        }
    }
}

fn pairs(listed: &List<[Block; 2]>) -> Vec<Pair> {
    listed.iter().map(|[one, other]| (one.network, other.network)).collect()
}

#[cfg(test)]
mod tests {
    use scrub::Action;

    use super::*;

    fn load(text: &str) -> Result<GateConfig, String> {
        GateConfig::read(Path::new("gate.toml"), text).map_err(|failure| failure.to_string())
    }

    fn settings(text: &str) -> Settings {
        load(text).expect("valid").gate.settings(1500)
    }

    #[test]
    fn an_empty_section_is_the_balanced_preset() {
        let settings = settings("[gate]\n");
        assert_eq!(settings.rules, Settings::preset(Preset::Balanced).rules);
        assert_eq!(settings.mtu, 1500);
    }

    #[test]
    fn a_rule_is_set_by_name_on_top_of_the_preset() {
        let text = "[gate]\npreset = \"strict\"\n[gate.rules]\ntcp-fin = \"sever\"\nethernet-types = \"off\"\n";
        let settings = settings(text);
        assert_eq!(settings.rules.action(Rule::TcpFin), Action::Sever);
        assert_eq!(settings.rules.action(Rule::EthernetTypes), Action::Off);
        assert_eq!(settings.rules.action(Rule::TcpMss), Action::Scrub);
        assert!(settings.both_directions);
    }

    #[test]
    fn what_config_show_prints_means_the_same() {
        let text = "[gate]\ntrusted = \"eth1\"\npreset = \"paper\"\nethertypes = [\"lldp\", 0x88f7]\n\
            encrypted = [[\"10.0.0.0/8\", \"2001:db8::1\"]]\n[gate.rules]\ntcp-mss = \"scrub\"\n";
        let config = load(text).expect("valid");
        let filled = GateConfig { gate: config.gate.filled(), ..GateConfig::default() };
        let again = toml::to_string(&filled).expect("printable");
        assert_eq!(format!("{:?}", settings(&again)), format!("{:?}", settings(text)));
    }

    #[test]
    fn the_example_shows_every_default() {
        let example = include_str!("../../../../../packaging/gate.toml");
        let is_key =
            |line: &&str| line.starts_with('[') || line.starts_with(char::is_lowercase) && line.contains(" = ");
        let shown = |line: &str| !line.starts_with("mirror") && !line.starts_with("encrypted");
        let uncommented =
            example.lines().map(|line| line.strip_prefix('#').filter(|rest| is_key(rest)).unwrap_or(line));
        let text: Vec<_> = uncommented.filter(|line| shown(line)).collect();
        assert!(text.len() > 40, "{text:?}");
        assert_eq!(format!("{:?}", settings(&text.join("\n"))), format!("{:?}", settings("[gate]\n")));
    }

    #[test]
    fn mistakes_name_key_and_remedy_in_one_line() {
        let cases = [
            ("[gate]\ntrusted = \"a/b\"\n", "gate.trusted", "ip link"),
            ("[gate]\ntrusted = \"eth1\"\nuntrusted = \"eth1\"\n", "gate.untrusted: eth1", "another"),
            ("[gate]\npreset = \"soft\"\n", "gate.toml:2", "balanced"),
            ("[gate.rules]\ntcp-fim = \"off\"\n", "tcp-fim", "gate rules"),
            ("[gate.rules]\ntcp-fin = \"on\"\n", "gate.rules.tcp-fin", "off, scrub or sever"),
            ("[gate]\nencrypted = [[\"10.0.0.0/33\", \"::/0\"]]\n", "gate.encrypted", "192.0.2.0/24"),
            ("[gate]\nsubnets = [\"192.0.2.0/33\"]\n", "gate.subnets", "192.0.2.0/24"),
            ("[gate]\nidle_s = 60\n", "gate.toml:2: gate.idle_s: 60", "use 300 to"),
            ("[gate]\nethertypes = [1500]\n", "gate.toml:2: gate.ethertypes: 0x05dc", "lldp"),
            ("[gate]\nicmp_interval_ms = 2000\n", "gate.icmp_interval_ms", "0 to 1000"),
            ("[gate]\nmtu = 100\n", "gate.mtu: 100", "1280 to 65535"),
            (
                "[gate]\noption_order = [\"mss\", \"mss\", \"sack\", \"timestamps\", \"window-scale\"]\n",
                "option_order",
                "each once",
            ),
            ("[gate]\nmut = 1500\n", "gate.toml:2", "mut"),
        ];
        for (text, place, word) in cases {
            let line = load(text).expect_err("a mistake");
            assert!(line.contains(place) && line.contains(word) && !line.contains('\n'), "{line}");
        }
    }
}
