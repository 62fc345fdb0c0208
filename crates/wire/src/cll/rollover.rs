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
//!
//! With flag bit 0 they carry ML-KEM-768 (FIPS 203) instead, which would not fit a frame beside a
//! certificate, and the seal is all that proves them:
//!
//! ```text
//! 18  offer, 14            32  encapsulation key, 1184, or in a reply ciphertext, 1088
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
/// Flag bit 0: ML-KEM in the place of a key share, a certificate and a signature.
const FLAG_KEM: u8 = 1;
/// Bytes of an encapsulation key of ML-KEM-768 (FIPS 203, table 3).
pub const ENCAPSULATION_KEY_LEN: usize = 1184;
/// Bytes of its ciphertext.
pub const CIPHERTEXT_LEN: usize = 1088;
const _: () = assert!(FIXED_LEN + ENCAPSULATION_KEY_LEN <= 1500 - 65, "a request fits where a data frame does");

/// A rollover message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rollover<'a> {
    /// A request or a reply.
    Keys(Keys<'a>),
    /// A request or a reply with ML-KEM.
    Kem(Kem<'a>),
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

/// A request or reply that carries ML-KEM-768. The seal around it is its only proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kem<'a> {
    /// Request or reply.
    pub kind: Kind,
    /// Drawn by the initiator and repeated by the responder.
    pub nonce: [u8; NONCE_LEN],
    /// How the sender will protect its frames under the new keys.
    pub offer: Offer,
    /// In a request the encapsulation key, in a reply the ciphertext.
    pub value: &'a [u8],
}

impl<'a> Kem<'a> {
    fn parse(kind: Kind, nonce: [u8; NONCE_LEN], reader: &mut Reader<'a>) -> Result<Rollover<'a>, Error> {
        let offer = Offer::parse(reader)?;
        let value = reader.bytes(match kind {
            Kind::Request => ENCAPSULATION_KEY_LEN,
            Kind::Reply => CIPHERTEXT_LEN,
        })?;
        Ok(Rollover::Kem(Kem { kind, nonce, offer, value }))
    }

    /// The message as bytes.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut out = head(self.kind as u8, FLAG_KEM, &self.nonce);
        self.offer.emit(&mut out);
        out.extend_from_slice(self.value);
        out
    }
}

impl<'a> Rollover<'a> {
    /// Reads a message from the payload of a sealed frame.
    ///
    /// # Errors
    /// The field that is cut short, invalid, unsupported, or followed by more bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Rollover<'a>, Error> {
        let mut reader = Reader::new(bytes, Field::CllRollover);
        let first = reader.u8()?;
        let flags = reader.u8()?;
        if first >> 4 != VERSION || flags & !FLAG_KEM != 0 {
            return Err(Error::Unsupported(Field::CllRollover));
        }
        let nonce = reader.array()?;
        let kind = [Kind::Request, Kind::Reply].into_iter().find(|kind| *kind as u8 == first & 0x0f);
        let message = match (kind, flags) {
            (Some(kind), FLAG_KEM) => Kem::parse(kind, nonce, &mut reader)?,
            (Some(kind), _) => Keys::parse(kind, nonce, &mut reader)?,
            (None, 0) if first & 0x0f == ACKNOWLEDGEMENT => Rollover::Acknowledgement(nonce),
            (None, _) => return Err(Error::Invalid(Field::CllRollover)),
        };
        if reader.rest().is_empty() { Ok(message) } else { Err(Error::Trailing(Field::CllRollover)) }
    }

    /// The initiator's nonce.
    #[must_use]
    pub fn nonce(&self) -> &[u8; NONCE_LEN] {
        match self {
            Rollover::Keys(Keys { nonce, .. })
            | Rollover::Kem(Kem { nonce, .. })
            | Rollover::Acknowledgement(nonce) => nonce,
        }
    }

    /// Whether it is a request or a reply.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match self {
            Rollover::Keys(Keys { kind, .. }) | Rollover::Kem(Kem { kind, .. }) => Some(*kind),
            Rollover::Acknowledgement(_) => None,
        }
    }

    /// What the sender of a request or reply offers.
    #[must_use]
    pub fn offer(&self) -> Option<Offer> {
        match self {
            Rollover::Keys(Keys { offer, .. }) | Rollover::Kem(Kem { offer, .. }) => Some(*offer),
            Rollover::Acknowledgement(_) => None,
        }
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
            Rollover::Kem(kem) => kem.emit(),
            Rollover::Acknowledgement(nonce) => head(ACKNOWLEDGEMENT, 0, nonce),
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
        let mut out = head(self.kind as u8, 0, &self.nonce);
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

fn head(kind: u8, flags: u8, nonce: &[u8; NONCE_LEN]) -> Vec<u8> {
    [&[VERSION << 4 | kind, flags], &nonce[..]].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cll::compression::Compression;
    use crate::cll::handshake::Agreement;

    const OFFER: Offer = Offer {
        agreement: Agreement::X25519,
        suite: 1,
        confidential: true,
        slow_nonce: false,
        lanes: 1,
        receiver_index: 0x1000,
        lifetime_s: 0x708,
        compression: Compression::NONE,
        post_quantum: false,
        pre_shared: false,
    };

    fn example<'a>(kind: Kind, certificate: &'a [u8], signature: &'a [u8]) -> Rollover<'a> {
        let (nonce, offer) = ([0x22; 16], OFFER);
        Rollover::Keys(Keys { kind, nonce, offer, key_share: &[0x33; 32], certificate, signature })
    }

    fn example_with_kem(kind: Kind) -> Rollover<'static> {
        let offer = Offer { post_quantum: true, ..OFFER };
        let len = if kind == Kind::Request { ENCAPSULATION_KEY_LEN } else { CIPHERTEXT_LEN };
        Rollover::Kem(Kem { kind, nonce: [0x22; 16], offer, value: &[0x44; ENCAPSULATION_KEY_LEN][..len] })
    }

    #[test]
    fn with_ml_kem_the_layout_is_the_documented_one() {
        for (kind, first, len) in [(Kind::Request, 0x25, 1216), (Kind::Reply, 0x26, 1120)] {
            let bytes = example_with_kem(kind).emit();
            assert_eq!((bytes[..2].to_vec(), bytes.len()), (vec![first, 1], len));
            assert_eq!(bytes[2..18], [0x22; 16]);
            assert_eq!(bytes[18..32], [1, 1, 1, 1, 0, 0, 0x10, 0, 0, 0, 7, 8, 0x80, 1]);
            assert!(bytes[32..].iter().all(|byte| *byte == 0x44));
            let mut other = bytes.clone();
            other[1] = 2;
            assert_eq!(Rollover::parse(&other), Err(Error::Unsupported(Field::CllRollover)));
        }
        assert_eq!(
            Rollover::parse(&[&[0x27, 1][..], &[9; 16]].concat()),
            Err(Error::Invalid(Field::CllRollover)),
            "an acknowledgement has no flags"
        );
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
        for message in [
            example(Kind::Reply, &[0xcc; 5], &[0xdd; 3]),
            example_with_kem(Kind::Request),
            example_with_kem(Kind::Reply),
            Rollover::Acknowledgement([1; 16]),
        ] {
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
        fn mutated_bytes_that_parse_emit_themselves(at in 0_usize..120, value: u8, cut in 0_usize..140, kem: bool) {
            let mut bytes = if kem { example_with_kem(Kind::Request) } else { example(Kind::Request, &[7; 40], &[9; 10]) }.emit();
            let cut = if kem { cut + ENCAPSULATION_KEY_LEN - 90 } else { cut };
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
