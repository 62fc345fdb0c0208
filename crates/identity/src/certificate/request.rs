//! Certificate requests (PKCS#10, RFC 2986): what a host asks its authority for.

use std::fmt;
use std::net::Ipv4Addr;

use rustls_pki_types::SignatureVerificationAlgorithm;
use webpki::aws_lc_rs as algorithms;
use wire::MacAddress;
use x509_cert::der::oid::{AssociatedOid, ObjectIdentifier};
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::request::{CertReq, CertReqInfo, ExtensionReq};

use super::host::SECOND_KEY;
use super::names::Names;
use super::public_key::{KeyKind, PublicKey};
use super::subject::{Role, common_name, role};
use super::{BadSignature, Refusal};
use crate::hash::sha256;
use crate::limits::MAX_CERTIFICATE_LEN;
use crate::pem::{self, PemError};
use crate::{Generation, renewal, sealing};

/// Marks a request for shared keys; its value is an INTEGER, the generation that the host has. The
/// arc is that of UUIDs (X.667).
const SHARED_KEYS: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.25.1383560043");
/// The same as numbers, for who makes requests.
pub const SHARED_KEYS_EXTENSION: &[u64] = &[2, 25, 1_383_560_043];

const UNREADABLE: Refusal = Refusal::Malformed("list of requested extensions");

/// A request whose maker proved to hold the private key. Nothing else in it is proved: the manager decides.
pub struct CertificateRequest {
    name: String,
    role: Role,
    names: Names,
    key: PublicKey,
    answer_key: Option<[u8; sealing::KEY_LEN]>,
    has_generation: Option<Generation>,
}

/// Why a request cannot be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// The file is not one PEM block labelled as a request.
    File(PemError),
    /// The signature under it is not that of its key.
    Signature(BadSignature),
    /// What it asks for makes no sense.
    Content(Refusal),
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestError::File(error) => error.fmt(f),
            RequestError::Signature(_) => f.write_str("the request is not signed by the key it names"),
            RequestError::Content(refusal) => write!(f, "the request is refused: {refusal}"),
        }
    }
}

impl std::error::Error for RequestError {}

impl From<Refusal> for RequestError {
    fn from(refusal: Refusal) -> Self {
        RequestError::Content(refusal)
    }
}

impl CertificateRequest {
    /// Reads a request from a text that holds exactly one PEM block and checks its signature.
    ///
    /// # Errors
    /// [`RequestError`]; a bad signature is found before the content is looked at.
    pub fn from_pem(text: &str) -> Result<Self, RequestError> {
        Self::from_der(&pem::single(text, pem::CERTIFICATE_REQUEST).map_err(RequestError::File)?)
    }

    /// Reads a request in DER and checks its signature.
    ///
    /// # Errors
    /// As [`from_pem`](CertificateRequest::from_pem).
    pub fn from_der(der: &[u8]) -> Result<Self, RequestError> {
        if der.len() > MAX_CERTIFICATE_LEN {
            return Err(Refusal::Malformed("length").into());
        }
        let request = CertReq::from_der(der).map_err(|_| Refusal::Malformed("structure"))?;
        check_possession(&request)?;
        Ok(CertificateRequest {
            name: common_name(&request.info.subject)?,
            role: role(&request.info.subject),
            names: requested_names(&request.info)?,
            key: PublicKey::from_spki(&request.info.public_key)?,
            answer_key: requested(&request.info, SECOND_KEY)?.and_then(|spki| renewal::from_spki(&spki)),
            has_generation: requested_keys(&request.info)?,
        })
    }

    /// The name that the host asks for.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The role that it asks for.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// The addresses that it asks for.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The hardware address that it asks for.
    #[must_use]
    pub fn mac(&self) -> MacAddress {
        self.names.mac()
    }

    /// The IPv4 addresses that it asks for.
    #[must_use]
    pub fn addresses(&self) -> &[Ipv4Addr] {
        self.names.addresses()
    }

    /// The kind of its key.
    #[must_use]
    pub fn key_kind(&self) -> KeyKind {
        self.key.kind()
    }

    /// Its public key, as the bit string of a SubjectPublicKeyInfo holds it.
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        self.key.bytes()
    }

    /// What the answer is to be sealed to, where the request names a key for it: one that a host's
    /// own program makes does.
    #[must_use]
    pub fn answer_key(&self) -> Option<[u8; sealing::KEY_LEN]> {
        self.answer_key
    }

    /// If the host wants no other certificate, but the keys that it shares with others as they are
    /// now: which ones it has.
    #[must_use]
    pub fn has_generation(&self) -> Option<Generation> {
        self.has_generation
    }
}

/// A request of who is to be an operator: his name, and a key whose private half its maker has.
/// Whose key it is the manager has to know otherwise: everybody can write a name.
pub struct OperatorRequest {
    name: String,
    key: PublicKey,
}

impl OperatorRequest {
    /// Reads a request from a text that holds exactly one PEM block and checks its signature.
    ///
    /// # Errors
    /// [`RequestError`]; also where the key is not one of Ed25519.
    pub fn from_pem(text: &str) -> Result<OperatorRequest, RequestError> {
        let der = pem::single(text, pem::CERTIFICATE_REQUEST).map_err(RequestError::File)?;
        if der.len() > MAX_CERTIFICATE_LEN {
            return Err(Refusal::Malformed("length").into());
        }
        let request = CertReq::from_der(&der).map_err(|_| Refusal::Malformed("structure"))?;
        check_possession(&request)?;
        let key = PublicKey::from_spki(&request.info.public_key)?;
        if key.kind() != KeyKind::Ed25519 {
            return Err(Refusal::UnsupportedAlgorithm.into());
        }
        Ok(OperatorRequest { name: common_name(&request.info.subject)?, key })
    }

    /// The name that he writes himself with.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// His public key, as the bit string of a SubjectPublicKeyInfo holds it.
    #[must_use]
    pub fn public_key(&self) -> &[u8] {
        self.key.bytes()
    }

    /// What he and the manager compare: the SHA-256 of that key, in hexadecimal digits.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        sha256(&[self.key.bytes()]).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl fmt::Debug for OperatorRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperatorRequest").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for CertificateRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateRequest")
            .field("name", &self.name)
            .field("names", &self.names)
            .finish_non_exhaustive()
    }
}

/// Requests are signed with the usual algorithms of PKCS#10, not with those of our own messages, so that any tool can make
/// one: ECDSA in DER, RSA with the padding of PKCS#1 version 1.5.
fn check_possession(request: &CertReq) -> Result<(), RequestError> {
    let algorithm: &dyn SignatureVerificationAlgorithm = match KeyKind::of(&request.info.public_key)? {
        KeyKind::Ed25519 => algorithms::ED25519,
        KeyKind::EcdsaP256 => algorithms::ECDSA_P256_SHA256,
        KeyKind::Rsa => algorithms::RSA_PKCS1_2048_8192_SHA256,
    };
    let named = request.algorithm.to_der().map_err(|_| Refusal::Malformed("algorithm"))?;
    // The library's identifier lacks the two bytes of the sequence around it.
    if named.get(2..) != Some(algorithm.signature_alg_id().as_ref()) {
        return Err(Refusal::UnsupportedAlgorithm.into());
    }
    let key = request.info.public_key.subject_public_key.as_bytes().ok_or(Refusal::Malformed("public key"))?;
    let signature = request.signature.as_bytes().ok_or(RequestError::Signature(BadSignature))?;
    let message = request.info.to_der().map_err(|_| Refusal::Malformed("structure"))?;
    algorithm.verify_signature(key, &message, signature).map_err(|_| RequestError::Signature(BadSignature))
}

fn requested_names(info: &CertReqInfo) -> Result<Names, Refusal> {
    let names = requested(info, SubjectAltName::OID)?.ok_or(Refusal::NoMac)?;
    let SubjectAltName(names) = SubjectAltName::from_der(&names).map_err(|_| UNREADABLE)?;
    Names::from_general_names(&names)
}

fn requested_keys(info: &CertReqInfo) -> Result<Option<Generation>, Refusal> {
    let Some(value) = requested(info, SHARED_KEYS)? else { return Ok(None) };
    u32::from_der(&value).map(|number| Some(Generation(number))).map_err(|_| UNREADABLE)
}

/// The value of the first requested extension of this kind.
fn requested(info: &CertReqInfo, kind: ObjectIdentifier) -> Result<Option<Vec<u8>>, Refusal> {
    for attribute in info.attributes.iter().filter(|attribute| attribute.oid == ExtensionReq::OID) {
        for value in attribute.values.iter() {
            let ExtensionReq(extensions) = value.decode_as().map_err(|_| UNREADABLE)?;
            if let Some(found) = extensions.iter().find(|extension| extension.extn_id == kind) {
                return Ok(Some(found.extn_value.as_bytes().to_vec()));
            }
        }
    }
    Ok(None)
}
