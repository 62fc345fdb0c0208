//! An authority for tests that can also issue what no authority should.

use std::time::Duration;

use identity::certificate::names::Names;
use identity::certificate::{OPERATOR_PURPOSE, TrustAnchor};
use identity::pem;
use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ED25519,
};

/// 2027-01-15T08:00:00Z, when everything here is issued.
pub(crate) const ISSUED_UNIX_S: u64 = 1_800_000_000;
/// A day, in seconds.
pub(crate) const DAY_S: u64 = 86_400;

/// An authority.
pub(crate) struct Authority {
    pub(crate) der: Vec<u8>,
    pub(crate) issuer: Issuer<'static, KeyPair>,
}

/// A host's certificate and key.
pub(crate) struct Host {
    pub(crate) der: Vec<u8>,
    pub(crate) key: KeyPair,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        Self::with(name, |_| {})
    }

    pub(crate) fn with(name: &str, change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = dated(365 * DAY_S);
        params.distinguished_name = common_name(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        change(&mut params);
        let key = new_key();
        let der = params.self_signed(&key).expect("authority").der().to_vec();
        Authority { der, issuer: Issuer::new(params, key) }
    }

    pub(crate) fn anchor(&self) -> TrustAnchor {
        TrustAnchor::from_der(&self.der).expect("a proper authority")
    }

    /// A host as it should be, after `change`.
    pub(crate) fn issue(&self, change: impl FnOnce(&mut CertificateParams)) -> Host {
        self.issue_for(new_key(), change)
    }

    pub(crate) fn issue_for(&self, key: KeyPair, change: impl FnOnce(&mut CertificateParams)) -> Host {
        let mut params = dated(30 * DAY_S);
        params.distinguished_name = common_name("a");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.custom_extensions = vec![names_extension("020000000001", &["10.0.0.1"])];
        change(&mut params);
        let der = params.signed_by(&key, &self.issuer).expect("host").der().to_vec();
        Host { der, key }
    }

    /// The identity file of `host`.
    pub(crate) fn identity_pem(&self, host: &Host) -> String {
        let parts = [
            pem::encode(pem::CERTIFICATE, &host.der),
            pem::encode(pem::CERTIFICATE, &self.der),
            pem::encode(pem::PRIVATE_KEY, host.key.serialized_der()),
            pem::encode(pem::SITE_KEY, &[9; 32]),
        ];
        parts.iter().map(|part| part.as_str()).collect()
    }
}

/// Makes a manager of a host.
pub(crate) fn as_operator(params: &mut CertificateParams) {
    params.distinguished_name.push(DnType::OrganizationalUnitName, "manager");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::Other(OPERATOR_PURPOSE.to_vec())];
    params.custom_extensions = Vec::new();
}

pub(crate) fn new_key() -> KeyPair {
    KeyPair::generate_for(&PKCS_ED25519).expect("key")
}

pub(crate) fn common_name(name: &str) -> DistinguishedName {
    let mut subject = DistinguishedName::new();
    subject.push(DnType::CommonName, name);
    subject
}

/// subjectAltName as it should be.
pub(crate) fn names_extension(mac: &str, addresses: &[&str]) -> CustomExtension {
    let mac = u64::from_str_radix(mac, 16).expect("digits").to_be_bytes();
    let mac = wire::MacAddress(mac[2..].try_into().expect("six bytes"));
    let addresses = addresses.iter().map(|address| address.parse().expect("address")).collect();
    san(Names::new(mac, addresses).expect("names").to_extension_value().expect("value"))
}

/// subjectAltName with this content, whatever it is.
pub(crate) fn san(content: Vec<u8>) -> CustomExtension {
    CustomExtension::from_oid_content(&[2, 5, 29, 17], content)
}

fn dated(seconds: u64) -> CertificateParams {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let mut params = CertificateParams::default();
    params.not_before = epoch + Duration::from_secs(ISSUED_UNIX_S);
    params.not_after = epoch + Duration::from_secs(ISSUED_UNIX_S + seconds);
    params
}
