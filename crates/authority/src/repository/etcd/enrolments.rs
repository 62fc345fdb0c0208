//! Tokens in etcd: each is one key, as it is written down.

use super::EtcdStore;
use super::snapshot::Snapshot;
use crate::limits::ETCD_ENROLMENTS_PAGE;
use crate::repository::{Enrolment, StoreError, enrolment};

impl EtcdStore {
    /// Digits enough for every number, so that the order of keys is that of numbers.
    pub(super) fn enrolment_key(&self, number: u64) -> String {
        self.key(&format!("enrolments/{number:020}"))
    }

    pub(super) fn all_enrolments(&self, snapshot: &mut Snapshot<'_>) -> Result<Vec<Enrolment>, StoreError> {
        snapshot.all(&self.key("enrolments/"), ETCD_ENROLMENTS_PAGE, read)
    }

    pub(super) fn enrolment_at(
        &self,
        snapshot: &mut Snapshot<'_>,
        number: u64,
    ) -> Result<Option<Enrolment>, StoreError> {
        let key = self.enrolment_key(number);
        snapshot.fetch(std::slice::from_ref(&key))?;
        snapshot.peek(&key).map(|value| read(&key, value)).transpose()
    }

    pub(super) fn replace_enrolment(
        &self,
        snapshot: &mut Snapshot<'_>,
        before: Option<&Enrolment>,
        after: Option<&Enrolment>,
    ) -> Result<bool, StoreError> {
        let Some(number) = before.or(after).map(|one| one.number) else { return Ok(true) };
        let key = self.enrolment_key(number);
        snapshot.fetch(std::slice::from_ref(&key))?;
        if snapshot.get(&key) != before.map(enrolment::write).transpose()?.as_deref() {
            return Ok(false);
        }
        match after {
            Some(after) => snapshot.put(&key, enrolment::write(after)?),
            None => snapshot.delete(&key),
        }
        Ok(true)
    }
}

fn read(key: &str, value: &[u8]) -> Result<Enrolment, StoreError> {
    enrolment::read(value).ok_or_else(|| StoreError::DamagedKey(key.to_owned(), "it is no token".to_owned()))
}
