//! From dropped frames to attacks: who, what, in whose name, against whom, since when.
//!
//! [`Watch::look`] is given a ledger and what the host knows of its surroundings, now and then. What
//! was dropped since the last look is judged ([`judge`]) and folded into attacks ([`attacks`]): the same
//! kind, source and claim is one attack that opens, grows, and closes after a quiet time.
//!
//! Strangers are no attackers. A frame in clear of a host that is not guarded, for its own address, says
//! nothing bad, however often it comes; only questions to a DHCP server can be a flood. What counts is a
//! claim on what somebody else is known to have, and what no honest host ever sends, or never so much of.
//! Everything is bounded, whatever is sent.

pub mod around;
pub mod attacks;
pub mod community;
pub mod judge;
mod packet;
mod unasked;

use std::collections::HashMap;

use bump::record::Record;
use bump::{DropReason, Instant, Ledger};

pub use around::{Around, Known};
use attacks::Attacks;
use unasked::Unasked;

/// Counts of sightings that are remembered from one look to the next; more than a ledger has places.
const REMEMBERED_MAX: usize = 1024;

/// One look at the books.
#[derive(Clone, Copy, Debug)]
pub struct Look<'a> {
    /// When, by the clock of the ledger.
    pub now: Instant,
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The books.
    pub ledger: &'a Ledger,
    /// What is known of others.
    pub around: &'a Around,
}

impl Look<'_> {
    /// A moment of the ledger's clock in milliseconds since 1970.
    fn unix_ms_of(&self, at: Instant) -> u64 {
        let ago = u64::try_from(self.now.since(at).as_millis()).unwrap_or(u64::MAX);
        self.unix_ms.saturating_sub(ago)
    }
}

/// What tells a sighting from others: when it began is part of it, so one that was forgotten and came again is new.
type Seen = (DropReason, Instant, u64);

/// The watch of one daemon.
#[derive(Debug, Default)]
pub struct Watch {
    seen: HashMap<Seen, u64>,
    counted: HashMap<DropReason, u64>,
    unasked: Unasked,
    attacks: Attacks,
}

impl Watch {
    /// Judges what was dropped since the last look. What opened, grew or closed.
    pub fn look(&mut self, look: &Look<'_>) -> Vec<Record> {
        let mut told = HashMap::new();
        let mut seen = HashMap::new();
        for sighting in look.ledger.sightings() {
            let key = (sighting.reason, sighting.first, sighting.name);
            let before = self.seen.get(&key).copied().unwrap_or(0);
            let more = sighting.count.saturating_sub(before);
            *told.entry(sighting.reason).or_insert(0_u64) += more;
            if seen.len() < REMEMBERED_MAX {
                seen.insert(key, sighting.count);
            }
            if more == 0 {
                continue;
            }
            self.unasked.see(look.now, sighting, more);
            if let Some(finding) = judge::frame(sighting, look.around) {
                self.attacks.add(finding, more, look.unix_ms_of(sighting.first), look.unix_ms_of(sighting.last));
            }
        }
        self.seen = seen;
        self.look_at_counters(look, &told);
        if let Some((finding, count)) = self.unasked.judge(look.now, look.around) {
            self.attacks.add(finding, count, look.unix_ms, look.unix_ms);
        }
        self.attacks.turn(look.unix_ms)
    }

    /// Frames that ended where no program could keep one are in the counters alone.
    fn look_at_counters(&mut self, look: &Look<'_>, told: &HashMap<DropReason, u64>) {
        for reason in DropReason::ALL {
            let count = look.ledger.drops(*reason);
            let before = self.counted.insert(*reason, count).unwrap_or(0);
            let unseen = count.saturating_sub(before).saturating_sub(told.get(reason).copied().unwrap_or(0));
            if unseen == 0 {
                continue;
            }
            if *reason == DropReason::SarpUnasked {
                self.unasked.count(look.now, unseen);
            } else if let Some(finding) = judge::counted(*reason) {
                self.attacks.add(finding, unseen, look.unix_ms, look.unix_ms);
            }
        }
    }

    /// The attacks that are under way, the first first.
    #[must_use]
    pub fn open(&self) -> Vec<Record> {
        self.attacks.open()
    }

    /// How many attacks there were since the start.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.attacks.opened()
    }

    /// Findings that had to be folded into a record that stands for several.
    #[must_use]
    pub fn folded(&self) -> u64 {
        self.attacks.folded()
    }
}
