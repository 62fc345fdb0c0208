//! Which connections changed since another scrubber was told of them.
//!
//! A place for each connection at most, whatever happens to it; nothing at all unless somebody
//! follows.

use std::collections::VecDeque;

use crate::tcp::place::Index;

/// Connections that are to be told.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    is_followed: bool,
    /// A bit for each place in the table: whether it waits.
    waits: Vec<u64>,
    waiting: VecDeque<Index>,
    /// Where a round of all connections is.
    round: Option<Index>,
    /// Whether one that waited was next last, so that it is the round's turn.
    was_waiting: bool,
}

impl Changes {
    /// Follows from now on.
    pub(crate) fn follow(&mut self) {
        self.is_followed = true;
    }

    /// The connection at `index` changed.
    pub(crate) fn mark(&mut self, index: Index) {
        if !self.is_followed {
            return;
        }
        let (word, bit) = (index as usize / 64, 1 << (index % 64));
        if word >= self.waits.len() {
            self.waits.resize(word + 1, 0);
        }
        if self.waits[word] & bit == 0 {
            self.waits[word] |= bit;
            self.waiting.push_back(index);
        }
    }

    /// Tells all connections once more.
    pub(crate) fn begin_round(&mut self) {
        self.round = Some(0);
    }

    pub(crate) fn is_round_over(&self) -> bool {
        self.round.is_none()
    }

    /// Forgets what waits.
    pub(crate) fn clear(&mut self) {
        *self = Changes { is_followed: self.is_followed, ..Changes::default() };
    }

    /// The next place to look at, of `places` that there are. What changed and the round take
    /// turns: however much changes, the round ends.
    pub(crate) fn next(&mut self, places: usize) -> Option<Index> {
        let is_rounds_turn = std::mem::take(&mut self.was_waiting) && self.round.is_some();
        if !is_rounds_turn && let Some(index) = self.waiting.pop_front() {
            self.was_waiting = true;
            if let Some(word) = self.waits.get_mut(index as usize / 64) {
                *word &= !(1 << (index % 64));
            }
            return Some(index);
        }
        let index = self.round?;
        self.round = index.checked_add(1).filter(|next| (*next as usize) < places);
        Some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_waits_once_and_a_round_tells_all() {
        let mut changes = Changes::default();
        changes.mark(3);
        assert_eq!(changes.next(200), None, "nobody follows");
        changes.follow();
        [130, 3, 130, 3].into_iter().for_each(|index| changes.mark(index));
        assert_eq!([changes.next(200), changes.next(200), changes.next(200)], [Some(130), Some(3), None]);
        changes.begin_round();
        changes.mark(1);
        let told: Vec<_> = std::iter::from_fn(|| changes.next(3)).collect();
        assert_eq!(told, [1, 0, 1, 2]);
        assert!(changes.is_round_over());
    }

    #[test]
    fn a_round_ends_however_much_changes() {
        let mut changes = Changes::default();
        changes.follow();
        changes.begin_round();
        let told: Vec<_> = (0..6)
            .map(|_| {
                changes.mark(7);
                changes.next(3)
            })
            .collect();
        assert_eq!(told, [7, 0, 7, 1, 7, 2].map(Some));
        assert!(changes.is_round_over());
    }
}
