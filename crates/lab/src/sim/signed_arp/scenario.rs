//! What a seed draws: who is there, how they are configured, what goes wrong, and who attacks.

use std::time::Duration;

use bump::{Generator, Instant};

use super::site::{CLIENTS, DISTRIBUTORS, INSIDER, PLAIN, SERVERS, STATIC};
use crate::sim::agenda::START;
use crate::sim::clock::Clock;
use crate::sim::fabric::Kind;
use crate::sim::faults::Faults;

/// Hosts with an address of their own must find each other again within this time once faults stop.
pub const RECOVERY: Duration = Duration::from_secs(15);
/// A DHCP client must have an address, and be found, within this time after one lease has passed since faults stopped.
pub const LEASED_RECOVERY: Duration = Duration::from_secs(60);
/// After the last question nothing may still be held.
pub const DRAIN: Duration = Duration::from_secs(15);
/// A day, by which a distributor's clock goes wrong.
const DAY_MS: i64 = 86_400_000;
/// How far a distributor's clock is off that nobody has to put right.
const SKEW_MS: u64 = 300;

/// What a machine is in this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// A guarded host that distributes keys.
    Distributor,
    /// A guarded host whose certificate names its address.
    Static,
    /// A guarded DHCP server.
    Server,
    /// A guarded DHCP client.
    Client,
    /// No machine of its own: an enrolled identity that the attacker has.
    Insider,
    /// A host without S-ARP that everybody lists.
    Known,
    /// A host without S-ARP that nobody lists.
    Plain,
}

/// One machine of a run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub number: u8,
    pub part: Part,
    pub clock: Clock,
    /// Whether the site binds its hardware address.
    pub is_bound: bool,
    pub sign_requests: bool,
}

/// Something that happens to a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Its daemon dies and starts again after this time.
    Crash(Duration),
    /// It does nothing for this time.
    Pause(Duration),
    /// Its wall clock is set.
    SetClock(Clock),
    /// It asks the distributors to take a new key.
    ChangeKey,
    /// Its card is replaced by one with another address.
    NewCard,
    /// The attacker gets a copy of its key.
    StealKey,
    /// The manager gives it a new key by hand.
    Rekey,
    /// The manager takes it out of the site.
    Revoke,
    /// Its DHCP client gives its address back.
    Release,
}

/// Everything that a seed decides ahead.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub plans: Vec<Plan>,
    pub fabric: Kind,
    pub faults: Faults,
    /// When what happens to which machine.
    pub steps: Vec<(Instant, usize, Step)>,
    /// Time between two deeds of the attacker, if there is one.
    pub attack_every: Option<Duration>,
    /// Longest time between two questions of one host.
    pub ask_every_max: Duration,
    pub lease_s: u32,
    /// Nothing goes wrong and nobody attacks.
    pub clean: bool,
    pub faults_stop: Instant,
    /// Whether somebody is revoked or a stolen key replaced: the run goes on until nobody believes them.
    pub someone_falls: bool,
}

impl Scenario {
    /// The scenario of `random`'s seed.
    pub fn draw(random: &mut Generator) -> Scenario {
        let clean = random.chance(8);
        let span = Duration::from_millis(if clean { 40_000 } else { 30_000 + random.below(150_000) });
        let job_delay_max_micros = if random.chance(4) { 200_000 } else { 4_000 };
        let mut scenario = Scenario {
            plans: draw_plans(random, clean),
            fabric: if random.chance(3) { Kind::Switch } else { Kind::Hub },
            steps: Vec::new(),
            attack_every: None,
            ask_every_max: Duration::from_millis(500 + random.below(6_000)),
            // No shorter than the time for which a distributor keeps an address that was proposed.
            lease_s: 100 + random.below(60) as u32,
            faults: Faults::none(Duration::from_micros(1 + random.below(job_delay_max_micros))),
            clean,
            faults_stop: START + span,
            someone_falls: false,
        };
        if !clean {
            scenario.draw_trouble(random, span);
        }
        scenario
    }

    fn draw_trouble(&mut self, random: &mut Generator, span: Duration) {
        self.faults = Faults::draw(self.faults.job_delay_max, random);
        self.attack_every = (!random.chance(5)).then(|| Duration::from_millis(40 + random.below(300)));
        for _ in 0..random.below(9) {
            let at = START + Duration::from_millis(random.below(span.as_millis() as u64));
            let machine = random.below(self.plans.len() as u64) as usize;
            let step = draw_step(random, self.plans[machine].part);
            self.steps.push((at, machine, step));
        }
        if random.chance(2) {
            self.draw_new_card(random, span);
        }
        if random.chance(3) {
            self.draw_fall(random, span);
        }
    }

    /// Early, so that what was recorded before grows old while there are attacks.
    fn draw_new_card(&mut self, random: &mut Generator, span: Duration) {
        let is_free = |plan: &Plan| plan.part == Part::Static && !plan.is_bound;
        if let Some(machine) = self.plans.iter().position(is_free) {
            let at = START + span / 8 + Duration::from_millis(random.below(span.as_millis() as u64 / 8));
            self.steps.push((at, machine, Step::NewCard));
        }
    }

    /// Somebody's key falls into other hands and is replaced, or somebody is revoked.
    fn draw_fall(&mut self, random: &mut Generator, span: Duration) {
        let machine = random.below(self.plans.len() as u64) as usize;
        let part = self.plans[machine].part;
        let early = START + Duration::from_millis(random.below(span.as_millis() as u64 / 2));
        let late = early + Duration::from_millis(random.below(span.as_millis() as u64 / 2));
        match part {
            Part::Static if random.chance(2) => {
                self.steps.push((early, machine, Step::StealKey));
                self.steps.push((late, machine, Step::Rekey));
            }
            Part::Static | Part::Client | Part::Insider => self.steps.push((late, machine, Step::Revoke)),
            _ => return,
        }
        self.someone_falls = true;
    }

    /// Machines of this part.
    pub fn count(&self, part: Part) -> usize {
        self.plans.iter().filter(|plan| plan.part == part).count()
    }

    /// When hosts with addresses of their own must find each other.
    pub fn recovered(&self) -> Instant {
        self.faults_stop + RECOVERY
    }

    /// When all must find each other.
    pub fn all_recovered(&self) -> Instant {
        self.faults_stop + Duration::from_secs(u64::from(self.lease_s)) + LEASED_RECOVERY
    }

    /// When the last question is asked.
    pub fn traffic_stops(&self) -> Instant {
        let fall = if self.someone_falls { sarp::limits::KEY_GOOD_FOR + Duration::from_secs(120) } else { RECOVERY };
        self.all_recovered().max(self.faults_stop + fall) + RECOVERY
    }

    /// When the run is over.
    pub fn end(&self) -> Instant {
        self.traffic_stops() + DRAIN
    }

    /// What the seed drew, in a line.
    pub fn summary(&self) -> String {
        let mut words = vec![
            format!("{} distributors", self.count(Part::Distributor)),
            format!("{} hosts", self.count(Part::Static)),
            format!("{} DHCP servers", self.count(Part::Server)),
            format!("{} clients", self.count(Part::Client)),
            format!("{:?}", self.fabric).to_lowercase(),
        ];
        let has = |wanted: fn(Step) -> bool| self.steps.iter().any(|(.., step)| wanted(*step));
        let named = [
            (self.count(Part::Insider) > 0, "insider"),
            (self.count(Part::Known) + self.count(Part::Plain) > 0, "plain hosts"),
            (self.attack_every.is_some(), "attacker"),
            (self.clean, "clean"),
            (has(|step| step == Step::Revoke), "revocation"),
            (has(|step| step == Step::StealKey), "stolen key"),
            (has(|step| matches!(step, Step::Crash(_) | Step::Pause(_))), "crashes or pauses"),
            (has(|step| matches!(step, Step::SetClock(_))), "clocks set"),
            (has(|step| matches!(step, Step::ChangeKey | Step::NewCard)), "new keys or cards"),
        ];
        words.extend(named.iter().filter(|(holds, _)| *holds).map(|(_, word)| (*word).to_owned()));
        words.join(", ")
    }
}

fn draw_step(random: &mut Generator, part: Part) -> Step {
    let time = Duration::from_millis(1 + random.below(20_000));
    let clock = match random.below(4) {
        0 => Clock::Epoch,
        1 => Clock::Missing,
        2 => Clock::Off(DAY_MS),
        _ => Clock::Off(-DAY_MS),
    };
    match (part, random.below(4)) {
        (Part::Distributor, 0 | 1) => Step::SetClock(clock),
        (Part::Static, 0) => Step::ChangeKey,
        (Part::Static, 1) => Step::NewCard,
        (Part::Client, 0 | 1) => Step::Release,
        (_, 2) => Step::Pause(time / 4),
        _ => Step::Crash(time),
    }
}

fn draw_plans(random: &mut Generator, clean: bool) -> Vec<Plan> {
    let casts: [(&[u8], Part, usize); 7] = [
        (&DISTRIBUTORS, Part::Distributor, 2 + random.below(2) as usize),
        (&STATIC, Part::Static, 2 + random.below(2) as usize),
        (&SERVERS, Part::Server, 1 + usize::from(random.chance(4))),
        (&CLIENTS, Part::Client, 1 + random.below(3) as usize),
        (&PLAIN[..1], Part::Known, random.below(2) as usize),
        (&PLAIN[1..], Part::Plain, random.below(2) as usize),
        (&[INSIDER], Part::Insider, usize::from(!clean && random.chance(2))),
    ];
    let mut plans = Vec::new();
    for (numbers, part, count) in casts {
        plans.extend(numbers[..count].iter().map(|&number| draw_plan(random, number, part)));
    }
    plans
}

fn draw_plan(random: &mut Generator, number: u8, part: Part) -> Plan {
    let skew = random.below(2 * SKEW_MS) as i64 - SKEW_MS as i64;
    let clock = match random.below(4) {
        // S-ARP hosts need no wall clock, distributors do.
        _ if part == Part::Distributor => Clock::Off(skew),
        0 => Clock::Epoch,
        1 => Clock::Missing,
        _ => Clock::Off(random.below(2 * DAY_MS as u64) as i64 - DAY_MS),
    };
    Plan { number, part, clock, is_bound: random.chance(2), sign_requests: random.chance(2) }
}

/// What a distributor's clock shows once it is put right.
pub const RIGHT: Clock = Clock::Off(0);
