//! Associations come into use, grow old and end: renewal, silence, idleness, expiry (paper,
//! sections 5.2 and 5.4).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bump::{Instant, Torn};
use shield::{Apart, Bucket};
use wire::MacAddress;

use super::core::{Call, steady};
use super::machines::{Machine, Wish};
use super::peers::{Association, Birth, Peers};
use crate::event::EndCause;
use crate::keys::SendKey;
use crate::limits::{
    CANDIDATE_PEERS_MAX, OUTGOING_GRACE, PEERS_MAX, SEQUENCE_START_BELOW, SWEEP_INTERVAL, TICKETS_PER_SWEEP,
    UNKNOWN_ASKED_MAX, UNKNOWN_OF_STRANGERS_PER_SECOND, UNKNOWN_PER_SECOND,
};
use crate::message::{AssociationId, OrderKind, Outgoing};

/// How often one source address may cause a handshake by frames with an unknown index.
const UNKNOWN_INTERVAL: Duration = Duration::from_secs(1);

/// The table of associations, and their age.
pub(super) struct Associations {
    pub(super) peers: Peers,
    /// All peers are looked over then.
    next_sweep: Option<Instant>,
    unknown_budget: Apart<Bucket>,
    unknown_asked: BTreeMap<MacAddress, Instant>,
}

impl Default for Associations {
    fn default() -> Associations {
        let (proved, strangers) = (steady(UNKNOWN_PER_SECOND), steady(UNKNOWN_OF_STRANGERS_PER_SECOND));
        Associations {
            peers: Peers::default(),
            next_sweep: None,
            unknown_budget: Apart { proved, strangers },
            unknown_asked: BTreeMap::new(),
        }
    }
}

impl Associations {
    /// Makes an association that opens frames and seals none before one was opened.
    pub(super) fn add_candidate(&mut self, call: &mut Call<'_>, birth: Birth) -> AssociationId {
        let now = call.now.since_boot;
        self.make_room_for_candidate(call, birth.agreed.peer.mac());
        let (association, send, receive) = self.peers.bear(now, birth);
        let id = association.id;
        call.install_receivers(&association, receive, true);
        if let Some(evicted) = self.peers.add_candidate(now, association, send) {
            call.stop_receiving(&evicted);
        }
        self.next_sweep.get_or_insert(now + SWEEP_INTERVAL);
        id
    }

    /// Makes `association` the one in use, and gives the lanes its keys to send with.
    pub(super) fn put_in_use(&mut self, call: &mut Call<'_>, association: Association, send: Vec<SendKey>) {
        let (association_id, peer) = (association.id, association.certificate.mac());
        let carries_payload = !association.is_bare();
        if let Some(old) = self.peers.set_current(association) {
            self.retire(call, old);
        }
        for (lane, key) in send.into_iter().enumerate() {
            let first_sequence = call.core.random.number() % SEQUENCE_START_BELOW;
            let outgoing = Outgoing { association: association_id, peer, key, first_sequence, carries_payload };
            call.order(lane as u8, OrderKind::Send(Box::new(outgoing)));
        }
        self.next_sweep.get_or_insert(call.now.since_boot + SWEEP_INTERVAL);
    }

    /// Lets a replaced association open frames for a while, and ends the one that did so before.
    pub(super) fn retire(&mut self, call: &mut Call<'_>, association: Association) {
        let until = (call.now.since_boot + OUTGOING_GRACE).min(association.term.expires);
        if let Some(before) = self.peers.add_leaving(association, until) {
            self.peers.forget(&before);
            call.stop_receiving(&before);
        }
    }

    /// Makes room for an association with `newcomer` that is confirmed, at the cost of the least
    /// useful one.
    pub(super) fn make_room(&mut self, call: &mut Call<'_>, newcomer: MacAddress) {
        let is_known = self.peers.current_by_mac(newcomer).is_some();
        if is_known || self.peers.established() < PEERS_MAX {
            return;
        }
        if let Some(mac) = self.peers.least_useful() {
            for association in self.peers.take_all(mac) {
                call.stop_all(&association, EndCause::Evicted);
            }
        }
    }

    /// Makes room for a candidate. A replayed request makes one too, so it takes nothing from a
    /// confirmed association.
    fn make_room_for_candidate(&mut self, call: &mut Call<'_>, newcomer: MacAddress) {
        if self.peers.len() < PEERS_MAX + CANDIDATE_PEERS_MAX || self.peers.get(newcomer).is_some() {
            return;
        }
        if let Some(mac) = self.peers.oldest_unconfirmed() {
            for association in self.peers.take_all(mac) {
                call.stop_receiving(&association);
            }
        }
    }

    pub(super) fn end_current(&mut self, call: &mut Call<'_>, mac: MacAddress, cause: EndCause) {
        if let Some(association) = self.peers.take_current(mac) {
            call.stop_all(&association, cause);
        }
    }

    /// The host at `mac` has not answered: what was in doubt is over.
    pub(super) fn end_doubted(&mut self, call: &mut Call<'_>, mac: MacAddress) {
        if self.peers.current_by_mac(mac).is_some_and(|current| current.life.doubted) {
            self.end_current(call, mac, EndCause::Silent);
        }
    }

    /// Ends whatever there is with `mac`.
    pub(super) fn end_all(&mut self, call: &mut Call<'_>, mac: MacAddress, cause: EndCause) {
        let in_use = self.peers.current_by_mac(mac).map(|current| current.id);
        for association in self.peers.take_all(mac) {
            if Some(association.id) == in_use {
                call.stop_all(&association, cause);
            } else {
                call.stop_receiving(&association);
            }
        }
    }

    /// Ends those that may be half done.
    pub(super) fn mend(&mut self, call: &mut Call<'_>, torn: Torn) {
        for mac in self.peers.macs().into_iter().filter(|mac| torn.includes(mac.0)) {
            for association in self.peers.take_all(mac) {
                call.stop_all(&association, EndCause::InternalError);
            }
        }
    }

    /// Looks over all peers once in a [`SWEEP_INTERVAL`].
    fn sweep(&mut self, call: &mut Call<'_>, budget: usize) {
        let now = call.now.since_boot;
        let expired = self.peers.take_expired(now, budget);
        let unfinished = expired.len() >= budget;
        self.end_idle(call, budget);
        for (association, was_current) in expired {
            if was_current && association.is_bare() {
                // The exchange for which payload waits did not come to an end, so what waits is
                // given up.
                call.stop_all(&association, EndCause::Unfinished);
                call.order_all(|| OrderKind::GiveUp(association.certificate.mac()));
            } else if was_current {
                call.stop_all(&association, EndCause::Expired);
            } else {
                call.stop_receiving(&association);
            }
        }
        self.find_needs(call);
        let next = if unfinished { now } else { now + SWEEP_INTERVAL };
        self.next_sweep = (self.peers.len() > 0).then_some(next);
    }

    /// Ends associations that nobody uses. Our keys to seal with go at once; should the peer still
    /// use its own, because its clock counts a little differently, they are opened for a while, and
    /// what it is answered opens a new handshake.
    fn end_idle(&mut self, call: &mut Call<'_>, budget: usize) {
        for association in self.peers.take_idle(call.now.since_boot, call.core.settings.idle, budget) {
            call.stop_sending(&association);
            call.out.event(association.ended(EndCause::Idle));
            self.retire(call, association);
        }
    }

    fn find_needs(&mut self, call: &mut Call<'_>) {
        let (now, settings) = (call.now.since_boot, Arc::clone(&call.core.settings));
        let mut tickets = if settings.resumption.is_some() { TICKETS_PER_SWEEP } else { 0 };
        for (mac, peer) in self.peers.iter_mut() {
            let Some(current) = peer.current.as_mut() else { continue };
            if current.wants_kem && current.initiated_by_us {
                call.wishes.push_back(Wish::Kem(*mac));
            }
            if current.is_bare() {
                continue;
            }
            if current.life.take_owed_sign_of_life(now) {
                call.wishes.push_back(Wish::SignOfLife(*mac));
            }
            if tickets > 0 && current.owes_ticket() {
                tickets -= 1;
                call.wishes.push_back(Wish::Ticket(*mac));
            }
            if current.life.is_silent(now) {
                // Asked for in every sweep: while a handshake is open that does nothing.
                current.life.doubted = true;
                call.wishes.push_back(Wish::Handshake(*mac));
            } else if current.wants_successor(now, settings.mac, settings.rekey_every) {
                current.life.in_use = false;
                call.wishes.push_back(Wish::Rollover(*mac));
            }
        }
    }

    /// Somebody sends under an association that we do not have: after our restart, the peer's old
    /// one. The source address is only a claim, so this is rare by budget and costs at most a
    /// handshake that nobody answers. In the name of a host that we hear under its association it
    /// costs nothing, or a forger could have that association replaced every second. True if a
    /// handshake is to be opened.
    pub(super) fn on_unknown_index(&mut self, call: &Call<'_>, mac: MacAddress) -> bool {
        let now = call.now.since_boot;
        let is_lively = self.peers.current_by_mac(mac).is_some_and(|current| current.is_lively(now));
        if is_lively || call.core.settings.legacy_by_mac(mac).is_some() {
            return false;
        }
        self.unknown_asked.retain(|_, asked| now.since(*asked) < UNKNOWN_INTERVAL);
        if self.unknown_asked.contains_key(&mac) || self.unknown_asked.len() >= UNKNOWN_ASKED_MAX {
            return false;
        }
        let is_within = self.unknown_budget.of(call.is_proved(mac)).take(now);
        if is_within {
            self.unknown_asked.insert(mac, now);
        }
        is_within
    }
}

impl Machine for Associations {
    fn deadline(&self) -> Option<Instant> {
        self.next_sweep
    }

    fn tick(&mut self, call: &mut Call<'_>, budget: usize) -> bool {
        if self.next_sweep.is_some_and(|at| at <= call.now.since_boot) {
            self.sweep(call, budget);
        }
        false
    }
}
