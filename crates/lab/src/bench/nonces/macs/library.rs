//! The algorithms of libraries that this program is linked with: HMAC-MD5 without any assembler, to which the others are compared,
//! and those that are faster than what the paper had.

use std::hint::black_box;
use std::time::Instant;

use aegis::aegis128l::Aegis128LMac;
use aws_lc_rs::aead::{AES_128_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use shield::spin::{KEY_LEN, Spin};

use super::Cost;
use crate::failure::Failure;

/// Bytes in one batch, and batches, of which the fastest counts: as in the program for nettle. A batch is shorter than a scheduler's slice.
const BYTES_IN_A_BATCH: usize = 1 << 17;
const BATCHES: u32 = 25;
const KEY: &[u8; 16] = b"abcdefghijklmnop";
const LONG_KEY: &[u8; 32] = b"abcdefghijklmnopabcdefghijklmnop";

/// Takes a message and returns some of its tag.
type Authenticate = Box<dyn FnMut(&[u8]) -> [u8; 16]>;

/// Nanoseconds for a message, for each algorithm and size.
///
/// # Errors
/// A library refuses a key.
pub fn measure(sizes: &[usize]) -> Result<Vec<Cost>, Failure> {
    let mut costs = Vec::new();
    for (line, mut authenticate) in all()? {
        costs.extend(sizes.iter().map(|&size| Cost { line: line.to_owned(), size, ns: cost(&mut authenticate, size) }));
    }
    Ok(costs)
}

fn all() -> Result<[(&'static str, Authenticate); 6], Failure> {
    let spin = Spin::new(&[0x37; KEY_LEN]);
    let mut sequence = 0_u32;
    let nonce = move |_: &[u8]| {
        sequence = sequence.wrapping_add(1);
        first_of(&spin.at(sequence).to_be_bytes())
    };
    Ok([
        (super::BASE, hmac_md5(KEY)?),
        ("gmac/aws-lc", empty_aead(&AES_128_GCM, KEY)?),
        ("poly1305/aws-lc", empty_aead(&CHACHA20_POLY1305, LONG_KEY)?),
        ("aegis-128l/libaegis", aegis(KEY)),
        ("blake3/optimised", blake3(*LONG_KEY)),
        ("nonce/spinning", Box::new(nonce)),
    ])
}

/// The inner and outer key are hashed ahead, as in an association.
fn hmac_md5(key: &[u8]) -> Result<Authenticate, Failure> {
    let keyed = Hmac::<Md5>::new_from_slice(key).map_err(|error| unusable("HMAC-MD5", &error))?;
    Ok(Box::new(move |message| {
        let mut mac = keyed.clone();
        mac.update(message);
        mac.finalize().into_bytes().into()
    }))
}

/// An AEAD over nothing but associated data: GMAC, or Poly1305 with a one-time key of a block of ChaCha20.
fn empty_aead(algorithm: &'static Algorithm, key: &[u8]) -> Result<Authenticate, Failure> {
    let key = UnboundKey::new(algorithm, key).map_err(|error| unusable("an AEAD", &error))?;
    let (key, mut count) = (LessSafeKey::new(key), 0_u64);
    Ok(Box::new(move |message| {
        let mut nonce = [0; 12];
        nonce[..8].copy_from_slice(&count.to_be_bytes());
        count += 1;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = key.seal_in_place_separate_tag(nonce, Aad::from(message), &mut []);
        tag.map_or([0; 16], |tag| first_of(tag.as_ref()))
    }))
}

fn aegis(key: &[u8; 16]) -> Authenticate {
    let keyed = Aegis128LMac::<16>::new(key);
    Box::new(move |message| {
        let mut mac = keyed.clone();
        mac.update(message);
        mac.finalize()
    })
}

fn blake3(key: [u8; 32]) -> Authenticate {
    Box::new(move |message| first_of(blake3::keyed_hash(&key, message).as_bytes()))
}

fn first_of(bytes: &[u8]) -> [u8; 16] {
    let mut out = [0; 16];
    let len = bytes.len().min(16);
    out[..len].copy_from_slice(&bytes[..len]);
    out
}

fn unusable(what: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::Unreadable(format!("a key for {what}: {error}"))
}

fn cost(authenticate: &mut Authenticate, size: usize) -> f64 {
    let message = vec![0x5a; size];
    let count = BYTES_IN_A_BATCH / (size + 64);
    let mut batch = || {
        let start = Instant::now();
        for _ in 0..count {
            black_box(authenticate(black_box(&message)));
        }
        start.elapsed().as_secs_f64() * 1e9 / count as f64
    };
    (0..BATCHES).map(|_| batch()).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(tag: [u8; 16]) -> String {
        tag.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// RFC 2202, section 2, case 2.
    #[test]
    fn hmac_md5_is_that_of_its_rfc() {
        let mut mac = hmac_md5(b"Jefe").expect("a key");
        let tag = mac(b"what do ya want for nothing?");
        assert_eq!(hex(tag), "750c783e6ab0b503eaa86e310a5db738");
        assert_eq!(tag, mac(b"what do ya want for nothing?"), "a message leaves nothing behind");
    }

    /// Case 1 of the specification of GCM (McGrew and Viega): nothing under zeros.
    #[test]
    fn gmac_is_that_of_its_specification() {
        let mut mac = empty_aead(&AES_128_GCM, &[0; 16]).expect("a key");
        assert_eq!(hex(mac(b"")), "58e2fccefa7e3061367f1d57a4e7455a");
    }

    /// The first of the published test vectors of BLAKE3.
    #[test]
    fn blake3_is_that_of_its_authors() {
        let mut mac = blake3(*b"whats the Elvish word for friend");
        assert_eq!(hex(mac(b"")), "92b2b75604ed3c761f9d6f62392c8a92");
    }

    /// Every message counts, to its last byte.
    #[test]
    fn another_message_has_another_tag() {
        for (line, mut mac) in all().expect("keys").into_iter().filter(|(line, _)| !line.starts_with("nonce")) {
            let mut message = vec![7; 100];
            let tag = mac(&message);
            message[99] = 8;
            assert_ne!(tag, mac(&message), "{line}");
        }
    }
}
