//! What a site's authority has done, entry by entry: each is signed, and has the digest of the one
//! before in what is signed (docs/protocol.md, section 31).
//!
//! So nobody without the authority's key can change, reorder or insert an entry, and one that is
//! taken out of the middle is missed. Whoever keeps the entries sees to their end, which no
//! signature shows.

use crate::certificate::{BadSignature, TrustAnchor};
use crate::hash::sha256;

/// What stands before an entry where it is signed, so that the signature is none under anything
/// else.
const SIGNED_LABEL: &[u8] = b"ringwall audit entry 1";

/// One thing that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Counts from 1.
    pub number: u64,
    /// When, in Unix seconds.
    pub unix_s: u64,
    /// Who.
    pub by: String,
    /// What, as a word.
    pub act: String,
    /// Whom or what it was done to.
    pub about: String,
    /// The rest.
    pub detail: String,
    /// The digest of the entry before; of the authority's certificate for the first.
    pub before: [u8; 32],
}

impl Entry {
    /// What the authority signs: numbers have 8 bytes, words have their length in 4 in front.
    #[must_use]
    pub fn signed_bytes(&self) -> Vec<u8> {
        let mut bytes = SIGNED_LABEL.to_vec();
        bytes.extend(self.number.to_be_bytes());
        bytes.extend(self.unix_s.to_be_bytes());
        bytes.extend(self.before);
        for word in [&self.by, &self.act, &self.about, &self.detail] {
            bytes.extend(u32::try_from(word.len()).unwrap_or(u32::MAX).to_be_bytes());
            bytes.extend(word.as_bytes());
        }
        bytes
    }

    /// What the next entry has of this one.
    #[must_use]
    pub fn digest(&self, signature: &[u8]) -> [u8; 32] {
        sha256(&[&self.signed_bytes(), signature])
    }
}

impl TrustAnchor {
    /// Checks that this authority signed `entry`.
    ///
    /// # Errors
    /// [`BadSignature`], whatever is wrong with the signature.
    pub fn verify_audit_entry(&self, entry: &Entry, signature: &[u8]) -> Result<(), BadSignature> {
        self.verify_signature(&entry.signed_bytes(), signature)
    }

    /// What the first entry of this authority has in the place of one before.
    #[must_use]
    pub fn audit_beginning(&self) -> [u8; 32] {
        sha256(&[self.der()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        let [by, act, about, detail] = ["root", "issued", "a", "serial 1"].map(str::to_owned);
        Entry { number: 7, unix_s: 1_800_000_000, by, act, about, detail, before: [9; 32] }
    }

    /// Each part is in what is signed, and none can lend a letter to the next.
    #[test]
    fn every_part_counts_and_none_runs_into_the_next() {
        let changes: [fn(&mut Entry); 8] = [
            |one| one.number += 1,
            |one| one.unix_s += 1,
            |one| one.by.push('x'),
            |one| one.act.push('x'),
            |one| one.about.push('x'),
            |one| one.detail.push('x'),
            |one| one.before[31] ^= 1,
            |one| (one.act, one.about) = ("issue".to_owned(), "da".to_owned()),
        ];
        for change in changes {
            let mut other = entry();
            change(&mut other);
            assert_ne!(other.signed_bytes(), entry().signed_bytes(), "{other:?}");
            assert_ne!(other.digest(b"s"), entry().digest(b"s"));
        }
        assert_ne!(entry().digest(b"s"), entry().digest(b"t"), "the signature as well");
    }
}
