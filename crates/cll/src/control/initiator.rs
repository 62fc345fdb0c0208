//! Handshakes that we open (paper, section 5.2): sign a request, repeat it until it is answered, judge the answer.
//!
//! A request goes out because our stack asked for an address, because frames wait for a host, or because an association
//! needs a successor. In the last two cases no address may be known; then the request names the host by its hardware
//! address alone. Repetition is by our own timer, because the kernel stops asking after three tries.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bump::{DropReason, Fate, Instant, Side};
use identity::agreement::KeyPair;
use wire::MacAddress;
use wire::cll::{COOKIE_LEN, Challenge, Handshake, NONCE_LEN, Offer, PacketType, Resolution, Resumption, SITE_TAG_LEN};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};

use super::peers::Birth;
use super::{Call, Control, Task};
use crate::event::{EndCause, Event};
use crate::job::{Finish, Finished, JobKind, Refusal, SignRequest};
use crate::limits::{HANDSHAKE_GIVE_UP, HANDSHAKES_OPEN_MAX, RETRANSMIT_FIRST, RETRANSMIT_MAX, YIELD_TIME};
use crate::message::OrderKind;
use crate::ticket::HeldTicket;

/// Challenges that one opening answers; an honest responder needs one.
const CHALLENGES_PER_OPENING_MAX: u8 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OpeningId(u64);

/// What an opening waits for.
#[derive(Debug)]
pub(super) enum State {
    /// A key pair, when none was ready.
    KeyPair,
    /// The signature under our request.
    Signature,
    /// The peer's reply.
    Reply { next_send: Instant, interval: Duration, last_sent: Instant },
    /// The verdict on a reply.
    Verdict { reply_frame: Vec<u8>, interval: Duration },
}

/// A handshake that we opened.
#[derive(Debug)]
pub(super) struct Opening {
    /// The question that goes out.
    pub(super) question: Resolution,
    /// The host that must answer, if it is known.
    asked_mac: Option<MacAddress>,
    destination: MacAddress,
    started: Instant,
    /// For how long it is tried.
    patience: Duration,
    pub(super) nonce: [u8; NONCE_LEN],
    pub(super) cookie: [u8; COOKIE_LEN],
    challenges: u8,
    pub(super) receiver_index: u32,
    pub(super) key_pair: Option<Arc<KeyPair>>,
    /// The ticket with which it is tried first.
    pub(super) resuming: Option<Arc<HeldTicket>>,
    pub(super) message: Vec<u8>,
    pub(super) state: State,
}

impl Opening {
    /// The address that must be answered for, if it is known.
    pub(super) fn asked_ip(&self) -> Option<IpAddr> {
        asked_ip(&self.question)
    }

    /// When it is given up.
    fn ends(&self) -> Instant {
        self.started + self.patience
    }

    fn asks(&self, ip: Option<IpAddr>, mac: Option<MacAddress>) -> bool {
        (ip.is_some() && self.asked_ip() == ip) || (mac.is_some() && self.asked_mac == mac)
    }
}

fn asked_ip(question: &Resolution) -> Option<IpAddr> {
    (!question.is_by_hardware_address()).then(|| question.target_ip())
}

/// What both kinds of replies say.
struct Replied {
    resolution: Resolution,
    timestamp_ms: u64,
    offer: Offer,
}

impl Replied {
    fn read(frame: &[u8]) -> Option<Replied> {
        let message = frame.get(ETHERNET_LEN..)?;
        if let Ok(Resumption { resolution, timestamp_ms, offer, .. }) = Resumption::parse(message) {
            return Some(Replied { resolution, timestamp_ms, offer });
        }
        let Handshake { resolution, timestamp_ms, offer, .. } = Handshake::parse(message).ok()?;
        Some(Replied { resolution, timestamp_ms, offer })
    }
}

/// All handshakes that we have open.
#[derive(Debug, Default)]
pub(super) struct Openings {
    pub(super) by_id: BTreeMap<OpeningId, Opening>,
    next_id: u64,
}

impl Openings {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.by_id
            .values()
            .map(|opening| match opening.state {
                State::Reply { next_send, .. } => next_send.min(opening.ends()),
                _ => opening.ends(),
            })
            .min()
    }

    fn waiting_for_key_pair(&self) -> Vec<OpeningId> {
        let waits = |opening: &Opening| matches!(opening.state, State::KeyPair) && opening.key_pair.is_none();
        self.by_id.iter().filter(|(_, opening)| waits(opening)).map(|(id, _)| *id).collect()
    }

    pub(super) fn by_nonce(&self, nonce: &[u8; NONCE_LEN]) -> Option<OpeningId> {
        self.by_id.iter().find(|(_, opening)| opening.nonce == *nonce).map(|(id, _)| *id)
    }

    /// Takes out what asks for the host at `mac`, which `has` an address.
    fn take_answered(&mut self, mac: MacAddress, has: impl Fn(IpAddr) -> bool) -> Vec<Opening> {
        let answered = |opening: &Opening| opening.asked_mac == Some(mac) || opening.asked_ip().is_some_and(&has);
        self.by_id.extract_if(.., |_, opening| answered(opening)).map(|(_, opening)| opening).collect()
    }
}

impl Control {
    /// Closes what asks for a host with which there is an association now. That host's certificate answers our stack,
    /// which may have asked for the last time; for an address that is not in it nobody answers.
    pub(super) fn close_openings_for(&mut self, call: &mut Call<'_>, mac: MacAddress) {
        let Some(current) = self.peers.current_by_mac(mac) else { return };
        let (now, neighbours, certificate) = (call.now.since_boot, &self.neighbours, &current.certificate);
        let is_router = certificate.is_router();
        let has = |ip: IpAddr| match ip {
            IpAddr::V4(ip) => certificate.addresses().contains(&ip),
            IpAddr::V6(ip) => neighbours.holder(now, ip) == Some(mac),
        };
        let answered = self.openings.take_answered(mac, has);
        let answered: Vec<_> =
            answered.into_iter().map(|opening| (opening.asked_ip().is_some_and(has), opening)).collect();
        for (is_its, opening) in answered {
            self.peers.return_index(opening.receiver_index);
            self.drop_unjudged_reply(call, &opening, DropReason::HandshakeUnasked);
            if is_its {
                self.send_resolution_up(call, &opening.question.reply(mac, None), is_router);
            }
        }
    }

    /// Gives a reply its fate that waited for a verdict when its opening ended.
    fn drop_unjudged_reply(&mut self, call: &Call<'_>, opening: &Opening, reason: DropReason) {
        if let State::Verdict { reply_frame, .. } = &opening.state {
            self.ledger.release(call.now.since_boot, Side::WIRE, Fate::Dropped(reason), reply_frame);
        }
    }

    /// Opens a handshake for the address that our stack asks for.
    pub(super) fn open_for_ip(
        &mut self,
        call: &mut Call<'_>,
        question: Resolution,
        destination: MacAddress,
    ) -> Result<(), DropReason> {
        let asked_mac = (!destination.is_group()).then_some(destination);
        self.open(call, question.with_target_mac(asked_mac.unwrap_or_default()), destination, asked_mac)
    }

    /// Opens a handshake with a host whose hardware address is all that is known, or all that matters.
    pub(super) fn open_for_mac(&mut self, call: &mut Call<'_>, mac: MacAddress) -> Result<(), DropReason> {
        let own_ip = self.settings.identity.certificate().addresses().first().copied();
        let question = Resolution::by_hardware_address(self.settings.mac, own_ip, mac);
        self.open(call, question, mac, Some(mac))
    }

    fn open(
        &mut self,
        call: &mut Call<'_>,
        question: Resolution,
        destination: MacAddress,
        asked_mac: Option<MacAddress>,
    ) -> Result<(), DropReason> {
        let asked_ip = asked_ip(&question);
        if self.openings.by_id.values().any(|opening| opening.asks(asked_ip, asked_mac)) {
            return Ok(());
        }
        let now = call.now.since_boot;
        if self.openings.len() >= HANDSHAKES_OPEN_MAX || !self.signature_budget.take(now) {
            return Err(DropReason::HandshakeBudget);
        }
        self.openings.next_id += 1;
        let id = OpeningId(self.openings.next_id);
        let opening = Opening {
            question,
            asked_mac,
            destination,
            started: now,
            patience: self.patience(now, asked_ip, asked_mac),
            nonce: self.random.bytes(),
            cookie: [0; COOKIE_LEN],
            challenges: 0,
            receiver_index: self.peers.draw_index(&mut self.random),
            key_pair: None,
            resuming: self.ticket_for(call.now, asked_ip, asked_mac),
            message: Vec::new(),
            state: State::KeyPair,
        };
        self.openings.by_id.insert(id, opening);
        self.sign(call, id);
        Ok(())
    }

    /// Gives openings that waited for a key pair one of the new ones.
    pub(super) fn sign_waiting(&mut self, call: &mut Call<'_>) {
        for id in self.openings.waiting_for_key_pair() {
            self.sign(call, id);
        }
    }

    /// No key pairs were made: those who wait for one try again in a moment.
    pub(super) fn key_pairs_lost(&mut self, call: &mut Call<'_>) {
        for id in self.openings.waiting_for_key_pair() {
            self.opening_job_lost(call, id);
        }
    }

    /// Has the request signed, with the timestamp of this moment.
    pub(super) fn sign(&mut self, call: &mut Call<'_>, id: OpeningId) {
        let Some(key_pair) = self.key_pair_of(call, id) else { return };
        let Some(opening) = self.openings.by_id.get(&id) else { return };
        if let Some(held) = opening.resuming.clone() {
            return self.ask_to_resume(call, id, &held, &key_pair);
        }
        let identity = Arc::clone(&self.settings.identity);
        let unsigned = Handshake {
            kind: PacketType::HandshakeRequest,
            site_tag: [0; SITE_TAG_LEN],
            resolution: opening.question,
            timestamp_ms: call.now.wall.map_or(0, |wall| wall.unix_ms),
            nonce: opening.nonce,
            offer: self.offer(opening.receiver_index),
            key_share: key_pair.public(),
            cookie: opening.cookie,
            certificate: identity.certificate().der(),
            signature: &[],
        }
        .emit_unsigned();
        let job = JobKind::SignRequest(SignRequest { identity: Arc::clone(&identity), unsigned });
        if self.task(call.out, Task::Opening(id), job)
            && let Some(opening) = self.openings.by_id.get_mut(&id)
        {
            opening.state = State::Signature;
        }
    }

    /// The key pair of an opening; while there is none the opening waits for one.
    fn key_pair_of(&mut self, call: &mut Call<'_>, id: OpeningId) -> Option<Arc<KeyPair>> {
        if self.openings.by_id.get(&id)?.key_pair.is_none() {
            let fresh = self.take_key_pair(call.out).map(Arc::new);
            let opening = self.openings.by_id.get_mut(&id)?;
            opening.key_pair = fresh;
            opening.state = State::KeyPair;
        }
        self.openings.by_id.get(&id)?.key_pair.clone()
    }

    /// The request is signed: out with it.
    pub(super) fn request_signed(&mut self, call: &mut Call<'_>, id: OpeningId, message: Option<Vec<u8>>) {
        let Some(message) = message else { return self.opening_job_lost(call, id) };
        if let Some(destination) = self.openings.by_id.get(&id).map(|opening| opening.destination) {
            self.send_request(call, id, destination, message);
        }
    }

    /// Sends a request that is ready, and waits for its reply.
    pub(super) fn send_request(
        &mut self,
        call: &mut Call<'_>,
        id: OpeningId,
        destination: MacAddress,
        mut message: Vec<u8>,
    ) {
        self.send_message(call, destination, &mut message);
        let now = call.now.since_boot;
        if let Some(opening) = self.openings.by_id.get_mut(&id) {
            opening.message = message;
            let next_send = now + RETRANSMIT_FIRST;
            opening.state = State::Reply { next_send, interval: RETRANSMIT_FIRST, last_sent: now };
        }
    }

    /// A job did not come back: the next repetition tries again from the start.
    pub(super) fn opening_job_lost(&mut self, call: &mut Call<'_>, id: OpeningId) {
        let now = call.now.since_boot;
        let Some(opening) = self.openings.by_id.get_mut(&id) else { return };
        let next_send = now + RETRANSMIT_FIRST;
        let lost = State::Reply { next_send, interval: RETRANSMIT_FIRST, last_sent: Instant::default() };
        match std::mem::replace(&mut opening.state, lost) {
            State::Verdict { reply_frame, .. } => {
                self.ledger.release(now, Side::WIRE, Fate::Dropped(DropReason::JobLost), &reply_frame);
            }
            // What was to be signed anew, perhaps with a cookie, makes the message before it worthless.
            State::Signature => opening.message.clear(),
            State::KeyPair | State::Reply { .. } => {}
        }
    }

    /// A reply from the wire, unproved.
    pub(super) fn take_reply(
        &mut self,
        call: &mut Call<'_>,
        header: &Header,
        frame: &[u8],
    ) -> Result<Fate, DropReason> {
        let reply = Handshake::parse(&frame[ETHERNET_LEN..]).map_err(|_| DropReason::Malformed)?;
        if reply.resolution.sender_mac() != header.source || header.destination != self.settings.mac {
            return Err(DropReason::HandshakeSource);
        }
        let id = self.opening_for_reply(&reply).ok_or(DropReason::HandshakeUnasked)?;
        if !self.is_own_site(frame, &reply.site_tag) {
            return Err(DropReason::HandshakeSiteMac);
        }
        let finish = self.await_verdict(call, id, frame).ok_or(DropReason::HandshakeUnasked)?;
        if !self.task(call.out, Task::Opening(id), JobKind::Finish(Box::new(finish))) {
            self.reopen(call, id);
            return Err(DropReason::ControlBusy);
        }
        Ok(Fate::Held)
    }

    /// Has the opening wait for the verdict on the reply in `frame`, if it waits for a reply at all.
    fn await_verdict(&mut self, call: &Call<'_>, id: OpeningId, frame: &[u8]) -> Option<Finish> {
        let time = self.certificate_time(call.now);
        let (settings, revoked) = (Arc::clone(&self.settings), Arc::clone(&self.revoked));
        let opening = self.openings.by_id.get_mut(&id)?;
        let State::Reply { interval, .. } = opening.state else { return None };
        let finish = Finish {
            settings,
            revoked,
            time,
            request: opening.message.clone(),
            reply: frame[ETHERNET_LEN..].to_vec(),
            key_pair: opening.key_pair.clone()?,
            asked_ip: opening.asked_ip(),
            asked_mac: opening.asked_mac,
        };
        opening.state = State::Verdict { reply_frame: frame.to_vec(), interval };
        Some(finish)
    }

    /// The opening that waits for this reply: the one whose nonce it repeats (paper, section 5.2).
    fn opening_for_reply(&self, reply: &Handshake<'_>) -> Option<OpeningId> {
        let by_nonce = self.openings.by_nonce(&reply.nonce);
        if by_nonce.is_none() && self.settings.weaken.reply_check {
            let asked = |opening: &Opening| {
                opening.asks(Some(reply.resolution.sender_ip()), Some(reply.resolution.sender_mac()))
            };
            return self.openings.by_id.iter().find(|(_, opening)| asked(opening)).map(|(id, _)| *id);
        }
        by_nonce
    }

    /// Back to waiting for a reply, after a verdict that was no good.
    pub(super) fn reopen(&mut self, call: &Call<'_>, id: OpeningId) -> Option<Vec<u8>> {
        let opening = self.openings.by_id.get_mut(&id)?;
        let State::Verdict { interval, .. } = opening.state else { return None };
        let now = call.now.since_boot;
        let waiting = State::Reply { next_send: now + interval, interval, last_sent: now };
        match std::mem::replace(&mut opening.state, waiting) {
            State::Verdict { reply_frame, .. } => Some(reply_frame),
            _ => None,
        }
    }

    /// The verdict on a reply.
    pub(super) fn reply_judged(&mut self, call: &mut Call<'_>, id: OpeningId, result: Result<Box<Finished>, Refusal>) {
        match result {
            Err(refusal) => {
                if let Some(frame) = self.reopen(call, id) {
                    self.refuse(call, &frame, refusal);
                }
            }
            Ok(finished) => {
                if let Err(refusal) = self.admit_answer(call, id, &finished) {
                    return self.reply_judged(call, id, Err(refusal));
                }
                if let Some(opening) = self.openings.by_id.remove(&id)
                    && let State::Verdict { reply_frame, .. } = &opening.state
                {
                    let at = call.now.since_boot;
                    self.ledger.release(at, Side::WIRE, Fate::Consumed, reply_frame);
                    if let Some(reply) = Replied::read(reply_frame) {
                        self.finish(call, &opening, &reply, *finished);
                    }
                }
            }
        }
    }

    /// Whether the peer may have the address for which it answers.
    fn admit_answer(&mut self, call: &mut Call<'_>, id: OpeningId, finished: &Finished) -> Result<(), Refusal> {
        let Some(State::Verdict { reply_frame, .. }) = self.openings.by_id.get(&id).map(|opening| &opening.state)
        else {
            return Ok(());
        };
        let Some(reply) = Replied::read(reply_frame) else { return Ok(()) };
        self.admit_resolution(call, &finished.peer, &reply.resolution)
    }

    /// The peer is who we asked for. Our association is complete from the start (paper, "Complete and Incomplete SAs").
    fn finish(&mut self, call: &mut Call<'_>, opening: &Opening, reply: &Replied, finished: Finished) {
        if let Some(held) = &opening.resuming {
            self.forget_ticket(call, held);
        }
        let (mac, is_router) = (finished.peer.mac(), finished.peer.is_router());
        self.freshness.remember(mac, reply.timestamp_ms, opening.nonce);
        let own = self.offer(opening.receiver_index);
        let lifetime = self.agreed_lifetime(call.now, &finished.peer, &own, &reply.offer);
        let asked = opening.started;
        let birth = Birth {
            certificate: finished.peer,
            initiated_by_us: true,
            own,
            peers: reply.offer,
            lifetime,
            asked,
            transcript: finished.transcript,
            rollovers: 0,
            proof: finished.proof,
            tickets: finished.keys.tickets,
        };
        let association = self.peers.bear(call.now.since_boot, birth);
        self.install_receivers(call, &association, finished.keys.receive, false);
        self.establish(call, association, finished.keys.send);
        // The first frame tells the peer that we have the keys, also when nothing else is to be sent yet.
        call.order(0, OrderKind::ShowLife(mac));
        if opening.asked_ip().is_some() {
            self.send_resolution_up(call, &reply.resolution, is_router);
        }
    }

    /// The peer cannot judge how old our request is: sign it again with its cookie.
    pub(super) fn take_challenge(
        &mut self,
        call: &mut Call<'_>,
        header: &Header,
        frame: &[u8],
    ) -> Result<Fate, DropReason> {
        let challenge = Challenge::parse(&frame[ETHERNET_LEN..]).map_err(|_| DropReason::Malformed)?;
        if header.destination != self.settings.mac {
            return Err(DropReason::NotForUs);
        }
        let id = self.openings.by_nonce(&challenge.nonce).ok_or(DropReason::HandshakeUnasked)?;
        if !self.is_own_site(frame, &challenge.site_tag) {
            return Err(DropReason::HandshakeSiteMac);
        }
        let now = call.now.since_boot;
        let opening = self.openings.by_id.get_mut(&id).ok_or(DropReason::HandshakeUnasked)?;
        // A repeated challenge was met already. Signing again would make a second request with the same nonce, and the
        // peer would answer the first.
        let is_news = matches!(opening.state, State::Reply { .. }) && opening.cookie != challenge.cookie;
        if !is_news || opening.challenges >= CHALLENGES_PER_OPENING_MAX {
            return Err(DropReason::HandshakeUnasked);
        }
        if !self.signature_budget.take(now) {
            return Err(DropReason::HandshakeBudget);
        }
        opening.challenges += 1;
        opening.cookie = challenge.cookie;
        let refused = opening.resuming.take();
        if let Some(held) = refused {
            self.forget_ticket(call, &held);
        }
        self.sign(call, id);
        Ok(Fate::Consumed)
    }

    /// Whether a request of `mac` must wait because ours to the same host goes first (paper, "Retransmissions and
    /// Conflicts"). Only for a moment after we sent ours: should it be lost, the other's is as good.
    pub(super) fn ours_goes_first(&self, now: Instant, mac: MacAddress, ip: IpAddr) -> bool {
        self.settings.mac > mac
            && self.openings.by_id.values().any(|opening| {
                let sent_lately = match opening.state {
                    State::Reply { last_sent, .. } => now.since(last_sent) < YIELD_TIME,
                    State::Verdict { .. } => true,
                    State::KeyPair | State::Signature => false,
                };
                sent_lately && opening.asks(Some(ip), Some(mac))
            })
    }

    /// Repeats requests that are not answered, and gives up on those that never will be.
    pub(super) fn retransmit(&mut self, call: &mut Call<'_>, budget: usize) {
        let now = call.now.since_boot;
        let over = |opening: &Opening| opening.ends() <= now;
        let due = |opening: &Opening| matches!(opening.state, State::Reply { next_send, .. } if next_send <= now);
        let ready: Vec<(OpeningId, bool)> = self
            .openings
            .by_id
            .iter()
            .filter(|(_, opening)| over(opening) || due(opening))
            .map(|(id, opening)| (*id, over(opening)))
            .take(budget)
            .collect();
        for (id, is_over) in ready {
            if is_over {
                self.give_up(call, id);
            } else {
                self.repeat(call, id);
            }
        }
    }

    fn repeat(&mut self, call: &mut Call<'_>, id: OpeningId) {
        let now = call.now.since_boot;
        let Some(opening) = self.openings.by_id.get_mut(&id) else { return };
        let State::Reply { interval, .. } = opening.state else { return };
        let interval = (interval * 2).min(RETRANSMIT_MAX);
        opening.state = State::Reply { next_send: now + interval, interval, last_sent: now };
        let destination = opening.destination;
        if opening.resuming.is_some() {
            return self.ask_without_ticket(call, id);
        }
        if opening.message.is_empty() {
            return self.sign(call, id);
        }
        let mut message = opening.message.clone();
        self.send_message(call, destination, &mut message);
    }

    /// This host has other addresses than those with which it asked.
    pub(super) fn abandon_openings(&mut self, call: &mut Call<'_>) {
        let all: Vec<OpeningId> = self.openings.by_id.keys().copied().collect();
        all.into_iter().for_each(|id| self.give_up(call, id));
    }

    fn give_up(&mut self, call: &mut Call<'_>, id: OpeningId) {
        let Some(opening) = self.openings.by_id.remove(&id) else { return };
        self.peers.return_index(opening.receiver_index);
        self.drop_unjudged_reply(call, &opening, DropReason::JobLost);
        if opening.patience >= HANDSHAKE_GIVE_UP {
            call.out.event(Event::NoAnswer { ip: opening.asked_ip(), mac: opening.asked_mac });
        }
        let Some(mac) = opening.asked_mac else { return };
        for lane in 0..self.settings.lanes {
            call.order(lane, OrderKind::GiveUp(mac));
        }
        if self.peers.current_by_mac(mac).is_some_and(|current| current.doubted) {
            self.end_current(call, mac, EndCause::Silent);
        }
    }
}
