//! What the two gateways tell each other: connections and stations, each record with its kind in
//! front.

use bump::Instant;
use pair::{Next, Source};
use scrub::Scrubber;
use system::null::NullBump;

use super::stations::Stations;

const FLOW: u8 = 1;
const STATION: u8 = 2;

/// A bump that may have a scrubber in it.
pub(crate) trait HasScrubber {
    /// Its scrubber.
    fn scrubber(&mut self) -> Option<&mut Scrubber>;
}

impl HasScrubber for Scrubber {
    fn scrubber(&mut self) -> Option<&mut Scrubber> {
        Some(self)
    }
}

impl HasScrubber for NullBump {
    fn scrubber(&mut self) -> Option<&mut Scrubber> {
        None
    }
}

/// All that there is to tell.
pub(super) struct Told<'a> {
    pub(super) scrubber: Option<&'a mut Scrubber>,
    pub(super) stations: &'a mut Stations,
    /// Records that could not be read.
    pub(super) bad_records: &'a mut u64,
}

impl Source for Told<'_> {
    fn begin_round(&mut self) {
        self.stations.begin_round();
        self.scrubber.iter_mut().for_each(|scrubber| scrubber.begin_round());
    }

    fn next_record(&mut self, now: Instant, record: &mut Vec<u8>) -> Next {
        record.push(STATION);
        if self.stations.next_record(now, record) {
            return Next::Record;
        }
        record.clear();
        record.push(FLOW);
        match self.scrubber.as_mut().map(|scrubber| scrubber.next_record(now, record)) {
            Some(scrub::Told::Record) => Next::Record,
            Some(scrub::Told::Later) => Next::Later,
            Some(scrub::Told::Nothing) | None => Next::Nothing,
        }
    }

    fn is_round_over(&self) -> bool {
        self.stations.is_all_told() && self.scrubber.as_ref().is_none_or(|scrubber| scrubber.is_round_over())
    }

    fn take_record(&mut self, now: Instant, record: &[u8]) -> bool {
        let is_read = match record.split_first() {
            Some((&FLOW, flow)) => {
                self.scrubber.as_mut().is_none_or(|scrubber| scrubber.take_record(now, flow).is_ok())
            }
            Some((&STATION, station)) => self.stations.take_record(now, station),
            _ => false,
        };
        *self.bad_records += u64::from(!is_read);
        is_read
    }
}
