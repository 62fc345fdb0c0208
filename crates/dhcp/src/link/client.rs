//! This host as a DHCP client under the link layer: its messages leave under its DHCP key, with its base certificate where it asks
//! for an address, and only answers under that key come in. What proves an answer fresh is the nonce of its question, so this half
//! needs no clock.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use bump::{DropReason, Instant, Now};
use identity::Succession;
use identity::dhcp_key::DhcpKey;
use shield::Bucket;
use wire::MacAddress;
use wire::cll::dhcp::{ClientId, Speaker, Stamp, TAG_LEN};
use wire::cll::{DhcpFrame, NONCE_LEN};
use wire::dhcp::{MessageType, OPTION_REQUESTED, OPTION_SERVER, Operation, View};
use wire::ethernet::Header;

use super::{Leased, Link, wrapping};
use crate::{Lease, end_of, limits};

/// What a client knows.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its DHCP keys.
    pub keys: Succession<DhcpKey>,
    /// Its base certificate in DER, which goes with questions for an address.
    pub base: Vec<u8>,
    /// The wire.
    pub link: Link,
}

/// A question of ours that waits for its answer.
#[derive(Clone, Debug)]
struct Exchange {
    xid: u32,
    kind: MessageType,
    nonce: [u8; NONCE_LEN],
    /// The address that was asked for.
    wanted: Option<Ipv4Addr>,
    asked_at: Instant,
    /// How often the program has repeated it: a server that is silent may know another of our keys.
    round: usize,
    /// The plain frame, for a server that wants its nonce repeated.
    frame: Vec<u8>,
    /// The servers to which it was sent again because they asked whether it is new, since the program has sent it.
    repeated_to: Vec<MacAddress>,
}

impl Exchange {
    fn is_open(&self, now: Instant) -> bool {
        now.since(self.asked_at) < limits::EXCHANGE_OPEN
    }

    fn is_answered_by(&self, message: &View<'_>) -> bool {
        let fits = match message.kind() {
            MessageType::Offer => self.kind == MessageType::Discover,
            MessageType::Ack => matches!(self.kind, MessageType::Request | MessageType::Inform),
            MessageType::Nak => self.kind == MessageType::Request,
            _ => false,
        };
        fits && self.xid == message.xid()
    }
}

/// The nonce that a server gave with its OFFER.
#[derive(Clone, Copy, Debug)]
struct Heard {
    xid: u32,
    server: Option<Ipv4Addr>,
    nonce: [u8; NONCE_LEN],
}

/// An answer that grants an address, with the certificate that came with it.
#[derive(Clone, Debug)]
pub struct Granted {
    /// The plain frame for the program.
    pub frame: Vec<u8>,
    /// The certificate, as it came.
    pub certificate: Vec<u8>,
    /// The address.
    pub address: Ipv4Addr,
    lease_s: u32,
    nonce: [u8; NONCE_LEN],
}

/// What is to be done with a frame of a server.
#[derive(Debug)]
pub enum Step {
    /// Hand this plain frame to the program.
    Deliver(Vec<u8>),
    /// The same, and the address is no longer ours.
    Lose(Vec<u8>),
    /// Check the certificate, then say [`granted`](Client::granted).
    Check(Box<Granted>),
    /// Send this frame: the server wants its nonce repeated.
    Repeat(Vec<u8>),
}

/// A DHCP client's half.
#[derive(Debug)]
pub struct Client {
    settings: Settings,
    exchanges: VecDeque<Exchange>,
    heard: VecDeque<Heard>,
    last_stamp: Stamp,
    lease: Option<Lease>,
    send_budget: Bucket,
}

impl Client {
    /// A client without an address.
    #[must_use]
    pub fn new(settings: Settings) -> Client {
        let send_budget = Bucket::new(limits::CLIENT_MESSAGES_PER_SECOND, limits::CLIENT_MESSAGES_PER_SECOND);
        let (exchanges, heard) = (VecDeque::new(), VecDeque::new());
        Client { settings, exchanges, heard, last_stamp: Stamp::default(), lease: None, send_budget }
    }

    /// This host has other keys, or another base certificate, from now on. A lease goes on under the
    /// certificate that came with it.
    pub fn share(&mut self, keys: Succession<DhcpKey>, base: Vec<u8>) {
        if keys.newest().1.client() != self.id() {
            // What is asked for by a former name is answered to that.
            self.exchanges.clear();
        }
        (self.settings.keys, self.settings.base) = (keys, base);
    }

    fn id(&self) -> ClientId {
        self.settings.keys.newest().1.client()
    }

    fn mac(&self) -> MacAddress {
        self.id().mac
    }

    /// The key of the `round`th try.
    fn key(&self, now: Now, round: usize) -> &DhcpKey {
        let unix_s = unix_s(now);
        let accepted = self.settings.keys.accepted(unix_s).count();
        let key = self.settings.keys.accepted(unix_s).nth(round % accepted.max(1));
        key.map_or(self.settings.keys.newest().1, |(_, key)| key)
    }

    /// A plain frame of our own DHCP program becomes the frame that leaves. `nonce` is a fresh one; a repetition keeps that of the
    /// first, so that an answer to either is good.
    ///
    /// # Errors
    /// Why it must not leave.
    pub fn outgoing(&mut self, now: Now, nonce: [u8; NONCE_LEN], frame: &[u8]) -> Result<Vec<u8>, DropReason> {
        let message = wrapping::message(frame)?;
        if message.operation() != Operation::Request {
            return Err(DropReason::DhcpNotServer);
        }
        if message.chaddr() != self.mac() || message.ethernet().source != self.mac() {
            return Err(DropReason::DhcpChaddr);
        }
        if matches!(message.kind(), MessageType::Release | MessageType::Decline) {
            return Err(DropReason::DhcpGivenBack);
        }
        if !self.send_budget.take(now.since_boot) {
            return Err(DropReason::DhcpBudget);
        }
        let server_nonce = self.nonce_of(&message)?;
        let at = self.remember(now.since_boot, &message, nonce, frame)?;
        self.wrap(now, at, message.ethernet(), server_nonce)
    }

    /// The nonce that the server which `message` means gave with its OFFER; zeros without one.
    fn nonce_of(&self, message: &View<'_>) -> Result<[u8; NONCE_LEN], DropReason> {
        let server = message.address_option(OPTION_SERVER).map_err(|_| DropReason::DhcpMalformed)?;
        let known = self.heard.iter().rev().find(|heard| heard.xid == message.xid() && heard.server == server);
        Ok(known.map_or([0; NONCE_LEN], |heard| heard.nonce))
    }

    /// Notes what is asked; gives the place of its exchange.
    fn remember(
        &mut self,
        now: Instant,
        message: &View<'_>,
        nonce: [u8; NONCE_LEN],
        frame: &[u8],
    ) -> Result<usize, DropReason> {
        let requested = message.address_option(OPTION_REQUESTED).map_err(|_| DropReason::DhcpMalformed)?;
        let wanted = requested.or(Some(message.ciaddr())).filter(|address| !address.is_unspecified());
        let (xid, kind) = (message.xid(), message.kind());
        self.exchanges.retain(|exchange| exchange.is_open(now));
        let is_same = |one: &Exchange| one.xid == xid && one.kind == kind && one.wanted == wanted;
        if let Some(at) = self.exchanges.iter().position(is_same) {
            let known = &mut self.exchanges[at];
            (known.asked_at, known.frame, known.repeated_to) = (now, frame.to_vec(), Vec::new());
            known.round += 1;
            return Ok(at);
        }
        if self.exchanges.len() >= limits::CLIENT_EXCHANGES_MAX {
            self.exchanges.pop_front();
        }
        self.exchanges.push_back(Exchange {
            xid,
            kind,
            nonce,
            wanted,
            asked_at: now,
            round: 0,
            frame: frame.to_vec(),
            repeated_to: Vec::new(),
        });
        Ok(self.exchanges.len() - 1)
    }

    /// The question of the exchange at this place, with the stamp of this moment.
    fn wrap(
        &mut self,
        now: Now,
        at: usize,
        header: Header,
        server_nonce: [u8; NONCE_LEN],
    ) -> Result<Vec<u8>, DropReason> {
        let stamp = self.stamp(now);
        let exchange = self.exchanges.get(at).ok_or(DropReason::DhcpUnasked)?;
        let asks_for_address = exchange.kind == MessageType::Request;
        let frame = DhcpFrame {
            speaker: Speaker::Client,
            tag: [0; TAG_LEN],
            client: self.id(),
            stamp,
            client_nonce: exchange.nonce,
            server_nonce,
            certificate: if asks_for_address { &self.settings.base } else { &[] },
            packet: wrapping::packet(&exchange.frame),
        };
        wrapping::wrap(self.settings.link, self.key(now, exchange.round), header, &frame)
    }

    /// Later than every stamp before, whatever the clock does.
    fn stamp(&mut self, now: Now) -> Stamp {
        let (unix_s, last) = (unix_s(now), self.last_stamp);
        self.last_stamp = if unix_s > last.unix_s {
            Stamp { unix_s, counter: 0 }
        } else {
            Stamp { counter: last.counter.saturating_add(1), ..last }
        };
        self.last_stamp
    }

    /// A frame of the wire: its Ethernet header and its message.
    ///
    /// # Errors
    /// Why it must not come in.
    pub fn incoming(&mut self, now: Now, header: &Header, message: &[u8]) -> Result<Step, DropReason> {
        let frame = DhcpFrame::parse(message).map_err(|_| DropReason::Malformed)?;
        if frame.speaker != Speaker::Server {
            return Err(DropReason::DhcpNotServer);
        }
        if frame.client != self.id() {
            return Err(DropReason::NotForUs);
        }
        let is_asked = |one: &Exchange| one.nonce == frame.client_nonce && one.is_open(now.since_boot);
        let at = self.exchanges.iter().position(is_asked).ok_or(DropReason::DhcpUnasked)?;
        let is_tagged = |key: &DhcpKey| wrapping::is_tagged(key, header, message, &frame);
        if !self.settings.keys.iter().any(|(_, key)| is_tagged(key)) {
            return Err(DropReason::DhcpTag);
        }
        if frame.packet.is_empty() {
            return self.repeat(now, at, header, frame.server_nonce).map(Step::Repeat);
        }
        self.take_answer(at, &frame, wrapping::unwrap(header, &frame))
    }

    /// A server wants to know that the question is new. It alone gets it again, because another would want its own nonce; and once,
    /// or who replays a question could have it said again and again.
    fn repeat(
        &mut self,
        now: Now,
        at: usize,
        header: &Header,
        server_nonce: [u8; NONCE_LEN],
    ) -> Result<Vec<u8>, DropReason> {
        let exchange = self.exchanges.get_mut(at).ok_or(DropReason::DhcpUnasked)?;
        if exchange.repeated_to.contains(&header.source)
            || exchange.repeated_to.len() >= limits::REPEATS_PER_EXCHANGE_MAX
        {
            return Err(DropReason::DhcpUnasked);
        }
        exchange.repeated_to.push(header.source);
        let back = Header { destination: header.source, source: self.mac(), ethertype: header.ethertype };
        self.wrap(now, at, back, server_nonce)
    }

    /// An answer under our key.
    fn take_answer(&mut self, at: usize, frame: &DhcpFrame<'_>, plain: Vec<u8>) -> Result<Step, DropReason> {
        let message = wrapping::message(&plain)?;
        if message.chaddr() != self.mac() {
            return Err(DropReason::DhcpChaddr);
        }
        let exchange = self.exchanges.get(at).filter(|exchange| exchange.is_answered_by(&message));
        let exchange = exchange.ok_or(DropReason::DhcpUnasked)?.clone();
        match (message.kind(), exchange.kind) {
            (MessageType::Offer, _) => {
                let server = message.address_option(OPTION_SERVER).map_err(|_| DropReason::DhcpMalformed)?;
                self.hear(Heard { xid: exchange.xid, server, nonce: frame.server_nonce });
                Ok(Step::Deliver(plain))
            }
            (MessageType::Ack, MessageType::Request) => {
                let address = message.yiaddr();
                if exchange.wanted != Some(address) {
                    return Err(DropReason::DhcpAddress);
                }
                let lease_s = message.lease_s().ok().flatten().ok_or(DropReason::DhcpMalformed)?;
                let (certificate, nonce) = (frame.certificate.to_vec(), exchange.nonce);
                Ok(Step::Check(Box::new(Granted { frame: plain, certificate, address, lease_s, nonce })))
            }
            (MessageType::Nak, _) => {
                self.exchanges.retain(|one| one.xid != exchange.xid);
                let was_ours = self.lease.is_some_and(|lease| Some(lease.address) == exchange.wanted);
                Ok(if was_ours { Step::Lose(plain) } else { Step::Deliver(plain) })
            }
            _ => Ok(Step::Deliver(plain)),
        }
    }

    fn hear(&mut self, heard: Heard) {
        self.heard.retain(|one| (one.xid, one.server) != (heard.xid, heard.server));
        if self.heard.len() >= limits::HEARD_NONCES_MAX {
            self.heard.pop_front();
        }
        self.heard.push_back(heard);
    }

    /// The certificate that came with an answer is the one for it: the address is ours from now on.
    ///
    /// # Errors
    /// [`DropReason::DhcpUnasked`] if another answer was faster.
    pub fn granted(&mut self, now: Instant, granted: &Granted) -> Result<(), DropReason> {
        let exchange = self.exchanges.iter().find(|one| one.nonce == granted.nonce).ok_or(DropReason::DhcpUnasked)?;
        let xid = exchange.xid;
        self.exchanges.retain(|one| one.xid != xid);
        self.heard.retain(|one| one.xid != xid);
        self.lease = Some(Lease { address: granted.address, host: 0, until: end_of(now, granted.lease_s) });
        Ok(())
    }

    /// An earlier run of this program was granted this; false if this one was granted something since.
    pub fn resume(&mut self, address: Ipv4Addr, until: Option<Instant>) -> bool {
        let is_new = self.lease.is_none();
        if is_new {
            self.lease = Some(Lease { address, host: 0, until });
        }
        is_new
    }

    /// Gives the lease up; what it was.
    pub fn give_up(&mut self) -> Option<Lease> {
        self.lease.take()
    }

    /// Whether the lease has ended.
    #[must_use]
    pub fn has_ended(&self, now: Instant) -> bool {
        self.lease.is_some_and(|lease| !lease.holds(now))
    }

    /// The lease that lasts.
    #[must_use]
    pub fn lease(&self, now: Instant) -> Option<Leased> {
        let lease = self.lease.filter(|lease| lease.holds(now))?;
        Some(Leased { address: lease.address, mac: self.mac(), until: lease.until })
    }

    /// When it ends.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.lease.and_then(|lease| lease.until)
    }
}

fn unix_s(now: Now) -> u64 {
    now.wall.map_or(0, |wall| wall.unix_ms / 1000)
}
