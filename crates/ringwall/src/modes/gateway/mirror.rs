//! A copy of everything that leaves a gateway, both ways, for whoever watches: an intrusion
//! detection system then sees what the hosts see, and nothing that they would read otherwise.
//!
//! A mirror never holds the data path up: what its port does not take at once is lost to it and
//! counted.

use bump::{Batch, Bump, Instant, Ledger, Meta, Now, Side, Sink, Ticket, Torn, sink};
use system::port::{PacketPort, PacketSender, Sender};
use wire::offload::SUPER_FRAME_MAX_BYTES;

use super::kind::{MirrorCounters, Order, Scrubbed, Scrubbing};
use super::paired::HasScrubber;
use crate::daemon::{Described, Guard};

/// A bump and a mirror of what leaves it.
pub(super) struct Mirrored<G> {
    bump: G,
    mirror: Mirror<PacketSender>,
}

/// Where copies go.
struct Mirror<S> {
    port: S,
    /// Where the bump writes a frame, to be copied from.
    room: Box<[u8]>,
    counters: MirrorCounters,
}

/// What a bump writes to: the real ports, and a mirror beside them.
struct Tee<'a, S> {
    ports: &'a mut dyn Sink,
    mirror: &'a mut Mirror<S>,
}

impl<G> Mirrored<G> {
    /// Copies what leaves `bump` to `port`.
    pub(super) fn new(bump: G, port: PacketPort) -> Mirrored<G> {
        Mirrored { bump, mirror: Mirror::new(port.sender) }
    }
}

impl<S: Sender> Mirror<S> {
    fn new(port: S) -> Mirror<S> {
        let room = vec![0; SUPER_FRAME_MAX_BYTES].into_boxed_slice();
        Mirror { port, room, counters: MirrorCounters::default() }
    }

    fn keep(&mut self, len: usize, meta: Meta) {
        match self.port.reserve(len) {
            Some(room) => {
                room[..len].copy_from_slice(&self.room[..len]);
                self.port.commit(len, meta);
                self.counters.sent += 1;
            }
            None => self.counters.lost += 1,
        }
    }

    fn beside<T>(&mut self, ports: &mut dyn Sink, work: impl FnOnce(&mut dyn Sink) -> T) -> T {
        let result = work(&mut Tee { ports, mirror: self });
        self.port.flush();
        result
    }
}

impl<S: Sender> Sink for Tee<'_, S> {
    fn reserve(&mut self, to: Side, capacity: usize) -> Option<&mut [u8]> {
        self.ports.reserve(to, capacity)?;
        self.mirror.room.get_mut(..capacity)
    }

    fn commit(&mut self, to: Side, len: usize, meta: Meta) {
        // The port has just had the room, and nothing has been written to it since.
        if sink::copy(self.ports, to, &self.mirror.room[..len], meta) {
            self.mirror.keep(len, meta);
        }
    }
}

impl<G: Bump> Bump for Mirrored<G> {
    type Job = G::Job;
    type Completion = G::Completion;
    type Effect = G::Effect;
    type Event = G::Event;

    fn process(&mut self, now: Now, from: Side, batch: &mut dyn Batch, sink: &mut dyn Sink) {
        self.mirror.beside(sink, |sink| self.bump.process(now, from, batch, sink));
    }

    fn complete(&mut self, now: Now, ticket: Ticket, completion: G::Completion, sink: &mut dyn Sink) {
        self.mirror.beside(sink, |sink| self.bump.complete(now, ticket, completion, sink));
    }

    fn tick(&mut self, now: Now, budget: usize, sink: &mut dyn Sink) {
        self.mirror.beside(sink, |sink| self.bump.tick(now, budget, sink));
    }

    fn mend(&mut self, now: Now, torn: Torn, sink: &mut dyn Sink) {
        self.mirror.beside(sink, |sink| self.bump.mend(now, torn, sink));
    }

    fn deadline(&self) -> Option<Instant> {
        self.bump.deadline()
    }

    fn next_job(&mut self) -> Option<(Ticket, G::Job)> {
        self.bump.next_job()
    }

    fn next_effect(&mut self) -> Option<G::Effect> {
        self.bump.next_effect()
    }

    fn next_event(&mut self) -> Option<G::Event> {
        self.bump.next_event()
    }

    fn add_to_ledger(&self, total: &mut Ledger) {
        self.bump.add_to_ledger(total);
    }
}

impl<G: HasScrubber> HasScrubber for Mirrored<G> {
    fn scrubber(&mut self) -> Option<&mut scrub::Scrubber> {
        self.bump.scrubber()
    }
}

impl<G: Guard<Scrubbed>> Guard<Scrubbed> for Mirrored<G> {
    fn describe(event: &G::Event) -> Described {
        G::describe(event)
    }

    fn set_wire_mtu(&mut self, wire_mtu: u16) {
        self.bump.set_wire_mtu(wire_mtu);
    }

    fn obey(&mut self, now: Now, order: Order, sink: &mut dyn Sink) {
        self.mirror.beside(sink, |sink| self.bump.obey(now, order, sink));
    }

    fn report(&self, now: Instant) -> Option<Box<Scrubbing>> {
        let mut report = self.bump.report(now);
        report.iter_mut().for_each(|scrubbing| scrubbing.mirror = Some(self.mirror.counters));
        report
    }
}

#[cfg(test)]
mod tests {
    use bump::Frame;
    use bump::sink::Collected;
    use system::memory::{CABLE_MAX_FRAMES, UNFLUSHED_MAX_FRAMES, cable};
    use system::null::NullBump;

    use super::*;

    const NOW: Now = Now { since_boot: Instant::from_millis(1), wall: None };

    #[test]
    fn both_directions_are_copied_in_order_and_a_full_mirror_holds_nothing_up() {
        let (near, mut far) = cable();
        let mut mirror = Mirror::new(near.sender);
        let mut bump = NullBump::new();
        let mut ports = Collected::new();
        let frames = CABLE_MAX_FRAMES + UNFLUSHED_MAX_FRAMES + 10;
        for number in 0..frames {
            let mut bytes = [&[2; 12][..], &[0x88, 0xb5], &(number as u32).to_be_bytes()].concat();
            let from = if number % 2 == 0 { Side::TRUSTED } else { Side::UNTRUSTED };
            let mut batch = Some(Frame { bytes: &mut bytes, meta: Meta::plain() });
            mirror.beside(&mut ports, |sink| bump.process(NOW, from, &mut batch, sink));
        }
        let sent = ports.take();
        assert_eq!(sent.len(), frames, "the ports got everything");
        assert_eq!(mirror.counters, MirrorCounters { sent: frames as u64 - 10, lost: 10 });
        let copies = far.receive();
        assert_eq!(copies.len(), CABLE_MAX_FRAMES);
        assert!(copies.iter().zip(&sent).all(|((copy, _), (_, frame, _))| copy == frame));
    }

    #[test]
    fn what_the_port_does_not_take_is_not_mirrored_either() {
        let (near, mut far) = cable();
        let mut mirror = Mirror::new(near.sender);
        let mut ports = Collected::with_room_for(0);
        let mut bump = NullBump::new();
        let mut bytes = vec![2; 60];
        let mut batch = Some(Frame { bytes: &mut bytes, meta: Meta::plain() });
        mirror.beside(&mut ports, |sink| bump.process(NOW, Side::TRUSTED, &mut batch, sink));
        assert!(far.receive().is_empty());
        let mut ledger = Ledger::new();
        bump.add_to_ledger(&mut ledger);
        assert_eq!(ledger.drops(bump::DropReason::PortFull), 1);
    }
}
