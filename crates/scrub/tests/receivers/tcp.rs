//! Receivers of TCP as published, each with its own mind about overlapping segments: what target-based intrusion detection
//! calls policies (Novak and Sturges, "Target-Based TCP Stream Reassembly"; the manuals of Snort and Suricata; for BSD and Linux
//! their own queues for segments out of order). Written from those descriptions; nothing here knows the scrubber.
#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::VecDeque;
use std::ops::Range;

/// Whose bytes stay where a later segment overlaps an earlier one that waits for the bytes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// The earlier segment's.
    First,
    /// The later segment's.
    Last,
    /// The later one's where it begins before the earlier one.
    Bsd,
    /// As BSD, and also where it begins with the earlier one and ends behind it.
    Linux,
    /// The later one's where it begins before the earlier one and ends behind it.
    Windows,
    /// The later one's unless the earlier one reaches further.
    Solaris,
    /// The later one's where it begins with or behind the earlier one (BSD-right).
    Right,
}

/// When bytes are read for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// As soon as all bytes before them are there: a host.
    OnArrival,
    /// When the host has acknowledged them: an observer that waits for that.
    OnAcknowledgement,
}

pub(crate) const POLICIES: [Policy; 7] =
    [Policy::First, Policy::Last, Policy::Bsd, Policy::Linux, Policy::Windows, Policy::Solaris, Policy::Right];

impl Policy {
    fn favours_later(self, earlier: &Range<i64>, later: &Range<i64>) -> bool {
        match self {
            Policy::First => false,
            Policy::Last => true,
            Policy::Bsd => later.start < earlier.start,
            Policy::Linux => later.start < earlier.start || (later.start == earlier.start && later.end > earlier.end),
            Policy::Windows => later.start < earlier.start && later.end > earlier.end,
            Policy::Solaris => later.end >= earlier.end,
            Policy::Right => later.start >= earlier.start,
        }
    }
}

/// One receiver of one half of a connection. Offsets count from the first byte of the stream.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    pub(crate) policy: Policy,
    pub(crate) reading: Reading,
    first: u32,
    window: i64,
    /// What was read for good.
    read: Vec<u8>,
    /// What was not: from the byte behind those on, each with the segment that it came in.
    waiting: VecDeque<Option<(u8, Range<i64>)>>,
    /// Bytes that are there without a hole.
    next: i64,
    fin: Option<i64>,
    pub(crate) is_reset: bool,
}

impl Receiver {
    /// A receiver that expects sequence number `first` and has room for `window` bytes.
    pub(crate) fn new(policy: Policy, reading: Reading, first: u32, window: i64) -> Receiver {
        let (read, waiting, fin) = (Vec::new(), VecDeque::new(), None);
        Receiver { policy, reading, first, window, read, waiting, next: 0, fin, is_reset: false }
    }

    /// Every policy, read in both ways.
    pub(crate) fn all(first: u32, window: i64) -> Vec<Receiver> {
        let readings = [Reading::OnArrival, Reading::OnAcknowledgement];
        let both = |policy| readings.map(|reading| Receiver::new(policy, reading, first, window));
        POLICIES.into_iter().flat_map(both).collect()
    }

    fn offset(&self, sequence: u32) -> i64 {
        let next = self.first.wrapping_add(self.next as u32);
        self.next + i64::from(sequence.wrapping_sub(next).cast_signed())
    }

    /// Hears data at a sequence number, and whether a FIN follows it.
    pub(crate) fn hear(&mut self, sequence: u32, data: &[u8], has_fin: bool) {
        let start = self.offset(sequence);
        let end = start + data.len() as i64;
        if self.is_reset || start > self.next + self.window {
            return;
        }
        let limit = self.fin.unwrap_or(i64::MAX).min(self.next + self.window);
        for at in start.max(self.settled())..end.min(limit) {
            self.put(at, data[(at - start) as usize], &(start..end));
        }
        if has_fin && end >= self.next && self.fin.is_none() {
            self.fin = Some(end);
            self.waiting.truncate((end - self.settled()) as usize);
        }
        while self.waiting.get((self.next - self.settled()) as usize).is_some_and(Option::is_some) {
            self.next += 1;
        }
        if self.reading == Reading::OnArrival {
            self.read_for_good();
        }
    }

    /// Bytes that were read for good.
    fn settled(&self) -> i64 {
        self.read.len() as i64
    }

    fn put(&mut self, at: i64, byte: u8, range: &Range<i64>) {
        let place = (at - self.settled()) as usize;
        if place >= self.waiting.len() {
            self.waiting.resize(place + 1, None);
        }
        let kept = &mut self.waiting[place];
        if kept.as_ref().is_none_or(|(_, earlier)| self.policy.favours_later(earlier, range)) {
            *kept = Some((byte, range.clone()));
        }
    }

    /// Reads all that is there without a hole.
    fn read_for_good(&mut self) {
        let ready = (self.next - self.settled()) as usize;
        self.read.extend(self.waiting.drain(..ready).flatten().map(|(byte, _)| byte));
    }

    /// Hears a reset; only the next sequence number counts (RFC 5961).
    pub(crate) fn hear_reset(&mut self, sequence: u32) {
        self.is_reset |= sequence == self.acknowledgement();
    }

    /// What it acknowledges.
    pub(crate) fn acknowledgement(&self) -> u32 {
        let has_fin = self.fin == Some(self.next);
        self.first.wrapping_add(self.next as u32).wrapping_add(u32::from(has_fin))
    }

    /// Everything so far was acknowledged.
    pub(crate) fn acknowledge(&mut self) {
        self.read_for_good();
    }

    /// Whether the stream is complete, its end included.
    pub(crate) fn is_at_end(&self) -> bool {
        self.fin == Some(self.next)
    }

    /// What was read for good.
    pub(crate) fn stream(&self) -> &[u8] {
        &self.read
    }

    /// Ranges that it has behind holes, for selective acknowledgements.
    pub(crate) fn islands(&self) -> Vec<(u32, u32)> {
        let mut islands: Vec<(u32, u32)> = Vec::new();
        let settled = self.settled();
        let there = (settled..).zip(&self.waiting).filter(|(at, byte)| *at >= self.next && byte.is_some());
        for (at, _) in there {
            let sequence = self.first.wrapping_add(at as u32);
            match islands.last_mut() {
                Some(last) if last.1 == sequence => last.1 = sequence.wrapping_add(1),
                _ => islands.push((sequence, sequence.wrapping_add(1))),
            }
        }
        islands
    }
}
