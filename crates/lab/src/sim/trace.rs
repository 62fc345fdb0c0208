//! One hash over everything that happened in a run, so that two runs can be compared by one line.

use bump::Instant;
use identity::hash::sha256;

/// Bytes that are collected before they are folded into the hash.
const BLOCK_BYTES: usize = 64 * 1024;

/// The hash of a run so far.
#[derive(Debug, Default)]
pub struct Trace {
    folded: [u8; 32],
    pending: Vec<u8>,
    events: u64,
}

impl Trace {
    /// Enters that at `at` the thing named `what` happened to `host`, with these bytes.
    pub fn note(&mut self, at: Instant, what: u8, host: usize, bytes: &[u8]) {
        self.events += 1;
        self.pending.extend_from_slice(&at.as_nanos().to_be_bytes());
        self.pending.extend_from_slice(&[what, host as u8]);
        self.pending.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= BLOCK_BYTES {
            self.fold();
        }
    }

    /// How many things happened.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The hash over everything so far.
    pub fn hash(&mut self) -> [u8; 32] {
        self.fold();
        self.folded
    }

    fn fold(&mut self) {
        self.folded = sha256(&[&self.folded, &self.pending]);
        self.pending.clear();
    }
}

/// Bytes as hexadecimal digits.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
