//! The invariants. The judge keeps its own books of who has which address and who said what, made without the code that it
//! judges, and looks at every frame that leaves a bump on either side and at every bump after every call.

mod duties;
mod leases;
mod truth;

use std::collections::{BTreeSet, HashMap};
use std::net::Ipv4Addr;
use std::time::Duration;

use ::wire::arp::{Arp, Operation};
use ::wire::dhcp::{Kind as DhcpKind, OPTION_PROOF, View, recognise};
use ::wire::ethernet::Header;
use ::wire::sarp::Message;
use ::wire::sarp::data::Question;
use ::wire::{EtherType, MacAddress};
use bump::{Bump, Instant, Ledger};
use sarp::limits;

use super::repository::Change;
use super::scenario::{Part, Scenario};
use super::site;
use super::station::Station;
use crate::sim::agenda::START;
use crate::sim::clock::{Clock, START_UNIX_S};
use crate::sim::report::{Violation, Violations};
use duties::Duties;
use leases::Said;
pub use truth::End;
use truth::Truth;

/// A question is open for 3 s, its answer may wait for a job, and the machine may do nothing for 5 s meanwhile.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
/// How far a host's clock may be from what a distributor's showed: answers are late, and distributors differ.
const CLOCK_APART_S: i64 = 8;

/// The judge of one run.
pub struct Judge {
    truth: Truth,
    said: Said,
    duties: Duties,
    /// When the stack of a station last asked for an address.
    asked: HashMap<(usize, Ipv4Addr), Instant>,
    /// By how many seconds distributors' clocks were off, ever.
    clock_errors_s: BTreeSet<i64>,
    /// The DHCP clients' hosts, by their number in the repository.
    clients: HashMap<u64, usize>,
    fallen: HashMap<usize, Instant>,
    violations: Violations,
    deliveries: u64,
}

impl Judge {
    /// A judge of a run of `scenario`; `numbers` are those of the repository.
    pub fn new(scenario: &Scenario, numbers: &[u64]) -> Judge {
        let mut truth = Truth::new(scenario.faults_stop);
        let mut said = Said::default();
        let mut clients = HashMap::new();
        let mut clock_errors_s = BTreeSet::new();
        for (station, plan) in scenario.plans.iter().enumerate() {
            let (mac, ip) = (site::mac(plan.number), site::ip(plan.number));
            match plan.part {
                Part::Plain => {}
                Part::Client => drop(clients.insert(numbers[station], station)),
                Part::Insider => {
                    truth.begin(START, station, ip, plan.is_bound.then_some(mac));
                    said.lie(mac, None);
                }
                _ => truth.begin(START, station, ip, Some(mac)),
            }
            if let (Part::Distributor, Clock::Off(error_ms)) = (plan.part, plan.clock) {
                clock_errors_s.insert(error_ms / 1000);
            }
        }
        let (duties, asked, fallen) = (Duties::default(), HashMap::new(), HashMap::new());
        let violations = Violations::default();
        Judge { truth, said, duties, asked, clock_errors_s, clients, fallen, violations, deliveries: 0 }
    }

    /// What did not hold.
    pub fn into_violations(self) -> Violations {
        self.violations
    }

    /// Messages that were delivered and were right.
    pub fn deliveries(&self) -> u64 {
        self.deliveries
    }

    /// An invariant did not hold.
    pub fn violate(&mut self, at: Instant, host: usize, rule: &'static str, detail: impl Into<String>) {
        self.violations.add(Violation { at, host, rule, detail: detail.into() });
    }

    fn expect(&mut self, at: Instant, host: usize, outcome: Result<(), &'static str>, frame: &[u8]) {
        match outcome {
            Ok(()) => self.deliveries += 1,
            Err(rule) => self.violate(at, host, rule, describe(frame)),
        }
    }

    /// A distributor's clock is set.
    pub fn clock_set(&mut self, clock: Clock) {
        if let Clock::Off(error_ms) = clock {
            self.clock_errors_s.insert(error_ms / 1000);
        }
    }

    /// Whether leases may have ended early: they are counted on distributors' clocks.
    fn leases_may_end_early(&self) -> bool {
        self.clock_errors_s.last().is_some_and(|ahead_s| *ahead_s > 1)
    }

    /// The card of a station is another now.
    pub fn card_changed(&mut self, at: Instant, station: usize, ip: Ipv4Addr, mac: MacAddress) {
        self.truth.end(at, station, Some(ip), End::Honest);
        self.truth.begin(at, station, ip, Some(mac));
    }

    /// The attacker has the key of a station, as `liar`.
    pub fn key_stolen(&mut self, at: Instant, liar: usize, (ip, mac): (Ipv4Addr, MacAddress), is_bound: bool) {
        self.truth.begin(at, liar, ip, is_bound.then_some(mac));
        self.said.lie(mac, None);
    }

    /// Nobody should believe `station`, or the liar of this number, any more.
    pub fn falls(&mut self, at: Instant, station: usize, mac: MacAddress) {
        self.truth.end(at, station, None, End::Lingering);
        self.fallen.insert(station, at);
        self.said.lie(mac, Some(at));
    }

    /// An honest DHCP program says this.
    pub fn program_says(&mut self, at: Instant, frame: &[u8]) {
        self.said.say(at, frame);
    }

    /// The stack of `station` sends `frame`.
    pub fn stack_says(&mut self, at: Instant, station: usize, frame: &[u8]) {
        if let Some(arp) = arp_in(frame).filter(|arp| arp.operation == Operation::Request) {
            self.asked.insert((station, arp.target_ip), at);
        }
    }

    /// The attacker sends `frame`, which is a good request to a distributor if he has a key of the site.
    pub fn attacker_says(&mut self, frame: &[u8]) {
        let Some(message) = signed_in(frame) else { return };
        let question = Question::parse(message.data);
        let is_right = |question: Question| {
            let tag = message.signature.last_chunk();
            tag.is_some_and(|tag| site::master().key_of(question.host).verify(&message.signed_bytes(), tag))
        };
        if question.is_ok_and(is_right) {
            self.duties.ask(&message);
        }
    }

    /// The bump of `station` hands `frame` to its stack.
    pub fn told(&mut self, at: Instant, index: usize, station: &Station, frame: &[u8]) {
        let Ok((header, _)) = Header::parse(frame) else {
            return self.violate(at, index, "runt delivered", format!("{} bytes", frame.len()));
        };
        if header.ethertype.is_vlan() {
            return self.violate(at, index, "tagged frame delivered", describe(frame));
        }
        let has_program = matches!(station.plan.part, Part::Client | Part::Server);
        if header.ethertype == EtherType::ARP {
            let outcome = self.judge_arp(at, index, &header, frame);
            self.expect(at, index, outcome, frame);
        } else if has_program && recognise(frame) != DhcpKind::Other {
            let outcome = self.said.hear(at, index, station.stack.mac, frame);
            self.expect(at, index, outcome, frame);
        }
    }

    fn judge_arp(&mut self, at: Instant, index: usize, header: &Header, frame: &[u8]) -> Result<(), &'static str> {
        let Some(arp) = arp_in(frame) else { return Err("malformed ARP delivered") };
        if arp.sender_mac != header.source || !self.truth.admits(at, index, arp.sender_ip, arp.sender_mac) {
            return Err("false ARP delivered");
        }
        let asked = self.asked.get(&(index, arp.sender_ip));
        let is_asked = asked.is_some_and(|asked_at| at.since(*asked_at) <= ANSWERED_WITHIN);
        if arp.operation == Operation::Reply && !is_asked { Err("unasked reply delivered") } else { Ok(()) }
    }

    /// The bump of `station` puts `frame` on the wire.
    pub fn leaves(&mut self, at: Instant, index: usize, station: &Station, frame: &[u8]) {
        let Ok((header, _)) = Header::parse(frame) else {
            return self.violate(at, index, "runt on the wire", format!("{} bytes", frame.len()));
        };
        if header.source != station.stack.mac {
            return self.violate(at, index, "foreign source on the wire", describe(frame));
        }
        let has_program = matches!(station.plan.part, Part::Client | Part::Server);
        if has_program && View::new(frame).is_ok_and(|view| view.option(OPTION_PROOF).is_none()) {
            return self.violate(at, index, "unproved DHCP on the wire", describe(frame));
        }
        let Some(message) = signed_in(frame) else { return };
        self.duties.ask(&message);
        if station.plan.part == Part::Distributor {
            let outcome = self.duties.answer(at, (index, station.life), &message);
            self.expect(at, index, outcome, frame);
        }
    }

    /// What distributors gave and took.
    pub fn granted(&mut self, at: Instant, changes: &[Change], liars: &[(u64, usize, Option<MacAddress>)]) {
        for change in changes {
            let owner = self.clients.get(&change.host).copied();
            let others = self.truth.holders(change.ip);
            let is_taken = others.iter().any(|other| Some(*other) != owner && self.clients_have(*other));
            if change.is_given && is_taken && !self.leases_may_end_early() {
                let detail = format!("{} to host number {}", change.ip, change.host);
                self.violate(at, others[0], "address of another given away", detail);
            }
            for (host, liar, mac) in liars {
                let is_its_own = *host == change.host;
                let holds = self.truth.holders(change.ip).contains(liar);
                match (is_its_own && change.is_given, holds) {
                    (true, false) => self.truth.begin(at, *liar, change.ip, *mac),
                    (false, true) => self.truth.end(at, *liar, Some(change.ip), End::Lingering),
                    _ => {}
                }
            }
        }
    }

    fn clients_have(&self, station: usize) -> bool {
        self.clients.values().any(|client| *client == station)
    }

    /// Which addresses the daemon of a DHCP client speaks for now.
    pub fn owns(&mut self, at: Instant, index: usize, station: &Station) {
        let now = station.now(at).since_boot;
        let held = self.truth_of(index);
        let leases = station.host.as_ref().map(|host| host.report(now).leases).unwrap_or_default();
        let owned: BTreeSet<Ipv4Addr> = leases.iter().filter(|lease| !lease.given).map(|lease| lease.ip).collect();
        for ip in held.difference(&owned) {
            self.truth.end(at, index, Some(*ip), End::Honest);
        }
        for ip in owned.difference(&held) {
            let has_another = self.truth.holders(*ip).into_iter().any(|other| self.clients_have(other));
            if has_another && !self.leases_may_end_early() {
                self.violate(at, index, "two clients with one address", ip.to_string());
            }
            self.truth.begin(at, index, *ip, Some(station.stack.mac));
        }
        if let Some(fallen) = self.fallen.get(&index) {
            self.truth.end(*fallen, index, None, End::Lingering);
        }
    }

    fn truth_of(&self, station: usize) -> BTreeSet<Ipv4Addr> {
        let pools = site::SERVERS.iter().flat_map(|server| site::pool_of(*server));
        pools.filter(|ip| self.truth.holders(*ip).contains(&station)).collect()
    }

    /// Looks at the bump of `station` after a call.
    pub fn after_call(&mut self, at: Instant, index: usize, station: &Station, thoroughly: bool) {
        let Some(host) = &station.host else { return };
        let mut ledger = Ledger::new();
        host.add_to_ledger(&mut ledger);
        if ledger.balance() != 0 {
            self.violate(at, index, "frames without fate", format!("{}", ledger.balance()));
        }
        let (keys, enquiries) = host.keys_and_enquiries();
        let held_max = (limits::PENDING_MAX + limits::JOBS_MAX + limits::LEASE_ENQUIRIES_MAX) as u64;
        if keys > limits::RING_MAX || enquiries > limits::ENQUIRIES_MAX || ledger.held > held_max {
            let detail = format!("{keys} keys, {enquiries} requests, {} frames held", ledger.held);
            self.violate(at, index, "limit exceeded", detail);
        }
        if thoroughly {
            self.check_clock(at, index, station);
        }
    }

    /// A host's clock shows what a distributor's clock shows, or showed before that was put right.
    fn check_clock(&mut self, at: Instant, index: usize, station: &Station) {
        let now = station.now(at).since_boot;
        let Some(shown) = station.host.as_ref().and_then(|host| host.report(now).clock_unix_s) else { return };
        let true_s = (START_UNIX_S + at.since(START).as_secs()) as i64;
        let error_s = i64::from(shown) - true_s;
        if !self.clock_errors_s.iter().any(|known_s| (error_s - known_s).abs() <= CLOCK_APART_S) {
            self.violate(at, index, "clock that no distributor has", format!("off by {error_s} s"));
        }
    }

    /// The run is over: nothing is held any more.
    pub fn close(&mut self, at: Instant, stations: &[Station]) {
        for (index, station) in stations.iter().enumerate() {
            let Some(host) = &station.host else { continue };
            let mut ledger = Ledger::new();
            host.add_to_ledger(&mut ledger);
            if ledger.held != 0 {
                self.violate(at, index, "held after the end", format!("{} frames", ledger.held));
            }
        }
    }
}

fn arp_in(frame: &[u8]) -> Option<Arp> {
    let (header, message) = Header::parse(frame).ok()?;
    Arp::parse(message).ok().filter(|_| header.ethertype == EtherType::ARP)
}

fn signed_in(frame: &[u8]) -> Option<Message<'_>> {
    let (header, message) = Header::parse(frame).ok()?;
    Message::parse(message).ok().filter(|_| header.ethertype == EtherType::ARP)
}

fn describe(frame: &[u8]) -> String {
    if let Ok(view) = View::new(frame) {
        let (kind, chaddr) = (view.kind(), view.chaddr());
        return format!("{kind:?} of {chaddr}, yiaddr {}, ciaddr {}", view.yiaddr(), view.ciaddr());
    }
    match (signed_in(frame), arp_in(frame)) {
        (Some(message), _) => format!("{:?}, {} at {}", message.kind, message.arp.sender_ip, message.arp.sender_mac),
        (_, Some(arp)) => format!("{:?}, {} at {}", arp.operation, arp.sender_ip, arp.sender_mac),
        _ => format!("{} bytes", frame.len()),
    }
}
