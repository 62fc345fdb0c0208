//! One run: hosts on a LAN under virtual time, driven event by event. The same scenario and seed give the same run.

mod trouble;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bump::{Bump, Generator, Instant, Ledger, Meta, Side};
use cll::Weaken;
use identity::HostIdentity;

use super::attacker::Attacker;
use super::datagram::{Number, Parcel};
use super::event::Event;
use super::host::{Host, Outcome};
use super::judge::Judge;
use super::scenario::{Part, Scenario};
use super::site;
use super::stack::Output;
use crate::sim::course::{self, Course};
use crate::sim::report::Report;

/// Frames of the ring that are looked at together.
const POLL_BATCH: usize = 8;
/// Longest wait between the arrival of a frame and the look at it.
const POLL_DELAY_MICROS: u64 = 60;

/// A host behind a router of the site.
const BEYOND: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 9);

/// Frames that arrived together.
type Received = Vec<(Vec<u8>, Meta)>;

/// The randomness of `seed`.
pub fn generator(seed: u64) -> Generator {
    let mut seed_bytes = [0; 32];
    seed_bytes[..8].copy_from_slice(&seed.to_be_bytes());
    Generator::from_seed(seed_bytes)
}

/// The world of one run.
pub struct World {
    scenario: Scenario,
    course: Course<Event>,
    hosts: Vec<Host>,
    attacker: Option<Attacker>,
    judge: Judge,
    next_number: u64,
    /// How often keys were replaced through an association, on either side.
    renewals: u64,
}

impl course::World for World {
    type Event = Event;

    fn course(&mut self) -> &mut Course<Event> {
        &mut self.course
    }

    fn end(&self) -> Instant {
        self.scenario.end()
    }

    fn paused_until(&self, host: usize) -> Instant {
        self.hosts[host].paused_until
    }

    fn begin(&mut self) {
        for host in 0..self.hosts.len() {
            let outcome = self.hosts[host].start(self.course.at);
            self.absorb(host, outcome, true);
            self.begin_chatter(host);
        }
        for (flow, plan) in self.scenario.flows.clone().iter().enumerate() {
            self.course.schedule(plan.first, Event::Application { flow });
        }
        for (at, host, step) in self.scenario.steps.clone() {
            self.course.schedule(at, Event::Step { host, step });
        }
        if let Some(every) = self.scenario.attack_every {
            self.course.schedule_in(every, Event::Attack);
        }
        self.course.schedule(self.scenario.faults_stop, Event::FaultsStop);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive { port, frame } => self.arrive(port, frame),
            Event::Poll { host } => self.poll(host),
            Event::FromStack { host, output, is_lie } => self.leave_stack(host, &output, is_lie),
            Event::Job { host, life, ticket, job } if self.hosts[host].life == life => {
                let outcome = self.hosts[host].complete(self.course.at, ticket, job.map(|job| *job));
                self.absorb(host, outcome, true);
            }
            Event::Job { .. } => {}
            Event::Tick { host } => self.tick(host),
            Event::StackTick { host } => self.stack_tick(host),
            Event::Application { flow } => self.application(flow),
            Event::Step { host, step } => self.step(host, step),
            Event::Restart { host } => self.restart(host),
            Event::Attack => self.attack(),
            Event::Lie { host } => self.lie(host),
            Event::Babble { host } => self.babble(host),
            Event::Pass { host } => self.pass(host),
            Event::Shout { host } => self.shout(host),
            Event::FaultsStop => self.faults_stop(),
        }
    }

    fn finish(mut self) -> Report {
        let ledger = self.ledger();
        let links: Vec<_> = self.hosts.iter_mut().map(|host| host.link.take()).collect();
        self.judge.close(self.course.at, &links);
        let deliveries = self.judge.deliveries();
        let renewals = self.renewals;
        let violations = self.judge.into_violations();
        Report { renewals, ..self.course.report(self.scenario.summary(), deliveries, violations, ledger) }
    }
}

impl World {
    /// The world of `seed`. `weaken` is what the laboratory switches off on the honest hosts.
    pub fn new(seed: u64, identities: &[Arc<HostIdentity>], weaken: Weaken, tells: bool) -> World {
        let mut random = generator(seed);
        let scenario = Scenario::draw(&mut random);
        World::of(scenario, random, identities, weaken, tells)
    }

    /// The world of this scenario.
    pub fn of(
        scenario: Scenario,
        mut random: Generator,
        identities: &[Arc<HostIdentity>],
        weaken: Weaken,
        tells: bool,
    ) -> World {
        let numbers = 0..scenario.hosts.len();
        let hosts: Vec<Host> =
            numbers.map(|number| Host::new(number, &scenario, identities, weaken, &mut random)).collect();
        let ports = hosts.len() + usize::from(scenario.attack_every.is_some());
        let victims = scenario.hosts.iter().map(|plan| (site::mac(plan.identity), site::ip(plan.identity))).collect();
        let has_insider = scenario.hosts.iter().any(|plan| plan.part == Part::Insider);
        let is_given_away = has_insider || scenario.changes_site_key;
        let site_key = identities.first().filter(|_| is_given_away).map(|identity| identity.site_key().clone());
        let attacker = Attacker::new(victims, site_key, Generator::from_seed(random.bytes()));
        World {
            course: Course::new(scenario.fabric, scenario.faults, ports, random, tells),
            attacker: scenario.attack_every.map(|_| attacker),
            judge: Judge::new(&scenario),
            next_number: 1,
            renewals: 0,
            hosts,
            scenario,
        }
    }

    /// Adds up the books of all lives of all hosts.
    fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::new();
        for host in &self.hosts {
            ledger.add(&host.past);
            if let Some(link) = &host.link {
                link.add_to_ledger(&mut ledger);
            }
        }
        ledger
    }

    /// Carries away what a call into a link layer brought forth, and has the judge look at all of it.
    fn absorb(&mut self, host: usize, outcome: Outcome, thoroughly: bool) {
        for event in &outcome.events {
            self.renewals += u64::from(matches!(event, cll::Event::Renewed { .. }));
            self.course.tell(host, event);
        }
        for frame in outcome.wire {
            self.judge.leaves(self.course.at, host, &frame);
            self.course.transmit(host, &frame);
        }
        for (frame, meta) in outcome.stack {
            self.course.note(b'd', host, &frame);
            self.judge.delivered(self.course.at, host, &frame, meta);
            let outputs = self.hosts[host].stack.receive(self.course.at, &frame);
            self.stack_sends(host, outputs);
        }
        for (ticket, job) in outcome.jobs {
            let life = self.hosts[host].life;
            self.course.work(job, |job| Event::Job { host, life, ticket, job });
        }
        if let Some(link) = &self.hosts[host].link {
            let now = self.hosts[host].now(self.course.at).since_boot;
            self.judge.after_call(self.course.at, now, host, link, thoroughly);
        }
        self.schedule_upkeep(host);
    }

    fn schedule_upkeep(&mut self, host: usize) {
        let at = self.course.at;
        let this = &mut self.hosts[host];
        let (next, next_of_stack) = (this.deadline(), this.stack.deadline());
        if let Some(next) = this.tick_due.plan(at, next) {
            self.course.schedule(next, Event::Tick { host });
        }
        if let Some(next) = this.stack_tick_due.plan(at, next_of_stack) {
            self.course.schedule(next, Event::StackTick { host });
        }
    }

    fn tick(&mut self, host: usize) {
        if !self.hosts[host].tick_due.take(self.course.at) {
            return;
        }
        if self.hosts[host].deadline().is_some_and(|deadline| deadline <= self.course.at) {
            let outcome = self.hosts[host].tick(self.course.at);
            self.absorb(host, outcome, true);
        }
        self.schedule_upkeep(host);
    }

    fn stack_tick(&mut self, host: usize) {
        let is_due = self.hosts[host].stack_tick_due.take(self.course.at);
        // The silence at the end is real: a stack that probes its neighbours would open handshakes to the last moment.
        if !is_due || self.course.at >= self.scenario.traffic_stops() {
            return;
        }
        let outputs = self.hosts[host].stack.tick(self.course.at);
        self.stack_sends(host, outputs);
        self.schedule_upkeep(host);
    }

    fn arrive(&mut self, port: usize, frame: Vec<u8>) {
        let Some(host) = self.hosts.get_mut(port) else {
            return self.attacker.iter_mut().for_each(|attacker| attacker.see(&frame));
        };
        if host.plan.part == Part::Legacy {
            self.judge.reached(self.course.at, &frame);
            let outputs = host.stack.receive(self.course.at, &frame);
            return self.stack_sends(port, outputs);
        }
        if host.ring.arrive(frame) {
            let delay = self.course.micros(POLL_DELAY_MICROS);
            self.course.schedule_in(delay, Event::Poll { host: port });
        }
    }

    /// The program looks at what has arrived: a few frames, in as many calls as there are changes of lane.
    fn poll(&mut self, host: usize) {
        let this = &mut self.hosts[host];
        let mut batches: Vec<(usize, Received)> = Vec::new();
        let (frames, again) = this.ring.look(POLL_BATCH);
        for frame in frames {
            let lane = this.lane_of(Side::WIRE, &frame);
            match batches.last_mut().filter(|(last, _)| *last == lane) {
                Some((_, batch)) => batch.push((frame, Meta::plain())),
                None => batches.push((lane, vec![(frame, Meta::plain())])),
            }
        }
        if again {
            self.course.schedule_in(Duration::from_micros(1), Event::Poll { host });
        }
        for (lane, batch) in batches {
            batch.iter().for_each(|(frame, _)| self.judge.arrives(host, frame));
            let outcome = self.hosts[host].process(self.course.at, Side::WIRE, lane, batch);
            self.absorb(host, outcome, false);
        }
    }

    fn stack_sends(&mut self, host: usize, outputs: Vec<Output>) {
        for output in outputs {
            let delay = self.course.micros(20);
            self.course.schedule_in(delay, Event::FromStack { host, output, is_lie: false });
        }
        self.schedule_upkeep(host);
    }

    fn leave_stack(&mut self, host: usize, output: &Output, is_lie: bool) {
        if let Output::Datagrams(packed) = output {
            self.judge.sent(host, &packed.pieces, is_lie);
        }
        let (frame, meta) = output.frame();
        self.course.note(b'u', host, frame);
        if self.hosts[host].plan.part == Part::Legacy {
            let frame = frame.to_vec();
            return self.course.transmit(host, &frame);
        }
        let lane = self.hosts[host].lane_of(Side::STACK, frame);
        let outcome = self.hosts[host].process(self.course.at, Side::STACK, lane, vec![(frame.to_vec(), meta)]);
        self.absorb(host, outcome, false);
    }

    fn application(&mut self, flow: usize) {
        if self.course.at >= self.scenario.traffic_stops() {
            return;
        }
        let plan = self.scenario.flows[flow];
        let paused_until = self.hosts[plan.from].paused_until;
        if paused_until > self.course.at {
            return self.course.schedule(paused_until, Event::Application { flow });
        }
        for _ in 0..plan.burst {
            let parcel = self.parcel(flow);
            let outputs = self.hosts[plan.from].stack.send(self.course.at, parcel);
            self.stack_sends(plan.from, outputs);
        }
        self.course.schedule_in(plan.every, Event::Application { flow });
    }

    fn parcel(&mut self, flow: usize) -> Parcel {
        let plan = self.scenario.flows[flow];
        let first = self.take_numbers(plan.shape.count());
        for at in 0..plan.shape.count() {
            self.judge.offered(flow, Number(first.0 + at as u64), self.course.at);
        }
        let [from, to] = [plan.from, plan.to].map(|host| &self.scenario.hosts[host]);
        Parcel {
            first,
            shape: plan.shape,
            source: if plan.forwarded { BEYOND } else { site::ip(from.identity) },
            destination: site::ip(to.identity),
            port: 40_000 + flow as u16,
            secret: from.confidential && from.part == Part::Honest && to.part != Part::Legacy,
        }
    }

    fn take_numbers(&mut self, count: usize) -> Number {
        let first = Number(self.next_number);
        self.next_number += count as u64;
        first
    }
}
