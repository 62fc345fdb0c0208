//! Which certificates the site has taken back, as this host was last told.

use std::sync::Arc;

use identity::Verified;
use identity::certificate::HostCertificate;
use identity::revocation::RevocationList;

/// The newest list that this host has, if it has one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Revoked {
    list: Option<Arc<Verified<RevocationList>>>,
}

impl Revoked {
    pub(crate) fn by(list: Option<Arc<Verified<RevocationList>>>) -> Revoked {
        Revoked { list }
    }

    /// The list itself.
    pub(crate) fn list(&self) -> Option<&Verified<RevocationList>> {
        self.list.as_deref()
    }

    /// When the authority signed it, in seconds since 1970; 0 without a list.
    pub(crate) fn issued_unix_s(&self) -> u64 {
        self.list.as_ref().map_or(0, |list| list.issued_unix())
    }

    /// Whether `certificate` is on it.
    pub(crate) fn names(&self, certificate: &HostCertificate) -> bool {
        self.list.as_ref().is_some_and(|list| list.names(certificate))
    }
}
