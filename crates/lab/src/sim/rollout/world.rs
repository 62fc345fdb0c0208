//! The LAN in virtual time: hosts of the site, printers, and an attacker who never stops.
//!
//! The attacker does what arpspoof does with forwarding on: he tells his victims that he is the
//! router, and hands on what comes. Beside that he sends them datagrams in the router's name.

use std::net::Ipv4Addr;
use std::time::Duration;

use bump::{Generator, Instant, Meta, Side, Ticket};
use cll::{Job, Migration};
use identity::HostIdentity;
use wire::arp::{Arp, Operation};
use wire::ethernet::Header;
use wire::{EtherType, MacAddress, ipv4};

use super::host::{Host, Outcome};
use super::pings::{EVERY, Pings};
use super::service::Service;
use crate::sim::agenda::{Agenda, START};
use crate::sim::clock::START_UNIX_S;
use crate::sim::fabric::{Fabric, Harm, Kind};
use crate::sim::link_layer::datagram::{Number, Parcel, Shape, number_in};
use crate::sim::link_layer::stack::{Output, arp_frame};

/// A daemon's loop comes round so often, also where nothing came.
const ROUND: Duration = Duration::from_millis(20);
/// A stack ages its neighbours so often.
const AGEING: Duration = Duration::from_millis(250);
/// A host reports so often.
pub const REPORT_EVERY: Duration = Duration::from_secs(60);
/// The service looks at the policy so often, and a daemon at what has come into force by time.
const LOOK_EVERY: Duration = Duration::from_secs(2);
const SPOOF_EVERY: Duration = Duration::from_millis(500);
/// How many hosts the attacker tells that he is the router.
const VICTIMS: usize = 3;
const PORT: u16 = 4100;
/// Numbers of the attacker's datagrams.
const FORGED: u64 = u64::MAX;

/// Something that is due.
enum Event {
    Arrive { port: usize, frame: Vec<u8> },
    Job { host: usize, life: u32, ticket: Ticket, job: Box<Job> },
    Round { host: usize },
    Ageing { host: usize },
    Ping { host: usize },
    Report { host: usize, life: u32 },
    Look,
    Spoof,
}

/// The attacker, at the last port.
struct Attacker {
    mac: MacAddress,
    victims: Vec<usize>,
    router: usize,
    /// Looks at victims, and how many found one deceived.
    deceived: (u64, u64),
}

/// The LAN and all on it: hosts of the site come first, then printers.
pub struct World {
    pub at: Instant,
    pub hosts: Vec<Host>,
    pub pings: Pings,
    pub service: Option<Service>,
    /// Datagrams of the attacker that a host took which enforces.
    pub forged: u64,
    members: usize,
    started: Vec<Instant>,
    attacker: Attacker,
    agenda: Agenda<Event>,
    fabric: Fabric,
    random: Generator,
}

impl World {
    /// All of them in clear; the first `members` are to be the site's, `router` is one of them.
    pub fn new(hosts: Vec<Host>, members: usize, router: usize, attacker: MacAddress, random: Generator) -> World {
        let pings = Pings::new(members, hosts.len() - members);
        let mut world = World::of(hosts, pings, router, attacker, random);
        world.members = members;
        world.attacker.victims = (0..members).rev().filter(|host| *host != router).take(VICTIMS).collect();
        world.agenda.schedule(START + EVERY, Event::Spoof);
        world
    }

    /// Hosts of the site that talk so, without an attacker.
    pub fn of(hosts: Vec<Host>, pings: Pings, router: usize, attacker: MacAddress, mut random: Generator) -> World {
        let (ports, members) = (hosts.len() + 1, hosts.len());
        let victims = Vec::new();
        let mut world = World {
            at: START,
            pings,
            service: None,
            forged: 0,
            members,
            started: vec![START; hosts.len()],
            attacker: Attacker { mac: attacker, victims, router, deceived: (0, 0) },
            agenda: Agenda::default(),
            fabric: Fabric::new(Kind::Switch, Harm::default(), ports, Generator::from_seed(random.bytes())),
            random,
            hosts,
        };
        for host in 0..world.hosts.len() {
            for (event, every) in [(Event::Ageing { host }, AGEING), (Event::Ping { host }, EVERY)] {
                let delay = world.less_than(every);
                world.agenda.schedule(START + delay, event);
            }
        }
        world.agenda.schedule(START, Event::Look);
        world
    }

    fn less_than(&mut self, time: Duration) -> Duration {
        Duration::from_micros(self.random.below(time.as_micros() as u64))
    }

    /// The time on the site's walls.
    pub fn unix_ms(&self) -> u64 {
        START_UNIX_S * 1000 + self.at.since(START).as_millis() as u64
    }

    pub fn unix_s(&self) -> u64 {
        self.unix_ms() / 1000
    }

    /// Lets time pass.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.at + time;
        while let Some((at, event)) = self.agenda.next() {
            if at > end {
                self.agenda.schedule(at, event);
                break;
            }
            self.at = at;
            self.happen(event);
        }
        self.at = end;
    }

    fn again(&mut self, every: Duration, event: Event) {
        self.agenda.schedule(self.at + every, event);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive { port, frame } => self.arrive(port, frame),
            Event::Job { host, life, ticket, job } => {
                if self.hosts[host].life == life {
                    let outcome = self.hosts[host].complete(self.at, ticket, *job);
                    self.absorb(host, outcome);
                }
            }
            Event::Round { host } => {
                if self.hosts[host].is_guarded() {
                    let outcome = self.hosts[host].tick(self.at);
                    self.absorb(host, outcome);
                    self.again(ROUND, Event::Round { host });
                }
            }
            Event::Ageing { host } => {
                let outputs = self.hosts[host].stack.tick(self.at);
                self.leave_stack(host, &outputs);
                self.again(AGEING, Event::Ageing { host });
            }
            Event::Ping { host } => {
                self.ping(host);
                self.again(EVERY, Event::Ping { host });
            }
            Event::Report { host, life } => self.report(host, life),
            Event::Look => self.look(),
            Event::Spoof => {
                self.spoof();
                self.again(SPOOF_EVERY, Event::Spoof);
            }
        }
    }

    /// The daemon of `host` starts.
    pub fn join(&mut self, host: usize, identity: HostIdentity) {
        let policy = self.service.as_ref().and_then(Service::policy);
        self.started[host] = self.at;
        let outcome = self.hosts[host].join(self.at, identity, policy);
        self.absorb(host, outcome);
        let (life, delay) = (self.hosts[host].life, self.less_than(REPORT_EVERY));
        self.again(ROUND, Event::Round { host });
        self.again(delay, Event::Report { host, life });
    }

    /// Says what it has to, and hears what is newer.
    fn report(&mut self, host: usize, life: u32) {
        let now_ms = self.unix_ms();
        let this = &self.hosts[host];
        if this.life != life || !this.is_guarded() {
            return;
        }
        let news = match (this.report(self.at, self.started[host]), &mut self.service) {
            (Some(report), Some(service)) => service.take(&this.name, &report.bytes(), now_ms),
            _ => None,
        };
        if let Some(policy) = news {
            let outcome = self.hosts[host].offer(self.at, policy.bytes());
            self.absorb(host, outcome);
        }
        self.again(REPORT_EVERY, Event::Report { host, life });
    }

    /// The service reads the policy anew, and what a policy says of this time comes into force.
    fn look(&mut self) {
        // One that cannot be read is the same as before, as in the service; stages read it as well.
        let _kept = self.service.as_mut().map(Service::look);
        for host in 0..self.members {
            let outcome = self.hosts[host].follow(self.at);
            self.absorb(host, outcome);
        }
        self.again(LOOK_EVERY, Event::Look);
    }

    fn ping(&mut self, host: usize) {
        let mut outputs = Vec::new();
        for to in self.pings.others(host) {
            let number = self.pings.send(host, to);
            let parcel = parcel(number, self.hosts[host].ip, self.hosts[to].ip);
            outputs.extend(self.hosts[host].stack.send(self.at, parcel));
        }
        self.leave_stack(host, &outputs);
    }

    fn leave_stack(&mut self, host: usize, outputs: &[Output]) {
        let frames = outputs.iter().map(|output| {
            let (frame, meta) = output.frame();
            (frame.to_vec(), meta)
        });
        let mut frames: Vec<(Vec<u8>, Meta)> = frames.collect();
        if frames.is_empty() {
            return;
        }
        if self.hosts[host].is_guarded() {
            let outcome = self.hosts[host].process(self.at, Side::STACK, &mut frames);
            return self.absorb(host, outcome);
        }
        frames.iter().for_each(|(frame, _)| self.transmit(host, frame));
    }

    fn transmit(&mut self, port: usize, frame: &[u8]) {
        for flight in self.fabric.carry(port, frame) {
            self.agenda.schedule(self.at + flight.delay, Event::Arrive { port: flight.port, frame: flight.frame });
        }
    }

    /// A frame reaches a card.
    fn arrive(&mut self, port: usize, frame: Vec<u8>) {
        let Some(host) = self.hosts.get_mut(port) else { return self.forward(&frame) };
        let is_ours = Header::parse(&frame)
            .is_ok_and(|(header, _)| header.destination == host.mac || header.destination.is_group());
        if !is_ours {
            return;
        }
        if host.is_guarded() {
            let outcome = host.process(self.at, Side::WIRE, &mut [(frame, Meta::plain())]);
            self.absorb(port, outcome);
        } else {
            self.enter_stack(port, &frame);
        }
    }

    fn enter_stack(&mut self, host: usize, frame: &[u8]) {
        let this = &mut self.hosts[host];
        let outputs = this.stack.receive(self.at, frame);
        if let Some(number) = number_in(frame) {
            let enforces = this.mode() == Some(Migration::Enforce);
            let known = self.pings.deliver(self.at, number, host);
            self.forged += u64::from(known.is_none() && number == Number(FORGED) && enforces);
        }
        self.leave_stack(host, &outputs);
    }

    /// Carries away what a call into a link layer brought forth.
    fn absorb(&mut self, host: usize, outcome: Outcome) {
        for frame in outcome.wire {
            self.transmit(host, &frame);
        }
        for (ticket, job) in outcome.jobs {
            let life = self.hosts[host].life;
            let done = self.hosts[host].done_at(self.at);
            self.agenda.schedule(done, Event::Job { host, life, ticket, job: Box::new(job) });
        }
        for (frame, _) in outcome.stack {
            self.enter_stack(host, &frame);
        }
    }

    fn spoof(&mut self) {
        let Attacker { mac, victims, router, .. } = &self.attacker;
        let (mac, router_ip) = (*mac, self.hosts[*router].ip);
        for victim in victims.clone() {
            let (target_mac, target_ip) = (self.hosts[victim].mac, self.hosts[victim].ip);
            let believed = self.hosts[victim].stack.believed(router_ip);
            self.attacker.deceived.0 += 1;
            self.attacker.deceived.1 += u64::from(believed == Some(mac));
            let lie = Arp { operation: Operation::Reply, sender_mac: mac, sender_ip: router_ip, target_mac, target_ip };
            let forged = parcel(Number(FORGED), router_ip, target_ip).pack(mac, target_mac).bytes;
            let port = self.hosts.len();
            self.transmit(port, &arp_frame(target_mac, &lie));
            self.transmit(port, &forged);
        }
    }

    /// The attacker hands on what was meant for another.
    fn forward(&mut self, frame: &[u8]) {
        let Ok((header, packet)) = Header::parse(frame) else { return };
        if header.destination != self.attacker.mac || header.ethertype != EtherType::IPV4 {
            return;
        }
        let Ok(destination) = ipv4::View::new(packet).map(|view| view.destination()) else { return };
        let Some(meant) = self.hosts.iter().find(|host| host.ip == destination) else { return };
        let onward = Header { destination: meant.mac, source: self.attacker.mac, ethertype: EtherType::IPV4 };
        let frame = [&onward.emit()[..], packet].concat();
        self.transmit(self.hosts.len(), &frame);
    }

    /// Looks at victims since the last time, and how many of them were deceived.
    pub fn take_deceived(&mut self) -> (u64, u64) {
        std::mem::take(&mut self.attacker.deceived)
    }

    /// Hosts with a link layer, and those of them in this mode.
    pub fn count(&self, mode: Migration) -> (usize, usize) {
        let modes = || self.hosts.iter().filter_map(Host::mode);
        (modes().count(), modes().filter(|one| *one == mode).count())
    }

    /// Ends of associations on all hosts.
    pub fn associations(&self) -> usize {
        self.hosts.iter().map(|host| host.associations(self.at)).sum()
    }
}

fn parcel(number: Number, source: Ipv4Addr, destination: Ipv4Addr) -> Parcel {
    let shape = Shape::Udp { payload_len: 8, partial: false };
    Parcel { first: number, shape, source, destination, port: PORT, secret: false }
}
