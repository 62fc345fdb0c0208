//! The kernel's programs around the shield's socket and the shapes of their maps; their sources are `bpf/ipsec.c` and `bpf/onward.c`.
//!
//! Values in maps are read by the program on this machine and stand in its own byte order, but for addresses and for the keys of
//! SipHash, which are defined as big-endian and as little-endian.

use std::net::IpAddr;

use bump::DropReason;

use super::limits::{CANDIDATES, EPOCHS_MAX, IKE_KNOWN_MAX, KERNEL_WINDOWS_MAX, KNOWN_MAX, PEERS_MAX};
use super::name::{Name, Standing};
use super::permutation::KEY_LEN;
use super::settings::{Rates, Settings};
use super::window::WORDS;
use crate::{Hook, MapShape};

/// The instructions for the socket and for the card's receive path, made of `bpf/ipsec.c` by `bpf/make.py`.
const PROGRAM: &[u8] = include_bytes!("../../bpf/ipsec.bpf");
const XDP_PROGRAM: &[u8] = include_bytes!("../../bpf/ipsec.xdp.bpf");
/// Those for the way behind the socket, made of `bpf/onward.c`.
const ONWARD_PROGRAM: &[u8] = include_bytes!("../../bpf/onward.bpf");

/// The instructions for this place. Where one names a map it holds the map's place in [`MAPS`].
#[must_use]
pub fn program(hook: Hook) -> &'static [u8] {
    match hook {
        Hook::Socket => PROGRAM,
        Hook::Xdp | Hook::XdpGeneric => XDP_PROGRAM,
    }
}

/// The instructions of the program that hands to the stack what needs no daemon, in the same form.
#[must_use]
pub fn onward() -> &'static [u8] {
    ONWARD_PROGRAM
}

/// What the program counts, in its order.
pub const COUNTED: [DropReason; 8] = [
    DropReason::ShieldStranger,
    DropReason::ShieldUnreadable,
    DropReason::ShieldRange,
    DropReason::ShieldSpi,
    DropReason::ShieldReplay,
    DropReason::ShieldIkeBudget,
    DropReason::ShieldKeepaliveBudget,
    DropReason::ShieldFragmentBudget,
];

/// Packets dropped in the kernel, for each of [`COUNTED`].
pub type Count = [u64; COUNTED.len()];

/// Budgets of a peer.
const BUDGETS: usize = 6;
/// The kernel lets so many times as much through as the shield does: what counts is the shield's own budget, whose clock is
/// another one.
const GENEROSITY: u64 = 2;
/// Stands for no window.
const NO_WINDOW: u32 = u32::MAX;

/// Bytes of what the operator decided.
pub const SETTINGS_LEN: usize = OUTER_AT + 8;
/// Where it stands which interface leads to the stack, and behind it, whether packets were judged before the socket.
const OUTER_AT: usize = 16 + 2 * BUDGETS * 8;
/// Bytes of an address; IPv4 stands as `::ffff:a.b.c.d`.
pub const ADDRESS_LEN: usize = 16;
/// Bytes of what is known of a peer.
pub const PEER_LEN: usize = 8 + EPOCHS_MAX * KEY_LEN;
/// Bytes of an association's name: its peer's number and its SPI.
pub const NAME_LEN: usize = 8;
/// Bytes of what is known of an association.
pub const ASSOCIATION_LEN: usize = 4;
/// Bytes of what a message of IKE is known by: its peer's number, how it is known, and two SPIs.
pub const IKE_NAME_LEN: usize = 24;
/// Words of eight bytes of a window.
pub const WINDOW_WORDS: usize = WORDS;
/// Words of eight bytes of the counters and budgets of a peer, of how many of its packets were handed on, and of the sieve.
pub const BOOKS_WORDS: usize = SIEVE_AT + SIEVE_WORDS;
/// The word in which it stands how many packets were handed on.
pub const PASSED_AT: usize = COUNTED.len() + BUDGETS;
/// The first word of the sieve, which has a bit for each known SPI; who finds none there looks for none.
pub const SIEVE_AT: usize = PASSED_AT + 1;
const SIEVE_WORDS: usize = 8;

/// Where an SPI has its bit: the word of the sieve, and the bit alone. Several may have the same.
#[must_use]
pub(super) fn sieve_bit(spi: u32) -> (usize, u64) {
    let bit = spi as usize % (SIEVE_WORDS * u64::BITS as usize);
    (bit / u64::BITS as usize, 1 << (bit % u64::BITS as usize))
}

/// Place of the map of what the operator decided.
pub const SETTINGS: usize = 0;
/// Place of the map of peers.
pub const PEERS: usize = 1;
/// Place of the map of associations that are known.
pub const KNOWN: usize = 2;
/// Place of the map of windows.
pub const WINDOWS: usize = 3;
/// Place of the map of counters and budgets.
pub const BOOKS: usize = 5;
/// Place of the map of exchanges of IKE.
pub const EXCHANGES: usize = 6;

/// The maps, in the order of their places. Of peers there are as many as of places in a table: two of one address count once.
pub const MAPS: [MapShape; 7] = [
    MapShape::places(SETTINGS_LEN, 1),
    MapShape::any(ADDRESS_LEN, PEER_LEN, PEERS_MAX as u32),
    MapShape::any(NAME_LEN, ASSOCIATION_LEN, (PEERS_MAX * KNOWN_MAX) as u32),
    MapShape::shared(WINDOW_WORDS * 8, KERNEL_WINDOWS_MAX),
    // The program's own.
    MapShape::places(8, CANDIDATES as u32),
    MapShape::shared(BOOKS_WORDS * 8, PEERS_MAX as u32 + 1),
    // That there is an entry is all that it says.
    MapShape::any(IKE_NAME_LEN, 1, (PEERS_MAX * Standing::COUNT * IKE_KNOWN_MAX) as u32),
];

/// What the operator decided, as the program reads it.
#[must_use]
pub fn settings(settings: &Settings) -> [u8; SETTINGS_LEN] {
    let (layers, rates) = (settings.layers, settings.rates);
    let switches = [layers.source, layers.range, layers.spi, layers.window, layers.budgets];
    let bits = switches.iter().rev().fold(0_u32, |bits, is_on| bits << 1 | u32::from(*is_on));
    let mut out = [0; SETTINGS_LEN];
    out[..4].copy_from_slice(&settings.spis.start().to_ne_bytes());
    out[4..8].copy_from_slice(&settings.spis.end().to_ne_bytes());
    out[8..12].copy_from_slice(&bits.to_ne_bytes());
    let Rates { unknown_spi, ike, keepalive, fragment } = rates;
    for (at, rate) in [unknown_spi, ike, keepalive, fragment, ike, ike].into_iter().enumerate() {
        let per_second = u64::from(rate.max(1)) * GENEROSITY;
        let interval_ns = 1_000_000_000 / per_second;
        let (from, to) = (16 + at * 8, 16 + (BUDGETS + at) * 8);
        out[from..from + 8].copy_from_slice(&interval_ns.to_ne_bytes());
        out[to..to + 8].copy_from_slice(&(interval_ns * per_second).to_ne_bytes());
    }
    out
}

/// The same where several datagrams may have been joined and nothing says so; then none is judged.
#[must_use]
pub fn with_joined_unmarked(mut settings: [u8; SETTINGS_LEN]) -> [u8; SETTINGS_LEN] {
    settings[12..16].copy_from_slice(&1_u32.to_ne_bytes());
    settings
}

/// The same where the kernel hands to the stack what needs no daemon. `outer` is the index of the interface whose other end is the
/// stack's; what comes to the socket was judged before if `is_judged`.
#[must_use]
pub fn with_way_onward(mut settings: [u8; SETTINGS_LEN], outer: u32, is_judged: bool) -> [u8; SETTINGS_LEN] {
    settings[OUTER_AT..OUTER_AT + 4].copy_from_slice(&outer.to_ne_bytes());
    settings[OUTER_AT + 4..].copy_from_slice(&u32::from(is_judged).to_ne_bytes());
    settings
}

/// An address, as the key of its map.
#[must_use]
pub fn address(address: IpAddr) -> [u8; ADDRESS_LEN] {
    match address {
        IpAddr::V4(four) => four.to_ipv6_mapped().octets(),
        IpAddr::V6(six) => six.octets(),
    }
}

/// A peer, as the program reads it: the keys of what it sends under, the likeliest first, or none if it has no shield.
#[must_use]
pub(super) fn peer(number: u32, keys: Option<&[[u8; KEY_LEN]]>, has_laps: bool) -> [u8; PEER_LEN] {
    let mut out = [0; PEER_LEN];
    out[..4].copy_from_slice(&number.to_ne_bytes());
    let keys_or_none = keys.unwrap_or_default();
    out[4] = u8::from(keys.is_some());
    out[5] = keys_or_none.len().min(EPOCHS_MAX) as u8;
    out[6] = u8::from(has_laps);
    for (place, key) in out[8..].chunks_exact_mut(KEY_LEN).zip(keys_or_none) {
        place.copy_from_slice(key);
    }
    out
}

/// An association's name, as the key of its map.
#[must_use]
pub(super) fn name(peer: u32, spi: u32) -> [u8; NAME_LEN] {
    let mut out = [0; NAME_LEN];
    out[..4].copy_from_slice(&peer.to_ne_bytes());
    out[4..].copy_from_slice(&spi.to_ne_bytes());
    out
}

/// What the program reads of an association.
#[must_use]
pub(super) fn association(slot: Option<u32>) -> [u8; ASSOCIATION_LEN] {
    slot.unwrap_or(NO_WINDOW).to_ne_bytes()
}

/// What a message of IKE is known by, as the key of its map.
#[must_use]
pub(super) fn ike_name(peer: u32, name: &Name) -> [u8; IKE_NAME_LEN] {
    let mut out = [0; IKE_NAME_LEN];
    out[..4].copy_from_slice(&peer.to_ne_bytes());
    out[4..8].copy_from_slice(&(name.standing as u32).to_ne_bytes());
    out[8..16].copy_from_slice(&name.initiator);
    out[16..].copy_from_slice(&name.other);
    out
}
