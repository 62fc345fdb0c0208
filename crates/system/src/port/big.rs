//! Frames longer than any super-frame, where an administrator raised what Linux joins: they become
//! super-frames in the room where they lie, one after the other, so that no byte of theirs is
//! copied.

use std::ops::Range;

use bump::{Checksum, Gso, Meta};
use wire::offload::{Plan, unfold};

use super::cutter::{cut_of, segment_meta};

/// One of them on its way.
#[derive(Debug)]
pub(super) struct Big {
    plan: Plan,
    meta: Meta,
    /// How a piece is to be cut in turn.
    gso: Gso,
    /// Where the frame begins, once a header in front was taken out.
    skip: usize,
    /// The frame's headers as they came: those in the room become a piece's.
    headers: Vec<u8>,
    next: usize,
}

impl Big {
    /// Begins with `frame`; `None` if it is no such frame.
    pub(super) fn begin(frame: &mut [u8], meta: &Meta) -> Option<Big> {
        // A sum that the kernel verified is none of the pieces'.
        let gso = meta.gso.filter(|_| matches!(meta.checksum, Checksum::Partial { .. }))?;
        let skip = unfold(frame)?;
        let frame = &frame[skip..];
        let plan = Plan::big(frame, cut_of(gso)).ok()?;
        let headers = frame[..plan.headers_len()].to_vec();
        Some(Big { plan, meta: segment_meta(&plan, meta), gso, skip, headers, next: 0 })
    }

    /// Has the next piece stand in `frame`, which is the one begun with; where, and what is to be
    /// known of it.
    pub(super) fn next(&mut self, frame: &mut [u8]) -> Option<(Range<usize>, Meta)> {
        let place = self.plan.place(&self.headers, self.next, frame.get_mut(self.skip..)?)?;
        let payload_len = place.len() - self.headers.len();
        let gso = Some(self.gso).filter(|gso| payload_len > usize::from(gso.size));
        self.next += 1;
        Some((place.start + self.skip..place.end + self.skip, Meta { gso, ..self.meta }))
    }

    /// Whether a piece is left.
    pub(super) fn is_busy(&self) -> bool {
        self.next < self.plan.segments()
    }
}

#[cfg(test)]
mod tests {
    use bump::GsoKind;

    use super::*;

    /// A frame of IPv6 with an option that says its length (RFC 2675), 144,000 bytes of data in 100
    /// segments.
    fn frame() -> Vec<u8> {
        let mut frame = [&[2; 12][..], &[0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 0, 64], &[0xfd; 32]].concat();
        frame.extend([&[6, 0, 0xc2, 4][..], &(8 + 20 + 144_000_u32).to_be_bytes()].concat());
        frame.extend([0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0]);
        frame.extend((0..144_000_u32).map(|at| (at / 7) as u8));
        frame
    }

    #[test]
    fn pieces_are_super_frames_until_nothing_is_left() {
        let gso = Some(Gso { kind: GsoKind::TcpV6, size: 1440, ecn: false });
        let meta = Meta { gso, checksum: Checksum::Partial { start: 62, offset: 16 }, ..Meta::default() };
        let mut room = frame();
        let data = room[82..].to_vec();
        let mut big = Big::begin(&mut room, &meta).expect("a frame");
        let mut heard = Vec::new();
        let mut sizes = Vec::new();
        while big.is_busy() {
            let (place, meta) = big.next(&mut room).expect("a piece");
            // The transport header is eight bytes further in front than it was.
            assert_eq!(meta.checksum, Checksum::Partial { start: 54, offset: 16 });
            let payload_len = usize::from(u16::from_be_bytes([room[place.start + 18], room[place.start + 19]])) - 20;
            assert_eq!((place.len(), room[place.start + 20]), (74 + payload_len, 6));
            heard.extend_from_slice(&room[place][74..]);
            sizes.push((payload_len, meta.gso.is_some()));
        }
        assert!(heard == data);
        assert_eq!(sizes, [(64_800, true), (64_800, true), (14_400, true)]);
        assert!(big.next(&mut room).is_none());
    }

    /// One segment alone is no super-frame.
    #[test]
    fn a_last_piece_of_one_segment_is_a_plain_frame() {
        let gso = Some(Gso { kind: GsoKind::TcpV6, size: 48_000, ecn: false });
        let meta = Meta { gso, checksum: Checksum::Partial { start: 62, offset: 16 }, ..Meta::default() };
        let mut room = frame();
        let mut big = Big::begin(&mut room, &meta).expect("a frame");
        assert!((0..3).all(|_| big.next(&mut room).is_some_and(|(_, meta)| meta.gso.is_none())));
        for meta in [Meta { gso: None, ..meta }, Meta { checksum: Checksum::Complete, ..meta }] {
            assert!(Big::begin(&mut frame(), &meta).is_none());
        }
    }
}
