//! What a run came to, in any world.

use std::fmt;

use bump::{Instant, Ledger};

use super::agenda::START;

/// Violations that are kept; the rest is counted.
const KEPT_MAX: usize = 20;

/// An invariant that did not hold.
#[derive(Clone, Debug)]
pub struct Violation {
    /// When, on the simulated clock.
    pub at: Instant,
    /// At which host.
    pub host: usize,
    /// Which one.
    pub rule: &'static str,
    /// What was seen.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.at.since(START).as_secs_f64();
        write!(f, "{seconds:.6} s, host {}: {}: {}", self.host, self.rule, self.detail)
    }
}

/// All violations of a run.
#[derive(Clone, Debug, Default)]
pub struct Violations {
    /// Those that were kept.
    pub kept: Vec<Violation>,
    /// All of them.
    pub count: u64,
}

impl Violations {
    /// Enters one more.
    pub fn add(&mut self, violation: Violation) {
        self.count += 1;
        if self.kept.len() < KEPT_MAX {
            self.kept.push(violation);
        }
    }
}

/// What a run came to.
pub struct Report {
    /// What the seed drew.
    pub summary: String,
    /// Hash over every event and frame.
    pub hash: [u8; 32],
    /// How many things happened.
    pub events: u64,
    /// Frames that were delivered and were right.
    pub deliveries: u64,
    /// How often keys were replaced through an association.
    pub renewals: u64,
    /// What did not hold.
    pub violations: Violations,
    /// The books of all bumps together.
    pub ledger: Ledger,
}
