//! The link layer as a bump that a daemon drives.

use bump::{Bump as _, Instant, Ledger, Now, Sink};
use cll::{Cll, CompressionReport, Effect, Instruction, LeaseReport, PeerReport, PlainReport};
use system::random::KernelSource;

use super::subject;
use crate::daemon::{Described, Guard, Jobs, Kind};

/// Jobs work with private keys, which come from the kernel.
impl Jobs<Cll> for KernelSource {
    fn run(&mut self, job: cll::Job) -> cll::Completion {
        job.run(self)
    }

    fn self_test(&mut self, bump: &Cll) -> Result<(), String> {
        bump.control.self_test(self)
    }

    fn is_urgent(&self, job: &cll::Job) -> bool {
        job.is_urgent()
    }

    fn lost() -> Option<cll::Completion> {
        Some(cll::Completion::lost())
    }
}

/// The mode.
pub(crate) struct LinkLayer;

impl Kind for LinkLayer {
    type Order = Instruction;
    type Report = Box<Associations>;
    type Effect = Effect;
}

/// What a link layer knows.
#[derive(Clone, Debug)]
pub(crate) struct Associations {
    /// Its associations.
    pub(super) peers: Vec<PeerReport>,
    /// Who speaks in clear beside them.
    pub(super) in_clear: Vec<PlainReport>,
    /// What compression did.
    pub(super) compression: CompressionReport,
    /// Addresses by DHCP, this host's own and those that it gave.
    pub(super) leases: Vec<LeaseReport>,
}

impl Guard<LinkLayer> for Cll {
    fn describe(event: &cll::Event) -> Described {
        Described { word: event.word(), text: event.to_string(), about: subject::of(event) }
    }

    fn set_wire_mtu(&mut self, wire_mtu: u16) {
        self.control.set_wire_mtu(wire_mtu);
        for lane in &mut self.lanes {
            lane.set_wire_mtu(wire_mtu);
        }
    }

    fn obey(&mut self, now: Now, instruction: Instruction, sink: &mut dyn Sink) {
        cll::instruct(self, now, instruction, sink);
    }

    fn report(&self, now: Instant) -> Box<Associations> {
        Box::new(Associations {
            peers: self.control.peers(now),
            in_clear: cll::plain_hosts(self, now),
            compression: cll::compression(self),
            leases: self.control.leases(now),
        })
    }

    /// With what was dropped in front of the lanes.
    fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::new();
        self.add_to_ledger(&mut ledger);
        self.lanes.iter().for_each(|lane| lane.add_outpost_to_ledger(&mut ledger));
        ledger
    }
}
