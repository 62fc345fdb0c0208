//! What only a host has.

use super::daemon::{
    ANSWERED, ANSWERED_HELP, CONSUMED, CONSUMED_HELP, DROPPED, DROPPED_HELP, FORWARDED, FORWARDED_HELP, HELD,
    HELD_HELP, MADE, MADE_HELP, RECEIVED, RECEIVED_HELP, by_reason,
};
use super::family::Families;
use crate::config::Profile;
use crate::protocol::{Answer, Compression, Identity, Migration, Pair, Peer, Sarp, SitePolicy, Status};

pub(super) const CARRIER: &str = "ringwall_carrier";
pub(super) const CARRIER_HELP: &str = "Whether the card has a carrier.";

/// `known` is whom the daemon knows; `unix_s` when it said so.
pub(super) fn describe(families: &mut Families, status: &Status, known: &Answer, unix_s: u64) {
    frames(families, status);
    by_reason(families, DROPPED, DROPPED_HELP, &status.drops);
    families.gauge(CARRIER, CARRIER_HELP, &[("card", "wire")], u64::from(status.takeover.carrier));
    families.gauge("ringwall_peers", "Associations in use.", &[], status.peers as u64);
    let help = "Layers switched off by a laboratory; mode null, the paper profile and mode observe are one each.";
    families.gauge("ringwall_weakened_layers", help, &[], weakened(status));
    if let Some(layers) = &status.layers {
        let help = "Frames of the dropped ones that ended in the kernel, by reason.";
        by_reason(families, "ringwall_dropped_in_kernel_frames", help, &layers.dropped_in_kernel);
    }
    status.identity.iter().for_each(|identity| certificates(families, identity));
    status.migration.iter().for_each(|it| migration(families, it));
    status.signed.policy.iter().for_each(|it| policy(families, it));
    status.compression.iter().for_each(|it| compression(families, it));
    status.sarp.iter().for_each(|it| sarp(families, it));
    match known {
        Answer::Peers { peers: all } => peers(families, all, unix_s),
        Answer::Pairs { pairs: all } => pairs(families, all),
        _ => {}
    }
}

fn frames(families: &mut Families, status: &Status) {
    let frames = &status.frames;
    families.count(RECEIVED, RECEIVED_HELP, &[("side", "stack")], frames.received_from_stack);
    families.count(RECEIVED, RECEIVED_HELP, &[("side", "wire")], frames.received_from_wire);
    families.count(FORWARDED, FORWARDED_HELP, &[("side", "stack")], frames.forwarded_to_stack);
    families.count(FORWARDED, FORWARDED_HELP, &[("side", "wire")], frames.forwarded_to_wire);
    families.count(MADE, MADE_HELP, &[("side", "stack")], frames.made_for_stack);
    families.count(MADE, MADE_HELP, &[("side", "wire")], frames.made_for_wire);
    let (emitted, help) = ("ringwall_emitted_frames", "Frames that were written, by the side that they went to.");
    families.count(emitted, help, &[("side", "stack")], frames.emitted_to_stack);
    families.count(emitted, help, &[("side", "wire")], frames.emitted_to_wire);
    families.count(ANSWERED, ANSWERED_HELP, &[], frames.answered);
    families.count(CONSUMED, CONSUMED_HELP, &[], frames.consumed);
    families.gauge(HELD, HELD_HELP, &[], frames.held);
}

fn weakened(status: &Status) -> u64 {
    let observes = status.migration.as_ref().is_some_and(|migration| migration.mode == "observe");
    let is_weak = observes || status.mode == "null" || status.profile == Profile::Paper.word();
    status.weakened.len() as u64 + u64::from(is_weak)
}

fn certificates(families: &mut Families, identity: &Identity) {
    let help = "When this host's certificate ends, in seconds since 1970.";
    let ends = identity.certificate_not_after_unix;
    families.gauge("ringwall_certificate_not_after_timestamp_seconds", help, &[], ends);
    let help = "When the certificate of the site's authority ends, in seconds since 1970.";
    let ends = identity.authority_not_after_unix;
    families.gauge("ringwall_authority_not_after_timestamp_seconds", help, &[], ends);
}

fn migration(families: &mut Families, migration: &Migration) {
    let help = "1 for the mode of migration that is in force.";
    for mode in ["observe", "prefer", "enforce"] {
        families.gauge("ringwall_migration", help, &[("migration", mode)], u64::from(migration.mode == mode));
    }
    let help = "Hosts that speak in clear and were let in.";
    families.gauge("ringwall_plain_hosts", help, &[], migration.in_clear as u64);
    families.gauge("ringwall_proved_hosts", "Hosts that have proved themselves.", &[], migration.proved as u64);
    let help = "Frames that were let pass and that mode enforce would drop, by reason.";
    by_reason(families, "ringwall_would_drop_frames", help, &migration.would_drop);
}

fn policy(families: &mut Families, policy: &SitePolicy) {
    let help = "Version of the site's policy in force; 0 if all that came was refused.";
    families.gauge("ringwall_site_policy_version", help, &[], policy.version.unwrap_or(0));
    let help = "Site policies that were refused, by reason.";
    by_reason(families, "ringwall_refused_site_policies", help, &policy.refused);
}

fn compression(families: &mut Families, did: &Compression) {
    let counts = [
        ("ringwall_compressed_frames", "Frames that left compressed.", did.compressed_frames),
        ("ringwall_uncompressed_frames", "Frames that left as they were: smaller they would not be.", did.left_frames),
        ("ringwall_compression_input_bytes", "Bytes of both before compression.", did.bytes_before),
        ("ringwall_compression_output_bytes", "Bytes of both as they left.", did.bytes_after),
        ("ringwall_expanded_frames", "Frames that came compressed.", did.expanded_frames),
        ("ringwall_expansion_input_bytes", "Their bytes as they came.", did.expanded_bytes_before),
        ("ringwall_expansion_output_bytes", "Their bytes as the stack got them.", did.expanded_bytes_after),
    ];
    counts.into_iter().for_each(|(name, help, value)| families.count(name, help, &[], value));
}

fn sarp(families: &mut Families, sarp: &Sarp) {
    let is_clock_set = u64::from(sarp.clock_unix_s.is_some());
    let is_silent = u64::from(sarp.distributors_silent);
    let gauges = [
        ("ringwall_sarp_keys", "Keys in the ring of S-ARP.", sarp.keys as u64),
        ("ringwall_sarp_leases", "Addresses by DHCP that this host has or gave.", sarp.leases.len() as u64),
        ("ringwall_sarp_clock_set", "Whether a distributor has told the time.", is_clock_set),
        ("ringwall_sarp_distributors_silent", "Whether no key distributor answers.", is_silent),
    ];
    gauges.into_iter().for_each(|(name, help, value)| families.gauge(name, help, &[], value));
    families.count("ringwall_sarp_signatures", "Signatures that were made.", &[], sarp.signatures);
    families.count("ringwall_sarp_verifications", "Signatures that were checked.", &[], sarp.verifications);
    for distributor in &sarp.distributors {
        let name = "ringwall_sarp_distributor_certificate_not_after_timestamp_seconds";
        let help = "When the certificate of a key distributor ends, in seconds since 1970.";
        let ends = distributor.certificate_not_after_unix;
        families.gauge(name, help, &[("distributor", &distributor.name)], ends);
    }
}

fn peers(families: &mut Families, peers: &[Peer], unix_s: u64) {
    for peer in peers.iter().filter(|peer| peer.state == "established") {
        let labels = [("name", peer.name.as_str()), ("mac", peer.mac.as_str())];
        let help = "When the handshake with a peer was, in seconds since 1970.";
        let began = unix_s.saturating_sub(peer.age_s);
        families.gauge("ringwall_association_handshake_timestamp_seconds", help, &labels, began);
        if let Some(ago_s) = peer.last_opened_s {
            let help = "When a frame of a peer was opened last, in seconds since 1970.";
            let last = unix_s.saturating_sub(ago_s);
            families.gauge("ringwall_association_heard_timestamp_seconds", help, &labels, last);
        }
    }
}

fn pairs(families: &mut Families, pairs: &[Pair]) {
    for pair in pairs {
        let address = pair.address.to_string();
        let packets = &pair.packets;
        let fates = [
            ("sealed", packets.sealed),
            ("passed", packets.passed),
            ("on-trial", packets.on_trial),
            ("learned", packets.learned),
            ("unknown", packets.unknown),
            ("out-of-range", packets.out_of_range),
            ("used", packets.used),
            ("far", packets.far),
            ("over-budget", packets.over_budget),
        ];
        for (fate, count) in fates {
            let help = "ESP and AH of a shield's peer, by what became of it.";
            families.count("ringwall_shield_packets", help, &[("peer", &address), ("fate", fate)], count);
        }
        let labels = [("peer", address.as_str())];
        let help = "Packets of the passed ones that the kernel handed to the stack by itself.";
        families.count("ringwall_shield_passed_in_kernel_packets", help, &labels, packets.passed_in_kernel);
        let help = "Associations of a shield's peer that are known.";
        families.gauge("ringwall_shield_known_spis", help, &labels, pair.known_spis as u64);
        let help = "Whether a peer has a shield, too.";
        families.gauge("ringwall_shield_peer_has_shield", help, &labels, u64::from(pair.has_shield));
    }
}
