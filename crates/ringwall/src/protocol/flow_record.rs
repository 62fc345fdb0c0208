//! A connection that is over, as a gateway hands it to its recorder.

use serde::{Deserialize, Serialize};

/// Who spoke with whom, for how long and how much.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct FlowRecord {
    /// One number for each connection, below 2^53, which every reader of JSON can hold.
    pub(crate) id: u64,
    pub(crate) community_id: String,
    /// Address and port of the host that began it, and of the one that it asked.
    pub(crate) client: (String, u16),
    pub(crate) server: (String, u16),
    /// VLAN identifiers, the outer one first.
    pub(crate) vlans: Vec<u16>,
    /// Packets, and bytes of data, that went on to the server and to the client.
    pub(crate) packets: [u32; 2],
    pub(crate) bytes: [u64; 2],
    pub(crate) start_unix_ms: u64,
    pub(crate) end_unix_ms: u64,
    /// How far it came, in Suricata's words.
    pub(crate) state: String,
    /// Why it is over.
    pub(crate) reason: String,
    /// Whether the gateway ended it.
    pub(crate) is_cut: bool,
}
