//! Randomness, handed in: the daemon seeds from the kernel, the lab from its seed.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

/// A cryptographic generator (ChaCha20). One is used for nonces and indices, a second, seeded apart, for keys, so that a
/// mistake in showing the first never touches the second.
#[derive(Debug, Clone)]
pub struct Generator(ChaCha20Rng);

impl Generator {
    /// A generator that gives the same output for the same seed.
    #[must_use]
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Generator(ChaCha20Rng::from_seed(seed))
    }

    /// `N` random bytes.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        crate::inject::point();
        let mut bytes = [0; N];
        self.0.fill_bytes(&mut bytes);
        bytes
    }

    /// A random number over all 32 bits.
    pub fn number(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// A random number below `bound`; `bound` is not zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The bias is below 2^-32 for every bound this program uses (all are far below 2^32).
        self.0.next_u64() % bound.max(1)
    }

    /// True once in `one_in` calls on average; never for zero.
    pub fn chance(&mut self, one_in: u64) -> bool {
        one_in != 0 && self.below(one_in) == 0
    }
}
