//! A change in the making: what was read of one state of the repository, and what shall be written if that still holds.
//!
//! All reads of a snapshot are of one revision of the cluster. The transaction that ends it compares the revision of every
//! key that the change depends on, so that it happens exactly on what was read or not at all.

use std::collections::{BTreeMap, BTreeSet};

use super::breaker::Tries;
use super::client::Trouble;
use super::message::{Bytes, Compare, Outcome, Range, Step, Transaction, end_of};
use super::{EtcdStore, FORM};
use crate::limits::ETCD_STEPS;
use crate::repository::StoreError;

/// A key as it was read.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// 0 if it is not there.
    mod_revision: u64,
    value: Option<Vec<u8>>,
}

/// Keys with their values, and whether more come after them.
pub(super) type Page = (Vec<(String, Vec<u8>)>, bool);

/// What a change writes; nothing in the place of a value deletes the key.
pub(super) type Writes = BTreeMap<String, Option<Vec<u8>>>;

/// One state of the repository.
pub(super) struct Snapshot<'a> {
    store: &'a EtcdStore,
    /// 0 until the first question.
    revision: u64,
    seen: BTreeMap<String, Seen>,
    guards: BTreeSet<String>,
    writes: Writes,
    /// Of the first question; later ones may ask all members.
    tries: Tries,
}

impl<'a> Snapshot<'a> {
    pub(super) fn new(store: &'a EtcdStore, tries: Tries) -> Self {
        let (seen, guards) = (BTreeMap::new(), BTreeSet::new());
        Snapshot { store, revision: 0, seen, guards, writes: Writes::new(), tries }
    }

    /// Reads all of `keys` that were not read before, as of the first question.
    pub(super) fn fetch(&mut self, keys: &[String]) -> Result<(), StoreError> {
        let mut wanted: Vec<String> = keys.iter().filter(|key| !self.seen.contains_key(*key)).cloned().collect();
        if self.revision == 0 {
            // An empty cluster must not pass for a repository that knows nobody.
            wanted.insert(0, self.store.key(FORM));
        }
        for part in wanted.chunks(ETCD_STEPS) {
            let ranges =
                part.iter().map(|key| Range { key: Bytes::of(key), revision: self.revision, ..Range::default() });
            let outcome = self.ask(ranges.map(Step::Range).collect())?;
            for (key, found) in part.iter().zip(outcome.responses) {
                let pair = found.response_range.unwrap_or_default().kvs.into_iter().next();
                let seen = pair.map(|pair| Seen { mod_revision: pair.mod_revision, value: Some(pair.value.0) });
                self.seen.insert(key.clone(), seen.unwrap_or_default());
            }
            self.check_form()?;
        }
        Ok(())
    }

    /// All that lies below `prefix`, in pages of `limit` keys, each as `read` reads it from key and value.
    pub(super) fn all<T>(
        &mut self,
        prefix: &str,
        limit: u64,
        read: impl Fn(&str, &[u8]) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let (mut all, mut from, mut more) = (Vec::new(), prefix.to_owned(), true);
        while more {
            let page;
            (page, more) = self.keys_between(&from, end_of(prefix), limit)?;
            for (key, value) in &page {
                all.push(read(key, value)?);
            }
            // The next page begins right behind the last key.
            from = page.last().map(|(key, _)| format!("{key}\0")).unwrap_or_default();
            more &= !page.is_empty();
        }
        Ok(all)
    }

    /// At most `limit` keys from `from` on that come before `end`, and whether there are more. They do not count as fetched.
    pub(super) fn keys_between(&mut self, from: &str, end: Bytes, limit: u64) -> Result<Page, StoreError> {
        self.fetch(&[])?;
        let range = Range { key: Bytes::of(from), range_end: Some(end), revision: self.revision, limit };
        let outcome = self.ask(vec![Step::Range(range)])?;
        let found = outcome.responses.into_iter().find_map(|one| one.response_range).unwrap_or_default();
        let text = |bytes: Bytes| String::from_utf8_lossy(&bytes.0).into_owned();
        Ok((found.kvs.into_iter().map(|pair| (text(pair.key), pair.value.0)).collect(), found.more))
    }

    fn ask(&mut self, steps: Vec<Step>) -> Result<Outcome, StoreError> {
        let question = Transaction { success: steps, ..Transaction::default() };
        let outcome = self.store.client.ask(&question, self.tries)?;
        self.tries = Tries::All;
        if self.revision == 0 {
            self.revision = outcome.header.revision;
        }
        Ok(outcome)
    }

    fn check_form(&self) -> Result<(), StoreError> {
        let form = self.peek(&self.store.key(FORM));
        super::check_form(form.ok_or(StoreError::NotShared)?)
    }

    /// What a key holds that was fetched, or will hold after what was written so far, without the change depending on it.
    pub(super) fn peek(&self, key: &str) -> Option<&[u8]> {
        match self.writes.get(key) {
            Some(written) => written.as_deref(),
            None => self.seen.get(key)?.value.as_deref(),
        }
    }

    /// What a key holds that was fetched; the change happens only if it still does.
    pub(super) fn get(&mut self, key: &str) -> Option<&[u8]> {
        self.guards.insert(key.to_owned());
        self.peek(key)
    }

    /// Writes `value` if the change happens, and only if nobody else has written there meanwhile.
    pub(super) fn put(&mut self, key: &str, value: Vec<u8>) {
        self.guards.insert(key.to_owned());
        self.writes.insert(key.to_owned(), Some(value));
    }

    /// Deletes a key if the change happens, and only if nobody else has written there meanwhile.
    pub(super) fn delete(&mut self, key: &str) {
        self.guards.insert(key.to_owned());
        self.writes.insert(key.to_owned(), None);
    }

    pub(super) fn has_writes(&self) -> bool {
        !self.writes.is_empty()
    }

    /// Whether this state holds what `writes` wrote.
    pub(super) fn holds(&mut self, writes: &Writes) -> Result<bool, StoreError> {
        let keys: Vec<String> = writes.keys().cloned().collect();
        self.fetch(&keys)?;
        Ok(writes.iter().all(|(key, value)| self.peek(key) == value.as_deref()))
    }

    /// Whether this state has the keys of `writes` as they were in `before`.
    pub(super) fn is_untouched(&self, before: &Snapshot<'_>) -> bool {
        let revision = |snapshot: &Snapshot<'_>, key| snapshot.seen.get(key).map(|seen| seen.mod_revision);
        before.writes.keys().all(|key| revision(self, key) == revision(before, key))
    }

    pub(super) fn writes(&self) -> &Writes {
        &self.writes
    }

    /// Writes, if all that the change depends on still is as it was read; tells whether it was.
    pub(super) fn commit(&self) -> Result<bool, Trouble> {
        let compare = self.guards.iter().map(|key| {
            let mod_revision = self.seen.get(key).map_or(0, |seen| seen.mod_revision);
            Compare::unchanged(key, mod_revision)
        });
        let success = self.writes.iter().map(|(key, value)| match value {
            Some(value) => Step::put(key, value),
            None => Step::delete(key),
        });
        let transaction = Transaction { compare: compare.collect(), success: success.collect() };
        Ok(self.store.client.change(&transaction)?.succeeded)
    }
}
