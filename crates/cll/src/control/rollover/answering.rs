//! Rollovers that the peer asks for: the request is judged, the answer makes a candidate, and the reply is repeated until a
//! frame under the new keys shows that it arrived.

use std::time::Duration;

use bump::{DropReason, Fate, Instant, Side};
use wire::MacAddress;
use wire::cll::rollover::{Keys, Kind};
use wire::cll::{NONCE_LEN, Offer, Rollover};

use super::asking::unsigned_keys;
use super::{Before, Means, Part, RolloverId, Rollovers, Sealed, discard, heritage, refuse};
use crate::control::Task;
use crate::control::core::{Call, Verdict};
use crate::control::machines::Wish;
use crate::control::peers::{Birth, Born, Peers};
use crate::job::{AnswerRollover, Answered, JobKind, Refusal};
use crate::keys::Chosen;
use crate::limits::{RETRANSMIT_FIRST, RETRANSMIT_MAX};
use crate::message::AssociationId;

/// What we wait for.
#[derive(Debug)]
pub(super) enum Answering {
    /// The verdict on the request.
    Verdict { request_frame: Vec<u8>, peers: Offer, own: Offer },
    /// A frame under the new keys.
    Acknowledgement { reply: Vec<u8>, made: AssociationId, next_send: Instant, interval: Duration },
}

impl Answering {
    pub(super) fn next_send(&self) -> Option<Instant> {
        match self {
            Answering::Verdict { .. } => None,
            Answering::Acknowledgement { next_send, .. } => Some(*next_send),
        }
    }

    /// The candidate that it made.
    pub(super) fn made(&self) -> Option<AssociationId> {
        match self {
            Answering::Verdict { .. } => None,
            Answering::Acknowledgement { made, .. } => Some(*made),
        }
    }

    /// The reply to be sent again, if there is one already.
    pub(super) fn repeat(&mut self, now: Instant) -> Option<Vec<u8>> {
        let Answering::Acknowledgement { reply, next_send, interval, .. } = self else { return None };
        *interval = (*interval * 2).min(RETRANSMIT_MAX);
        *next_send = now + *interval;
        Some(reply.clone())
    }

    /// The receiver index that it does not need any more, and the frame that waited for a verdict. A candidate keeps its own.
    pub(super) fn into_rest(self) -> (Option<u32>, Option<Vec<u8>>) {
        match self {
            Answering::Verdict { request_frame, own, .. } => (Some(own.receiver_index), Some(request_frame)),
            Answering::Acknowledgement { .. } => (None, None),
        }
    }
}

impl Rollovers {
    /// A request. It is believed to come from the peer, because the seal says so; all else is still to be judged.
    pub(super) fn answer_rollover(
        &mut self,
        call: &mut Call<'_>,
        peers: &Peers,
        sealed: &Sealed<'_>,
        request: &Rollover<'_>,
    ) -> Verdict {
        let now = call.now.since_boot;
        let current = peers.current_of(sealed.association)?;
        if !current.answers_with(Means::of(request)) {
            return Err(DropReason::HandshakeUnasked);
        }
        let mac = current.certificate.mac();
        if let Some(fate) = self.answer_again(call, mac, request.nonce()) {
            return fate;
        }
        self.decide_between_both(call, mac)?;
        let current = peers.current_of(sealed.association)?;
        let (has_room, is_bare) = (self.has_room(now, current), current.is_bare());
        // The handshake that made a bare association had a budget, and this is the only exchange in
        // it.
        if !has_room || !(is_bare || call.core.signature_budget.take(now)) {
            return Err(DropReason::HandshakeBudget);
        }
        match request {
            Rollover::Keys(request) => self.judge_rollover(call, peers, sealed, request),
            Rollover::Kem(request) => self.judge_kem(call, peers, sealed, request),
            Rollover::Acknowledgement(_) => Err(DropReason::HandshakeUnasked),
        }
    }

    /// The same request again: the reply was lost, or is still being made.
    fn answer_again(&mut self, call: &mut Call<'_>, mac: MacAddress, nonce: &[u8; NONCE_LEN]) -> Option<Verdict> {
        let last = self.by_mac.get_mut(&mac).filter(|last| last.nonce == *nonce)?;
        match &mut last.part {
            Part::Asking(_) | Part::Done => Some(Err(DropReason::HandshakeUnasked)),
            Part::Answering(answering) => {
                if let Some(reply) = answering.repeat(call.now.since_boot) {
                    call.send_sealed(mac, &reply);
                }
                Some(Ok(Fate::Consumed))
            }
        }
    }

    /// If both sides ask at once, the host with the higher address goes first, as in the handshake (paper, section 5.4).
    /// That cannot hang: the association lives, so its request is repeated until it is answered or given up.
    fn decide_between_both(&mut self, call: &mut Call<'_>, mac: MacAddress) -> Result<(), DropReason> {
        let we_ask = self.by_mac.get(&mac).is_some_and(|last| matches!(last.part, Part::Asking(_)));
        if !we_ask {
            return Ok(());
        }
        if call.core.settings.mac > mac {
            return Err(DropReason::HandshakeYields);
        }
        if let Some(last) = self.by_mac.remove(&mac) {
            discard(call, last, DropReason::HandshakeYields);
        }
        Ok(())
    }

    fn judge_rollover(
        &mut self,
        call: &mut Call<'_>,
        peers: &Peers,
        sealed: &Sealed<'_>,
        request: &Keys<'_>,
    ) -> Verdict {
        let key_pair = call.take_key_pair().ok_or(DropReason::HandshakeBudget)?;
        let receiver_index = call.draw_index();
        let own = call.offer(receiver_index);
        let answer = AnswerRollover {
            origins: call.origins(),
            successor: peers.current_of(sealed.association)?.successor.clone(),
            request: sealed.message.to_vec(),
            unsigned_reply: unsigned_keys(call, Kind::Reply, request.nonce, receiver_index, key_pair.public()),
            own: Chosen { offer: own, suite: call.core.settings.send_suite },
            key_pair,
        };
        let job = JobKind::AnswerRollover(Box::new(answer));
        self.await_verdict_on_rollover(call, peers, sealed, &Rollover::Keys(*request), own, job)
    }

    /// Hands the job that judges a request over, and remembers what its verdict will be about.
    pub(super) fn await_verdict_on_rollover(
        &mut self,
        call: &mut Call<'_>,
        peers: &Peers,
        sealed: &Sealed<'_>,
        request: &Rollover<'_>,
        own: Offer,
        job: JobKind,
    ) -> Verdict {
        let mac = peers.current_of(sealed.association)?.certificate.mac();
        self.forget_older_rollover(call, mac);
        let (Some(current), Some(peers)) = (peers.current_by_mac(mac), request.offer()) else {
            call.return_index(own.receiver_index);
            return Err(DropReason::HandshakeUnasked);
        };
        let state = Answering::Verdict { request_frame: sealed.frame.to_vec(), peers, own };
        let (nonce, means) = (*request.nonce(), Means::of(request));
        let id = self.begin(call.now.since_boot, current, nonce, means, Part::Answering(state));
        if call.task(Task::Rollover(id), job) {
            return Ok(Fate::Held);
        }
        self.by_mac.remove(&id.mac);
        call.return_index(own.receiver_index);
        Err(DropReason::ControlBusy)
    }

    /// The peer gave its last request up and asks anew.
    fn forget_older_rollover(&mut self, call: &mut Call<'_>, mac: MacAddress) {
        if let Some(last) = self.by_mac.remove(&mac) {
            discard(call, last, DropReason::HandshakeUnasked);
        }
    }

    /// The verdict on a request.
    pub(crate) fn on_answered(
        &mut self,
        call: &mut Call<'_>,
        peers_now: &Peers,
        id: RolloverId,
        result: Result<Box<Answered>, Refusal>,
    ) {
        let Some(last) = self.by_id(id) else { return };
        let Part::Answering(Answering::Verdict { request_frame, peers, own }) = &last.part else { return };
        let (of, frame, peers, own) = (last.of, request_frame.clone(), *peers, *own);
        match result {
            Err(refusal) => {
                self.by_mac.remove(&id.mac);
                call.return_index(own.receiver_index);
                refuse(call, peers_now, id.mac, &frame, refusal);
            }
            Ok(answered) => {
                call.release(Side::WIRE, Fate::Consumed, &frame);
                let current = peers_now.current_by_mac(id.mac).filter(|current| current.id == of);
                match current.map(Before::of) {
                    Some(before) => {
                        self.accept_rollover(call, (id, peers_now.next_association()), (own, peers), before, *answered)
                    }
                    None => call.return_index(own.receiver_index),
                }
            }
        }
    }

    /// The answer makes a candidate; until the peer shows that it has the keys, we send under the old ones.
    fn accept_rollover(
        &mut self,
        call: &mut Call<'_>,
        (id, made): (RolloverId, AssociationId),
        (own, peers): (Offer, Offer),
        before: Before,
        answered: Answered,
    ) {
        let now = call.now.since_boot;
        let Some(means) = self.by_id(id).map(|last| last.means) else { return };
        let (agreed, reply) = answered.split();
        let lifetime = call.agreed_lifetime(&agreed.peer, &own, &peers);
        let (rollovers, lifetime, is_quiet) = heritage(now, before, means, lifetime);
        let (initiated_by_us, by_kem) = (false, means == Means::Kem);
        let birth = Birth { agreed, initiated_by_us, own, peers, lifetime, asked: now, rollovers, by_kem, is_quiet };
        if let Some(last) = self.by_id(id) {
            let (next_send, interval) = (now + RETRANSMIT_FIRST, RETRANSMIT_FIRST);
            last.part = Part::Answering(Answering::Acknowledgement { reply: reply.clone(), made, next_send, interval });
        }
        call.wishes.push_back(Wish::Candidate(Box::new(Born { birth, message: Some(reply), answer: None })));
    }

    /// The acknowledgement. The frame in which it came has confirmed the new keys already, as any other would have.
    pub(super) fn take_acknowledgement(&self, peers: &Peers, sealed: &Sealed<'_>, nonce: &[u8; NONCE_LEN]) -> Verdict {
        let mac = peers.current_of(sealed.association)?.certificate.mac();
        let last = self.by_mac.get(&mac);
        if last.is_some_and(|last| last.nonce == *nonce) {
            Ok(Fate::Consumed)
        } else {
            Err(DropReason::HandshakeUnasked)
        }
    }
}
