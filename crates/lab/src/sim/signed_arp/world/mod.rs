//! One run: machines on a LAN under virtual time, driven event by event. The same scenario and seed give the same run.

mod trouble;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use bump::{Bump, Generator, Instant, Ledger, Side};
use sarp::{Event as News, Weaken};
use wire::MacAddress;
use wire::dhcp::{Kind, recognise};

use super::attacker::Attacker;
use super::event::Event;
use super::forger::Forger;
use super::judge::Judge;
use super::repository::Repository;
use super::scenario::{Part, RECOVERY, Scenario};
use super::site::{self, Pool};
use super::station::{Outcome, Program, Station};
use crate::failure::Failure;
use crate::sim::course::{self, Course};
use crate::sim::report::Report;

/// How often hosts look for those that they have not found yet, once faults have stopped.
const ASK_AGAIN: Duration = Duration::from_secs(3);
/// An address that nobody has.
const NOBODY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 222);

/// The world of one run.
pub struct World {
    scenario: Scenario,
    pool: &'static Pool,
    repository: Repository,
    course: Course<Event>,
    stations: Vec<Station>,
    attacker: Attacker,
    judge: Judge,
    /// Stations whose key is not to be believed, or was copied.
    compromised: Vec<usize>,
    /// Those that were taken out of the site.
    revoked: Vec<usize>,
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
        self.stations[host].paused_until
    }

    fn begin(&mut self) {
        for index in 0..self.stations.len() {
            self.stations[index].start();
            self.schedule_upkeep(index);
            self.course.schedule_in(Duration::from_millis(500), Event::Curiosity { station: index });
        }
        for (at, station, step) in self.scenario.steps.clone() {
            self.course.schedule(at, Event::Step { station, step });
        }
        if let Some(every) = self.scenario.attack_every {
            self.course.schedule_in(every, Event::Attack);
        }
        self.course.schedule(self.scenario.faults_stop, Event::FaultsStop);
        for last in [self.scenario.recovered(), self.scenario.traffic_stops()] {
            self.course.schedule(last - RECOVERY, Event::AskAll);
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Arrive { port, frame } => self.arrive(port, frame),
            Event::FromStack { station, frame } => self.leave_stack(station, frame),
            Event::Job { station, life, ticket, job } if self.stations[station].life == life => {
                let job = job.map(|job| *job);
                let outcome = self.stations[station].complete(self.course.at, ticket, job, &self.repository);
                self.look_at_grants();
                self.absorb(station, outcome, true);
            }
            Event::Job { .. } => {}
            Event::Tick { station } => self.tick(station),
            Event::Curiosity { station } => self.wonder(station),
            Event::Step { station, step } => self.step(station, step),
            Event::Restart { station } => self.restart(station),
            Event::Attack => self.attack(),
            Event::FromAttacker { frame } => self.course.transmit(self.stations.len(), &frame),
            Event::FaultsStop => self.faults_stop(),
            Event::AskAll => self.ask_all(),
        }
    }

    fn finish(mut self) -> Report {
        let ledger = self.ledger();
        self.judge.close(self.course.at, &self.stations);
        let deliveries = self.judge.deliveries();
        self.course.report(self.scenario.summary(), deliveries, self.judge.into_violations(), ledger)
    }
}

impl World {
    /// The world of `seed`. `weaken` is what the laboratory switches off on the honest hosts.
    ///
    /// # Errors
    /// The site or its repository could not be made.
    pub fn new(seed: u64, weaken: Weaken, tells: bool) -> Result<World, Failure> {
        let mut seed_bytes = *b"signed arp: 0123456789abcdefghij";
        seed_bytes[12..20].copy_from_slice(&seed.to_be_bytes());
        let mut random = Generator::from_seed(seed_bytes);
        let (scenario, pool) = (Scenario::draw(&mut random), site::pool()?);
        let (repository, numbers) = Repository::new(&scenario.plans, pool)?;
        let both = scenario.plans.iter().zip(&numbers);
        let stations: Vec<Station> =
            both.map(|(plan, number)| Station::new(*plan, *number, &scenario, pool, weaken, &mut random)).collect();
        let ports = stations.len() + 1;
        let mut course = Course::new(scenario.fabric, scenario.faults, ports, random, tells);
        let mut world = World {
            attacker: attacker(&scenario, Generator::from_seed(course.random.bytes())),
            judge: Judge::new(&scenario, &numbers),
            compromised: Vec::new(),
            revoked: Vec::new(),
            stations,
            repository,
            pool,
            scenario,
            course,
        };
        let insider = world.stations.iter().position(|station| station.plan.part == Part::Insider);
        world.attacker.forgers.extend(insider.and_then(|index| world.forger(index)));
        Ok(world)
    }

    /// Whoever has the key of a station now.
    fn forger(&self, index: usize) -> Option<Forger> {
        let station = &self.stations[index];
        let identity = self.pool.identity(station.plan.number)?;
        let key = station.settings.as_ref().map_or_else(|| identity.signing_key(), |one| Arc::clone(&one.key));
        Some(Forger {
            ip: site::ip(station.plan.number),
            mac: station.stack.mac,
            is_copy: station.plan.part != Part::Insider,
            is_bound: station.plan.is_bound,
            host: station.enrolled_as,
            key,
            request_key: site::master().key_of(station.enrolled_as),
            site_key: identity.site_key().clone(),
        })
    }

    /// Adds up the books of all lives of all stations.
    fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::new();
        for station in &self.stations {
            ledger.add(&station.past);
            if let Some(host) = &station.host {
                host.add_to_ledger(&mut ledger);
            }
        }
        ledger
    }

    /// Carries away what a call into a bump brought forth, and has the judge look at all of it.
    fn absorb(&mut self, index: usize, outcome: Outcome, thoroughly: bool) {
        for news in &outcome.events {
            self.hear_news(index, news);
        }
        if self.stations[index].plan.part == Part::Client {
            self.judge.owns(self.course.at, index, &self.stations[index]);
        }
        for frame in outcome.wire {
            self.judge.leaves(self.course.at, index, &self.stations[index], &frame);
            self.course.transmit(index, &frame);
        }
        for (frame, _) in outcome.stack {
            self.course.note(b'd', index, &frame);
            self.judge.told(self.course.at, index, &self.stations[index], &frame);
            self.reach_stack(index, &frame);
        }
        for (ticket, job) in outcome.jobs {
            let life = self.stations[index].life;
            self.course.work(job, |job| Event::Job { station: index, life, ticket, job });
        }
        self.judge.after_call(self.course.at, index, &self.stations[index], thoroughly);
        self.schedule_upkeep(index);
    }

    fn hear_news(&mut self, index: usize, news: &News) {
        self.course.tell(index, news);
        let station = &mut self.stations[index];
        match news {
            News::OwnKeyChanged => {
                if let (Some(new), Some(settings)) = (station.new_key.take(), &mut station.settings) {
                    settings.key = new;
                }
            }
            News::OwnKeyKept => station.new_key = None,
            _ => {}
        }
    }

    /// A frame reaches a stack and the DHCP program above it.
    fn reach_stack(&mut self, index: usize, frame: &[u8]) {
        let at = self.course.at;
        let station = &mut self.stations[index];
        let answer = match (&mut station.program, recognise(frame) == Kind::Dhcp) {
            (Program::Client(client), true) => client.receive(at, frame),
            (Program::Server(server), true) => server.receive(at, &mut self.course.random, frame),
            _ => {
                let reply = station.stack.receive(frame);
                return self.stack_sends(index, reply);
            }
        };
        self.program_sends(index, answer);
    }

    fn program_sends(&mut self, index: usize, frame: Option<Vec<u8>>) {
        let at = self.course.at;
        let station = &mut self.stations[index];
        if let Program::Client(client) = &station.program {
            station.stack.ip = client.ip(at);
        }
        frame.iter().for_each(|frame| self.judge.program_says(at, frame));
        self.stack_sends(index, frame);
        self.schedule_upkeep(index);
    }

    fn stack_sends(&mut self, index: usize, frames: impl IntoIterator<Item = Vec<u8>>) {
        for frame in frames {
            let delay = self.course.micros(20);
            self.course.schedule_in(delay, Event::FromStack { station: index, frame });
        }
    }

    fn leave_stack(&mut self, index: usize, frame: Vec<u8>) {
        self.course.note(b'u', index, &frame);
        if !self.stations[index].is_guarded() {
            return self.course.transmit(index, &frame);
        }
        self.judge.stack_says(self.course.at, index, &frame);
        let outcome = self.stations[index].process(self.course.at, Side::STACK, frame);
        self.absorb(index, outcome, false);
    }

    fn schedule_upkeep(&mut self, index: usize) {
        let at = self.course.at;
        let station = &mut self.stations[index];
        let next = station.deadline().map(|next| next.max(at));
        let Some(next) = next.filter(|next| station.tick_at.is_none_or(|scheduled| *next < scheduled)) else { return };
        station.tick_at = Some(next);
        self.course.schedule(next, Event::Tick { station: index });
    }

    /// What is due in the daemon, the stack and the program of a station.
    fn tick(&mut self, index: usize) {
        let at = self.course.at;
        let station = &mut self.stations[index];
        if station.tick_at.is_some_and(|scheduled| scheduled > at) {
            return;
        }
        station.tick_at = None;
        let outcome = station.tick(at);
        if let Program::Client(client) = &station.program {
            station.stack.ip = client.ip(at);
        }
        let questions = station.stack.tick(at);
        let words = match &mut station.program {
            // The silence at the end is real.
            Program::Client(client) if at >= self.scenario.traffic_stops() => {
                client.retire();
                None
            }
            Program::Client(client) => client.tick(at, &mut self.course.random),
            _ => None,
        };
        self.absorb(index, outcome, true);
        self.stack_sends(index, questions);
        self.program_sends(index, words);
    }

    fn arrive(&mut self, port: usize, frame: Vec<u8>) {
        let Some(station) = self.stations.get(port) else { return self.attacker_sees(&frame) };
        if station.paused_until > self.course.at {
            let until = station.paused_until;
            return self.course.schedule(until, Event::Arrive { port, frame });
        }
        if station.plan.part == Part::Insider {
            return;
        }
        // A card hands up what is for it or for all; on a hub it sees everything.
        let to = frame.first_chunk().map_or(MacAddress::ZERO, |bytes| MacAddress(*bytes));
        if to != station.stack.mac && !to.is_group() {
            return;
        }
        if !station.is_guarded() {
            return self.reach_stack(port, &frame);
        }
        let outcome = self.stations[port].process(self.course.at, Side::WIRE, frame);
        self.absorb(port, outcome, false);
    }

    /// A host wants to speak with somebody.
    fn wonder(&mut self, index: usize) {
        if self.course.at >= self.scenario.traffic_stops() - RECOVERY {
            return;
        }
        let addresses = self.addresses();
        let wanted = addresses[self.course.random.below(addresses.len() as u64) as usize];
        let at = self.course.at;
        // While everybody looks for everybody, nobody forgets whom he has found.
        if at < self.scenario.faults_stop || at > self.scenario.recovered() {
            self.stations[index].stack.ask(at, wanted);
            self.schedule_upkeep(index);
        }
        let longest = self.scenario.ask_every_max;
        // When all is calm there is less to say.
        let longest = if self.course.at > self.scenario.recovered() { longest * 2 } else { longest };
        let wait = self.course.micros(longest.as_micros() as u64);
        self.course.schedule_in(wait, Event::Curiosity { station: index });
    }

    /// What one may want to reach: everybody that has an address, the liar, and nobody.
    fn addresses(&self) -> Vec<Ipv4Addr> {
        let liar = self.stations.iter().filter(|station| station.plan.part == Part::Insider);
        let liar = liar.map(|station| site::ip(station.plan.number));
        let known = self.stations.iter().filter_map(|station| station.stack.ip);
        known.chain(liar).chain([NOBODY]).collect()
    }

    fn look_at_grants(&mut self) {
        let changes = self.repository.take_changes();
        if changes.is_empty() {
            return;
        }
        let liars = self.stations.iter().enumerate().filter(|(_, station)| station.plan.part == Part::Insider);
        let liars: Vec<_> = liars
            .map(|(index, station)| {
                let mac = station.plan.is_bound.then_some(station.stack.mac);
                (station.enrolled_as, index, mac)
            })
            .collect();
        self.judge.granted(self.course.at, &changes, &liars);
    }

    /// Whether others must find this station in the end, and it them.
    fn must_be_found(&self, index: usize, at_the_end: bool) -> bool {
        let station = &self.stations[index];
        let is_there = match station.plan.part {
            Part::Distributor | Part::Static | Part::Server => true,
            Part::Client => at_the_end,
            Part::Insider | Part::Known | Part::Plain => false,
        };
        // Who has a key that was stolen is found again once nobody believes the copy.
        is_there && !self.revoked.contains(&index) && (at_the_end || !self.compromised.contains(&index))
    }

    /// Everybody looks for everybody that he has not found yet, again and again; at the end all must be found.
    fn ask_all(&mut self) {
        let deadlines = [self.scenario.recovered(), self.scenario.traffic_stops()];
        let Some(last) = deadlines.into_iter().find(|last| *last >= self.course.at) else { return };
        let at_the_end = last == self.scenario.traffic_stops();
        let is_over = self.course.at == last;
        if self.course.at + RECOVERY == last {
            self.stations.iter_mut().for_each(|station| station.stack.flush());
        }
        let searched: Vec<usize> =
            (0..self.stations.len()).filter(|&index| self.must_be_found(index, at_the_end)).collect();
        for &index in &searched {
            for &other in searched.iter().filter(|&&other| other != index) {
                self.look_for(index, other, is_over);
            }
            self.schedule_upkeep(index);
        }
        if !is_over {
            self.course.schedule_in(ASK_AGAIN, Event::AskAll);
        }
    }

    fn look_for(&mut self, index: usize, other: usize, is_over: bool) {
        let (at, mac, ip) = (self.course.at, self.stations[other].stack.mac, self.stations[other].stack.ip);
        let is_found = ip.is_some_and(|ip| self.stations[index].stack.knows(ip) == Some(mac));
        match ip.filter(|_| !is_found) {
            _ if is_found => {}
            Some(ip) if !is_over => self.stations[index].stack.ask(at, ip),
            None if !is_over => {}
            _ => {
                let detail = format!("host {other} at {mac} with {ip:?}");
                self.judge.violate(at, index, "not found after faults stopped", detail);
            }
        }
    }
}

fn attacker(scenario: &Scenario, random: Generator) -> Attacker {
    let of = |wanted: fn(Part) -> bool| {
        let plans = scenario.plans.iter().filter(move |plan| wanted(plan.part));
        plans.map(|plan| (site::mac(plan.number), site::ip(plan.number))).collect::<Vec<_>>()
    };
    let mut victims = of(|part| part != Part::Client);
    let servers = scenario.plans.iter().filter(|plan| plan.part == Part::Server);
    let clients = scenario.plans.iter().filter(|plan| plan.part == Part::Client);
    let client_macs: Vec<MacAddress> = clients.map(|plan| site::mac(plan.number)).collect();
    let leased = servers.flat_map(|plan| site::pool_of(plan.number));
    victims.extend(client_macs.iter().copied().cycle().zip(leased));
    Attacker::new(victims, of(|part| part == Part::Distributor), random)
}
