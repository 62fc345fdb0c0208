//! The bytes of one packet as far as its fragments have brought them, each byte as it came first.
//!
//! It is decided for each byte and not for each pair of fragments: how three overlap does not follow from how two do. Bytes
//! are kept once and in the order of their arrival, so that memory is what was received and not what it claims to belong to.

use crate::ip::Fragment;

/// Bytes that lie next to each other in the packet and in the store.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Offset in the packet.
    offset: usize,
    len: usize,
    /// Offset in the store.
    at: usize,
}

impl Run {
    fn end(&self) -> usize {
        self.offset + self.len
    }
}

/// How a fragment lies to what was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// All its bytes are new.
    Apart,
    /// It is one that was there, once more.
    Duplicate,
    /// Some of its bytes were there, the same.
    Overlaps,
    /// Some of its bytes were there, and others.
    Differs,
}

/// The packet contradicts itself about where it ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct EndsTwice;

/// The bytes of one packet.
#[derive(Debug, Default)]
pub(super) struct Map {
    store: Vec<u8>,
    /// In the order of the packet; no two share a byte.
    runs: Vec<Run>,
    /// Where the packet ends, once its last fragment has come.
    end: Option<usize>,
    /// What the end cannot be below.
    end_min: usize,
}

impl Map {
    /// How `bytes` at `offset` lie to what is there.
    pub(super) fn relation(&self, offset: usize, bytes: &[u8]) -> Relation {
        let end = offset + bytes.len();
        let mut relation = Relation::Apart;
        for run in self.runs[self.first_behind(offset)..].iter().take_while(|run| run.offset < end) {
            let shared = run.offset.max(offset)..run.end().min(end);
            let there = &self.store[run.at + shared.start - run.offset..][..shared.len()];
            if there != &bytes[shared.start - offset..][..shared.len()] {
                return Relation::Differs;
            }
            let is_same = (run.offset, run.len) == (offset, bytes.len());
            relation = if is_same { Relation::Duplicate } else { Relation::Overlaps };
        }
        relation
    }

    /// Takes in those of `bytes` that are new, where `part` says.
    ///
    /// # Errors
    /// Two fragments disagree about where the packet ends.
    pub(super) fn insert(&mut self, part: Fragment, bytes: &[u8]) -> Result<(), EndsTwice> {
        let end = part.offset + bytes.len();
        if !part.more && *self.end.get_or_insert(end) != end {
            return Err(EndsTwice);
        }
        // A fragment that others follow ends at least one byte before the packet.
        self.end_min = self.end_min.max(end + usize::from(part.more));
        if self.end.is_some_and(|end| end < self.end_min) {
            return Err(EndsTwice);
        }
        self.fill_gaps(part.offset, bytes);
        Ok(())
    }

    fn fill_gaps(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        let (mut at, mut index) = (offset, self.first_behind(offset));
        while at < end {
            let next = self.runs.get(index).map_or(end, |run| run.offset.min(end));
            if at < next {
                self.runs.insert(index, Run { offset: at, len: next - at, at: self.store.len() });
                self.store.extend_from_slice(&bytes[at - offset..next - offset]);
                index += 1;
            }
            at = self.runs.get(index).map_or(end, |run| run.end());
            index += 1;
        }
    }

    /// The index of the first run that ends behind `offset`.
    fn first_behind(&self, offset: usize) -> usize {
        self.runs.partition_point(|run| run.end() <= offset)
    }

    /// Whether every byte up to the end is there.
    pub(super) fn is_complete(&self) -> bool {
        self.end == Some(self.store.len())
    }

    /// Appends the bytes to `out`, in the order of the packet.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.reserve(self.store.len());
        for run in &self.runs {
            out.extend_from_slice(&self.store[run.at..][..run.len]);
        }
    }

    /// What it takes of the memory, in bytes.
    pub(super) fn cost(&self) -> usize {
        self.store.capacity() + self.runs.capacity() * size_of::<Run>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LEN: usize = 96;

    fn fragment() -> impl Strategy<Value = (usize, Vec<u8>, bool)> {
        (0..LEN / 8, 1..6_usize, any::<u8>(), any::<bool>()).prop_map(|(block, blocks, letter, more)| {
            let len = (blocks * 8).min(LEN - block * 8);
            (block * 8, (0..len).map(|at| letter ^ at as u8).collect(), more || block * 8 + len < LEN)
        })
    }

    proptest! {
        #[test]
        fn every_byte_is_as_it_came_first(fragments in prop::collection::vec(fragment(), 1..12)) {
            let mut map = Map::default();
            let mut naive = [None; LEN];
            let mut is_refused = false;
            for (offset, bytes, more) in &fragments {
                let there: Vec<_> = naive[*offset..][..bytes.len()].to_vec();
                let differs = there.iter().zip(bytes).any(|(old, new)| old.is_some_and(|old| old != *new));
                prop_assert_eq!(map.relation(*offset, bytes) == Relation::Differs, differs);
                prop_assert_eq!(map.relation(*offset, bytes) == Relation::Apart, there.iter().all(Option::is_none));
                is_refused = map.insert(Fragment { offset: *offset, more: *more }, bytes).is_err();
                if is_refused {
                    break;
                }
                for (place, byte) in naive[*offset..].iter_mut().zip(bytes) {
                    place.get_or_insert(*byte);
                }
            }
            if !is_refused {
                let expected: Vec<u8> = naive.iter().flatten().copied().collect();
                let mut written = Vec::new();
                map.write(&mut written);
                prop_assert_eq!(&written, &expected);
                let has_end = fragments.iter().any(|(_, _, more)| !more);
                prop_assert_eq!(map.is_complete(), has_end && expected.len() == LEN);
            }
        }
    }

    #[test]
    fn there_is_one_end() {
        let of = |parts: &[(usize, usize, bool)]| {
            let mut map = Map::default();
            parts.iter().try_for_each(|(offset, len, more)| {
                map.insert(Fragment { offset: *offset, more: *more }, &vec![0; *len])
            })
        };
        assert_eq!(of(&[(0, 8, true), (8, 8, false)]), Ok(()));
        assert_eq!(of(&[(8, 8, false), (0, 8, true), (8, 8, false)]), Ok(()));
        assert_eq!(of(&[(8, 8, false), (8, 7, false)]), Err(EndsTwice));
        assert_eq!(of(&[(8, 8, false), (16, 8, true)]), Err(EndsTwice));
        assert_eq!(of(&[(8, 8, false), (8, 8, true)]), Err(EndsTwice));
        assert_eq!(of(&[(8, 8, true), (8, 8, false)]), Err(EndsTwice));
        assert_eq!(of(&[(16, 8, true), (8, 8, false)]), Err(EndsTwice));
    }

    #[test]
    fn a_fragment_that_comes_again_is_a_duplicate() {
        let mut map = Map::default();
        assert_eq!(map.insert(Fragment { offset: 8, more: true }, &[1; 16]), Ok(()));
        assert_eq!(map.relation(8, &[1; 16]), Relation::Duplicate);
        assert_eq!(map.relation(8, &[1; 8]), Relation::Overlaps);
        assert_eq!(map.relation(16, &[1; 16]), Relation::Overlaps);
        assert_eq!(map.relation(16, &[2; 16]), Relation::Differs);
        assert_eq!(map.relation(24, &[2; 16]), Relation::Apart);
    }
}
