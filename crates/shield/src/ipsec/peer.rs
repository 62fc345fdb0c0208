//! One peer: its permutations, the associations that are known of it, its budgets.

use std::collections::BTreeMap;
use std::net::IpAddr;

use bump::Instant;
use zeroize::Zeroizing;

use super::candidates::{Candidate, Candidates};
use super::ike::Exchanges;
use super::limits::{EPOCHS_MAX, KNOWN_MAX, LAPS_MAX, OUTBOUND_MAX};
use super::outpost::Outpost;
use super::permutation::{KEY_LEN, Permutation};
use super::report::{PeerCounters, Verdict};
use super::settings::{EpochKey, Layers, PeerSettings, Rates, Settings};
use super::window::{Place, Window, extended};
use crate::Bucket;

/// Extended sequence numbers from which on a later lap may be near.
const LATER_LAPS: u64 = 1 << 31;

/// What all peers of a host have in common.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) candidates: Candidates,
    /// Who makes the same checks before.
    pub(super) outpost: Option<Outpost>,
}

/// The permutations of one epoch.
#[derive(Debug)]
struct Epoch {
    number: u32,
    outbound: Permutation,
    inbound: Permutation,
}

/// The shield that a peer has.
#[derive(Debug)]
struct Keys {
    epochs: Vec<Epoch>,
    /// Place of the epoch that is sent under.
    send: usize,
    /// The keys of what the peer sends, in the same order.
    inbound: Zeroizing<Vec<[u8; KEY_LEN]>>,
}

/// An association that is known.
#[derive(Debug)]
struct Association {
    window: Window,
    heard: Instant,
    /// The highest number when it was last heard or looked at.
    highest: u64,
}

impl Association {
    /// Takes note of what the outpost has passed since.
    fn catch_up(&mut self, now: Instant) {
        let highest = self.window.highest();
        if highest != self.highest {
            (self.heard, self.highest) = (now, highest);
        }
    }
}

/// One peer.
#[derive(Debug)]
pub(super) struct Peer {
    pub(super) address: IpAddr,
    pub(super) counters: PeerCounters,
    pub(super) ike: Exchanges,
    pub(super) keepalive: Bucket,
    pub(super) fragment: Bucket,
    unknown: Bucket,
    /// From one, in the table of candidates.
    number: u32,
    keys: Option<Keys>,
    known: BTreeMap<u32, Association>,
    /// Whether some known association has come so far that an extended sequence number may be in a later lap.
    has_laps: bool,
    /// The highest sequence number of each association that this host sends in and that may come to a later lap.
    outbound: BTreeMap<u32, u64>,
}

impl Peer {
    pub(super) fn new(number: u32, settings: &PeerSettings, rates: &Rates) -> Peer {
        let bucket = |rate| Bucket::new(rate, rate);
        Peer {
            address: settings.address,
            counters: PeerCounters::default(),
            ike: Exchanges::new(rates.ike),
            keepalive: bucket(rates.keepalive),
            fragment: bucket(rates.fragment),
            unknown: bucket(rates.unknown_spi),
            number,
            keys: Keys::of(settings),
            known: BTreeMap::new(),
            has_laps: false,
            outbound: BTreeMap::new(),
        }
    }

    /// Takes other keys; what is known stays known.
    pub(super) fn set_keys(&mut self, settings: &PeerSettings) {
        self.keys = Keys::of(settings);
    }

    /// Tells the outpost, if there is one, what this peer is known by.
    pub(super) fn tell(&self, common: &mut Common) {
        let keys = self.keys.as_ref().map(|keys| keys.inbound.as_slice());
        if let Some(outpost) = &mut common.outpost {
            outpost.put_peer(self.address, self.number, keys, self.has_laps);
        }
    }

    /// What was seen of it, here and by the outpost.
    pub(super) fn counted(&self, common: &Common) -> PeerCounters {
        match &common.outpost {
            Some(outpost) => {
                let dropped = outpost.counts(self.number);
                self.counters.with_dropped_in_kernel(dropped).with_passed_in_kernel(outpost.passed(self.number))
            }
            None => self.counters,
        }
    }

    pub(super) fn has_shield(&self) -> bool {
        self.keys.is_some()
    }

    pub(super) fn known(&self) -> usize {
        self.known.len()
    }

    /// The epoch that is sent under, and all that are taken.
    pub(super) fn epochs(&self) -> Option<(u32, Vec<u32>)> {
        let keys = self.keys.as_ref()?;
        Some((keys.epochs[keys.send].number, keys.epochs.iter().map(|epoch| epoch.number).collect()))
    }

    /// What stands on the wire in place of `spi` in our packet with the sequence number whose low half is `low`.
    pub(super) fn seal(&mut self, spi: u32, low: u32) -> u32 {
        let sequence = extended(self.outbound.get(&spi).copied().unwrap_or_default(), low);
        if sequence >= LATER_LAPS {
            self.remember_lap(spi, sequence);
        }
        self.counters.sealed += 1;
        self.keys.as_ref().map_or(spi, |keys| keys.epochs[keys.send].outbound.seal(spi, sequence))
    }

    /// Takes note of a message of IKE that this host's stack sends to it.
    pub(super) fn note_ike(&mut self, now: Instant, message: &[u8], common: &mut Common) {
        self.ike.note(now, message, self.number, common.outpost.as_mut());
    }

    /// Only associations that may come to a later lap need a memory; the youngest makes room where there are too many.
    fn remember_lap(&mut self, spi: u32, sequence: u64) {
        if self.outbound.len() >= OUTBOUND_MAX && !self.outbound.contains_key(&spi) {
            let youngest = self.outbound.iter().min_by_key(|(_, highest)| **highest).map(|(spi, _)| *spi);
            youngest.and_then(|spi| self.outbound.remove(&spi));
        }
        let highest = self.outbound.entry(spi).or_default();
        *highest = sequence.max(*highest);
    }

    /// Judges a packet of the peer with `index` where the SPI stands and the sequence number whose low half is `low`.
    pub(super) fn judge(
        &mut self,
        now: Instant,
        (index, low): (u32, u32),
        settings: &Settings,
        common: &mut Common,
    ) -> Verdict {
        let verdict = if self.has_shield() {
            self.open(now, index, low, settings, common)
        } else {
            self.look_up(now, index, low, settings, common)
        };
        self.counters.enter(verdict);
        verdict
    }

    /// A peer with a shield: the SPI behind `index` must be known, and the sequence number new.
    fn open(&mut self, now: Instant, index: u32, low: u32, settings: &Settings, common: &mut Common) -> Verdict {
        let guesses = self.guesses(index, low);
        let known = guesses.iter().flatten().find(|guess| self.known.contains_key(&guess.0)).copied();
        if let Some((spi, sequence)) = known {
            return self.in_window(now, (spi, sequence), settings, common);
        }
        let layers = settings.layers;
        let in_range = |guess: &&(u32, u64)| !layers.range || settings.spis.contains(&guess.0);
        let mut likely = guesses.iter().flatten().filter(in_range);
        let Some(&first) = likely.next() else { return Verdict::OutOfRange };
        for &(spi, sequence) in std::iter::once(&first).chain(likely) {
            if common.candidates.confirms(Candidate { peer: self.number, spi, sequence }) {
                self.learn(now, spi, sequence, common);
                return Verdict::Learned(spi);
            }
        }
        self.on_trial(now, first.0, layers)
    }

    /// A known association's packet.
    fn in_window(
        &mut self,
        now: Instant,
        (spi, sequence): (u32, u64),
        settings: &Settings,
        common: &mut Common,
    ) -> Verdict {
        let Some(association) = self.known.get_mut(&spi) else { return Verdict::Unknown };
        let is_on = settings.layers.window;
        match association.window.place(sequence) {
            Place::Used if is_on => return Verdict::Used,
            Place::Far if is_on && !common.candidates.confirms(Candidate { peer: self.number, spi, sequence }) => {
                return if self.unknown.take(now) { Verdict::Pass(spi) } else { Verdict::Far };
            }
            _ => {}
        }
        if !association.window.pass(sequence) && is_on {
            return Verdict::Used;
        }
        (association.heard, association.highest) = (now, association.window.highest());
        self.note_lap(sequence, common);
        Verdict::Pass(spi)
    }

    /// A peer without a shield: the SPI stands in clear. Its sequence numbers prove nothing, so there is no window: whoever reads
    /// one packet could move it away from its sender.
    fn look_up(&mut self, now: Instant, spi: u32, low: u32, settings: &Settings, common: &mut Common) -> Verdict {
        if let Some(association) = self.known.get_mut(&spi) {
            association.heard = now;
            return Verdict::Pass(spi);
        }
        let layers = settings.layers;
        if layers.range && !settings.spis.contains(&spi) {
            return Verdict::OutOfRange;
        }
        if layers.spi && !self.unknown.take(now) {
            return Verdict::Unknown;
        }
        let sequence = u64::from(low);
        if common.candidates.confirms(Candidate { peer: self.number, spi, sequence }) {
            self.learn(now, spi, sequence, common);
            return Verdict::Learned(spi);
        }
        Verdict::Pass(spi)
    }

    fn on_trial(&mut self, now: Instant, spi: u32, layers: Layers) -> Verdict {
        if layers.spi && !self.unknown.take(now) {
            return Verdict::Unknown;
        }
        self.counters.on_trial += 1;
        Verdict::Pass(spi)
    }

    /// The SPI and sequence number that each epoch and lap give, the likeliest first.
    fn guesses(&self, index: u32, low: u32) -> [Option<(u32, u64)>; EPOCHS_MAX * LAPS_MAX] {
        let mut guesses = [None; EPOCHS_MAX * LAPS_MAX];
        let mut free = guesses.iter_mut();
        let laps = self.laps(low);
        for epoch in self.keys.iter().flat_map(|keys| &keys.epochs) {
            for sequence in laps.iter().flatten().copied() {
                let Some(place) = free.next() else { return guesses };
                *place = Some((epoch.inbound.open(index, sequence), sequence));
            }
        }
        guesses
    }

    /// The sequence numbers that `low` may be the low half of: the one of the first lap, and those near a known association.
    fn laps(&self, low: u32) -> [Option<u64>; LAPS_MAX] {
        let mut laps = [None; LAPS_MAX];
        laps[0] = Some(u64::from(low));
        if !self.has_laps {
            return laps;
        }
        for association in self.known.values() {
            let sequence = extended(association.window.highest(), low);
            if laps.contains(&Some(sequence)) {
                continue;
            }
            let Some(place) = laps.iter_mut().find(|place| place.is_none()) else { break };
            *place = Some(sequence);
        }
        laps
    }

    fn learn(&mut self, now: Instant, spi: u32, sequence: u64, common: &mut Common) {
        self.known.values_mut().for_each(|association| association.catch_up(now));
        if self.known.len() >= KNOWN_MAX {
            let oldest = self.known.iter().min_by_key(|(_, association)| association.heard).map(|(spi, _)| *spi);
            self.forget(oldest, common);
        }
        self.note_lap(sequence, common);
        let in_sight = common.outpost.as_mut().and_then(|outpost| outpost.learn(self.number, spi, sequence));
        let window = in_sight.unwrap_or_else(|| Window::at(sequence));
        self.known.insert(spi, Association { window, heard: now, highest: sequence });
    }

    fn forget(&mut self, spi: Option<u32>, common: &mut Common) {
        let Some(spi) = spi.filter(|spi| self.known.remove(spi).is_some()) else { return };
        if let Some(outpost) = &mut common.outpost {
            outpost.forget(self.number, spi);
        }
    }

    /// Forgets every association.
    pub(super) fn forget_all(&mut self, common: &mut Common) {
        while let Some((spi, _)) = self.known.pop_first() {
            if let Some(outpost) = &mut common.outpost {
                outpost.forget(self.number, spi);
            }
        }
    }

    /// From some number on it takes more than the packet to say which one it carries, which the outpost leaves to us.
    fn note_lap(&mut self, sequence: u64, common: &mut Common) {
        if sequence >= LATER_LAPS && !self.has_laps {
            self.has_laps = true;
            self.tell(common);
        }
    }
}

impl Keys {
    fn of(settings: &PeerSettings) -> Option<Keys> {
        let keys = settings.keys.as_ref()?;
        let epoch = |key: &EpochKey| Epoch {
            number: key.number,
            outbound: Permutation::new(&key.key, keys.end),
            inbound: Permutation::new(&key.key, keys.end.other()),
        };
        let mut listed: Vec<&EpochKey> = keys.epochs.iter().take(EPOCHS_MAX).collect();
        // What the other end sends under is most often what this end sends under.
        listed.sort_by_key(|epoch| epoch.number != keys.send);
        let mut inbound = Zeroizing::new(Vec::with_capacity(EPOCHS_MAX));
        inbound.extend(listed.iter().map(|key| *Permutation::key(&key.key, keys.end.other())));
        let epochs: Vec<Epoch> = listed.into_iter().map(epoch).collect();
        (!epochs.is_empty()).then_some(Keys { epochs, send: 0, inbound })
    }
}
