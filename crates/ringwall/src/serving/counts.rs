//! Whom a door turned away, by reason.

use std::collections::BTreeMap;
use std::sync::Mutex;

use super::locked;

/// So many for each word.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<BTreeMap<&'static str, u64>>);

impl Counts {
    pub(crate) fn add(&self, word: &'static str) {
        *locked(&self.0).entry(word).or_default() += 1;
    }

    pub(crate) fn all(&self) -> BTreeMap<&'static str, u64> {
        locked(&self.0).clone()
    }

    /// All of them, which begin at zero again.
    pub(crate) fn take(&self) -> BTreeMap<&'static str, u64> {
        std::mem::take(&mut *locked(&self.0))
    }
}
