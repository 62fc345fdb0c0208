//! Asking distributors for keys and time, and being one (sections 3.4 and 3.5.1).

use std::net::Ipv4Addr;
use std::sync::Arc;

use bump::{DropReason, Fate, Instant, Side};
use identity::Verified;
use identity::distributor::{RequestKey, Statement};
use identity::signing::SigningKey;
use wire::MacAddress;
use wire::arp::{Arp, Operation};
use wire::ethernet::{HEADER_LEN, Header};
use wire::sarp::data::{Answer, Question};
use wire::sarp::{Kind, Message, seal};

use super::wire::is_station;
use super::{Call, Host, Origin, Task};
use crate::clock::Stamp;
use crate::enquiry::{About, Due};
use crate::event::Event;
use crate::job::{Changing, JobKind};
use crate::limits;
use crate::ring::Learnt;

impl Host {
    /// Opens a request unless it is open already; false when that is not possible now. The next tick sends it.
    pub(super) fn open_enquiry(&mut self, now: Instant, about: About) -> bool {
        if self.enquiries.is_open(about) {
            return true;
        }
        if matches!(about, About::Key(_)) && !self.key_request_budget.take(now) {
            return false;
        }
        let nonce = self.random.bytes();
        self.enquiries.begin(now, about, nonce)
    }

    /// Sends all that is due at once, so that nobody waits for a timer.
    pub(super) fn send_all_due(&mut self, call: &mut Call<'_>) {
        while self.send_due(call) {}
    }

    /// One piece of what is due; false when nothing is.
    pub(super) fn ask_distributors(&mut self, call: &mut Call<'_>) -> bool {
        let now = call.now.since_boot;
        if let Some(about) = self.enquiries.given_up(now) {
            self.give_up(call, about);
            return true;
        }
        if self.time_request_at() <= now {
            self.ask_for_time(now);
        }
        self.send_due(call)
    }

    /// When the time is to be asked for next.
    pub(super) fn time_request_at(&self) -> Instant {
        self.clock.due_at().map_or(self.time_wanted_at, |due| due.max(self.time_wanted_at))
    }

    /// Asks for the time now, unless that was done just before.
    pub(super) fn ask_for_time(&mut self, now: Instant) {
        if self.time_wanted_at <= now {
            self.time_wanted_at = now + limits::TIME_REQUEST_INTERVAL;
            // Places are kept free for this.
            let _ = self.open_enquiry(now, About::Time);
        }
    }

    fn send_due(&mut self, call: &mut Call<'_>) -> bool {
        let Some(due) = self.enquiries.due(call.now.since_boot, self.settings.distributors.len()) else { return false };
        self.send_request(call, due);
        true
    }

    /// Has this host's key replaced: it signs with `new` as soon as a distributor has it, and asks until one answers. An event
    /// tells how it ended. False, with nothing begun, while another key is under way, nothing can be sent, or this host has no
    /// address by which distributors know it.
    pub fn change_key(&mut self, now: bump::Now, new: Arc<SigningKey>, sink: &mut dyn bump::Sink) -> bool {
        let has_address =
            !self.arp_to(now.since_boot, MacAddress::ZERO, Ipv4Addr::UNSPECIFIED).sender_ip.is_unspecified();
        let may_begin = has_address && self.new_key.is_none() && self.clock.read(now.since_boot).is_some();
        if !may_begin || !self.open_enquiry(now.since_boot, About::Change) {
            return false;
        }
        self.new_key = Some(new);
        self.send_all_due(&mut Call { now, sink });
        true
    }

    fn send_request(&mut self, call: &mut Call<'_>, due: Due) {
        let Some(distributor) = self.settings.distributors.get(due.distributor) else { return };
        let (mac, ip, now) = (distributor.mac, distributor.ip, call.now.since_boot);
        let question = Question { host: self.settings.host(), nonce: due.nonce };
        match due.about {
            About::Time => self.send_question(call, due, Kind::TimeRequest, self.arp_to(now, mac, ip), question),
            About::Key(wanted) => {
                self.send_question(call, due, Kind::KeyRequest, self.arp_to(now, mac, wanted), question);
            }
            About::Change => self.sign_change(call.now, due, self.arp_to(now, mac, ip), question),
            About::Lease(number) => self.send_lease_question(call, due, number, mac),
        }
    }

    pub(super) fn arp_to(&self, now: Instant, target_mac: MacAddress, target_ip: Ipv4Addr) -> Arp {
        let leased = || Some(self.dhcp_client.as_ref()?.leases(now).last()?.address);
        let sender_ip = self.settings.addresses.first().copied().or_else(leased).unwrap_or(Ipv4Addr::UNSPECIFIED);
        Arp { operation: Operation::Request, sender_mac: self.settings.mac, sender_ip, target_mac, target_ip }
    }

    fn send_question(&mut self, call: &mut Call<'_>, due: Due, kind: Kind, arp: Arp, question: Question) {
        self.send_tagged(call, due, kind, arp, &question.emit());
    }

    /// With what this host proves itself in this try. Before a distributor has told the time, this
    /// machine's own clock says which key is likely.
    fn request_key(&self, now: bump::Now, due: Due) -> &RequestKey {
        let own_unix_s = || now.trusted_unix_ms().map(|unix_ms| unix_ms / 1000);
        let unix_s = self.clock.read(now.since_boot).map(|stamp| u64::from(stamp.seconds())).or_else(own_unix_s);
        self.settings.request_key(unix_s.unwrap_or(0), due.round)
    }

    /// Sends a request that proves itself to a distributor by its credential.
    pub(super) fn send_tagged(&mut self, call: &mut Call<'_>, due: Due, kind: Kind, arp: Arp, data: &[u8]) {
        // Zero before this host has the time; then a distributor knows a recording by its age.
        let seconds = self.clock.read(call.now.since_boot).map_or(0, Stamp::seconds);
        let unsigned = Message { arp, kind, seconds, data, signature: &[] }.signed_bytes();
        let credential = self.request_key(call.now, due).credential(&unsigned);
        self.send_to_distributor(call, arp.target_mac, &seal(unsigned, &credential));
    }

    /// What does not start now is tried again in a moment.
    fn sign_change(&mut self, now: bump::Now, due: Due, arp: Arp, question: Question) {
        let (Some(new), Some(stamp)) = (self.new_key.clone(), self.clock.read(now.since_boot)) else { return };
        let seconds = stamp.seconds();
        let request_key = self.request_key(now, due).clone();
        let changing = Changing { old: Arc::clone(&self.key), new, request_key, arp, seconds, question };
        self.start(JobKind::Change(Box::new(changing)), Task::Change { to: arp.target_mac });
    }

    pub(super) fn send_to_distributor(&mut self, call: &mut Call<'_>, mac: MacAddress, message: &[u8]) {
        if mac == self.settings.mac {
            self.serve_here(call, message);
        } else if self.send(call, mac, message) {
            self.ledger.made[Side::WIRE as usize] += 1;
        }
    }

    fn give_up(&mut self, call: &mut Call<'_>, about: About) {
        let now = call.now.since_boot;
        if !self.silence_reported {
            self.silence_reported = true;
            self.event(Event::DistributorsSilent);
        }
        let sender = match about {
            About::Key(ip) => Some(ip),
            About::Time => return,
            // A distributor may have taken the key although its answers were lost, so it is not given up.
            About::Change => {
                // A place is kept free for this.
                let _ = self.ask_again(now, about);
                return;
            }
            About::Lease(number) => return self.lease_given_up(call, number),
        };
        for waiting in self.pending.take(sender) {
            let fate = Fate::Dropped(DropReason::SarpPendingExpired);
            self.ledger.release(now, Side::WIRE, fate, &waiting.frame);
        }
    }

    /// A distributor's answer: it must belong to an open request and come from a distributor's hardware address before its
    /// signature is checked.
    pub(super) fn distributor_answers(
        &mut self,
        call: &mut Call<'_>,
        from: Origin,
        header: &Header,
        message: &Message<'_>,
        frame: &[u8],
    ) -> Fate {
        let Ok(answer) = Answer::parse(message.data) else { return Fate::Dropped(DropReason::SarpMalformed) };
        let Some(about) = self.answered(&answer, message) else { return Fate::Dropped(DropReason::SarpUnasked) };
        let fits = about.is_answered_by(message.kind)
            && answer.host == self.settings.host()
            && about_address(about).is_none_or(|ip| ip == message.arp.sender_ip);
        let distributor = self.settings.distributors.iter().position(|one| one.mac == header.source);
        let (true, Some(distributor)) = (fits, distributor) else { return Fate::Dropped(DropReason::SarpNonce) };
        if !self.answer_check_budget.take(call.now.since_boot) {
            return Fate::Dropped(DropReason::SarpBudget);
        }
        let key = self.settings.distributors[distributor].key.clone();
        let job = JobKind::Learn { key, message: frame[HEADER_LEN..].to_vec() };
        self.start(job, Task::Learn { frame: frame.to_vec(), from, distributor })
    }

    /// The open request that a distributor's answer is for.
    fn answered(&self, answer: &Answer<'_>, message: &Message<'_>) -> Option<About> {
        let by_nonce = self.enquiries.find(&answer.nonce).map(|enquiry| enquiry.about);
        let about = if message.kind == Kind::TimeReply { About::Time } else { About::Key(message.arp.sender_ip) };
        by_nonce.or(self.settings.weaken.distributor_nonce.then_some(about))
    }

    /// Acts on a distributor's answer whose signature was checked.
    pub(super) fn learnt(
        &mut self,
        call: &mut Call<'_>,
        statement: Option<Box<Verified<Statement>>>,
        distributor: usize,
    ) -> Fate {
        let Some(statement) = statement else { return Fate::Dropped(DropReason::SarpSignature) };
        // Two distributors may have answered the same request.
        let closed = self.enquiries.close(statement.nonce(), Some(distributor)).map(|enquiry| enquiry.about);
        // A record says what it is about.
        let about_record = || statement.record().map_or(About::Time, |record| About::Key(record.address()));
        let Some(about) = closed.or_else(|| self.settings.weaken.distributor_nonce.then(about_record)) else {
            return Fate::Dropped(DropReason::SarpUnasked);
        };
        self.silence_reported = false;
        let (seconds, fraction) = statement.time();
        self.set_clock(call.now.since_boot, Stamp::new(seconds, fraction));
        match about {
            About::Time => self.take_up_all_with_key(call),
            About::Key(ip) => self.take_key(call, ip, &statement),
            About::Lease(number) => self.lease_answered(call, number, &statement),
            About::Change if statement.kind() == Kind::KeyChanged => self.take_new_key(),
            About::Change => self.keep_key(),
        }
        Fate::Consumed
    }

    /// Asks once more after a while; false when too much is being asked.
    pub(super) fn ask_again(&mut self, now: Instant, about: About) -> bool {
        let nonce = self.random.bytes();
        self.enquiries.begin(now + limits::TIME_REQUEST_INTERVAL, about, nonce)
    }

    fn take_new_key(&mut self) {
        if let Some(new) = self.new_key.take() {
            self.key = new;
            self.event(Event::OwnKeyChanged);
        }
    }

    fn keep_key(&mut self) {
        self.new_key = None;
        self.event(Event::OwnKeyKept);
    }

    fn set_clock(&mut self, now: Instant, stamp: Stamp) {
        match self.clock.set(now, stamp) {
            None => {
                self.begin_dhcp_stamps(stamp);
                self.event(Event::ClockSet);
            }
            Some((by, back)) if by > self.settings.window => {
                self.ring.begin_stamps(stamp, back);
                self.begin_dhcp_stamps(stamp);
                if back {
                    self.clock.begin_again();
                }
                self.event(Event::ClockStepped { by, back });
            }
            Some(_) => {}
        }
    }

    fn begin_dhcp_stamps(&mut self, stamp: Stamp) {
        if let Some(server) = &mut self.dhcp_server {
            server.begin_stamps(stamp.to_bits());
        }
    }

    fn take_key(&mut self, call: &mut Call<'_>, ip: Ipv4Addr, statement: &Verified<Statement>) {
        let now = call.now.since_boot;
        let Some(record) = statement.record() else {
            let was_known = self.ring.forget(now, ip);
            let waiting = self.pending.take(Some(ip));
            // A key that was asked for ahead may be that of an address which nobody has.
            if was_known || !waiting.is_empty() {
                self.event(Event::NoKey { ip });
            }
            for waiting in waiting {
                self.ledger.release(now, Side::WIRE, Fate::Dropped(DropReason::SarpNoKey), &waiting.frame);
            }
            return;
        };
        let learnt = self.ring.learn(now, self.clock.read(now).unwrap_or_default(), record);
        if learnt == Learnt::Changed {
            self.event(Event::KeyChanged { ip });
        }
        for waiting in self.pending.take(Some(ip)) {
            // The paper's rule for unchanged keys: what failed under this very key is forged.
            if waiting.failed_before && learnt == Learnt::Same {
                let fate = Fate::Dropped(DropReason::SarpSignature);
                self.ledger.release(now, Side::WIRE, fate, &waiting.frame);
            } else {
                self.take_up(call, waiting);
            }
        }
    }

    /// After the clock was first set: replies whose key is here need nothing else; the others wait on.
    fn take_up_all_with_key(&mut self, call: &mut Call<'_>) {
        for waiting in self.pending.take(None) {
            if self.ring.contains(waiting.sender) && !waiting.failed_before {
                self.take_up(call, waiting);
            } else {
                let sender = waiting.sender;
                if let Err(waiting) = self.pending.keep(waiting) {
                    let fate = Fate::Dropped(DropReason::SarpPendingFull);
                    self.ledger.release(call.now.since_boot, Side::WIRE, fate, &waiting.frame);
                }
                // Without a place the reply waits for its end.
                let _ = self.open_enquiry(call.now.since_boot, About::Key(sender));
            }
        }
        self.send_all_due(call);
    }

    /// A request to a distributor.
    pub(super) fn serve(
        &mut self,
        call: &mut Call<'_>,
        from: Origin,
        header: &Header,
        message: &Message<'_>,
        frame: &[u8],
    ) -> Fate {
        let Some(akd) = &mut self.akd else { return Fate::Dropped(DropReason::ArpTarget) };
        akd.follow(call.now, self.outpost.as_deref_mut());
        if header.source != message.arp.sender_mac || !is_station(header.source) {
            return Fate::Dropped(DropReason::ArpSource);
        }
        let job = match message.kind {
            Kind::Apply | Kind::Fetch => akd.enrol(call.now, message).map(|job| JobKind::Enrol(Box::new(job))),
            _ => akd
                .request(call.now, message, self.settings.weaken, self.outpost.as_deref_mut())
                .map(|job| JobKind::Answer(Box::new(job))),
        };
        match job {
            Ok(job) => self.start(job, Task::Serve { frame: frame.to_vec(), from, to: header.source }),
            Err(reason) => Fate::Dropped(reason),
        }
    }

    /// This machine asks its own distributor: the same path, without the wire.
    fn serve_here(&mut self, call: &mut Call<'_>, message: &[u8]) {
        let header = self.header_to_self();
        if let Ok(parsed) = Message::parse(message) {
            // A refusal shows as silence, as it would on the wire.
            let _ = self.serve(call, Origin::Here, &header, &parsed, &[&header.emit()[..], message].concat());
        }
    }

    /// Our answer as a distributor is signed.
    pub(super) fn served(
        &mut self,
        call: &mut Call<'_>,
        from: Origin,
        to: MacAddress,
        message: Option<Vec<u8>>,
    ) -> Fate {
        let Some(message) = message else { return Fate::Dropped(DropReason::JobLost) };
        if from == Origin::Here {
            let header = self.header_to_self();
            let frame = [&header.emit()[..], &message].concat();
            if let Ok(parsed) = Message::parse(&message) {
                let _ = self.distributor_answers(call, Origin::Here, &header, &parsed, &frame);
            }
            return Fate::Answered;
        }
        if self.send(call, to, &message) { Fate::Answered } else { Fate::Dropped(DropReason::PortFull) }
    }

    fn header_to_self(&self) -> Header {
        let mac = self.settings.mac;
        Header { destination: mac, source: mac, ethertype: wire::EtherType::ARP }
    }
}

fn about_address(about: About) -> Option<Ipv4Addr> {
    match about {
        About::Time | About::Change | About::Lease(_) => None,
        About::Key(ip) => Some(ip),
    }
}
