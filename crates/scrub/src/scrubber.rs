//! The bump: every frame through the stages, in order.

use std::collections::VecDeque;
use std::convert::Infallible;

use bump::{Batch, Bump, DropReason, Fate, Frame, Instant, Ledger, Now, Side, Sink, Ticket, sink};

use crate::context::Context;
use crate::keys::Keys;
use crate::packet::{self, Packet, Transport};
use crate::rule::{Counters, Rule};
use crate::settings::Settings;
use crate::{emit, ethernet, ip};

/// Something worth telling an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A rule ended a flow.
    Severed {
        /// The rule.
        rule: Rule,
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
}

impl Scrubber {
    /// A scrubber that does what `settings` say.
    #[must_use]
    pub fn new(settings: Settings, keys: Keys) -> Scrubber {
        Scrubber { settings, keys, counters: Counters::default(), ledger: Ledger::new(), events: VecDeque::new() }
    }

    /// The links carry packets of `mtu` bytes from now on.
    pub fn set_mtu(&mut self, mtu: usize) {
        self.settings.mtu = mtu;
    }

    /// How often each rule acted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
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
        let packet = Packet {
            link,
            ip,
            transport: Transport::Bytes(payload),
            checksum: packet::behind(frame.meta.checksum, link.header.len() + start),
            gso: frame.meta.gso,
            longest_fragment: None,
        };
        emit::whole(&packet, from.other(), sink)?;
        Ok(Fate::Forwarded)
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

    fn tick(&mut self, _now: Now, _budget: usize, _sink: &mut dyn Sink) {}

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn next_job(&mut self) -> Option<(Ticket, Infallible)> {
        None
    }

    fn next_effect(&mut self) -> Option<Infallible> {
        None
    }

    fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    fn add_to_ledger(&self, total: &mut Ledger) {
        total.add(&self.ledger);
    }
}
