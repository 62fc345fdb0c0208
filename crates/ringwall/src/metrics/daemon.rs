//! What is told of every daemon.

use std::collections::BTreeMap;

use super::family::Families;
use crate::modes::part::Account;
use crate::protocol::Measured;
use crate::protocol::attacks::Attacks;

/// All metrics of one daemon.
pub(super) fn describe(families: &mut Families, measured: &Measured) {
    let Some(account) = measured.status.account() else { return };
    families.of(&[("interface", account.interface())]);
    being(families, measured, account);
    families.gauge(LEVEL, LEVEL_HELP, &[], account.verdict().level as u64);
    attacks(families, account.attacks());
    ports(families, account.ports());
    account.measure(families);
    if let Some(known) = measured.known.known() {
        known.measure(families, measured.unix_ms / 1000);
    }
}

const LEVEL: &str = "ringwall_status_level";
const LEVEL_HELP: &str = "How the daemon is: 0 good, 1 warning, 2 critical, as the exit status of `ringwall status`.";
const UP: &str = "ringwall_up";
const UP_HELP: &str = "Whether the daemon answered.";

/// A daemon that gives no answer.
pub(super) fn silent(families: &mut Families, interface: &str) {
    families.of(&[("interface", interface)]);
    families.gauge(UP, UP_HELP, &[], 0);
}

fn being(families: &mut Families, measured: &Measured, account: &dyn Account) {
    families.gauge(UP, UP_HELP, &[], 1);
    families.info("ringwall_build", "The program of the daemon.", &[("version", account.version())]);
    families.gauge("ringwall_mode", "1 for the mode that the daemon is in.", &[("mode", account.mode())], 1);
    let help = "When the daemon started, in seconds since 1970.";
    families.gauge("ringwall_start_time_seconds", help, &[], measured.started_unix_ms / 1000);
}

fn attacks(families: &mut Families, attacks: &Attacks) {
    for (kind, opened) in &attacks.opened_by_kind {
        let open = attacks.open.iter().filter(|attack| attack.sort.kind == *kind).count() as u64;
        let labels = [("kind", kind.as_str())];
        families.count("ringwall_attacks", "Attacks since the start, by kind.", &labels, *opened);
        families.gauge("ringwall_attacks_open", "Attacks that are under way, by kind.", &labels, open);
    }
    let help = "Records of attacks that no place was told of.";
    families.count("ringwall_records_lost", help, &[], attacks.records_lost);
}

/// What passed the ports, by the end of the counter's name; what stands before that is the side.
const PORTS: &[(&str, &str, &str)] = &[
    ("received_frames", "ringwall_port_received_frames", "Frames that the kernel handed over, by side."),
    ("received_bytes", "ringwall_port_received_bytes", "Bytes of them."),
    ("received_super_frames", "ringwall_port_received_super_frames", "Received frames that stand for several."),
    ("received_segments", "ringwall_port_received_segments", "Frames that those stand for."),
    ("received_unreadable", "ringwall_port_received_unreadable_frames", "Received frames that nobody could read."),
    ("kernel_drops", "ringwall_port_kernel_dropped_frames", "Frames lost before the daemon, for want of room."),
    ("sent_frames", "ringwall_port_sent_frames", "Frames that were handed to the kernel, by side."),
    ("sent_bytes", "ringwall_port_sent_bytes", "Bytes of them."),
    ("sent_super_frames", "ringwall_port_sent_super_frames", "Sent frames that stand for several."),
    ("sent_joined", "ringwall_port_sent_joined_frames", "Frames that those stand for."),
    ("send_backlogs", "ringwall_port_send_backlogs", "How often the kernel had no room for a frame that left."),
    ("send_errors", "ringwall_port_send_errors", "Frames that the kernel refused to send."),
];

fn ports(families: &mut Families, ports: &BTreeMap<String, u64>) {
    for (end, name, help) in PORTS {
        for (counter, value) in ports {
            let side = counter.strip_suffix(end).and_then(|start| start.strip_suffix('_'));
            // The end of one name is that of another, too: only a side may stand before it.
            if let Some(side) = side.filter(|side| !side.contains('_')) {
                families.count(name, help, &[("side", side)], *value);
            }
        }
    }
    let lost = ports.get("news_lost").copied().unwrap_or(0);
    families.count("ringwall_events_lost", "Events that the data path could not hand over.", &[], lost);
}
