//! Which sequence numbers of an association have passed: a window of bits below the highest one.

use super::limits::{NEAR_PACKETS, WINDOW_PACKETS};

pub(super) const WORDS: usize = (WINDOW_PACKETS / 64) as usize;
const LAP: u64 = 1 << 32;

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
#[derive(Clone, Debug)]
pub(super) struct Window {
    highest: u64,
    /// Bit `n` says that the number `n` modulo the window's length has passed.
    passed: [u64; WORDS],
}

impl Window {
    /// A window in which nothing has passed but `highest`.
    pub(super) fn at(highest: u64) -> Window {
        let mut window = Window { highest, passed: [0; WORDS] };
        window.set(highest);
        window
    }

    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// The ring of bits.
    pub(super) fn passed(&self) -> &[u64; WORDS] {
        &self.passed
    }

    /// Where `sequence` is.
    pub(super) fn place(&self, sequence: u64) -> Place {
        if sequence > self.highest {
            return if sequence - self.highest <= NEAR_PACKETS { Place::Fresh } else { Place::Far };
        }
        let is_old = self.highest - sequence >= WINDOW_PACKETS;
        if is_old || self.is_set(sequence) { Place::Used } else { Place::Fresh }
    }

    /// Notes that `sequence`, which is fresh or confirmed, passes.
    pub(super) fn pass(&mut self, sequence: u64) {
        if sequence > self.highest {
            let skipped = sequence - self.highest;
            if skipped >= WINDOW_PACKETS {
                self.passed = [0; WORDS];
            } else {
                (self.highest + 1..sequence).for_each(|number| self.clear(number));
            }
            self.highest = sequence;
        }
        self.set(sequence);
    }

    fn bit(sequence: u64) -> (usize, u64) {
        let at = sequence % WINDOW_PACKETS;
        ((at / 64) as usize, 1 << (at % 64))
    }

    fn is_set(&self, sequence: u64) -> bool {
        let (word, bit) = Window::bit(sequence);
        self.passed[word] & bit != 0
    }

    fn set(&mut self, sequence: u64) {
        let (word, bit) = Window::bit(sequence);
        self.passed[word] |= bit;
    }

    fn clear(&mut self, sequence: u64) {
        let (word, bit) = Window::bit(sequence);
        self.passed[word] &= !bit;
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
        let mut window = Window::at(1);
        assert_eq!(window.place(1), Place::Used);
        for sequence in [3, 2, 1000, 999, 5] {
            assert_eq!(window.place(sequence), Place::Fresh, "{sequence}");
            window.pass(sequence);
            assert_eq!(window.place(sequence), Place::Used, "{sequence}");
        }
        assert_eq!(window.place(4), Place::Fresh);
        window.pass(1000 + WINDOW_PACKETS);
        assert_eq!(window.place(1000), Place::Used, "too old");
        assert_eq!(window.place(1001), Place::Fresh, "a bit of an earlier round is gone");
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
            let (mut window, mut seen) = (Window::at(0), std::collections::BTreeSet::from([0_u64]));
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
