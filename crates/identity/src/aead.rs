//! Sealing and opening frames: the authenticated ciphers of the modern profile, and the suites of the paper profile behind the
//! same face.
//!
//! The nonce of a frame is the association's initialisation vector with the sequence number folded in, as in TLS 1.3 (RFC
//! 8446, section 5.3): the vector XOR four zero bytes and the number in network order. Whoever seals twice with one number
//! under one key loses both secrecy and authenticity, so callers count and stop before the counter ends.

use std::fmt;

use aegis::aegis128l::Aegis128L;
use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use zeroize::Zeroizing;

use crate::KeyError;
use crate::paper::{self, PaperSuite};
use crate::profile::Profile;

/// Bytes of an authentication tag, the same in every suite.
pub const TAG_LEN: usize = 16;
/// Bytes of a key of AEGIS-128L.
const AEGIS_KEY_LEN: usize = 16;

/// What frames are sealed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Suite {
    /// AES with 256-bit keys in Galois/counter mode (NIST SP 800-38D).
    Aes256Gcm,
    /// AES with 128-bit keys in Galois/counter mode (NIST SP 800-38D).
    Aes128Gcm,
    /// ChaCha20 with Poly1305 (RFC 8439), for machines without AES instructions.
    ChaCha20Poly1305,
    /// AEGIS-128L (draft-irtf-cfrg-aegis-aead), twice as fast as AES-GCM on a full frame where AES instructions are there.
    Aegis128L,
    /// One of the paper profile, for measuring.
    Paper(PaperSuite),
}

impl Suite {
    /// Every suite of the modern profile, the preferred one first.
    pub const ALL: &[Suite] = &[Suite::Aegis128L, Suite::Aes256Gcm, Suite::Aes128Gcm, Suite::ChaCha20Poly1305];

    /// Every suite of `profile`, the one that is taken by default first.
    #[must_use]
    pub fn of_profile(profile: Profile) -> Vec<Suite> {
        match profile {
            Profile::Modern => Suite::ALL.to_vec(),
            Profile::Paper => {
                PaperSuite::of_the_tables().into_iter().chain(PaperSuite::all()).map(Suite::Paper).collect()
            }
        }
    }

    /// The profile that it belongs to.
    #[must_use]
    pub fn profile(self) -> Profile {
        if matches!(self, Suite::Paper(_)) { Profile::Paper } else { Profile::Modern }
    }

    /// Whether its frames carry no tag, and so prove nothing. It neither encrypts; for measuring what nonces alone are worth.
    #[must_use]
    pub fn is_nonce_only(self) -> bool {
        matches!(self, Suite::Paper(suite) if suite.is_nonce_only())
    }

    /// The fastest on this processor: a cipher made of AES rounds is slow where AES has no instructions.
    #[must_use]
    pub fn fastest_here() -> Suite {
        if has_aes_instructions() { Suite::Aegis128L } else { Suite::ChaCha20Poly1305 }
    }

    /// The number that names it in a handshake.
    #[must_use]
    pub fn id(self) -> u8 {
        match self {
            Suite::Aes256Gcm => 1,
            Suite::Aes128Gcm => 2,
            Suite::ChaCha20Poly1305 => 3,
            Suite::Aegis128L => 4,
            Suite::Paper(suite) => suite.id(),
        }
    }

    /// The suite that a handshake names so.
    #[must_use]
    pub fn from_id(id: u8) -> Option<Suite> {
        let modern = Self::ALL.iter().copied().find(|suite| suite.id() == id);
        modern.or_else(|| PaperSuite::from_id(id).map(Suite::Paper))
    }

    /// The word that names it in a configuration file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Suite::Aes256Gcm => "aes-256-gcm",
            Suite::Aes128Gcm => "aes-128-gcm",
            Suite::ChaCha20Poly1305 => "chacha20-poly1305",
            Suite::Aegis128L => "aegis-128l",
            Suite::Paper(suite) => suite.name(),
        }
    }

    /// The suite that a configuration file names so.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Suite> {
        let modern = Self::ALL.iter().copied().find(|suite| suite.name() == name);
        modern.or_else(|| PaperSuite::from_name(name).map(Suite::Paper))
    }

    /// Bytes of its key.
    #[must_use]
    pub fn key_len(self) -> usize {
        match self {
            Suite::Paper(suite) => suite.key_len(),
            modern => modern.algorithm().map_or(AEGIS_KEY_LEN, Algorithm::key_len),
        }
    }

    /// What aws-lc calls it; `None` for what comes from elsewhere.
    fn algorithm(self) -> Option<&'static Algorithm> {
        match self {
            Suite::Aes256Gcm => Some(&AES_256_GCM),
            Suite::Aes128Gcm => Some(&AES_128_GCM),
            Suite::ChaCha20Poly1305 => Some(&CHACHA20_POLY1305),
            Suite::Aegis128L | Suite::Paper(_) => None,
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn has_aes_instructions() -> bool {
    std::arch::is_x86_feature_detected!("aes") && std::arch::is_x86_feature_detected!("avx")
}

#[cfg(target_arch = "aarch64")]
fn has_aes_instructions() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn has_aes_instructions() -> bool {
    false
}

/// The frame was not sealed under this key and number, or was changed since. Nothing more can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadTag;

impl fmt::Display for BadTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the authentication tag does not match")
    }
}

impl std::error::Error for BadTag {}

/// A suite with its key.
enum Cipher {
    AwsLc(LessSafeKey),
    Aegis(Zeroizing<[u8; AEGIS_KEY_LEN]>),
    Paper(paper::FrameKey),
}

/// Key and initialisation vector of one direction; what both ends share.
struct FrameKey {
    cipher: Cipher,
    iv: Zeroizing<[u8; 12]>,
}

impl FrameKey {
    fn new(suite: Suite, key: &[u8], iv: [u8; 12]) -> Result<Self, KeyError> {
        let length = KeyError::Length { expected: suite.key_len(), found: key.len() };
        let cipher = match (suite, suite.algorithm()) {
            (Suite::Paper(suite), _) => Cipher::Paper(paper::FrameKey::new(suite, key)?),
            (_, Some(algorithm)) => {
                Cipher::AwsLc(LessSafeKey::new(UnboundKey::new(algorithm, key).map_err(|_| length)?))
            }
            (_, None) => Cipher::Aegis(Zeroizing::new(key.try_into().map_err(|_| length)?)),
        };
        Ok(FrameKey { cipher, iv: Zeroizing::new(iv) })
    }

    fn nonce(&self, sequence: u64) -> [u8; 12] {
        let mut nonce = *self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(sequence.to_be_bytes()) {
            *byte ^= number;
        }
        nonce
    }
}

/// AEGIS-128L for one frame. Its nonce of 16 bytes is that of the other suites followed by four zero bytes, which is as
/// unique as that one is.
fn aegis(key: &[u8; AEGIS_KEY_LEN], nonce: [u8; 12]) -> Aegis128L<TAG_LEN> {
    let mut long = [0; 16];
    long[..nonce.len()].copy_from_slice(&nonce);
    Aegis128L::new(key, &long)
}

/// Seals the frames of one direction.
pub struct SealingKey(FrameKey);

impl SealingKey {
    /// A key for `suite` whose nonces start from `iv`.
    ///
    /// # Errors
    /// [`KeyError::Length`] when `key` is not [`Suite::key_len`] bytes long.
    pub fn new(suite: Suite, key: &[u8], iv: [u8; 12]) -> Result<Self, KeyError> {
        FrameKey::new(suite, key, iv).map(SealingKey)
    }

    /// Encrypts `in_out` in place and returns the tag over it and `associated`. With nothing to hide, `in_out` is empty
    /// and everything is `associated`. The caller never uses a `sequence` twice.
    ///
    /// # Errors
    /// [`KeyError::Refused`] beyond the suite's length limit, which is far above any frame.
    pub fn seal(&self, sequence: u64, associated: &[u8], in_out: &mut [u8]) -> Result<[u8; TAG_LEN], KeyError> {
        let nonce = self.0.nonce(sequence);
        match &self.0.cipher {
            Cipher::AwsLc(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                let sealed = key.seal_in_place_separate_tag(nonce, Aad::from(associated), in_out);
                tag_bytes(sealed.map_err(|_| KeyError::Refused)?.as_ref())
            }
            Cipher::Aegis(key) => Ok(aegis(key, nonce).encrypt_in_place(in_out, associated)),
            Cipher::Paper(key) => key.seal(&nonce, associated, in_out),
        }
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(redacted)")
    }
}

/// Opens the frames of one direction.
pub struct OpeningKey(FrameKey);

impl OpeningKey {
    /// A key for `suite` whose nonces start from `iv`.
    ///
    /// # Errors
    /// [`KeyError::Length`] when `key` is not [`Suite::key_len`] bytes long.
    pub fn new(suite: Suite, key: &[u8], iv: [u8; 12]) -> Result<Self, KeyError> {
        FrameKey::new(suite, key, iv).map(OpeningKey)
    }

    /// Checks `tag` over `ciphertext` and `associated` and writes the plaintext, of the ciphertext's length, in one pass.
    ///
    /// # Errors
    /// [`BadTag`] when the tag does not match; `plaintext_out` then holds nothing of use and must not be read. Also when
    /// the lengths differ.
    pub fn open(
        &self,
        sequence: u64,
        associated: &[u8],
        ciphertext: &[u8],
        tag: &[u8; TAG_LEN],
        plaintext_out: &mut [u8],
    ) -> Result<(), BadTag> {
        let nonce = self.0.nonce(sequence);
        match &self.0.cipher {
            Cipher::AwsLc(key) => key
                .open_separate_gather(
                    Nonce::assume_unique_for_key(nonce),
                    Aad::from(associated),
                    ciphertext,
                    tag,
                    plaintext_out,
                )
                .map_err(|_| BadTag),
            Cipher::Aegis(key) => {
                if ciphertext.len() != plaintext_out.len() {
                    return Err(BadTag);
                }
                plaintext_out.copy_from_slice(ciphertext);
                aegis(key, nonce).decrypt_in_place(plaintext_out, tag, associated).map_err(|_| BadTag)
            }
            Cipher::Paper(key) => key.open(&nonce, associated, ciphertext, tag, plaintext_out),
        }
    }
}

impl fmt::Debug for OpeningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OpeningKey(redacted)")
    }
}

fn tag_bytes(tag: &[u8]) -> Result<[u8; TAG_LEN], KeyError> {
    tag.try_into().map_err(|_| KeyError::Refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_hex::{array, bytes};

    struct Vector {
        suite: Suite,
        key: Vec<u8>,
        iv: [u8; 12],
        associated: Vec<u8>,
        plaintext: Vec<u8>,
        ciphertext: Vec<u8>,
        tag: [u8; 16],
    }

    /// McGrew and Viega, "The Galois/Counter Mode of Operation", test cases 4 and 16; RFC 8439, section 2.8.2;
    /// draft-irtf-cfrg-aegis-aead, AEGIS-128L test vector 5.
    fn vectors() -> [Vector; 4] {
        let plaintext = "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
                         1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39";
        let gcm = |suite, key: &str, ciphertext, tag| Vector {
            suite,
            key: bytes(key),
            iv: array("cafebabefacedbaddecaf888"),
            associated: bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2"),
            plaintext: bytes(plaintext),
            ciphertext: bytes(ciphertext),
            tag: array(tag),
        };
        [
            gcm(
                Suite::Aes128Gcm,
                "feffe9928665731c6d6a8f9467308308",
                "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e\
                 21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
                "5bc94fbc3221a5db94fae95ae7121a47",
            ),
            gcm(
                Suite::Aes256Gcm,
                "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
                "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa\
                 8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
                "76fc6ece0f4e1768cddf8853bb2d551b",
            ),
            Vector {
                suite: Suite::ChaCha20Poly1305,
                key: bytes("808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f"),
                iv: array("070000004041424344454647"),
                associated: bytes("50515253c0c1c2c3c4c5c6c7"),
                plaintext: b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the \
                             future, sunscreen would be it."
                    .to_vec(),
                ciphertext: bytes(
                    "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d63dbea45e8ca9671282fafb69da92728b\
                     1a71de0a9e060b2905d6a5b67ecd3b3692ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc\
                     3ff4def08e4b7a9de576d26586cec64b6116",
                ),
                tag: array("1ae10b594f09e26a7e902ecbd0600691"),
            },
            Vector {
                suite: Suite::Aegis128L,
                key: bytes("10010000000000000000000000000000"),
                iv: array("100002000000000000000000"),
                associated: bytes(
                    "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20212223242526272829",
                ),
                plaintext: bytes("101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f3031323334353637"),
                ciphertext: bytes("b31052ad1cca4e291abcf2df3502e6bdb1bfd6db36798be3607b1f94d34478aa7ede7f7a990fec10"),
                tag: array("7542a745733014f9474417b337399507"),
            },
        ]
    }

    /// The vector's nonce, reached from an initialisation vector that `sequence` is folded into.
    fn folded(iv: [u8; 12], sequence: u64) -> [u8; 12] {
        let mut number = [0; 12];
        number[4..].copy_from_slice(&sequence.to_be_bytes());
        std::array::from_fn(|at| iv[at] ^ number[at])
    }

    #[test]
    fn published_vectors_seal_and_open_at_any_sequence_number() {
        for vector in vectors() {
            for sequence in [0, 1, 0x0123_4567_89ab_cdef, u64::MAX] {
                let iv = folded(vector.iv, sequence);
                let sealing = SealingKey::new(vector.suite, &vector.key, iv).expect("key");
                let opening = OpeningKey::new(vector.suite, &vector.key, iv).expect("key");

                let mut in_place = vector.plaintext.clone();
                assert_eq!(sealing.seal(sequence, &vector.associated, &mut in_place), Ok(vector.tag));
                assert_eq!(in_place, vector.ciphertext);

                let mut opened = vec![0; vector.ciphertext.len()];
                let result = opening.open(sequence, &vector.associated, &vector.ciphertext, &vector.tag, &mut opened);
                assert_eq!((result, opened), (Ok(()), vector.plaintext.clone()));
            }
        }
    }

    #[test]
    fn whatever_was_changed_does_not_open_and_leaks_nothing() {
        for vector in vectors() {
            let opening = OpeningKey::new(vector.suite, &vector.key, vector.iv).expect("key");
            let refused = |sequence: u64, associated: &[u8], ciphertext: &[u8], tag: &[u8; 16]| {
                let mut opened = vec![0; ciphertext.len()];
                assert_eq!(opening.open(sequence, associated, ciphertext, tag, &mut opened), Err(BadTag));
                assert!(!opened.windows(8).any(|window| vector.plaintext.starts_with(window)), "plaintext leaked");
            };
            let flipped = |bytes: &[u8]| {
                let mut bytes = bytes.to_vec();
                bytes[0] ^= 0x80;
                bytes
            };
            let Vector { associated, ciphertext, tag, .. } = &vector;
            refused(1, associated, ciphertext, tag);
            refused(0, &flipped(associated), ciphertext, tag);
            refused(0, associated, &flipped(ciphertext), tag);
            refused(0, associated, &ciphertext[1..], tag);
            refused(0, associated, ciphertext, &flipped(tag).try_into().expect("16 bytes"));
        }
    }

    #[test]
    fn a_frame_in_clear_is_authenticated_all_the_same() {
        for &suite in Suite::ALL {
            let key = vec![7; suite.key_len()];
            let tag = SealingKey::new(suite, &key, [1; 12]).expect("key").seal(9, b"frame", &mut []).expect("tag");
            let opening = OpeningKey::new(suite, &key, [1; 12]).expect("key");
            assert_eq!(opening.open(9, b"frame", &[], &tag, &mut []), Ok(()));
            assert_eq!(opening.open(9, b"flame", &[], &tag, &mut []), Err(BadTag));
        }
    }

    #[test]
    fn suites_are_found_by_number_and_name() {
        for &suite in Suite::ALL {
            assert_eq!(Suite::from_id(suite.id()), Some(suite));
            assert_eq!(Suite::from_name(suite.name()), Some(suite));
            let short = KeyError::Length { expected: suite.key_len(), found: 15 };
            assert_eq!(SealingKey::new(suite, &[0; 15], [0; 12]).map(drop), Err(short));
        }
        assert_eq!(Suite::ALL.iter().map(|suite| suite.key_len()).collect::<Vec<_>>(), [16, 32, 16, 32]);
        assert_eq!((Suite::from_id(0), Suite::from_id(5), Suite::from_name("")), (None, None, None));
    }

    #[test]
    fn lengths_that_differ_are_refused() {
        let opening = OpeningKey::new(Suite::Aes128Gcm, &[0; 16], [0; 12]).expect("key");
        assert_eq!(opening.open(0, &[], &[0; 8], &[0; 16], &mut [0; 7]), Err(BadTag));
    }
}
