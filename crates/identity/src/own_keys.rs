//! The keys that a host signs ARP with once it has changed the one of its certificate: the one that counts, and the next one
//! while the distributors have not said that they have it.
//!
//! ```text
//!  0  SHA-256 of the host's certificate, 32   32  1 it counts, 2 it comes next   33  made at, 8: seconds since 1970   41  PKCS#8
//! ```
//! Each is one PEM block. They go with one certificate: a host that is given another begins with the key of that one.

use std::fmt;

use zeroize::Zeroizing;

use crate::certificate::HostCertificate;
use crate::hash::sha256;
use crate::signing::{SigningKey, ed25519_pkcs8_from_seed};
use crate::{KeyError, pem};

const HEAD_LEN: usize = 41;
const COUNTS: u8 = 1;
const NEXT: u8 = 2;

/// A key that a host made for itself.
pub struct OwnKey {
    der: Zeroizing<Vec<u8>>,
    made_unix_s: u64,
    key: SigningKey,
}

impl OwnKey {
    /// The Ed25519 key made from `seed`, at `made_unix_s`.
    ///
    /// # Errors
    /// [`KeyError::Refused`] when the library fails, which it does for no seed.
    pub fn from_seed(seed: &[u8; 32], made_unix_s: u64) -> Result<OwnKey, KeyError> {
        OwnKey::from_der(ed25519_pkcs8_from_seed(seed)?, made_unix_s)
    }

    fn from_der(der: Zeroizing<Vec<u8>>, made_unix_s: u64) -> Result<OwnKey, KeyError> {
        let key = SigningKey::from_pkcs8_der(&der)?;
        Ok(OwnKey { der, made_unix_s, key })
    }

    /// The key to sign with.
    ///
    /// # Errors
    /// See [`SigningKey::from_pkcs8_der`]; none that was read before.
    pub fn signing_key(&self) -> Result<SigningKey, KeyError> {
        SigningKey::from_pkcs8_der(&self.der)
    }

    /// Whether its public half is `public`, as an S-ARP record names it.
    #[must_use]
    pub fn is(&self, public: &[u8]) -> bool {
        self.key.public_bytes() == public
    }

    /// When it was made, in seconds since 1970.
    #[must_use]
    pub fn made_unix_s(&self) -> u64 {
        self.made_unix_s
    }

    fn block(&self, certificate: &HostCertificate, standing: u8) -> Zeroizing<String> {
        let mut bytes = Zeroizing::new(sha256(&[certificate.der()]).to_vec());
        bytes.push(standing);
        bytes.extend(self.made_unix_s.to_be_bytes());
        bytes.extend(&*self.der);
        pem::encode(pem::HOST_KEY, &bytes)
    }
}

impl fmt::Debug for OwnKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnKey").field("made_unix_s", &self.made_unix_s).finish_non_exhaustive()
    }
}

/// What a host has beside the key of its certificate.
#[derive(Debug, Default)]
pub struct OwnKeys {
    /// The key that counts; that of the certificate if there is none.
    pub current: Option<OwnKey>,
    /// The key that shall take its place, and may have done so already as far as distributors are concerned.
    pub next: Option<OwnKey>,
}

impl OwnKeys {
    /// Reads a file; keys of another certificate are left out.
    ///
    /// # Errors
    /// Malformed PEM, another label, the same standing twice, or a key that is none.
    pub fn from_pem(text: &str, certificate: &HostCertificate) -> Result<OwnKeys, KeyError> {
        let own = sha256(&[certificate.der()]);
        let mut keys = OwnKeys::default();
        for block in pem::blocks(text)? {
            if block.label != pem::HOST_KEY {
                return Err(pem::PemError::WrongLabel(pem::HOST_KEY).into());
            }
            let length = || KeyError::Length { expected: HEAD_LEN, found: block.bytes.len() };
            let (head, der) = block.bytes.split_first_chunk::<HEAD_LEN>().ok_or_else(length)?;
            let (fingerprint, rest) = head.split_first_chunk::<32>().ok_or_else(length)?;
            let (standing, made) = rest.split_first_chunk::<1>().ok_or_else(length)?;
            let made_unix_s = u64::from_be_bytes(made.try_into().map_err(|_| length())?);
            if *fingerprint != own {
                continue;
            }
            let key = OwnKey::from_der(Zeroizing::new(der.to_vec()), made_unix_s)?;
            let slot = match *standing {
                [COUNTS] => &mut keys.current,
                [NEXT] => &mut keys.next,
                _ => return Err(KeyError::Unsupported),
            };
            if slot.replace(key).is_some() {
                return Err(pem::PemError::Several.into());
            }
        }
        Ok(keys)
    }

    /// The keys as a file, which is secret; empty if there are none.
    #[must_use]
    pub fn to_pem(&self, certificate: &HostCertificate) -> Zeroizing<String> {
        let mut text = Zeroizing::new(String::new());
        for (key, standing) in [(&self.current, COUNTS), (&self.next, NEXT)] {
            if let Some(key) = key {
                text.push_str(&key.block(certificate, standing));
            }
        }
        text
    }

    /// The next key counts from now on.
    pub fn advance(&mut self) {
        if let Some(next) = self.next.take() {
            self.current = Some(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pem::PemError;

    const SAMPLE: &[u8] = include_bytes!("../tests/data/host.der");

    fn certificate() -> HostCertificate {
        HostCertificate::from_validated(SAMPLE).expect("a certificate")
    }

    fn key(seed: u8) -> OwnKey {
        OwnKey::from_seed(&[seed; 32], 1_800_000_000 + u64::from(seed)).expect("a key")
    }

    #[test]
    fn a_key_signs_as_the_one_it_was_made_from() {
        let (one, other) = (key(1), key(2));
        let signing = one.signing_key().expect("a key");
        assert!(one.is(signing.public_bytes()) && !other.is(signing.public_bytes()));
        assert_eq!(one.made_unix_s(), 1_800_000_001);
        assert_eq!(format!("{one:?}"), "OwnKey { made_unix_s: 1800000001, .. }");
    }

    #[test]
    fn the_next_key_takes_the_place_of_the_current_one() {
        let mut keys = OwnKeys { current: Some(key(1)), next: Some(key(2)) };
        keys.advance();
        assert!(
            keys.next.is_none() && keys.current.as_ref().is_some_and(|current| current.made_unix_s() == 1_800_000_002)
        );
        keys.advance();
        assert!(keys.current.is_some(), "without a next one nothing changes");
    }

    #[test]
    fn keys_read_back_and_damage_is_named() {
        let certificate = certificate();
        let keys = OwnKeys { current: Some(key(1)), next: Some(key(2)) };
        let text = keys.to_pem(&certificate);
        let read = OwnKeys::from_pem(&text, &certificate).expect("own text");
        assert_eq!(*read.to_pem(&certificate), *text);
        let only_next = OwnKeys { current: None, next: Some(key(3)) }.to_pem(&certificate);
        let read = OwnKeys::from_pem(&only_next, &certificate).expect("own text");
        assert!(read.current.is_none() && read.next.is_some());

        let refused = |text: &str| OwnKeys::from_pem(text, &certificate).map(drop).expect_err("refused");
        assert_eq!(refused(&only_next.repeat(2)), KeyError::Pem(PemError::Several));
        assert_eq!(refused("none"), KeyError::Pem(PemError::Empty));
        assert_eq!(
            refused(&pem::encode(pem::PRIVATE_KEY, &[1; 80])),
            KeyError::Pem(PemError::WrongLabel(pem::HOST_KEY))
        );
        assert_eq!(refused(&pem::encode(pem::HOST_KEY, &[1; 40])), KeyError::Length { expected: 41, found: 40 });
        let own = sha256(&[certificate.der()]);
        assert_eq!(refused(&pem::encode(pem::HOST_KEY, &[&own[..], &[1; 30]].concat())), KeyError::Unsupported);
        // Of another certificate, whatever it holds.
        assert!(
            OwnKeys::from_pem(&pem::encode(pem::HOST_KEY, &[1; 80]), &certificate)
                .is_ok_and(|keys| keys.current.is_none())
        );
    }
}
