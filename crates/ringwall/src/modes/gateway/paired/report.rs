//! How a gateway of a pair is, for `status` and metrics.

use std::collections::BTreeMap;
use std::time::Duration;

use pair::Role;
use serde::{Deserialize, Serialize};

use crate::metrics::family::Families;
use crate::verdict::{Findings, Level};

/// What the data path says of the pair.
#[derive(Clone, Debug)]
pub(crate) struct PairReport {
    pub(crate) machine: pair::Report,
    pub(crate) waits: scrub::Waits,
    pub(crate) stations: usize,
    pub(crate) bad_records: u64,
}

/// The same for whoever asks.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PairStatus {
    /// "active" or "standby".
    pub(crate) role: String,
    pub(crate) since_s: u64,
    /// The other gateway, if it is heard.
    pub(crate) peer: Option<PeerStatus>,
    /// Whether the one on standby knows all flows.
    pub(crate) in_sync: bool,
    /// Whether the other gateway is heard on the segments only.
    #[serde(default)]
    pub(crate) sync_link_silent: bool,
    /// Age of the newest records, on standby.
    pub(crate) lag_ms: Option<u64>,
    pub(crate) messages_sent: u64,
    pub(crate) messages_heard: u64,
    pub(crate) records_sent: u64,
    pub(crate) records_heard: u64,
    pub(crate) bad_records: u64,
    /// Times that records were missing.
    pub(crate) losses: u64,
    /// Hardware addresses that switches are shown after a takeover.
    pub(crate) stations: usize,
    /// Messages that were refused, by reason.
    pub(crate) refused: BTreeMap<String, u64>,
    /// Segments that waited after a takeover until their receiver had answered, by what became of
    /// them, and questions that were asked again.
    #[serde(default)]
    pub(crate) waited: BTreeMap<String, u64>,
}

/// The other gateway.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PeerStatus {
    pub(crate) role: String,
    pub(crate) priority: u8,
    pub(crate) heard_ms_ago: u64,
    pub(crate) trusted_carrier: bool,
    pub(crate) untrusted_carrier: bool,
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The counts by their words.
fn waited(waits: &scrub::Waits) -> BTreeMap<String, u64> {
    let scrub::Waits { kept, went_on, refused, in_vain, no_room, outside, ended, asked_again } = *waits;
    [
        ("kept", kept),
        ("went-on", went_on),
        ("refused", refused),
        ("in-vain", in_vain),
        ("no-room", no_room),
        ("outside", outside),
        ("ended", ended),
        ("asked-again", asked_again),
    ]
    .map(|(word, count)| (word.to_owned(), count))
    .into()
}

impl PairReport {
    pub(crate) fn status(&self) -> PairStatus {
        let machine = &self.machine;
        let peer = machine.peer.map(|(peer, age)| PeerStatus {
            role: peer.role.word().to_owned(),
            priority: peer.priority,
            heard_ms_ago: millis(age),
            trusted_carrier: peer.cards.trusted,
            untrusted_carrier: peer.cards.untrusted,
        });
        let count = |refusal: &pair::Refusal| machine.refused.get(refusal).copied().unwrap_or(0);
        PairStatus {
            role: machine.role.word().to_owned(),
            since_s: machine.since.as_secs(),
            peer,
            in_sync: machine.in_sync,
            sync_link_silent: machine.sync_is_silent,
            lag_ms: machine.lag.map(millis),
            messages_sent: machine.messages[0],
            messages_heard: machine.messages[1],
            records_sent: machine.records[0],
            records_heard: machine.records[1],
            bad_records: self.bad_records,
            losses: machine.losses,
            stations: self.stations,
            refused: pair::Refusal::ALL.iter().map(|refusal| (refusal.word().to_owned(), count(refusal))).collect(),
            waited: waited(&self.waits),
        }
    }
}

impl PairStatus {
    pub(crate) fn lines(&self) -> Vec<String> {
        let sync = match (self.in_sync, self.sync_link_silent) {
            (_, true) => "not in sync as the sync link is silent",
            (true, false) => "in sync",
            (false, false) if self.bad_records > 0 => "not in sync as its records cannot be read",
            (false, false) => "not in sync",
        };
        let peer = self.peer.as_ref().map_or("the other gateway is not heard".to_owned(), |peer| {
            let PeerStatus { role, priority, heard_ms_ago, .. } = peer;
            format!("the other one is {role}, priority {priority}, heard {heard_ms_ago} ms ago, {sync}")
        });
        let lag = self.lag_ms.map_or(String::new(), |lag| format!(", newest records {lag} ms old"));
        let refused: u64 = self.refused.values().sum();
        vec![
            format!("pair: {} for {} s; {peer}", self.role, self.since_s),
            format!(
                "pair messages: {} sent, {} heard, {refused} refused; records: {} sent, {} heard{lag}, {} losses",
                self.messages_sent, self.messages_heard, self.records_sent, self.records_heard, self.losses
            ),
        ]
    }

    pub(crate) fn findings(&self, found: &mut Findings) {
        let what = "the other gateway of the pair is not heard";
        found.enter(self.peer.is_none(), Level::Warning, what, "look at the machine and at the sync link");
        let what = "the sync link of the pair is silent, so the gateway on standby misses what changes";
        let remedy = "look at the cable and the addresses of pair.local and pair.peer";
        found.enter(self.sync_link_silent, Level::Warning, what, remedy);
        let unread = self.bad_records > 0 && !self.in_sync;
        let what = format!("{} records of the other gateway could not be read", self.bad_records);
        found.enter(unread, Level::Warning, &what, "have both gateways run the same version");
        let forged = self.refused.get("forged").copied().unwrap_or(0);
        let what = format!("{forged} messages of the pair were forged");
        found.enter(forged > 0, Level::Warning, &what, "look who is on the segments, and whether both have one key");
    }

    pub(crate) fn measure(&self, families: &mut Families) {
        let is_active = u64::from(self.role == Role::Active.word());
        families.gauge("ringwall_gate_pair_active", "Whether this gateway of a pair forwards.", &[], is_active);
        let heard = u64::from(self.peer.is_some());
        families.gauge("ringwall_gate_pair_peer", "Whether the other gateway of the pair is heard.", &[], heard);
        let help = "Whether the gateway on standby knows all flows.";
        families.gauge("ringwall_gate_pair_in_sync", help, &[], u64::from(self.in_sync));
        for (direction, count) in [("sent", self.records_sent), ("heard", self.records_heard)] {
            let help = "Records of flows between the gateways of a pair.";
            families.count("ringwall_gate_pair_records", help, &[("direction", direction)], count);
        }
        for (fate, count) in &self.waited {
            let help = "Segments that waited after a takeover, and questions asked again, by what became of them.";
            families.count("ringwall_gate_pair_waited", help, &[("fate", fate)], *count);
        }
        for (reason, count) in &self.refused {
            let help = "Messages of the pair that were refused, by reason.";
            families.count("ringwall_gate_pair_refused", help, &[("reason", reason)], *count);
        }
    }
}
