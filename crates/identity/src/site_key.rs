//! The site key: the cheap first check of a handshake.
//!
//! Every host of a site holds it, so its tag proves membership at most, never who sent a message. Its worth is that a
//! stranger cannot make a host verify a signature.

use std::fmt;

use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::{KeyError, pem};

/// Bytes of a site key.
pub const LEN: usize = 32;
/// Bytes of a tag under it.
pub const TAG_LEN: usize = 16;

/// The secret that all hosts of one site share; overwritten when dropped.
#[derive(Clone)]
pub struct SiteKey {
    bytes: Zeroizing<[u8; LEN]>,
    // The key with its pads already hashed: one compression less, twice, for every frame.
    prepared: Key,
}

impl SiteKey {
    /// The site key made of `bytes`.
    #[must_use]
    pub fn from_bytes(bytes: [u8; LEN]) -> Self {
        let bytes = Zeroizing::new(bytes);
        let prepared = Key::new(HMAC_SHA256, &*bytes);
        SiteKey { bytes, prepared }
    }

    /// HMAC-SHA256, cut to its first 16 bytes, over the length of `label` (two bytes, network order), `label`, and
    /// `parts` one after the other. The length keeps uses with different labels apart whatever the parts hold.
    #[must_use]
    pub fn tag(&self, label: &[u8], parts: &[&[u8]]) -> [u8; TAG_LEN] {
        let mut tag = [0; TAG_LEN];
        tag.copy_from_slice(&self.whole_tag(label, parts)[..TAG_LEN]);
        tag
    }

    /// As [`tag`](SiteKey::tag), uncut.
    pub(crate) fn whole_tag(&self, label: &[u8], parts: &[&[u8]]) -> Zeroizing<[u8; LEN]> {
        let mut context = Context::with_key(&self.prepared);
        // Labels are words of this program; one beyond 65,535 bytes would only share its prefix with another such.
        context.update(&u16::try_from(label.len()).unwrap_or(u16::MAX).to_be_bytes());
        context.update(label);
        for part in parts {
            context.update(part);
        }
        let mut tag = Zeroizing::new([0; LEN]);
        tag.copy_from_slice(context.sign().as_ref());
        tag
    }

    /// Whether `tag` is the tag of `label` and `parts`; takes the same time wherever it differs.
    #[must_use]
    pub fn verify(&self, label: &[u8], parts: &[&[u8]], tag: &[u8; TAG_LEN]) -> bool {
        self.tag(label, parts).ct_eq(tag).into()
    }

    /// The key as one PEM block.
    #[must_use]
    pub fn to_pem(&self) -> Zeroizing<String> {
        pem::encode(pem::SITE_KEY, &*self.bytes)
    }

    /// Reads the key from a text that holds exactly one PEM block.
    ///
    /// # Errors
    /// Malformed PEM, another label, or another length than 32 bytes.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        Self::from_block(&pem::single(text, pem::SITE_KEY)?)
    }

    pub(crate) fn bytes(&self) -> &[u8; LEN] {
        &self.bytes
    }

    pub(crate) fn from_block(der: &[u8]) -> Result<Self, KeyError> {
        let bytes = der.try_into().map_err(|_| KeyError::Length { expected: LEN, found: der.len() })?;
        Ok(Self::from_bytes(bytes))
    }
}

impl fmt::Debug for SiteKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SiteKey(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pem::PemError;
    use crate::test_hex::array;

    fn key() -> SiteKey {
        SiteKey::from_bytes(std::array::from_fn(|at| u8::try_from(at).expect("below 32")))
    }

    /// Computed with Python's hmac module from the definition in `tag`'s documentation.
    #[test]
    fn tags_are_hmac_sha256_cut_to_sixteen_bytes() {
        assert_eq!(key().tag(b"ringwall handshake", &[b"one", b"two"]), array("a129ba08e441bc6e8148f146b19c4292"));
        assert_eq!(key().tag(b"", &[]), array("8d460a9eb8988604f0f282887ba39aa2"));
    }

    #[test]
    fn only_the_right_tag_verifies() {
        let tag = key().tag(b"label", &[b"message"]);
        assert!(key().verify(b"label", &[b"mess", b"age"], &tag));
        assert!(!key().verify(b"labelm", &[b"essage"], &tag), "the label's length keeps labels apart");
        assert!(!key().verify(b"label", &[b"massage"], &tag));
        assert!(!SiteKey::from_bytes([7; 32]).verify(b"label", &[b"message"], &tag));
        for bit in 0..8 * TAG_LEN {
            let mut flipped = tag;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!key().verify(b"label", &[b"message"], &flipped), "bit {bit}");
        }
    }

    #[test]
    fn a_key_survives_its_file() {
        let text = key().to_pem();
        assert!(text.starts_with("-----BEGIN RINGWALL SITE KEY-----\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"));
        assert_eq!(SiteKey::from_pem(&text).expect("own text").tag(b"x", &[]), key().tag(b"x", &[]));
    }

    #[test]
    fn other_files_are_refused_by_name() {
        let refusal = |text: &str| SiteKey::from_pem(text).map(drop).expect_err("not a site key");
        assert_eq!(refusal(""), KeyError::Pem(PemError::Empty));
        assert_eq!(
            refusal(&pem::encode(pem::PRIVATE_KEY, &[0; 32])),
            KeyError::Pem(PemError::WrongLabel(pem::SITE_KEY))
        );
        assert_eq!(refusal(&pem::encode(pem::SITE_KEY, &[0; 31])), KeyError::Length { expected: 32, found: 31 });
        assert_eq!(refusal(&key().to_pem().repeat(2)), KeyError::Pem(PemError::Several));
    }
}
