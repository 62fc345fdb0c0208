//! Certificates that the site takes back, as a list that it signs (RFC 5280, section 5) and that hosts are given.
//!
//! The list is its own record: it is read, added to and signed anew. Certificates that have expired drop out of it.

use std::collections::BTreeSet;

use identity::Verified;
use identity::certificate::HostCertificate;
use identity::limits::MAX_REVOKED;
use identity::revocation::RevocationList;

use super::{Certificate, Directory, Entry, REVOKED, Record, acts};
use crate::audit::Act;
use crate::files::{self, Overwrite, Secrecy};
use crate::{Error, Site};

/// What became of a revocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revoked {
    /// The repository has the host, and says from now on that it is invalid.
    pub in_repository: bool,
    /// Certificates of the host that have not expired and are on the list now.
    pub certificates: usize,
}

impl Revoked {
    /// Whether there was anything to revoke.
    #[must_use]
    pub fn found(self) -> bool {
        self.in_repository || self.certificates > 0
    }
}

impl Directory {
    /// Takes a host out of S-ARP, and its certificates back.
    ///
    /// # Errors
    /// What is wrong with the repository, the record or the list; [`Error::TooManyRevoked`].
    pub fn revoke(&self, name: &str, unix_s: u64) -> Result<Revoked, Error> {
        // An issue that is under way would make the host good again.
        let _lock = self.lock()?;
        let store = self.repository()?;
        let is_live = |one: &HostCertificate| one.name() == name && one.not_after_unix() >= unix_s;
        if store.by_name(name)?.is_some() || self.issued().all()?.iter().any(|one| is_live(one)) {
            acts::tell(self, &[(Act::Revoked, name, "")], unix_s)?;
        }
        let in_repository = store.revoke(name)?;
        Ok(Revoked { in_repository, certificates: self.take_back(name, unix_s)? })
    }

    /// Puts every certificate of the host that has not expired on the list; how many those are. The caller holds the lock.
    pub(super) fn take_back(&self, name: &str, unix_s: u64) -> Result<usize, Error> {
        let before = self.revocation_list()?;
        let listed = |one: &HostCertificate| before.as_ref().is_some_and(|list| list.names(one));
        // Whatever a wrong clock has put away: it is good where clocks are right.
        let all = self.issued().all()?;
        // Of those that a host has brought back from before a restoration nobody knows the end.
        let known: BTreeSet<&[u8]> = all.iter().map(|one| one.serial()).collect();
        let unknown = before.iter().flat_map(|list| list.serials()).filter(|serial| !known.contains(serial));
        let live = all.iter().filter(|one| one.not_after_unix() >= unix_s);
        let meant: Vec<&Certificate> = live.filter(|one| listed(one) || one.name() == name).collect();
        let serials: Vec<&[u8]> = meant.iter().map(|one| one.serial()).chain(unknown).collect();
        if serials.len() > MAX_REVOKED {
            return Err(Error::TooManyRevoked);
        }
        let issued_unix = before.as_ref().map_or(unix_s, |list| unix_s.max(list.issued_unix() + 1));
        let text = self.site.revocation_list(&serials, issued_unix)?;
        files::write(&self.path.join(REVOKED), &text, Secrecy::Public, Overwrite::Force)?;
        Ok(meant.iter().filter(|one| one.name() == name).count())
    }

    /// The newest list; a site of an earlier version has none yet.
    ///
    /// # Errors
    /// What is wrong with the file.
    pub fn revocation_list(&self) -> Result<Option<Verified<RevocationList>>, Error> {
        Record::from(self).revocation_list()
    }
}

/// Whether a host of this name was revoked and has no certificate that is still good, by the site's
/// record.
#[must_use]
pub fn is_revoked(record: &[Entry], name: &str, unix_s: u64) -> bool {
    let mut own = record.iter().filter(|entry| entry.name == name).peekable();
    own.peek().is_some() && !own.clone().any(|entry| entry.is_live(unix_s)) && own.any(|entry| entry.revoked)
}

/// A list without entries, for a new site.
pub(super) fn first_list(site: &Site, unix_s: u64) -> Result<String, Error> {
    site.revocation_list(&[], unix_s)
}
