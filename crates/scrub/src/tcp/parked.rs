//! Segments that wait until their receiver has said how far it is ([`catch_up`]).
//!
//! After a takeover the first segment of a connection becomes a question. If it were gone with that,
//! its sender would send it again when its timer says so, and timers double: after an outage of a
//! quarter of a second that is one of half a second more. So it waits here, as it came, for as long
//! as its receiver takes to answer, and is judged then as if it came now.
//!
//! [`catch_up`]: crate::tcp::adoption::catch_up

use std::collections::BTreeMap;

use bump::{Frame, Instant, Meta, Side, time};

use crate::limits::{PARKED_MAX_BYTES, PARKED_OVERHEAD_BYTES, PARKED_TIME};
use crate::tcp::serial::ahead;
use crate::tcp::table::Index;

/// A frame as it came.
#[derive(Debug)]
pub(crate) struct Parked {
    pub(crate) from: Side,
    pub(crate) bytes: Vec<u8>,
    pub(crate) meta: Meta,
    sequence: u32,
    at: Instant,
}

impl Parked {
    fn cost(&self) -> usize {
        self.bytes.len() + PARKED_OVERHEAD_BYTES
    }
}

/// One frame of each connection at most.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    frames: BTreeMap<Index, Parked>,
    cost_bytes: usize,
    /// When it is looked for those that waited in vain.
    looks_at: Option<Instant>,
    /// The connection whose segment became a question just now, and its sequence number.
    asked: Option<(Index, u32)>,
    /// The connection whose receiver has just answered.
    answered: Option<Index>,
}

impl Parking {
    /// Another packet is judged.
    pub(crate) fn put_down(&mut self) {
        (self.asked, self.answered) = (None, None);
    }

    /// Of the connection at `index` a segment with this number became a question, or its receiver has
    /// just answered.
    pub(crate) fn note(&mut self, index: Index, asked: Option<u32>, receiver_spoke: bool) {
        self.asked = asked.map(|sequence| (index, sequence));
        self.answered = receiver_spoke.then_some(index);
    }

    /// Keeps `frame`, if it is the one that became a question and there is room. It takes the place of
    /// one that comes later in the stream: its sender waits longest for the oldest.
    pub(crate) fn park(&mut self, now: Instant, from: Side, frame: &Frame<'_>) {
        let Some((index, sequence)) = self.asked.take() else { return };
        let known = self.frames.get(&index);
        let freed = known.map_or(0, Parked::cost);
        let cost = self.cost_bytes - freed + frame.bytes.len() + PARKED_OVERHEAD_BYTES;
        if known.is_some_and(|known| ahead(sequence, known.sequence) >= 0) || cost > PARKED_MAX_BYTES {
            return;
        }
        self.cost_bytes = cost;
        self.looks_at.get_or_insert(now + PARKED_TIME);
        self.frames.insert(index, Parked { from, bytes: frame.bytes.to_vec(), meta: frame.meta, sequence, at: now });
    }

    /// What waited for the answer that came just now.
    pub(crate) fn take_answered(&mut self) -> Option<Parked> {
        let parked = self.frames.remove(&self.answered.take()?)?;
        self.cost_bytes -= parked.cost();
        Some(parked)
    }

    /// Forgets all that waits.
    pub(crate) fn clear(&mut self) {
        *self = Parking::default();
    }

    /// Forgets what waited in vain; its sender sends it again.
    pub(crate) fn expire(&mut self, now: Instant) {
        if self.looks_at.take_if(|at| *at <= now).is_none() {
            return;
        }
        let cost_bytes = &mut self.cost_bytes;
        self.frames.retain(|_, parked| {
            let waits = now.since(parked.at) < PARKED_TIME;
            *cost_bytes -= if waits { 0 } else { parked.cost() };
            waits
        });
        let oldest = self.frames.values().map(|parked| Some(parked.at + PARKED_TIME));
        self.looks_at = oldest.fold(None, time::earlier);
    }

    /// When [`expire`](Parking::expire) next has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.looks_at
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: Instant = Instant::from_millis(1000);

    fn park(parking: &mut Parking, now: Instant, index: Index, mut bytes: Vec<u8>) {
        park_at(parking, now, (index, 5), &mut bytes);
    }

    fn park_at(parking: &mut Parking, now: Instant, (index, sequence): (Index, u32), bytes: &mut [u8]) {
        parking.note(index, Some(sequence), false);
        parking.park(now, Side::UNTRUSTED, &Frame { bytes, meta: Meta::plain() });
    }

    fn answered(parking: &mut Parking, index: Index) -> Option<Vec<u8>> {
        parking.note(index, None, true);
        parking.take_answered().map(|parked| parked.bytes)
    }

    #[test]
    fn the_first_frame_of_each_connection_waits_for_its_own_answer() {
        let mut parking = Parking::default();
        for (index, byte) in [(1, 1), (2, 2), (1, 3)] {
            park(&mut parking, NOW, index, vec![byte; 60]);
        }
        assert_eq!(answered(&mut parking, 1), Some(vec![1; 60]));
        assert_eq!([answered(&mut parking, 1), answered(&mut parking, 3)], [None, None]);
        assert_eq!(answered(&mut parking, 2), Some(vec![2; 60]));
        assert_eq!(parking.cost_bytes, 0);
    }

    #[test]
    fn the_oldest_of_a_connection_waits() {
        let mut parking = Parking::default();
        let sequences = [3, u32::MAX, 7];
        for sequence in sequences {
            park_at(&mut parking, NOW, (1, sequence), &mut [sequence as u8; 60]);
        }
        assert_eq!(parking.cost_bytes, 60 + PARKED_OVERHEAD_BYTES);
        assert_eq!((answered(&mut parking, 1), parking.cost_bytes), (Some(vec![u8::MAX; 60]), 0));
    }

    #[test]
    fn nothing_waits_that_asked_nothing() {
        let mut parking = Parking::default();
        parking.note(1, Some(5), false);
        parking.put_down();
        parking.park(NOW, Side::UNTRUSTED, &Frame { bytes: &mut [1; 60], meta: Meta::plain() });
        assert_eq!((answered(&mut parking, 1), parking.deadline()), (None, None));
    }

    #[test]
    fn memory_is_bounded_and_free_when_nobody_answers() {
        let mut parking = Parking::default();
        let len = 60_000;
        (0..10_000).for_each(|index| park(&mut parking, NOW, index, vec![0; len]));
        assert!(parking.cost_bytes <= PARKED_MAX_BYTES && parking.cost_bytes + 2 * len > PARKED_MAX_BYTES);
        let later = NOW + PARKED_TIME;
        assert_eq!(parking.deadline(), Some(later));
        parking.expire(later - Duration::from_millis(1));
        assert!(parking.cost_bytes > 0);
        parking.expire(later);
        assert_eq!((parking.cost_bytes, parking.frames.len(), parking.deadline()), (0, 0, None));
        park(&mut parking, later, 1, vec![7; 60]);
        park(&mut parking, later + PARKED_TIME / 2, 2, vec![8; 60]);
        parking.expire(later + PARKED_TIME);
        assert_eq!(parking.deadline(), Some(later + PARKED_TIME + PARKED_TIME / 2));
        assert_eq!((answered(&mut parking, 1), answered(&mut parking, 2)), (None, Some(vec![8; 60])));
    }
}
