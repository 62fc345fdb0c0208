//! Asking distributors for keys, the time, leases, and to take a new key of ours, and being one (sections 3.4, 3.5.1).
//!
//! What an answer changes elsewhere goes back to the caller as [`Told`].

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use bump::{DropReason, Fate, Instant, Side, time};
use dhcp::server::Question as LeaseQuestion;
use identity::distributor::{RequestKey, RequestMaster, Statement};
use identity::signing::SigningKey;
use identity::{Succession, Verified};
use shield::Bucket;
use shield::sarp::Outpost;
use wire::MacAddress;
use wire::arp::Arp;
use wire::sarp::data::{Answer, Lease, Question};
use wire::sarp::{Kind, Message, seal};

use super::core::{Call, Core, Verdict};
use super::work::Task;
use crate::akd::Akd;
use crate::clock::{Clock, Stamp};
use crate::enquiry::{About, Due, Enquiries};
use crate::event::Event;
use crate::job::{Changing, JobKind};
use crate::limits;

/// What this host asks distributors, one of which may be this machine.
#[derive(Debug)]
pub(super) struct Akds {
    /// The one on this machine, if there is one; this host asks it without the wire.
    here: Option<Akd>,
    enquiries: Enquiries,
    /// What is asked about leases, by the number of the question.
    leases: BTreeMap<u64, LeaseQuestion>,
    last_lease: u64,
    /// The time is asked for again not before this.
    time_wanted_at: Instant,
    are_silent: bool,
    /// What we want to sign with as soon as a distributor has it.
    new_key: Option<Arc<SigningKey>>,
    answer_check_budget: Bucket,
    key_request_budget: Bucket,
}

/// The S-ARP clock was set for the first time, or it was wrong by more than the window.
#[derive(Clone, Copy)]
pub(super) struct ClockStep {
    pub(super) to: Stamp,
    /// Whether it was ahead.
    pub(super) back: bool,
}

/// What was asked and is answered now, or given up without a statement.
pub(super) enum Told {
    Time,
    Key(Ipv4Addr, Option<Box<Verified<Statement>>>),
    Lease(u64, LeaseQuestion, Option<Box<Verified<Statement>>>),
    /// Nothing that anybody else need know.
    Nothing,
}

impl Akds {
    pub(super) fn new(here: Option<Akd>) -> Akds {
        let bucket = |per_second| Bucket::new(per_second, per_second);
        Akds {
            here,
            enquiries: Enquiries::default(),
            leases: BTreeMap::new(),
            last_lease: 0,
            time_wanted_at: Instant::default(),
            are_silent: false,
            new_key: None,
            answer_check_budget: bucket(limits::ANSWER_CHECKS_PER_SECOND),
            key_request_budget: bucket(limits::KEY_REQUESTS_PER_SECOND),
        }
    }

    /// The distributor on this machine, if there is one, knows requests by these masters from now on.
    pub(super) fn share(&mut self, masters: &Succession<RequestMaster>, outpost: Option<&mut (dyn Outpost + 'static)>) {
        if let Some(akd) = &mut self.here {
            akd.share(masters, outpost);
        }
    }

    /// How many requests are open.
    pub(super) fn open_requests(&self) -> usize {
        self.enquiries.len()
    }

    /// The distributor that is asked first, whether all were silent, and whether they are to take another key of ours.
    pub(super) fn state(&self) -> (usize, bool, bool) {
        (self.enquiries.preferred(), self.are_silent, self.new_key.is_some())
    }

    /// Asks whose key `ip` has unless that is asked already; false when too much is asked. The next tick sends it.
    pub(super) fn ask_for_key(&mut self, call: &mut Call<'_>, ip: Ipv4Addr) -> bool {
        self.open(call, About::Key(ip))
    }

    fn open(&mut self, call: &mut Call<'_>, about: About) -> bool {
        if self.enquiries.is_open(about) {
            return true;
        }
        if matches!(about, About::Key(_)) && !self.key_request_budget.take(call.now()) {
            return false;
        }
        let nonce = call.core.random.bytes();
        self.enquiries.begin(call.now(), about, nonce)
    }

    /// Asks for the time now, unless that was done just before.
    pub(super) fn ask_for_time(&mut self, call: &mut Call<'_>) {
        let now = call.now();
        if self.time_wanted_at <= now {
            self.time_wanted_at = now + limits::TIME_REQUEST_INTERVAL;
            // Places are kept free for this.
            let _ = self.open(call, About::Time);
        }
    }

    /// Asks about a lease; the number of the question, or `None` when too much is being asked.
    pub(super) fn ask_about_lease(&mut self, call: &mut Call<'_>, question: LeaseQuestion) -> Option<u64> {
        self.last_lease += 1;
        let number = self.last_lease;
        if !self.open(call, About::Lease(number)) {
            return None;
        }
        self.leases.insert(number, question);
        self.send_all_due(call);
        Some(number)
    }

    /// Asks about a lease once more after a while; gives the question back when too much is being asked.
    pub(super) fn ask_about_lease_again(
        &mut self,
        call: &mut Call<'_>,
        number: u64,
        question: LeaseQuestion,
    ) -> Option<LeaseQuestion> {
        if !self.ask_again(call, About::Lease(number)) {
            return Some(question);
        }
        self.leases.insert(number, question);
        None
    }

    /// Asks once more after a while; false when too much is being asked.
    fn ask_again(&mut self, call: &mut Call<'_>, about: About) -> bool {
        let nonce = call.core.random.bytes();
        self.enquiries.begin(call.now() + limits::TIME_REQUEST_INTERVAL, about, nonce)
    }

    /// Has this host's key replaced by `new`; false, with nothing begun, when that is not possible now.
    pub(super) fn change_key(&mut self, call: &mut Call<'_>, new: Arc<SigningKey>) -> bool {
        let has_address = !call.arp_to(MacAddress::ZERO, Ipv4Addr::UNSPECIFIED).sender_ip.is_unspecified();
        let may_begin = has_address && self.new_key.is_none() && call.clock().is_some();
        if !may_begin || !self.open(call, About::Change) {
            return false;
        }
        self.new_key = Some(new);
        self.send_all_due(call);
        true
    }

    /// One piece of what is due; `None` when nothing is.
    pub(super) fn tick(&mut self, call: &mut Call<'_>) -> Option<Told> {
        if let Some(about) = self.enquiries.given_up(call.now()) {
            return Some(self.give_up(call, about));
        }
        if self.time_request_at(&call.core.clock) <= call.now() {
            self.ask_for_time(call);
        }
        self.send_due(call).then_some(Told::Nothing)
    }

    /// When there is something to do next, by the S-ARP `clock`.
    pub(super) fn deadline(&self, clock: &Clock) -> Option<Instant> {
        time::earlier(self.enquiries.deadline(), Some(self.time_request_at(clock)))
    }

    /// When the time is to be asked for next.
    fn time_request_at(&self, clock: &Clock) -> Instant {
        clock.due_at().map_or(self.time_wanted_at, |due| due.max(self.time_wanted_at))
    }

    fn give_up(&mut self, call: &mut Call<'_>, about: About) -> Told {
        if !self.are_silent {
            self.are_silent = true;
            call.report(Event::DistributorsSilent);
        }
        match about {
            About::Key(ip) => Told::Key(ip, None),
            About::Lease(number) => self.about_lease(number, None),
            About::Time => Told::Nothing,
            // A distributor may have taken the key although its answers were lost, so it is not given up.
            About::Change => {
                // A place is kept free for this.
                let _ = self.ask_again(call, about);
                Told::Nothing
            }
        }
    }

    fn about_lease(&mut self, number: u64, statement: Option<Box<Verified<Statement>>>) -> Told {
        self.leases.remove(&number).map_or(Told::Nothing, |question| Told::Lease(number, question, statement))
    }

    /// Sends all that is due at once, so that nobody waits for a timer.
    pub(super) fn send_all_due(&mut self, call: &mut Call<'_>) {
        while self.send_due(call) {}
    }

    fn send_due(&mut self, call: &mut Call<'_>) -> bool {
        let distributors = call.core.settings.distributors.len();
        let Some(due) = self.enquiries.due(call.now(), distributors) else { return false };
        self.send_request(call, due);
        true
    }

    fn send_request(&mut self, call: &mut Call<'_>, due: Due) {
        let Some(distributor) = call.core.settings.distributors.get(due.distributor) else { return };
        let (mac, ip) = (distributor.mac, distributor.ip);
        let question = Question { host: call.core.settings.host(), nonce: due.nonce };
        match due.about {
            About::Time => self.send_tagged(call, due, Kind::TimeRequest, call.arp_to(mac, ip), &question.emit()),
            About::Key(wanted) => {
                self.send_tagged(call, due, Kind::KeyRequest, call.arp_to(mac, wanted), &question.emit())
            }
            About::Change => self.sign_change(call, due, call.arp_to(mac, ip), question),
            About::Lease(number) => {
                let Some(asked) = self.leases.get(&number) else { return };
                let (arp, data) = (call.arp_to(mac, asked.address), lease_data(asked, question));
                self.send_tagged(call, due, Kind::Lease, arp, &data);
            }
        }
    }

    /// Sends a request that proves itself to a distributor by its credential.
    fn send_tagged(&mut self, call: &mut Call<'_>, due: Due, kind: Kind, arp: Arp, data: &[u8]) {
        // Zero before this host has the time; then a distributor knows a recording by its age.
        let seconds = call.clock().map_or(0, Stamp::seconds);
        let unsigned = Message { arp, kind, seconds, data, signature: &[] }.signed_bytes();
        let credential = request_key(call, due).credential(&unsigned);
        self.send(call, arp.target_mac, &seal(unsigned, &credential));
    }

    /// What does not start now is tried again in a moment.
    fn sign_change(&mut self, call: &mut Call<'_>, due: Due, arp: Arp, question: Question) {
        let (Some(new), Some(stamp)) = (self.new_key.clone(), call.clock()) else { return };
        let (seconds, old) = (stamp.seconds(), Arc::clone(&call.core.key));
        let request_key = request_key(call, due).clone();
        let changing = Changing { old, new, request_key, arp, seconds, question };
        call.start(JobKind::Change(Box::new(changing)), Task::Change { to: arp.target_mac });
    }

    /// Sends a request to the distributor with this hardware address, which may be here.
    pub(super) fn send(&mut self, call: &mut Call<'_>, mac: MacAddress, message: &[u8]) {
        if mac != call.core.settings.mac {
            let is_sent = call.send(mac, message, Fate::Forwarded) == Fate::Forwarded;
            call.core.ledger.made[Side::WIRE as usize] += u64::from(is_sent);
        } else if let Ok(parsed) = Message::parse(message) {
            // A refusal shows as silence, as it would on the wire.
            let _ = self.serve(call, mac, &parsed, None);
        }
    }

    /// A request from the hardware address `source`; without a `frame` it is this host's own.
    pub(super) fn serve(
        &mut self,
        call: &mut Call<'_>,
        source: MacAddress,
        message: &Message<'_>,
        frame: Option<&[u8]>,
    ) -> Verdict {
        let akd = self.here.as_mut().ok_or(DropReason::ArpTarget)?;
        akd.follow(call.time, call.core.outpost.as_deref_mut());
        if source != message.arp.sender_mac || !is_station(source) {
            return Err(DropReason::ArpSource);
        }
        let Core { settings, outpost, .. } = &mut *call.core;
        let job = match message.kind {
            Kind::Apply | Kind::Fetch => JobKind::Enrol(Box::new(akd.enrol(call.time, message)?)),
            _ => {
                let outpost = outpost.as_deref_mut();
                JobKind::Answer(Box::new(akd.request(call.time, message, settings.weaken, outpost)?))
            }
        };
        Ok(call.start(job, Task::Serve { frame: frame.map(<[u8]>::to_vec), to: source }))
    }

    /// Our answer as a distributor is made. The frame, if there is one, was held.
    pub(super) fn served(&mut self, call: &mut Call<'_>, to: MacAddress, bytes: &[u8], frame: Option<&[u8]>) {
        if let Some(frame) = frame {
            let fate = call.send(to, bytes, Fate::Answered);
            call.release(Side::WIRE, fate, frame);
        } else if let Ok(message) = Message::parse(bytes) {
            let _ = self.hear(call, to, (&message, bytes), None);
        }
    }

    /// A distributor's answer from the hardware address `source`; without a `frame` it is from the one here. It must
    /// belong to an open request and come from a distributor's hardware address before its signature is checked.
    pub(super) fn hear(
        &mut self,
        call: &mut Call<'_>,
        source: MacAddress,
        (message, bytes): (&Message<'_>, &[u8]),
        frame: Option<&[u8]>,
    ) -> Verdict {
        let answer = Answer::parse(message.data).map_err(|_| DropReason::SarpMalformed)?;
        let settings = &call.core.settings;
        let asked = self.enquiries.find(&answer.nonce).map(|enquiry| enquiry.about);
        let named = || settings.weaken.distributor_nonce.then(|| named_by(message));
        let about = asked.or_else(named).ok_or(DropReason::SarpUnasked)?;
        let fits = about.is_answered_by(message.kind)
            && answer.host == settings.host()
            && about.address().is_none_or(|ip| ip == message.arp.sender_ip);
        let distributor = settings.distributors.iter().position(|one| one.mac == source);
        let distributor = distributor.filter(|_| fits).ok_or(DropReason::SarpNonce)?;
        if !self.answer_check_budget.take(call.now()) {
            return Err(DropReason::SarpBudget);
        }
        let job = JobKind::Learn { key: settings.distributors[distributor].key.clone(), message: bytes.to_vec() };
        Ok(call.start(job, Task::Learn { frame: frame.map(<[u8]>::to_vec), distributor }))
    }

    /// Acts on a distributor's answer whose signature was checked.
    pub(super) fn learn(
        &mut self,
        call: &mut Call<'_>,
        statement: Option<Box<Verified<Statement>>>,
        distributor: usize,
    ) -> Result<(Option<ClockStep>, Told), DropReason> {
        let statement = statement.ok_or(DropReason::SarpSignature)?;
        // Two distributors may have answered the same request.
        let closed = self.enquiries.close(statement.nonce(), Some(distributor)).map(|enquiry| enquiry.about);
        // A record says what it is about.
        let about_record = || statement.record().map_or(About::Time, |record| About::Key(record.address()));
        let is_weak = call.core.settings.weaken.distributor_nonce;
        let about = closed.or_else(|| is_weak.then(about_record)).ok_or(DropReason::SarpUnasked)?;
        self.are_silent = false;
        let (seconds, fraction) = statement.time();
        let step = set_clock(call, Stamp::new(seconds, fraction));
        let told = match about {
            About::Time => Told::Time,
            About::Key(ip) => Told::Key(ip, Some(statement)),
            About::Lease(number) => self.about_lease(number, Some(statement)),
            About::Change => {
                self.end_change(call, statement.kind() == Kind::KeyChanged);
                Told::Nothing
            }
        };
        Ok((step, told))
    }

    fn end_change(&mut self, call: &mut Call<'_>, is_taken: bool) {
        match self.new_key.take() {
            Some(new) if is_taken => {
                call.core.key = new;
                call.report(Event::OwnKeyChanged);
            }
            None if is_taken => {}
            _ => call.report(Event::OwnKeyKept),
        }
    }
}

/// What an answer is for, if its own word counts.
fn named_by(message: &Message<'_>) -> About {
    if message.kind == Kind::TimeReply { About::Time } else { About::Key(message.arp.sender_ip) }
}

fn set_clock(call: &mut Call<'_>, to: Stamp) -> Option<ClockStep> {
    match call.core.clock.set(call.time.since_boot, to) {
        None => {
            call.report(Event::ClockSet);
            Some(ClockStep { to, back: false })
        }
        Some((by, back)) if by > call.core.settings.window => {
            if back {
                call.core.clock.begin_again();
            }
            call.report(Event::ClockStepped { by, back });
            Some(ClockStep { to, back })
        }
        Some(_) => None,
    }
}

fn lease_data(asked: &LeaseQuestion, question: Question) -> Vec<u8> {
    let claim = asked.claimed.as_ref().map(|claimed| (claimed.claim, claimed.signature.as_slice()));
    let LeaseQuestion { action, host, address, lease_s: seconds, .. } = *asked;
    Lease { question, action, address, seconds, host, claim }.emit()
}

/// Whether `mac` is the hardware address of somebody, not of a group or nobody.
fn is_station(mac: MacAddress) -> bool {
    !mac.is_group() && mac != MacAddress::ZERO
}

/// With what this host proves itself in this try. Before a distributor has told the time, this
/// machine's own clock says which key is likely.
fn request_key<'a>(call: &'a Call<'_>, due: Due) -> &'a RequestKey {
    let own_unix_s = || call.time.trusted_unix_ms().map(|unix_ms| unix_ms / 1000);
    let unix_s = call.clock().map(|stamp| u64::from(stamp.seconds())).or_else(own_unix_s);
    call.core.settings.request_key(unix_s.unwrap_or(0), due.round)
}
