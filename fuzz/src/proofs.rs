//! Certificates, keys and the files they come in.

use identity::certificate::names::Names;
use identity::certificate::{CertificateRequest, SECOND_KEY_EXTENSION};
use identity::distributor::verify_with_record;
use identity::profile::KeyLength;
use identity::signing::SigningKey;
use identity::site_key::SiteKey;
use identity::{HostCertificate, HostIdentity, Profile, TrustAnchor, pem};
use rcgen::{CertificateParams, CustomExtension, DistinguishedName, DnType, Issuer, KeyPair, KeyUsagePurpose};
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;

use crate::input::Input;
use crate::site::{self, HOSTS, START_UNIX_S};

/// Object identifier of subjectAltName.
const SUBJECT_ALT_NAME: &[u64] = &[2, 5, 29, 17];

/// Certificates of any kind: none verifies that the site did not sign, and names survive being written and read.
pub fn certificate(data: &[u8]) {
    let mut input = Input::new(data);
    let choice = input.byte();
    let der = input.rest();
    if choice & 1 != 0 {
        return signed_names(der);
    }
    if choice & 2 != 0 {
        return paper_key(der);
    }
    if let Ok(anchor) = TrustAnchor::from_der(der) {
        assert_eq!(anchor.der(), der);
        let _ = (anchor.site_name(), anchor.not_after_unix(), anchor.public_key());
        let verified = anchor.verify(site::value("alpha.certificate"), START_UNIX_S);
        assert!(verified.is_err() || anchor.public_key() == site_anchor().public_key(), "another key verifies");
    }
    for unix_s in [0, START_UNIX_S, u64::MAX] {
        if let Ok(verified) = site_anchor().verify(der, unix_s) {
            check_is_genuine(&verified);
        }
    }
    // No list of this site is among the seeds, so whatever verifies is forged.
    assert!(site_anchor().verify_revocation_list(der).is_err(), "a forged revocation list verifies");
    if let Ok(verified) = site_anchor().verify_whenever(der) {
        check_is_genuine(&verified);
    }
}

fn site_anchor() -> &'static TrustAnchor {
    site::identities()[0].anchor()
}

fn check_is_genuine(certificate: &HostCertificate) {
    let genuine = HOSTS.map(|host| site::value(&format!("{host}.certificate")));
    assert!(genuine.contains(&certificate.der()), "a forged certificate verifies: {certificate:?}");
}

/// The names of a certificate are read only behind a good signature; so the site signs whatever comes.
fn signed_names(names: &[u8]) {
    let read =
        SubjectAltName::from_der(names).ok().and_then(|SubjectAltName(names)| Names::from_general_names(&names).ok());
    if let Some(read) = &read {
        let value = read.to_extension_value().expect("encoded");
        let SubjectAltName(again) = SubjectAltName::from_der(&value).expect("our own encoding");
        assert_eq!(Names::from_general_names(&again).as_ref(), Ok(read));
    }
    let Some(der) = issue(names) else { return };
    match (site_anchor().verify_whenever(&der), read) {
        (Ok(certificate), Some(names)) => {
            assert_eq!((certificate.mac(), certificate.addresses()), (names.mac(), names.addresses()));
        }
        (Ok(certificate), None) => panic!("{certificate:?} has names that cannot be read"),
        (Err(_), _) => {}
    }
}

/// Keys of the paper profile, secret and public, as blocks, in records and in certificates. The site is a modern one.
fn paper_key(bytes: &[u8]) {
    for length in KeyLength::ALL {
        let record = (length.record_number(), bytes);
        assert!(verify_with_record(Profile::Paper, record, b"message", &[1; 40]).is_err(), "nobody signed this");
    }
    if let Ok(key) = SigningKey::from_paper_block(bytes) {
        key.prepare(&[7; 32], 1);
        let record = key.record_key().expect("a number");
        for _ in ["made ahead", "made at once"] {
            let signature = key.sign(b"message").expect("signed");
            assert_eq!(verify_with_record(Profile::Paper, record, b"message", &signature), Ok(()));
        }
        let spki = key.paper_spki().expect("DSA");
        let second = issue_with(vec![CustomExtension::from_oid_content(SECOND_KEY_EXTENSION, spki)]);
        assert!(second.is_none_or(|der| site_anchor().verify_whenever(&der).is_err()), "a weak key in a modern site");
    }
    let second = issue_with(vec![CustomExtension::from_oid_content(SECOND_KEY_EXTENSION, bytes.to_vec())]);
    if let Some(Ok(certificate)) = second.map(|der| site_anchor().verify_whenever(&der)) {
        assert_eq!(certificate.profile(), Profile::Modern);
    }
}

/// A certificate for alpha's key with this value of the extension subjectAltName.
fn issue(names: &[u8]) -> Option<Vec<u8>> {
    issue_with(vec![CustomExtension::from_oid_content(SUBJECT_ALT_NAME, names.to_vec())])
}

/// The same with these extensions, and with alpha's own names where they have none.
fn issue_with(mut extensions: Vec<CustomExtension>) -> Option<Vec<u8>> {
    if extensions.iter().all(|one| one.oid_components().ne(SUBJECT_ALT_NAME.iter().copied())) {
        let names = site::identities()[0].certificate();
        let names = Names::new(names.mac(), names.addresses().to_vec()).ok()?.to_extension_value().ok()?;
        extensions.push(CustomExtension::from_oid_content(SUBJECT_ALT_NAME, names));
    }
    let authority = identity::signing::ed25519_pkcs8_from_seed(site::value("authority.seed").try_into().ok()?).ok()?;
    let authority = KeyPair::try_from(authority.as_slice()).ok()?;
    let mut issuing = CertificateParams::default();
    issuing.distinguished_name = name(&site_anchor().site_name());
    let issuer = Issuer::new(issuing, authority);
    let mut params = CertificateParams::default();
    params.distinguished_name = name("fuzzed");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.custom_extensions = extensions;
    let host = KeyPair::try_from(site::value("alpha.pkcs8")).ok()?;
    Some(params.signed_by(&host, &issuer).ok()?.der().to_vec())
}

fn name(common_name: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common_name);
    name
}

/// PEM files: as text, and as well-formed PEM around any bytes, so that the readers behind it are reached.
pub fn pem(data: &[u8]) {
    let mut input = Input::new(data);
    let labels = [pem::CERTIFICATE, pem::PRIVATE_KEY, pem::SITE_KEY, pem::CERTIFICATE_REQUEST, pem::PAPER_KEY];
    let choice = input.below(labels.len() + 1);
    let Some(&label) = labels.get(choice) else { return read_text(&String::from_utf8_lossy(input.rest())) };
    let bytes = input.rest();
    let text = pem::encode(label, bytes);
    // Nothing is encoded as nothing, which is no block.
    if !bytes.is_empty() && text.len() <= identity::limits::MAX_PEM_LEN {
        assert_eq!(pem::single(&text, label).as_deref().map(Vec::as_slice), Ok(bytes));
    }
    read_text(&text);
    let _ = HostIdentity::from_pem(&site::identity_text(HOSTS[0], Some((label, bytes))));
}

fn read_text(text: &str) {
    for block in pem::blocks(text).unwrap_or_default() {
        let _ = format!("{:?} {}", block.label, block.bytes.len());
    }
    if let Ok(identity) = HostIdentity::from_pem(text) {
        let certificate = identity.certificate();
        let signature = identity.sign(b"mine").expect("signed");
        assert_eq!(certificate.verify_signature(b"mine", &signature), Ok(()), "key and certificate belong together");
    }
    if let Ok(request) = CertificateRequest::from_pem(text) {
        let _ = (request.name(), request.role(), request.names(), request.key_kind(), request.public_key());
    }
    if let Ok(key) = SiteKey::from_pem(text) {
        let again = SiteKey::from_pem(&key.to_pem()).expect("our own text");
        assert_eq!(again.tag(b"label", &[b"part"]), key.tag(b"label", &[b"part"]));
    }
    let _ = SigningKey::from_pkcs8_pem(text);
}
