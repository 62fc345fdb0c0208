//! Rollover messages (section 5.4 of the paper, "renegotiation"): what two hosts with an association say to each other to
//! get fresh keys. They travel sealed, as the payload of a data frame with the inner EtherType
//! [`InnerHeader::CONTROL`](super::InnerHeader::CONTROL); so they need no tag under the site key, no timestamp and no ARP.
//!
//! ```text
//!  0  version and type      1  flags, zero      2  nonce of the initiator, 16      an acknowledgement ends here
//! 18  offer, 14            32  key share, 32 (256 in the paper profile)
//! 64  length of the certificate 2, certificate
//!  .  length of the signature 2, signature
//! ```

use super::handshake::{Offer, append_counted, read_counted};
use super::{NONCE_LEN, VERSION};
use crate::reader::Reader;
use crate::{Error, Field};

/// Bytes of an acknowledgement, and of a request or reply before the offer.
pub const ACKNOWLEDGEMENT_LEN: usize = 2 + NONCE_LEN;
/// Bytes of a request or reply before the certificate's length, but for the key share.
const FIXED_LEN: usize = ACKNOWLEDGEMENT_LEN + 14;

/// Which of the two that carry keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// "Let us have new keys."
    Request = 5,
    /// "These are mine."
    Reply = 6,
}

const ACKNOWLEDGEMENT: u8 = 7;

/// A rollover message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rollover<'a> {
    /// A request or a reply.
    Keys(Keys<'a>),
    /// "I have your reply", the first frame under the new keys. It repeats the nonce.
    Acknowledgement([u8; NONCE_LEN]),
}

/// A rollover request or reply. The seal around it proves who sent it; its signature proves the certificate in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys<'a> {
    /// Request or reply.
    pub kind: Kind,
    /// Drawn by the initiator and repeated by the responder.
    pub nonce: [u8; NONCE_LEN],
    /// How the sender will protect its frames under the new keys.
    pub offer: Offer,
    /// The sender's fresh public key, as long as the offered agreement has it.
    pub key_share: &'a [u8],
    /// The sender's certificate as it is now, DER.
    pub certificate: &'a [u8],
    /// The sender's signature.
    pub signature: &'a [u8],
}

impl<'a> Rollover<'a> {
    /// Reads a message from the payload of a sealed frame.
    ///
    /// # Errors
    /// The field that is cut short, invalid, unsupported, or followed by more bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Rollover<'a>, Error> {
        let mut reader = Reader::new(bytes, Field::CllRollover);
        let first = reader.u8()?;
        if first >> 4 != VERSION || reader.u8()? != 0 {
            return Err(Error::Unsupported(Field::CllRollover));
        }
        let nonce = reader.array()?;
        let message = match first & 0x0f {
            kind if kind == Kind::Request as u8 => Keys::parse(Kind::Request, nonce, &mut reader)?,
            kind if kind == Kind::Reply as u8 => Keys::parse(Kind::Reply, nonce, &mut reader)?,
            ACKNOWLEDGEMENT => Rollover::Acknowledgement(nonce),
            _ => return Err(Error::Invalid(Field::CllRollover)),
        };
        if reader.rest().is_empty() { Ok(message) } else { Err(Error::Trailing(Field::CllRollover)) }
    }

    /// The message as bytes.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        match self {
            Rollover::Keys(keys) => {
                let mut out = keys.emit_unsigned();
                append_counted(&mut out, keys.signature);
                out
            }
            Rollover::Acknowledgement(nonce) => head(ACKNOWLEDGEMENT, nonce),
        }
    }
}

impl<'a> Keys<'a> {
    fn parse(kind: Kind, nonce: [u8; NONCE_LEN], reader: &mut Reader<'a>) -> Result<Rollover<'a>, Error> {
        let offer = Offer::parse(reader)?;
        let key_share = reader.bytes(offer.agreement.share_len())?;
        let certificate = read_counted(reader, Field::CllCertificate, super::handshake::CERTIFICATE_LEN_MAX)?;
        let signature = read_counted(reader, Field::CllSignature, super::handshake::SIGNATURE_LEN_MAX)?;
        Ok(Rollover::Keys(Keys { kind, nonce, offer, key_share, certificate, signature }))
    }

    /// The message up to and including the certificate: what is signed.
    #[must_use]
    pub fn emit_unsigned(&self) -> Vec<u8> {
        let mut out = head(self.kind as u8, &self.nonce);
        self.offer.emit(&mut out);
        out.extend_from_slice(self.key_share);
        append_counted(&mut out, self.certificate);
        out
    }

    /// The part of `message`, from which this was parsed, that its signature covers.
    #[must_use]
    pub fn signed_part<'m>(&self, message: &'m [u8]) -> &'m [u8] {
        let end = FIXED_LEN + self.key_share.len() + 2 + self.certificate.len();
        &message[..end.min(message.len())]
    }
}

fn head(kind: u8, nonce: &[u8; NONCE_LEN]) -> Vec<u8> {
    [&[VERSION << 4 | kind, 0], &nonce[..]].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cll::compression::Compression;
    use crate::cll::handshake::Agreement;

    fn example<'a>(kind: Kind, certificate: &'a [u8], signature: &'a [u8]) -> Rollover<'a> {
        let (lanes, receiver_index, lifetime_s) = (1, 0x1000, 0x708);
        let agreement = Agreement::X25519;
        let (suite, compression) = (1, Compression::NONE);
        let (confidential, slow_nonce) = (true, false);
        let offer =
            Offer { agreement, suite, confidential, slow_nonce, lanes, receiver_index, lifetime_s, compression };
        Rollover::Keys(Keys { kind, nonce: [0x22; 16], offer, key_share: &[0x33; 32], certificate, signature })
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let bytes = example(Kind::Request, &[0xcc; 5], &[0xdd; 3]).emit();
        assert_eq!(bytes[..2], [0x25, 0]);
        assert_eq!(bytes[2..18], [0x22; 16]);
        assert_eq!(bytes[18..32], [1, 1, 1, 1, 0, 0, 0x10, 0, 0, 0, 7, 8, 0, 1]);
        assert_eq!(bytes[32..64], [0x33; 32]);
        assert_eq!(bytes[64..66], [0, 5]);
        assert_eq!(bytes[71..], [0, 3, 0xdd, 0xdd, 0xdd]);
        let Ok(Rollover::Keys(keys)) = Rollover::parse(&bytes) else { panic!("keys") };
        assert_eq!(keys.signed_part(&bytes).len(), 71);
        assert_eq!(example(Kind::Reply, &[], &[]).emit()[0], 0x26);
        assert_eq!(Rollover::Acknowledgement([9; 16]).emit(), [&[0x27, 0][..], &[9; 16]].concat());
    }

    #[test]
    fn every_truncation_and_every_trailing_byte_is_refused() {
        for message in [example(Kind::Reply, &[0xcc; 5], &[0xdd; 3]), Rollover::Acknowledgement([1; 16])] {
            let bytes = message.emit();
            assert_eq!(Rollover::parse(&bytes), Ok(message));
            for len in 0..bytes.len() {
                assert!(matches!(Rollover::parse(&bytes[..len]), Err(Error::Truncated(_))), "{len} bytes");
            }
            assert_eq!(Rollover::parse(&[&bytes[..], &[0]].concat()), Err(Error::Trailing(Field::CllRollover)));
        }
    }

    proptest! {
        #[test]
        fn mutated_bytes_that_parse_emit_themselves(at in 0_usize..120, value: u8, cut in 0_usize..140) {
            let mut bytes = example(Kind::Request, &[7; 40], &[9; 10]).emit();
            let at = at % bytes.len();
            bytes[at] = value;
            bytes.truncate(cut);
            if let Ok(parsed) = Rollover::parse(&bytes) {
                prop_assert_eq!(parsed.emit(), bytes);
            }
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = Rollover::parse(&bytes);
        }
    }
}
