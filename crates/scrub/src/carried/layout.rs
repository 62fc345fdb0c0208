//! The programs, the shapes of their maps, and what they are told once. The numbers are those of
//! `bpf/carry.c`.

use crate::rule::{Action, Rule};
use crate::settings::Settings;

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
/// Room of a processor, in which data is summed, in bytes.
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
    (8 + ROOM_LEN, PROCESSORS, false),
];

/// Bytes of the settings.
pub const SETTINGS_LEN: usize = 16;

const ZERO_IDENTIFICATION: u32 = 1;
const SET_LABEL: u32 = 2;
const RAISE_HOP_LIMIT: u32 = 4;

/// What the programs are told: the interfaces of the trusted and of the untrusted side, by index,
/// and what is rewritten of every segment.
#[must_use]
pub fn settings(interfaces: [u32; 2], settings: &Settings) -> [u8; SETTINGS_LEN] {
    let is_on = |rule| settings.rules.action(rule) != Action::Off;
    let rules = [
        (Rule::Ipv4Identification, ZERO_IDENTIFICATION),
        (Rule::Ipv6FlowLabel, SET_LABEL),
        (Rule::HopLimitFloor, RAISE_HOP_LIMIT),
    ];
    let rules = rules.into_iter().filter(|(rule, _)| is_on(*rule)).map(|(_, bit)| bit).sum();
    let hop_limit = if is_on(Rule::HopLimitUniform) { settings.hop_limit } else { u8::MAX };
    let hop_limits = u32::from(hop_limit) | u32::from(settings.hops_behind) << 8;
    let words: [u32; 4] = [interfaces[0], interfaces[1], rules, hop_limits];
    let mut bytes = [0; SETTINGS_LEN];
    bytes.as_chunks_mut().0.iter_mut().zip(words).for_each(|(to, word)| *to = u32::to_ne_bytes(word));
    bytes
}
