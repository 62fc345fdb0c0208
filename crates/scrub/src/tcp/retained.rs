//! What is kept of bytes that were forwarded and not acknowledged yet, so that nobody hears a second version of them (the
//! paper's section III-A).

use std::fmt;
use std::ops::Range;

use crate::carried::Kept;
use crate::limits::{ISLANDS_MAX, RETAINED_SHRINK_EVERY, RETAINED_SHRINK_MIN_BYTES, RETAINED_UNUSED_PART};
use crate::tcp::memory::{Memory, NoRoom, Purpose};
use crate::tcp::sources::Account;

/// What became of data that was compared with what is retained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reconciled {
    /// It says nothing that was said otherwise before, and is retained now.
    AsItWas,
    /// Bytes in it were replaced by those that were sent first.
    Rewritten,
    /// It cannot be retained and must not go on. Nothing changed.
    Full(NoRoom),
}

/// A store of the first version of every byte, in a ring. Offsets count from the first byte that is
/// not acknowledged.
pub(crate) struct Bytes {
    /// Whose memory it is.
    account: Account,
    /// Its length is zero or a power of two.
    ring: Box<[u8]>,
    /// Where in the ring the byte at offset 0 lies.
    head: usize,
    /// Bytes that are known from offset 0 on.
    in_sequence: u32,
    /// What is known behind holes: sorted, apart from each other and from what is in sequence.
    islands: Vec<Range<u32>>,
    /// How long the ring is to be when it is made: what the connection had last.
    usual: u32,
    /// The highest end since [`shrink`](Bytes::shrink) looked at it last.
    peak: u32,
    /// Calls of `shrink` since then.
    calls: u32,
}

impl Bytes {
    /// A store for a connection of whoever has `account`.
    pub(crate) fn new(account: Account) -> Bytes {
        let (ring, islands) = (Box::default(), Vec::new());
        Bytes { account, ring, head: 0, in_sequence: 0, islands, usual: 0, peak: 0, calls: 0 }
    }

    /// The same that takes `usual` bytes at once where they are there. A ring that grows with a stream
    /// copies each byte once or twice more, and a receiver that acknowledges quickly empties it in
    /// each turn of the daemon.
    pub(crate) fn with_room(account: Account, usual: u32) -> Bytes {
        Bytes { usual, ..Bytes::new(account) }
    }

    /// A store of what the kernel kept until now, in memory for `purpose`.
    ///
    /// # Errors
    /// There is no memory.
    pub(crate) fn returned(
        account: Account,
        kept: &Kept,
        purpose: Purpose,
        memory: &mut Memory,
    ) -> Result<Bytes, NoRoom> {
        let in_sequence = kept.bytes.len() as u32;
        let island = kept.island.as_ref().map(|(at, bytes)| *at..at.saturating_add(bytes.len() as u32));
        let end = island.as_ref().map_or(in_sequence, |island| island.end.max(in_sequence));
        let mut ring = memory.take(end as usize, 0, purpose, &account)?;
        ring[..kept.bytes.len()].copy_from_slice(&kept.bytes);
        if let (Some(range), Some((_, bytes))) = (&island, &kept.island) {
            ring[range.start as usize..range.end as usize].copy_from_slice(bytes);
        }
        Ok(Bytes { ring, in_sequence, islands: island.into_iter().collect(), peak: end, ..Bytes::new(account) })
    }

    /// Whether the byte at `at` is known, and up to where the same is true.
    fn piece(&self, at: u32) -> (bool, u32) {
        if at < self.in_sequence {
            return (true, self.in_sequence);
        }
        match self.islands.get(self.islands.partition_point(|island| island.end <= at)) {
            Some(island) if island.start <= at => (true, island.end),
            Some(island) => (false, island.start),
            None => (false, u32::MAX),
        }
    }

    /// The two parts of the ring in which `len` bytes from `at` lie.
    fn parts(&mut self, at: u32, len: usize) -> (&mut [u8], &mut [u8]) {
        let start = (self.head + at as usize) & (self.ring.len() - 1);
        let first = len.min(self.ring.len() - start);
        let (low, high) = self.ring.split_at_mut(start);
        (&mut high[..first], &mut low[..len - first])
    }

    fn store(&mut self, at: u32, bytes: &[u8]) {
        let (first, second) = self.parts(at, bytes.len());
        let (head, tail) = bytes.split_at(first.len());
        first.copy_from_slice(head);
        second.copy_from_slice(tail);
    }

    /// Replaces `bytes` by those that are known; true if they differ.
    fn recall(&mut self, at: u32, bytes: &mut [u8]) -> bool {
        let (first, second) = self.parts(at, bytes.len());
        let (head, tail) = bytes.split_at_mut(first.len());
        if *first == *head && *second == *tail {
            return false;
        }
        head.copy_from_slice(first);
        tail.copy_from_slice(second);
        true
    }

    /// Makes room for `range`, if need be.
    fn make_room(&mut self, range: &Range<u32>, memory: &mut Memory) -> Result<(), NoRoom> {
        let is_behind_hole = range.start > self.in_sequence;
        if is_behind_hole && self.islands.len() >= ISLANDS_MAX && self.is_apart(range) {
            return Err(NoRoom::Connection);
        }
        if range.end as usize <= self.ring.len() {
            return Ok(());
        }
        let purpose = if is_behind_hole { Purpose::BehindHole } else { Purpose::InSequence };
        let usual = if self.ring.is_empty() { self.usual } else { 0 };
        let mut take = |len: u32| memory.take(len as usize, self.ring.len(), purpose, &self.account);
        let larger = take(range.end.max(usual)).or_else(|_| take(range.end))?;
        self.move_to(larger, memory);
        Ok(())
    }

    /// Takes a buffer that is long enough in the place of the one there is.
    fn move_to(&mut self, mut other: Box<[u8]>, memory: &mut Memory) {
        let len = self.end() as usize;
        if len != 0 {
            let (first, second) = self.parts(0, len);
            other[..first.len()].copy_from_slice(first);
            other[first.len()..len].copy_from_slice(second);
        }
        memory.give(std::mem::replace(&mut self.ring, other), &self.account);
        self.head = 0;
    }

    /// Whether `range` touches no island.
    fn is_apart(&self, range: &Range<u32>) -> bool {
        let behind = self.islands.partition_point(|island| island.end < range.start);
        self.islands.get(behind).is_none_or(|island| island.start > range.end)
    }

    /// Enters `range` as known.
    fn mark(&mut self, range: Range<u32>) {
        self.peak = self.peak.max(range.end);
        if range.start <= self.in_sequence {
            self.in_sequence = self.in_sequence.max(range.end);
            let reached = self.islands.partition_point(|island| island.start <= self.in_sequence);
            let last = self.islands.drain(..reached).next_back();
            self.in_sequence = self.in_sequence.max(last.map_or(0, |island| island.end));
            return;
        }
        let first = self.islands.partition_point(|island| island.end < range.start);
        let behind = self.islands.partition_point(|island| island.start <= range.end);
        let start = self.islands.get(first).map_or(range.start, |island| island.start.min(range.start));
        let end = self.islands[..behind].last().map_or(range.end, |island| island.end.max(range.end));
        if first == behind {
            self.islands.insert(first, range);
        } else {
            self.islands[first] = start..end;
            self.islands.drain(first + 1..behind);
        }
    }
}

impl Bytes {
    /// Makes `data`, which begins at `offset`, say what was said first, and retains what is new in it.
    pub(crate) fn reconcile(&mut self, offset: u32, data: &mut [u8], memory: &mut Memory) -> Reconciled {
        if data.is_empty() {
            return Reconciled::AsItWas;
        }
        let range = offset..offset.saturating_add(data.len() as u32);
        if let Err(no_room) = self.make_room(&range, memory) {
            return Reconciled::Full(no_room);
        }
        let mut is_rewritten = false;
        let mut rest = data;
        let mut at = range.start;
        while !rest.is_empty() {
            let (is_known, until) = self.piece(at);
            let (piece, behind) = rest.split_at_mut((until.min(range.end) - at) as usize);
            if is_known {
                is_rewritten |= self.recall(at, piece);
            } else {
                self.store(at, piece);
            }
            at += piece.len() as u32;
            rest = behind;
        }
        self.mark(range);
        if is_rewritten { Reconciled::Rewritten } else { Reconciled::AsItWas }
    }

    /// Forgets the first `len` bytes; all offsets shrink by as much. Gives the last of them if it is known.
    pub(crate) fn release(&mut self, len: u32) -> Option<u8> {
        let last = len.checked_sub(1)?;
        let byte = self.piece(last).0.then(|| self.parts(last, 1).0[0]);
        self.head = (self.head + len as usize) & self.ring.len().saturating_sub(1);
        self.in_sequence = self.in_sequence.saturating_sub(len);
        for island in &mut self.islands {
            *island = island.start.saturating_sub(len)..island.end.saturating_sub(len);
        }
        self.islands.retain(|island| island.end > 0);
        if self.islands.first().is_some_and(|island| island.start == 0) {
            self.mark(0..0);
        }
        byte
    }

    /// How many bytes from the first are known without a hole.
    pub(crate) fn in_sequence(&self) -> u32 {
        self.in_sequence
    }

    /// The end of what is known, holes counted.
    pub(crate) fn end(&self) -> u32 {
        self.islands.last().map_or(self.in_sequence, |island| island.end)
    }

    /// The bytes that are known from the first on without a hole.
    pub(crate) fn bytes(&mut self) -> Vec<u8> {
        let len = self.in_sequence as usize;
        if len == 0 {
            return Vec::new();
        }
        let (first, second) = self.parts(0, len);
        [&*first, &*second].concat()
    }

    /// Bytes of memory that it holds.
    pub(crate) fn memory_len(&self) -> usize {
        self.ring.len()
    }

    /// Gives back memory of which little was used for a while: a loss makes it large, and the
    /// connection may go on for days. Called with each acknowledgement.
    pub(crate) fn shrink(&mut self, memory: &mut Memory) {
        self.calls += 1;
        if self.calls < RETAINED_SHRINK_EVERY {
            return;
        }
        let (held, used) = (self.ring.len(), self.peak as usize);
        (self.calls, self.peak) = (0, self.end());
        if held < RETAINED_SHRINK_MIN_BYTES || used > held / RETAINED_UNUSED_PART {
            return;
        }
        // Where there is no room for both at a time it stays as it is.
        if let Ok(smaller) = memory.take(2 * used, held, Purpose::InSequence, &self.account) {
            self.move_to(smaller, memory);
        }
    }

    /// The most that it held lately, in bytes.
    pub(crate) fn peak(&self) -> u32 {
        self.peak
    }

    /// Gives all memory back; nothing is retained afterwards.
    pub(crate) fn give_back(&mut self, memory: &mut Memory) {
        memory.give(std::mem::take(&mut self.ring), &self.account);
        *self = Bytes::new(self.account);
    }
}

impl fmt::Debug for Bytes {
    /// What passes is nobody's business, so it is not shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = (self.ring.len(), self.in_sequence, &self.islands);
        f.debug_tuple("Bytes").field(&shown).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tcp::memory::testing::{self, account_of};

    fn memory() -> Memory {
        testing::memory(1 << 30, 0)
    }

    fn store(memory: &Memory) -> Bytes {
        Bytes::new(account_of(memory, 1))
    }

    #[test]
    fn the_first_version_stays() {
        let mut memory = memory();
        let mut bytes = store(&memory);
        assert_eq!(bytes.reconcile(4, &mut b"4567".to_vec(), &mut memory), Reconciled::AsItWas);
        assert_eq!((bytes.in_sequence(), bytes.end()), (0, 8));
        let mut covering = b"abcdefghij".to_vec();
        assert_eq!(bytes.reconcile(0, &mut covering, &mut memory), Reconciled::Rewritten);
        assert_eq!(covering, b"abcd4567ij");
        assert_eq!((bytes.in_sequence(), bytes.end()), (10, 10));
        assert_eq!(bytes.release(5), Some(b'4'));
        let mut again = b"ZZZZZyz".to_vec();
        assert_eq!(bytes.reconcile(0, &mut again, &mut memory), Reconciled::Rewritten);
        assert_eq!(again, b"567ijyz");
    }

    #[test]
    fn what_has_no_room_changes_nothing() {
        let mut memory = testing::memory(1024, 0);
        let mut bytes = store(&memory);
        assert_eq!(bytes.reconcile(0, &mut [1; 500], &mut memory), Reconciled::AsItWas);
        let mut more = [2; 600];
        assert_eq!(bytes.reconcile(400, &mut more, &mut memory), Reconciled::Full(NoRoom::All));
        assert_eq!((more, bytes.in_sequence()), ([2; 600], 500));
        bytes.give_back(&mut memory);
        assert_eq!(memory.used(), 0);
    }

    /// What one loss made large does not stay so while the connection is busy.
    #[test]
    fn memory_of_which_little_is_used_is_given_back() {
        let mut memory = memory();
        let mut bytes = store(&memory);
        let far = 1 << 20;
        assert_eq!(bytes.reconcile(far, &mut b"end".to_vec(), &mut memory), Reconciled::AsItWas);
        let mut shrink = |bytes: &mut Bytes, calls: u32| {
            (0..calls).for_each(|_| bytes.shrink(&mut memory));
            memory.used()
        };
        assert_eq!(shrink(&mut bytes, 2 * RETAINED_SHRINK_EVERY), 2 << 20, "a hole takes as much as what fills it");
        bytes.reconcile(0, &mut vec![7; far as usize], &mut testing::memory(1 << 30, 0));
        bytes.release(far);
        assert_eq!(shrink(&mut bytes, RETAINED_SHRINK_EVERY), 2 << 20, "it was used a moment ago");
        assert_eq!((shrink(&mut bytes, RETAINED_SHRINK_EVERY), bytes.in_sequence()), (512, 3));
        let mut again = b"END+".to_vec();
        assert_eq!(bytes.reconcile(0, &mut again, &mut memory), Reconciled::Rewritten);
        assert_eq!(again, b"end+");
    }

    #[test]
    fn a_ring_begins_as_long_as_the_one_before_where_there_is_room() {
        for (in_all, wanted) in [(1 << 20, 128 << 10), (8 << 10, 2 << 10)] {
            let mut memory = testing::memory(in_all, 0);
            let mut bytes = Bytes::with_room(account_of(&memory, 1), 100_000);
            assert_eq!(bytes.reconcile(0, &mut [1; 1448], &mut memory), Reconciled::AsItWas);
            assert_eq!((bytes.memory_len(), bytes.peak()), (wanted, 1448), "of {in_all}");
        }
    }

    #[test]
    fn islands_have_a_limit() {
        let mut memory = memory();
        let mut bytes = store(&memory);
        for island in 0..ISLANDS_MAX as u32 {
            assert_eq!(bytes.reconcile(2 * island + 1, &mut [0], &mut memory), Reconciled::AsItWas);
        }
        let end = bytes.end();
        assert_eq!(bytes.reconcile(end + 1, &mut [0], &mut memory), Reconciled::Full(NoRoom::Connection));
        assert_eq!(bytes.reconcile(end, &mut [0], &mut memory), Reconciled::AsItWas, "it touches the last one");
        assert_eq!(bytes.reconcile(0, &mut [0], &mut memory), Reconciled::AsItWas, "it fills a hole");
    }

    /// What a store does, said as simply as possible: a list of bytes that are known or not.
    #[derive(Default)]
    struct Model(Vec<Option<u8>>);

    impl Model {
        fn reconcile(&mut self, offset: usize, data: &mut [u8]) {
            self.0.resize(self.0.len().max(offset + data.len()), None);
            for (known, byte) in self.0[offset..].iter_mut().zip(data) {
                *byte = *known.get_or_insert(*byte);
            }
        }

        fn in_sequence(&self) -> usize {
            self.0.iter().take_while(|known| known.is_some()).count()
        }
    }

    proptest! {
        #[test]
        fn it_does_what_the_model_does(steps in proptest::collection::vec((0_u32..900, 1_usize..700, any::<u8>(), 0_usize..300), 1..60)) {
            let (mut memory, mut model) = (memory(), Model::default());
            let mut bytes = store(&memory);
            for (offset, len, seed, acknowledged) in steps {
                let mut data: Vec<u8> = (0..len).map(|at| (at as u8).wrapping_mul(31).wrapping_add(seed)).collect();
                let mut expected = data.clone();
                model.reconcile(offset as usize, &mut expected);
                let is_same = data == expected;
                let reconciled = bytes.reconcile(offset, &mut data, &mut memory);
                prop_assert_eq!(&data, &expected);
                prop_assert_eq!(reconciled == Reconciled::AsItWas, is_same);
                let release = acknowledged.min(model.in_sequence());
                let last = model.0.drain(..release).next_back().flatten();
                prop_assert_eq!(bytes.release(release as u32), last);
                bytes.shrink(&mut memory);
                let known: Vec<u8> = model.0.iter().map_while(|byte| *byte).collect();
                prop_assert_eq!(bytes.bytes(), known);
                prop_assert_eq!(bytes.in_sequence() as usize, model.in_sequence());
                prop_assert_eq!(bytes.end() as usize, model.0.len());
                prop_assert_eq!(memory.used(), bytes.memory_len());
            }
        }
    }
}
