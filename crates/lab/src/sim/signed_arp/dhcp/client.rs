//! A DHCP client program (RFC 2131, section 4.4): it asks until it has an address, renews it at half its time, and counts that
//! time from when it asked.

use std::net::Ipv4Addr;
use std::time::Duration;

use bump::{Generator, Instant};
use wire::MacAddress;
use wire::dhcp::{MessageType, OPTION_SERVER, View};

use super::message::Words;

/// How long it waits for an answer, and how often it repeats a request before it begins anew.
const PATIENCE: Duration = Duration::from_secs(4);
const REQUESTS: u32 = 4;

/// An address that was offered.
#[derive(Clone, Copy, Debug)]
struct Offer {
    ip: Ipv4Addr,
    server: Ipv4Addr,
}

/// An address that it has.
#[derive(Clone, Copy, Debug)]
struct Lease {
    ip: Ipv4Addr,
    server: Ipv4Addr,
    time: Duration,
    until: Instant,
}

/// What it waits for.
#[derive(Clone, Copy, Debug)]
enum State {
    Starting,
    AwaitingOffer,
    AwaitingGrant { offer: Offer, tries: u32 },
    Bound(Lease),
}

/// The program. It outlives the daemon beside it.
#[derive(Debug)]
pub struct Client {
    mac: MacAddress,
    state: State,
    xid: u32,
    /// When it last asked for an address, from which its time counts.
    asked_at: Instant,
    /// When it does something next.
    pub next: Instant,
}

impl Client {
    /// A client that begins at `first`.
    pub fn new(mac: MacAddress, first: Instant) -> Client {
        Client { mac, state: State::Starting, xid: 0, asked_at: first, next: first }
    }

    /// The address that it has.
    pub fn ip(&self, now: Instant) -> Option<Ipv4Addr> {
        match self.state {
            State::Bound(lease) if now < lease.until => Some(lease.ip),
            _ => None,
        }
    }

    /// Begins anew, as after a start.
    pub fn restart(&mut self, now: Instant) {
        (self.state, self.next) = (State::Starting, now);
    }

    /// Does nothing of its own accord any more.
    pub fn retire(&mut self) {
        self.next = Instant::from_nanos(u64::MAX);
    }

    /// Gives its address back.
    pub fn release(&mut self, now: Instant, random: &mut Generator) -> Option<Vec<u8>> {
        let State::Bound(lease) = self.state else { return None };
        self.restart(now + PATIENCE);
        let words = Words::new(MessageType::Release, self.mac, self.mac, random.number());
        Some(Words { ciaddr: lease.ip, server: Some(lease.server), ..words }.frame())
    }

    /// What is due.
    pub fn tick(&mut self, now: Instant, random: &mut Generator) -> Option<Vec<u8>> {
        if self.next > now {
            return None;
        }
        self.next = now + PATIENCE + Duration::from_millis(random.below(1_000));
        match self.state {
            State::AwaitingGrant { offer, tries } if tries < REQUESTS => {
                self.state = State::AwaitingGrant { offer, tries: tries + 1 };
                Some(self.request(offer))
            }
            State::Bound(lease) if now < lease.until => {
                let wait = lease.time / 8;
                self.next = (now + wait).min(lease.until);
                self.asked_at = now;
                self.xid = random.number();
                let words = Words::new(MessageType::Request, self.mac, self.mac, self.xid);
                Some(Words { ciaddr: lease.ip, ..words }.frame())
            }
            _ => {
                (self.state, self.xid) = (State::AwaitingOffer, random.number());
                Some(Words::new(MessageType::Discover, self.mac, self.mac, self.xid).frame())
            }
        }
    }

    fn request(&self, offer: Offer) -> Vec<u8> {
        let words = Words::new(MessageType::Request, self.mac, self.mac, self.xid);
        Words { requested: Some(offer.ip), server: Some(offer.server), ..words }.frame()
    }

    /// Takes a message; returns its answer.
    pub fn receive(&mut self, now: Instant, frame: &[u8]) -> Option<Vec<u8>> {
        let view = View::new(frame).ok()?;
        if view.chaddr() != self.mac || view.xid() != self.xid {
            return None;
        }
        let server = view.address_option(OPTION_SERVER).ok()??;
        match (view.kind(), self.state) {
            (MessageType::Offer, State::AwaitingOffer) => {
                let offer = Offer { ip: view.yiaddr(), server };
                self.state = State::AwaitingGrant { offer, tries: 1 };
                (self.asked_at, self.next) = (now, now + PATIENCE);
                Some(self.request(offer))
            }
            (MessageType::Ack, State::AwaitingGrant { .. } | State::Bound(_)) => {
                let time = Duration::from_secs(u64::from(view.lease_s().ok()??));
                let until = self.asked_at + time;
                self.state = State::Bound(Lease { ip: view.yiaddr(), server, time, until });
                self.next = (self.asked_at + time / 2).max(now);
                None
            }
            (MessageType::Nak, State::AwaitingGrant { .. } | State::Bound(_)) => {
                self.restart(now + PATIENCE);
                None
            }
            _ => None,
        }
    }
}
