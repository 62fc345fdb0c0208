//! One host's S-ARP: everything but ARP passes as it is; of ARP, only what is proved or listed.
//!
//! - `stack.rs`: what our own stack asks and announces.
//! - `wire.rs`: what others ask, answer and announce.
//! - `keys.rs`: asking distributors, and being one.
//! - `dhcp.rs`: DHCP, where this host is a client or a server of it.
//! - `report.rs`: what an operator may see.

mod dhcp;
mod keys;
mod report;
mod stack;
mod wire;

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use ::wire::arp::Arp;
use ::wire::ethernet::{Header, MIN_LEN};
use ::wire::sarp::data::{RESOLUTION_NONCE_LEN, Resolution};
use ::wire::sarp::{Kind, Message};
use ::wire::{EtherType, MacAddress};
use bump::{
    Batch, Bump, DropReason, Fate, Frame, Generator, Instant, Ledger, Mailbox, Meta, Now, Side, Sink, Ticket, Torn,
    sink, time,
};
use identity::Verified;
use identity::distributor::HostRecord;
use identity::signing::SigningKey;
use shield::sarp::Outpost;
use shield::{Apart, Bucket, PerSource};

use crate::akd::Akd;
use crate::clock::Clock;
use crate::enquiry::Enquiries;
use crate::event::Event;
use crate::job::{Completion, CompletionKind, Job, JobKind};
use crate::limits;
use crate::pending::Pending;
use crate::questions::Questions;
use crate::ring::Ring;
use crate::settings::{Settings, SharedKeys};

use self::dhcp::Asking;

pub use report::{KeyReport, LeaseReport, Report};

/// Later than any clock here will show.
const FOREVER: Instant = Instant::from_nanos(u64::MAX);

/// What a checked message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    /// It answers our question.
    Reply,
    /// It asks for an address of ours.
    Request,
    /// A peer says that its hardware address is another now.
    Announcement,
}

/// What a job under way belongs to. The frame has its fate when the job is done.
#[derive(Debug)]
enum Task {
    /// A message of our stack is being signed.
    Send { frame: Vec<u8>, to: MacAddress },
    /// Our answer to a request is being signed.
    Answer { frame: Vec<u8>, to: MacAddress },
    /// The signature of another host's message is being checked.
    Check(Checking),
    /// The signature of a distributor's answer is being checked.
    Learn { frame: Vec<u8>, from: Origin, distributor: usize },
    /// Our request to replace our key is being signed.
    Change { to: MacAddress },
    /// A DHCP message of our own is being proved.
    ProveDhcp { frame: Vec<u8> },
    /// The proof of a DHCP message is being checked.
    CheckDhcp { frame: Vec<u8> },
    /// Our answer as a distributor is being made.
    Serve { frame: Vec<u8>, from: Origin, to: MacAddress },
}

/// A message whose signature is being checked under the key of `record`.
#[derive(Debug)]
struct Checking {
    frame: Vec<u8>,
    purpose: Purpose,
    /// Whether it is judged for the second time, under a key that was just fetched.
    retried: bool,
    record: Verified<HostRecord>,
}

/// Where a message between a host and a distributor came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Wire,
    /// This machine is distributor and asking host; no frame of the wire is to be accounted for.
    Here,
}

/// One call into the bump: when, and where its results go.
struct Call<'a> {
    now: Now,
    sink: &'a mut dyn Sink,
}

/// S-ARP of one host.
#[derive(Debug)]
pub struct Host {
    settings: Arc<Settings>,
    /// What we sign with, and what we want to sign with as soon as a distributor has it.
    key: Arc<SigningKey>,
    new_key: Option<Arc<SigningKey>>,
    akd: Option<Akd>,
    dhcp_client: Option<::dhcp::Client>,
    dhcp_server: Option<::dhcp::Server>,
    /// What distributors are being asked about leases, by the number of the question.
    lease_questions: BTreeMap<u64, Asking>,
    last_lease_question: u64,
    ledger: Ledger,
    random: Generator,
    clock: Clock,
    ring: Ring,
    questions: Questions,
    pending: Pending,
    enquiries: Enquiries,
    /// The time is asked for again not before this.
    time_wanted_at: Instant,
    silence_reported: bool,
    answer_budget: Apart<Bucket>,
    answer_budget_per_source: Apart<PerSource<(MacAddress, Ipv4Addr)>>,
    check_budget: Bucket,
    unasked_budget: Bucket,
    unasked_budget_per_sender: PerSource<Ipv4Addr>,
    answer_check_budget: Bucket,
    key_request_budget: Bucket,
    fetch_ahead_budget: Bucket,
    tasks: BTreeMap<Ticket, Task>,
    next_ticket: u64,
    /// Something was signed since it was last looked whether signatures should be prepared.
    may_prepare: bool,
    signatures: u64,
    verifications: u64,
    jobs: Mailbox<(Ticket, Job)>,
    events: Mailbox<Event>,
    events_lost: u64,
    stranger_events: Bucket,
    outpost: Option<Box<dyn Outpost>>,
}

impl Host {
    /// A host that knows no key and no time. `akd` is there on a distributor's machine; `random` is for nonces, and for what a key
    /// of the paper profile prepares, which it mixes with the key.
    #[must_use]
    pub fn new(settings: Arc<Settings>, akd: Option<Akd>, random: Generator) -> Host {
        Host {
            key: Arc::clone(&settings.key),
            new_key: None,
            dhcp_client: settings.dhcp_client.clone().map(::dhcp::Client::new),
            dhcp_server: settings.dhcp_server.clone().map(::dhcp::Server::new),
            lease_questions: BTreeMap::new(),
            last_lease_question: 0,
            settings,
            akd,
            ledger: Ledger::new(),
            random,
            clock: Clock::default(),
            ring: Ring::default(),
            questions: Questions::default(),
            pending: Pending::default(),
            enquiries: Enquiries::default(),
            time_wanted_at: Instant::default(),
            silence_reported: false,
            answer_budget: Apart {
                proved: Bucket::new(limits::ANSWERS_PER_SECOND, limits::ANSWERS_PER_SECOND),
                strangers: Bucket::new(limits::STRANGERS_ANSWERED_PER_SECOND, limits::STRANGERS_ANSWERED_PER_SECOND),
            },
            answer_budget_per_source: Apart::new(|| {
                PerSource::new(limits::ANSWERS_PER_SOURCE_PER_SECOND, limits::SOURCES_MAX)
            }),
            check_budget: Bucket::new(limits::CHECKS_PER_SECOND, limits::CHECKS_PER_SECOND),
            unasked_budget: Bucket::new(limits::UNASKED_CHECKS_PER_SECOND, limits::UNASKED_CHECKS_PER_SECOND),
            unasked_budget_per_sender: PerSource::new(
                limits::UNASKED_CHECKS_PER_SENDER_PER_SECOND,
                limits::SOURCES_MAX,
            ),
            answer_check_budget: Bucket::new(limits::ANSWER_CHECKS_PER_SECOND, limits::ANSWER_CHECKS_PER_SECOND),
            key_request_budget: Bucket::new(limits::KEY_REQUESTS_PER_SECOND, limits::KEY_REQUESTS_PER_SECOND),
            fetch_ahead_budget: Bucket::new(limits::KEYS_AHEAD_PER_SECOND, limits::KEYS_AHEAD_PER_SECOND),
            tasks: BTreeMap::new(),
            next_ticket: 0,
            may_prepare: true,
            signatures: 0,
            verifications: 0,
            jobs: Mailbox::new(limits::JOBS_MAX),
            events: Mailbox::new(limits::EVENTS_MAX),
            events_lost: 0,
            stranger_events: Bucket::new(limits::STRANGER_EVENTS_PER_SECOND, limits::STRANGER_EVENTS_PER_SECOND),
            outpost: None,
        }
    }

    /// Tells `outpost`, which checks in front of this, of our addresses and of known hosts, and of all questions and proofs from now on.
    pub fn set_outpost(&mut self, mut outpost: Box<dyn Outpost>) {
        self.settings.addresses.iter().for_each(|ip| outpost.own(*ip, FOREVER));
        self.settings.known_hosts.iter().for_each(|known| outpost.acquaint(known.mac, known.ip));
        self.outpost = Some(outpost);
    }

    /// What this host shares with others is this from now on.
    pub fn share(&mut self, keys: &SharedKeys) {
        self.share_with_dhcp(&keys.site_keys);
        let request_keys = keys.request_keys.clone();
        self.settings = Arc::new(Settings { request_keys, ..Settings::clone(&self.settings) });
        if let (Some(akd), Some(masters)) = (&mut self.akd, &keys.masters) {
            akd.share(masters, self.outpost.as_deref_mut());
        }
    }

    /// Whether a distributor has told the time.
    #[must_use]
    pub fn has_clock(&self, now: Instant) -> bool {
        self.clock.read(now).is_some()
    }

    /// Keys in the ring, and requests to distributors that are open.
    #[must_use]
    pub fn keys_and_enquiries(&self) -> (usize, usize) {
        (self.ring.len(), self.enquiries.len())
    }

    /// News that were lost because nobody took them.
    #[must_use]
    pub fn events_lost(&self) -> u64 {
        self.events_lost
    }

    /// News that a stranger can cause with every frame; their counters tell how many there were.
    fn event_of_stranger(&mut self, now: Instant, event: Event) {
        if self.stranger_events.take(now) {
            self.event(event);
        }
    }

    fn event(&mut self, event: Event) {
        self.events_lost += u64::from(self.events.push(event).is_err());
    }

    /// Starts `job` for a frame, which is held until then.
    fn start(&mut self, job: JobKind, task: Task) -> Fate {
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        if self.tasks.len() >= limits::JOBS_MAX || self.jobs.push((ticket, Job(job))).is_err() {
            return Fate::Dropped(DropReason::ControlBusy);
        }
        self.tasks.insert(ticket, task);
        Fate::Held
    }

    /// Has a message of our own signed, stamped with the S-ARP clock.
    fn sign(&mut self, now: Instant, arp: Arp, nonce: Option<[u8; RESOLUTION_NONCE_LEN]>, task: Task) -> Fate {
        let Some(stamp) = self.clock.stamp(now) else { return Fate::Dropped(DropReason::SarpNoClock) };
        let data = Resolution { fraction: Some(stamp.fraction()), nonce }.emit();
        let message = Message { arp, kind: Kind::Resolution, seconds: stamp.seconds(), data: &data, signature: &[] };
        let job = JobKind::Sign { key: Arc::clone(&self.key), unsigned: message.signed_bytes() };
        self.start(job, task)
    }

    /// Sends an ARP message, padded with zeros so that no old bytes leak (the paper's footnote 2).
    fn send(&mut self, call: &mut Call<'_>, to: MacAddress, message: &[u8]) -> bool {
        let header = Header { destination: to, source: self.settings.mac, ethertype: EtherType::ARP };
        let parts = [&header.emit()[..], message];
        let sent = sink::copy_parts(call.sink, Side::WIRE, &parts, MIN_LEN, Meta::plain());
        self.ledger.emitted[Side::WIRE as usize] += u64::from(sent);
        sent
    }

    /// Tells the stack what is proved, as a plain ARP message to it alone.
    fn tell_stack(&mut self, call: &mut Call<'_>, arp: &Arp) -> bool {
        let header = Header { destination: self.settings.mac, source: arp.sender_mac, ethertype: EtherType::ARP };
        let parts = [&header.emit()[..], &arp.emit()];
        let told = sink::copy_parts(call.sink, Side::STACK, &parts, 0, Meta::plain());
        self.ledger.emitted[Side::STACK as usize] += u64::from(told);
        told
    }

    /// Whether this host may speak for `ip`: by its certificate, or by a lease that lasts.
    fn is_own(&self, now: Instant, ip: Ipv4Addr) -> bool {
        self.settings.is_own(ip) || self.dhcp_client.as_ref().is_some_and(|client| client.owns(now, ip))
    }

    /// Everything but ARP, and DHCP where it is guarded, passes.
    fn pass(&mut self, call: &mut Call<'_>, to: Side, frame: &Frame<'_>) -> Fate {
        if !sink::copy(call.sink, to, frame.bytes, frame.meta) {
            return Fate::Dropped(DropReason::PortFull);
        }
        self.ledger.emitted[to as usize] += 1;
        Fate::Forwarded
    }

    fn refused(&mut self, now: Instant, arp: &Arp, reason: DropReason) -> Fate {
        self.event_of_stranger(now, Event::Refused { ip: arp.sender_ip, mac: arp.sender_mac, reason });
        Fate::Dropped(reason)
    }

    /// The job that prepares signatures, when there is nothing else to do and the key wants it. It belongs to no frame, so
    /// nobody looks for its end.
    fn prepare_ahead(&mut self) -> Option<(Ticket, Job)> {
        if !std::mem::take(&mut self.may_prepare) || !self.key.wants_preparation() {
            return None;
        }
        self.next_ticket += 1;
        let job = JobKind::Prepare { key: Arc::clone(&self.key), random: self.random.bytes() };
        Some((Ticket(self.next_ticket), Job(job)))
    }

    /// Notes what a job has done. Preparation that came to nothing is tried again after the next signature, not at once.
    fn count(&mut self, completion: &CompletionKind) {
        match completion {
            CompletionKind::Signed(Some(_)) | CompletionKind::DhcpProved(Ok(_)) => {
                self.signatures += 1;
                self.may_prepare = true;
            }
            CompletionKind::Checked(_)
            | CompletionKind::Learnt(_)
            | CompletionKind::ReplyChecked(_)
            | CompletionKind::RequestChecked(_) => self.verifications += 1,
            CompletionKind::Prepared => self.may_prepare = true,
            CompletionKind::Signed(None) | CompletionKind::DhcpProved(Err(_)) | CompletionKind::Lost => {}
        }
    }

    fn settle_task(&mut self, call: &mut Call<'_>, task: Task, completion: CompletionKind) {
        let now = call.now.since_boot;
        match (task, completion) {
            (Task::Send { frame, to }, CompletionKind::Signed(message)) => {
                let fate = self.send_signed(call, to, message, Fate::Forwarded);
                self.ledger.release(now, Side::STACK, fate, &frame);
            }
            (Task::Answer { frame, to }, CompletionKind::Signed(message)) => {
                let fate = self.send_signed(call, to, message, Fate::Answered);
                self.ledger.release(now, Side::WIRE, fate, &frame);
            }
            (Task::Change { to }, CompletionKind::Signed(Some(message))) => {
                self.send_to_distributor(call, to, &message)
            }
            (Task::Check(checking), CompletionKind::Checked(good)) => self.checked(call, checking, good),
            (Task::Learn { frame, from, distributor }, CompletionKind::Learnt(statement)) => {
                let fate = self.learnt(call, statement, distributor);
                self.release_if_framed(now, from, fate, &frame);
            }
            (Task::Serve { frame, from, to }, CompletionKind::Signed(message)) => {
                let fate = self.served(call, from, to, message);
                self.release_if_framed(now, from, fate, &frame);
            }
            (Task::ProveDhcp { frame }, CompletionKind::DhcpProved(proved)) => self.dhcp_proved(call, &frame, proved),
            (Task::CheckDhcp { frame }, CompletionKind::ReplyChecked(claimed)) => {
                self.reply_checked(call, &frame, claimed);
            }
            (Task::CheckDhcp { frame }, CompletionKind::RequestChecked(checked)) => {
                self.request_checked(call, &frame, *checked);
            }
            (task, _) => self.lost(now, task),
        }
    }

    fn send_signed(&mut self, call: &mut Call<'_>, to: MacAddress, message: Option<Vec<u8>>, good: Fate) -> Fate {
        match message {
            Some(message) if self.send(call, to, &message) => good,
            Some(_) => Fate::Dropped(DropReason::PortFull),
            None => Fate::Dropped(DropReason::JobLost),
        }
    }

    fn release_if_framed(&mut self, now: Instant, from: Origin, fate: Fate, frame: &[u8]) {
        if from == Origin::Wire {
            self.ledger.release(now, Side::WIRE, fate, frame);
        }
    }

    fn lost(&mut self, now: Instant, task: Task) {
        let fate = Fate::Dropped(DropReason::JobLost);
        match task {
            Task::Send { frame, .. } | Task::ProveDhcp { frame } => self.ledger.release(now, Side::STACK, fate, &frame),
            // The next try begins anew.
            Task::Change { .. } => {}
            Task::Answer { frame, .. } | Task::CheckDhcp { frame } | Task::Check(Checking { frame, .. }) => {
                self.ledger.release(now, Side::WIRE, fate, &frame);
            }
            Task::Learn { frame, from, .. } | Task::Serve { frame, from, .. } => {
                self.release_if_framed(now, from, fate, &frame);
            }
        }
    }

    /// Drops one reply that has waited too long; false when there is none.
    fn expire_pending(&mut self, now: Instant) -> bool {
        let Some(waiting) = self.pending.expired(now) else { return false };
        let fate = Fate::Dropped(DropReason::SarpPendingExpired);
        self.ledger.release(now, Side::WIRE, fate, &waiting.frame);
        true
    }
}

/// Whether a VLAN tag stands in front. It can hide ARP that the kernel finds: behind a priority tag it learns like behind none.
fn is_tagged(header: &Header, frame: &Frame<'_>) -> bool {
    frame.meta.vlan.is_some() || header.ethertype.is_vlan()
}

impl Bump for Host {
    type Job = Job;
    type Completion = Completion;
    type Effect = std::convert::Infallible;
    type Event = Event;

    fn process(&mut self, now: Now, from: Side, batch: &mut dyn Batch, sink: &mut dyn Sink) {
        let mut call = Call { now, sink };
        while let Some(frame) = batch.next_frame() {
            self.ledger.receive(from);
            let fate = match from {
                Side::STACK => self.stack_frame(&mut call, &frame),
                Side::WIRE => self.wire_frame(&mut call, &frame),
            };
            self.ledger.settle(now.since_boot, from, fate, frame.bytes);
        }
    }

    fn complete(&mut self, now: Now, ticket: Ticket, completion: Completion, sink: &mut dyn Sink) {
        self.count(&completion.0);
        let Some(task) = self.tasks.remove(&ticket) else { return };
        self.settle_task(&mut Call { now, sink }, task, completion.0);
    }

    fn tick(&mut self, now: Now, budget: usize, sink: &mut dyn Sink) {
        let mut call = Call { now, sink };
        for _ in 0..budget {
            let now = now.since_boot;
            if !self.expire_pending(now) && !self.end_lease(now) && !self.ask_distributors(&mut call) {
                return;
            }
        }
    }

    /// What was taken note of a sender may not be all of it: its key is asked for anew.
    fn mend(&mut self, _now: Now, torn: Torn, _sink: &mut dyn Sink) {
        self.ring.forget_torn(torn);
    }

    fn deadline(&self) -> Option<Instant> {
        let waiting = time::earlier(self.pending.deadline(), self.enquiries.deadline());
        let lease = self.dhcp_client.as_ref().and_then(::dhcp::Client::deadline);
        let waiting = time::earlier(waiting, lease);
        time::earlier(waiting, Some(self.time_request_at()))
    }

    fn next_job(&mut self) -> Option<(Ticket, Job)> {
        self.jobs.pop().or_else(|| self.prepare_ahead())
    }

    fn next_effect(&mut self) -> Option<Self::Effect> {
        None
    }

    fn next_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    fn add_to_ledger(&self, total: &mut Ledger) {
        total.add(&self.ledger);
        if let Some(outpost) = &self.outpost {
            shield::sarp::enter(&**outpost, total);
        }
    }
}
