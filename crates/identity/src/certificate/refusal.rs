//! Why a certificate was refused.

use std::fmt;
use std::time::Duration;

use webpki::Error;
use x509_cert::der::DateTime;

/// Why a certificate proves nothing here. The words are for logs and operators; a peer never hears them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another authority issued it.
    ForeignIssuer,
    /// Its period is over.
    Expired {
        /// When it ended, in Unix seconds.
        not_after_unix: u64,
    },
    /// Its period has not begun; usually a clock is wrong.
    NotYetValid {
        /// When it begins, in Unix seconds.
        not_before_unix: u64,
    },
    /// The authority's name stands on it, but not its signature: damaged, forged, or from another site of the same name.
    BadSignature,
    /// It is the certificate of an authority, not of a host.
    NotAHost,
    /// It is meant for another use than signing, or for servers only.
    WrongUsage,
    /// Key or signature use an algorithm that is not spoken here.
    UnsupportedAlgorithm,
    /// The authority may not issue it: a name constraint or a path length forbids it.
    NotPermitted,
    /// It names no hardware address.
    NoMac,
    /// Its keys are of another profile than its authority's site.
    WrongProfile,
    /// The named part makes no sense.
    Malformed(&'static str),
}

impl Refusal {
    pub(super) fn from_path(error: &Error) -> Self {
        match error {
            Error::CertExpired { not_after, .. } => Refusal::Expired { not_after_unix: not_after.as_secs() },
            Error::CertNotValidYet { not_before, .. } => Refusal::NotYetValid { not_before_unix: not_before.as_secs() },
            Error::UnknownIssuer => Refusal::ForeignIssuer,
            Error::InvalidSignatureForPublicKey => Refusal::BadSignature,
            Error::CaUsedAsEndEntity => Refusal::NotAHost,
            Error::EmptyEkuExtension | Error::RequiredEkuNotFoundContext(_) => Refusal::WrongUsage,
            Error::UnsupportedSignatureAlgorithmContext(_)
            | Error::UnsupportedSignatureAlgorithmForPublicKeyContext(_) => Refusal::UnsupportedAlgorithm,
            Error::NameConstraintViolation | Error::PathLenConstraintViolated => Refusal::NotPermitted,
            Error::UnsupportedCriticalExtension => Refusal::Malformed("critical extension"),
            Error::InvalidCertValidity | Error::BadDerTime => Refusal::Malformed("period"),
            _ => Refusal::Malformed("structure"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::ForeignIssuer => f.write_str("another site's authority issued it"),
            Refusal::Expired { not_after_unix } => write!(f, "it expired at {}", utc_text(*not_after_unix)),
            Refusal::NotYetValid { not_before_unix } => {
                write!(f, "it is not valid before {}; is the clock right?", utc_text(*not_before_unix))
            }
            Refusal::BadSignature => f.write_str(
                "the authority's signature does not match: damaged, forged, or from a site of the same name",
            ),
            Refusal::NotAHost => f.write_str("it belongs to an authority, not to a host"),
            Refusal::WrongUsage => f.write_str("it is not meant for signing by a host"),
            Refusal::UnsupportedAlgorithm => {
                f.write_str("its algorithm is not spoken here (Ed25519, ECDSA P-256, RSA of 2048 to 8192 bits)")
            }
            Refusal::NotPermitted => f.write_str("its authority may not issue it (name constraint or path length)"),
            Refusal::NoMac => f.write_str("it names no hardware address"),
            Refusal::WrongProfile => f.write_str("its keys are of another profile than its site"),
            Refusal::Malformed(part) => write!(f, "its {part} makes no sense"),
        }
    }
}

impl std::error::Error for Refusal {}

/// Unix seconds of a time in UTC as [`utc_text`] writes it.
#[must_use]
pub fn unix_of_utc(text: &str) -> Option<u64> {
    text.parse::<DateTime>().ok().map(|time| time.unix_duration().as_secs())
}

/// Unix seconds as a person reads them, in UTC: `2026-11-21T10:02:00Z`.
#[must_use]
pub fn utc_text(unix_s: u64) -> String {
    match DateTime::from_unix_duration(Duration::from_secs(unix_s)) {
        Ok(time) => time.to_string(),
        // Beyond the year 9999, where ASN.1 has no text either.
        Err(_) => format!("{unix_s} s after 1970"),
    }
}
