//! A guarded host in migration: a stack, a link layer in some mode, and a disk that says who has proved himself.

use std::collections::BTreeMap;
use std::sync::Arc;

use bump::frame::Frames;
use bump::{Bump, ErasingGenerator, Generator, Instant, Ledger, Meta, Now, Side, Ticket};
use cll::{Cll, Completion, Effect, Instruction, Job, Migration, Policy, ProvedHost, Settings};
use identity::HostIdentity;
use wire::MacAddress;

use super::Plant;
use crate::sim::clock::{Clock, Clocks};
use crate::sim::due::Due;
use crate::sim::link_layer::site;
use crate::sim::link_layer::stack::Stack;
use crate::sim::ports::{self, Ports};

const WIRE_MTU: u16 = 1500;
/// Pieces of upkeep in one call.
const TICK_BUDGET: usize = 16;

/// What one call into a link layer brought forth.
pub type Outcome = ports::Outcome<Cll>;

/// One host; the printer has no link layer and no settings.
pub struct Host {
    pub stack: Stack,
    pub mode: Migration,
    /// Missing while the program is down, and always at the printer.
    pub link: Option<Cll>,
    /// Counts the starts of the program, so that a job of an earlier one is recognised.
    pub life: u32,
    /// Books of earlier lives.
    pub past: Ledger,
    pub tick_due: Due,
    pub stack_tick_due: Due,
    settings: Option<Settings>,
    proved: BTreeMap<MacAddress, ProvedHost>,
    plant: Option<Plant>,
    clocks: Clocks,
    random: Generator,
    keys: ErasingGenerator,
}

impl Host {
    /// Host `number` of the site, or the printer, which has no identity.
    pub fn new(
        number: usize,
        identity: Option<&Arc<HostIdentity>>,
        mode: Migration,
        plant: Option<Plant>,
        random: &mut Generator,
    ) -> Host {
        let settings = identity.map(|identity| {
            let mut settings = Settings::new(Arc::clone(identity), WIRE_MTU);
            settings.ipv6 = false;
            settings
        });
        Host {
            stack: Stack::new(site::mac(number), site::ip(number)),
            mode,
            link: None,
            life: 0,
            past: Ledger::new(),
            tick_due: Due::default(),
            stack_tick_due: Due::default(),
            settings,
            proved: BTreeMap::new(),
            plant,
            clocks: Clocks::new(Clock::Off(random.below(400) as i64 - 200), random),
            random: Generator::from_seed(random.bytes()),
            keys: ErasingGenerator::from_seed(&random.bytes()),
        }
    }

    /// Whether it has a link layer, running or not.
    pub fn is_guarded(&self) -> bool {
        self.settings.is_some()
    }

    fn now(&self, at: Instant) -> Now {
        self.clocks.now(at)
    }

    fn policy(&self) -> Policy {
        Policy { migration: self.mode, ..Policy::default() }
    }

    /// When the link layer next has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        self.link.as_ref()?.deadline().map(|own| self.clocks.moment(own))
    }

    /// The program starts, anew if it ran before.
    pub fn start(&mut self, at: Instant) -> Outcome {
        let Some(mut settings) = self.settings.clone() else { return Outcome::default() };
        self.life += 1;
        self.stack.flush();
        if self.plant == Some(Plant::ForgetfulDisk) {
            self.proved.clear();
        }
        settings.policy = self.policy();
        settings.proved = self.proved.values().cloned().collect();
        let now = self.now(at);
        let seed = self.random.bytes();
        // It says nothing yet; what it wants done is taken out below.
        self.link = Some(cll::start(now, settings, Generator::from_seed(seed), &mut Ports::new(0, &mut self.random)));
        self.call(at, |_, _, _| ())
    }

    /// The program dies.
    pub fn crash(&mut self) {
        if let Some(link) = self.link.take() {
            link.add_to_ledger(&mut self.past);
        }
    }

    /// The operator changes the mode.
    pub fn set_mode(&mut self, at: Instant, mode: Migration) -> Outcome {
        self.mode = mode;
        if self.plant == Some(Plant::LostOrder) {
            return Outcome::default();
        }
        let policy = self.policy();
        self.call(at, |cll, now, ports| cll::instruct(cll, now, Instruction::Policy(policy), ports))
    }

    /// One frame comes from this side.
    pub fn process(&mut self, at: Instant, from: Side, frame: Vec<u8>, meta: Meta) -> Outcome {
        let mut batch = [(frame, meta)];
        self.call(at, |cll, now, ports| cll.process(now, from, &mut Frames::new(&mut batch), ports))
    }

    /// A job ends.
    pub fn complete(&mut self, at: Instant, ticket: Ticket, job: Option<Job>) -> Outcome {
        let idle = self.plant == Some(Plant::IdleWorker) && self.life > 1;
        let completion = job.filter(|_| !idle).map_or_else(Completion::lost, |job| job.run(&mut self.keys));
        self.call(at, |cll, now, ports| cll.complete(now, ticket, completion, ports))
    }

    /// Upkeep.
    pub fn tick(&mut self, at: Instant) -> Outcome {
        self.call(at, |cll, now, ports| cll.tick(now, TICK_BUDGET, ports))
    }

    /// What a call comes to; who proved himself goes to the disk at once.
    fn call(&mut self, at: Instant, act: impl FnOnce(&mut Cll, Now, &mut Ports<'_>)) -> Outcome {
        let now = self.now(at);
        let Some(cll) = &mut self.link else { return Outcome::default() };
        let mut ports = Ports::new(0, &mut self.random);
        act(cll, now, &mut ports);
        let outcome = ports.outcome(cll);
        while let Some(effect) = cll.next_effect() {
            if let Effect::Remember(host) = effect {
                self.proved.insert(host.mac, host);
            }
        }
        outcome
    }
}
