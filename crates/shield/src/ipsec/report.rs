//! What a shield counts, and what it tells.

use std::net::IpAddr;

use bump::DropReason;

use super::kernel::{COUNTED, Count};

/// What becomes of an ESP packet of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It goes on under this SPI.
    Pass(u32),
    /// It goes on under this SPI, which is known from now on.
    Learned(u32),
    /// Its SPI is not known.
    Unknown,
    /// Our stack gives no such SPI out.
    OutOfRange,
    /// Its sequence number has passed.
    Used,
    /// Its sequence number is too far ahead.
    Far,
}

/// Packets of one peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeerCounters {
    /// ESP to the peer whose SPI was permuted.
    pub sealed: u64,
    /// ESP of the peer that went on to the stack.
    pub passed: u64,
    /// Those of them that the kernel handed to the stack, without this program.
    pub passed_in_kernel: u64,
    /// Those of them whose SPI was not known yet.
    pub on_trial: u64,
    /// SPIs that became known.
    pub learned: u64,
    /// Dropped, because the SPI is not known.
    pub unknown: u64,
    /// Dropped, because this host's stack gives no such SPI out.
    pub out_of_range: u64,
    /// Dropped, because the sequence number has passed.
    pub used: u64,
    /// Dropped, because the sequence number is too far ahead.
    pub far: u64,
    /// Dropped by the budgets for IKE, keepalives and fragments.
    pub over_budget: u64,
}

impl PeerCounters {
    /// With what the kernel dropped before it came this far.
    pub(super) fn with_dropped_in_kernel(mut self, count: Count) -> PeerCounters {
        for (reason, count) in COUNTED.iter().zip(count) {
            match reason {
                DropReason::ShieldSpi => self.unknown += count,
                DropReason::ShieldRange => self.out_of_range += count,
                DropReason::ShieldReplay => self.used += count,
                DropReason::ShieldIkeBudget | DropReason::ShieldKeepaliveBudget | DropReason::ShieldFragmentBudget => {
                    self.over_budget += count;
                }
                _ => {}
            }
        }
        self
    }

    /// With what the kernel handed on.
    pub(super) fn with_passed_in_kernel(self, count: u64) -> PeerCounters {
        PeerCounters { passed: self.passed + count, passed_in_kernel: count, ..self }
    }

    pub(super) fn enter(&mut self, verdict: Verdict) {
        let counter = match verdict {
            Verdict::Pass(_) => &mut self.passed,
            Verdict::Learned(_) => {
                self.passed += 1;
                &mut self.learned
            }
            Verdict::Unknown => &mut self.unknown,
            Verdict::OutOfRange => &mut self.out_of_range,
            Verdict::Used => &mut self.used,
            Verdict::Far => &mut self.far,
        };
        *counter += 1;
    }
}

/// One peer as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerReport {
    /// Who.
    pub address: IpAddr,
    /// The epoch that is sent under, and those that are taken; none if the peer has no shield.
    pub epochs: Option<(u32, Vec<u32>)>,
    /// Associations that are known.
    pub known: usize,
    /// Its packets.
    pub counters: PeerCounters,
}

/// Something for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An association of a peer with a shield is known from now on.
    SpiLearned {
        /// Whose.
        peer: IpAddr,
        /// The real one.
        spi: u32,
    },
}
