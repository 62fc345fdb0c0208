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

use bump::{DropReason, Fate, Instant, Meta, Now, Outbox, Side, Sink, sink};
use dhcp::link::Leased;
use dhcp::link::client::{self, Client, Granted};
use dhcp::link::server::{self, Asked, Granting, Reply, Server};
use identity::HostIdentity;
use shield::Bucket;
use wire::MacAddress;
use wire::dhcp::{Operation, View};
use wire::ethernet::Header;

use super::dhcp_clear::{self, Unproved};
use super::{Call, Control, Task};
use crate::event::{EndCause, Event};
use crate::job::{DhcpDone, DhcpJob, JobKind, Refusal};
use crate::limits;
use crate::message::OrderKind;
use crate::origin::Origin;
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

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.client.as_ref().and_then(Client::deadline)
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

impl Control {
    /// The address that this host has by lease, and, on a DHCP server, those that it has given since its start.
    #[must_use]
    pub fn leases(&self, now: Instant) -> Vec<LeaseReport> {
        let report = |lease: Leased, given: bool| LeaseReport {
            ip: lease.address,
            mac: lease.mac,
            remaining: lease.until.map(|until| until.since(now)),
            given,
        };
        let own = self.dhcp.client.iter().filter_map(|client| client.lease(now)).map(|lease| report(lease, false));
        let given = self.dhcp.server.iter().flat_map(|server| server.leases(now)).map(|lease| report(lease, true));
        own.chain(given).collect()
    }

    /// The fate of a frame that is DHCP: a plain one of the stack, or a DHCP frame of the wire. `Held` means that a job decides.
    pub(super) fn dhcp_frame(&mut self, call: &mut Call<'_>, from: Side, frame: &[u8]) -> Fate {
        let outcome = match from {
            Side::STACK => self.stack_dhcp(call, frame),
            Side::WIRE => self.wire_dhcp(call, frame),
        };
        outcome.unwrap_or_else(|reason| self.refuse_dhcp(call, frame, reason))
    }

    fn stack_dhcp(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Result<Fate, DropReason> {
        let is_reply = View::new(frame).map_err(|_| DropReason::DhcpMalformed)?.operation() == Operation::Reply;
        if is_reply { self.own_reply(call, frame) } else { self.own_question(call, frame) }
    }

    fn own_question(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Result<Fate, DropReason> {
        let nonce = self.random.bytes();
        let client = self.dhcp.client.as_mut().ok_or(DropReason::DhcpNotClient)?;
        match client.outgoing(call.now, nonce, frame) {
            Ok(wrapped) => {
                dhcp_clear::ask_dhcp_in_clear(self, call, frame);
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

    fn own_reply(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Result<Fate, DropReason> {
        let (unix_s, serial) = (self.certificate_time(call.now).unix_s(), self.random.bytes());
        let settings = Arc::clone(&self.settings);
        let authority = settings.dhcp.server.as_ref().ok_or(DropReason::DhcpNotServer)?;
        let server = self.dhcp.server.as_mut().ok_or(DropReason::DhcpNotServer)?;
        let reply = match server.outgoing(call.now, unix_s, serial, frame) {
            Err(DropReason::DhcpUnasked) => return dhcp_clear::answer_dhcp_in_clear(self, call, frame),
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

    fn wire_dhcp(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Result<Fate, DropReason> {
        let (header, message) = Header::parse(frame).map_err(|_| DropReason::Runt)?;
        if header.ethertype != self.settings.ethertype {
            return dhcp_clear::plain_dhcp(self, call, &header, frame);
        }
        if let Some(server) = &mut self.dhcp.server {
            let step = server.incoming(call.now, &header, message)?;
            return self.take_server_step(call, step, frame);
        }
        let client = self.dhcp.client.as_mut().ok_or(DropReason::DhcpNotClient)?;
        let step = client.incoming(call.now, &header, message)?;
        self.take_client_step(call, step, frame)
    }

    fn take_server_step(&mut self, call: &mut Call<'_>, step: server::Step, frame: &[u8]) -> Result<Fate, DropReason> {
        match step {
            server::Step::Deliver(plain) => self.forward_dhcp(call, Side::STACK, &plain),
            server::Step::Challenge(challenge) => self.answer_dhcp(call, &challenge),
            server::Step::Check(asked) => {
                let job = DhcpJob::CheckBase {
                    settings: Arc::clone(&self.settings),
                    revoked: Arc::clone(&self.revoked),
                    time: self.certificate_time(call.now),
                    client: asked.client,
                    certificate: asked.certificate.clone(),
                };
                self.await_dhcp(call, job, Waiting::Question(frame.to_vec(), asked))
            }
        }
    }

    fn take_client_step(&mut self, call: &mut Call<'_>, step: client::Step, frame: &[u8]) -> Result<Fate, DropReason> {
        match step {
            client::Step::Deliver(plain) => {
                self.dhcp.unproved.answered();
                self.forward_dhcp(call, Side::STACK, &plain)
            }
            client::Step::Repeat(question) => self.answer_dhcp(call, &question),
            client::Step::Lose(plain) => {
                self.lose_lease(call);
                self.forward_dhcp(call, Side::STACK, &plain)
            }
            client::Step::Check(granted) => {
                let job = DhcpJob::CheckLease {
                    base: Arc::clone(&self.dhcp.base),
                    revoked: Arc::clone(&self.revoked),
                    address: granted.address,
                    certificate: granted.certificate.clone(),
                };
                self.await_dhcp(call, job, Waiting::Acceptance(frame.to_vec(), granted))
            }
        }
    }

    pub(super) fn forward_dhcp(&mut self, call: &mut Call<'_>, to: Side, frame: &[u8]) -> Result<Fate, DropReason> {
        if !sink::copy(call.sink, to, frame, Meta::plain()) {
            return Err(DropReason::PortFull);
        }
        self.ledger.emitted[to as usize] += 1;
        Ok(Fate::Forwarded)
    }

    fn answer_dhcp(&mut self, call: &mut Call<'_>, frame: &[u8]) -> Result<Fate, DropReason> {
        if !sink::copy(call.sink, Side::WIRE, frame, Meta::plain()) {
            return Err(DropReason::PortFull);
        }
        self.ledger.make(Side::WIRE);
        Ok(Fate::Answered)
    }

    fn await_dhcp(&mut self, call: &mut Call<'_>, job: DhcpJob, waiting: Waiting) -> Result<Fate, DropReason> {
        if self.dhcp.waiting.len() >= limits::DHCP_JOBS_MAX {
            return Err(DropReason::DhcpBudget);
        }
        self.dhcp.last_number += 1;
        let number = self.dhcp.last_number;
        if !self.task(call.out, Task::Dhcp(number), JobKind::Dhcp(Box::new(job))) {
            return Err(DropReason::ControlBusy);
        }
        self.dhcp.waiting.insert(number, waiting);
        Ok(Fate::Held)
    }

    /// A job for DHCP is done; `None` if it was lost.
    pub(super) fn dhcp_done(&mut self, call: &mut Call<'_>, number: u64, done: Option<DhcpDone>) {
        let Some(waiting) = self.dhcp.waiting.remove(&number) else { return };
        let (side, frame, outcome) = match (waiting, done) {
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
        self.ledger.release(call.now.since_boot, side, fate, &frame);
    }

    fn admit_question(
        &mut self,
        call: &mut Call<'_>,
        asked: Asked,
        base: identity::Verified<identity::HostCertificate>,
    ) -> Result<Fate, DropReason> {
        let server = self.dhcp.server.as_mut().ok_or(DropReason::DhcpNotServer)?;
        let plain = server.admitted(call.now.since_boot, asked, base)?;
        self.forward_dhcp(call, Side::STACK, &plain)
    }

    fn hand_out(&mut self, call: &mut Call<'_>, granting: &Granting, certificate: &[u8]) -> Result<Fate, DropReason> {
        let server = self.dhcp.server.as_mut().ok_or(DropReason::DhcpNotServer)?;
        let wrapped = server.certified(call.now, granting, certificate)?;
        call.out.event(Event::LeaseCertified { mac: granting.mac(), ip: granting.address() });
        self.forward_dhcp(call, Side::WIRE, &wrapped)
    }

    fn accept_lease(
        &mut self,
        call: &mut Call<'_>,
        granted: &Granted,
        identity: Arc<HostIdentity>,
    ) -> Result<Fate, DropReason> {
        let client = self.dhcp.client.as_mut().ok_or(DropReason::DhcpNotClient)?;
        client.granted(call.now.since_boot, granted)?;
        self.dhcp.unproved = Unproved::default();
        if self.change_identity(call, identity) {
            call.out.event(Event::AddressLeased { ip: granted.address });
        }
        self.forward_dhcp(call, Side::STACK, &granted.frame)
    }

    /// The lease is over: this host is nobody again.
    fn lose_lease(&mut self, call: &mut Call<'_>) {
        let Some(lease) = self.dhcp.client.as_mut().and_then(Client::give_up) else { return };
        self.change_identity(call, Arc::clone(&self.dhcp.base));
        call.out.event(Event::LeaseLost { ip: lease.address });
    }

    /// Ends a lease whose time is over.
    pub(super) fn end_lease(&mut self, call: &mut Call<'_>) {
        if self.dhcp.client.as_ref().is_some_and(|client| client.has_ended(call.now.since_boot)) {
            self.lose_lease(call);
        }
    }

    /// This host's certificate is renewed, or it has other keys that it shares with others.
    pub(crate) fn renew(&mut self, now: Now, identity: Arc<HostIdentity>, sink: &mut dyn Sink, out: &mut Outbox<Self>) {
        let mut call = Call { now, sink, out };
        self.dhcp.share(&identity);
        let before = std::mem::replace(&mut self.dhcp.base, Arc::clone(&identity));
        let shown = self.settings.identity.certificate().clone();
        let is_leased = shown.der() != before.certificate().der();
        if !is_leased && shown.der() != identity.certificate().der() {
            self.change_identity(&mut call, identity);
        } else if let Ok(identity) = identity.with_certificate(shown) {
            // What it shares with others is new. A lease goes on, and its certificate with it.
            self.share(&mut call, identity);
        }
    }

    /// From now on this host shows another certificate; true if that has other addresses. Peers see a newer certificate for the same
    /// addresses by a rollover (paper, section 5.4: "re-exchange their current certificates"). What there is under other addresses
    /// ends, and to groups it speaks as somebody new.
    fn change_identity(&mut self, call: &mut Call<'_>, identity: Arc<HostIdentity>) -> bool {
        let moves = identity.certificate().addresses() != self.settings.identity.certificate().addresses();
        self.settings = Arc::new(Settings { identity, ..Settings::clone(&self.settings) });
        for lane in 0..self.settings.lanes {
            call.order(lane, OrderKind::Settle(Arc::clone(&self.settings)));
        }
        self.settle_site_keys(call);
        let certificate = self.settings.identity.certificate().clone();
        self.own_origin = Origin::of(&certificate);
        self.learn_certificate(call, &certificate);
        // A ticket names the certificate under which it was given; ours of before are refused by that name.
        self.forget_tickets_of(call, |_| true);
        let macs: Vec<MacAddress> = self.peers.iter().map(|(mac, _)| *mac).collect();
        if !moves {
            for mac in macs {
                // Where none can begin now, the association ends with the certificate that the peer knows.
                self.begin_rollover(call, mac);
            }
            return false;
        }
        self.broadcasts.renew_incarnation(&mut self.random, call.now);
        self.abandon_openings(call);
        self.abandon_answers(call);
        macs.into_iter().for_each(|mac| self.end_all(call, mac, EndCause::OwnAddress));
        true
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
        if self.dhcp.event_budget.take(call.now.since_boot)
            && let Ok((header, _)) = Header::parse(frame)
        {
            call.out.event(Event::DhcpRefused { mac: header.source, reason, detail });
        }
        Fate::Dropped(reason)
    }
}
