//! News for the operator from the TCP stage: bounded, and of each kind at most one in a while.

use std::collections::VecDeque;
use std::time::Duration;

use bump::Instant;

use crate::limits::EVENTS_MAX;
use crate::rule::Rule;
use crate::settings::Network;
use crate::tcp::key::FlowId;

/// Something worth telling an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A rule ended a flow.
    Severed {
        /// The rule.
        rule: Rule,
        /// The flow.
        flow: FlowId,
    },
    /// Segments show that others of their connection took another path; the scrubber needs to be
    /// the only one (the paper's
    /// section IV-A).
    AsymmetricPath {
        /// The connection that showed it.
        flow: FlowId,
    },
    /// New connections are refused: the table is full of established ones.
    FlowsFull,
    /// A host or a network holds as many connections as it may, and its new ones are refused.
    SourceFull {
        /// Which.
        source: Network,
    },
    /// A host or a network holds as much memory for unacknowledged data as it may; what it would need
    /// more for is dropped.
    SourceMemoryFull {
        /// Which.
        source: Network,
    },
    /// Connections that are older than the scrubber were ended for both sides.
    OlderEnded {
        /// How many since it began.
        count: u64,
    },
    /// Untrusted hosts begin many connections and do not complete them. They have to show that they
    /// receive before another begins.
    ValidatesAddresses {
        /// How many, within half a minute.
        requests: u32,
    },
    /// A segment was dropped because there is no memory for unacknowledged data.
    MemoryFull {
        /// The connection that met it.
        flow: FlowId,
    },
}

/// Least time between two events of a kind that a stranger can cause at will.
const EVENT_INTERVAL: Duration = Duration::from_secs(10);

/// Kinds whose rate is limited.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    AsymmetricPath,
    FlowsFull,
    SourceFull,
    SourceMemoryFull,
    ValidatesAddresses,
    OlderEnded,
    MemoryFull,
}

/// Events that wait for whoever drains them; the oldest goes when nobody does.
#[derive(Debug, Default)]
pub(crate) struct Events {
    waiting: VecDeque<Event>,
    last: [Option<Instant>; Kind::MemoryFull as usize + 1],
    /// Holes that were acknowledged and never filled here, and their bytes.
    missing: (u64, u64),
    /// Connections older than the scrubber that were ended, and how many of them were told.
    older: (u64, u64),
}

impl Events {
    pub(crate) fn report(&mut self, event: Event) {
        if self.waiting.len() == EVENTS_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(event);
    }

    /// Reports `event` unless one of its kind was reported a moment ago.
    pub(crate) fn report_rarely(&mut self, now: Instant, kind: Kind, event: Event) {
        let last = &mut self.last[kind as usize];
        if last.is_none_or(|last| now.since(last) >= EVENT_INTERVAL) {
            *last = Some(now);
            self.report(event);
        }
    }

    /// Counts a connection older than the scrubber that was ended.
    pub(crate) fn count_older(&mut self, now: Instant) {
        self.older.0 += 1;
        self.tell_older(now);
    }

    /// Tells of those that are not told yet, unless some were a moment ago.
    pub(crate) fn tell_older(&mut self, now: Instant) {
        if self.deadline().is_some_and(|deadline| deadline <= now) {
            let count = self.older.0;
            self.older.1 = count;
            self.report_rarely(now, Kind::OlderEnded, Event::OlderEnded { count });
        }
    }

    /// When [`tell_older`](Events::tell_older) next has something to tell.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let last = self.last[Kind::OlderEnded as usize];
        let earliest = last.map_or(Instant::default(), |last| last + EVENT_INTERVAL);
        (self.older.0 > self.older.1).then_some(earliest)
    }

    /// Counts a hole of `len` bytes whose bytes a host has and the scrubber never saw.
    pub(crate) fn count_missing(&mut self, len: u32) {
        self.missing = (self.missing.0 + 1, self.missing.1 + u64::from(len));
    }

    /// Holes that were acknowledged and never filled here, and their bytes.
    pub(crate) fn missing(&self) -> (u64, u64) {
        self.missing
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.waiting.pop_front()
    }
}
