//! Coupling frames to trains on their way to the wire, and unloading trains from it.
//!
//! The kernel takes as long for a frame as for a train (measured: 5.5 us for a frame through both hosts and the bridge
//! between them, half of that when coupled), see record 0010. This is the port's affair alone: a bump sees frames.

use std::ops::Range;

use bump::{Checksum, Frame, Gso, GsoKind, Meta, VlanTag};
use wire::cll::train;
use wire::ethernet::{self, Header};
use wire::{EtherType, udp};

use super::arena::{Arena, Entry};
use super::limits::{PIECES_MAX, TRAIN_MAX_FRAMES, TRAIN_MIN_FRAMES};

/// Which frames travel in trains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrainOptions {
    /// Their EtherType, which is implied in a train.
    pub ethertype: EtherType,
    /// Bytes of the largest packet that the wire carries; frames that leave no room in it for a train's headers go alone.
    pub wire_mtu: u16,
    /// Whether frames are coupled here. Trains that arrive are unloaded in any case.
    pub couple: bool,
}

impl TrainOptions {
    /// How many of the frames `waiting` in `arena` leave as one train; 1 for a frame that goes alone.
    pub(super) fn coupled(&self, arena: &Arena, waiting: Range<usize>) -> usize {
        let head = arena.frame(waiting.start);
        if !self.may_ride(&arena.entry(waiting.start), head) {
            return 1;
        }
        let mut count = 1;
        let mut messages_len = head.len() - ethernet::HEADER_LEN;
        for index in waiting.skip(1).take(TRAIN_MAX_FRAMES - 1) {
            let frame = arena.frame(index);
            messages_len += frame.len().saturating_sub(ethernet::HEADER_LEN);
            let follows = frame.len() <= head.len()
                && messages_len <= train::MESSAGES_MAX_BYTES
                && frame.get(..ethernet::HEADER_LEN) == head.get(..ethernet::HEADER_LEN)
                && self.may_ride(&arena.entry(index), frame);
            if !follows {
                break;
            }
            count += 1;
            // Whoever cuts the train makes all frames equal but the last.
            if frame.len() < head.len() {
                break;
            }
        }
        if count < TRAIN_MIN_FRAMES { 1 } else { count }
    }

    /// Whether `frame` is of the right kind, complete, and small enough.
    fn may_ride(&self, entry: &Entry, frame: &[u8]) -> bool {
        let is_plain = entry.meta.gso.is_none() && !matches!(entry.meta.checksum, Checksum::Partial { .. });
        let room = usize::from(self.wire_mtu) + ethernet::HEADER_LEN;
        is_plain
            && (ethernet::HEADER_LEN + 1..=room.saturating_sub(train::OVERHEAD)).contains(&frame.len())
            && Header::parse(frame).is_ok_and(|(header, _)| header.ethertype == self.ethertype)
    }
}

/// What the kernel must know of a train whose frames have `frame_len` bytes, to cut it.
pub(super) fn train_meta(frame_len: usize) -> Meta {
    let size = (frame_len - ethernet::HEADER_LEN) as u16;
    Meta {
        checksum: Checksum::Partial { start: train::UDP_AT as u16, offset: udp::CHECKSUM as u16 },
        gso: Some(Gso { kind: GsoKind::Udp, size, ecn: false }),
        ..Meta::default()
    }
}

/// A train from the wire on its way out in frames. Each frame's Ethernet header is written over the end of the frame
/// before it, which has been used up by then.
#[derive(Debug)]
pub(super) struct Unloading {
    header: [u8; ethernet::HEADER_LEN],
    /// Whatever was tagged in front of the train is tagged in front of each frame, or tags could be shed by riding.
    vlan: Option<VlanTag>,
    rest: Range<usize>,
    size: usize,
}

impl Unloading {
    /// Begins with `whole`, if it is a train; its frames have `ethertype`.
    pub(super) fn begin(whole: &[u8], meta: &Meta, ethertype: EtherType) -> Option<Unloading> {
        let rest = train::messages(whole)?;
        let (header, _) = Header::parse(whole).ok()?;
        let size = match meta.gso {
            // A card that cut the train already made its message a train of its own.
            None => rest.len(),
            Some(Gso { kind: GsoKind::Udp, size, .. }) if size > 0 => usize::from(size),
            Some(_) => return None,
        };
        // The kernel never joins more; whoever says so wants to keep this host busy with crumbs.
        if rest.len().div_ceil(size) > PIECES_MAX {
            return None;
        }
        Some(Unloading { header: Header { ethertype, ..header }.emit(), vlan: meta.vlan, rest, size })
    }

    /// Whether all frames are out.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next frame of `whole`, which is the one begun with; `None` when all are out.
    pub(super) fn next<'a>(&mut self, whole: &'a mut [u8]) -> Option<Frame<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let start = self.rest.start - ethernet::HEADER_LEN;
        let end = (self.rest.start + self.size).min(self.rest.end);
        self.rest.start = end;
        let bytes = whole.get_mut(start..end)?;
        bytes[..ethernet::HEADER_LEN].copy_from_slice(&self.header);
        Some(Frame { bytes, meta: Meta { vlan: self.vlan, ..Meta::plain() } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: TrainOptions = TrainOptions { ethertype: EtherType::CLL, wire_mtu: 1500, couple: true };

    fn frame(to: u8, ethertype: EtherType, len: usize) -> Vec<u8> {
        let mac = |last| wire::MacAddress([2, 0, 0, 0, 0, last]);
        let mut frame = Header { destination: mac(to), source: mac(9), ethertype }.emit().to_vec();
        frame.resize(len, to);
        frame
    }

    fn arena(frames: &[(Vec<u8>, Meta)]) -> Arena {
        let mut arena = Arena::new();
        for (bytes, meta) in frames {
            arena.reserve(bytes.len()).expect("room").copy_from_slice(bytes);
            arena.commit(bytes.len(), *meta).expect("reserved");
        }
        arena
    }

    /// How many frames of these lengths leave together.
    fn coupled(lens: &[usize]) -> usize {
        let frames: Vec<_> = lens.iter().map(|&len| (frame(1, EtherType::CLL, len), Meta::plain())).collect();
        let arena = arena(&frames);
        OPTIONS.coupled(&arena, arena.waiting())
    }

    #[test]
    fn equal_frames_ride_together_and_a_shorter_one_is_the_last() {
        assert_eq!(coupled(&[1000; 5]), 5);
        assert_eq!(coupled(&[1000; TRAIN_MAX_FRAMES + 5]), TRAIN_MAX_FRAMES);
        assert_eq!(coupled(&[1000, 1000, 1000, 400, 1000]), 4);
        assert_eq!(coupled(&[1000, 1000, 1000, 1001]), 3);
        assert_eq!(coupled(&[1000; TRAIN_MIN_FRAMES - 1]), 1);
        assert_eq!(coupled(&[1000, 1001, 1000, 1000, 1000]), 1);
    }

    #[test]
    fn frames_without_room_for_the_headers_go_alone() {
        assert_eq!(coupled(&[1514 - train::OVERHEAD; 4]), 4);
        assert_eq!(coupled(&[1515 - train::OVERHEAD; 4]), 1);
    }

    #[test]
    fn a_train_is_no_longer_than_a_datagram_can_be() {
        let large = [9000 - train::OVERHEAD; TRAIN_MAX_FRAMES];
        let options = TrainOptions { wire_mtu: 9000, ..OPTIONS };
        let frames: Vec<_> = large.iter().map(|&len| (frame(1, EtherType::CLL, len), Meta::plain())).collect();
        let arena = arena(&frames);
        // 65,507 bytes of messages hold seven of 8,958.
        assert_eq!(options.coupled(&arena, arena.waiting()), 7);
    }

    #[test]
    fn only_frames_of_one_kind_between_the_same_hosts_are_coupled() {
        let cll = || (frame(1, EtherType::CLL, 500), Meta::plain());
        let partial = Meta { checksum: Checksum::Partial { start: 34, offset: 6 }, ..Meta::plain() };
        let strangers = [
            (frame(2, EtherType::CLL, 500), Meta::plain()),
            (frame(1, EtherType::IPV4, 500), Meta::plain()),
            (frame(1, EtherType::CLL, 500), partial),
        ];
        for stranger in strangers {
            let behind = arena(&[cll(), cll(), cll(), stranger.clone(), cll()]);
            assert_eq!(OPTIONS.coupled(&behind, behind.waiting()), 3);
        }
        let plain = (frame(1, EtherType::IPV4, 500), Meta::plain());
        let in_front = arena(&[plain, cll(), cll(), cll()]);
        assert_eq!(OPTIONS.coupled(&in_front, in_front.waiting()), 1);
    }

    #[test]
    fn frames_come_out_as_they_went_in() {
        let frames: Vec<_> = [700, 700, 700, 90].map(|len| frame(1, EtherType::CLL, len)).to_vec();
        let messages: Vec<u8> = frames.iter().flat_map(|frame| frame[14..].to_vec()).collect();
        let mut whole = train::head(&frames[0], messages.len()).expect("short").to_vec();
        whole.extend(messages);
        let meta = train_meta(frames[0].len());
        let mut unloading = Unloading::begin(&whole, &meta, EtherType::CLL).expect("a train");
        let mut out = Vec::new();
        while let Some(frame) = unloading.next(&mut whole) {
            out.push(frame.bytes.to_vec());
        }
        assert_eq!(out, frames);
    }

    #[test]
    fn a_tag_in_front_of_a_train_stands_in_front_of_each_frame() {
        let one = frame(1, EtherType::CLL, 300);
        let mut whole = [&train::head(&one, 572).expect("short")[..], &one[14..], &one[14..]].concat();
        let vlan = Some(VlanTag { tpid: 0x8100, tci: 7 });
        let meta = Meta { vlan, ..train_meta(one.len()) };
        let mut unloading = Unloading::begin(&whole, &meta, EtherType::CLL).expect("a train");
        for _ in 0..2 {
            assert_eq!(unloading.next(&mut whole).expect("two frames").meta.vlan, vlan);
        }
    }

    #[test]
    fn a_train_of_crumbs_is_none() {
        let one = frame(1, EtherType::CLL, 20);
        let mut whole = train::head(&one, 60_000).expect("short").to_vec();
        whole.resize(42 + 60_000, 7);
        let unloads = |size| {
            let gso = Some(Gso { kind: GsoKind::Udp, size, ecn: false });
            Unloading::begin(&whole, &Meta { gso, ..Meta::plain() }, EtherType::CLL).is_some()
        };
        assert!(unloads(1400) && unloads(469));
        // 60,000 bytes in 129 pieces.
        assert!(!unloads(468) && !unloads(1));
    }

    #[test]
    fn a_datagram_that_was_cut_holds_one_frame_and_other_super_frames_none() {
        let one = frame(1, EtherType::CLL, 300);
        let mut whole = [&train::head(&one, 286).expect("short")[..], &one[14..], &[0; 5]].concat();
        let mut unloading = Unloading::begin(&whole, &Meta::plain(), EtherType::CLL).expect("a train");
        assert_eq!(unloading.next(&mut whole).map(|frame| frame.bytes.to_vec()), Some(one));
        assert!(unloading.next(&mut whole).is_none());
        for gso in [(GsoKind::TcpV4, 100), (GsoKind::Udp, 0)] {
            let meta = Meta { gso: Some(Gso { kind: gso.0, size: gso.1, ecn: false }), ..Meta::plain() };
            assert!(Unloading::begin(&whole, &meta, EtherType::CLL).is_none());
        }
    }
}
