//! Attacks, from the ledger to whom they are told.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bump::record::{Kind, Party, Phase, Record};
use watch::{Around, Look, Watch};

use super::data_path::Snapshot;
use super::journal::{Journal, unix_ms};
use crate::protocol::{Attack, Attacks, FlowOf, PartyOf, PlaceOf, SortOf, SpanOf};
use crate::recorder::{Recorder, rfc3339};

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
}

impl Telling {
    pub(super) fn new(here: Here, recorder: Recorder) -> Telling {
        // A kind that is missing would look like one that does not exist.
        let opened = Kind::ALL.iter().map(|kind| (kind.word(), 0)).collect();
        Telling { here, watch: Watch::default(), recorder, opened }
    }

    /// Looks at the books, and tells what is new in them.
    pub(super) fn look(&mut self, snapshot: &Snapshot, around: &Around, journal: &mut Journal) {
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

    pub(super) fn recorder(&mut self) -> &mut Recorder {
        &mut self.recorder
    }
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
