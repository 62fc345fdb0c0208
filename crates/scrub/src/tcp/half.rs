//! One half of a connection: how far its host is, and how far its peer lets it go.

use crate::tcp::greeting::Greeting;
use crate::tcp::memory::Memory;
use crate::tcp::retained::Bytes;
use crate::tcp::serial::{ahead, is_within, later};

/// Largest scale of a window (RFC 7323, section 2.3): assumed where the handshake was not seen.
pub(crate) const WINDOW_SCALE_MAX: u8 = 14;

/// Where the stream of one half ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fin {
    None,
    /// A FIN was seen behind a hole and did not go on. It counts once everything before it is
    /// there.
    Waiting(u32),
    /// A FIN went on; this is its sequence number.
    At(u32),
}

/// One half of a connection: what one host sends, in its own sequence numbers.
#[derive(Debug)]
pub(crate) struct Half {
    /// The oldest byte that the peer has not acknowledged.
    pub(crate) unacknowledged: u32,
    /// The end of what went on without a hole.
    pub(crate) in_sequence: u32,
    /// The end of all that went on.
    pub(crate) end: u32,
    /// How far its host has sent by its own word: its sequence number where it said nothing. While
    /// its peer must say how far it is, what that one claims.
    pub(crate) reached: u32,
    /// The right edge of the window that the peer ever granted.
    pub(crate) edge: u32,
    /// The largest window that the peer granted, in bytes.
    pub(crate) window_max: u32,
    pub(crate) fin: Fin,
    /// The timestamp below which the peer refuses (TS.Recent, RFC 7323, section 5), and when it was
    /// set, in seconds.
    pub(crate) stamp: u32,
    pub(crate) stamp_at: u32,
    /// What the peer takes in one segment.
    pub(crate) mss: u16,
    pub(crate) scale: Scale,
    pub(crate) has_stamp: bool,
    /// Whether this host reset the connection.
    pub(crate) is_reset: bool,
    /// The last byte that the peer acknowledged, if it is known.
    pub(crate) last_acknowledged: Option<u8>,
    pub(crate) store: Store,
}

/// What is retained of a half, while anything is.
#[derive(Debug, Default)]
pub(crate) struct Store {
    pub(crate) bytes: Option<Box<Bytes>>,
    /// How much it was at most before all was acknowledged the last time, as a power of two.
    usual: u8,
}

impl Store {
    /// How many bytes are likely to be retained at a time, as far as it is known.
    pub(crate) fn usual_room(&self) -> u32 {
        1_u32.checked_shl(self.usual.into()).filter(|_| self.usual > 0).unwrap_or(0)
    }
}

/// How windows of a host are scaled (RFC 7323, section 2), in bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scale {
    /// As it grants them.
    pub(crate) own: u8,
    /// As its peer was told.
    pub(crate) told: u8,
}

/// What the peer takes when it does not say (RFC 9293, section 3.7.1).
const MSS: u16 = 536;

impl Half {
    /// The half of a host that said `own`, to a peer that said `other`.
    pub(super) fn new(own: &Greeting, other: &Greeting, now: u32) -> Half {
        let first = own.sequence.wrapping_add(1);
        let scales = own.window_scale.zip(other.window_scale);
        Half {
            edge: first.wrapping_add(u32::from(other.window)),
            window_max: u32::from(other.window),
            mss: other.mss.unwrap_or(MSS),
            scale: Scale { own: scales.map_or(0, |(own, _)| own), told: scales.and(own.told_scale).unwrap_or(0) },
            stamp: own.stamps.map_or(0, |(_, latest)| latest),
            has_stamp: own.stamps.is_some(),
            ..Half::at(first, now)
        }
    }

    /// The half of a host about which nothing is known but its next sequence number.
    pub(crate) fn at(next: u32, now: u32) -> Half {
        Half {
            unacknowledged: next,
            in_sequence: next,
            end: next,
            reached: next,
            edge: next,
            window_max: 0,
            fin: Fin::None,
            stamp: 0,
            stamp_at: now,
            mss: u16::MAX,
            scale: Scale::default(),
            has_stamp: false,
            is_reset: false,
            last_acknowledged: None,
            store: Store::default(),
        }
    }

    /// The half of a host whose handshake was not seen, and which may send whatever the largest
    /// window allows.
    pub(super) fn adopted(next: u32, now: u32) -> Half {
        let window_max = u32::from(u16::MAX) << WINDOW_SCALE_MAX;
        let edge = next.wrapping_add(window_max);
        Half { edge, window_max, scale: Scale { own: WINDOW_SCALE_MAX, told: WINDOW_SCALE_MAX }, ..Half::at(next, now) }
    }

    /// The window that its host grants in `field`, in bytes, and how its peer is told of it:
    /// rounded down, so that it is never told of more room than there is.
    pub(crate) fn window(&self, field: u16) -> (u32, u16) {
        let window = u32::from(field) << self.scale.own;
        let told = (window >> self.scale.told).min(u32::from(u16::MAX)) as u16;
        (window, if self.scale.told == self.scale.own { field } else { told })
    }

    /// Whether its FIN was acknowledged.
    pub(super) fn is_closed(&self) -> bool {
        matches!(self.fin, Fin::At(fin) if ahead(self.unacknowledged, fin) > 0)
    }

    /// Whether its peer may acknowledge that number, `last` being the highest: late ones are as old
    /// as a window at most (RFC 5961, section 5).
    pub(crate) fn may_be_acknowledged(&self, number: u32, last: u32) -> bool {
        is_within(number, self.unacknowledged.wrapping_sub(self.window_max), last)
    }

    /// Goes on at `acknowledgement`, which the peer says of it: what it sent behind that is not
    /// known.
    pub(crate) fn go_on_at(&mut self, acknowledgement: u32, memory: &mut Memory) {
        self.acknowledge(acknowledgement, memory);
        if self.fin == Fin::None {
            self.in_sequence = self.unacknowledged;
        }
    }

    /// Notes that the peer has everything up to `acknowledgement`.
    pub(crate) fn acknowledge(&mut self, acknowledgement: u32, memory: &mut Memory) {
        let Ok(len @ 1..) = u32::try_from(ahead(acknowledgement, self.unacknowledged)) else { return };
        self.unacknowledged = acknowledgement;
        self.in_sequence = later(self.in_sequence, acknowledgement);
        self.end = later(self.end, acknowledgement);
        self.last_acknowledged = None;
        let Some(retained) = &mut self.store.bytes else { return };
        let is_behind_fin = matches!(self.fin, Fin::At(fin) if ahead(acknowledgement, fin) > 0);
        let last = retained.release(len - u32::from(is_behind_fin));
        self.last_acknowledged = last.filter(|_| !is_behind_fin);
        if retained.end() == 0 {
            self.store.usual = retained.peak().checked_ilog2().map_or(0, |log| log as u8 + 1);
            retained.give_back(memory);
            self.store.bytes = None;
        } else {
            retained.shrink(memory);
        }
    }
}
