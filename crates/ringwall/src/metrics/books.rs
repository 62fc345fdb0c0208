//! What became of frames, in families that daemons of every kind have.

use std::collections::BTreeMap;

use super::family::Families;

/// One side of a daemon.
pub(crate) struct SideOf {
    pub(crate) name: &'static str,
    /// Frames that came from it.
    pub(crate) received: u64,
    /// Frames that went on to it.
    pub(crate) forwarded: u64,
    /// Frames that the daemon made for it.
    pub(crate) made: u64,
}

/// The books of a daemon, in frames.
pub(crate) struct Books<'a> {
    pub(crate) sides: [SideOf; 2],
    pub(crate) answered: u64,
    pub(crate) consumed: u64,
    pub(crate) held: u64,
    /// What was dropped, by reason.
    pub(crate) drops: &'a BTreeMap<String, u64>,
}

impl Books<'_> {
    /// Enters them.
    pub(crate) fn measure(&self, families: &mut Families) {
        for SideOf { name, received, forwarded, made } in &self.sides {
            let labels = [("side", *name)];
            families.count("ringwall_received_frames", "Frames that came, by side.", &labels, *received);
            let help = "Frames that went on, by the side that they went to.";
            families.count("ringwall_forwarded_frames", help, &labels, *forwarded);
            let help = "Frames that the daemon made, by the side that they went to.";
            families.count("ringwall_made_frames", help, &labels, *made);
        }
        let help = "Frames that the daemon answered in the receiver's place.";
        families.count("ringwall_answered_frames", help, &[], self.answered);
        families.count("ringwall_consumed_frames", "Frames that were for the daemon.", &[], self.consumed);
        families.gauge("ringwall_held_frames", "Frames that wait.", &[], self.held);
        families.by_reason("ringwall_dropped_frames", "Dropped frames, by reason.", self.drops);
    }
}

/// Enters whether a card has a carrier.
pub(crate) fn carrier(families: &mut Families, card: &str, is_on: bool) {
    families.gauge("ringwall_carrier", "Whether the card has a carrier.", &[("card", card)], u64::from(is_on));
}
