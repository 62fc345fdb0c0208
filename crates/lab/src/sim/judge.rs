//! The invariants. The judge keeps its own books of what was sent, made without the code that it judges, and looks at
//! every frame that leaves a link layer on either side and at every link layer after every call.

mod answers;
mod books;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use bump::{Bump, Control as _, Instant, Lane as _, Ledger, Meta};
use cll::{Cll, limits};
use wire::arp::Arp;
use wire::cll::handshake::LANES_MAX;
use wire::cll::{DataHeader, Handshake, PacketType};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};
use wire::{EtherType, MacAddress, ipv4};

use super::datagram::{MARKER, Number, complete, number_in};
use super::scenario::{Part, RECOVERY, START, Scenario};
use super::site;
use answers::Answers;
use books::{Books, Record};

/// Violations that are kept; the rest is counted.
const KEPT_MAX: usize = 20;
/// In a clean run no handshake is needed after this.
const SETTLED: Duration = Duration::from_secs(8);
/// In a clean run a key is replaced before it has sealed this many times as many frames as it should.
const WORN_FACTOR: u32 = 2;
/// Frames that may leave while the handshake that replaces it is under way.
const SLACK_FRAMES: u32 = 512;
/// Shortest frame on a wire, to which cards pad.
const PADDED_LEN: usize = 60;
/// The EtherType that passes in clear in some runs.
pub const PASSED: EtherType = EtherType::LLDP;

/// An invariant that did not hold.
#[derive(Clone, Debug)]
pub struct Violation {
    /// When, on the simulated clock.
    pub at: Instant,
    /// At which host.
    pub host: usize,
    /// Which one.
    pub rule: &'static str,
    /// What was seen.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.at.since(START).as_secs_f64();
        write!(f, "{seconds:.6} s, host {}: {}: {}", self.host, self.rule, self.detail)
    }
}

/// What the judge knows of a host.
#[derive(Clone, Copy, Debug)]
struct Facts {
    mac: MacAddress,
    ip: std::net::Ipv4Addr,
    part: Part,
    confidential: bool,
}

/// How a key was used.
#[derive(Clone, Copy, Debug)]
struct KeyUse {
    since: Instant,
    first_sequence: u32,
    last_sequence: u32,
}

/// The judge of one run.
pub struct Judge {
    facts: Vec<Facts>,
    scenario: Scenario,
    books: Books,
    answers: Answers,
    /// By who sends with it to whom.
    keys: HashMap<(usize, MacAddress, u32), KeyUse>,
    sealed: HashSet<u64>,
    violations: Vec<Violation>,
    uncounted: u64,
    requests_when_settled: u64,
    deliveries: u64,
}

impl Judge {
    /// A judge of a run of `scenario`.
    pub fn new(scenario: &Scenario) -> Judge {
        let facts = |plan: &super::scenario::HostPlan| Facts {
            mac: site::mac(plan.identity),
            ip: site::ip(plan.identity),
            part: plan.part,
            confidential: plan.confidential,
        };
        Judge {
            facts: scenario.hosts.iter().map(facts).collect(),
            scenario: scenario.clone(),
            books: Books::new(scenario.flows.len()),
            answers: Answers::default(),
            keys: HashMap::new(),
            sealed: HashSet::new(),
            violations: Vec::new(),
            uncounted: 0,
            requests_when_settled: 0,
            deliveries: 0,
        }
    }

    /// The violations that were kept, and how many there were in all.
    pub fn verdict(&self) -> (&[Violation], u64) {
        (&self.violations, self.violations.len() as u64 + self.uncounted)
    }

    /// Frames that were delivered and were right.
    pub fn deliveries(&self) -> u64 {
        self.deliveries
    }

    fn violate(&mut self, at: Instant, host: usize, rule: &'static str, detail: impl Into<String>) {
        if self.violations.len() < KEPT_MAX {
            self.violations.push(Violation { at, host, rule, detail: detail.into() });
        } else {
            self.uncounted += 1;
        }
    }

    /// An application of flow `flow` sends this datagram.
    pub fn offered(&mut self, flow: usize, number: Number, at: Instant) {
        self.books.offer(flow, number, at);
    }

    /// The stack of `from` hands over a frame that stands for `pieces`. A lie is one with another's address in it.
    pub fn sent(&mut self, from: usize, pieces: &[(Number, Vec<u8>)], is_lie: bool) {
        for (number, frame) in pieces {
            self.books.send(*number, Record { from, frame: frame.clone(), is_lie });
        }
    }

    /// The link layer of `host` puts `frame` on the wire.
    pub fn to_wire(&mut self, at: Instant, host: usize, frame: &[u8]) {
        let facts = self.facts[host];
        let Ok((header, message)) = Header::parse(frame) else {
            return self.violate(at, host, "runt on the wire", format!("{} bytes", frame.len()));
        };
        if header.source != facts.mac {
            self.violate(at, host, "foreign source on the wire", format!("{}", header.source));
        }
        if header.ethertype != EtherType::CLL {
            return self.to_wire_in_clear(at, host, &header);
        }
        if facts.confidential && frame.windows(MARKER.len()).any(|window| window == MARKER) {
            self.violate(at, host, "plain text on the wire", format!("to {}", header.destination));
        }
        match PacketType::of(message) {
            Ok(PacketType::Unicast) => self.to_wire_sealed(at, host, &header, frame),
            Ok(PacketType::HandshakeRequest | PacketType::HandshakeReply) => self.to_wire_handshake(at, host, message),
            Ok(PacketType::Challenge) => {}
            Err(error) => self.violate(at, host, "unreadable frame on the wire", error.to_string()),
        }
    }

    /// In clear goes what is for a legacy host, and what passes by configuration.
    fn to_wire_in_clear(&mut self, at: Instant, host: usize, header: &Header) {
        let to_legacy = |facts: &Facts| facts.part == Part::Legacy && facts.mac == header.destination;
        let passed = self.scenario.passes && header.ethertype == PASSED;
        if !passed && !self.facts.iter().any(to_legacy) {
            let detail = format!("{:?} to {}", header.ethertype, header.destination);
            self.violate(at, host, "clear frame on the wire", detail);
        }
    }

    fn to_wire_sealed(&mut self, at: Instant, host: usize, header: &Header, frame: &[u8]) {
        let Ok((data, _)) = DataHeader::parse(&frame[ETHERNET_LEN..]) else {
            return self.violate(at, host, "unreadable frame on the wire", "sealed frame");
        };
        let key = (host, header.destination, data.receiver_index);
        let new = KeyUse { since: at, first_sequence: data.sequence, last_sequence: data.sequence };
        let before = self.keys.insert(key, new);
        if let Some(before) = before {
            self.keys.insert(key, KeyUse { last_sequence: data.sequence, ..before });
            self.check_key_use(at, host, &data, before);
        }
        if self.answers.is_unproved(host, base(data.receiver_index)) {
            let detail = format!("index {:08x} to {}", data.receiver_index, header.destination);
            self.violate(at, host, "responder sent before it opened a frame", detail);
        }
        self.sealed.insert(hash(frame));
    }

    /// A number is used once, and a worn key is replaced.
    fn check_key_use(&mut self, at: Instant, host: usize, data: &DataHeader, before: KeyUse) {
        let detail = format!("{} under {:08x}", data.sequence, data.receiver_index);
        if data.sequence <= before.last_sequence {
            return self.violate(at, host, "sequence number used again", detail);
        }
        let used = data.sequence - before.first_sequence;
        let used_max = self.scenario.rekey_after_frames.map_or(u32::MAX, |frames| frames.saturating_mul(WORN_FACTOR));
        // A key that is worn sooner than this lives on, because its successor would count as simultaneous with it.
        let is_old = at.since(before.since) > limits::SIMULTANEOUS + limits::SWEEP_INTERVAL;
        if self.scenario.clean && is_old && used > used_max.saturating_add(SLACK_FRAMES) {
            self.violate(at, host, "key used for too long", detail);
        }
    }

    fn to_wire_handshake(&mut self, at: Instant, host: usize, message: &[u8]) {
        let Ok(handshake) = Handshake::parse(message) else {
            return self.violate(at, host, "unreadable frame on the wire", "handshake");
        };
        let index = handshake.offer.receiver_index;
        if handshake.kind == PacketType::HandshakeRequest {
            self.answers.asked(handshake.nonce, index);
            self.requests_when_settled += u64::from(at.since(START) > SETTLED && at < self.scenario.traffic_stops());
        } else {
            self.answers.answered(host, handshake.nonce, index);
        }
    }

    /// The link layer of `host` is about to see `frame`.
    pub fn from_wire(&mut self, host: usize, frame: &[u8]) {
        let sealed = frame.get(ETHERNET_LEN..).and_then(|message| DataHeader::parse(message).ok());
        if let Some((data, _)) = sealed
            && self.sealed.contains(&hash(frame))
        {
            self.answers.heard(host, base(data.receiver_index));
        }
    }

    /// The link layer of `host` delivers `frame` to its stack.
    pub fn to_stack(&mut self, at: Instant, host: usize, frame: &[u8], meta: Meta) {
        let Ok((header, payload)) = Header::parse(frame) else {
            return self.violate(at, host, "runt delivered", format!("{} bytes", frame.len()));
        };
        if self.scenario.passes && header.ethertype == PASSED {
            return;
        }
        let legacy = self.facts.iter().find(|facts| facts.part == Part::Legacy && facts.mac == header.source).copied();
        match (legacy, header.ethertype) {
            (Some(legacy), _) => self.from_legacy(at, host, &header, frame, legacy),
            (None, EtherType::ARP) => self.arp_delivered(at, host, &header, payload),
            (None, _) => self.datagram_delivered(at, host, &header, frame, meta),
        }
    }

    /// A legacy host proves nothing, but it may only be itself.
    fn from_legacy(&mut self, at: Instant, host: usize, header: &Header, frame: &[u8], legacy: Facts) {
        let payload = &frame[ETHERNET_LEN..];
        let claims = match header.ethertype {
            EtherType::ARP => Arp::parse(payload).ok().map(|arp| arp.sender_ip),
            EtherType::IPV4 => ipv4::View::new(payload).ok().map(|view| view.source()),
            _ => None,
        };
        if claims.is_some_and(|ip| ip != legacy.ip) {
            self.violate(at, host, "legacy host with another's address delivered", format!("{claims:?}"));
        }
        self.reached(at, frame);
    }

    fn arp_delivered(&mut self, at: Instant, host: usize, header: &Header, message: &[u8]) {
        let Ok(arp) = Arp::parse(message) else {
            return self.violate(at, host, "malformed ARP delivered", "unreadable");
        };
        let is_true = |facts: &Facts| facts.ip == arp.sender_ip && facts.mac == arp.sender_mac;
        if arp.sender_mac != header.source || !self.facts.iter().any(is_true) {
            let detail = format!("{} at {} from {}", arp.sender_ip, arp.sender_mac, header.source);
            self.violate(at, host, "false ARP delivered", detail);
        } else {
            self.deliveries += 1;
        }
    }

    fn datagram_delivered(&mut self, at: Instant, host: usize, header: &Header, frame: &[u8], meta: Meta) {
        let mut completed = frame.to_vec();
        complete(&mut completed, meta);
        let Some((number, record)) = number_in(frame).and_then(|number| Some((number, self.books.record(number)?)))
        else {
            return self.violate(at, host, "unproved frame delivered", format!("{header:?}"));
        };
        let sender = self.facts[record.from];
        let (is_lie, as_sent) = (record.is_lie, is_padded(&completed, &record.frame));
        if is_lie || header.source != sender.mac {
            self.violate(at, host, "lie delivered", format!("{number:?} from {} says {header:?}", sender.mac));
        } else if header.destination != self.facts[host].mac {
            self.violate(at, host, "frame for another host delivered", format!("{number:?} {header:?}"));
        } else if !as_sent {
            self.violate(at, host, "changed frame delivered", format!("{number:?} {header:?}"));
        } else if !self.books.deliver(number, at) {
            self.violate(at, host, "frame delivered twice", format!("{number:?} {header:?}"));
        } else {
            self.deliveries += 1;
        }
    }

    /// A host without link layer got this frame, or a link layer got it from one. Nothing protects it on the way, so it
    /// counts only when it is as it was sent.
    pub fn reached(&mut self, at: Instant, frame: &[u8]) {
        let Some(number) = number_in(frame) else { return };
        if self.books.record(number).is_some_and(|record| is_padded(frame, &record.frame)) {
            self.books.deliver(number, at);
        }
    }

    /// Looks at the link layer of `host` after a call; `thoroughly` after those that may change its table of peers.
    pub fn after_call(&mut self, at: Instant, now: Instant, host: usize, cll: &Cll, thoroughly: bool) {
        let lanes = || cll.lanes.iter();
        let balance = cll.control.ledger().balance() + lanes().map(|lane| lane.ledger().balance()).sum::<i128>();
        if balance != 0 {
            self.violate(at, host, "frames without fate", format!("{balance}"));
        }
        let others = self.facts.len() - 1;
        let keys_max = others * usize::from(LANES_MAX) * (2 + limits::CANDIDATES_PER_PEER_MAX);
        let within = lanes().all(|lane| {
            lane.held_bytes() <= limits::HELD_BYTES_MAX
                && lane.sending_to() <= others
                && lane.receiving_keys() <= keys_max
        });
        if !within || cll.control.open_handshakes() > limits::HANDSHAKES_OPEN_MAX {
            self.violate(at, host, "limit exceeded", "held bytes, keys or open handshakes");
        }
        if thoroughly {
            self.check_peers(at, now, host, cll);
        }
    }

    fn check_peers(&mut self, at: Instant, now: Instant, host: usize, cll: &Cll) {
        let peers = cll.control.peers(now);
        for facts in self.facts.clone() {
            let in_state = |state| peers.iter().filter(|peer| peer.mac == facts.mac && peer.state == state).count();
            if in_state("established") > 1 || in_state("candidate") > limits::CANDIDATES_PER_PEER_MAX {
                self.violate(at, host, "too many associations with one host", format!("{}", facts.mac));
            }
        }
    }

    /// The run is over: nothing is held any more, and who wanted to talk did.
    pub fn close(&mut self, at: Instant, links: &[Option<Cll>]) {
        for (host, cll) in links.iter().enumerate() {
            let Some(cll) = cll else { continue };
            let mut ledger = Ledger::new();
            cll.add_to_ledger(&mut ledger);
            if ledger.held != 0 || cll.control.open_handshakes() != 0 {
                let detail = format!("{} frames, {} handshakes", ledger.held, cll.control.open_handshakes());
                self.violate(at, host, "held after the end", detail);
            }
        }
        for flow in 0..self.scenario.flows.len() {
            self.check_flow(at, flow);
        }
        let renews = self.scenario.lifetime.is_some() || self.scenario.rekey_after_frames.is_some();
        if self.scenario.clean && !renews && self.requests_when_settled > 0 {
            let detail = format!("{} handshake requests", self.requests_when_settled);
            self.violate(at, 0, "handshakes without need", detail);
        }
    }

    fn check_flow(&mut self, at: Instant, number: usize) {
        let flow = self.scenario.flows[number];
        let with_legacy = [flow.from, flow.to].iter().any(|&end| self.facts[end].part == Part::Legacy);
        // A legacy host believes any ARP message, also a forged or damaged one, so then nobody owes it anything.
        let harmed = self.scenario.attack_every.is_some() || self.scenario.harm.corrupted_one_in != 0;
        if with_legacy && harmed {
            return;
        }
        let stop = self.scenario.faults_stop;
        let recovered = self.books.first_delivered(number, stop);
        if recovered.is_none_or(|first| first.since(stop) > RECOVERY) {
            let detail = format!("flow {number} to host {}: {recovered:?}", flow.to);
            self.violate(at, flow.from, "silent after faults stopped", detail);
        }
        let from = if self.scenario.clean { START } else { stop + RECOVERY };
        let lost = self.books.lost_since(number, from);
        if let Some((first, count)) = lost {
            let when = first.since(START).as_secs_f64();
            let detail = format!("flow {number} to host {}: {count} datagrams, the first of {when:.3} s", flow.to);
            self.violate(at, flow.from, "lost in calm", detail);
        }
    }
}

fn base(receiver_index: u32) -> u32 {
    receiver_index & !u32::from(LANES_MAX - 1)
}

fn hash(frame: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    frame.hash(&mut hasher);
    hasher.finish()
}

/// Whether `delivered` is `sent`, perhaps with zeros behind it up to the shortest frame that a wire carries.
fn is_padded(delivered: &[u8], sent: &[u8]) -> bool {
    let Some((front, padding)) = delivered.split_at_checked(sent.len()) else { return false };
    front == sent && padding.iter().all(|&byte| byte == 0) && (padding.is_empty() || delivered.len() <= PADDED_LEN)
}
