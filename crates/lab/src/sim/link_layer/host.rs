//! One simulated host: a stack, a clock, and a real link layer between the stack and the wire.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bump::frame::Frames;
use bump::{Bump, ClockTrust, Generator, Instant, Ledger, Meta, Now, Side, Sink, Ticket, Wall};
use cll::{Cll, Completion, Effect, Event, Job, Legacy, Settings, Weaken};
use identity::HostIdentity;
use wire::cll::handshake::LANES_MAX;
use wire::cll::{DataHeader, PacketType};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};

use super::judge::PASSED;
use super::scenario::{Clock, HostPlan, Part, Scenario};
use super::site::{self, START_UNIX_S};
use super::stack::Stack;
use crate::sim::agenda::START;

const WIRE_MTU: u16 = 1500;
/// Frames that the card keeps while the program is busy. More than any flood of the attacker, whose worth is judged by
/// what the link layer does with it, not by what a card loses.
const RECEIVE_RING: usize = 4096;
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
    pub tick_at: Option<Instant>,
    /// When the next ageing of the neighbours is scheduled.
    pub stack_tick_at: Option<Instant>,
    /// Whether a look at the receive ring is scheduled.
    pub poll_scheduled: bool,
    /// Frames that arrived and were not looked at yet.
    pub ring: VecDeque<Vec<u8>>,
    /// Books of earlier lives.
    pub past: Ledger,
    settings: Option<Settings>,
    booted_before: Duration,
    clock: Clock,
    random: Generator,
    keys: Generator,
    port_full_one_in: u64,
}

/// What one call into a link layer brought forth.
#[derive(Default)]
pub struct Outcome {
    /// Frames for the wire.
    pub wire: Vec<Vec<u8>>,
    /// Frames for the stack.
    pub stack: Vec<(Vec<u8>, Meta)>,
    /// Work to be done elsewhere.
    pub jobs: Vec<(Ticket, Job)>,
    /// News.
    pub events: Vec<Event>,
}

/// The two ports of a link layer; they may have no room.
struct Ports<'a> {
    outcome: Outcome,
    room: Vec<u8>,
    full_one_in: u64,
    random: &'a mut Generator,
}

impl Sink for Ports<'_> {
    fn reserve(&mut self, _to: Side, capacity: usize) -> Option<&mut [u8]> {
        if self.random.chance(self.full_one_in) {
            return None;
        }
        self.room.clear();
        // A byte that nobody wrote shows in the output instead of looking like padding.
        self.room.resize(capacity, 0xa5);
        Some(&mut self.room)
    }

    fn commit(&mut self, to: Side, len: usize, meta: Meta) {
        let frame = self.room[..len].to_vec();
        match to {
            Side::WIRE => self.outcome.wire.push(frame),
            Side::STACK => self.outcome.stack.push((frame, meta)),
        }
    }
}

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
            tick_at: None,
            stack_tick_at: None,
            poll_scheduled: false,
            ring: VecDeque::new(),
            past: Ledger::new(),
            settings: identity.map(|identity| settings(Arc::clone(identity), &plan, scenario, weaken)),
            booted_before: Duration::from_secs(random.below(1_000_000)),
            clock: plan.clock,
            random: Generator::from_seed(random.bytes()),
            keys: Generator::from_seed(random.bytes()),
            port_full_one_in: scenario.port_full_one_in,
            plan,
        }
    }

    /// The clocks of this host at the moment `at` of the run.
    pub fn now(&self, at: Instant) -> Now {
        let since_start = at.since(START).as_millis() as u64;
        let wall = match self.clock {
            Clock::Missing => None,
            Clock::Epoch => Some((900_000 + since_start, ClockTrust::Wrong)),
            Clock::Off(error_ms) => {
                let true_ms = START_UNIX_S * 1000 + since_start;
                Some((true_ms.saturating_add_signed(error_ms), ClockTrust::Plausible))
            }
        };
        let wall = wall.map(|(unix_ms, trust)| Wall { unix_ms, trust });
        Now { since_boot: at + self.booted_before, wall }
    }

    /// Sets the wall clock.
    pub fn set_clock(&mut self, error_ms: i64) {
        self.clock = Clock::Off(error_ms);
    }

    /// The port always has room from now on.
    pub fn heal(&mut self) {
        self.port_full_one_in = 0;
    }

    /// The moment of the run that this host's own clock calls `own`.
    fn moment(&self, own: Instant) -> Instant {
        own - self.booted_before
    }

    /// When the link layer next has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        self.link.as_ref()?.deadline().map(|own| self.moment(own))
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
        let mut outcome = ports.outcome;
        drain(&mut cll, &mut self.stack, &mut outcome);
        self.link = Some(cll);
        outcome
    }

    /// The program dies; what it knew is gone.
    pub fn crash(&mut self) {
        if let Some(link) = self.link.take() {
            link.add_to_ledger(&mut self.past);
        }
        self.ring.clear();
    }

    /// A frame arrives at the card.
    pub fn arrive(&mut self, frame: Vec<u8>) {
        if self.ring.len() < RECEIVE_RING {
            self.ring.push_back(frame);
        }
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
        let mut outcome = ports.outcome;
        drain(cll, &mut self.stack, &mut outcome);
        outcome
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

impl<'a> Ports<'a> {
    fn new(full_one_in: u64, random: &'a mut Generator) -> Self {
        Ports { outcome: Outcome::default(), room: Vec::new(), full_one_in, random }
    }
}

fn drain(cll: &mut Cll, stack: &mut Stack, outcome: &mut Outcome) {
    while let Some(job) = cll.next_job() {
        outcome.jobs.push(job);
    }
    while let Some(event) = cll.next_event() {
        outcome.events.push(event);
    }
    while let Some(Effect::PermanentNeighbour { ip, mac }) = cll.next_effect() {
        stack.set_permanent(ip, mac);
    }
}

fn settings(identity: Arc<HostIdentity>, plan: &HostPlan, scenario: &Scenario, weaken: Weaken) -> Settings {
    let mut settings = Settings::new(identity, WIRE_MTU);
    settings.send_suite = plan.suite;
    settings.confidential = plan.confidential;
    settings.lanes = plan.lanes;
    if let Some(lifetime) = scenario.lifetime {
        settings.lifetime = lifetime + plan.lifetime_more;
        settings.lifetime_min = lifetime;
    }
    if let Some(frames) = scenario.rekey_after_frames {
        settings.rekey_after_frames = frames;
    }
    settings.rekey_every = scenario.rekey_every;
    let legacy = scenario.hosts.iter().filter(|host| host.part == Part::Legacy);
    settings.legacy = legacy
        .map(|host| Legacy { mac: site::mac(host.identity), ip: site::ip(host.identity), router: false })
        .collect();
    if scenario.passes {
        settings.pass = vec![PASSED];
    }
    settings.weaken = weaken;
    settings.weaken.cross_layer |= plan.part == Part::Insider;
    settings
}
