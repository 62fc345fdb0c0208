//! The link layer's parts of `status`: how far the move to sealed frames is, compression, leases.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::config::MigrationName;
use crate::metrics::family::Families;
use crate::modes::part::{Part, count_lines, lease_end};
use crate::verdict::{Findings, Level};

/// How far the move to sealed frames is.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Migration {
    pub(crate) mode: MigrationName,
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

impl Part for Migration {
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.weakens() {
            let line = "NOT PROTECTED: cll.migration = \"observe\", whoever speaks in clear is believed";
            lines.push(line.to_owned());
        }
        lines.push(format!(
            "migration: {}; {} hosts have proved themselves, {} speak in clear",
            self.mode.mode().word(),
            self.proved,
            self.in_clear
        ));
        let exception = |(mac, mode): (&String, &String)| format!("exception: {mac} is treated by mode {mode}");
        lines.extend(self.exceptions.iter().map(exception));
        let manager = |manager: &String| format!("management machine, reachable in clear: {manager}");
        lines.extend(self.management.iter().map(manager));
        if !self.would_drop.is_empty() {
            lines.push("let pass, would be dropped in mode enforce:".to_owned());
            lines.extend(count_lines(&self.would_drop));
        }
        lines
    }

    fn comes_first(&self) -> bool {
        true
    }

    fn weakens(&self) -> bool {
        self.mode == MigrationName::Observe
    }

    fn judge(&self, found: &mut Findings) {
        let remedy = "set cll.migration to \"prefer\" once all hosts are guarded";
        let what = "NOT PROTECTED: mode observe lets everything pass";
        found.enter(self.weakens(), Level::Warning, what, remedy);
    }

    fn measure(&self, families: &mut Families) {
        let help = "1 for the mode of migration that is in force.";
        for mode in [MigrationName::Observe, MigrationName::Prefer, MigrationName::Enforce] {
            let labels = [("migration", mode.mode().word())];
            families.gauge("ringwall_migration", help, &labels, u64::from(self.mode == mode));
        }
        let help = "Hosts that speak in clear and were let in.";
        families.gauge("ringwall_plain_hosts", help, &[], self.in_clear as u64);
        families.gauge("ringwall_proved_hosts", "Hosts that have proved themselves.", &[], self.proved as u64);
        let help = "Frames that were let pass and that mode enforce would drop, by reason.";
        families.by_reason("ringwall_would_drop_frames", help, &self.would_drop);
    }
}

impl Part for Compression {
    fn lines(&self) -> Vec<String> {
        let out = format!(
            "{} frames out compressed, {} left as they were, {} bytes became {}",
            self.compressed_frames, self.left_frames, self.bytes_before, self.bytes_after
        );
        let into = (self.expanded_frames, self.expanded_bytes_before, self.expanded_bytes_after);
        vec![format!("compression: {out}; {} frames in, {} bytes became {}", into.0, into.1, into.2)]
    }

    fn measure(&self, families: &mut Families) {
        let left = "Frames that left as they were: smaller they would not be.";
        let counts = [
            ("ringwall_compressed_frames", "Frames that left compressed.", self.compressed_frames),
            ("ringwall_uncompressed_frames", left, self.left_frames),
            ("ringwall_compression_input_bytes", "Bytes of both before compression.", self.bytes_before),
            ("ringwall_compression_output_bytes", "Bytes of both as they left.", self.bytes_after),
            ("ringwall_expanded_frames", "Frames that came compressed.", self.expanded_frames),
            ("ringwall_expansion_input_bytes", "Their bytes as they came.", self.expanded_bytes_before),
            ("ringwall_expansion_output_bytes", "Their bytes as the stack got them.", self.expanded_bytes_after),
        ];
        counts.into_iter().for_each(|(name, help, value)| families.count(name, help, &[], value));
    }
}

impl Part for Vec<LinkLease> {
    fn lines(&self) -> Vec<String> {
        let line = |lease: &LinkLease| {
            let whose = if lease.given { format!("given to {}", lease.mac) } else { "this host's".to_owned() };
            format!("lease: {}, {whose}, {}", lease.address, lease_end(lease.remaining_s))
        };
        self.iter().map(line).collect()
    }
}
