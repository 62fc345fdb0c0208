//! Two gateways on a clock of steps, with the paths between them.

use std::collections::BTreeMap;
use std::time::Duration;

use bump::{Generator, Instant};
use pair::{Cards, Event, Next, NotNow, Pair, Path, Refusal, Role, Secret, Settings, Source};

/// Between two heartbeats.
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(100);
/// Between two looks at the world.
pub(crate) const STEP: Duration = Duration::from_millis(5);
pub(crate) const ALL_WELL: Cards = Cards { trusted: true, untrusted: true };

/// What a gateway knows of flows: numbers, and how often each changed.
#[derive(Default)]
pub(crate) struct Flows {
    pub(crate) known: BTreeMap<u16, u64>,
    changed: Vec<u16>,
    round: Option<u16>,
    /// It is of a version to which records say nothing.
    reads_nothing: bool,
}

impl Source for Flows {
    fn begin_round(&mut self) {
        self.round = Some(0);
    }

    fn next_record(&mut self, _now: Instant, record: &mut Vec<u8>) -> Next {
        let flow = match self.changed.pop() {
            Some(flow) => flow,
            None => {
                let Some(from) = self.round else { return Next::Nothing };
                let Some((flow, _)) = self.known.range(from..).next() else {
                    self.round = None;
                    return Next::Nothing;
                };
                self.round = flow.checked_add(1);
                *flow
            }
        };
        record.extend_from_slice(&flow.to_be_bytes());
        record.extend_from_slice(&self.known[&flow].to_be_bytes());
        Next::Record
    }

    fn is_round_over(&self) -> bool {
        self.round.is_none()
    }

    fn take_record(&mut self, _now: Instant, record: &[u8]) -> bool {
        if self.reads_nothing {
            return false;
        }
        let (flow, count) = record.split_first_chunk().expect("a flow");
        let count = u64::from_be_bytes(count.try_into().expect("a count"));
        self.known.insert(u16::from_be_bytes(*flow), count);
        true
    }
}

/// A gateway, if its process lives.
struct Gateway {
    machine: Option<Pair>,
    is_stopped: bool,
    flows: Flows,
    cards: Cards,
    events: Vec<Event>,
}

struct Flying {
    at: Instant,
    to: usize,
    path: Path,
    message: Vec<u8>,
}

pub(crate) struct World {
    pub(crate) now: Instant,
    chance: Generator,
    gateways: [Gateway; 2],
    priorities: [u8; 2],
    pub(crate) preempt: [bool; 2],
    flying: Vec<Flying>,
    pub(crate) cut: [bool; 3],
    /// In percent.
    pub(crate) loss: u64,
    pub(crate) repeat: u64,
    pub(crate) forge: u64,
    /// In steps, at most.
    pub(crate) delay: u64,
    /// For how long both forwarded at most, and for how long while messages passed.
    overlap: Duration,
    pub(crate) overlap_max: Duration,
    /// The same since both could hear each other without a loss.
    overlap_clear: Duration,
    pub(crate) overlap_heard: Duration,
    pub(crate) record: bool,
    pub(crate) recorded: Vec<(usize, Path, Vec<u8>)>,
}

impl World {
    /// Two that hear each other agree within a heartbeat and the longest delay four times: what is
    /// believed must be said to a challenge of the one that hears it.
    pub(crate) const OVERLAP_MAX: Duration = Duration::from_millis(100 + 4 * 20 * 5 + 8 * 5);

    pub(crate) fn new(priorities: [u8; 2]) -> World {
        World::seeded(7, priorities)
    }

    pub(crate) fn seeded(seed: u64, priorities: [u8; 2]) -> World {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_be_bytes());
        let gateway = || Gateway {
            machine: None,
            is_stopped: false,
            flows: Flows::default(),
            cards: ALL_WELL,
            events: Vec::new(),
        };
        let mut world = World {
            now: Instant::from_millis(1000),
            chance: Generator::from_seed(bytes),
            gateways: [gateway(), gateway()],
            priorities,
            preempt: [false; 2],
            flying: Vec::new(),
            cut: [false; 3],
            loss: 0,
            repeat: 0,
            forge: 0,
            delay: 0,
            overlap: Duration::ZERO,
            overlap_max: Duration::ZERO,
            overlap_clear: Duration::ZERO,
            overlap_heard: Duration::ZERO,
            record: false,
            recorded: Vec::new(),
        };
        (0..2).for_each(|at| world.start(at));
        world
    }

    pub(crate) fn start(&mut self, at: usize) {
        let settings = Settings {
            priority: self.priorities[at],
            preempt: self.preempt[at],
            heartbeat: HEARTBEAT,
            records_per_s: 20_000,
        };
        let generator = Generator::from_seed(self.chance.bytes());
        let gateway = &mut self.gateways[at];
        let secret = Secret::from_bytes([9; 32]);
        gateway.machine = Some(Pair::new(settings, secret, generator, self.now, gateway.cards));
        (gateway.flows, gateway.is_stopped) = (Flows::default(), false);
    }

    pub(crate) fn kill(&mut self, at: usize) {
        self.gateways[at].machine = None;
    }

    /// The process hangs: nothing is run, and what comes waits for it.
    pub(crate) fn stop(&mut self, at: usize) {
        self.gateways[at].is_stopped = true;
    }

    /// The process goes on, and first of all has a frame to judge.
    pub(crate) fn go_on(&mut self, at: usize) {
        self.gateways[at].is_stopped = false;
        let now = self.now;
        self.gateways[at].machine.iter_mut().for_each(|machine| machine.wake(now));
    }

    pub(crate) fn set_cards(&mut self, at: usize, cards: Cards) {
        let now = self.now;
        let gateway = &mut self.gateways[at];
        gateway.cards = cards;
        if !gateway.is_stopped {
            gateway.machine.iter_mut().for_each(|machine| machine.set_cards(now, cards));
        }
    }

    pub(crate) fn reads(&mut self, at: usize, reads: bool) {
        self.gateways[at].flows.reads_nothing = !reads;
    }

    pub(crate) fn change(&mut self, at: usize, flow: u16) {
        let flows = &mut self.gateways[at].flows;
        *flows.known.entry(flow).or_default() += 1;
        flows.changed.push(flow);
    }

    pub(crate) fn change_if_active(&mut self, at: usize, flow: u16) {
        if self.role(at) == Some(Role::Active) && !self.gateways[at].is_stopped {
            self.change(at, flow);
        }
    }

    pub(crate) fn hand_over(&mut self, at: usize) -> Result<(), NotNow> {
        let now = self.now;
        let Gateway { machine, flows, is_stopped, .. } = &mut self.gateways[at];
        let machine = machine.as_mut().filter(|_| !*is_stopped);
        machine.map_or(Err(NotNow::NotActive), |machine| machine.hand_over(now, flows))
    }

    pub(crate) fn hear(&mut self, at: usize, path: Path, message: &[u8]) -> Result<(), Refusal> {
        let now = self.now;
        let Gateway { machine, flows, .. } = &mut self.gateways[at];
        machine.as_mut().expect("it lives").hear(now, path, message, flows)
    }

    pub(crate) fn takes_announcement(&mut self, at: usize) -> bool {
        self.gateways[at].machine.as_mut().expect("it lives").takes_announcement()
    }

    pub(crate) fn gateway(&self, at: usize) -> &Pair {
        self.gateways[at].machine.as_ref().expect("it lives")
    }

    pub(crate) fn role(&self, at: usize) -> Option<Role> {
        self.gateways[at].machine.as_ref().map(Pair::role)
    }

    pub(crate) fn roles(&self) -> [Role; 2] {
        [0, 1].map(|at| self.role(at).expect("it lives"))
    }

    pub(crate) fn known(&self, at: usize) -> &BTreeMap<u16, u64> {
        &self.gateways[at].flows.known
    }

    /// Whether the other gateway knows what the one at `at` does.
    pub(crate) fn knows_all_of(&self, at: usize) -> bool {
        self.known(at).iter().all(|(flow, count)| self.known(1 - at).get(flow) == Some(count))
    }

    pub(crate) fn events(&self, at: usize) -> &[Event] {
        &self.gateways[at].events
    }

    pub(crate) fn end_faults(&mut self) {
        (self.loss, self.repeat, self.forge, self.delay, self.cut) = (0, 0, 0, 0, [false; 3]);
        for at in 0..2 {
            self.go_on(at);
            self.set_cards(at, ALL_WELL);
            if self.role(at).is_none() {
                self.start(at);
            }
        }
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now = self.now + STEP;
            self.deliver();
            for at in 0..2 {
                self.turn(at);
            }
            self.measure();
        }
    }

    fn deliver(&mut self) {
        let now = self.now;
        let gateways = &self.gateways;
        let is_due = |flying: &mut Flying| flying.at <= now && !gateways[flying.to].is_stopped;
        let mut due: Vec<_> = self.flying.extract_if(.., is_due).collect();
        due.sort_by_key(|flying| flying.at);
        for Flying { to, path, message, .. } in due {
            if self.gateways[to].machine.is_some() {
                let _counted = self.hear(to, path, &message);
            }
        }
    }

    fn turn(&mut self, at: usize) {
        let now = self.now;
        let Gateway { machine, flows, is_stopped, events, .. } = &mut self.gateways[at];
        let Some(machine) = machine.as_mut().filter(|_| !*is_stopped) else { return };
        if machine.deadline() <= now {
            machine.wake(now);
        }
        machine.pull(now, flows);
        events.extend(std::iter::from_fn(|| machine.next_event()));
        let messages: Vec<_> = std::iter::from_fn(|| machine.next_message()).collect();
        for (path, message) in messages {
            self.post(1 - at, path, message);
        }
    }

    fn post(&mut self, to: usize, path: Path, message: Vec<u8>) {
        if self.record {
            self.recorded.push((to, path, message.clone()));
        }
        if self.cut[path as usize] || self.chance.below(100) < self.loss {
            return;
        }
        let copies = if self.chance.below(100) < self.repeat { 2 } else { 1 };
        for _ in 0..copies {
            let at = self.now + STEP * u32::try_from(self.chance.below(self.delay + 1)).expect("few");
            self.flying.push(Flying { at, to, path, message: message.clone() });
        }
        if self.chance.below(100) < self.forge {
            let mut forged = message;
            let place = self.chance.below(forged.len() as u64) as usize;
            forged[place] ^= 1 << self.chance.below(8);
            self.flying.push(Flying { at: self.now, to, path, message: forged });
        }
    }

    /// For how long both forward, and for how long while they could agree.
    fn measure(&mut self) {
        let forwards = |gateway: &Gateway| {
            !gateway.is_stopped && gateway.machine.as_ref().is_some_and(|machine| machine.role() == Role::Active)
        };
        let both = self.gateways.iter().all(forwards);
        self.overlap = if both { self.overlap + STEP } else { Duration::ZERO };
        self.overlap_max = self.overlap_max.max(self.overlap);
        let hear_each_other = self.cut.iter().any(|cut| !cut) && self.loss == 0;
        self.overlap_clear = if both && hear_each_other { self.overlap_clear + STEP } else { Duration::ZERO };
        self.overlap_heard = self.overlap_heard.max(self.overlap_clear);
    }
}
