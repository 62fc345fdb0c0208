//! What two scrubbers with the same keys tell each other of connections: records out, records in.

use bump::Instant;

use crate::limits::BLOCKED_MAX;
use crate::tcp::class::Class;
use crate::tcp::flow::State;
use crate::tcp::work::seconds;
use crate::tcp::{Flows, record};

/// Places of the table that are looked at for one record.
const PLACES_MAX: usize = 4096;

/// What came of the question for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It was written.
    Record,
    /// Many places were looked at, and there may be more.
    Later,
    /// Nothing changed, and no round is under way.
    Nothing,
}

/// Another scrubber's record is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadRecord;

impl Flows {
    /// Remembers from now on what changes.
    pub(crate) fn follow_changes(&mut self) {
        self.changes.follow();
    }

    /// Tells all connections once more.
    pub(crate) fn begin_round(&mut self) {
        self.changes.begin_round();
    }

    pub(crate) fn is_round_over(&self) -> bool {
        self.changes.is_round_over()
    }

    /// Appends the next record to `out`.
    pub(crate) fn next_record(&mut self, now: Instant, out: &mut Vec<u8>) -> Told {
        for _ in 0..PLACES_MAX {
            let Some(index) = self.changes.next(self.table.places()) else { return Told::Nothing };
            let flow = self.table.get(index);
            if flow.is_some_and(|flow| record::write(flow, seconds(now), out)) {
                return Told::Record;
            }
        }
        Told::Later
    }

    /// Enters what another scrubber told, in the place of what is known of the connection. A table
    /// that is full makes room as for a connection of its own.
    pub(crate) fn take_record(&mut self, now: Instant, told: &[u8], both_directions: bool) -> Result<(), BadRecord> {
        let mut flow = record::read(told, seconds(now), record::scrubbed(both_directions)).ok_or(BadRecord)?;
        let known = self.table.find(&flow.key).and_then(|index| self.remove(index));
        if let Some(before) = known {
            // What passed here is not what passed there.
            (flow.packets, flow.bytes) = (before.packets, before.bytes);
            flow.opened = before.opened;
            if flow.state.class().is_over() {
                // Of these it is a guess.
                flow.opened_by = before.opened_by;
            }
        }
        if flow.state.class() == Class::Blocked && self.table.len_of(Class::Blocked) >= BLOCKED_MAX {
            return Ok(());
        }
        let (len, max) = self.table.len_and_max();
        if len == max
            && let Some(index) = self.table.dispensable(seconds(now))
        {
            self.remove(index);
        }
        self.table.insert(flow);
        Ok(())
    }

    /// Another scrubber goes on with all connections: what is retained here says nothing any more,
    /// and how far each is must be told again.
    pub(crate) fn stand_by(&mut self, both_directions: bool) {
        let scrubbed = record::scrubbed(both_directions);
        for place in 0..self.table.places() {
            let Some(flow) = self.table.get_mut(place as u32) else { continue };
            if let State::Established(established) = &mut flow.state {
                established.give_back(&mut self.memory);
                established.await_word(scrubbed);
            }
        }
        self.changes.clear();
        self.parking.clear();
    }
}
