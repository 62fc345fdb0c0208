//! X.509 v3 certificates of hosts (RFC 5280): what binds a name, a hardware address and IP addresses to a key.
//!
//! [`TrustAnchor::verify`] is the only way to a [`Verified`] certificate. Bytes from the network first pass path
//! validation by rustls-webpki; only what the site signed is then read field by field.

mod anchor;
mod host;
pub mod lease;
pub mod names;
mod operator;
mod public_key;
mod refusal;
mod request;
mod serial;
mod subject;
mod verified;

pub use anchor::TrustAnchor;
pub use host::{HostCertificate, SECOND_KEY_EXTENSION};
pub use operator::{OPERATOR_PURPOSE, OperatorCertificate, OperatorRole};
pub(crate) use public_key::PublicKey;
pub use public_key::{BadSignature, KeyKind};
pub use refusal::{Refusal, unix_of_utc, utc_text};
pub use request::{CertificateRequest, OperatorRequest, RequestError, SHARED_KEYS_EXTENSION};
pub(crate) use serial::Serial;
pub use subject::{PAPER_SITE_UNIT, Role, SERIAL_NUMBER_ATTRIBUTE};
pub use verified::Verified;
