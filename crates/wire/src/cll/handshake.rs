//! Handshake requests and replies (section 5.2 of the paper): an ARP message wrapped in what makes it believable.
//!
//! ```text
//!   0  version and type      1  flags, zero
//!   2  tag under the site key, 16
//!  18  ARP message, 28, or one for IPv6 addresses, 52 (`resolution.rs`); then all that follows stands 24 further
//!  46  timestamp, milliseconds since 1970, 8
//!  54  nonce of the initiator, 16
//!  70  offer: key agreement 1, suite 1, protection 1, lanes 1, receiver index 4, lifetime in seconds 4,
//!      compression and further secrets 1, nonce kinds 1
//!  84  key share, 32 (256 in the paper profile; all that follows then stands 224 bytes further)
//! 116  cookie of a challenge, 16, or zeros; in a reply what shows that its sender has the pre-shared key, or zeros
//! 132  length of the certificate 2, certificate
//!   .  length of the signature 2, signature
//! ```

use crate::arp;
use crate::cll::compression::Compression;
use crate::cll::resolution::{NEIGHBOUR_EXTRA, Resolution};
use crate::cll::{COOKIE_LEN, NONCE_LEN, PacketType, SITE_TAG_AT, SITE_TAG_LEN};
use crate::reader::Reader;
use crate::{Error, Field};

/// Bytes before the certificate's length, with an ARP message, but for the key share.
pub const FIXED_LEN: usize = 100;
/// Where the part that is signed continues after the site tag.
pub const SIGNED_FROM: usize = SITE_TAG_AT + SITE_TAG_LEN;
/// Longest certificate that is read; a message fits one Ethernet frame.
pub const CERTIFICATE_LEN_MAX: usize = 1100;
/// The same beside IPv6 addresses, which take more room.
pub const CERTIFICATE_LEN_MAX_V6: usize = CERTIFICATE_LEN_MAX - NEIGHBOUR_EXTRA;
/// Longest signature that is read (RSA-2048).
pub const SIGNATURE_LEN_MAX: usize = 256;
/// Most sending lanes of one host.
pub const LANES_MAX: u8 = 8;

const _: () = assert!(FIXED_LEN == SIGNED_FROM + arp::LEN + 8 + NONCE_LEN + 14 + COOKIE_LEN);

const PROTECTION_CONFIDENTIAL: u8 = 0x01;
const NONCE_KIND_SPINNING: u8 = 0x01;
const NONCE_KIND_SLOW: u8 = 0x02;
/// In the byte of compression, of whose high half those who know nothing of this take no notice.
const POST_QUANTUM: u8 = 0x80;
const PRE_SHARED: u8 = 0x40;

/// How two sides come to a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Agreement {
    /// X25519 (RFC 7748).
    X25519 = 1,
    /// Diffie-Hellman in group 14 (RFC 3526), of the paper profile.
    Group14 = 2,
}

impl Agreement {
    /// Bytes of a key share.
    #[must_use]
    pub const fn share_len(self) -> usize {
        match self {
            Agreement::X25519 => 32,
            Agreement::Group14 => 256,
        }
    }

    fn of(number: u8) -> Option<Agreement> {
        [Agreement::X25519, Agreement::Group14].into_iter().find(|agreement| *agreement as u8 == number)
    }
}

/// What one side will do with the frames it *sends*, and where it wants to receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// What the key share belongs to.
    pub agreement: Agreement,
    /// Identifier of the suite, see `docs/protocol.md`.
    pub suite: u8,
    /// Whether the payload is encrypted or only authenticated.
    pub confidential: bool,
    /// Whether a slow nonce stands beside the spinning one.
    pub slow_nonce: bool,
    /// How many lanes this side sends on, 1 to [`LANES_MAX`].
    pub lanes: u8,
    /// Receiver index for the peer's lane 0; lane `n` uses this plus `n`. The low three bits are zero.
    pub receiver_index: u32,
    /// How long the association may live; the shorter claim of both holds.
    pub lifetime_s: u32,
    /// With what this side compresses, and what it reads.
    pub compression: Compression,
    /// Whether this side takes part in an ML-KEM exchange before payload moves.
    pub post_quantum: bool,
    /// Whether this side has a pre-shared key.
    pub pre_shared: bool,
}

impl Offer {
    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Offer, Error> {
        let invalid = Error::Invalid(Field::CllHandshake);
        let agreement = Agreement::of(reader.u8()?).ok_or(Error::Unsupported(Field::CllHandshake))?;
        let suite = reader.u8()?;
        let protection = reader.u8()?;
        let lanes = reader.u8()?;
        let receiver_index = reader.u32()?;
        let lifetime_s = reader.u32()?;
        let (compression, nonce_kinds) = (reader.u8()?, reader.u8()?);
        if protection & !PROTECTION_CONFIDENTIAL != 0 || !(1..=LANES_MAX).contains(&lanes) {
            return Err(invalid);
        }
        if !receiver_index.is_multiple_of(u32::from(LANES_MAX)) {
            return Err(invalid);
        }
        if nonce_kinds & !NONCE_KIND_SLOW != NONCE_KIND_SPINNING {
            return Err(Error::Unsupported(Field::CllHandshake));
        }
        let confidential = protection & PROTECTION_CONFIDENTIAL != 0;
        let slow_nonce = nonce_kinds & NONCE_KIND_SLOW != 0;
        let (post_quantum, pre_shared) = (compression & POST_QUANTUM != 0, compression & PRE_SHARED != 0);
        let compression = Compression(compression & !(POST_QUANTUM | PRE_SHARED));
        Ok(Offer {
            agreement,
            suite,
            confidential,
            slow_nonce,
            lanes,
            receiver_index,
            lifetime_s,
            compression,
            post_quantum,
            pre_shared,
        })
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let protection = if self.confidential { PROTECTION_CONFIDENTIAL } else { 0 };
        out.extend_from_slice(&[self.agreement as u8, self.suite, protection, self.lanes]);
        out.extend_from_slice(&self.receiver_index.to_be_bytes());
        out.extend_from_slice(&self.lifetime_s.to_be_bytes());
        let slow = if self.slow_nonce { NONCE_KIND_SLOW } else { 0 };
        let post_quantum = if self.post_quantum { POST_QUANTUM } else { 0 };
        let pre_shared = if self.pre_shared { PRE_SHARED } else { 0 };
        out.extend_from_slice(&[self.compression.0 | post_quantum | pre_shared, NONCE_KIND_SPINNING | slow]);
    }
}

/// A handshake request or reply. Nothing in it is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handshake<'a> {
    /// [`PacketType::HandshakeRequest`] or [`PacketType::HandshakeReply`].
    pub kind: PacketType,
    /// Tag under the site key over the Ethernet header and all of the message but the tag.
    pub site_tag: [u8; SITE_TAG_LEN],
    /// The wrapped ARP message, or what stands for it where the addresses are IPv6's.
    pub resolution: Resolution,
    /// The sender's wall clock, in milliseconds since 1970.
    pub timestamp_ms: u64,
    /// Drawn by the initiator and repeated by the responder.
    pub nonce: [u8; NONCE_LEN],
    /// How the sender will protect its frames.
    pub offer: Offer,
    /// The sender's fresh public key, as long as the offered agreement has it.
    pub key_share: &'a [u8],
    /// The cookie of a challenge that this request answers, or zeros. In a reply what shows that
    /// its sender has the pre-shared key, or zeros.
    pub cookie: [u8; COOKIE_LEN],
    /// The sender's certificate, DER.
    pub certificate: &'a [u8],
    /// The sender's signature.
    pub signature: &'a [u8],
}

impl<'a> Handshake<'a> {
    /// Reads a message from `bytes`, which start after the Ethernet header.
    ///
    /// # Errors
    /// The field that is cut short, invalid, unsupported, or followed by more bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Handshake<'a>, Error> {
        let kind = PacketType::of(bytes)?;
        if !matches!(kind, PacketType::HandshakeRequest | PacketType::HandshakeReply) {
            return Err(Error::Invalid(Field::CllHeader));
        }
        let mut reader = Reader::new(bytes, Field::CllHandshake);
        let _version_and_type = reader.u8()?;
        if reader.u8()? != 0 {
            return Err(Error::Unsupported(Field::CllHandshake));
        }
        let site_tag = reader.array()?;
        let resolution = Resolution::parse(&mut reader)?;
        let certificate_len_max = match resolution {
            Resolution::Arp(_) => CERTIFICATE_LEN_MAX,
            Resolution::Neighbour(_) => CERTIFICATE_LEN_MAX_V6,
        };
        let timestamp_ms = reader.u64()?;
        let nonce = reader.array()?;
        let offer = Offer::parse(&mut reader)?;
        let key_share = reader.bytes(offer.agreement.share_len())?;
        let cookie = reader.array()?;
        let certificate = read_counted(&mut reader, Field::CllCertificate, certificate_len_max)?;
        let signature = read_counted(&mut reader, Field::CllSignature, SIGNATURE_LEN_MAX)?;
        if !reader.rest().is_empty() {
            return Err(Error::Trailing(Field::CllSignature));
        }
        Ok(Handshake {
            kind,
            site_tag,
            resolution,
            timestamp_ms,
            nonce,
            offer,
            key_share,
            cookie,
            certificate,
            signature,
        })
    }

    /// The message as bytes, to stand after the Ethernet header.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut out = self.emit_unsigned();
        append_signature(&mut out, self.signature);
        out
    }

    /// The message up to and including the certificate: what remains to be signed and tagged.
    #[must_use]
    pub fn emit_unsigned(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(FIXED_LEN + NEIGHBOUR_EXTRA + 4 + self.certificate.len() + SIGNATURE_LEN_MAX);
        out.extend_from_slice(&[self.kind.first_byte(), 0]);
        out.extend_from_slice(&self.site_tag);
        self.resolution.emit(&mut out);
        out.extend_from_slice(&self.timestamp_ms.to_be_bytes());
        out.extend_from_slice(&self.nonce);
        self.offer.emit(&mut out);
        out.extend_from_slice(self.key_share);
        out.extend_from_slice(&self.cookie);
        append_counted(&mut out, self.certificate);
        out
    }

    /// The two pieces of `message` (bytes after the Ethernet header, from which this was parsed) that the signature covers: all
    /// but the site tag, up to and including the certificate.
    #[must_use]
    pub fn signed_parts<'m>(&self, message: &'m [u8]) -> [&'m [u8]; 2] {
        let extra = match self.resolution {
            Resolution::Arp(_) => 0,
            Resolution::Neighbour(_) => NEIGHBOUR_EXTRA,
        };
        signed_parts(message, FIXED_LEN + extra + self.key_share.len() + 2 + self.certificate.len())
    }
}

/// As [`Handshake::signed_parts`], of a message that is not signed yet.
#[must_use]
pub fn unsigned_parts(message: &[u8]) -> [&[u8]; 2] {
    signed_parts(message, message.len())
}

fn signed_parts(message: &[u8], end: usize) -> [&[u8]; 2] {
    let end = end.min(message.len());
    [&message[..SITE_TAG_AT.min(end)], &message[SIGNED_FROM.min(end)..end]]
}

/// Appends `signature` with its length to an unsigned message.
pub fn append_signature(message: &mut Vec<u8>, signature: &[u8]) {
    append_counted(message, signature);
}

/// The two pieces of a handshake or challenge message that the site tag covers: all but the tag itself.
#[must_use]
pub fn tagged_parts(message: &[u8]) -> [&[u8]; 2] {
    let before = SITE_TAG_AT.min(message.len());
    let after = SIGNED_FROM.min(message.len());
    [&message[..before], &message[after..]]
}

/// Writes the site tag into its place.
pub fn set_site_tag(message: &mut [u8], tag: &[u8; SITE_TAG_LEN]) {
    if let Some(place) = message.get_mut(SITE_TAG_AT..SIGNED_FROM) {
        place.copy_from_slice(tag);
    }
}

pub(super) fn append_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(&bytes[..usize::from(len)]);
}

pub(super) fn read_counted<'a>(reader: &mut Reader<'a>, field: Field, len_max: usize) -> Result<&'a [u8], Error> {
    reader.now_reading(field);
    let len = usize::from(reader.u16()?);
    if len > len_max {
        return Err(Error::Invalid(field));
    }
    reader.bytes(len)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;
    use crate::MacAddress;
    use crate::arp::{Arp, Operation};
    use crate::cll::resolution::Neighbour;

    fn example<'a>(certificate: &'a [u8], signature: &'a [u8]) -> Handshake<'a> {
        Handshake {
            kind: PacketType::HandshakeRequest,
            site_tag: [0x11; 16],
            resolution: Resolution::Arp(Arp {
                operation: Operation::Request,
                sender_mac: MacAddress([2, 0, 0, 0, 0, 1]),
                sender_ip: Ipv4Addr::new(10, 0, 0, 1),
                target_mac: MacAddress::ZERO,
                target_ip: Ipv4Addr::new(10, 0, 0, 2),
            }),
            timestamp_ms: 0x0102_0304_0506_0708,
            nonce: [0x22; 16],
            offer: Offer {
                agreement: Agreement::X25519,
                suite: 1,
                confidential: true,
                slow_nonce: false,
                lanes: 1,
                receiver_index: 0x1000,
                lifetime_s: 1800,
                compression: Compression::NONE,
                post_quantum: false,
                pre_shared: false,
            },
            key_share: &[0x33; 32],
            cookie: [0; 16],
            certificate,
            signature,
        }
    }

    proptest! {
        #[test]
        fn a_message_survives_emit_and_parse(
            certificate in proptest::collection::vec(any::<u8>(), 0..CERTIFICATE_LEN_MAX),
            signature in proptest::collection::vec(any::<u8>(), 0..SIGNATURE_LEN_MAX),
            confidential: bool, slow_nonce: bool, lanes in 1..=LANES_MAX, slot in 0..(1_u32 << 29), lifetime_s: u32, suite: u8, group_14: bool,
            compression in 0_u8..0x40, post_quantum: bool, pre_shared: bool,
        ) {
            let mut message = example(&certificate, &signature);
            let agreement = if group_14 { Agreement::Group14 } else { Agreement::X25519 };
            message.key_share = &[0x33; 256][..agreement.share_len()];
            let (receiver_index, compression) = (slot * 8, Compression(compression));
            message.offer = Offer {
                agreement, suite, confidential, slow_nonce, lanes, receiver_index, lifetime_s, compression, post_quantum, pre_shared,
            };
            let bytes = message.emit();
            prop_assert_eq!(Handshake::parse(&bytes), Ok(message));
        }

        #[test]
        fn mutated_bytes_that_parse_emit_themselves(is_ipv6: bool, at in 0_usize..240, value: u8, cut in 0_usize..260) {
            let mut bytes = if is_ipv6 { example_v6(&[7; 40], &[9; 30]) } else { example(&[7; 40], &[9; 30]) }.emit();
            let at = at % bytes.len();
            bytes[at] = value;
            bytes.truncate(cut);
            if let Ok(parsed) = Handshake::parse(&bytes) {
                prop_assert_eq!(parsed.emit(), bytes);
            }
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = Handshake::parse(&bytes);
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let bytes = example(&[0xcc; 5], &[0xdd; 3]).emit();
        assert_eq!(bytes[0], 0x23);
        assert_eq!(bytes[SITE_TAG_AT..18], [0x11; 16]);
        assert_eq!(bytes[46..54], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(bytes[54..70], [0x22; 16]);
        assert_eq!(bytes[70..84], [1, 1, 1, 1, 0, 0, 0x10, 0, 0, 0, 7, 8, 0, 1]);
        assert_eq!(bytes[84..116], [0x33; 32]);
        assert_eq!(bytes[132..134], [0, 5]);
        assert_eq!(bytes[139..], [0, 3, 0xdd, 0xdd, 0xdd]);
        assert_eq!(example(&[0xcc; 5], &[]).signed_parts(&bytes).concat().len(), 139 - 16);
    }

    #[test]
    fn further_secrets_are_named_where_others_see_nothing() {
        for (post_quantum, pre_shared, byte) in [(true, false, 0x91), (false, true, 0x51), (true, true, 0xd1)] {
            let mut message = example(&[0xcc; 5], &[0xdd; 3]);
            let compression = Compression(0x11);
            message.offer = Offer { compression, post_quantum, pre_shared, ..message.offer };
            let bytes = message.emit();
            assert_eq!(bytes[82], byte);
            assert_eq!(Handshake::parse(&bytes), Ok(message));
        }
        // Who knows only LZ4 reads the same from all of these.
        assert!(Compression(0xd1).sends() == Compression(0x11).sends() && Compression(0xd0).sends().is_none());
    }

    #[test]
    fn a_share_of_group_14_moves_what_follows() {
        let mut message = example(&[0xcc; 5], &[0xdd; 3]);
        message.offer.agreement = Agreement::Group14;
        message.key_share = &[0x33; 256];
        let bytes = message.emit();
        assert_eq!((bytes[70], &bytes[84..340]), (2, &[0x33; 256][..]));
        assert_eq!(bytes[356..358], [0, 5]);
        assert_eq!(message.signed_parts(&bytes), [&bytes[..2], &bytes[18..363]]);
        assert_eq!(Handshake::parse(&bytes), Ok(message));
        for wrong in [0, 3] {
            let mut other = bytes.clone();
            other[70] = wrong;
            assert_eq!(Handshake::parse(&other), Err(Error::Unsupported(Field::CllHandshake)));
        }
    }

    fn example_v6<'a>(certificate: &'a [u8], signature: &'a [u8]) -> Handshake<'a> {
        let resolution = Resolution::Neighbour(Neighbour {
            operation: Operation::Request,
            sender_mac: MacAddress([2, 0, 0, 0, 0, 1]),
            sender_ip: "fe80::1".parse().expect("an address"),
            target_mac: MacAddress::ZERO,
            target_ip: "fe80::2".parse().expect("an address"),
        });
        Handshake { resolution, ..example(certificate, signature) }
    }

    #[test]
    fn with_ipv6_addresses_all_behind_them_stands_24_bytes_further() {
        let (four, six) = (example(&[0xcc; 5], &[0xdd; 3]).emit(), example_v6(&[0xcc; 5], &[0xdd; 3]).emit());
        assert_eq!(six[18..28], [0, 1, 0x86, 0xdd, 6, 16, 0, 1, 2, 0]);
        assert_eq!(six[70..], four[46..]);
        assert_eq!(Handshake::parse(&six), Ok(example_v6(&[0xcc; 5], &[0xdd; 3])));
        assert_eq!(example_v6(&[0xcc; 5], &[]).signed_parts(&six).concat().len(), 139 + 24 - 16);
        let longest = example_v6(&[7; CERTIFICATE_LEN_MAX_V6], &[9; SIGNATURE_LEN_MAX]);
        assert_eq!(Handshake::parse(&longest.emit()), Ok(longest));
        assert!(longest.emit().len() <= 1500, "it fits one frame");
        let longer = example_v6(&[7; CERTIFICATE_LEN_MAX_V6 + 1], &[]);
        assert_eq!(Handshake::parse(&longer.emit()), Err(Error::Invalid(Field::CllCertificate)));
    }

    #[test]
    fn ipv6_addresses_that_no_host_has_are_refused() {
        for (at, octets) in [(32, [0; 16]), (32, [0xff; 16]), (54, [0; 16]), (54, [0xff; 16])] {
            let mut bytes = example_v6(&[0xcc; 5], &[0xdd; 3]).emit();
            bytes[at..at + 16].copy_from_slice(&octets);
            assert_eq!(Handshake::parse(&bytes), Err(Error::Invalid(Field::Arp)), "at {at}");
        }
    }

    #[test]
    fn every_truncation_and_every_trailing_byte_is_refused() {
        let bytes = example(&[0xcc; 5], &[0xdd; 3]).emit();
        for len in 0..bytes.len() {
            assert!(matches!(Handshake::parse(&bytes[..len]), Err(Error::Truncated(_))), "{len} bytes");
        }
        let longer = [&bytes[..], &[0]].concat();
        assert_eq!(Handshake::parse(&longer), Err(Error::Trailing(Field::CllSignature)));
    }
}
