//! The site's authority, as a host knows it.

use std::fmt;
use std::time::Duration;

use rustls_pki_types::{CertificateDer, SignatureVerificationAlgorithm, TrustAnchor as PathAnchor, UnixTime};
use webpki::aws_lc_rs as algorithms;
use webpki::{EndEntityCert, KeyUsage as Purpose, anchor_from_trusted_cert};
use x509_cert::Certificate;
use x509_cert::der::{Decode, Encode as _};
use x509_cert::ext::pkix::{BasicConstraints, KeyUsage};

use super::lease::{self, Chain};
use super::subject::{common_name, profile};
use super::{HostCertificate, Refusal, Verified};
use crate::limits::MAX_CERTIFICATE_LEN;
use crate::profile::Profile;

/// What an authority may sign with: the modern profile, and what existing authorities commonly use.
const SIGNATURES: &[&dyn SignatureVerificationAlgorithm] = &[
    algorithms::ED25519,
    algorithms::ECDSA_P256_SHA256,
    algorithms::ECDSA_P384_SHA384,
    algorithms::RSA_PKCS1_2048_8192_SHA256,
    algorithms::RSA_PKCS1_2048_8192_SHA384,
    algorithms::RSA_PKCS1_2048_8192_SHA512,
    algorithms::RSA_PSS_2048_8192_SHA256_LEGACY_KEY,
];

/// id-kp-clientAuth, 1.3.6.1.5.5.7.3.2, as DER content.
const CLIENT_AUTHENTICATION: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 2];

/// A certificate without extended key usage serves (ours have none); one that has the extension names client
/// authentication, as device certificates for 802.1X do. So a web server's certificate from the same authority does not
/// make its holder a host of this LAN.
const PURPOSE: Purpose = Purpose::required_if_present(CLIENT_AUTHENTICATION);

/// The authority's certificate. Its own period is not checked, as RFC 5280 (section 6.1.1) has it for trust anchors; the
/// authority issues nothing that outlives it.
#[derive(Clone)]
pub struct TrustAnchor {
    der: Vec<u8>,
    path: PathAnchor<'static>,
    public_key: Vec<u8>,
    site_name: String,
    profile: Profile,
    not_after_unix: u64,
}

impl TrustAnchor {
    /// Reads an authority's certificate in DER.
    ///
    /// # Errors
    /// [`Refusal::WrongUsage`] when it may not sign certificates, [`Refusal::Malformed`] when it cannot be read.
    pub fn from_der(der: &[u8]) -> Result<Self, Refusal> {
        if der.len() > MAX_CERTIFICATE_LEN {
            return Err(Refusal::Malformed("length"));
        }
        let borrowed = CertificateDer::from(der);
        let path = anchor_from_trusted_cert(&borrowed).map_err(|error| Refusal::from_path(&error))?.to_owned();
        let certificate = Certificate::from_der(der).map_err(|_| Refusal::Malformed("structure"))?;
        let content = certificate.tbs_certificate();
        if !may_sign_certificates(&certificate) {
            return Err(Refusal::WrongUsage);
        }
        let public_key = content.subject_public_key_info().subject_public_key.as_bytes();
        Ok(TrustAnchor {
            public_key: public_key.ok_or(Refusal::Malformed("public key"))?.to_vec(),
            der: der.to_vec(),
            path,
            site_name: common_name(content.subject())?,
            profile: profile(content.subject()),
            not_after_unix: content.validity().not_after.to_unix_duration().as_secs(),
        })
    }

    /// The certificate in DER.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The site's name: the common name of its authority.
    #[must_use]
    pub fn site_name(&self) -> String {
        self.site_name.clone()
    }

    /// The profile of its site, which its subject names.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The last second of the authority's own period, in Unix seconds.
    #[must_use]
    pub fn not_after_unix(&self) -> u64 {
        self.not_after_unix
    }

    /// Checks that this authority issued `der` to a host and that `unix_s` lies in its period, and reads it. `der` is one
    /// certificate, or that of a lease with the one of its DHCP server behind it (see [`lease`](super::lease)).
    ///
    /// # Errors
    /// The first reason found, in this order: length and structure, issuer, period, purpose, signature, fields.
    pub fn verify(&self, der: &[u8], unix_s: u64) -> Result<Verified<HostCertificate>, Refusal> {
        let certificate = self.verify_path(der, |_| Ok(unix_s))?;
        certificate.check_period(unix_s)?;
        Ok(Verified::vouch(certificate))
    }

    /// As [`verify`](TrustAnchor::verify), for a host that only knows that it is not earlier than `unix_s`, because its clock is
    /// behind its own certificate. To such a host a later beginning says nothing but that it is later than it thought.
    ///
    /// # Errors
    /// As there; a period is refused only if it ended before `unix_s`.
    pub fn verify_since(&self, der: &[u8], unix_s: u64) -> Result<Verified<HostCertificate>, Refusal> {
        let certificate = self.verify_path(der, |host| Ok(first_second(host)?.max(unix_s)))?;
        certificate.check_period(certificate.not_before_unix().max(unix_s))?;
        Ok(Verified::vouch(certificate))
    }

    /// Whether `other` is a certificate of the same authority: for the same name and the same key, so
    /// that each vouches for what was issued under the other (RFC 4949, "certificate renewal").
    #[must_use]
    pub fn is_same_authority(&self, other: &TrustAnchor) -> bool {
        (self.path.subject.as_ref(), &self.path.subject_public_key_info, self.profile)
            == (other.path.subject.as_ref(), &other.path.subject_public_key_info, other.profile)
    }

    /// Whether `other` is this certificate, or another one that this authority has made of itself and
    /// that issues for the same names. Name and key alone say nothing of who made it: everybody can
    /// write them down.
    #[must_use]
    pub fn is_renewed_by(&self, other: &TrustAnchor) -> bool {
        self.der == other.der
            || (self.is_same_authority(other)
                && self.path.name_constraints == other.path.name_constraints
                && self.has_signed(other).unwrap_or(false))
    }

    fn has_signed(&self, other: &TrustAnchor) -> Option<bool> {
        let certificate = Certificate::from_der(&other.der).ok()?;
        let signed = certificate.tbs_certificate().to_der().ok()?;
        let algorithm = certificate.signature_algorithm().to_der().ok()?;
        Some(self.check_signature(&algorithm, &signed, certificate.signature().as_bytes()?).is_ok())
    }

    /// The authority's public key, as the bit string of a SubjectPublicKeyInfo holds it.
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// As [`verify`](TrustAnchor::verify), but at the first second of the certificate's own period: for a host's own
    /// certificate, which has to load also when it has expired so that the operator hears when, and for the authority's
    /// record. Never for a certificate that came from the network.
    ///
    /// # Errors
    /// As there, except for the period.
    pub fn verify_whenever(&self, der: &[u8]) -> Result<Verified<HostCertificate>, Refusal> {
        self.verify_path(der, first_second).map(Verified::vouch)
    }

    fn verify_path(
        &self,
        der: &[u8],
        time: impl FnOnce(&[u8]) -> Result<u64, Refusal>,
    ) -> Result<HostCertificate, Refusal> {
        if der.len() > MAX_CERTIFICATE_LEN {
            return Err(Refusal::Malformed("length"));
        }
        let chain = Chain::split(der)?;
        let borrowed = CertificateDer::from(chain.host);
        let end = EndEntityCert::try_from(&borrowed).map_err(|error| Refusal::from_path(&error))?;
        let between: Vec<CertificateDer<'_>> = chain.issuer.map(CertificateDer::from).into_iter().collect();
        self.check_issuers(&end, between.first())?;
        let time = UnixTime::since_unix_epoch(Duration::from_secs(time(chain.host)?));
        end.verify_for_usage(SIGNATURES, std::slice::from_ref(&self.path), &between, time, PURPOSE, None, None)
            .map_err(|error| Refusal::from_path(&error))?;
        let certificate = HostCertificate::from_validated(chain.host)?;
        let certificate = match chain.issuer {
            Some(issuer) => lease::of_validated(certificate, issuer, der)?,
            None => certificate,
        };
        if certificate.profile() == self.profile { Ok(certificate) } else { Err(Refusal::WrongProfile) }
    }

    /// Checks the path of one certificate for `purpose`, that of another holder than a host.
    pub(super) fn check_path_for(&self, der: &[u8], unix_s: u64, purpose: Purpose) -> Result<(), Refusal> {
        if der.len() > MAX_CERTIFICATE_LEN {
            return Err(Refusal::Malformed("length"));
        }
        let borrowed = CertificateDer::from(der);
        let end = EndEntityCert::try_from(&borrowed).map_err(|error| Refusal::from_path(&error))?;
        self.check_issuers(&end, None)?;
        let time = UnixTime::since_unix_epoch(Duration::from_secs(unix_s));
        end.verify_for_usage(SIGNATURES, std::slice::from_ref(&self.path), &[], time, purpose, None, None)
            .map(drop)
            .map_err(|error| Refusal::from_path(&error))
    }

    /// Whether the names on the certificates lead here. The library looks at the period first; "another site" is the better
    /// answer when both are true. A certificate behind the host's that its path has no use for is none of ours.
    fn check_issuers(&self, end: &EndEntityCert<'_>, between: Option<&CertificateDer<'_>>) -> Result<(), Refusal> {
        let own = self.path.subject.as_ref();
        let Some(between) = between else {
            return if end.issuer() == own { Ok(()) } else { Err(Refusal::ForeignIssuer) };
        };
        let issuer = EndEntityCert::try_from(between).map_err(|error| Refusal::from_path(&error))?;
        if issuer.issuer() != own {
            return Err(Refusal::ForeignIssuer);
        }
        if end.issuer() != issuer.subject() || issuer.subject() == own {
            return Err(Refusal::Malformed("chain"));
        }
        Ok(())
    }
}

impl fmt::Debug for TrustAnchor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustAnchor").field("site_name", &self.site_name).finish_non_exhaustive()
    }
}

fn may_sign_certificates(certificate: &Certificate) -> bool {
    let content = certificate.tbs_certificate();
    let is_authority = matches!(content.get_extension::<BasicConstraints>(), Ok(Some((_, basic))) if basic.ca);
    let signs = match content.get_extension::<KeyUsage>() {
        Ok(Some((_, usage))) => usage.key_cert_sign(),
        Ok(None) => true,
        Err(_) => false,
    };
    is_authority && signs
}

pub(super) fn first_second(der: &[u8]) -> Result<u64, Refusal> {
    let certificate = Certificate::from_der(der).map_err(|_| Refusal::Malformed("structure"))?;
    Ok(certificate.tbs_certificate().validity().not_before.to_unix_duration().as_secs())
}
