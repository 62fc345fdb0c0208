//! A busy connection on its way to the kernel (record 0123): windows are held where they end, until the
//! sender has exhausted them and its peer has all. Nothing is left then that the daemon has not heard.

use bump::{Instant, Side};

use crate::limits::{DRAIN_TIME, HOP_LIMIT_FIRST};
use crate::tcp::established::Established;
use crate::tcp::key::Key;
use crate::tcp::made::Made;
use crate::tcp::options::Timestamps;
use crate::tcp::segment::{Segment, flag};
use crate::tcp::serial::ahead;

/// Bytes of timestamps with their padding (RFC 7323, appendix A).
const STAMPS_LEN: u32 = 12;

/// A connection whose windows are held.
#[derive(Clone, Debug)]
pub(crate) struct Drain {
    /// Where windows end meanwhile, by the side that sends.
    edges: [u32; 2],
    /// Bytes of a full segment, by the side that sends.
    full: [u32; 2],
    /// Which hosts were told of less room than there is.
    is_held: [bool; 2],
    pub(crate) until: Instant,
}

impl Drain {
    /// Windows end where the last full segment ends that they have room for now, or the one behind it:
    /// a sender does not send a part of one.
    pub(crate) fn begin(now: Instant, established: &Established) -> Drain {
        let stamps_len = if established.agreed.timestamps { STAMPS_LEN } else { 0 };
        let full = established.halves.each_ref().map(|half| u32::from(half.mss).saturating_sub(stamps_len).max(1));
        let mut edges = established.halves.each_ref().map(|half| half.edge);
        for (side, half) in established.halves.iter().enumerate() {
            let room = ahead(half.edge, half.in_sequence).max(0).cast_unsigned();
            edges[side] = half.in_sequence.wrapping_add(room.div_ceil(full[side]).saturating_mul(full[side]));
        }
        Drain { edges, full, is_held: [false; 2], until: now + DRAIN_TIME }
    }

    /// Lets the window that `segment`, from side `from`, grants end where it is held.
    pub(crate) fn hold(&mut self, from: Side, established: &Established, segment: &mut Segment<'_>) {
        let to = from.other() as usize;
        let room = ahead(self.edges[to], segment.acknowledgement).max(0).cast_unsigned();
        let scale = established.halves[from as usize].scale.told;
        let room = room.div_ceil(1 << scale).min(u32::from(u16::MAX)) as u16;
        if segment.window > room {
            segment.window = room;
            self.is_held[to] = true;
        }
    }

    /// Whose window is exhausted, by the side that sends: he has nothing more under way.
    pub(crate) fn exhausted(&self, established: &Established) -> [bool; 2] {
        let mut exhausted = [false; 2];
        for (side, half) in established.halves.iter().enumerate() {
            let room = ahead(self.edges[side], half.in_sequence).max(0).cast_unsigned();
            exhausted[side] = self.is_held[side] && room < self.full[side];
        }
        exhausted
    }

    /// Window updates for whoever was told of less room than there is.
    pub(crate) fn updates(&self, key: &Key, established: &Established) -> impl Iterator<Item = Made> {
        [Side::TRUSTED, Side::UNTRUSTED].map(|to| self.update(to, key, established)).into_iter().flatten()
    }

    fn update(&self, to: Side, key: &Key, established: &Established) -> Option<Made> {
        if !self.is_held[to as usize] {
            return None;
        }
        let (own, other) = (&established.halves[to as usize], &established.halves[to.other() as usize]);
        let window = own.edge.wrapping_sub(own.unacknowledged) >> other.scale.told;
        let has_stamps = established.agreed.timestamps && own.has_stamp && other.has_stamp;
        Some(Made {
            key: *key,
            to,
            hop_limit: HOP_LIMIT_FIRST,
            flags: flag::ACK,
            sequence: other.in_sequence,
            acknowledgement: own.unacknowledged,
            window: window.min(u32::from(u16::MAX)) as u16,
            timestamps: has_stamps.then_some(Timestamps { value: other.stamp, echo: own.stamp }),
            sack: None,
        })
    }
}
