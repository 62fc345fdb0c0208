//! Which algorithms a site works with.

use std::fmt;

/// Random bytes from which a secret key of the paper profile is made: 64 bits more than q has, so that hardly any is more
/// likely than another (FIPS 186-4, B.1.1).
pub const KEY_RANDOM_LEN: usize = 28;
/// Random bytes from which exponentials are made ahead.
pub const PAIR_RANDOM_LEN: usize = 32;
/// Random bytes from which an RSA key of the paper profile is made.
pub const RSA_RANDOM_LEN: usize = 32;

/// Whether this build has the paper profile.
pub const HAS_PAPER: bool = cfg!(feature = "paper");

/// The set of algorithms of a site. Keys of one profile are never believed in the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The only one for real use.
    #[default]
    Modern,
    /// What the papers used, so that their tables can be measured again: for S-ARP DSA of 512 or 1024 bits with SHA-1, for
    /// CLL what its Table 1 lists. DSA keys of 512 bits are broken in hours by anybody.
    Paper,
}

impl Profile {
    /// Its word in configurations and commands.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Profile::Modern => "modern",
            Profile::Paper => "paper",
        }
    }

    /// The profile that is named so.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Profile> {
        [Profile::Modern, Profile::Paper].into_iter().find(|profile| profile.name() == name)
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How long the prime of a DSA key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLength {
    /// 512 bits.
    Bits512,
    /// 1024 bits.
    Bits1024,
}

impl KeyLength {
    /// Both lengths.
    pub const ALL: [KeyLength; 2] = [KeyLength::Bits512, KeyLength::Bits1024];

    /// The length in bits.
    #[must_use]
    pub fn bits(self) -> u16 {
        match self {
            KeyLength::Bits512 => 512,
            KeyLength::Bits1024 => 1024,
        }
    }

    /// The number of DSA with keys of this length in S-ARP records.
    #[must_use]
    pub fn record_number(self) -> u8 {
        match self {
            KeyLength::Bits512 => 3,
            KeyLength::Bits1024 => 4,
        }
    }

    /// The length with so many bits.
    #[must_use]
    pub fn from_bits(bits: u16) -> Option<KeyLength> {
        KeyLength::ALL.into_iter().find(|length| length.bits() == bits)
    }

    /// The length whose algorithm has this number.
    #[must_use]
    pub fn of_record_number(number: u8) -> Option<KeyLength> {
        KeyLength::ALL.into_iter().find(|length| length.record_number() == number)
    }

    /// Bytes of a public key.
    #[must_use]
    pub fn bytes(self) -> usize {
        usize::from(self.bits()) / 8
    }
}

impl fmt::Display for KeyLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DSA-{}", self.bits())
    }
}

/// What an RSA key of the paper profile hashes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RsaHash {
    /// Collisions of it are known.
    Sha1,
    /// FIPS 180-4.
    Sha256,
    /// ISO 10118-3.
    Ripemd160,
}

impl RsaHash {
    /// All of the CLL paper's Table 1.
    pub const ALL: [RsaHash; 3] = [RsaHash::Sha1, RsaHash::Sha256, RsaHash::Ripemd160];

    /// Its word on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            RsaHash::Sha1 => "sha1",
            RsaHash::Sha256 => "sha256",
            RsaHash::Ripemd160 => "ripemd160",
        }
    }

    /// The hash that is named so.
    #[must_use]
    pub fn from_name(name: &str) -> Option<RsaHash> {
        RsaHash::ALL.into_iter().find(|hash| hash.name() == name)
    }

    /// The number in front of a secret key with this hash, apart from those of [`KeyLength::record_number`].
    #[must_use]
    pub fn block_number(self) -> u8 {
        match self {
            RsaHash::Sha1 => 16,
            RsaHash::Sha256 => 17,
            RsaHash::Ripemd160 => 18,
        }
    }

    /// The hash with this number.
    #[must_use]
    pub fn of_block_number(number: u8) -> Option<RsaHash> {
        RsaHash::ALL.into_iter().find(|hash| hash.block_number() == number)
    }
}

/// An RSA key of the paper profile: how long its modulus is, and its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RsaKey {
    bits: u16,
    hash: RsaHash,
}

impl RsaKey {
    /// The lengths in bits, the paper's "typically 1024 to 2048".
    pub const LENGTHS: [u16; 3] = [1024, 1536, 2048];

    /// `None` for another length.
    #[must_use]
    pub fn new(bits: u16, hash: RsaHash) -> Option<RsaKey> {
        RsaKey::LENGTHS.contains(&bits).then_some(RsaKey { bits, hash })
    }

    /// The length of the modulus in bits.
    #[must_use]
    pub fn bits(self) -> u16 {
        self.bits
    }

    /// What it hashes with.
    #[must_use]
    pub fn hash(self) -> RsaHash {
        self.hash
    }
}

/// The second key of a host of a paper site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaperKey {
    /// A DSA key, which signs S-ARP.
    Dsa(KeyLength),
    /// An RSA key, which signs the handshakes of CLL.
    Rsa(RsaKey),
}
