//! Handshakes that we open (paper, section 5.2): sign a request, repeat it until it is answered; `replies.rs` judges the answer.
//!
//! A request goes out because our stack asked for an address, because frames wait for a host, or because an association
//! needs a successor. In the last two cases no address may be known; then the request names the host by its hardware
//! address alone. Repetition is by our own timer, because the kernel stops asking after three tries.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bump::{DropReason, Fate, Instant};
use identity::Generation;
use identity::agreement::KeyPair;
use identity::certificate::HostCertificate;
use shield::{Apart, Bucket, PerSource};
use wire::MacAddress;
use wire::cll::{COOKIE_LEN, Challenge, Handshake, NONCE_LEN, PacketType, Resolution, SITE_TAG_LEN};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};

use super::Task;
use super::core::{Call, Verdict, answers_per_source, steady};
use super::crowd::Crowd;
use super::discovery::Addresses;
use super::machines::{Machine, Wish};
use super::peers::{Birth, Born};
use super::replies::{Replied, drop_unjudged};
use super::resumption::Resumptions;
use crate::event::Event;
use crate::job::{Finished, JobKind, SignRequest};
use crate::limits::{
    DISPLACED_PER_SECOND, HANDSHAKE_GIVE_UP, HANDSHAKES_OPEN_MAX, LENIENT_GIVE_UP, REPLIES_BURST, REPLIES_PER_SECOND,
    RETRANSMIT_FIRST, RETRANSMIT_MAX, YIELD_TIME,
};
use crate::message::OrderKind;
use crate::migration::Claim;
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
    Reply(Repetition),
    /// The verdict on a reply. Another that has come meanwhile is judged next: the first may be anybody's who heard our question.
    Verdict { reply_frame: Vec<u8>, next: Option<Vec<u8>>, repetition: Repetition },
}

/// When a request that waits for its reply goes out again, and when it last did. A reply that is no good changes nothing about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repetition {
    next_send: Instant,
    interval: Duration,
    last_sent: Instant,
}

impl Repetition {
    fn after(interval: Duration, sent: Instant) -> Repetition {
        Repetition { next_send: sent + interval, interval, last_sent: sent }
    }
}

/// A handshake that we opened.
#[derive(Debug)]
pub(super) struct Opening {
    /// The question that goes out.
    pub(super) question: Resolution,
    /// The host that must answer, if it is known.
    pub(super) asked_mac: Option<MacAddress>,
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
    /// The site key under which it is asked; that to send with where none is named.
    under: Option<Generation>,
    pub(super) state: State,
}

impl Opening {
    /// The address that must be answered for, if it is known.
    pub(super) fn asked_ip(&self) -> Option<IpAddr> {
        asked_ip(&self.question)
    }

    /// When something is to be done about it.
    fn due(&self) -> Instant {
        match self.state {
            State::Reply(repetition) => repetition.next_send.min(self.ends()),
            _ => self.ends(),
        }
    }

    /// When it is given up.
    fn ends(&self) -> Instant {
        self.started + self.patience
    }

    pub(super) fn asks(&self, ip: Option<IpAddr>, mac: Option<MacAddress>) -> bool {
        (ip.is_some() && self.asked_ip() == ip) || (mac.is_some() && self.asked_mac == mac)
    }
}

fn asked_ip(question: &Resolution) -> Option<IpAddr> {
    (!question.is_by_hardware_address()).then(|| question.target_ip())
}

/// All handshakes that we have open.
pub(super) struct Openings {
    pub(super) by_id: BTreeMap<OpeningId, Opening>,
    next_id: u64,
    /// Openings that give way to others.
    displacement_budget: Bucket,
    crowd: Crowd,
    pub(super) reply_budget: Apart<Bucket>,
    pub(super) reply_budget_per_source: Apart<PerSource>,
}

impl Default for Openings {
    fn default() -> Openings {
        Openings {
            by_id: BTreeMap::new(),
            next_id: 0,
            displacement_budget: steady(DISPLACED_PER_SECOND),
            crowd: Crowd::default(),
            reply_budget: Apart::new(|| Bucket::new(REPLIES_PER_SECOND, REPLIES_BURST)),
            reply_budget_per_source: Apart::new(answers_per_source),
        }
    }
}

/// What an opening is to know of hosts.
pub(super) struct Known<'a> {
    pub(super) addresses: &'a Addresses,
    pub(super) tickets: &'a Resumptions,
}

impl Openings {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
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

impl Openings {
    /// Closes what asks for a host with which there is an association now. That host's certificate answers our stack,
    /// which may have asked for the last time; for an address that is not in it nobody answers.
    pub(super) fn on_established(&mut self, call: &mut Call<'_>, addresses: &Addresses, certificate: &HostCertificate) {
        let (now, mac, is_router) = (call.now.since_boot, certificate.mac(), certificate.is_router());
        let has = |ip: IpAddr| addresses.has(now, certificate, ip);
        for opening in self.take_answered(mac, has) {
            call.return_index(opening.receiver_index);
            drop_unjudged(call, &opening.state, DropReason::HandshakeUnasked);
            if opening.asked_ip().is_some_and(has) {
                call.send_resolution_up(&opening.question.reply(mac, None), is_router);
            }
        }
    }

    /// Opens a handshake for the address that our stack asks for.
    pub(super) fn open_for_ip(
        &mut self,
        call: &mut Call<'_>,
        known: &Known<'_>,
        question: Resolution,
        destination: MacAddress,
    ) -> Result<(), DropReason> {
        let asked_mac = (!destination.is_group()).then_some(destination);
        self.open(call, known, question.with_target_mac(asked_mac.unwrap_or_default()), destination, asked_mac)
    }

    /// Opens a handshake with a host whose hardware address is all that is known, or all that matters.
    pub(super) fn open_for_mac(
        &mut self,
        call: &mut Call<'_>,
        known: &Known<'_>,
        mac: MacAddress,
    ) -> Result<(), DropReason> {
        let own_ip = call.core.settings.identity.certificate().addresses().first().copied();
        let question = Resolution::by_hardware_address(call.core.settings.mac, own_ip, mac);
        self.open(call, known, question, mac, Some(mac))
    }

    fn open(
        &mut self,
        call: &mut Call<'_>,
        known: &Known<'_>,
        question: Resolution,
        destination: MacAddress,
        asked_mac: Option<MacAddress>,
    ) -> Result<(), DropReason> {
        let asked_ip = asked_ip(&question);
        if self.by_id.values().any(|opening| opening.asks(asked_ip, asked_mac)) {
            return Ok(());
        }
        let now = call.now.since_boot;
        self.make_room(call, (asked_ip, asked_mac))?;
        let wait = known.addresses.wait(call, asked_ip, asked_mac);
        self.next_id += 1;
        let id = OpeningId(self.next_id);
        let opening = Opening {
            question,
            asked_mac,
            destination,
            started: now,
            patience: if wait.is_some() { LENIENT_GIVE_UP } else { HANDSHAKE_GIVE_UP },
            nonce: call.core.random.bytes(),
            cookie: [0; COOKIE_LEN],
            challenges: 0,
            receiver_index: call.draw_index(),
            key_pair: None,
            resuming: known.tickets.ticket_for(call, asked_ip, asked_mac),
            message: Vec::new(),
            under: None,
            state: State::KeyPair,
        };
        self.by_id.insert(id, opening);
        self.sign(call, id);
        Ok(())
    }

    /// Makes room for one more that asks for this address or host, if it may be signed.
    fn make_room(
        &mut self,
        call: &mut Call<'_>,
        asked: (Option<IpAddr>, Option<MacAddress>),
    ) -> Result<(), DropReason> {
        let now = call.now.since_boot;
        let gives_way = self.gives_way(call, asked).inspect_err(|_| self.crowd.not_asked(now))?;
        if !call.core.signature_budget.take(now) {
            return Err(DropReason::HandshakeBudget);
        }
        if let Some(gone) = gives_way.and_then(|id| self.by_id.remove(&id)) {
            self.crowd.displaced(now);
            call.return_index(gone.receiver_index);
        }
        Ok(())
    }

    /// Which opening gives way to one more that asks for this address or host, if one must.
    ///
    /// It is the one that has waited longest for its answer, if nothing hangs on it: it asks for an
    /// address, or for a host that has proved nothing and may be spoken with in clear. Whoever is
    /// there has answered before his request is repeated, as a rule, and a sweep asks for many
    /// addresses that nobody has. It has half of the signatures, so that rollovers go on; who has
    /// proved himself is asked beyond that (record 0118).
    fn gives_way(
        &mut self,
        call: &Call<'_>,
        (asked_ip, asked_mac): (Option<IpAddr>, Option<MacAddress>),
    ) -> Result<Option<OpeningId>, DropReason> {
        if self.len() < HANDSHAKES_OPEN_MAX {
            return Ok(None);
        }
        let (now, rules) = (call.now.since_boot, &call.core.rules);
        let is_free = |mac: MacAddress| !rules.proved.contains(mac) && rules.wait_for_host(mac).is_some();
        let may_go = |opening: &Opening| {
            let waits = matches!(opening.state, State::Reply(_)) && now.since(opening.started) >= RETRANSMIT_FIRST;
            waits && opening.asked_mac.is_none_or(is_free)
        };
        let longest = self.by_id.iter().find(|(_, opening)| may_go(opening)).map(|(id, _)| *id);
        let is_proved = rules.claim(asked_mac.as_slice(), asked_ip) != Claim::Nothing;
        match longest {
            Some(id) if is_proved || self.displacement_budget.take(now) => Ok(Some(id)),
            _ => Err(DropReason::HandshakeBudget),
        }
    }

    /// Gives openings that waited for a key pair one of the new ones.
    pub(super) fn sign_waiting(&mut self, call: &mut Call<'_>) {
        for id in self.waiting_for_key_pair() {
            self.sign(call, id);
        }
    }

    /// No key pairs were made: those who wait for one try again in a moment.
    pub(super) fn on_key_pairs_lost(&mut self, call: &mut Call<'_>) {
        for id in self.waiting_for_key_pair() {
            self.on_job_lost(call, id);
        }
    }

    /// Has the request signed, with the timestamp of this moment.
    pub(super) fn sign(&mut self, call: &mut Call<'_>, id: OpeningId) {
        let Some(key_pair) = self.key_pair_of(call, id) else { return };
        let Some(opening) = self.by_id.get(&id) else { return };
        if let Some(held) = opening.resuming.clone() {
            return self.ask_to_resume(call, id, &held, &key_pair);
        }
        let identity = Arc::clone(&call.core.settings.identity);
        let unsigned = Handshake {
            kind: PacketType::HandshakeRequest,
            site_tag: [0; SITE_TAG_LEN],
            resolution: opening.question,
            timestamp_ms: call.now.wall.map_or(0, |wall| wall.unix_ms),
            nonce: opening.nonce,
            offer: call.offer(opening.receiver_index),
            key_share: key_pair.public(),
            cookie: opening.cookie,
            certificate: identity.certificate().der(),
            signature: &[],
        }
        .emit_unsigned();
        let job = JobKind::SignRequest(SignRequest { identity: Arc::clone(&identity), unsigned });
        if call.task(Task::Opening(id), job)
            && let Some(opening) = self.by_id.get_mut(&id)
        {
            opening.state = State::Signature;
        }
    }

    /// The key pair of an opening; while there is none the opening waits for one.
    fn key_pair_of(&mut self, call: &mut Call<'_>, id: OpeningId) -> Option<Arc<KeyPair>> {
        if self.by_id.get(&id)?.key_pair.is_none() {
            let fresh = call.take_key_pair().map(Arc::new);
            let opening = self.by_id.get_mut(&id)?;
            opening.key_pair = fresh;
            opening.state = State::KeyPair;
        }
        self.by_id.get(&id)?.key_pair.clone()
    }

    /// The request is signed: out with it.
    pub(super) fn on_signed(&mut self, call: &mut Call<'_>, id: OpeningId, message: Option<Vec<u8>>) {
        let Some(message) = message else { return self.on_job_lost(call, id) };
        if let Some(destination) = self.by_id.get(&id).map(|opening| opening.destination) {
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
        let under = self.by_id.get(&id).and_then(|opening| opening.under);
        call.send_message(destination, &mut message, under);
        let now = call.now.since_boot;
        if let Some(opening) = self.by_id.get_mut(&id) {
            opening.message = message;
            opening.state = State::Reply(Repetition::after(RETRANSMIT_FIRST, now));
        }
    }

    /// A job did not come back: the next repetition tries again from the start.
    pub(super) fn on_job_lost(&mut self, call: &mut Call<'_>, id: OpeningId) {
        let now = call.now.since_boot;
        let Some(opening) = self.by_id.get_mut(&id) else { return };
        let repetition = Repetition { last_sent: Instant::default(), ..Repetition::after(RETRANSMIT_FIRST, now) };
        let before = std::mem::replace(&mut opening.state, State::Reply(repetition));
        // What was to be signed anew, perhaps with a cookie, makes the message before it worthless.
        if matches!(before, State::Signature) {
            opening.message.clear();
        }
        drop_unjudged(call, &before, DropReason::JobLost);
    }

    /// The peer is who we asked for.
    pub(super) fn finish(
        call: &mut Call<'_>,
        tickets: &mut Resumptions,
        opening: &Opening,
        reply: &Replied,
        agreed: Finished,
    ) {
        if let Some(held) = &opening.resuming {
            tickets.forget(call, held);
        }
        call.remember_stamp(agreed.peer.mac(), reply.timestamp_ms, opening.nonce);
        let (own, peers) = (call.offer(opening.receiver_index), reply.offer);
        let lifetime = call.agreed_lifetime(&agreed.peer, &own, &peers);
        let answer = opening.asked_ip().map(|_| (reply.resolution, agreed.peer.is_router()));
        let (initiated_by_us, rollovers, by_kem, is_quiet) = (true, 0, false, false);
        let asked = opening.started;
        let birth = Birth { agreed, initiated_by_us, own, peers, lifetime, asked, rollovers, by_kem, is_quiet };
        call.wishes.push_back(Wish::Complete(Box::new(Born { birth, message: None, answer })));
    }

    /// The peer cannot judge how old our request is: sign it again with its cookie.
    pub(super) fn on_challenge(
        &mut self,
        call: &mut Call<'_>,
        tickets: &mut Resumptions,
        header: &Header,
        frame: &[u8],
    ) -> Verdict {
        let challenge = Challenge::parse(&frame[ETHERNET_LEN..]).map_err(|_| DropReason::Malformed)?;
        if header.destination != call.core.settings.mac {
            return Err(DropReason::NotForUs);
        }
        let id = self.by_nonce(&challenge.nonce).ok_or(DropReason::HandshakeUnasked)?;
        let under = call.site_key_of(frame, &challenge.site_tag).ok_or(DropReason::HandshakeSiteMac)?;
        let now = call.now.since_boot;
        let opening = self.by_id.get_mut(&id).ok_or(DropReason::HandshakeUnasked)?;
        // A repeated challenge was met already. Signing again would make a second request with the same nonce, and the
        // peer would answer the first.
        let is_news = matches!(opening.state, State::Reply(_)) && opening.cookie != challenge.cookie;
        if !is_news || opening.challenges >= CHALLENGES_PER_OPENING_MAX {
            return Err(DropReason::HandshakeUnasked);
        }
        if !call.core.signature_budget.take(now) {
            return Err(DropReason::HandshakeBudget);
        }
        opening.challenges += 1;
        opening.cookie = challenge.cookie;
        opening.under = Some(under);
        let refused = opening.resuming.take();
        if let Some(held) = refused {
            tickets.forget(call, &held);
        }
        self.sign(call, id);
        Ok(Fate::Consumed)
    }

    /// Whether a request of `mac` must wait because ours to the same host goes first (paper, "Retransmissions and
    /// Conflicts"). Only for a moment after we sent ours: should it be lost, the other's is as good.
    pub(super) fn goes_first(&self, call: &Call<'_>, mac: MacAddress, ip: IpAddr) -> bool {
        call.core.settings.mac > mac
            && self.by_id.values().any(|opening| {
                let sent_lately = match opening.state {
                    State::Reply(repetition) => call.now.since_boot.since(repetition.last_sent) < YIELD_TIME,
                    State::Verdict { .. } => true,
                    State::KeyPair | State::Signature => false,
                };
                sent_lately && opening.asks(Some(ip), Some(mac))
            })
    }

    fn repeat(&mut self, call: &mut Call<'_>, id: OpeningId) {
        let now = call.now.since_boot;
        let Some(opening) = self.by_id.get_mut(&id) else { return };
        let State::Reply(Repetition { interval, .. }) = opening.state else { return };
        opening.state = State::Reply(Repetition::after((interval * 2).min(RETRANSMIT_MAX), now));
        let destination = opening.destination;
        // Perhaps the host that was asked has only the other one.
        opening.under = call.core.site_keys.other_than(opening.under);
        if opening.resuming.is_some() {
            return self.ask_without_ticket(call, id);
        }
        if opening.message.is_empty() {
            return self.sign(call, id);
        }
        let (mut message, under) = (opening.message.clone(), opening.under);
        call.send_message(destination, &mut message, under);
    }

    /// This host has other addresses than those with which it asked.
    pub(super) fn abandon(&mut self, call: &mut Call<'_>) {
        let all: Vec<OpeningId> = self.by_id.keys().copied().collect();
        all.into_iter().for_each(|id| self.give_up(call, id));
    }

    fn give_up(&mut self, call: &mut Call<'_>, id: OpeningId) {
        let Some(opening) = self.by_id.remove(&id) else { return };
        call.return_index(opening.receiver_index);
        drop_unjudged(call, &opening.state, DropReason::JobLost);
        if opening.patience >= HANDSHAKE_GIVE_UP {
            call.out.event(Event::NoAnswer { ip: opening.asked_ip(), mac: opening.asked_mac });
        }
        let Some(mac) = opening.asked_mac else { return };
        call.order_all(|| OrderKind::GiveUp(mac));
        call.wishes.push_back(Wish::EndDoubted(mac));
    }
}

impl Machine for Openings {
    fn deadline(&self) -> Option<Instant> {
        self.by_id.values().map(Opening::due).chain(self.crowd.due()).min()
    }

    /// Repeats a request that is not answered, or gives up on one that never will be.
    fn tick(&mut self, call: &mut Call<'_>, _: usize) -> bool {
        let now = call.now.since_boot;
        if let Some(event) = self.crowd.take_due(now) {
            call.out.event(event);
        }
        let Some((id, opening)) = self.by_id.iter().find(|(_, opening)| opening.due() <= now) else { return false };
        let (id, is_over) = (*id, opening.ends() <= now);
        if is_over {
            self.give_up(call, id)
        } else {
            self.repeat(call, id)
        }
        true
    }
}
