//! The bump: every frame through the stages, in order.

use std::collections::VecDeque;
use std::convert::Infallible;

use bump::{Batch, Bump, Checksum, DropReason, Fate, Frame, Instant, Ledger, Now, Side, Sink, Ticket, Torn};

use wire::EtherType;

use crate::carried::Carrier;
use crate::context::Context;
use crate::ethernet::Link;
use crate::ip::fragments::{self, Arrived, Fragments, Whole};
use crate::keys::{Key, Keys};
use crate::neighbours::Neighbours;
use crate::packet::{self, Packet, Transport};
use crate::rule::Counters;
use crate::settings::Settings;
use crate::stages::{Exit, Stages};
use crate::tcp::events::Event;
use crate::tcp::{BadRecord, FlowCounts, FlowEnd, FlowId, FlowReport, Parked, Told, Waits};
use crate::{emit, ethernet, ip};

/// A scrubber between two sides.
#[derive(Debug)]
pub struct Scrubber {
    settings: Settings,
    counters: Counters,
    ledger: Ledger,
    fragments: Fragments,
    neighbours: Neighbours,
    stages: Stages,
}

impl Scrubber {
    /// A scrubber that does what `settings` say.
    #[must_use]
    pub fn new(settings: Settings, keys: Keys) -> Scrubber {
        Scrubber {
            neighbours: Neighbours::new(Key::new(&keys.tables)),
            fragments: Fragments::new(settings.memory_max_bytes, Key::new(&keys.tables)),
            stages: Stages::new(&settings, &keys),
            settings,
            counters: Counters::default(),
            ledger: Ledger::new(),
        }
    }

    /// The links carry packets of `mtu` bytes from now on.
    pub fn set_mtu(&mut self, mtu: usize) {
        self.stages.flows.take_all_back();
        self.settings.mtu = mtu;
    }

    /// Has a program in the kernel carry clean segments of established connections from now on, by the
    /// memory that is shared with it. Nothing is carried where the program would not do
    /// [what the rules say](Settings::may_be_carried).
    pub fn carry_by(&mut self, carrier: Carrier) {
        self.stages.flows.carriage.begin(carrier);
    }

    /// How often each rule acted.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Memory that waiting fragments take, in bytes.
    #[must_use]
    pub fn fragments_memory_bytes(&self) -> usize {
        self.fragments.memory()
    }

    /// Every TCP connection, as it stands at `now`.
    pub fn flows(&self, now: Instant) -> impl Iterator<Item = FlowReport> {
        self.stages.flows.reports(now)
    }

    /// Holes in connections that a host has acknowledged and that were never filled here, and their bytes; only where
    /// [`misses_segments`](crate::Settings::misses_segments) is set.
    #[must_use]
    pub fn missing(&self) -> (u64, u64) {
        self.stages.flows.missing()
    }

    /// How many TCP connections there are at `now`.
    #[must_use]
    pub fn flow_counts(&self, now: Instant) -> FlowCounts {
        self.stages.flows.counts(now)
    }

    /// Bytes of memory that connections hold for unacknowledged data.
    #[must_use]
    pub fn retained_bytes(&self) -> usize {
        self.stages.flows.memory.used()
    }

    /// Bytes of memory that wait to be used again for unacknowledged data; with [`retained_bytes`](Scrubber::retained_bytes)
    /// never more than [`memory_max_bytes`](crate::Settings::memory_max_bytes).
    #[must_use]
    pub fn idle_bytes(&self) -> usize {
        self.stages.flows.memory.idle()
    }

    /// What became of segments that had to wait, after a takeover, until their receiver had answered.
    #[must_use]
    pub fn waits(&self) -> Waits {
        self.stages.flows.parking.waits()
    }

    /// Blocks a TCP connection: it ends for both sides at its next segment, and none begins in its place. False if as many are
    /// blocked as may be ([`BLOCKED_MAX`](crate::limits::BLOCKED_MAX)).
    pub fn block(&mut self, now: Instant, flow: &FlowId) -> bool {
        self.stages.flows.block(now, flow)
    }

    /// Whether a connection is remembered that is not blocked.
    #[must_use]
    pub fn remembers(&self, flow: &FlowId) -> bool {
        self.stages.flows.remembers(flow)
    }

    /// Lets a blocked connection begin again. False if it was not blocked.
    pub fn unblock(&mut self, flow: &FlowId) -> bool {
        self.stages.flows.unblock(flow)
    }

    /// TCP connections that are over since this was called last, and how many more there ever were
    /// than could be kept. Of those that come next `max` are kept.
    pub fn take_ended(&mut self, max: usize) -> (Vec<FlowEnd>, u64) {
        self.stages.flows.take_ended(max)
    }

    /// Remembers from now on which TCP connections change, for [`next_record`](Scrubber::next_record).
    pub fn follow_changes(&mut self) {
        self.stages.flows.follow_changes();
    }

    /// Has [`next_record`](Scrubber::next_record) tell all connections once more.
    pub fn begin_round(&mut self) {
        self.stages.flows.begin_round();
    }

    /// Whether all connections were told since [`begin_round`](Scrubber::begin_round).
    #[must_use]
    pub fn is_round_over(&self) -> bool {
        self.stages.flows.is_round_over()
    }

    /// Appends the record of a connection that changed to `record`, at most 200 bytes: for another
    /// scrubber with the same keys and settings.
    pub fn next_record(&mut self, now: Instant, record: &mut Vec<u8>) -> Told {
        self.stages.flows.next_record(now, record)
    }

    /// Enters the record of another scrubber.
    ///
    /// # Errors
    /// It is no record.
    pub fn take_record(&mut self, now: Instant, record: &[u8]) -> Result<(), BadRecord> {
        self.stages.flows.take_record(now, record, self.settings.both_directions)
    }

    /// Another scrubber goes on with all connections, and tells how they stand.
    pub fn stand_by(&mut self) {
        self.stages.flows.stand_by(self.settings.both_directions);
    }

    /// Takes one frame through all stages.
    fn scrub(
        &mut self,
        now: Instant,
        from: Side,
        frame: &mut Frame<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Fate, DropReason> {
        let Scrubber { settings, counters, fragments, neighbours, stages, ledger } = self;
        let exit = &mut Exit { sink, ledger };
        let context = &mut Context::new(now, from, settings, counters);
        let (link, rest) = ethernet::read(context, frame.bytes, &frame.meta)?;
        if !link.is_ip() {
            if link.ethertype == EtherType::ARP {
                neighbours.hear_arp(context, rest);
            }
            emit::other(&link, rest, frame.meta, from.other(), exit.sink)?;
            return Ok(Fate::Forwarded);
        }
        let (ip, header_len, bytes) = ip::read(context, link.ethertype, rest)?;
        ip::agree_with_link(context, &link, &ip)?;
        neighbours.hear_ip(context, &ip, bytes);
        neighbours.hop_limit_floor(context, &ip, bytes)?;
        let checksum = packet::behind(frame.meta.checksum, link.header.len() + header_len);
        let gso = frame.meta.gso;
        if let Some(part) = ip.fragment().filter(|_| context.on(fragments::rule(&ip))) {
            // A super-frame is cut where its packets begin, so it is none in which a packet continues.
            let arrived = Arrived { ip, part, header_len, bytes };
            return if gso.is_some() {
                Err(DropReason::BadSuperFrame)
            } else {
                fragment(context, fragments, stages, link, arrived, exit)
            };
        }
        let transport = Transport::Bytes(bytes);
        stages.run(context, Packet { link, ip, transport, checksum, gso, longest_fragment: None }, exit)
    }

    /// Takes up the frames that waited for what the latest one said. They are in the books already,
    /// as the questions that they became. What goes on may be the word for which the other half
    /// waits; what follows from that waits nowhere again.
    fn resume(&mut self, now: Instant, sink: &mut dyn Sink) {
        let mut waiting = VecDeque::from(self.stages.flows.parking.take_answered());
        while let Some(parked) = waiting.pop_front() {
            let went_on = self.judge_parked(now, parked, sink);
            let parking = &mut self.stages.flows.parking;
            parking.settle(went_on);
            waiting.extend(parking.take_answered());
        }
    }

    /// Has frames that wait become questions once more.
    fn ask_again(&mut self, now: Instant, sink: &mut dyn Sink) {
        for parked in self.stages.flows.parking.look(now) {
            self.judge_parked(now, parked, sink);
            self.resume(now, sink);
        }
    }

    /// Judges a frame that waited as if it came now; whether it, or a question in its place, went on.
    fn judge_parked(&mut self, now: Instant, parked: Parked, sink: &mut dyn Sink) -> bool {
        let Parked { from, mut bytes, meta, .. } = parked;
        self.stages.flows.put_down();
        let fate = self.scrub(now, from, &mut Frame { bytes: &mut bytes, meta }, sink);
        self.stages.flows.put_down_whole();
        if fate == Ok(Fate::Forwarded) {
            self.ledger.make(from.other());
        }
        self.release(now);
        fate == Ok(Fate::Forwarded)
    }

    /// Enters in the books what became of frames that were held.
    fn release(&mut self, now: Instant) {
        while let Some(ended) = self.fragments.next_ended() {
            for _ in 0..ended.frames {
                self.ledger.release(now, ended.from, ended.fate, &ended.head);
            }
        }
    }
}

/// Takes a fragment in, and the packet through all further stages once it is whole.
fn fragment(
    context: &mut Context<'_>,
    fragments: &mut Fragments,
    stages: &mut Stages,
    link: Link<'_>,
    arrived: Arrived<'_>,
    exit: &mut Exit<'_>,
) -> Result<Fate, DropReason> {
    let whole = fragments.add(context, &link, arrived)?;
    let Some(Whole { ip, payload, longest, held }) = whole else { return Ok(Fate::Held) };
    let packet = Packet {
        link,
        ip,
        transport: Transport::Bytes(payload),
        checksum: Checksum::Unknown,
        gso: None,
        longest_fragment: Some(longest),
    };
    let fate = stages.run(context, packet, exit);
    // Its last frame is no whole packet, and cannot come again alone.
    stages.flows.put_down_whole();
    // If the packet is held once more, its last frame stands for it in the books.
    let of_the_others = if fate == Ok(Fate::Held) { Fate::Consumed } else { fate.unwrap_or_else(Fate::Dropped) };
    fragments.settle(held, of_the_others);
    fate
}

impl Bump for Scrubber {
    type Job = Infallible;
    type Completion = Infallible;
    type Effect = Infallible;
    type Event = Event;

    fn process(&mut self, now: Now, from: Side, batch: &mut dyn Batch, sink: &mut dyn Sink) {
        while let Some(mut frame) = batch.next_frame() {
            self.stages.flows.put_down();
            self.ledger.receive(from);
            let fate = self.scrub(now.since_boot, from, &mut frame, sink).unwrap_or_else(Fate::Dropped);
            self.ledger.settle(now.since_boot, from, fate, frame.bytes);
            self.release(now.since_boot);
            self.stages.flows.parking.park(now.since_boot, from, &frame);
            self.resume(now.since_boot, sink);
        }
    }

    fn complete(&mut self, _now: Now, _ticket: Ticket, completion: Infallible, _sink: &mut dyn Sink) {
        match completion {}
    }

    fn tick(&mut self, now: Now, budget: usize, sink: &mut dyn Sink) {
        self.fragments.expire(now.since_boot, budget);
        self.release(now.since_boot);
        self.ask_again(now.since_boot, sink);
        self.stages.tick(now.since_boot, budget, &mut Exit { sink, ledger: &mut self.ledger });
    }

    /// The first version of some byte may have passed and not be kept: its connection ends, and so
    /// do packets that wait for the rest of their fragments.
    fn mend(&mut self, now: Now, _torn: Torn, _sink: &mut dyn Sink) {
        self.stages.flows.end_torn(now.since_boot);
        self.fragments.end_all(DropReason::InternalError);
        self.release(now.since_boot);
    }

    fn deadline(&self) -> Option<Instant> {
        bump::time::earlier(self.fragments.deadline(), self.stages.deadline())
    }

    fn next_job(&mut self) -> Option<(Ticket, Infallible)> {
        None
    }

    fn next_effect(&mut self) -> Option<Infallible> {
        None
    }

    fn next_event(&mut self) -> Option<Event> {
        self.stages.flows.next_event()
    }

    fn add_to_ledger(&self, total: &mut Ledger) {
        total.add(&self.ledger);
        self.stages.flows.carriage.add_to_ledger(total);
    }
}
