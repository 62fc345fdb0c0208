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
use crate::shared_keys::{Shared, Statement, Succession};
use crate::signing::SigningKey;
use crate::site_key::SiteKey;
use crate::{Generation, KeyError, limits};

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
    /// The authority's signature under the keys that the host shares with others.
    SharedKeysSignature,
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
            IdentityBlock::SharedKeysSignature => "the RINGWALL SHARED KEYS SIGNATURE",
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
    /// The authority has not signed the keys that the host shares with others, or has for another
    /// host.
    SharedKeysNotSigned,
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
            IdentityError::SharedKeysNotSigned => f.write_str(
                "the authority has not signed the keys that this host shares with others; have the site issue the identity again",
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
    site_keys: Succession<SiteKey>,
    distributors: Vec<Verified<HostCertificate>>,
    dhcp_servers: Vec<Verified<HostCertificate>>,
    request_keys: Option<Succession<RequestKey>>,
    request_masters: Option<Succession<RequestMaster>>,
    dhcp: Dhcp,
}

/// What an identity holds for DHCP under the link layer.
#[derive(Clone, Default)]
struct Dhcp {
    keys: Option<Succession<DhcpKey>>,
    masters: Option<Succession<DhcpMaster>>,
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
        let site_keys = in_force(&parts.site_keys, IdentityBlock::SiteKey)?;
        let site_keys = site_keys.ok_or(IdentityError::Missing(IdentityBlock::SiteKey))?;

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
        let identity = HostIdentity {
            certificate,
            anchor,
            key,
            record_key,
            handshake_key,
            site_keys,
            distributors,
            dhcp_servers,
            request_keys: in_force(&parts.request_keys, IdentityBlock::RequestKey)?,
            request_masters: in_force(&parts.request_masters, IdentityBlock::RequestMaster)?,
            dhcp: Dhcp::of(&parts.dhcp_keys, &parts.dhcp_masters, dhcp_authority)?,
        };
        identity.check_shared_keys(parts.signature.as_ref())?;
        Ok(identity)
    }

    /// Keys that hosts share come with times by which all of them go, so the authority signs them.
    /// A site's first ones have none and need no signature.
    fn check_shared_keys(&self, signature: Option<&Block>) -> Result<(), IdentityError> {
        let statement = self.shared_keys();
        let signature = match (signature, statement.is_empty()) {
            (None, true) => return Ok(()),
            (None, false) => return Err(IdentityError::Missing(IdentityBlock::SharedKeysSignature)),
            (Some(signature), _) => signature,
        };
        let checked = statement.verify(&self.anchor, &self.certificate, &signature.bytes);
        checked.map_err(|_| IdentityError::SharedKeysNotSigned)
    }

    /// All keys with a term that the host shares with others. Equal ones are the same keys.
    #[must_use]
    pub fn shared_keys(&self) -> Statement {
        let mut statement = Statement::default();
        statement.add(Some(&self.site_keys));
        statement.add(self.request_keys.as_ref());
        statement.add(self.dhcp.keys.as_ref());
        statement.add(self.request_masters.as_ref());
        statement.add(self.dhcp.masters.as_ref());
        statement
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

    /// The keys that all hosts of the site share.
    #[must_use]
    pub fn site_keys(&self) -> &Succession<SiteKey> {
        &self.site_keys
    }

    /// The newest of them. Which one counts when is theirs to say; this one is for a site that has
    /// one.
    #[must_use]
    pub fn site_key(&self) -> &SiteKey {
        self.site_keys.newest().1
    }

    /// Which keys of the site this host has.
    #[must_use]
    pub fn generation(&self) -> Generation {
        self.site_keys.newest().0.generation
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

    /// What the host proves itself to distributors with, if it was enrolled for S-ARP: the newest.
    #[must_use]
    pub fn request_key(&self) -> Option<&RequestKey> {
        self.request_keys().map(|keys| keys.newest().1)
    }

    /// All of those that are in force.
    #[must_use]
    pub fn request_keys(&self) -> Option<&Succession<RequestKey>> {
        self.request_keys.as_ref()
    }

    /// What all request keys of the site are made from; only on a distributor. The newest.
    #[must_use]
    pub fn request_master(&self) -> Option<&RequestMaster> {
        self.request_masters().map(|masters| masters.newest().1)
    }

    /// All of those that are in force.
    #[must_use]
    pub fn request_masters(&self) -> Option<&Succession<RequestMaster>> {
        self.request_masters.as_ref()
    }

    /// What the host proves its DHCP with under the link layer, if it gets its address by DHCP: the
    /// newest.
    #[must_use]
    pub fn dhcp_key(&self) -> Option<&DhcpKey> {
        self.dhcp_keys().map(|keys| keys.newest().1)
    }

    /// All of those that are in force.
    #[must_use]
    pub fn dhcp_keys(&self) -> Option<&Succession<DhcpKey>> {
        self.dhcp.keys.as_ref()
    }

    /// What all DHCP keys of the site are made from, those that are in force; only on a DHCP server.
    #[must_use]
    pub fn dhcp_masters(&self) -> Option<&Succession<DhcpMaster>> {
        self.dhcp.masters.as_ref()
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
            site_keys: self.site_keys.clone(),
            distributors: self.distributors.clone(),
            dhcp_servers: self.dhcp_servers.clone(),
            request_keys: self.request_keys.clone(),
            request_masters: self.request_masters.clone(),
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
    site_keys: Vec<Block>,
    request_keys: Vec<Block>,
    request_masters: Vec<Block>,
    paper_key: Option<Block>,
    dhcp_keys: Vec<Block>,
    dhcp_masters: Vec<Block>,
    signature: Option<Block>,
}

impl Parts {
    fn take(&mut self, block: Block) -> Result<(), IdentityError> {
        let Some(block) = self.take_shared(block) else { return Ok(()) };
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
            pem::PAPER_KEY => (&mut self.paper_key, IdentityBlock::PaperKey),
            pem::SHARED_KEYS_SIGNATURE => (&mut self.signature, IdentityBlock::SharedKeysSignature),
            _ => return Err(IdentityError::Foreign(block.label)),
        };
        if slot.replace(block).is_some() {
            return Err(IdentityError::Repeated(kind));
        }
        Ok(())
    }
}

impl Parts {
    /// Keeps the block if it is a key that hosts share; gives it back otherwise.
    fn take_shared(&mut self, block: Block) -> Option<Block> {
        let slot = match block.label.as_str() {
            pem::SITE_KEY => &mut self.site_keys,
            pem::REQUEST_KEY => &mut self.request_keys,
            pem::REQUEST_MASTER => &mut self.request_masters,
            pem::DHCP_KEY => &mut self.dhcp_keys,
            pem::DHCP_MASTER => &mut self.dhcp_masters,
            _ => return Some(block),
        };
        slot.push(block);
        None
    }
}

/// The keys of one kind, if there are any.
fn in_force<K: Shared>(blocks: &[Block], kind: IdentityBlock) -> Result<Option<Succession<K>>, IdentityError> {
    if blocks.is_empty() {
        return Ok(None);
    }
    match Succession::from_blocks(blocks) {
        Ok(keys) => Ok(Some(keys)),
        Err(KeyError::Succession) => Err(IdentityError::Repeated(kind)),
        Err(error) => Err(IdentityError::Key(kind, error)),
    }
}

impl Dhcp {
    fn of(keys: &[Block], masters: &[Block], authority: Option<Block>) -> Result<Dhcp, IdentityError> {
        Ok(Dhcp {
            keys: in_force(keys, IdentityBlock::DhcpKey)?,
            masters: in_force(masters, IdentityBlock::DhcpMaster)?,
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
