//! Rings for bytes that are not acknowledged, in one pool: a few long ones and many short ones.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use super::layout::POOL_LEN;

/// Lengths in bytes, and how many there are of each.
pub(super) const SIZES: [(u32, u32); 4] = [(8 << 10, 512), (128 << 10, 96), (1 << 20, 32), (4 << 20, 4)];

const _: () = {
    let (mut sum, mut at) = (0, 0);
    while at < SIZES.len() {
        sum += SIZES[at].0 as usize * SIZES[at].1 as usize;
        at += 1;
    }
    assert!(sum == POOL_LEN);
};

/// One ring: where it begins in the pool, and its length, a power of two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ring {
    pub(super) at: u32,
    pub(super) len: u32,
}

/// Rings that nobody has, by size.
#[derive(Debug)]
pub(super) struct Rings([Vec<u32>; SIZES.len()]);

impl Rings {
    pub(super) fn new() -> Rings {
        let mut begin = 0;
        Rings(SIZES.map(|(len, count)| {
            let rings = (0..count).map(|index| begin + index * len).collect();
            begin += len * count;
            rings
        }))
    }

    /// The shortest ring of at least `len` bytes that is there, of a size of which `left` says that
    /// one may be had; the longest are enough for anything.
    pub(super) fn take(&mut self, len: u32, left: impl Fn(usize) -> u32) -> Option<Ring> {
        let size = enough(len).find(|size| !self.0[*size].is_empty() && left(*size) > 0)?;
        self.0[size].pop().map(|at| Ring { at, len: SIZES[size].0 })
    }

    /// Whether [`take`](Rings::take) would find `count` of them, one after the other.
    pub(super) fn has(&self, count: u32, len: u32, left: impl Fn(usize) -> u32) -> bool {
        let there = |size: usize| left(size).min(u32::try_from(self.0[size].len()).unwrap_or(u32::MAX));
        enough(len).map(there).sum::<u32>() >= count
    }

    pub(super) fn give(&mut self, ring: Ring) {
        self.0[ring.size()].push(ring.at);
    }
}

/// The sizes of at least `len` bytes, or the longest.
fn enough(len: u32) -> Range<usize> {
    SIZES.iter().position(|(size, _)| *size >= len).unwrap_or(SIZES.len() - 1)..SIZES.len()
}

impl Ring {
    /// Of which size it is.
    pub(super) fn size(self) -> usize {
        SIZES.iter().position(|(len, _)| *len == self.len).unwrap_or(SIZES.len() - 1)
    }

    /// Calls `with` with each word of the pool in which `len` bytes from the sequence number `first`
    /// lie: the word, where in it they begin, and where in the bytes.
    fn words(self, pool: &[AtomicU64], first: u32, len: usize, mut with: impl FnMut(&AtomicU64, usize, usize)) {
        let mut done = 0;
        while done < len {
            let at = (self.at + (first.wrapping_add(done as u32) & (self.len - 1))) as usize;
            let Some(word) = pool.get(at / 8) else { return };
            with(word, at % 8, done);
            done += 8 - at % 8;
        }
    }

    /// Reads the bytes with the sequence numbers from `first` on from the pool.
    pub(super) fn read(self, pool: &[AtomicU64], first: u32, bytes: &mut [u8]) {
        self.words(pool, first, bytes.len(), |word, from, to| {
            let len = (8 - from).min(bytes.len() - to);
            bytes[to..to + len].copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes()[from..from + len]);
        });
    }

    /// Writes bytes with the sequence numbers from `first` on. The ring is nobody else's yet.
    pub(super) fn write(self, pool: &[AtomicU64], first: u32, bytes: &[u8]) {
        self.words(pool, first, bytes.len(), |word, to, from| {
            let len = (8 - to).min(bytes.len() - from);
            let mut whole = word.load(Ordering::Relaxed).to_ne_bytes();
            whole[to..to + len].copy_from_slice(&bytes[from..from + len]);
            word.store(u64::from_ne_bytes(whole), Ordering::Relaxed);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_as_long_as_is_wanted_while_there_is_one() {
        let mut rings = Rings::new();
        let any = |_| u32::MAX;
        let mut taken: Vec<_> = std::iter::from_fn(|| rings.take(2 << 20, any)).collect();
        assert!(taken.len() == 4 && taken.iter().all(|ring| ring.len == 4 << 20), "a shorter one is not enough");
        assert!(!rings.has(1, 2 << 20, any) && rings.has(1, 1 << 20, any));
        assert!(rings.has(32, 1 << 20, any) && !rings.has(33, 1 << 20, any));
        let one_short = |size| u32::from(size < 2);
        assert!(!rings.has(1, 1 << 20, one_short) && rings.has(1, 1 << 17, one_short), "what may be had");
        assert!(rings.has(2, 1, one_short) && !rings.has(3, 1, one_short));
        taken.extend(std::iter::from_fn(|| rings.take(1, any)));
        assert_eq!(taken.iter().map(|ring| ring.len as usize).sum::<usize>(), POOL_LEN);
        let mut ends: Vec<_> = taken.iter().map(|ring| (ring.at, ring.at + ring.len)).collect();
        ends.sort_unstable();
        assert!(ends.windows(2).all(|pair| pair[0].1 == pair[1].0), "no two overlap");
        taken.into_iter().for_each(|ring| rings.give(ring));
        assert_eq!(rings.take(9 << 10, any).map(|ring| ring.len), Some(128 << 10));
    }

    #[test]
    fn bytes_are_read_around_the_end() {
        let pool: Vec<_> = (0..64_u64).map(|at| AtomicU64::new(u64::from_ne_bytes([at as u8; 8]))).collect();
        let ring = Ring { at: 128, len: 64 };
        let mut bytes = [0; 12];
        ring.read(&pool, 64 * 7 + 55, &mut bytes);
        assert_eq!(bytes, [22, 23, 23, 23, 23, 23, 23, 23, 23, 16, 16, 16]);
        ring.write(&pool, 64 * 7 + 60, &[1, 2, 3, 4, 5, 6]);
        let mut bytes = [0; 8];
        ring.read(&pool, 64 * 9 + 59, &mut bytes);
        assert_eq!(bytes, [23, 1, 2, 3, 4, 5, 6, 16]);
    }
}
