//! The invariants. The judge keeps its own books of what was sent, made without the code that it judges, and looks at
//! every frame that leaves a link layer on either side and at every link layer after every call.

mod answers;
mod books;
mod delivery;
mod wire;

use std::collections::{HashMap, HashSet};
use std::net::Ipv4Addr;
use std::time::Duration;

use ::wire::cll::handshake::LANES_MAX;
use ::wire::{EtherType, MacAddress};
use bump::{Bump, Control as _, Instant, Lane as _, Ledger};
use cll::{Cll, limits};

use super::datagram::Number;
use super::scenario::{Part, RECOVERY, Scenario};
use super::site;
use crate::sim::agenda::START;
use crate::sim::report::{Violation, Violations};
use answers::Answers;
use books::{Books, Record};

/// In a clean run no handshake is needed after this.
const SETTLED: Duration = Duration::from_secs(8);
/// The EtherType that passes in clear in some runs.
pub const PASSED: EtherType = EtherType::LLDP;

/// What the judge knows of a host.
#[derive(Clone, Copy, Debug)]
struct Facts {
    mac: MacAddress,
    ip: Ipv4Addr,
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
    /// Incarnation, time and counter of frames to groups.
    stamps: HashSet<([u8; 8], u64, u32)>,
    violations: Violations,
    requests_when_settled: u64,
    deliveries: u64,
    /// Associations with a secret of ML-KEM were seen so often.
    post_quantum_seen: u64,
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
            stamps: HashSet::new(),
            violations: Violations::default(),
            requests_when_settled: 0,
            deliveries: 0,
            post_quantum_seen: 0,
        }
    }

    /// What did not hold.
    pub fn into_violations(self) -> Violations {
        self.violations
    }

    /// Frames that were delivered and were right.
    pub fn deliveries(&self) -> u64 {
        self.deliveries
    }

    fn violate(&mut self, at: Instant, host: usize, rule: &'static str, detail: impl Into<String>) {
        self.violations.add(Violation { at, host, rule, detail: detail.into() });
    }

    /// An application of flow `flow` sends this datagram.
    pub fn offered(&mut self, flow: usize, number: Number, at: Instant) {
        self.books.offer(flow, number, at);
    }

    /// The stack of `from` sends these datagrams to a group.
    pub fn offered_to_all(&mut self, from: usize, at: Instant, pieces: &[(Number, Vec<u8>)]) {
        for (number, _) in pieces {
            self.books.offer_to_all(*number, from, at);
        }
    }

    /// The stack of `from` hands over a frame that stands for `pieces`. A lie is one with another's address in it.
    pub fn sent(&mut self, from: usize, pieces: &[(Number, Vec<u8>)], is_lie: bool) {
        for (number, frame) in pieces {
            self.books.send(*number, Record { from, frame: frame.clone(), is_lie });
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
        let keys_max =
            others * usize::from(LANES_MAX) * (1 + limits::LEAVING_PER_PEER_MAX + limits::CANDIDATES_PER_PEER_MAX);
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
        for (other, facts) in self.facts.clone().into_iter().enumerate() {
            let in_use = peers.iter().find(|peer| peer.mac == facts.mac && peer.state == "established");
            self.check_secrecy(at, (host, other), in_use);
            let in_state = |state| peers.iter().filter(|peer| peer.mac == facts.mac && peer.state == state).count();
            if in_state("established") > 1 || in_state("candidate") > limits::CANDIDATES_PER_PEER_MAX {
                self.violate(at, host, "too many associations with one host", format!("{}", facts.mac));
            }
        }
    }

    /// Payload moves with a secret of ML-KEM between those who both have it, and without between
    /// all others.
    fn check_secrecy(&mut self, at: Instant, (host, other): (usize, usize), in_use: Option<&cll::PeerReport>) {
        let Some(peer) = in_use else { return };
        let has_secret = peer.agreement.contains("ML-KEM-768");
        self.post_quantum_seen += u64::from(has_secret);
        if has_secret != self.scenario.is_post_quantum(host, other) {
            self.violate(at, host, "keys from another agreement", format!("{} with host {other}", peer.agreement));
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
        for host in 0..self.facts.len() {
            self.check_groups(at, host);
        }
        let is_honest = |host: usize| self.facts[host].part == Part::Honest;
        let wants = |flow: &super::scenario::Flow| {
            is_honest(flow.from) && is_honest(flow.to) && self.scenario.is_post_quantum(flow.from, flow.to)
        };
        if self.post_quantum_seen == 0 && self.scenario.flows.iter().any(wants) {
            self.violate(at, 0, "no association with ML-KEM", "");
        }
        if self.scenario.clean && self.requests_when_settled > 0 {
            let detail = format!("{} handshake requests", self.requests_when_settled);
            self.violate(at, 0, "handshakes without need", detail);
        }
    }

    /// Without faults whatever is sent to a group reaches every honest host.
    fn check_groups(&mut self, at: Instant, host: usize) {
        // A frame to a group that overtakes another makes that one old (section 21 of the protocol).
        if self.scenario.clean && self.scenario.faults.harm.late_one_in != 0 {
            return;
        }
        // Until then senders prove themselves, and of a first burst a receiver holds only so much.
        let from = if self.scenario.clean { START + SETTLED } else { self.scenario.faults_stop + RECOVERY };
        let lost = self.books.lost_to(host, from).filter(|_| self.facts[host].part == Part::Honest);
        if let Some((first, sender, count)) = lost {
            let when = first.since(START).as_secs_f64();
            let detail = format!("from host {sender}: {count} datagrams, the first of {when:.3} s");
            self.violate(at, host, "lost to a group in calm", detail);
        }
    }

    fn check_flow(&mut self, at: Instant, number: usize) {
        let flow = self.scenario.flows[number];
        let with_legacy = [flow.from, flow.to].iter().any(|&end| self.facts[end].part == Part::Legacy);
        // A legacy host believes any ARP message, also a forged or damaged one, so then nobody owes it anything.
        let harmed = self.scenario.attack_every.is_some() || self.scenario.faults.harm.corrupted_one_in != 0;
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
