//! What the daemon and its commands say to each other over the Unix socket: one JSON object per line, each way.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// The name, among what was found out about the kernel, of whether frames are moved before other programs run.
pub(crate) const REAL_TIME: &str = "real-time priority";

/// What `status` and `why` say of a host that the site has taken out.
pub(crate) const OWN_REVOKED: &str = "this host's own certificate was revoked: no host of the site answers it";

/// A question or an order.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub(crate) enum Ask {
    /// How is the daemon?
    Status,
    /// What is there to measure?
    Metrics,
    /// Which associations are there?
    Peers,
    /// What happened after the event with this number?
    Events {
        /// Zero for all that are remembered.
        after: u64,
    },
    /// What was dropped lately, and why?
    Drops,
    /// Which TCP connections are there?
    Flows {
        /// At most so many.
        limit: usize,
        /// Those of this host only.
        #[serde(default)]
        address: Option<IpAddr>,
        /// Those in this state only.
        #[serde(default)]
        state: Option<String>,
    },
    /// Block a TCP connection.
    Block {
        trusted: SocketAddr,
        untrusted: SocketAddr,
        vlans: u32,
        /// Unblock it.
        undo: bool,
    },
    /// Read the configuration again, as far as that is possible without a restart.
    Reload,
    /// The identity file has a renewed certificate.
    Renewed,
    /// Forget that a host has proved itself.
    Forget {
        /// Its name or hardware address.
        who: String,
    },
    /// End; the interface stays closed or is restored as configured.
    Stop,
}

impl Ask {
    /// What a daemon says that does not know this order.
    pub(crate) fn not_known(&self) -> Answer {
        let line = match self {
            Ask::Flows { .. } | Ask::Block { .. } => "only a gateway knows connections",
            _ => "only the daemon of a host in mode cll knows this order",
        };
        Answer::Error { line: line.to_owned() }
    }
}

/// An answer.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "answer", rename_all = "kebab-case")]
pub(crate) enum Answer {
    Status(Box<Status>),
    Gate(Box<GateStatus>),
    Measured(Box<Measured>),
    Peers {
        peers: Vec<Peer>,
    },
    Keys {
        keys: Vec<Key>,
    },
    Pairs {
        pairs: Vec<Pair>,
    },
    Events {
        events: Vec<Event>,
    },
    Drops {
        counts: BTreeMap<String, u64>,
        examples: Vec<Example>,
    },
    Flows {
        flows: Vec<Flow>,
    },
    Blocked {
        changed: bool,
    },
    /// An order was carried out; what it came to, in lines.
    Done {
        lines: Vec<String>,
    },
    Stopping,
    Error {
        line: String,
    },
}

impl Answer {
    /// What came of an order.
    pub(crate) fn of(done: Result<Vec<String>, Failure>) -> Answer {
        match done {
            Ok(lines) => Answer::Done { lines },
            Err(failure) => Answer::Error { line: failure.to_string() },
        }
    }
}

/// Everything that is measured, at one moment.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Measured {
    pub(crate) unix_ms: u64,
    pub(crate) started_unix_ms: u64,
    /// The answer to [`Ask::Status`].
    pub(crate) status: Box<Answer>,
    /// The answer to [`Ask::Peers`].
    pub(crate) known: Box<Answer>,
}

/// How the daemon is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Status {
    pub(crate) version: String,
    pub(crate) state: String,
    pub(crate) interface: String,
    pub(crate) mode: String,
    pub(crate) profile: String,
    /// Layers that a laboratory switched off.
    pub(crate) weakened: Vec<String>,
    pub(crate) uptime_s: u64,
    pub(crate) takeover: Takeover,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) identity: Option<Identity>,
    pub(crate) peers: usize,
    /// What the site's authority signs for all hosts.
    #[serde(flatten)]
    pub(crate) signed: Signed,
    /// How far the move to sealed frames is, in mode `cll`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) migration: Option<Migration>,
    /// Certificates that end soon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) sarp: Option<Sarp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) shield: Option<Shield>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) layers: Option<Layers>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) compression: Option<Compression>,
    /// Addresses by DHCP, in mode `cll`; those of mode `sarp` are in `sarp`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) leases: Vec<LinkLease>,
    pub(crate) frames: Frames,
    pub(crate) drops: BTreeMap<String, u64>,
    pub(crate) ports: BTreeMap<String, u64>,
    pub(crate) clock: String,
    pub(crate) not_carried: Vec<String>,
    #[serde(default)]
    pub(crate) not_protected: Vec<String>,
    #[serde(flatten)]
    pub(crate) attacks: Attacks,
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

/// What the site's authority signs for all hosts, as this host has it.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Signed {
    /// How many certificates the list of revoked ones names, where one is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) revoked: Option<usize>,
    /// The policy of the site, if this host has one or was given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<SitePolicy>,
}

/// The policy of the site, as this host has it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct SitePolicy {
    /// Its number; none if all that came was refused.
    pub(crate) version: Option<u64>,
    /// When the authority signed it.
    pub(crate) issued: Option<String>,
    /// Since when it is in force on this host.
    pub(crate) since: Option<String>,
    /// From where it came.
    pub(crate) origin: String,
    /// The group that means this host.
    pub(crate) group: Option<String>,
    /// The mode of that group.
    pub(crate) mode: Option<String>,
    /// The mode that follows, and when.
    pub(crate) changes: Option<String>,
    /// Where this host's own file differs.
    pub(crate) own_file: Vec<String>,
    /// Policies that were refused, by reason.
    pub(crate) refused: BTreeMap<String, u64>,
}

/// How far the move to sealed frames is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Migration {
    /// observe, prefer or enforce.
    pub(crate) mode: String,
    /// Hosts that are treated otherwise, by hardware address.
    pub(crate) exceptions: BTreeMap<String, String>,
    /// Managers' machines that reach this host in clear.
    pub(crate) management: Vec<String>,
    /// Hosts on the legacy list, the site's and this host's own: hardware addresses by address.
    #[serde(default)]
    pub(crate) legacy: BTreeMap<String, String>,
    /// Hosts that have proved themselves and are remembered.
    pub(crate) proved: usize,
    /// Hosts that speak in clear and were let in.
    pub(crate) in_clear: usize,
    /// Frames that were let pass and that mode enforce would have dropped, by reason.
    pub(crate) would_drop: BTreeMap<String, u64>,
}

/// Where forged frames of the link layer end.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Layers {
    /// As configured: none, twin or kernel.
    pub(crate) wanted: String,
    /// As it is.
    pub(crate) in_force: String,
    /// At which place in the kernel: socket, xdp or xdp-generic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) hook: Option<String>,
    /// Why it is another, or at another place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// Frames that the kernel dropped; they are part of `frames` and `drops`.
    pub(crate) dropped_in_kernel: BTreeMap<String, u64>,
}

/// An address by DHCP of the link layer.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct LinkLease {
    pub(crate) address: String,
    /// Of the host that has it.
    pub(crate) mac: String,
    /// Absent for a lease without an end.
    pub(crate) remaining_s: Option<u64>,
    /// Whether this host, a DHCP server, gave it.
    pub(crate) given: bool,
}

/// What compression did to the payload of sealed frames, since the start.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Compression {
    /// Frames that left compressed.
    pub(crate) compressed_frames: u64,
    /// Frames that left as they were, because compression would have made them no smaller.
    pub(crate) left_frames: u64,
    /// Bytes of both, before.
    pub(crate) bytes_before: u64,
    /// Bytes of both, as they left.
    pub(crate) bytes_after: u64,
    /// Frames that came compressed.
    pub(crate) expanded_frames: u64,
    /// Their bytes as they came.
    pub(crate) expanded_bytes_before: u64,
    /// Their bytes as the stack got them.
    pub(crate) expanded_bytes_after: u64,
}

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
    /// TCP connections that are remembered.
    pub(crate) flows: usize,
    /// Memory for unacknowledged data and for waiting fragments.
    pub(crate) memory_bytes: usize,
    /// Memory that waits to be used again for unacknowledged data; with `memory_bytes` at most `gate.memory_max_bytes`.
    #[serde(default)]
    pub(crate) memory_idle_bytes: usize,
    /// How often each rule acted.
    pub(crate) rules: BTreeMap<String, u64>,
    pub(crate) drops: BTreeMap<String, u64>,
    pub(crate) ports: BTreeMap<String, u64>,
    pub(crate) warnings: Vec<String>,
    #[serde(flatten)]
    pub(crate) attacks: Attacks,
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

/// How signed ARP is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Sarp {
    /// The S-ARP clock; absent before a distributor has told the time.
    pub(crate) clock_unix_s: Option<u32>,
    pub(crate) window_s: u64,
    pub(crate) sign_requests: bool,
    pub(crate) keys: usize,
    pub(crate) open_requests: usize,
    pub(crate) distributors_silent: bool,
    pub(crate) asked_first: Option<String>,
    pub(crate) distributors: Vec<Distributor>,
    pub(crate) known_hosts: usize,
    /// Signatures made and checked since the start.
    #[serde(default)]
    pub(crate) signatures: u64,
    #[serde(default)]
    pub(crate) verifications: u64,
    /// Whether this host distributes keys itself.
    #[serde(default)]
    pub(crate) distributes: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) leases: Vec<Lease>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) own_key: Option<OwnKey>,
}

/// How a shield in front of IPsec is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Shield {
    pub(crate) peers_with_shield: usize,
    pub(crate) peers_without_shield: usize,
    /// Associations of all peers that are known.
    pub(crate) known_spis: usize,
    pub(crate) spi_min: u32,
    pub(crate) spi_max: u32,
    pub(crate) strangers_pass: bool,
}

/// An IPsec peer.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Pair {
    pub(crate) address: IpAddr,
    pub(crate) has_shield: bool,
    /// The epoch that is sent under; absent for a peer without a shield.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) send_epoch: Option<u32>,
    /// The epochs that are taken.
    pub(crate) epochs: Vec<u32>,
    pub(crate) known_spis: usize,
    pub(crate) packets: PairPackets,
}

/// ESP of one peer, by what became of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PairPackets {
    pub(crate) sealed: u64,
    pub(crate) passed: u64,
    /// Those of them that the kernel handed to the stack by itself.
    #[serde(default)]
    pub(crate) passed_in_kernel: u64,
    pub(crate) on_trial: u64,
    pub(crate) learned: u64,
    pub(crate) unknown: u64,
    pub(crate) out_of_range: u64,
    pub(crate) used: u64,
    pub(crate) far: u64,
    pub(crate) over_budget: u64,
}

/// The key that this host signs ARP with.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct OwnKey {
    /// By the S-ARP clock; absent while that is not set.
    pub(crate) age_s: Option<u64>,
    /// Absent if the host does not change it by itself, or the clock is not set.
    pub(crate) changes_in_s: Option<u64>,
    /// Whether distributors are being asked to take another one.
    pub(crate) is_changing: bool,
}

/// An address by DHCP: one that this host has, or one that it gave as a server.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Lease {
    pub(crate) address: String,
    /// The number of the host that has it.
    pub(crate) host: u64,
    /// Absent if it lasts for ever.
    pub(crate) remaining_s: Option<u64>,
    pub(crate) given: bool,
}

/// A key distributor that this host asks.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Distributor {
    pub(crate) name: String,
    pub(crate) address: String,
    pub(crate) mac: String,
    pub(crate) certificate_not_after_unix: u64,
    pub(crate) certificate_days_left: i64,
}

/// A key that a distributor vouched for.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Key {
    pub(crate) address: String,
    /// The only hardware address that may speak for it, if the site binds one.
    pub(crate) mac: Option<String>,
    pub(crate) fetched_s: u64,
    /// Whether a message of its owner has been verified.
    pub(crate) heard: bool,
}

/// How the interface is held.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Takeover {
    pub(crate) way: String,
    pub(crate) adopted: bool,
    pub(crate) on_exit: String,
    pub(crate) carrier: bool,
    pub(crate) wire_mtu: u32,
    pub(crate) inner_mtu: u32,
    /// Seconds until the interface is given back unless `host confirm` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reverts_in_s: Option<u64>,
    pub(crate) probes: BTreeMap<String, String>,
    pub(crate) warnings: Vec<String>,
}

/// Who this host is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) site: String,
    pub(crate) mac: String,
    pub(crate) addresses: Vec<String>,
    pub(crate) router: bool,
    pub(crate) certificate_days_left: i64,
    /// Until the certificate of the site's authority ends.
    #[serde(default)]
    pub(crate) authority_days_left: i64,
    /// When both end, in seconds since 1970.
    #[serde(default)]
    pub(crate) certificate_not_after_unix: u64,
    #[serde(default)]
    pub(crate) authority_not_after_unix: u64,
    /// The generation of the keys that this host shares with others.
    #[serde(default)]
    pub(crate) shared_keys: u32,
}

/// The books. Every frame received has one fate.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Frames {
    pub(crate) received_from_stack: u64,
    pub(crate) received_from_wire: u64,
    pub(crate) forwarded_to_wire: u64,
    pub(crate) forwarded_to_stack: u64,
    pub(crate) answered: u64,
    pub(crate) consumed: u64,
    pub(crate) held: u64,
    pub(crate) dropped: u64,
    pub(crate) made_for_wire: u64,
    pub(crate) made_for_stack: u64,
    /// Frames written towards the wire; more than forwarded where large ones were cut.
    pub(crate) emitted_to_wire: u64,
    /// Frames written towards the stack.
    pub(crate) emitted_to_stack: u64,
}

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

/// Something that happened.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Event {
    pub(crate) number: u64,
    pub(crate) unix_ms: u64,
    pub(crate) event: String,
    pub(crate) text: String,
    /// For programs: what `text` says in words.
    #[serde(flatten)]
    pub(crate) about: About,
}

/// Whom an event is about, as far as it is about one host. Addresses of strangers are claims.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct About {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) mac: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ip: Option<String>,
    /// Why something was refused: a drop reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    /// The words of the check that failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
}

/// A frame that was dropped.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Example {
    pub(crate) reason: String,
    pub(crate) from: String,
    pub(crate) ago_ms: u64,
    pub(crate) len: usize,
    pub(crate) source: String,
    pub(crate) destination: String,
    pub(crate) ethertype: String,
    /// Addresses, ports and protocol of an IP packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) packet: Option<String>,
    pub(crate) head_hex: String,
}
