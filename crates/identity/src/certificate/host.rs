//! The fields of a host's certificate.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use wire::MacAddress;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::ext::pkix::{KeyUsage, SubjectAltName};

use super::names::Names;
use super::public_key::{KeyKind, PublicKey};
use super::subject::{Role, common_name, role};
use super::{BadSignature, Refusal, Serial, Verified, lease};
use crate::paper;
use crate::profile::Profile;

/// subjectAltPublicKeyInfo (X.509 of 2019, section 9.8.1): a second key of the subject. The authority signs it with all the rest.
pub(super) const SECOND_KEY: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.29.72");
/// The same as the encoder of certificates wants it.
pub const SECOND_KEY_EXTENSION: &[u64] = &[2, 5, 29, 72];

/// The certificate of a host: its name, addresses, role, period and public key.
#[derive(Clone)]
pub struct HostCertificate {
    name: String,
    role: Role,
    names: Names,
    not_before_unix: u64,
    not_after_unix: u64,
    serial: Serial,
    key: PublicKey,
    /// What a host of a paper site signs S-ARP, or the handshakes of CLL with.
    paper_key: Option<paper::SecondKey>,
    /// What it stands on besides the authority, if a DHCP server made it.
    lease: Option<lease::Origin>,
    /// The certificate as it travels: with the DHCP server's behind it, if that made it.
    der: Vec<u8>,
}

impl HostCertificate {
    /// Reads the fields of `der`, whose path the caller has validated.
    pub(crate) fn from_validated(der: &[u8]) -> Result<Self, Refusal> {
        let certificate = Certificate::from_der(der).map_err(|_| Refusal::Malformed("structure"))?;
        let content = certificate.tbs_certificate();
        let usage = content.get_extension::<KeyUsage>().map_err(|_| Refusal::Malformed("key usage"))?;
        if usage.is_some_and(|(_, usage)| !usage.digital_signature()) {
            return Err(Refusal::WrongUsage);
        }
        let (_, SubjectAltName(general_names)) = content
            .get_extension()
            .map_err(|_| Refusal::Malformed("subject alternative name"))?
            .ok_or(Refusal::NoMac)?;
        Ok(HostCertificate {
            name: common_name(content.subject())?,
            role: role(content.subject()),
            names: Names::from_general_names(&general_names)?,
            not_before_unix: content.validity().not_before.to_unix_duration().as_secs(),
            not_after_unix: content.validity().not_after.to_unix_duration().as_secs(),
            serial: Serial::of(content.serial_number().as_bytes()),
            key: PublicKey::from_spki(content.subject_public_key_info())?,
            paper_key: second_key(&certificate)?,
            lease: None,
            der: der.to_vec(),
        })
    }

    /// The host's name within its site: the subject's common name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its one hardware address.
    #[must_use]
    pub fn mac(&self) -> MacAddress {
        self.names.mac()
    }

    /// Its IPv4 addresses; none in a base certificate, which binds the hardware address only.
    #[must_use]
    pub fn addresses(&self) -> &[Ipv4Addr] {
        self.names.addresses()
    }

    /// All its addresses.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Its IPv6 addresses. A host may have others that no certificate names.
    #[must_use]
    pub fn ipv6_addresses(&self) -> &[Ipv6Addr] {
        self.names.ipv6_addresses()
    }

    /// Whether it is a base certificate, with which a host may get an address by DHCP: it names none, IPv4 or IPv6.
    #[must_use]
    pub fn is_base(&self) -> bool {
        self.addresses().is_empty() && self.ipv6_addresses().is_empty()
    }

    /// What it may do.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether it may forward what others sent.
    #[must_use]
    pub fn is_router(&self) -> bool {
        self.role == Role::Router
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

    /// The same, made by a DHCP server: it stands on `origin` too, and travels as `chain`.
    pub(super) fn leased(self, origin: lease::Origin, chain: &[u8]) -> HostCertificate {
        HostCertificate { lease: Some(origin), der: chain.to_vec(), ..self }
    }

    /// Whether a DHCP server made it, with a lease.
    #[must_use]
    pub fn is_leased(&self) -> bool {
        self.lease.is_some()
    }

    /// The serial numbers of all certificates that it stands on, its own first. If one of them was taken back it is worth nothing.
    pub(crate) fn serials(&self) -> impl Iterator<Item = &Serial> {
        let others = self.lease.iter().flat_map(|origin| [&origin.base_serial, &origin.server_serial]);
        std::iter::once(&self.serial).chain(others)
    }

    /// The certificate as it travels, in DER: one, or two where a DHCP server made it.
    #[must_use]
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Its serial number: its bytes, the highest first, without a zero in front.
    #[must_use]
    pub fn serial(&self) -> &[u8] {
        self.serial.as_bytes()
    }

    /// Its serial number, in lower-case hexadecimal digits.
    #[must_use]
    pub fn serial_hex(&self) -> String {
        self.serial.to_string()
    }

    /// Whether it binds this hardware address and this IP address to its key.
    #[must_use]
    pub fn binds(&self, mac: MacAddress, address: Ipv4Addr) -> bool {
        self.mac() == mac && self.addresses().contains(&address)
    }

    /// The key that it signs S-ARP with as a record names it: the algorithm's number and the bytes. `None` for RSA.
    #[must_use]
    pub fn record_key(&self) -> Option<(u8, &[u8])> {
        match &self.paper_key {
            Some(key) => Some((key.dsa_length()?.record_number(), key.bytes())),
            None => Some((self.key.kind().record_number()?, self.key.bytes())),
        }
    }

    /// The profile of that key.
    #[must_use]
    pub fn profile(&self) -> Profile {
        if self.paper_key.is_some() { Profile::Paper } else { Profile::Modern }
    }

    /// Compares its period with the time.
    pub(crate) fn check_period(&self, unix_s: u64) -> Result<(), Refusal> {
        if unix_s < self.not_before_unix {
            return Err(Refusal::NotYetValid { not_before_unix: self.not_before_unix });
        }
        if unix_s > self.not_after_unix {
            return Err(Refusal::Expired { not_after_unix: self.not_after_unix });
        }
        Ok(())
    }

    pub(crate) fn public_bytes(&self) -> &[u8] {
        self.key.bytes()
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

    /// The second key of a paper site, as [`SigningKey::public_bytes`](crate::signing::SigningKey) has it.
    pub(crate) fn second_public_bytes(&self) -> Option<&[u8]> {
        self.paper_key.as_ref().map(paper::SecondKey::bytes)
    }

    /// Whether its owner signs handshakes of CLL as the paper has it, with an RSA key of the paper profile.
    #[must_use]
    pub fn signs_as_the_cll_paper(&self) -> bool {
        self.paper_key.as_ref().is_some_and(paper::SecondKey::signs_handshakes)
    }
}

impl Verified<HostCertificate> {
    /// Checks that the owner of this certificate signed `message`. Only a verified certificate has this: who checks a
    /// signature before the certificate has proved nothing.
    ///
    /// # Errors
    /// [`BadSignature`], whatever is wrong with the signature.
    pub fn verify_signature(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        match &self.paper_key {
            Some(key) if key.signs_handshakes() => key.verify(message, signature),
            _ => self.key.verify(message, signature),
        }
    }

    /// As [`verify_signature`](Verified::verify_signature), with the key of [`record_key`](HostCertificate::record_key).
    ///
    /// # Errors
    /// As there.
    pub fn verify_record_signature(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        match &self.paper_key {
            Some(key) if key.dsa_length().is_some() => key.verify(message, signature),
            _ => self.key.verify(message, signature),
        }
    }
}

/// The key of the paper profile in `certificate`, if it has one. Second keys of other kinds are none of ours.
fn second_key(certificate: &Certificate) -> Result<Option<paper::SecondKey>, Refusal> {
    let extensions = certificate.tbs_certificate().extensions().into_iter().flatten();
    let mut found = extensions.filter(|extension| extension.extn_id == SECOND_KEY);
    match (found.next(), found.next()) {
        (None, _) => Ok(None),
        (Some(extension), None) => Ok(paper::SecondKey::from_spki(extension.extn_value.as_bytes())),
        _ => Err(Refusal::Malformed("second key")),
    }
}

impl fmt::Debug for HostCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostCertificate")
            .field("name", &self.name)
            .field("role", &self.role)
            .field("names", &self.names)
            .field("serial", &self.serial_hex())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A host's certificate made by openssl 3.0: Ed25519, names "router" and "a", one hardware and two IP addresses.
    const SAMPLE: &[u8] = include_bytes!("../../tests/data/host.der");

    #[test]
    fn the_sample_reads() {
        let host = HostCertificate::from_validated(SAMPLE).expect("valid");
        assert_eq!((host.name(), host.is_router(), host.addresses().len()), ("a", true, 2));
    }

    proptest! {
        /// The signature is checked before the fields are read, so that nobody gets here with bytes of his own; should he,
        /// nothing panics.
        #[test]
        fn damaged_fields_do_not_panic(damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
            let mut damaged = SAMPLE.to_vec();
            for (at, value) in damage {
                *at.get_mut(&mut damaged) = value;
            }
            let _ = HostCertificate::from_validated(&damaged);
        }
    }
}
