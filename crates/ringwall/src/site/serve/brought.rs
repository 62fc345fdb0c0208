//! What a host brings that the site has signed and the service does not have: the site was restored
//! from a backup (record 0124).

use identity::certificate::TrustAnchor;
use identity::revocation::RevocationList;
use identity::{Verified, pem};

/// What can be brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::site) enum Sort {
    Policy,
    Revoked,
    /// A host's own certificate, which comes with its report.
    Certificate,
}

impl Sort {
    /// Its word in the database.
    pub(in crate::site) fn word(self) -> &'static str {
        match self {
            Sort::Policy => "policy",
            Sort::Revoked => "revoked",
            Sort::Certificate => "certificate",
        }
    }
}

/// One thing that the authority has signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::site) struct Brought {
    pub(in crate::site) sort: Sort,
    /// Which of its sort: the serial number of a certificate.
    pub(in crate::site) name: String,
    /// How new it is: a policy's version, or a second.
    pub(in crate::site) number: u64,
    pub(in crate::site) text: String,
}

impl Brought {
    /// The policy or the list in `text`, if the authority has signed it, without what stands around it.
    pub(in crate::site) fn read(anchor: &TrustAnchor, text: &str) -> Option<Brought> {
        let brought = |sort, number, label, bytes: &[u8]| {
            let text = pem::encode(label, bytes).to_string();
            Some(Brought { sort, name: String::new(), number, text })
        };
        if let Ok(bytes) = pem::single(text, pem::SITE_POLICY) {
            let policy = anchor.verify_policy(&bytes).ok()?;
            return brought(Sort::Policy, policy.version(), pem::SITE_POLICY, &bytes);
        }
        let der = pem::single(text, pem::REVOCATION_LIST).ok()?;
        let list = anchor.verify_revocation_list(&der).ok()?;
        brought(Sort::Revoked, list.issued_unix(), pem::REVOCATION_LIST, &der)
    }

    /// The list that it is.
    pub(in crate::site) fn list(&self, anchor: &TrustAnchor) -> Option<Verified<RevocationList>> {
        let der = pem::single(&self.text, pem::REVOCATION_LIST).ok()?;
        anchor.verify_revocation_list(&der).ok()
    }

    /// The certificate of a host in `text`, unless a DHCP server made it.
    pub(in crate::site) fn certificate(anchor: &TrustAnchor, text: &str) -> Option<Brought> {
        let der = pem::single(text, pem::CERTIFICATE).ok()?;
        let certificate = anchor.verify_whenever(&der).ok().filter(|one| !one.is_leased())?;
        let (name, number) = (certificate.serial_hex(), certificate.not_before_unix());
        Some(Brought { sort: Sort::Certificate, name, number, text: text.to_owned() })
    }
}
