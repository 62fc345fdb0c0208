//! What a host brings that the site has signed and the service does not have: the site was restored
//! from a backup (record 0124).

use identity::certificate::TrustAnchor;
use identity::pem;

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
    /// The policy or the list in `text`, if the authority has signed it.
    pub(in crate::site) fn read(anchor: &TrustAnchor, text: &str) -> Option<Brought> {
        let brought = |sort, number| Brought { sort, name: String::new(), number, text: text.to_owned() };
        if let Ok(bytes) = pem::single(text, pem::SITE_POLICY) {
            return anchor.verify_policy(&bytes).ok().map(|policy| brought(Sort::Policy, policy.version()));
        }
        let der = pem::single(text, pem::REVOCATION_LIST).ok()?;
        anchor.verify_revocation_list(&der).ok().map(|list| brought(Sort::Revoked, list.issued_unix()))
    }

    /// The certificate of a host in `text`.
    pub(in crate::site) fn certificate(anchor: &TrustAnchor, text: &str) -> Option<Brought> {
        let der = pem::single(text, pem::CERTIFICATE).ok()?;
        let certificate = anchor.verify_whenever(&der).ok()?;
        let (name, number) = (certificate.serial_hex(), certificate.not_before_unix());
        Some(Brought { sort: Sort::Certificate, name, number, text: text.to_owned() })
    }
}
