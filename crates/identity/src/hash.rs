//! SHA-256 (FIPS 180-4).

use aws_lc_rs::digest::{Context, SHA256, digest};

/// Bytes of a hash.
const LEN: usize = 32;
/// Two hashes and what says of what kind they are.
const SHORT_LEN_MAX: usize = 128;
/// A frame.
const GATHERED_LEN_MAX: usize = 1536;

/// The SHA-256 digest of `parts`, one after the other and with nothing between them. Several short parts leave a copy on the
/// stack, so secrets come as one part.
#[must_use]
pub fn sha256(parts: &[&[u8]]) -> [u8; LEN] {
    if let [whole] = parts {
        return at_once(whole);
    }
    let len: usize = parts.iter().map(|part| part.len()).sum();
    if len <= SHORT_LEN_MAX {
        gathered::<SHORT_LEN_MAX>(parts)
    } else if len <= GATHERED_LEN_MAX {
        gathered::<GATHERED_LEN_MAX>(parts)
    } else {
        one_by_one(parts)
    }
}

fn at_once(message: &[u8]) -> [u8; LEN] {
    cut(digest(&SHA256, message).as_ref())
}

/// The library keeps the state between parts on the heap. Copying what is short costs less.
fn gathered<const ROOM: usize>(parts: &[&[u8]]) -> [u8; LEN] {
    let (mut room, mut len) = ([0; ROOM], 0);
    for part in parts {
        room[len..len + part.len()].copy_from_slice(part);
        len += part.len();
    }
    at_once(&room[..len])
}

fn one_by_one(parts: &[&[u8]]) -> [u8; LEN] {
    let mut context = Context::new(&SHA256);
    for part in parts {
        context.update(part);
    }
    cut(context.finish().as_ref())
}

fn cut(digest: &[u8]) -> [u8; LEN] {
    let mut hash = [0; LEN];
    hash.copy_from_slice(digest);
    hash
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_hex::array;

    /// FIPS 180-2, appendix B.2: the message of 448 bits, whole and in parts.
    #[test]
    fn parts_hash_like_the_whole() {
        let expected = array("248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
        assert_eq!(sha256(&[b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"]), expected);
        assert_eq!(sha256(&[b"abcdbcdecdefdefgefghfghighij", b"", b"hijkijkljklmklmnlmnomnopnopq"]), expected);
    }

    /// FIPS 180-2, appendix B.3: a million times "a", which no room holds.
    #[test]
    fn parts_of_a_long_message_hash_like_the_whole() {
        let expected = array("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
        let message = vec![b'a'; 1_000_000];
        let (front, back) = message.split_at(63);
        assert_eq!([sha256(&[&message]), sha256(&[front, back])], [expected; 2]);
    }

    #[test]
    fn parts_of_every_length_hash_like_the_whole() {
        let message: Vec<u8> = (0..GATHERED_LEN_MAX + 3).map(|at| (at * 7 % 251) as u8).collect();
        for len in 0..=message.len() {
            let (front, back) = message[..len].split_at(len / 3);
            assert_eq!(sha256(&[front, &[], back]), sha256(&[&message[..len]]), "{len} bytes");
        }
        assert_eq!(sha256(&[]), sha256(&[b""]));
    }
}
