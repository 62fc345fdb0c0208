//! Section `[gate]`: what a gateway scrubs, and between which interfaces.
//!
//! What the file leaves unsaid comes from the preset, so that a newer version may improve it.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use scrub::settings::{Adopt, IcmpTiming, Network, OPTION_ORDER, OptionKind, OptionOrder, OutOfOrder, Pair};
use scrub::{Action, Preset, Rule, Settings};
use serde::{Deserialize, Serialize};
use system::takeover;
use wire::EtherType;

use crate::config::{OnExit, PASSABLE, RealTime, Records, default_run_dir, default_state_dir, read_text, syntax};
use crate::failure::Failure;

/// Longest list of pairs or EtherTypes: each such packet is compared with all of them.
const LIST_MAX: usize = 256;
/// Longest time by which the timing of ICMP is hidden: a ping gives up after some seconds.
const ICMP_INTERVAL_MAX: Duration = Duration::from_secs(1);
/// Longest silence of a connection that is remembered, in seconds: thirty days.
const IDLE_MAX_S: usize = 30 * 24 * 3600;
/// Smallest link MTU: what every IPv6 link carries (RFC 8200, section 5).
const MTU_MIN: usize = 1280;
/// Largest link MTU: the longest IP packet.
const MTU_MAX: usize = 65_535;

/// The whole file of a gateway.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GateConfig {
    #[serde(default)]
    pub(crate) gate: Gate,
    #[serde(default)]
    pub(crate) records: Records,
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

/// A TCP option by the name that an operator uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TcpOption {
    Mss,
    SackPermitted,
    Timestamps,
    WindowScale,
    Sack,
}

impl TcpOption {
    const ALL: [TcpOption; 5] =
        [TcpOption::Mss, TcpOption::SackPermitted, TcpOption::Timestamps, TcpOption::WindowScale, TcpOption::Sack];

    fn kind(self) -> OptionKind {
        match self {
            TcpOption::Mss => OptionKind::MaximumSegmentSize,
            TcpOption::SackPermitted => OptionKind::SackPermitted,
            TcpOption::Timestamps => OptionKind::Timestamps,
            TcpOption::WindowScale => OptionKind::WindowScale,
            TcpOption::Sack => OptionKind::Sack,
        }
    }
}

/// The usual order in an operator's words.
fn usual_order() -> Vec<TcpOption> {
    OPTION_ORDER.iter().filter_map(|kind| TcpOption::ALL.into_iter().find(|option| option.kind() == *kind)).collect()
}

/// An EtherType by the name that an operator uses, or by its number.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Carried {
    Name(String),
    Number(u16),
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
    /// All five that can be ordered, each once.
    pub(crate) option_order: Vec<TcpOption>,
    /// Without it, connections are adopted where the keys of the run before are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) adopt: Option<bool>,
    /// How long a connection may be silent, in seconds.
    pub(crate) idle_s: u64,
    /// Subnets on either link.
    pub(crate) subnets: Vec<String>,
    pub(crate) icmp: Icmp,
    pub(crate) icmp_interval_ms: u64,
    pub(crate) icmp_quote_len: usize,
    pub(crate) icmp_echo_max_bytes: usize,
    pub(crate) encrypted: Vec<[String; 2]>,
    pub(crate) tunnels: Vec<[String; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ethertypes: Option<Vec<Carried>>,
    pub(crate) hops_behind: u8,
    pub(crate) hop_limit: u8,
    /// Longest packet on either link; without it what the interfaces say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mtu: Option<usize>,
    pub(crate) memory_max_bytes: usize,
    pub(crate) flows_max: usize,
    pub(crate) exchanges_max: usize,
    pub(crate) on_exit: OnExit,
    /// Before whom the data path runs, if before anybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) real_time_priority: Option<RealTime>,
    pub(crate) run_dir: PathBuf,
    pub(crate) state_dir: PathBuf,
    /// What single rules do, by name, where it is not what the preset says.
    pub(crate) rules: BTreeMap<String, String>,
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
            option_order: usual_order(),
            adopt: None,
            idle_s: settings.idle.as_secs(),
            subnets: Vec::new(),
            icmp: Icmp::Limit,
            icmp_interval_ms: scrub::limits::ICMP_INTERVAL.as_millis() as u64,
            icmp_quote_len: settings.icmp_quote_len,
            icmp_echo_max_bytes: settings.icmp_echo_max_bytes,
            encrypted: Vec::new(),
            tunnels: Vec::new(),
            ethertypes: None,
            hops_behind: settings.hops_behind,
            hop_limit: settings.hop_limit,
            mtu: None,
            memory_max_bytes: settings.memory_max_bytes,
            flows_max: settings.flows_max,
            exchanges_max: settings.exchanges_max,
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
        config.gate.settings(file, scrub::limits::MTU)?;
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
    pub(crate) fn settings(&self, file: &Path, link_mtu: usize) -> Result<Settings, Failure> {
        let mut settings = Settings::preset(self.preset.preset());
        self.set_rules(file, &mut settings)?;
        settings.both_directions = self.both_directions.unwrap_or(settings.both_directions);
        settings.out_of_order = match self.out_of_order {
            Some(BehindHole::Retain) => OutOfOrder::Retain,
            Some(BehindHole::Drop) => OutOfOrder::Drop,
            None => settings.out_of_order,
        };
        settings.option_order = self.option_order(file)?;
        settings.adopt = if self.adopt == Some(true) { Adopt::All } else { Adopt::No };
        settings.idle = Duration::from_secs(self.idle_s);
        settings.subnets = subnets(file, &self.subnets)?;
        settings.icmp = self.icmp(file)?;
        settings.icmp_quote_len = self.icmp_quote_len;
        settings.icmp_echo_max_bytes = self.icmp_echo_max_bytes;
        settings.encrypted = pairs(file, "encrypted", &self.encrypted)?;
        settings.tunnels = pairs(file, "tunnels", &self.tunnels)?;
        if let Some(listed) = &self.ethertypes {
            settings.ethertypes = ethertypes(file, listed)?;
        }
        settings.hops_behind = self.hops_behind;
        settings.hop_limit = self.hop_limit;
        settings.mtu = self.mtu.unwrap_or(link_mtu);
        settings.memory_max_bytes = self.memory_max_bytes;
        settings.flows_max = self.flows_max;
        settings.exchanges_max = self.exchanges_max;
        self.check_numbers(file, &settings)?;
        Ok(settings)
    }

    fn set_rules(&self, file: &Path, settings: &mut Settings) -> Result<(), Failure> {
        for (name, action) in &self.rules {
            let rule: Rule = name.parse().map_err(|what: String| {
                Failure::file(file, format!("gate.rules: {what}"), "`ringwall gate rules` lists those that there are")
            })?;
            let action: Action = action.parse().map_err(|remedy: String| {
                Failure::file(file, format!("gate.rules.{name} = \"{action}\" is no action"), &remedy)
            })?;
            settings.rules.set(rule, action);
        }
        Ok(())
    }

    fn option_order(&self, file: &Path) -> Result<OptionOrder, Failure> {
        let kinds: Vec<_> = self.option_order.iter().map(|option| option.kind()).collect();
        let has_all = TcpOption::ALL.iter().all(|option| self.option_order.contains(option));
        OptionOrder::try_from(kinds).ok().filter(|_| has_all).ok_or_else(|| {
            let remedy = "list mss, sack-permitted, timestamps, window-scale and sack, each once";
            Failure::file(file, "gate.option_order is no order of all options", remedy)
        })
    }

    fn icmp(&self, file: &Path) -> Result<IcmpTiming, Failure> {
        let interval = Duration::from_millis(self.icmp_interval_ms);
        if interval > ICMP_INTERVAL_MAX {
            let what = format!("gate.icmp_interval_ms = {} is too long", self.icmp_interval_ms);
            return Err(Failure::file(file, what, &format!("use at most {}", ICMP_INTERVAL_MAX.as_millis())));
        }
        Ok(match self.icmp {
            Icmp::Limit => IcmpTiming::Limit(interval),
            Icmp::Jitter => IcmpTiming::Jitter(interval),
        })
    }

    fn check_numbers(&self, file: &Path, settings: &Settings) -> Result<(), Failure> {
        let bounds = [
            ("mtu", settings.mtu, MTU_MIN, MTU_MAX),
            ("icmp_quote_len", settings.icmp_quote_len, 8, MTU_MIN),
            ("icmp_echo_max_bytes", settings.icmp_echo_max_bytes, 8, MTU_MAX),
            ("hop_limit", settings.hop_limit.into(), 1, 255),
            ("memory_max_bytes", settings.memory_max_bytes, 1 << 20, 1 << 40),
            ("flows_max", settings.flows_max, 1, 1 << 26),
            ("idle_s", usize::try_from(self.idle_s).unwrap_or(usize::MAX), 300, IDLE_MAX_S),
            ("exchanges_max", settings.exchanges_max, 1, 1 << 24),
        ];
        for (key, value, least, most) in bounds {
            if !(least..=most).contains(&value) {
                let what = format!("gate.{key} = {value} is out of range");
                return Err(Failure::file(file, what, &format!("use {least} to {most}")));
            }
        }
        Ok(())
    }

    /// The whole of what is in force, as `config show` prints it: every rule by name, and nothing
    /// left to the preset.
    pub(crate) fn filled(&self, file: &Path) -> Result<Gate, Failure> {
        let settings = self.settings(file, scrub::limits::MTU)?;
        let rules =
            Rule::ALL.iter().map(|rule| (rule.name().to_owned(), word(settings.rules.action(*rule)).to_owned()));
        let behind_hole = if settings.out_of_order == OutOfOrder::Drop { BehindHole::Drop } else { BehindHole::Retain };
        let ethertypes = settings.ethertypes.iter().map(|ethertype| Carried::Number(ethertype.0)).collect();
        Ok(Gate {
            both_directions: Some(settings.both_directions),
            out_of_order: Some(behind_hole),
            ethertypes: Some(ethertypes),
            rules: rules.collect(),
            ..self.clone()
        })
    }
}

/// An action as the configuration writes it.
fn word(action: Action) -> &'static str {
    match action {
        Action::Off => "off",
        Action::Scrub => "scrub",
        Action::Sever => "sever",
    }
}

fn ethertypes(file: &Path, listed: &[Carried]) -> Result<Vec<EtherType>, Failure> {
    check_len(file, "ethertypes", listed.len())?;
    let known = |name: &String| PASSABLE.iter().find(|(word, _)| word == name).map(|(_, ethertype)| *ethertype);
    let read = |carried: &Carried| {
        let ethertype = match carried {
            Carried::Number(number) => Some(EtherType(*number)).filter(|_| *number >= 0x0600),
            Carried::Name(name) => known(name),
        };
        ethertype.ok_or_else(|| {
            let words: Vec<_> = PASSABLE.iter().map(|(word, _)| *word).collect();
            let remedy = format!("use a number from 0x0600 on, or any of {}", words.join(", "));
            Failure::file(file, format!("gate.ethertypes: {carried} is none"), &remedy)
        })
    };
    listed.iter().map(read).collect()
}

impl std::fmt::Display for Carried {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Carried::Name(name) => write!(f, "\"{name}\""),
            Carried::Number(number) => write!(f, "0x{number:04x}"),
        }
    }
}

fn pairs(file: &Path, key: &str, listed: &[[String; 2]]) -> Result<Vec<Pair>, Failure> {
    check_len(file, key, listed.len())?;
    let read = |text: &String| {
        network(text).map_err(|what| Failure::file(file, format!("gate.{key}: {what}"), "write it as 192.0.2.0/24"))
    };
    listed.iter().map(|[one, other]| Ok((read(one)?, read(other)?))).collect()
}

fn subnets(file: &Path, listed: &[String]) -> Result<Vec<Network>, Failure> {
    check_len(file, "subnets", listed.len())?;
    let wrong = |what: String| Failure::file(file, format!("gate.subnets: {what}"), "write a subnet as 192.0.2.0/24");
    listed.iter().map(|text| network(text).map_err(wrong)).collect()
}

fn check_len(file: &Path, key: &str, len: usize) -> Result<(), Failure> {
    if len <= LIST_MAX {
        return Ok(());
    }
    Err(Failure::file(file, format!("gate.{key} has {len} entries"), &format!("list at most {LIST_MAX}")))
}

/// Reads an address block, or a single address.
pub(crate) fn network(text: &str) -> Result<Network, String> {
    let wrong = || format!("\"{text}\" is no address block");
    let (address, prefix_len) = text.split_once('/').map_or((text, None), |(address, len)| (address, Some(len)));
    let address: IpAddr = address.parse().map_err(|_| wrong())?;
    let width = if address.is_ipv4() { 32 } else { 128 };
    let prefix_len = prefix_len.map_or(Ok(width), str::parse).map_err(|_| wrong())?;
    if prefix_len > width { Err(wrong()) } else { Ok(Network { address, prefix_len }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<GateConfig, String> {
        GateConfig::read(Path::new("gate.toml"), text).map_err(|failure| failure.to_string())
    }

    fn settings(text: &str) -> Settings {
        let file = Path::new("gate.toml");
        load(text).expect("valid").gate.settings(file, 1500).expect("valid")
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
        let filled =
            GateConfig { gate: config.gate.filled(Path::new("gate.toml")).expect("valid"), ..GateConfig::default() };
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
            ("[gate]\nidle_s = 60\n", "gate.idle_s = 60", "use 300 to"),
            ("[gate]\nethertypes = [1500]\n", "gate.ethertypes: 0x05dc", "lldp"),
            ("[gate]\nicmp_interval_ms = 2000\n", "gate.icmp_interval_ms", "at most 1000"),
            ("[gate]\nmtu = 100\n", "gate.mtu = 100", "1280 to 65535"),
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

    #[test]
    fn blocks_and_single_addresses_are_read() {
        let any = network("10.1.2.3").expect("an address");
        assert_eq!((any.address, any.prefix_len), ("10.1.2.3".parse().expect("an address"), 32));
        assert_eq!(network("2001:db8::/32").expect("a block").prefix_len, 32);
        for wrong in ["", "10.0.0.0/", "10.0.0.0/33", "::/129", "net", "10.0.0.0/-1"] {
            assert!(network(wrong).is_err(), "{wrong}");
        }
    }
}
