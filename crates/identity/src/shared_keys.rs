//! Keys that a site's hosts share, and how one takes the place of another while they work (record
//! 0064).
//!
//! Each key has a generation. At most two are in force at a time: the newest, and the one before it
//! for a while, so that no two hosts ever need to change at the same moment. Until the newest key's
//! first second hosts send with the one before; from then on with the newest; and behind the older
//! one's last second only the newest counts. All of these times come with the keys, under the
//! authority's signature.

use std::fmt;

use zeroize::Zeroizing;

use crate::certificate::{HostCertificate, TrustAnchor};
use crate::hash::sha256;
use crate::pem::{self, Block};
use crate::{BadSignature, KeyError};

/// Bytes in front of a key that has a term: its generation, its first second and its last.
pub const TERM_LEN: usize = 4 + 8 + 8;
/// The last second of a key that nothing is known to follow.
pub const NO_END: u64 = u64::MAX;
/// Most keys of one kind that are in force at a time.
pub const IN_FORCE_MAX: usize = 2;

/// Keeps the authority's signature under shared keys apart from all others, which are over DER.
const SIGNED_LABEL: &[u8] = b"ringwall shared keys";

/// Which one of a site's keys it is; later ones have larger numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u32);

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// When a key is used. Both ends are in seconds since 1970 and belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// Which key it is.
    pub generation: Generation,
    /// From then on hosts send with it. They accept it as soon as they have it.
    pub from_unix_s: u64,
    /// Until then they accept it; [`NO_END`] if nothing follows yet.
    pub until_unix_s: u64,
}

impl Term {
    /// That of a site's first key, before anything follows it.
    pub const FIRST: Term = Term { generation: Generation(0), from_unix_s: 0, until_unix_s: NO_END };

    fn emit(self) -> [u8; TERM_LEN] {
        let mut out = [0; TERM_LEN];
        out[..4].copy_from_slice(&self.generation.0.to_be_bytes());
        out[4..12].copy_from_slice(&self.from_unix_s.to_be_bytes());
        out[12..].copy_from_slice(&self.until_unix_s.to_be_bytes());
        out
    }

    fn read(bytes: &[u8; TERM_LEN]) -> Term {
        let number = |at: usize| bytes[at..at + 8].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        Term { generation: Generation((number(0) >> 32) as u32), from_unix_s: number(4), until_unix_s: number(12) }
    }
}

/// A kind of key that hosts share.
pub trait Shared: Sized {
    /// The label of its blocks.
    const LABEL: &'static str;
    /// Its bytes in a block without a term.
    const LEN: usize;

    /// Its bytes.
    fn to_bytes(&self) -> Zeroizing<Vec<u8>>;

    /// The key of these bytes.
    ///
    /// # Errors
    /// [`KeyError::Length`].
    fn from_bytes(bytes: &[u8]) -> Result<Self, KeyError>;
}

/// The keys of one kind that are in force: the newest, and perhaps the one before it.
#[derive(Clone, Debug)]
pub struct Succession<K> {
    older: Option<(Term, K)>,
    newest: (Term, K),
}

impl<K> Succession<K> {
    /// A key that nothing precedes and nothing follows.
    #[must_use]
    pub fn first(key: K) -> Succession<K> {
        Succession { older: None, newest: (Term::FIRST, key) }
    }

    /// The keys in force, in any order.
    ///
    /// # Errors
    /// [`KeyError::Succession`] unless they are one or two, of different generations, the newest
    /// without an end.
    pub fn new(keys: Vec<(Term, K)>) -> Result<Succession<K>, KeyError> {
        let mut keys = keys;
        keys.sort_by_key(|(term, _)| term.generation);
        let newest = keys.pop().ok_or(KeyError::Succession)?;
        let older = keys.pop();
        let is_earlier = older.as_ref().is_none_or(|(term, _)| term.generation < newest.0.generation);
        if !keys.is_empty() || !is_earlier || newest.0.until_unix_s != NO_END {
            return Err(KeyError::Succession);
        }
        Ok(Succession { older, newest })
    }

    /// The newest key. Hosts accept it, and may not send with it yet.
    #[must_use]
    pub fn newest(&self) -> (Term, &K) {
        (self.newest.0, &self.newest.1)
    }

    /// All of them, the older one first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Term, &K)> {
        self.older.iter().chain([&self.newest]).map(|(term, key)| (*term, key))
    }

    /// Those that are accepted at `unix_s`, the one to send with first.
    pub fn accepted(&self, unix_s: u64) -> impl Iterator<Item = (Term, &K)> {
        let older = self.older.as_ref().filter(|(term, _)| term.until_unix_s >= unix_s);
        let sends_newest = older.is_none() || self.newest.0.from_unix_s <= unix_s;
        let both = [Some(&self.newest), older];
        let [first, second] = if sends_newest { both } else { [both[1], both[0]] };
        first.into_iter().chain(second).map(|(term, key)| (*term, key))
    }

    /// The one to send with at `unix_s`.
    #[must_use]
    pub fn sending(&self, unix_s: u64) -> (Term, &K) {
        self.accepted(unix_s).next().unwrap_or((self.newest.0, &self.newest.1))
    }

    /// The first second behind `unix_s` at which other keys are sent with or accepted.
    #[must_use]
    pub fn changes_after(&self, unix_s: u64) -> Option<u64> {
        let (older, _) = self.older.as_ref()?;
        let times =
            [self.newest.0.from_unix_s.min(older.until_unix_s.saturating_add(1)), older.until_unix_s.saturating_add(1)];
        times.into_iter().find(|time| *time > unix_s)
    }

    /// What follows from each of them.
    pub fn map<J>(&self, derive: impl Fn(&K) -> J) -> Succession<J> {
        let derive = |(term, key): &(Term, K)| (*term, derive(key));
        Succession { older: self.older.as_ref().map(derive), newest: derive(&self.newest) }
    }
}

impl<K> From<K> for Succession<K> {
    fn from(key: K) -> Self {
        Succession::first(key)
    }
}

impl<K: Shared> Succession<K> {
    /// The keys as PEM blocks, the older one first. A site's first key, before anything follows it,
    /// is written without a term.
    #[must_use]
    pub fn to_pem(&self) -> Zeroizing<String> {
        let blocks = self.blocks().map(|bytes| pem::encode(K::LABEL, &bytes));
        Zeroizing::new(blocks.fold(String::new(), |text, block| text + &block))
    }

    /// Reads the keys from a text that holds nothing else.
    ///
    /// # Errors
    /// Malformed PEM, another label, or as [`new`](Succession::new).
    pub fn from_pem(text: &str) -> Result<Succession<K>, KeyError> {
        let blocks = pem::blocks(text)?;
        if blocks.iter().any(|block| block.label != K::LABEL) {
            return Err(pem::PemError::WrongLabel(K::LABEL).into());
        }
        Self::from_blocks(&blocks)
    }

    pub(crate) fn from_blocks(blocks: &[Block]) -> Result<Succession<K>, KeyError> {
        Self::new(blocks.iter().map(|block| read(&block.bytes)).collect::<Result<_, _>>()?)
    }

    fn blocks(&self) -> impl Iterator<Item = Zeroizing<Vec<u8>>> {
        let is_bare = self.is_first();
        self.iter().map(move |(term, key)| {
            let mut bytes = Zeroizing::new(if is_bare { Vec::new() } else { term.emit().to_vec() });
            bytes.extend_from_slice(&key.to_bytes());
            bytes
        })
    }

    /// Whether it is a site's first key, which nothing follows yet.
    #[must_use]
    pub fn is_first(&self) -> bool {
        self.older.is_none() && self.newest.0 == Term::FIRST
    }
}

fn read<K: Shared>(bytes: &[u8]) -> Result<(Term, K), KeyError> {
    if bytes.len() == K::LEN {
        return Ok((Term::FIRST, K::from_bytes(bytes)?));
    }
    // It has a term or none; which one was meant is a guess.
    let expected = if bytes.len() <= K::LEN + TERM_LEN / 2 { K::LEN } else { K::LEN + TERM_LEN };
    let length = KeyError::Length { expected, found: bytes.len() };
    let (term, key) = bytes.split_first_chunk::<TERM_LEN>().filter(|(_, key)| key.len() == K::LEN).ok_or(length)?;
    Ok((Term::read(term), K::from_bytes(key)?))
}

/// What the authority signs of the shared keys that it gives to one host: those that have a term.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// Of each key in its order: what stands for its label and its block.
    digests: Vec<u8>,
}

impl Statement {
    /// With these keys behind those before. The order is that of the written protocol: site,
    /// request and DHCP keys, request and DHCP masters.
    pub fn add<K: Shared>(&mut self, keys: Option<&Succession<K>>) {
        for bytes in keys.into_iter().filter(|keys| !keys.is_first()).flat_map(Succession::blocks) {
            let label = K::LABEL.as_bytes();
            self.digests.extend_from_slice(&sha256(&[&(label.len() as u16).to_be_bytes(), label, &bytes]));
        }
    }

    /// Whether there is anything that has to be signed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// What is signed for the host with this certificate.
    #[must_use]
    pub fn signed_bytes(&self, certificate: &HostCertificate) -> Vec<u8> {
        [SIGNED_LABEL, &sha256(&[certificate.der()]), &self.digests].concat()
    }

    /// Checks that the authority signed it for the host with this certificate.
    ///
    /// # Errors
    /// [`BadSignature`].
    pub fn verify(
        &self,
        anchor: &TrustAnchor,
        certificate: &HostCertificate,
        signature: &[u8],
    ) -> Result<(), BadSignature> {
        anchor.verify_signature(&self.signed_bytes(certificate), signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site_key::SiteKey;

    /// Made by `vectors/make.py` from the written protocol alone.
    const VECTORS: &str = include_str!("../../../vectors/shared-keys.txt");
    const CHANGE: u64 = 1_800_600_000;
    const END: u64 = 1_800_700_000;

    fn key(seed: u8) -> SiteKey {
        SiteKey::from_bytes([seed; 32])
    }

    fn term(generation: u32, from_unix_s: u64, until_unix_s: u64) -> Term {
        Term { generation: Generation(generation), from_unix_s, until_unix_s }
    }

    fn two() -> Succession<SiteKey> {
        Succession::new(vec![(term(4, CHANGE, NO_END), key(4)), (term(3, 0, END), key(3))]).expect("in order")
    }

    fn accepted(keys: &Succession<SiteKey>, unix_s: u64) -> Vec<u32> {
        keys.accepted(unix_s).map(|(term, _)| term.generation.0).collect()
    }

    fn vector(name: &str) -> Vec<u8> {
        let line = VECTORS.lines().filter_map(|line| line.split_once(" = ")).find(|(found, _)| *found == name);
        crate::test_hex::bytes(line.expect("in the file").1)
    }

    #[test]
    fn the_golden_keys_come_with_the_authoritys_signature() {
        let blocks = [
            (pem::CERTIFICATE, "certificate"),
            (pem::CERTIFICATE, "authority"),
            (pem::PRIVATE_KEY, "private_key"),
            (pem::SITE_KEY, "next.block"),
            (pem::SITE_KEY, "former.block"),
            (pem::SHARED_KEYS_SIGNATURE, "signature"),
        ];
        let text: String = blocks.iter().map(|(label, name)| pem::encode(label, &vector(name)).to_string()).collect();
        let identity = crate::HostIdentity::from_pem(&text).expect("signed");
        let keys = identity.site_keys();
        let terms: Vec<Term> = keys.iter().map(|(term, _)| term).collect();
        assert_eq!(terms, [term(7, 1_800_000_000, END), term(8, CHANGE, NO_END)]);
        let tags = keys.iter().map(|(_, key)| key.tag(b"handshake", &[b"message"]).to_vec());
        assert!(tags.eq([vector("former.tag"), vector("next.tag")]));
        let mut statement = Statement::default();
        statement.add(Some(keys));
        assert_eq!(statement.signed_bytes(identity.certificate()), vector("statement"));
        let written = pem::blocks(&keys.to_pem()).expect("own text");
        assert_eq!([&*written[0].bytes, &*written[1].bytes], [&vector("former.block"), &vector("next.block")]);
    }

    #[test]
    fn the_golden_requests_say_what_their_host_has() {
        let asked = |name: &str| {
            let request = crate::certificate::CertificateRequest::from_der(&vector(name)).expect("signed by its key");
            request.has_generation()
        };
        assert_eq!(asked("request"), Some(Generation(7)));
        assert_eq!(asked("request_of_last"), Some(Generation(u32::MAX)));
    }

    /// Broke `accepted` in turn by sending with the newest at once, and by never dropping the older
    /// one.
    #[test]
    fn the_older_key_is_sent_then_only_accepted_then_nothing() {
        let keys = two();
        assert_eq!(accepted(&keys, 0), [3, 4]);
        assert_eq!(accepted(&keys, CHANGE - 1), [3, 4]);
        assert_eq!(accepted(&keys, CHANGE), [4, 3]);
        assert_eq!(accepted(&keys, END), [4, 3]);
        assert_eq!(accepted(&keys, END + 1), [4]);
        assert_eq!(keys.sending(CHANGE - 1).0.generation, Generation(3));
        let changes = [0, CHANGE - 1, CHANGE, END, END + 1].map(|unix_s| keys.changes_after(unix_s));
        assert_eq!(changes, [Some(CHANGE), Some(CHANGE), Some(END + 1), Some(END + 1), None]);
    }

    #[test]
    fn a_key_that_ends_before_the_next_begins_leaves_no_gap() {
        let keys = Succession::new(vec![(term(1, 0, 99), key(1)), (term(2, 200, NO_END), key(2))]).expect("in order");
        assert_eq!(accepted(&keys, 99), [1, 2]);
        assert_eq!(accepted(&keys, 100), [2]);
        assert_eq!((keys.changes_after(0), keys.changes_after(100)), (Some(100), None));
        let alone = Succession::first(key(1));
        assert_eq!((accepted(&alone, 0), alone.changes_after(0)), (vec![0], None));
    }

    #[test]
    fn keys_read_back_and_a_first_one_looks_as_ever() {
        let read = Succession::<SiteKey>::from_pem(&two().to_pem()).expect("own text");
        assert_eq!(*read.to_pem(), *two().to_pem());
        assert_eq!((read.newest().0, accepted(&read, 0)), (term(4, CHANGE, NO_END), vec![3, 4]));
        let first = Succession::first(key(7));
        assert_eq!(*first.to_pem(), *key(7).to_pem());
        assert_eq!(
            Succession::<SiteKey>::from_pem(&key(7).to_pem()).expect("a file of before").newest().0,
            Term::FIRST
        );
    }

    #[test]
    fn what_is_no_succession_is_refused() {
        let of = |terms: &[Term]| Succession::new(terms.iter().map(|term| (*term, ())).collect()).map(drop);
        let refused = Err(KeyError::Succession);
        assert_eq!(of(&[]), refused);
        assert_eq!(of(&[term(1, 0, END), term(1, 5, NO_END)]), refused, "two of one generation");
        assert_eq!(of(&[term(1, 0, NO_END), term(2, 5, END)]), refused, "a newest one that ends");
        assert_eq!(of(&[term(1, 0, END), term(2, 5, END), term(3, 9, NO_END)]), refused, "three");
        let text = pem::encode(pem::SITE_KEY, &[1; 51]);
        let error = Succession::<SiteKey>::from_pem(&text).map(drop);
        assert_eq!(error, Err(KeyError::Length { expected: 52, found: 51 }));
    }

    #[test]
    fn what_is_signed_is_each_key_with_its_term_and_for_one_host() {
        let certificate = HostCertificate::from_validated(include_bytes!("../tests/data/host.der")).expect("one");
        let signed = |keys: &Succession<SiteKey>| {
            let mut statement = Statement::default();
            statement.add(Some(keys));
            statement.add::<crate::dhcp_key::DhcpMaster>(None);
            (!statement.is_empty(), statement.signed_bytes(&certificate))
        };
        let (has_terms, bytes) = signed(&two());
        assert!(has_terms && bytes.len() == SIGNED_LABEL.len() + 3 * 32);
        let later = Succession::new(vec![(term(4, CHANGE + 1, NO_END), key(4)), (term(3, 0, END), key(3))]);
        let other = Succession::new(vec![(term(4, CHANGE, NO_END), key(5)), (term(3, 0, END), key(3))]);
        assert!(signed(&later.expect("in order")).1 != bytes && signed(&other.expect("in order")).1 != bytes);
        assert!(!signed(&Succession::first(key(1))).0);
    }
}
