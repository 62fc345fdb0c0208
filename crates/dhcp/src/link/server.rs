//! This host as a DHCP server under the link layer: only what a host of the site asks reaches the server program, and a lease leaves
//! with the certificate that belongs to it.
//!
//! A client is known by its client ID alone. What it could do to others with a right tag is stopped here: hardware addresses that
//! differ from its own, another's address, more addresses than a machine needs, and questions without end. DECLINE and RELEASE end
//! here as well (section 6): a certificate cannot be taken back by giving an address back.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use bump::{DropReason, Instant, Now};
use identity::certificate::HostCertificate;
use identity::dhcp_key::{DhcpKey, DhcpMaster};
use identity::{Succession, Verified};
use shield::{Bucket, PerSource};
use wire::MacAddress;
use wire::cll::dhcp::{ClientId, Speaker, Stamp, TAG_LEN};
use wire::cll::{DhcpFrame, NONCE_LEN};
use wire::dhcp::{MessageType, OPTION_CLIENT, OPTION_REQUESTED, OPTION_SERVER, Operation, SERVER_PORT, View};
use wire::ethernet::Header;

use super::freshness::Freshness;
use super::{Grant, Leased, Link, SERIAL_LEN, wrapping};
use crate::{end_of, limits};

/// What a server knows.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What all clients' keys follow from.
    pub masters: Succession<DhcpMaster>,
    /// Its hardware address.
    pub mac: MacAddress,
    /// The addresses of this host, which REQUESTs name where they mean it.
    pub addresses: Vec<Ipv4Addr>,
    /// The wire.
    pub link: Link,
    /// How far a client's stamp may be from our clock.
    pub tolerance: Duration,
    /// New frames of one client that are looked at in a minute.
    pub messages_per_minute: u32,
}

/// A client's question that passed every check but that of its certificate.
#[derive(Debug)]
pub struct Asked {
    /// The plain frame for the program.
    pub frame: Vec<u8>,
    /// Its base certificate, as it came.
    pub certificate: Vec<u8>,
    /// Who asks, as the tag proves.
    pub client: ClientId,
    /// Under which of the client's keys.
    proved_by: DhcpKey,
    key: (MacAddress, u32, MessageType),
    nonce: [u8; NONCE_LEN],
    wanted: Option<Ipv4Addr>,
}

/// What is to be done with a client's frame.
#[derive(Debug)]
pub enum Step {
    /// Hand this plain frame to the server program.
    Deliver(Vec<u8>),
    /// Check the base certificate, then say [`admitted`](Server::admitted).
    Check(Box<Asked>),
    /// It may be a recording: send this, and the client says it again.
    Challenge(Vec<u8>),
}

/// An ACK that waits for its certificate.
#[derive(Debug)]
pub struct Granting {
    frame: Vec<u8>,
    key: DhcpKey,
    nonce: [u8; NONCE_LEN],
    address: Ipv4Addr,
    lease_s: u32,
}

impl Granting {
    /// Who gets the address.
    #[must_use]
    pub fn mac(&self) -> MacAddress {
        self.key.client().mac
    }

    /// The address.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }
}

/// What is to be done with a message of the server program.
#[derive(Debug)]
pub enum Reply {
    /// Send this.
    Send(Vec<u8>),
    /// Have the certificate made, then say [`certified`](Server::certified).
    Certify(Box<Granting>, Box<Grant>),
}

/// A message that was handed to the server program and may be answered.
#[derive(Clone, Debug)]
struct Exchange {
    /// The client's key under which it asked, and is answered.
    key: DhcpKey,
    nonce: [u8; NONCE_LEN],
    base: Option<Verified<HostCertificate>>,
    wanted: Option<Ipv4Addr>,
    at: Instant,
}

/// New frames of one client within an interval.
#[derive(Clone, Copy, Debug)]
struct Count {
    since: Instant,
    frames: u32,
}

/// A DHCP server's half.
#[derive(Debug)]
pub struct Server {
    settings: Settings,
    freshness: Freshness,
    exchanges: BTreeMap<(MacAddress, u32, MessageType), Exchange>,
    leases: BTreeMap<Ipv4Addr, Leased>,
    counts: BTreeMap<MacAddress, Count>,
    nonces_per_client: PerSource<MacAddress>,
    nonce_budget: Bucket,
    check_budget: Bucket,
    reply_budget: Bucket,
    last_stamp: Stamp,
}

impl Server {
    /// A server that knows nobody. `secret` is fresh and for nothing else.
    #[must_use]
    pub fn new(now: Now, settings: Settings, secret: [u8; 32]) -> Server {
        let bucket = |per_second| Bucket::new(per_second, per_second);
        Server {
            freshness: Freshness::new(now, secret, settings.tolerance),
            settings,
            exchanges: BTreeMap::new(),
            leases: BTreeMap::new(),
            counts: BTreeMap::new(),
            nonces_per_client: PerSource::new(limits::NONCES_PER_CLIENT_PER_SECOND, limits::SOURCES_MAX),
            nonce_budget: bucket(limits::NONCES_PER_SECOND),
            check_budget: bucket(limits::CLIENT_CHECKS_PER_SECOND),
            reply_budget: bucket(limits::REPLIES_PER_SECOND),
            last_stamp: Stamp::default(),
        }
    }

    /// The site's masters are these from now on.
    pub fn share(&mut self, masters: Succession<DhcpMaster>) {
        self.settings.masters = masters;
    }

    /// A frame of the wire: its Ethernet header and its message. In the order of cost.
    ///
    /// # Errors
    /// Why it must not come in.
    pub fn incoming(&mut self, now: Now, header: &Header, message: &[u8]) -> Result<Step, DropReason> {
        let frame = DhcpFrame::parse(message).map_err(|_| DropReason::Malformed)?;
        if frame.speaker != Speaker::Client {
            return Err(DropReason::DhcpNotClient);
        }
        if frame.client.mac != header.source {
            return Err(DropReason::DhcpChaddr);
        }
        // Without a clock nobody can say that it is over; the certificate is looked at as well.
        if now.trusted_unix_ms().is_some_and(|unix_ms| unix_ms / 1000 > frame.client.expires_unix_s) {
            return Err(DropReason::DhcpExpired);
        }
        let key = self.key_of(now, header, message, &frame).ok_or(DropReason::DhcpTag)?;
        let plain = wrapping::unwrap(header, &frame);
        let message = wrapping::message(&plain)?;
        let wanted = self.check_message(now.since_boot, header, &message)?;
        if !self.freshness.take(now, frame.client, frame.stamp, &frame.server_nonce) {
            return self.challenge(now, &key, header, &frame).map(Step::Challenge);
        }
        self.count(now.since_boot, frame.client.mac)?;
        let asked = Asked {
            certificate: frame.certificate.to_vec(),
            client: frame.client,
            proved_by: key,
            key: (frame.client.mac, message.xid(), message.kind()),
            nonce: frame.client_nonce,
            wanted,
            frame: plain.clone(),
        };
        self.take_question(now.since_boot, message.kind(), asked)
    }

    /// The client's key under which the tag of `message` is right: of those that are accepted, or
    /// of all without a clock.
    fn key_of(&self, now: Now, header: &Header, message: &[u8], frame: &DhcpFrame<'_>) -> Option<DhcpKey> {
        let unix_s = now.trusted_unix_ms().map_or(0, |unix_ms| unix_ms / 1000);
        let mut keys = self.settings.masters.accepted(unix_s).map(|(_, master)| master.key_of(frame.client));
        keys.find(|key| wrapping::is_tagged(key, header, message, frame))
    }

    /// Whether the message fits who sent it; gives the address that is asked for.
    fn check_message(&self, now: Instant, header: &Header, message: &View<'_>) -> Result<Option<Ipv4Addr>, DropReason> {
        if message.operation() != Operation::Request || message.destination_port() != SERVER_PORT {
            return Err(DropReason::DhcpUnasked);
        }
        if message.chaddr() != header.source || !names_itself(message) {
            return Err(DropReason::DhcpChaddr);
        }
        if matches!(message.kind(), MessageType::Release | MessageType::Decline) {
            return Err(DropReason::DhcpGivenBack);
        }
        let (source, ciaddr) = (message.source(), message.ciaddr());
        if !source.is_unspecified() && source != ciaddr {
            return Err(DropReason::DhcpAddress);
        }
        let option = |code| message.address_option(code).map_err(|_| DropReason::DhcpMalformed);
        if option(OPTION_SERVER)?.is_some_and(|server| !self.settings.addresses.contains(&server)) {
            return Err(DropReason::NotForUs);
        }
        let wanted = option(OPTION_REQUESTED)?.or(Some(ciaddr)).filter(|address| !address.is_unspecified());
        if message.kind() == MessageType::Request {
            self.check_holder(now, header.source, wanted.ok_or(DropReason::DhcpMalformed)?)?;
        }
        Ok(wanted)
    }

    /// Nobody gets what another has, nor more addresses than a machine needs.
    fn check_holder(&self, now: Instant, mac: MacAddress, wanted: Ipv4Addr) -> Result<(), DropReason> {
        match self.leases.get(&wanted).filter(|lease| lease.holds(now)) {
            Some(lease) if lease.mac == mac => return Ok(()),
            Some(_) => return Err(DropReason::DhcpNotHolder),
            None => {}
        }
        let holding = self.leases.values().filter(|lease| lease.holds(now));
        let (mine, all) = holding.fold((0, 0), |(mine, all), lease| (mine + usize::from(lease.mac == mac), all + 1));
        if mine >= limits::LEASES_PER_HOST_MAX || all >= limits::LEASES_MAX {
            return Err(DropReason::DhcpLeasesFull);
        }
        Ok(())
    }

    /// A frame that may be a recording is answered with a nonce, which only the client can repeat.
    fn challenge(
        &mut self,
        now: Now,
        key: &DhcpKey,
        header: &Header,
        frame: &DhcpFrame<'_>,
    ) -> Result<Vec<u8>, DropReason> {
        if !self.nonces_per_client.take(now.since_boot, frame.client.mac) || !self.nonce_budget.take(now.since_boot) {
            return Err(DropReason::DhcpStale);
        }
        let back = Header { destination: header.source, source: self.settings.mac, ethertype: header.ethertype };
        self.wrap(now, key, back, frame.client_nonce, &[], &[])
    }

    /// Counts a new frame of a client (section 6).
    fn count(&mut self, now: Instant, mac: MacAddress) -> Result<(), DropReason> {
        if self.counts.len() >= limits::CLIENTS_MAX && !self.counts.contains_key(&mac) {
            self.counts.retain(|_, count| now.since(count.since) < limits::CLIENT_INTERVAL);
            if self.counts.len() >= limits::CLIENTS_MAX {
                return Err(DropReason::DhcpBudget);
            }
        }
        let count = self.counts.entry(mac).or_insert(Count { since: now, frames: 0 });
        if now.since(count.since) >= limits::CLIENT_INTERVAL {
            *count = Count { since: now, frames: 0 };
        }
        count.frames += 1;
        if count.frames > self.settings.messages_per_minute { Err(DropReason::DhcpBudget) } else { Ok(()) }
    }

    fn take_question(&mut self, now: Instant, kind: MessageType, asked: Asked) -> Result<Step, DropReason> {
        if kind != MessageType::Request {
            self.open(now, &asked, None)?;
            return Ok(Step::Deliver(asked.frame));
        }
        if asked.certificate.is_empty() {
            return Err(DropReason::DhcpCertificate);
        }
        if !self.check_budget.take(now) {
            return Err(DropReason::DhcpBudget);
        }
        Ok(Step::Check(Box::new(asked)))
    }

    /// The base certificate of a question is the client's, and good; the plain frame for the program.
    ///
    /// # Errors
    /// [`DropReason::DhcpLeasesFull`] when too many questions are open.
    pub fn admitted(
        &mut self,
        now: Instant,
        asked: Asked,
        base: Verified<HostCertificate>,
    ) -> Result<Vec<u8>, DropReason> {
        self.open(now, &asked, Some(base))?;
        Ok(asked.frame)
    }

    fn open(&mut self, now: Instant, asked: &Asked, base: Option<Verified<HostCertificate>>) -> Result<(), DropReason> {
        if self.exchanges.len() >= limits::SERVER_EXCHANGES_MAX && !self.exchanges.contains_key(&asked.key) {
            self.exchanges.retain(|_, one| now.since(one.at) < limits::EXCHANGE_OPEN);
            if self.exchanges.len() >= limits::SERVER_EXCHANGES_MAX {
                return Err(DropReason::DhcpLeasesFull);
            }
        }
        let Asked { nonce, wanted, .. } = *asked;
        let key = asked.proved_by.clone();
        self.exchanges.insert(asked.key, Exchange { key, nonce, base, wanted, at: now });
        Ok(())
    }

    /// A plain frame of our server program. `unix_s` is the time from which a certificate is good, `serial` a fresh random number.
    ///
    /// # Errors
    /// Why it must not leave.
    pub fn outgoing(
        &mut self,
        now: Now,
        unix_s: u64,
        serial: [u8; SERIAL_LEN],
        frame: &[u8],
    ) -> Result<Reply, DropReason> {
        let message = wrapping::message(frame)?;
        if message.operation() != Operation::Reply {
            return Err(DropReason::DhcpNotClient);
        }
        let (asked, exchange) = self.exchange(now.since_boot, &message).ok_or(DropReason::DhcpUnasked)?;
        if !self.reply_budget.take(now.since_boot) {
            return Err(DropReason::DhcpBudget);
        }
        if (message.kind(), asked) == (MessageType::Ack, MessageType::Request) {
            return self.grant(&message, frame, exchange, unix_s, serial);
        }
        if message.kind() == MessageType::Nak {
            self.leases
                .retain(|address, lease| Some(*address) != exchange.wanted || lease.mac != exchange.key.client().mac);
        }
        self.wrap(now, &exchange.key, message.ethernet(), exchange.nonce, &[], wrapping::packet(frame)).map(Reply::Send)
    }

    /// Which message of a client the program answers.
    fn exchange(&self, now: Instant, message: &View<'_>) -> Option<(MessageType, Exchange)> {
        let found = message.kind().answers().iter().filter_map(|kind| {
            let exchange = self.exchanges.get(&(message.chaddr(), message.xid(), *kind))?;
            (now.since(exchange.at) < limits::EXCHANGE_OPEN).then(|| (*kind, exchange.clone()))
        });
        found.max_by_key(|(_, exchange)| exchange.at)
    }

    /// The program grants an address: its ACK waits for the certificate, which lasts as long as the lease.
    fn grant(
        &self,
        message: &View<'_>,
        frame: &[u8],
        exchange: Exchange,
        unix_s: u64,
        serial: [u8; SERIAL_LEN],
    ) -> Result<Reply, DropReason> {
        let address = message.yiaddr();
        if exchange.wanted != Some(address) {
            return Err(DropReason::DhcpAddress);
        }
        let base = exchange.base.ok_or(DropReason::DhcpCertificate)?;
        let lease_s = message.lease_s().ok().flatten().ok_or(DropReason::DhcpMalformed)?;
        let until_unix_s = if lease_s == u32::MAX { u64::MAX } else { unix_s + u64::from(lease_s) };
        let grant = Grant { base, address, from_unix_s: unix_s, until_unix_s, serial };
        let Exchange { key, nonce, .. } = exchange;
        let granting = Granting { frame: frame.to_vec(), key, nonce, address, lease_s };
        Ok(Reply::Certify(Box::new(granting), Box::new(grant)))
    }

    /// The certificate of a lease is made: the frame that leaves.
    ///
    /// # Errors
    /// [`DropReason::DhcpLeasesFull`], [`DropReason::TooBig`], or [`DropReason::DhcpNotHolder`] if another was granted the address
    /// meanwhile.
    pub fn certified(&mut self, now: Now, granting: &Granting, certificate: &[u8]) -> Result<Vec<u8>, DropReason> {
        let Granting { frame, key, nonce, address, lease_s } = granting;
        let mac = granting.mac();
        let header = wrapping::message(frame)?.ethernet();
        self.leases.retain(|_, lease| lease.holds(now.since_boot));
        self.check_holder(now.since_boot, mac, *address)?;
        let wrapped = self.wrap(now, key, header, *nonce, certificate, wrapping::packet(frame))?;
        let until = end_of(now.since_boot, *lease_s);
        self.leases.insert(*address, Leased { address: *address, mac, until });
        Ok(wrapped)
    }

    /// The leases that last, by address; at most [`limits::LEASES_MAX`].
    pub fn leases(&self, now: Instant) -> impl Iterator<Item = Leased> {
        self.leases.values().filter(move |lease| lease.holds(now)).copied()
    }

    fn wrap(
        &mut self,
        now: Now,
        key: &DhcpKey,
        header: Header,
        client_nonce: [u8; NONCE_LEN],
        certificate: &[u8],
        packet: &[u8],
    ) -> Result<Vec<u8>, DropReason> {
        let unix_s = now.wall.map_or(0, |wall| wall.unix_ms / 1000);
        let counter = if unix_s == self.last_stamp.unix_s { self.last_stamp.counter.wrapping_add(1) } else { 0 };
        self.last_stamp = Stamp { unix_s, counter };
        let frame = DhcpFrame {
            speaker: Speaker::Server,
            tag: [0; TAG_LEN],
            client: key.client(),
            stamp: self.last_stamp,
            client_nonce,
            server_nonce: self.freshness.nonce(now.since_boot, key.client()),
            certificate,
            packet,
        };
        wrapping::wrap(self.settings.link, key, header, &frame)
    }
}

/// Whether a client that names itself by a hardware address names its own (RFC 2132, section 9.14). Other identifiers say nothing
/// that could be compared; how many addresses they are good for is limited by host.
fn names_itself(message: &View<'_>) -> bool {
    const ETHERNET: u8 = 1;
    match message.option(OPTION_CLIENT).as_deref() {
        Some([ETHERNET, mac @ ..]) if mac.len() == 6 => *mac == message.chaddr().0,
        _ => true,
    }
}
