//! Public keys as S-ARP records name them, by the number of an algorithm and bytes, of either profile.

use crate::certificate::{BadSignature, PublicKey};
use crate::paper;
use crate::profile::{KeyLength, Profile};

/// A key from a record.
#[derive(Clone)]
pub(crate) enum RecordKey {
    Modern(PublicKey),
    Paper(paper::PublicKey),
}

impl RecordKey {
    /// The key of algorithm `number`; `None` for an unknown number, and for bytes that are no key.
    pub(crate) fn new(number: u8, bytes: &[u8]) -> Option<RecordKey> {
        match KeyLength::of_record_number(number) {
            Some(length) => paper::PublicKey::new(length, bytes).map(RecordKey::Paper),
            None => PublicKey::from_record(number, bytes).map(RecordKey::Modern),
        }
    }

    /// As [`new`](RecordKey::new), for keys of `profile` only.
    pub(crate) fn of_profile(profile: Profile, number: u8, bytes: &[u8]) -> Option<RecordKey> {
        RecordKey::new(number, bytes).filter(|key| key.profile() == profile)
    }

    pub(crate) fn profile(&self) -> Profile {
        match self {
            RecordKey::Modern(_) => Profile::Modern,
            RecordKey::Paper(_) => Profile::Paper,
        }
    }

    pub(crate) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        match self {
            RecordKey::Modern(key) => key.verify(message, signature),
            RecordKey::Paper(key) => key.verify(message, signature),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            RecordKey::Modern(key) => key.bytes(),
            RecordKey::Paper(key) => key.bytes(),
        }
    }
}
