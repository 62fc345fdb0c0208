//! Which suites the figures have, from the cheap to the costly. The paper's figure 4 is of a cheap algorithm and figure 5 of a costly one;
//! here is one figure for each suite.

use identity::aead::Suite;

/// Their names: nonces alone, those that are for use, and three of the paper profile. GOST, with blocks of eight bytes, stands where
/// the paper has 3DES, which is not in the CLL paper's Table 1.
const NAMES: [&str; 7] = [
    "nonce-only",
    "aegis-128l",
    "aes-256-gcm",
    "chacha20-poly1305",
    "aes-128-hmac-sha256",
    "twofish-128-hmac-md5",
    "gost-256-hmac-sha256",
];

/// The suites.
pub fn measured() -> impl Iterator<Item = Suite> {
    NAMES.into_iter().filter_map(Suite::from_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_of_them_is_unknown() {
        assert!(measured().map(Suite::name).eq(NAMES));
    }
}
