//! Which suites the figures have, from the cheap to the costly. The paper's figure 4 is of a cheap algorithm and figure 5 of a costly one;
//! here is one figure for each suite.

use std::hint::black_box;
use std::time::Instant;

use identity::aead::{OpeningKey, SealingKey, Suite};
use wire::cll::data;

use crate::bench::stats::median;

/// Their names: nonces alone, those that are for use, and four of the paper profile. GOST, with blocks of eight bytes, stands where
/// the paper has 3DES, which is not in the CLL paper's Table 1. The paper's forgeries cost what its authentication costs, so the last has
/// the costliest of that.
const NAMES: [&str; 8] = [
    "nonce-only",
    "aegis-128l",
    "aes-256-gcm",
    "chacha20-poly1305",
    "aes-128-hmac-sha256",
    "twofish-128-hmac-md5",
    "gost-256-hmac-sha256",
    "aes-128-hmac-has160",
];
/// Frames that are refused in a round, and rounds.
const REFUSED: u64 = 500;
const ROUNDS: usize = 9;

/// The suites.
pub fn measured() -> impl Iterator<Item = Suite> {
    NAMES.into_iter().filter_map(Suite::from_name)
}

/// What it takes to refuse a frame of `size` bytes under a wrong tag, in nanoseconds: the price of a forgery that only the tag tells.
/// `None` where no tag is looked at.
pub fn refusal_ns(suite: Suite, size: usize) -> Option<f64> {
    let (key, iv) = (vec![0x37; suite.key_len()], [0x5a; 12]);
    let (sealing, opening) = (SealingKey::new(suite, &key, iv).ok()?, OpeningKey::new(suite, &key, iv).ok()?);
    let (associated, mut frame) = ([0x11; data::HEADER_LEN], vec![0x22; size]);
    let mut tag = sealing.seal(1, &associated, &mut frame).ok()?;
    tag[0] ^= 1;
    let mut plaintext = vec![0; size];
    let mut round = || {
        let start = Instant::now();
        let refused =
            (0..REFUSED).all(|_| opening.open(1, &associated, black_box(&frame), &tag, &mut plaintext).is_err());
        refused.then(|| start.elapsed().as_secs_f64() * 1e9 / REFUSED as f64)
    };
    median(&(0..ROUNDS).map(|_| round()).collect::<Option<Vec<_>>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusing_has_a_price_where_there_is_a_tag() {
        let priced = measured().filter(|suite| refusal_ns(*suite, 64).is_some());
        assert!(priced.eq(measured().filter(|suite| !suite.is_nonce_only())));
    }

    #[test]
    fn none_of_them_is_unknown() {
        assert!(measured().map(Suite::name).eq(NAMES));
    }
}
