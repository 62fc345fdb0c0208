//! Rings for bytes that are not acknowledged, in one pool: a few long ones and many short ones.

use std::sync::atomic::{AtomicU64, Ordering};

use super::layout::POOL_LEN;

/// Lengths in bytes, and how many there are of each.
const SIZES: [(u32, u32); 4] = [(8 << 10, 512), (128 << 10, 32), (1 << 20, 8), (4 << 20, 4)];

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

    /// The shortest ring of at least `len` bytes that is there, or else the longest.
    pub(super) fn take(&mut self, len: u32) -> Option<Ring> {
        let enough = SIZES.iter().position(|(size, _)| *size >= len).unwrap_or(SIZES.len() - 1);
        let size = (enough..SIZES.len()).chain((0..enough).rev()).find(|size| !self.0[*size].is_empty())?;
        self.0[size].pop().map(|at| Ring { at, len: SIZES[size].0 })
    }

    pub(super) fn give(&mut self, ring: Ring) {
        if let Some(size) = SIZES.iter().position(|(len, _)| *len == ring.len) {
            self.0[size].push(ring.at);
        }
    }
}

impl Ring {
    /// Reads the bytes with the sequence numbers from `first` on from the pool.
    pub(super) fn read(self, pool: &[AtomicU64], first: u32, bytes: &mut [u8]) {
        let mask = self.len - 1;
        let mut word = 0;
        for (index, byte) in bytes.iter_mut().enumerate() {
            let at = (self.at + (first.wrapping_add(index as u32) & mask)) as usize;
            if index == 0 || at.is_multiple_of(8) {
                word = pool.get(at / 8).map_or(0, |word| word.load(Ordering::Relaxed));
            }
            *byte = word.to_ne_bytes()[at % 8];
        }
    }
}

impl Ring {
    /// Writes bytes with the sequence numbers from `first` on. The ring is nobody else's yet.
    pub(super) fn write(self, pool: &[AtomicU64], first: u32, bytes: &[u8]) {
        for (index, byte) in bytes.iter().enumerate() {
            let at = (self.at + (first.wrapping_add(index as u32) & (self.len - 1))) as usize;
            let Some(word) = pool.get(at / 8) else { return };
            let mut whole = word.load(Ordering::Relaxed).to_ne_bytes();
            whole[at % 8] = *byte;
            word.store(u64::from_ne_bytes(whole), Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_as_long_as_is_wanted_while_there_is_one() {
        let mut rings = Rings::new();
        let taken: Vec<_> = std::iter::from_fn(|| rings.take(2 << 20)).collect();
        let lens: Vec<_> = taken.iter().map(|ring| ring.len).collect();
        assert_eq!(lens[..5], [4 << 20, 4 << 20, 4 << 20, 4 << 20, 1 << 20]);
        assert_eq!(taken.len(), 512 + 32 + 8 + 4);
        let mut ends: Vec<_> = taken.iter().map(|ring| (ring.at, ring.at + ring.len)).collect();
        ends.sort_unstable();
        assert!(ends.windows(2).all(|pair| pair[0].1 == pair[1].0), "no two overlap");
        taken.into_iter().for_each(|ring| rings.give(ring));
        assert_eq!(rings.take(9 << 10).map(|ring| ring.len), Some(128 << 10));
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
