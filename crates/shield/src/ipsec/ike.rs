//! Messages of IKE, by what this host's own stack has sent before: a flood of first messages in a peer's name is to cost neither a running
//! pair its new keys nor an exchange that has begun its end.
//!
//! What the stack itself has sent is trusted; what arrives is only compared with it. A running association of IKE is one under whose two
//! SPIs the stack has sent something encrypted: it has made keys with somebody who got its answers, which who forges a source
//! address does not. For the same reason its answer in the first exchange, its own first request and the cookie that it
//! asks for (RFC 7296, section 2.6) tell what belongs to them. Nothing is decrypted, and errors in clear, which a stack may send about any SPIs
//! (section 1.5), tell nothing.

use std::collections::BTreeMap;

use bump::Instant;

use super::limits::IKE_KNOWN_MAX;
use super::name::{Name, Spi, Standing};
use super::outpost::Outpost;
use crate::Bucket;

/// Bytes of the header of IKE, in both versions (RFC 7296, section 3.1).
const HEADER_LEN: usize = 28;
/// Bytes of a notification in front of its data, if it names no SPI (section 3.10).
const NOTIFY_LEN: usize = 8;
/// Bytes that a cookie may have (section 2.6).
const COOKIE_LENS: std::ops::RangeInclusive<usize> = MARK_LEN..=64;
/// Bytes at a cookie's end by which it is known: what is recommended ends in a hash, and begins with what is easy to guess.
const MARK_LEN: usize = 8;

// Values of fields (section 3; of version 1 RFC 2408, section 3).
const IKE_SA_INIT: u8 = 34;
const MAIN_MODE_V1: u8 = 2;
const AGGRESSIVE_MODE_V1: u8 = 4;
const SECURITY_ASSOCIATION: u8 = 33;
const SECURITY_ASSOCIATION_V1: u8 = 1;
const NOTIFY: u8 = 41;
const ENCRYPTED: u8 = 46;
const ENCRYPTED_FRAGMENT: u8 = 53;
const COOKIE: u16 = 16_390;
const IS_RESPONSE: u8 = 0x20;
const IS_ENCRYPTED_V1: u8 = 0x01;

/// The responder's, as long as there is none.
const NONE: Spi = [0; 8];

/// The header of a message, and what follows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    initiator: Spi,
    responder: Spi,
    first_payload: u8,
    version: u8,
    exchange: u8,
    flags: u8,
    body: &'a [u8],
}

impl Message<'_> {
    /// Reads a message behind its UDP header or marker; `None` if it is cut short.
    pub(super) fn read(bytes: &[u8]) -> Option<Message<'_>> {
        let (head, body) = bytes.split_first_chunk::<HEADER_LEN>()?;
        let spi = |at: usize| std::array::from_fn(|byte| head[at + byte]);
        let [first_payload, version, exchange, flags] = [head[16], head[17] >> 4, head[18], head[19]];
        Some(Message { initiator: spi(0), responder: spi(8), first_payload, version, exchange, flags, body })
    }

    fn name(&self, standing: Standing, other: Spi) -> Name {
        Name { standing, initiator: self.initiator, other }
    }

    /// What this host's stack makes known by sending it.
    fn makes_known(&self) -> Option<Name> {
        let cookie = self.cookie().filter(|_| self.exchange == IKE_SA_INIT);
        let is_answer = self.flags & IS_RESPONSE != 0;
        match (self.responder == NONE, is_answer, cookie) {
            (false, ..) if self.is_encrypted() => Some(self.name(Standing::Running, self.responder)),
            (false, ..) => self.begins().then(|| self.name(Standing::Answered, self.responder)),
            (true, true, cookie) => cookie.map(|end| self.name(Standing::Cookie, end)),
            (true, false, cookie) => (cookie.is_some() || self.begins()).then(|| self.name(Standing::Opened, NONE)),
        }
    }

    /// What it may be known by when it arrives, the best first.
    fn may_be(&self) -> impl Iterator<Item = Name> {
        let answered = (self.responder != NONE).then_some(self.responder);
        let cookie = self.cookie().filter(|_| answered.is_none());
        let running = answered.map(|responder| self.name(Standing::Running, responder));
        let answered = answered.map(|responder| self.name(Standing::Answered, responder));
        let cookie = cookie.map(|end| self.name(Standing::Cookie, end));
        running.into_iter().chain(answered).chain(cookie).chain([self.name(Standing::Opened, NONE)])
    }

    /// Whether it is of a first exchange and negotiates, in clear.
    fn begins(&self) -> bool {
        match (self.version, self.exchange, self.first_payload) {
            (1, MAIN_MODE_V1 | AGGRESSIVE_MODE_V1, SECURITY_ASSOCIATION_V1) => !self.is_encrypted(),
            (2, IKE_SA_INIT, SECURITY_ASSOCIATION) => true,
            _ => false,
        }
    }

    fn is_encrypted(&self) -> bool {
        match self.version {
            1 => self.flags & IS_ENCRYPTED_V1 != 0,
            2 => matches!(self.first_payload, ENCRYPTED | ENCRYPTED_FRAGMENT),
            _ => false,
        }
    }

    /// The end of the cookie that stands in front of everything else.
    fn cookie(&self) -> Option<Spi> {
        let (head, _) = self.body.split_first_chunk::<NOTIFY_LEN>()?;
        let [kind, len] = [6, 2].map(|at| u16::from_be_bytes([head[at], head[at + 1]]));
        let is_cookie = self.first_payload == NOTIFY && head[5] == 0 && kind == COOKIE;
        let cookie = self.body.get(NOTIFY_LEN..usize::from(len)).filter(|_| is_cookie)?;
        COOKIE_LENS.contains(&cookie.len()).then(|| cookie.last_chunk::<MARK_LEN>().copied())?
    }
}

/// What is known of a peer's messages, and how many of each kind may pass.
#[derive(Debug)]
pub(super) struct Exchanges {
    known: BTreeMap<Name, Instant>,
    /// Of messages that nothing is known by.
    strange: Bucket,
    /// Of exchanges that have begun, at either end.
    begun: Bucket,
    running: Bucket,
}

impl Exchanges {
    /// Each kind of messages may come `per_second`.
    pub(super) fn new(per_second: u32) -> Exchanges {
        let bucket = Bucket::new(per_second, per_second);
        Exchanges { known: BTreeMap::new(), strange: bucket, begun: bucket, running: bucket }
    }

    /// Takes note of what this host's stack sends to the peer with this number.
    pub(super) fn note(&mut self, now: Instant, bytes: &[u8], peer: u32, outpost: Option<&mut Outpost>) {
        let Some(name) = Message::read(bytes).and_then(|message| message.makes_known()) else { return };
        if let Some(used) = self.known.get_mut(&name) {
            *used = now;
            return;
        }
        let forgotten = self.make_room(name.standing);
        self.known.insert(name, now);
        let Some(outpost) = outpost else { return };
        if let Some(old) = forgotten {
            outpost.forget_ike(peer, &old);
        }
        outpost.learn_ike(peer, &name);
    }

    /// Whether a message of the peer may pass.
    pub(super) fn take(&mut self, now: Instant, bytes: &[u8]) -> bool {
        let message = Message::read(bytes);
        let known = message.and_then(|message| message.may_be().find(|name| self.known.contains_key(name)));
        match known.map(|name| name.standing) {
            Some(Standing::Running) => {
                self.known.extend(known.map(|name| (name, now)));
                self.running.take(now)
            }
            Some(Standing::Opened | Standing::Answered | Standing::Cookie) => self.begun.take(now),
            None => self.strange.take(now),
        }
    }

    /// Forgets the one that was used longest ago, if there is no room for another of its kind.
    fn make_room(&mut self, standing: Standing) -> Option<Name> {
        let of_kind = || self.known.iter().filter(|(name, _)| name.standing == standing);
        if of_kind().count() < IKE_KNOWN_MAX {
            return None;
        }
        let oldest = of_kind().min_by_key(|(_, used)| **used).map(|(name, _)| *name)?;
        self.known.remove(&oldest);
        Some(oldest)
    }
}
