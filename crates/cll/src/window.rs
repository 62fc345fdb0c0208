//! The replay window: which sequence numbers have been delivered (RFC 6479's ring of blocks, so that nothing is shifted).
//!
//! A number is looked up before the tag is checked and entered only after it was right, so that nobody without the key
//! can move the window. The paper accepts only growing numbers (section 5.3) and thereby loses every reordered frame.

use crate::limits::REPLAY_WINDOW_FRAMES;

const BLOCK_BITS: u32 = 64;
/// One block more than the window, so that the newest block may be partly filled.
const BLOCKS: usize = (REPLAY_WINDOW_FRAMES / BLOCK_BITS) as usize * 2;
const _: () = assert!(BLOCKS.is_power_of_two() && REPLAY_WINDOW_FRAMES.is_multiple_of(BLOCK_BITS));

/// Why a sequence number is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It lies before the window.
    TooOld,
    /// It has been delivered.
    Replayed,
}

/// The numbers delivered under one key.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    newest: Option<u32>,
    blocks: Box<[u64; BLOCKS]>,
}

impl Window {
    pub(crate) fn new() -> Window {
        Window { newest: None, blocks: Box::new([0; BLOCKS]) }
    }

    /// Whether `sequence` may be delivered.
    pub(crate) fn check(&self, sequence: u32) -> Result<(), Refused> {
        let Some(newest) = self.newest else { return Ok(()) };
        if sequence > newest {
            return Ok(());
        }
        if newest - sequence >= REPLAY_WINDOW_FRAMES {
            return Err(Refused::TooOld);
        }
        let (block, bit) = place(sequence);
        if self.blocks[block] & bit == 0 { Ok(()) } else { Err(Refused::Replayed) }
    }

    /// Enters `sequence`, whose frame was authentic and for which [`check`](Window::check) was right.
    pub(crate) fn enter(&mut self, sequence: u32) {
        let newest = self.newest.unwrap_or(sequence);
        if sequence > newest {
            self.clear_between(newest, sequence);
        }
        self.newest = Some(newest.max(sequence));
        let (block, bit) = place(sequence);
        self.blocks[block] |= bit;
    }

    /// Empties the blocks that come into use when the newest number grows from `from` to `to`.
    fn clear_between(&mut self, from: u32, to: u32) {
        let blocks = (to / BLOCK_BITS - from / BLOCK_BITS).min(BLOCKS as u32);
        for step in 1..=blocks {
            let block = (from / BLOCK_BITS + step) as usize % BLOCKS;
            self.blocks[block] = 0;
        }
    }
}

fn place(sequence: u32) -> (usize, u64) {
    ((sequence / BLOCK_BITS) as usize % BLOCKS, 1 << (sequence % BLOCK_BITS))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn edges_of_the_window() {
        let mut window = Window::new();
        window.enter(100_000);
        assert_eq!(window.check(100_000), Err(Refused::Replayed));
        assert_eq!(window.check(100_000 - REPLAY_WINDOW_FRAMES + 1), Ok(()));
        assert_eq!(window.check(100_000 - REPLAY_WINDOW_FRAMES), Err(Refused::TooOld));
        window.enter(u32::MAX);
        assert_eq!(window.check(100_000), Err(Refused::TooOld));
        assert_eq!(window.check(u32::MAX - 1), Ok(()));
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
                    prop_assert_eq!(window.check(sequence), expected);
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
