//! Whom the link layer knows: associations, and hosts that speak in clear.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::metrics::family::Families;
use crate::modes::part::Known;

/// One association.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) mac: String,
    pub(crate) addresses: Vec<String>,
    pub(crate) router: bool,
    pub(crate) state: String,
    pub(crate) initiated: bool,
    pub(crate) rollovers: u32,
    /// Whether a ticket led to it, and no signature since.
    pub(crate) resumed: bool,
    pub(crate) age_s: u64,
    pub(crate) remaining_s: u64,
    pub(crate) last_opened_s: Option<u64>,
    /// What its keys come from.
    #[serde(default)]
    pub(crate) agreement: String,
    pub(crate) sends: String,
    pub(crate) receives: String,
    #[serde(flatten)]
    pub(crate) shown: Shown,
    /// Of a host that speaks in clear.
    #[serde(flatten)]
    pub(crate) in_clear: InClear,
}

/// What a peer has shown in its handshake.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Shown {
    pub(crate) certificate_not_after_unix: u64,
    /// How far its clock was ahead of this host's; below zero behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) clock_ahead_s: Option<i64>,
}

/// What mode enforce would have dropped of a host that speaks in clear.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct InClear {
    /// In frames, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) would_drop: BTreeMap<String, u64>,
    /// By what the frames were for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) would_break: Vec<ClearUse>,
}

/// One use that a host in clear makes of the network.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct ClearUse {
    pub(crate) protocol: String,
    pub(crate) frames: u64,
    pub(crate) last_heard_s: u64,
    /// The addresses in the last frame, which are claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<IpAddr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) destination: Option<IpAddr>,
}

impl Peer {
    fn lines(&self) -> Vec<String> {
        let heard = self.last_opened_s.map_or_else(|| "never".to_owned(), |seconds| format!("{seconds} s"));
        let row = format!(
            "{:<16} {:<18} {:<16} {:<12} {:>5} s {heard:>7}  {} / {}, {}",
            self.name,
            self.mac,
            self.addresses.join(","),
            if self.resumed { format!("{}*", self.state) } else { self.state.clone() },
            self.age_s,
            self.sends,
            self.receives,
            self.agreement
        );
        let dropped =
            |(reason, count): (&String, &u64)| format!("{:<16} would be dropped in mode enforce: {count} {reason}", "");
        std::iter::once(row).chain(self.in_clear.would_drop.iter().map(dropped)).collect()
    }

    fn measure(&self, families: &mut Families, unix_s: u64) {
        let labels = [("name", self.name.as_str()), ("mac", self.mac.as_str())];
        let help = "When the handshake with a peer was, in seconds since 1970.";
        let began = unix_s.saturating_sub(self.age_s);
        families.gauge("ringwall_association_handshake_timestamp_seconds", help, &labels, began);
        if let Some(ago_s) = self.last_opened_s {
            let help = "When a frame of a peer was opened last, in seconds since 1970.";
            let last = unix_s.saturating_sub(ago_s);
            families.gauge("ringwall_association_heard_timestamp_seconds", help, &labels, last);
        }
    }
}

impl Known for Vec<Peer> {
    fn lines(&self) -> Vec<String> {
        let columns = ["name", "mac", "addresses", "state", "age", "heard"];
        let [name, mac, addresses, state, age, heard] = columns;
        let columns = format!("{name:<16} {mac:<18} {addresses:<16} {state:<12} {age:>7} {heard:>7}");
        let mut lines = vec![format!("{columns}  sends / receives, keys from")];
        lines.extend(self.iter().flat_map(Peer::lines));
        if self.iter().any(|peer| peer.resumed) {
            lines.push("* resumed by a ticket".to_owned());
        }
        lines
    }

    fn json(&self) -> serde_json::Result<String> {
        serde_json::to_string_pretty(self)
    }

    fn measure(&self, families: &mut Families, unix_s: u64) {
        let established = self.iter().filter(|peer| peer.state == "established");
        established.for_each(|peer| peer.measure(families, unix_s));
    }
}
