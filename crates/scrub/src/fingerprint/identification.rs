//! Identifications that say nothing about the host (RFC 6864 for IPv4, RFC 7739 for IPv6).
//!
//! Each pair of hosts (with IPv4: for each protocol) has all numbers in an order of its own, which nobody without the key can
//! tell, and takes one after the other. So none comes back while fragments with the last one may be under way, and none tells
//! how much a host sends to others. How far a pair has come is counted in a fixed number of counters that pairs share.

use std::net::IpAddr;

use bump::Instant;

use crate::ip::{v4, v6};
use crate::keys::{Key, Subject};
use crate::limits;

/// What the key is asked for here.
const START: u8 = 1;
const PAIR: u8 = 2;
const ROUND: u8 = 3;
/// Rounds of the cipher that orders the numbers.
const ROUNDS: u8 = 6;

/// The numbers of all pairs.
#[derive(Debug)]
pub(super) struct Identifications {
    key: Key,
    /// Next places in the orders; empty before the first is needed.
    counters: Vec<u32>,
}

impl Identifications {
    pub(super) fn new(key: Key) -> Identifications {
        Identifications { key, counters: Vec::new() }
    }

    /// The next number of a packet that stands for `packets`, which each take one.
    pub(super) fn next_v4(&mut self, now: Instant, header: &v4::Header, packets: u32) -> u16 {
        let pair = self.pair(header.source.into(), header.destination.into(), header.protocol);
        let count = self.count(now, pair, packets);
        self.nth(pair, count & 0xffff, 8) as u16
    }

    /// The next number of a packet that leaves in pieces.
    pub(super) fn next_v6(&mut self, now: Instant, header: &v6::Header) -> u32 {
        let pair = self.pair(header.source.into(), header.destination.into(), 0);
        let count = self.count(now, pair, 1);
        self.nth(pair, count, 16)
    }

    /// The number of one fragment of several that are not joined here: they must go on having the same.
    pub(super) fn same_v4(&self, header: &v4::Header) -> u16 {
        let pair = self.pair(header.source.into(), header.destination.into(), header.protocol);
        self.nth(pair, header.identification.into(), 8) as u16
    }

    /// As [`same_v4`](Identifications::same_v4).
    pub(super) fn same_v6(&self, header: &v6::Header, identification: u32) -> u32 {
        self.nth(self.pair(header.source.into(), header.destination.into(), 0), identification, 16)
    }

    fn pair(&self, source: IpAddr, destination: IpAddr, protocol: u8) -> u64 {
        self.key.number(&Subject::new(PAIR).between(source, destination).protocol(protocol))
    }

    /// The place of `pair` in its order, from which it goes on by `step`.
    fn count(&mut self, now: Instant, pair: u64, step: u32) -> u32 {
        if self.counters.is_empty() {
            // Where the last run ended is not known, so this one begins elsewhere.
            let start = self.key.number(&Subject::new(START).number(now.as_nanos())) as u32;
            self.counters = vec![start; limits::IDENTIFICATION_COUNTERS];
        }
        let counter = &mut self.counters[(pair % limits::IDENTIFICATION_COUNTERS as u64) as usize];
        std::mem::replace(counter, counter.wrapping_add(step))
    }

    /// Number `count` in the order of `pair`: a Feistel cipher with halves of `half` bits, so no number comes twice.
    fn nth(&self, pair: u64, count: u32, half: u32) -> u32 {
        let mask = (1 << half) - 1;
        let (mut left, mut right) = (count >> half, count & mask);
        for round in 0..ROUNDS {
            let subject = Subject::new(ROUND).protocol(round).number(pair).number(right.into());
            (left, right) = (right, left ^ (self.key.number(&subject) as u32 & mask));
        }
        left << half | right
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_order_has_every_number_once() {
        let numbers = Identifications::new(Key::new(&[7; 16]));
        let seen: HashSet<u32> = (0..=0xffff).map(|count| numbers.nth(1, count, 8)).collect();
        assert_eq!(seen.len(), 0x1_0000);
        assert!(seen.iter().all(|number| *number <= 0xffff));
        let many: HashSet<u32> = (0..0x2_0000).map(|count| numbers.nth(1, count << 7, 16)).collect();
        assert_eq!(many.len(), 0x2_0000, "none of 32 bits comes twice either");
    }
}
