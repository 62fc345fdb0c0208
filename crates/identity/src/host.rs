//! What a host owns: one PEM file with its certificate, the authority's certificate, its private key and the site key.

use std::fmt;
use std::sync::Arc;

use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::BasicConstraints;

use crate::certificate::{HostCertificate, Refusal, TrustAnchor, Verified};
use crate::pem::{self, Block, PemError};
use crate::signing::SigningKey;
use crate::site_key::SiteKey;
use crate::{KeyError, limits};

/// One of the four blocks of an identity file.
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
}

impl fmt::Display for IdentityBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            IdentityBlock::Host => "the host's CERTIFICATE",
            IdentityBlock::Authority => "the authority's CERTIFICATE",
            IdentityBlock::PrivateKey => "the PRIVATE KEY",
            IdentityBlock::SiteKey => "the RINGWALL SITE KEY",
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
        }
    }
}

impl std::error::Error for IdentityError {}

/// The identity of this host.
pub struct HostIdentity {
    certificate: Verified<HostCertificate>,
    anchor: TrustAnchor,
    key: Arc<SigningKey>,
    site_key: SiteKey,
}

impl HostIdentity {
    /// Reads the four blocks, in any order, and checks that they belong together. It does not look at the period: see
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
        let host = required(parts.host, IdentityBlock::Host)?;
        let key = required(parts.private_key, IdentityBlock::PrivateKey)?;
        let site_key = required(parts.site_key, IdentityBlock::SiteKey)?;

        let anchor = TrustAnchor::from_der(&authority.bytes)
            .map_err(|refusal| IdentityError::Certificate(IdentityBlock::Authority, refusal))?;
        let certificate = anchor
            .verify_whenever(&host.bytes)
            .map_err(|refusal| IdentityError::Certificate(IdentityBlock::Host, refusal))?;
        let key = SigningKey::from_pkcs8_der(&key.bytes)
            .map_err(|error| IdentityError::Key(IdentityBlock::PrivateKey, error))?;
        let site_key =
            SiteKey::from_block(&site_key.bytes).map_err(|error| IdentityError::Key(IdentityBlock::SiteKey, error))?;
        if key.public_bytes() != certificate.public_bytes() {
            return Err(IdentityError::KeyMismatch);
        }
        Ok(HostIdentity { certificate, anchor, key: Arc::new(key), site_key })
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

    /// The host's signature over `message`.
    ///
    /// # Errors
    /// See [`SigningKey::sign`].
    pub fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        self.key.sign(message)
    }

    /// The host's own key.
    #[must_use]
    pub fn signing_key(&self) -> Arc<SigningKey> {
        Arc::clone(&self.key)
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
    host: Option<Block>,
    authority: Option<Block>,
    private_key: Option<Block>,
    site_key: Option<Block>,
}

impl Parts {
    fn take(&mut self, block: Block) -> Result<(), IdentityError> {
        let (slot, kind) = match block.label.as_str() {
            pem::CERTIFICATE if is_authority(&block.bytes) => (&mut self.authority, IdentityBlock::Authority),
            pem::CERTIFICATE => (&mut self.host, IdentityBlock::Host),
            pem::PRIVATE_KEY => (&mut self.private_key, IdentityBlock::PrivateKey),
            pem::SITE_KEY => (&mut self.site_key, IdentityBlock::SiteKey),
            _ => return Err(IdentityError::Foreign(block.label)),
        };
        if slot.replace(block).is_some() {
            return Err(IdentityError::Repeated(kind));
        }
        Ok(())
    }
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
