//! This host as a DHCP client: its own messages leave proved, and only proved replies to them come in.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Duration;

use bump::{DropReason, Instant};
use identity::certificate::{HostCertificate, Role, Verified};
use identity::site_key::SiteKey;
use shield::Bucket;
use wire::MacAddress;
use wire::dhcp::proof::{Claim, Maker, NONCE_LEN};
use wire::dhcp::{MessageType, Operation, View};

use crate::proof::{Claimed, Proving, Stamped, key_name};
use crate::{Lease, end_of, limits, stamp};

/// What a client knows of its site.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Hardware address of the guarded interface.
    pub mac: MacAddress,
    /// The number of this host.
    pub host: u64,
    /// The key of the site.
    pub site_key: SiteKey,
    /// The site's DHCP servers, as the enrolment names them.
    pub servers: Vec<Verified<HostCertificate>>,
    /// How far a stamp may be from the S-ARP clock.
    pub window: Duration,
}

/// A request of ours that waits for its answer.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    xid: u32,
    kind: MessageType,
    nonce: [u8; NONCE_LEN],
    /// The address that was asked for.
    wanted: Option<Ipv4Addr>,
    asked_at: Instant,
}

impl Exchange {
    fn is_open(&self, now: Instant) -> bool {
        now.since(self.asked_at) < limits::EXCHANGE_OPEN
    }

    fn is_answered_by(&self, claim: &Claim) -> bool {
        let fits = match claim.kind {
            MessageType::Offer => self.kind == MessageType::Discover,
            MessageType::Ack => matches!(self.kind, MessageType::Request | MessageType::Inform),
            MessageType::Nak => self.kind == MessageType::Request,
            _ => false,
        };
        fits && self.xid == claim.xid && self.nonce == claim.nonce
    }
}

/// A reply whose signature is to be checked under the key of a server.
#[derive(Debug)]
pub struct Checking {
    /// The reply.
    pub claimed: Claimed,
    server: Verified<HostCertificate>,
}

impl Checking {
    /// Checks the signature; the reply comes back if it is right.
    #[must_use]
    pub fn run(self) -> Option<Claimed> {
        let is_right = self.server.verify_signature(&self.claimed.signed_bytes(), &self.claimed.signature).is_ok();
        is_right.then_some(self.claimed)
    }
}

/// What a proved reply changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Same,
    /// This host has (again) an address.
    Gained(Ipv4Addr),
    /// This host has lost an address.
    Lost(Ipv4Addr),
}

/// A DHCP client's half of S-DHCP.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    exchanges: VecDeque<Exchange>,
    leases: Vec<Lease>,
    sign_budget: Bucket,
    check_budget: Bucket,
}

impl Client {
    /// A client without an address.
    #[must_use]
    pub fn new(settings: Settings) -> Client {
        let bucket = |per_second| Bucket::new(per_second, per_second);
        Client {
            settings,
            exchanges: VecDeque::new(),
            leases: Vec::new(),
            sign_budget: bucket(limits::CLIENT_MESSAGES_PER_SECOND),
            check_budget: bucket(limits::REPLY_CHECKS_PER_SECOND),
        }
    }

    /// A message of our own DHCP client. `nonce` is a fresh one; a repetition keeps that of the first, so that an answer to
    /// either is good.
    ///
    /// # Errors
    /// Why it must not leave.
    pub fn outgoing(
        &mut self,
        now: Instant,
        stamp: Option<u64>,
        nonce: [u8; NONCE_LEN],
        frame: &[u8],
    ) -> Result<Proving, DropReason> {
        let message = View::new(frame).map_err(|_| DropReason::DhcpMalformed)?;
        if message.operation() != Operation::Request {
            return Err(DropReason::DhcpNotServer);
        }
        if message.chaddr() != self.settings.mac {
            return Err(DropReason::DhcpChaddr);
        }
        if message.is_relayed() {
            return Err(DropReason::DhcpRelay);
        }
        // A host that has just booted may look for servers at once; what changes anything must be no recording.
        if stamp.is_none() && message.kind() != MessageType::Discover {
            return Err(DropReason::SarpNoClock);
        }
        if !self.sign_budget.take(now) {
            return Err(DropReason::DhcpBudget);
        }
        let nonce = self.remember(now, &message, nonce)?;
        let by = Stamped { who: self.settings.host, stamp: stamp.unwrap_or(stamp::UNKNOWN), nonce };
        Proving::new(Maker::Client, &message, frame, by, &self.settings.site_key)
    }

    /// Notes what is asked; what is given back is no longer ours.
    fn remember(
        &mut self,
        now: Instant,
        message: &View<'_>,
        nonce: [u8; NONCE_LEN],
    ) -> Result<[u8; NONCE_LEN], DropReason> {
        let requested = message.address_option(wire::dhcp::OPTION_REQUESTED).map_err(|_| DropReason::DhcpMalformed)?;
        let wanted = requested.or(Some(message.ciaddr())).filter(|address| !address.is_unspecified());
        let (xid, kind) = (message.xid(), message.kind());
        if matches!(kind, MessageType::Release | MessageType::Decline) {
            self.leases.retain(|lease| Some(lease.address) != wanted);
            return Ok(nonce);
        }
        self.exchanges.retain(|exchange| exchange.is_open(now));
        let is_same = |one: &&mut Exchange| one.xid == xid && one.kind == kind && one.wanted == wanted;
        if let Some(exchange) = self.exchanges.iter_mut().find(is_same) {
            exchange.asked_at = now;
            return Ok(exchange.nonce);
        }
        if self.exchanges.len() >= limits::CLIENT_EXCHANGES_MAX {
            self.exchanges.pop_front();
        }
        self.exchanges.push_back(Exchange { xid, kind, nonce, wanted, asked_at: now });
        Ok(nonce)
    }

    /// A reply from the wire; what comes back is to be checked.
    ///
    /// # Errors
    /// Why it must not come in.
    pub fn incoming(&mut self, now: Instant, stamp: Option<u64>, frame: &[u8]) -> Result<Checking, DropReason> {
        let message = View::new(frame).map_err(|_| DropReason::DhcpMalformed)?;
        if message.chaddr() != self.settings.mac {
            return Err(DropReason::NotForUs);
        }
        if !self.exchanges.iter().any(|exchange| exchange.xid == message.xid() && exchange.is_open(now)) {
            return Err(DropReason::DhcpUnasked);
        }
        let claimed = Claimed::read(Maker::Server, &message, frame, &self.settings.site_key)?;
        self.exchange(now, &claimed.claim).ok_or(DropReason::DhcpUnasked)?;
        let said_at = claimed.claim.stamp;
        if stamp.is_some_and(|ours| !stamp::are_near(ours, said_at, self.settings.window)) {
            return Err(DropReason::DhcpStale);
        }
        let server = self.server(claimed.claim.who, stamp).ok_or(DropReason::DhcpSignature)?.clone();
        if !self.check_budget.take(now) {
            return Err(DropReason::DhcpBudget);
        }
        Ok(Checking { claimed, server })
    }

    fn exchange(&self, now: Instant, claim: &Claim) -> Option<Exchange> {
        self.exchanges.iter().find(|one| one.is_open(now) && one.is_answered_by(claim)).copied()
    }

    /// The server whose key has this name, while its certificate lasts.
    fn server(&self, name: u64, stamp: Option<u64>) -> Option<&Verified<HostCertificate>> {
        let lasts =
            |server: &HostCertificate| stamp.is_none_or(|stamp| stamp::seconds(stamp) <= server.not_after_unix());
        let is_named = |server: &HostCertificate| server.record_key().is_some_and(|(_, key)| key_name(key) == name);
        let mut servers = self.settings.servers.iter();
        servers.find(|server| server.role() == Role::DhcpServer && is_named(server) && lasts(server))
    }

    /// A reply whose signature is right: the message for the DHCP client, and what it changes.
    ///
    /// # Errors
    /// Why it must not come in all the same.
    pub fn verified(&mut self, now: Instant, claimed: &Claimed) -> Result<(Vec<u8>, Outcome), DropReason> {
        let claim = &claimed.claim;
        // Another reply may have closed the exchange meanwhile.
        let exchange = self.exchange(now, claim).ok_or(DropReason::DhcpUnasked)?;
        let bare = claimed.bare()?;
        let outcome = match (claim.kind, exchange.kind) {
            (MessageType::Ack, MessageType::Request) => self.gain(now, &exchange, claim, &claimed.frame)?,
            (MessageType::Nak, _) => self.lose(exchange.wanted),
            _ => Outcome::Same,
        };
        if claim.kind != MessageType::Offer {
            // The offers of this exchange have served, too.
            self.exchanges.retain(|one| one.xid != exchange.xid);
        }
        Ok((bare, outcome))
    }

    fn gain(&mut self, now: Instant, exchange: &Exchange, claim: &Claim, frame: &[u8]) -> Result<Outcome, DropReason> {
        let address = claim.address;
        if exchange.wanted != Some(address) || address.is_multicast() || address.is_broadcast() {
            return Err(DropReason::DhcpAddress);
        }
        let message = View::new(frame).map_err(|_| DropReason::DhcpMalformed)?;
        let lease_s = message.lease_s().ok().flatten().ok_or(DropReason::DhcpMalformed)?;
        self.leases.retain(|lease| lease.address != address && lease.holds(now));
        if self.leases.len() >= limits::OWN_LEASES_MAX {
            self.leases.remove(0);
        }
        self.leases.push(Lease { address, host: self.settings.host, until: end_of(now, lease_s) });
        Ok(Outcome::Gained(address))
    }

    fn lose(&mut self, address: Option<Ipv4Addr>) -> Outcome {
        let before = self.leases.len();
        self.leases.retain(|lease| Some(lease.address) != address);
        match address {
            Some(address) if self.leases.len() < before => Outcome::Lost(address),
            _ => Outcome::Same,
        }
    }

    /// Whether this host has `address` by lease.
    #[must_use]
    pub fn owns(&self, now: Instant, address: Ipv4Addr) -> bool {
        self.leases.iter().any(|lease| lease.address == address && lease.holds(now))
    }

    /// The leases that last, newest last.
    #[must_use]
    pub fn leases(&self, now: Instant) -> Vec<Lease> {
        self.leases.iter().filter(|lease| lease.holds(now)).copied().collect()
    }

    /// Takes out one lease that has ended.
    pub fn ended(&mut self, now: Instant) -> Option<Lease> {
        let at = self.leases.iter().position(|lease| !lease.holds(now))?;
        Some(self.leases.remove(at))
    }

    /// When the next lease ends.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.leases.iter().filter_map(|lease| lease.until).min()
    }
}
