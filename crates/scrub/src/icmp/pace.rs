//! When ICMP of trusted hosts leaves: hosts limit the rate of their answers each in its own way, so all are made to keep one
//! pace, or to wait for a time that says nothing (the paper's section IV-B4).

use std::collections::BTreeMap;
use std::time::Duration;

use bump::{DropReason, Fate, Instant, Ledger, Meta, Side, Sink, sink};
use wire::icmp::PROTOCOL_V4;

use super::kind::Kind;
use crate::context::Context;
use crate::departure::Departure;
use crate::keys::{Key, Subject};
use crate::lately::Lately;
use crate::limits;
use crate::packet::Packet;
use crate::rule::Rule;
use crate::settings::{IcmpTiming, Settings};

/// What the key is asked for here.
const PAIR: u8 = 2;
const DELAY: u8 = 3;

/// The pace of all pairs of hosts.
#[derive(Debug)]
pub(crate) struct Pace {
    key: Key,
    /// When a message of a pair last left.
    left: Lately<()>,
    /// Messages that were given a time, so that no two are given the same for one reason.
    delayed: u64,
}

impl Pace {
    pub(crate) fn new(settings: &Settings, key: &Key) -> Pace {
        let interval = match settings.icmp {
            IcmpTiming::Limit(interval) => interval,
            IcmpTiming::Jitter(_) => Duration::ZERO,
        };
        Pace { key: key.clone(), left: Lately::new(limits::ICMP_PAIRS_MAX, interval), delayed: 0 }
    }

    /// When this message may leave. Neighbour discovery and group management do not wait, or whole networks would.
    pub(crate) fn departure(
        &mut self,
        context: &mut Context<'_>,
        packet: &Packet<'_>,
        kind: Kind,
    ) -> Result<Departure, DropReason> {
        let is_paced = match kind {
            Kind::EchoReply | Kind::Error(_) => true,
            Kind::EchoRequest => context.on(Rule::IcmpRequestRate),
            Kind::Other => context.on(Rule::IcmpRequestRate) && packet.ip.protocol() == PROTOCOL_V4,
            Kind::Neighbour => false,
        };
        if !is_paced || context.from != Side::TRUSTED || !context.on(Rule::IcmpRate) {
            return Ok(Departure::Now);
        }
        match context.settings.icmp {
            IcmpTiming::Limit(_) => self.limit(context, packet),
            IcmpTiming::Jitter(most) => Ok(self.jitter(context, most)),
        }
    }

    /// Only what leaves moves the clock, so that a faster sender gets through at the least interval that fits.
    fn limit(&mut self, context: &mut Context<'_>, packet: &Packet<'_>) -> Result<Departure, DropReason> {
        let pair = self.key.place(&Subject::new(PAIR).between(packet.ip.source(), packet.ip.destination()));
        let is_early = self.left.get(context.now, pair).is_some();
        context.refuse_if(is_early, Rule::IcmpRate, DropReason::IcmpRate)?;
        self.left.put(context.now, pair, ());
        Ok(Departure::Now)
    }

    fn jitter(&mut self, context: &mut Context<'_>, most: Duration) -> Departure {
        self.delayed += 1;
        let subject = Subject::new(DELAY).number(self.delayed).number(context.now.as_nanos());
        let most_nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        let nanos = ((u128::from(self.key.number(&subject)) * u128::from(most_nanos)) >> 64) as u64;
        context.acted(Rule::IcmpRate);
        Departure::At(context.now + Duration::from_nanos(nanos))
    }
}

/// A packet that waits, as the frames in which it will leave.
#[derive(Debug)]
struct Waiting {
    from: Side,
    frames: Vec<(Side, Vec<u8>, Meta)>,
}

/// Packets that wait for their time, within a limit of bytes.
#[derive(Debug, Default)]
pub(crate) struct Delayed {
    /// By time of departure, and then by arrival.
    waiting: BTreeMap<(Instant, u64), Waiting>,
    arrived: u64,
    bytes: usize,
}

impl Delayed {
    /// Keeps `frames` of a packet that came from `from` until `at`.
    ///
    /// # Errors
    /// [`DropReason::IcmpRate`] when as much waits as may.
    pub(crate) fn hold(
        &mut self,
        at: Instant,
        from: Side,
        frames: Vec<(Side, Vec<u8>, Meta)>,
    ) -> Result<Fate, DropReason> {
        let bytes = size(&frames);
        if self.bytes + bytes > limits::ICMP_DELAYED_MAX_BYTES {
            return Err(DropReason::IcmpRate);
        }
        self.bytes += bytes;
        self.arrived += 1;
        self.waiting.insert((at, self.arrived), Waiting { from, frames });
        Ok(Fate::Held)
    }

    /// When the next packet leaves.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.waiting.first_key_value().map(|((at, _), _)| *at)
    }

    /// Lets at most `budget` packets go whose time has come, and enters their fates.
    pub(crate) fn release(&mut self, now: Instant, budget: usize, sink: &mut dyn Sink, ledger: &mut Ledger) {
        for _ in 0..budget {
            let Some(next) = self.waiting.first_entry().filter(|next| next.key().0 <= now) else { return };
            let Waiting { from, frames } = next.remove();
            self.bytes -= size(&frames);
            let is_sent = frames.iter().all(|(to, bytes, meta)| sink::copy(sink, *to, bytes, *meta));
            let fate = if is_sent { Fate::Forwarded } else { Fate::Dropped(DropReason::PortFull) };
            let example = frames.first().map_or(&[] as &[u8], |(_, bytes, _)| bytes);
            ledger.release(now, from, fate, example);
        }
    }
}

/// What a waiting packet costs: its bytes, and what surrounds them.
fn size(frames: &[(Side, Vec<u8>, Meta)]) -> usize {
    frames.iter().map(|(_, bytes, _)| bytes.len() + limits::ICMP_DELAYED_OVERHEAD_BYTES).sum()
}
