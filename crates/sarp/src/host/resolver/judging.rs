//! What others say (section 3.4). The order of checks is the order of cost: addresses, open
//! question, stamp, budget, and only then a signature.

use std::net::Ipv4Addr;

use bump::{DropReason, Fate, Side};
use wire::arp::{Arp, Operation};
use wire::ethernet::{HEADER_LEN, Header};
use wire::sarp::Message;
use wire::sarp::data::Resolution;

use super::Resolver;
use crate::clock::Stamp;
use crate::event::Event;
use crate::host::akds::Akds;
use crate::host::core::{Call, Nonce, Verdict};
use crate::host::work::{Checking, Task};
use crate::job::JobKind;
use crate::limits;
use crate::pending::Waiting;

/// What is to be done with a message between hosts.
pub(crate) enum Judged {
    /// It has its fate, or is held.
    Done(Fate),
    /// It is a request, to be answered with this nonce.
    Asks(Option<Nonce>),
}

/// The same, or why the message is dropped.
type Judgement = Result<Judged, DropReason>;

/// What a signed message is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// It answers our question.
    Reply,
    /// It asks for an address of ours.
    Request,
    /// A peer says that its hardware address is another now.
    Announcement,
}

/// A signed message between hosts, and the frame that brought it.
#[derive(Clone, Copy)]
pub(crate) struct Heard<'a> {
    pub(crate) message: &'a Message<'a>,
    pub(crate) frame: &'a [u8],
    /// Whether it is judged for the second time, under a key that was just fetched.
    pub(crate) retried: bool,
}

impl Heard<'_> {
    fn sender(&self) -> Ipv4Addr {
        self.message.arp.sender_ip
    }

    fn purpose(&self) -> Purpose {
        match self.message.arp.operation {
            Operation::Reply => Purpose::Reply,
            Operation::Request if self.message.arp.sender_ip == self.message.arp.target_ip => Purpose::Announcement,
            Operation::Request => Purpose::Request,
        }
    }

    fn stamp(&self) -> Stamp {
        Stamp::new(self.message.seconds, self.data().fraction.unwrap_or(0))
    }

    /// The data of a message that was read before, which is one of the three forms.
    fn data(&self) -> Resolution {
        Resolution::parse(self.message.data).unwrap_or_default()
    }

    /// A request that proves nothing is answered like a plain one and teaches nothing; anything else ends here.
    fn unproved(&self, reason: DropReason) -> Judgement {
        match self.purpose() {
            Purpose::Request => Ok(Judged::Asks(self.data().nonce)),
            Purpose::Reply | Purpose::Announcement => Err(reason),
        }
    }
}

impl Resolver {
    /// A plain ARP message: a request is answered whoever asks, an answer counts only from a known host.
    pub(crate) fn plain(&mut self, call: &mut Call<'_>, header: &Header, arp: &Arp) -> Judgement {
        check_sender(call, header, arp)?;
        match (arp.operation, is_known(call, arp)?) {
            (Operation::Request, known) => {
                if known && call.is_own(arp.target_ip) {
                    call.tell_stack(arp);
                }
                Ok(Judged::Asks(None))
            }
            (Operation::Reply, true) => {
                self.check_target(call, arp)?;
                self.questions.answered(arp.sender_ip);
                Ok(Judged::Done(call.tell_stack(arp)))
            }
            (Operation::Reply, false) => Err(DropReason::PlainArp),
        }
    }

    /// Whether an answer is for us, and for a question of ours.
    fn check_target(&self, call: &Call<'_>, arp: &Arp) -> Result<(), DropReason> {
        let for_us = call.is_own(arp.target_ip) || arp.target_ip.is_unspecified();
        if arp.target_mac != call.core.settings.mac || !for_us {
            return Err(DropReason::ArpTarget);
        }
        let is_asked = self.questions.open(call.now(), arp.sender_ip).is_some() || call.core.settings.weaken.unasked;
        if is_asked { Ok(()) } else { Err(DropReason::SarpUnasked) }
    }

    /// A signed ARP message.
    pub(crate) fn signed(
        &mut self,
        call: &mut Call<'_>,
        akds: &mut Akds,
        header: &Header,
        heard: Heard<'_>,
    ) -> Judgement {
        let arp = &heard.message.arp;
        check_sender(call, header, arp)?;
        Resolution::parse(heard.message.data).map_err(|_| DropReason::SarpMalformed)?;
        let is_provable = self.ring.contains(arp.sender_ip) && call.clock().is_some();
        if arp.operation == Operation::Request {
            return self.signed_request(call, akds, heard, is_provable);
        }
        self.check_answer(call, heard)?;
        if is_provable { self.judge(call, akds, heard) } else { self.wait_for_key(call, akds, heard, false) }
    }

    /// Whether a signed reply answers a question of ours.
    fn check_answer(&self, call: &Call<'_>, heard: Heard<'_>) -> Result<(), DropReason> {
        self.check_target(call, &heard.message.arp)?;
        let asked = self.questions.nonce(call.now(), heard.sender());
        let is_tied = asked.is_none() || asked == heard.data().nonce;
        if is_tied { Ok(()) } else { Err(DropReason::SarpNonce) }
    }

    /// A signed request teaches the stack who asks, if his key is here already: nobody makes us
    /// look up a key by asking. Nor is anybody proved whom the stack heard of just now.
    fn signed_request(&mut self, call: &mut Call<'_>, akds: &mut Akds, heard: Heard<'_>, provable: bool) -> Judgement {
        let arp = &heard.message.arp;
        if !provable && call.is_own(arp.target_ip) && !call.is_near(heard.stamp()) {
            // Nothing is proved, but it costs little to ask: it may be our own clock that is wrong.
            akds.ask_for_time(call);
        }
        let teaches = provable && !self.ring.was_just_told(call.now(), arp.sender_ip, arp.sender_mac);
        match heard.purpose() {
            Purpose::Announcement if !provable => Err(DropReason::SarpUnasked),
            Purpose::Request if !teaches || !call.is_own(arp.target_ip) => Ok(Judged::Asks(heard.data().nonce)),
            _ => self.judge(call, akds, heard),
        }
    }

    fn judge(&mut self, call: &mut Call<'_>, akds: &mut Akds, heard: Heard<'_>) -> Judgement {
        self.check(call, akds, heard).map(Judged::Done).or_else(|reason| heard.unproved(reason))
    }

    /// Judges the stamp of a message and has its signature checked.
    ///
    /// # Errors
    /// Why it proves nothing.
    fn check(&mut self, call: &mut Call<'_>, akds: &mut Akds, heard: Heard<'_>) -> Verdict {
        let Heard { frame, retried, .. } = heard;
        let (now, sender, purpose) = (call.now(), heard.sender(), heard.purpose());
        let Some(entry) = self.ring.get(now, sender) else { return Ok(Fate::Dropped(DropReason::SarpNoKey)) };
        let (record, fetched_at) = (entry.record.clone(), entry.fetched_at);
        let last = match purpose {
            Purpose::Reply => entry.last_stamp,
            // Nobody asked for it: recorded before the key came, it could be sent again by anybody.
            Purpose::Request | Purpose::Announcement => entry.last_stamp.max(entry.known_since),
        };
        if now.since(fetched_at) >= limits::KEY_GOOD_FOR {
            // Later if not now: the key goes on being used.
            let _ = akds.ask_for_key(call, sender);
        }
        if !is_timely(call, akds, heard.stamp(), last) {
            if purpose == Purpose::Reply && !call.is_near(heard.stamp()) {
                self.questions.note_far(sender);
            }
            return Err(DropReason::SarpStale);
        }
        if !self.may_check(call, sender, purpose) {
            return Err(DropReason::SarpBudget);
        }
        let job = JobKind::Check { record: record.clone(), message: frame[HEADER_LEN..].to_vec() };
        Ok(call.start(job, Task::Check(Checking { frame: frame.to_vec(), retried, record })))
    }

    /// What nobody asked for has a budget of its own, so that it never costs an answer.
    fn may_check(&mut self, call: &Call<'_>, sender: Ipv4Addr, purpose: Purpose) -> bool {
        let now = call.now();
        let within = match purpose {
            Purpose::Reply => self.check_budget.take(now),
            Purpose::Request | Purpose::Announcement => {
                self.unasked_budget_per_sender.take(now, sender) && self.unasked_budget.take(now)
            }
        };
        within || call.core.settings.weaken.budgets
    }

    /// Puts a reply on the pending list and asks for its key.
    fn wait_for_key(
        &mut self,
        call: &mut Call<'_>,
        akds: &mut Akds,
        heard: Heard<'_>,
        failed_before: bool,
    ) -> Judgement {
        let (now, sender) = (call.now(), heard.sender());
        if self.ring.is_unknown(now, sender) {
            call.report_stranger(Event::NoKey { ip: sender });
            return Err(DropReason::SarpNoKey);
        }
        if !akds.ask_for_key(call, sender) {
            return Err(DropReason::SarpPendingFull);
        }
        let kept = self.pending.keep(Waiting { sender, arrived: now, failed_before, frame: heard.frame.to_vec() });
        akds.send_all_due(call);
        kept.map(|()| Judged::Done(Fate::Held)).map_err(|_| DropReason::SarpPendingFull)
    }

    /// Acts on a message whose signature is `good` or not.
    pub(crate) fn checked(
        &mut self,
        call: &mut Call<'_>,
        akds: &mut Akds,
        checking: &Checking,
        good: bool,
    ) -> Result<(Arp, Judged), DropReason> {
        let frame = &checking.frame;
        let message = Message::parse(&frame[HEADER_LEN..]).map_err(|_| DropReason::SarpMalformed)?;
        let heard = Heard { message: &message, frame, retried: checking.retried };
        let believed =
            if good { self.believe(call, akds, heard, checking) } else { self.disbelieve(call, akds, heard) };
        Ok((message.arp, believed?))
    }

    fn believe(&mut self, call: &mut Call<'_>, akds: &mut Akds, heard: Heard<'_>, checking: &Checking) -> Judgement {
        let (now, arp, purpose) = (call.now(), &heard.message.arp, heard.purpose());
        let entry = self.ring.get(now, arp.sender_ip).ok_or(DropReason::SarpNoKey)?;
        if !entry.record.same_key(&checking.record) {
            // The key was replaced while the old one was being tried.
            return self.judge(call, akds, Heard { retried: true, ..heard });
        }
        // Another message of the same sender may have overtaken this one. And our clock may have
        // gone back meanwhile: a stamp of the time before would keep this sender out until the
        // clock is there again.
        if !is_timely(call, akds, heard.stamp(), entry.last_stamp) {
            return Err(DropReason::SarpStale);
        }
        if !entry.record.admits(arp.sender_mac) && !call.core.settings.weaken.binding {
            return Err(refused(call, arp, DropReason::SarpMac));
        }
        entry.last_stamp = heard.stamp();
        if purpose == Purpose::Reply {
            self.questions.answered(arp.sender_ip);
        }
        let told = call.tell_stack(arp);
        if told != Fate::Forwarded {
            return Ok(Judged::Done(told));
        }
        self.ring.note_told(now, arp.sender_ip, arp.sender_mac);
        if let Some(outpost) = &mut call.core.outpost {
            outpost.acquaint(arp.sender_mac, arp.sender_ip);
        }
        Ok(match purpose {
            Purpose::Reply | Purpose::Announcement => Judged::Done(told),
            Purpose::Request => Judged::Asks(heard.data().nonce),
        })
    }

    /// The key may have changed: it is asked for again, once, and not too often (section 3.4).
    fn disbelieve(&mut self, call: &mut Call<'_>, akds: &mut Akds, heard: Heard<'_>) -> Judgement {
        let now = call.now();
        let fetched_at = self.ring.get(now, heard.sender()).map(|entry| entry.fetched_at);
        let is_fresh = fetched_at.is_some_and(|at| now.since(at) < limits::REFETCH_INTERVAL);
        match heard.purpose() {
            Purpose::Reply if !heard.retried && !is_fresh => self.wait_for_key(call, akds, heard, true),
            Purpose::Reply => Err(refused(call, &heard.message.arp, DropReason::SarpSignature)),
            _ => heard.unproved(DropReason::SarpSignature),
        }
    }

    /// Takes up a pending reply after its key or the time has come. The frame was held.
    pub(super) fn take_up(&mut self, call: &mut Call<'_>, akds: &mut Akds, waiting: &Waiting) {
        let frame = &waiting.frame;
        let message = Message::parse(frame.get(HEADER_LEN..).unwrap_or_default());
        let judged = message.map_err(|_| DropReason::SarpMalformed).and_then(|message| {
            let heard = Heard { message: &message, frame, retried: true };
            // By now the question may be closed, or be another one.
            self.check_answer(call, heard)?;
            self.check(call, akds, heard)
        });
        call.release(Side::WIRE, judged.unwrap_or_else(Fate::Dropped), frame);
    }
}

fn is_timely(call: &mut Call<'_>, akds: &mut Akds, stamp: Stamp, last: Stamp) -> bool {
    let in_window = call.is_near(stamp);
    if !in_window {
        // It may be our own clock that is wrong.
        akds.ask_for_time(call);
    }
    (in_window && stamp > last) || call.core.settings.weaken.stamps
}

/// Whether the sender of a message between hosts may be it.
fn check_sender(call: &mut Call<'_>, header: &Header, arp: &Arp) -> Result<(), DropReason> {
    if header.source != arp.sender_mac {
        return Err(DropReason::ArpSource);
    }
    if call.is_own(arp.sender_ip) {
        call.report_stranger(Event::AddressClaimed { ip: arp.sender_ip, by: arp.sender_mac });
        return Err(DropReason::ArpConflict);
    }
    Ok(())
}

/// Whether the sender is a known host; an error when somebody else uses a known host's address.
fn is_known(call: &Call<'_>, arp: &Arp) -> Result<bool, DropReason> {
    match call.core.settings.known(arp.sender_ip) {
        Some(known) if known.mac != arp.sender_mac => Err(DropReason::LegacyAddress),
        known => Ok(known.is_some()),
    }
}

fn refused(call: &mut Call<'_>, arp: &Arp, reason: DropReason) -> DropReason {
    call.report_stranger(Event::Refused { ip: arp.sender_ip, mac: arp.sender_mac, reason });
    reason
}
