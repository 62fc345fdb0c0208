//! The bump: every frame through the stages, in order.

use std::collections::VecDeque;
use std::convert::Infallible;

use bump::sink::Collected;
use bump::{Batch, Bump, DropReason, Fate, Frame, Instant, Ledger, Now, Side, Sink, Ticket};
use wire::layer::protocol;

use crate::context::Context;
use crate::exchange::Exchanges;
use crate::fingerprint::Fingerprint;
use crate::icmp::pace::{Delayed, Departure, Pace};
use crate::keys::{Key, Keys};
use crate::packet::{self, Packet, Transport};
use crate::rule::{Counters, Rule};
use crate::settings::Settings;
use crate::{emit, ethernet, icmp, ip, opaque, udp};

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
    stages: Stages,
    delayed: Delayed,
    counters: Counters,
    ledger: Ledger,
    events: VecDeque<Event>,
}

impl Scrubber {
    /// A scrubber that does what `settings` say.
    #[must_use]
    pub fn new(settings: Settings, keys: Keys) -> Scrubber {
        Scrubber {
            stages: Stages::new(&settings, &keys),
            settings,
            delayed: Delayed::default(),
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
            emit::other(&link, rest, frame.meta, from.other(), sink)?;
            return Ok(Fate::Forwarded);
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
        let departure = self.stages.transport(context, &mut packet)?;
        self.stages.fingerprint.rewrite(context, from.other(), &mut packet);
        match departure {
            Departure::Now => emit::whole(&packet, from.other(), sink).map(|()| Fate::Forwarded),
            Departure::At(at) => {
                let mut frames = Collected::new();
                emit::whole(&packet, from.other(), &mut frames)?;
                self.delayed.hold(at, from, frames.take())
            }
        }
    }
}

/// What the stages behind the network layer remember from one packet to the next.
#[derive(Debug)]
struct Stages {
    exchanges: Exchanges,
    pace: Pace,
    fingerprint: Fingerprint,
}

impl Stages {
    fn new(settings: &Settings, keys: &Keys) -> Stages {
        let tables = Key::new(&keys.tables);
        Stages {
            exchanges: Exchanges::new(settings, &tables),
            pace: Pace::new(settings, &tables),
            fingerprint: Fingerprint::new(&Key::new(&keys.identification)),
        }
    }

    /// The transport stage, by protocol.
    fn transport(&mut self, context: &mut Context<'_>, packet: &mut Packet<'_>) -> Result<Departure, DropReason> {
        match packet.ip.protocol() {
            protocol::TCP => {}
            protocol::UDP => udp::scrub(context, packet, &mut self.exchanges)?,
            _ if icmp::is_icmp(packet) => {
                let segments = &mut |_: &mut Context<'_>, _: &icmp::quote::Quote, _: &mut [u8]| true;
                return icmp::scrub(context, packet, &mut self.exchanges, segments, &mut self.pace);
            }
            _ => opaque::scrub(context, packet, &mut self.exchanges)?,
        }
        Ok(Departure::Now)
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

    fn tick(&mut self, now: Now, budget: usize, sink: &mut dyn Sink) {
        self.delayed.release(now.since_boot, budget, sink, &mut self.ledger);
    }

    fn deadline(&self) -> Option<Instant> {
        self.delayed.deadline()
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
