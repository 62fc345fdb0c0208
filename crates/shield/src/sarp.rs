//! The checks in front of signed ARP, in the kernel (record 0046): the program, the shapes of its maps, and who tells it what to check
//! by; its source is `bpf/sarp.c`.
//!
//! It drops only what the daemon would drop. It is told of a question of this host's before the question leaves, so no answer
//! comes too early; what it does not know to be ours passes now and then. Values in maps are read by the program on this machine and stand in its own byte order, but for the keys of
//! SipHash, which are defined as little-endian, as the program is.

use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use bump::{DropReason, Instant, Ledger, Side};
use wire::MacAddress;
use zeroize::Zeroizing;

use crate::Hook;
use crate::limits::{
    ADDRESS_PLACES, IDLE_INTERVAL, KERNEL_ACQUAINTED_MAX, KERNEL_HOST_NUMBER_MAX, KERNEL_REPEAT_INTERVAL,
    KERNEL_REQUESTS_MAX, KERNEL_REQUESTS_PER_HOST_PER_SECOND, KERNEL_SOURCES_MAX,
};
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
pub const COUNTED: [DropReason; 7] = [
    DropReason::SarpMalformed,
    DropReason::ArpTarget,
    DropReason::SarpRequestCheck,
    DropReason::SarpEnrolNumber,
    DropReason::SarpUnasked,
    DropReason::SarpBudget,
    DropReason::SarpEnrolBudget,
];

/// Messages dropped in the kernel, for each of [`COUNTED`].
pub type Count = [u64; COUNTED.len()];

/// The kernel lets so many times as many questions through as are answered: what counts is the daemon's own budget, whose clock is
/// another one.
const GENEROSITY: u32 = 2;
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A site's masters in force, at most: while one follows another there are two (record 0074).
pub const MASTERS_MAX: usize = 2;
/// Bytes of what is known of this host.
pub const SETTINGS_LEN: usize = NUMBERS_LEN + INTERVALS * 8 + 8;
const NUMBERS_LEN: usize = MASTERS_MAX * KEY_LEN;
const INTERVALS: usize = 6;
/// Words of eight bytes of the counters, and of the times from which on something passes again.
pub const COUNTERS_WORDS: usize = COUNTED.len() + 3;
/// Words of eight bytes of a place: until when an answer about its addresses is wanted, and until when they are ours.
pub const PLACE_WORDS: usize = 2;
/// Words of eight bytes of a host: the keys of its checks, and what the program keeps.
pub const HOST_WORDS: usize = MASTERS_MAX * KEY_LEN / 8 + 1;

/// Place of the map of what is known of this host.
pub const SETTINGS: usize = 0;
/// Place of the map of addresses' places.
pub const PLACES: usize = 1;
/// Place of the map of counters.
pub const COUNTERS: usize = 2;
/// Place of the map of hosts by their numbers.
pub const HOSTS: usize = 4;
/// Place of the map of those who have proved themselves.
pub const ACQUAINTED: usize = 6;

/// Bytes of what names a source.
pub const SOURCE_LEN: usize = 12;
/// A share of which nothing was taken.
pub const WHOLE_SHARE: [u8; 8] = [0; 8];

/// The maps, in the order of their places. Only a distributor has hosts and requests.
#[must_use]
pub const fn maps(is_distributor: bool) -> [MapShape; 7] {
    let (hosts, requests) = if is_distributor { (KERNEL_HOST_NUMBER_MAX + 1, KERNEL_REQUESTS_MAX) } else { (1, 1) };
    [
        MapShape::places(SETTINGS_LEN, 1),
        MapShape::shared(PLACE_WORDS * 8, ADDRESS_PLACES),
        MapShape::shared(COUNTERS_WORDS * 8, 1),
        // The program's own: who asked, by addresses or by the number of a token, and what is left of his share.
        MapShape::recent(SOURCE_LEN, WHOLE_SHARE.len(), KERNEL_SOURCES_MAX),
        MapShape::shared(HOST_WORDS * 8, hosts),
        // The program's own: requests that passed.
        MapShape::places(16, requests),
        MapShape::recent(SOURCE_LEN, WHOLE_SHARE.len(), KERNEL_ACQUAINTED_MAX),
    ]
}

/// A key of SipHash.
pub type Key = Zeroizing<[u8; KEY_LEN]>;

/// What the socket keeps for the daemon; in front of the card all that is not dropped goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keeps {
    /// ARP.
    Arp = 0,
    /// ARP and DHCP over IPv4.
    ArpAndDhcp = 1,
}

/// What the program must know of this host.
#[derive(Clone)]
pub struct Own {
    /// The keys of the numbers of tokens if it is a distributor, at most [`MASTERS_MAX`]; otherwise no
    /// request is for it.
    pub numbers: Vec<Key>,
    /// What the socket keeps.
    pub keeps: Keeps,
    /// Questions of one source that are answered in a second.
    pub answers_per_source_per_second: u32,
    /// Questions of all who have proved nothing that are answered in a second.
    pub strangers_answered_per_second: u32,
    /// Messages about one token whose tags are checked in a second.
    pub checks_per_token_per_second: u32,
}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Own").field("keeps", &self.keeps).finish_non_exhaustive()
    }
}

impl Own {
    /// As the program reads it.
    #[must_use]
    pub fn emit(&self) -> Zeroizing<[u8; SETTINGS_LEN]> {
        const BYTES_AT: usize = NUMBERS_LEN + INTERVALS * 8;
        let mut out = Zeroizing::new([0; SETTINGS_LEN]);
        for (place, numbers) in out[..NUMBERS_LEN].chunks_exact_mut(KEY_LEN).zip(&self.numbers) {
            place.copy_from_slice(&numbers[..]);
        }
        for (place, interval) in out[NUMBERS_LEN..BYTES_AT].chunks_exact_mut(8).zip(self.intervals_ns()) {
            place.copy_from_slice(&interval.to_ne_bytes());
        }
        out[BYTES_AT] = self.numbers.len().min(MASTERS_MAX) as u8;
        out[BYTES_AT + 1] = self.keeps as u8;
        out
    }

    /// Between two that pass: of what changes nothing, of one source's questions, of all strangers' questions, of one host's requests, of
    /// the same request, and of messages about one token.
    fn intervals_ns(&self) -> [u64; INTERVALS] {
        let apart = |rate: u32| NANOS_PER_SECOND / u64::from(rate.max(1));
        let generous = |rate: u32| apart(rate.saturating_mul(GENEROSITY));
        let whole = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        [
            whole(IDLE_INTERVAL),
            generous(self.answers_per_source_per_second),
            generous(self.strangers_answered_per_second),
            apart(KERNEL_REQUESTS_PER_HOST_PER_SECOND),
            whole(KERNEL_REPEAT_INTERVAL),
            generous(self.checks_per_token_per_second),
        ]
    }
}

/// The place in its map of the address `ip`.
#[must_use]
pub fn place_of(ip: Ipv4Addr) -> usize {
    (u32::from(ip) % ADDRESS_PLACES) as usize
}

/// What names who asks with these addresses.
#[must_use]
pub fn source(mac: MacAddress, ip: Ipv4Addr) -> [u8; SOURCE_LEN] {
    let mut out = [0; SOURCE_LEN];
    out[..6].copy_from_slice(&mac.0);
    out[6..10].copy_from_slice(&ip.octets());
    out
}

/// The checks in front of this program.
pub trait Outpost: fmt::Debug + Send {
    /// An answer about `ip` is wanted until then.
    fn expect(&mut self, ip: Ipv4Addr, until: Instant);

    /// This host speaks for `ip` until then.
    fn own(&mut self, ip: Ipv4Addr, until: Instant);

    /// It was proved that these addresses belong together: who asks with them has a share of the answers to himself.
    fn acquaint(&mut self, mac: MacAddress, ip: Ipv4Addr);

    /// The checks of the host of this number are made with one of these keys, at most
    /// [`MASTERS_MAX`]. Until it is told, whatever names that host passes.
    fn know(&mut self, host: u64, check_keys: &[Key]);

    /// Other masters are in force: the numbers of tokens are made with these keys, and what it was
    /// told of hosts' checks counts no more.
    fn begin_anew(&mut self, numbers: &[Key]);

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
