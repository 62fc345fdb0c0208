//! All packets of which fragments wait, within limits: of memory, of packets, and of what one source may take.
//!
//! Where a limit is met the oldest go first, of that source or of all. Fragments of honest senders come within milliseconds of
//! each other, so the oldest are the likeliest never to be whole.

use std::collections::{BTreeMap, BTreeSet};

use bump::Instant;

use super::key::{Key, Source};
use super::waiting::Waiting;
use crate::keys;
use crate::limits;
use crate::table::Table;

/// A packet that waits, and what is written down about it.
#[derive(Debug)]
struct Row {
    waiting: Waiting,
    /// Counts up with every packet: its age among the others.
    number: u64,
    /// What it takes of the memory, in bytes.
    cost: usize,
}

/// What one source takes.
#[derive(Debug, Default)]
struct Share {
    cost: usize,
    numbers: BTreeSet<u64>,
}

/// All packets of which fragments wait.
#[derive(Debug)]
pub(super) struct Store {
    rows: Table<Key, Row>,
    /// The keys by age.
    order: BTreeMap<u64, Key>,
    shares: Table<Source, Share>,
    next_number: u64,
    cost: usize,
    cost_max: usize,
}

impl Store {
    /// A store that takes at most `cost_max` bytes of memory.
    pub(super) fn new(cost_max: usize, hashing: keys::Key) -> Store {
        Store {
            rows: Table::with_hasher(hashing.clone()),
            order: BTreeMap::new(),
            shares: Table::with_hasher(hashing),
            next_number: 0,
            cost: 0,
            cost_max,
        }
    }

    /// Memory that is taken, in bytes.
    pub(super) fn cost(&self) -> usize {
        self.cost
    }

    /// When the oldest packet began to wait.
    pub(super) fn oldest(&self) -> Option<(Key, Instant)> {
        let (_, key) = self.order.first_key_value()?;
        self.rows.get(key).map(|row| (*key, row.waiting.since))
    }

    /// Who must go before `source` may take `cost` bytes more.
    pub(super) fn surplus(&self, source: &Source, cost: usize) -> Option<Key> {
        let is_full = self.cost + cost > self.cost_max || self.rows.len() >= limits::FRAGMENTED_PACKETS_MAX;
        let oldest = self.order.first_key_value().map(|(_, key)| *key);
        let share = self.shares.get(source);
        let (taken, packets) = share.map_or((0, 0), |share| (share.cost, share.numbers.len()));
        let is_share_full = taken + cost > self.cost_max / limits::FRAGMENTS_SOURCE_PART
            || packets >= limits::FRAGMENTED_PACKETS_MAX / limits::FRAGMENTS_SOURCE_PART;
        let oldest_of_source = share.and_then(|share| self.order.get(share.numbers.first()?)).copied();
        if is_share_full { oldest_of_source } else { oldest.filter(|_| is_full) }
    }

    /// Whether one source may take `cost` bytes at all.
    pub(super) fn could_hold(&self, cost: usize) -> bool {
        cost <= self.cost_max / limits::FRAGMENTS_SOURCE_PART
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Waiting> {
        self.rows.get(key).map(|row| &row.waiting)
    }

    /// Lets the packet with `key` begin to wait.
    pub(super) fn insert(&mut self, key: Key, waiting: Waiting) {
        let number = self.next_number;
        self.next_number += 1;
        self.order.insert(number, key);
        self.shares.entry(key.source()).or_default().numbers.insert(number);
        self.rows.insert(key, Row { waiting, number, cost: 0 });
        self.change(&key, |_| ());
    }

    /// Changes the packet with `key`, if there is one, and counts its memory again.
    pub(super) fn change<T>(&mut self, key: &Key, change: impl FnOnce(&mut Waiting) -> T) -> Option<T> {
        let row = self.rows.get_mut(key)?;
        let changed = change(&mut row.waiting);
        let before = std::mem::replace(&mut row.cost, row.waiting.cost());
        self.cost = self.cost + row.cost - before;
        if let Some(share) = self.shares.get_mut(&key.source()) {
            share.cost = share.cost + row.cost - before;
        }
        Some(changed)
    }

    /// Takes the packet with `key` out.
    pub(super) fn remove(&mut self, key: &Key) -> Option<Waiting> {
        let row = self.rows.remove(key)?;
        self.order.remove(&row.number);
        self.cost -= row.cost;
        if let Some(share) = self.shares.get_mut(&key.source()) {
            share.cost -= row.cost;
            share.numbers.remove(&row.number);
            if share.numbers.is_empty() {
                self.shares.remove(&key.source());
            }
        }
        Some(row.waiting)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wire::EtherType;

    use super::*;
    use crate::context::Context;
    use crate::ethernet::Link;
    use crate::ip;
    use crate::rule::Counters;
    use crate::settings::{Preset, Settings};

    /// The key of a fragment from the host `source` with `identification`.
    fn key(source: u8, identification: u16) -> Key {
        let settings = Settings::preset(Preset::Balanced);
        let mut counters = Counters::default();
        let context = &mut Context::new(Instant::default(), bump::Side::UNTRUSTED, &settings, &mut counters);
        let mut packet = [0x45, 0, 0, 28, 0, 0, 0x20, 0, 64, 253, 0, 0, 192, 0, 2, source, 198, 51, 100, 1].to_vec();
        packet[4..6].copy_from_slice(&identification.to_be_bytes());
        wire::ipv4::fill_checksum(&mut packet);
        packet.extend([0; 8]);
        let ip = ip::read(context, EtherType::IPV4, &mut packet).expect("a fragment").0;
        Key::of(bump::Side::UNTRUSTED, &Link { header: &[], ethertype: EtherType::IPV4, vlan: None, queue: 0 }, &ip)
    }

    proptest! {
        #[test]
        fn every_count_is_the_sum_of_what_is_there(
            steps in prop::collection::vec((0..3_u8, 0..4_u8, 0..8_u16, 1..2000_usize), 0..60),
        ) {
            let mut store = Store::new(usize::MAX, keys::Key::new(&[1; 16]));
            for (step, source, identification, len) in steps {
                let key = key(source, identification);
                match step {
                    0 if store.get(&key).is_none() => store.insert(key, Waiting::new(Instant::default(), vec![0; len])),
                    1 => drop(store.remove(&key)),
                    _ => drop(store.change(&key, |waiting| waiting.head.resize(len, 0))),
                }
            }
            let cost = |rows: &mut dyn Iterator<Item = &Row>| rows.map(|row| row.waiting.cost()).sum::<usize>();
            prop_assert_eq!(store.cost, cost(&mut store.rows.values()));
            prop_assert_eq!(store.order.len(), store.rows.len());
            for (number, key) in &store.order {
                prop_assert_eq!(store.rows[key].number, *number);
                prop_assert!(store.shares[&key.source()].numbers.contains(number));
            }
            for (source, share) in &store.shares {
                let of_source = |(key, row): (&Key, _)| (key.source() == *source).then_some(row);
                prop_assert_eq!(share.cost, cost(&mut store.rows.iter().filter_map(of_source)));
                prop_assert_eq!(share.numbers.len(), store.rows.iter().filter_map(of_source).count());
            }
            for key in store.order.values().copied().collect::<Vec<_>>() {
                store.remove(&key);
            }
            prop_assert_eq!((store.cost, store.shares.len(), store.rows.len()), (0, 0, 0));
        }
    }
}
