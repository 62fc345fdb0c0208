//! What a host owns: one PEM file with its certificate, the authority's certificate, its private key and the site key;
//! for S-ARP also its request key and the certificates of the site's distributors and DHCP servers, and on a distributor the
//! master; for DHCP under the link layer its DHCP key, and on a DHCP server the master of those and an authority of its own. In a site
//! of the paper profile a second private key signs S-ARP (DSA) or the handshakes of CLL (RSA); the certificate names both.

use std::fmt;
use std::sync::Arc;

use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::BasicConstraints;

use crate::certificate::{HostCertificate, Refusal, Role, TrustAnchor, Verified};
use crate::dhcp_key::{DhcpKey, DhcpMaster};
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
    /// What the host proves its DHCP with under the link layer.
    DhcpKey,
    /// What a DHCP server makes all those keys from.
    DhcpMaster,
    /// The certificate with which a DHCP server makes others.
    DhcpAuthority,
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
            IdentityBlock::DhcpKey => "the RINGWALL DHCP KEY",
            IdentityBlock::DhcpMaster => "the RINGWALL DHCP MASTER",
            IdentityBlock::DhcpAuthority => "the CERTIFICATE of the DHCP server's authority",
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
    dhcp: Dhcp,
}

/// What an identity holds for DHCP under the link layer.
#[derive(Clone, Default)]
struct Dhcp {
    key: Option<DhcpKey>,
    master: Option<DhcpMaster>,
    /// In DER.
    authority: Option<Vec<u8>>,
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
        let (authority, dhcp_authority) = sort_authorities(parts.authorities)?;
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
            dhcp: Dhcp::of(parts.dhcp_key, parts.dhcp_master, dhcp_authority)?,
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

    /// What the host proves its DHCP with under the link layer, if it gets its address by DHCP.
    #[must_use]
    pub fn dhcp_key(&self) -> Option<&DhcpKey> {
        self.dhcp.key.as_ref()
    }

    /// What all DHCP keys of the site are made from; only on a DHCP server.
    #[must_use]
    pub fn dhcp_master(&self) -> Option<&DhcpMaster> {
        self.dhcp.master.as_ref()
    }

    /// The certificate, in DER, with which this DHCP server makes those of its clients.
    #[must_use]
    pub fn dhcp_authority(&self) -> Option<&[u8]> {
        self.dhcp.authority.as_deref()
    }

    /// The same identity with another certificate: the one that came with a lease.
    ///
    /// # Errors
    /// [`IdentityError::KeyMismatch`] if it is not for this host: for other keys, another hardware address, or another name.
    pub fn with_certificate(&self, certificate: Verified<HostCertificate>) -> Result<HostIdentity, IdentityError> {
        let own = &self.certificate;
        let is_ours = certificate.public_bytes() == own.public_bytes()
            && certificate.second_public_bytes() == own.second_public_bytes()
            && certificate.mac() == own.mac()
            && certificate.name() == own.name();
        if !is_ours {
            return Err(IdentityError::KeyMismatch);
        }
        Ok(HostIdentity {
            certificate,
            anchor: self.anchor.clone(),
            key: Arc::clone(&self.key),
            record_key: Arc::clone(&self.record_key),
            handshake_key: Arc::clone(&self.handshake_key),
            site_key: self.site_key.clone(),
            distributors: self.distributors.clone(),
            dhcp_servers: self.dhcp_servers.clone(),
            request_key: self.request_key.clone(),
            request_master: self.request_master.clone(),
            dhcp: self.dhcp.clone(),
        })
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
    authorities: Vec<Block>,
    private_key: Option<Block>,
    site_key: Option<Block>,
    request_key: Option<Block>,
    request_master: Option<Block>,
    paper_key: Option<Block>,
    dhcp_key: Option<Block>,
    dhcp_master: Option<Block>,
}

impl Parts {
    fn take(&mut self, block: Block) -> Result<(), IdentityError> {
        let (slot, kind) = match block.label.as_str() {
            pem::CERTIFICATE if is_authority(&block.bytes) => {
                self.authorities.push(block);
                return Ok(());
            }
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
            pem::DHCP_KEY => (&mut self.dhcp_key, IdentityBlock::DhcpKey),
            pem::DHCP_MASTER => (&mut self.dhcp_master, IdentityBlock::DhcpMaster),
            _ => return Err(IdentityError::Foreign(block.label)),
        };
        if slot.replace(block).is_some() {
            return Err(IdentityError::Repeated(kind));
        }
        Ok(())
    }
}

impl Dhcp {
    fn of(key: Option<Block>, master: Option<Block>, authority: Option<Block>) -> Result<Dhcp, IdentityError> {
        let key = key.map(|block| DhcpKey::from_block(&block.bytes)).transpose();
        let master = master.map(|block| DhcpMaster::from_block(&block.bytes)).transpose();
        Ok(Dhcp {
            key: key.map_err(refused(IdentityBlock::DhcpKey))?,
            master: master.map_err(refused(IdentityBlock::DhcpMaster))?,
            authority: authority.map(|block| block.bytes.to_vec()),
        })
    }
}

/// The site's authority and, behind it, the DHCP server's own, which is the one that the other has issued.
fn sort_authorities(blocks: Vec<Block>) -> Result<(Block, Option<Block>), IdentityError> {
    let mut blocks = blocks.into_iter();
    let first = blocks.next().ok_or(IdentityError::Missing(IdentityBlock::Authority))?;
    let Some(second) = blocks.next() else { return Ok((first, None)) };
    if blocks.next().is_some() || first.bytes == second.bytes {
        return Err(IdentityError::Repeated(IdentityBlock::Authority));
    }
    match (has_issued(&first, &second), has_issued(&second, &first)) {
        (true, false) => Ok((first, Some(second))),
        (false, true) => Ok((second, Some(first))),
        _ => Err(IdentityError::Repeated(IdentityBlock::Authority)),
    }
}

/// Whether the name of `issuer` stands on `issued`; the signature is looked at when it is used.
fn has_issued(issuer: &Block, issued: &Block) -> bool {
    let (Ok(issuer), Ok(issued)) = (Certificate::from_der(&issuer.bytes), Certificate::from_der(&issued.bytes)) else {
        return false;
    };
    issuer.tbs_certificate().subject() == issued.tbs_certificate().issuer()
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
