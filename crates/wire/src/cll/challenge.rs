//! A challenge: the answer to a handshake request whose age the responder cannot judge.
//!
//! The paper judges age by timestamps alone (section 5.2), which locks out a host whose clock is wrong and accepts a
//! replay after the responder restarted. The initiator repeats its request with the cookie, signed anew.
//!
//! ```text
//!  0  version and type   1  flags, zero   2  tag under the site key, 16   18  nonce of the request, 16   34  cookie, 16
//! ```

use crate::cll::{COOKIE_LEN, NONCE_LEN, PacketType, SITE_TAG_LEN};
use crate::reader::Reader;
use crate::{Error, Field};

/// Bytes of a challenge.
pub const LEN: usize = 50;

/// A challenge. Nothing in it is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Tag under the site key.
    pub site_tag: [u8; SITE_TAG_LEN],
    /// The nonce of the request that is challenged.
    pub nonce: [u8; NONCE_LEN],
    /// To be repeated in the next request.
    pub cookie: [u8; COOKIE_LEN],
}

impl Challenge {
    /// Reads a challenge from `bytes`, which start after the Ethernet header.
    ///
    /// # Errors
    /// Truncated, not a challenge, unknown flags, or bytes after its end.
    pub fn parse(bytes: &[u8]) -> Result<Challenge, Error> {
        if PacketType::of(bytes)? != PacketType::Challenge {
            return Err(Error::Invalid(Field::CllHeader));
        }
        let mut reader = Reader::new(bytes, Field::CllHandshake);
        let _version_and_type = reader.u8()?;
        if reader.u8()? != 0 {
            return Err(Error::Unsupported(Field::CllHandshake));
        }
        let challenge = Challenge { site_tag: reader.array()?, nonce: reader.array()?, cookie: reader.array()? };
        if !reader.rest().is_empty() {
            return Err(Error::Trailing(Field::CllHandshake));
        }
        Ok(challenge)
    }

    /// The challenge as bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; LEN] {
        let mut out = [0; LEN];
        out[0] = PacketType::Challenge.first_byte();
        out[2..18].copy_from_slice(&self.site_tag);
        out[18..34].copy_from_slice(&self.nonce);
        out[34..].copy_from_slice(&self.cookie);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_survives_and_no_other_length_is_read() {
        let challenge = Challenge { site_tag: [1; 16], nonce: [2; 16], cookie: [3; 16] };
        let bytes = challenge.emit();
        assert_eq!(Challenge::parse(&bytes), Ok(challenge));
        for len in 0..LEN {
            assert!(Challenge::parse(&bytes[..len]).is_err());
        }
        assert_eq!(Challenge::parse(&[&bytes[..], &[0]].concat()), Err(Error::Trailing(Field::CllHandshake)));
    }
}
