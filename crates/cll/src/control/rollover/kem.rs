//! Rollovers with ML-KEM (docs/protocol.md, section 28). In an association whose sides both do it
//! no payload moves before the first; its initiator asks as soon as the handshake is over. After a
//! signed rollover, or a resumption, what the old association handed on keeps the new one secret;
//! an exchange a moment later adds a fresh secret, so that whoever got hold of that has lost it.

use std::sync::Arc;

use identity::kem::KemPair;
use wire::MacAddress;
use wire::cll::Rollover;
use wire::cll::rollover::{Kem, Kind};

use super::{Means, RolloverId, Rollovers, Sealed};
use crate::control::Task;
use crate::control::core::{Call, Verdict};
use crate::control::peers::{Association, Peers};
use crate::job::{AnswerKem, Inside, JobKind};
use crate::keys::Chosen;
use crate::limits::KEM_PAIRS_AHEAD;

/// Pairs that are made ahead, so that no first frame waits for one.
#[derive(Debug, Default)]
pub(super) struct KemStock {
    pairs: Vec<KemPair>,
    is_ordered: bool,
}

impl Association {
    /// Whether a request of this kind is answered in it: where payload waits for ML-KEM nothing
    /// else is, and who does without it is asked in vain.
    pub(super) fn answers_with(&self, means: Means) -> bool {
        match means {
            Means::Signature => !self.is_bare(),
            Means::Kem => self.own.post_quantum && self.peers.post_quantum,
        }
    }
}

impl Rollovers {
    /// Has pairs made if there are few.
    pub(crate) fn order_kem_pairs(&mut self, call: &mut Call<'_>) {
        let missing = KEM_PAIRS_AHEAD.saturating_sub(self.stock.pairs.len());
        let is_wanted = call.offers_post_quantum() && missing > KEM_PAIRS_AHEAD / 2;
        if is_wanted && !self.stock.is_ordered {
            self.stock.is_ordered = call.task(Task::KemPairs, JobKind::PrepareKemPairs(missing));
        }
    }

    fn take_kem_pair(&mut self, call: &mut Call<'_>) -> Option<Arc<KemPair>> {
        let pair = self.stock.pairs.pop();
        self.order_kem_pairs(call);
        pair.map(Arc::new)
    }

    /// The pairs that were ordered; none if the job was lost.
    pub(crate) fn on_kem_pairs(&mut self, call: &mut Call<'_>, pairs: Vec<KemPair>) {
        self.stock.is_ordered = false;
        self.stock.pairs.extend(pairs);
        self.stock.pairs.truncate(KEM_PAIRS_AHEAD);
        self.sign_waiting(call);
    }

    /// Asks the peer for an exchange if the association in use is ours and wants one. What cannot
    /// be begun now is tried again in the next sweep.
    pub(crate) fn begin_kem(&mut self, call: &mut Call<'_>, peers: &mut Peers, mac: MacAddress) {
        let is_ours = |current: &Association| current.wants_kem && current.initiated_by_us;
        if !peers.current_by_mac(mac).is_some_and(is_ours) || !self.begin_exchange(call, peers, mac, Means::Kem) {
            return;
        }
        if let Some(current) = peers.current_by_mac_mut(mac) {
            current.wants_kem = current.is_bare();
        }
    }

    /// Sends the request, once there is a pair.
    pub(super) fn ask_with_kem(&mut self, call: &mut Call<'_>, id: RolloverId) {
        let needs_pair = self.asking(id).is_some_and(|(asking, _)| asking.kem_pair.is_none());
        let fresh = if needs_pair { self.take_kem_pair(call) } else { None };
        let Some((asking, nonce)) = self.asking(id) else { return };
        asking.kem_pair = asking.kem_pair.take().or(fresh);
        let Some(pair) = asking.kem_pair.clone() else { return asking.await_key_pair(call.now.since_boot) };
        let receiver_index = asking.receiver_index;
        let offer = call.offer(receiver_index);
        let message = Kem { kind: Kind::Request, nonce, offer, value: pair.public() }.emit();
        self.on_signed(call, id, Some(message));
    }

    /// A request of the peer, about to be answered.
    pub(super) fn judge_kem(
        &mut self,
        call: &mut Call<'_>,
        peers: &Peers,
        sealed: &Sealed<'_>,
        request: &Kem<'_>,
    ) -> Verdict {
        let receiver_index = call.draw_index();
        let own = call.offer(receiver_index);
        let answer = AnswerKem {
            inside: inside(call, peers.current_of(sealed.association)?),
            request: sealed.message.to_vec(),
            own: Chosen { offer: own, suite: call.core.settings.send_suite },
        };
        let job = JobKind::AnswerKem(Box::new(answer));
        self.await_verdict_on_rollover(call, peers, sealed, &Rollover::Kem(*request), own, job)
    }
}

/// What a job needs of the association inside which an exchange happens.
pub(super) fn inside(call: &Call<'_>, association: &Association) -> Inside {
    Inside {
        settings: Arc::clone(&call.core.settings),
        successor: association.successor.clone(),
        certificate: association.certificate.clone(),
        proof: association.proof,
    }
}
