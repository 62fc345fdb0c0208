//! What the kernel's randomness seeds.

use bump::{ErasingGenerator, Generator};
use zeroize::Zeroizing;

use crate::failure::Failure;

/// A generator for nonces and indices, never for keys.
pub(crate) fn generator() -> Result<Generator, Failure> {
    Ok(Generator::from_seed(*seed()?))
}

/// A source of secrets for a command that makes key files.
pub(crate) fn secrets() -> Result<ErasingGenerator, Failure> {
    Ok(ErasingGenerator::from_seed(&*seed()?))
}

fn seed() -> Result<Zeroizing<[u8; 32]>, Failure> {
    system::random::seed().map_err(|error| Failure::new(format!("the kernel gives no randomness: {error}")))
}
