//! The kernel's program and the shapes of its maps; its source is `bpf/shield.c`.
//!
//! Values in maps are read by the program on this machine and stand in its own byte order, but for the keys of SipHash, which are
//! defined as little-endian, as the program is.

use bump::DropReason;
use wire::{EtherType, MacAddress};
use zeroize::Zeroizing;

use crate::checks::NonceKeys;
use crate::hook::Hook;
use crate::limits::{
    KERNEL_GROUP_MESSAGES_PER_SECOND, KERNEL_HANDSHAKES_PER_SECOND, KERNEL_MESSAGES_PER_PEER_PER_SECOND,
    KERNEL_PEERS_MAX, KERNEL_RECEIVERS_MAX, KERNEL_TAGS_MAX, KERNEL_WINDOWS_MAX, STRANGER_INTERVAL,
};
use crate::map::MapShape;
use crate::spin::KEY_LEN;
use crate::window::WORDS;

/// The instructions for the socket and for the card's receive path, made of `bpf/shield.c` by `bpf/make.py`.
const PROGRAM: &[u8] = include_bytes!("../bpf/shield.bpf");
const XDP_PROGRAM: &[u8] = include_bytes!("../bpf/shield.xdp.bpf");

/// The instructions for this place. Where one names a map it holds the map's place in [`MAPS`].
#[must_use]
pub fn program(hook: Hook) -> &'static [u8] {
    match hook {
        Hook::Socket => PROGRAM,
        Hook::Xdp | Hook::XdpGeneric => XDP_PROGRAM,
    }
}

/// What the program counts, in its order.
pub const COUNTED: [DropReason; 14] = [
    DropReason::BadVersion,
    DropReason::Malformed,
    DropReason::UnknownIndex,
    DropReason::WrongPeer,
    DropReason::TooFar,
    DropReason::TooOld,
    DropReason::BadSlowNonce,
    DropReason::BadSpin,
    DropReason::Replayed,
    DropReason::HandshakeSiteMac,
    DropReason::GroupTag,
    DropReason::Repeated,
    DropReason::HandshakeBudget,
    DropReason::GroupBudget,
];

/// Frames dropped in the kernel, for each of [`COUNTED`].
pub type Count = [u64; COUNTED.len()];

/// Bytes of what is known of this host.
pub const SETTINGS_LEN: usize = FORMER_AT + HINT_KEY_LEN + 8;
const INTERVALS_AT: usize = 24 + HINT_KEY_LEN;
const FORMER_AT: usize = INTERVALS_AT + 3 * 8;
/// Bytes of what is known of a receiver index.
pub const RECEIVER_LEN: usize = 2 * 2 * 8 + 16;
/// Bytes of a window.
pub const WINDOW_LEN: usize = WORDS * 8;
/// Bytes of the counters, of the time of the next stranger and of those at which two budgets are full.
pub const COUNTERS_LEN: usize = (COUNTED.len() + 3) * 8;
/// Bytes of what names a peer, and of its share.
pub const PEER_LEN: usize = 8;
/// A share of which nothing was taken.
pub const WHOLE_SHARE: [u8; 8] = [0; 8];
/// Bytes of the key of hints, which is one of SipHash as those of nonces are.
pub const HINT_KEY_LEN: usize = KEY_LEN;
/// The keys of hints, one for each site key in force: one, or two while one follows another.
pub type HintKeys = Vec<Zeroizing<[u8; HINT_KEY_LEN]>>;

/// Tags that share a line of a cache.
const TAGS_IN_SET: usize = 8;
/// Stands for no window.
const NO_WINDOW: u32 = u32::MAX;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Place of the map of what is known of this host.
pub const SETTINGS: usize = 0;
/// Place of the map of receiver indices.
pub const RECEIVERS: usize = 1;
/// Place of the map of windows.
pub const WINDOWS: usize = 2;
/// Place of the map of counters.
pub const COUNTERS: usize = 3;

/// The maps, in the order of their places.
pub const MAPS: [MapShape; 6] = [
    MapShape::places(SETTINGS_LEN, 1),
    MapShape::any(size_of::<u32>(), RECEIVER_LEN, KERNEL_RECEIVERS_MAX),
    MapShape::shared(WINDOW_LEN, KERNEL_WINDOWS_MAX),
    MapShape::shared(COUNTERS_LEN, 1),
    // The program's own: tags that it heard, and when they may pass again, by sets.
    MapShape::places(TAGS_IN_SET * 8, KERNEL_TAGS_MAX / TAGS_IN_SET as u32),
    MapShape::recent(PEER_LEN, WHOLE_SHARE.len(), KERNEL_PEERS_MAX),
];

/// What passes of messages with a right tag, since somebody of the site can make new ones without end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Messages of handshakes in a second.
    pub handshake_messages_per_second: u32,
    /// Messages about groups in a second.
    pub group_messages_per_second: u32,
    /// Messages of each peer in a second, when that is used up.
    pub messages_per_peer_per_second: u32,
}

impl Default for Rates {
    fn default() -> Rates {
        Rates {
            handshake_messages_per_second: KERNEL_HANDSHAKES_PER_SECOND,
            group_messages_per_second: KERNEL_GROUP_MESSAGES_PER_SECOND,
            messages_per_peer_per_second: KERNEL_MESSAGES_PER_PEER_PER_SECOND,
        }
    }
}

impl Rates {
    /// As the program reads them: the time for each message.
    fn intervals_ns(self) -> [u64; 3] {
        let apart = |rate: u32| NANOS_PER_SECOND / u64::from(rate.max(1));
        [
            apart(self.handshake_messages_per_second),
            apart(self.group_messages_per_second),
            apart(self.messages_per_peer_per_second),
        ]
    }
}

/// What the kernel must know of this host.
#[derive(Clone)]
pub struct Own {
    /// Its hardware address.
    pub mac: MacAddress,
    /// The site's EtherType.
    pub ethertype: EtherType,
    /// Frames with an unknown index pass, because not all are known.
    pub strangers_pass: bool,
    /// Several messages may have been joined and nothing says so; then only what is never joined is judged.
    pub joined_unmarked: bool,
    /// Under which the tags of handshakes and of frames to groups have their hints, the one that
    /// most have first. Of more than two the others are not known to the kernel.
    pub hint_keys: HintKeys,
    /// What passes of these.
    pub rates: Rates,
}

impl Own {
    /// As the program reads it.
    #[must_use]
    pub fn emit(&self) -> Zeroizing<[u8; SETTINGS_LEN]> {
        let interval_ns = u64::try_from(STRANGER_INTERVAL.as_nanos()).unwrap_or(u64::MAX);
        let mut out = Zeroizing::new([0; SETTINGS_LEN]);
        out[..8].copy_from_slice(&interval_ns.to_ne_bytes());
        out[8..14].copy_from_slice(&self.mac.0);
        out[14..16].copy_from_slice(&self.ethertype.0.to_ne_bytes());
        out[16..20].copy_from_slice(&u32::from(self.strangers_pass).to_ne_bytes());
        out[20..24].copy_from_slice(&u32::from(self.joined_unmarked).to_ne_bytes());
        let mut hint_keys = self.hint_keys.iter();
        if let Some(first) = hint_keys.next() {
            out[24..INTERVALS_AT].copy_from_slice(&first[..]);
        }
        if let Some(second) = hint_keys.next() {
            out[FORMER_AT..FORMER_AT + HINT_KEY_LEN].copy_from_slice(&second[..]);
            out[FORMER_AT + HINT_KEY_LEN..].copy_from_slice(&1_u64.to_ne_bytes());
        }
        for (place, interval) in out[INTERVALS_AT..FORMER_AT].chunks_exact_mut(8).zip(self.rates.intervals_ns()) {
            place.copy_from_slice(&interval.to_ne_bytes());
        }
        out
    }
}

/// What names a peer.
#[must_use]
pub fn peer(mac: MacAddress) -> [u8; PEER_LEN] {
    let mut out = [0; PEER_LEN];
    out[..6].copy_from_slice(&mac.0);
    out
}

/// What the program reads of a receiver index.
#[must_use]
pub fn receiver(peer: MacAddress, keys: &NonceKeys, slot: Option<u32>) -> [u8; RECEIVER_LEN] {
    const PEER_AT: usize = 2 * KEY_LEN;
    let mut out = [0; RECEIVER_LEN];
    out[..KEY_LEN].copy_from_slice(&keys.spin[..]);
    if let Some(slow) = &keys.slow {
        out[KEY_LEN..PEER_AT].copy_from_slice(&slow[..]);
    }
    out[PEER_AT..PEER_AT + 6].copy_from_slice(&peer.0);
    out[PEER_AT + 6] = u8::from(keys.slow.is_some());
    out[PEER_AT + 8..PEER_AT + 12].copy_from_slice(&slot.unwrap_or(NO_WINDOW).to_ne_bytes());
    out
}
