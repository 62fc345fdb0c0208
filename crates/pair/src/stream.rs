//! Records of flows from the active gateway to the one on standby.
//!
//! What changes is told in batches, so many records in a second at most; a flow that changes faster
//! than that is told as it is when its turn comes. Nothing is sent again: a standby that misses a
//! batch asks for a *round*, in which everything is told once more. It is *in sync* when a round is
//! over that began after the last loss.

use std::time::Duration;

use bump::Instant;

use crate::channel::{PLAINTEXT_MAX_BYTES, Refusal};
use crate::limits::{BATCH_INTERVAL, RECORD_MAX_BYTES};
use crate::message;

/// What a source gives when it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next record was written.
    Record,
    /// Nothing yet: ask again later.
    Later,
    /// Nothing changed, and no round is under way.
    Nothing,
}

/// What a gateway knows of flows: the active one tells it, the one on standby takes it.
pub trait Source {
    /// From now on everything is told once, beside what changes.
    fn begin_round(&mut self);

    /// Appends the next record to `record`, which is empty and takes at most
    /// [`RECORD_MAX_BYTES`] bytes.
    fn next_record(&mut self, now: Instant, record: &mut Vec<u8>) -> Next;

    /// Whether the last round has told everything.
    fn is_round_over(&self) -> bool;

    /// Enters what the other gateway told; false if it cannot be read.
    fn take_record(&mut self, now: Instant, record: &[u8]) -> bool;
}

/// The active gateway's end.
#[derive(Debug)]
pub(crate) struct Outgoing {
    per_batch_interval: usize,
    next_batch: u64,
    next_at: Instant,
    /// Whether something may wait to be told.
    pub(crate) waits: bool,
    /// The round that is under way, and the one that is asked for.
    running: Option<u32>,
    served: u32,
    pub(crate) records: u64,
    record: Vec<u8>,
}

impl Outgoing {
    pub(crate) fn new(records_per_s: u32) -> Outgoing {
        let per_interval = u128::from(records_per_s) * BATCH_INTERVAL.as_millis() / 1000;
        Outgoing {
            per_batch_interval: usize::try_from(per_interval).unwrap_or(usize::MAX).max(1),
            next_batch: 0,
            next_at: Instant::default(),
            waits: false,
            running: None,
            served: 0,
            records: 0,
            record: Vec::new(),
        }
    }

    pub(crate) fn next_batch(&self) -> u64 {
        self.next_batch
    }

    /// Another run of the other gateway has heard nothing yet.
    pub(crate) fn begin_anew(&mut self) {
        (self.running, self.served) = (None, 0);
    }

    /// The standby wants round `wanted`.
    pub(crate) fn want(&mut self, wanted: u32, source: &mut dyn Source) {
        if wanted != self.served && self.running.is_none() {
            source.begin_round();
            self.running = Some(wanted);
            self.waits = true;
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.waits.then_some(self.next_at)
    }

    /// The plaintexts that are due, with as many records as may be sent.
    pub(crate) fn pull(&mut self, now: Instant, source: &mut dyn Source) -> Vec<Vec<u8>> {
        if now < self.next_at {
            self.waits = true;
            return Vec::new();
        }
        self.next_at = now + BATCH_INTERVAL;
        self.pull_at_once(now, source, self.per_batch_interval)
    }

    /// The same for at most `records_max`, whatever was sent before.
    pub(crate) fn pull_at_once(&mut self, now: Instant, source: &mut dyn Source, records_max: usize) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        let mut batch = Vec::new();
        self.waits = true;
        for _ in 0..records_max {
            self.record.clear();
            match source.next_record(now, &mut self.record) {
                Next::Record => {}
                Next::Later => break,
                Next::Nothing => {
                    self.waits = false;
                    break;
                }
            }
            if batch.is_empty() {
                batch = message::records_head(self.next_batch);
                self.next_batch += 1;
            }
            self.records += u64::from(message::append(&mut batch, &self.record));
            if batch.len() + 1 + RECORD_MAX_BYTES > PLAINTEXT_MAX_BYTES {
                messages.push(std::mem::take(&mut batch));
            }
        }
        messages.extend(Some(batch).filter(|batch| !batch.is_empty()));
        if let Some(round) = self.running.filter(|_| source.is_round_over()) {
            messages.push(message::round_over(self.next_batch, round));
            self.next_batch += 1;
            (self.running, self.served) = (None, round);
        }
        messages
    }
}

/// The standby's end.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    /// The number of the next batch, once one was heard.
    expected: Option<u64>,
    pub(crate) wanted: u32,
    pub(crate) in_sync: bool,
    /// Something that was told since the round began could not be read.
    has_unread: bool,
    /// When something was told last.
    heard_at: Option<Instant>,
    pub(crate) records: u64,
    pub(crate) losses: u64,
}

impl Incoming {
    /// The other gateway has begun anew, or has become the active one.
    pub(crate) fn begin_anew(&mut self) {
        self.expected = None;
        self.ask_again();
    }

    /// A round of another number, which nothing of the last one ends. So it goes when the first
    /// number is heard, too: what the active gateway told before it is not known to have come.
    fn ask_again(&mut self) {
        self.wanted = self.wanted.wrapping_add(1).max(1);
        self.in_sync = false;
        self.has_unread = false;
    }

    /// A record could not be read: the other gateway may be of another version. What it said is not
    /// known here until it is told once more.
    pub(crate) fn note_unread(&mut self) {
        self.in_sync = false;
        self.has_unread = true;
    }

    /// A batch, or the end of a round, with this number came.
    pub(crate) fn take(&mut self, now: Instant, batch: u64) -> Result<(), Refusal> {
        match self.expected {
            Some(expected) if batch < expected => return Err(Refusal::Late),
            Some(expected) if batch > expected => self.lose(),
            Some(_) => {}
            None => self.ask_again(),
        }
        self.expected = Some(batch.saturating_add(1));
        self.heard_at = Some(now);
        Ok(())
    }

    fn lose(&mut self) {
        self.losses += 1;
        self.ask_again();
    }

    /// The active gateway says, on the way of the batches, which comes next.
    pub(crate) fn hear_next(&mut self, next_batch: u64) {
        match self.expected {
            Some(expected) if next_batch <= expected => {}
            Some(_) => {
                self.expected = Some(next_batch);
                self.lose();
            }
            None => {
                self.expected = Some(next_batch);
                self.ask_again();
            }
        }
    }

    /// A round is over.
    pub(crate) fn round_over(&mut self, round: u32) -> bool {
        let is_news = !self.in_sync && !self.has_unread && round == self.wanted;
        self.in_sync |= is_news;
        is_news
    }

    /// How long ago something was told.
    pub(crate) fn age(&self, now: Instant) -> Option<Duration> {
        self.heard_at.map(|at| now.since(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The other gateway's numbers are not known yet, so a lost batch leaves no gap in them.
    #[test]
    fn a_round_whose_first_batch_was_lost_is_asked_for_again() {
        let mut incoming = Incoming::default();
        incoming.begin_anew();
        let first = incoming.wanted;
        assert_eq!(incoming.take(Instant::default(), 1), Ok(()));
        assert!(!incoming.round_over(first), "batch 0 of it never came");
        assert!(incoming.wanted != first && incoming.round_over(incoming.wanted));
    }

    #[test]
    fn no_number_of_a_batch_is_too_high() {
        let mut incoming = Incoming::default();
        for batch in [7, u64::MAX, u64::MAX] {
            assert_eq!(incoming.take(Instant::default(), batch), Ok(()));
        }
        assert_eq!((incoming.take(Instant::default(), 8), incoming.losses), (Err(Refusal::Late), 1));
    }
}
