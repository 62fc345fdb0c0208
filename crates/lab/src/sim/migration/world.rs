//! One run of a world in migration, driven event by event.

use bump::{Bump, Generator, Instant, Ledger, Meta, Side};
use identity::HostIdentity;
use std::sync::Arc;
use wire::MacAddress;

use super::Plant;
use super::event::Event;
use super::host::{Host, Outcome};
use super::judge::{FORGED, Judge, forgery};
use super::parcels::parcel;
use super::scenario::{Scenario, Step};
use crate::sim::course::{self, Course};
use crate::sim::link_layer::datagram::Number;
use crate::sim::link_layer::stack::Output;
use crate::sim::report::Report;

/// The attacker's own hardware address.
const ATTACKER: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x66]);

/// The world of one run. The printer is the last host, and the attacker's port is behind it.
pub struct World {
    scenario: Scenario,
    course: Course<Event>,
    hosts: Vec<Host>,
    judge: Judge,
    next_number: u64,
}

impl World {
    /// The world of this scenario.
    pub fn new(scenario: Scenario, mut random: Generator, identities: &[Arc<HostIdentity>], tells: bool) -> World {
        // The pool's router may speak for anybody, so it is not among the hosts.
        let guarded = scenario.modes.iter().enumerate().map(|(number, mode)| {
            let plant = scenario.plant.filter(|plant| *plant != Plant::DeafPrinter);
            Host::new(number, identities.get(number), *mode, plant, &mut random)
        });
        let mut hosts: Vec<Host> = guarded.collect();
        hosts.push(Host::new(hosts.len(), None, cll::Migration::Observe, scenario.plant, &mut random));
        World {
            course: Course::new(scenario.fabric, scenario.faults, hosts.len() + 1, random, tells),
            judge: Judge::new(&scenario),
            hosts,
            scenario,
            next_number: 1,
        }
    }

    fn at(&self) -> Instant {
        self.course.at
    }

    /// Carries away what a call into a link layer brought forth, and has the judge look at all of it.
    fn absorb(&mut self, host: usize, outcome: Outcome) {
        let at = self.at();
        for event in &outcome.events {
            self.judge.announced(at, host, event);
            self.course.tell(host, event);
        }
        for frame in outcome.wire {
            self.put_on_wire(host, &frame);
        }
        for (frame, _) in outcome.stack {
            self.course.note(b'd', host, &frame);
            self.judge.delivered(at, host, &frame);
            self.give_to_stack(host, &frame);
        }
        for (ticket, job) in outcome.jobs {
            let life = self.hosts[host].life;
            self.course.work(job, |job| Event::Job { host, life, ticket, job });
        }
        self.schedule_upkeep(host);
    }

    fn put_on_wire(&mut self, host: usize, frame: &[u8]) {
        self.judge.leaves(self.course.at, host, frame);
        self.course.transmit(host, frame);
    }

    fn give_to_stack(&mut self, host: usize, frame: &[u8]) {
        let outputs = self.hosts[host].stack.receive(self.course.at, frame);
        self.stack_sends(host, outputs);
    }

    fn stack_sends(&mut self, host: usize, outputs: Vec<Output>) {
        for output in outputs {
            let delay = self.course.micros(20);
            self.course.schedule_in(delay, Event::FromStack { host, output });
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
        let outcome = self.hosts[host].tick(self.course.at);
        self.absorb(host, outcome);
    }

    fn stack_tick(&mut self, host: usize) {
        let is_due = self.hosts[host].stack_tick_due.take(self.course.at);
        if is_due && self.at() < self.scenario.talk_ends() {
            let outputs = self.hosts[host].stack.tick(self.course.at);
            self.stack_sends(host, outputs);
        }
    }

    /// A frame reaches a card. The attacker's only listens.
    fn arrive(&mut self, port: usize, frame: Vec<u8>) {
        let at = self.at();
        let Some(host) = self.hosts.get_mut(port) else { return };
        if host.is_guarded() {
            let outcome = host.process(at, Side::WIRE, frame, Meta::plain());
            self.absorb(port, outcome);
        } else if self.scenario.plant != Some(Plant::DeafPrinter) {
            self.judge.reached(at, port, &frame);
            self.give_to_stack(port, &frame);
        }
    }

    fn leave_stack(&mut self, host: usize, output: &Output) {
        let (frame, meta) = output.frame();
        let frame = frame.to_vec();
        if !self.hosts[host].is_guarded() {
            return self.course.transmit(host, &frame);
        }
        if self.scenario.plant == Some(Plant::SideDoor) {
            self.put_on_wire(host, &frame);
        }
        let outcome = self.hosts[host].process(self.course.at, Side::STACK, frame, meta);
        self.absorb(host, outcome);
    }

    fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn talk(&mut self, from: usize, to: usize) {
        if self.at() >= self.scenario.talk_ends() {
            return;
        }
        let number = Number(self.take_number());
        self.judge.offered(self.course.at, from, to, number);
        let outputs = self.hosts[from].stack.send(self.course.at, parcel(number, from, to));
        self.stack_sends(from, outputs);
        self.course.schedule_in(self.scenario.talk_every, Event::Talk { from, to });
    }

    fn attack(&mut self) {
        if self.at() >= self.scenario.attack_ends {
            return;
        }
        let guarded = self.scenario.modes.len() as u64;
        let victim = self.course.random.below(guarded) as usize;
        let target = self.course.random.below(guarded + 1) as usize;
        let kind = self.course.random.below(4);
        if target != victim {
            let number = Number(FORGED + self.take_number());
            let frame = forgery(kind, number, victim, target, ATTACKER);
            self.course.transmit(self.hosts.len(), &frame);
        }
        self.course.schedule_in(self.scenario.attack_every, Event::Attack);
    }

    fn step(&mut self, host: usize, step: Step) {
        let at = self.at();
        match step {
            // It is down already.
            Step::Crash(_) if self.hosts[host].link.is_none() => {}
            Step::Crash(time) => {
                self.hosts[host].crash();
                self.judge.turned(at, host, false);
                self.course.schedule_in(time, Event::Restart { host });
            }
            Step::Mode(mode) => {
                self.judge.changed(at, host, mode);
                let outcome = self.hosts[host].set_mode(at, mode);
                self.absorb(host, outcome);
            }
        }
    }

    fn start(&mut self, host: usize) {
        let outcome = self.hosts[host].start(self.course.at);
        if self.hosts[host].is_guarded() {
            self.judge.turned(self.course.at, host, true);
        }
        self.absorb(host, outcome);
    }
}

impl course::World for World {
    type Event = Event;

    fn course(&mut self) -> &mut Course<Event> {
        &mut self.course
    }

    fn end(&self) -> Instant {
        self.scenario.end()
    }

    fn paused_until(&self, _host: usize) -> Instant {
        self.course.at
    }

    fn begin(&mut self) {
        for host in 0..self.hosts.len() {
            self.start(host);
            for to in (0..self.hosts.len()).filter(|&to| to != host) {
                let delay = self.course.micros(2_000_000);
                self.course.schedule_in(delay, Event::Talk { from: host, to });
            }
        }
        for (at, host, step) in self.scenario.steps.clone() {
            self.course.schedule(at, Event::Step { host, step });
        }
        self.course.schedule(self.scenario.attack_begins, Event::Attack);
        self.course.schedule(self.scenario.attack_ends, Event::AttackEnds);
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive { port, frame } => self.arrive(port, frame),
            Event::FromStack { host, output } => self.leave_stack(host, &output),
            Event::Job { host, life, ticket, job } if self.hosts[host].life == life => {
                let outcome = self.hosts[host].complete(self.course.at, ticket, job.map(|job| *job));
                self.absorb(host, outcome);
            }
            Event::Job { .. } => {}
            Event::Tick { host } => self.tick(host),
            Event::StackTick { host } => self.stack_tick(host),
            Event::Talk { from, to } => self.talk(from, to),
            Event::Step { host, step } => self.step(host, step),
            Event::Restart { host } => self.start(host),
            Event::Attack => self.attack(),
            Event::AttackEnds => {
                self.course.heal();
                self.judge.turns(self.course.at);
            }
        }
    }

    fn finish(mut self) -> Report {
        let mut ledger = Ledger::new();
        for host in &self.hosts {
            ledger.add(&host.past);
            host.link.iter().for_each(|link| link.add_to_ledger(&mut ledger));
        }
        let links: Vec<_> = self.hosts.iter_mut().map(|host| host.link.take()).collect();
        self.judge.close(self.course.at, &links);
        let (violations, deliveries) = self.judge.into_findings();
        self.course.report(self.scenario.summary(), deliveries, violations, ledger)
    }
}
