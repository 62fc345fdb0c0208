//! The checks in front of signed ARP, in the kernel (record 0046): the program, the shapes of its maps, and who tells it what to check
//! by; its source is `bpf/sarp.c`.
//!
//! It drops only what the daemon would drop. It is told of a question of this host's before the question leaves, so no answer
//! comes too early. Values in maps are read by the program on this machine and stand in its own byte order, but for the keys of
//! SipHash, which are defined as little-endian, as the program is.

use std::fmt;
use std::net::Ipv4Addr;

use bump::{DropReason, Instant, Ledger, Side};
use zeroize::Zeroizing;

use crate::Hook;
use crate::limits::{QUESTION_PLACES, UNASKED_INTERVAL};
use crate::map::MapShape;
use crate::spin::KEY_LEN;

/// The instructions for the socket and for the card's receive path, made of `bpf/sarp.c` by `bpf/make.py`.
const PROGRAM: &[u8] = include_bytes!("../bpf/sarp.bpf");
const XDP_PROGRAM: &[u8] = include_bytes!("../bpf/sarp.xdp.bpf");

/// The instructions for this place. Where one names a map it holds the map's place in [`MAPS`].
#[must_use]
pub fn program(hook: Hook) -> &'static [u8] {
    match hook {
        Hook::Socket => PROGRAM,
        Hook::Xdp | Hook::XdpGeneric => XDP_PROGRAM,
    }
}

/// What the program counts, in its order.
pub const COUNTED: [DropReason; 5] = [
    DropReason::SarpMalformed,
    DropReason::ArpTarget,
    DropReason::SarpRequestCheck,
    DropReason::SarpEnrolNumber,
    DropReason::SarpUnasked,
];

/// Messages dropped in the kernel, for each of [`COUNTED`].
pub type Count = [u64; COUNTED.len()];

/// Bytes of what is known of this host.
pub const SETTINGS_LEN: usize = 2 * KEY_LEN + 8 + 8;
/// Bytes of the counters and of the time of the next answer that passes unasked.
pub const COUNTERS_LEN: usize = (COUNTED.len() + 1) * 8;

/// Place of the map of what is known of this host.
pub const SETTINGS: usize = 0;
/// Place of the map of questions.
pub const QUESTIONS: usize = 1;
/// Place of the map of counters.
pub const COUNTERS: usize = 2;

/// The maps, in the order of their places.
pub const MAPS: [MapShape; 3] =
    [MapShape::places(SETTINGS_LEN, 1), MapShape::shared(8, QUESTION_PLACES), MapShape::shared(COUNTERS_LEN, 1)];

/// A key of SipHash.
pub type Key = Zeroizing<[u8; KEY_LEN]>;

/// By what a distributor tells requests that are none.
#[derive(Clone)]
pub struct Distributor {
    /// Key of the checks that hosts of the site make.
    pub member: Key,
    /// Key of the numbers of tokens.
    pub number: Key,
}

/// What the socket keeps for the daemon; in front of the card all that is not dropped goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// ARP.
    Arp = 0,
    /// ARP and DHCP over IPv4.
    ArpAndDhcp = 1,
    /// Every frame.
    All = 2,
}

/// What the program must know of this host; without `distributor` it is none, and no request is for it.
#[must_use]
pub fn settings(distributor: Option<&Distributor>, keeps: Keeps) -> Zeroizing<[u8; SETTINGS_LEN]> {
    const INTERVAL_AT: usize = 2 * KEY_LEN;
    let interval_ns = u64::try_from(UNASKED_INTERVAL.as_nanos()).unwrap_or(u64::MAX);
    let mut out = Zeroizing::new([0; SETTINGS_LEN]);
    if let Some(Distributor { member, number }) = distributor {
        out[..KEY_LEN].copy_from_slice(&member[..]);
        out[KEY_LEN..INTERVAL_AT].copy_from_slice(&number[..]);
    }
    out[INTERVAL_AT..INTERVAL_AT + 8].copy_from_slice(&interval_ns.to_ne_bytes());
    out[INTERVAL_AT + 8] = u8::from(distributor.is_some());
    out[INTERVAL_AT + 9] = keeps as u8;
    out
}

/// The place in the map of questions of the one about `ip`.
#[must_use]
pub fn place_of(ip: Ipv4Addr) -> usize {
    (u32::from(ip) % QUESTION_PLACES) as usize
}

/// The checks in front of this program.
pub trait Outpost: fmt::Debug + Send {
    /// An answer about `ip` is wanted until then.
    fn expect(&mut self, ip: Ipv4Addr, until: Instant);

    /// How often it dropped a message, for each of [`COUNTED`].
    fn dropped(&self) -> Count;
}

/// Enters what an outpost dropped, as if it had come this far.
pub fn enter(outpost: &dyn Outpost, ledger: &mut Ledger) {
    for (reason, count) in COUNTED.iter().zip(outpost.dropped()) {
        ledger.received[Side::WIRE as usize] += count;
        ledger.dropped[*reason as usize] += count;
    }
}
