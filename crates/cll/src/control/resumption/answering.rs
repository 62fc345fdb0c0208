//! Resumptions of others that we answer: cheap checks first, then one job with one signature, then
//! a candidate.
//!
//! A request can be replayed to a host that has restarted since, because then nothing is remembered of it. That makes a
//! candidate which nobody promotes, for the price of a key agreement, within a budget; so no challenge is needed.

use bump::DropReason;
use identity::Generation;
use identity::agreement::KeyPair;
use wire::cll::resumption::{BINDER_LEN, Kind, Resumption};
use wire::cll::{COOKIE_LEN, Offer, SITE_TAG_LEN};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};

use super::Resumptions;
use crate::control::core::{Call, Verdict};
use crate::control::freshness::Age;
use crate::control::responder::{AnswerId, Answers, Around, Asked, age_of, challenge, check_addresses, reply_to};
use crate::job::{AnswerResumption, Answered, JobKind, Refusal};
use crate::keys::Chosen;
use crate::ticket::id_of;

impl Answers {
    /// A request with a ticket, unproved. Read the order as the order of cost.
    pub(crate) fn on_resumption(
        &mut self,
        call: &mut Call<'_>,
        around: &Around<'_>,
        header: &Header,
        frame: &[u8],
    ) -> Verdict {
        let request = Resumption::parse(&frame[ETHERNET_LEN..]).map_err(|_| DropReason::Malformed)?;
        check_addresses(call, around.addresses, header, &request.resolution)?;
        let under = call.site_key_of(frame, &request.site_tag).ok_or(DropReason::HandshakeSiteMac)?;
        if around.openings.goes_first(call, header.source, request.resolution.sender_ip()) {
            return Err(DropReason::HandshakeYields);
        }
        let Resumption { nonce, timestamp_ms, .. } = request;
        let id = AnswerId { mac: header.source, nonce, timestamp_ms, cookie: [0; COOKIE_LEN] };
        if let Some(fate) = self.answer_duplicate(call, id, under) {
            return Ok(fate);
        }
        let age = age_of(call, id);
        if age == Age::Replay {
            return Err(DropReason::HandshakeStale);
        }
        if let Err(reason) = look_at_ticket(call, around.tickets, &request) {
            ask_for_handshake(call, id, reason, under);
            return Err(reason);
        }
        self.judge_resumption(call, around.tickets, id, &request, frame, (age == Age::Fresh, under))
    }

    /// Everything cheap is right; the rest is a job. Its verdict settles the frame.
    fn judge_resumption(
        &mut self,
        call: &mut Call<'_>,
        tickets: &Resumptions,
        id: AnswerId,
        request: &Resumption<'_>,
        frame: &[u8],
        (is_fresh, under): (bool, Generation),
    ) -> Verdict {
        let now = call.now.since_boot;
        let is_proved = call.is_proved(id.mac);
        if !self.budget_per_source.of(is_proved).take(now, id.mac)
            || !self.resumption_budget.of(is_proved).take(now)
            || !self.make_room()
        {
            return Err(DropReason::HandshakeBudget);
        }
        let key_pair = call.take_key_pair_for(id.mac).ok_or(DropReason::HandshakeBudget)?;
        let receiver_index = call.draw_index();
        let own = call.offer(receiver_index);
        let answer = AnswerResumption {
            origins: call.origins(),
            ticket_keys: tickets.keys(),
            request: frame[ETHERNET_LEN..].to_vec(),
            unbound_reply: unbound_reply(call, request, own, &key_pair),
            own: Chosen { offer: own, suite: call.core.settings.send_suite },
            key_pair,
        };
        let asked = Asked { id, question: request.resolution, frame, own, peers: request.offer, is_fresh, under };
        self.await_verdict_on_request(call, asked, JobKind::AnswerResumption(Box::new(answer)))
    }
}

impl Resumptions {
    /// A ticket is good for one association. Two requests with it may have been judged at the same time.
    pub(crate) fn spend_that_of(
        &mut self,
        call: &mut Call<'_>,
        answered: Box<Answered>,
    ) -> Result<Box<Answered>, Refusal> {
        let Some(id) = answered.proof.ticket else { return Ok(answered) };
        if self.is_spent(&id) && !call.core.settings.weaken.freshness {
            return Err(Refusal::new(DropReason::TicketSpent, "the ticket was used a moment ago"));
        }
        self.spend(call, id);
        Ok(answered)
    }
}

/// What a ticket's number alone tells.
fn look_at_ticket(call: &Call<'_>, tickets: &Resumptions, request: &Resumption<'_>) -> Result<(), DropReason> {
    let Kind::Request(ticket) = request.kind else { return Err(DropReason::Malformed) };
    let id = id_of(ticket).ok_or(DropReason::TicketUnknown)?;
    if call.core.settings.resumption.is_none() {
        return Err(DropReason::TicketUnknown);
    }
    if tickets.is_spent(&id) && !call.core.settings.weaken.freshness {
        return Err(DropReason::TicketSpent);
    }
    Ok(())
}

/// A holder whose ticket is no good is told so by a challenge: its handshake comes at once and
/// proves its freshness. Who does not even have the ticket's secret is told nothing.
pub(crate) fn ask_for_handshake(call: &mut Call<'_>, id: AnswerId, reason: DropReason, under: Generation) {
    if matches!(reason, DropReason::TicketUnknown | DropReason::TicketExpired | DropReason::TicketSpent) {
        // Where the budget has no challenge left, the holder's timer does the same.
        let _ = challenge(call, id, under);
    }
}

fn unbound_reply(call: &Call<'_>, request: &Resumption<'_>, own: Offer, key_pair: &KeyPair) -> Vec<u8> {
    Resumption {
        kind: Kind::Reply(&[]),
        site_tag: [0; SITE_TAG_LEN],
        resolution: reply_to(call, &request.resolution),
        timestamp_ms: call.now.wall.map_or(0, |wall| wall.unix_ms),
        nonce: request.nonce,
        offer: own,
        key_share: key_pair.public(),
        binder: [0; BINDER_LEN],
    }
    .emit_unbound()
}
