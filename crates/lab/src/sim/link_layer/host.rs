//! One simulated host: a stack, a clock, and a real link layer between the stack and the wire.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bump::frame::Frames;
use bump::{Bump, ErasingGenerator, Generator, Instant, Ledger, Meta, Now, Side, Ticket};
use cll::{
    Cll, Completion, Effect, HeldTicket, Instruction, IssuingKey, Job, Legacy, Remembered, Settings, TicketId, Weaken,
};
use identity::HostIdentity;
use wire::MacAddress;
use wire::cll::handshake::LANES_MAX;
use wire::cll::{DataHeader, PacketType};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};

use super::judge::PASSED;
use super::ring::Ring;
use super::scenario::{HostPlan, Part, Scenario};
use super::site;
use super::stack::Stack;
use crate::sim::agenda::START;
use crate::sim::clock::{Clock, Clocks};
use crate::sim::due::Due;
use crate::sim::ports::{self, Ports};

const WIRE_MTU: u16 = 1500;
/// For how long tickets are taken, longer than any run.
const TICKET_LIFETIME: Duration = Duration::from_secs(12 * 3600);
/// Pieces of upkeep in one call.
const TICK_BUDGET: usize = 16;

/// One host.
pub struct Host {
    pub plan: HostPlan,
    pub stack: Stack,
    /// Missing while the program is down, and always at a legacy host.
    pub link: Option<Cll>,
    /// Counts the starts of the program, so that a job of an earlier one is recognised.
    pub life: u32,
    /// It does nothing before this moment.
    pub paused_until: Instant,
    /// When the next upkeep is scheduled.
    pub tick_due: Due,
    /// When the next ageing of the neighbours is scheduled.
    pub stack_tick_due: Due,
    pub ring: Ring,
    /// Books of earlier lives.
    pub past: Ledger,
    settings: Option<Settings>,
    disk: Disk,
    clocks: Clocks,
    random: Generator,
    keys: ErasingGenerator,
    port_full_one_in: u64,
}

/// What one call into a link layer brought forth.
pub type Outcome = ports::Outcome<Cll>;

impl Host {
    /// A host of `scenario`, not started yet. `identities` are the pool's, `weaken` what the laboratory switches off.
    pub fn new(
        number: usize,
        scenario: &Scenario,
        identities: &[Arc<HostIdentity>],
        weaken: Weaken,
        random: &mut Generator,
    ) -> Host {
        let plan = scenario.hosts[number].clone();
        let identity = identities.get(plan.identity);
        Host {
            stack: Stack::new(site::mac(plan.identity), site::ip(plan.identity)),
            link: None,
            life: 0,
            paused_until: START,
            tick_due: Due::default(),
            stack_tick_due: Due::default(),
            ring: Ring::default(),
            past: Ledger::new(),
            settings: identity.map(|identity| settings(Arc::clone(identity), &plan, scenario, weaken)),
            disk: Disk::default(),
            clocks: Clocks::new(plan.clock, random),
            random: Generator::from_seed(random.bytes()),
            keys: ErasingGenerator::from_seed(&random.bytes()),
            port_full_one_in: scenario.faults.port_full_one_in,
            plan,
        }
    }

    /// What the clocks of this host show at the moment `at` of the run.
    pub fn now(&self, at: Instant) -> Now {
        self.clocks.now(at)
    }

    /// Sets the wall clock.
    pub fn set_clock(&mut self, error_ms: i64) {
        self.clocks.wall = Clock::Off(error_ms);
    }

    /// The port always has room from now on.
    pub fn heal(&mut self) {
        self.port_full_one_in = 0;
    }

    /// When the link layer next has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        self.link.as_ref()?.deadline().map(|own| self.clocks.moment(own))
    }

    /// The program starts, anew if it ran before. A start flushes the neighbours (paper, section 5.2).
    pub fn start(&mut self, at: Instant) -> Outcome {
        let Some(settings) = self.settings.clone() else { return Outcome::default() };
        self.life += 1;
        self.stack.flush();
        let now = self.now(at);
        let seed = self.random.bytes();
        let mut ports = Ports::new(0, &mut self.random);
        let mut cll = cll::start(now, settings, Generator::from_seed(seed), &mut ports);
        cll::remember(&mut cll, now, self.disk.read(), &mut ports);
        let outcome = drain(&mut cll, &mut self.stack, &mut self.disk, ports);
        self.link = Some(cll);
        outcome
    }

    /// It is given the site keys as they are now; its program takes them while it runs.
    pub fn share(&mut self, at: Instant) -> Outcome {
        let Some(identity) = site::changed_pool().ok().and_then(|pool| pool.get(self.plan.identity)) else {
            return Outcome::default();
        };
        self.settings.iter_mut().for_each(|settings| settings.identity = Arc::clone(identity));
        let told = Instruction::Renewed(Arc::clone(identity));
        self.call(at, |cll, now, ports| cll::instruct(cll, now, told, ports))
    }

    /// The program dies; what it knew is gone.
    pub fn crash(&mut self) {
        if let Some(link) = self.link.take() {
            link.add_to_ledger(&mut self.past);
        }
        self.ring.clear();
    }

    /// Processes `frames` of one side on one lane.
    pub fn process(&mut self, at: Instant, from: Side, lane: usize, frames: Vec<(Vec<u8>, Meta)>) -> Outcome {
        let mut frames = frames;
        self.call(at, |cll, now, ports| cll.process_on(lane, now, from, &mut Frames::new(&mut frames), ports))
    }

    /// A job ends.
    pub fn complete(&mut self, at: Instant, ticket: Ticket, job: Option<Job>) -> Outcome {
        let completion = job.map_or_else(Completion::lost, |job| job.run(&mut self.keys));
        self.call(at, |cll, now, ports| cll.complete(now, ticket, completion, ports))
    }

    /// Upkeep.
    pub fn tick(&mut self, at: Instant) -> Outcome {
        self.call(at, |cll, now, ports| cll.tick(now, TICK_BUDGET, ports))
    }

    fn call(&mut self, at: Instant, act: impl FnOnce(&mut Cll, Now, &mut Ports<'_>)) -> Outcome {
        let now = self.now(at);
        let Some(cll) = &mut self.link else { return Outcome::default() };
        let mut ports = Ports::new(self.port_full_one_in, &mut self.random);
        act(cll, now, &mut ports);
        drain(cll, &mut self.stack, &mut self.disk, ports)
    }

    /// The lane that sees a frame: by receiver index for sealed ones, as a fan-out does it, by any steady rule for others.
    pub fn lane_of(&self, from: Side, frame: &[u8]) -> usize {
        let lanes = usize::from(self.plan.lanes);
        let message = frame.get(ETHERNET_LEN..).unwrap_or_default();
        let sealed = from == Side::WIRE && PacketType::of(message) == Ok(PacketType::Unicast);
        if let (true, Ok((data, _))) = (sealed, DataHeader::parse(message)) {
            return (data.receiver_index % u32::from(LANES_MAX)) as usize % lanes;
        }
        let spread = Header::parse(frame).map_or(0, |(header, _)| header.destination.0[5]);
        let port = message.get(21).copied().unwrap_or_default();
        usize::from(spread.wrapping_add(port)) % lanes
    }
}

/// What a host keeps while its program is down.
#[derive(Default)]
struct Disk {
    tickets: BTreeMap<MacAddress, HeldTicket>,
    keys: Vec<IssuingKey>,
    spent: Vec<TicketId>,
}

impl Disk {
    fn read(&self) -> Remembered {
        let tickets = self.tickets.values().cloned().collect();
        Remembered { tickets, keys: self.keys.clone(), spent: self.spent.clone() }
    }
}

/// What a call came to; its effects reach stack and disk at once.
fn drain(cll: &mut Cll, stack: &mut Stack, disk: &mut Disk, ports: Ports<'_>) -> Outcome {
    let outcome = ports.outcome(cll);
    while let Some(effect) = cll.next_effect() {
        match effect {
            Effect::PermanentNeighbour { ip, mac } => stack.set_permanent(ip, mac),
            Effect::KeepTicket(ticket) => _ = disk.tickets.insert(ticket.mac(), *ticket),
            Effect::ForgetTicket(mac) => _ = disk.tickets.remove(&mac),
            Effect::KeepTicketKeys(keys) => disk.keys = keys,
            Effect::KeepSpent(id) => disk.spent.push(id),
            Effect::ForgetNeighbour { .. } | Effect::CheckPolicy { .. } => {}
            // Hosts of this world have addresses of their own.
            Effect::KeepLease(_) | Effect::ForgetLease => {}
            Effect::CheckRevocationList { .. } | Effect::Remember(_) | Effect::RememberTime { .. } => {}
        }
    }
    outcome
}

fn settings(identity: Arc<HostIdentity>, plan: &HostPlan, scenario: &Scenario, weaken: Weaken) -> Settings {
    let mut settings = Settings::new(identity, WIRE_MTU);
    settings.send_suite = plan.suite;
    settings.confidential = plan.confidential;
    settings.slow_nonce = plan.slow_nonce;
    settings.post_quantum = plan.post_quantum;
    settings.lanes = plan.lanes;
    // The stacks of this world speak IPv4; what they send of IPv6 is babble, to be dropped by name.
    settings.ipv6 = false;
    if let Some(lifetime) = scenario.lifetime {
        settings.lifetime = lifetime + plan.lifetime_more;
        settings.lifetime_min = lifetime;
    }
    if let Some(frames) = scenario.rekey_after_frames {
        settings.rekey_after_frames = frames;
    }
    settings.rekey_every = scenario.rekey_every;
    settings.resumption = scenario.resumes.then_some(TICKET_LIFETIME);
    let legacy = scenario.hosts.iter().filter(|host| host.part == Part::Legacy);
    settings.legacy = legacy
        .map(|host| Legacy {
            mac: site::mac(host.identity),
            ip: site::ip(host.identity),
            router: false,
            broadcast: false,
        })
        .collect();
    if scenario.passes {
        settings.pass = vec![PASSED];
    }
    settings.weaken = weaken;
    settings.weaken.cross_layer |= plan.part == Part::Insider;
    settings
}
