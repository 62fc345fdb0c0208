//! Handshakes of others that we answer (paper, section 5.2): cheap checks first, one job for all the public key work, the
//! stack's own ARP reply, and a candidate that waits for its first frame.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::ops::RangeInclusive;

use bump::{DropReason, Fate, Instant, Side};
use identity::Generation;
use identity::agreement::KeyPair;
use shield::{Apart, Bucket, PerSource};
use wire::MacAddress;
use wire::arp::Operation;
use wire::cll::{COOKIE_LEN, Challenge, Handshake, NONCE_LEN, Offer, PacketType, Resolution, SITE_TAG_LEN};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};

use super::Task;
use super::core::{Call, Verdict, answers_per_source};
use super::discovery::Addresses;
use super::freshness::{Age, Stamp};
use super::initiator::Openings;
use super::machines::{Machine, Wish};
use super::peers::{Birth, Born};
use super::resumption::{Resumptions, ask_for_handshake};
use crate::event::Event;
use crate::job::{Answer, Answered, JobKind, Refusal, pre_shared_check};
use crate::limits::{
    ANSWER_CACHED, ANSWERS_BURST, ANSWERS_MAX, ANSWERS_PER_SECOND, REPLY_REPEAT_MIN, RESUMPTIONS_BURST,
    RESUMPTIONS_PER_SECOND, STACK_ANSWER_MAX, STRANGERS_ANSWERED_BURST, STRANGERS_ANSWERED_PER_SECOND,
};

/// A request is recognised by who sent it, by its nonce, and by what changes when it is signed anew: to another signature
/// the reply in the cache is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AnswerId {
    pub(super) mac: MacAddress,
    pub(super) nonce: [u8; NONCE_LEN],
    pub(super) timestamp_ms: u64,
    pub(super) cookie: [u8; COOKIE_LEN],
}

impl AnswerId {
    /// All that may be known of one host.
    fn all_of(mac: MacAddress) -> RangeInclusive<AnswerId> {
        let first = AnswerId { mac, nonce: [0; NONCE_LEN], timestamp_ms: 0, cookie: [0; COOKIE_LEN] };
        let last = AnswerId { mac, nonce: [0xff; NONCE_LEN], timestamp_ms: u64::MAX, cookie: [0xff; COOKIE_LEN] };
        first..=last
    }
}

/// What an answer waits for.
#[derive(Debug)]
enum State {
    /// The verdict on the request.
    Verdict { request_frame: Vec<u8>, own: Offer, peers: Offer, is_fresh: bool },
    /// Our own stack's ARP reply. At `silent_at` it has not come, and only the peer's repetition asks the stack again.
    Stack { reply: Vec<u8>, silent_at: Option<Instant> },
    /// Nothing: the reply was sent and is repeated should the request come again.
    Duplicates { reply: Vec<u8>, last_sent: Instant },
}

#[derive(Debug)]
struct AnswerEntry {
    /// What the request asks.
    question: Resolution,
    forget_at: Instant,
    /// The site key under which it was last asked; the reply goes out under it.
    under: Generation,
    state: State,
}

impl AnswerEntry {
    /// When something is to be done about it.
    fn due(&self) -> Instant {
        match self.state {
            State::Stack { silent_at: Some(silent_at), .. } => silent_at.min(self.forget_at),
            _ => self.forget_at,
        }
    }
}

/// All requests that are being answered or remembered.
pub(super) struct Answers {
    budget: Apart<Bucket>,
    pub(super) resumption_budget: Apart<Bucket>,
    pub(super) budget_per_source: Apart<PerSource>,
    by_id: BTreeMap<AnswerId, AnswerEntry>,
    /// The same, by when something is to be done.
    by_due: BTreeSet<(Instant, AnswerId)>,
}

impl Default for Answers {
    fn default() -> Answers {
        Answers {
            budget: Apart {
                proved: Bucket::new(ANSWERS_PER_SECOND, ANSWERS_BURST),
                strangers: Bucket::new(STRANGERS_ANSWERED_PER_SECOND, STRANGERS_ANSWERED_BURST),
            },
            resumption_budget: Apart::new(|| Bucket::new(RESUMPTIONS_PER_SECOND, RESUMPTIONS_BURST)),
            budget_per_source: Apart::new(answers_per_source),
            by_id: BTreeMap::new(),
            by_due: BTreeSet::new(),
        }
    }
}

/// What an answer is to know of our own openings and of hosts.
pub(super) struct Around<'a> {
    pub(super) openings: &'a Openings,
    pub(super) addresses: &'a mut Addresses,
    pub(super) tickets: &'a Resumptions,
}

/// A request whose cheap parts are right, about to be judged.
pub(super) struct Asked<'a> {
    pub(super) id: AnswerId,
    pub(super) question: Resolution,
    pub(super) frame: &'a [u8],
    pub(super) own: Offer,
    pub(super) peers: Offer,
    /// Whether its timestamp may be remembered.
    pub(super) is_fresh: bool,
    /// The site key of its tag.
    pub(super) under: Generation,
}

impl Answers {
    /// Makes room for one more. The oldest remembered reply goes: should its request be repeated,
    /// it is judged anew. False if all are still being answered.
    pub(super) fn make_room(&mut self) -> bool {
        if self.by_id.len() < ANSWERS_MAX {
            return true;
        }
        let is_remembered =
            |id: &AnswerId| self.by_id.get(id).is_some_and(|entry| matches!(entry.state, State::Duplicates { .. }));
        let oldest = self.by_due.iter().map(|(_, id)| *id).find(is_remembered);
        oldest.and_then(|id| self.remove(id)).is_some()
    }

    fn insert(&mut self, id: AnswerId, entry: AnswerEntry) {
        self.remove(id);
        self.by_due.insert((entry.due(), id));
        self.by_id.insert(id, entry);
    }

    fn remove(&mut self, id: AnswerId) -> Option<AnswerEntry> {
        let entry = self.by_id.remove(&id)?;
        self.by_due.remove(&(entry.due(), id));
        Some(entry)
    }

    /// Puts another state in the place of the one that there is.
    fn set_state(&mut self, id: AnswerId, state: State) {
        if let Some(entry) = self.remove(id) {
            self.insert(id, AnswerEntry { state, ..entry });
        }
    }

    /// What is due at `now`.
    fn due(&self, now: Instant) -> Vec<AnswerId> {
        self.by_due.iter().take_while(|(due, _)| *due <= now).map(|(_, id)| *id).collect()
    }

    /// What waits for our stack to answer the host at `mac` for `own_ip`.
    fn waiting_for_stack(&self, mac: MacAddress, own_ip: IpAddr) -> Vec<AnswerId> {
        let waits =
            |entry: &AnswerEntry| entry.question.target_ip() == own_ip && matches!(entry.state, State::Stack { .. });
        self.by_id.range(AnswerId::all_of(mac)).filter(|(_, entry)| waits(entry)).map(|(id, _)| *id).collect()
    }
}

impl Answers {
    /// A request from the wire, unproved. Read the order as the order of cost.
    pub(super) fn on_request(
        &mut self,
        call: &mut Call<'_>,
        around: &mut Around<'_>,
        header: &Header,
        frame: &[u8],
    ) -> Verdict {
        let request = Handshake::parse(&frame[ETHERNET_LEN..]).map_err(|_| DropReason::Malformed)?;
        let addressed = check_addresses(call, around.addresses, header, &request.resolution);
        if addressed == Err(DropReason::HandshakeTarget) {
            around.addresses.ask_stack_for(call, &request, frame);
        }
        addressed?;
        let under = call.site_key_of(frame, &request.site_tag).ok_or(DropReason::HandshakeSiteMac)?;
        if around.openings.goes_first(call, header.source, request.resolution.sender_ip()) {
            return Err(DropReason::HandshakeYields);
        }
        let Handshake { nonce, timestamp_ms, cookie, .. } = request;
        let id = AnswerId { mac: header.source, nonce, timestamp_ms, cookie };
        if let Some(fate) = self.answer_duplicate(call, id, under) {
            return Ok(fate);
        }
        match age_of(call, id) {
            Age::Fresh => self.judge_request(call, id, &request, frame, under),
            Age::Replay => Err(DropReason::HandshakeStale),
            Age::Unknown => challenge(call, id, under),
        }
    }

    /// The same request again: the reply was lost, or is still being made. The paper answers from the cache.
    pub(super) fn answer_duplicate(&mut self, call: &mut Call<'_>, id: AnswerId, under: Generation) -> Option<Fate> {
        let now = call.now.since_boot;
        let entry = self.by_id.get_mut(&id)?;
        entry.under = under;
        match &mut entry.state {
            State::Verdict { .. } | State::Stack { silent_at: Some(_), .. } => Some(Fate::Consumed),
            State::Stack { reply, .. } => {
                let (question, reply) = (entry.question, std::mem::take(reply));
                self.set_state(id, State::Stack { reply, silent_at: Some(now + STACK_ANSWER_MAX) });
                call.send_resolution_up(&question, false);
                Some(Fate::Consumed)
            }
            State::Duplicates { .. } if call.core.settings.weaken.freshness => None,
            State::Duplicates { last_sent, .. } if now.since(*last_sent) < REPLY_REPEAT_MIN => Some(Fate::Consumed),
            State::Duplicates { reply, last_sent } => {
                *last_sent = now;
                let mut reply = reply.clone();
                call.send_message(id.mac, &mut reply, Some(under));
                Some(Fate::Answered)
            }
        }
    }

    /// Everything cheap is right; the rest is a job. Its verdict settles the frame.
    fn judge_request(
        &mut self,
        call: &mut Call<'_>,
        id: AnswerId,
        request: &Handshake<'_>,
        frame: &[u8],
        under: Generation,
    ) -> Verdict {
        let now = call.now.since_boot;
        let is_proved = call.is_proved(id.mac);
        let within = self.budget_per_source.of(is_proved).take(now, id.mac) && self.budget.of(is_proved).take(now);
        if !(within || call.core.settings.weaken.budgets) || !self.make_room() {
            return Err(DropReason::HandshakeBudget);
        }
        let key_pair = call.take_key_pair_for(id.mac).ok_or(DropReason::HandshakeBudget)?;
        let receiver_index = call.draw_index();
        let own = call.offer(receiver_index);
        let request_message = frame[ETHERNET_LEN..].to_vec();
        let check = pre_shared_check(&call.core.settings, &request_message);
        let unsigned_reply = unsigned_reply(call, request, (own, check), &key_pair);
        let answer = Answer { origins: call.origins(), request: request_message, unsigned_reply, key_pair };
        let asked = Asked { id, question: request.resolution, frame, own, peers: request.offer, is_fresh: true, under };
        self.await_verdict_on_request(call, asked, JobKind::Answer(Box::new(answer)))
    }

    /// Hands the job that judges a request over, and remembers what its verdict will be about.
    pub(super) fn await_verdict_on_request(&mut self, call: &mut Call<'_>, asked: Asked<'_>, job: JobKind) -> Verdict {
        let Asked { id, question, frame, own, peers, is_fresh, under } = asked;
        if !call.task(Task::Answer(id), job) {
            call.return_index(own.receiver_index);
            return Err(DropReason::ControlBusy);
        }
        let state = State::Verdict { request_frame: frame.to_vec(), own, peers, is_fresh };
        let forget_at = call.now.since_boot + ANSWER_CACHED;
        self.insert(id, AnswerEntry { question, forget_at, under, state });
        Ok(Fate::Held)
    }

    /// The verdict on a request.
    pub(super) fn on_answered(
        &mut self,
        call: &mut Call<'_>,
        addresses: &mut Addresses,
        tickets: &mut Resumptions,
        id: AnswerId,
        result: Result<Box<Answered>, Refusal>,
    ) {
        let Some(entry) = self.remove(id) else { return };
        let State::Verdict { request_frame, own, peers, is_fresh } = entry.state else { return };
        let answered = result.and_then(|answered| tickets.spend_that_of(call, answered)).inspect_err(|refusal| {
            ask_for_handshake(call, id, refusal.reason, entry.under);
        });
        let admitted = answered
            .and_then(|answered| addresses.admit_resolution(call, &answered.peer, &entry.question).map(|()| answered));
        match admitted {
            Err(refusal) => {
                call.return_index(own.receiver_index);
                call.refuse(&request_frame, refusal);
            }
            Ok(answered) => {
                call.release(Side::WIRE, Fate::Consumed, &request_frame);
                if is_fresh {
                    call.remember_stamp(id.mac, id.timestamp_ms, id.nonce);
                }
                self.accept(call, id, (entry.question, entry.under), (own, peers), *answered);
            }
        }
    }

    /// The sender is who it says. The answer makes a candidate and nothing else.
    fn accept(
        &mut self,
        call: &mut Call<'_>,
        id: AnswerId,
        (question, under): (Resolution, Generation),
        (own, peers): (Offer, Offer),
        answered: Answered,
    ) {
        let now = call.now.since_boot;
        let (agreed, mut reply) = answered.split();
        let lifetime = call.agreed_lifetime(&agreed.peer, &own, &peers);
        let (initiated_by_us, rollovers, by_kem, is_quiet) = (false, 0, false, false);
        let birth = Birth { agreed, initiated_by_us, own, peers, lifetime, asked: now, rollovers, by_kem, is_quiet };
        call.wishes.push_back(Wish::Candidate(Box::new(Born { birth, message: None, answer: None })));
        let state = if question.is_by_hardware_address() {
            call.send_message(id.mac, &mut reply, Some(under));
            State::Duplicates { reply, last_sent: now }
        } else {
            // As in the paper, the plain request goes up, and the stack's own reply lets ours go.
            call.send_resolution_up(&question, false);
            State::Stack { reply, silent_at: Some(now + STACK_ANSWER_MAX) }
        };
        self.insert(id, AnswerEntry { question, forget_at: now + ANSWER_CACHED, under, state });
    }

    /// Our stack answered the host at `mac` for its address: sends the replies that waited for that. False if none did.
    pub(super) fn on_stack_answer(&mut self, call: &mut Call<'_>, mac: MacAddress, own_ip: IpAddr) -> bool {
        let waiting = self.waiting_for_stack(mac, own_ip);
        for id in &waiting {
            self.send_reply(call, *id);
        }
        !waiting.is_empty()
    }

    fn send_reply(&mut self, call: &mut Call<'_>, id: AnswerId) {
        let now = call.now.since_boot;
        let Some(entry) = self.by_id.get_mut(&id) else { return };
        let State::Stack { reply, .. } = &mut entry.state else { return };
        let mut reply = std::mem::take(reply);
        let under = entry.under;
        call.send_message(id.mac, &mut reply, Some(under));
        self.set_state(id, State::Duplicates { reply, last_sent: now });
    }

    /// This host has other addresses than those that were asked for.
    pub(super) fn abandon(&mut self, call: &mut Call<'_>) {
        let all: Vec<AnswerId> = self.by_id.keys().copied().collect();
        all.into_iter().for_each(|id| self.on_job_lost(call, id));
    }

    pub(super) fn on_job_lost(&mut self, call: &mut Call<'_>, id: AnswerId) {
        let Some(entry) = self.remove(id) else { return };
        if let State::Verdict { request_frame, own, .. } = entry.state {
            call.return_index(own.receiver_index);
            let fate = Fate::Dropped(DropReason::JobLost);
            call.release(Side::WIRE, fate, &request_frame);
        }
    }
}

impl Machine for Answers {
    fn deadline(&self) -> Option<Instant> {
        self.by_due.first().map(|(due, _)| *due)
    }

    /// Forgets answers whose time is over, and names a stack that gives none.
    fn tick(&mut self, call: &mut Call<'_>, _: usize) -> bool {
        let now = call.now.since_boot;
        for id in self.due(now) {
            let Some(entry) = self.by_id.get_mut(&id) else { continue };
            let (ip, is_over) = (entry.question.target_ip(), entry.forget_at <= now);
            if let State::Stack { reply, silent_at: Some(at) } = &mut entry.state
                && *at <= now
            {
                let reply = std::mem::take(reply);
                self.set_state(id, State::Stack { reply, silent_at: None });
                call.out.event(Event::StackSilent { ip });
                call.wishes.push_back(Wish::ForgetOwn(ip));
            }
            if is_over {
                self.on_job_lost(call, id);
            }
        }
        false
    }
}

/// Asked for us, and Ethernet and the question agree about who asks.
pub(super) fn check_addresses(
    call: &Call<'_>,
    known: &Addresses,
    header: &Header,
    question: &Resolution,
) -> Result<(), DropReason> {
    let addresses = call.core.settings.identity.certificate().addresses();
    let for_our_ip = match question.target_ip() {
        IpAddr::V4(ip) => addresses.contains(&ip),
        IpAddr::V6(ip) => call.core.settings.ipv6 && known.is_own(ip),
    };
    // Who has no address of either kind cannot answer: a reply speaks for one.
    let has_address = call.core.settings.ipv6 || !addresses.is_empty();
    let for_our_mac =
        question.is_by_hardware_address() && question.target_mac() == call.core.settings.mac && has_address;
    if question.operation() != Operation::Request || !(for_our_ip || for_our_mac) {
        return Err(DropReason::HandshakeTarget);
    }
    if question.sender_mac() != header.source {
        return Err(DropReason::HandshakeSource);
    }
    Ok(())
}

pub(super) fn age_of(call: &Call<'_>, id: AnswerId) -> Age {
    if call.core.settings.weaken.freshness {
        return Age::Fresh;
    }
    let AnswerId { mac: sender, nonce, timestamp_ms, cookie } = id;
    call.core.freshness.judge(call.now, &Stamp { sender, timestamp_ms, nonce: &nonce, cookie: &cookie })
}

/// Asks the sender of this request to prove that it lives.
pub(super) fn challenge(call: &mut Call<'_>, id: AnswerId, under: Generation) -> Verdict {
    let now = call.now.since_boot;
    let AnswerId { mac: sender, nonce, timestamp_ms, .. } = id;
    let is_proved = call.is_proved(sender);
    let within = call.core.freshness.challenges.take(now, sender, is_proved, timestamp_ms);
    if !(within || call.core.settings.weaken.budgets) {
        return Err(DropReason::HandshakeBudget);
    }
    let cookie = call.core.freshness.cookie(now, sender, &nonce);
    let mut message = Challenge { site_tag: [0; SITE_TAG_LEN], nonce, cookie }.emit();
    call.send_message(sender, &mut message, Some(under));
    call.out.event(Event::Challenged { mac: sender });
    Ok(Fate::Answered)
}

fn unsigned_reply(
    call: &Call<'_>,
    request: &Handshake<'_>,
    (own, check): (Offer, [u8; COOKIE_LEN]),
    key_pair: &KeyPair,
) -> Vec<u8> {
    Handshake {
        kind: PacketType::HandshakeReply,
        site_tag: [0; SITE_TAG_LEN],
        resolution: reply_to(call, &request.resolution),
        timestamp_ms: call.now.wall.map_or(0, |wall| wall.unix_ms),
        nonce: request.nonce,
        offer: own,
        key_share: key_pair.public(),
        cookie: check,
        certificate: call.core.settings.identity.certificate().der(),
        signature: &[],
    }
    .emit_unsigned()
}

/// The reply that our stack will give; for a request by hardware address alone, one for our first
/// address.
pub(super) fn reply_to(call: &Call<'_>, question: &Resolution) -> Resolution {
    let first = call.core.settings.identity.certificate().addresses().first().copied();
    question.reply(call.core.settings.mac, first)
}
