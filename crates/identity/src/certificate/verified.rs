//! The seal of approval.

use std::ops::Deref;

/// A value that the site's authority vouches for.
///
/// There is no public constructor, no conversion and no `Default`: the only makers are
/// [`TrustAnchor::verify`](super::TrustAnchor::verify), its [`verify_revocation_list`](super::TrustAnchor::verify_revocation_list) and
/// [`DistributorKey::verify`](crate::distributor::DistributorKey::verify), which have checked the signature and every field. So a
/// function that takes `Verified<HostCertificate>` cannot be called with something a stranger sent, and no later change
/// elsewhere can forget the check. What was verified can also run out: callers that keep one for long compare its period
/// with the time again.
#[derive(Clone, Debug)]
pub struct Verified<T>(T);

impl<T> Verified<T> {
    pub(crate) fn vouch(value: T) -> Self {
        Verified(value)
    }
}

impl<T> Deref for Verified<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
