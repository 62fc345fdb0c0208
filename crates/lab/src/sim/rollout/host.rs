//! A machine on the simulated LAN: a stack, and a link layer once it has joined.
//!
//! What the daemon does around a link layer is here in short: it keeps the newest policy that the
//! site has signed, whoever brought it, has it come into force, and tells what it would report.

use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use authority::rollout::report::{
    BREAKS_MAX, Break, BreakUse, DaemonPart, PolicyPart, Report, SCHEMA, SCHEMA_VERSION, USES_MAX,
};
use bump::frame::Frames;
use bump::{Bump, ErasingGenerator, Generator, Instant, Meta, Now, Side, Ticket};
use cll::{Cll, Completion, Effect, Instruction, Job, Legacy, Migration, Policy, ProvedHost, Settings};
use identity::policy::{Mode, SitePolicy};
use identity::{HostIdentity, Verified};
use wire::MacAddress;

use crate::sim::clock::{Clock, Clocks};
use crate::sim::link_layer::stack::Stack;
use crate::sim::ports::{self, Ports};

const WIRE_MTU: u16 = 1500;
/// Pieces of upkeep in one call.
const TICK_BUDGET: usize = 16;
/// What a worker needs for a job: a signature and what belongs to it, generously.
const JOB: Duration = Duration::from_micros(500);
/// Policies of peers that wait to be looked at.
const OFFERED_MAX: usize = 8;

/// What one call into a link layer brought forth.
pub type Outcome = ports::Outcome<Cll>;

/// One machine.
pub struct Host {
    pub name: String,
    pub mac: MacAddress,
    pub ip: Ipv4Addr,
    pub stack: Stack,
    pub identity: Option<Arc<HostIdentity>>,
    /// Counts the starts of the program, so that a job of an earlier one is recognised.
    pub life: u32,
    link: Option<Cll>,
    policy: Option<Arc<Verified<SitePolicy>>>,
    in_force: Rules,
    proved: BTreeMap<MacAddress, ProvedHost>,
    offered: VecDeque<Vec<u8>>,
    /// When the one worker has done all that it was given.
    worker_free: Instant,
    clocks: Clocks,
    random: Generator,
    keys: ErasingGenerator,
}

/// What follows from the policy for this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Rules {
    policy: Policy,
    legacy: Vec<Legacy>,
}

impl Host {
    /// A machine that nothing guards.
    pub fn new(name: String, mac: MacAddress, ip: Ipv4Addr, random: &mut Generator) -> Host {
        let error_ms = random.below(400) as i64 - 200;
        Host::new_with_clock(name, mac, ip, error_ms, random)
    }

    /// The same, with a wall clock that is off by so much.
    pub fn new_with_clock(name: String, mac: MacAddress, ip: Ipv4Addr, error_ms: i64, random: &mut Generator) -> Host {
        Host {
            name,
            mac,
            ip,
            stack: Stack::new(mac, ip),
            identity: None,
            life: 0,
            link: None,
            policy: None,
            in_force: Rules::default(),
            proved: BTreeMap::new(),
            offered: VecDeque::new(),
            worker_free: Instant::default(),
            clocks: Clocks::new(Clock::Off(error_ms), random),
            random: Generator::from_seed(random.bytes()),
            keys: ErasingGenerator::from_seed(&random.bytes()),
        }
    }

    /// Another machine with the same address.
    pub fn replace(&mut self, mac: MacAddress) {
        (self.mac, self.stack) = (mac, Stack::new(mac, self.ip));
    }

    pub fn is_guarded(&self) -> bool {
        self.link.is_some()
    }

    /// How strict it is; none without a link layer.
    pub fn mode(&self) -> Option<Migration> {
        self.link.as_ref().map(|_| self.in_force.policy.migration)
    }

    pub fn policy_version(&self) -> Option<u64> {
        self.policy.as_ref().map(|policy| policy.version())
    }

    /// Peers that it has an association with.
    pub fn associations(&self, at: Instant) -> usize {
        let Some(link) = &self.link else { return 0 };
        let peers = link.control.peers(self.clocks.now(at).since_boot);
        peers.iter().filter(|peer| peer.state == "established").count()
    }

    /// Its daemon starts with this identity, and with what the service gave it.
    pub fn join(&mut self, at: Instant, identity: HostIdentity, policy: Option<Arc<Verified<SitePolicy>>>) -> Outcome {
        let identity = Arc::new(identity);
        (self.policy, self.identity) = (policy, Some(Arc::clone(&identity)));
        self.in_force = self.rules(at);
        self.life += 1;
        self.stack.flush();
        let mut settings = Settings::new(identity, WIRE_MTU);
        // The stacks of this world speak IPv4.
        settings.ipv6 = false;
        (settings.policy, settings.legacy) = (self.in_force.policy.clone(), self.in_force.legacy.clone());
        let (now, seed) = (self.clocks.now(at), self.random.bytes());
        let mut ports = Ports::new(0, &mut self.random);
        self.link = Some(cll::start(now, settings, Generator::from_seed(seed), &mut ports));
        let policy = self.policy.clone();
        self.call(at, |cll, now, ports| {
            policy.into_iter().for_each(|policy| cll::begin_with_policy(cll, now, policy, ports));
        })
    }

    /// Its daemon ends for good.
    pub fn leave(&mut self) {
        (self.link, self.policy, self.identity) = (None, None, None);
        self.stack.flush();
    }

    /// It is offered a policy, by the service or by a peer: a newer one that the site has signed
    /// counts from now on.
    pub fn offer(&mut self, at: Instant, bytes: &[u8]) -> Outcome {
        let Some(identity) = &self.identity else { return Outcome::default() };
        let Ok(policy) = identity.anchor().verify_policy(bytes) else { return Outcome::default() };
        if Some(policy.version()) <= self.policy_version() {
            return Outcome::default();
        }
        let policy = Arc::new(policy);
        self.policy = Some(Arc::clone(&policy));
        let mut outcome =
            self.call(at, |cll, now, ports| cll::instruct(cll, now, Instruction::SitePolicy(policy), ports));
        join(&mut outcome, self.follow(at));
        outcome
    }

    /// Has come into force what the policy says at this time.
    pub fn follow(&mut self, at: Instant) -> Outcome {
        let rules = self.rules(at);
        let before = std::mem::replace(&mut self.in_force, rules.clone());
        if before == rules || self.link.is_none() {
            return Outcome::default();
        }
        // What it has learned in clear is not believed any more (record 0099).
        if rules.policy.migration > before.policy.migration {
            self.stack.forget_heard();
        }
        self.call(at, |cll, now, ports| {
            if rules.legacy != before.legacy {
                cll::instruct(cll, now, Instruction::Legacy(rules.legacy), ports);
            }
            if rules.policy != before.policy {
                cll::instruct(cll, now, Instruction::Policy(rules.policy), ports);
            }
        })
    }

    fn rules(&self, at: Instant) -> Rules {
        let (Some(policy), Some(identity)) = (&self.policy, &self.identity) else { return Rules::default() };
        let unix_s = self.clocks.now(at).trusted_unix_ms().map(|unix_ms| unix_ms / 1000);
        let mode = policy.mode_of(identity.certificate().name(), unix_s).map_or(Migration::Enforce, migration);
        let content = policy.content();
        let exceptions = content.exceptions.iter().map(|one| (one.mac, migration(one.mode))).collect();
        let legacy = content.legacy.iter().filter(|one| one.mac != self.mac && one.ip != self.ip);
        Rules {
            policy: Policy { migration: mode, exceptions, ..Policy::default() },
            legacy: legacy
                .map(|one| Legacy { mac: one.mac, ip: one.ip, router: one.router, broadcast: one.broadcast })
                .collect(),
        }
    }

    /// Frames come from this side.
    pub fn process(&mut self, at: Instant, from: Side, frames: &mut [(Vec<u8>, Meta)]) -> Outcome {
        self.call(at, |cll, now, ports| cll.process(now, from, &mut Frames::new(frames), ports))
    }

    /// When a job that is begun now is done, behind all others.
    pub fn done_at(&mut self, at: Instant) -> Instant {
        self.worker_free = self.worker_free.max(at) + JOB;
        self.worker_free
    }

    /// A job ends.
    pub fn complete(&mut self, at: Instant, ticket: Ticket, job: Job) -> Outcome {
        let completion: Completion = job.run(&mut self.keys);
        self.call(at, |cll, now, ports| cll.complete(now, ticket, completion, ports))
    }

    /// Upkeep, as far as it is due, and policies of peers.
    pub fn tick(&mut self, at: Instant) -> Outcome {
        let mut outcome = Outcome::default();
        while let Some(bytes) = self.offered.pop_front() {
            join(&mut outcome, self.offer(at, &bytes));
        }
        let is_due = |this: &Host| {
            let due = this.link.as_ref().and_then(Bump::deadline);
            due.is_some_and(|own| this.clocks.moment(own) <= at)
        };
        // As a loop that comes back at once; a round that leaves something due is followed by one.
        for _ in 0..TICK_BUDGET {
            if !is_due(self) {
                break;
            }
            join(&mut outcome, self.call(at, |cll, now, ports| cll.tick(now, TICK_BUDGET, ports)));
        }
        outcome
    }

    fn call(&mut self, at: Instant, act: impl FnOnce(&mut Cll, Now, &mut Ports<'_>)) -> Outcome {
        let now = self.clocks.now(at);
        let Some(cll) = &mut self.link else { return Outcome::default() };
        let mut ports = Ports::new(0, &mut self.random);
        act(cll, now, &mut ports);
        let outcome = ports.outcome(cll);
        while let Some(effect) = cll.next_effect() {
            match effect {
                Effect::PermanentNeighbour { ip, mac } => self.stack.set_permanent(ip, mac),
                Effect::ForgetNeighbour { ip, .. } => self.stack.forget(ip),
                Effect::Remember(host) => _ = self.proved.insert(host.mac, host),
                Effect::CheckPolicy { bytes, .. } if self.offered.len() < OFFERED_MAX => self.offered.push_back(bytes),
                _ => {}
            }
        }
        outcome
    }

    /// What its daemon reports.
    pub fn report(&self, at: Instant, started: Instant) -> Option<Report> {
        let (link, identity) = (self.link.as_ref()?, self.identity.as_ref()?);
        let now = self.clocks.now(at);
        let unix_ms = now.trusted_unix_ms()?;
        let mut plain = cll::plain_hosts(link, now.since_boot);
        plain.sort_by_key(|one| std::cmp::Reverse(one.since));
        let total = plain.len();
        let millis = |time: Duration| time.as_millis() as u64;
        let breaks: Vec<Break> = plain
            .into_iter()
            .take(BREAKS_MAX)
            .map(|one| {
                let uses = one.uses.into_values().take(USES_MAX / BREAKS_MAX).map(|used| BreakUse {
                    protocol: used.protocol.to_string(),
                    frames: used.frames,
                    last_unix_ms: unix_ms.saturating_sub(millis(used.heard_ago)),
                    source: used.source,
                    destination: used.destination,
                });
                Break { mac: one.mac.to_string(), uses: uses.collect() }
            })
            .collect();
        Some(Report {
            schema: SCHEMA.to_owned(),
            schema_version: SCHEMA_VERSION,
            made_unix_ms: unix_ms,
            daemon: DaemonPart {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                interface: "sim0".to_owned(),
                mode: "cll".to_owned(),
                state: "guarding".to_owned(),
                way: "simulated".to_owned(),
                uptime_s: at.since(started).as_secs(),
            },
            policy: PolicyPart {
                version: self.policy_version(),
                migration: Some(self.in_force.policy.migration.word().to_owned()),
            },
            sealed: self.associations(at) as u64,
            attacks_open: 0,
            attacks_opened: 0,
            site_key_generation: None,
            dropped: None,
            certificate_not_after_unix: identity.certificate().not_after_unix(),
            breaks_left_out: (total - breaks.len()) as u64,
            breaks,
        })
    }
}

fn migration(mode: Mode) -> Migration {
    match mode {
        Mode::Observe => Migration::Observe,
        Mode::Prefer => Migration::Prefer,
        Mode::Enforce => Migration::Enforce,
    }
}

fn join(one: &mut Outcome, other: Outcome) {
    one.wire.extend(other.wire);
    one.stack.extend(other.stack);
    one.jobs.extend(other.jobs);
    one.events.extend(other.events);
}
