//! What a host owns: one PEM file with its certificate, the authority's certificate, its private key and the site key;
//! for S-ARP also its request key and the certificates of the site's distributors and DHCP servers, and on a distributor the
//! master. In a site of the paper profile a second private key signs S-ARP (DSA) or the
//! handshakes of CLL (RSA); the certificate names both.

use std::fmt;
use std::sync::Arc;

use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::BasicConstraints;

use crate::certificate::{HostCertificate, Refusal, Role, TrustAnchor, Verified};
use crate::distributor::{RequestKey, RequestMaster};
use crate::pem::{self, Block, PemError};
use crate::profile::Profile;
use crate::signing::SigningKey;
use crate::site_key::SiteKey;
use crate::{KeyError, limits};

/// One of the blocks of an identity file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityBlock {
    /// The certificate of the host.
    Host,
    /// The certificate of the site's authority.
    Authority,
    /// The host's private key.
    PrivateKey,
    /// The site key.
    SiteKey,
    /// The certificate of a key distributor.
    Distributor,
    /// The certificate of a DHCP server.
    DhcpServer,
    /// What the host proves itself to distributors with.
    RequestKey,
    /// What a distributor makes all request keys from.
    RequestMaster,
    /// What a host of a paper site signs S-ARP, or the handshakes of CLL with.
    PaperKey,
}

impl fmt::Display for IdentityBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IdentityBlock::Host => "the host's CERTIFICATE",
            IdentityBlock::Authority => "the authority's CERTIFICATE",
            IdentityBlock::PrivateKey => "the PRIVATE KEY",
            IdentityBlock::SiteKey => "the RINGWALL SITE KEY",
            IdentityBlock::Distributor => "a distributor's CERTIFICATE",
            IdentityBlock::DhcpServer => "a DHCP server's CERTIFICATE",
            IdentityBlock::RequestKey => "the RINGWALL REQUEST KEY",
            IdentityBlock::RequestMaster => "the RINGWALL REQUEST MASTER",
            IdentityBlock::PaperKey => "the RINGWALL PAPER KEY",
        })
    }
}

/// Why an identity file cannot be used; for the operator, one line without the file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityError {
    /// The text is not PEM.
    Pem(PemError),
    /// A block is not there.
    Missing(IdentityBlock),
    /// A block is there twice.
    Repeated(IdentityBlock),
    /// A block of this label does not belong in the file.
    Foreign(String),
    /// A certificate is refused for this reason.
    Certificate(IdentityBlock, Refusal),
    /// A key is refused for this reason.
    Key(IdentityBlock, KeyError),
    /// The private key is not the one in the host's certificate.
    KeyMismatch,
    /// The same for the second key of a paper site.
    PaperKeyMismatch,
}

impl fmt::Display for IdentityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            IdentityError::Pem(error) => write!(f, "{error}; install the identity file again"),
            IdentityError::Missing(block) => write!(f, "{block} is missing; install the identity file again"),
            IdentityError::Repeated(block) => write!(f, "{block} is there twice; keep the one that belongs here"),
            IdentityError::Foreign(label) => write!(f, "a block {label:?} does not belong here; remove it"),
            IdentityError::Certificate(block, refusal) => {
                write!(f, "{block} is refused: {refusal}; have the site issue a new one")
            }
            IdentityError::Key(block, error) => write!(f, "{block} is refused: {error}; replace it"),
            IdentityError::KeyMismatch => f.write_str(
                "the PRIVATE KEY does not belong to the host's CERTIFICATE; use the key that the certificate was requested for",
            ),
            IdentityError::PaperKeyMismatch => f.write_str(
                "the RINGWALL PAPER KEY does not belong to the host's CERTIFICATE; have the site issue the identity again",
            ),
        }
    }
}

impl std::error::Error for IdentityError {}

/// The identity of this host.
pub struct HostIdentity {
    certificate: Verified<HostCertificate>,
    anchor: TrustAnchor,
    key: Arc<SigningKey>,
    record_key: Arc<SigningKey>,
    handshake_key: Arc<SigningKey>,
    site_key: SiteKey,
    distributors: Vec<Verified<HostCertificate>>,
    dhcp_servers: Vec<Verified<HostCertificate>>,
    request_key: Option<RequestKey>,
    request_master: Option<RequestMaster>,
}

impl HostIdentity {
    /// Reads the blocks, in any order, and checks that they belong together. It does not look at the period: see
    /// [`check_validity`](HostIdentity::check_validity).
    ///
    /// # Errors
    /// [`IdentityError`], which names the block and the reason.
    pub fn from_pem(text: &str) -> Result<Self, IdentityError> {
        let mut parts = Parts::default();
        for block in pem::blocks(text).map_err(IdentityError::Pem)? {
            parts.take(block)?;
        }
        let authority = required(parts.authority, IdentityBlock::Authority)?;
        let private_key = required(parts.private_key, IdentityBlock::PrivateKey)?;
        let site_key = required(parts.site_key, IdentityBlock::SiteKey)?;

        let anchor = TrustAnchor::from_der(&authority.bytes)
            .map_err(|refusal| IdentityError::Certificate(IdentityBlock::Authority, refusal))?;
        let hosts = parts.hosts.iter().map(|block| anchor.verify_whenever(&block.bytes));
        let hosts: Vec<_> = hosts.collect::<Result<_, _>>().map_err(host_refused)?;
        let key = SigningKey::from_pkcs8_der(&private_key.bytes).map_err(refused(IdentityBlock::PrivateKey))?;
        let Sorted { certificate, distributors, dhcp_servers } = sort(hosts, key.public_bytes())?;
        let key = Arc::new(key);
        let second = second_key(&certificate, parts.paper_key)?.map(Arc::new);
        let taken = |wanted: bool| second.as_ref().filter(|_| wanted).unwrap_or(&key);
        let record_key = Arc::clone(taken(!certificate.signs_as_the_cll_paper()));
        let handshake_key = Arc::clone(taken(certificate.signs_as_the_cll_paper()));
        let site_key = SiteKey::from_block(&site_key.bytes).map_err(refused(IdentityBlock::SiteKey))?;
        let request_key = parts.request_key.map(|block| RequestKey::from_block(&block.bytes)).transpose();
        let request_master = parts.request_master.map(|block| RequestMaster::from_block(&block.bytes)).transpose();
        Ok(HostIdentity {
            certificate,
            anchor,
            key,
            record_key,
            handshake_key,
            site_key,
            distributors,
            dhcp_servers,
            request_key: request_key.map_err(refused(IdentityBlock::RequestKey))?,
            request_master: request_master.map_err(refused(IdentityBlock::RequestMaster))?,
        })
    }

    /// The host's own certificate, as it goes into handshakes.
    #[must_use]
    pub fn certificate(&self) -> &Verified<HostCertificate> {
        &self.certificate
    }

    /// Whether `unix_s` lies in the certificate's period.
    ///
    /// # Errors
    /// [`Refusal::NotYetValid`] or [`Refusal::Expired`].
    pub fn check_validity(&self, unix_s: u64) -> Result<(), Refusal> {
        self.certificate.check_period(unix_s)
    }

    /// The host's signature over `message`, which [`verify_signature`](Verified::verify_signature) checks: that of its own key, but of
    /// the RSA key where a paper site gave it one.
    ///
    /// # Errors
    /// See [`SigningKey::sign`].
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        self.handshake_key.sign(message)
    }

    /// The host's own key.
    #[must_use]
    pub fn signing_key(&self) -> Arc<SigningKey> {
        Arc::clone(&self.key)
    }

    /// The key that the host signs S-ARP with, which [`HostCertificate::record_key`] names: its own, but in a paper site.
    #[must_use]
    pub fn record_signing_key(&self) -> Arc<SigningKey> {
        Arc::clone(&self.record_key)
    }

    /// The key that [`sign`](HostIdentity::sign) signs with.
    #[must_use]
    pub fn handshake_key(&self) -> Arc<SigningKey> {
        Arc::clone(&self.handshake_key)
    }

    /// The profile of the site.
    #[must_use]
    pub fn profile(&self) -> Profile {
        self.anchor.profile()
    }

    /// The authority that other hosts' certificates are checked against.
    #[must_use]
    pub fn anchor(&self) -> &TrustAnchor {
        &self.anchor
    }

    /// The key that all hosts of the site share.
    #[must_use]
    pub fn site_key(&self) -> &SiteKey {
        &self.site_key
    }

    /// The key distributors that the identity names, on a distributor itself among them.
    #[must_use]
    pub fn distributors(&self) -> &[Verified<HostCertificate>] {
        &self.distributors
    }

    /// The DHCP servers that the identity names, on such a server itself among them.
    #[must_use]
    pub fn dhcp_servers(&self) -> &[Verified<HostCertificate>] {
        &self.dhcp_servers
    }

    /// What the host proves itself to distributors with, if it was enrolled for S-ARP.
    #[must_use]
    pub fn request_key(&self) -> Option<&RequestKey> {
        self.request_key.as_ref()
    }

    /// What all request keys of the site are made from; only on a distributor.
    #[must_use]
    pub fn request_master(&self) -> Option<&RequestMaster> {
        self.request_master.as_ref()
    }

    /// The name of the site.
    #[must_use]
    pub fn site_name(&self) -> String {
        self.anchor.site_name()
    }
}

impl fmt::Debug for HostIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostIdentity").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// The blocks of a file, sorted by what they are.
#[derive(Default)]
struct Parts {
    hosts: Vec<Block>,
    authority: Option<Block>,
    private_key: Option<Block>,
    site_key: Option<Block>,
    request_key: Option<Block>,
    request_master: Option<Block>,
    paper_key: Option<Block>,
}

impl Parts {
    fn take(&mut self, block: Block) -> Result<(), IdentityError> {
        let (slot, kind) = match block.label.as_str() {
            pem::CERTIFICATE if is_authority(&block.bytes) => (&mut self.authority, IdentityBlock::Authority),
            pem::CERTIFICATE if self.hosts.contains(&block) => {
                return Err(IdentityError::Repeated(IdentityBlock::Host));
            }
            pem::CERTIFICATE => {
                self.hosts.push(block);
                return Ok(());
            }
            pem::PRIVATE_KEY => (&mut self.private_key, IdentityBlock::PrivateKey),
            pem::SITE_KEY => (&mut self.site_key, IdentityBlock::SiteKey),
            pem::REQUEST_KEY => (&mut self.request_key, IdentityBlock::RequestKey),
            pem::REQUEST_MASTER => (&mut self.request_master, IdentityBlock::RequestMaster),
            pem::PAPER_KEY => (&mut self.paper_key, IdentityBlock::PaperKey),
            _ => return Err(IdentityError::Foreign(block.label)),
        };
        if slot.replace(block).is_some() {
            return Err(IdentityError::Repeated(kind));
        }
        Ok(())
    }
}

type Certificates = Vec<Verified<HostCertificate>>;

/// The certificates of a file by what they are there for.
struct Sorted {
    certificate: Verified<HostCertificate>,
    distributors: Certificates,
    dhcp_servers: Certificates,
}

/// The host's own certificate, which is the one of its key, and those of distributors and DHCP servers. Others have no
/// business here.
fn sort(hosts: Certificates, public_key: &[u8]) -> Result<Sorted, IdentityError> {
    let of_role = |role: Role| hosts.iter().filter(|host| host.role() == role).cloned().collect::<Certificates>();
    let (distributors, dhcp_servers) = (of_role(Role::Distributor), of_role(Role::DhcpServer));
    let own: Certificates = hosts.iter().filter(|host| host.public_bytes() == public_key).cloned().collect();
    let serves = |host: &Verified<HostCertificate>| matches!(host.role(), Role::Distributor | Role::DhcpServer);
    let strangers = hosts.iter().filter(|host| host.public_bytes() != public_key && !serves(host)).count();
    if distributors.len() > limits::MAX_DISTRIBUTORS {
        return Err(IdentityError::Repeated(IdentityBlock::Distributor));
    }
    if dhcp_servers.len() > limits::MAX_DHCP_SERVERS {
        return Err(IdentityError::Repeated(IdentityBlock::DhcpServer));
    }
    let serving = distributors.len() + dhcp_servers.len();
    match (<[_; 1]>::try_from(own), strangers) {
        (Ok([certificate]), 0) => Ok(Sorted { certificate, distributors, dhcp_servers }),
        (Err(own), 0) if own.is_empty() && serving == 0 => Err(IdentityError::Missing(IdentityBlock::Host)),
        (Err(own), 0 | 1) if own.is_empty() => Err(IdentityError::KeyMismatch),
        _ => Err(IdentityError::Repeated(IdentityBlock::Host)),
    }
}

/// The second key, which a certificate of a paper site names and no other.
fn second_key(certificate: &HostCertificate, block: Option<Block>) -> Result<Option<SigningKey>, IdentityError> {
    match (certificate.second_public_bytes(), block) {
        (None, None) => Ok(None),
        (None, Some(block)) => Err(IdentityError::Foreign(block.label)),
        (Some(public), block) => {
            let block = required(block, IdentityBlock::PaperKey)?;
            let second = SigningKey::from_paper_block(&block.bytes).map_err(refused(IdentityBlock::PaperKey))?;
            let is_named = second.public_bytes() == public;
            if is_named { Ok(Some(second)) } else { Err(IdentityError::PaperKeyMismatch) }
        }
    }
}

fn host_refused(refusal: Refusal) -> IdentityError {
    IdentityError::Certificate(IdentityBlock::Host, refusal)
}

fn refused(block: IdentityBlock) -> impl Fn(KeyError) -> IdentityError {
    move |error| IdentityError::Key(block, error)
}

fn required(block: Option<Block>, kind: IdentityBlock) -> Result<Block, IdentityError> {
    block.ok_or(IdentityError::Missing(kind))
}

/// Whether a certificate says of itself that it is an authority's; nothing is believed on that account.
fn is_authority(der: &[u8]) -> bool {
    der.len() <= limits::MAX_CERTIFICATE_LEN
        && Certificate::from_der(der).is_ok_and(|certificate| {
            matches!(certificate.tbs_certificate().get_extension::<BasicConstraints>(), Ok(Some((_, basic))) if basic.ca)
        })
}
