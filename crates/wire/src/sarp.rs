//! S-ARP messages: an ARP message, a header of 12 bytes, data, a signature (S-ARP paper, section 3.3).
//!
//! ```text
//!  0  ARP for Ethernet and IPv4, 28 bytes; its operation is 00ff in everything to and from a key distributor
//! 28  magic 7599e11e   32  type   33  length of the signature   34  length of the data, 2   36  time in seconds, 4
//! 40  data   40 + its length  signature
//! ```
//!
//! Who does not know S-ARP reads the ARP message and takes the rest for padding. The signature covers everything in front
//! of it, with the length of the signature as zero (the paper's footnote 3). The paper leaves the data out, so that a key
//! could be exchanged under a good signature; here it is signed. Nothing in a parsed message is proved.

use crate::arp::{self, Arp, Operation};
use crate::reader::Reader;
use crate::{Error, Field};

pub mod data;
pub mod enrolment;

/// Tells an S-ARP header from Ethernet padding.
pub const MAGIC: u32 = 0x7599_e11e;
/// Bytes of the header.
pub const HEADER_LEN: usize = 12;
/// Where the data starts.
pub const DATA_AT: usize = arp::LEN + HEADER_LEN;
/// Bytes at the front of a request to a distributor that its check covers: ARP, header, number of the host and nonce.
pub const REQUEST_HEAD_LEN: usize = DATA_AT + data::Question::LEN;
/// Bytes of the signatures that there are, so that a message is written without moving it.
const SIGNATURE_USUAL_BYTES: usize = 64;
/// The longest signature: its length has one byte.
pub const SIGNATURE_MAX_BYTES: usize = u8::MAX as usize;

/// The ARP operation of messages to and from a key distributor: hosts without S-ARP ignore it.
const OPERATION_DISTRIBUTOR: u16 = 0x00ff;
const OPERATION: std::ops::Range<usize> = 6..8;
const SIGNATURE_LEN: usize = arp::LEN + 5;

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A signed ARP request or reply between hosts.
    Resolution,
    /// What time is it?
    TimeRequest,
    /// The distributor's time.
    TimeReply,
    /// Whose key belongs to this address?
    KeyRequest,
    /// The key.
    KeyReply,
    /// The distributor knows no key for the address.
    KeyNotFound,
    /// The key that the address had is no longer good.
    KeyInvalid,
    /// A host replaces its own key, signed by the old one. The original daemon has no such message.
    KeyChange,
    /// The key was replaced.
    KeyChanged,
    /// A DHCP server asks about a client and its address. The original daemon has no such message.
    Lease,
    /// The client may have the address.
    LeaseAgreed,
    /// It may not.
    LeaseRefused,
    /// A machine with a token asks to become a host. The original daemon has no such message.
    Apply,
    /// A machine with a token asks what became of that, and for a piece of its identity.
    Fetch,
    /// What became of it.
    Enrolment,
}

impl Kind {
    /// All kinds with the byte that names each; the first seven as in the original daemon.
    const BYTES: [(Kind, u8); 15] = [
        (Kind::Resolution, 0x00),
        (Kind::TimeRequest, 0x01),
        (Kind::TimeReply, 0x02),
        (Kind::KeyRequest, 0x04),
        (Kind::KeyReply, 0x08),
        (Kind::KeyNotFound, 0x18),
        (Kind::KeyInvalid, 0x20),
        (Kind::KeyChange, 0x40),
        (Kind::KeyChanged, 0x48),
        (Kind::Lease, 0x80),
        (Kind::LeaseAgreed, 0x88),
        (Kind::LeaseRefused, 0x90),
        (Kind::Apply, 0xa0),
        (Kind::Fetch, 0xa4),
        (Kind::Enrolment, 0xa8),
    ];

    fn from_byte(byte: u8) -> Result<Kind, Error> {
        let found = Kind::BYTES.iter().find(|(_, known)| *known == byte);
        found.map(|(kind, _)| *kind).ok_or(Error::Unsupported(Field::SarpHeader))
    }

    fn byte(self) -> u8 {
        Kind::BYTES.iter().find(|(kind, _)| *kind == self).map_or(0, |(_, byte)| *byte)
    }

    /// Whether a key distributor asks for it or answers with it; `None` between hosts.
    fn direction(self) -> Option<Operation> {
        match self {
            Kind::Resolution => None,
            Kind::TimeRequest | Kind::KeyRequest | Kind::KeyChange | Kind::Lease | Kind::Apply | Kind::Fetch => {
                Some(Operation::Request)
            }
            Kind::TimeReply
            | Kind::KeyReply
            | Kind::KeyNotFound
            | Kind::KeyInvalid
            | Kind::KeyChanged
            | Kind::LeaseAgreed
            | Kind::LeaseRefused
            | Kind::Enrolment => Some(Operation::Reply),
        }
    }
}

/// An S-ARP message as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The ARP message. Its operation says request or reply also where the wire has the distributor's own number.
    pub arp: Arp,
    /// What it is for.
    pub kind: Kind,
    /// When it was made, in seconds since 1970 on the sender's S-ARP clock; zero in requests to a distributor.
    pub seconds: u32,
    /// What is in it: see [`data`] and [`enrolment`].
    pub data: &'a [u8],
    /// The signature, or the credential of a request to a distributor.
    pub signature: &'a [u8],
}

impl<'a> Message<'a> {
    /// Whether `bytes`, which start after the Ethernet header, carry an S-ARP header; all that follows may be wrong.
    #[must_use]
    pub fn is_one(bytes: &[u8]) -> bool {
        bytes.get(arp::LEN..arp::LEN + 4) == Some(&MAGIC.to_be_bytes())
    }

    /// Reads a message; bytes after the signature (Ethernet padding) are ignored.
    ///
    /// # Errors
    /// Not ARP for Ethernet and IPv4, no magic, an unknown type, a type that contradicts the operation, or lengths beyond
    /// the end.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, Error> {
        let (body, rest) = bytes.split_first_chunk::<{ arp::LEN }>().ok_or(Error::Truncated(Field::Arp))?;
        let mut reader = Reader::new(rest, Field::SarpHeader);
        if reader.u32()? != MAGIC {
            return Err(Error::Unsupported(Field::SarpHeader));
        }
        let kind = Kind::from_byte(reader.u8()?)?;
        let signature_len = usize::from(reader.u8()?);
        let data_len = usize::from(reader.u16()?);
        let seconds = reader.u32()?;
        reader.now_reading(Field::SarpData);
        let data = reader.bytes(data_len)?;
        let signature = reader.bytes(signature_len)?;
        Ok(Message { arp: read_body(*body, kind)?, kind, seconds, data, signature })
    }

    /// The bytes that the signature covers: everything in front of it.
    #[must_use]
    pub fn signed_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(DATA_AT + self.data.len() + SIGNATURE_USUAL_BYTES);
        bytes.extend(self.head());
        bytes.extend(self.data);
        bytes
    }

    /// The bytes that the check of a request covers: everything up to and with its nonce. `None` when it is none.
    #[must_use]
    pub fn request_head(&self) -> Option<[u8; REQUEST_HEAD_LEN]> {
        let mut head = [0; REQUEST_HEAD_LEN];
        head[..DATA_AT].copy_from_slice(&self.head());
        head[DATA_AT..].copy_from_slice(self.data.get(..REQUEST_HEAD_LEN - DATA_AT)?);
        Some(head)
    }

    /// Everything in front of the data, the length of the signature as zero.
    fn head(&self) -> [u8; DATA_AT] {
        let mut head = [0; DATA_AT];
        head[..arp::LEN].copy_from_slice(&self.arp.emit());
        if self.kind.direction().is_some() {
            head[OPERATION].copy_from_slice(&OPERATION_DISTRIBUTOR.to_be_bytes());
        }
        let [magic, kind, data_len, seconds] = [arp::LEN, arp::LEN + 4, arp::LEN + 6, arp::LEN + 8];
        head[magic..kind].copy_from_slice(&MAGIC.to_be_bytes());
        head[kind] = self.kind.byte();
        // What is longer than its field cannot have been read, and nothing here makes it.
        let len = u16::try_from(self.data.len()).unwrap_or(u16::MAX);
        head[data_len..seconds].copy_from_slice(&len.to_be_bytes());
        head[seconds..].copy_from_slice(&self.seconds.to_be_bytes());
        head
    }

    /// The message as bytes.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        seal(self.signed_bytes(), self.signature)
    }
}

/// Puts `signature` behind the bytes that it covers. One longer than [`SIGNATURE_MAX_BYTES`] is cut and verifies nowhere.
#[must_use]
pub fn seal(mut signed_bytes: Vec<u8>, signature: &[u8]) -> Vec<u8> {
    let signature = &signature[..signature.len().min(SIGNATURE_MAX_BYTES)];
    if let Some(len) = signed_bytes.get_mut(SIGNATURE_LEN) {
        *len = signature.len() as u8;
    }
    signed_bytes.extend(signature);
    signed_bytes
}

/// Reads the ARP message of a message of `kind`, whose operation must fit.
fn read_body(mut body: [u8; arp::LEN], kind: Kind) -> Result<Arp, Error> {
    let of_distributor = body[OPERATION] == OPERATION_DISTRIBUTOR.to_be_bytes();
    let Some(direction) = kind.direction() else { return Arp::parse(&body) };
    if !of_distributor {
        return Err(Error::Invalid(Field::SarpHeader));
    }
    body[OPERATION].copy_from_slice(&1_u16.to_be_bytes());
    Ok(Arp { operation: direction, ..Arp::parse(&body)? })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;
    use crate::MacAddress;

    /// Written by hand after the layout: 10.0.0.2 answers 10.0.0.1 at second 0x65000000, two bytes of data, a signature of
    /// three, padding.
    const REPLY: [u8; 48] = [
        0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 2, 10, 0, 0, 2, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0x75, 0x99, 0xe1, 0x1e,
        0, 3, 0, 2, 0x65, 0, 0, 0, 0xaa, 0xbb, 1, 2, 3, 0, 0, 0,
    ];
    const LEN: usize = 45;

    /// The same answer as a distributor's key reply.
    fn key_reply() -> [u8; 48] {
        let mut bytes = REPLY;
        (bytes[7], bytes[32]) = (0xff, 0x08);
        bytes
    }

    #[test]
    fn a_reply_reads_and_writes_the_same_bytes() {
        let message = Message::parse(&REPLY).expect("valid");
        assert_eq!((message.kind, message.seconds), (Kind::Resolution, 0x6500_0000));
        assert_eq!(message.arp.operation, Operation::Reply);
        assert_eq!(message.arp.sender_ip, Ipv4Addr::new(10, 0, 0, 2));
        assert_eq!(message.arp.target_mac, MacAddress([2, 0, 0, 0, 0, 1]));
        assert_eq!((message.data, message.signature), (&[0xaa, 0xbb][..], &[1, 2, 3][..]));
        assert_eq!(message.emit(), REPLY[..LEN]);
    }

    #[test]
    fn the_signature_covers_all_with_its_own_length_as_zero() {
        let message = Message::parse(&REPLY).expect("valid");
        let mut expected = REPLY[..42].to_vec();
        expected[33] = 0;
        assert_eq!(message.signed_bytes(), expected);
    }

    #[test]
    fn a_distributors_message_has_its_own_operation() {
        let bytes = key_reply();
        let message = Message::parse(&bytes).expect("valid");
        assert_eq!((message.kind, message.arp.operation), (Kind::KeyReply, Operation::Reply));
        assert_eq!(message.emit(), bytes[..LEN]);
        // To a host without S-ARP it is not ARP that it knows.
        assert!(Arp::parse(&bytes).is_err());
        assert!(Arp::parse(&REPLY).is_ok());
    }

    #[test]
    fn operation_and_type_must_fit() {
        for (operation, kind) in [(0xff, 0x00), (1, 0x04), (2, 0x08), (3, 0x00), (0xfe, 0x08)] {
            let mut bytes = REPLY;
            (bytes[7], bytes[32]) = (operation, kind);
            assert!(Message::parse(&bytes).is_err(), "operation {operation}, type {kind}");
        }
        let mut unknown = key_reply();
        unknown[32] = 0x10;
        assert_eq!(Message::parse(&unknown), Err(Error::Unsupported(Field::SarpHeader)));
    }

    #[test]
    fn lengths_beyond_the_end_and_padding_without_magic_are_refused() {
        for len in 0..LEN {
            assert!(Message::parse(&REPLY[..len]).is_err(), "{len} bytes");
        }
        assert!(Message::is_one(&REPLY) && !Message::is_one(&REPLY[..31]));
        let mut padded = REPLY;
        padded[28] = 0;
        assert!(!Message::is_one(&padded));
        assert_eq!(Message::parse(&padded), Err(Error::Unsupported(Field::SarpHeader)));
        let mut long = REPLY;
        long[34] = 0xff;
        assert_eq!(Message::parse(&long), Err(Error::Truncated(Field::SarpData)));
    }

    proptest! {
        #[test]
        fn any_bytes_behind_the_arp_message_are_read_without_harm(tail: Vec<u8>, operation in 0_u8..4) {
            let mut bytes = [&REPLY[..32], &tail].concat();
            bytes[7] = if operation == 3 { 0xff } else { operation };
            if let Ok(message) = Message::parse(&bytes) {
                let emitted = message.emit();
                prop_assert_eq!(&emitted[..], &bytes[..emitted.len()]);
            }
        }
    }
}
