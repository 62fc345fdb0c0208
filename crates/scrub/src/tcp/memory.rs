//! Memory for retained bytes: one account for all connections, and a store of buffers that are used again.

use std::fmt;

use bump::Side;

use crate::carried::layout::POOL_LEN;
use crate::keys;
use crate::limits::{
    FRAGMENTS_MEMORY_PART, POOL_MAX_BYTES, RETAINED_MAX_BYTES, RETAINED_MIN_BYTES, SOURCE_MEMORY_MIN_BYTES,
    SOURCE_MEMORY_OF_LEVEL,
};
use crate::settings::Settings;
use crate::tcp::key::Key;
use crate::tcp::sources::{Account, Share, Sources};

/// Sizes of buffers: every power of two from the least to the most.
const SIZES: usize = (RETAINED_MAX_BYTES / RETAINED_MIN_BYTES).ilog2() as usize + 1;

/// Of so many connections there may be, one counter in each row of those who hold memory.
const COUNTERS_PART: usize = 4;

/// What memory is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Bytes in sequence.
    InSequence,
    /// Bytes that the kernel kept until now, in sequence or of a connection that is about to end.
    /// They are there in any case, and no more of them than its pool holds.
    Returned,
    /// Bytes behind a hole. They may not take the last quarter: whoever leaves holes on purpose must not stop connections
    /// that are in sequence.
    BehindHole,
}

/// On whose account a connection is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder {
    pub(crate) side: Side,
    /// The connection is older than the scrubber.
    pub(crate) is_older: bool,
}

/// Why there is no buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The connection has all that one may have.
    Connection,
    /// There is none for `purpose`, whoever asks.
    All,
    /// A host, or network, has all that it may: that of this level of its account.
    Source(usize),
}

/// The account of all connections, and of those who opened them.
pub(crate) struct Memory {
    used: usize,
    max: usize,
    /// In units of the least buffer.
    sources: Sources,
    /// Buffers that nobody uses, by size.
    idle: [Vec<Box<[u8]>>; SIZES],
    idle_bytes: usize,
}

impl Memory {
    /// What fragments leave of the memory, and a share of it for each host.
    pub(crate) fn of(settings: &Settings, key: keys::Key) -> Memory {
        let least = SOURCE_MEMORY_MIN_BYTES / RETAINED_MIN_BYTES;
        let share = Share { part: settings.flows.memory_part, least, of_level: SOURCE_MEMORY_OF_LEVEL };
        // Fewer hosts have much memory than have a connection.
        let counters = settings.flows.max / COUNTERS_PART;
        let max = settings.memory_max_bytes - settings.memory_max_bytes / FRAGMENTS_MEMORY_PART;
        Memory::new(max, Sources::new(key, counters, share))
    }

    /// An account of at most `max` bytes.
    pub(crate) fn new(max: usize, sources: Sources) -> Memory {
        Memory { used: 0, max, sources, idle: std::array::from_fn(|_| Vec::new()), idle_bytes: 0 }
    }

    /// Bytes that connections hold.
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Bytes of buffers that nobody uses. Together with [`used`](Memory::used) they are never more than the account has.
    pub(crate) fn idle(&self) -> usize {
        self.idle_bytes
    }

    /// The account of whoever holds the connection of `key`.
    pub(crate) fn account(&self, key: &Key, holder: Holder) -> Account {
        let mut account = self.sources.account(key, holder.side);
        account.is_older = holder.is_older;
        account
    }

    /// A buffer of at least `len` bytes, its length a power of two, with anything in it, for
    /// `purpose`. The account will give `instead` bytes back for it.
    ///
    /// # Errors
    /// Whose memory is used up.
    pub(crate) fn take(
        &mut self,
        len: usize,
        instead: usize,
        purpose: Purpose,
        account: &Account,
    ) -> Result<Box<[u8]>, NoRoom> {
        let len = self.within(len, instead, purpose, account)?;
        self.used += len;
        self.sources.add(account, units(len));
        if let Some(again) = self.idle[size_of_buffer(len)].pop() {
            self.idle_bytes -= len;
            return Ok(again);
        }
        self.shrink_idle();
        Ok(vec![0; len].into_boxed_slice())
    }

    /// How long the buffer is that [`take`](Memory::take) would give.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn within(
        &self,
        len: usize,
        instead: usize,
        purpose: Purpose,
        account: &Account,
    ) -> Result<usize, NoRoom> {
        if len > RETAINED_MAX_BYTES {
            return Err(NoRoom::Connection);
        }
        let len = len.next_power_of_two().max(RETAINED_MIN_BYTES);
        let max = match purpose {
            Purpose::InSequence => self.max,
            Purpose::Returned => self.max + POOL_LEN,
            Purpose::BehindHole => self.max / 4 * 3,
        };
        let free = max.saturating_sub(self.used);
        if len > free {
            return Err(NoRoom::All);
        }
        // A restart must cut nobody, as long as there is much.
        let is_exempt = (account.is_older && free >= max / 2) || purpose == Purpose::Returned;
        let more = units(len.saturating_sub(instead)) as usize;
        let exhausted = self.sources.exhausted(account, more, free / RETAINED_MIN_BYTES);
        if let Some(level) = exhausted.filter(|_| !is_exempt) {
            return Err(NoRoom::Source(level));
        }
        Ok(len)
    }

    /// Frees idle buffers, the largest first, until they and those in use are within the account.
    fn shrink_idle(&mut self) {
        while self.used + self.idle_bytes > self.max {
            let Some(largest) = self.idle.iter_mut().rev().find_map(Vec::pop) else { return };
            self.idle_bytes -= largest.len();
        }
    }

    /// Takes back a buffer that [`take`](Memory::take) gave for this account; an empty one is none.
    pub(crate) fn give(&mut self, buffer: Box<[u8]>, account: &Account) {
        let len = buffer.len();
        self.used -= len;
        self.sources.subtract(account, units(len));
        if len != 0 && self.idle_bytes + len <= POOL_MAX_BYTES {
            self.idle_bytes += len;
            self.idle[size_of_buffer(len)].push(buffer);
        }
    }
}

/// How many of the least buffers `len` bytes are.
fn units(len: usize) -> u32 {
    (len / RETAINED_MIN_BYTES) as u32
}

/// The index of the size `len`, a power of two.
fn size_of_buffer(len: usize) -> usize {
    (len / RETAINED_MIN_BYTES).ilog2() as usize
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("used", &self.used).field("max", &self.max).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{self, account_of, memory};
    use super::*;

    #[test]
    fn the_account_is_kept_and_the_last_quarter_is_for_what_is_in_sequence() {
        let mut memory = memory(4096, 0);
        let account = account_of(&memory, 1);
        let first = memory.take(3000, 0, Purpose::InSequence, &account).expect("room");
        assert_eq!((first.len(), memory.used()), (4096, 4096));
        assert!(memory.take(1, 0, Purpose::InSequence, &account).is_err());
        memory.give(first, &account);
        let hole = memory.take(2048, 0, Purpose::BehindHole, &account).expect("room");
        let other = memory.take(600, 0, Purpose::BehindHole, &account).expect("room");
        assert!(memory.take(1, 0, Purpose::BehindHole, &account).is_err());
        let last = memory.take(1, 0, Purpose::InSequence, &account).expect("the last quarter");
        assert_eq!(last.len(), RETAINED_MIN_BYTES);
        [hole, other, last].into_iter().for_each(|buffer| memory.give(buffer, &account));
        assert_eq!(memory.used(), 0);
        // The first one went when the second was taken, for there was no room for both.
        assert_eq!(memory.idle(), 2048 + 1024 + 512);
    }

    /// What an operator allows is all that the gateway takes: buffers of one size that wait leave for those of another.
    #[test]
    fn idle_buffers_count_towards_the_account() {
        let mut memory = memory(8192, 0);
        let account = account_of(&memory, 1);
        let buffers: Vec<_> = (0..16).filter_map(|_| memory.take(512, 0, Purpose::InSequence, &account).ok()).collect();
        assert_eq!(buffers.len(), 16);
        buffers.into_iter().for_each(|buffer| memory.give(buffer, &account));
        assert_eq!((memory.used(), memory.idle()), (0, 8192));
        let large = memory.take(4096, 0, Purpose::InSequence, &account).expect("nobody uses anything");
        assert_eq!((memory.used(), memory.idle()), (4096, 4096));
        memory.give(large, &account);
        let small = memory.take(512, 0, Purpose::InSequence, &account).expect("one that waits");
        assert_eq!((small.len(), memory.used(), memory.idle()), (512, 512, 8192 - 512));
        memory.take(2048, 0, Purpose::InSequence, &account).expect("room");
        assert_eq!((memory.used(), memory.idle()), (2560, 3584), "the largest goes first");
    }

    #[test]
    fn no_connection_has_more_than_its_share() {
        let mut memory = memory(usize::MAX, 0);
        let account = account_of(&memory, 1);
        assert!(memory.take(RETAINED_MAX_BYTES + 1, 0, Purpose::InSequence, &account).is_err());
        let buffer = memory.take(RETAINED_MAX_BYTES, 0, Purpose::InSequence, &account).expect("room");
        assert_eq!(buffer.len(), RETAINED_MAX_BYTES);
    }

    #[test]
    fn a_host_holds_no_more_than_its_share_and_others_have_theirs() {
        let mut memory = memory(1 << 20, 4);
        let [one, other] = [1, 2].map(|host| account_of(&memory, host));
        let take = |memory: &mut Memory, account| memory.take(16 << 10, 0, Purpose::InSequence, account);
        let held: Vec<_> = std::iter::from_fn(|| take(&mut memory, &one).ok()).collect();
        // A fifth of 64 buffers, and the one that reaches it.
        assert_eq!(held.len(), 64 / 5 + 1);
        assert_eq!(take(&mut memory, &one), Err(NoRoom::Source(0)));
        let of_other = take(&mut memory, &other).expect("it has nothing yet");
        memory.give(of_other, &other);
        held.into_iter().for_each(|buffer| memory.give(buffer, &one));
        assert!(take(&mut memory, &one).is_ok(), "what was given back counts no more");
    }

    /// Nobody knows who opened what is older than the scrubber.
    #[test]
    fn older_connections_need_no_share_while_half_is_free() {
        let mut memory = memory(1 << 20, 4);
        let older = testing::account(&memory, 1, true);
        let take = |memory: &mut Memory| memory.take(16 << 10, 0, Purpose::InSequence, &older).ok();
        let held: Vec<_> = std::iter::from_fn(|| take(&mut memory)).collect();
        assert_eq!(held.len(), 64 / 2 + 1);
    }

    /// A larger buffer in the place of one counts by what it has more.
    #[test]
    fn a_buffer_grows_up_to_the_least_share() {
        let mut memory = memory(1 << 20, 1_000_000);
        let account = account_of(&memory, 1);
        let mut held = memory.take(32 << 10, 0, Purpose::InSequence, &account).expect("half of it");
        for len in [64 << 10, 128 << 10] {
            let larger = memory.take(len, held.len(), Purpose::InSequence, &account);
            assert_eq!(larger.is_ok(), len == SOURCE_MEMORY_MIN_BYTES);
            let Ok(larger) = larger else { return };
            memory.give(std::mem::replace(&mut held, larger), &account);
        }
    }

    #[test]
    fn the_least_share_is_there_while_any_memory_is() {
        let mut memory = memory(256 << 10, 1_000_000);
        for host in 1..=4 {
            let account = account_of(&memory, host);
            for _ in 0..4 {
                memory.take(16 << 10, 0, Purpose::InSequence, &account).expect("the least share");
            }
            let refused = if host < 4 { NoRoom::Source(0) } else { NoRoom::All };
            assert_eq!(memory.take(512, 0, Purpose::InSequence, &account), Err(refused));
        }
    }
}

/// What tests of this room need.
#[cfg(test)]
pub(crate) mod testing {
    use std::net::Ipv4Addr;

    use super::*;

    /// `max` bytes, of which a host has one part in so many.
    pub(crate) fn memory(max: usize, part: u32) -> Memory {
        let least = SOURCE_MEMORY_MIN_BYTES / RETAINED_MIN_BYTES;
        let share = Share { part, least, of_level: SOURCE_MEMORY_OF_LEVEL };
        Memory::new(max, Sources::new(keys::Key::new(&[7; keys::KEY_LEN]), 0, share))
    }

    /// The account of an untrusted host.
    pub(crate) fn account_of(memory: &Memory, host: u8) -> Account {
        account(memory, host, false)
    }

    /// The same, of connections that may be older than the scrubber.
    pub(crate) fn account(memory: &Memory, host: u8, is_older: bool) -> Account {
        let (trusted, untrusted) = (Ipv4Addr::new(192, 0, 2, 1).into(), Ipv4Addr::new(198, 18, 0, host).into());
        memory.account(
            &Key { trusted, untrusted, trusted_port: 1, untrusted_port: 2, vlans: 0 },
            Holder { side: Side::UNTRUSTED, is_older },
        )
    }
}
