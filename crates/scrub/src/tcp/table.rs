//! The table of connections: bounded, found by a keyed hash, and forgotten in order.
//!
//! Chains instead of open addressing: no growth that stops the traffic of a million connections for a tenth of a second. For
//! each class there is a list in the order in which connections came into it. A segment only notes the time; whoever is at the
//! head when its time has come and was seen since goes to the tail, so that nothing is moved for every packet.

use std::time::Duration;

use bump::{Instant, Side, time};

use crate::keys;
use crate::limits::{IDLE_BEFORE_EVICTION, SOURCE_FLOWS_MIN, SOURCE_FLOWS_OF_LEVEL};
use crate::settings::{FlowLimits, Network};
use crate::tcp::class::{CLASSES, Class};
use crate::tcp::flow::Flow;
use crate::tcp::key::Key;
use crate::tcp::place::{Index, NONE, Place};
use crate::tcp::sources::{self, Share, Sources};

#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly every slot is used, and one more pointer would cost a cache line")]
enum Slot {
    Free { next: Index },
    Used(Flow),
}

#[derive(Clone, Copy, Debug)]
struct List {
    head: Index,
    tail: Index,
    len: usize,
}

/// Connections.
#[derive(Debug)]
pub(crate) struct Table {
    hashing: keys::Key,
    /// How long an established connection may be silent.
    idle: Duration,
    heads: Vec<Index>,
    slots: Vec<Slot>,
    free: Index,
    len: usize,
    max: usize,
    lists: [List; CLASSES],
    /// Who holds those whose handshake is complete.
    sources: Sources,
}

impl Table {
    /// A table of as many connections as `limits` say.
    pub(crate) fn new(hashing: keys::Key, limits: FlowLimits, idle: Duration) -> Table {
        let max = limits.max.clamp(1, NONE as usize - 1);
        let list = List { head: NONE, tail: NONE, len: 0 };
        let share = Share { part: limits.source_part, least: SOURCE_FLOWS_MIN, of_level: SOURCE_FLOWS_OF_LEVEL };
        Table {
            sources: Sources::new(hashing.clone(), max, share),
            hashing,
            idle,
            heads: vec![NONE; max.next_power_of_two()],
            slots: Vec::new(),
            free: NONE,
            len: 0,
            max,
            lists: [list; CLASSES],
        }
    }

    fn bucket(&self, key: &Key) -> usize {
        self.hashing.place(&key.subject()) as usize & (self.heads.len() - 1)
    }

    /// Connections remembered, and how many may be.
    pub(crate) fn len_and_max(&self) -> (usize, usize) {
        (self.len, self.max)
    }

    /// Connections of a class.
    pub(crate) fn len_of(&self, class: Class) -> usize {
        self.lists[class as usize].len
    }

    /// Places that no connection in use holds.
    fn free(&self) -> usize {
        self.max - Class::ALL.iter().filter(|class| class.is_held()).map(|class| self.len_of(*class)).sum::<usize>()
    }

    /// Which host or network has no share left for the connection of `key` that `holder` is to hold.
    /// One that is older than the scrubber needs none while half of the table is free.
    pub(crate) fn exhausted(&self, key: &Key, holder: Side, is_older: bool) -> Option<Network> {
        let free = self.free();
        if is_older && free >= self.max / 2 {
            return None;
        }
        let level = self.sources.exhausted(&self.sources.account(key, holder), 1, free)?;
        sources::network(key, holder, level)
    }

    /// A connection of `key` that `holder` holds is of another class, or comes or goes.
    fn count(&mut self, (key, holder): (Key, Side), before: Option<Class>, after: Option<Class>) {
        let [was_held, is_held] = [before, after].map(|class| class.is_some_and(Class::is_held));
        if was_held == is_held {
            return;
        }
        let account = self.sources.account(&key, holder);
        if is_held {
            self.sources.add(&account, 1);
        } else {
            self.sources.subtract(&account, 1);
        }
    }

    pub(crate) fn find(&self, key: &Key) -> Option<Index> {
        let mut index = self.heads[self.bucket(key)];
        while let Some(flow) = self.get(index) {
            if flow.key == *key {
                return Some(index);
            }
            index = flow.place.chain;
        }
        None
    }

    pub(crate) fn get(&self, index: Index) -> Option<&Flow> {
        match self.slots.get(index as usize) {
            Some(Slot::Used(flow)) => Some(flow),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, index: Index) -> Option<&mut Flow> {
        match self.slots.get_mut(index as usize) {
            Some(Slot::Used(flow)) => Some(flow),
            _ => None,
        }
    }

    /// Places, taken or free: indices are below.
    pub(crate) fn places(&self) -> usize {
        self.slots.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Used(flow) => Some(flow),
            Slot::Free { .. } => None,
        })
    }

    /// Adds `flow`, whose key is not in the table. Nothing is pushed out: see [`dispensable`](Table::dispensable).
    pub(crate) fn insert(&mut self, mut flow: Flow) -> Option<Index> {
        if self.len == self.max {
            return None;
        }
        let bucket = self.bucket(&flow.key);
        let class = flow.state.class();
        flow.place.chain = self.heads[bucket];
        self.count((flow.key, flow.holder), None, Some(class));
        let at = flow.last_seen;
        let index = match self.slots.get(self.free as usize) {
            Some(Slot::Free { next }) => {
                let next = *next;
                let index = std::mem::replace(&mut self.free, next);
                self.slots[index as usize] = Slot::Used(flow);
                index
            }
            _ => {
                self.slots.push(Slot::Used(flow));
                (self.slots.len() - 1) as Index
            }
        };
        self.heads[bucket] = index;
        self.len += 1;
        self.append(index, class, at);
        Some(index)
    }

    /// Takes a connection out.
    pub(crate) fn remove(&mut self, index: Index) -> Option<Flow> {
        let flow = self.get(index)?;
        let (key, holder, class) = (flow.key, flow.holder, flow.place.class);
        self.count((key, holder), Some(class), None);
        self.unlink(index);
        let bucket = self.bucket(&key);
        let chain = self.get(index)?.place.chain;
        let mut before = self.heads[bucket];
        if before == index {
            self.heads[bucket] = chain;
        } else {
            while let Some(flow) = self.get_mut(before) {
                if flow.place.chain == index {
                    flow.place.chain = chain;
                    break;
                }
                before = flow.place.chain;
            }
        }
        self.len -= 1;
        let slot = std::mem::replace(self.slots.get_mut(index as usize)?, Slot::Free { next: self.free });
        self.free = index;
        match slot {
            Slot::Used(flow) => Some(flow),
            Slot::Free { .. } => None,
        }
    }

    /// Puts a connection at the tail of the list of `class`.
    fn append(&mut self, index: Index, class: Class, at: u32) {
        let tail = self.lists[class as usize].tail;
        if let Some(flow) = self.get_mut(index) {
            flow.place = Place { previous: tail, next: NONE, class, queued_at: at, chain: flow.place.chain };
        }
        match self.get_mut(tail) {
            Some(last) => last.place.next = index,
            None => self.lists[class as usize].head = index,
        }
        let list = &mut self.lists[class as usize];
        list.tail = index;
        list.len += 1;
    }

    /// Takes a connection out of its list.
    fn unlink(&mut self, index: Index) {
        let Some(flow) = self.get(index) else { return };
        let (previous, next, class) = (flow.place.previous, flow.place.next, flow.place.class);
        match self.get_mut(previous) {
            Some(flow) => flow.place.next = next,
            None => self.lists[class as usize].head = next,
        }
        match self.get_mut(next) {
            Some(flow) => flow.place.previous = previous,
            None => self.lists[class as usize].tail = previous,
        }
        self.lists[class as usize].len -= 1;
    }

    /// Notes that a connection was seen, and moves it if it is of another class now; of which it was
    /// before, if so.
    pub(crate) fn touch(&mut self, index: Index, now: u32) -> Option<Class> {
        let flow = self.get_mut(index)?;
        flow.last_seen = now;
        let (class, before) = (flow.state.class(), flow.place.class);
        if class == before {
            return None;
        }
        let held = (flow.key, flow.holder);
        self.count(held, Some(before), Some(class));
        self.unlink(index);
        self.append(index, class, now);
        Some(before)
    }

    /// A connection that may make room for a new one: a half-open one or one that is over, of
    /// whichever there are most, so that nobody who makes many of one kind pushes out the others;
    /// then one that has been silent for long.
    pub(crate) fn dispensable(&mut self, now: u32) -> Option<Index> {
        let classes = [Class::Ended, Class::Closed, Class::HalfOpen];
        let most = classes.into_iter().max_by_key(|class| self.len_of(*class));
        if let Some(head) = most.and_then(|class| self.oldest(class)) {
            return Some(head);
        }
        let idle = self.head_after(Class::Closing, IDLE_BEFORE_EVICTION, now);
        idle.or_else(|| self.head_after(Class::Established, IDLE_BEFORE_EVICTION, now))
    }

    /// The oldest connection of a class.
    pub(crate) fn oldest(&self, class: Class) -> Option<Index> {
        Some(self.lists[class as usize].head).filter(|head| *head != NONE)
    }

    /// The head of a list if it has been silent for `timeout`. One that was seen since it came there goes to the tail.
    fn head_after(&mut self, class: Class, timeout: Duration, now: u32) -> Option<Index> {
        let head = self.lists[class as usize].head;
        let timeout = timeout.as_secs() as u32;
        let flow = self.get(head)?;
        let (queued_at, last_seen) = (flow.place.queued_at, flow.last_seen);
        if now.saturating_sub(queued_at) <= timeout {
            return None;
        }
        if now.saturating_sub(last_seen) > timeout {
            return Some(head);
        }
        self.unlink(head);
        self.append(head, class, last_seen);
        None
    }

    /// A connection whose time has come. Call again while [`deadline`](Table::deadline) is not after `now`.
    pub(crate) fn expired(&mut self, now: u32) -> Option<Index> {
        Class::ALL.iter().find_map(|class| self.head_after(*class, class.timeout(self.idle)?, now))
    }

    /// When a connection's time may have come.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let due = |class: &Class| {
            let head = self.get(self.lists[*class as usize].head)?;
            let queued_at = Duration::from_secs(u64::from(head.place.queued_at));
            Some(Instant::default() + queued_at + class.timeout(self.idle)? + Duration::from_secs(1))
        };
        Class::ALL.iter().map(due).fold(None, time::earlier)
    }
}
