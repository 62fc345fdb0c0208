//! Hosts that reassemble fragments, as they are described by those who measured them: U. Shankar and V. Paxson, "Active
//! Mapping" (2003), and J. Novak, "Target-Based Fragmentation Reassembly" (2005). Written from these descriptions and from
//! nothing of the scrubber. Each policy says which of two overlapping fragments a host prefers for the bytes they share.
#![allow(dead_code, reason = "not every test uses all of it")]

use std::ops::Range;

/// Which of two versions of a byte a host takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Always the older.
    First,
    /// Always the newer.
    Last,
    /// The older, if it begins no later than the newer.
    Bsd,
    /// The newer, if the older begins no later: HP JetDirect.
    BsdRight,
    /// The older, if it begins before the newer.
    Linux,
    /// The newer, if it begins before the older and ends behind it.
    Windows,
    /// The newer, if it begins before the older and ends with it or behind it.
    Solaris,
}

impl Policy {
    pub(crate) const ALL: [Policy; 7] =
        [Policy::First, Policy::Last, Policy::Bsd, Policy::BsdRight, Policy::Linux, Policy::Windows, Policy::Solaris];

    fn takes_newer(self, older: &Range<usize>, newer: &Range<usize>) -> bool {
        match self {
            Policy::First => false,
            Policy::Last => true,
            Policy::Bsd => older.start > newer.start,
            Policy::BsdRight => older.start <= newer.start,
            Policy::Linux => older.start >= newer.start,
            Policy::Windows => newer.start < older.start && newer.end > older.end,
            Policy::Solaris => newer.start < older.start && newer.end >= older.end,
        }
    }
}

/// A fragment as a host sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    pub(crate) offset: usize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) more: bool,
}

/// What a host has of one packet.
#[derive(Debug)]
pub(crate) struct Host {
    policy: Policy,
    /// Disjoint parts with their bytes.
    parts: Vec<(Range<usize>, Vec<u8>)>,
    end: Option<usize>,
}

impl Host {
    pub(crate) fn new(policy: Policy) -> Host {
        Host { policy, parts: Vec::new(), end: None }
    }

    /// Takes one more fragment; gives the packet once there is every byte up to its end.
    pub(crate) fn take(&mut self, fragment: &Fragment) -> Option<Vec<u8>> {
        let newer = fragment.offset..fragment.offset + fragment.bytes.len();
        if !fragment.more && (self.end.is_none() || self.policy == Policy::Last) {
            self.end = Some(newer.end);
        }
        let mut is_taken = vec![true; fragment.bytes.len()];
        let mut parts = Vec::new();
        for (older, bytes) in self.parts.drain(..) {
            let shared = older.start.max(newer.start)..older.end.min(newer.end);
            if shared.is_empty() {
                parts.push((older, bytes));
            } else if self.policy.takes_newer(&older, &newer) {
                for rest in [older.start..shared.start, shared.end..older.end] {
                    let kept = bytes[rest.start - older.start..rest.end - older.start].to_vec();
                    parts.push((rest, kept));
                }
            } else {
                is_taken[shared.start - newer.start..shared.end - newer.start].fill(false);
                parts.push((older, bytes));
            }
        }
        let runs = is_taken.chunk_by(|a, b| a == b).scan(0, |at, run| {
            let start = *at;
            *at += run.len();
            Some((start..*at, run[0]))
        });
        for (run, _) in runs.filter(|(_, is_taken)| *is_taken) {
            parts.push((newer.start + run.start..newer.start + run.end, fragment.bytes[run].to_vec()));
        }
        parts.retain(|(range, _)| !range.is_empty());
        parts.sort_by_key(|(range, _)| range.start);
        self.parts = parts;
        self.whole()
    }

    fn whole(&self) -> Option<Vec<u8>> {
        let end = self.end?;
        let mut whole = Vec::new();
        for (range, bytes) in &self.parts {
            if range.start != whole.len() {
                break;
            }
            whole.extend(bytes);
        }
        (whole.len() >= end).then(|| whole[..end].to_vec())
    }
}

/// Everything that a host with `policy` reads from `fragments`, all of one packet.
pub(crate) fn read(policy: Policy, fragments: &[Fragment]) -> Vec<Vec<u8>> {
    let mut host = Host::new(policy);
    let mut read = Vec::new();
    for fragment in fragments {
        if let Some(whole) = host.take(fragment) {
            read.push(whole);
            host = Host::new(policy);
        }
    }
    read
}
