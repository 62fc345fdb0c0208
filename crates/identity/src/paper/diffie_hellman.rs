//! Diffie-Hellman in group 14, a prime of 2048 bits (RFC 3526, section 3), as the paper has it (Table 1).
//!
//! The arithmetic is crypto-bigint's, in constant time for the exponent.

use std::sync::LazyLock;

use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{Odd, U256, U2048, Uint};
use zeroize::{Zeroize, Zeroizing};

use super::derivation::kdf2;
use crate::{BadKeyShare, KeyError};

const LIMBS: usize = U2048::LIMBS;
/// Bytes of a share and of a shared secret.
pub(crate) const SHARE_LEN: usize = 256;
/// Bits of an exponent: RFC 3526, section 8, names 220 to 320 for this group.
const EXPONENT_BITS: u32 = 256;

const PRIME: Odd<U2048> = Odd::<U2048>::from_be_hex(
    "ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74\
     020bbea63b139b22514a08798e3404ddef9519b3cd3a431b302b0a6df25f1437\
     4fe1356d6d51c245e485b576625e7ec6f44c42e9a637ed6b0bff5cb6f406b7ed\
     ee386bfb5a899fa5ae9f24117c4b1fe649286651ece45b3dc2007cb8a163bf05\
     98da48361c55d39a69163fa8fd24cf5f83655d23dca3ad961c62f356208552bb\
     9ed529077096966d670c354e4abc9804f1746c08ca18217c32905e462e36ce3b\
     e39e772c180e86039b2783a2ec07a28fb5c55df06f4c52c9de2bcbf695581718\
     3995497cea956ae515d2261898fa051015728e5a8aacaa68ffffffffffffffff",
);

static GROUP: LazyLock<FixedMontyParams<LIMBS>> = LazyLock::new(|| FixedMontyParams::new(PRIME));

/// An ephemeral key pair.
pub(crate) struct KeyPair {
    exponent: Zeroizing<U256>,
    public: Vec<u8>,
}

impl KeyPair {
    /// The pair whose exponent is the number in `random`.
    ///
    /// # Errors
    /// None in this build; one without the paper profile has no such pairs.
    pub(crate) fn from_random(random: &[u8; 32]) -> Result<KeyPair, KeyError> {
        let exponent = Zeroizing::new(U256::from_be_slice(random));
        let two = FixedMontyForm::new(&U2048::from_u8(2), &GROUP);
        let public = two.pow_bounded_exp(&*exponent, EXPONENT_BITS).retrieve();
        Ok(KeyPair { exponent, public: public.to_be_bytes().as_ref().to_vec() })
    }

    pub(crate) fn public(&self) -> &[u8] {
        &self.public
    }

    /// The shared secret. The prime is a safe one, so that 1 and its negative are all that is of low order.
    pub(crate) fn agree(&self, peer: &[u8]) -> Result<GroupSecret, BadKeyShare> {
        if peer.len() != SHARE_LEN {
            return Err(BadKeyShare);
        }
        let number: Uint<LIMBS> = Uint::from_be_slice(peer);
        let last = PRIME.as_ref().wrapping_sub(&Uint::ONE);
        if number <= Uint::ONE || number >= last {
            return Err(BadKeyShare);
        }
        let mut shared =
            FixedMontyForm::new(&number, &GROUP).pow_bounded_exp(&*self.exponent, EXPONENT_BITS).retrieve();
        let bytes = Zeroizing::new(shared.to_be_bytes().as_ref().to_vec());
        shared.zeroize();
        Ok(GroupSecret(bytes))
    }
}

/// What two sides share: the number in all of its 256 bytes.
pub(crate) struct GroupSecret(Zeroizing<Vec<u8>>);

impl GroupSecret {
    /// Fills `output` by KDF2, whose parameters are the transcript and the parts of `label`, one after the other.
    pub(crate) fn derive(&self, transcript: &[u8; 32], label: &[&[u8]], output: &mut [u8]) {
        let parameters: Vec<&[u8]> = std::iter::once(&transcript[..]).chain(label.iter().copied()).collect();
        kdf2(&self.0, &parameters, output);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::sha256;
    use crate::test_hex::array;

    /// SHA-256 of what Python's integers make of the exponents 0x0101.. and 0x0202.., with the prime from RFC 3526's formula.
    const SHARE: &str = "8256a65903b9629ebcb63cec1900ac13d2e503bcff3d1f717864098d1bdc1760";
    const PEER_SHARE: &str = "28646dd3ab909973679ac46a2c79b3b3558f6a5fe5c8e7cacd6f1032f646dafb";
    const SECRET: &str = "1ddaa3312bd8c42e3b52b1d68f4c937c80c0eee1795c7aad5bcb9992b2b8fbb3";

    fn pair(exponent: u8) -> KeyPair {
        KeyPair::from_random(&[exponent; 32]).expect("a pair")
    }

    #[test]
    fn both_sides_reach_the_right_secret() {
        let (one, other) = (pair(1), pair(2));
        assert_eq!(sha256(&[one.public()]), array(SHARE));
        assert_eq!(sha256(&[other.public()]), array(PEER_SHARE));
        for secret in [one.agree(other.public()), other.agree(one.public())] {
            assert_eq!(sha256(&[&secret.expect("shared").0]), array(SECRET));
        }
    }

    #[test]
    fn shares_of_low_order_and_outside_of_the_group_are_refused() {
        let pair = pair(1);
        let prime = PRIME.as_ref().to_be_bytes().as_ref().to_vec();
        let mut minus_one = prime.clone();
        minus_one[SHARE_LEN - 1] -= 1;
        let mut one = vec![0; SHARE_LEN];
        one[SHARE_LEN - 1] = 1;
        for share in [vec![0; SHARE_LEN], one, minus_one, prime, vec![0xff; SHARE_LEN], vec![2; 255], vec![2; 32]] {
            assert_eq!(pair.agree(&share).map(drop), Err(BadKeyShare));
        }
        let mut two = vec![0; SHARE_LEN];
        two[SHARE_LEN - 1] = 2;
        assert_eq!(pair.agree(&two).map(|shared| shared.0.to_vec()), Ok(pair.public().to_vec()));
    }
}
