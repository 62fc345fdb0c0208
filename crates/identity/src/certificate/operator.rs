//! Certificates of operators: people who give a site's service orders (record 0108).
//!
//! One is marked by an extended key usage of its own and names no hardware address. So no host takes
//! an operator for a host, and the service takes no host for an operator.

use std::fmt;

use webpki::KeyUsage as Purpose;
use x509_cert::Certificate;
use x509_cert::der::Decode;

use super::subject::{common_name, texts_of_unit};
use super::{BadSignature, PublicKey, Refusal, Serial, TrustAnchor, Verified};

/// The purpose of an operator's certificate, in the arc of UUIDs (X.667), for who makes them.
pub const OPERATOR_PURPOSE: &[u64] = &[2, 25, 1_383_559_024];
/// The same as DER content.
const PURPOSE: &[u8] = &[0x69, 0x85, 0x93, 0xdd, 0xde, 0x70];

/// What an operator may do; each may do what those before it may. It is the subject's
/// organizational unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperatorRole {
    /// Looks.
    Viewer,
    /// Also lets hosts and printers in.
    Operator,
    /// Also puts hosts out, and decides how strict they are.
    Manager,
}

impl OperatorRole {
    /// All of them.
    pub const ALL: [OperatorRole; 3] = [OperatorRole::Viewer, OperatorRole::Operator, OperatorRole::Manager];

    /// The word in certificates, on the command line and in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            OperatorRole::Viewer => "viewer",
            OperatorRole::Operator => "operator",
            OperatorRole::Manager => "manager",
        }
    }

    /// The role that is named so.
    #[must_use]
    pub fn from_name(name: &str) -> Option<OperatorRole> {
        OperatorRole::ALL.into_iter().find(|role| role.name() == name)
    }
}

impl fmt::Display for OperatorRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The certificate of an operator.
#[derive(Clone)]
pub struct OperatorCertificate {
    name: String,
    role: OperatorRole,
    not_before_unix: u64,
    not_after_unix: u64,
    serial: Serial,
    key: PublicKey,
    der: Vec<u8>,
}

impl OperatorCertificate {
    fn from_validated(der: &[u8]) -> Result<Self, Refusal> {
        let certificate = Certificate::from_der(der).map_err(|_| Refusal::Malformed("structure"))?;
        let content = certificate.tbs_certificate();
        let role = texts_of_unit(content.subject()).find_map(OperatorRole::from_name);
        Ok(OperatorCertificate {
            name: common_name(content.subject())?,
            role: role.ok_or(Refusal::Malformed("role"))?,
            not_before_unix: content.validity().not_before.to_unix_duration().as_secs(),
            not_after_unix: content.validity().not_after.to_unix_duration().as_secs(),
            serial: Serial::of(content.serial_number().as_bytes()),
            key: PublicKey::from_spki(content.subject_public_key_info())?,
            der: der.to_vec(),
        })
    }

    /// Who it is: the subject's common name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What he may do.
    #[must_use]
    pub fn role(&self) -> OperatorRole {
        self.role
    }

    /// The first second of its period, in Unix seconds.
    #[must_use]
    pub fn not_before_unix(&self) -> u64 {
        self.not_before_unix
    }

    /// The last second of its period, in Unix seconds.
    #[must_use]
    pub fn not_after_unix(&self) -> u64 {
        self.not_after_unix
    }

    /// Its serial number, in lower-case hexadecimal digits.
    #[must_use]
    pub fn serial_hex(&self) -> String {
        self.serial.to_string()
    }

    /// The certificate in DER.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    pub(crate) fn public_bytes(&self) -> &[u8] {
        self.key.bytes()
    }
}

impl fmt::Debug for OperatorCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("OperatorCertificate");
        shown.field("name", &self.name).field("role", &self.role).finish_non_exhaustive()
    }
}

impl Verified<OperatorCertificate> {
    /// Checks that the owner of this certificate signed `message`.
    ///
    /// # Errors
    /// [`BadSignature`], whatever is wrong with the signature.
    pub fn verify_signature(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        self.key.verify(message, signature)
    }
}

impl TrustAnchor {
    /// Checks that this authority issued `der` to an operator and that `unix_s` lies in its period.
    /// Whether the site still has him is for the site to say.
    ///
    /// # Errors
    /// As [`verify`](TrustAnchor::verify); [`Refusal::WrongUsage`] for the certificate of a host.
    pub fn verify_operator(&self, der: &[u8], unix_s: u64) -> Result<Verified<OperatorCertificate>, Refusal> {
        self.check_path_for(der, unix_s, Purpose::required(PURPOSE))?;
        let certificate = OperatorCertificate::from_validated(der)?;
        if unix_s > certificate.not_after_unix {
            return Err(Refusal::Expired { not_after_unix: certificate.not_after_unix });
        }
        Ok(Verified::vouch(certificate))
    }

    /// The same, at the first second of its period: for the site's record, and for an operator's
    /// own.
    ///
    /// # Errors
    /// As there, except for the period.
    pub fn verify_operator_whenever(&self, der: &[u8]) -> Result<Verified<OperatorCertificate>, Refusal> {
        self.verify_operator(der, super::anchor::first_second(der)?)
    }
}
