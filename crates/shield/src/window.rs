//! The replay window: which sequence numbers have been delivered (RFC 6479's ring of blocks, so that nothing is shifted).
//!
//! A number is looked up before the tag is checked and entered only after it was right, so that nobody without the key
//! can move the window. It lies in memory that somebody else may read at the same time: the kernel, which drops replayed
//! frames early. Such a reader may take an older state for the newest one, which lets a frame pass that this one refuses, but
//! never the other way round.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::limits::{FAR_AHEAD_FRAMES, REPLAY_WINDOW_FRAMES};

const BLOCK_BITS: u32 = 64;
/// Twice the window, so that the newest block may be partly filled and blocks in use are a power of two.
const BLOCKS: usize = (REPLAY_WINDOW_FRAMES / BLOCK_BITS) as usize * 2;
const _: () = assert!(BLOCKS.is_power_of_two() && REPLAY_WINDOW_FRAMES.is_multiple_of(BLOCK_BITS));
/// Words of a window's memory: the newest number with [`SEEN`] above it, then the blocks.
pub const WORDS: usize = 1 + BLOCKS;
/// Something has been delivered.
const SEEN: u64 = 1 << 32;

/// Memory for a window: [`WORDS`] words, zero when they are handed over.
pub trait Words: Send + Sync {
    /// The words.
    fn words(&self) -> &[AtomicU64];
}

impl Words for Box<[AtomicU64]> {
    fn words(&self) -> &[AtomicU64] {
        self
    }
}

/// Why a sequence number is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// It lies before the window.
    TooOld,
    /// It lies further ahead than the peer can have come.
    TooFar,
    /// It has been delivered.
    Replayed,
}

/// The numbers delivered under one key.
pub struct Window {
    memory: Box<dyn Words>,
}

impl Default for Window {
    fn default() -> Self {
        Window::new()
    }
}

impl Window {
    /// A window in memory of its own.
    #[must_use]
    pub fn new() -> Window {
        let words: Box<[AtomicU64]> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        Window { memory: Box::new(words) }
    }

    /// A window in `memory`, if that is enough.
    #[must_use]
    pub fn within(memory: Box<dyn Words>) -> Option<Window> {
        (memory.words().len() >= WORDS).then_some(Window { memory })
    }

    fn newest(&self) -> Option<u32> {
        let head = self.memory.words()[0].load(Ordering::Relaxed);
        (head & SEEN != 0).then_some(head as u32)
    }

    /// Whether `sequence` may be asked for at all: neither before the window nor too far ahead of it.
    ///
    /// # Errors
    /// It may not.
    pub fn near(&self, sequence: u32) -> Result<(), Refused> {
        match self.newest() {
            Some(newest) if sequence > newest && sequence - newest > FAR_AHEAD_FRAMES => Err(Refused::TooFar),
            Some(newest) if sequence <= newest && newest - sequence >= REPLAY_WINDOW_FRAMES => Err(Refused::TooOld),
            _ => Ok(()),
        }
    }

    /// Whether `sequence`, which is [`near`](Window::near), was not delivered yet.
    ///
    /// # Errors
    /// It was.
    pub fn fresh(&self, sequence: u32) -> Result<(), Refused> {
        if self.newest().is_none_or(|newest| sequence > newest) {
            return Ok(());
        }
        let (block, bit) = place(sequence);
        if self.memory.words()[block].load(Ordering::Relaxed) & bit == 0 { Ok(()) } else { Err(Refused::Replayed) }
    }

    /// Enters `sequence`, whose frame was authentic and for which [`near`](Window::near) and [`fresh`](Window::fresh) were right.
    pub fn enter(&mut self, sequence: u32) {
        let newest = self.newest().unwrap_or(sequence);
        if sequence > newest {
            self.clear_between(newest, sequence);
        }
        let words = self.memory.words();
        let (block, bit) = place(sequence);
        // Nobody else writes, so reading and writing need not be one.
        words[block].store(words[block].load(Ordering::Relaxed) | bit, Ordering::Relaxed);
        words[0].store(SEEN | u64::from(newest.max(sequence)), Ordering::Release);
    }

    /// Empties the blocks that come into use when the newest number grows from `from` to `to`.
    fn clear_between(&self, from: u32, to: u32) {
        let blocks = (to / BLOCK_BITS - from / BLOCK_BITS).min(BLOCKS as u32);
        for step in 1..=blocks {
            let block = 1 + (from / BLOCK_BITS + step) as usize % BLOCKS;
            self.memory.words()[block].store(0, Ordering::Relaxed);
        }
    }
}

fn place(sequence: u32) -> (usize, u64) {
    (1 + (sequence / BLOCK_BITS) as usize % BLOCKS, 1 << (sequence % BLOCK_BITS))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn check(window: &Window, sequence: u32) -> Result<(), Refused> {
        window.near(sequence).and_then(|()| window.fresh(sequence))
    }

    #[test]
    fn edges_of_the_window() {
        let mut window = Window::new();
        assert_eq!(check(&window, u32::MAX), Ok(()));
        window.enter(100_000);
        assert_eq!(check(&window, 100_000), Err(Refused::Replayed));
        assert_eq!(check(&window, 100_000 - REPLAY_WINDOW_FRAMES + 1), Ok(()));
        assert_eq!(check(&window, 100_000 - REPLAY_WINDOW_FRAMES), Err(Refused::TooOld));
        assert_eq!(check(&window, 100_000 + FAR_AHEAD_FRAMES), Ok(()));
        assert_eq!(check(&window, 100_001 + FAR_AHEAD_FRAMES), Err(Refused::TooFar));
        window.enter(u32::MAX);
        assert_eq!(check(&window, 100_000), Err(Refused::TooOld));
        assert_eq!(check(&window, u32::MAX - 1), Ok(()));
    }

    #[test]
    fn too_little_memory_makes_no_window() {
        let words = |count| Box::new((0..count).map(|_| AtomicU64::new(0)).collect::<Box<[_]>>());
        assert!(Window::within(words(WORDS - 1)).is_none() && Window::within(words(WORDS)).is_some());
    }

    proptest! {
        /// Against the obvious model: a set of everything delivered.
        #[test]
        fn agrees_with_a_set(steps in proptest::collection::vec(
            prop_oneof![0_u32..200, 0_u32..20_000, Just(64), Just(8191), Just(8192), Just(16_384)], 1..400
        ), back in proptest::collection::vec(0_u32..20_000, 1..400)) {
            let mut window = Window::new();
            let mut delivered = BTreeSet::new();
            let mut newest = 1_000_000_u32;
            for (step, back) in steps.iter().zip(back.iter().cycle()) {
                for sequence in [newest + step, newest + step - back] {
                    let top = delivered.last().copied().unwrap_or(sequence);
                    let expected = if sequence <= top && top - sequence >= REPLAY_WINDOW_FRAMES {
                        Err(Refused::TooOld)
                    } else if delivered.contains(&sequence) {
                        Err(Refused::Replayed)
                    } else {
                        Ok(())
                    };
                    prop_assert_eq!(check(&window, sequence), expected);
                    if expected.is_ok() {
                        window.enter(sequence);
                        delivered.insert(sequence);
                    }
                }
                newest += step;
            }
        }
    }
}
