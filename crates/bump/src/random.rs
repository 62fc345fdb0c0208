//! Randomness, handed in: the daemon seeds from the kernel, the lab from its seed.
//!
//! There are two kinds. A [`Generator`] makes nonces and indices, which everybody may see. A
//! [`SecretSource`] makes private keys. Whoever reads the memory of a `Generator` can compute all
//! that it ever gave, so no forward secrecy may rest on one.

use std::fmt;

use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use zeroize::Zeroizing;

/// A cryptographic generator (ChaCha20) for nonces and indices, never for keys: it keeps its seed.
#[derive(Debug)]
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

/// Where private keys and other long secrets come from. It keeps nothing from which a secret that
/// it gave could be computed, so that a look at its memory opens no traffic recorded before.
pub trait SecretSource {
    /// 32 secret bytes. `None` if the kernel gives none, which no supported one does.
    fn secret(&mut self) -> Option<Zeroizing<[u8; 32]>>;
}

/// A source of secrets that forgets: each output comes with the next seed, which takes the place of
/// the one before ("fast key erasure"). It is deterministic, for the lab and for the commands that
/// make key files. It cannot be cloned, because two copies would give the same keys.
pub struct ErasingGenerator {
    seed: Zeroizing<[u8; 32]>,
}

impl ErasingGenerator {
    /// A source that gives the same secrets for the same seed.
    #[must_use]
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        ErasingGenerator { seed: Zeroizing::new(*seed) }
    }

    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(32) {
            chunk.copy_from_slice(&self.next()[..chunk.len()]);
        }
    }

    fn next(&mut self) -> Zeroizing<[u8; 32]> {
        let mut stream = ChaCha20Rng::from_seed(*self.seed);
        // The generator overwrites its own state when dropped (feature `zeroize`).
        stream.fill_bytes(&mut self.seed[..]);
        let mut secret = Zeroizing::new([0; 32]);
        stream.fill_bytes(&mut secret[..]);
        secret
    }
}

impl SecretSource for ErasingGenerator {
    fn secret(&mut self) -> Option<Zeroizing<[u8; 32]>> {
        Some(self.next())
    }
}

impl fmt::Debug for ErasingGenerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ErasingGenerator(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn source(seed: u8) -> ErasingGenerator {
        ErasingGenerator::from_seed(&[seed; 32])
    }

    /// All state is the next seed: nothing else is there from which to go back.
    #[test]
    fn the_state_of_a_source_gives_no_secret_that_it_gave_before() {
        assert_eq!(size_of::<ErasingGenerator>(), 32, "the next seed, and nothing beside it");
        let mut keys = source(0x5a);
        let used: BTreeSet<[u8; 32]> = (0..1000).map(|_| *keys.next()).collect();
        assert_eq!(used.len(), 1000);
        // An attacker reads the memory now, and uses it in every way that the generator knows.
        let captured = *keys.seed;
        assert!(!used.contains(&captured), "the state itself is no secret that was given");
        let mut plain = ChaCha20Rng::from_seed(captured);
        let mut again = ErasingGenerator::from_seed(&captured);
        for _ in 0..10_000 {
            let mut bytes = [0; 32];
            plain.fill_bytes(&mut bytes);
            assert!(!used.contains(&bytes) && !used.contains(&*again.next()));
        }
    }

    #[test]
    fn one_seed_gives_the_same_secrets_and_another_others() {
        let first: Vec<_> = (0..3).map(|_| *source(1).next()).collect();
        assert!(first.iter().all(|secret| *secret == first[0]));
        assert_ne!(*source(1).next(), *source(2).next());
    }

    #[test]
    fn filling_takes_as_many_secrets_as_it_needs() {
        let mut bytes = [0; 70];
        source(1).fill(&mut bytes);
        let mut keys = source(1);
        let expected = [keys.next(), keys.next(), keys.next()].map(|secret| *secret).concat();
        assert_eq!(bytes[..], expected[..70]);
    }

    #[test]
    fn nothing_secret_is_printed() {
        assert_eq!(format!("{:?}", source(1)), "ErasingGenerator(redacted)");
    }
}
