//! The programs, the shapes of their maps, and what they are told once. The numbers are those of
//! `bpf/carry.c`.

use crate::rule::{Action, Rule};
use crate::settings::{OptionKind, OutOfOrder, Settings};

/// In front of the socket, made of `bpf/carry.c`.
pub const IN_FRONT: &[u8] = include_bytes!("../../bpf/carry.bpf");
/// Behind all sockets, of the same source.
pub const ONWARD: &[u8] = include_bytes!("../../bpf/carry.onward.bpf");

/// Connections that may be carried at a time. Each has one place only, which another may have.
pub const PLACES: u32 = 1 << PLACE_BITS;
pub(super) const PLACE_BITS: u32 = 10;
/// Words of eight bytes of an entry.
pub(super) const ENTRY_WORDS: usize = 24;
/// Bytes of all rings.
pub const POOL_LEN: usize = 64 << 20;
/// What the kernel's verifier wants to be there behind the pool: the longest segment.
const POOL_SLACK_LEN: usize = 1 << 16;
/// What a processor remembers of the segment in hand, in bytes.
const HAND_HEAD_LEN: usize = 24;
/// Its room, in which a segment is summed, in bytes.
const ROOM_LEN: usize = (1 << 14) + 512;
/// Processors whose frames are carried.
pub const PROCESSORS: u32 = 256;

/// Places of the maps.
pub const SETTINGS: usize = 0;
/// Numbers of connections.
pub const ENTRIES: usize = 1;
/// Memory of rings.
pub const POOL: usize = 2;
/// What one program leaves for the other.
pub const HANDS: usize = 3;

/// Bytes of a value, how many there are, and whether this program shares their memory, in the order
/// of their places; keys are places.
pub const MAPS: [(usize, u32, bool); 4] = [
    (SETTINGS_LEN, 1, false),
    (ENTRY_WORDS * 8, PLACES, true),
    (POOL_LEN + POOL_SLACK_LEN, 1, true),
    (HAND_HEAD_LEN + ROOM_LEN, PROCESSORS, false),
];

/// Bytes of the settings.
pub const SETTINGS_LEN: usize = 24;

const ZERO_IDENTIFICATION: u32 = 1;
const SET_LABEL: u32 = 2;
const RAISE_HOP_LIMIT: u32 = 4;
const KEEPS_BEHIND_HOLE: u32 = 8;
const KNOWS_BLOCKS: u32 = 16;

/// What the programs are told: the interfaces of the trusted and of the untrusted side, by index,
/// what is rewritten of every segment, and the seed of places.
#[must_use]
pub fn settings(interfaces: [u32; 2], settings: &Settings, seed: u64) -> [u8; SETTINGS_LEN] {
    let is_on = |rule| settings.rules.action(rule) != Action::Off;
    let place = |kind| settings.option_order.iter().position(|option| *option == kind);
    let rules = [
        (is_on(Rule::Ipv4Identification), ZERO_IDENTIFICATION),
        (is_on(Rule::Ipv6FlowLabel), SET_LABEL),
        (is_on(Rule::HopLimitFloor), RAISE_HOP_LIMIT),
        (settings.out_of_order == OutOfOrder::Retain, KEEPS_BEHIND_HOLE),
        // Where another order is asked for, the engine puts them in it.
        (place(OptionKind::Timestamps) < place(OptionKind::Sack), KNOWS_BLOCKS),
    ];
    let rules = rules.into_iter().filter(|(is_on, _)| *is_on).map(|(_, bit)| bit).sum();
    let hop_limit = if is_on(Rule::HopLimitUniform) { settings.hop_limit } else { u8::MAX };
    let hop_limits = u32::from(hop_limit) | u32::from(settings.hops_behind) << 8;
    let words: [u32; 4] = [interfaces[0], interfaces[1], rules, hop_limits];
    let mut bytes = [0; SETTINGS_LEN];
    bytes[16..].copy_from_slice(&seed.to_ne_bytes());
    bytes.as_chunks_mut().0.iter_mut().zip(words).for_each(|(to, word)| *to = u32::to_ne_bytes(word));
    bytes
}
