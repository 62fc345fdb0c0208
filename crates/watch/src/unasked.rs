//! Answers by ARP that nobody asked for. The kernel's checks let one in a millisecond pass and count
//! the others. So those that pass are a sample of all, whatever the daemon drops them for.

use std::time::Duration;

use bump::{DropReason, Instant, Side, Sighting};
use wire::MacAddress;
use wire::arp::Operation;

use crate::around::Around;
use crate::judge::{self, Finding};

/// How long counted answers and samples are gathered before they are judged together.
const GATHERED_FOR: Duration = Duration::from_secs(1);
/// Samples of one sender, and none of another, from which on what was counted is his.
const SAMPLES_MIN: u64 = 5;

/// What was gathered of late.
#[derive(Debug, Default)]
pub(crate) struct Unasked {
    /// When the first of it came.
    since: Option<Instant>,
    counted: u64,
    samples: u64,
    sample: Option<Sighting>,
    is_of_several: bool,
}

impl Unasked {
    /// Takes note of `count` frames that a program has kept.
    pub(crate) fn see(&mut self, now: Instant, sighting: &Sighting, count: u64) {
        let Some(sender) = sender_of(sighting) else { return };
        self.since.get_or_insert(now);
        self.samples += count;
        self.is_of_several |= self.sample.as_ref().and_then(sender_of).is_some_and(|other| other != sender);
        self.sample = Some(sighting.clone());
    }

    /// Takes note of `count` frames that were only counted.
    pub(crate) fn count(&mut self, now: Instant, count: u64) {
        self.since.get_or_insert(now);
        self.counted += count;
    }

    /// What was only counted, once it was gathered for long enough: whose it is, and how many.
    pub(crate) fn judge(&mut self, now: Instant, around: &Around) -> Option<(Finding, u64)> {
        self.since.filter(|since| now.since(*since) >= GATHERED_FOR)?;
        let all = std::mem::take(self);
        let sample = all.sample.filter(|_| all.samples >= SAMPLES_MIN && !all.is_of_several);
        let finding = match sample {
            Some(sample) => judge::sampled(DropReason::SarpUnasked, &sample, around),
            None => judge::counted(DropReason::SarpUnasked),
        };
        finding.map(|finding| (finding, all.counted)).filter(|(_, count)| *count > 0)
    }
}

/// The source of an answer by ARP that came from the wire: what our own stack says is no sample.
fn sender_of(sighting: &Sighting) -> Option<MacAddress> {
    let (sender, arp) = judge::arp_of(&sighting.head).filter(|_| sighting.from == Side::WIRE)?;
    (arp.operation == Operation::Reply).then_some(sender)
}
