//! What only a gateway has.

use super::daemon::{
    ANSWERED, ANSWERED_HELP, CONSUMED, CONSUMED_HELP, DROPPED, DROPPED_HELP, FORWARDED, FORWARDED_HELP, HELD,
    HELD_HELP, MADE, MADE_HELP, RECEIVED, RECEIVED_HELP, by_reason,
};
use super::family::Families;
use super::host::{CARRIER, CARRIER_HELP};
use crate::protocol::GateStatus;

pub(super) fn describe(families: &mut Families, status: &GateStatus) {
    frames(families, status);
    by_reason(families, DROPPED, DROPPED_HELP, &status.drops);
    for (rule, count) in &status.rules {
        let help = "How often each rule of the gateway acted.";
        families.count("ringwall_gate_rule_actions", help, &[("rule", rule)], *count);
    }
    families.gauge("ringwall_gate_flows", "TCP connections that are remembered.", &[], status.flows as u64);
    let help = "Memory for unacknowledged data and fragments, in use and kept for the next.";
    for (use_of, bytes) in [("held", status.memory_bytes), ("idle", status.memory_idle_bytes)] {
        families.gauge("ringwall_gate_memory_bytes", help, &[("use", use_of)], bytes as u64);
    }
    let cards = [("trusted", &status.trusted), ("untrusted", &status.untrusted), ("mirror", &status.mirror)];
    for (role, card) in cards {
        if let Some(card) = card {
            families.gauge(CARRIER, CARRIER_HELP, &[("card", role)], u64::from(card.carrier));
        }
    }
}

fn frames(families: &mut Families, status: &GateStatus) {
    let frames = &status.frames;
    families.count(RECEIVED, RECEIVED_HELP, &[("side", "trusted")], frames.received_from_trusted);
    families.count(RECEIVED, RECEIVED_HELP, &[("side", "untrusted")], frames.received_from_untrusted);
    families.count(FORWARDED, FORWARDED_HELP, &[("side", "trusted")], frames.forwarded_to_trusted);
    families.count(FORWARDED, FORWARDED_HELP, &[("side", "untrusted")], frames.forwarded_to_untrusted);
    families.count(MADE, MADE_HELP, &[("side", "trusted")], frames.made_for_trusted);
    families.count(MADE, MADE_HELP, &[("side", "untrusted")], frames.made_for_untrusted);
    families.count(ANSWERED, ANSWERED_HELP, &[], frames.answered);
    families.count(CONSUMED, CONSUMED_HELP, &[], frames.consumed);
    families.gauge(HELD, HELD_HELP, &[], frames.held);
}
