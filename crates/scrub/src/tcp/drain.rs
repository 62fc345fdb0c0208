//! A busy connection on its way to the kernel (record 0123): windows are held where they end, or
//! before, until the sender has exhausted them and its peer has all. Nothing is left then that the
//! daemon has not heard.

use std::time::Duration;

use bump::{Instant, Side};

use crate::limits::{
    DRAIN_DOUBLINGS_MAX, DRAIN_PAUSE, DRAIN_PAUSE_MAX, DRAIN_PAUSE_MIN, DRAIN_ROOM, DRAIN_ROOM_MIN_BYTES, DRAIN_TIME,
    HOP_LIMIT_FIRST,
};
use crate::tcp::established::Established;
use crate::tcp::key::Key;
use crate::tcp::made::Made;
use crate::tcp::options::Timestamps;
use crate::tcp::segment::{Segment, flag};
use crate::tcp::serial::ahead;

/// Bytes of timestamps with their padding (RFC 7323, appendix A).
const STAMPS_LEN: u32 = 12;

/// When a connection may be drained again: so that it stands still for a small part of its time
/// only, whoever has it come back from the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    /// After the latest drain.
    again_at: Option<Instant>,
    /// How often in a row it was in vain.
    vain: u8,
}

impl Pace {
    /// Whether one may begin at `now`.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        self.again_at.is_none_or(|at| at <= now)
    }

    /// A drain is over at `now`; `is_vain` if the sender had more under way all the time.
    pub(crate) fn ended(&mut self, drain: &Drain, now: Instant, is_vain: bool) {
        if is_vain {
            self.learn(false);
        }
        let pause = (drain.still(now) * DRAIN_PAUSE).max(DRAIN_PAUSE_MIN) * (1 << self.vain);
        self.again_at = Some(now + pause.min(DRAIN_PAUSE_MAX));
    }

    /// The connection came back, after a stay that was worth the drain or not, or could not be
    /// handed over.
    pub(crate) fn learn(&mut self, was_worth_it: bool) {
        self.vain = if was_worth_it { 0 } else { (self.vain + 1).min(DRAIN_DOUBLINGS_MAX) };
    }
}

/// A connection whose windows are held.
#[derive(Clone, Debug)]
pub(crate) struct Drain {
    /// Where windows end meanwhile, by the side that sends. A sender must bear that they ended
    /// later before (RFC 9293, section 3.8.6).
    edges: [u32; 2],
    /// Bytes of a full segment, by the side that sends.
    full: [u32; 2],
    /// Which hosts were told of less room than there is.
    is_held: [bool; 2],
    began: Instant,
    /// When each side sent data last: since then one that is held may stand still.
    last_data_at: [Instant; 2],
}

impl Drain {
    /// Windows end a little behind what a sender may have under way, which is less than they have
    /// room for as a rule, with a full segment: a sender does not send a part of one. Who had more
    /// under way comes back from the kernel at once, and gets twice the room next time.
    pub(crate) fn begin(now: Instant, established: &Established, pace: &Pace) -> Drain {
        let stamps_len = if established.agreed.timestamps { STAMPS_LEN } else { 0 };
        let full = established.halves.each_ref().map(|half| u32::from(half.mss).saturating_sub(stamps_len).max(1));
        let mut edges = established.halves.each_ref().map(|half| half.edge);
        for (side, half) in established.halves.iter().enumerate() {
            let open = half.in_sequence.wrapping_sub(half.unacknowledged);
            let under_way = DRAIN_ROOM_MIN_BYTES.max(open.saturating_mul(DRAIN_ROOM)).saturating_mul(1 << pace.vain);
            let room = ahead(half.edge, half.in_sequence).max(0).cast_unsigned().min(under_way);
            edges[side] = half.in_sequence.wrapping_add(room.div_ceil(full[side]).saturating_mul(full[side]));
        }
        Drain { edges, full, is_held: [false; 2], began: now, last_data_at: [now; 2] }
    }

    /// Data came from `side` at `now`.
    pub(crate) fn hear_data(&mut self, now: Instant, side: Side) {
        self.last_data_at[side as usize] = now;
    }

    /// How long a sender who was told of no more room may have stood still at `now`: since his last
    /// data, and as long again until he hears of more.
    fn still(&self, now: Instant) -> Duration {
        let sides = self.is_held.iter().zip(&self.last_data_at);
        let longest = sides.filter(|(is_held, _)| **is_held).map(|(_, at)| now.since(*at)).max();
        longest.unwrap_or_default().min(DRAIN_TIME) * 2
    }

    /// Whether it has taken too long at `now`.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        now.since(self.began) >= DRAIN_TIME
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
            let room = ahead(self.edges[side], half.in_sequence);
            exhausted[side] = self.is_held[side] && room < self.full[side].cast_signed();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(milliseconds: u64) -> Instant {
        Instant::from_millis(milliseconds)
    }

    /// Of which the untrusted host has `open` bytes under way behind the gateway.
    fn established(open: u32) -> Established {
        let mut established = Established::adopt(1000, 9 << 20, 0);
        established.halves[Side::UNTRUSTED as usize].unacknowledged -= open;
        established
    }

    #[test]
    fn a_sender_stands_still_for_a_seventeenth_of_the_time_at_most() {
        let mut pace = Pace::default();
        let mut drain = Drain::begin(at(1000), &established(0), &pace);
        drain.is_held = [false, true];
        drain.hear_data(at(1500), Side::UNTRUSTED);
        // The other side goes on, which does not help who is held.
        drain.hear_data(at(1520), Side::TRUSTED);
        pace.ended(&drain, at(1520), false);
        let still = 2 * 20;
        assert!(!pace.allows(at(1519 + 16 * still)) && pace.allows(at(1520 + 16 * still)));
        pace.learn(false);
        pace.ended(&drain, at(1520), false);
        assert!(!pace.allows(at(1519 + 32 * still)) && pace.allows(at(1520 + 32 * still)));
        (0..99).for_each(|_| pace.learn(false));
        pace.ended(&drain, at(9_000_000), true);
        assert!(!pace.allows(at(9_063_999)) && pace.allows(at(9_064_000)), "silence is no reason to wait longer");
        pace.learn(true);
        drain.hear_data(at(9_000_000), Side::UNTRUSTED);
        pace.ended(&drain, at(9_000_000), false);
        assert!(!pace.allows(at(9_000_009)) && pace.allows(at(9_000_010)));
    }

    #[test]
    fn windows_end_behind_what_a_sender_may_have_under_way_and_with_a_full_segment() {
        for (open, vain, least) in [(0, 0, 512 << 10), (1 << 20, 0, 4 << 20), (4 << 20, 9, 1 << 30)] {
            let established = established(open);
            let drain = Drain::begin(at(0), &established, &Pace { again_at: None, vain });
            let room = drain.edges[1].wrapping_sub(established.halves[1].in_sequence);
            let granted = established.halves[1].edge.wrapping_sub(established.halves[1].in_sequence);
            assert!(room >= least.min(granted) && room.is_multiple_of(drain.full[1]), "{open} {vain}: {room}");
        }
    }
}
