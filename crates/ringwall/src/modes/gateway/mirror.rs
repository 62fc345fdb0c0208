//! A copy of everything that leaves a gateway, both ways, for whoever watches: an intrusion
//! detection system then sees what the hosts see, and nothing that they would read otherwise.
//!
//! A mirror never holds the data path up: what its port does not take at once is lost to it and
//! counted.
//!
//! Copies may be in two VLANs that tell who sent: one wire to whoever watches does not say so by
//! itself.

use bump::{Batch, Bump, Checksum, Instant, Ledger, Meta, Now, Side, Sink, Ticket, Torn, VlanTag, sink};
use system::port::{PacketPort, PacketSender, Sender};
use wire::EtherType;
use wire::offload::SUPER_FRAME_MAX_BYTES;

use super::kind::{MirrorCounters, Order, Scrubbed, Scrubbing};
use super::paired::HasScrubber;
use crate::daemon::{Described, Guard};

/// Bytes of a frame's addresses.
const ADDRESSES_LEN: usize = 12;

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
    /// The VLANs of copies, by the side that sent.
    vlans: Option<[u16; 2]>,
    counters: MirrorCounters,
}

/// What a bump writes to: the real ports, and a mirror beside them.
struct Tee<'a, S> {
    ports: &'a mut dyn Sink,
    mirror: &'a mut Mirror<S>,
}

impl<G> Mirrored<G> {
    /// Copies what leaves `bump` to `port`, in these VLANs by the side that sent.
    pub(super) fn new(bump: G, port: PacketPort, vlans: Option<[u16; 2]>) -> Mirrored<G> {
        Mirrored { bump, mirror: Mirror::new(port.sender, vlans) }
    }
}

impl<S: Sender> Mirror<S> {
    fn new(port: S, vlans: Option<[u16; 2]>) -> Mirror<S> {
        let room = vec![0; SUPER_FRAME_MAX_BYTES].into_boxed_slice();
        Mirror { port, room, vlans, counters: MirrorCounters::default() }
    }

    /// Copies the first `len` bytes of the room, which left on side `to`.
    fn keep(&mut self, to: Side, len: usize, meta: Meta) {
        let frame = &self.room[..len];
        let vlan = self.vlans.map(|vlans| vlans[to.other() as usize]);
        let is_kept = match vlan {
            Some(vlan) => tagged(&mut self.port, frame, meta, vlan),
            None => put(&mut self.port, &[frame], meta),
        };
        let count = if is_kept { &mut self.counters.sent } else { &mut self.counters.lost };
        *count += 1;
    }

    fn beside<T>(&mut self, ports: &mut dyn Sink, work: impl FnOnce(&mut dyn Sink) -> T) -> T {
        let result = work(&mut Tee { ports, mirror: self });
        self.port.flush();
        result
    }
}

/// Writes a frame of these parts. False if there is no room.
fn put(port: &mut impl Sender, parts: &[&[u8]], meta: Meta) -> bool {
    let len = parts.iter().map(|part| part.len()).sum();
    let Some(room) = port.reserve(len) else { return false };
    let mut at = 0;
    for part in parts {
        room[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    port.commit(len, meta);
    true
}

/// Writes `frame` in a VLAN: in a customer's tag, or in a service tag around those that it has (IEEE
/// 802.1Q, 9.5).
fn tagged(port: &mut impl Sender, frame: &[u8], mut meta: Meta, vlan: u16) -> bool {
    let Some((addresses, rest)) = frame.split_at_checked(ADDRESSES_LEN) else {
        return put(port, &[frame], meta);
    };
    let own = meta.vlan.map(|own| [own.tpid.to_be_bytes(), own.tci.to_be_bytes()]);
    let own = own.as_ref().map_or(&[][..], |own| own.as_flattened());
    let has_tag =
        meta.vlan.is_some() || rest.first_chunk().is_some_and(|word| EtherType(u16::from_be_bytes(*word)).is_vlan());
    let tpid = if has_tag { EtherType::SERVICE_VLAN } else { EtherType::VLAN };
    meta.vlan = Some(VlanTag { tpid: tpid.0, tci: vlan });
    if let Checksum::Partial { start, .. } = &mut meta.checksum {
        *start = start.saturating_add(own.len() as u16);
    }
    put(port, &[addresses, own, rest], meta)
}

impl<S: Sender> Sink for Tee<'_, S> {
    fn reserve(&mut self, to: Side, capacity: usize) -> Option<&mut [u8]> {
        self.ports.reserve(to, capacity)?;
        self.mirror.room.get_mut(..capacity)
    }

    fn commit(&mut self, to: Side, len: usize, meta: Meta) {
        // The port has just had the room, and nothing has been written to it since.
        if sink::copy(self.ports, to, &self.mirror.room[..len], meta) {
            self.mirror.keep(to, len, meta);
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
        let mut mirror = Mirror::new(near.sender, None);
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

    /// A frame of 60 bytes from one side, and what the mirror gets of it.
    fn copy_of(from: Side, ethertype: [u8; 2], meta: Meta) -> (Vec<u8>, Meta) {
        let (near, mut far) = cable();
        let mut mirror = Mirror::new(near.sender, Some([10, 20]));
        let mut bytes = [&[2; 12][..], &ethertype, &[7; 46]].concat();
        let mut batch = Some(Frame { bytes: &mut bytes, meta });
        mirror.beside(&mut Collected::new(), |sink| NullBump::new().process(NOW, from, &mut batch, sink));
        let [copy] = &far.receive()[..] else { panic!("one copy") };
        copy.clone()
    }

    #[test]
    fn a_tag_tells_who_sent_and_stands_around_the_frames_own() {
        let partial = Meta { checksum: Checksum::Partial { start: 34, offset: 16 }, ..Meta::plain() };
        for (from, vlan) in [(Side::TRUSTED, 10), (Side::UNTRUSTED, 20)] {
            let (bytes, meta) = copy_of(from, [8, 0], partial);
            assert_eq!((bytes.len(), meta.vlan), (60, Some(VlanTag { tpid: 0x8100, tci: vlan })));
            assert_eq!(meta.checksum, partial.checksum);
            let outer = Some(VlanTag { tpid: 0x88a8, tci: vlan });
            // A tag beside the frame, as the kernel hands it over, and one in it.
            let own = Some(VlanTag { tpid: 0x8100, tci: 0x2007 });
            let (bytes, meta) = copy_of(from, [8, 0], Meta { vlan: own, ..partial });
            assert_eq!((&bytes[12..18], bytes.len(), meta.vlan), (&[0x81, 0, 0x20, 7, 8, 0][..], 64, outer));
            assert_eq!(meta.checksum, Checksum::Partial { start: 38, offset: 16 });
            let (bytes, meta) = copy_of(from, [0x81, 0], Meta::plain());
            assert_eq!((&bytes[12..14], bytes.len(), meta.vlan), (&[0x81, 0][..], 60, outer));
        }
    }

    #[test]
    fn what_the_port_does_not_take_is_not_mirrored_either() {
        let (near, mut far) = cable();
        let mut mirror = Mirror::new(near.sender, None);
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
