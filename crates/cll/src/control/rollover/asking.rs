//! Rollovers that we ask for: because the association is old, because a key has sealed many frames,
//! or for a secret of ML-KEM.

use std::sync::Arc;
use std::time::Duration;

use bump::{DropReason, Fate, Instant, Side};
use identity::agreement::KeyPair;
use identity::kem::KemPair;
use wire::MacAddress;
use wire::cll::rollover::{Keys, Kind};
use wire::cll::{NONCE_LEN, Rollover};

use super::kem::inside;
use super::{Before, Means, Part, RolloverId, Rollovers, Sealed, heritage, refuse};
use crate::control::Task;
use crate::control::core::{Call, Verdict};
use crate::control::machines::Wish;
use crate::control::peers::{Birth, Born, Peers};
use crate::job::{FinishKem, FinishRollover, Finished, JobKind, Refusal, SignRollover, Successor};
use crate::limits::{RETRANSMIT_FIRST, RETRANSMIT_MAX};

/// What it takes to ask.
#[derive(Debug)]
pub(super) struct Asking {
    successor: Successor,
    pub(super) receiver_index: u32,
    key_pair: Option<Arc<KeyPair>>,
    pub(super) kem_pair: Option<Arc<KemPair>>,
    /// The request, once there is one.
    message: Vec<u8>,
    state: State,
}

/// What we wait for.
#[derive(Debug)]
enum State {
    /// A key pair; tried again at this moment if none was made before.
    KeyPair { next: Instant },
    /// The signature under our request.
    Signature,
    /// The peer's reply.
    Reply { next_send: Instant, interval: Duration },
    /// The verdict on the reply.
    Verdict { reply_frame: Vec<u8>, reply: Vec<u8>, interval: Duration },
}

impl Asking {
    pub(super) fn next_send(&self) -> Option<Instant> {
        match self.state {
            State::KeyPair { next } => Some(next),
            State::Reply { next_send, .. } => Some(next_send),
            State::Signature | State::Verdict { .. } => None,
        }
    }

    /// Tries again when there are key pairs, or in a moment.
    pub(super) fn await_key_pair(&mut self, now: Instant) {
        self.state = State::KeyPair { next: now + RETRANSMIT_FIRST };
    }

    /// The request to be sent again; `None` when it must be signed first.
    pub(super) fn repeat(&mut self, now: Instant) -> Option<Vec<u8>> {
        if let State::Reply { interval, .. } = self.state {
            let interval = (interval * 2).min(RETRANSMIT_MAX);
            self.state = State::Reply { next_send: now + interval, interval };
        }
        (!self.message.is_empty()).then(|| self.message.clone())
    }

    /// Tries again later; returns the frame that waited for a verdict.
    pub(super) fn lose_job(&mut self, now: Instant) -> Option<Vec<u8>> {
        let waiting = State::Reply { next_send: now + RETRANSMIT_FIRST, interval: RETRANSMIT_FIRST };
        match std::mem::replace(&mut self.state, waiting) {
            State::Verdict { reply_frame, .. } => Some(reply_frame),
            State::KeyPair { .. } | State::Signature | State::Reply { .. } => None,
        }
    }

    /// The receiver index that it does not need any more, and the frame that waited for a verdict.
    pub(super) fn into_rest(self) -> (Option<u32>, Option<Vec<u8>>) {
        let frame = match self.state {
            State::Verdict { reply_frame, .. } => Some(reply_frame),
            _ => None,
        };
        (Some(self.receiver_index), frame)
    }
}

impl Rollovers {
    /// Asks the peer for new keys, unless a rollover with it is under way or was a moment ago. False if nothing was begun.
    pub(crate) fn begin_rollover(&mut self, call: &mut Call<'_>, peers: &Peers, mac: MacAddress) -> bool {
        self.begin_exchange(call, peers, mac, Means::Signature)
    }

    pub(super) fn begin_exchange(&mut self, call: &mut Call<'_>, peers: &Peers, mac: MacAddress, means: Means) -> bool {
        let now = call.now.since_boot;
        let under_way = self.by_mac.get(&mac).is_some_and(|last| !matches!(last.part, Part::Done));
        let has_room = peers.current_by_mac(mac).is_some_and(|current| self.has_room(now, current));
        if under_way || !has_room || (means == Means::Signature && !call.core.signature_budget.take(now)) {
            return under_way;
        }
        let nonce = call.core.random.bytes();
        let receiver_index = call.draw_index();
        let Some(current) = peers.current_by_mac(mac) else {
            call.return_index(receiver_index);
            return false;
        };
        let asking = Asking {
            successor: current.successor.clone(),
            receiver_index,
            key_pair: None,
            kem_pair: None,
            message: Vec::new(),
            state: State::KeyPair { next: now + RETRANSMIT_FIRST },
        };
        let id = self.begin(now, current, nonce, means, Part::Asking(asking));
        self.sign_rollover(call, id);
        true
    }

    /// Gives rollovers that waited for a key pair one of the new ones.
    pub(crate) fn sign_waiting(&mut self, call: &mut Call<'_>) {
        let waits = |part: &Part| matches!(part, Part::Asking(Asking { state: State::KeyPair { .. }, .. }));
        let waiting: Vec<RolloverId> = self
            .by_mac
            .iter()
            .filter(|(_, last)| waits(&last.part))
            .map(|(mac, last)| RolloverId { mac: *mac, number: last.number })
            .collect();
        waiting.into_iter().for_each(|id| self.sign_rollover(call, id));
    }

    /// Has the request signed, once there is a key pair. One with ML-KEM is proved by the seal
    /// alone.
    pub(super) fn sign_rollover(&mut self, call: &mut Call<'_>, id: RolloverId) {
        if self.by_id(id).is_some_and(|last| last.means == Means::Kem) {
            return self.ask_with_kem(call, id);
        }
        let now = call.now.since_boot;
        let needs_pair = self.asking(id).is_some_and(|(asking, _)| asking.key_pair.is_none());
        let fresh = if needs_pair { call.take_key_pair().map(Arc::new) } else { None };
        let Some((asking, nonce)) = self.asking(id) else { return };
        asking.key_pair = asking.key_pair.take().or(fresh);
        let Some(key_pair) = asking.key_pair.clone() else {
            asking.await_key_pair(now);
            return;
        };
        let (receiver_index, successor) = (asking.receiver_index, asking.successor.clone());
        let unsigned = unsigned_keys(call, Kind::Request, nonce, receiver_index, key_pair.public());
        let identity = Arc::clone(&call.core.settings.identity);
        let job = JobKind::SignRollover(SignRollover { identity, successor, unsigned });
        let is_under_way = call.task(Task::Rollover(id), job);
        if let Some((asking, _)) = self.asking(id) {
            asking.state = match is_under_way {
                true => State::Signature,
                false => State::Reply { next_send: now + RETRANSMIT_FIRST, interval: RETRANSMIT_FIRST },
            };
        }
    }

    pub(super) fn asking(&mut self, id: RolloverId) -> Option<(&mut Asking, [u8; NONCE_LEN])> {
        let last = self.by_id(id)?;
        match &mut last.part {
            Part::Asking(asking) => Some((asking, last.nonce)),
            Part::Answering(_) | Part::Done => None,
        }
    }

    /// The request is signed: out with it, under the old keys.
    pub(crate) fn on_signed(&mut self, call: &mut Call<'_>, id: RolloverId, message: Option<Vec<u8>>) {
        let Some(message) = message else { return self.on_job_lost(call, id) };
        let next_send = call.now.since_boot + RETRANSMIT_FIRST;
        let Some((asking, _)) = self.asking(id) else { return };
        asking.state = State::Reply { next_send, interval: RETRANSMIT_FIRST };
        asking.message.clone_from(&message);
        call.send_sealed(id.mac, &message);
    }

    /// A reply: to what we ask, or again because our acknowledgement was lost.
    pub(super) fn take_rollover_reply(
        &mut self,
        call: &mut Call<'_>,
        peers: &Peers,
        sealed: &Sealed<'_>,
        reply: &Rollover<'_>,
    ) -> Verdict {
        let mac = peers.peer_of(sealed.association).ok_or(DropReason::HandshakeUnasked)?;
        let last = self.by_mac.get(&mac).ok_or(DropReason::HandshakeUnasked)?;
        let is_answer = last.nonce == *reply.nonce() && last.means == Means::of(reply);
        if !is_answer || last.of != sealed.association {
            return Err(DropReason::HandshakeUnasked);
        }
        let id = RolloverId { mac, number: last.number };
        let asking = match &last.part {
            Part::Asking(asking) => asking,
            Part::Done => {
                call.send_sealed(mac, &Rollover::Acknowledgement(*reply.nonce()).emit());
                return Ok(Fate::Consumed);
            }
            Part::Answering(_) => return Err(DropReason::HandshakeUnasked),
        };
        let State::Reply { interval, .. } = asking.state else { return Err(DropReason::HandshakeUnasked) };
        let job = verdict_on_rollover_reply(call, peers, mac, asking, sealed.message);
        let job = job.ok_or(DropReason::HandshakeUnasked)?;
        if let Some((asking, _)) = self.asking(id) {
            let (reply_frame, reply) = (sealed.frame.to_vec(), sealed.message.to_vec());
            asking.state = State::Verdict { reply_frame, reply, interval };
        }
        if call.task(Task::Rollover(id), job) {
            return Ok(Fate::Held);
        }
        self.await_reply_again(call, id);
        Err(DropReason::ControlBusy)
    }

    /// Back to waiting for a reply; returns the frame whose verdict was no good.
    fn await_reply_again(&mut self, call: &Call<'_>, id: RolloverId) -> Option<Vec<u8>> {
        let now = call.now.since_boot;
        let (asking, _) = self.asking(id)?;
        let State::Verdict { interval, .. } = asking.state else { return None };
        match std::mem::replace(&mut asking.state, State::Reply { next_send: now + interval, interval }) {
            State::Verdict { reply_frame, .. } => Some(reply_frame),
            _ => None,
        }
    }

    /// The verdict on a reply.
    pub(crate) fn on_finished(
        &mut self,
        call: &mut Call<'_>,
        peers: &Peers,
        id: RolloverId,
        result: Result<Box<Finished>, Refusal>,
    ) {
        match result {
            Err(refusal) => {
                if let Some(frame) = self.await_reply_again(call, id) {
                    refuse(call, peers, id.mac, &frame, refusal);
                }
            }
            Ok(finished) => self.finish_rollover(call, peers, id, *finished),
        }
    }

    /// Our new association is complete from the start (paper, section 5.4); the acknowledgement is its first frame.
    fn finish_rollover(&mut self, call: &mut Call<'_>, peers: &Peers, id: RolloverId, finished: Finished) {
        let Some(last) = self.by_id(id) else { return };
        let (of, nonce, asked, means) = (last.of, last.nonce, last.started, last.means);
        let part = std::mem::replace(&mut last.part, Part::Done);
        let Part::Asking(Asking { receiver_index, state: State::Verdict { reply_frame, reply, .. }, .. }) = part else {
            return;
        };
        call.release(Side::WIRE, Fate::Consumed, &reply_frame);
        let current = peers.current_by_mac(id.mac).filter(|current| current.id == of);
        let offer = Rollover::parse(&reply).ok().and_then(|reply| reply.offer());
        let (Some(before), Some(peers)) = (current.map(Before::of), offer) else {
            return call.return_index(receiver_index);
        };
        let own = call.offer(receiver_index);
        let agreed = call.agreed_lifetime(&finished.peer, &own, &peers);
        let (rollovers, lifetime, is_quiet) = heritage(call.now.since_boot, before, means, agreed);
        let by_kem = means == Means::Kem;
        let (agreed, initiated_by_us) = (finished, true);
        let birth = Birth { agreed, initiated_by_us, own, peers, lifetime, asked, rollovers, by_kem, is_quiet };
        let message = Some(Rollover::Acknowledgement(nonce).emit());
        call.wishes.push_back(Wish::Complete(Box::new(Born { birth, message, answer: None })));
    }
}

/// Our half of a request or reply, up to what is signed.
pub(super) fn unsigned_keys(
    call: &Call<'_>,
    kind: Kind,
    nonce: [u8; NONCE_LEN],
    index: u32,
    key_share: &[u8],
) -> Vec<u8> {
    let certificate = call.core.settings.identity.certificate().der();
    Keys { kind, nonce, offer: call.offer(index), key_share, certificate, signature: &[] }.emit_unsigned()
}

/// What judges a reply.
fn verdict_on_rollover_reply(
    call: &Call<'_>,
    peers: &Peers,
    mac: MacAddress,
    asking: &Asking,
    reply: &[u8],
) -> Option<JobKind> {
    let (request, reply) = (asking.message.clone(), reply.to_vec());
    if let Some(pair) = asking.kem_pair.clone() {
        let inside = inside(call, peers.current_by_mac(mac)?);
        return Some(JobKind::FinishKem(Box::new(FinishKem { inside, request, reply, pair })));
    }
    let (origins, successor) = (call.origins(), asking.successor.clone());
    let finish = FinishRollover { origins, successor, request, reply, key_pair: asking.key_pair.clone()? };
    Some(JobKind::FinishRollover(Box::new(finish)))
}
