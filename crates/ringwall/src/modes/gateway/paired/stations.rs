//! Whose hardware addresses lie on which side: as many as a switch of middling size remembers.
//!
//! Only the active gateway learns: on standby it hears frames that the other one forwards, and could
//! not tell where they began.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use bump::{Instant, Side, VlanTag};
use wire::MacAddress;

/// Stations that are remembered of one side: whoever makes up addresses on the other one takes no
/// room from it.
const STATIONS_OF_SIDE_MAX: usize = 4096;
const STATIONS_MAX: usize = 2 * STATIONS_OF_SIDE_MAX;
/// After so long without a frame a switch forgets a station, and so is it forgotten here (IEEE
/// 802.1Q, table 8-6).
const REMEMBERED: Duration = Duration::from_secs(300);
/// A station that is heard again so soon is not entered, and not told, again. Twice that and a
/// silence between stay well below [`REMEMBERED`].
const REFRESHED: Duration = Duration::from_secs(60);
/// Between two looks for stations to forget, as each looks at all of them.
const FORGETS_EVERY: Duration = Duration::from_secs(1);
/// Bytes of a record: side, address, and the tag.
const RECORD_LEN: usize = 1 + 6 + 4;

/// A station in its VLAN.
pub(super) type Station = (MacAddress, [u8; 4]);

/// Where stations are.
#[derive(Debug, Default)]
pub(super) struct Stations {
    known: HashMap<Station, (Side, Instant)>,
    /// How many of them are on each side.
    counts: [usize; 2],
    forgot_at: Option<Instant>,
    /// The last one of each side, which the next frame is most often of.
    last: [Option<(Station, Instant)>; 2],
    /// Those that the other gateway was not told of.
    untold: VecDeque<Station>,
}

impl Stations {
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// A frame of `station` came from side `from`, and passed.
    pub(super) fn hear(&mut self, now: Instant, from: Side, station: Station) {
        if self.last[from as usize].is_some_and(|(last, at)| last == station && now.since(at) < REFRESHED) {
            return;
        }
        self.last[from as usize] = Some((station, now));
        if self.enter(now, station, from) && self.untold.len() < STATIONS_MAX {
            self.untold.push_back(station);
        }
    }

    /// True if that is news, or was told so long ago that it must be told again. What is on the
    /// trusted side is not taken from there by a frame that says otherwise.
    fn enter(&mut self, now: Instant, station: Station, side: Side) -> bool {
        match self.known.get(&station) {
            Some((known, at)) if *known == side && now.since(*at) < REFRESHED => false,
            Some((Side::TRUSTED, at)) if side != Side::TRUSTED && now.since(*at) < REMEMBERED => false,
            _ => self.put(now, station, side),
        }
    }

    /// Puts it on `side`, if there is room.
    fn put(&mut self, now: Instant, station: Station, side: Side) -> bool {
        let known = self.known.get(&station).map(|(known, _)| *known);
        if known != Some(side) {
            if !self.has_room(now, side) {
                return false;
            }
            // It may have been forgotten for want of room.
            if let Some((known, _)) = self.known.remove(&station) {
                self.counts[known as usize] -= 1;
            }
            self.counts[side as usize] += 1;
        }
        self.known.insert(station, (side, now));
        true
    }

    fn has_room(&mut self, now: Instant, side: Side) -> bool {
        let is_full = self.counts[side as usize] >= STATIONS_OF_SIDE_MAX;
        if is_full && self.forgot_at.is_none_or(|at| now.since(at) >= FORGETS_EVERY) {
            self.forgot_at = Some(now);
            let counts = &mut self.counts;
            self.known.retain(|_, (side, at)| {
                let stays = now.since(*at) < REMEMBERED;
                counts[*side as usize] -= usize::from(!stays);
                stays
            });
        }
        self.counts[side as usize] < STATIONS_OF_SIDE_MAX
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

    /// Appends the next one that is to be told, of those that switches still remember.
    pub(super) fn next_record(&mut self, now: Instant, record: &mut Vec<u8>) -> bool {
        while let Some(station) = self.untold.pop_front() {
            let known = self.known.get(&station).filter(|(_, at)| now.since(*at) < REMEMBERED);
            if let Some((side, _)) = known {
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

    /// Enters what the other gateway told, which knows best: it forwards. False if it is nothing of
    /// the kind.
    pub(super) fn take_record(&mut self, now: Instant, record: &[u8]) -> bool {
        let Ok(record) = <[u8; RECORD_LEN]>::try_from(record) else { return false };
        let [side, a, b, c, d, e, f, tag @ ..] = record;
        let side = match side {
            0 => Side::TRUSTED,
            1 => Side::UNTRUSTED,
            _ => return false,
        };
        self.put(now, (MacAddress([a, b, c, d, e, f]), tag), side);
        true
    }
}

/// Whose frame it is.
pub(super) fn station(frame: &[u8], vlan: Option<VlanTag>) -> Option<Station> {
    let source = frame.get(6..12).and_then(|bytes| bytes.try_into().ok()).map(MacAddress)?;
    (!source.is_group()).then(|| (source, tag_bytes(frame, vlan)))
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

    fn numbered(number: u16, vlan: Option<VlanTag>) -> Station {
        station(&frame(number), vlan).expect("no group")
    }

    #[test]
    fn a_group_is_no_station_nor_is_a_frame_cut_short() {
        let mut group = frame(1);
        group[6] |= 1;
        assert_eq!([station(&group, None), station(&frame(1)[..11], None)], [None, None]);
    }

    fn tell(now: Instant, active: &mut Stations, standby: &mut Stations) {
        let mut record = Vec::new();
        while active.next_record(now, &mut record) {
            assert!(standby.take_record(now, &record));
            record.clear();
        }
        assert!(active.is_all_told());
    }

    #[test]
    fn a_station_that_speaks_on_is_announced_however_long_ago_the_last_round_was() {
        let (mut active, mut standby) = (Stations::default(), Stations::default());
        for seconds in 0..400 {
            let now = NOW + Duration::from_secs(seconds);
            active.hear(now, Side::TRUSTED, numbered(1, None));
            active.hear(now, Side::UNTRUSTED, numbered(2, None));
            if seconds % 3 == 0 {
                active.hear(now, Side::UNTRUSTED, numbered(3, None));
            }
            assert!(seconds % 60 == 0 || active.untold.len() <= 1, "it is not told with each frame");
            tell(now, &mut active, &mut standby);
        }
        let announced = |stations: &Stations| stations.heard_of_late(NOW + Duration::from_secs(400)).len();
        assert_eq!([announced(&active), announced(&standby)], [3, 3]);
    }

    /// What the active gateway says replaces what the other one learned when it was active.
    #[test]
    fn a_record_moves_a_station() {
        let (mut active, mut standby) = (Stations::default(), Stations::default());
        standby.hear(NOW, Side::TRUSTED, numbered(1, None));
        active.hear(NOW, Side::UNTRUSTED, numbered(1, None));
        tell(NOW, &mut active, &mut standby);
        let station = MacAddress([2, 0, 0, 0, 0, 1]);
        assert_eq!(standby.heard_of_late(NOW), [(Side::UNTRUSTED, station, None)]);
        assert_eq!(standby.counts, [0, 1]);
    }

    #[test]
    fn a_round_leaves_out_what_switches_forgot() {
        let (mut active, mut standby) = (Stations::default(), Stations::default());
        active.hear(NOW, Side::TRUSTED, numbered(1, None));
        active.hear(NOW + REMEMBERED, Side::TRUSTED, numbered(2, None));
        active.begin_round();
        tell(NOW + REMEMBERED, &mut active, &mut standby);
        assert_eq!((active.len(), standby.len()), (2, 1));
    }

    #[test]
    fn what_one_gateway_learns_the_other_announces() {
        let (mut active, mut standby) = (Stations::default(), Stations::default());
        active.hear(NOW, Side::TRUSTED, numbered(1, None));
        active.hear(NOW, Side::UNTRUSTED, numbered(2, Some(VlanTag { tpid: 0x8100, tci: 0xe007 })));
        active.hear(NOW, Side::UNTRUSTED, numbered(1, None));
        tell(NOW, &mut active, &mut standby);
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
        (1..=u16::MAX).for_each(|number| stations.hear(NOW, Side::UNTRUSTED, numbered(number, None)));
        assert_eq!((stations.len(), stations.untold.len()), (STATIONS_OF_SIDE_MAX, STATIONS_OF_SIDE_MAX));
        // A trusted station finds room, one whose address was made up as well.
        stations.hear(NOW, Side::TRUSTED, numbered(0, None));
        stations.hear(NOW, Side::TRUSTED, numbered(1, None));
        assert_eq!(stations.counts, [2, STATIONS_OF_SIDE_MAX - 1]);
        // Others do once those are forgotten.
        let later = NOW + REMEMBERED;
        (1..=9).for_each(|number| stations.hear(later, Side::UNTRUSTED, numbered(0xf000 | number, None)));
        assert_eq!((stations.counts, stations.heard_of_late(later).len()), ([0, 9], 9));
    }
}
