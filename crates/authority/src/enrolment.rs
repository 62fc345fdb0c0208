//! The host's half of enrolment: make a key and a request, and later put the answer and the key together. By file here, by
//! token in [`by_token`]. Renewal is the same with the key that the host has.

pub mod by_service;
pub mod by_token;

use identity::certificate::{Role, SECOND_KEY_EXTENSION, SHARED_KEYS_EXTENSION};
use identity::pem::{self, PemError};
use identity::renewal::{AnswerKey, is_sealed};
use identity::signing::ed25519_pkcs8_from_seed;
use identity::{Generation, HostIdentity, Refusal};
use rcgen::{CertificateParams, CustomExtension, KeyPair, KeyUsagePurpose};
use zeroize::Zeroizing;

use crate::request::check_name;
use crate::site::{join, names_extension, subject};
use crate::{Error, Random, Request, random_bytes};

/// The number of a token as managers see it.
#[must_use]
pub fn number_text(number: u64) -> String {
    format!("{number:016x}")
}

/// The number that [`number_text`] wrote so.
pub(crate) fn number_of(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok().filter(|number| number_text(*number) == text)
}

/// A new key and the request for its certificate.
pub struct KeyAndRequest {
    /// The private key in PEM; it never leaves the host.
    pub key_pem: Zeroizing<String>,
    /// The request (PKCS#10) in PEM; it goes to the manager and is no secret.
    pub request_pem: String,
}

/// Makes an Ed25519 key and a request for what `request` says, which names what the answer is to be
/// sealed to. The period in `request` is the manager's to decide and does not travel.
///
/// # Errors
/// Only when the encoder fails.
pub fn request(request: &Request, random: &mut Random<'_>) -> Result<KeyAndRequest, Error> {
    let key_der = ed25519_pkcs8_from_seed(&random_bytes(random))?;
    let extensions = vec![names_extension(request.names())?, answers(&key_der)?];
    let request_pem = signed_request(request.name(), request.role(), extensions, &key_der)?;
    Ok(KeyAndRequest { key_pem: pem::encode(pem::PRIVATE_KEY, &key_der), request_pem })
}

/// Makes an Ed25519 key for who is to be an operator, and the request for its certificate.
///
/// # Errors
/// [`Error::BadName`], or what the encoder says.
pub fn operator_request(name: &str, random: &mut Random<'_>) -> Result<KeyAndRequest, Error> {
    check_name(name)?;
    let key_der = ed25519_pkcs8_from_seed(&random_bytes(random))?;
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(name, None);
    let signed = params.serialize_request(&KeyPair::try_from(key_der.as_slice())?)?;
    let request_pem = pem::encode(pem::CERTIFICATE_REQUEST, signed.der()).to_string();
    Ok(KeyAndRequest { key_pem: pem::encode(pem::PRIVATE_KEY, &key_der), request_pem })
}

/// Names in a request what the answer is to be sealed to.
fn answers(key_der: &[u8]) -> Result<CustomExtension, Error> {
    Ok(CustomExtension::from_oid_content(SECOND_KEY_EXTENSION, AnswerKey::of(key_der).to_spki()?))
}

/// A request (PKCS#10, in PEM) signed with the key in `key_der`.
fn signed_request(name: &str, role: Role, extensions: Vec<CustomExtension>, key_der: &[u8]) -> Result<String, Error> {
    let pair = KeyPair::try_from(key_der)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = subject(name, Some(role.name()));
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.custom_extensions = extensions;
    let signed = params.serialize_request(&pair)?;
    Ok(pem::encode(pem::CERTIFICATE_REQUEST, signed.der()).to_string())
}

/// A request for another certificate for the key in an identity file, signed with that key. It names what the answer is to be
/// sealed to, so it is no secret: whoever else shows it is given nothing that he can open.
///
/// # Errors
/// [`Error::Identity`], or what the encoder says of the key.
pub fn renewal(identity_pem: &str) -> Result<String, Error> {
    sealed_request(identity_pem, None)
}

/// A request for the keys alone that the host with this identity file shares with others, as they
/// are now. Otherwise as [`renewal`].
///
/// # Errors
/// As there.
pub fn shared_keys(identity_pem: &str) -> Result<String, Error> {
    let Generation(number) = HostIdentity::from_pem(identity_pem)?.generation();
    sealed_request(identity_pem, Some(CustomExtension::from_oid_content(SHARED_KEYS_EXTENSION, der_integer(number))))
}

fn sealed_request(identity_pem: &str, more: Option<CustomExtension>) -> Result<String, Error> {
    let identity = HostIdentity::from_pem(identity_pem)?;
    let certificate = identity.certificate();
    let key_der = private_key(identity_pem)?;
    let extensions = [names_extension(certificate.names())?, answers(&key_der)?].into_iter().chain(more).collect();
    signed_request(certificate.name(), certificate.role(), extensions, &key_der)
}

/// An INTEGER in DER (X.690, section 8.3): as short as it goes, with a zero in front of a number
/// that would look negative.
fn der_integer(number: u32) -> Vec<u8> {
    let bytes = [&[0][..], &number.to_be_bytes()].concat();
    let is_needless = |pair: &[u8]| pair[0] == 0 && pair[1] & 0x80 == 0;
    let first = bytes.windows(2).take_while(|pair| is_needless(pair)).count();
    let content = &bytes[first..];
    [&[0x02, content.len() as u8][..], content].concat()
}

/// Opens what renews an identity file, puts it together with the key there, and checks that it
/// does: same site, name, role and addresses, and a later end, or newer shared keys for the
/// certificate that it has. A bundle that is not sealed is taken as well: the manager may have
/// issued it by hand.
///
/// # Errors
/// [`Error::NoRenewal`] with the reason; [`Error::NothingNew`] if it is what the host has; or as
/// [`install`].
pub fn renewed(identity_pem: &str, answer_pem: &str, unix_s: u64) -> Result<(Zeroizing<String>, HostIdentity), Error> {
    let before = HostIdentity::from_pem(identity_pem)?;
    let key_der = private_key(identity_pem)?;
    let not_ours = Error::NoRenewal("it is not sealed for this host's key");
    let bundle = opened(&key_der, answer_pem).ok_or(not_ours)?;
    let mut own = pem::encode(pem::PRIVATE_KEY, &key_der);
    if holds(&bundle, pem::CERTIFICATE, before.certificate().der())? {
        own.push_str(&served_with(&before, &bundle)?);
        own.push_str(&second_key(identity_pem)?);
    }
    let (text, after) = install(&own, &bundle, unix_s)?;
    let (old, new) = (before.certificate(), after.certificate());
    if !before.anchor().is_renewed_by(after.anchor()) {
        return Err(Error::NoRenewal("it is of another authority, or its certificate is not signed by ours"));
    }
    if after.anchor().not_after_unix() < before.anchor().not_after_unix() {
        return Err(Error::NoRenewal("it has an older certificate of the authority"));
    }
    if (old.name(), old.role(), old.names()) != (new.name(), new.role(), new.names()) {
        return Err(Error::NoRenewal("its certificate has another name, role or address"));
    }
    if after.generation() < before.generation() {
        return Err(Error::NoRenewal("its shared keys are older than those that this host has"));
    }
    if new.der() != old.der() && new.not_after_unix() <= old.not_after_unix() {
        return Err(Error::NoRenewal("its certificate ends no later"));
    }
    let is_same_anchor = before.anchor().der() == after.anchor().der();
    if new.der() != old.der() || after.shared_keys() != before.shared_keys() {
        return Ok((text, after));
    }
    if is_same_anchor {
        return Err(Error::NothingNew(before.generation()));
    }
    // Nothing else in the answer is new to this host, so nothing else of it is taken.
    let text = pem::replaced(identity_pem, pem::CERTIFICATE, before.anchor().der(), after.anchor().der())?;
    let identity = HostIdentity::from_pem(&text)?;
    Ok((text, identity))
}

/// What a DHCP server of the link layer serves with and `bundle` does not bring again: its
/// authority, which goes with its certificate, and masters that a site of before gave it.
fn served_with(identity: &HostIdentity, bundle: &str) -> Result<Zeroizing<String>, Error> {
    let mut text = Zeroizing::new(String::new());
    if let Some(authority) = identity.dhcp_authority() {
        text.push_str(&pem::encode(pem::CERTIFICATE, authority));
    }
    let brings_masters = pem::blocks(bundle)?.iter().any(|block| block.label == pem::DHCP_MASTER);
    if let Some(masters) = identity.dhcp_masters().filter(|_| !brings_masters) {
        text.push_str(&masters.to_pem());
    }
    Ok(text)
}

/// The key that a site of the paper profile made for a host. It goes with its certificate as well.
fn second_key(identity_pem: &str) -> Result<Zeroizing<String>, Error> {
    let blocks = pem::blocks(identity_pem)?;
    let block = blocks.iter().find(|block| block.label == pem::PAPER_KEY);
    Ok(block.map_or_else(Zeroizing::default, |block| pem::encode(pem::PAPER_KEY, &block.bytes)))
}

fn holds(text: &str, label: &str, bytes: &[u8]) -> Result<bool, Error> {
    let blocks = pem::blocks(text)?;
    Ok(blocks.iter().any(|block| block.label == label && block.bytes.as_slice() == bytes))
}

/// What is in an answer; `None` if it is sealed for another key.
fn opened(key_der: &[u8], answer_pem: &str) -> Option<Zeroizing<String>> {
    if is_sealed(answer_pem) {
        return AnswerKey::of(key_der).open(answer_pem).ok();
    }
    Some(Zeroizing::new(answer_pem.to_owned()))
}

/// The host's own key in a file.
fn private_key(identity_pem: &str) -> Result<Zeroizing<Vec<u8>>, Error> {
    let blocks = pem::blocks(identity_pem)?;
    let key = blocks.into_iter().find(|block| block.label == pem::PRIVATE_KEY);
    key.map(|block| block.bytes).ok_or(Error::Pem(PemError::WrongLabel(pem::PRIVATE_KEY)))
}

/// Opens the bundle that came back, and puts the host's key and it together. A bundle that is not
/// sealed is taken as well: its request named nothing to seal to. An expired certificate is
/// refused; one whose period has not begun is not, because a host that was just set up often has no
/// clock yet.
///
/// # Errors
/// [`Error::SealedForOther`]; [`Error::Identity`] when the parts do not fit, or [`Error::Expired`].
pub fn install(key_pem: &str, bundle_pem: &str, unix_s: u64) -> Result<(Zeroizing<String>, HostIdentity), Error> {
    let bundle = match is_sealed(bundle_pem) {
        true => opened(&private_key(key_pem)?, bundle_pem).ok_or(Error::SealedForOther)?,
        false => Zeroizing::new(bundle_pem.to_owned()),
    };
    let (text, identity) = join(key_pem, &bundle)?;
    match identity.check_validity(unix_s) {
        Err(refusal @ Refusal::Expired { .. }) => Err(Error::Expired(refusal)),
        _ => Ok((text, identity)),
    }
}
