//! Replies to the handshakes that we open, until they are judged (paper, section 5.2).
//!
//! Everybody hears a request that asks for an address, so whoever has the site key can reply to it, sooner than the host that is asked and as
//! often as he likes. What that may cost is bounded; a reply that is no good puts off neither the next repetition of our request nor the
//! honest reply, which waits for its turn.

use bump::{DropReason, Fate, Side};
use wire::MacAddress;
use wire::cll::{Handshake, NONCE_LEN, Offer, PacketType, Resolution, Resumption, SITE_TAG_LEN};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};

use super::Task;
use super::core::{Call, Verdict};
use super::discovery::Addresses;
use super::initiator::{OpeningId, Openings, State};
use super::resumption::Resumptions;
use crate::job::{Finish, Finished, JobKind, Refusal};

/// What both kinds of replies say: those to a handshake request, and those to a ticket.
pub(super) struct Replied {
    site_tag: [u8; SITE_TAG_LEN],
    nonce: [u8; NONCE_LEN],
    pub(super) resolution: Resolution,
    pub(super) timestamp_ms: u64,
    pub(super) offer: Offer,
}

impl Replied {
    fn read(frame: &[u8]) -> Option<Replied> {
        let message = frame.get(ETHERNET_LEN..)?;
        if let Ok(Resumption { site_tag, nonce, resolution, timestamp_ms, offer, .. }) = Resumption::parse(message) {
            return Some(Replied { site_tag, nonce, resolution, timestamp_ms, offer });
        }
        let Handshake { site_tag, nonce, resolution, timestamp_ms, offer, .. } = Handshake::parse(message).ok()?;
        Some(Replied { site_tag, nonce, resolution, timestamp_ms, offer })
    }
}

impl Openings {
    /// A reply from the wire, unproved. Read the order as the order of cost.
    pub(super) fn on_reply(&mut self, call: &mut Call<'_>, header: &Header, frame: &[u8]) -> Verdict {
        let reply = Replied::read(frame).ok_or(DropReason::Malformed)?;
        if reply.resolution.sender_mac() != header.source || header.destination != call.core.settings.mac {
            return Err(DropReason::HandshakeSource);
        }
        let id = self.opening_for_reply(call, &reply).ok_or(DropReason::HandshakeUnasked)?;
        if call.site_key_of(frame, &reply.site_tag).is_none() {
            return Err(DropReason::HandshakeSiteMac);
        }
        self.judge_reply_in_turn(call, id, header.source, frame)
    }

    /// The opening that waits for this reply: the one whose nonce it repeats (paper, section 5.2).
    fn opening_for_reply(&self, call: &Call<'_>, Replied { nonce, resolution, .. }: &Replied) -> Option<OpeningId> {
        let by_nonce = self.by_nonce(nonce);
        if by_nonce.is_none() && call.core.settings.weaken.reply_check {
            let (ip, mac) = (Some(resolution.sender_ip()), Some(resolution.sender_mac()));
            return self.by_id.iter().find(|(_, opening)| opening.asks(ip, mac)).map(|(id, _)| *id);
        }
        by_nonce
    }

    /// Everything cheap is right. Judged now, or after the one that is being judged.
    fn judge_reply_in_turn(&mut self, call: &mut Call<'_>, id: OpeningId, source: MacAddress, frame: &[u8]) -> Verdict {
        let (now, is_proved) = (call.now.since_boot, call.is_proved(source));
        let opening = self.by_id.get(&id).ok_or(DropReason::HandshakeUnasked)?;
        let (is_judging, has_next) = match &opening.state {
            State::Reply(_) => (false, false),
            State::Verdict { next, .. } => (true, next.is_some()),
            State::KeyPair | State::Signature => return Err(DropReason::HandshakeUnasked),
        };
        if has_next && !is_proved {
            return Err(DropReason::HandshakeUnasked);
        }
        let within =
            self.reply_budget_per_source.of(is_proved).take(now, source) && self.reply_budget.of(is_proved).take(now);
        if !within && !call.core.settings.weaken.budgets {
            return Err(DropReason::HandshakeBudget);
        }
        if is_judging { self.judge_next(call, id, frame) } else { self.judge_reply(call, id, frame) }
    }

    /// Has a reply wait until the one before it is judged. What waited so far came from somebody who is no better known.
    fn judge_next(&mut self, call: &mut Call<'_>, id: OpeningId, frame: &[u8]) -> Verdict {
        let opening = self.by_id.get_mut(&id).ok_or(DropReason::HandshakeUnasked)?;
        let State::Verdict { next, .. } = &mut opening.state else { return Err(DropReason::HandshakeUnasked) };
        if let Some(displaced) = next.replace(frame.to_vec()) {
            let fate = Fate::Dropped(DropReason::HandshakeUnasked);
            call.release(Side::WIRE, fate, &displaced);
        }
        Ok(Fate::Held)
    }

    /// Hands over the job that judges a reply.
    fn judge_reply(&mut self, call: &mut Call<'_>, id: OpeningId, frame: &[u8]) -> Verdict {
        let job = match PacketType::of(&frame[ETHERNET_LEN..]) {
            Ok(PacketType::ResumptionReply) => self.resumption_verdict(call, id, frame),
            _ => self.verdict(call, id, frame),
        };
        if !call.task(Task::Opening(id), job.ok_or(DropReason::HandshakeUnasked)?) {
            return Err(DropReason::ControlBusy);
        }
        if let Some(opening) = self.by_id.get_mut(&id)
            && let State::Reply(repetition) = opening.state
        {
            opening.state = State::Verdict { reply_frame: frame.to_vec(), next: None, repetition };
        }
        Ok(Fate::Held)
    }

    fn verdict(&self, call: &Call<'_>, id: OpeningId, frame: &[u8]) -> Option<JobKind> {
        let opening = self.by_id.get(&id)?;
        Some(JobKind::Finish(Box::new(Finish {
            origins: call.origins(),
            request: opening.message.clone(),
            reply: frame[ETHERNET_LEN..].to_vec(),
            key_pair: opening.key_pair.clone()?,
            asked_ip: opening.asked_ip(),
            asked_mac: opening.asked_mac,
        })))
    }

    /// The verdict on a reply.
    pub(super) fn on_finished(
        &mut self,
        call: &mut Call<'_>,
        addresses: &mut Addresses,
        tickets: &mut Resumptions,
        id: OpeningId,
        result: Result<Box<Finished>, Refusal>,
    ) {
        match result.and_then(|finished| self.admit_answer(call, addresses, id, &finished).map(|()| finished)) {
            Err(refusal) => self.reply_refused(call, id, refusal),
            Ok(finished) => {
                let Some(opening) = self.by_id.remove(&id) else { return };
                let State::Verdict { reply_frame, next, .. } = &opening.state else { return };
                call.release(Side::WIRE, Fate::Consumed, reply_frame);
                if let Some(next) = next {
                    call.release(Side::WIRE, Fate::Dropped(DropReason::HandshakeUnasked), next);
                }
                if let Some(reply) = Replied::read(reply_frame) {
                    Self::finish(call, tickets, &opening, &reply, *finished);
                }
            }
        }
    }

    /// Back to waiting for a reply, as if this one had not come; the one behind it has its turn.
    fn reply_refused(&mut self, call: &mut Call<'_>, id: OpeningId, refusal: Refusal) {
        let Some(opening) = self.by_id.get_mut(&id) else { return };
        let State::Verdict { repetition, .. } = opening.state else { return };
        let judged = std::mem::replace(&mut opening.state, State::Reply(repetition));
        let State::Verdict { reply_frame, next, .. } = judged else { return };
        call.refuse(&reply_frame, refusal);
        if let Some(next) = next
            && let Err(reason) = self.judge_reply(call, id, &next)
        {
            call.release(Side::WIRE, Fate::Dropped(reason), &next);
        }
    }

    /// Whether the peer may have the address for which it answers.
    fn admit_answer(
        &self,
        call: &mut Call<'_>,
        addresses: &mut Addresses,
        id: OpeningId,
        finished: &Finished,
    ) -> Result<(), Refusal> {
        let Some(State::Verdict { reply_frame, .. }) = self.by_id.get(&id).map(|opening| &opening.state) else {
            return Ok(());
        };
        let Some(reply) = Replied::read(reply_frame) else { return Ok(()) };
        addresses.admit_resolution(call, &finished.peer, &reply.resolution)
    }
}

/// Gives replies their fate that waited for a verdict when their opening ended.
pub(super) fn drop_unjudged(call: &mut Call<'_>, state: &State, reason: DropReason) {
    let State::Verdict { reply_frame, next, .. } = state else { return };
    for frame in std::iter::once(reply_frame).chain(next) {
        call.release(Side::WIRE, Fate::Dropped(reason), frame);
    }
}
