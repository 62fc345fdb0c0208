//! Findings folded into attacks: the same kind, source and claim is one that opens, grows and closes.

use bump::record::{HardwareAddress, Kind, Party, Phase, Record};
use std::net::IpAddr;

use crate::judge::Finding;

/// Nothing more for so long ends an attack, in milliseconds.
pub const QUIET_MS: u64 = 60_000;
/// How often an attack that goes on is told again, in milliseconds.
pub const TOLD_AGAIN_MS: u64 = 60_000;
/// Attacks of one kind that stand for themselves; what comes beyond is one that stands for several.
pub const OF_KIND_MAX: usize = 8;
/// Claims of one source that stand for themselves.
pub const OF_SOURCE_MAX: usize = 4;
/// Findings too few for an attack, that wait for more.
pub const WAITING_MAX: usize = 64;
/// In which time senders that are too small for an attack each are one together, in milliseconds.
pub const CROWD_MS: u64 = 10_000;

const _: () = assert!(OF_SOURCE_MAX < OF_KIND_MAX, "a sum of one source finds its place");

/// What makes two findings one attack.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Key {
    kind: Kind,
    source: Option<HardwareAddress>,
    claim: Option<Claim>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Claim {
    Address(IpAddr),
    Card(HardwareAddress),
    /// Stands for several.
    Several,
}

#[derive(Clone, Debug)]
struct Attack {
    key: Key,
    record: Record,
    threshold: u64,
    told_ms: u64,
    told_count: u64,
}

/// What came of one kind from senders that are too small for an attack each.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    kind: Kind,
    since_ms: u64,
    count: u64,
}

/// All attacks that are open, and those that may become some.
#[derive(Debug, Default)]
pub struct Attacks {
    open: Vec<Attack>,
    waiting: Vec<Attack>,
    /// One for each kind at most.
    crowds: Vec<Crowd>,
    opened: u64,
    folded: u64,
}

impl Attacks {
    /// Adds `count` frames that tell the same.
    pub fn add(&mut self, finding: Finding, count: u64, first_ms: u64, last_ms: u64) {
        let key = key(&finding);
        if let Some(attack) = self.open.iter_mut().find(|attack| attack.key == key) {
            attack.grow(count, last_ms);
            return;
        }
        let crowd = finding.crowd;
        let is_too_old = |attack: &Attack| crowd.is_some() && last_ms.saturating_sub(attack.record.first_ms) > CROWD_MS;
        let at = self.waiting.iter().position(|attack| attack.key == key);
        let waited = at.map(|at| self.waiting.swap_remove(at)).filter(|attack| !is_too_old(attack));
        let mut attack = waited.unwrap_or_else(|| Attack::new(key, finding, first_ms));
        attack.grow(count, last_ms);
        if attack.record.count >= attack.threshold {
            self.begin(attack);
        } else if crowd.is_some_and(|crowd| self.is_crowd(attack.key.kind, count, last_ms, crowd)) {
            self.begin_crowd(attack);
        } else {
            self.wait(attack);
        }
    }

    /// Whether `count` more of small senders make one attack of all of them.
    fn is_crowd(&mut self, kind: Kind, count: u64, now_ms: u64, crowd: u64) -> bool {
        let at = self.crowds.iter().position(|one| one.kind == kind).unwrap_or_else(|| {
            self.crowds.push(Crowd { kind, since_ms: now_ms, count: 0 });
            self.crowds.len() - 1
        });
        let so_far = &mut self.crowds[at];
        if now_ms.saturating_sub(so_far.since_ms) > CROWD_MS {
            *so_far = Crowd { kind, since_ms: now_ms, count: 0 };
        }
        so_far.count += count;
        so_far.count >= crowd
    }

    /// Opens the attack that stands for all small senders of a kind, or adds to it.
    fn begin_crowd(&mut self, mut attack: Attack) {
        let kind = attack.key.kind;
        let sum = Key { kind, source: None, claim: Some(Claim::Several) };
        if let Some(open) = self.open.iter_mut().find(|one| one.key == sum) {
            return open.grow(attack.record.count, attack.record.last_ms);
        }
        let others = self.waiting.extract_if(.., |one| one.key.kind == kind);
        let (count, first_ms) = others.fold((0, attack.record.first_ms), |(count, first_ms), one| {
            (count + one.record.count, first_ms.min(one.record.first_ms))
        });
        attack.record.first_ms = first_ms;
        attack.record.count += count;
        attack.stand_for_several(sum);
        self.open_one(attack);
    }

    fn wait(&mut self, attack: Attack) {
        if self.waiting.len() == WAITING_MAX {
            let oldest = (0..WAITING_MAX).min_by_key(|at| self.waiting[*at].record.last_ms).unwrap_or(0);
            self.waiting.swap_remove(oldest);
        }
        self.waiting.push(attack);
    }

    /// Opens an attack, or adds it to one that stands for several where there are too many.
    fn begin(&mut self, mut attack: Attack) {
        let (kind, source) = (attack.key.kind, attack.key.source);
        let is_of_source = |one: &&Attack| one.key.kind == kind && one.key.source == source;
        let of_source = self.open.iter().filter(is_of_source).count();
        let of_kind = self.open.iter().filter(|one| one.key.kind == kind).count();
        let several = Some(Claim::Several);
        let sum = if of_kind >= OF_KIND_MAX {
            Some(Key { kind, source: None, claim: several })
        } else {
            (of_source >= OF_SOURCE_MAX).then_some(Key { kind, source, claim: several })
        };
        if let Some(sum) = sum {
            self.folded += 1;
            if let Some(open) = self.open.iter_mut().find(|one| one.key == sum) {
                return open.grow(attack.record.count, attack.record.last_ms);
            }
            attack.stand_for_several(sum);
        }
        self.open_one(attack);
    }

    fn open_one(&mut self, mut attack: Attack) {
        self.opened += 1;
        attack.record.number = self.opened;
        self.open.push(attack);
    }

    /// What opened, grew or closed since the last turn.
    pub fn turn(&mut self, now_ms: u64) -> Vec<Record> {
        let is_fresh = |attack: &Attack| now_ms.saturating_sub(attack.record.last_ms) < QUIET_MS;
        self.waiting.retain(is_fresh);
        let mut told = Vec::new();
        for attack in &mut self.open {
            told.extend(attack.tell(now_ms, is_fresh(attack)));
        }
        self.open.retain(|attack| attack.record.phase != Phase::Closed);
        told
    }

    pub(crate) fn open(&self) -> Vec<Record> {
        self.open.iter().map(|attack| attack.record.clone()).collect()
    }

    pub(crate) fn opened(&self) -> u64 {
        self.opened
    }

    pub(crate) fn folded(&self) -> u64 {
        self.folded
    }
}

fn key(finding: &Finding) -> Key {
    let claimed = &finding.claimed;
    let claim = claimed.ip.map(Claim::Address).or(claimed.mac.map(Claim::Card));
    Key { kind: finding.kind, source: finding.source.mac, claim }
}

impl Attack {
    fn new(key: Key, finding: Finding, first_ms: u64) -> Attack {
        let record = Record {
            number: 0,
            kind: finding.kind,
            phase: Phase::Opened,
            source: finding.source,
            target: finding.target,
            claimed: finding.claimed,
            is_sum: false,
            reason: finding.reason,
            count: 0,
            first_ms,
            last_ms: first_ms,
            community_id: finding.community_id,
            flow: finding.flow,
            sample: finding.sample,
        };
        Attack { key, record, threshold: finding.threshold, told_ms: 0, told_count: 0 }
    }

    fn grow(&mut self, count: u64, last_ms: u64) {
        self.record.count += count;
        self.record.last_ms = self.record.last_ms.max(last_ms);
    }

    fn stand_for_several(&mut self, sum: Key) {
        self.record.is_sum = true;
        self.record.claimed = Party::default();
        if sum.source.is_none() {
            self.record.source = Party::default();
        }
        self.key = sum;
    }

    fn tell(&mut self, now_ms: u64, is_fresh: bool) -> Option<Record> {
        let is_new = self.told_count == 0;
        let has_grown = self.record.count > self.told_count;
        self.record.phase = match (is_new, is_fresh) {
            (true, _) => Phase::Opened,
            (false, false) => Phase::Closed,
            (false, true) if has_grown && now_ms.saturating_sub(self.told_ms) >= TOLD_AGAIN_MS => Phase::Growing,
            (false, true) => return None,
        };
        (self.told_ms, self.told_count) = (now_ms, self.record.count);
        Some(self.record.clone())
    }
}
