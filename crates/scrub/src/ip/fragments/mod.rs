//! Reassembly (the paper's section IV-B1): fragments wait here until their packet is whole, and the old of two versions of a
//! byte is taken. The whole packet goes through the stages as if it had come in one piece; [`cut`] cuts it again.
//!
//! No part of a packet ever leaves. IPv6 does not choose between versions: overlapping fragments end their packet, also those
//! that are still to come (RFC 5722). Nothing here is trusted; everything that waits is within limits and goes by itself.

pub(crate) mod cut;
mod key;
mod map;
mod store;
mod waiting;

use bump::{DropReason, Fate, Instant, Side};
use wire::offload::IP_PACKET_MAX_BYTES;

use self::key::Key;
use self::store::Store;
use self::waiting::Waiting;
use super::{Fragment, Ip};
use crate::context::Context;
use crate::ethernet::Link;
use crate::keys;
use crate::limits;
use crate::rule::Rule;

/// A fragment.
#[derive(Debug)]
pub(crate) struct Arrived<'a> {
    pub(crate) ip: Ip,
    pub(crate) part: Fragment,
    /// Bytes of its headers as they came.
    pub(crate) header_len: usize,
    /// What it carries.
    pub(crate) bytes: &'a [u8],
}

/// Frames that were held for a packet whose fate is known now.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) from: Side,
    pub(crate) frames: u32,
    pub(crate) fate: Fate,
    /// Headers of the first of them.
    pub(crate) head: Vec<u8>,
}

/// Frames that are held for a packet which is on its way out.
#[derive(Debug)]
#[must_use]
pub(crate) struct Held {
    from: Side,
    frames: u32,
    head: Vec<u8>,
}

/// A packet that has become whole.
#[derive(Debug)]
pub(crate) struct Whole<'a> {
    pub(crate) ip: Ip,
    /// What it carries.
    pub(crate) payload: &'a mut [u8],
    /// Bytes of its longest fragment, headers included.
    pub(crate) longest: usize,
    /// To be settled with the packet's fate.
    pub(crate) held: Held,
}

/// The fragments that wait, and the packet that has just become whole.
#[derive(Debug)]
pub(crate) struct Fragments {
    store: Store,
    whole: Vec<u8>,
    ended: Vec<Ended>,
}

impl Arrived<'_> {
    /// Whether it is wrong by itself: empty, not to be continued where it says so, or beyond the longest packet.
    fn is_malformed(&self) -> bool {
        let cannot_go_on = self.part.more && !self.bytes.len().is_multiple_of(8);
        let end = self.header_len + self.part.offset + self.bytes.len();
        self.bytes.is_empty() || cannot_go_on || end > IP_PACKET_MAX_BYTES
    }
}

/// The rule for fragments of the version of `ip`.
pub(crate) fn rule(ip: &Ip) -> Rule {
    match ip {
        Ip::V4(_) => Rule::Ipv4Fragments,
        Ip::V6(_) => Rule::Ipv6Fragments,
    }
}

impl Fragments {
    /// An empty room that takes its part of `memory_max_bytes`.
    pub(crate) fn new(memory_max_bytes: usize, hashing: keys::Key) -> Fragments {
        let store = Store::new(memory_max_bytes / limits::FRAGMENTS_MEMORY_PART, hashing);
        Fragments { store, whole: Vec::new(), ended: Vec::new() }
    }

    /// Memory that fragments take, in bytes.
    pub(crate) fn memory(&self) -> usize {
        self.store.cost()
    }

    /// Takes in a fragment; gives the packet once it is whole.
    ///
    /// # Errors
    /// The fragment is wrong by itself, or contradicts others of its packet, which go with it.
    pub(crate) fn add(
        &mut self,
        context: &mut Context<'_>,
        link: &Link<'_>,
        arrived: Arrived<'_>,
    ) -> Result<Option<Whole<'_>>, DropReason> {
        let is_malformed = arrived.is_malformed();
        context.refuse_if(is_malformed, rule(&arrived.ip), DropReason::FragmentMalformed)?;
        let key = Key::of(context.from, link, &arrived.ip);
        self.open(context.now, key, link, &arrived)?;
        self.take(context, key, arrived)?;
        self.complete(context, key)
    }

    /// Sees to it that the packet with `key` waits and that the fragment's bytes find room.
    fn open(&mut self, now: Instant, key: Key, link: &Link<'_>, arrived: &Arrived<'_>) -> Result<(), DropReason> {
        if self.store.get(&key).is_some_and(|waiting| waiting.since + limits::FRAGMENTS_TIMEOUT <= now) {
            self.end(&key, DropReason::FragmentExpired);
        }
        // A vector that grows takes up to twice its bytes.
        let cost = limits::FRAGMENTED_PACKET_COST_BYTES + 2 * arrived.bytes.len();
        if !self.store.could_hold(cost) {
            return Err(DropReason::FragmentsFull);
        }
        while let Some(surplus) = self.store.surplus(&key.source(), cost) {
            self.end(&surplus, DropReason::FragmentsFull);
        }
        if self.store.get(&key).is_none() {
            self.store.insert(key, Waiting::new(now, head(link, arrived)));
        }
        Ok(())
    }

    fn take(&mut self, context: &mut Context<'_>, key: Key, arrived: Arrived<'_>) -> Result<(), DropReason> {
        let ends_all = match self.store.get(&key) {
            Some(waiting) if waiting.is_refused => {
                return Err(context.refused(rule(&arrived.ip), DropReason::FragmentConflict));
            }
            Some(waiting) if waiting.held as usize >= limits::FRAGMENTS_PER_PACKET_MAX => {
                return Err(DropReason::FragmentsFull);
            }
            _ => matches!(arrived.ip, Ip::V6(_)),
        };
        let taken = self.store.change(&key, |waiting| waiting.take(context, arrived)).unwrap_or(Ok(()));
        taken.inspect_err(|reason| {
            if ends_all {
                self.refuse(&key, *reason);
            } else {
                self.end(&key, *reason);
            }
        })
    }

    /// Gives the packet with `key` if it is whole; otherwise one more frame is held for it.
    fn complete(&mut self, context: &mut Context<'_>, key: Key) -> Result<Option<Whole<'_>>, DropReason> {
        let is_complete = self.store.change(&key, |waiting| {
            waiting.held += 1;
            waiting.map.is_complete()
        });
        let Some(mut waiting) = is_complete.filter(|is| *is).and_then(|_| self.store.remove(&key)) else {
            return Ok(None);
        };
        // The frame that made it whole is not held: its fate is the packet's.
        let held = Held { from: key.from(), frames: waiting.held - 1, head: std::mem::take(&mut waiting.head) };
        let longest = waiting.longest;
        match self.join(context, waiting) {
            Ok((ip, start, end)) => Ok(Some(Whole { ip, payload: &mut self.whole[start..end], longest, held })),
            Err(reason) => {
                self.settle(held, Fate::Dropped(reason));
                Err(reason)
            }
        }
    }

    /// Writes the whole packet down; gives its header and where lies what it carries.
    fn join(&mut self, context: &mut Context<'_>, waiting: Waiting) -> Result<(Ip, usize, usize), DropReason> {
        let Some(first) = waiting.first else { return Err(DropReason::FragmentMalformed) };
        self.whole.clear();
        waiting.map.write(&mut self.whole);
        let mut ip = first.ip;
        ip.set_hop_limit(waiting.hop_limit);
        *ip.class_mut() = waiting.congestion.of_whole(*ip.class_mut())?;
        let carried = match &mut ip {
            Ip::V4(header) => header.joined(context, &self.whole),
            Ip::V6(header) => header.joined(context, &self.whole, first.len)?,
        };
        // Fragments may differ in the length of their headers, and that of the first counts.
        let is_too_long = ip.header_len() + carried.len() > IP_PACKET_MAX_BYTES;
        context.refuse_if(is_too_long, rule(&ip), DropReason::FragmentMalformed)?;
        Ok((ip, carried.start, carried.end))
    }

    /// Settles the frames of a packet that has found its fate.
    pub(crate) fn settle(&mut self, held: Held, fate: Fate) {
        let Held { from, frames, head } = held;
        self.ended.push(Ended { from, frames, fate, head });
    }

    /// Ends a packet that waits; false if none does.
    fn end(&mut self, key: &Key, reason: DropReason) -> bool {
        let Some(waiting) = self.store.remove(key) else { return false };
        let held = Held { from: key.from(), frames: waiting.held, head: waiting.head };
        self.settle(held, Fate::Dropped(reason));
        true
    }

    /// Ends all packets that wait.
    pub(crate) fn end_all(&mut self, reason: DropReason) {
        while let Some((key, _)) = self.store.oldest() {
            if !self.end(&key, reason) {
                return;
            }
        }
    }

    /// Ends a packet that waits, and keeps its place so that what is still to come ends too.
    fn refuse(&mut self, key: &Key, reason: DropReason) {
        let ended = self.store.change(key, |waiting| {
            let refused = Waiting { is_refused: true, ..Waiting::new(waiting.since, Vec::new()) };
            std::mem::replace(waiting, refused)
        });
        if let Some(waiting) = ended {
            let held = Held { from: key.from(), frames: waiting.held, head: waiting.head };
            self.settle(held, Fate::Dropped(reason));
        }
    }

    /// Ends packets that have waited too long, at most `budget` of them.
    pub(crate) fn expire(&mut self, now: Instant, budget: usize) {
        for _ in 0..budget {
            match self.store.oldest() {
                Some((key, since)) if since + limits::FRAGMENTS_TIMEOUT <= now => {
                    self.end(&key, DropReason::FragmentExpired);
                }
                _ => return,
            }
        }
    }

    /// When the next packet has waited too long.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.store.oldest().map(|(_, since)| since + limits::FRAGMENTS_TIMEOUT)
    }

    /// The next packet whose frames have found their fate.
    pub(crate) fn next_ended(&mut self) -> Option<Ended> {
        self.ended.pop()
    }
}

/// The headers of a frame, as an example.
fn head(link: &Link<'_>, arrived: &Arrived<'_>) -> Vec<u8> {
    let mut head = link.header.to_vec();
    head.resize(link.header.len() + arrived.ip.header_len(), 0);
    arrived.ip.emit(&mut head[link.header.len()..], arrived.bytes.len());
    head
}
