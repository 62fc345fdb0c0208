//! Resumption: two hosts that had an association come back to one in a single exchange with one
//! signature (section 7.1 of the paper stores associations on disk to tolerate a reboot; here only
//! a ticket is stored, which leads to fresh keys).
//!
//! ```text
//!   0  version and type      1  flags, zero
//!   2  tag under the site key, 16
//!  18  ARP message, 28, or one for IPv6 addresses, 52 (`resolution.rs`); then all that follows stands 24 further
//!  46  timestamp, milliseconds since 1970, 8
//!  54  nonce of the initiator, 16
//!  70  offer, 14
//!  84  key share, 32
//!          request                                    reply
//! 116  length of the ticket 2, ticket            116  binder, 32
//!   .  binder, 32                                148  length of the signature 2, signature
//! ```
//!
//! The ticket itself comes earlier and sealed, as the payload of a data frame with the inner EtherType
//! [`InnerHeader::CONTROL`](super::InnerHeader::CONTROL): [`Grant`].

use super::handshake::{Offer, SIGNATURE_LEN_MAX, append_counted, read_counted};
use super::resolution::{NEIGHBOUR_EXTRA, Resolution};
use super::{NONCE_LEN, PacketType, SITE_TAG_LEN, VERSION};
use crate::reader::Reader;
use crate::{Error, Field};

/// Bytes before what differs between request and reply.
pub const FIXED_LEN: usize = 116;
/// Bytes of a binder.
pub const BINDER_LEN: usize = 32;
/// Longest ticket that is read: with it a request fits one Ethernet frame of 1500 bytes.
pub const TICKET_LEN_MAX: usize = 1250;
/// The first byte of a [`Grant`].
pub const GRANT_FIRST_BYTE: u8 = VERSION << 4 | 0x0e;
/// The longest lifetime of a ticket, in seconds: a day.
pub const TICKET_LIFETIME_MAX_S: u32 = 86_400;

const _: () = assert!(
    FIXED_LEN + NEIGHBOUR_EXTRA + 2 + TICKET_LEN_MAX + BINDER_LEN <= 1500 - 65,
    "a request fits where a data frame does"
);

/// What a request or reply has beside the fields of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind<'a> {
    /// A request, with the ticket that its responder issued.
    Request(&'a [u8]),
    /// A reply, with its sender's signature.
    Reply(&'a [u8]),
}

/// A resumption request or reply. Nothing in it is proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resumption<'a> {
    /// Request or reply.
    pub kind: Kind<'a>,
    /// Tag under the site key, as in a handshake message.
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
    /// Shows that the sender has the secret of the ticket.
    pub binder: [u8; BINDER_LEN],
}

impl<'a> Resumption<'a> {
    /// Reads a message from `bytes`, which start after the Ethernet header.
    ///
    /// # Errors
    /// The field that is cut short, invalid, unsupported, or followed by more bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Resumption<'a>, Error> {
        let packet_type = PacketType::of(bytes)?;
        let mut reader = Reader::new(bytes, Field::CllResumption);
        let _version_and_type = reader.u8()?;
        if reader.u8()? != 0 {
            return Err(Error::Unsupported(Field::CllResumption));
        }
        let site_tag = reader.array()?;
        let resolution = Resolution::parse(&mut reader)?;
        let timestamp_ms = reader.u64()?;
        let nonce = reader.array()?;
        let offer = Offer::parse(&mut reader)?;
        let key_share = reader.bytes(offer.agreement.share_len())?;
        let kind = match packet_type {
            PacketType::ResumptionRequest => {
                Kind::Request(read_counted(&mut reader, Field::CllTicket, TICKET_LEN_MAX)?)
            }
            PacketType::ResumptionReply => Kind::Reply(&[]),
            _ => return Err(Error::Invalid(Field::CllHeader)),
        };
        reader.now_reading(Field::CllResumption);
        let binder = reader.array()?;
        let kind = match kind {
            Kind::Reply(_) => Kind::Reply(read_counted(&mut reader, Field::CllSignature, SIGNATURE_LEN_MAX)?),
            request => request,
        };
        if !reader.rest().is_empty() {
            return Err(Error::Trailing(Field::CllResumption));
        }
        Ok(Resumption { kind, site_tag, resolution, timestamp_ms, nonce, offer, key_share, binder })
    }

    /// The message as bytes, to stand after the Ethernet header.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut out = self.emit_unbound();
        out.extend_from_slice(&self.binder);
        if let Kind::Reply(signature) = self.kind {
            append_counted(&mut out, signature);
        }
        out
    }

    /// The part of `message`, from which this was read, that the binder covers besides the site
    /// tag, which stands outside.
    #[must_use]
    pub fn bound_part<'m>(&self, message: &'m [u8]) -> &'m [u8] {
        let signed = self.signed_part(message);
        &signed[..signed.len().saturating_sub(BINDER_LEN)]
    }

    /// The part of `message`, from which this reply was read, that its signature covers besides the
    /// site tag: all before it. All of a request, which has none.
    #[must_use]
    pub fn signed_part<'m>(&self, message: &'m [u8]) -> &'m [u8] {
        let signature_len = match self.kind {
            Kind::Request(_) => 0,
            Kind::Reply(signature) => 2 + signature.len(),
        };
        &message[..message.len().saturating_sub(signature_len)]
    }

    /// The message without its binder, which is to follow.
    #[must_use]
    pub fn emit_unbound(&self) -> Vec<u8> {
        let packet_type = match self.kind {
            Kind::Request(_) => PacketType::ResumptionRequest,
            Kind::Reply(_) => PacketType::ResumptionReply,
        };
        let mut out = Vec::with_capacity(FIXED_LEN + 2 + TICKET_LEN_MAX + BINDER_LEN);
        out.extend_from_slice(&[packet_type.first_byte(), 0]);
        out.extend_from_slice(&self.site_tag);
        self.resolution.emit(&mut out);
        out.extend_from_slice(&self.timestamp_ms.to_be_bytes());
        out.extend_from_slice(&self.nonce);
        self.offer.emit(&mut out);
        out.extend_from_slice(self.key_share);
        if let Kind::Request(ticket) = self.kind {
            append_counted(&mut out, ticket);
        }
        out
    }
}

/// Appends its signature to a reply.
pub fn append_signature(reply: &mut Vec<u8>, signature: &[u8]) {
    append_counted(reply, signature);
}

/// "With this ticket you may come back": what travels inside an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant<'a> {
    /// For how long its issuer will take the ticket, in seconds, 1 to [`TICKET_LIFETIME_MAX_S`].
    pub lifetime_s: u32,
    /// The ticket, which only its issuer reads; not empty.
    pub ticket: &'a [u8],
}

impl<'a> Grant<'a> {
    /// Reads a grant from the payload of a sealed frame.
    ///
    /// # Errors
    /// The field that is cut short, invalid, unsupported, or followed by more bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Grant<'a>, Error> {
        let mut reader = Reader::new(bytes, Field::CllTicket);
        if reader.u8()? != GRANT_FIRST_BYTE || reader.u8()? != 0 {
            return Err(Error::Unsupported(Field::CllTicket));
        }
        let lifetime_s = reader.u32()?;
        let ticket = read_counted(&mut reader, Field::CllTicket, TICKET_LEN_MAX)?;
        if lifetime_s == 0 || lifetime_s > TICKET_LIFETIME_MAX_S || ticket.is_empty() {
            return Err(Error::Invalid(Field::CllTicket));
        }
        if reader.rest().is_empty() { Ok(Grant { lifetime_s, ticket }) } else { Err(Error::Trailing(Field::CllTicket)) }
    }

    /// The grant as bytes.
    #[must_use]
    pub fn emit(&self) -> Vec<u8> {
        let mut out = vec![GRANT_FIRST_BYTE, 0];
        out.extend_from_slice(&self.lifetime_s.to_be_bytes());
        append_counted(&mut out, self.ticket);
        out
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use proptest::prelude::*;

    use super::*;
    use crate::MacAddress;
    use crate::arp::{Arp, Operation};
    use crate::cll::resolution::Neighbour;
    use crate::cll::{Agreement, Compression};

    fn example(kind: Kind<'_>) -> Resumption<'_> {
        let operation = if matches!(kind, Kind::Reply(_)) { Operation::Reply } else { Operation::Request };
        Resumption {
            kind,
            site_tag: [0x11; 16],
            resolution: Resolution::Arp(Arp {
                operation,
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
            binder: [0x44; 32],
        }
    }

    #[test]
    fn the_layout_is_the_documented_one() {
        let bytes = example(Kind::Request(&[0xcc; 5])).emit();
        assert_eq!(bytes[..2], [0x2c, 0]);
        assert_eq!(bytes[2..18], [0x11; 16]);
        assert_eq!(bytes[46..54], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(bytes[54..70], [0x22; 16]);
        assert_eq!(bytes[70..84], [1, 1, 1, 1, 0, 0, 0x10, 0, 0, 0, 7, 8, 0, 1]);
        assert_eq!(bytes[84..116], [0x33; 32]);
        assert_eq!(bytes[116..123], [0, 5, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc]);
        assert_eq!(bytes[123..], [0x44; 32]);
        let request = Resumption::parse(&bytes).expect("a request");
        assert_eq!((request.bound_part(&bytes).len(), request.signed_part(&bytes).len()), (123, 155));
        let bytes = example(Kind::Reply(&[0xdd; 3])).emit();
        assert_eq!((bytes[0], &bytes[116..148], &bytes[148..]), (0x2d, &[0x44; 32][..], &[0, 3, 0xdd, 0xdd, 0xdd][..]));
        let reply = Resumption::parse(&bytes).expect("a reply");
        assert_eq!((reply.bound_part(&bytes).len(), reply.signed_part(&bytes).len()), (116, 148));
        let neighbour = Neighbour {
            operation: Operation::Reply,
            sender_mac: MacAddress([2, 0, 0, 0, 0, 1]),
            sender_ip: "fe80::1".parse().expect("an address"),
            target_mac: MacAddress([2, 0, 0, 0, 0, 2]),
            target_ip: "fe80::2".parse().expect("an address"),
        };
        let six = Resumption { resolution: neighbour.into(), ..example(Kind::Reply(&[0xdd; 3])) };
        assert_eq!(six.emit()[70..], bytes[46..], "all behind IPv6 addresses stands 24 bytes further");
        assert_eq!(Resumption::parse(&six.emit()), Ok(six));
        let grant = Grant { lifetime_s: 0x0102, ticket: &[7, 8, 9] };
        assert_eq!(grant.emit(), [0x2e, 0, 0, 0, 1, 2, 0, 3, 7, 8, 9]);
    }

    #[test]
    fn every_truncation_and_every_trailing_byte_is_refused() {
        for message in [example(Kind::Request(&[0xcc; 5])), example(Kind::Reply(&[0xdd; 3]))] {
            let bytes = message.emit();
            assert_eq!(Resumption::parse(&bytes), Ok(message));
            for len in 0..bytes.len() {
                assert!(matches!(Resumption::parse(&bytes[..len]), Err(Error::Truncated(_))), "{len} bytes");
            }
            let longer = [&bytes[..], &[0]].concat();
            assert_eq!(Resumption::parse(&longer), Err(Error::Trailing(Field::CllResumption)));
        }
        let grant = Grant { lifetime_s: 1, ticket: &[7; 20] };
        let bytes = grant.emit();
        assert_eq!(Grant::parse(&bytes), Ok(grant));
        for len in 0..bytes.len() {
            assert!(matches!(Grant::parse(&bytes[..len]), Err(Error::Truncated(_))), "{len} bytes");
        }
        assert_eq!(Grant::parse(&[&bytes[..], &[0]].concat()), Err(Error::Trailing(Field::CllTicket)));
    }

    #[test]
    fn tickets_that_cannot_be_are_refused() {
        let refused = |grant: Grant<'_>| assert_eq!(Grant::parse(&grant.emit()), Err(Error::Invalid(Field::CllTicket)));
        refused(Grant { lifetime_s: 0, ticket: &[1] });
        refused(Grant { lifetime_s: TICKET_LIFETIME_MAX_S + 1, ticket: &[1] });
        refused(Grant { lifetime_s: 1, ticket: &[] });
        refused(Grant { lifetime_s: 1, ticket: &[1; TICKET_LEN_MAX + 1] });
        let long = example(Kind::Request(&[1; TICKET_LEN_MAX + 1])).emit();
        assert_eq!(Resumption::parse(&long), Err(Error::Invalid(Field::CllTicket)));
    }

    proptest! {
        #[test]
        fn mutated_bytes_that_parse_emit_themselves(at in 0_usize..220, value: u8, cut in 0_usize..220, reply: bool) {
            let message = example(if reply { Kind::Reply(&[8; 9]) } else { Kind::Request(&[7; 40]) });
            let mut bytes = message.emit();
            let at = at % bytes.len();
            bytes[at] = value;
            bytes.truncate(cut);
            if let Ok(parsed) = Resumption::parse(&bytes) {
                prop_assert_eq!(parsed.emit(), bytes);
            }
        }

        #[test]
        fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = Resumption::parse(&bytes);
            if let Ok(grant) = Grant::parse(&bytes) {
                prop_assert_eq!(grant.emit(), bytes);
            }
        }
    }
}
