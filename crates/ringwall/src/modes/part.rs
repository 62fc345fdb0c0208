//! What a daemon says of itself, in parts: each brings its lines, what is wrong, and its metrics, so
//! the command line, the verdict and the metrics render parts of modes that they do not know.

use std::collections::BTreeMap;

use crate::metrics::family::Families;
use crate::protocol::attacks::Attacks;
use crate::verdict::{Findings, Verdict};

/// One part of a host's `status`.
pub(crate) trait Part {
    /// What `ringwall status` prints of it.
    fn lines(&self) -> Vec<String>;

    /// Whether it is told before who the host is: how far it is protected at all.
    fn comes_first(&self) -> bool {
        false
    }

    /// Whether the host is not protected because of it.
    fn weakens(&self) -> bool {
        false
    }

    /// Enters what is wrong.
    fn judge(&self, _found: &mut Findings) {}

    /// Enters its samples.
    fn measure(&self, _families: &mut Families) {}
}

/// What one daemon says of itself: the answer to `status`.
pub(crate) trait Account {
    /// The interface that the daemon is called by.
    fn interface(&self) -> &str;

    /// The version of its program.
    fn version(&self) -> &str;

    /// The word of its mode.
    fn mode(&self) -> &'static str;

    fn attacks(&self) -> &Attacks;

    /// Counters of its ports.
    fn ports(&self) -> &BTreeMap<String, u64>;

    /// What `ringwall status` prints below verdict and attacks.
    fn lines(&self) -> Vec<String>;

    fn verdict(&self) -> Verdict;

    /// Enters the samples that only daemons of its kind have.
    fn measure(&self, families: &mut Families);

    fn json(&self) -> serde_json::Result<serde_json::Value>;
}

/// Whom one daemon knows: the answer to `peers`.
pub(crate) trait Known {
    /// What `ringwall peers` prints: a row each, below the names of the columns.
    fn lines(&self) -> Vec<String>;

    fn json(&self) -> serde_json::Result<String>;

    /// Enters its samples, as of this time.
    fn measure(&self, _families: &mut Families, _unix_s: u64) {}
}

/// Counts that are not zero, one a line.
pub(crate) fn count_lines(counts: &BTreeMap<String, u64>) -> impl Iterator<Item = String> + '_ {
    counts.iter().filter(|(_, count)| **count > 0).map(|(name, count)| format!("  {count:>10}  {name}"))
}

/// Until when a lease lasts.
pub(super) fn lease_end(remaining_s: Option<u64>) -> String {
    remaining_s.map_or_else(|| "for ever".to_owned(), |seconds| format!("{seconds} s left"))
}
