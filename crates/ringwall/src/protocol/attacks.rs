//! Attacks, changes and addresses as daemons, recorder and history tell each other of them:
//! docs/records.md.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What a daemon tells of attacks.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Attacks {
    /// Those that are under way.
    #[serde(default, rename = "attacks")]
    pub(crate) open: Vec<Attack>,
    /// Attacks since the start.
    #[serde(default, rename = "attacks_opened")]
    pub(crate) opened: u64,
    /// The same by kind, kinds without any among them.
    #[serde(default, rename = "attacks_opened_by_kind")]
    pub(crate) opened_by_kind: BTreeMap<String, u64>,
    /// Records that no place was told of, because the recorder was too slow.
    #[serde(default)]
    pub(crate) records_lost: u64,
}

/// An attack, as it is told everywhere: docs/records.md.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Attack {
    /// Since the start of the daemon; the same in all phases.
    pub(crate) number: u64,
    #[serde(flatten)]
    pub(crate) place: PlaceOf,
    #[serde(flatten)]
    pub(crate) sort: SortOf,
    /// opened, growing or closed.
    pub(crate) phase: String,
    pub(crate) source: PartyOf,
    pub(crate) target: PartyOf,
    /// In whose name; with the hardware address that he has in truth.
    pub(crate) claimed: PartyOf,
    /// Whether it stands for several.
    pub(crate) is_sum: bool,
    pub(crate) reason: String,
    pub(crate) count: u64,
    #[serde(flatten)]
    pub(crate) span: SpanOf,
    pub(crate) sentence: String,
    #[serde(flatten)]
    pub(crate) flow: FlowOf,
    /// The beginning of one frame.
    pub(crate) sample_base64: String,
}

/// Where an attack was seen.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PlaceOf {
    /// Name of the machine that was attacked.
    pub(crate) host: String,
    pub(crate) interface: String,
    pub(crate) mode: String,
}

/// What every attack of one kind has in common.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct SortOf {
    pub(crate) kind: String,
    /// Place of the kind in the list.
    pub(crate) kind_number: u64,
    pub(crate) severity: String,
    /// The severity as a number of syslog.
    pub(crate) priority: u8,
    pub(crate) advice: String,
}

/// Since when, and when last: in RFC 3339, and in milliseconds since 1970.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct SpanOf {
    pub(crate) first: String,
    pub(crate) last: String,
    pub(crate) first_unix_ms: u64,
    pub(crate) last_unix_ms: u64,
}

/// The flow that an attack at a gateway belongs to.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct FlowOf {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) protocol: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source_port: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) target_port: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) community_id: Option<String>,
}

/// One side of an attack, as far as it is known.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct PartyOf {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ip: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mac: Option<String>,
}

impl PartyOf {
    /// All that is known of it, or a dash.
    pub(crate) fn who(&self) -> String {
        let names = [&self.name, &self.ip, &self.mac].into_iter().flatten().filter(|name| !name.is_empty());
        let names: Vec<&str> = names.map(String::as_str).collect();
        if names.is_empty() { "-".to_owned() } else { names.join(" ") }
    }
}

/// Something that was changed at a daemon, for the history.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Change {
    /// started, stopped, policy or order.
    pub(crate) kind: String,
    pub(crate) interface: String,
    pub(crate) unix_ms: u64,
    pub(crate) text: String,
}

/// Who had an address, for the history.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Holding {
    pub(crate) interface: String,
    pub(crate) ip: String,
    pub(crate) mac: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) first_unix_ms: u64,
    pub(crate) last_unix_ms: u64,
    pub(crate) is_open: bool,
}
