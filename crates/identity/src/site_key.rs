//! The site key: the cheap first check of a handshake.
//!
//! Every host of a site holds it, so its tag proves membership at most, never who sent a message. Its worth is that a
//! stranger cannot make a host verify a signature. In frames a part of the tag proves the rest of it, under a key that the kernel is given,
//! so that a stranger's frame ends before it costs even an HMAC (Touch and Yang: what is cheap comes first).

use std::fmt;

use std::hash::Hasher;

use aws_lc_rs::hmac::{Context, HMAC_SHA256, Key};
use siphasher::sip::SipHasher24;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::shared_keys::Shared;
use crate::{KeyError, pem};

/// Bytes of a site key.
pub const LEN: usize = 32;
/// Bytes of a tag under it.
pub const TAG_LEN: usize = 16;
/// Bytes of the key of a hint.
pub const HINT_KEY_LEN: usize = 16;
/// Bytes of HMAC in the tag of a frame; its hint follows.
pub const HINT_AT: usize = 12;
const HINT_LABEL: &[u8] = b"hint";

/// The secret that all hosts of one site share; overwritten when dropped.
#[derive(Clone)]
pub struct SiteKey {
    bytes: Zeroizing<[u8; LEN]>,
    // The key with its pads already hashed: one compression less, twice, for every frame.
    prepared: Key,
    hint: SipHasher24,
}

impl SiteKey {
    /// The site key made of `bytes`.
    #[must_use]
    pub fn from_bytes(bytes: [u8; LEN]) -> Self {
        let bytes = Zeroizing::new(bytes);
        let prepared = Key::new(HMAC_SHA256, &*bytes);
        let key = SiteKey { bytes, prepared, hint: SipHasher24::new() };
        SiteKey { hint: SipHasher24::new_with_key(&key.hint_key()), ..key }
    }

    /// The key under which the last bytes of a frame's tag are a function of the others. It makes no tag.
    #[must_use]
    pub fn hint_key(&self) -> Zeroizing<[u8; HINT_KEY_LEN]> {
        Zeroizing::new(self.tag(HINT_LABEL, &[]))
    }

    /// HMAC-SHA256, cut to its first 16 bytes, over the length of `label` (two bytes, network order), `label`, and
    /// `parts` one after the other. The length keeps uses with different labels apart whatever the parts hold.
    #[must_use]
    pub fn tag(&self, label: &[u8], parts: &[&[u8]]) -> [u8; TAG_LEN] {
        let mut tag = [0; TAG_LEN];
        tag.copy_from_slice(&self.whole_tag(label, parts)[..TAG_LEN]);
        tag
    }

    /// The tag of a frame: the first 12 bytes of [`tag`](SiteKey::tag), and the low 32 bits of SipHash-2-4 over them (the hint).
    #[must_use]
    pub fn frame_tag(&self, label: &[u8], parts: &[&[u8]]) -> [u8; TAG_LEN] {
        let mut tag = self.tag(label, parts);
        let hint = self.hint_of(&tag);
        tag[HINT_AT..].copy_from_slice(&hint);
        tag
    }

    /// Whether `tag` is the tag of a frame of `label` and `parts`. The hint, which is no secret of this frame, is compared first.
    #[must_use]
    pub fn verify_frame(&self, label: &[u8], parts: &[&[u8]], tag: &[u8; TAG_LEN]) -> bool {
        self.fits_hint(tag) && self.tag(label, parts)[..HINT_AT].ct_eq(&tag[..HINT_AT]).into()
    }

    /// Whether the end of a frame's tag is what follows from the rest: a stranger's is not.
    #[must_use]
    pub fn fits_hint(&self, tag: &[u8; TAG_LEN]) -> bool {
        tag[HINT_AT..] == self.hint_of(tag)
    }

    fn hint_of(&self, tag: &[u8; TAG_LEN]) -> [u8; TAG_LEN - HINT_AT] {
        let mut hasher = self.hint;
        hasher.write(&tag[..HINT_AT]);
        (hasher.finish() as u32).to_be_bytes()
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

impl Shared for SiteKey {
    const LABEL: &'static str = pem::SITE_KEY;
    const LEN: usize = LEN;

    fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(self.bytes.to_vec())
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError> {
        Self::from_block(bytes)
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

    /// Computed with Python's hmac module and the SipHash of `vectors/make.py`, which is tested against its authors' table.
    #[test]
    fn a_frames_tag_ends_in_a_hint_of_the_rest() {
        assert_eq!(key().frame_tag(b"handshake", &[b"one", b"two"]), array("c95810688e70c3ea2284a355660b73d2"));
        assert_eq!(*key().hint_key(), array("1c79614a451f7aa8b36a51b9aeb3cf9b"));
    }

    #[test]
    fn only_the_right_tag_of_a_frame_verifies() {
        let tag = key().frame_tag(b"label", &[b"message"]);
        assert!(key().verify_frame(b"label", &[b"mess", b"age"], &tag) && key().fits_hint(&tag));
        assert!(!key().verify_frame(b"label", &[b"massage"], &tag), "the hint says nothing of the message");
        assert!(!SiteKey::from_bytes([7; 32]).fits_hint(&tag));
        for bit in 0..8 * TAG_LEN {
            let mut flipped = tag;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(!key().verify_frame(b"label", &[b"message"], &flipped) && !key().fits_hint(&flipped), "bit {bit}");
        }
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
