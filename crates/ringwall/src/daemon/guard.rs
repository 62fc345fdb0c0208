//! What the run loop needs of a bump beside the contract: its slow work done, and answers for an operator.

use std::sync::Arc;

use bump::{Bump, Instant, Ledger, Now, Sink};
use cll::{Cll, CompressionReport, Effect, LeaseReport, PeerReport, PlainReport};
use sarp::akd::Records;
use shield::ipsec::PeerReport as PairReport;
use system::null::NullBump;
use system::random::KernelSource;

use super::order::Order;

/// Answers that a distributor makes before it hands them over: the price of looking and waking is shared, and the first waits
/// for less than half a millisecond.
const ANSWERS_AT_ONCE_MAX: usize = 32;

/// News of a bump in an operator's words.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) word: &'static str,
    pub(crate) text: String,
}

/// What a bump knows of others.
#[derive(Clone, Debug)]
pub(crate) enum Report {
    /// Nobody.
    Nothing,
    /// The link layer.
    Associations(Box<Associations>),
    /// Keys and the clock of S-ARP.
    Keys(sarp::Report),
    /// What a scrubber did.
    Scrubbing(Box<Scrubbing>),
    /// The peers of a shield in front of IPsec.
    Shielding(Vec<PairReport>),
}

/// What a link layer knows.
#[derive(Clone, Debug)]
pub(crate) struct Associations {
    /// Its associations.
    pub(crate) peers: Vec<PeerReport>,
    /// Who speaks in clear beside them.
    pub(crate) in_clear: Vec<PlainReport>,
    /// What compression did.
    pub(crate) compression: CompressionReport,
    /// Addresses by DHCP, this host's own and those that it gave.
    pub(crate) leases: Vec<LeaseReport>,
}

/// What a scrubber did.
#[derive(Clone, Debug)]
pub(crate) struct Scrubbing {
    /// How often each rule acted.
    pub(crate) counters: scrub::rule::Counters,
    /// What its mirror was given, if it has one.
    pub(crate) mirror: Option<MirrorCounters>,
    /// Connections that are remembered.
    pub(crate) flows: usize,
    /// Memory for unacknowledged data and for waiting fragments, in bytes.
    pub(crate) memory_bytes: usize,
    /// Memory that waits to be used again for unacknowledged data, in bytes.
    pub(crate) memory_idle_bytes: usize,
}

/// What became of the copies for a mirror, in frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MirrorCounters {
    pub(crate) sent: u64,
    /// Copies that its port did not take.
    pub(crate) lost: u64,
}

/// A bump that a daemon can drive.
pub(crate) trait Guard: Bump {
    /// What its jobs work with beside themselves; each thread has its own.
    type Tools: Send + 'static;

    /// Runs a job.
    fn run_job(job: Self::Job, tools: &mut Self::Tools) -> Self::Completion;

    /// Runs jobs that have waited together, in their order.
    fn run_jobs(jobs: Vec<Self::Job>, tools: &mut Self::Tools) -> Vec<Self::Completion> {
        jobs.into_iter().map(|job| Self::run_job(job, tools)).collect()
    }

    /// How many jobs at most run before the results of the first are handed over.
    fn jobs_at_once(_tools: &Self::Tools) -> usize {
        1
    }

    /// Shows before the first frame that slow work can be done at all, and what is wrong if not.
    fn self_test(&self, tools: &mut Self::Tools) -> Result<(), String>;

    /// Whether somebody waits for the result, so that it may be run on a quiet data path.
    fn is_urgent(job: &Self::Job, tools: &Self::Tools) -> bool;

    /// What stands for a job that could not be run; `None` where there are no jobs.
    fn lost() -> Option<Self::Completion>;

    /// An event in words.
    fn describe(event: &Self::Event) -> Described;

    /// An effect as the kernel's neighbour table understands it.
    fn neighbour(effect: Self::Effect) -> Effect;

    /// The wire carries packets of another size from now on, in bytes.
    fn set_wire_mtu(&mut self, wire_mtu: u16);

    /// Carries out an order if it is one for this bump.
    fn obey(&mut self, _now: Now, _order: Order, _sink: &mut dyn Sink) {}

    /// Whom it knows.
    fn report(&self, now: Instant) -> Report;

    /// The books.
    fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::new();
        self.add_to_ledger(&mut ledger);
        ledger
    }
}

impl Guard for Cll {
    /// Where private keys come from.
    type Tools = KernelSource;

    fn run_job(job: cll::Job, keys: &mut KernelSource) -> cll::Completion {
        job.run(keys)
    }

    fn self_test(&self, keys: &mut KernelSource) -> Result<(), String> {
        self.control.self_test(keys)
    }

    fn is_urgent(job: &cll::Job, _keys: &KernelSource) -> bool {
        job.is_urgent()
    }

    fn lost() -> Option<cll::Completion> {
        Some(cll::Completion::lost())
    }

    fn describe(event: &cll::Event) -> Described {
        Described { word: event.word(), text: event.to_string() }
    }

    fn neighbour(effect: Effect) -> Effect {
        effect
    }

    fn set_wire_mtu(&mut self, wire_mtu: u16) {
        self.control.set_wire_mtu(wire_mtu);
        for lane in &mut self.lanes {
            lane.set_wire_mtu(wire_mtu);
        }
    }

    fn obey(&mut self, now: Now, order: Order, sink: &mut dyn Sink) {
        if let Order::Instruct(instruction) = order {
            cll::instruct(self, now, instruction, sink);
        }
    }

    fn report(&self, now: Instant) -> Report {
        Report::Associations(Box::new(Associations {
            peers: self.control.peers(now),
            in_clear: cll::plain_hosts(self, now),
            compression: cll::compression(self),
            leases: self.control.leases(now),
        }))
    }

    /// With what was dropped in front of the lanes.
    fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::new();
        self.add_to_ledger(&mut ledger);
        self.lanes.iter().for_each(|lane| lane.add_outpost_to_ledger(&mut ledger));
        ledger
    }
}

impl Guard for sarp::Host {
    /// The repository that a distributor answers from.
    type Tools = Arc<dyn Records + Send + Sync>;

    fn run_job(job: sarp::Job, records: &mut Self::Tools) -> sarp::Completion {
        job.run(&**records)
    }

    fn run_jobs(jobs: Vec<sarp::Job>, records: &mut Self::Tools) -> Vec<sarp::Completion> {
        sarp::Job::run_all(jobs, &**records)
    }

    fn jobs_at_once(records: &Self::Tools) -> usize {
        // Nobody is kept waiting by others' questions to a repository that is far away.
        if records.is_at_hand() { ANSWERS_AT_ONCE_MAX } else { 1 }
    }

    // Every key it works with has been read and used when its identity was loaded.
    fn self_test(&self, _records: &mut Self::Tools) -> Result<(), String> {
        Ok(())
    }

    fn is_urgent(job: &sarp::Job, records: &Self::Tools) -> bool {
        job.is_urgent(&**records)
    }

    fn lost() -> Option<sarp::Completion> {
        Some(sarp::Completion::lost())
    }

    fn describe(event: &sarp::Event) -> Described {
        Described { word: event.word(), text: event.to_string() }
    }

    fn neighbour(effect: Self::Effect) -> Effect {
        match effect {}
    }

    // Its own messages are short, and the rest passes as it is.
    fn set_wire_mtu(&mut self, _wire_mtu: u16) {}

    fn obey(&mut self, now: Now, order: Order, sink: &mut dyn Sink) {
        match order {
            // Whoever asked for it looks whether it began.
            Order::ChangeKey(new) => _ = self.change_key(now, new, sink),
            Order::Share(keys) => self.share(&keys),
            Order::KnownHosts(hosts) => self.know(hosts),
            _ => {}
        }
    }

    fn report(&self, now: Instant) -> Report {
        Report::Keys(sarp::Host::report(self, now))
    }
}

impl Guard for NullBump {
    type Tools = ();

    fn run_job(job: Self::Job, _tools: &mut ()) -> Self::Completion {
        match job {}
    }

    fn self_test(&self, _tools: &mut ()) -> Result<(), String> {
        Ok(())
    }

    fn is_urgent(job: &Self::Job, _tools: &()) -> bool {
        match *job {}
    }

    fn lost() -> Option<Self::Completion> {
        None
    }

    fn describe(event: &Self::Event) -> Described {
        match *event {}
    }

    fn neighbour(effect: Self::Effect) -> Effect {
        match effect {}
    }

    // It never looks at a frame's length.
    fn set_wire_mtu(&mut self, _wire_mtu: u16) {}

    fn report(&self, _now: Instant) -> Report {
        Report::Nothing
    }
}
