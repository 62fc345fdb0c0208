//! A host of a connection, as far as Linux shows: RFC 9293, section 3.10.7.4, RFC 6298, RFC 7323,
//! section 5, and RFC 8985 for what is lost.

use std::collections::{BTreeMap, VecDeque};

use crate::tcp_support::*;

/// Data in a segment, in bytes.
const PIECE: u32 = 1000;
/// As Linux: the least time before a host sends again, between two answers to segments without data
/// that are old, and what a probe adds where one segment is under way.
const TIMEOUT_MIN_MS: u64 = 200;
const OLD_ANSWERS_MS: u64 = 500;
const TIMEOUT_FIRST_MS: u64 = 1000;
/// Segments under way at first.
const WINDOW_FIRST: u32 = 10;

/// A piece that was sent and is not acknowledged.
#[derive(Clone, Copy, Debug)]
struct Piece {
    sequence: u32,
    len: u32,
    sent: u64,
    is_held: bool,
    is_lost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// What was lost is sent again, up to this number.
    Recovery(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Timer {
    /// The newest piece once more, if nothing is heard (RFC 8985, section 7).
    Probe,
    Timeout,
}

pub(crate) struct Host {
    pub(crate) wanted: u32,
    pub(crate) heard: u32,
    pub(crate) out: Vec<Seg>,
    acknowledged: u32,
    next: u32,
    flight: VecDeque<Piece>,
    window: u32,
    threshold: u32,
    phase: Phase,
    /// Smoothed round trip and its variation.
    round_trip: Option<(u64, u64)>,
    timeout_ms: u64,
    backoff: u32,
    timer: Option<(u64, Timer)>,
    probed: bool,
    /// What it said last of `heard`.
    told: u32,
    islands: BTreeMap<u32, u32>,
    stamp_heard: u32,
    answered_old_at: Option<u64>,
}

impl Host {
    pub(crate) fn new(own: u32, other: u32) -> Host {
        Host {
            wanted: own,
            heard: other,
            out: Vec::new(),
            acknowledged: own,
            next: own,
            flight: VecDeque::new(),
            window: WINDOW_FIRST,
            threshold: u32::MAX,
            phase: Phase::Open,
            round_trip: None,
            timeout_ms: TIMEOUT_FIRST_MS,
            backoff: 0,
            timer: None,
            probed: false,
            told: other,
            islands: BTreeMap::new(),
            stamp_heard: 0,
            answered_old_at: None,
        }
    }

    fn send(&mut self, now: u64, sequence: u32, len: u32) {
        let data: Vec<u8> = (sequence..sequence + len).map(|at| (at / 7) as u8).collect();
        self.told = self.heard;
        let mut seg = seg(ACK, sequence, self.heard).stamps(now as u32, self.stamp_heard).window(500).data(&data);
        let held: Vec<u8> = self
            .islands
            .iter()
            .take(3)
            .flat_map(|(begin, end)| [begin.to_be_bytes(), end.to_be_bytes()].concat())
            .collect();
        if !held.is_empty() {
            seg.options.extend([1, 1, 5, 2 + held.len() as u8]);
            seg.options.extend(held);
        }
        self.out.push(seg);
    }

    fn under_way(&self) -> u32 {
        self.flight.iter().filter(|piece| !piece.is_held && !piece.is_lost).count() as u32
    }

    /// Sends what it may: what was lost, then what it wants to have said.
    pub(crate) fn say(&mut self, now: u64) {
        let mut has_sent = false;
        while self.under_way() < self.window {
            if let Some(at) = self.flight.iter().position(|piece| piece.is_lost) {
                self.repeat(now, at);
            } else if self.next < self.wanted {
                let (sequence, len) = (self.next, (self.wanted - self.next).min(PIECE));
                self.send(now, sequence, len);
                self.next += len;
                self.flight.push_back(Piece { sequence, len, sent: now, is_held: false, is_lost: false });
                has_sent = true;
            } else {
                break;
            }
        }
        if has_sent {
            self.arm(now);
        }
    }

    fn repeat(&mut self, now: u64, at: usize) {
        let piece = &mut self.flight[at];
        (piece.sent, piece.is_lost) = (now, false);
        let (sequence, len) = (piece.sequence, piece.len);
        self.send(now, sequence, len);
    }

    fn arm(&mut self, now: u64) {
        let timeout = now + (self.timeout_ms << self.backoff.min(9));
        self.timer = if self.flight.is_empty() {
            None
        } else if let (Phase::Open, false, Some((smoothed, _))) = (self.phase, self.probed, self.round_trip) {
            let alone = if self.flight.len() == 1 { TIMEOUT_MIN_MS } else { 2 };
            Some(((now + 2 * smoothed + alone).min(timeout), Timer::Probe))
        } else {
            Some((timeout, Timer::Timeout))
        };
    }

    /// Does what its timer is due for.
    pub(crate) fn wake(&mut self, now: u64) {
        let Some((_, timer)) = self.timer.take_if(|(due, _)| *due <= now) else { return };
        match timer {
            Timer::Probe => {
                self.probed = true;
                self.repeat(now, self.flight.len() - 1);
            }
            Timer::Timeout => {
                self.flight.iter_mut().filter(|piece| !piece.is_held).for_each(|piece| piece.is_lost = true);
                // Held where the same segment was sent again by this timer before (RFC 5681, section 3.1).
                if self.backoff == 0 {
                    self.threshold = (self.window / 2).max(2);
                }
                self.window = 1;
                self.phase = Phase::Recovery(self.next);
                self.backoff += 1;
                self.repeat(now, self.flight.iter().position(|piece| !piece.is_held).expect("the oldest"));
            }
        }
        self.arm(now);
    }

    fn answer_old(&mut self, now: u64, is_limited: bool) {
        if is_limited && self.answered_old_at.is_some_and(|at| now < at + OLD_ANSWERS_MS) {
            return;
        }
        if is_limited {
            self.answered_old_at = Some(now);
        }
        self.send(now, self.next, 0);
    }

    pub(crate) fn hear(&mut self, now: u64, seg: &Seg) {
        let (value, echo) = seg.read_stamps().expect("agreed");
        let (begin, end, is_bare) = (seg.sequence, seg.end(), seg.data.is_empty());
        if value < self.stamp_heard || end < self.told || begin > self.heard + 60_000 {
            self.answer_old(now, is_bare);
            return;
        }
        if begin <= self.told {
            self.stamp_heard = value;
        }
        let expected: Vec<u8> = (begin..end).map(|at| (at / 7) as u8).collect();
        assert_eq!(seg.data, expected, "bytes as they were said");
        self.hear_acknowledgement(now, seg, echo);
        if is_bare {
            return;
        }
        let last = self.islands.entry(begin).or_insert(end);
        *last = end.max(*last);
        self.merge();
        self.send(now, self.next, 0);
    }

    /// Joins pieces that touch, and takes in those that are next.
    fn merge(&mut self) {
        let islands = std::mem::take(&mut self.islands);
        for (begin, end) in islands {
            if begin <= self.heard {
                self.heard = self.heard.max(end);
                continue;
            }
            match self.islands.last_entry() {
                Some(mut last) if *last.get() >= begin => *last.get_mut() = end.max(*last.get()),
                _ => _ = self.islands.insert(begin, end),
            }
        }
    }

    fn hear_acknowledgement(&mut self, now: u64, seg: &Seg, echo: u32) {
        let number = seg.acknowledgement;
        if number < self.acknowledged || number > self.next {
            return;
        }
        let before = self.flight.len();
        let mut newest = None;
        while let Some(piece) = self.flight.pop_front_if(|piece| piece.sequence + piece.len <= number) {
            newest = newest.max(Some(piece.sent));
        }
        let acked = (before - self.flight.len()) as u32;
        for block in seg.option(5).unwrap_or_default().chunks_exact(8) {
            let edge = |at: usize| u32::from_be_bytes(block[at..at + 4].try_into().expect("four bytes"));
            for piece in self.flight.iter_mut().filter(|piece| !piece.is_held) {
                if piece.sequence >= edge(0) && piece.sequence + piece.len <= edge(4) {
                    (piece.is_held, piece.is_lost) = (true, false);
                    newest = newest.max(Some(piece.sent));
                }
            }
        }
        if number > self.acknowledged {
            self.acknowledged = number;
            self.measure(now - u64::from(echo));
            (self.backoff, self.probed) = (0, false);
        }
        if self.window < self.threshold {
            self.window += acked;
        }
        self.look_for_losses(newest);
        if newest.is_some() {
            self.arm(now);
        }
    }

    /// What was sent before what arrived is lost.
    fn look_for_losses(&mut self, newest: Option<u64>) {
        if let Phase::Recovery(until) = self.phase
            && self.acknowledged >= until
        {
            (self.phase, self.window) = (Phase::Open, self.threshold.clamp(2, WINDOW_FIRST));
        }
        let mut any = false;
        for piece in self.flight.iter_mut().filter(|piece| !piece.is_held) {
            if newest.is_some_and(|newest| piece.sent < newest) {
                piece.is_lost = true;
                any = true;
            }
        }
        if any && self.phase == Phase::Open {
            self.threshold = (self.window / 2).max(2);
            (self.window, self.phase) = (self.threshold, Phase::Recovery(self.next));
        }
    }

    fn measure(&mut self, sample: u64) {
        let (smoothed, variation) = match self.round_trip {
            None => (sample, sample / 2),
            Some((smoothed, variation)) => {
                ((7 * smoothed + sample) / 8, (3 * variation + smoothed.abs_diff(sample)) / 4)
            }
        };
        self.round_trip = Some((smoothed, variation));
        self.timeout_ms = smoothed + (4 * variation).max(TIMEOUT_MIN_MS);
    }
}
