//! DHCP through S-DHCP (section 3.5.2): what passes, what is signed, checked, or asked of a distributor first.
//!
//! The rules are those of the `dhcp` room; this file moves messages and jobs.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use bump::{DropReason, Fate, Frame, Instant, Meta, Side};
use dhcp::client::Outcome;
use dhcp::server::{Checked, Question, Reply, Step, Waiting};
use dhcp::{Claimed, Proving};
use identity::distributor::Statement;
use identity::site_key::SiteKey;
use identity::{Succession, Verified};
use wire::dhcp::{Kind, Operation, View, recognise};
use wire::ethernet::Header;
use wire::sarp::data::LeaseAction;

use super::LeaseReport;
use super::akds::{Akds, ClockStep};
use super::core::{Call, Core, Verdict};
use super::work::Task;
use crate::clock::Stamp;
use crate::event::Event;
use crate::job::JobKind;
use crate::limits;
use crate::settings::Settings;

/// What waits for the answer of a distributor.
#[derive(Debug)]
enum Held {
    /// The client's message, which is in the question.
    Request,
    /// The client's message, until it is known whose key the client's is.
    Key(Box<Waiting>),
    /// The ACK of our server program (the paper's order).
    Ack(Vec<u8>),
}

/// DHCP of this host.
#[derive(Debug)]
pub(super) struct Dhcp {
    client: Option<dhcp::Client>,
    server: Option<dhcp::Server>,
    /// What waits for a distributor, by the number of the question.
    held: BTreeMap<u64, Held>,
}

impl Dhcp {
    pub(super) fn new(settings: &Settings) -> Dhcp {
        Dhcp {
            client: settings.dhcp_client.clone().map(dhcp::Client::new),
            server: settings.dhcp_server.clone().map(dhcp::Server::new),
            held: BTreeMap::new(),
        }
    }

    /// The keys of the site are these from now on.
    pub(super) fn share(&mut self, site_keys: &Succession<SiteKey>) {
        self.client.iter_mut().for_each(|client| client.share(site_keys.clone()));
        self.server.iter_mut().for_each(|server| server.share(site_keys.clone()));
    }

    /// Whether this host looks at DHCP at all; otherwise it passes like everything but ARP.
    fn speaks_dhcp(&self) -> bool {
        self.client.is_some() || self.server.is_some()
    }

    /// The fate of a frame that may be DHCP; `None` if it is none of it.
    pub(super) fn frame(
        &mut self,
        call: &mut Call<'_>,
        akds: &mut Akds,
        from: Side,
        frame: &Frame<'_>,
    ) -> Option<Fate> {
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
            (Side::STACK, Operation::Request) => self.own_request(call, akds, frame.bytes),
            (Side::STACK, Operation::Reply) => self.own_reply(call, akds, frame.bytes),
            (Side::WIRE, Operation::Request) => self.others_request(call, akds, frame.bytes),
            (Side::WIRE, Operation::Reply) if call.core.settings.weaken.dhcp_proof => {
                Ok(call.pass(Side::STACK, frame.bytes, Meta::plain()))
            }
            (Side::WIRE, Operation::Reply) => self.others_reply(call, frame.bytes),
        });
        Some(result.unwrap_or_else(|reason| refuse(call, akds, from, frame.bytes, reason)))
    }

    fn own_request(&mut self, call: &mut Call<'_>, akds: &mut Akds, frame: &[u8]) -> Verdict {
        // A server tells nobody that it takes a message for a recording; if our clock is the one that is wrong, the program's next
        // try has the right time.
        akds.ask_for_time(call);
        let (now, stamp, nonce) = (call.now(), call.stamp().map(Stamp::to_bits), call.core.random.bytes());
        let client = self.client.as_mut().ok_or(DropReason::DhcpNotClient)?;
        let proving = client.outgoing(now, stamp, nonce, frame);
        // What the program gives back is ours no longer.
        call.core.leased = client.leases(now);
        Ok(prove(call, proving?, frame))
    }

    fn own_reply(&mut self, call: &mut Call<'_>, akds: &mut Akds, frame: &[u8]) -> Verdict {
        let (now, stamp) = (call.now(), call.stamp().map(Stamp::to_bits));
        let server = self.server.as_mut().ok_or(DropReason::DhcpNotServer)?;
        let (proving, question) = match server.outgoing(now, stamp, frame)? {
            Reply::Sign(proving, question) => (proving, question),
            Reply::Hold(question) => {
                return Ok(self.ask_and_hold(call, akds, question, Held::Ack(frame.to_vec())));
            }
        };
        if let Some(question) = question {
            tell(call, akds, question);
        }
        Ok(prove(call, *proving, frame))
    }

    fn others_request(&mut self, call: &mut Call<'_>, akds: &mut Akds, frame: &[u8]) -> Verdict {
        let (now, stamp) = (call.now(), call.clock().map(Stamp::to_bits));
        let server = self.server.as_mut().ok_or(DropReason::DhcpNotServer)?;
        let step = server.incoming(now, stamp, frame)?;
        Ok(self.take_step(call, akds, step))
    }

    fn others_reply(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Verdict {
        let (now, stamp) = (call.now(), call.clock().map(Stamp::to_bits));
        let client = self.client.as_mut().ok_or(DropReason::DhcpNotClient)?;
        let checking = client.incoming(now, stamp, frame)?;
        let task = Task::CheckDhcp { frame: frame.to_vec() };
        Ok(call.start(JobKind::CheckReply(Box::new(checking)), task))
    }

    /// Goes on with a client's message; [`Fate::Held`] until its last step.
    fn take_step(&mut self, call: &mut Call<'_>, akds: &mut Akds, step: Step) -> Fate {
        match step {
            Step::Check(checking) => {
                let task = Task::CheckDhcp { frame: checking.claimed.frame.clone() };
                call.start(JobKind::CheckRequest(checking), task)
            }
            Step::AskWhose(waiting) => self.ask_and_hold(call, akds, waiting.question(), Held::Key(waiting)),
            Step::Ask(question) => self.ask_and_hold(call, akds, *question, Held::Request),
            Step::Deliver(bare, question) => {
                if let Some(question) = question {
                    tell(call, akds, *question);
                }
                call.pass(Side::STACK, &bare, Meta::plain())
            }
        }
    }

    /// The proof of a DHCP server's reply was checked. The frame was held.
    pub(super) fn reply_checked(
        &mut self,
        call: &mut Call<'_>,
        akds: &mut Akds,
        frame: &[u8],
        claimed: Option<Box<Claimed>>,
    ) {
        let claimed = claimed.ok_or(DropReason::DhcpSignature);
        let result = claimed.and_then(|claimed| self.reply_verified(call, &claimed));
        release(call, akds, frame, result);
    }

    /// The signature of a client's message was checked. The frame was held.
    pub(super) fn request_checked(&mut self, call: &mut Call<'_>, akds: &mut Akds, frame: &[u8], checked: Checked) {
        let (now, stamp) = (call.now(), call.clock().map(Stamp::to_bits));
        let result = match &mut self.server {
            Some(server) => server.checked(now, stamp, checked).map(|step| self.take_step(call, akds, step)),
            None => Err(DropReason::DhcpNotServer),
        };
        release(call, akds, frame, result);
    }

    fn reply_verified(&mut self, call: &mut Call<'_>, claimed: &Claimed) -> Verdict {
        let client = self.client.as_mut().ok_or(DropReason::DhcpNotClient)?;
        let (bare, outcome) = client.verified(call.now(), claimed)?;
        match outcome {
            Outcome::Same => {}
            Outcome::Gained(ip) => call.report(Event::AddressLeased { ip }),
            Outcome::Lost(ip) => call.report(Event::LeaseLost { ip }),
        }
        call.core.leased = client.leases(call.now());
        call.core.tell_leases();
        Ok(call.pass(Side::STACK, &bare, Meta::plain()))
    }

    /// Asks a distributor, and holds what waits for its answer.
    fn ask_and_hold(&mut self, call: &mut Call<'_>, akds: &mut Akds, question: Question, held: Held) -> Fate {
        let Some(number) = akds.ask_about_lease(call, question) else {
            return Fate::Dropped(DropReason::ControlBusy);
        };
        self.held.insert(number, held);
        Fate::Held
    }

    /// A distributor has answered a question about a lease.
    pub(super) fn answered(
        &mut self,
        call: &mut Call<'_>,
        akds: &mut Akds,
        (number, question): (u64, Question),
        statement: &Verified<Statement>,
    ) {
        let (now, stamp) = (call.now(), call.clock().map(Stamp::to_bits));
        let held = self.held.remove(&number);
        let Some(server) = &mut self.server else { return };
        let Some(record) = statement.record() else {
            server.refused(&question);
            let (ip, host, why) = (question.address, question.host, statement.refusal());
            call.report_stranger(Event::LeaseRefused { ip, host, why });
            return end(call, question, held, Fate::Dropped(DropReason::DhcpRefused));
        };
        match (held, &question.claimed) {
            (Some(Held::Key(waiting)), _) => {
                let frame = waiting.claimed.frame.clone();
                let step = server.told(now, stamp, *waiting, record);
                let result = step.map(|step| self.take_step(call, akds, step));
                release(call, akds, &frame, result);
            }
            (Some(Held::Ack(ack)), Some(claimed)) => {
                server.agreed_to_ack(now, &claimed.claim, record);
                let fate = self.own_reply(call, akds, &ack).unwrap_or_else(Fate::Dropped);
                call.release(Side::STACK, fate, &ack);
            }
            (held, Some(claimed)) => {
                let step = server.agreed(now, stamp, claimed, record);
                let fate = step.map(|step| self.take_step(call, akds, step)).unwrap_or_else(Fate::Dropped);
                end(call, question, held, fate);
            }
            (_, None) => {}
        }
    }

    /// No distributor has answered. What a client waits for ends here, or goes on without; what the
    /// distributor must know is told again.
    pub(super) fn given_up(&mut self, call: &mut Call<'_>, akds: &mut Akds, number: u64, mut question: Question) {
        let (now, ip) = (call.now(), question.address);
        let lasts = |server: &dhcp::Server| server.is_leased(now, ip, question.host);
        if question.action == LeaseAction::Extend && self.server.as_ref().is_some_and(lasts) {
            let Some(back) = akds.ask_about_lease_again(call, number, question) else { return };
            question = back;
            call.report(Event::LeaseUntold { ip });
        }
        match self.held.remove(&number) {
            Some(Held::Key(waiting)) => self.goes_on_untold(call, akds, *waiting),
            held => end(call, question, held, Fate::Dropped(DropReason::DhcpNoAnswer)),
        }
    }

    /// No distributor says whose key a client's is.
    fn goes_on_untold(&mut self, call: &mut Call<'_>, akds: &mut Akds, waiting: Waiting) {
        let (now, stamp) = (call.now(), call.clock().map(Stamp::to_bits));
        let Some(server) = &mut self.server else { return };
        let frame = waiting.claimed.frame.clone();
        let result = server.not_told(now, stamp, waiting).map(|step| self.take_step(call, akds, step));
        release(call, akds, &frame, result);
    }

    /// The S-ARP clock was set, or has moved.
    pub(super) fn clock_moved(&mut self, step: ClockStep) {
        if let Some(server) = &mut self.server {
            server.begin_stamps(step.to.to_bits());
        }
    }

    /// What an earlier run of the program had by lease: address and end, before the first frame.
    pub(super) fn resume(&mut self, core: &mut Core, now: Instant, leases: &[(Ipv4Addr, Option<Instant>)]) {
        let Some(client) = &mut self.client else { return };
        leases.iter().for_each(|(address, until)| client.resume(now, *address, *until));
        core.leased = client.leases(now);
        core.tell_leases();
    }

    /// Ends one lease of this host whose time is over; false when there is none.
    pub(super) fn expire(&mut self, call: &mut Call<'_>) -> bool {
        let Some(client) = &mut self.client else { return false };
        let Some(lease) = client.ended(call.now()) else { return false };
        call.core.leased = client.leases(call.now());
        call.report(Event::LeaseLost { ip: lease.address });
        true
    }

    /// A call was not finished: what the others take for our leases may be of before.
    pub(super) fn mend(&mut self, call: &mut Call<'_>) {
        if let Some(client) = &self.client {
            call.core.leased = client.leases(call.now());
        }
    }

    /// When the next lease of this host ends.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.client.as_ref()?.deadline()
    }

    /// The leases of this host, then those that it gave.
    pub(super) fn report(&self, now: Instant) -> Vec<LeaseReport> {
        let report = |lease: dhcp::Lease, given: bool| LeaseReport {
            ip: lease.address,
            host: lease.host,
            remaining: lease.until.map(|until| until.since(now)),
            given,
        };
        let own = self.client.iter().flat_map(|client| client.leases(now)).map(|lease| report(lease, false));
        let given = self.server.iter().flat_map(|server| server.leases(now)).map(|lease| report(lease, true));
        own.chain(given).collect()
    }
}

fn prove(call: &mut Call<'_>, proving: Proving, frame: &[u8]) -> Fate {
    let job = JobKind::ProveDhcp { key: Arc::clone(&call.core.key), proving: Box::new(proving) };
    call.start(job, Task::ProveDhcp { frame: frame.to_vec() })
}

/// A frame of the wire that was held has its fate, or is held on.
fn release(call: &mut Call<'_>, akds: &mut Akds, frame: &[u8], result: Verdict) {
    let fate = result.unwrap_or_else(|reason| refuse(call, akds, Side::WIRE, frame, reason));
    call.release(Side::WIRE, fate, frame);
}

/// News of a message that deceives, and its end.
fn refuse(call: &mut Call<'_>, akds: &mut Akds, from: Side, frame: &[u8], reason: DropReason) -> Fate {
    if reason == DropReason::DhcpStale {
        // It may be our own clock that is wrong.
        akds.ask_for_time(call);
    }
    let quiet = matches!(
        reason,
        DropReason::NotForUs | DropReason::DhcpNotServer | DropReason::DhcpNotClient | DropReason::SarpNoClock
    );
    if !quiet && let Ok((header, _)) = Header::parse(frame) {
        let is_reply = View::new(frame).is_ok_and(|message| message.operation() == Operation::Reply);
        let mac = header.source;
        call.report_stranger(match (from, is_reply) {
            (Side::WIRE, true) => Event::DhcpServerRefused { mac, reason },
            _ => Event::DhcpRefused { mac, reason },
        });
    }
    Fate::Dropped(reason)
}

/// Tells a distributor what happened to a lease; nobody waits for the answer.
fn tell(call: &mut Call<'_>, akds: &mut Akds, question: Question) {
    let ip = question.address;
    if akds.ask_about_lease(call, question).is_none() {
        call.report(Event::LeaseUntold { ip });
    }
}

/// The end of what was held for a distributor's answer, unless it waits for another job now.
fn end(call: &mut Call<'_>, question: Question, held: Option<Held>, fate: Fate) {
    match (held, question.claimed) {
        (Some(Held::Request), Some(claimed)) => call.release(Side::WIRE, fate, &claimed.frame),
        (Some(Held::Key(waiting)), _) => call.release(Side::WIRE, fate, &waiting.claimed.frame),
        (Some(Held::Ack(frame)), _) => call.release(Side::STACK, fate, &frame),
        (Some(Held::Request) | None, _) => {}
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
