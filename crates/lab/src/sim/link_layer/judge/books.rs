//! What was sent and what arrived.

use std::collections::{HashMap, HashSet};

use bump::Instant;

use crate::sim::link_layer::datagram::Number;

/// A datagram as its sender's stack handed it over.
#[derive(Clone, Debug)]
pub struct Record {
    /// The host whose stack it was.
    pub from: usize,
    /// The whole frame that must arrive.
    pub frame: Vec<u8>,
    /// It carries another's address.
    pub is_lie: bool,
}

/// All datagrams of a run.
#[derive(Debug)]
pub struct Books {
    records: HashMap<Number, Record>,
    delivered: HashMap<Number, Instant>,
    /// For each flow what its application sent, in order.
    offers: Vec<Vec<(Number, Instant)>>,
    /// What was sent to a group, by whom and when.
    to_all: Vec<(Number, usize, Instant)>,
    /// To which hosts it was delivered.
    delivered_to: HashSet<(Number, usize)>,
}

impl Books {
    /// Empty books for so many flows.
    pub fn new(flows: usize) -> Books {
        Books {
            records: HashMap::new(),
            delivered: HashMap::new(),
            offers: vec![Vec::new(); flows],
            to_all: Vec::new(),
            delivered_to: HashSet::new(),
        }
    }

    /// Enters that the application of `flow` sent `number`.
    pub fn offer(&mut self, flow: usize, number: Number, at: Instant) {
        self.offers[flow].push((number, at));
    }

    /// Enters that a stack sent `number`.
    pub fn send(&mut self, number: Number, record: Record) {
        self.records.insert(number, record);
    }

    /// The record of `number`, once a stack has sent it.
    pub fn record(&self, number: Number) -> Option<&Record> {
        self.records.get(&number)
    }

    /// Enters that `number` arrived; false when it had arrived before.
    pub fn deliver(&mut self, number: Number, at: Instant) -> bool {
        self.delivered.insert(number, at).is_none()
    }

    /// Enters that host `from` sent `number` to a group.
    pub fn offer_to_all(&mut self, number: Number, from: usize, at: Instant) {
        self.to_all.push((number, from, at));
    }

    /// Enters that `number`, which was sent to a group, arrived at `host`; false when it had arrived there before.
    pub fn deliver_to(&mut self, number: Number, host: usize) -> bool {
        self.delivered_to.insert((number, host))
    }

    /// The first of what was sent to groups after `since` and did not reach `host`, its sender, and how many there are.
    pub fn lost_to(&self, host: usize, since: Instant) -> Option<(Instant, usize, usize)> {
        let lost = |(number, from, at): &&(Number, usize, Instant)| {
            *at > since && *from != host && !self.delivered_to.contains(&(*number, host))
        };
        let first = self.to_all.iter().find(lost)?;
        Some((first.2, first.1, self.to_all.iter().filter(lost).count()))
    }

    /// When the first datagram arrived that the application of `flow` sent after `since`.
    pub fn first_delivered(&self, flow: usize, since: Instant) -> Option<Instant> {
        let sent_since = self.offers[flow].iter().filter(|(_, at)| *at > since);
        sent_since.filter_map(|(number, _)| self.delivered.get(number)).min().copied()
    }

    /// How many datagrams that the application of `flow` sent after `since` never arrived, and when the first was sent.
    pub fn lost_since(&self, flow: usize, since: Instant) -> Option<(Instant, usize)> {
        let lost = |(number, at): &&(Number, Instant)| *at > since && !self.delivered.contains_key(number);
        let first = self.offers[flow].iter().find(lost)?;
        Some((first.1, self.offers[flow].iter().filter(lost).count()))
    }
}
