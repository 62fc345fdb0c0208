//! What others say (section 3.4). The order of checks is the order of cost: addresses, open question, stamp, budget, and
//! only then a signature.

use std::net::Ipv4Addr;

use bump::{DropReason, Fate, Frame, Instant, Side};
use wire::arp::{Arp, Operation};
use wire::ethernet::{HEADER_LEN, Header};
use wire::sarp::data::{RESOLUTION_NONCE_LEN, Resolution};
use wire::sarp::{Kind, Message};
use wire::{EtherType, MacAddress};

use super::{Call, Checking, Host, Origin, Purpose, Task, is_tagged};
use crate::clock::Stamp;
use crate::enquiry::About;
use crate::event::Event;
use crate::job::JobKind;
use crate::limits;
use crate::pending::Waiting;

impl Host {
    /// The fate of a frame of the wire.
    pub(super) fn wire_frame(&mut self, call: &mut Call<'_>, frame: &Frame<'_>) -> Fate {
        let Ok((header, message)) = Header::parse(frame.bytes) else { return Fate::Dropped(DropReason::Runt) };
        if is_tagged(&header, frame) {
            return Fate::Dropped(DropReason::Vlan);
        }
        if header.ethertype != EtherType::ARP {
            let fate = self.dhcp_frame(call, Side::WIRE, frame);
            return fate.unwrap_or_else(|| self.pass(call, Side::STACK, frame));
        }
        // What is kept while a job runs is bounded in bytes, too.
        if frame.bytes.len() > limits::ARP_FRAME_MAX_BYTES {
            return Fate::Dropped(DropReason::SarpMalformed);
        }
        if let Some(reason) = self.address_fault(&header) {
            return Fate::Dropped(reason);
        }
        if !Message::is_one(message) {
            return self.plain(call, &header, frame);
        }
        let Ok(message) = Message::parse(message) else { return Fate::Dropped(DropReason::SarpMalformed) };
        match message.kind {
            Kind::Resolution => self.signed(call, &header, &message, frame.bytes),
            Kind::TimeRequest | Kind::KeyRequest | Kind::KeyChange | Kind::Lease | Kind::Apply | Kind::Fetch => {
                self.serve(call, Origin::Wire, &header, &message, frame.bytes)
            }
            _ => self.distributor_answers(call, Origin::Wire, &header, &message, frame.bytes),
        }
    }

    fn address_fault(&self, header: &Header) -> Option<DropReason> {
        if header.source.is_group() {
            Some(DropReason::GroupSource)
        } else if header.source == self.settings.mac {
            Some(DropReason::OwnSource)
        } else if header.destination != self.settings.mac && !header.destination.is_broadcast() {
            Some(DropReason::NotForUs)
        } else {
            None
        }
    }

    /// What is wrong with the sender of a message between hosts.
    fn sender_fault(&mut self, now: Instant, header: &Header, arp: &Arp) -> Option<DropReason> {
        if header.source != arp.sender_mac {
            return Some(DropReason::ArpSource);
        }
        if self.is_own(now, arp.sender_ip) {
            self.event_of_stranger(now, Event::AddressClaimed { ip: arp.sender_ip, by: arp.sender_mac });
            return Some(DropReason::ArpConflict);
        }
        None
    }

    /// A plain ARP message: a request is answered whoever asks, an answer counts only from a known host.
    fn plain(&mut self, call: &mut Call<'_>, header: &Header, frame: &Frame<'_>) -> Fate {
        let Ok(arp) = Arp::parse(&frame.bytes[HEADER_LEN..]) else { return Fate::Dropped(DropReason::BadArp) };
        if let Some(reason) = self.sender_fault(call.now.since_boot, header, &arp) {
            return Fate::Dropped(reason);
        }
        match (self.is_known(&arp), arp.operation) {
            (Err(reason), _) => Fate::Dropped(reason),
            (Ok(known), Operation::Request) => {
                if known && self.is_own(call.now.since_boot, arp.target_ip) {
                    self.tell_stack(call, &arp);
                }
                self.answer(call, &arp, None, frame.bytes)
            }
            (Ok(true), Operation::Reply) => self.known_answers(call, &arp),
            (Ok(false), Operation::Reply) => Fate::Dropped(DropReason::PlainArp),
        }
    }

    /// Whether the sender is a known host; an error when somebody else uses a known host's address.
    fn is_known(&self, arp: &Arp) -> Result<bool, DropReason> {
        match self.settings.known(arp.sender_ip) {
            Some(known) if known.mac != arp.sender_mac => Err(DropReason::LegacyAddress),
            known => Ok(known.is_some()),
        }
    }

    fn known_answers(&mut self, call: &mut Call<'_>, arp: &Arp) -> Fate {
        if let Some(reason) = self.not_for_our_question(call.now.since_boot, arp) {
            return Fate::Dropped(reason);
        }
        self.questions.answered(arp.sender_ip);
        if self.tell_stack(call, arp) { Fate::Forwarded } else { Fate::Dropped(DropReason::PortFull) }
    }

    fn not_for_our_question(&self, now: Instant, arp: &Arp) -> Option<DropReason> {
        let for_us = self.is_own(now, arp.target_ip) || arp.target_ip.is_unspecified();
        if arp.target_mac != self.settings.mac || !for_us {
            return Some(DropReason::ArpTarget);
        }
        let is_asked = self.questions.open(now, arp.sender_ip).is_some() || self.settings.weaken.unasked;
        (!is_asked).then_some(DropReason::SarpUnasked)
    }

    /// Answers a request for an address of ours, within the budget. Before this host has the time it cannot sign; then whoever
    /// believes plain answers hears one, and nobody else is worse off than without.
    fn answer(
        &mut self,
        call: &mut Call<'_>,
        request: &Arp,
        nonce: Option<[u8; RESOLUTION_NONCE_LEN]>,
        frame: &[u8],
    ) -> Fate {
        let now = call.now.since_boot;
        if !self.is_own(now, request.target_ip) {
            return Fate::Dropped(DropReason::ArpTarget);
        }
        if !self.may_answer(now, request) && !self.settings.weaken.budgets {
            return Fate::Dropped(DropReason::SarpBudget);
        }
        let reply = Arp {
            operation: Operation::Reply,
            sender_mac: self.settings.mac,
            sender_ip: request.target_ip,
            target_mac: request.sender_mac,
            target_ip: request.sender_ip,
        };
        if self.clock.read(now).is_none() {
            let sent = self.send(call, request.sender_mac, &reply.emit());
            return if sent { Fate::Answered } else { Fate::Dropped(DropReason::PortFull) };
        }
        self.sign(now, reply, nonce, Task::Answer { frame: frame.to_vec(), to: request.sender_mac })
    }

    /// Strangers, whose addresses may all be made up by one, take nothing from who has proved his.
    fn may_answer(&mut self, now: Instant, request: &Arp) -> bool {
        let (mac, ip) = (request.sender_mac, request.sender_ip);
        let is_proved = self.ring.has_proved(ip, mac) || self.settings.known(ip).is_some_and(|known| known.mac == mac);
        self.answer_budget_per_source.of(is_proved).take(now, (mac, ip)) && self.answer_budget.of(is_proved).take(now)
    }

    /// A signed ARP message.
    fn signed(&mut self, call: &mut Call<'_>, header: &Header, message: &Message<'_>, frame: &[u8]) -> Fate {
        let arp = &message.arp;
        if let Some(reason) = self.sender_fault(call.now.since_boot, header, arp) {
            return Fate::Dropped(reason);
        }
        let Ok(data) = Resolution::parse(message.data) else { return Fate::Dropped(DropReason::SarpMalformed) };
        match arp.operation {
            Operation::Reply => self.signed_reply(call, message, data, frame),
            Operation::Request => self.signed_request(call, message, data, frame),
        }
    }

    fn signed_reply(&mut self, call: &mut Call<'_>, message: &Message<'_>, data: Resolution, frame: &[u8]) -> Fate {
        let now = call.now.since_boot;
        if let Some(reason) = self.no_answer(now, message, data) {
            return Fate::Dropped(reason);
        }
        if self.ring.contains(message.arp.sender_ip) && self.clock.read(now).is_some() {
            return self.check(call, message, Purpose::Reply, false, frame);
        }
        self.wait_for_key(call, message, false, frame)
    }

    /// Why a signed reply answers no question of ours.
    fn no_answer(&self, now: Instant, message: &Message<'_>, data: Resolution) -> Option<DropReason> {
        let asked = self.questions.nonce(now, message.arp.sender_ip);
        let is_tied = asked.is_none() || asked == data.nonce;
        self.not_for_our_question(now, &message.arp).or((!is_tied).then_some(DropReason::SarpNonce))
    }

    /// A signed request teaches the stack who asks, if his key is here already: nobody makes us look up a key by asking. Nor is
    /// anybody proved whom the stack heard of just now.
    fn signed_request(&mut self, call: &mut Call<'_>, message: &Message<'_>, data: Resolution, frame: &[u8]) -> Fate {
        let (now, arp) = (call.now.since_boot, &message.arp);
        let provable = self.ring.contains(arp.sender_ip) && self.clock.read(now).is_some();
        if !provable && self.is_own(now, arp.target_ip) && !self.is_near(now, stamp_of(message)) {
            // Nothing is proved, but it costs little to ask: it may be our own clock that is wrong.
            self.ask_for_time(now);
        }
        let teaches = provable && !self.ring.was_just_told(now, arp.sender_ip, arp.sender_mac);
        match (arp.sender_ip == arp.target_ip, provable) {
            (true, true) => self.check(call, message, Purpose::Announcement, false, frame),
            (true, false) => Fate::Dropped(DropReason::SarpUnasked),
            (false, _) if teaches && self.is_own(now, arp.target_ip) => {
                self.check(call, message, Purpose::Request, false, frame)
            }
            (false, _) => self.answer(call, arp, data.nonce, frame),
        }
    }

    /// Judges the stamp of a message and has its signature checked.
    fn check(
        &mut self,
        call: &mut Call<'_>,
        message: &Message<'_>,
        purpose: Purpose,
        retried: bool,
        frame: &[u8],
    ) -> Fate {
        let now = call.now.since_boot;
        let Some(entry) = self.ring.get(now, message.arp.sender_ip) else {
            return Fate::Dropped(DropReason::SarpNoKey);
        };
        let (record, fetched_at) = (entry.record.clone(), entry.fetched_at);
        let last = match purpose {
            Purpose::Reply => entry.last_stamp,
            // Nobody asked for it: recorded before the key came, it could be sent again by anybody.
            Purpose::Request | Purpose::Announcement => entry.last_stamp.max(entry.known_since),
        };
        if now.since(fetched_at) >= limits::KEY_GOOD_FOR {
            // Later if not now: the key goes on being used.
            let _ = self.open_enquiry(now, About::Key(message.arp.sender_ip));
        }
        if !self.is_timely(now, stamp_of(message), last) {
            if purpose == Purpose::Reply && !self.is_near(now, stamp_of(message)) {
                self.questions.note_far(message.arp.sender_ip);
            }
            return self.unproved(call, message, purpose, DropReason::SarpStale, frame);
        }
        if !self.may_check(now, message.arp.sender_ip, purpose) {
            return self.unproved(call, message, purpose, DropReason::SarpBudget, frame);
        }
        let job = JobKind::Check { record: record.clone(), message: frame[HEADER_LEN..].to_vec() };
        self.start(job, Task::Check(Checking { frame: frame.to_vec(), purpose, retried, record }))
    }

    fn is_timely(&mut self, now: Instant, stamp: Stamp, last: Stamp) -> bool {
        let in_window = self.is_near(now, stamp);
        if !in_window {
            // It may be our own clock that is wrong.
            self.ask_for_time(now);
        }
        (in_window && stamp > last) || self.settings.weaken.stamps
    }

    /// Whether `stamp` is within the window of our clock.
    fn is_near(&self, now: Instant, stamp: Stamp) -> bool {
        self.clock.read(now).is_some_and(|clock| clock.distance(stamp) <= self.settings.window)
    }

    /// What nobody asked for has a budget of its own, so that it never costs an answer.
    fn may_check(&mut self, now: Instant, sender: Ipv4Addr, purpose: Purpose) -> bool {
        let within = match purpose {
            Purpose::Reply => self.check_budget.take(now),
            Purpose::Request | Purpose::Announcement => {
                self.unasked_budget_per_sender.take(now, sender) && self.unasked_budget.take(now)
            }
        };
        within || self.settings.weaken.budgets
    }

    /// A request that proves nothing is answered like a plain one and teaches nothing; anything else ends here.
    fn unproved(
        &mut self,
        call: &mut Call<'_>,
        message: &Message<'_>,
        purpose: Purpose,
        reason: DropReason,
        frame: &[u8],
    ) -> Fate {
        if purpose != Purpose::Request {
            return Fate::Dropped(reason);
        }
        self.answer(call, &message.arp, resolution_of(message).nonce, frame)
    }

    /// Puts a reply on the pending list and asks for its key.
    pub(super) fn wait_for_key(
        &mut self,
        call: &mut Call<'_>,
        message: &Message<'_>,
        failed_before: bool,
        frame: &[u8],
    ) -> Fate {
        let (now, sender) = (call.now.since_boot, message.arp.sender_ip);
        if self.ring.is_unknown(now, sender) {
            self.event_of_stranger(now, Event::NoKey { ip: sender });
            return Fate::Dropped(DropReason::SarpNoKey);
        }
        if !self.open_enquiry(now, About::Key(sender)) {
            return Fate::Dropped(DropReason::SarpPendingFull);
        }
        let waiting = Waiting { sender, arrived: now, failed_before, frame: frame.to_vec() };
        let fate =
            if self.pending.keep(waiting).is_ok() { Fate::Held } else { Fate::Dropped(DropReason::SarpPendingFull) };
        self.send_all_due(call);
        fate
    }

    /// The signature of a message was checked; the frame was held.
    pub(super) fn checked(&mut self, call: &mut Call<'_>, checking: Checking, good: bool) {
        let fate = match Message::parse(&checking.frame[HEADER_LEN..]) {
            Ok(message) if good => self.believe(call, &message, &checking),
            Ok(message) => self.disbelieve(call, &message, &checking),
            Err(_) => Fate::Dropped(DropReason::SarpMalformed),
        };
        if fate != Fate::Held {
            self.ledger.release(call.now.since_boot, Side::WIRE, fate, &checking.frame);
        }
    }

    /// Acts on a message whose signature is good.
    fn believe(&mut self, call: &mut Call<'_>, message: &Message<'_>, checking: &Checking) -> Fate {
        let (now, arp, stamp, purpose) = (call.now.since_boot, &message.arp, stamp_of(message), checking.purpose);
        let Some(entry) = self.ring.get(now, arp.sender_ip) else { return Fate::Dropped(DropReason::SarpNoKey) };
        if !entry.record.same_key(&checking.record) {
            // The key was replaced while the old one was being tried.
            return self.check(call, message, purpose, true, &checking.frame);
        }
        let last = entry.last_stamp;
        // Another message of the same sender may have overtaken this one. And our clock may have gone back meanwhile: a stamp
        // of the time before would keep this sender out until the clock is there again.
        if !self.is_timely(now, stamp, last) {
            return Fate::Dropped(DropReason::SarpStale);
        }
        let Some(entry) = self.ring.get(now, arp.sender_ip) else { return Fate::Dropped(DropReason::SarpNoKey) };
        if !entry.record.admits(arp.sender_mac) && !self.settings.weaken.binding {
            return self.refused(now, arp, DropReason::SarpMac);
        }
        entry.last_stamp = stamp;
        if purpose == Purpose::Reply {
            self.questions.answered(arp.sender_ip);
        }
        if !self.tell_stack(call, arp) {
            return Fate::Dropped(DropReason::PortFull);
        }
        self.ring.note_told(now, arp.sender_ip, arp.sender_mac);
        if let Some(outpost) = &mut self.outpost {
            outpost.acquaint(arp.sender_mac, arp.sender_ip);
        }
        match purpose {
            Purpose::Reply | Purpose::Announcement => Fate::Forwarded,
            Purpose::Request => self.answer(call, arp, resolution_of(message).nonce, &checking.frame),
        }
    }

    /// The key may have changed: it is asked for again, once, and not too often (section 3.4).
    fn disbelieve(&mut self, call: &mut Call<'_>, message: &Message<'_>, checking: &Checking) -> Fate {
        let (now, arp) = (call.now.since_boot, &message.arp);
        let fetched_at = self.ring.get(now, arp.sender_ip).map(|entry| entry.fetched_at);
        let is_fresh = fetched_at.is_some_and(|at| now.since(at) < limits::REFETCH_INTERVAL);
        match checking.purpose {
            Purpose::Reply if !checking.retried && !is_fresh => self.wait_for_key(call, message, true, &checking.frame),
            Purpose::Reply => self.refused(now, arp, DropReason::SarpSignature),
            purpose => self.unproved(call, message, purpose, DropReason::SarpSignature, &checking.frame),
        }
    }

    /// Takes up a pending reply after its key or the time has come. The frame was held.
    pub(super) fn take_up(&mut self, call: &mut Call<'_>, waiting: Waiting) {
        let now = call.now.since_boot;
        let fate = match Message::parse(waiting.frame.get(HEADER_LEN..).unwrap_or_default()) {
            // By now the question may be closed, or be another one.
            Ok(message) => match self.no_answer(now, &message, resolution_of(&message)) {
                None => self.check(call, &message, Purpose::Reply, true, &waiting.frame),
                Some(reason) => Fate::Dropped(reason),
            },
            Err(_) => Fate::Dropped(DropReason::SarpMalformed),
        };
        if fate != Fate::Held {
            self.ledger.release(now, Side::WIRE, fate, &waiting.frame);
        }
    }
}

/// The data of a message that was read before, which is one of the three forms.
fn resolution_of(message: &Message<'_>) -> Resolution {
    Resolution::parse(message.data).unwrap_or_default()
}

fn stamp_of(message: &Message<'_>) -> Stamp {
    Stamp::new(message.seconds, resolution_of(message).fraction.unwrap_or(0))
}

/// Whether `mac` is the hardware address of somebody, not of a group or nobody.
pub(super) fn is_station(mac: MacAddress) -> bool {
    !mac.is_group() && mac != MacAddress::ZERO
}
