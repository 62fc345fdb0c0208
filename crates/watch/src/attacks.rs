//! Findings folded into attacks: the same kind, source and claim is one that opens, grows and closes.

use bump::DropReason;
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
    /// Of a flood only, whose bound depends on it.
    reason: Option<DropReason>,
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
    /// When the first of those that are counted came.
    since_ms: u64,
    told_ms: u64,
    told_count: u64,
}

/// What came of one kind, for one reason, from senders that are too small for an attack each.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    kind: Kind,
    reason: DropReason,
    since_ms: u64,
    count: u64,
    /// Who sends all of it; none as soon as there are two.
    source: Option<HardwareAddress>,
}

/// All attacks that are open, and those that may become some.
#[derive(Debug, Default)]
pub struct Attacks {
    open: Vec<Attack>,
    waiting: Vec<Attack>,
    /// One for each kind and reason at most.
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
        let (crowd, is_flood) = (finding.crowd, finding.kind == Kind::Flood);
        let at = self.waiting.iter().position(|attack| attack.key == key);
        let waited = at.map(|at| self.waiting.swap_remove(at));
        // How fast it comes makes a flood, not how many there were in an hour.
        let waited = waited.filter(|attack| !is_flood || is_within(attack.since_ms, last_ms));
        let mut attack = waited.unwrap_or_else(|| Attack::new(key, finding, first_ms, last_ms));
        attack.grow(count, last_ms);
        if attack.record.count >= attack.threshold {
            return self.begin(attack);
        }
        if let Some(crowd) = crowd {
            self.join_crowd(&attack, count, crowd);
        }
        self.wait(attack);
    }

    /// Counts `count` more of a small sender, which still waits to be one of its own. From `limit` on
    /// all of them are one attack.
    fn join_crowd(&mut self, attack: &Attack, count: u64, limit: u64) {
        let Key { kind, source, reason: of_flood, .. } = attack.key;
        let (reason, now_ms) = (attack.record.reason, attack.record.last_ms);
        let is_sum = |one: &&mut Attack| {
            let Key { source: of_one, claim, .. } = one.key;
            one.is_of(kind, of_flood) && claim == Some(Claim::Several) && (of_one.is_none() || of_one == source)
        };
        if let Some(open) = self.open.iter_mut().find(is_sum) {
            return open.grow(count, now_ms);
        }
        let new = Crowd { kind, reason, since_ms: now_ms, count: 0, source };
        let at = self.crowds.iter().position(|one| one.kind == kind && one.reason == reason).unwrap_or_else(|| {
            self.crowds.push(new);
            self.crowds.len() - 1
        });
        let crowd = &mut self.crowds[at];
        if !is_within(crowd.since_ms, now_ms) {
            *crowd = new;
        }
        crowd.count += count;
        crowd.source = crowd.source.filter(|of_all| Some(*of_all) == source);
        if crowd.count < limit {
            return;
        }
        // Who sends as another card each time opens no more than these.
        let is_full = self.open.iter().filter(|one| one.key.kind == kind).count() >= OF_KIND_MAX;
        let source = crowd.source.filter(|_| !is_full);
        let mut sum = attack.clone();
        (sum.record.count, sum.record.first_ms) = (crowd.count, crowd.since_ms);
        sum.stand_for_several(Key { kind, source, claim: Some(Claim::Several), reason: of_flood });
        self.open_one(sum);
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
            Some(Key { kind, source: None, claim: several, reason: None })
        } else {
            (of_source >= OF_SOURCE_MAX).then_some(Key { kind, source, claim: several, reason: None })
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
    let reason = (finding.kind == Kind::Flood).then_some(finding.reason);
    Key { kind: finding.kind, source: finding.source.mac, claim, reason }
}

/// Whether both are within the time of a crowd. A clock that was put back begins a new one.
fn is_within(since_ms: u64, now_ms: u64) -> bool {
    now_ms.checked_sub(since_ms).is_some_and(|passed| passed <= CROWD_MS)
}

impl Attack {
    fn new(key: Key, finding: Finding, first_ms: u64, since_ms: u64) -> Attack {
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
        Attack { key, record, threshold: finding.threshold, since_ms, told_ms: 0, told_count: 0 }
    }

    fn is_of(&self, kind: Kind, reason: Option<DropReason>) -> bool {
        self.key.kind == kind && (self.key.reason.is_none() || self.key.reason == reason)
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
