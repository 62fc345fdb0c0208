//! DHCP through the link layer (paper, section 6; docs/protocol.md, section 22), and the certificate that this host shows.
//!
//! The rules are those of the `dhcp` room; this file moves frames and jobs. A lease brings a certificate that binds the address, so
//! with a lease this host becomes somebody to its peers, with a renewal it shows them the newer certificate, and when the lease is
//! over it is nobody again: its base certificate binds no address, and whoever has none opens and answers no handshake, but for its
//! IPv6 addresses.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bump::{DropReason, Fate, Instant, Now, Side};
use dhcp::link::Leased;
use dhcp::link::client::{self, Client, Granted};
use dhcp::link::server::{self, Asked, Granting, Reply, Server};
use identity::HostIdentity;
use shield::Bucket;
use wire::MacAddress;
use wire::dhcp::{Operation, View};
use wire::ethernet::Header;

use super::Task;
use super::core::{Call, Verdict};
use super::dhcp_clear::Unproved;
use super::machines::{Machine, Wish};
use crate::event::{Effect, Event, KeptLease};
use crate::job::{DhcpDone, DhcpJob, JobKind, Refusal};
use crate::limits;
use crate::settings::Settings;

/// A lease that lasts, as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseReport {
    /// The address.
    pub ip: Ipv4Addr,
    /// Hardware address of the host that has it.
    pub mac: MacAddress,
    /// How long it still lasts; `None` for ever.
    pub remaining: Option<Duration>,
    /// Whether this host gave it to another.
    pub given: bool,
}

/// What waits for a job. The frame is the one that is held meanwhile.
#[derive(Debug)]
enum Waiting {
    /// A client's question, for its base certificate to be checked.
    Question(Vec<u8>, Box<Asked>),
    /// Our server program's ACK, for the certificate to be made.
    Certificate(Vec<u8>, Box<Granting>),
    /// A server's ACK, for the certificate in it to be checked.
    Acceptance(Vec<u8>, Box<Granted>),
    /// Nothing but the certificate of a lease that an earlier run had.
    Kept(Box<KeptLease>),
}

/// This host's halves of DHCP.
#[derive(Debug)]
pub(super) struct Dhcp {
    /// Who this host is without a lease.
    base: Arc<HostIdentity>,
    pub(super) client: Option<Client>,
    pub(super) server: Option<Server>,
    pub(super) unproved: Unproved,
    waiting: BTreeMap<u64, Waiting>,
    last_number: u64,
    event_budget: Bucket,
}

impl Dhcp {
    pub(super) fn new(now: Now, settings: &Settings, secret: [u8; 32]) -> Dhcp {
        let server = settings.dhcp.server.as_ref();
        Dhcp {
            base: Arc::clone(&settings.identity),
            client: settings.dhcp.client.clone().map(Client::new),
            server: server.map(|server| Server::new(now, server.settings.clone(), secret)),
            unproved: Unproved::default(),
            waiting: BTreeMap::new(),
            last_number: 0,
            event_budget: Bucket::new(limits::DHCP_EVENTS_PER_SECOND, limits::DHCP_EVENTS_PER_SECOND),
        }
    }

    /// The address that this host has by lease, and, on a DHCP server, those that it has given
    /// since its start.
    pub(super) fn leases(&self, now: Instant) -> Vec<LeaseReport> {
        let report = |lease: Leased, given: bool| LeaseReport {
            ip: lease.address,
            mac: lease.mac,
            remaining: lease.until.map(|until| until.since(now)),
            given,
        };
        let own = self.client.iter().filter_map(|client| client.lease(now)).map(|lease| report(lease, false));
        let given = self.server.iter().flat_map(|server| server.leases(now)).map(|lease| report(lease, true));
        own.chain(given).collect()
    }

    /// What both halves prove themselves with is what this identity has.
    fn share(&mut self, identity: &HostIdentity) {
        if let (Some(client), Some(keys)) = (&mut self.client, identity.dhcp_keys()) {
            client.share(keys.clone(), identity.certificate().der().to_vec());
        }
        if let (Some(server), Some(masters)) = (&mut self.server, identity.dhcp_masters()) {
            server.share(masters.clone());
        }
    }
}

impl Dhcp {
    /// The fate of a frame that is DHCP: a plain one of the stack, or a DHCP frame of the wire. `Held` means that a job decides.
    pub(super) fn on_frame(&mut self, call: &mut Call<'_>, from: Side, frame: &[u8]) -> Fate {
        let outcome = match from {
            Side::STACK => self.stack_dhcp(call, frame),
            Side::WIRE => self.wire_dhcp(call, frame),
        };
        outcome.unwrap_or_else(|reason| self.refuse_dhcp(call, frame, reason))
    }

    fn stack_dhcp(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Verdict {
        let is_reply = View::new(frame).map_err(|_| DropReason::DhcpMalformed)?.operation() == Operation::Reply;
        if is_reply { self.own_reply(call, frame) } else { self.own_question(call, frame) }
    }

    fn own_question(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Verdict {
        let nonce = call.core.random.bytes();
        let client = self.client.as_mut().ok_or(DropReason::DhcpNotClient)?;
        match client.outgoing(call.now, nonce, frame) {
            Ok(wrapped) => {
                self.ask_in_clear(call, frame);
                self.forward_dhcp(call, Side::WIRE, &wrapped)
            }
            Err(reason) => {
                if reason == DropReason::DhcpGivenBack {
                    // The program has given the address up, whatever the server hears.
                    self.lose_lease(call);
                }
                Err(reason)
            }
        }
    }

    fn own_reply(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Verdict {
        let (unix_s, serial) = (call.certificate_time().unix_s(), call.core.random.bytes());
        let settings = Arc::clone(&call.core.settings);
        let authority = settings.dhcp.server.as_ref().ok_or(DropReason::DhcpNotServer)?;
        let server = self.server.as_mut().ok_or(DropReason::DhcpNotServer)?;
        let reply = match server.outgoing(call.now, unix_s, serial, frame) {
            Err(DropReason::DhcpUnasked) => return self.answer_in_clear(call, frame),
            other => other?,
        };
        match reply {
            Reply::Send(wrapped) => self.forward_dhcp(call, Side::WIRE, &wrapped),
            Reply::Certify(granting, grant) => {
                let job = DhcpJob::Certify(Arc::clone(&authority.authority), grant);
                self.await_dhcp(call, job, Waiting::Certificate(frame.to_vec(), granting))
            }
        }
    }

    fn wire_dhcp(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Verdict {
        let (header, message) = Header::parse(frame).map_err(|_| DropReason::Runt)?;
        if header.ethertype != call.core.settings.ethertype {
            return self.on_plain(call, &header, frame);
        }
        if let Some(server) = &mut self.server {
            let step = server.incoming(call.now, &header, message)?;
            return self.take_server_step(call, step, frame);
        }
        let client = self.client.as_mut().ok_or(DropReason::DhcpNotClient)?;
        let step = client.incoming(call.now, &header, message)?;
        self.take_client_step(call, step, frame)
    }

    fn take_server_step(&mut self, call: &mut Call<'_>, step: server::Step, frame: &[u8]) -> Verdict {
        match step {
            server::Step::Deliver(plain) => self.forward_dhcp(call, Side::STACK, &plain),
            server::Step::Challenge(challenge) => self.answer_dhcp(call, &challenge),
            server::Step::Check(asked) => {
                let job = DhcpJob::CheckBase {
                    origins: call.origins(),
                    client: asked.client,
                    certificate: asked.certificate.clone(),
                };
                self.await_dhcp(call, job, Waiting::Question(frame.to_vec(), asked))
            }
        }
    }

    fn take_client_step(&mut self, call: &mut Call<'_>, step: client::Step, frame: &[u8]) -> Verdict {
        match step {
            client::Step::Deliver(plain) => {
                self.unproved.answered();
                self.forward_dhcp(call, Side::STACK, &plain)
            }
            client::Step::Repeat(question) => self.answer_dhcp(call, &question),
            client::Step::Lose(plain) => {
                self.lose_lease(call);
                self.forward_dhcp(call, Side::STACK, &plain)
            }
            client::Step::Check(granted) => {
                let job = DhcpJob::CheckLease {
                    base: Arc::clone(&self.base),
                    revoked: Arc::clone(&call.core.revoked),
                    address: granted.address,
                    certificate: granted.certificate.clone(),
                };
                self.await_dhcp(call, job, Waiting::Acceptance(frame.to_vec(), granted))
            }
        }
    }

    pub(super) fn forward_dhcp(&mut self, call: &mut Call<'_>, to: Side, frame: &[u8]) -> Verdict {
        if call.pass(to, frame) != Fate::Forwarded {
            return Err(DropReason::PortFull);
        }
        call.core.ledger.emitted[to as usize] += 1;
        Ok(Fate::Forwarded)
    }

    fn answer_dhcp(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Verdict {
        if call.make(Side::WIRE, frame) { Ok(Fate::Answered) } else { Err(DropReason::PortFull) }
    }

    fn await_dhcp(&mut self, call: &mut Call<'_>, job: DhcpJob, waiting: Waiting) -> Verdict {
        if self.waiting.len() >= limits::DHCP_JOBS_MAX {
            return Err(DropReason::DhcpBudget);
        }
        self.last_number += 1;
        let number = self.last_number;
        if !call.task(Task::Dhcp(number), JobKind::Dhcp(Box::new(job))) {
            return Err(DropReason::ControlBusy);
        }
        self.waiting.insert(number, waiting);
        Ok(Fate::Held)
    }

    /// A job for DHCP is done; `None` if it was lost.
    pub(super) fn on_done(&mut self, call: &mut Call<'_>, number: u64, done: Option<DhcpDone>) {
        let Some(waiting) = self.waiting.remove(&number) else { return };
        let (side, frame, outcome) = match (waiting, done) {
            (Waiting::Kept(kept), done) => return self.resume_lease(call, &kept, done),
            (Waiting::Question(frame, asked), Some(DhcpDone::Base(result))) => {
                let outcome = result.and_then(|base| Ok(self.admit_question(call, *asked, *base)?));
                (Side::WIRE, frame, outcome)
            }
            (Waiting::Certificate(frame, granting), Some(DhcpDone::Certificate(result))) => {
                let outcome = result.and_then(|certificate| Ok(self.hand_out(call, &granting, &certificate)?));
                (Side::STACK, frame, outcome)
            }
            (Waiting::Acceptance(frame, granted), Some(DhcpDone::Lease(result))) => {
                let outcome = result.and_then(|identity| Ok(self.accept_lease(call, &granted, identity)?));
                (Side::WIRE, frame, outcome)
            }
            (Waiting::Certificate(frame, _), _) => (Side::STACK, frame, Err(DropReason::JobLost.into())),
            (Waiting::Question(frame, _) | Waiting::Acceptance(frame, _), _) => {
                (Side::WIRE, frame, Err(DropReason::JobLost.into()))
            }
        };
        let fate = outcome.unwrap_or_else(|refusal| self.tell_refusal(call, &frame, &refusal));
        call.release(side, fate, &frame);
    }

    fn admit_question(
        &mut self,
        call: &mut Call<'_>,
        asked: Asked,
        base: identity::Verified<identity::HostCertificate>,
    ) -> Verdict {
        let server = self.server.as_mut().ok_or(DropReason::DhcpNotServer)?;
        let plain = server.admitted(call.now.since_boot, asked, base)?;
        self.forward_dhcp(call, Side::STACK, &plain)
    }

    fn hand_out(&mut self, call: &mut Call<'_>, granting: &Granting, certificate: &[u8]) -> Verdict {
        let server = self.server.as_mut().ok_or(DropReason::DhcpNotServer)?;
        let wrapped = server.certified(call.now, granting, certificate)?;
        call.out.event(Event::LeaseCertified { mac: granting.mac(), ip: granting.address() });
        self.forward_dhcp(call, Side::WIRE, &wrapped)
    }

    /// An earlier run had an address by lease, and this host's DHCP program still has it. The
    /// certificate is checked as when it came.
    pub(super) fn remember(&mut self, call: &mut Call<'_>, kept: KeptLease) {
        let lasts = kept.until.is_none_or(|until| until > call.now.since_boot);
        if self.client.is_none() || !lasts {
            return call.out.effect(Effect::ForgetLease);
        }
        let job = DhcpJob::CheckLease {
            base: Arc::clone(&self.base),
            revoked: Arc::clone(&call.core.revoked),
            address: kept.address,
            certificate: kept.certificate.clone(),
        };
        // Where there is no room for the job, the next renewal brings another certificate.
        let _held = self.await_dhcp(call, job, Waiting::Kept(Box::new(kept)));
    }

    fn resume_lease(&mut self, call: &mut Call<'_>, kept: &KeptLease, done: Option<DhcpDone>) {
        let Some(DhcpDone::Lease(Ok(identity))) = done else {
            // Another one may have come meanwhile.
            if self.client.as_ref().is_none_or(|client| client.lease(call.now.since_boot).is_none()) {
                call.out.effect(Effect::ForgetLease);
            }
            return;
        };
        let is_resumed = self.client.as_mut().is_some_and(|client| client.resume(kept.address, kept.until));
        if is_resumed {
            call.wishes.push_back(Wish::Leased(identity, kept.address));
        }
    }

    fn accept_lease(&mut self, call: &mut Call<'_>, granted: &Granted, identity: Arc<HostIdentity>) -> Verdict {
        let client = self.client.as_mut().ok_or(DropReason::DhcpNotClient)?;
        client.granted(call.now.since_boot, granted)?;
        call.out.effect(Effect::KeepLease(KeptLease {
            address: granted.address,
            until: client.deadline(),
            certificate: granted.certificate.clone(),
        }));
        self.unproved = Unproved::default();
        call.wishes.push_back(Wish::Leased(identity, granted.address));
        self.forward_dhcp(call, Side::STACK, &granted.frame)
    }

    /// The lease is over: this host is nobody again.
    fn lose_lease(&mut self, call: &mut Call<'_>) {
        // What is given back while it is checked does not come back.
        let before = self.waiting.len();
        self.waiting.retain(|_, waiting| !matches!(waiting, Waiting::Kept(_)));
        if self.waiting.len() < before {
            call.out.effect(Effect::ForgetLease);
        }
        if let Some(lease) = self.client.as_mut().and_then(Client::give_up) {
            call.out.effect(Effect::ForgetLease);
            call.wishes.push_back(Wish::LeaseLost(Arc::clone(&self.base), lease.address));
        }
    }

    /// This host's certificate is renewed, or it has other keys that it shares with others.
    pub(super) fn renew(&mut self, call: &mut Call<'_>, identity: Arc<HostIdentity>) {
        self.share(&identity);
        let before = std::mem::replace(&mut self.base, Arc::clone(&identity));
        let shown = call.core.settings.identity.certificate().clone();
        let is_leased = shown.der() != before.certificate().der();
        if !is_leased && shown.der() != identity.certificate().der() {
            call.wishes.push_back(Wish::Identity(identity));
        } else if let Ok(identity) = identity.with_certificate(shown) {
            // What it shares with others is new. A lease goes on, and its certificate with it.
            call.settle_identity(Arc::new(identity));
        }
    }

    fn refuse_dhcp(&mut self, call: &mut Call<'_>, frame: &[u8], reason: DropReason) -> Fate {
        let by_insider = matches!(
            reason,
            DropReason::DhcpNotHolder | DropReason::DhcpLeasesFull | DropReason::DhcpAddress | DropReason::DhcpRelay
        );
        if by_insider {
            return self.tell_refusal(call, frame, &Refusal::from(reason));
        }
        Fate::Dropped(reason)
    }

    /// News of a frame that was refused although its tag was right.
    fn tell_refusal(&mut self, call: &mut Call<'_>, frame: &[u8], refusal: &Refusal) -> Fate {
        let Refusal { reason, detail } = refusal.clone();
        if self.event_budget.take(call.now.since_boot)
            && let Ok((header, _)) = Header::parse(frame)
        {
            call.out.event(Event::DhcpRefused { mac: header.source, reason, detail });
        }
        Fate::Dropped(reason)
    }
}

impl Machine for Dhcp {
    fn deadline(&self) -> Option<Instant> {
        self.client.as_ref().and_then(Client::deadline)
    }

    /// Ends a lease whose time is over.
    fn tick(&mut self, call: &mut Call<'_>, _: usize) -> bool {
        if self.client.as_ref().is_some_and(|client| client.has_ended(call.now.since_boot)) {
            self.lose_lease(call);
        }
        false
    }
}
