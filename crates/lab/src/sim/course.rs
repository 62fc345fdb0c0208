//! The course of a run, the same in every world: events in the order of virtual time, frames over the LAN, jobs at a worker,
//! and the trace of it all. A world says what its events do and judges what comes of them.

use std::fmt::Display;
use std::time::Duration;

use bump::{Generator, Instant, Ledger};

use super::agenda::{Agenda, START};
use super::fabric::{Fabric, Kind};
use super::faults::Faults;
use super::report::{Report, Violations};
use super::trace::Trace;

/// Something that is due in a world.
pub trait Happening {
    /// A letter for the trace.
    fn letter(&self) -> u8;

    /// The host that must be awake for it.
    fn host(&self) -> Option<usize>;

    /// A frame arrives at a port of the LAN.
    fn arrival(port: usize, frame: Vec<u8>) -> Self;
}

/// A LAN and all on it.
pub trait World: Sized {
    /// What can be due.
    type Event: Happening;

    /// How far it is.
    fn course(&mut self) -> &mut Course<Self::Event>;

    /// When it is over.
    fn end(&self) -> Instant;

    /// Before this moment `host` does nothing.
    fn paused_until(&self, host: usize) -> Instant;

    /// Schedules what is to happen first.
    fn begin(&mut self);

    /// Something happens.
    fn happen(&mut self, event: Self::Event);

    /// What it came to.
    fn finish(self) -> Report;
}

/// Runs `world` to its end.
pub fn run<W: World>(mut world: W) -> Report {
    world.begin();
    let end = world.end();
    while let Some((at, event)) = world.course().agenda.next() {
        if at > end {
            break;
        }
        let host = event.host();
        world.course().at = at;
        world.course().note(event.letter(), host.unwrap_or(usize::MAX), &[]);
        match host.map(|host| world.paused_until(host)).filter(|&until| until > at) {
            Some(until) => world.course().schedule(until, event),
            None => world.happen(event),
        }
    }
    world.course().at = end;
    world.finish()
}

/// How far a run is, and what it needs to go on.
pub struct Course<E> {
    /// The moment that it has reached.
    pub at: Instant,
    /// What everything in it draws from.
    pub random: Generator,
    /// Whether to tell what happens while it happens.
    tells: bool,
    agenda: Agenda<E>,
    fabric: Fabric,
    trace: Trace,
    faults: Faults,
}

impl<E: Happening> Course<E> {
    /// A run's beginning, on a LAN with so many ports.
    pub fn new(kind: Kind, faults: Faults, ports: usize, mut random: Generator, tells: bool) -> Course<E> {
        Course {
            at: START,
            fabric: Fabric::new(kind, faults.harm, ports, Generator::from_seed(random.bytes())),
            random,
            tells,
            agenda: Agenda::default(),
            trace: Trace::default(),
            faults,
        }
    }

    /// Enters that `event` is due at `at`.
    pub fn schedule(&mut self, at: Instant, event: E) {
        self.agenda.schedule(at, event);
    }

    /// Enters that `event` is due after `time`.
    pub fn schedule_in(&mut self, time: Duration, event: E) {
        self.schedule(self.at + time, event);
    }

    /// A time of less than `below` microseconds.
    pub fn micros(&mut self, below: u64) -> Duration {
        Duration::from_micros(self.random.below(below))
    }

    /// Enters into the trace that the thing named `what` happened to `host`, with these bytes.
    pub fn note(&mut self, what: u8, host: usize, bytes: &[u8]) {
        self.trace.note(self.at, what, host, bytes);
    }

    /// Says what happened at `host`, if somebody listens.
    pub fn tell(&self, host: usize, what: impl Display) {
        if self.tells {
            println!("{:.6} host {host}: {what}", self.at.since(START).as_secs_f64());
        }
    }

    /// A frame enters the LAN at `port`.
    pub fn transmit(&mut self, port: usize, frame: &[u8]) {
        self.note(b'w', port, frame);
        for flight in self.fabric.carry(port, frame) {
            self.schedule_in(flight.delay, E::arrival(flight.port, flight.frame));
        }
    }

    /// Hands a job to a worker; `ended` is due when it ends, without the job if it was lost.
    pub fn work<J>(&mut self, job: J, ended: impl FnOnce(Option<Box<J>>) -> E) {
        let job = (!self.random.chance(self.faults.job_lost_one_in)).then(|| Box::new(job));
        let delay = self.micros(self.faults.job_delay_max.as_micros() as u64 + 1);
        self.schedule_in(delay, ended(job));
    }

    /// From now on frames arrive and jobs end.
    pub fn heal(&mut self) {
        self.fabric.heal();
        self.faults = Faults::none(self.faults.job_delay_max);
    }

    /// What the run came to.
    pub fn report(mut self, summary: String, deliveries: u64, violations: Violations, ledger: Ledger) -> Report {
        let (hash, events) = (self.trace.hash(), self.trace.events());
        Report { summary, hash, events, deliveries, renewals: 0, violations, ledger }
    }
}
