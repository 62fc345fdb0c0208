//! This host as a DHCP client: its own messages leave proved, and only proved replies to them come in.

use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::time::Duration;

use bump::{DropReason, Instant};
use identity::Succession;
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
    /// The keys of the site.
    pub site_keys: Succession<SiteKey>,
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
        let is_right =
            self.server.verify_record_signature(&self.claimed.signed_bytes(), &self.claimed.signature).is_ok();
        is_right.then_some(self.claimed)
    }
}

/// What a proved reply changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing.
    Same,
    /// This host has an address that it had not.
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

    /// The keys of the site are these from now on.
    pub fn share(&mut self, site_keys: Succession<SiteKey>) {
        self.settings.site_keys = site_keys;
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
        // Without a stamp nobody could tell it from a recording. Whoever has not the time has no distributor either, and a
        // server would have to ask one; programs ask again by themselves.
        let stamp = stamp.ok_or(DropReason::SarpNoClock)?;
        if !self.sign_budget.take(now) {
            return Err(DropReason::DhcpBudget);
        }
        let nonce = self.remember(now, &message, nonce)?;
        let by = Stamped { who: self.settings.host, stamp, nonce };
        Proving::new(Maker::Client, &message, frame, by, &self.settings.site_keys)
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
        let claimed = Claimed::read(Maker::Server, &message, frame, (&self.settings.site_keys, stamp))?;
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
        let had_it = self.owns(now, address);
        self.leases.retain(|lease| lease.address != address && lease.holds(now));
        if self.leases.len() >= limits::OWN_LEASES_MAX {
            self.leases.remove(0);
        }
        self.leases.push(Lease { address, host: self.settings.host, until: end_of(now, lease_s) });
        Ok(if had_it { Outcome::Same } else { Outcome::Gained(address) })
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

    /// An earlier run of this program was granted this, and had it proved then.
    pub fn resume(&mut self, now: Instant, address: Ipv4Addr, until: Option<Instant>) {
        let lease = Lease { address, host: self.settings.host, until };
        if lease.holds(now) && !self.owns(now, address) && self.leases.len() < limits::OWN_LEASES_MAX {
            self.leases.push(lease);
        }
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

#[cfg(test)]
mod tests {
    use identity::HostIdentity;

    use super::*;

    const ME: MacAddress = MacAddress([2, 0, 0, 0, 0, 1]);
    const NOW: Instant = Instant::from_millis(1000);
    const WANTED: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 7);

    fn identity(role: Role) -> HostIdentity {
        let mut count = 0_u8;
        let mut random = move |bytes: &mut [u8]| {
            bytes.fill_with(|| {
                count = count.wrapping_add(37);
                count
            });
        };
        let site = authority::Site::create("test", &mut random, 1_800_000_000).expect("a site");
        let request = authority::Request::new("d", MacAddress([2, 0, 0, 0, 0, 9]), Vec::new()).expect("a request");
        let pem = site.issue_identity(&request.with_role(role), &mut random, 1_800_000_000).expect("issued");
        HostIdentity::from_pem(&pem).expect("an identity")
    }

    fn message(kind: MessageType, given: Ipv4Addr, options: &[u8]) -> Vec<u8> {
        let is_request = kind.operation() == Operation::Request;
        let mut bootp = vec![0; 240];
        bootp[..8].copy_from_slice(&[if is_request { 1 } else { 2 }, 1, 6, 0, 0, 0, 0, 7]);
        bootp[16..20].copy_from_slice(&given.octets());
        bootp[28..34].copy_from_slice(&ME.0);
        bootp[236..].copy_from_slice(&[99, 130, 83, 99]);
        bootp.extend([&[53, 1, kind as u8][..], options, &[255]].concat());
        let (ip_len, udp_len) = ((28 + bootp.len()) as u16, (8 + bootp.len()) as u16);
        let mut frame = [&[0xff; 6][..], &ME.0, &[8, 0, 0x45, 0], &ip_len.to_be_bytes()].concat();
        frame.extend([0, 0, 0, 0, 64, 17, 0, 0, 0, 0, 0, 0, 255, 255, 255, 255, 0, 68, 0, 67]);
        frame.extend(udp_len.to_be_bytes());
        [&frame[..], &[0, 0], &bootp].concat()
    }

    /// A client that has asked for [`WANTED`], and the server that it believes if that has `role`.
    fn asked(role: Role) -> (Client, HostIdentity) {
        let server = identity(role);
        let site_keys = server.site_keys().clone();
        let servers = vec![server.certificate().clone()];
        let settings = Settings { mac: ME, host: 1, site_keys, servers, window: Duration::from_secs(30) };
        let mut client = Client::new(settings);
        let request = message(MessageType::Request, Ipv4Addr::UNSPECIFIED, &[50, 4, 10, 0, 0, 7]);
        client.outgoing(NOW, Some(5), [3; NONCE_LEN], &request).expect("it leaves");
        (client, server)
    }

    /// The server's signed answer, whatever it says.
    fn answer(server: &HostIdentity, frame: &[u8]) -> Vec<u8> {
        let who = key_name(server.certificate().record_key().expect("Ed25519").1);
        let by = Stamped { who, stamp: 6, nonce: [3; NONCE_LEN] };
        let view = View::new(frame).expect("a message");
        let proving = Proving::new(Maker::Server, &view, frame, by, server.site_keys()).expect("readable");
        proving.run(&server.record_signing_key()).expect("signed")
    }

    fn takes(client: &mut Client, frame: &[u8]) -> Result<Outcome, DropReason> {
        let checking = client.incoming(NOW, Some(5), frame)?;
        let claimed = checking.run().ok_or(DropReason::DhcpSignature)?;
        client.verified(NOW, &claimed).map(|(_, outcome)| outcome)
    }

    #[test]
    fn a_lease_is_for_what_was_asked_and_ends_by_itself() {
        let (mut client, server) = asked(Role::DhcpServer);
        let time = [51, 4, 0, 0, 0, 60];
        let other = answer(&server, &message(MessageType::Ack, Ipv4Addr::new(10, 0, 0, 8), &time));
        assert_eq!(takes(&mut client, &other), Err(DropReason::DhcpAddress));
        let endless = answer(&server, &message(MessageType::Ack, WANTED, &[]));
        assert_eq!(takes(&mut client, &endless), Err(DropReason::DhcpMalformed), "no time is named");
        let right = answer(&server, &message(MessageType::Ack, WANTED, &time));
        assert_eq!(takes(&mut client, &right), Ok(Outcome::Gained(WANTED)));
        assert_eq!(takes(&mut client, &right), Err(DropReason::DhcpUnasked), "once");
        let end = NOW + Duration::from_secs(60);
        assert!(client.owns(NOW, WANTED) && !client.owns(end, WANTED));
        assert_eq!((client.deadline(), client.leases(end)), (Some(end), vec![]));
        assert!(client.ended(NOW).is_none() && client.ended(end).is_some());
    }

    #[test]
    fn only_servers_are_believed() {
        for role in [Role::Host, Role::Distributor] {
            let (mut client, server) = asked(role);
            let ack = answer(&server, &message(MessageType::Ack, WANTED, &[51, 4, 0, 0, 0, 60]));
            assert_eq!(takes(&mut client, &ack), Err(DropReason::DhcpSignature));
        }
        // Nor one whose certificate is over.
        let (mut client, server) = asked(Role::DhcpServer);
        let ack = answer(&server, &message(MessageType::Ack, WANTED, &[51, 4, 0, 0, 0, 60]));
        let late = (server.certificate().not_after_unix() + 1) << 32;
        client.settings.window = Duration::from_secs(u64::from(u32::MAX));
        assert_eq!(client.incoming(NOW, Some(late), &ack).err(), Some(DropReason::DhcpSignature));
    }

    #[test]
    fn what_is_open_is_bounded_and_what_is_given_back_is_gone() {
        let (mut client, server) = asked(Role::DhcpServer);
        let right = answer(&server, &message(MessageType::Ack, WANTED, &[51, 4, 0xff, 0xff, 0xff, 0xff]));
        assert_eq!(takes(&mut client, &right), Ok(Outcome::Gained(WANTED)));
        assert_eq!((client.deadline(), client.leases(NOW)[0].until), (None, None), "for ever");
        let decline = message(MessageType::Decline, Ipv4Addr::UNSPECIFIED, &[50, 4, 10, 0, 0, 7]);
        client.outgoing(NOW, Some(7), [4; NONCE_LEN], &decline).expect("it leaves");
        assert!(!client.owns(NOW, WANTED));
        for second in 1..50 {
            let mut discover = message(MessageType::Discover, Ipv4Addr::UNSPECIFIED, &[]);
            discover[46..50].copy_from_slice(&[second; 4]);
            let later = NOW + Duration::from_secs(u64::from(second));
            client.outgoing(later, Some(8), [second; NONCE_LEN], &discover).expect("it leaves");
        }
        assert_eq!(client.exchanges.len(), limits::CLIENT_EXCHANGES_MAX);
    }
}
