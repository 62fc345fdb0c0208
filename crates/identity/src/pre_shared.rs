//! A key that all hosts of a site have beside their certificates, and that goes into the keys of
//! their associations (as WireGuard's does): the cheap second way to outlast a quantum computer.
//!
//! It proves nothing about who speaks, because all have it. Unlike the site key it never meets a
//! frame of a stranger, and it is not handed out with identities.

use std::fmt;

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::schedule::{AddedSecret, Schedule};
use crate::site_key::SiteKey;
use crate::{KeyError, pem};

/// Bytes of a pre-shared key.
pub const LEN: usize = 32;
/// Bytes of what shows that its sender has the key.
pub const CHECK_LEN: usize = 16;
/// Bytes of a key's name.
pub const NAME_LEN: usize = 8;
/// Keys in force at a time: that which is used, and the one that comes or goes.
pub const KEYS_MAX: usize = 2;

/// Tells two keys apart and nothing more.
pub type PreSharedName = [u8; NAME_LEN];

/// A pre-shared key; overwritten when dropped.
#[derive(Clone)]
pub struct PreSharedKey {
    secret: AddedSecret,
    check: SiteKey,
    name: PreSharedName,
}

impl PreSharedKey {
    /// The key made of `bytes`, which are drawn at random.
    #[must_use]
    pub fn from_bytes(bytes: [u8; LEN]) -> PreSharedKey {
        let bytes = Zeroizing::new(bytes);
        let schedule = Schedule::from_key(&bytes);
        PreSharedKey {
            secret: AddedSecret::from_bytes(*schedule.expand(&[b"ringwall cll 2 pre-shared secret"])),
            check: SiteKey::from_bytes(*schedule.expand(&[b"ringwall cll 2 pre-shared check"])),
            name: *schedule.expand(&[b"ringwall cll 2 pre-shared name"]),
        }
    }

    /// All keys of a file, the one that is used first.
    ///
    /// # Errors
    /// Malformed PEM, another label, more than [`KEYS_MAX`] keys, or one that has not 32 bytes.
    pub fn all_from_pem(text: &str) -> Result<Vec<PreSharedKey>, KeyError> {
        let blocks = pem::blocks(text)?;
        if blocks.len() > KEYS_MAX {
            return Err(KeyError::Pem(pem::PemError::Several));
        }
        blocks
            .into_iter()
            .map(|block| {
                if block.label != pem::PRE_SHARED_KEY {
                    return Err(KeyError::Pem(pem::PemError::WrongLabel(pem::PRE_SHARED_KEY)));
                }
                let found = block.bytes.len();
                let bytes = block.bytes[..].try_into().map_err(|_| KeyError::Length { expected: LEN, found })?;
                Ok(PreSharedKey::from_bytes(bytes))
            })
            .collect()
    }

    /// What goes into the keys of an association.
    #[must_use]
    pub fn secret(&self) -> &AddedSecret {
        &self.secret
    }

    /// Tells it from another key. It gives nothing of the key away.
    #[must_use]
    pub fn name(&self) -> PreSharedName {
        self.name
    }

    /// What shows who sent the request with this hash that the responder has the key.
    #[must_use]
    pub fn check(&self, request: &[u8; 32]) -> [u8; CHECK_LEN] {
        self.check.tag(b"pre-shared key", &[request])
    }

    /// Whether `check` is right; takes the same time wherever it differs.
    #[must_use]
    pub fn verify(&self, request: &[u8; 32], check: &[u8; CHECK_LEN]) -> bool {
        self.check(request)[..].ct_eq(&check[..]).into()
    }
}

impl fmt::Debug for PreSharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PreSharedKey(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pem::PemError;

    fn text(seeds: &[u8]) -> String {
        seeds.iter().map(|seed| pem::encode(pem::PRE_SHARED_KEY, &[*seed; LEN]).to_string()).collect()
    }

    #[test]
    fn a_file_has_one_key_or_two_in_their_order() {
        for seeds in [&[1][..], &[2, 1]] {
            let names: Vec<_> =
                PreSharedKey::all_from_pem(&text(seeds)).expect("keys").iter().map(PreSharedKey::name).collect();
            let expected: Vec<_> = seeds.iter().map(|seed| PreSharedKey::from_bytes([*seed; LEN]).name()).collect();
            assert_eq!(names, expected);
        }
    }

    #[test]
    fn other_files_are_refused_by_name() {
        let refusal = |text: &str| PreSharedKey::all_from_pem(text).map(drop).expect_err("no keys");
        assert_eq!(refusal(""), KeyError::Pem(PemError::Empty));
        assert_eq!(refusal(&text(&[1, 2, 3])), KeyError::Pem(PemError::Several));
        assert_eq!(
            refusal(&pem::encode(pem::SITE_KEY, &[1; LEN])),
            KeyError::Pem(PemError::WrongLabel(pem::PRE_SHARED_KEY))
        );
        assert_eq!(refusal(&pem::encode(pem::PRE_SHARED_KEY, &[1; 31])), KeyError::Length { expected: 32, found: 31 });
    }

    #[test]
    fn a_check_is_of_one_key_and_one_request() {
        let key = PreSharedKey::from_bytes([1; LEN]);
        let check = key.check(&[7; 32]);
        assert!(key.verify(&[7; 32], &check));
        assert!(!key.verify(&[8; 32], &check));
        let other = PreSharedKey::from_bytes([2; LEN]);
        assert!(!other.verify(&[7; 32], &check) && other.secret() != key.secret());
        assert_eq!(format!("{key:?}"), "PreSharedKey(redacted)");
    }
}
