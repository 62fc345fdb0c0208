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
use crate::sim::agenda::{Agenda, START};
use crate::sim::fabric::Fabric;
use crate::sim::report::Report;
use crate::sim::trace::Trace;

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
    at: Instant,
    agenda: Agenda<Event>,
    hosts: Vec<Host>,
    fabric: Fabric,
    attacker: Option<Attacker>,
    judge: Judge,
    trace: Trace,
    random: Generator,
    next_number: u64,
    /// How often keys were replaced through an association, on either side.
    renewals: u64,
    job_lost_one_in: u64,
    /// Whether to tell what happens while it happens.
    tells: bool,
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
        let site_key = identities.first().filter(|_| has_insider).map(|identity| identity.site_key().clone());
        let attacker = Attacker::new(victims, site_key, Generator::from_seed(random.bytes()));
        World {
            at: START,
            agenda: Agenda::default(),
            fabric: Fabric::new(scenario.fabric, scenario.harm, ports, Generator::from_seed(random.bytes())),
            attacker: scenario.attack_every.map(|_| attacker),
            judge: Judge::new(&scenario),
            trace: Trace::default(),
            next_number: 1,
            renewals: 0,
            job_lost_one_in: scenario.job_lost_one_in,
            hosts,
            random,
            scenario,
            tells,
        }
    }

    /// Runs to the end.
    pub fn run(mut self) -> Report {
        self.begin();
        let end = self.scenario.end();
        while let Some((at, event)) = self.agenda.next() {
            if at > end {
                break;
            }
            self.at = at;
            self.trace.note(at, event.letter(), event.host().unwrap_or(usize::MAX), &[]);
            self.happen(event);
        }
        self.at = end;
        self.finish()
    }

    fn begin(&mut self) {
        for host in 0..self.hosts.len() {
            let outcome = self.hosts[host].start(self.at);
            self.absorb(host, outcome, true);
            self.begin_chatter(host);
        }
        for (flow, plan) in self.scenario.flows.clone().iter().enumerate() {
            self.schedule(plan.first, Event::Application { flow });
        }
        for (at, host, step) in self.scenario.steps.clone() {
            self.schedule(at, Event::Step { host, step });
        }
        if let Some(every) = self.scenario.attack_every {
            self.schedule_in(every, Event::Attack);
        }
        self.schedule(self.scenario.faults_stop, Event::FaultsStop);
    }

    fn finish(mut self) -> Report {
        let mut ledger = Ledger::new();
        for host in &self.hosts {
            ledger.add(&host.past);
            if let Some(link) = &host.link {
                link.add_to_ledger(&mut ledger);
            }
        }
        let links: Vec<_> = self.hosts.iter_mut().map(|host| host.link.take()).collect();
        self.judge.close(self.at, &links);
        Report {
            summary: self.scenario.summary(),
            events: self.trace.events(),
            deliveries: self.judge.deliveries(),
            renewals: self.renewals,
            violations: self.judge.into_violations(),
            ledger,
            hash: self.trace.hash(),
        }
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.agenda.schedule(at, event);
    }

    fn schedule_in(&mut self, time: Duration, event: Event) {
        self.schedule(self.at + time, event);
    }

    fn micros(&mut self, below: u64) -> Duration {
        Duration::from_micros(self.random.below(below))
    }

    fn happen(&mut self, event: Event) {
        if let Some(until) = event.host().map(|host| self.hosts[host].paused_until).filter(|&until| until > self.at) {
            return self.schedule(until, event);
        }
        match event {
            Event::Arrive { port, frame } => self.arrive(port, frame),
            Event::Poll { host } => self.poll(host),
            Event::FromStack { host, output, is_lie } => self.leave_stack(host, &output, is_lie),
            Event::Job { host, life, ticket, job } if self.hosts[host].life == life => {
                let outcome = self.hosts[host].complete(self.at, ticket, job.map(|job| *job));
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
            Event::FaultsStop => self.faults_stop(),
        }
    }

    /// Carries away what a call into a link layer brought forth, and has the judge look at all of it.
    fn absorb(&mut self, host: usize, outcome: Outcome, thoroughly: bool) {
        for event in &outcome.events {
            self.renewals += u64::from(matches!(event, cll::Event::Renewed { .. }));
            if self.tells {
                println!("{:.6} host {host}: {event}", self.at.since(START).as_secs_f64());
            }
        }
        for frame in outcome.wire {
            self.judge.leaves(self.at, host, &frame);
            self.transmit(host, &frame);
        }
        for (frame, meta) in outcome.stack {
            self.trace.note(self.at, b'd', host, &frame);
            self.judge.delivered(self.at, host, &frame, meta);
            let outputs = self.hosts[host].stack.receive(self.at, &frame);
            self.stack_sends(host, outputs);
        }
        for (ticket, job) in outcome.jobs {
            let life = self.hosts[host].life;
            let job = (!self.random.chance(self.job_lost_one_in)).then(|| Box::new(job));
            let delay = self.micros(self.scenario.job_delay_max.as_micros() as u64 + 1);
            self.schedule_in(delay, Event::Job { host, life, ticket, job });
        }
        if let Some(link) = &self.hosts[host].link {
            let now = self.hosts[host].now(self.at).since_boot;
            self.judge.after_call(self.at, now, host, link, thoroughly);
        }
        self.schedule_upkeep(host);
    }

    fn schedule_upkeep(&mut self, host: usize) {
        let at = self.at;
        let this = &mut self.hosts[host];
        let sooner = |next: &Instant, scheduled: Option<Instant>| scheduled.is_none_or(|scheduled| *next < scheduled);
        let tick = this.deadline().map(|next| next.max(at)).filter(|next| sooner(next, this.tick_at));
        let stack_tick = this.stack.deadline().map(|next| next.max(at)).filter(|next| sooner(next, this.stack_tick_at));
        this.tick_at = tick.or(this.tick_at);
        this.stack_tick_at = stack_tick.or(this.stack_tick_at);
        if let Some(next) = tick {
            self.schedule(next, Event::Tick { host });
        }
        if let Some(next) = stack_tick {
            self.schedule(next, Event::StackTick { host });
        }
    }

    fn tick(&mut self, host: usize) {
        if self.hosts[host].tick_at.is_some_and(|scheduled| scheduled > self.at) {
            return;
        }
        self.hosts[host].tick_at = None;
        if self.hosts[host].deadline().is_some_and(|deadline| deadline <= self.at) {
            let outcome = self.hosts[host].tick(self.at);
            self.absorb(host, outcome, true);
        }
        self.schedule_upkeep(host);
    }

    fn stack_tick(&mut self, host: usize) {
        if self.hosts[host].stack_tick_at.is_some_and(|scheduled| scheduled > self.at) {
            return;
        }
        self.hosts[host].stack_tick_at = None;
        // The silence at the end is real: a stack that probes its neighbours would open handshakes to the last moment.
        if self.at >= self.scenario.traffic_stops() {
            return;
        }
        let outputs = self.hosts[host].stack.tick(self.at);
        self.stack_sends(host, outputs);
        self.schedule_upkeep(host);
    }

    fn transmit(&mut self, port: usize, frame: &[u8]) {
        self.trace.note(self.at, b'w', port, frame);
        for flight in self.fabric.carry(port, frame) {
            self.schedule_in(flight.delay, Event::Arrive { port: flight.port, frame: flight.frame });
        }
    }

    fn arrive(&mut self, port: usize, frame: Vec<u8>) {
        let Some(host) = self.hosts.get_mut(port) else {
            return self.attacker.iter_mut().for_each(|attacker| attacker.see(&frame));
        };
        if host.plan.part == Part::Legacy {
            self.judge.reached(self.at, &frame);
            let outputs = host.stack.receive(self.at, &frame);
            return self.stack_sends(port, outputs);
        }
        host.arrive(frame);
        if !std::mem::replace(&mut host.poll_scheduled, true) {
            let delay = self.micros(POLL_DELAY_MICROS);
            self.schedule_in(delay, Event::Poll { host: port });
        }
    }

    /// The program looks at what has arrived: a few frames, in as many calls as there are changes of lane.
    fn poll(&mut self, host: usize) {
        let this = &mut self.hosts[host];
        let mut batches: Vec<(usize, Received)> = Vec::new();
        let count = this.ring.len().min(POLL_BATCH);
        for frame in this.ring.drain(..count).collect::<Vec<_>>() {
            let lane = this.lane_of(Side::WIRE, &frame);
            match batches.last_mut().filter(|(last, _)| *last == lane) {
                Some((_, batch)) => batch.push((frame, Meta::plain())),
                None => batches.push((lane, vec![(frame, Meta::plain())])),
            }
        }
        this.poll_scheduled = !this.ring.is_empty();
        if this.poll_scheduled {
            self.schedule_in(Duration::from_micros(1), Event::Poll { host });
        }
        for (lane, batch) in batches {
            batch.iter().for_each(|(frame, _)| self.judge.arrives(host, frame));
            let outcome = self.hosts[host].process(self.at, Side::WIRE, lane, batch);
            self.absorb(host, outcome, false);
        }
    }

    fn stack_sends(&mut self, host: usize, outputs: Vec<Output>) {
        for output in outputs {
            let delay = self.micros(20);
            self.schedule_in(delay, Event::FromStack { host, output, is_lie: false });
        }
        self.schedule_upkeep(host);
    }

    fn leave_stack(&mut self, host: usize, output: &Output, is_lie: bool) {
        if let Output::Datagrams(packed) = output {
            self.judge.sent(host, &packed.pieces, is_lie);
        }
        let (frame, meta) = output.frame();
        self.trace.note(self.at, b'u', host, frame);
        if self.hosts[host].plan.part == Part::Legacy {
            let frame = frame.to_vec();
            return self.transmit(host, &frame);
        }
        let lane = self.hosts[host].lane_of(Side::STACK, frame);
        let outcome = self.hosts[host].process(self.at, Side::STACK, lane, vec![(frame.to_vec(), meta)]);
        self.absorb(host, outcome, false);
    }

    fn application(&mut self, flow: usize) {
        if self.at >= self.scenario.traffic_stops() {
            return;
        }
        let plan = self.scenario.flows[flow];
        let paused_until = self.hosts[plan.from].paused_until;
        if paused_until > self.at {
            return self.schedule(paused_until, Event::Application { flow });
        }
        for _ in 0..plan.burst {
            let parcel = self.parcel(flow);
            let outputs = self.hosts[plan.from].stack.send(self.at, parcel);
            self.stack_sends(plan.from, outputs);
        }
        self.schedule_in(plan.every, Event::Application { flow });
    }

    fn parcel(&mut self, flow: usize) -> Parcel {
        let plan = self.scenario.flows[flow];
        let first = self.take_numbers(plan.shape.count());
        for at in 0..plan.shape.count() {
            self.judge.offered(flow, Number(first.0 + at as u64), self.at);
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
