//! DHCP through S-DHCP (section 3.5.2): what passes, what is signed, checked, or asked of a distributor first.
//!
//! The rules are those of the `dhcp` room; this file moves messages and jobs.

use bump::{DropReason, Fate, Frame, Instant, Meta, Side, sink};
use dhcp::client::Outcome;
use dhcp::server::{Checked, Question, Reply, Step, Waiting};
use dhcp::{Claimed, Proving};
use identity::distributor::Statement;
use identity::site_key::SiteKey;
use identity::{Succession, Verified};
use wire::MacAddress;
use wire::dhcp::{Kind, Operation, View, recognise};
use wire::ethernet::Header;
use wire::sarp::Kind as SarpKind;
use wire::sarp::data::{self, LeaseAction};

use super::{Call, Host, Task};
use crate::clock::Stamp;
use crate::enquiry::{About, Due};
use crate::event::Event;
use crate::job::JobKind;
use crate::limits;

/// What is asked of a distributor about a DHCP client.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) question: Question,
    held: Held,
}

/// What waits for the answer of a distributor.
#[derive(Debug)]
enum Held {
    Nothing,
    /// The client's message, which is in the question.
    Request,
    /// The client's message, until it is known whose key the client's is.
    Key(Box<Waiting>),
    /// The ACK of our server program (the paper's order).
    Ack(Vec<u8>),
}

impl Host {
    /// DHCP messages have their tags under these keys of the site from now on.
    pub(super) fn share_with_dhcp(&mut self, site_keys: &Succession<SiteKey>) {
        self.dhcp_client.iter_mut().for_each(|client| client.share(site_keys.clone()));
        self.dhcp_server.iter_mut().for_each(|server| server.share(site_keys.clone()));
    }

    /// Whether this host looks at DHCP at all; otherwise it passes like everything but ARP.
    fn speaks_dhcp(&self) -> bool {
        self.dhcp_client.is_some() || self.dhcp_server.is_some()
    }

    /// The fate of a frame that may be DHCP; `None` if it is none of it.
    pub(super) fn dhcp_frame(&mut self, call: &mut Call<'_>, from: Side, frame: &Frame<'_>) -> Option<Fate> {
        if !self.speaks_dhcp() {
            return None;
        }
        let judged = match recognise(frame.bytes) {
            Kind::Other => return None,
            Kind::Hidden => Err(DropReason::DhcpHidden),
            // No program sends several messages as one; what is cut later would pass unseen.
            Kind::Dhcp if frame.meta.gso.is_some() => Err(DropReason::DhcpMalformed),
            Kind::Dhcp => match View::new(frame.bytes) {
                Ok(message) => Ok(message.operation()),
                Err(_) => Err(DropReason::DhcpMalformed),
            },
        };
        let result = judged.and_then(|operation| match (from, operation) {
            (Side::STACK, Operation::Request) => self.own_request(call.now.since_boot, frame.bytes),
            (Side::STACK, Operation::Reply) => self.own_reply(call, frame.bytes),
            (Side::WIRE, Operation::Request) => self.others_request(call, frame.bytes),
            (Side::WIRE, Operation::Reply) if self.settings.weaken.dhcp_proof => Ok(self.hand_over(call, frame.bytes)),
            (Side::WIRE, Operation::Reply) => self.others_reply(call.now.since_boot, frame.bytes),
        });
        Some(result.unwrap_or_else(|reason| self.refuse_dhcp(call.now.since_boot, from, frame.bytes, reason)))
    }

    fn stamp_bits(&mut self, now: Instant) -> Option<u64> {
        self.clock.stamp(now).map(Stamp::to_bits)
    }

    fn clock_bits(&self, now: Instant) -> Option<u64> {
        self.clock.read(now).map(Stamp::to_bits)
    }

    fn own_request(&mut self, now: Instant, frame: &[u8]) -> Result<Fate, DropReason> {
        // A server tells nobody that it takes a message for a recording; if our clock is the one that is wrong, the program's next
        // try has the right time.
        self.ask_for_time(now);
        let (stamp, nonce) = (self.stamp_bits(now), self.random.bytes());
        let client = self.dhcp_client.as_mut().ok_or(DropReason::DhcpNotClient)?;
        let proving = client.outgoing(now, stamp, nonce, frame)?;
        Ok(self.prove(proving, frame))
    }

    fn own_reply(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Result<Fate, DropReason> {
        let now = call.now.since_boot;
        let stamp = self.stamp_bits(now);
        let server = self.dhcp_server.as_mut().ok_or(DropReason::DhcpNotServer)?;
        let (proving, question) = match server.outgoing(now, stamp, frame)? {
            Reply::Sign(proving, question) => (proving, question),
            Reply::Hold(question) => return Ok(self.ask_and_hold(call, question, Held::Ack(frame.to_vec()))),
        };
        if let Some(question) = question {
            self.tell_distributor(call, question);
        }
        Ok(self.prove(*proving, frame))
    }

    fn prove(&mut self, proving: Proving, frame: &[u8]) -> Fate {
        let job = JobKind::ProveDhcp { key: std::sync::Arc::clone(&self.key), proving: Box::new(proving) };
        self.start(job, Task::ProveDhcp { frame: frame.to_vec() })
    }

    fn others_request(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Result<Fate, DropReason> {
        let now = call.now.since_boot;
        let stamp = self.clock_bits(now);
        let server = self.dhcp_server.as_mut().ok_or(DropReason::DhcpNotServer)?;
        let step = server.incoming(now, stamp, frame)?;
        Ok(self.take_step(call, step))
    }

    fn others_reply(&mut self, now: Instant, frame: &[u8]) -> Result<Fate, DropReason> {
        let stamp = self.clock_bits(now);
        let client = self.dhcp_client.as_mut().ok_or(DropReason::DhcpNotClient)?;
        let checking = client.incoming(now, stamp, frame)?;
        let task = Task::CheckDhcp { frame: frame.to_vec() };
        Ok(self.start(JobKind::CheckReply(Box::new(checking)), task))
    }

    /// Goes on with a client's message; [`Fate::Held`] until its last step.
    fn take_step(&mut self, call: &mut Call<'_>, step: Step) -> Fate {
        match step {
            Step::Check(checking) => {
                let task = Task::CheckDhcp { frame: checking.claimed.frame.clone() };
                self.start(JobKind::CheckRequest(checking), task)
            }
            Step::AskWhose(waiting) => self.ask_and_hold(call, waiting.question(), Held::Key(waiting)),
            Step::Ask(question) => self.ask_and_hold(call, *question, Held::Request),
            Step::Deliver(bare, question) => {
                if let Some(question) = question {
                    self.tell_distributor(call, *question);
                }
                self.hand_over(call, &bare)
            }
        }
    }

    fn hand_over(&mut self, call: &mut Call<'_>, bare: &[u8]) -> Fate {
        if !sink::copy(call.sink, Side::STACK, bare, Meta::plain()) {
            return Fate::Dropped(DropReason::PortFull);
        }
        self.ledger.emitted[Side::STACK as usize] += 1;
        Fate::Forwarded
    }

    /// A message of our own DHCP program is signed. The frame was held.
    pub(super) fn dhcp_proved(&mut self, call: &mut Call<'_>, frame: &[u8], proved: Result<Vec<u8>, DropReason>) {
        let fate = match proved {
            Ok(proved) if sink::copy(call.sink, Side::WIRE, &proved, Meta::plain()) => {
                self.ledger.emitted[Side::WIRE as usize] += 1;
                Fate::Forwarded
            }
            Ok(_) => Fate::Dropped(DropReason::PortFull),
            Err(reason) => Fate::Dropped(reason),
        };
        self.ledger.release(call.now.since_boot, Side::STACK, fate, frame);
    }

    /// The proof of a DHCP server's reply was checked. The frame was held.
    pub(super) fn reply_checked(&mut self, call: &mut Call<'_>, frame: &[u8], claimed: Option<Box<Claimed>>) {
        let result = match claimed {
            None => Err(DropReason::DhcpSignature),
            Some(claimed) => self.reply_verified(call, &claimed),
        };
        self.release_dhcp(call, frame, result);
    }

    /// The signature of a client's message was checked. The frame was held.
    pub(super) fn request_checked(&mut self, call: &mut Call<'_>, frame: &[u8], checked: Checked) {
        let now = call.now.since_boot;
        let stamp = self.clock_bits(now);
        let result = match &mut self.dhcp_server {
            Some(server) => server.checked(now, stamp, checked).map(|step| self.take_step(call, step)),
            None => Err(DropReason::DhcpNotServer),
        };
        self.release_dhcp(call, frame, result);
    }

    /// A frame of the wire that was held has its fate, or is held on.
    fn release_dhcp(&mut self, call: &mut Call<'_>, frame: &[u8], result: Result<Fate, DropReason>) {
        let now = call.now.since_boot;
        let fate = result.unwrap_or_else(|reason| self.refuse_dhcp(now, Side::WIRE, frame, reason));
        if fate != Fate::Held {
            self.ledger.release(now, Side::WIRE, fate, frame);
        }
    }

    fn reply_verified(&mut self, call: &mut Call<'_>, claimed: &Claimed) -> Result<Fate, DropReason> {
        let client = self.dhcp_client.as_mut().ok_or(DropReason::DhcpNotClient)?;
        let (bare, outcome) = client.verified(call.now.since_boot, claimed)?;
        match outcome {
            Outcome::Same => {}
            Outcome::Gained(ip) => self.event(Event::AddressLeased { ip }),
            Outcome::Lost(ip) => self.event(Event::LeaseLost { ip }),
        }
        self.tell_leases(call.now.since_boot);
        Ok(self.hand_over(call, &bare))
    }

    /// News of a message that deceives, and its end.
    fn refuse_dhcp(&mut self, now: Instant, from: Side, frame: &[u8], reason: DropReason) -> Fate {
        if reason == DropReason::DhcpStale {
            // It may be our own clock that is wrong.
            self.ask_for_time(now);
        }
        let quiet = matches!(
            reason,
            DropReason::NotForUs | DropReason::DhcpNotServer | DropReason::DhcpNotClient | DropReason::SarpNoClock
        );
        if !quiet && let Ok((header, _)) = Header::parse(frame) {
            let is_reply = View::new(frame).is_ok_and(|message| message.operation() == Operation::Reply);
            let mac = header.source;
            let event = match (from, is_reply) {
                (Side::WIRE, true) => Event::DhcpServerRefused { mac, reason },
                _ => Event::DhcpRefused { mac, reason },
            };
            self.event_of_stranger(now, event);
        }
        Fate::Dropped(reason)
    }

    /// Tells a distributor what happened to a lease; nobody waits for the answer.
    fn tell_distributor(&mut self, call: &mut Call<'_>, question: Question) {
        if !self.ask_about_lease(call, question.clone(), Held::Nothing) {
            self.event(Event::LeaseUntold { ip: question.address });
        }
    }

    /// Asks a distributor, and holds what waits for its answer.
    fn ask_and_hold(&mut self, call: &mut Call<'_>, question: Question, held: Held) -> Fate {
        if self.ask_about_lease(call, question, held) { Fate::Held } else { Fate::Dropped(DropReason::ControlBusy) }
    }

    fn ask_about_lease(&mut self, call: &mut Call<'_>, question: Question, held: Held) -> bool {
        self.last_lease_question += 1;
        let about = About::Lease(self.last_lease_question);
        if !self.open_enquiry(call.now.since_boot, about) {
            return false;
        }
        self.lease_questions.insert(self.last_lease_question, Asking { question, held });
        self.send_all_due(call);
        true
    }

    /// Sends one try of a question about a lease.
    pub(super) fn send_lease_question(&mut self, call: &mut Call<'_>, due: Due, number: u64, to: MacAddress) {
        let Some(Asking { question, .. }) = self.lease_questions.get(&number) else { return };
        let claim = question.claimed.as_ref().map(|claimed| (claimed.claim, claimed.signature.as_slice()));
        let host = self.settings.host();
        let data = data::Lease {
            question: data::Question { host, nonce: due.nonce },
            action: question.action,
            address: question.address,
            seconds: question.lease_s,
            host: question.host,
            claim,
        }
        .emit();
        let arp = self.arp_to(call.now.since_boot, to, question.address);
        self.send_tagged(call, due, SarpKind::Lease, arp, &data);
    }

    /// A distributor has answered a question about a lease.
    pub(super) fn lease_answered(&mut self, call: &mut Call<'_>, number: u64, statement: &Verified<Statement>) {
        let Some(Asking { question, held }) = self.lease_questions.remove(&number) else { return };
        let now = call.now.since_boot;
        let stamp = self.clock_bits(now);
        let Some(server) = &mut self.dhcp_server else { return };
        let Some(record) = statement.record() else {
            server.refused(&question);
            let (ip, host, why) = (question.address, question.host, statement.refusal());
            self.event_of_stranger(now, Event::LeaseRefused { ip, host, why });
            return self.end_asking(now, question, held, Fate::Dropped(DropReason::DhcpRefused));
        };
        match (held, &question.claimed) {
            (Held::Key(waiting), _) => {
                let frame = waiting.claimed.frame.clone();
                let step = server.told(now, stamp, *waiting, record);
                let result = step.map(|step| self.take_step(call, step));
                self.release_dhcp(call, &frame, result);
            }
            (Held::Ack(ack), Some(claimed)) => {
                server.agreed_to_ack(now, &claimed.claim, record);
                let fate = self.own_reply(call, &ack).unwrap_or_else(Fate::Dropped);
                self.end_asking(now, question, Held::Ack(ack), fate);
            }
            (held, Some(claimed)) => {
                let step = server.agreed(now, stamp, claimed, record);
                let fate = step.map(|step| self.take_step(call, step)).unwrap_or_else(Fate::Dropped);
                self.end_asking(now, question, held, fate);
            }
            (_, None) => {}
        }
    }

    /// No distributor has answered. What a client waits for ends here, or goes on without; what the
    /// distributor must know is told again.
    pub(super) fn lease_given_up(&mut self, call: &mut Call<'_>, number: u64) {
        let Some(Asking { question, held }) = self.lease_questions.remove(&number) else { return };
        let now = call.now.since_boot;
        if let Held::Key(waiting) = held {
            return self.goes_on_untold(call, *waiting);
        }
        let lasts = |server: &dhcp::Server| server.is_leased(now, question.address, question.host);
        let must_be_told = match question.action {
            LeaseAction::Extend => self.dhcp_server.as_ref().is_some_and(lasts),
            LeaseAction::Check | LeaseAction::Bind | LeaseAction::Unbind => false,
        };
        if must_be_told && self.ask_again(now, About::Lease(number)) {
            self.lease_questions.insert(number, Asking { question, held });
            return;
        }
        if must_be_told {
            self.event(Event::LeaseUntold { ip: question.address });
        }
        self.end_asking(now, question, held, Fate::Dropped(DropReason::DhcpNoAnswer));
    }

    /// No distributor says whose key a client's is.
    fn goes_on_untold(&mut self, call: &mut Call<'_>, waiting: Waiting) {
        let now = call.now.since_boot;
        let (stamp, frame) = (self.clock_bits(now), waiting.claimed.frame.clone());
        let Some(server) = &mut self.dhcp_server else { return };
        let result = server.not_told(now, stamp, waiting).map(|step| self.take_step(call, step));
        self.release_dhcp(call, &frame, result);
    }

    fn end_asking(&mut self, now: Instant, question: Question, held: Held, fate: Fate) {
        match (held, question.claimed) {
            // It waits for another job now.
            _ if fate == Fate::Held => {}
            (Held::Request, Some(claimed)) => self.ledger.release(now, Side::WIRE, fate, &claimed.frame),
            (Held::Key(waiting), _) => self.ledger.release(now, Side::WIRE, fate, &waiting.claimed.frame),
            (Held::Ack(frame), _) => self.ledger.release(now, Side::STACK, fate, &frame),
            _ => {}
        }
    }

    /// Tells who checks in front of us for which addresses we speak, and until when.
    fn tell_leases(&mut self, now: Instant) {
        let (Some(outpost), Some(client)) = (&mut self.outpost, &self.dhcp_client) else { return };
        for lease in client.leases(now) {
            outpost.own(lease.address, lease.until.unwrap_or(super::FOREVER));
        }
    }

    /// Ends one lease of this host whose time is over; false when there is none.
    pub(super) fn end_lease(&mut self, now: Instant) -> bool {
        let Some(lease) = self.dhcp_client.as_mut().and_then(|client| client.ended(now)) else { return false };
        self.event(Event::LeaseLost { ip: lease.address });
        true
    }
}

const _: () = assert!(
    dhcp::limits::QUESTIONS_PER_SECOND + dhcp::limits::UNPROVED_QUESTIONS_PER_SECOND
        <= limits::LEASE_QUESTIONS_PER_HOST_PER_SECOND,
    "a distributor answers what one DHCP server asks"
);
const _: () = assert!(
    dhcp::limits::UNPROVED_QUESTIONS_PER_SECOND as u128
        * limits::ENQUIRY_REPEAT.as_millis()
        * limits::ENQUIRY_TRIES as u128
        <= limits::LEASE_ENQUIRIES_MAX as u128 * 1000 * 2 / 3,
    "while no distributor answers, questions that anybody may cause leave places for others"
);
