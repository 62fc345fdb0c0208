//! The null bump: the same ports and the same cutting, no checks and no cryptography. It is the yardstick of every
//! benchmark, and the simplest complete bump to read.

use std::convert::Infallible;

use bump::{
    Batch, Bump, Checksum, DropReason, Fate, Frame, Instant, Ledger, Meta, Now, Side, Sink, Ticket, Torn, sink,
};
use wire::layer::transport_checksum;
use wire::offload::Plan;
use wire::{EtherType, ethernet};

use crate::port::cutter::{plan_of, segment_meta};

/// Forwards every frame. What leaves on the wire is cut into plain frames, as it would be if each had to be sealed; on
/// the way to the stack frames stay as they are.
///
/// Disguised, it gives IPv4 frames another EtherType on the wire, as sealed frames have, and does not say that their inner
/// checksums are incomplete; whoever takes the disguise off assumes it. Otherwise the card's own network stack and the
/// bridge's packet filter would look at every frame of the yardstick, and it would leave the port in another way, than
/// what is measured with it.
#[derive(Debug, Default)]
pub struct NullBump {
    ledger: Ledger,
    disguise: Option<EtherType>,
    /// Super-frames leave as they came, on both sides.
    keeps_whole: bool,
}

impl NullBump {
    /// A null bump.
    #[must_use]
    pub fn new() -> NullBump {
        NullBump::default()
    }

    /// A null bump whose IPv4 frames carry `ethertype` on the wire.
    #[must_use]
    pub fn disguised(ethertype: EtherType) -> NullBump {
        NullBump { disguise: Some(ethertype), ..NullBump::default() }
    }

    /// A null bump that cuts nothing: the yardstick of a gateway, which keeps super-frames whole.
    #[must_use]
    pub fn passing() -> NullBump {
        NullBump { keeps_whole: true, ..NullBump::default() }
    }

    fn forward(&mut self, to: Side, frame: &mut Frame<'_>, sink: &mut dyn Sink) -> Fate {
        let plan = match (to, frame.meta.gso) {
            (Side::Outer, Some(_)) if !self.keeps_whole => plan_of(frame.bytes, &frame.meta).map(Some),
            _ => Ok(None),
        };
        let Ok(plan) = plan else { return Fate::Dropped(DropReason::BadSuperFrame) };
        let mut meta = plan.as_ref().map_or(frame.meta, |plan| segment_meta(plan, &frame.meta));
        if let Some(disguise) = self.disguise {
            change_clothes(frame.bytes, &mut meta, to, disguise);
        }
        let emitted = match plan {
            None => usize::from(sink::copy(sink, to, frame.bytes, meta)),
            Some(plan) => emit_segments(&plan, frame.bytes, &meta, to, sink),
        };
        self.ledger.emitted[to as usize] += emitted as u64;
        if emitted == 0 { Fate::Dropped(DropReason::PortFull) } else { Fate::Forwarded }
    }
}

/// Puts the disguise on towards the wire and takes it off towards the stack.
fn change_clothes(frame: &mut [u8], meta: &mut Meta, to: Side, disguise: EtherType) {
    let (worn, put_on) = match to {
        Side::Outer => (EtherType::IPV4, disguise),
        Side::Inner => (disguise, EtherType::IPV4),
    };
    if !swap_ethertype(frame, worn, put_on) {
        return;
    }
    meta.checksum = match (to, transport_checksum(frame)) {
        (Side::Inner, Some((start, offset))) => Checksum::Partial { start: start as u16, offset: offset as u16 },
        _ => Checksum::Unknown,
    };
}

/// Whether it was there to be swapped.
fn swap_ethertype(frame: &mut [u8], from: EtherType, to: EtherType) -> bool {
    let place = frame.get_mut(12..ethernet::HEADER_LEN);
    let Some(place) = place.filter(|place| **place == from.0.to_be_bytes()) else { return false };
    place.copy_from_slice(&to.0.to_be_bytes());
    true
}

/// Writes all segments that find room; how many did.
fn emit_segments(plan: &Plan, frame: &[u8], meta: &Meta, to: Side, sink: &mut dyn Sink) -> usize {
    for index in 0..plan.segments() {
        let Some(room) = sink.reserve(to, plan.segment_len(index)) else { return index };
        let Some(len) = plan.write(frame, index, room) else { return index };
        sink.commit(to, len, *meta);
    }
    plan.segments()
}

impl Bump for NullBump {
    type Job = Infallible;
    type Completion = Infallible;
    type Effect = Infallible;
    type Event = Infallible;

    fn process(&mut self, now: Now, from: Side, batch: &mut dyn Batch, sink: &mut dyn Sink) {
        while let Some(mut frame) = batch.next_frame() {
            self.ledger.receive(from);
            let fate = self.forward(from.other(), &mut frame, sink);
            self.ledger.settle(now.since_boot, from, fate, frame.bytes);
        }
    }

    fn complete(&mut self, _now: Now, _ticket: Ticket, completion: Infallible, _sink: &mut dyn Sink) {
        match completion {}
    }

    fn tick(&mut self, _now: Now, _budget: usize, _sink: &mut dyn Sink) {}

    // Its books are all that it remembers.
    fn mend(&mut self, _now: Now, _torn: Torn, _sink: &mut dyn Sink) {}

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn next_job(&mut self) -> Option<(Ticket, Infallible)> {
        None
    }

    fn next_effect(&mut self) -> Option<Infallible> {
        None
    }

    fn next_event(&mut self) -> Option<Infallible> {
        None
    }

    fn add_to_ledger(&self, total: &mut Ledger) {
        total.add(&self.ledger);
    }
}

#[cfg(test)]
mod tests {
    use bump::sink::Collected;
    use bump::{Gso, GsoKind};

    use super::*;

    const NOW: Now = Now { since_boot: Instant::from_millis(1), wall: None };
    const SIZE: u16 = 1000;

    /// A TCP super-frame over IPv4 with 2500 bytes of payload.
    fn super_frame() -> (Vec<u8>, Meta) {
        let mut frame = vec![0x11; 14 + 40 + 2500];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14..34].copy_from_slice(&[0x45, 0, 0, 0, 0, 5, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame[16..18].copy_from_slice(&2540_u16.to_be_bytes());
        frame[34..54].copy_from_slice(&[1, 2, 3, 4, 0, 0, 0, 9, 0, 0, 0, 0, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
        let gso = Gso { kind: GsoKind::TcpV4, size: SIZE, ecn: false };
        let meta =
            Meta { checksum: Checksum::Partial { start: 34, offset: 16 }, gso: Some(gso), queue: 3, ..Meta::default() };
        (frame, meta)
    }

    fn process(from: Side, frame: (Vec<u8>, Meta), sink: &mut Collected) -> Ledger {
        let mut bump = NullBump::new();
        let mut frames = [frame];
        bump.process(NOW, from, &mut bump::frame::Frames::new(&mut frames), sink);
        let mut ledger = Ledger::new();
        bump.add_to_ledger(&mut ledger);
        assert_eq!(ledger.balance(), 0);
        ledger
    }

    #[test]
    fn super_frames_are_cut_towards_the_wire_and_stay_whole_towards_the_stack() {
        let mut sink = Collected::new();
        let ledger = process(Side::STACK, super_frame(), &mut sink);
        let sent = sink.take();
        assert_eq!(sent.iter().map(|(_, bytes, _)| bytes.len()).collect::<Vec<_>>(), [1054, 1054, 554]);
        for (side, _, meta) in &sent {
            assert_eq!((*side, meta.gso, meta.queue), (Side::WIRE, None, 3));
            assert_eq!(meta.checksum, Checksum::Partial { start: 34, offset: 16 });
        }
        assert_eq!((ledger.forwarded[0], ledger.emitted[1]), (1, 3));

        process(Side::WIRE, super_frame(), &mut sink);
        let (bytes, meta) = super_frame();
        assert_eq!(sink.take(), [(Side::STACK, bytes, meta)]);
    }

    #[test]
    fn a_gateways_yardstick_keeps_super_frames_whole_both_ways() {
        let mut bump = NullBump::passing();
        let mut sink = Collected::new();
        let (bytes, meta) = super_frame();
        for (from, to) in [(Side::STACK, Side::WIRE), (Side::WIRE, Side::STACK)] {
            bump.process(NOW, from, &mut bump::frame::Frames::new(&mut [super_frame()]), &mut sink);
            assert_eq!(sink.take(), [(to, bytes.clone(), meta)]);
        }
    }

    #[test]
    fn what_cannot_be_cut_or_finds_no_room_is_dropped_by_name() {
        let (mut bytes, meta) = super_frame();
        bytes.pop();
        let ledger = process(Side::STACK, (bytes, meta), &mut Collected::new());
        assert_eq!(ledger.drops(DropReason::BadSuperFrame), 1);
        let ledger = process(Side::STACK, super_frame(), &mut Collected::with_room_for(0));
        assert_eq!(ledger.drops(DropReason::PortFull), 1);
    }

    #[test]
    fn a_disguise_is_put_on_towards_the_wire_and_taken_off_again() {
        let disguise = wire::EtherType(0x07d0);
        let mut bump = NullBump::disguised(disguise);
        let mut sink = bump::sink::Collected::new();
        let now = Now { since_boot: Instant::default(), wall: None };
        let plain = [&[2; 12][..], &[0x08, 0x00, 0x45, 1, 2]].concat();
        let mut pass = |bump: &mut NullBump, from, bytes: &[u8]| {
            let mut bytes = bytes.to_vec();
            bump.process(now, from, &mut Some(Frame { bytes: &mut bytes, meta: Meta::plain() }), &mut sink);
            sink.take().pop().expect("forwarded").1
        };
        let disguised = pass(&mut bump, Side::STACK, &plain);
        assert_eq!(disguised[12..14], [0x07, 0xd0]);
        assert_eq!(pass(&mut bump, Side::WIRE, &disguised), plain);
    }
}
