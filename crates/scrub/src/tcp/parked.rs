//! Segments that wait until their receiver has said how far it is ([`catch_up`]).
//!
//! After a takeover what comes of a connection becomes questions, until its receiver has answered
//! one. If the segments were gone with that, their sender would send them again when its timer says
//! so, and timers double: after an outage of a quarter of a second that is one of half a second
//! more. So they wait here, as they came, and are judged in the order in which they came when the
//! answer is there. A question or its answer may be lost, so it is asked again before the sender
//! would.
//!
//! Nobody is shut out by others: all have the same share, so the more there are, the less each has,
//! and who comes last has as much as who was first. Who does not see a connection and guesses takes
//! no room from it: what is furthest in the stream is given up first, and that is what lies beyond
//! the window that was told ([`Lies`]).
//!
//! [`catch_up`]: crate::tcp::catch_up::catch_up

use std::cmp::Ordering;
use std::collections::BTreeMap;

use bump::{Frame, Instant, Meta, Side};

use crate::limits::{
    PARKED_ASK_AGAIN, PARKED_ASKS_PER_LOOK, PARKED_FRAMES_MAX, PARKED_LOOK_INTERVAL, PARKED_MAX_BYTES,
    PARKED_OVERHEAD_BYTES, PARKED_SHARE, PARKED_TIME,
};
use crate::tcp::catch_up::{Lies, Piece};
use crate::tcp::place::Index;
use crate::tcp::serial::ahead;

/// A frame as it came.
#[derive(Clone, Debug)]
pub(crate) struct Parked {
    pub(crate) from: Side,
    pub(crate) bytes: Vec<u8>,
    pub(crate) meta: Meta,
    piece: Piece,
}

impl Parked {
    fn cost(&self) -> usize {
        self.bytes.len() + PARKED_OVERHEAD_BYTES
    }

    /// Which of two stands first in the stream.
    fn in_stream(&self, other: &Parked) -> Ordering {
        ahead(self.piece.sequence, other.piece.sequence).cmp(&0)
    }
}

/// What became of segments that had to wait after a takeover.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Frames that were kept.
    pub kept: u64,
    /// Those that went on when their receiver had answered.
    pub went_on: u64,
    /// Those that were refused then, as they would have been without waiting.
    pub refused: u64,
    /// Those whose receiver did not answer in time; their sender sends them again.
    pub in_vain: u64,
    /// Frames for which there was no room, or that made room for older ones.
    pub no_room: u64,
    /// Frames that were not kept: they lay before or too far ahead of what was told.
    pub outside: u64,
    /// Those whose connection was reset, or ended here, before their receiver had answered.
    pub ended: u64,
    /// Questions that were asked again.
    pub asked_again: u64,
}

/// What waits of one half of a connection.
#[derive(Debug)]
struct Flight {
    /// In the order in which they came. In that of their numbers one that was lost and sent again
    /// would go before what was sent earlier, which its timestamp makes old: its receiver drops
    /// that (RFC 7323, section 5.3).
    frames: Vec<Parked>,
    cost_bytes: usize,
    since: Instant,
    /// When it is asked again.
    asks_at: Instant,
}

impl Flight {
    fn begin(now: Instant) -> Flight {
        Flight { frames: Vec::new(), cost_bytes: 0, since: now, asks_at: now + PARKED_ASK_AGAIN }
    }

    /// Enters a frame. False for one that is there already: of data the first one stays, of bare
    /// acknowledgements the one that acknowledges most.
    fn insert(&mut self, frame: Parked) -> bool {
        let known = self.frames.iter().position(|other| frame.piece.repeats(&other.piece));
        let says_more = |at: usize| {
            let before = self.frames[at].piece.acknowledgement;
            frame.piece.is_bare && ahead(frame.piece.acknowledgement, before) >= 0
        };
        if known.is_some_and(|at| !says_more(at)) {
            return false;
        }
        let older = known.map(|at| self.frames.remove(at));
        self.cost_bytes += frame.cost();
        self.cost_bytes -= older.as_ref().map_or(0, Parked::cost);
        self.frames.push(frame);
        older.is_none()
    }

    /// Gives up the latest in the stream until it costs `share` at most; how many that were.
    fn shrink(&mut self, share: usize) -> u64 {
        let before = self.frames.len();
        while (self.cost_bytes > share || self.frames.len() > PARKED_FRAMES_MAX)
            && let Some((latest, _)) = self.frames.iter().enumerate().max_by(|(_, a), (_, b)| a.in_stream(b))
        {
            self.cost_bytes -= self.frames.remove(latest).cost();
        }
        (before - self.frames.len()) as u64
    }

    /// The frame that is to become a question once more.
    fn ask(&mut self, now: Instant) -> Option<Parked> {
        self.asks_at = now + PARKED_ASK_AGAIN;
        self.frames.iter().min_by(|a, b| a.in_stream(b)).cloned()
    }
}

/// Whose they are: connection and sender.
type Half = (Index, Side);

/// All that waits.
#[derive(Debug, Default)]
pub(crate) struct Parking {
    flights: BTreeMap<Half, Flight>,
    /// Halves for which there is a share: a power of two, and as many as there are at least.
    places: usize,
    /// When it is looked for those that are to be asked again, or waited in vain.
    looks_at: Option<Instant>,
    /// The connection whose segment became a question just now, and where that lies.
    asked: Option<(Index, Lies)>,
    /// Whose receiver has just answered.
    answered: Option<Half>,
    waits: Waits,
}

impl Parking {
    /// Another packet is judged.
    pub(crate) fn put_down(&mut self) {
        (self.asked, self.answered) = (None, None);
    }

    /// The packet in hand cannot come again alone. What it answers is answered all the same.
    pub(crate) fn forget_question(&mut self) {
        self.asked = None;
    }

    /// Of the connection at `index` a segment that lies there became a question, or one from the
    /// other side answers what `answered` has sent.
    pub(crate) fn note(&mut self, index: Index, asked: Option<Lies>, answered: Option<Side>) {
        self.asked = asked.map(|lies| (index, lies));
        self.answered = answered.map(|sender| (index, sender));
    }

    /// Keeps `frame`, if it is the one that became a question and its half has room. What is oldest
    /// in the stream stays: its sender waits longest for that.
    pub(crate) fn park(&mut self, now: Instant, from: Side, frame: &Frame<'_>) {
        let Some((index, lies)) = self.asked.take() else { return };
        let (Lies::Inside(piece) | Lies::Beyond(piece)) = lies else {
            self.waits.outside += 1;
            return;
        };
        let half = (index, from);
        if !self.flights.contains_key(&half) {
            self.make_place();
        }
        let share = self.share();
        let flight = self.flights.entry(half).or_insert_with(|| Flight::begin(now));
        // The question that this one becomes is under way. A stranger's guess prolongs no wait.
        if lies == Lies::Inside(piece) {
            flight.since = now;
        }
        let is_new = flight.insert(Parked { from, bytes: frame.bytes.to_vec(), meta: frame.meta, piece });
        self.waits.kept += u64::from(is_new);
        self.waits.no_room += flight.shrink(share);
        if flight.frames.is_empty() {
            self.flights.remove(&half);
        }
        if !self.flights.is_empty() {
            self.looks_at.get_or_insert(now + PARKED_LOOK_INTERVAL);
        }
    }

    /// What each half may have, in bytes: with so many places all of them have less than there is.
    fn share(&self) -> usize {
        PARKED_MAX_BYTES / (PARKED_SHARE + self.places)
    }

    /// A place for one half more. Twice as many places are made when all are taken, so it is looked
    /// at all flights seldom enough.
    fn make_place(&mut self) {
        if self.flights.is_empty() {
            self.places = 1;
        }
        if self.flights.len() < self.places {
            return;
        }
        self.places *= 2;
        let share = self.share();
        let no_room = &mut self.waits.no_room;
        self.flights.retain(|_, flight| {
            *no_room += flight.shrink(share);
            !flight.frames.is_empty()
        });
    }

    /// What waited for the answer that came just now, as it came.
    pub(crate) fn take_answered(&mut self) -> Vec<Parked> {
        let flight = self.answered.take().and_then(|half| self.flights.remove(&half));
        flight.map_or_else(Vec::new, |flight| flight.frames)
    }

    /// Enters what became of one that was answered.
    pub(crate) fn settle(&mut self, went_on: bool) {
        let count = if went_on { &mut self.waits.went_on } else { &mut self.waits.refused };
        *count += 1;
    }

    /// The connection at `index` is gone, or its receiver knows none: nobody's word is waited for.
    pub(crate) fn end(&mut self, index: Index) {
        for side in [Side::TRUSTED, Side::UNTRUSTED] {
            let flight = self.flights.remove(&(index, side));
            self.waits.ended += flight.map_or(0, |flight| flight.frames.len() as u64);
        }
    }

    /// Forgets all that waits.
    pub(crate) fn clear(&mut self) {
        let frames: usize = self.flights.values().map(|flight| flight.frames.len()).sum();
        let in_vain = self.waits.in_vain + frames as u64;
        *self = Parking { waits: Waits { in_vain, ..self.waits }, ..Parking::default() };
    }

    /// Forgets what waited in vain, and gives what is to be asked again.
    pub(crate) fn look(&mut self, now: Instant) -> Vec<Parked> {
        if self.looks_at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        let waits = &mut self.waits;
        self.flights.retain(|_, flight| {
            let may_wait = now.since(flight.since) < PARKED_TIME;
            if !may_wait {
                waits.in_vain += flight.frames.len() as u64;
            }
            may_wait
        });
        // Those who come later have what those had who are gone.
        self.places = self.flights.len().next_power_of_two();
        self.looks_at = (!self.flights.is_empty()).then_some(now + PARKED_LOOK_INTERVAL);
        let again = self.ask_again(now);
        self.waits.asked_again += again.len() as u64;
        again
    }

    /// The oldest frame of each half whose time it is, as many as one look may ask. Those whose
    /// time it has been for longest come first: if there are more than can be asked between two
    /// questions, each has its turn before anybody has another.
    fn ask_again(&mut self, now: Instant) -> Vec<Parked> {
        let mut due: Vec<_> = self.flights.values_mut().filter(|flight| flight.asks_at <= now).collect();
        if due.len() > PARKED_ASKS_PER_LOOK {
            due.select_nth_unstable_by_key(PARKED_ASKS_PER_LOOK, |flight| flight.asks_at);
            due.truncate(PARKED_ASKS_PER_LOOK);
        }
        due.into_iter().filter_map(|flight| flight.ask(now)).collect()
    }

    /// When [`look`](Parking::look) next has something to do.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.looks_at
    }

    /// What became of all that waited.
    pub(crate) fn waits(&self) -> Waits {
        self.waits
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const NOW: Instant = Instant::from_millis(1000);

    fn data_at(sequence: u32) -> Piece {
        Piece { sequence, acknowledgement: 0, is_bare: false }
    }

    fn park(parking: &mut Parking, now: Instant, (index, sequence): (Index, u32), bytes: &mut [u8]) {
        parking.note(index, Some(Lies::Inside(data_at(sequence))), None);
        parking.park(now, Side::UNTRUSTED, &Frame { bytes, meta: Meta::plain() });
    }

    fn answered(parking: &mut Parking, index: Index) -> Vec<Vec<u8>> {
        parking.note(index, None, Some(Side::UNTRUSTED));
        parking.take_answered().into_iter().map(|parked| parked.bytes).collect()
    }

    fn cost_bytes(parking: &Parking) -> usize {
        parking.flights.values().flat_map(|flight| &flight.frames).map(Parked::cost).sum()
    }

    #[test]
    fn a_flight_waits_for_its_own_answer_and_goes_on_as_it_came() {
        let mut parking = Parking::default();
        let sequences = [3, u32::MAX, 7, 3];
        for (number, sequence) in sequences.into_iter().enumerate() {
            park(&mut parking, NOW, (1, sequence), &mut [number as u8; 60]);
        }
        park(&mut parking, NOW, (2, 5), &mut [9; 60]);
        assert_eq!(answered(&mut parking, 3), [[0; 60]; 0]);
        parking.note(1, None, Some(Side::TRUSTED));
        assert!(parking.take_answered().is_empty(), "what the other end sends was not asked about");
        assert_eq!(answered(&mut parking, 1), [[0; 60], [1; 60], [2; 60]], "the first one of a number stays");
        assert_eq!(answered(&mut parking, 1), [[0; 60]; 0], "once");
        assert_eq!(answered(&mut parking, 2), [[9; 60]]);
        assert_eq!((parking.flights.len(), parking.waits().kept), (0, 4));
    }

    /// A bare acknowledgement has the number of the data behind it, and shuts none of that out.
    #[test]
    fn of_bare_acknowledgements_the_highest_waits() {
        let mut parking = Parking::default();
        let said = [(1, true, 5), (2, false, 0), (3, true, 5), (4, false, 9), (5, true, 7), (6, true, 6)];
        for (fill, is_bare, acknowledgement) in said {
            parking.note(1, Some(Lies::Inside(Piece { sequence: 9, acknowledgement, is_bare })), None);
            parking.park(NOW, Side::UNTRUSTED, &Frame { bytes: &mut [fill; 60], meta: Meta::plain() });
        }
        assert_eq!(cost_bytes(&parking), parking.flights.values().map(|flight| flight.cost_bytes).sum::<usize>());
        assert_eq!(parking.waits().kept, 2);
        assert_eq!(answered(&mut parking, 1), [[2; 60], [5; 60]]);
    }

    #[test]
    fn nothing_waits_that_asked_nothing() {
        let mut parking = Parking::default();
        parking.note(1, Some(Lies::Inside(data_at(5))), None);
        parking.put_down();
        parking.park(NOW, Side::UNTRUSTED, &Frame { bytes: &mut [1; 60], meta: Meta::plain() });
        assert_eq!((answered(&mut parking, 1), parking.deadline()), (Vec::new(), None));
    }

    /// Others fill the memory with as much as they may, and whoever comes last finds room as well.
    #[test]
    fn nobody_is_shut_out_and_memory_is_bounded() {
        let mut parking = Parking::default();
        for index in 0..1000 {
            (0..40).for_each(|sequence| park(&mut parking, NOW, (index, sequence), &mut [0; 60_000]));
        }
        for index in 0..1000 {
            (40..200).for_each(|sequence| park(&mut parking, NOW, (index, sequence), &mut [0; 1500]));
        }
        assert!(cost_bytes(&parking) <= PARKED_MAX_BYTES && cost_bytes(&parking) > PARKED_MAX_BYTES / 2);
        assert!(parking.flights.values().all(|flight| flight.frames.len() <= PARKED_FRAMES_MAX));
        (0..3).for_each(|sequence| park(&mut parking, NOW, (5000, sequence), &mut [7; 1500]));
        assert_eq!(answered(&mut parking, 5000).len(), 3);
        let waits = parking.waits();
        let waiting: usize = parking.flights.values().map(|flight| flight.frames.len()).sum();
        assert_eq!(waits.kept - waits.no_room - 3, waiting as u64, "each is counted");
    }

    #[test]
    fn the_oldest_of_a_flight_stays() {
        let mut parking = Parking::default();
        for sequence in (0..100).rev() {
            park(&mut parking, NOW, (1, sequence), &mut [sequence as u8; 60]);
        }
        let expected: Vec<_> = (0..PARKED_FRAMES_MAX).rev().map(|sequence| vec![sequence as u8; 60]).collect();
        assert_eq!(answered(&mut parking, 1), expected);
        assert_eq!(parking.waits().no_room as usize, 100 - PARKED_FRAMES_MAX);
    }

    #[test]
    fn it_is_asked_again_and_given_up_in_the_end() {
        let mut parking = Parking::default();
        park(&mut parking, NOW, (1, 6), &mut [6; 60]);
        park(&mut parking, NOW, (1, 5), &mut [5; 60]);
        let mut asked = Vec::new();
        while let Some(at) = parking.deadline() {
            for frame in parking.look(at) {
                assert_eq!(frame.bytes, [5; 60], "the oldest one asks");
                asked.push(at.since(NOW).as_millis());
            }
        }
        assert_eq!(asked, [600, 1200, 1800]);
        assert_eq!(parking.flights.len(), 0);
        assert_eq!(parking.waits(), Waits { kept: 2, in_vain: 2, asked_again: 3, ..Waits::default() });
        park(&mut parking, NOW + PARKED_TIME, (1, 7), &mut [7; 60]);
        assert!(parking.look(NOW + PARKED_TIME + Duration::from_millis(1)).is_empty(), "not before its time");
        assert_eq!(answered(&mut parking, 1), [[7; 60]]);
    }

    #[test]
    fn one_look_asks_so_many() {
        let mut parking = Parking::default();
        let flights = PARKED_ASKS_PER_LOOK + 10;
        (0..flights).for_each(|index| park(&mut parking, NOW, (index as Index, 0), &mut [0; 60]));
        let later = NOW + PARKED_ASK_AGAIN;
        assert_eq!(parking.look(later).len(), PARKED_ASKS_PER_LOOK);
        assert_eq!(parking.look(later + PARKED_LOOK_INTERVAL).len(), 10);
    }

    /// With more halves than may be asked between two questions each is asked, and nobody twice
    /// before all others.
    #[test]
    fn many_halves_are_asked_in_turn() {
        let mut parking = Parking::default();
        let halves: Index = 5000;
        (0..halves).for_each(|index| park(&mut parking, NOW, (index, 0), &mut index.to_be_bytes()));
        let mut asked = vec![0_u32; halves as usize];
        while let Some(at) = parking.deadline() {
            let again = parking.look(at);
            assert!(again.len() <= PARKED_ASKS_PER_LOOK);
            for frame in again {
                let index = frame.bytes.iter().fold(0, |index, byte| index << 8 | usize::from(*byte));
                asked[index] += 1;
            }
            let fewest = asked.iter().min().copied().unwrap_or_default();
            assert!(asked.iter().all(|times| *times <= fewest + 1), "somebody twice before another");
        }
        assert!(
            asked.iter().all(|times| *times >= 1),
            "{} were never asked",
            asked.iter().filter(|times| **times == 0).count()
        );
    }

    #[test]
    fn what_lies_beyond_prolongs_no_wait() {
        let mut parking = Parking::default();
        park(&mut parking, NOW, (1, 5), &mut [5; 60]);
        for passed in 1..24 {
            parking.note(1, Some(Lies::Beyond(data_at(70_000 + passed))), None);
            let now = NOW + Duration::from_millis(100) * passed;
            parking.park(now, Side::UNTRUSTED, &Frame { bytes: &mut [0; 60], meta: Meta::plain() });
        }
        parking.look(NOW + PARKED_TIME);
        assert_eq!((parking.flights.len(), parking.waits().in_vain), (0, 24));
    }
}
