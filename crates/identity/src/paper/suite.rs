//! The suites of the CLL paper's Table 1: a block cipher in CBC mode with a key of 128 to 256 bits, and an HMAC.

use std::sync::LazyLock;

/// The number of the first suite in a handshake. Suite `n` from there on is cipher `n / 5` with hash `n % 5`, in the order of
/// [`CIPHERS`] and [`Hash::ALL`].
const FIRST_ID: u8 = 0x40;

/// A block cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Cipher {
    Aes,
    Twofish,
    Serpent,
    Rc6,
    Mars,
    Cast256,
    Blowfish,
    Rc5,
    Cast128,
    Seed,
    Gost,
}

impl Cipher {
    fn word(self) -> &'static str {
        match self {
            Cipher::Aes => "aes",
            Cipher::Twofish => "twofish",
            Cipher::Serpent => "serpent",
            Cipher::Rc6 => "rc6",
            Cipher::Mars => "mars",
            Cipher::Cast256 => "cast256",
            Cipher::Blowfish => "blowfish",
            Cipher::Rc5 => "rc5",
            Cipher::Cast128 => "cast128",
            Cipher::Seed => "seed",
            Cipher::Gost => "gost",
        }
    }
}

/// Every cipher with each of its key lengths in bits, in the order of the numbers in handshakes. CAST-128 and SEED have keys of 128
/// bits and no others, GOST of 256.
pub(super) const CIPHERS: [(Cipher, u16); 27] = [
    (Cipher::Aes, 128),
    (Cipher::Aes, 192),
    (Cipher::Aes, 256),
    (Cipher::Twofish, 128),
    (Cipher::Twofish, 192),
    (Cipher::Twofish, 256),
    (Cipher::Serpent, 128),
    (Cipher::Serpent, 192),
    (Cipher::Serpent, 256),
    (Cipher::Rc6, 128),
    (Cipher::Rc6, 192),
    (Cipher::Rc6, 256),
    (Cipher::Mars, 128),
    (Cipher::Mars, 192),
    (Cipher::Mars, 256),
    (Cipher::Cast256, 128),
    (Cipher::Cast256, 192),
    (Cipher::Cast256, 256),
    (Cipher::Blowfish, 128),
    (Cipher::Blowfish, 192),
    (Cipher::Blowfish, 256),
    (Cipher::Rc5, 128),
    (Cipher::Rc5, 192),
    (Cipher::Rc5, 256),
    (Cipher::Cast128, 128),
    (Cipher::Seed, 128),
    (Cipher::Gost, 256),
];

/// What an HMAC is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Hash {
    Md5,
    Sha1,
    Sha256,
    Ripemd160,
    Has160,
}

impl Hash {
    /// In the order of the numbers in handshakes.
    pub(super) const ALL: [Hash; 5] = [Hash::Md5, Hash::Sha1, Hash::Sha256, Hash::Ripemd160, Hash::Has160];

    fn word(self) -> &'static str {
        match self {
            Hash::Md5 => "md5",
            Hash::Sha1 => "sha1",
            Hash::Sha256 => "sha256",
            Hash::Ripemd160 => "ripemd160",
            Hash::Has160 => "has160",
        }
    }

    /// Bytes of the hash, and so of the key of its HMAC (RFC 2104, section 3): 128 to 256 bits, as in Table 1.
    pub(super) fn len(self) -> usize {
        match self {
            Hash::Md5 => 16,
            Hash::Sha1 | Hash::Ripemd160 | Hash::Has160 => 20,
            Hash::Sha256 => 32,
        }
    }
}

/// How many suites have a cipher and a hash.
const COUNT: usize = CIPHERS.len() * Hash::ALL.len();

const _: () = assert!(COUNT <= (u8::MAX - FIRST_ID) as usize, "a number has one byte, and one more suite has no tag");

/// A suite of the paper profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaperSuite(u8);

static NAMES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let name = |((cipher, key_bits), hash): ((Cipher, u16), Hash)| {
        format!("{}-{key_bits}-hmac-{}", cipher.word(), hash.word())
    };
    PaperSuite::all().filter_map(PaperSuite::parts).map(name).collect()
});

impl PaperSuite {
    /// No cipher and no tag: nothing but the nonces tells a frame from a forged one (Touch and Yang, section 4, on nonces alone).
    const NONCE_ONLY: PaperSuite = PaperSuite(COUNT as u8);
    const NONCE_ONLY_NAME: &str = "nonce-only";

    /// Every suite of Table 1, in the order of their numbers. The one without a tag is none of them: who wants it says so.
    pub fn all() -> impl Iterator<Item = PaperSuite> {
        (0..).take(COUNT).map(PaperSuite)
    }

    /// Whether frames carry no tag.
    #[must_use]
    pub fn is_nonce_only(self) -> bool {
        self == PaperSuite::NONCE_ONLY
    }

    fn known() -> impl Iterator<Item = PaperSuite> {
        PaperSuite::all().chain([PaperSuite::NONCE_ONLY])
    }

    /// That of the paper's tables 2 and 3: Twofish, here with 128 bits, and HMAC-MD5.
    #[must_use]
    pub fn of_the_tables() -> Option<PaperSuite> {
        PaperSuite::from_name("twofish-128-hmac-md5")
    }

    /// The number that names it in a handshake.
    #[must_use]
    pub fn id(self) -> u8 {
        FIRST_ID + self.0
    }

    /// The suite that a handshake names so.
    #[must_use]
    pub fn from_id(id: u8) -> Option<PaperSuite> {
        PaperSuite::known().find(|suite| suite.id() == id)
    }

    /// The word that names it in a configuration file: cipher, key length in bits, hash.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.get(usize::from(self.0)).map_or(PaperSuite::NONCE_ONLY_NAME, String::as_str)
    }

    /// The suite that a configuration file names so.
    #[must_use]
    pub fn from_name(name: &str) -> Option<PaperSuite> {
        PaperSuite::known().find(|suite| suite.name() == name)
    }

    /// Bytes of its keys: that of the cipher, then that of the HMAC; none without a tag.
    #[must_use]
    pub fn key_len(self) -> usize {
        self.cipher_key_len() + self.parts().map_or(0, |(_, hash)| hash.len())
    }

    pub(super) fn cipher_key_len(self) -> usize {
        self.parts().map_or(0, |((_, key_bits), _)| usize::from(key_bits) / 8)
    }

    /// What it is made of; `None` without a tag.
    pub(super) fn parts(self) -> Option<((Cipher, u16), Hash)> {
        let number = usize::from(self.0);
        Some((*CIPHERS.get(number / Hash::ALL.len())?, Hash::ALL[number % Hash::ALL.len()]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_is_found_by_number_and_name() {
        assert_eq!(PaperSuite::all().count(), 135);
        for suite in PaperSuite::all() {
            assert_eq!(PaperSuite::from_id(suite.id()), Some(suite));
            assert_eq!(PaperSuite::from_name(suite.name()), Some(suite));
            let ((_, bits), hash) = suite.parts().expect("a cipher and a hash");
            assert!((128..=256).contains(&bits) && (16..=32).contains(&hash.len()), "Table 1: {suite:?}");
        }
        assert_eq!((PaperSuite::from_id(0x3f), PaperSuite::from_id(0xc8)), (None, None));
        assert_eq!(PaperSuite::from_name("twofish-128-hmac-md5").map(PaperSuite::id), Some(0x4f));
        assert_eq!(PaperSuite::from_name("gost-256-hmac-has160").map(PaperSuite::id), Some(0xc6));
    }

    #[test]
    fn the_suite_without_a_tag_is_known_and_taken_by_nobody_unasked() {
        let suite = PaperSuite::from_name("nonce-only").expect("known");
        assert_eq!((suite.id(), PaperSuite::from_id(0xc7), suite.key_len()), (0xc7, Some(suite), 0));
        assert!(suite.is_nonce_only() && PaperSuite::all().all(|other| !other.is_nonce_only() && other != suite));
    }
}
