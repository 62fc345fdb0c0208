//! Rollovers that we ask for: because the association is old, or because a key has sealed many frames.

use std::sync::Arc;
use std::time::Duration;

use bump::{DropReason, Fate, Instant, Side};
use identity::agreement::KeyPair;
use wire::MacAddress;
use wire::cll::rollover::{Keys, Kind};
use wire::cll::{NONCE_LEN, Rollover};

use super::{Part, RolloverId, Sealed, successor_of};
use crate::control::peers::Birth;
use crate::control::{Call, Control, Task};
use crate::job::{FinishRollover, Finished, JobKind, Refusal, SignRollover, Successor};
use crate::limits::{RETRANSMIT_FIRST, RETRANSMIT_MAX};

/// What it takes to ask.
#[derive(Debug)]
pub(super) struct Asking {
    successor: Successor,
    receiver_index: u32,
    key_pair: Option<Arc<KeyPair>>,
    /// The signed request, once there is one.
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

impl Control {
    /// Asks the peer for new keys, unless a rollover with it is under way or was a moment ago. False if nothing was begun.
    pub(in crate::control) fn begin_rollover(&mut self, call: &mut Call<'_>, mac: MacAddress) -> bool {
        let now = call.now.since_boot;
        let under_way = self.rollovers.by_mac.get(&mac).is_some_and(|last| !matches!(last.part, Part::Done));
        if under_way || !self.rollovers.has_room(now, mac) || !self.signature_budget.take(now) {
            return under_way;
        }
        let nonce = self.random.bytes();
        let receiver_index = self.peers.draw_index(&mut self.random);
        let Some(current) = self.peers.current_by_mac(mac) else {
            self.peers.return_index(receiver_index);
            return false;
        };
        let asking = Asking {
            successor: successor_of(current),
            receiver_index,
            key_pair: None,
            message: Vec::new(),
            state: State::KeyPair { next: now + RETRANSMIT_FIRST },
        };
        let id = self.rollovers.begin(now, current, nonce, Part::Asking(asking));
        self.sign_rollover(call, id);
        true
    }

    /// Gives rollovers that waited for a key pair one of the new ones.
    pub(in crate::control) fn sign_waiting_rollovers(&mut self, call: &mut Call<'_>) {
        let waits = |part: &Part| matches!(part, Part::Asking(Asking { state: State::KeyPair { .. }, .. }));
        let waiting: Vec<RolloverId> = self
            .rollovers
            .by_mac
            .iter()
            .filter(|(_, last)| waits(&last.part))
            .map(|(mac, last)| RolloverId { mac: *mac, number: last.number })
            .collect();
        waiting.into_iter().for_each(|id| self.sign_rollover(call, id));
    }

    /// Has the request signed, once there is a key pair.
    pub(super) fn sign_rollover(&mut self, call: &mut Call<'_>, id: RolloverId) {
        let now = call.now.since_boot;
        let needs_pair = self.asking(id).is_some_and(|(asking, _)| asking.key_pair.is_none());
        let fresh = if needs_pair { self.take_key_pair(call.out).map(Arc::new) } else { None };
        let Some((asking, nonce)) = self.asking(id) else { return };
        asking.key_pair = asking.key_pair.take().or(fresh);
        let Some(key_pair) = asking.key_pair.clone() else {
            asking.state = State::KeyPair { next: now + RETRANSMIT_FIRST };
            return;
        };
        let (receiver_index, successor) = (asking.receiver_index, asking.successor);
        let unsigned = self.unsigned_keys(Kind::Request, nonce, receiver_index, key_pair.public());
        let identity = Arc::clone(&self.settings.identity);
        let job = JobKind::SignRollover(SignRollover { identity, successor, unsigned });
        let is_under_way = self.task(call.out, Task::Rollover(id), job);
        if let Some((asking, _)) = self.asking(id) {
            asking.state = match is_under_way {
                true => State::Signature,
                false => State::Reply { next_send: now + RETRANSMIT_FIRST, interval: RETRANSMIT_FIRST },
            };
        }
    }

    fn asking(&mut self, id: RolloverId) -> Option<(&mut Asking, [u8; NONCE_LEN])> {
        let last = self.rollovers.by_id(id)?;
        match &mut last.part {
            Part::Asking(asking) => Some((asking, last.nonce)),
            Part::Answering(_) | Part::Done => None,
        }
    }

    /// Our half of a request or reply, up to what is signed.
    pub(super) fn unsigned_keys(&self, kind: Kind, nonce: [u8; NONCE_LEN], index: u32, key_share: &[u8]) -> Vec<u8> {
        let certificate = self.settings.identity.certificate().der();
        Keys { kind, nonce, offer: self.offer(index), key_share, certificate, signature: &[] }.emit_unsigned()
    }

    /// The request is signed: out with it, under the old keys.
    pub(in crate::control) fn rollover_signed(
        &mut self,
        call: &mut Call<'_>,
        id: RolloverId,
        message: Option<Vec<u8>>,
    ) {
        let Some(message) = message else { return self.rollover_job_lost(call, id) };
        let next_send = call.now.since_boot + RETRANSMIT_FIRST;
        let Some((asking, _)) = self.asking(id) else { return };
        asking.state = State::Reply { next_send, interval: RETRANSMIT_FIRST };
        asking.message.clone_from(&message);
        Self::send_rollover(call, id.mac, &message);
    }

    /// A reply: to what we ask, or again because our acknowledgement was lost.
    pub(super) fn take_rollover_reply(
        &mut self,
        call: &mut Call<'_>,
        sealed: &Sealed<'_>,
        reply: &Keys<'_>,
    ) -> Result<Fate, DropReason> {
        let mac = self.peers.peer_of(sealed.association).ok_or(DropReason::HandshakeUnasked)?;
        let (revoked, time) = (Arc::clone(&self.revoked), self.certificate_time(call.now));
        let settings = Arc::clone(&self.settings);
        let last = self.rollovers.by_mac.get_mut(&mac).ok_or(DropReason::HandshakeUnasked)?;
        if last.nonce != reply.nonce || last.of != sealed.association {
            return Err(DropReason::HandshakeUnasked);
        }
        let id = RolloverId { mac, number: last.number };
        let asking = match &mut last.part {
            Part::Asking(asking) => asking,
            Part::Done => {
                Self::send_rollover(call, mac, &Rollover::Acknowledgement(reply.nonce).emit());
                return Ok(Fate::Consumed);
            }
            Part::Answering(_) => return Err(DropReason::HandshakeUnasked),
        };
        let (State::Reply { interval, .. }, Some(key_pair)) = (&asking.state, &asking.key_pair) else {
            return Err(DropReason::HandshakeUnasked);
        };
        let (successor, request) = (asking.successor, asking.message.clone());
        let (key_pair, reply, interval) = (Arc::clone(key_pair), sealed.message.to_vec(), *interval);
        let finish = FinishRollover { settings, revoked, time, successor, request, reply: reply.clone(), key_pair };
        asking.state = State::Verdict { reply_frame: sealed.frame.to_vec(), reply, interval };
        if self.task(call.out, Task::Rollover(id), JobKind::FinishRollover(Box::new(finish))) {
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
    pub(in crate::control) fn rollover_reply_judged(
        &mut self,
        call: &mut Call<'_>,
        id: RolloverId,
        result: Result<Box<Finished>, Refusal>,
    ) {
        match result {
            Err(refusal) => {
                if let Some(frame) = self.await_reply_again(call, id) {
                    self.refuse_rollover(call, id.mac, &frame, refusal);
                }
            }
            Ok(finished) => self.finish_rollover(call, id, *finished),
        }
    }

    /// Our new association is complete from the start (paper, section 5.4); the acknowledgement is its first frame.
    fn finish_rollover(&mut self, call: &mut Call<'_>, id: RolloverId, finished: Finished) {
        let Some(last) = self.rollovers.by_id(id) else { return };
        let (of, nonce, asked) = (last.of, last.nonce, last.started);
        let part = std::mem::replace(&mut last.part, Part::Done);
        let Part::Asking(Asking { receiver_index, state: State::Verdict { reply_frame, reply, .. }, .. }) = part else {
            return;
        };
        self.ledger.release(call.now.since_boot, Side::WIRE, Fate::Consumed, &reply_frame);
        let current = self.peers.current_by_mac(id.mac).filter(|current| current.id == of);
        let (Some(current), Ok(Rollover::Keys(reply))) = (current, Rollover::parse(&reply)) else {
            return self.peers.return_index(receiver_index);
        };
        let rollovers = current.rollovers.saturating_add(1);
        let (own, peers, transcript) = (self.offer(receiver_index), reply.offer, finished.transcript);
        let lifetime = self.agreed_lifetime(call.now, &finished.peer, &own, &peers);
        let birth = Birth {
            certificate: finished.peer,
            initiated_by_us: true,
            own,
            peers,
            lifetime,
            asked,
            transcript,
            rollovers,
            proof: finished.proof,
            tickets: finished.keys.tickets,
        };
        let association = self.peers.bear(call.now.since_boot, birth);
        self.install_receivers(call, &association, finished.keys.receive, false);
        self.establish(call, association, finished.keys.send);
        Self::send_rollover(call, id.mac, &Rollover::Acknowledgement(nonce).emit());
    }
}
