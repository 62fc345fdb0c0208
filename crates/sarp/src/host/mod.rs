//! One host's S-ARP: everything but ARP passes as it is; of ARP, only what is proved or listed.
//!
//! - `machines.rs`: which of the following a frame, the end of a job and a deadline belongs to.
//! - `resolver/`: what our own stack asks and announces, what others say, and the keys to judge it by.
//! - `answering.rs`: answers about our addresses.
//! - `akds.rs`: asking distributors, and being one.
//! - `dhcp.rs`: DHCP, where this host is a client or a server of it.
//! - `core.rs`: what they share; `work.rs`: jobs under way.
//! - `report.rs`: what an operator may see.

mod akds;
mod answering;
mod core;
mod dhcp;
mod machines;
mod report;
mod resolver;
mod work;

use std::net::Ipv4Addr;
use std::sync::Arc;

use bump::{Batch, Bump, Fate, Generator, Instant, Ledger, Now, Side, Sink, Ticket, Torn};
use identity::signing::SigningKey;
use shield::sarp::Outpost;

use self::core::{Call, Core};
use self::machines::Machines;
use crate::akd::Akd;
use crate::event::Event;
use crate::job::{Completion, Job};
use crate::settings::{KnownHost, Settings, SharedKeys};

pub use report::{LeaseReport, Report};

/// S-ARP of one host.
#[derive(Debug)]
pub struct Host {
    core: Core,
    machines: Machines,
}

impl Host {
    /// A host that knows no key and no time. `akd` is there on a distributor's machine; `random` is for nonces, and for what a key
    /// of the paper profile prepares, which it mixes with the key.
    #[must_use]
    pub fn new(settings: Arc<Settings>, akd: Option<Akd>, random: Generator) -> Host {
        Host { machines: Machines::new(&settings, akd), core: Core::new(settings, random) }
    }

    /// Tells `outpost`, which checks in front of this, of our addresses and of known hosts, and of all questions and proofs from now on.
    pub fn set_outpost(&mut self, outpost: Box<dyn Outpost>) {
        self.core.set_outpost(outpost);
    }

    /// Has this host's key replaced: it signs with `new` as soon as a distributor has it, and asks
    /// until one answers. An event tells how it ended. False, with nothing begun, while another key
    /// is under way, nothing can be sent, or this host has no address by which distributors know
    /// it.
    pub fn change_key(&mut self, now: Now, new: Arc<SigningKey>, sink: &mut dyn Sink) -> bool {
        let mut call = Call { time: now, core: &mut self.core, sink };
        self.machines.akds.change_key(&mut call, new)
    }

    /// What an earlier run of the program had by lease: each address and its end, the newest last. To
    /// be called once, before the first frame, and behind [`set_outpost`](Self::set_outpost).
    pub fn resume_leases(&mut self, now: Instant, leases: &[(Ipv4Addr, Option<Instant>)]) {
        self.machines.dhcp.resume(&mut self.core, now, leases);
    }

    /// What this host shares with others is this from now on.
    pub fn share(&mut self, keys: &SharedKeys) {
        let request_keys = keys.request_keys.clone();
        self.core.settings = Arc::new(Settings { request_keys, ..Settings::clone(&self.core.settings) });
        self.machines.dhcp.share(&keys.site_keys);
        if let Some(masters) = &keys.masters {
            self.machines.akds.share(masters, self.core.outpost.as_deref_mut());
        }
    }

    /// The hosts without S-ARP that are believed are these from now on.
    pub fn know(&mut self, known_hosts: Vec<KnownHost>) {
        if let Some(outpost) = &mut self.core.outpost {
            // One that is out passes there and is judged here.
            known_hosts.iter().for_each(|known| outpost.acquaint(known.mac, known.ip));
        }
        self.core.settings = Arc::new(Settings { known_hosts, ..Settings::clone(&self.core.settings) });
    }

    /// Keys in the ring, and requests to distributors that are open.
    #[must_use]
    pub fn keys_and_enquiries(&self) -> (usize, usize) {
        (self.machines.resolver.keys(), self.machines.akds.open_requests())
    }

    /// News that were lost because nobody took them.
    #[must_use]
    pub fn events_lost(&self) -> u64 {
        self.core.events_lost
    }

    /// The state at `now`, the keys in the order of their addresses.
    #[must_use]
    pub fn report(&self, now: Instant) -> Report {
        let Host { core, machines: Machines { resolver, akds, dhcp, .. } } = self;
        let (signatures, verifications) = core.work.done();
        let (preferred_distributor, distributors_silent, key_is_changing) = akds.state();
        Report {
            clock_unix_s: core.clock.read(now).map(crate::Stamp::seconds),
            open_requests: akds.open_requests(),
            distributors_silent,
            preferred_distributor,
            signatures,
            verifications,
            own_key: core.key.record_key().map(|(_, key)| key.to_vec()).unwrap_or_default(),
            key_is_changing,
            keys: resolver.report(now),
            leases: dhcp.report(now),
        }
    }
}

impl Bump for Host {
    type Job = Job;
    type Completion = Completion;
    type Effect = std::convert::Infallible;
    type Event = Event;

    fn process(&mut self, now: Now, from: Side, batch: &mut dyn Batch, sink: &mut dyn Sink) {
        let mut call = Call { time: now, core: &mut self.core, sink };
        while let Some(frame) = batch.next_frame() {
            call.core.ledger.receive(from);
            let fate = self.machines.frame(&mut call, from, &frame).unwrap_or_else(Fate::Dropped);
            call.core.ledger.settle(now.since_boot, from, fate, frame.bytes);
        }
    }

    fn complete(&mut self, now: Now, ticket: Ticket, completion: Completion, sink: &mut dyn Sink) {
        let Some(task) = self.core.work.end(ticket, &completion.0) else { return };
        let mut call = Call { time: now, core: &mut self.core, sink };
        self.machines.complete(&mut call, task, completion.0);
    }

    fn tick(&mut self, now: Now, budget: usize, sink: &mut dyn Sink) {
        let mut call = Call { time: now, core: &mut self.core, sink };
        for _ in 0..budget {
            if !self.machines.tick(&mut call) {
                return;
            }
        }
    }

    fn mend(&mut self, now: Now, torn: Torn, sink: &mut dyn Sink) {
        self.machines.resolver.mend(torn);
        self.machines.dhcp.mend(&mut Call { time: now, core: &mut self.core, sink });
    }

    fn deadline(&self) -> Option<Instant> {
        self.machines.deadline(&self.core.clock)
    }

    fn next_job(&mut self) -> Option<(Ticket, Job)> {
        let Core { work, key, random, .. } = &mut self.core;
        work.next(key, random)
    }

    fn next_effect(&mut self) -> Option<Self::Effect> {
        None
    }

    fn next_event(&mut self) -> Option<Event> {
        self.core.events.pop()
    }

    fn add_to_ledger(&self, total: &mut Ledger) {
        total.add(&self.core.ledger);
        if let Some(outpost) = &self.core.outpost {
            shield::sarp::enter(&**outpost, total);
        }
    }
}
