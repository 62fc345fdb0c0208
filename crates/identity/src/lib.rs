//! Who is who, and with which keys.
//!
//! This room turns bytes into keys, seals and opens, and reads certificates. It is the only maker
//! of [`Verified`]: a value of that type was signed by the site, and no other crate can make one.
//! It trusts the site's authority, the cryptography of AWS-LC and the path validation of
//! rustls-webpki; it reads no clock (callers pass Unix seconds) and draws no randomness of its own,
//! except what the library draws inside ECDSA and RSA-PSS signatures, in ML-KEM exchanges, in TLS
//! and where it seals to a host.
//!
//! Reading order: [`certificate`] (what a host proves), [`distributor`] (how it is looked up
//! instead), [`host`] (what a host owns), [`order`] (what an operator of the site owns, and what he
//! says), [`own_keys`] (what it signs ARP with after it has changed
//! its key), then the tools: [`agreement`], [`audit`], [`kem`], [`pre_shared`], [`revocation`],
//! [`policy`],
//! [`dhcp_key`], [`schedule`], [`aead`], [`sealing`], [`renewal`], [`shared_keys`], [`site_key`],
//! [`ticket`], [`tls`], [`token`], [`signing`], [`hash`] and [`pem`]. [`profile`] says which
//! algorithms
//! there are; those of the paper profile, which is for measuring and never for real use, are in
//! `paper`.

pub mod aead;
pub mod agreement;
pub mod audit;
pub mod certificate;
pub mod dhcp_key;
pub mod distributor;
pub mod error;
pub mod hash;
pub mod host;
pub mod kem;
pub mod limits;
pub mod order;
pub mod own_keys;
#[cfg_attr(not(feature = "paper"), path = "paper/absent.rs")]
mod paper;
pub mod pem;
pub mod policy;
pub mod pre_shared;
pub mod profile;
mod record_key;
pub mod renewal;
pub mod revocation;
pub mod schedule;
pub mod sealing;
pub mod shared_keys;
pub mod signing;
pub mod site_key;
pub mod ticket;
pub mod tls;
pub mod token;

pub use aead::BadTag;
pub use agreement::BadKeyShare;
pub use certificate::{BadSignature, HostCertificate, Refusal, Role, TrustAnchor, Verified};
pub use error::KeyError;
pub use host::{HostIdentity, IdentityError};
pub use paper::{PaperSuite, new_key_block, new_rsa_key_block};
pub use profile::Profile;
pub use shared_keys::{Generation, Succession, Term};

/// Hexadecimal digits in tests.
#[cfg(test)]
mod test_hex {
    /// The bytes of `digits`.
    pub(crate) fn bytes(digits: &str) -> Vec<u8> {
        assert_eq!(digits.len() % 2, 0, "an odd number of digits");
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).expect("a digit")).collect()
    }

    /// The bytes of `digits` as an array.
    pub(crate) fn array<const N: usize>(digits: &str) -> [u8; N] {
        bytes(digits).try_into().expect("the right length")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Worker threads share all of these by reference.
    #[test]
    fn everything_can_be_shared_between_threads() {
        fn shared<T: Send + Sync + 'static>() {}
        shared::<HostIdentity>();
        shared::<Verified<HostCertificate>>();
        shared::<TrustAnchor>();
        shared::<agreement::KeyPair>();
        shared::<agreement::SharedSecret>();
        shared::<kem::KemPair>();
        shared::<pre_shared::PreSharedKey>();
        shared::<aead::SealingKey>();
        shared::<aead::OpeningKey>();
        shared::<schedule::Schedule>();
        shared::<site_key::SiteKey>();
        shared::<ticket::TicketKey>();
        shared::<signing::SigningKey>();
    }
}
