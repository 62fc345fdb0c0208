//! What outsiders are told of connections: the program's list, and the ICMP stage.

use std::net::IpAddr;
use std::time::Duration;

use bump::Side;

use crate::ethernet::Link;
use crate::tcp::Flows;
use crate::tcp::flow::{Ending, Flow, State};
use crate::tcp::half::Fin;
use crate::tcp::key::{FlowId, Key};
use crate::tcp::serial::ahead;

/// How many connections a scrubber has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// All that are remembered, those included that have just ended.
    pub all: usize,
    /// Those that have not completed their handshake.
    pub half_open: usize,
    /// Whether untrusted hosts have to show that they receive before another begins.
    pub validates_addresses: bool,
    /// What the kernel carries of them.
    pub carried: CarriedFlows,
}

/// What the kernel carries (record 0123).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CarriedFlows {
    /// Connections that it carries now.
    pub flows: usize,
    /// Segments that it has passed on, up to the last look.
    pub segments: u64,
    /// How often a connection was handed over to it.
    pub handed_over: u64,
    /// How often one came back after few segments.
    pub short_stays: u64,
}

/// One connection, for the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowReport {
    /// Who.
    pub flow: FlowId,
    /// Its state in a word or two: what it awaits, or how it ended.
    pub state: &'static str,
    /// Memory that it holds for unacknowledged data, in bytes.
    pub retained_bytes: usize,
    /// Packets forwarded, from the trusted and from the untrusted side.
    pub packets: [u32; 2],
    /// Bytes of data forwarded, from the trusted and from the untrusted side.
    pub bytes: [u64; 2],
    /// How long it has been silent.
    pub idle: Duration,
    /// Whether the kernel carries it.
    pub is_carried: bool,
}

impl Flow {
    /// The report at `now`, in whole seconds since boot.
    pub(crate) fn report(&self, now: u32, is_carried: bool) -> FlowReport {
        FlowReport {
            flow: self.key.id(),
            state: self.state.word(),
            retained_bytes: self.state.retained_bytes(),
            packets: self.packets,
            bytes: self.bytes.both(),
            idle: Duration::from_secs(u64::from(now.saturating_sub(self.last_seen))),
            is_carried,
        }
    }
}

impl State {
    fn word(&self) -> &'static str {
        match self {
            State::AwaitSynAck(_) => "await syn-ack",
            State::AwaitAck(_) => "await ack",
            State::AwaitProof(_) => "await proof",
            State::Established(established) if established.halves.iter().any(|half| half.is_reset) => "reset",
            State::Established(established) => {
                match established.halves.iter().filter(|half| matches!(half.fin, Fin::At(_))).count() {
                    0 => "established",
                    1 => "half closed",
                    _ => "closed",
                }
            }
            State::Ended(Ending::Expired { .. }) => "expired",
            State::Ended(Ending::Older) => "older",
            State::Ended(Ending::Severed) => "severed",
            State::Ended(Ending::Blocked { .. }) => "blocked",
        }
    }

    fn retained_bytes(&self) -> usize {
        let State::Established(established) = self else { return 0 };
        established
            .halves
            .iter()
            .filter_map(|half| half.store.bytes.as_ref())
            .map(|retained| retained.memory_len())
            .sum()
    }
}

/// A segment that an ICMP error quotes, as the host that reports it saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quoted<'a> {
    /// The side that the error came from.
    pub(crate) from: Side,
    /// The link header of the error.
    pub(crate) link: &'a Link<'a>,
    /// Addresses and ports of the quoted segment.
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) sequence: u32,
}

/// What is to be added to the numbers of a quoted segment, so that the host that sent it knows it again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QuotedShift {
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    /// To value and echo of the timestamps, where the quote is that long.
    pub(crate) stamp_value: u32,
    pub(crate) stamp_echo: u32,
}

impl Flows {
    /// What is to be added to the numbers of a quoted segment. `None` if there is no such connection or the sequence number is
    /// none that is under way (RFC 5927, section 4.1).
    pub(crate) fn quoted(&self, quoted: &Quoted<'_>) -> Option<QuotedShift> {
        // The quoted segment went the other way than the error.
        let sender = quoted.from.other();
        let (trusted, untrusted, trusted_port, untrusted_port) = match sender {
            Side::TRUSTED => (quoted.source, quoted.destination, quoted.source_port, quoted.destination_port),
            Side::UNTRUSTED => (quoted.destination, quoted.source, quoted.destination_port, quoted.source_port),
        };
        let key = Key { trusted, untrusted, trusted_port, untrusted_port, vlans: quoted.link.vlans() };
        let flow = self.table.get(self.table.find(&key)?)?;
        let shift = match sender {
            Side::TRUSTED => QuotedShift {
                sequence: flow.shift.sequence.wrapping_neg(),
                stamp_value: flow.shift.timestamps.wrapping_neg(),
                ..QuotedShift::default()
            },
            Side::UNTRUSTED => QuotedShift {
                acknowledgement: flow.shift.sequence,
                stamp_echo: flow.shift.timestamps,
                ..QuotedShift::default()
            },
        };
        let carried = self.carriage.under_way(&key, sender);
        let (from, to) = carried.or_else(|| flow.state.under_way(sender))?;
        let sequence = quoted.sequence.wrapping_add(shift.sequence);
        (ahead(sequence, from) >= 0 && ahead(to, sequence) >= 0).then_some(shift)
    }
}

impl State {
    /// The oldest sequence number of `sender` that is not acknowledged, and the next.
    fn under_way(&self, sender: Side) -> Option<(u32, u32)> {
        let only = |next: u32| (next.wrapping_sub(1), next);
        match self {
            State::AwaitSynAck(state) => {
                let (initiator, next) = state.initiator();
                (initiator == sender).then_some(only(next))
            }
            State::AwaitAck(state) => Some(only(state.next()[sender as usize])),
            State::Established(established) => {
                let half = &established.halves[sender as usize];
                Some((half.unacknowledged, half.end))
            }
            State::AwaitProof(_) | State::Ended(_) => None,
        }
    }
}
