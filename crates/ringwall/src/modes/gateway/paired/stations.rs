//! Whose hardware addresses lie on which side: as many as a switch of middling size remembers.
//!
//! Only the active gateway learns: on standby it hears frames that the other one forwards, and could
//! not tell where they began.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use bump::{Instant, Side, VlanTag};
use wire::MacAddress;

/// Stations that are remembered.
const STATIONS_MAX: usize = 8192;
/// After so long without a frame a switch forgets a station, and so is it forgotten here (IEEE
/// 802.1Q, table 8-6).
const REMEMBERED: Duration = Duration::from_secs(300);
/// A station that is heard again so soon is not entered again.
const REFRESHED: Duration = Duration::from_secs(30);
/// Bytes of a record: side, address, and the tag.
const RECORD_LEN: usize = 1 + 6 + 4;

/// A station in its VLAN.
type Station = (MacAddress, [u8; 4]);

/// Where stations are.
#[derive(Debug, Default)]
pub(super) struct Stations {
    known: HashMap<Station, (Side, Instant)>,
    /// The last one of each side, which the next frame is most often of.
    last: [Option<(Station, Instant)>; 2],
    /// Those that the other gateway was not told of.
    untold: VecDeque<Station>,
}

impl Stations {
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// A frame came from side `from`.
    pub(super) fn hear(&mut self, now: Instant, from: Side, frame: &[u8], vlan: Option<VlanTag>) {
        let Some(source) = frame.get(6..12).and_then(|bytes| bytes.try_into().ok()).map(MacAddress) else { return };
        if source.is_group() {
            return;
        }
        let station = (source, tag_bytes(frame, vlan));
        if self.last[from as usize].is_some_and(|(last, at)| last == station && now.since(at) < REFRESHED) {
            return;
        }
        self.last[from as usize] = Some((station, now));
        if self.enter(now, station, from) && self.untold.len() < STATIONS_MAX {
            self.untold.push_back(station);
        }
    }

    /// True if that is news. What is on the trusted side is not taken from there by a frame that
    /// says otherwise.
    fn enter(&mut self, now: Instant, station: Station, side: Side) -> bool {
        match self.known.get_mut(&station) {
            Some((known, at)) if *known == side => {
                *at = now;
                false
            }
            Some((Side::TRUSTED, at)) if now.since(*at) < REMEMBERED => false,
            Some(place) => {
                *place = (side, now);
                true
            }
            None => {
                if self.known.len() >= STATIONS_MAX {
                    self.known.retain(|_, (_, at)| now.since(*at) < REMEMBERED);
                }
                let has_room = self.known.len() < STATIONS_MAX;
                if has_room {
                    self.known.insert(station, (side, now));
                }
                has_room
            }
        }
    }

    /// Those that switches still remember.
    pub(super) fn heard_of_late(&self, now: Instant) -> Vec<(Side, MacAddress, Option<VlanTag>)> {
        let of_late = self.known.iter().filter(|(_, (_, at))| now.since(*at) < REMEMBERED);
        of_late.map(|((address, tag), (side, _))| (*side, *address, vlan(*tag))).collect()
    }

    /// Has all of them told again.
    pub(super) fn begin_round(&mut self) {
        self.untold = self.known.keys().copied().collect();
    }

    /// Appends the next one that is to be told.
    pub(super) fn next_record(&mut self, record: &mut Vec<u8>) -> bool {
        while let Some(station) = self.untold.pop_front() {
            if let Some((side, _)) = self.known.get(&station) {
                record.push(*side as u8);
                record.extend_from_slice(&station.0.0);
                record.extend_from_slice(&station.1);
                return true;
            }
        }
        false
    }

    pub(super) fn is_all_told(&self) -> bool {
        self.untold.is_empty()
    }

    /// Enters what the other gateway told; false if it is nothing of the kind.
    pub(super) fn take_record(&mut self, now: Instant, record: &[u8]) -> bool {
        let Ok(record) = <[u8; RECORD_LEN]>::try_from(record) else { return false };
        let [side, a, b, c, d, e, f, tag @ ..] = record;
        let side = match side {
            0 => Side::TRUSTED,
            1 => Side::UNTRUSTED,
            _ => return false,
        };
        self.enter(now, (MacAddress([a, b, c, d, e, f]), tag), side);
        true
    }
}

/// The tag of a frame without its priority, zeros if it has none.
fn tag_bytes(frame: &[u8], vlan: Option<VlanTag>) -> [u8; 4] {
    let [tpid, tci] = match vlan {
        Some(VlanTag { tpid, tci }) => [tpid.to_be_bytes(), tci.to_be_bytes()],
        None => match frame.get(12..16) {
            Some(&[0x81, 0, high, low]) => [[0x81, 0], [high, low]],
            Some(&[0x88, 0xa8, high, low]) => [[0x88, 0xa8], [high, low]],
            _ => return [0; 4],
        },
    };
    [tpid[0], tpid[1], tci[0] & 0x0f, tci[1]]
}

fn vlan([a, b, c, d]: [u8; 4]) -> Option<VlanTag> {
    let (tpid, tci) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
    (tpid != 0).then_some(VlanTag { tpid, tci })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_millis(1000);

    fn frame(station: u16) -> Vec<u8> {
        let [high, low] = station.to_be_bytes();
        [&[2; 6][..], &[2, 0, 0, 0, high, low], &[8, 0], &[0; 46]].concat()
    }

    #[test]
    fn what_one_gateway_learns_the_other_announces() {
        let (mut active, mut standby) = (Stations::default(), Stations::default());
        active.hear(NOW, Side::TRUSTED, &frame(1), None);
        active.hear(NOW, Side::UNTRUSTED, &frame(2), Some(VlanTag { tpid: 0x8100, tci: 0xe007 }));
        active.hear(NOW, Side::UNTRUSTED, &frame(1), None);
        let mut record = Vec::new();
        while active.next_record(&mut record) {
            assert!(standby.take_record(NOW, &record));
            record.clear();
        }
        assert!(active.is_all_told());
        let mut announced = standby.heard_of_late(NOW);
        announced.sort_by_key(|(_, station, _)| *station);
        let station = |number: u8| MacAddress([2, 0, 0, 0, 0, number]);
        let tag = Some(VlanTag { tpid: 0x8100, tci: 7 });
        assert_eq!(announced, [(Side::TRUSTED, station(1), None), (Side::UNTRUSTED, station(2), tag)]);
        assert!(standby.heard_of_late(NOW + REMEMBERED).is_empty());
        assert!(!standby.take_record(NOW, &[0; 3]) && !standby.take_record(NOW, &[9; RECORD_LEN]));
    }

    #[test]
    fn strangers_fill_no_more_than_there_is() {
        let mut stations = Stations::default();
        (0..=u16::MAX).for_each(|number| stations.hear(NOW, Side::UNTRUSTED, &frame(number), None));
        assert_eq!((stations.len(), stations.untold.len()), (STATIONS_MAX, STATIONS_MAX));
    }
}
