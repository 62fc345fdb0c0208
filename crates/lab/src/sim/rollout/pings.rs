//! Constant datagrams of everybody to everybody, and how long each pair went without.
//!
//! Who is at a place sends a numbered datagram to each other place once in [`EVERY`]. A pair is two
//! places in one direction; printers send and hear as hosts do, but not to each other.

use std::time::Duration;

use bump::Instant;

use super::super::agenda::START;
use super::super::link_layer::datagram::Number;

/// Each pair sends so often.
pub const EVERY: Duration = Duration::from_secs(1);

/// One pair in one direction.
#[derive(Clone, Copy)]
struct Pair {
    last: Instant,
    worst: Duration,
    heard: u32,
    sent: u32,
}

/// What pairs went without in a stage.
#[derive(Clone, Debug, Default)]
pub struct Gaps {
    /// Longest time beyond [`EVERY`] between two hosts.
    pub hosts: Duration,
    /// The same between a host and a printer.
    pub printers: Duration,
    /// Whose the longer one of both was, by their places.
    pub whose: String,
    /// Datagrams that arrived.
    pub heard: u64,
    /// Datagrams that were sent and did not arrive, those under way at the end of a stage aside.
    pub lost: u64,
}

/// All pairs.
pub struct Pings {
    places: usize,
    hosts: usize,
    /// How many on either side each place sends to; all if there is none.
    reach: Option<usize>,
    pairs: Vec<Pair>,
}

impl Pings {
    /// Of `hosts` hosts and, behind them, `printers` printers.
    pub fn new(hosts: usize, printers: usize) -> Pings {
        let places = hosts + printers;
        let pair = Pair { last: START, worst: Duration::ZERO, heard: 0, sent: 0 };
        Pings { places, hosts, reach: None, pairs: vec![pair; places * places] }
    }

    /// The same, where each place sends to so many on either side of it, in a ring.
    #[cfg(test)]
    pub fn near(hosts: usize, printers: usize, reach: usize) -> Pings {
        Pings { reach: Some(reach), ..Pings::new(hosts, printers) }
    }

    /// To whom `from` sends.
    pub fn others(&self, from: usize) -> impl Iterator<Item = usize> + use<> {
        let (places, hosts, reach) = (self.places, self.hosts, self.reach);
        let is_near = move |to: usize| {
            let apart = from.abs_diff(to);
            reach.is_none_or(|reach| apart.min(places - apart) <= reach)
        };
        (0..places).filter(move |to| *to != from && (from < hosts || *to < hosts) && is_near(*to))
    }

    /// `from` sends to `to` now.
    pub fn send(&mut self, from: usize, to: usize) -> Number {
        self.pairs[from * self.places + to].sent += 1;
        Number(((from as u64) << 32) | to as u64)
    }

    /// A datagram with this number was delivered at the place `at`. None if it was made by nobody
    /// here.
    pub fn deliver(&mut self, now: Instant, number: Number, at: usize) -> Option<()> {
        let (from, to) = ((number.0 >> 32) as usize, (number.0 & u64::from(u32::MAX)) as usize);
        if to != at || from >= self.places {
            return None;
        }
        let pair = self.pairs.get_mut(from * self.places + to)?;
        pair.worst = pair.worst.max(now.since(pair.last));
        pair.last = now;
        pair.heard += 1;
        Some(())
    }

    /// What was since the last look, what goes on included. A new stage begins.
    pub fn take(&mut self, now: Instant) -> Gaps {
        let mut gaps = Gaps::default();
        for from in 0..self.places {
            for to in self.others(from) {
                let is_printer = from.max(to) >= self.hosts;
                let pair = &mut self.pairs[from * self.places + to];
                let worst = pair.worst.max(now.since(pair.last)).saturating_sub(EVERY);
                if worst > gaps.hosts.max(gaps.printers) {
                    gaps.whose = format!("{from} to {to}");
                }
                let longest = if is_printer { &mut gaps.printers } else { &mut gaps.hosts };
                *longest = (*longest).max(worst);
                gaps.heard += u64::from(pair.heard);
                // The newest one may be under way.
                gaps.lost += u64::from(pair.sent.saturating_sub(pair.heard).saturating_sub(1));
                (pair.worst, pair.heard, pair.sent) = (Duration::ZERO, 0, 0);
            }
        }
        gaps
    }

    /// How many pairs have heard nothing within `time`.
    pub fn silent(&self, now: Instant, time: Duration) -> usize {
        let pairs = (0..self.places).flat_map(|from| self.others(from).map(move |to| (from, to)));
        pairs.filter(|(from, to)| now.since(self.pairs[from * self.places + to].last) > time).count()
    }

    /// Whether everybody has heard `place` since then, and was heard by it.
    pub fn reached_since(&self, place: usize, then: Instant) -> bool {
        let last = |from: usize, to: usize| self.pairs[from * self.places + to].last;
        self.others(place).all(|other| last(place, other) > then && last(other, place) > then)
    }
}
