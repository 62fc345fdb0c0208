//! Key agreement: X25519 (RFC 7748), and in the paper profile Diffie-Hellman in group 14 (RFC 3526).

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey, X25519};
use zeroize::Zeroizing;

use crate::profile::Profile;
use crate::{KeyError, paper};

/// The peer's share leads to a secret that everyone knows (RFC 7748, section 6.1), or is no share of this agreement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadKeyShare;

impl fmt::Display for BadKeyShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the peer's key share is of low order, or of another key agreement")
    }
}

impl std::error::Error for BadKeyShare {}

/// A secret that two sides share. It is an input of [`Schedule`](crate::schedule::Schedule), never a key itself; it is
/// overwritten when dropped.
pub struct SharedSecret(pub(crate) Secret);

/// The secret by its agreement, because each has a derivation of its own.
pub(crate) enum Secret {
    X25519(Zeroizing<[u8; 32]>),
    Group14(Arc<paper::GroupSecret>),
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSecret(redacted)")
    }
}

/// An ephemeral key pair.
pub struct KeyPair(Pair);

enum Pair {
    X25519 { private: PrivateKey, public: [u8; 32] },
    Group14(paper::GroupKeyPair),
}

impl KeyPair {
    /// The X25519 pair whose private half is `bytes`, which the caller draws at random for every handshake. The public half
    /// is computed here, so that key pairs can be prepared ahead of their use.
    ///
    /// # Errors
    /// [`KeyError::Refused`] when the library refuses the bytes, which happens for no 32 random bytes.
    pub fn from_random(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        let private = PrivateKey::from_private_key(&X25519, bytes).map_err(|_| KeyError::Refused)?;
        let computed = private.compute_public_key().map_err(|_| KeyError::Refused)?;
        let public = computed.as_ref().try_into().map_err(|_| KeyError::Refused)?;
        Ok(KeyPair(Pair::X25519 { private, public }))
    }

    /// As [`from_random`](KeyPair::from_random), for the key agreement of `profile`.
    ///
    /// # Errors
    /// As there, and [`KeyError::Unsupported`] in a build without the paper profile.
    pub fn of_profile(profile: Profile, bytes: &[u8; 32]) -> Result<Self, KeyError> {
        match profile {
            Profile::Modern => KeyPair::from_random(bytes),
            Profile::Paper => paper::GroupKeyPair::from_random(bytes).map(|pair| KeyPair(Pair::Group14(pair))),
        }
    }

    /// The public half, as it goes into a handshake: 32 bytes, or 256 in the paper profile.
    #[must_use]
    pub fn public(&self) -> &[u8] {
        match &self.0 {
            Pair::X25519 { public, .. } => public,
            Pair::Group14(pair) => pair.public(),
        }
    }

    /// What this side shares with the owner of `peer`.
    ///
    /// # Errors
    /// [`BadKeyShare`] when `peer` is of low order or of another length than the own share.
    pub fn agree(&self, peer: &[u8]) -> Result<SharedSecret, BadKeyShare> {
        match &self.0 {
            Pair::X25519 { private, .. } => {
                let peer = UnparsedPublicKey::new(&X25519, peer);
                agreement::agree(private, peer, BadKeyShare, |secret| {
                    let bytes: &[u8; 32] = secret.try_into().map_err(|_| BadKeyShare)?;
                    Ok(SharedSecret(Secret::X25519(Zeroizing::new(*bytes))))
                })
            }
            Pair::Group14(pair) => pair.agree(peer).map(|secret| SharedSecret(Secret::Group14(Arc::new(secret)))),
        }
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyPair(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_hex::array;

    /// RFC 7748, section 6.1.
    const ALICE: &str = "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a";
    const ALICE_PUBLIC: &str = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a";
    const BOB: &str = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb";
    const BOB_PUBLIC: &str = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f";
    const SHARED: &str = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742";

    #[test]
    fn both_sides_reach_the_secret_of_rfc_7748() {
        let alice = KeyPair::from_random(&array(ALICE)).expect("key");
        let bob = KeyPair::from_random(&array(BOB)).expect("key");
        assert_eq!(alice.public(), array::<32>(ALICE_PUBLIC));
        assert_eq!(bob.public(), array::<32>(BOB_PUBLIC));
        for shared in [alice.agree(bob.public()), bob.agree(alice.public())] {
            assert!(matches!(shared, Ok(SharedSecret(Secret::X25519(bytes))) if *bytes == array::<32>(SHARED)));
        }
    }

    #[test]
    fn points_of_low_order_are_refused() {
        let alice = KeyPair::from_random(&array(ALICE)).expect("key");
        let mut one = [0; 32];
        one[0] = 1;
        // The last one is the prime itself, another way to write zero.
        let mut prime = [0xff; 32];
        (prime[0], prime[31]) = (0xed, 0x7f);
        for point in [[0; 32], one, prime] {
            assert_eq!(alice.agree(&point).map(drop), Err(BadKeyShare));
        }
    }

    #[test]
    fn a_share_of_another_agreement_is_refused() {
        let alice = KeyPair::from_random(&array(ALICE)).expect("key");
        assert_eq!(alice.agree(&[2; 256]).map(drop), Err(BadKeyShare));
        if let Ok(other) = KeyPair::of_profile(Profile::Paper, &[7; 32]) {
            assert_eq!(other.agree(alice.public()).map(drop), Err(BadKeyShare));
            assert_eq!(alice.agree(other.public()).map(drop), Err(BadKeyShare));
        }
    }

    #[test]
    fn nothing_secret_is_printed() {
        let alice = KeyPair::from_random(&array(ALICE)).expect("key");
        let shared = alice.agree(&array::<32>(BOB_PUBLIC)).expect("shared");
        assert_eq!(format!("{alice:?} {shared:?}"), "KeyPair(redacted) SharedSecret(redacted)");
    }
}
