//! The bump: every frame through the stages, in order.

use std::collections::VecDeque;
use std::convert::Infallible;

use bump::{Batch, Bump, DropReason, Fate, Frame, Instant, Ledger, Now, Side, Sink, Ticket, sink};

use crate::context::Context;
use crate::keys::Keys;
use crate::packet::{self, Packet, Transport};
use crate::rule::{Counters, Rule};
use crate::settings::Settings;
use crate::tcp::{FlowId, FlowReport, Flows};
use crate::{emit, ethernet, ip};

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
    /// Segments show that others of their connection took another path; the scrubber needs to be the only one (the paper's
    /// section IV-A).
    AsymmetricPath {
        /// The connection that showed it.
        flow: FlowId,
    },
    /// New connections are refused: the table is full of established ones.
    FlowsFull,
    /// A segment was dropped because there is no memory for unacknowledged data.
    MemoryFull {
        /// The connection that met it.
        flow: FlowId,
    },
}

/// A scrubber between two sides.
#[derive(Debug)]
pub struct Scrubber {
    settings: Settings,
    keys: Keys,
    counters: Counters,
    ledger: Ledger,
    events: VecDeque<Event>,
    flows: Flows,
}

impl Scrubber {
    /// A scrubber that does what `settings` say.
    #[must_use]
    pub fn new(settings: Settings, keys: Keys) -> Scrubber {
        let flows = Flows::new(&settings, &keys);
        Scrubber {
            flows,
            settings,
            keys,
            counters: Counters::default(),
            ledger: Ledger::new(),
            events: VecDeque::new(),
        }
    }

    /// How often each rule acted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Every TCP connection, as it stands at `now`.
    pub fn flows(&self, now: Instant) -> impl Iterator<Item = FlowReport> {
        self.flows.reports(now)
    }

    /// Bytes of memory that connections hold for unacknowledged data.
    #[must_use]
    pub fn retained_bytes(&self) -> usize {
        self.flows.retained_bytes()
    }

    /// Blocks a TCP connection: it ends for both sides at its next segment, and none begins in its place. False if as many are
    /// blocked as may be ([`BLOCKED_MAX`](crate::limits::BLOCKED_MAX)).
    pub fn block(&mut self, now: Instant, flow: &FlowId) -> bool {
        self.flows.block(now, flow)
    }

    /// Lets a blocked connection begin again. False if it was not blocked.
    pub fn unblock(&mut self, flow: &FlowId) -> bool {
        self.flows.unblock(flow)
    }

    /// Takes one frame through all stages.
    fn scrub(
        &mut self,
        now: Instant,
        from: Side,
        frame: &mut Frame<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Fate, DropReason> {
        let context = &mut Context::new(now, from, &self.settings, &mut self.counters);
        let (link, rest) = ethernet::read(context, frame.bytes, &frame.meta)?;
        if !link.is_ip() {
            let is_copied = sink::copy(sink, from.other(), frame.bytes, frame.meta);
            return if is_copied { Ok(Fate::Forwarded) } else { Err(DropReason::PortFull) };
        }
        let (ip, start, payload) = ip::read(context, link.ethertype, rest)?;
        let mut packet = Packet {
            link,
            ip,
            transport: Transport::Bytes(payload),
            checksum: packet::behind(frame.meta.checksum, link.header.len() + start),
            gso: frame.meta.gso,
            longest_fragment: None,
        };
        let judged = self.flows.scrub(context, &mut packet).and_then(|()| emit::whole(&packet, from.other(), sink));
        emit::made(self.flows.made(), &packet.link, from, &mut self.ledger, sink);
        judged.map(|()| Fate::Forwarded)
    }
}

impl Bump for Scrubber {
    type Job = Infallible;
    type Completion = Infallible;
    type Effect = Infallible;
    type Event = Event;

    fn process(&mut self, now: Now, from: Side, batch: &mut dyn Batch, sink: &mut dyn Sink) {
        while let Some(mut frame) = batch.next_frame() {
            self.ledger.receive(from);
            let fate = self.scrub(now.since_boot, from, &mut frame, sink).unwrap_or_else(Fate::Dropped);
            self.ledger.settle(now.since_boot, from, fate, frame.bytes);
        }
    }

    fn complete(&mut self, _now: Now, _ticket: Ticket, completion: Infallible, _sink: &mut dyn Sink) {
        match completion {}
    }

    fn tick(&mut self, now: Now, budget: usize, _sink: &mut dyn Sink) {
        self.flows.tick(now.since_boot, budget);
    }

    fn deadline(&self) -> Option<Instant> {
        self.flows.deadline()
    }

    fn next_job(&mut self) -> Option<(Ticket, Infallible)> {
        None
    }

    fn next_effect(&mut self) -> Option<Infallible> {
        None
    }

    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front().or_else(|| self.flows.next_event())
    }

    fn add_to_ledger(&self, total: &mut Ledger) {
        total.add(&self.ledger);
    }
}
