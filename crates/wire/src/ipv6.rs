//! IPv6 headers (RFC 8200): the fixed one, and the way past extension headers to what they carry.

use std::net::Ipv6Addr;

use crate::{Error, Field};

/// IPv6 extension headers that are looked through.
pub const EXTENSION_HEADERS_MAX: usize = 4;

/// Length of the fixed header.
pub const HEADER_LEN: usize = 40;
/// Offset of the field payload length.
pub const PAYLOAD_LENGTH: usize = 4;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;

/// Next header of a packet that carries nothing.
pub const NO_NEXT_HEADER: u8 = 59;

/// The fixed header of a packet with `payload_len` bytes behind it.
#[must_use]
pub fn header(
    source: Ipv6Addr,
    destination: Ipv6Addr,
    next_header: u8,
    hop_limit: u8,
    payload_len: u16,
) -> [u8; HEADER_LEN] {
    let mut bytes = [0; HEADER_LEN];
    bytes[0] = 0x60;
    bytes[PAYLOAD_LENGTH..PAYLOAD_LENGTH + 2].copy_from_slice(&payload_len.to_be_bytes());
    bytes[6] = next_header;
    bytes[7] = hop_limit;
    bytes[8..24].copy_from_slice(&source.octets());
    bytes[24..].copy_from_slice(&destination.octets());
    bytes
}

/// What a packet carries behind its extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upper<'a> {
    /// Its protocol number.
    pub protocol: u8,
    /// Its bytes, as far as the packet says that it is long; in a fragment only a part of it.
    pub bytes: &'a [u8],
    /// Whether extension headers stand in front of it.
    pub is_behind_extensions: bool,
    /// Whether a Fragment header stands in front of it, also of a packet that is whole.
    pub is_fragment: bool,
}

/// A packet whose fixed header is whole; nothing else about it is known.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// A view of the packet that begins `bytes`.
    ///
    /// # Errors
    /// Cut short or not version 6.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        let first = *bytes.first().ok_or(Error::Truncated(Field::Ipv6))?;
        if first >> 4 != 6 {
            return Err(Error::Invalid(Field::Ipv6));
        }
        if bytes.len() < HEADER_LEN {
            return Err(Error::Truncated(Field::Ipv6));
        }
        Ok(View(bytes))
    }

    fn address(&self, at: usize) -> Ipv6Addr {
        let mut octets = [0; 16];
        octets.copy_from_slice(&self.0[at..at + 16]);
        Ipv6Addr::from(octets)
    }

    /// Bytes after the fixed header as the header claims.
    #[must_use]
    pub fn payload_len(&self) -> u16 {
        u16::from_be_bytes([self.0[4], self.0[5]])
    }

    /// What follows the fixed header.
    #[must_use]
    pub fn next_header(&self) -> u8 {
        self.0[6]
    }

    /// How many routers may still forward it.
    #[must_use]
    pub fn hop_limit(&self) -> u8 {
        self.0[7]
    }

    /// What the packet carries, behind up to four extension headers. `None` for a fragment that is not the first, which
    /// carries no header that could be read.
    ///
    /// # Errors
    /// The packet is longer than its bytes, or the chain of headers is cut short or too long. A first fragment must have all
    /// headers (RFC 7112).
    pub fn upper_layer(&self) -> Result<Option<Upper<'a>>, Error> {
        let cut = Error::Truncated(Field::Ipv6);
        let payload = self.0.get(HEADER_LEN..HEADER_LEN + usize::from(self.payload_len())).ok_or(cut)?;
        let mut upper =
            Upper { protocol: self.next_header(), bytes: payload, is_behind_extensions: false, is_fragment: false };
        for _ in 0..=EXTENSION_HEADERS_MAX {
            let len_of: fn(u8) -> usize = match upper.protocol {
                HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS => |length| 8 + usize::from(length) * 8,
                FRAGMENT => |_| 8,
                // RFC 4302, section 2.2: in words of four bytes, less two.
                AUTHENTICATION => |length| 8 + usize::from(length) * 4,
                _ => return Ok(Some(upper)),
            };
            let [next, length, offset_high, offset_low, ..] = *upper.bytes else { return Err(cut) };
            if upper.protocol == FRAGMENT {
                upper.is_fragment = true;
                if u16::from_be_bytes([offset_high, offset_low]) >> 3 != 0 {
                    return Ok(None);
                }
            }
            upper.bytes = upper.bytes.get(len_of(length)..).ok_or(cut)?;
            (upper.protocol, upper.is_behind_extensions) = (next, true);
        }
        Err(Error::Unsupported(Field::Ipv6))
    }

    /// From whom, as the sender claims.
    #[must_use]
    pub fn source(&self) -> Ipv6Addr {
        self.address(8)
    }

    /// To whom.
    #[must_use]
    pub fn destination(&self) -> Ipv6Addr {
        self.address(24)
    }

    /// The first header that is not hop-by-hop, routing or destination options, and its offset in the packet. `None`
    /// when the chain is too long or leaves the bytes.
    #[must_use]
    pub fn skip_extensions(&self) -> Option<(u8, usize)> {
        let (mut next, mut offset) = (self.next_header(), HEADER_LEN);
        for _ in 0..=EXTENSION_HEADERS_MAX {
            if !matches!(next, HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS) {
                return Some((next, offset));
            }
            let extension = self.0.get(offset..offset + 8)?;
            (next, offset) = (extension[0], offset + 8 + usize::from(extension[1]) * 8);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(next_header: u8, rest: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, rest.len() as u8, next_header, 64];
        packet.extend(Ipv6Addr::LOCALHOST.octets());
        packet.extend(Ipv6Addr::UNSPECIFIED.octets());
        packet.extend(rest);
        packet
    }

    #[test]
    fn fields_of_a_header() {
        let bytes = packet(6, &[1, 2, 3]);
        let view = View::new(&bytes).expect("valid");
        assert_eq!((view.payload_len(), view.next_header()), (3, 6));
        assert_eq!(view.source(), Ipv6Addr::LOCALHOST);
        assert_eq!(view.destination(), Ipv6Addr::UNSPECIFIED);
        assert_eq!(view.skip_extensions(), Some((6, 40)));
        assert_eq!(View::new(&bytes[..39]).err(), Some(Error::Truncated(Field::Ipv6)));
        assert_eq!(View::new(&[0x45; 40]).err(), Some(Error::Invalid(Field::Ipv6)));
    }

    #[test]
    fn what_is_behind_extension_headers_is_found_and_fragments_are_told() {
        let upper = |next: u8, rest: &[u8]| {
            let bytes = packet(next, rest);
            let found = View::new(&bytes).expect("valid").upper_layer();
            found.map(|upper| upper.map(|upper| (upper.protocol, upper.bytes.to_vec(), upper.is_fragment)))
        };
        assert_eq!(upper(58, &[1, 2]), Ok(Some((58, vec![1, 2], false))));
        assert_eq!(upper(60, &[58, 0, 0, 0, 0, 0, 0, 0, 9]), Ok(Some((58, vec![9], false))));
        assert_eq!(upper(44, &[58, 0, 0, 1, 0, 0, 0, 0, 9]), Ok(Some((58, vec![9], true))));
        assert_eq!(upper(44, &[58, 0, 0, 8, 0, 0, 0, 0, 9]), Ok(None), "a later fragment");
        assert_eq!(upper(51, &[58, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]), Ok(Some((58, vec![9], false))));
        assert_eq!(upper(60, &[58, 1, 0, 0, 0, 0, 0, 0]), Err(Error::Truncated(Field::Ipv6)));
        assert_eq!(upper(60, &[60, 0, 0, 0, 0, 0, 0, 0].repeat(5)), Err(Error::Unsupported(Field::Ipv6)));
        let mut long = packet(58, &[1]);
        long[5] = 2;
        assert_eq!(View::new(&long).expect("valid").upper_layer(), Err(Error::Truncated(Field::Ipv6)));
    }

    #[test]
    fn a_header_reads_back() {
        let bytes = header(Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED, 58, 255, 7);
        let view = View::new(&bytes).expect("valid");
        assert_eq!((view.source(), view.destination()), (Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED));
        assert_eq!((view.next_header(), view.hop_limit(), view.payload_len()), (58, 255, 7));
    }

    #[test]
    fn extension_headers_are_skipped_up_to_the_limit() {
        let bytes = packet(0, &[60, 0, 0, 0, 0, 0, 0, 0, 6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(View::new(&bytes).expect("valid").skip_extensions(), Some((6, 64)));
        assert_eq!(View::new(&bytes[..52]).expect("valid").skip_extensions(), None);
        let endless = packet(60, &[60, 0, 0, 0, 0, 0, 0, 0].repeat(20));
        assert_eq!(View::new(&endless).expect("valid").skip_extensions(), None);
    }
}
