//! Which sequence numbers of an association have passed: blocks of bits below the highest one (the ring of RFC 6479).
//!
//! This program and the one in the kernel (`bpf/onward.c`) both pass packets of an association, perhaps at the same moment, so a window
//! lies in memory that both may write. A block carries its own number beside its bits: it needs no clearing when the window
//! moves on, and a packet is entered by one exchange that only one of two can win.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use super::limits::{NEAR_PACKETS, WINDOW_PACKETS};
use crate::Words;

/// Packets of a block: their bits in the low half of a word, the block's number in the high one.
const BLOCK_PACKETS: u64 = 32;
/// Twice as many as the window has, so that none is written over that still counts.
const BLOCKS: u64 = 2 * WINDOW_PACKETS / BLOCK_PACKETS;
/// Words of a window's memory: the highest number, then the blocks.
pub(super) const WORDS: usize = 1 + BLOCKS as usize;
const LAP: u64 = 1 << 32;

const _: () = assert!(WINDOW_PACKETS.is_multiple_of(BLOCK_PACKETS));

/// What a sequence number is to the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It may pass.
    Fresh,
    /// It has passed, or it is too old to tell.
    Used,
    /// It is further above the highest than packets get lost.
    Far,
}

/// A window whose upper end is the highest sequence number seen, of 64 bits.
pub(super) struct Window(Box<dyn Words>);

impl fmt::Debug for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Window up to {}", self.highest())
    }
}

impl Window {
    /// A window in which nothing has passed but `highest`, in memory of its own.
    pub(super) fn at(highest: u64) -> Window {
        let words: Box<[AtomicU64]> = (0..WORDS).map(|_| AtomicU64::new(0)).collect();
        Window::within(Box::new(words), highest)
    }

    /// The same in `memory`, of [`WORDS`] words, into which nobody else looks yet.
    pub(super) fn within(memory: Box<dyn Words>, highest: u64) -> Window {
        // What stands there is further below than any packet that will be asked for.
        let oldest = (number_of(highest).wrapping_sub(BLOCKS as u32)) as u64;
        memory.words().iter().for_each(|word| word.store(oldest << 32, Ordering::Relaxed));
        if let Some(word) = memory.words().first() {
            word.store(highest, Ordering::Release);
        }
        let window = Window(memory);
        window.pass(highest);
        window
    }

    fn word(&self, at: usize) -> Option<&AtomicU64> {
        self.0.words().get(at)
    }

    pub(super) fn highest(&self) -> u64 {
        self.word(0).map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Where `sequence` is.
    pub(super) fn place(&self, sequence: u64) -> Place {
        let highest = self.highest();
        if sequence > highest {
            return if sequence - highest <= NEAR_PACKETS { Place::Fresh } else { Place::Far };
        }
        let is_old = highest - sequence >= WINDOW_PACKETS;
        let block = self.word(place_of(sequence)).map(|word| word.load(Ordering::Acquire));
        if is_old || block.is_none_or(|block| entered(block, sequence).is_none()) { Place::Used } else { Place::Fresh }
    }

    /// Notes that `sequence`, which is fresh or confirmed, passes; false if it has passed meanwhile, or is too old to tell.
    pub(super) fn pass(&self, sequence: u64) -> bool {
        let (Some(head), Some(block)) = (self.word(0), self.word(place_of(sequence))) else { return false };
        let is_entered =
            block.fetch_update(Ordering::AcqRel, Ordering::Acquire, |block| entered(block, sequence)).is_ok();
        if is_entered {
            head.fetch_max(sequence, Ordering::AcqRel);
        }
        is_entered
    }
}

fn place_of(sequence: u64) -> usize {
    1 + (sequence / BLOCK_PACKETS % BLOCKS) as usize
}

/// The number of the block of `sequence`. It comes round after 2^37 packets, of which a window sees the last thousand.
fn number_of(sequence: u64) -> u32 {
    (sequence / BLOCK_PACKETS) as u32
}

/// What becomes of `block`, in the place of the block of `sequence`, when that is entered; none if it cannot be.
fn entered(block: u64, sequence: u64) -> Option<u64> {
    let (number, bit) = (number_of(sequence), 1 << (sequence % BLOCK_PACKETS));
    let ahead = ((block >> 32) as u32).wrapping_sub(number).cast_signed();
    match ahead {
        0 if block & bit == 0 => Some(block | bit),
        ..0 => Some(u64::from(number) << 32 | bit),
        _ => None,
    }
}

/// The sequence number of 64 bits whose low half is `low` and that is nearest to `highest`: an extended one has its high half
/// nowhere in the packet (RFC 4303, section 2.2.1).
pub(super) fn extended(highest: u64, low: u32) -> u64 {
    let same_lap = (highest & !(LAP - 1)) | u64::from(low);
    if same_lap + LAP / 2 < highest {
        same_lap + LAP
    } else if same_lap > highest + LAP / 2 && same_lap >= LAP {
        same_lap - LAP
    } else {
        same_lap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_passes_once_in_any_order_within_the_window() {
        let window = Window::at(1);
        assert_eq!(window.place(1), Place::Used);
        for sequence in [3, 2, 1000, 999, 5] {
            assert_eq!(window.place(sequence), Place::Fresh, "{sequence}");
            assert!(window.pass(sequence) && !window.pass(sequence));
            assert_eq!(window.place(sequence), Place::Used, "{sequence}");
        }
        assert_eq!(window.place(4), Place::Fresh);
        window.pass(1000 + WINDOW_PACKETS);
        assert_eq!(window.place(1000), Place::Used, "too old");
        assert_eq!(window.place(1001), Place::Fresh, "a bit of an earlier round is gone");
    }

    #[test]
    fn of_two_who_pass_the_same_numbers_at_once_one_wins_each() {
        const NUMBERS: u64 = 200_000;
        let window = Window::at(0);
        let passed = || (1..=NUMBERS).filter(|number| window.pass(*number)).count() as u64;
        let [one, other] = std::thread::scope(|scope| {
            [scope.spawn(passed), scope.spawn(passed)].map(|thread| thread.join().expect("it ends"))
        });
        // Whoever comes to a number first is in front, so it is never too old for him.
        assert_eq!(one + other, NUMBERS, "{one} and {other}");
        assert_eq!(window.highest(), NUMBERS);
        assert!((NUMBERS - WINDOW_PACKETS..=NUMBERS).all(|number| window.place(number) == Place::Used));
    }

    #[test]
    fn block_numbers_come_round() {
        let last = (1 << 37) - 1;
        let window = Window::at(last);
        assert_eq!(window.place(last - 40), Place::Fresh);
        assert_eq!(window.place(last + 1), Place::Fresh);
        assert!(window.pass(last + 1) && window.pass(last - 40) && !window.pass(last));
        assert_eq!(window.place(last), Place::Used);
    }

    #[test]
    fn what_is_far_ahead_is_told_from_what_is_near() {
        let window = Window::at(10);
        assert_eq!(window.place(10 + NEAR_PACKETS), Place::Fresh);
        assert_eq!(window.place(11 + NEAR_PACKETS), Place::Far);
    }

    proptest::proptest! {
        #[test]
        fn it_agrees_with_a_set(steps: Vec<u16>) {
            let (window, mut seen) = (Window::at(0), std::collections::BTreeSet::from([0_u64]));
            for step in steps {
                let sequence = u64::from(step);
                let highest = seen.last().copied().unwrap_or_default();
                let fresh = sequence + WINDOW_PACKETS > highest && !seen.contains(&sequence);
                proptest::prop_assert_eq!(window.place(sequence) == Place::Fresh, fresh);
                if fresh {
                    window.pass(sequence);
                    seen.insert(sequence);
                }
            }
        }
    }

    #[test]
    fn the_high_half_follows_the_highest_number() {
        assert_eq!(extended(5, 9), 9);
        assert_eq!(extended(5, 0xffff_ffff), 0xffff_ffff, "there is no lap before the first");
        assert_eq!(extended(0xffff_fff0, 3), LAP + 3);
        assert_eq!(extended(LAP + 3, 0xffff_fff0), 0xffff_fff0);
        assert_eq!(extended(2 * LAP + 7, 8), 2 * LAP + 8);
    }
}
