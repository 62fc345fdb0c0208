//! What a gateway's supervisor and its scrubber say to each other.

use std::convert::Infallible;
use std::net::IpAddr;

use pair::NotNow;
use scrub::{FlowId, FlowReport};

use super::ended::Ended;
use super::paired::report::PairReport;
use crate::daemon::{Kind, Reply};

/// A daemon with a scrubber, or with the null bump in its place.
pub(crate) struct Scrubbed;

impl Kind for Scrubbed {
    type Order = Order;
    /// Nothing is known where nothing is scrubbed.
    type Report = Option<Box<Scrubbing>>;
    type Effect = Infallible;
}

/// What a scrubber did.
#[derive(Clone, Debug)]
pub(crate) struct Scrubbing {
    /// How often each rule acted.
    pub(crate) counters: scrub::rule::Counters,
    /// What its mirror was given, if it has one.
    pub(crate) mirror: Option<MirrorCounters>,
    /// How the pair is, if it is one of two.
    pub(crate) pair: Option<PairReport>,
    /// What became of segments that had to wait after a takeover.
    pub(crate) waits: scrub::Waits,
    /// Connections that are remembered.
    pub(crate) flows: scrub::FlowCounts,
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

/// An order to the scrubber.
pub(crate) enum Order {
    /// List the connections that are asked for.
    ListFlows(Wanted, Reply<Vec<FlowReport>>),
    /// Hand over the connections that are over, and keep at most so many until the next time.
    TakeEnded(usize, Reply<Ended>),
    /// Block a connection, and say whether that changed anything.
    Block(Blocking, Reply<Result<bool, OnStandby>>),
    /// What only a gateway of a pair does.
    Pair(PairOrder),
}

/// The other gateway of the pair forwards, so it must be told.
pub(crate) struct OnStandby;

/// What the supervisor has a gateway of a pair do.
pub(crate) enum PairOrder {
    /// These messages came on the sync link.
    Hear(Vec<Vec<u8>>),
    /// These cards have a link.
    Cards(pair::Cards),
    /// The other gateway is to take over.
    HandOver(Reply<Result<(), NotNow>>),
}

/// Which connections are asked for.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// At most so many.
    pub(crate) limit: usize,
    /// Of this host.
    pub(crate) address: Option<IpAddr>,
    /// In this state.
    pub(crate) state: Option<String>,
}

impl Wanted {
    /// Whether the connection is among them.
    pub(crate) fn takes(&self, report: &FlowReport) -> bool {
        let FlowId { trusted, untrusted, .. } = report.flow;
        self.address.is_none_or(|address| trusted.ip() == address || untrusted.ip() == address)
            && self.state.as_ref().is_none_or(|state| report.state == state)
    }
}

/// A connection to block.
#[derive(Clone, Debug)]
pub(crate) struct Blocking {
    pub(crate) flow: FlowId,
    pub(crate) wish: Wish,
}

/// What is to become of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Block,
    /// To block it if it is remembered; another one does not begin to be.
    BlockRemembered,
    Unblock,
}
