//! Connections that are over, for whoever keeps a record of each: as many as are asked for, and how
//! many more there were.

use std::time::Duration;

use bump::Side;

use crate::tcp::class::Class;
use crate::tcp::flow::{Ending, Flow, State};
use crate::tcp::key::FlowId;

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// Both hosts ended it, and each acknowledged that.
    Closed,
    /// A host reset it.
    Reset,
    /// It was silent for as long as its state allows.
    Silent,
    /// It made room for another one in a full table.
    Evicted,
    /// Another one began between the same ports.
    Reused,
    /// A rule ended it.
    Severed,
    /// An operator ended it.
    Blocked,
}

impl Over {
    /// The word in records; those that Suricata has for the same are its own.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Over::Closed => "closed",
            Over::Reset => "reset",
            Over::Silent => "timeout",
            Over::Evicted => "evicted",
            Over::Reused => "tcp_reuse",
            Over::Severed => "severed",
            Over::Blocked => "blocked",
        }
    }
}

/// How far a connection came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// Its handshake was not completed.
    New,
    /// It stood.
    Established,
    /// It was closed, by its hosts or by the scrubber.
    Closed,
}

/// A connection that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowEnd {
    /// Who.
    pub flow: FlowId,
    /// The side that began it, as far as is known.
    pub opened_by: Side,
    /// When it began here and when it was seen last, in whole seconds since boot.
    pub opened: Duration,
    /// See `opened`.
    pub last_seen: Duration,
    /// Packets forwarded, from the trusted and from the untrusted side.
    pub packets: [u32; 2],
    /// Bytes of data forwarded, from the trusted and from the untrusted side.
    pub bytes: [u64; 2],
    /// How far it came.
    pub came: Came,
    /// Why it is over.
    pub over: Over,
}

/// Those that nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct Ends {
    max: usize,
    waiting: Vec<FlowEnd>,
    left_out: u64,
}

impl Ends {
    /// `flow` is over.
    pub(crate) fn enter(&mut self, flow: &Flow, last_seen: u32, over: Over) {
        if self.waiting.len() >= self.max {
            self.left_out += u64::from(self.max > 0);
            return;
        }
        let time = |seconds: u32| Duration::from_secs(u64::from(seconds));
        self.waiting.push(FlowEnd {
            flow: flow.key.id(),
            opened_by: flow.opened_by,
            opened: time(flow.opened),
            last_seen: time(last_seen),
            packets: flow.packets,
            bytes: flow.bytes.both(),
            came: came(flow.state.class()),
            over,
        });
    }

    /// Those that wait, and how many there ever were beside those that could; from now on at most
    /// `max` wait.
    pub(crate) fn take(&mut self, max: usize) -> (Vec<FlowEnd>, u64) {
        self.max = max;
        (std::mem::take(&mut self.waiting), self.left_out)
    }
}

fn came(class: Class) -> Came {
    match class {
        Class::HalfOpen => Came::New,
        Class::Established | Class::Closing => Came::Established,
        Class::Closed | Class::Ended | Class::Blocked => Came::Closed,
    }
}

/// Why a connection is over whose state says so.
pub(crate) fn over(state: &State) -> Over {
    match state {
        State::Ended(Ending::Expired { .. }) => Over::Silent,
        State::Ended(Ending::Severed | Ending::Older) => Over::Severed,
        State::Ended(Ending::Blocked { .. }) => Over::Blocked,
        State::Established(established) if established.halves.iter().any(|half| half.is_reset) => Over::Reset,
        _ => Over::Closed,
    }
}
