//! X25519 key agreement (RFC 7748).

use std::fmt;

use aws_lc_rs::agreement::{self, PrivateKey, UnparsedPublicKey, X25519};
use zeroize::Zeroizing;

use crate::KeyError;

/// The peer's share leads to the all-zero secret, which everyone knows (RFC 7748, section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadKeyShare;

impl fmt::Display for BadKeyShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the peer's key share is of low order")
    }
}

impl std::error::Error for BadKeyShare {}

/// A secret that two sides share. It is an input of [`Schedule`](crate::schedule::Schedule), never a key itself; it is
/// overwritten when dropped.
pub struct SharedSecret(Zeroizing<[u8; 32]>);

impl SharedSecret {
    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for SharedSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedSecret(redacted)")
    }
}

/// An ephemeral key pair.
pub struct KeyPair {
    private: PrivateKey,
    public: [u8; 32],
}

impl KeyPair {
    /// The key pair whose private half is `bytes`, which the caller draws at random for every handshake. The public half
    /// is computed here, so that key pairs can be prepared ahead of their use.
    ///
    /// # Errors
    /// [`KeyError::Refused`] when the library refuses the bytes, which happens for no 32 random bytes.
    pub fn from_random(bytes: [u8; 32]) -> Result<Self, KeyError> {
        let bytes = Zeroizing::new(bytes);
        let private = PrivateKey::from_private_key(&X25519, &*bytes).map_err(|_| KeyError::Refused)?;
        let computed = private.compute_public_key().map_err(|_| KeyError::Refused)?;
        let public = computed.as_ref().try_into().map_err(|_| KeyError::Refused)?;
        Ok(KeyPair { private, public })
    }

    /// The public half, as it goes into a handshake.
    #[must_use]
    pub fn public(&self) -> [u8; 32] {
        self.public
    }

    /// What this side shares with the owner of `peer`.
    ///
    /// # Errors
    /// [`BadKeyShare`] when `peer` is a point of low order.
    pub fn agree(&self, peer: &[u8; 32]) -> Result<SharedSecret, BadKeyShare> {
        let peer = UnparsedPublicKey::new(&X25519, peer);
        agreement::agree(&self.private, peer, BadKeyShare, |secret| {
            let bytes: &[u8; 32] = secret.try_into().map_err(|_| BadKeyShare)?;
            Ok(SharedSecret(Zeroizing::new(*bytes)))
        })
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
        let alice = KeyPair::from_random(array(ALICE)).expect("key");
        let bob = KeyPair::from_random(array(BOB)).expect("key");
        assert_eq!(alice.public(), array(ALICE_PUBLIC));
        assert_eq!(bob.public(), array(BOB_PUBLIC));
        assert_eq!(alice.agree(&bob.public()).expect("shared").bytes(), &array::<32>(SHARED));
        assert_eq!(bob.agree(&alice.public()).expect("shared").bytes(), &array::<32>(SHARED));
    }

    #[test]
    fn points_of_low_order_are_refused() {
        let alice = KeyPair::from_random(array(ALICE)).expect("key");
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
    fn nothing_secret_is_printed() {
        let alice = KeyPair::from_random(array(ALICE)).expect("key");
        let shared = alice.agree(&array(BOB_PUBLIC)).expect("shared");
        assert_eq!(format!("{alice:?} {shared:?}"), "KeyPair(redacted) SharedSecret(redacted)");
    }
}
