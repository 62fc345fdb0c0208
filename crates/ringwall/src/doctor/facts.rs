//! What is around a daemon. Plain data, so that every check can be tried with any of it.

use std::path::PathBuf;

use bump::ClockTrust;

use crate::modes::ConfigFile;
use crate::protocol::{GateStatus, Peer, Status};

/// Something that was found, or why it could not be.
pub(super) type Found<T> = Result<T, String>;

/// What all interfaces share.
#[derive(Clone, Debug)]
pub(super) struct Machine {
    /// As `uname -r` says it.
    pub(super) kernel: String,
    pub(super) has_tun: bool,
    /// The kernel's security modules, with commas between them.
    pub(super) security_modules: Found<String>,
    /// Programs that are missing.
    pub(super) missing_tools: Vec<&'static str>,
    /// net.core.optmem_max, in bytes.
    pub(super) optmem_max: Found<u64>,
    pub(super) account: Found<bool>,
    pub(super) clock: ClockTrust,
    /// In seconds since 1970.
    pub(super) unix_s: u64,
    pub(super) managers: Managers,
    /// Whether systemd runs here.
    pub(super) has_systemd: bool,
}

/// What manages the network.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Managers {
    pub(super) network_manager: bool,
    pub(super) networkd: bool,
    /// Whether the files are there that keep either off our devices.
    pub(super) has_udev_rule: bool,
    pub(super) has_networkd_file: bool,
}

/// One interface that is to be guarded.
pub(super) struct Guarded {
    pub(super) name: String,
    pub(super) file: PathBuf,
    pub(super) config: Found<ConfigFile>,
    pub(super) card: Option<Card>,
    pub(super) identity: Option<Found<Identity>>,
    /// Units that are enabled for it.
    pub(super) units: Vec<String>,
    pub(super) daemon: Daemon,
    /// Bytes that are free where the daemon keeps its files.
    pub(super) free_bytes: Found<u64>,
}

/// The interface as the kernel has it.
#[derive(Clone, Debug)]
pub(super) struct Card {
    pub(super) has_carrier: bool,
    pub(super) mtu: u32,
    /// The bridge or bond that it belongs to.
    pub(super) master: Option<String>,
    /// The number of an XDP program at it, if there is one.
    pub(super) xdp: Option<u64>,
}

/// What an identity file holds.
#[derive(Clone, Debug)]
pub(super) struct Identity {
    pub(super) not_before_unix: u64,
    pub(super) not_after_unix: u64,
    pub(super) authority_not_after_unix: u64,
    /// When the last of its site keys ends.
    pub(super) site_key_until_unix: u64,
    /// How many site keys it has.
    pub(super) site_keys: usize,
}

/// What the daemon says.
pub(super) enum Daemon {
    Host(Box<Status>, Vec<Peer>),
    Gate(Box<GateStatus>),
    /// Nobody listens; whether the interface is taken all the same.
    Absent {
        is_taken: Found<bool>,
    },
    /// It may run and was not asked: why.
    Unasked(String),
}
