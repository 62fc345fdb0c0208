//! A gateway of a pair: the bump that lets frames through only while it is the active one, and
//! tells the other gateway how flows stand.
//!
//! - `frames.rs`: what the two send on the segments; `stations.rs`: whose hardware addresses lie
//!   where, so that switches hear of a takeover
//! - `start.rs`: the key and the socket of the sync link; `told.rs`: what is told; `report.rs`: how
//!   the pair is
//!
//! Who forwards is decided in the room `pair`. The clock is read before each frame, and the machine
//! goes on to it: a gateway that was stopped stands down before it
//! forwards anything (record 0097).

mod frames;
pub(super) mod report;
pub(super) mod start;
mod stations;
mod told;

use std::time::Duration;

use bump::{Batch, Bump, DropReason, Fate, Frame, Instant, Ledger, Meta, Now, Side, Sink, Ticket, Torn, sink, time};
use pair::{Event, Path, Refusal, Role};
use system::clock::Clock;

use super::kind::{OnStandby, Order, PairOrder, Scrubbed, Scrubbing};
use crate::daemon::{Described, Guard};
use crate::protocol::About;
use report::PairReport;
use start::Joined;
use stations::Stations;
pub(super) use told::HasScrubber;
use told::Told;

/// After a takeover stations are announced once more: a switch may not have been ready.
const ANNOUNCED_AGAIN: Duration = Duration::from_millis(500);

/// A bump that forwards while its gateway is the active one.
pub(super) struct Paired<G> {
    bump: G,
    joined: Joined,
    stations: Stations,
    books: Ledger,
    bad_records: u64,
    /// What it did when it was looked at last.
    role: Role,
    announces_at: Option<Instant>,
    /// Read before each frame: the time that comes with a batch is old if the process was stopped
    /// since.
    clock: Clock,
}

/// News of either.
pub(super) enum News<E> {
    Bump(E),
    Pair(Event),
}

/// Nothing leaves.
struct Closed;

impl Sink for Closed {
    fn reserve(&mut self, _to: Side, _capacity: usize) -> Option<&mut [u8]> {
        None
    }

    fn commit(&mut self, _to: Side, _len: usize, _meta: Meta) {}
}

/// Says whether something left on side `to`.
struct Watched<'a> {
    sink: &'a mut dyn Sink,
    to: Side,
    passed: bool,
}

impl Sink for Watched<'_> {
    fn reserve(&mut self, to: Side, capacity: usize) -> Option<&mut [u8]> {
        self.sink.reserve(to, capacity)
    }

    fn commit(&mut self, to: Side, len: usize, meta: Meta) {
        self.passed |= to == self.to;
        self.sink.commit(to, len, meta);
    }
}

fn path_of(side: Side) -> Path {
    if side == Side::TRUSTED { Path::Trusted } else { Path::Untrusted }
}

impl<G: Bump + HasScrubber> Paired<G> {
    pub(super) fn new(mut bump: G, joined: Joined) -> Paired<G> {
        if let Some(scrubber) = bump.scrubber() {
            scrubber.follow_changes();
        }
        Paired {
            bump,
            joined,
            stations: Stations::default(),
            books: Ledger::new(),
            bad_records: 0,
            role: Role::Standby,
            announces_at: None,
            clock: Clock::new(),
        }
    }

    /// Goes on to what the clock says, and gives it.
    fn wake_now(&mut self, sink: &mut dyn Sink) -> Instant {
        let now = self.clock.now().since_boot;
        self.wake(now, sink);
        now
    }

    /// The machine, and what it has told.
    fn parts(&mut self) -> (&mut pair::Pair, Told<'_>) {
        let Paired { bump, joined, stations, bad_records, .. } = self;
        (&mut joined.machine, Told { scrubber: bump.scrubber(), stations, bad_records })
    }

    fn hear(&mut self, now: Instant, path: Path, message: &[u8], sink: &mut dyn Sink) -> Result<(), Refusal> {
        let (machine, mut told) = self.parts();
        let heard = machine.hear(now, path, message, &mut told);
        self.follow(now, sink);
        heard
    }

    /// Goes on to `now`.
    fn wake(&mut self, now: Instant, sink: &mut dyn Sink) {
        self.joined.machine.wake(now);
        self.follow(now, sink);
    }

    /// Tells what is due.
    fn pull(&mut self, now: Instant, sink: &mut dyn Sink) {
        let (machine, mut told) = self.parts();
        machine.pull(now, &mut told);
        self.follow(now, sink);
    }

    /// Carries out what the machine wants: it forwards or not from now on, and messages leave.
    fn follow(&mut self, now: Instant, sink: &mut dyn Sink) {
        let role = self.joined.machine.role();
        if role != std::mem::replace(&mut self.role, role) {
            self.announces_at = None;
            if role == Role::Standby {
                self.bump.scrubber().into_iter().for_each(scrub::Scrubber::stand_by);
            }
        }
        if self.joined.machine.takes_announcement() && role == Role::Active {
            self.announce(now, sink);
            self.announces_at = Some(now + ANNOUNCED_AGAIN);
        }
        while let Some((path, message)) = self.joined.machine.next_message() {
            match path {
                // What the kernel does not take is lost, as on the way.
                Path::Sync => _ = self.joined.socket.send(&message),
                Path::Trusted => self.send(Side::TRUSTED, &message, sink),
                Path::Untrusted => self.send(Side::UNTRUSTED, &message, sink),
            }
        }
    }

    fn send(&mut self, to: Side, message: &[u8], sink: &mut dyn Sink) {
        let frame = frames::of_message(self.joined.cards[to as usize], message);
        if sink::copy(sink, to, &frame, Meta::plain()) {
            self.books.make(to);
        }
    }

    /// Shows each switch the port behind which the hosts of the other side are now.
    fn announce(&mut self, now: Instant, sink: &mut dyn Sink) {
        for (side, station, vlan) in self.stations.heard_of_late(now) {
            let to = side.other();
            let frame = frames::announcement(station, vlan);
            if sink::copy(sink, to, &frame, Meta::plain()) {
                self.books.make(to);
            }
        }
    }

    /// What becomes of a frame that is not the bump's.
    fn keep(&mut self, now: Instant, from: Side, frame: &Frame<'_>, sink: &mut dyn Sink) -> Option<Fate> {
        if let Some(content) = frames::content(frame.bytes) {
            let refused = frames::message(content).is_some_and(|message| {
                let heard = self.hear(now, path_of(from), message, sink);
                heard.is_err_and(|refusal| refusal != Refusal::Unproven)
            });
            return Some(if refused { Fate::Dropped(DropReason::PairMessage) } else { Fate::Consumed });
        }
        (self.role == Role::Standby).then_some(Fate::Dropped(DropReason::GateStandby))
    }

    /// Runs `work` with a way out only where this gateway is the active one.
    fn within<T>(&mut self, sink: &mut dyn Sink, work: impl FnOnce(&mut G, &mut dyn Sink) -> T) -> T {
        match self.role {
            Role::Active => work(&mut self.bump, sink),
            Role::Standby => work(&mut self.bump, &mut Closed),
        }
    }
}

impl<G: Bump + HasScrubber> Bump for Paired<G> {
    type Job = G::Job;
    type Completion = G::Completion;
    type Effect = G::Effect;
    type Event = News<G::Event>;

    fn process(&mut self, now: Now, from: Side, batch: &mut dyn Batch, sink: &mut dyn Sink) {
        while let Some(frame) = batch.next_frame() {
            let at = self.wake_now(sink);
            if let Some(fate) = self.keep(at, from, &frame, sink) {
                self.books.receive(from);
                self.books.settle(at, from, fate, frame.bytes);
                continue;
            }
            let station = stations::station(frame.bytes, frame.meta.vlan);
            let mut watched = Watched { sink, to: from.other(), passed: false };
            self.bump.process(now, from, &mut Some(frame), &mut watched);
            if let Some(station) = station.filter(|_| watched.passed) {
                self.stations.hear(at, from, station);
            }
        }
        let at = self.wake_now(sink);
        self.pull(at, sink);
    }

    fn complete(&mut self, now: Now, ticket: Ticket, completion: G::Completion, sink: &mut dyn Sink) {
        self.within(sink, |bump, sink| bump.complete(now, ticket, completion, sink));
    }

    fn tick(&mut self, now: Now, budget: usize, sink: &mut dyn Sink) {
        let at = self.wake_now(sink);
        self.pull(at, sink);
        if self.announces_at.take_if(|due| *due <= at).is_some() {
            self.announce(at, sink);
        }
        self.within(sink, |bump, sink| bump.tick(now, budget, sink));
    }

    fn mend(&mut self, now: Now, torn: Torn, sink: &mut dyn Sink) {
        self.within(sink, |bump, sink| bump.mend(now, torn, sink));
    }

    fn deadline(&self) -> Option<Instant> {
        let own = time::earlier(Some(self.joined.machine.deadline()), self.announces_at);
        time::earlier(self.bump.deadline(), own)
    }

    fn next_job(&mut self) -> Option<(Ticket, G::Job)> {
        self.bump.next_job()
    }

    fn next_effect(&mut self) -> Option<G::Effect> {
        self.bump.next_effect()
    }

    fn next_event(&mut self) -> Option<News<G::Event>> {
        let own = self.joined.machine.next_event().map(News::Pair);
        own.or_else(|| self.bump.next_event().map(News::Bump))
    }

    fn add_to_ledger(&self, total: &mut Ledger) {
        self.bump.add_to_ledger(total);
        total.add(&self.books);
    }
}

impl<G: Guard<Scrubbed> + HasScrubber> Guard<Scrubbed> for Paired<G> {
    fn describe(event: &News<G::Event>) -> Described {
        match event {
            News::Bump(event) => G::describe(event),
            News::Pair(event) => describe(*event),
        }
    }

    fn set_wire_mtu(&mut self, wire_mtu: u16) {
        self.bump.set_wire_mtu(wire_mtu);
    }

    fn obey(&mut self, now: Now, order: Order, sink: &mut dyn Sink) {
        let at = self.wake_now(sink);
        match order {
            Order::Pair(PairOrder::Hear(messages)) => {
                for message in messages {
                    let _counted = self.hear(at, Path::Sync, &message, sink);
                }
            }
            Order::Pair(PairOrder::Cards(cards)) => self.joined.machine.set_cards(at, cards),
            Order::Pair(PairOrder::HandOver(reply)) => {
                let (machine, mut told) = self.parts();
                reply.give(machine.hand_over(at, &mut told));
            }
            // What is blocked here would not be there, and the next record would undo it.
            Order::Block(_, reply) if self.role == Role::Standby => reply.give(Err(OnStandby)),
            // What is forgotten here is not over.
            Order::TakeEnded(_, reply) if self.role == Role::Standby => {
                self.within(sink, |bump, sink| bump.obey(now, Order::TakeEnded(0, reply), sink));
            }
            order => self.within(sink, |bump, sink| bump.obey(now, order, sink)),
        }
        self.follow(at, sink);
    }

    fn report(&self, now: Instant) -> Option<Box<Scrubbing>> {
        let mut report = self.bump.report(now);
        report.iter_mut().for_each(|scrubbing| {
            scrubbing.pair = Some(PairReport {
                machine: self.joined.machine.report(now),
                waits: scrubbing.waits,
                stations: self.stations.len(),
                bad_records: self.bad_records,
            });
        });
        report
    }
}

fn describe(event: Event) -> Described {
    let (word, text) = match event {
        Event::TookOver(why) => ("took-over", format!("this gateway forwards from now on: {}", why.words())),
        Event::StoodDown(why) => ("stood-down", format!("this gateway forwards nothing from now on: {}", why.words())),
        Event::PeerSeen => ("pair-peer", "the other gateway is there".to_owned()),
        Event::PeerLost => ("pair-peer", "the other gateway is silent".to_owned()),
        Event::InSync => ("pair-in-sync", "this gateway knows all flows of the other one".to_owned()),
    };
    Described { word, text, about: About::default() }
}
