//! One machine of the LAN: its card, its stack, its DHCP program, and, if it is guarded, the real bump of `sarp` in between.

use std::sync::Arc;
use std::time::Duration;

use bump::frame::Frames;
use bump::{Bump, Generator, Instant, Ledger, Meta, Now, Side, Ticket, time};
use identity::signing::SigningKey;
use sarp::akd::Akd;
use sarp::{Completion, Host, Job, KnownHost, Settings, Weaken};

use super::dhcp::client::Client;
use super::dhcp::server::Server;
use super::repository::Repository;
use super::scenario::{Part, Plan, Scenario};
use super::site::{self, Pool};
use super::stack::Stack;
use crate::sim::agenda::START;
use crate::sim::clock::Clocks;
use crate::sim::ports::{self, Ports};

/// Pieces of upkeep in one call.
const TICK_BUDGET: usize = 16;

/// The DHCP program of a machine.
#[derive(Debug)]
pub enum Program {
    /// None.
    None,
    /// It asks.
    Client(Client),
    /// It gives.
    Server(Server),
}

/// A machine.
pub struct Station {
    pub plan: Plan,
    /// Its number in the repository.
    pub enrolled_as: u64,
    pub stack: Stack,
    pub program: Program,
    /// Missing while the daemon is down, and always on a machine without S-ARP.
    pub host: Option<Host>,
    /// Counts the starts of the daemon, so that a job of an earlier one is recognised.
    pub life: u32,
    /// It does nothing before this moment.
    pub paused_until: Instant,
    /// When the next upkeep is scheduled.
    pub tick_at: Option<Instant>,
    /// Books of earlier lives.
    pub past: Ledger,
    pub settings: Option<Settings>,
    /// The key that distributors were asked to take, until they answer.
    pub new_key: Option<Arc<SigningKey>>,
    pub clocks: Clocks,
    random: Generator,
    port_full_one_in: u64,
}

/// What one call brought forth.
pub type Outcome = ports::Outcome<Host>;

impl Station {
    /// A machine of `scenario`, not started yet.
    pub fn new(
        plan: Plan,
        enrolled_as: u64,
        scenario: &Scenario,
        pool: &Pool,
        weaken: Weaken,
        random: &mut Generator,
    ) -> Station {
        let (mac, ip) = (site::mac(plan.number), site::ip(plan.number));
        let first = START + Duration::from_millis(random.below(3_000));
        let program = match plan.part {
            Part::Client => Program::Client(Client::new(mac, first)),
            Part::Server => Program::Server(Server::new(mac, ip, site::pool_of(plan.number), scenario.lease_s)),
            _ => Program::None,
        };
        Station {
            enrolled_as,
            stack: Stack::new(mac, (plan.part != Part::Client).then_some(ip)),
            program,
            host: None,
            life: 0,
            paused_until: START,
            tick_at: None,
            past: Ledger::new(),
            settings: settings(&plan, enrolled_as, scenario, pool, weaken),
            new_key: None,
            clocks: Clocks::new(plan.clock, random),
            random: Generator::from_seed(random.bytes()),
            port_full_one_in: scenario.faults.port_full_one_in,
            plan,
        }
    }

    /// Whether it has the daemon, also while that is down.
    pub fn is_guarded(&self) -> bool {
        self.settings.is_some()
    }

    /// What the clocks of this machine show at the moment `at` of the run.
    pub fn now(&self, at: Instant) -> Now {
        self.clocks.now(at)
    }

    /// The port always has room from now on.
    pub fn heal(&mut self) {
        self.port_full_one_in = 0;
    }

    /// When it next has something to do.
    pub fn deadline(&self) -> Option<Instant> {
        let daemon = self.host.as_ref().and_then(Bump::deadline).map(|own| self.clocks.moment(own));
        let program = match &self.program {
            Program::Client(client) => Some(client.next),
            _ => None,
        };
        time::earlier(time::earlier(daemon, program), self.stack.deadline())
    }

    /// The daemon starts, without memory. A start flushes the neighbours.
    pub fn start(&mut self) {
        let Some(settings) = self.settings.clone() else { return };
        self.life += 1;
        self.stack.flush();
        let key = Arc::clone(&settings.key);
        let akd = (self.plan.part == Part::Distributor).then(|| Akd::new(key, site::master()));
        let random = Generator::from_seed(self.random.bytes());
        self.host = Some(Host::new(Arc::new(settings), akd, random));
    }

    /// The daemon dies; what it knew is gone.
    pub fn crash(&mut self) {
        if let Some(host) = self.host.take() {
            host.add_to_ledger(&mut self.past);
        }
    }

    /// Hands a frame to the daemon.
    pub fn process(&mut self, at: Instant, from: Side, frame: Vec<u8>) -> Outcome {
        let mut frames = [(frame, Meta::plain())];
        self.call(at, |host, now, ports| host.process(now, from, &mut Frames::new(&mut frames), ports))
    }

    /// A job ends.
    pub fn complete(&mut self, at: Instant, ticket: Ticket, job: Option<Job>, repository: &Repository) -> Outcome {
        let unix_s = self.now(at).trusted_unix_ms().map(|unix_ms| unix_ms / 1000);
        let completion = job.map_or_else(Completion::lost, |job| job.run(&repository.as_of(unix_s)));
        self.call(at, |host, now, ports| host.complete(now, ticket, completion, ports))
    }

    /// Upkeep of the daemon.
    pub fn tick(&mut self, at: Instant) -> Outcome {
        let own = self.now(at).since_boot;
        if self.host.as_ref().and_then(Bump::deadline).is_none_or(|deadline| deadline > own) {
            return Outcome::default();
        }
        self.call(at, |host, now, ports| host.tick(now, TICK_BUDGET, ports))
    }

    /// Has the daemon ask for a new key.
    pub fn change_key(&mut self, at: Instant, key: Arc<SigningKey>) -> Outcome {
        let mut began = false;
        let new = Arc::clone(&key);
        let outcome = self.call(at, |host, now, ports| began = host.change_key(now, new, ports));
        if began {
            self.new_key = Some(key);
        }
        outcome
    }

    fn call(&mut self, at: Instant, act: impl FnOnce(&mut Host, Now, &mut Ports<'_>)) -> Outcome {
        let now = self.now(at);
        let Some(host) = &mut self.host else { return Outcome::default() };
        let mut ports = Ports::new(self.port_full_one_in, &mut self.random);
        act(host, now, &mut ports);
        ports.outcome(host)
    }
}

fn settings(plan: &Plan, host: u64, scenario: &Scenario, pool: &Pool, weaken: Weaken) -> Option<Settings> {
    let identity = pool.identity(plan.number).filter(|_| plan.part != Part::Insider)?;
    let numbers = |part: Part| {
        let of_part = scenario.plans.iter().filter(move |plan| plan.part == part);
        of_part.map(|plan| plan.number).collect::<Vec<u8>>()
    };
    let known_hosts = numbers(Part::Known).into_iter().map(|one| KnownHost { ip: site::ip(one), mac: site::mac(one) });
    let (mac, window, site_keys) = (site::mac(plan.number), sarp::limits::WINDOW, identity.site_keys().clone());
    let certificates = |part| {
        let known = numbers(part).into_iter().filter_map(|number| pool.identity(number));
        known.map(|identity| identity.certificate().clone()).collect::<Vec<_>>()
    };
    let client = (plan.part == Part::Client).then(|| dhcp::client::Settings {
        mac,
        host,
        site_keys: site_keys.clone(),
        servers: certificates(Part::Server),
        window,
    });
    let key_name = identity.certificate().record_key().map_or(0, |(_, key)| dhcp::proof::key_name(key));
    let server = (plan.part == Part::Server).then(|| dhcp::server::Settings {
        key_name,
        addresses: vec![site::ip(plan.number)],
        site_keys: site_keys.clone(),
        relays: Vec::new(),
        window,
        order: dhcp::server::Order::AtRequest,
    });
    Some(Settings {
        key: identity.signing_key(),
        mac,
        addresses: identity.certificate().addresses().to_vec(),
        distributors: pool.distributors(&numbers(Part::Distributor)),
        request_keys: site::master().key_of(host).into(),
        known_hosts: known_hosts.collect(),
        window,
        dhcp_client: client,
        dhcp_server: server,
        sign_requests: plan.sign_requests,
        weaken,
    })
}
