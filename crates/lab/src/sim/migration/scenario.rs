//! What a seed draws: who is there in which mode, when modes change and programs die, and how often the attacker speaks.

use std::time::Duration;

use bump::{Generator, Instant};
use cll::Migration;

use super::Plant;
use crate::sim::agenda::START;
use crate::sim::fabric::{Harm, Kind};
use crate::sim::faults::Faults;

/// The attacker begins when hosts have met.
const PEACE: Duration = Duration::from_secs(12);
/// What the attacker put into stacks that believed him is out of them after this: a neighbour's entry, and its probes.
pub const RECOVERY: Duration = Duration::from_secs(45);
/// After that the world stays calm for this long.
const CALM: Duration = Duration::from_secs(15);
/// Nothing waits longer than this for a handshake.
const DRAIN: Duration = Duration::from_secs(20);
/// Longest time that a host's program is down.
const DOWN_MAX_MILLIS: u64 = 3_000;

/// Something that happens to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Its program dies and starts again after this time.
    Crash(Duration),
    /// Its operator changes the mode.
    Mode(Migration),
}

/// Everything that a seed decides ahead.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The modes in which the guarded hosts start.
    pub modes: Vec<Migration>,
    pub fabric: Kind,
    pub faults: Faults,
    pub steps: Vec<(Instant, usize, Step)>,
    /// Time between two deeds of the attacker.
    pub attack_every: Duration,
    /// Time between two datagrams of one host to another.
    pub talk_every: Duration,
    pub attack_begins: Instant,
    pub attack_ends: Instant,
    pub plant: Option<Plant>,
}

impl Scenario {
    /// The scenario of `random`'s seed.
    pub fn draw(random: &mut Generator, plant: Option<Plant>) -> Scenario {
        let guarded = 2 + random.below(3) as usize;
        let modes = (0..guarded).map(|_| draw_mode(random)).collect();
        let span = Duration::from_millis(15_000 + random.below(25_000));
        let mut faults = Faults::none(Duration::from_millis(1 + random.below(20)));
        faults.harm =
            Harm { lost_one_in: if random.chance(2) { 20 + random.below(100) } else { 0 }, ..Harm::default() };
        let attack_begins = START + PEACE;
        Scenario {
            modes,
            fabric: Kind::Hub,
            faults,
            steps: draw_steps(random, guarded, attack_begins, span),
            attack_every: Duration::from_millis(3 + random.below(40)),
            talk_every: Duration::from_millis(200 + random.below(800)),
            attack_begins,
            attack_ends: attack_begins + span,
            plant,
        }
    }

    /// From now on nothing happens to anybody, and what the attacker did is over.
    pub fn is_calm(&self) -> Instant {
        self.attack_ends + RECOVERY
    }

    /// When the last datagram is sent.
    pub fn talk_ends(&self) -> Instant {
        self.is_calm() + CALM
    }

    pub fn end(&self) -> Instant {
        self.talk_ends() + DRAIN
    }

    /// What the seed drew, in a line.
    pub fn summary(&self) -> String {
        let modes: Vec<&str> = self.modes.iter().map(|mode| mode.word()).collect();
        format!("{}, a printer, {} changes and crashes", modes.join(", "), self.steps.len())
    }
}

fn draw_mode(random: &mut Generator) -> Migration {
    Migration::ALL[random.below(Migration::ALL.len() as u64) as usize]
}

fn draw_steps(random: &mut Generator, hosts: usize, begin: Instant, span: Duration) -> Vec<(Instant, usize, Step)> {
    let mut steps = Vec::new();
    for _ in 0..1 + random.below(5) {
        let at = begin + Duration::from_millis(random.below(span.as_millis() as u64));
        let host = random.below(hosts as u64) as usize;
        let step = if random.chance(2) {
            Step::Crash(Duration::from_millis(1 + random.below(DOWN_MAX_MILLIS)))
        } else {
            Step::Mode(draw_mode(random))
        };
        steps.push((at, host, step));
    }
    steps
}
