//! What holds in a world in migration. The judge's own books say who has proved himself to whom (by what each host's link layer
//! announced), and who ought to be able to talk; it looks at every frame that a guarded stack is given or that a guarded host
//! puts on the wire.
//!
//! - *No downgrade*: a host in mode prefer or enforce is given nothing that the attacker made in the name of a host that has proved
//!   itself to it, and sends no IPv4 packet to such a host in clear; in mode enforce it is given nothing in clear at all.
//! - *Nobody is cut*: guarded hosts that have proved themselves to each other and do not observe are never without a delivery
//!   for longer than [`CUT_MAX`], whatever the attacker does; and everybody who may talk is heard within the calm at the end.
//! - *They talk*: the end of a run without such deliveries is a violation by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bump::{Bump, Instant, Ledger};
use cll::{Cll, Event, Migration};
use wire::arp::{Arp, Operation};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};
use wire::{EtherType, MacAddress, ipv4};

use super::scenario::Scenario;
use crate::sim::link_layer::datagram::{Number, number_in};
use crate::sim::link_layer::site;
use crate::sim::report::{Violation, Violations};

/// Longest time without a delivery between two who may talk: a request is repeated after 1, 2, 4 and 8 s, and so is the handshake that
/// an unknown index, or silence, opens.
const CUT_MAX: Duration = Duration::from_secs(30);
/// Numbers of the attacker's datagrams start here.
pub const FORGED: u64 = 1 << 62;

/// The judge of one run.
pub struct Judge {
    scenario: Scenario,
    modes: Vec<Migration>,
    up: Vec<bool>,
    proved: BTreeSet<(usize, MacAddress)>,
    /// Since when a flow is obliged to deliver, or delivered last.
    since: BTreeMap<(usize, usize), Instant>,
    delivered_last: BTreeMap<(usize, usize), Instant>,
    /// Stacks that may believe the attacker, for as long as the world is not calm.
    misled: BTreeSet<usize>,
    senders: BTreeMap<Number, (usize, usize)>,
    violations: Violations,
    deliveries: u64,
}

impl Judge {
    /// A judge of a run of `scenario`.
    pub fn new(scenario: &Scenario) -> Judge {
        Judge {
            modes: scenario.modes.clone(),
            up: vec![true; scenario.modes.len()],
            scenario: scenario.clone(),
            proved: BTreeSet::new(),
            since: BTreeMap::new(),
            delivered_last: BTreeMap::new(),
            misled: BTreeSet::new(),
            senders: BTreeMap::new(),
            violations: Violations::default(),
            deliveries: 0,
        }
    }

    /// What did not hold, and how many datagrams arrived.
    pub fn into_findings(self) -> (Violations, u64) {
        (self.violations, self.deliveries)
    }

    fn violate(&mut self, at: Instant, host: usize, rule: &'static str, detail: String) {
        self.violations.add(Violation { at, host, rule, detail });
    }

    fn is_printer(&self, host: usize) -> bool {
        host == self.modes.len()
    }

    /// The mode of a guarded host.
    fn mode(&self, host: usize) -> Option<Migration> {
        self.modes.get(host).copied()
    }

    /// A link layer announced something.
    pub fn announced(&mut self, at: Instant, host: usize, event: &Event) {
        if let Event::Established { mac, .. } | Event::Resumed { mac, .. } = event
            && self.proved.insert((host, *mac))
        {
            self.forgive(at, host);
        }
    }

    /// Something happened to `host` that starts every count with it anew.
    fn forgive(&mut self, at: Instant, host: usize) {
        for other in 0..=self.modes.len() {
            self.since.insert((host, other), at);
            self.since.insert((other, host), at);
        }
    }

    /// A host's program died or is there again.
    pub fn turned(&mut self, at: Instant, host: usize, is_up: bool) {
        self.up[host] = is_up;
        self.forgive(at, host);
    }

    /// A host's mode was changed.
    pub fn changed(&mut self, at: Instant, host: usize, mode: Migration) {
        self.modes[host] = mode;
        self.forgive(at, host);
    }

    /// The attacker begins, or has done his last deed: all counts start anew.
    pub fn turns(&mut self, at: Instant) {
        (0..=self.modes.len()).for_each(|host| self.forgive(at, host));
    }

    /// An application of `from` sends this to `to`; it is time to see whether that still works.
    pub fn offered(&mut self, at: Instant, from: usize, to: usize, number: Number) {
        self.senders.insert(number, (from, to));
        let since = *self.since.entry((from, to)).or_insert(at);
        if self.is_obliged(at, from, to) && at.since(since) > CUT_MAX {
            self.violate(at, from, "cut for too long", format!("nothing reached host {to} for {:?}", at.since(since)));
            self.since.insert((from, to), at);
        }
    }

    /// Whether these two may talk at all: guarded ones do, and the printer with those who do not enforce.
    fn may_talk(&self, from: usize, to: usize) -> bool {
        let takes_part = |host| self.is_printer(host) || self.up[host];
        let strict = |host| self.mode(host) == Some(Migration::Enforce);
        let with_printer = self.is_printer(from) || self.is_printer(to);
        takes_part(from) && takes_part(to) && !(with_printer && (strict(from) || strict(to)))
    }

    /// Whether nothing may stand between these two now. While the attacker speaks only those are safe who have proved themselves to
    /// each other and whose stacks he could not mislead before.
    fn is_obliged(&self, at: Instant, from: usize, to: usize) -> bool {
        let is_safe = |one: usize, other: usize| {
            self.mode(one).is_some_and(|mode| mode != Migration::Observe)
                && self.proved.contains(&(one, site::mac(other)))
                && !self.misled.contains(&one)
        };
        let is_attacked = at >= self.scenario.attack_begins && at < self.scenario.is_calm();
        self.may_talk(from, to) && (!is_attacked || is_safe(from, to) && is_safe(to, from))
    }

    /// The stack of guarded `host` was given `frame`.
    pub fn delivered(&mut self, at: Instant, host: usize, frame: &[u8]) {
        let Ok((header, payload)) = Header::parse(frame) else { return };
        let claimed = match header.ethertype {
            EtherType::ARP => self.false_arp(&header, payload),
            EtherType::IPV4 => number_in(frame).filter(|number| number.0 >= FORGED).and(source_of(payload)),
            _ => None,
        };
        match claimed {
            Some(victim) => self.forged(at, host, victim),
            None => self.reached(at, host, frame),
        }
    }

    /// Whom an ARP message speaks for that he did not send.
    fn false_arp(&self, header: &Header, message: &[u8]) -> Option<usize> {
        let arp = Arp::parse(message).ok()?;
        let owner = (0..=self.modes.len()).find(|&host| site::ip(host) == arp.sender_ip)?;
        (header.source != site::mac(owner) || arp.sender_mac != site::mac(owner)).then_some(owner)
    }

    /// A guarded stack was given what the attacker made in the name of `victim`.
    fn forged(&mut self, at: Instant, host: usize, victim: usize) {
        self.misled.insert(host);
        let is_proved = self.proved.contains(&(host, site::mac(victim)));
        match self.mode(host) {
            Some(Migration::Enforce) => {
                self.violate(
                    at,
                    host,
                    "clear frame delivered in mode enforce",
                    format!("in the name of host {victim}"),
                );
            }
            Some(Migration::Prefer) if is_proved => {
                self.violate(at, host, "proved host fell back", format!("host {victim} was believed in clear"));
            }
            _ => {}
        }
    }

    /// A stack, the printer's too, was given a frame as it should be.
    pub fn reached(&mut self, at: Instant, host: usize, frame: &[u8]) {
        let Some((from, to)) = number_in(frame).and_then(|number| self.senders.get(&number).copied()) else { return };
        if to != host {
            return;
        }
        if self.is_printer(from) && self.mode(host) == Some(Migration::Enforce) {
            return self.violate(at, host, "clear frame delivered in mode enforce", "of the printer".to_owned());
        }
        self.deliveries += 1;
        self.since.insert((from, to), at);
        self.delivered_last.insert((from, to), at);
    }

    /// Guarded `host` puts `frame` on the wire.
    pub fn leaves(&mut self, at: Instant, host: usize, frame: &[u8]) {
        let Ok((header, payload)) = Header::parse(frame) else { return };
        if header.ethertype != EtherType::IPV4 || self.mode(host) == Some(Migration::Observe) {
            return;
        }
        let wanted = ipv4::View::new(payload)
            .ok()
            .and_then(|packet| (0..self.modes.len()).find(|&other| site::ip(other) == packet.destination()));
        let Some(wanted) = wanted else { return };
        if self.proved.contains(&(host, header.destination)) {
            self.violate(at, host, "sent in clear to a proved host", format!("host {wanted}"));
        }
    }

    /// The run is over: every frame has a fate, and all who may talk did so to the end.
    pub fn close(&mut self, at: Instant, links: &[Option<Cll>]) {
        for (host, link) in links.iter().enumerate() {
            let mut ledger = Ledger::new();
            link.iter().for_each(|link| link.add_to_ledger(&mut ledger));
            if ledger.balance() != 0 || ledger.held != 0 {
                self.violate(at, host, "frames without fate", format!("{} and {} held", ledger.balance(), ledger.held));
            }
        }
        for from in 0..=self.modes.len() {
            for to in (0..=self.modes.len()).filter(|&to| to != from) {
                let last = self.delivered_last.get(&(from, to)).copied();
                if self.may_talk(from, to) && last.is_none_or(|last| last < self.scenario.is_calm()) {
                    self.violate(at, from, "nothing delivered in the calm", format!("to host {to}"));
                }
            }
        }
    }
}

/// Which host the packet says it is from.
fn source_of(packet: &[u8]) -> Option<usize> {
    let source = ipv4::View::new(packet).ok()?.source();
    (0..site::POOL).find(|&host| site::ip(host) == source)
}

/// What the attacker says in the name of `victim` to `target`: his own address for the victim's in ARP, and datagrams from the victim's
/// or from his own hardware address.
pub fn forgery(kind: u64, number: Number, victim: usize, target: usize, attacker: MacAddress) -> Vec<u8> {
    let (target_mac, target_ip) = (site::mac(target), site::ip(target));
    let arp = |operation| Arp { operation, sender_mac: attacker, sender_ip: site::ip(victim), target_mac, target_ip };
    let arp_frame = |destination, arp: Arp| {
        let header = Header { destination, source: attacker, ethertype: EtherType::ARP };
        [&header.emit()[..], &arp.emit()].concat()
    };
    match kind {
        0 => arp_frame(target_mac, arp(Operation::Reply)),
        1 => arp_frame(MacAddress::BROADCAST, arp(Operation::Request)),
        2 => datagram(number, site::mac(victim), victim, target),
        _ => datagram(number, attacker, victim, target),
    }
}

fn datagram(number: Number, source: MacAddress, victim: usize, target: usize) -> Vec<u8> {
    let parcel = super::parcels::parcel(number, victim, target);
    let frame = parcel.pack(source, site::mac(target)).bytes;
    debug_assert!(frame.len() > ETHERNET_LEN);
    frame
}
