//! What a gateway says of itself, and the connections that it lists.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use super::paired::report::PairStatus;
use crate::metrics::books::{Books, SideOf, carrier};
use crate::metrics::family::Families;
use crate::modes::part::{Account, count_lines};
use crate::protocol::attacks::Attacks;
use crate::verdict::{Findings, Level, Verdict};

/// What `ringwall_mode` calls it.
const WORD: &str = "gate";

/// How a gateway is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct GateStatus {
    pub(crate) version: String,
    pub(crate) state: String,
    pub(crate) uptime_s: u64,
    /// The trusted interface, which the gateway is called by.
    pub(crate) interface: String,
    pub(crate) preset: String,
    /// What single rules do where it is not what the preset says.
    pub(crate) changed_rules: BTreeMap<String, String>,
    pub(crate) trusted: Option<GateCard>,
    pub(crate) untrusted: Option<GateCard>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mirror: Option<GateCard>,
    /// Longest packet for which what leaves is cut.
    pub(crate) mtu: usize,
    pub(crate) adopted: bool,
    pub(crate) on_exit: String,
    /// What was found out about the kernel.
    pub(crate) probes: BTreeMap<String, String>,
    pub(crate) frames: GateFrames,
    #[serde(flatten)]
    pub(crate) flows: GateFlows,
    #[serde(flatten)]
    pub(crate) memory: GateMemory,
    /// How the pair is, where there are two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pair: Option<PairStatus>,
    /// How often each rule acted.
    pub(crate) rules: BTreeMap<String, u64>,
    pub(crate) drops: BTreeMap<String, u64>,
    pub(crate) ports: BTreeMap<String, u64>,
    pub(crate) warnings: Vec<String>,
    #[serde(flatten)]
    pub(crate) attacks: Attacks,
}

/// TCP connections through a gateway.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct GateFlows {
    /// All that are remembered.
    #[serde(rename = "flows")]
    pub(crate) all: usize,
    /// Those that have not completed their handshake.
    #[serde(default, rename = "flows_half_open")]
    pub(crate) half_open: usize,
    /// Whether untrusted hosts have to show that they receive before another begins.
    #[serde(default)]
    pub(crate) validates_addresses: bool,
    #[serde(default, flatten)]
    pub(crate) carried: Carried,
}

/// What the kernel carries of a gateway's connections.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Carried {
    /// Connections whose clean segments it carries now.
    #[serde(default, rename = "flows_carried")]
    pub(crate) flows: usize,
    /// Segments that it has passed on.
    #[serde(default, rename = "segments_carried")]
    pub(crate) segments: u64,
    /// How often it was given a connection.
    #[serde(default, rename = "flows_handed_to_kernel")]
    pub(crate) handed_over: u64,
    /// How often one came back after few segments.
    #[serde(default, rename = "flows_short_in_kernel")]
    pub(crate) short_stays: u64,
}

/// Memory of a gateway, in bytes.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct GateMemory {
    /// For unacknowledged data and for waiting fragments.
    #[serde(rename = "memory_bytes")]
    pub(crate) held: usize,
    /// What waits to be used again for unacknowledged data; with what is held at most `gate.memory_max_bytes`.
    #[serde(default, rename = "memory_idle_bytes")]
    pub(crate) idle: usize,
}

/// An interface of a gateway.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct GateCard {
    pub(crate) interface: String,
    pub(crate) mac: String,
    pub(crate) mtu: u32,
    pub(crate) carrier: bool,
}

/// The books of a gateway.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct GateFrames {
    pub(crate) received_from_trusted: u64,
    pub(crate) received_from_untrusted: u64,
    pub(crate) forwarded_to_untrusted: u64,
    pub(crate) forwarded_to_trusted: u64,
    pub(crate) answered: u64,
    pub(crate) consumed: u64,
    pub(crate) held: u64,
    pub(crate) dropped: u64,
    pub(crate) made_for_untrusted: u64,
    pub(crate) made_for_trusted: u64,
}

/// A TCP connection through a gateway.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Flow {
    pub(crate) trusted: SocketAddr,
    pub(crate) untrusted: SocketAddr,
    /// VLAN identifiers, the outer one 12 bits above the inner one; zero without a tag.
    pub(crate) vlans: u32,
    pub(crate) state: String,
    pub(crate) idle_s: u64,
    pub(crate) retained_bytes: usize,
    pub(crate) packets_from_trusted: u32,
    pub(crate) packets_from_untrusted: u32,
    pub(crate) bytes_from_trusted: u64,
    pub(crate) bytes_from_untrusted: u64,
    /// Whether the kernel carries its clean segments.
    #[serde(default)]
    pub(crate) carried: bool,
}

impl Carried {
    /// Behind what is said of all connections, if there is anything to say.
    fn words(&self) -> String {
        let Carried { flows, segments, handed_over, short_stays } = self;
        if *handed_over == 0 {
            return String::new();
        }
        let how_often = format!("{handed_over} times, {short_stays} of them for a short time");
        format!(", {flows} carried by the kernel (handed over {how_often}; {segments} segments)")
    }
}

impl GateStatus {
    fn cards(&self) -> impl Iterator<Item = (&'static str, &GateCard)> {
        let cards = [("trusted", &self.trusted), ("untrusted", &self.untrusted), ("mirror", &self.mirror)];
        cards.into_iter().filter_map(|(role, card)| Some((role, card.as_ref()?)))
    }

    fn card_lines(&self) -> Vec<String> {
        let line = |(role, card): (&str, &GateCard)| {
            let carrier = if card.carrier { "on" } else { "off" };
            format!("{role}: {} ({}), carrier {carrier}, MTU {}", card.interface, card.mac, card.mtu)
        };
        let taken = if self.adopted { "adopted" } else { "new" };
        let cut = format!("cards: {taken}, on exit {}; what is cut anew fits {} bytes", self.on_exit, self.mtu);
        self.cards().map(line).chain([cut]).collect()
    }

    fn preset_line(&self) -> String {
        let changed: Vec<_> = self.changed_rules.iter().map(|(rule, action)| format!("{rule} = {action}")).collect();
        let changed = if changed.is_empty() { String::new() } else { format!(", but {}", changed.join(", ")) };
        format!("preset: {}{changed}", self.preset)
    }
}

impl GateFrames {
    fn lines(&self) -> [String; 2] {
        [
            format!(
                "from the trusted side: {} received, {} forwarded; from the untrusted: {} received, {} forwarded",
                self.received_from_trusted,
                self.forwarded_to_untrusted,
                self.received_from_untrusted,
                self.forwarded_to_trusted
            ),
            format!(
                "answered {}, consumed {}, held {}, dropped {}",
                self.answered, self.consumed, self.held, self.dropped
            ),
        ]
    }

    fn books<'a>(&self, drops: &'a BTreeMap<String, u64>) -> Books<'a> {
        let trusted = SideOf {
            name: "trusted",
            received: self.received_from_trusted,
            forwarded: self.forwarded_to_trusted,
            made: self.made_for_trusted,
        };
        let untrusted = SideOf {
            name: "untrusted",
            received: self.received_from_untrusted,
            forwarded: self.forwarded_to_untrusted,
            made: self.made_for_untrusted,
        };
        let (answered, consumed, held) = (self.answered, self.consumed, self.held);
        Books { sides: [trusted, untrusted], answered, consumed, held, drops }
    }
}

impl Account for GateStatus {
    fn interface(&self) -> &str {
        &self.interface
    }

    fn version(&self) -> &str {
        &self.version
    }

    fn mode(&self) -> &'static str {
        WORD
    }

    fn attacks(&self) -> &Attacks {
        &self.attacks
    }

    fn ports(&self) -> &BTreeMap<String, u64> {
        &self.ports
    }

    fn lines(&self) -> Vec<String> {
        let GateStatus { interface, state, uptime_s, version, .. } = self;
        let mut lines = vec![format!("gateway {interface} {state}: up {uptime_s} s, ringwall {version}")];
        lines.extend(self.warnings.iter().map(|warning| format!("warning: {warning}")));
        lines.extend(self.card_lines());
        lines.extend(self.probes.iter().map(|(probe, outcome)| format!("{probe}: {outcome}")));
        lines.push(self.preset_line());
        lines.extend(self.pair.iter().flat_map(PairStatus::lines));
        lines.extend(self.frames.lines());
        let GateMemory { held, idle } = self.memory;
        let memory = format!("memory held: {held} bytes, kept for the next: {idle} bytes");
        let GateFlows { all, half_open, validates_addresses, carried } = self.flows;
        let validated = if validates_addresses { "; untrusted addresses are validated" } else { "" };
        let carried = carried.words();
        lines.push(format!("TCP connections: {all}, of which {half_open} are half open{carried}{validated}; {memory}"));
        for (title, counts) in [("dropped, by reason:", &self.drops), ("rules that acted:", &self.rules)] {
            lines.push(title.to_owned());
            lines.extend(count_lines(counts));
        }
        lines
    }

    fn verdict(&self) -> Verdict {
        let mut found = Findings::default();
        found.attacked(&self.attacks);
        for (_, card) in self.cards() {
            let what = format!("{} has no carrier", card.interface);
            found.enter(!card.carrier, Level::Warning, &what, "look at cable and switch");
        }
        for warning in &self.warnings {
            let is_null = warning.contains("NOTHING is scrubbed");
            let level = if is_null { Level::Critical } else { Level::Warning };
            found.enter(true, level, warning, "see docs/manual/gateway.md");
        }
        self.pair.iter().for_each(|pair| pair.findings(&mut found));
        found.untold(&self.attacks);
        found.verdict()
    }

    fn measure(&self, families: &mut Families) {
        self.frames.books(&self.drops).measure(families);
        for (rule, count) in &self.rules {
            let help = "How often each rule of the gateway acted.";
            families.count("ringwall_gate_rule_actions", help, &[("rule", rule)], *count);
        }
        families.gauge("ringwall_gate_flows", "TCP connections that are remembered.", &[], self.flows.all as u64);
        let help = "TCP connections that have not completed their handshake.";
        families.gauge("ringwall_gate_half_open_flows", help, &[], self.flows.half_open as u64);
        let help = "TCP connections whose clean segments the kernel carries.";
        let Carried { flows, segments, handed_over, short_stays } = self.flows.carried;
        families.gauge("ringwall_gate_carried_flows", help, &[], flows as u64);
        let help = "Segments of TCP connections that the kernel has passed on.";
        families.count("ringwall_gate_carried_segments", help, &[], segments);
        let help = "How often a TCP connection was handed over to the kernel.";
        families.count("ringwall_gate_handed_to_kernel", help, &[], handed_over);
        let help = "How often one came back from the kernel after fewer than 1,000 segments.";
        families.count("ringwall_gate_short_in_kernel", help, &[], short_stays);
        let help = "Whether untrusted hosts have to show that they receive before a connection begins.";
        let validates = u64::from(self.flows.validates_addresses);
        families.gauge("ringwall_gate_validates_addresses", help, &[], validates);
        let help = "Memory for unacknowledged data and fragments, in use and kept for the next.";
        for (use_of, bytes) in [("held", self.memory.held), ("idle", self.memory.idle)] {
            families.gauge("ringwall_gate_memory_bytes", help, &[("use", use_of)], bytes as u64);
        }
        self.cards().for_each(|(role, card)| carrier(families, role, card.carrier));
        self.pair.iter().for_each(|pair| pair.measure(families));
    }

    fn json(&self) -> serde_json::Result<serde_json::Value> {
        serde_json::to_value(self)
    }
}
