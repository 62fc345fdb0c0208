//! Associations grow old: renewal, silence, idleness, expiry (paper, sections 5.2 and 5.4).

use wire::MacAddress;

use super::core::Call;
use super::machines::Machines;
use super::peers::Association;
use crate::event::EndCause;
use crate::limits::{SWEEP_INTERVAL, UNKNOWN_ASKED_MAX};
use crate::message::{AssociationId, OrderKind};

/// How often one source address may cause a handshake by frames with an unknown index.
const UNKNOWN_INTERVAL: std::time::Duration = std::time::Duration::from_secs(1);

/// What one association needs.
#[derive(Clone, Copy)]
enum Need {
    SignOfLife,
    Ticket,
    Kem,
    Successor,
    ProofOfLife,
}

impl Machines {
    /// Looks over all peers once in a [`SWEEP_INTERVAL`].
    pub(super) fn sweep(&mut self, call: &mut Call<'_>, budget: usize) {
        let now = call.now.since_boot;
        if self.next_sweep.is_none_or(|at| at > now) {
            return;
        }
        let expired = self.peers.take_expired(now, budget);
        let unfinished = expired.len() >= budget;
        self.end_idle(call, budget);
        for (association, was_current) in expired {
            if was_current && association.is_bare() {
                self.end_unfinished(call, &association);
            } else if was_current {
                call.stop_all(&association, EndCause::Expired);
            } else {
                call.stop_receiving(&association);
            }
        }
        for (mac, need) in self.needs(call) {
            self.meet(call, mac, need);
        }
        let next = if unfinished { now } else { now + SWEEP_INTERVAL };
        self.next_sweep = (self.peers.len() > 0).then_some(next);
    }

    /// Ends associations that nobody uses. Our keys to seal with go at once; should the peer still use its own, because its
    /// clock counts a little differently, they are opened for a while, and what it is answered opens a new handshake.
    fn end_idle(&mut self, call: &mut Call<'_>, budget: usize) {
        for association in self.peers.take_idle(call.now.since_boot, call.core.settings.idle, budget) {
            call.stop_sending(&association);
            call.out.event(association.ended(EndCause::Idle));
            self.retire(call, association);
        }
    }

    /// The exchange for which payload waits did not come to an end, so what waits is given up.
    fn end_unfinished(&mut self, call: &mut Call<'_>, association: &Association) {
        call.stop_all(association, EndCause::Unfinished);
        call.order_all(|| OrderKind::GiveUp(association.certificate.mac()));
    }

    fn needs(&mut self, call: &Call<'_>) -> Vec<(MacAddress, Need)> {
        let (now, mut needs) = (call.now.since_boot, Vec::new());
        let (own_mac, rekey_every) = (call.core.settings.mac, call.core.settings.rekey_every);
        let mut tickets = Self::tickets_to_give(call);
        for (mac, peer) in self.peers.iter_mut() {
            let Some(current) = peer.current.as_mut() else { continue };
            if current.wants_kem && current.initiated_by_us {
                needs.push((*mac, Need::Kem));
            }
            if current.is_bare() {
                continue;
            }
            if current.take_owed_sign_of_life(now) {
                needs.push((*mac, Need::SignOfLife));
            }
            if tickets > 0 && current.owes_ticket() {
                tickets -= 1;
                needs.push((*mac, Need::Ticket));
            }
            if current.is_silent(now) {
                // Asked for in every sweep: while a handshake is open that does nothing.
                current.doubted = true;
                needs.push((*mac, Need::ProofOfLife));
            } else if current.wants_successor(now, own_mac, rekey_every) {
                current.in_use = false;
                needs.push((*mac, Need::Successor));
            }
        }
        needs
    }

    fn meet(&mut self, call: &mut Call<'_>, mac: MacAddress, need: Need) {
        match need {
            Need::SignOfLife => call.order(0, OrderKind::ShowLife(mac)),
            Need::Ticket => self.give_ticket(call, mac),
            Need::Kem => self.begin_kem(call, mac),
            // What cannot be begun now is asked for again by a later sweep.
            Need::Successor => _ = self.begin_rollover(call, mac),
            Need::ProofOfLife => drop(self.open_for_mac(call, mac)),
        }
    }

    /// Many frames were sent under one key: a rollover replaces it.
    pub(super) fn renew_worn(&mut self, call: &mut Call<'_>, id: AssociationId) {
        let worn = self.peers.iter().find(|(_, peer)| peer.current.as_ref().is_some_and(|current| current.id == id));
        if let Some(mac) = worn.map(|(mac, _)| *mac) {
            // What cannot be begun now is asked for again by the lane.
            self.begin_rollover(call, mac);
        }
    }

    /// Somebody sends under an association that we do not have: after our restart, the peer's old one. The source address
    /// is only a claim, so this is rare by budget and costs at most a handshake that nobody answers. In the name of a host
    /// that we hear under its association it costs nothing, or a forger could have that association replaced every second.
    pub(super) fn unknown_index(&mut self, call: &mut Call<'_>, mac: MacAddress) {
        let now = call.now.since_boot;
        let is_lively = self.peers.current_by_mac(mac).is_some_and(|current| current.is_lively(now));
        if is_lively || call.core.settings.legacy_by_mac(mac).is_some() {
            return;
        }
        self.unknown_asked.retain(|_, asked| now.since(*asked) < UNKNOWN_INTERVAL);
        if self.unknown_asked.contains_key(&mac) || self.unknown_asked.len() >= UNKNOWN_ASKED_MAX {
            return;
        }
        if self.unknown_budget.of(call.is_proved(mac)).take(now) {
            self.unknown_asked.insert(mac, now);
            // What cannot be opened now is asked for again by the peer's next frame.
            let _ = self.open_for_mac(call, mac);
        }
    }
}
