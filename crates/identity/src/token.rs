//! Join tokens: what a manager hands to a host that shall enrol, and how host and distributors prove themselves by it.
//!
//! ```text
//!  0  form, 1: 1   1  number, 8   9  secret, 16   25  SHA-256 of the authority's certificate, 32
//! 57  length of the name, 1   58  name   then  how many distributors, 1, and of each  IPv4 address, 4  hardware address, 6
//! last  the first 4 bytes of the SHA-256 of all before, against slips of the pen
//! ```
//! As text it is base64 for URLs without padding (RFC 4648, section 5). The secret follows from the site's request master and
//! the number, so a distributor needs no table of tokens to refuse a stranger; most it refuses by the number itself
//! ([`NumberKey`]). Whoever has the token can ask in the host's
//! place; the manager's comparison of fingerprints tells the two apart.

mod number;

use std::fmt;
use std::net::Ipv4Addr;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use wire::MacAddress;
use zeroize::Zeroizing;

use crate::distributor::RequestMaster;
use crate::hash::sha256;
use crate::limits::{MAX_DISTRIBUTORS, MAX_NAME_LEN};
use crate::site_key::{self, SiteKey, TAG_LEN};

pub use number::{DRAWN_LEN, NumberKey};

/// Bytes of a token's secret.
pub const SECRET_LEN: usize = 16;
/// Bytes of the fingerprint of an authority.
pub const FINGERPRINT_LEN: usize = 32;

const FORM: u8 = 1;
const CHECK_LEN: usize = 4;
const PLACE_LEN: usize = 10;
/// Longest token in bytes, all its parts at their longest.
const LEN_MAX: usize =
    1 + 8 + SECRET_LEN + FINGERPRINT_LEN + 1 + MAX_NAME_LEN + 1 + MAX_DISTRIBUTORS * PLACE_LEN + CHECK_LEN;
/// Longest token as text.
const TEXT_LEN_MAX: usize = LEN_MAX.div_ceil(3) * 4;

/// Separate these tags from each other and from all others.
const SECRET_LABEL: &[u8] = b"s-arp token";
const REQUEST_LABEL: &[u8] = b"s-arp enrolment";
const ANSWER_LABEL: &[u8] = b"s-arp enrolment answer";
/// What is sealed for a host that enrols is sealed for this use.
pub const SEALING_INFO: &[u8] = b"ringwall s-arp enrolment";

/// Where a distributor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Its address.
    pub ip: Ipv4Addr,
    /// Its hardware address.
    pub mac: MacAddress,
}

/// A join token.
#[derive(Clone)]
pub struct Token {
    number: u64,
    secret: Zeroizing<[u8; SECRET_LEN]>,
    authority: [u8; FINGERPRINT_LEN],
    name: String,
    distributors: Vec<Place>,
}

/// The text is not a token, or a part of it is missing or wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadToken;

impl fmt::Display for BadToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("this is no whole token of a site; give all that `ringwall site token` printed")
    }
}

impl std::error::Error for BadToken {}

impl Token {
    /// The token with this number of the site whose request master is `master` and whose authority's certificate is
    /// `authority_der`, for the host called `name`. More distributors than a site has are left out.
    #[must_use]
    pub fn new(master: &RequestMaster, number: u64, authority_der: &[u8], name: &str, distributors: &[Place]) -> Token {
        let distributors = distributors.iter().take(MAX_DISTRIBUTORS).copied().collect();
        let authority = sha256(&[authority_der]);
        Token { number, secret: secret(master, number), authority, name: name.to_owned(), distributors }
    }

    /// Its number.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The name that the host shall have.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The distributors that can be asked; none where the site's service is asked.
    #[must_use]
    pub fn distributors(&self) -> &[Place] {
        &self.distributors
    }

    /// Whether `certificate_der` is the certificate of the token's authority.
    #[must_use]
    pub fn is_of(&self, certificate_der: &[u8]) -> bool {
        sha256(&[certificate_der]) == self.authority
    }

    /// What tags are made with.
    #[must_use]
    pub fn key(&self) -> TokenKey {
        TokenKey::of(self.number, &self.secret)
    }

    /// The token as text, which is secret.
    #[must_use]
    pub fn to_text(&self) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new(vec![FORM]);
        bytes.extend(self.number.to_be_bytes());
        bytes.extend(*self.secret);
        bytes.extend(self.authority);
        // Names and lists are no longer than their limits.
        bytes.push(u8::try_from(self.name.len()).unwrap_or(u8::MAX));
        bytes.extend(self.name.as_bytes());
        bytes.push(u8::try_from(self.distributors.len()).unwrap_or(u8::MAX));
        for place in &self.distributors {
            bytes.extend(place.ip.octets());
            bytes.extend(place.mac.0);
        }
        let check = sha256(&[&bytes]);
        bytes.extend(&check[..CHECK_LEN]);
        Zeroizing::new(URL_SAFE_NO_PAD.encode(&*bytes))
    }

    fn parse(text: &str) -> Option<Token> {
        if text.len() > TEXT_LEN_MAX {
            return None;
        }
        let bytes = Zeroizing::new(URL_SAFE_NO_PAD.decode(text).ok()?);
        let (content, check) = bytes.split_last_chunk::<CHECK_LEN>()?;
        if sha256(&[content])[..CHECK_LEN] != *check {
            return None;
        }
        let (form, rest) = content.split_first()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let (secret, rest) = rest.split_first_chunk::<SECRET_LEN>()?;
        let (authority, rest) = rest.split_first_chunk::<FINGERPRINT_LEN>()?;
        let (name_len, rest) = rest.split_first()?;
        let (name, rest) = rest.split_at_checked(usize::from(*name_len))?;
        let (count, places) = rest.split_first()?;
        let distributors: Vec<Place> = places.chunks_exact(PLACE_LEN).filter_map(place).collect();
        let is_whole = *form == FORM
            && !name.is_empty()
            && distributors.len() <= MAX_DISTRIBUTORS
            && usize::from(*count) == distributors.len()
            && places.len() == distributors.len() * PLACE_LEN;
        is_whole.then_some(Token {
            number: u64::from_be_bytes(*number),
            secret: Zeroizing::new(*secret),
            authority: *authority,
            name: std::str::from_utf8(name).ok()?.to_owned(),
            distributors,
        })
    }
}

fn place(bytes: &[u8]) -> Option<Place> {
    let (ip, mac) = bytes.split_first_chunk::<4>()?;
    Some(Place { ip: Ipv4Addr::from(*ip), mac: MacAddress(mac.try_into().ok()?) })
}

impl FromStr for Token {
    type Err = BadToken;

    /// Reads a token; blanks and line ends around it are left out.
    fn from_str(text: &str) -> Result<Token, BadToken> {
        Token::parse(text.trim()).ok_or(BadToken)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").field("number", &self.number).field("name", &self.name).finish_non_exhaustive()
    }
}

fn secret(master: &RequestMaster, number: u64) -> Zeroizing<[u8; SECRET_LEN]> {
    Zeroizing::new(master.site_key().tag(SECRET_LABEL, &[&number.to_be_bytes()]))
}

/// What the messages about one token prove themselves with.
#[derive(Clone, Debug)]
pub struct TokenKey {
    number: u64,
    key: SiteKey,
}

impl TokenKey {
    /// The key of the token with this number.
    #[must_use]
    pub fn from_master(master: &RequestMaster, number: u64) -> TokenKey {
        TokenKey::of(number, &secret(master, number))
    }

    /// HMAC fills a short key with zeros (RFC 2104), so this is the key of 16 bytes.
    fn of(number: u64, secret: &[u8; SECRET_LEN]) -> TokenKey {
        let mut bytes = Zeroizing::new([0; site_key::LEN]);
        bytes[..SECRET_LEN].copy_from_slice(secret);
        TokenKey { number, key: SiteKey::from_bytes(*bytes) }
    }

    /// The number of its token.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The tag of what a host asks, over all bytes that a signature would cover.
    #[must_use]
    pub fn request_tag(&self, signed_bytes: &[u8]) -> [u8; TAG_LEN] {
        self.key.tag(REQUEST_LABEL, &[signed_bytes])
    }

    /// The tag of what a distributor answers.
    #[must_use]
    pub fn answer_tag(&self, signed_bytes: &[u8]) -> [u8; TAG_LEN] {
        self.key.tag(ANSWER_LABEL, &[signed_bytes])
    }

    /// Whether `tag` is that of what a host asks; takes the same time wherever it differs.
    #[must_use]
    pub fn verify_request(&self, signed_bytes: &[u8], tag: &[u8]) -> bool {
        tag.try_into().is_ok_and(|tag| self.key.verify(REQUEST_LABEL, &[signed_bytes], tag))
    }

    /// Whether `tag` is that of what a distributor answers; takes the same time wherever it differs.
    #[must_use]
    pub fn verify_answer(&self, signed_bytes: &[u8], tag: &[u8]) -> bool {
        tag.try_into().is_ok_and(|tag| self.key.verify(ANSWER_LABEL, &[signed_bytes], tag))
    }
}

/// What manager and host compare before the host is approved: 16 bytes of the SHA-256 over the host's public keys, the one that
/// it will sign with and the one that its identity is sealed to, in groups of four digits.
#[must_use]
pub fn fingerprint(signing_key: &[u8], sealing_key: &[u8; 32]) -> String {
    let digest = sha256(&[b"ringwall applicant", sealing_key, signing_key]);
    let groups = digest[..16].chunks(2).map(|pair| pair.iter().map(|byte| format!("{byte:02x}")).collect::<String>());
    groups.collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn token(name: &str, distributors: usize) -> Token {
        let master = RequestMaster::from_bytes([3; 32]);
        let place = |last| Place { ip: Ipv4Addr::new(10, 0, 0, last), mac: MacAddress([2, 0, 0, 0, 0, last]) };
        let places: Vec<Place> = (1..=distributors as u8).map(place).collect();
        Token::new(&master, 0x0102_0304_0506_0708, b"certificate", name, &places)
    }

    #[test]
    fn a_token_reads_back_from_its_text() {
        for (name, distributors) in [("a", 1), ("b", 0), (&"n".repeat(MAX_NAME_LEN)[..], MAX_DISTRIBUTORS)] {
            let text = token(name, distributors).to_text();
            let read: Token = format!(" {}\n", *text).parse().expect("own text");
            assert_eq!((read.number(), read.name()), (0x0102_0304_0506_0708, name));
            assert_eq!(read.distributors(), token(name, distributors).distributors());
            assert!(read.is_of(b"certificate") && !read.is_of(b"another"));
            assert_eq!(*read.to_text(), *text);
            let master = RequestMaster::from_bytes([3; 32]);
            assert!(TokenKey::from_master(&master, read.number()).verify_request(b"x", &read.key().request_tag(b"x")));
        }
    }

    /// Broke the check at the end: a token whose authority was mistyped was read, and the host believed nobody.
    #[test]
    fn every_slip_is_noticed() {
        let text = token("desk", 2).to_text();
        assert!(text.parse::<Token>().is_ok());
        for at in 0..text.len() {
            let mut slipped = text.as_bytes().to_vec();
            slipped[at] = if slipped[at] == b'A' { b'B' } else { b'A' };
            let slipped = String::from_utf8(slipped).expect("text");
            assert!(slipped.parse::<Token>().is_err(), "character {at}");
            assert!(text[..at].parse::<Token>().is_err(), "{at} characters");
        }
        assert!("A".repeat(TEXT_LEN_MAX + 1).parse::<Token>().is_err());
    }

    #[test]
    fn the_two_directions_and_two_tokens_have_tags_of_their_own() {
        let master = RequestMaster::from_bytes([3; 32]);
        let [one, two] = [1, 2].map(|number| TokenKey::from_master(&master, number));
        let tag = one.request_tag(b"message");
        assert!(one.verify_request(b"message", &tag));
        assert!(!one.verify_answer(b"message", &tag) && !two.verify_request(b"message", &tag));
        assert!(!one.verify_request(b"message", &tag[..15]) && !one.verify_request(b"massage", &tag));
        // The tags of hosts' requests come from the same master.
        assert!(!master.key_of(1).verify(b"message", &tag));
    }

    #[test]
    fn nothing_secret_is_printed() {
        let token = token("desk", 1);
        let printed = format!("{token:?} {:?}", token.key());
        assert!(!printed.contains(&format!("{:?}", *token.secret)), "{printed}");
        assert!(printed.contains("desk") && printed.contains("SiteKey(redacted)"), "{printed}");
    }

    #[test]
    fn a_fingerprint_is_of_both_keys() {
        let one = fingerprint(&[1; 32], &[2; 32]);
        assert_eq!(one.len(), 39);
        assert_ne!(one, fingerprint(&[1; 32], &[3; 32]));
        assert_ne!(one, fingerprint(&[3; 32], &[2; 32]));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "[A-Za-z0-9_-]{0,300}") {
            let _ = text.parse::<Token>();
        }
    }
}
