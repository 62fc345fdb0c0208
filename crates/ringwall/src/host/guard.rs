//! What the run loop needs of a bump beside the contract: answers for an operator.

use bump::{Bump, Generator, Instant, Ledger};
use cll::{Cll, Effect, PeerReport};
use system::null::NullBump;

/// News of a bump in an operator's words.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub(crate) word: &'static str,
    pub(crate) text: String,
}

/// A bump that can guard an interface of a host.
pub(crate) trait Guard: Bump {
    /// Runs a job; `keys` is the generator for keys and for nothing else.
    fn run_job(job: Self::Job, keys: &mut Generator) -> Self::Completion;

    /// Shows before the first frame that slow work can be done at all, and what is wrong if not.
    fn self_test(&self, keys: &mut Generator) -> Result<(), String>;

    /// Whether somebody waits for the result, so that it may be run on a quiet data path.
    fn is_urgent(job: &Self::Job) -> bool;

    /// What stands for a job that could not be run; `None` where there are no jobs.
    fn lost() -> Option<Self::Completion>;

    /// An event in words.
    fn describe(event: &Self::Event) -> Described;

    /// An effect as the kernel's neighbour table understands it.
    fn neighbour(effect: Self::Effect) -> Effect;

    /// The wire carries packets of another size from now on, in bytes.
    fn set_wire_mtu(&mut self, wire_mtu: u16);

    /// All associations.
    fn peers(&self, now: Instant) -> Vec<PeerReport>;

    /// The books.
    fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::new();
        self.add_to_ledger(&mut ledger);
        ledger
    }
}

impl Guard for Cll {
    fn run_job(job: cll::Job, keys: &mut Generator) -> cll::Completion {
        job.run(keys)
    }

    fn self_test(&self, keys: &mut Generator) -> Result<(), String> {
        self.control.self_test(keys)
    }

    fn is_urgent(job: &cll::Job) -> bool {
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
        for lane in &mut self.lanes {
            lane.set_wire_mtu(wire_mtu);
        }
    }

    fn peers(&self, now: Instant) -> Vec<PeerReport> {
        self.control.peers(now)
    }
}

impl Guard for NullBump {
    fn run_job(job: Self::Job, _keys: &mut Generator) -> Self::Completion {
        match job {}
    }

    fn self_test(&self, _keys: &mut Generator) -> Result<(), String> {
        Ok(())
    }

    fn is_urgent(job: &Self::Job) -> bool {
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

    fn peers(&self, _now: Instant) -> Vec<PeerReport> {
        Vec::new()
    }
}
