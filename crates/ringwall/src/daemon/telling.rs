//! Attacks, from the ledger to whom they are told.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bump::record::{Kind, Party, Phase, Record};
use watch::{Around, Known, Look, Watch};
use wire::MacAddress;

use super::data_path::Snapshot;
use super::journal::{Journal, unix_ms};
use crate::config::Records;
use crate::protocol::attacks::{Attack, Attacks, FlowOf, Holding, PartyOf, PlaceOf, SortOf, SpanOf};
use crate::protocol::flow_record::FlowRecord;
use crate::recorder::{Recorder, rfc3339};

/// How often it is looked who has which address, in milliseconds.
const HOLDERS_EVERY_MS: u64 = 5000;

/// Whose attacks they are.
pub(crate) struct Here {
    /// The name of this machine.
    pub(crate) host: String,
    pub(crate) interface: String,
    pub(crate) mode: String,
}

/// What watches, and whom it tells.
pub(super) struct Telling {
    here: Here,
    watch: Watch,
    recorder: Recorder,
    /// Attacks since the start, by kind.
    opened: BTreeMap<&'static str, u64>,
    /// Who has which address, and since when.
    holders: BTreeMap<Holder, u64>,
    looked_ms: u64,
}

/// An address, the card and the name that it is known to belong to.
type Holder = (IpAddr, Option<MacAddress>, Option<String>);

impl Telling {
    pub(super) fn new(here: Here, recorder: Recorder) -> Telling {
        // A kind that is missing would look like one that does not exist.
        let opened = Kind::ALL.iter().map(|kind| (kind.word(), 0)).collect();
        Telling { here, watch: Watch::default(), recorder, opened, holders: BTreeMap::new(), looked_ms: 0 }
    }

    /// Looks at the books, and tells what is new in them.
    pub(super) fn look<K: super::guard::Kind>(
        &mut self,
        snapshot: &Snapshot<K>,
        around: &Around,
        journal: &mut Journal,
    ) {
        let (now, ledger) = (snapshot.now.since_boot, &snapshot.ledger);
        let unix_ms = snapshot.now.wall.map_or_else(unix_ms, |wall| wall.unix_ms);
        let told = self.watch.look(&Look { now, unix_ms, ledger, around });
        for record in told {
            let text = sentence(&record);
            match record.phase {
                Phase::Opened => {
                    *self.opened.entry(record.kind.word()).or_default() += 1;
                    journal.alarm(record.kind.word(), &format!("{text} {}", record.kind.advice()));
                }
                Phase::Growing => {}
                Phase::Closed => journal.note("attack-over", &text),
            }
            self.recorder.tell(attack(&record, &self.here));
        }
        if unix_ms.saturating_sub(self.looked_ms) >= HOLDERS_EVERY_MS {
            self.looked_ms = unix_ms;
            self.look_for_holders(unix_ms, around);
        }
    }

    /// Tells of addresses that somebody has now, or no longer.
    fn look_for_holders(&mut self, unix_ms: u64, around: &Around) {
        let now: BTreeSet<Holder> = std::iter::once(&around.own).chain(around.present()).flat_map(holders_of).collect();
        let gone: Vec<Holder> = self.holders.keys().filter(|holder| !now.contains(*holder)).cloned().collect();
        for holder in gone {
            let since = self.holders.remove(&holder).unwrap_or(unix_ms);
            self.recorder.holding(holding(&holder, since, unix_ms, false));
        }
        for holder in now {
            if !self.holders.contains_key(&holder) {
                self.recorder.holding(holding(&holder, unix_ms, unix_ms, true));
                self.holders.insert(holder, unix_ms);
            }
        }
    }

    /// Tells of connections that are over; how many of them were not told.
    pub(super) fn flows(&mut self, flows: &[FlowRecord]) -> usize {
        self.recorder.flows(&self.here.host, flows)
    }

    /// Notes that something was changed here.
    pub(super) fn change(&mut self, kind: &str, text: &str) {
        self.recorder.change(kind, unix_ms(), text);
    }

    /// What a start is worth saying.
    pub(super) fn started(&mut self) {
        let text = format!("mode {}, ringwall {}", self.here.mode, env!("CARGO_PKG_VERSION"));
        self.change("started", &text);
    }

    /// What a status says of attacks.
    pub(super) fn attacks(&self) -> Attacks {
        Attacks {
            open: self.watch.open().iter().map(|record| attack(record, &self.here)).collect(),
            opened: self.watch.opened(),
            opened_by_kind: self.opened.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect(),
            records_lost: self.recorder.lost(),
        }
    }

    /// Has the recorder follow other settings. A history that is opened now hears who has which
    /// address.
    pub(super) fn follow(&mut self, records: &Records) {
        self.recorder.follow(records);
        let now = unix_ms();
        for (holder, since) in &self.holders {
            self.recorder.holding(holding(holder, *since, now, true));
        }
    }
}

fn holders_of(known: &Known) -> impl Iterator<Item = Holder> {
    known.addresses.iter().map(|ip| (*ip, known.mac, known.name.clone()))
}

/// The recorder knows the interface.
fn holding((ip, mac, name): &Holder, first_unix_ms: u64, last_unix_ms: u64, is_open: bool) -> Holding {
    let (interface, mac) = (String::new(), mac.map(|mac| mac.to_string()));
    Holding { interface, ip: ip.to_string(), mac, name: name.clone(), first_unix_ms, last_unix_ms, is_open }
}

fn sentence(record: &Record) -> String {
    let (count, reason, since) = (record.count, record.reason.word(), rfc3339(record.first_ms));
    format!("{} {count} frames dropped ({reason}) since {since}.", record.sentence())
}

/// A record in the words of the protocol.
fn attack(record: &Record, here: &Here) -> Attack {
    Attack {
        number: record.number,
        place: PlaceOf { host: here.host.clone(), interface: here.interface.clone(), mode: here.mode.clone() },
        sort: sort(record.kind),
        phase: record.phase.word().to_owned(),
        source: party(&record.source),
        target: party(&record.target),
        claimed: party(&record.claimed),
        is_sum: record.is_sum,
        reason: record.reason.word().to_owned(),
        count: record.count,
        span: SpanOf {
            first: rfc3339(record.first_ms),
            last: rfc3339(record.last_ms),
            first_unix_ms: record.first_ms,
            last_unix_ms: record.last_ms,
        },
        sentence: sentence(record),
        flow: flow(record),
        sample_base64: STANDARD.encode(&record.sample),
    }
}

fn sort(kind: Kind) -> SortOf {
    SortOf {
        kind: kind.word().to_owned(),
        kind_number: kind as u64,
        severity: kind.severity().word().to_owned(),
        priority: kind.severity() as u8,
        advice: kind.advice().to_owned(),
    }
}

fn flow(record: &Record) -> FlowOf {
    FlowOf {
        protocol: record.flow.map(|(protocol, ..)| if protocol == 6 { "TCP" } else { "UDP" }.to_owned()),
        source_port: record.flow.map(|(_, from, _)| from),
        target_port: record.flow.map(|(_, _, to)| to),
        community_id: record.community_id.clone(),
    }
}

fn party(party: &Party) -> PartyOf {
    PartyOf {
        name: party.name.clone(),
        ip: party.ip.map(|ip| ip.to_string()),
        mac: party.mac.map(|mac| mac.to_string()),
    }
}
