//! What a server shows to web browsers, which show no certificate themselves (record 0117).
//!
//! It is the identity that a host has of its site, or any certificate for web servers with its chain
//! and its key. Here a browser decides what it believes, so names are those that browsers look for:
//! subjectAltName alone (RFC 6125, section 6.4.4).

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::NoServerSessionStorage;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ServerConfig, SignatureAlgorithm};
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use super::{Clock, Server, Time, TlsError};
use crate::hash::sha256;
use crate::host::HostIdentity;
use crate::limits::{MAX_ADDRESSES, MAX_CERTIFICATE_LEN};
use crate::pem;

/// Certificates that are shown; a chain of the web has three or four.
const CHAIN_MAX: usize = 8;
/// Names for servers in one certificate.
const NAMES_MAX: usize = 64;

/// A certificate with its chain and its key.
pub struct Pages {
    shown: Arc<CertifiedKey>,
    addresses: Vec<IpAddr>,
    names: Vec<String>,
    not_before_unix: u64,
    not_after_unix: u64,
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("names", &self.names).field("addresses", &self.addresses).finish_non_exhaustive()
    }
}

impl Pages {
    /// Reads an identity of a site, or a file with a certificate, the chain behind it, and its key.
    ///
    /// # Errors
    /// The file is neither, its key is another one's, or cannot be used with TLS 1.3.
    pub fn from_pem(text: &str) -> Result<Pages, TlsError> {
        let blocks = pem::blocks(text).map_err(|_| TlsError::Unreadable)?;
        let of = |label: &'static str| blocks.iter().filter(move |block| block.label == label);
        let key = of(pem::PRIVATE_KEY).next().ok_or(TlsError::Key)?;
        // An identity has certificates of others of its site as well, which are nobody's chain here.
        let chain: Vec<CertificateDer<'static>> = match HostIdentity::from_pem(text) {
            Ok(own) => {
                [own.certificate().der(), own.anchor().der()].map(|der| CertificateDer::from(der.to_vec())).into()
            }
            Err(_) => of(pem::CERTIFICATE).map(|block| CertificateDer::from(block.bytes.to_vec())).collect(),
        };
        Pages::of(chain, &key.bytes)
    }

    fn of(chain: Vec<CertificateDer<'static>>, key: &[u8]) -> Result<Pages, TlsError> {
        let own = chain.first().filter(|own| own.len() <= MAX_CERTIFICATE_LEN && chain.len() <= CHAIN_MAX);
        let certificate = own.and_then(|own| Certificate::from_der(own).ok()).ok_or(TlsError::Unreadable)?;
        let content = certificate.tbs_certificate();
        let alternative = content.get_extension::<SubjectAltName>().map_err(|_| TlsError::Unreadable)?;
        let general = alternative.map(|(_, SubjectAltName(names))| names).unwrap_or_default();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.to_vec()));
        let key = aws_lc_rs::sign::any_supported_type(&key).map_err(|_| TlsError::Key)?;
        let shown = CertifiedKey::new(chain, key);
        shown.keys_match().map_err(|_| TlsError::OtherKey)?;
        Ok(Pages {
            shown: Arc::new(shown),
            addresses: general.iter().filter_map(address).take(2 * MAX_ADDRESSES).collect(),
            names: general.iter().filter_map(name).take(NAMES_MAX).collect(),
            not_before_unix: content.validity().not_before.to_unix_duration().as_secs(),
            not_after_unix: content.validity().not_after.to_unix_duration().as_secs(),
        })
    }

    /// The addresses that it is for.
    #[must_use]
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }

    /// The names of servers that it is for, in small letters; one with an asterisk is for many.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The first second of its period.
    #[must_use]
    pub fn not_before_unix(&self) -> u64 {
        self.not_before_unix
    }

    /// The last second of its period.
    #[must_use]
    pub fn not_after_unix(&self) -> u64 {
        self.not_after_unix
    }

    /// SHA-256 of the certificate, as browsers show it: pairs of hexadecimal digits.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let digest = self.shown.cert.first().map(|own| sha256(&[own])).unwrap_or_default();
        digest.map(|byte| format!("{byte:02X}")).join(":")
    }

    /// Whether its key is Ed25519, which no browser is known to take in TLS.
    #[must_use]
    pub fn is_ed25519(&self) -> bool {
        self.shown.key.algorithm() == SignatureAlgorithm::ED25519
    }

    /// What accepts connections with it, of TLS 1.3 alone. No client is asked for a certificate: a
    /// browser would ask the person at it.
    ///
    /// # Errors
    /// What the library says.
    pub fn server(&self, clock: Clock) -> Result<Server, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_details(provider, Arc::new(Time(clock)))
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(&self.shown))));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Server { config: Arc::new(config), anchor: None, clock })
    }
}

fn address(general: &GeneralName) -> Option<IpAddr> {
    let GeneralName::IpAddress(bytes) = general else { return None };
    let bytes = bytes.as_bytes();
    let ipv4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from).ok();
    ipv4.or_else(|| <[u8; 16]>::try_from(bytes).map(IpAddr::from).ok())
}

fn name(general: &GeneralName) -> Option<String> {
    let GeneralName::DnsName(name) = general else { return None };
    Some(name.as_str().to_ascii_lowercase())
}
