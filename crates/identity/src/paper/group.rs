//! The two groups, and what is computed in them.
//!
//! The primes and the generator of 512 bits are those of FIPS 186-2, appendix 5, those of 1024 bits of RFC 6979, appendix
//! A.2.1. Whoever can take logarithms in one of them has every key of that length; for 512 bits that is a matter of hours.

use std::sync::LazyLock;

use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{MultiExponentiateBoundedExp, NonZero, Odd, U192, U512, U1024, Uint};
use zeroize::{Zeroize, Zeroizing};

use super::SCALAR_LEN;
use crate::profile::KEY_RANDOM_LEN;

/// Bits of q, and so of every exponent.
const SCALAR_BITS: u32 = 160;
/// Bytes of q in front of a number of [`U192`].
const SCALAR_PAD: usize = 4;

/// A number below q.
pub(super) type Scalar = U192;

pub(super) static BITS_512: LazyLock<Group<{ U512::LIMBS }>> = LazyLock::new(|| Group::new(&U512_PARAMETERS));
pub(super) static BITS_1024: LazyLock<Group<{ U1024::LIMBS }>> = LazyLock::new(|| Group::new(&U1024_PARAMETERS));

struct Parameters<const LIMBS: usize> {
    p: Odd<Uint<LIMBS>>,
    q: Odd<U192>,
    g: Uint<LIMBS>,
}

const U512_PARAMETERS: Parameters<{ U512::LIMBS }> = Parameters {
    p: Odd::<U512>::from_be_hex(
        "8df2a494492276aa3d25759bb06869cbeac0d83afb8d0cf7cbb8324f0d7882e5\
         d0762fc5b7210eafc2e9adac32ab7aac49693dfbf83724c2ec0736ee31c80291",
    ),
    q: Odd::<U192>::from_be_hex("00000000c773218c737ec8ee993b4f2ded30f48edace915f"),
    g: U512::from_be_hex(
        "626d027839ea0a13413163a55b4cb500299d5522956cefcb3bff10f399ce2c2e\
         71cb9de5fa24babf58e5b79521925c9cc42e9f6f464b088cc572af53e6d78802",
    ),
};

const U1024_PARAMETERS: Parameters<{ U1024::LIMBS }> = Parameters {
    p: Odd::<U1024>::from_be_hex(
        "86f5ca03dcfeb225063ff830a0c769b9dd9d6153ad91d7ce27f787c43278b447\
         e6533b86b18bed6e8a48b784a14c252c5be0dbf60b86d6385bd2f12fb763ed88\
         73abfd3f5ba2e0a8c0a59082eac056935e529daf7c610467899c77adedfc846c\
         881870b7b19b2b58f9be0521a17002e3bdd6b86685ee90b3d9a1b02b782b1779",
    ),
    q: Odd::<U192>::from_be_hex("00000000996f967f6c8e388d9e28d01e205fba957a5698b1"),
    g: U1024::from_be_hex(
        "07b0f92546150b62514bb771e2a0c0ce387f03bda6c56b505209ff25fd3c133d\
         89bbcd97e904e09114d9a7defdeadfc9078ea544d2e401aeecc40bb9fbbf78fd\
         87995a10a1c27cb7789b594ba7efb5c4326a9fe59a070e136db77175464adca4\
         17be5dce2f40d10a46a3a3943f26ab7fd9c0398ff8c76ee0a56826a8a88f1dbd",
    ),
};

/// What DSA computes, whatever the length of p. Numbers are of the group's order where they are [`Scalar`]s.
pub(super) trait Arithmetic: Sync {
    /// The number in `bytes` if it is between 1 and q - 1.
    fn scalar(&self, bytes: &[u8]) -> Option<Scalar>;
    /// The number in `hash`, modulo q.
    fn reduce(&self, hash: &[u8; SCALAR_LEN]) -> Scalar;
    /// A secret key made of `random`.
    fn secret(&self, random: &[u8; KEY_RANDOM_LEN]) -> Zeroizing<[u8; SCALAR_LEN]>;
    /// A scalar as bytes.
    fn bytes(&self, scalar: &Scalar) -> [u8; SCALAR_LEN];
    /// The product modulo q.
    fn multiply(&self, one: &Scalar, other: &Scalar) -> Scalar;
    /// The sum modulo q.
    fn add(&self, one: &Scalar, other: &Scalar) -> Scalar;
    /// The inverse modulo q; zero has none.
    fn invert(&self, scalar: &Scalar) -> Option<Scalar>;
    /// g^k mod p mod q, in constant time.
    fn exponential(&self, k: &Scalar) -> Scalar;
    /// g^x mod p, in constant time.
    fn public(&self, x: &Scalar) -> Vec<u8>;
    /// Whether the number in `bytes` lies above 1 and below p.
    fn is_in_range(&self, bytes: &[u8]) -> bool;
    /// Whether it is, and is a power of g.
    fn contains(&self, bytes: &[u8]) -> bool;
    /// g^a y^b mod p mod q.
    fn combine(&self, y: &[u8], a: &Scalar, b: &Scalar) -> Scalar;
    /// p, q and g, for certificates.
    fn parameters(&self) -> [Vec<u8>; 3];
}

/// A group with p of so many limbs.
pub(super) struct Group<const LIMBS: usize> {
    p: FixedMontyParams<LIMBS>,
    q: FixedMontyParams<{ U192::LIMBS }>,
    g: FixedMontyForm<LIMBS>,
}

impl<const LIMBS: usize> Group<LIMBS> {
    fn new(parameters: &Parameters<LIMBS>) -> Self {
        let p = FixedMontyParams::new(parameters.p);
        Group { g: FixedMontyForm::new(&parameters.g, &p), p, q: FixedMontyParams::new(parameters.q) }
    }

    fn order(&self) -> &NonZero<U192> {
        self.q.modulus().as_nz_ref()
    }

    fn in_order(&self, scalar: &Scalar) -> FixedMontyForm<{ U192::LIMBS }> {
        FixedMontyForm::new(scalar, &self.q)
    }

    fn element(&self, bytes: &[u8]) -> FixedMontyForm<LIMBS> {
        FixedMontyForm::new(&Uint::from_be_slice(bytes), &self.p)
    }

    fn reduced(&self, element: &FixedMontyForm<LIMBS>) -> Scalar {
        element.retrieve().rem(self.order())
    }
}

impl<const LIMBS: usize> Arithmetic for Group<LIMBS> {
    fn scalar(&self, bytes: &[u8]) -> Option<Scalar> {
        let scalar = number(bytes.try_into().ok()?);
        (scalar != U192::ZERO && scalar < *self.order().as_ref()).then_some(scalar)
    }

    fn reduce(&self, hash: &[u8; SCALAR_LEN]) -> Scalar {
        number(hash).rem(self.order())
    }

    fn secret(&self, random: &[u8; KEY_RANDOM_LEN]) -> Zeroizing<[u8; SCALAR_LEN]> {
        let mut padded = Zeroizing::new([0; 32]);
        padded[32 - KEY_RANDOM_LEN..].copy_from_slice(random);
        let mut wide = crypto_bigint::U256::from_be_slice(&*padded);
        // One less than q, of which the remainder is zero to q - 2.
        let below = NonZero::new(self.order().as_ref().wrapping_sub(&U192::ONE));
        let mut x = wide.rem(&below.unwrap_or(*self.order())).wrapping_add(&U192::ONE);
        let bytes = Zeroizing::new(self.bytes(&x));
        wide.zeroize();
        x.zeroize();
        bytes
    }

    fn bytes(&self, scalar: &Scalar) -> [u8; SCALAR_LEN] {
        let mut bytes = [0; SCALAR_LEN];
        bytes.copy_from_slice(&scalar.to_be_bytes().as_ref()[SCALAR_PAD..]);
        bytes
    }

    fn multiply(&self, one: &Scalar, other: &Scalar) -> Scalar {
        self.in_order(one).mul(&self.in_order(other)).retrieve()
    }

    fn add(&self, one: &Scalar, other: &Scalar) -> Scalar {
        one.add_mod(other, self.order())
    }

    fn invert(&self, scalar: &Scalar) -> Option<Scalar> {
        self.in_order(scalar).invert().into_option().map(|inverse| inverse.retrieve())
    }

    fn exponential(&self, k: &Scalar) -> Scalar {
        self.reduced(&self.g.pow_bounded_exp(k, SCALAR_BITS))
    }

    fn public(&self, x: &Scalar) -> Vec<u8> {
        self.g.pow_bounded_exp(x, SCALAR_BITS).retrieve().to_be_bytes().as_ref().to_vec()
    }

    fn is_in_range(&self, bytes: &[u8]) -> bool {
        if bytes.len() != LIMBS * crypto_bigint::Limb::BYTES {
            return false;
        }
        let y = Uint::<LIMBS>::from_be_slice(bytes);
        y > Uint::ONE && y < *self.p.modulus().as_ref()
    }

    fn contains(&self, bytes: &[u8]) -> bool {
        let one = FixedMontyForm::one(&self.p);
        self.is_in_range(bytes) && self.element(bytes).pow_vartime(self.order().as_ref()) == one
    }

    fn combine(&self, y: &[u8], a: &Scalar, b: &Scalar) -> Scalar {
        let factors = [(self.g, *a), (self.element(y), *b)];
        self.reduced(&FixedMontyForm::multi_exponentiate_bounded_exp(&factors, SCALAR_BITS))
    }

    fn parameters(&self) -> [Vec<u8>; 3] {
        let q = self.bytes(self.order().as_ref()).to_vec();
        [
            self.p.modulus().as_ref().to_be_bytes().as_ref().to_vec(),
            q,
            self.g.retrieve().to_be_bytes().as_ref().to_vec(),
        ]
    }
}

fn number(bytes: &[u8; SCALAR_LEN]) -> U192 {
    let mut padded = [0; SCALAR_PAD + SCALAR_LEN];
    padded[SCALAR_PAD..].copy_from_slice(bytes);
    let number = U192::from_be_slice(&padded);
    padded.zeroize();
    number
}
