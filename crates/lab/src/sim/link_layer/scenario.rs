//! What a seed draws: who is there, how they are configured, what goes wrong, and who attacks.

use std::time::Duration;

use bump::{Generator, Instant};
use cll::PostQuantum;
use identity::aead::Suite;

use super::datagram::Shape;
use super::site::{POOL, ROUTER};
use crate::sim::agenda::START;
use crate::sim::clock::{Clock, START_UNIX_S};
use crate::sim::fabric::Kind;
use crate::sim::faults::Faults;

/// Honest hosts must talk again within this time once faults stop.
pub const RECOVERY: Duration = Duration::from_secs(15);
/// After that nothing may be lost for this long.
pub const CALM: Duration = Duration::from_secs(15);
/// After the last datagram nothing may still be held, once every handshake had the time to give up.
pub const DRAIN: Duration = Duration::from_secs(20);

/// What a host is in this run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Guarded and honest.
    Honest,
    /// Guarded by a link layer that lets its lies out.
    Insider,
    /// Unguarded and on the others' list.
    Legacy,
}

/// One host of a run.
#[derive(Clone, Debug)]
pub struct HostPlan {
    /// Its number in the pool of identities, or beyond it for a legacy host.
    pub identity: usize,
    pub part: Part,
    pub clock: Clock,
    pub lanes: u8,
    pub suite: Suite,
    pub confidential: bool,
    /// Whether it puts a slow nonce beside the spinning one.
    pub slow_nonce: bool,
    /// Whether its keys also come from ML-KEM.
    pub post_quantum: PostQuantum,
    /// How much longer than the others' at least it wants its associations to live.
    pub lifetime_more: Duration,
}

/// Traffic from one host to another.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    pub from: usize,
    pub to: usize,
    pub first: Instant,
    pub every: Duration,
    /// Frames that leave at one moment.
    pub burst: u64,
    pub shape: Shape,
    /// A router sends it on for a host elsewhere.
    pub forwarded: bool,
}

/// Something that happens to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Its program dies and starts again after this time.
    Crash(Duration),
    /// It does nothing for this time.
    Pause(Duration),
    /// Its wall clock is set by so many milliseconds.
    SetClock(i64),
    /// It is given the site keys as they are now.
    Share,
}

/// Everything that a seed decides ahead.
#[derive(Clone, Debug)]
pub struct Scenario {
    pub hosts: Vec<HostPlan>,
    pub fabric: Kind,
    pub faults: Faults,
    pub flows: Vec<Flow>,
    pub steps: Vec<(Instant, usize, Step)>,
    /// Time between two deeds of the attacker, if there is one.
    pub attack_every: Option<Duration>,
    pub lifetime: Option<Duration>,
    pub rekey_after_frames: Option<u32>,
    pub rekey_every: Option<Duration>,
    /// Whether hosts keep tickets on disk, with which they come back after a crash.
    pub resumes: bool,
    /// Whether one site key follows another.
    pub changes_site_key: bool,
    /// Whether an EtherType passes in clear by configuration.
    pub passes: bool,
    /// Nothing goes wrong and nobody attacks, so nothing may be lost either.
    pub clean: bool,
    pub faults_stop: Instant,
}

impl Scenario {
    /// The scenario of `random`'s seed.
    pub fn draw(random: &mut Generator) -> Scenario {
        let clean = random.chance(6);
        let hosts = draw_hosts(random, clean);
        let span = Duration::from_millis(if clean { 30_000 } else { 15_000 + random.below(25_000) });
        let faults_stop = START + span;
        let job_delay_max_micros = if random.chance(4) { 300_000 } else { 4_000 };
        let fabric = if random.chance(3) { Kind::Switch } else { Kind::Hub };
        let mut scenario = Scenario {
            flows: draw_flows(random, &hosts, clean),
            steps: Vec::new(),
            attack_every: None,
            lifetime: random.chance(3).then(|| Duration::from_secs(14 + random.below(30))),
            rekey_after_frames: random.chance(4).then(|| 60 + random.below(300) as u32),
            rekey_every: None,
            resumes: false,
            changes_site_key: false,
            faults: Faults::none(Duration::from_micros(1 + random.below(job_delay_max_micros))),
            passes: random.chance(4),
            hosts,
            fabric,
            clean,
            faults_stop,
        };
        if !clean {
            scenario.draw_trouble(random, span);
        }
        scenario.resumes = random.chance(2);
        scenario
    }

    /// The same with ML-KEM on half of the hosts, so that each of them meets hosts with and without
    /// it. In some runs all require it.
    pub fn with_post_quantum(mut self, random: &mut Generator) -> Scenario {
        let (all, first) = (random.chance(4), random.below(2) as usize);
        for (number, host) in self.hosts.iter_mut().enumerate() {
            host.post_quantum = match (all, number % 2 == first) {
                (true, _) => PostQuantum::Require,
                (false, true) => PostQuantum::Prefer,
                (false, false) => PostQuantum::Off,
            };
        }
        self
    }

    /// Whether the associations of these two hosts have a secret of ML-KEM.
    pub fn is_post_quantum(&self, one: usize, other: usize) -> bool {
        [one, other].iter().all(|&host| self.hosts[host].post_quantum.is_on())
    }

    fn draw_trouble(&mut self, random: &mut Generator, span: Duration) {
        self.faults = Faults::draw(self.faults.job_delay_max, random);
        self.attack_every = (!random.chance(4)).then(|| Duration::from_millis(5 + random.below(60)));
        for _ in 0..random.below(5) {
            let at = START + Duration::from_millis(random.below(span.as_millis() as u64));
            let host = random.below(self.hosts.len() as u64) as usize;
            let time = Duration::from_millis(1 + random.below(4_000));
            let step = match random.below(4) {
                0 | 1 => Step::Crash(time),
                2 => Step::Pause(time),
                _ => Step::SetClock(draw_error_ms(random)),
            };
            self.steps.push((at, host, step));
        }
    }

    /// When the last datagram is sent.
    pub fn traffic_stops(&self) -> Instant {
        self.faults_stop + RECOVERY + CALM
    }

    /// When the run is over: associations that were in use may ask for a successor until their lifetime ends.
    pub fn end(&self) -> Instant {
        self.traffic_stops() + self.lifetime.unwrap_or_default() + DRAIN
    }

    /// What the seed drew, in a line.
    pub fn summary(&self) -> String {
        let parts = |part| self.hosts.iter().filter(|host| host.part == part).count();
        let honest = parts(Part::Honest);
        let mut words = vec![format!("{honest} hosts"), format!("{:?}", self.fabric).to_lowercase()];
        let named = [
            (parts(Part::Insider) > 0, "insider"),
            (parts(Part::Legacy) > 0, "legacy host"),
            (self.attack_every.is_some(), "attacker"),
            (self.clean, "clean"),
            (self.lifetime.is_some(), "short lifetimes"),
            (self.rekey_after_frames.is_some(), "early rekeying"),
            (!self.steps.is_empty(), "crashes or pauses"),
            (self.resumes, "tickets"),
            (self.changes_site_key, "another site key"),
            (self.hosts.iter().any(|host| host.post_quantum.is_on()), "ML-KEM"),
        ];
        words.extend(named.iter().filter(|(holds, _)| *holds).map(|(_, word)| (*word).to_owned()));
        words.join(", ")
    }
}

fn draw_hosts(random: &mut Generator, clean: bool) -> Vec<HostPlan> {
    let honest = 2 + random.below(3) as usize;
    let insider = !clean && random.chance(3);
    let legacy = random.chance(4);
    let mut identities: Vec<usize> = (0..POOL).collect();
    let mut hosts = Vec::new();
    for at in 0..honest + usize::from(insider) {
        let part = if at < honest { Part::Honest } else { Part::Insider };
        // A router may carry anybody's address, so nothing that it says of others is a lie.
        let choice = identities.len() - usize::from(part == Part::Insider && identities.contains(&ROUTER));
        let identity = identities.remove(random.below(choice as u64) as usize);
        hosts.push(draw_host(random, identity, part));
    }
    if legacy {
        hosts.push(draw_host(random, POOL, Part::Legacy));
    }
    hosts
}

fn draw_host(random: &mut Generator, identity: usize, part: Part) -> HostPlan {
    let clock = match random.below(8) {
        0 => Clock::Epoch,
        1 => Clock::Missing,
        2 | 3 => Clock::Off(draw_error_ms(random)),
        _ => Clock::Off(random.below(400) as i64 - 200),
    };
    HostPlan {
        identity,
        part,
        clock,
        lanes: 1 + random.below(3) as u8,
        suite: Suite::ALL[random.below(Suite::ALL.len() as u64) as usize],
        confidential: !random.chance(5),
        slow_nonce: random.chance(3),
        post_quantum: PostQuantum::Off,
        lifetime_more: Duration::from_secs(random.below(10)),
    }
}

/// Up to five days off, in either direction, in milliseconds.
fn draw_error_ms(random: &mut Generator) -> i64 {
    const FIVE_DAYS_MS: i64 = 5 * 86_400_000;
    const _: () = assert!(FIVE_DAYS_MS as u64 / 1000 < START_UNIX_S);
    random.below(2 * FIVE_DAYS_MS as u64) as i64 - FIVE_DAYS_MS
}

fn draw_flows(random: &mut Generator, hosts: &[HostPlan], clean: bool) -> Vec<Flow> {
    let talkers: Vec<usize> = (0..hosts.len()).filter(|&at| hosts[at].part != Part::Insider).collect();
    let one_sided = random.chance(3);
    let together = random.chance(2);
    let mut flows = Vec::new();
    for (at, &from) in talkers.iter().enumerate() {
        for &to in &talkers[at + 1..] {
            if random.chance(4) && !flows.is_empty() {
                continue;
            }
            let (from, to) = if random.chance(2) { (to, from) } else { (from, to) };
            let first = START + Duration::from_millis(random.below(3_000));
            flows.push(draw_flow(random, hosts, (from, to), first, clean));
            if !one_sided {
                let first = if together { first } else { first + Duration::from_millis(random.below(2_000)) };
                flows.push(draw_flow(random, hosts, (to, from), first, clean));
            }
        }
    }
    flows
}

fn draw_flow(random: &mut Generator, hosts: &[HostPlan], ends: (usize, usize), first: Instant, clean: bool) -> Flow {
    let plain = hosts[ends.0].part == Part::Legacy || hosts[ends.1].part == Part::Legacy;
    let forwarded = hosts[ends.0].identity == ROUTER && !plain && random.chance(2);
    let every = Duration::from_millis(50 + random.below(900));
    let size = 8 + random.below(1_400) as usize;
    let count = 2 + random.below(8) as usize;
    let shape = match random.below(if plain { 1 } else { 6 }) {
        0 => Shape::Udp { payload_len: size, partial: false },
        1 => Shape::Udp { payload_len: size, partial: true },
        2 => Shape::UdpSuper { size, count },
        3 => Shape::TcpSuper { size, count },
        4 => Shape::Raw { payload_len: size },
        _ => Shape::Raw { payload_len: 8 },
    };
    let burst = if clean || !random.chance(5) { 1 } else { 1 + random.below(12) };
    Flow { from: ends.0, to: ends.1, first, every, burst, shape, forwarded }
}
