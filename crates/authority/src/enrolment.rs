//! The host's half of enrolment: make a key and a request, and later put the answer and the key together. By file here, by
//! token in [`by_token`].

pub mod by_token;

use identity::pem;
use identity::signing::ed25519_pkcs8_from_seed;
use identity::{HostIdentity, Refusal};
use rcgen::{CertificateParams, KeyPair, KeyUsagePurpose};
use zeroize::Zeroizing;

use crate::site::{join, names_extension, subject};
use crate::{Error, Random, Request, random_bytes};

/// A new key and the request for its certificate.
pub struct KeyAndRequest {
    /// The private key in PEM; it never leaves the host.
    pub key_pem: Zeroizing<String>,
    /// The request (PKCS#10) in PEM; it goes to the manager and is no secret.
    pub request_pem: String,
}

/// Makes an Ed25519 key and a request for what `request` says. The period in `request` is the manager's to decide and does
/// not travel.
///
/// # Errors
/// Only when the encoder fails.
pub fn request(request: &Request, random: &mut Random<'_>) -> Result<KeyAndRequest, Error> {
    let key_der = ed25519_pkcs8_from_seed(&random_bytes(random))?;
    let pair = KeyPair::try_from(key_der.as_slice())?;
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(request.name(), Some(request.role().name()));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.custom_extensions = vec![names_extension(request.names())?];
    let signed = params.serialize_request(&pair)?;
    Ok(KeyAndRequest {
        key_pem: pem::encode(pem::PRIVATE_KEY, &key_der),
        request_pem: pem::encode(pem::CERTIFICATE_REQUEST, signed.der()).to_string(),
    })
}

/// Puts the host's key and the bundle that came back together. An expired certificate is refused; one whose period has not
/// begun is not, because a host that was just set up often has no clock yet.
///
/// # Errors
/// [`Error::Identity`] when the parts do not fit or the certificate has expired.
pub fn install(key_pem: &str, bundle_pem: &str, unix_s: u64) -> Result<(Zeroizing<String>, HostIdentity), Error> {
    let (text, identity) = join(key_pem, bundle_pem)?;
    match identity.check_validity(unix_s) {
        Err(refusal @ Refusal::Expired { .. }) => Err(Error::Expired(refusal)),
        _ => Ok((text, identity)),
    }
}
