//! A small model of a kernel's IPv4 neighbour handling: what the link layer sees of the host it guards.
//!
//! As Linux does it: three requests a second apart, a bounded queue for what waits, an entry that goes stale and is then
//! probed by unicast, an entry made from a request that asks for us, and no entry made from a reply that nobody asked for.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use bump::{Instant, Meta};
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;
use wire::{EtherType, MacAddress};

use super::datagram::{Packed, Parcel};

const TRIES: u8 = 3;
const RETRY: Duration = Duration::from_secs(1);
const REACHABLE: Duration = Duration::from_secs(20);
const DELAY: Duration = Duration::from_secs(5);
/// Parcels that wait for one neighbour; the oldest goes.
const WAITING_MAX: usize = 16;

/// How much is known about a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Incomplete { tries: u8, next: Instant },
    Reachable { until: Instant },
    Stale,
    Delay { until: Instant },
    Probe { tries: u8, next: Instant },
    Failed,
    Permanent,
}

#[derive(Debug)]
struct Neighbour {
    state: State,
    mac: MacAddress,
    waiting: VecDeque<Parcel>,
}

/// What the stack wants to send.
#[derive(Clone, Debug)]
pub enum Output {
    /// An ARP message.
    Arp(Vec<u8>),
    /// Datagrams.
    Datagrams(Packed),
}

impl Output {
    /// The frame and what is known about it.
    pub fn frame(&self) -> (&[u8], Meta) {
        match self {
            Output::Arp(bytes) => (bytes, Meta::plain()),
            Output::Datagrams(packed) => (&packed.bytes, packed.meta),
        }
    }
}

/// The stack of one host.
#[derive(Debug)]
pub struct Stack {
    mac: MacAddress,
    ip: Ipv4Addr,
    neighbours: BTreeMap<Ipv4Addr, Neighbour>,
}

impl Stack {
    /// A stack that knows nobody.
    pub fn new(mac: MacAddress, ip: Ipv4Addr) -> Stack {
        Stack { mac, ip, neighbours: BTreeMap::new() }
    }

    /// Forgets all neighbours.
    pub fn flush(&mut self) {
        self.neighbours.clear();
    }

    /// Sets an entry that never ages.
    pub fn set_permanent(&mut self, ip: Ipv4Addr, mac: MacAddress) {
        self.neighbours.insert(ip, Neighbour { state: State::Permanent, mac, waiting: VecDeque::new() });
    }

    /// Forgets what it has heard, and not what was set.
    pub fn forget_heard(&mut self) {
        self.neighbours.retain(|_, neighbour| neighbour.state == State::Permanent);
    }

    /// Forgets one neighbour.
    pub fn forget(&mut self, ip: Ipv4Addr) {
        self.neighbours.remove(&ip);
    }

    /// Whom it takes for the owner of this address.
    pub fn believed(&self, ip: Ipv4Addr) -> Option<MacAddress> {
        let neighbour = self.neighbours.get(&ip)?;
        (!matches!(neighbour.state, State::Failed | State::Incomplete { .. })).then_some(neighbour.mac)
    }

    /// Sends `parcel`, or keeps it until its destination is known.
    pub fn send(&mut self, now: Instant, parcel: Parcel) -> Vec<Output> {
        let (own_mac, own_ip) = (self.mac, self.ip);
        let neighbour = self.neighbours.entry(parcel.destination).or_insert_with(Neighbour::unknown);
        match neighbour.state {
            State::Failed | State::Incomplete { .. } => {
                if neighbour.waiting.len() == WAITING_MAX {
                    neighbour.waiting.pop_front();
                }
                neighbour.waiting.push_back(parcel);
                if neighbour.state != State::Failed {
                    return Vec::new();
                }
                neighbour.state = State::Incomplete { tries: 1, next: now + RETRY };
                vec![request(own_mac, own_ip, parcel.destination, None)]
            }
            state => {
                if state == State::Stale {
                    neighbour.state = State::Delay { until: now + DELAY };
                }
                vec![Output::Datagrams(parcel.pack(own_mac, neighbour.mac))]
            }
        }
    }

    /// Takes a frame from below; only ARP matters here.
    pub fn receive(&mut self, now: Instant, frame: &[u8]) -> Vec<Output> {
        let Ok((header, message)) = Header::parse(frame) else { return Vec::new() };
        if header.ethertype != EtherType::ARP {
            return Vec::new();
        }
        let Ok(arp) = Arp::parse(message) else { return Vec::new() };
        if arp.target_ip != self.ip {
            return Vec::new();
        }
        match arp.operation {
            Operation::Request => {
                let known = self.learn(now, &arp, State::Stale, true);
                [vec![self.reply(&arp)], known].concat()
            }
            Operation::Reply => self.learn(now, &arp, State::Reachable { until: now + REACHABLE }, false),
        }
    }

    /// Enters what an ARP message says; returns what waited for it.
    fn learn(&mut self, now: Instant, arp: &Arp, state: State, create: bool) -> Vec<Output> {
        if create {
            self.neighbours.entry(arp.sender_ip).or_insert_with(Neighbour::unknown);
        }
        let own_mac = self.mac;
        let Some(neighbour) = self.neighbours.get_mut(&arp.sender_ip) else { return Vec::new() };
        let fresh =
            matches!(neighbour.state, State::Reachable { until } if until > now && neighbour.mac == arp.sender_mac);
        if neighbour.state == State::Permanent || (fresh && state == State::Stale) {
            return Vec::new();
        }
        neighbour.state = state;
        neighbour.mac = arp.sender_mac;
        let waiting = std::mem::take(&mut neighbour.waiting);
        if state == State::Stale && !waiting.is_empty() {
            neighbour.state = State::Delay { until: now + DELAY };
        }
        let mac = neighbour.mac;
        waiting.iter().map(|parcel| Output::Datagrams(parcel.pack(own_mac, mac))).collect()
    }

    fn reply(&self, question: &Arp) -> Output {
        let answer = Arp {
            operation: Operation::Reply,
            sender_mac: self.mac,
            sender_ip: self.ip,
            target_mac: question.sender_mac,
            target_ip: question.sender_ip,
        };
        Output::Arp(arp_frame(question.sender_mac, &answer))
    }

    /// When [`tick`](Stack::tick) next has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        self.neighbours
            .values()
            .filter_map(|neighbour| match neighbour.state {
                State::Incomplete { next, .. } | State::Probe { next, .. } => Some(next),
                State::Reachable { until } | State::Delay { until } => Some(until),
                State::Stale | State::Failed | State::Permanent => None,
            })
            .min()
    }

    /// Ages the entries.
    pub fn tick(&mut self, now: Instant) -> Vec<Output> {
        let (mac, ip) = (self.mac, self.ip);
        let mut out = Vec::new();
        for (address, neighbour) in &mut self.neighbours {
            let asks = neighbour.age(now);
            out.extend(asks.map(|unicast_to| request(mac, ip, *address, unicast_to)));
        }
        out
    }
}

impl Neighbour {
    fn unknown() -> Neighbour {
        Neighbour { state: State::Failed, mac: MacAddress::ZERO, waiting: VecDeque::new() }
    }

    /// Goes on to the next state; returns to whom a request is due, `Some(None)` being everybody.
    fn age(&mut self, now: Instant) -> Option<Option<MacAddress>> {
        match self.state {
            State::Incomplete { tries, next } if next <= now => {
                if tries == TRIES {
                    self.fail();
                    return None;
                }
                self.state = State::Incomplete { tries: tries + 1, next: now + RETRY };
                Some(None)
            }
            State::Probe { tries, next } if next <= now => {
                if tries == TRIES {
                    self.fail();
                    return None;
                }
                self.state = State::Probe { tries: tries + 1, next: now + RETRY };
                Some(Some(self.mac))
            }
            State::Reachable { until } if until <= now => {
                self.state = State::Stale;
                None
            }
            State::Delay { until } if until <= now => {
                self.state = State::Probe { tries: 1, next: now + RETRY };
                Some(Some(self.mac))
            }
            _ => None,
        }
    }

    fn fail(&mut self) {
        self.state = State::Failed;
        self.waiting.clear();
    }
}

fn request(mac: MacAddress, ip: Ipv4Addr, target_ip: Ipv4Addr, unicast_to: Option<MacAddress>) -> Output {
    let destination = unicast_to.unwrap_or(MacAddress::BROADCAST);
    let target_mac = unicast_to.unwrap_or(MacAddress::ZERO);
    let question = Arp { operation: Operation::Request, sender_mac: mac, sender_ip: ip, target_mac, target_ip };
    Output::Arp(arp_frame(destination, &question))
}

/// An ARP message in its Ethernet frame, sent by the host that it names as sender.
pub fn arp_frame(destination: MacAddress, arp: &Arp) -> Vec<u8> {
    let header = Header { destination, source: arp.sender_mac, ethertype: EtherType::ARP };
    [&header.emit()[..], &arp.emit()].concat()
}
