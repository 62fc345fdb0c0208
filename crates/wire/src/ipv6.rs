//! IPv6 headers (RFC 8200), as far as offloads need them.

use std::net::Ipv6Addr;

use crate::layer::EXTENSION_HEADERS_MAX;
use crate::{Error, Field};

/// Length of the fixed header.
pub const HEADER_LEN: usize = 40;
/// Offset of the field payload length.
pub const PAYLOAD_LENGTH: usize = 4;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const DESTINATION_OPTIONS: u8 = 60;

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
    fn extension_headers_are_skipped_up_to_the_limit() {
        let bytes = packet(0, &[60, 0, 0, 0, 0, 0, 0, 0, 6, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(View::new(&bytes).expect("valid").skip_extensions(), Some((6, 64)));
        assert_eq!(View::new(&bytes[..52]).expect("valid").skip_extensions(), None);
        let endless = packet(60, &[60, 0, 0, 0, 0, 0, 0, 0].repeat(20));
        assert_eq!(View::new(&endless).expect("valid").skip_extensions(), None);
    }
}
