//! Certificates that the site's authority has taken back: a certificate revocation list (RFC 5280, section 5).
//!
//! A list is signed by the authority, so it may come by any way. It names serial numbers; a host that is enrolled again gets
//! another one and is not meant. Nobody can tell whether a newer list exists: `next_update` is not looked at, because an old
//! list is better than none.

use std::collections::BTreeSet;
use std::fmt;

use rustls_pki_types::SignatureVerificationAlgorithm;
use webpki::aws_lc_rs as algorithms;
use x509_cert::Certificate;
use x509_cert::crl::{CertificateList, RevokedCert};
use x509_cert::der::{Decode, Encode};

use crate::certificate::{BadSignature, HostCertificate, Serial, TrustAnchor, Verified};
use crate::limits::{MAX_REVOCATION_LIST_LEN, MAX_REVOKED};

/// What an authority signs with.
const USABLE: [&dyn SignatureVerificationAlgorithm; 3] =
    [algorithms::ED25519, algorithms::ECDSA_P256_SHA256, algorithms::RSA_PKCS1_2048_8192_SHA256];

/// A list of certificates that are worth nothing any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RevocationList {
    serials: BTreeSet<Serial>,
    issued_unix: u64,
    der: Vec<u8>,
}

/// Why a list was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadRevocationList {
    /// It is no list, or of a kind that is not read: too long, or only a part of one.
    Malformed(&'static str),
    /// Another authority issued it.
    ForeignIssuer,
    /// The authority's name stands on it, but not its signature.
    BadSignature,
}

impl fmt::Display for BadRevocationList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadRevocationList::Malformed(part) => write!(f, "no revocation list that is read here: its {part}"),
            BadRevocationList::ForeignIssuer => f.write_str("another site's authority issued it"),
            BadRevocationList::BadSignature => f.write_str(
                "the authority's signature does not match: damaged, forged, or from a site of the same name",
            ),
        }
    }
}

impl std::error::Error for BadRevocationList {}

impl RevocationList {
    /// Whether `certificate` was taken back, or one that it stands on: the base certificate of a leased one, or its DHCP
    /// server's.
    #[must_use]
    pub fn names(&self, certificate: &HostCertificate) -> bool {
        certificate.serials().any(|serial| self.serials.contains(serial))
    }

    /// Whether it names the certificate with this serial number, in bytes.
    #[must_use]
    pub fn has(&self, serial: &[u8]) -> bool {
        self.serials.contains(&Serial::of(serial))
    }

    /// Whether it names the certificate with this serial number, in lower-case hexadecimal digits.
    #[must_use]
    pub fn names_serial(&self, digits: &str) -> bool {
        let byte = |at: usize| digits.get(at..at + 2).and_then(|two| u8::from_str_radix(two, 16).ok());
        let bytes: Option<Vec<u8>> = (0..digits.len()).step_by(2).map(byte).collect();
        bytes.is_some_and(|bytes| self.has(&bytes))
    }

    /// How many certificates it names.
    #[must_use]
    pub fn len(&self) -> usize {
        self.serials.len()
    }

    /// Whether it names none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.serials.is_empty()
    }

    /// The serial numbers on it: their bytes, the highest first, without a zero in front.
    pub fn serials(&self) -> impl Iterator<Item = &[u8]> {
        self.serials.iter().map(Serial::as_bytes)
    }

    /// When it was issued, in Unix seconds.
    #[must_use]
    pub fn issued_unix(&self) -> u64 {
        self.issued_unix
    }

    /// The list in DER.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }
}

impl TrustAnchor {
    /// Checks that this authority issued the revocation list `der`, and reads it.
    ///
    /// # Errors
    /// [`BadRevocationList`], the first reason found.
    pub fn verify_revocation_list(&self, der: &[u8]) -> Result<Verified<RevocationList>, BadRevocationList> {
        let malformed = |part: &'static str| move |_| BadRevocationList::Malformed(part);
        if der.len() > MAX_REVOCATION_LIST_LEN {
            return Err(BadRevocationList::Malformed("length"));
        }
        let list = CertificateList::from_der(der).map_err(malformed("structure"))?;
        let authority = Certificate::from_der(self.der()).map_err(malformed("authority"))?;
        let content = &list.tbs_cert_list;
        if &content.issuer != authority.tbs_certificate().subject() {
            return Err(BadRevocationList::ForeignIssuer);
        }
        let signed = content.to_der().map_err(malformed("structure"))?;
        let signature = list.signature.as_bytes().ok_or(BadRevocationList::BadSignature)?;
        let algorithm = list.signature_algorithm.to_der().map_err(malformed("algorithm"))?;
        self.check_signature(&algorithm, &signed, signature)?;
        if content.crl_extensions.iter().flatten().any(|extension| extension.critical) {
            // A list of only some certificates, or of changes, says so here (RFC 5280, section 5.2).
            return Err(BadRevocationList::Malformed("critical extension"));
        }
        let entries = content.revoked_certificates.as_deref().unwrap_or_default();
        if entries.len() > MAX_REVOKED {
            return Err(BadRevocationList::Malformed("number of entries"));
        }
        let serial = |entry: &RevokedCert| Serial::of(entry.serial_number.as_bytes());
        let issued_unix = content.this_update.to_unix_duration().as_secs();
        let list = RevocationList { serials: entries.iter().map(serial).collect(), issued_unix, der: der.to_vec() };
        Ok(Verified::vouch(list))
    }

    /// Checks that the authority signed `message`, with the algorithm of its key.
    ///
    /// # Errors
    /// [`BadSignature`], whatever is wrong with the signature.
    pub(crate) fn verify_signature(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        // A key of one kind is none to the other algorithms.
        let signed = |known: &&dyn SignatureVerificationAlgorithm| {
            known.verify_signature(self.public_key(), message, signature).is_ok()
        };
        USABLE.iter().any(signed).then_some(()).ok_or(BadSignature)
    }

    /// `algorithm` is the whole AlgorithmIdentifier of the signature, in DER.
    pub(crate) fn check_signature(
        &self,
        algorithm: &[u8],
        signed: &[u8],
        signature: &[u8],
    ) -> Result<(), BadRevocationList> {
        const HEADER_LEN: usize = 2;
        let named = algorithm.get(HEADER_LEN..).unwrap_or_default();
        let known = USABLE.iter().find(|known| known.signature_alg_id().as_ref() == named);
        let known = known.ok_or(BadRevocationList::Malformed("signature algorithm"))?;
        known.verify_signature(self.public_key(), signed, signature).map_err(|_| BadRevocationList::BadSignature)
    }
}
