//! Sealed unicast frames (section 5.3 of the paper): a header in clear, then the sealed inner header and payload, then
//! the tag.
//!
//! ```text
//!  0               1               2                               6
//! +-------+-------+---------------+-------------------------------+---------------------------+
//! |version| type  |     flags     |        receiver index         |      sequence number      | ..
//! +-------+-------+---------------+-------------------------------+---------------------------+
//!  10                              14                  18 (when flagged)
//! +-------------------------------+-------------------+----------------------------------------+
//! |        spinning nonce         | [second nonce]    | sealed: EtherType, inner flags, payload | tag
//! +-------------------------------+-------------------+----------------------------------------+
//! ```

use crate::cll::PacketType;
use crate::reader::Reader;
use crate::{Error, EtherType, Field, ethernet};

/// Bytes of the header in clear without a second nonce.
pub const HEADER_LEN: usize = 14;
/// Bytes of a second, slower spinning nonce.
pub const SLOW_NONCE_LEN: usize = 4;
/// Bytes of the sealed inner header.
pub const INNER_HEADER_LEN: usize = 3;
/// Bytes of the authentication tag.
pub const TAG_LEN: usize = 16;
/// All that sealing adds to a frame today.
pub const OVERHEAD: usize = HEADER_LEN + INNER_HEADER_LEN + TAG_LEN;
/// What must be kept free in the MTU, so that a second nonce can be switched on without touching it again.
pub const OVERHEAD_MAX: usize = OVERHEAD + SLOW_NONCE_LEN;
/// The shortest inner payload. Shorter ones are filled with zeros, so that no card pads a sealed frame to Ethernet's
/// minimum and thereby moves its tag.
pub const PAYLOAD_MIN: usize = ethernet::MIN_LEN - ethernet::HEADER_LEN - OVERHEAD;

const _: () = assert!(OVERHEAD_MAX <= 40, "all overhead per data frame stays within 40 bytes");

const FLAG_SLOW_NONCE: u8 = 0x01;
const INNER_CHECKSUM_PARTIAL: u8 = 0x01;
const INNER_COMPRESSED: u8 = 0x02;

/// The header in clear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// Chosen by the receiver in the handshake; names the association, the epoch and the sender's lane.
    pub receiver_index: u32,
    /// Counts the frames under this key.
    pub sequence: u32,
    /// Keyed function of the sequence number, checked before anything costly.
    pub spin: u32,
    /// A second nonce that changes more slowly.
    pub slow_nonce: Option<u32>,
}

impl DataHeader {
    /// Reads the header from `bytes`, which start after the Ethernet header, and returns it with the sealed rest.
    ///
    /// # Errors
    /// Truncated, not a unicast frame, or unknown flags.
    pub fn parse(bytes: &[u8]) -> Result<(DataHeader, &[u8]), Error> {
        if PacketType::of(bytes)? != PacketType::Unicast {
            return Err(Error::Invalid(Field::CllHeader));
        }
        let mut reader = Reader::new(bytes, Field::CllHeader);
        let _version_and_type = reader.u8()?;
        let flags = reader.u8()?;
        if flags & !FLAG_SLOW_NONCE != 0 {
            return Err(Error::Unsupported(Field::CllHeader));
        }
        let header = DataHeader {
            receiver_index: reader.u32()?,
            sequence: reader.u32()?,
            spin: reader.u32()?,
            slow_nonce: if flags & FLAG_SLOW_NONCE != 0 { Some(reader.u32()?) } else { None },
        };
        Ok((header, reader.rest()))
    }

    /// Bytes that [`emit`](DataHeader::emit) writes.
    #[must_use]
    pub fn emitted_len(&self) -> usize {
        HEADER_LEN + if self.slow_nonce.is_some() { SLOW_NONCE_LEN } else { 0 }
    }

    /// Writes the header to the start of `out`, which has room for it.
    pub fn emit(&self, out: &mut [u8]) {
        out[0] = PacketType::Unicast.first_byte();
        out[1] = if self.slow_nonce.is_some() { FLAG_SLOW_NONCE } else { 0 };
        out[2..6].copy_from_slice(&self.receiver_index.to_be_bytes());
        out[6..10].copy_from_slice(&self.sequence.to_be_bytes());
        out[10..14].copy_from_slice(&self.spin.to_be_bytes());
        if let Some(second) = self.slow_nonce {
            out[14..18].copy_from_slice(&second.to_be_bytes());
        }
    }
}

/// The header inside the seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InnerHeader {
    /// The EtherType that the frame had, or one of the two below, which no frame has: both are lengths of IEEE 802.3, and
    /// too short for one.
    pub ethertype: EtherType,
    /// The transport checksum holds only the sum of the pseudo header; the seal vouches for the rest.
    pub checksum_partial: bool,
    /// The payload is compressed as agreed in the handshake, see [`compression`](super::compression).
    pub compressed: bool,
}

impl InnerHeader {
    /// Stands for a frame without payload that only proves that its sender lives.
    pub const NOTHING: EtherType = EtherType(0);
    /// Stands for a message of the link layer itself, see [`rollover`](super::rollover).
    pub const CONTROL: EtherType = EtherType(1);

    /// Reads the header from the start of `plaintext` and returns it with the payload.
    ///
    /// # Errors
    /// Truncated or unknown flags.
    pub fn parse(plaintext: &[u8]) -> Result<(InnerHeader, &[u8]), Error> {
        let mut reader = Reader::new(plaintext, Field::CllHeader);
        let ethertype = EtherType(reader.u16()?);
        let flags = reader.u8()?;
        if flags & !(INNER_CHECKSUM_PARTIAL | INNER_COMPRESSED) != 0 {
            return Err(Error::Unsupported(Field::CllHeader));
        }
        let header = InnerHeader {
            ethertype,
            checksum_partial: flags & INNER_CHECKSUM_PARTIAL != 0,
            compressed: flags & INNER_COMPRESSED != 0,
        };
        Ok((header, reader.rest()))
    }

    /// The header as bytes.
    #[must_use]
    pub fn emit(&self) -> [u8; INNER_HEADER_LEN] {
        let [high, low] = self.ethertype.0.to_be_bytes();
        let partial = if self.checksum_partial { INNER_CHECKSUM_PARTIAL } else { 0 };
        let compressed = if self.compressed { INNER_COMPRESSED } else { 0 };
        [high, low, partial | compressed]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_header_survives_emit_and_parse(index: u32, sequence: u32, spin: u32, second: Option<u32>) {
            let header = DataHeader { receiver_index: index, sequence, spin, slow_nonce: second };
            let mut bytes = [0xa5; HEADER_LEN + SLOW_NONCE_LEN + 1];
            header.emit(&mut bytes);
            let (parsed, rest) = DataHeader::parse(&bytes).expect("valid");
            prop_assert_eq!(parsed, header);
            prop_assert_eq!(rest.len(), bytes.len() - header.emitted_len());
        }

        #[test]
        fn what_parses_emits_the_same_bytes(mut bytes in proptest::collection::vec(any::<u8>(), 0..64), flags in 0..2_u8) {
            if bytes.len() > 1 {
                bytes[0] = PacketType::Unicast.first_byte();
                bytes[1] = flags;
            }
            if let Ok((header, rest)) = DataHeader::parse(&bytes) {
                let mut again = vec![0xa5; bytes.len()];
                header.emit(&mut again);
                again[header.emitted_len()..].copy_from_slice(rest);
                prop_assert_eq!(again, bytes);
            } else {
                prop_assert!(bytes.len() < HEADER_LEN + SLOW_NONCE_LEN * usize::from(flags));
            }
        }

        #[test]
        fn an_inner_header_survives(ethertype: u16, checksum_partial: bool, compressed: bool) {
            let inner = InnerHeader { ethertype: EtherType(ethertype), checksum_partial, compressed };
            let bytes = inner.emit();
            prop_assert_eq!(InnerHeader::parse(&bytes), Ok((inner, &[][..])));
        }
    }

    #[test]
    fn unknown_flags_and_versions_are_refused() {
        let mut bytes = [0; HEADER_LEN];
        bytes[0] = 0x11;
        assert_eq!(DataHeader::parse(&bytes), Err(Error::Unsupported(Field::CllHeader)));
        bytes[0] = 0x21;
        bytes[1] = 0x02;
        assert_eq!(DataHeader::parse(&bytes), Err(Error::Unsupported(Field::CllHeader)));
        assert!(InnerHeader::parse(&[8, 0, 0x04]).is_err());
    }
}
