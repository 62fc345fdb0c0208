//! IPv4 headers (RFC 791).

use std::net::Ipv4Addr;

use crate::checksum::Sum;
use crate::{Error, Field};

/// Length of a header without options.
pub const HEADER_LEN: usize = 20;
/// Offset of the field total length.
pub const TOTAL_LENGTH: usize = 2;
/// Offset of the identification.
pub const IDENTIFICATION: usize = 4;
/// Offset of the header checksum.
pub const CHECKSUM: usize = 10;
/// Offset of the source address; the destination follows it.
pub const SOURCE: usize = 12;

/// A packet whose header is whole; nothing else about it is known.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// A view of the packet that begins `bytes`; what follows it is ignored.
    ///
    /// # Errors
    /// Cut short, not version 4, or a header length below 20.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        let first = *bytes.first().ok_or(Error::Truncated(Field::Ipv4))?;
        let header_len = usize::from(first & 0x0f) * 4;
        if first >> 4 != 4 || header_len < HEADER_LEN {
            return Err(Error::Invalid(Field::Ipv4));
        }
        if bytes.len() < header_len {
            return Err(Error::Truncated(Field::Ipv4));
        }
        Ok(View(bytes))
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.0[at], self.0[at + 1]])
    }

    /// Length of the header in bytes, options included: 20 to 60, and not beyond the bytes.
    #[must_use]
    pub fn header_len(&self) -> usize {
        usize::from(self.0[0] & 0x0f) * 4
    }

    /// Differentiated services and ECN, the former type of service.
    #[must_use]
    pub fn type_of_service(&self) -> u8 {
        self.0[1]
    }

    /// Length of the packet as the header claims, in bytes.
    #[must_use]
    pub fn total_len(&self) -> u16 {
        self.word(TOTAL_LENGTH)
    }

    /// The identification that fragments share.
    #[must_use]
    pub fn identification(&self) -> u16 {
        self.word(IDENTIFICATION)
    }

    /// Whether it must not be fragmented.
    #[must_use]
    pub fn dont_fragment(&self) -> bool {
        self.0[6] & 0x40 != 0
    }

    /// Whether fragments follow.
    #[must_use]
    pub fn more_fragments(&self) -> bool {
        self.0[6] & 0x20 != 0
    }

    /// Offset of this fragment in the packet, in bytes.
    #[must_use]
    pub fn fragment_offset(&self) -> usize {
        usize::from(self.word(6) & 0x1fff) * 8
    }

    /// Whether it is any fragment of a packet, the first included.
    #[must_use]
    pub fn is_fragment(&self) -> bool {
        self.more_fragments() || self.fragment_offset() != 0
    }

    /// Hops it may still take.
    #[must_use]
    pub fn time_to_live(&self) -> u8 {
        self.0[8]
    }

    /// What it carries.
    #[must_use]
    pub fn protocol(&self) -> u8 {
        self.0[9]
    }

    /// The header checksum as it stands.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        self.word(CHECKSUM)
    }

    /// Whether the header checksum is right.
    #[must_use]
    pub fn checksum_is_right(&self) -> bool {
        Sum::ZERO.bytes(&self.0[..self.header_len()]).checksum() == 0
    }

    /// From whom, as the sender claims.
    #[must_use]
    pub fn source(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.0[12], self.0[13], self.0[14], self.0[15])
    }

    /// To whom.
    #[must_use]
    pub fn destination(&self) -> Ipv4Addr {
        Ipv4Addr::new(self.0[16], self.0[17], self.0[18], self.0[19])
    }

    /// The payload as far as total length and bytes agree.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        let end = usize::from(self.total_len()).min(self.0.len());
        self.0.get(self.header_len()..end).unwrap_or(&[])
    }
}

/// Writes the right checksum into `header`, which is one whole IPv4 header and nothing else. Shorter bytes stay as they
/// are.
pub fn fill_checksum(header: &mut [u8]) {
    if header.len() < HEADER_LEN {
        return;
    }
    header[CHECKSUM..CHECKSUM + 2].fill(0);
    let checksum = Sum::ZERO.bytes(header).checksum();
    header[CHECKSUM..CHECKSUM + 2].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header in the Wikipedia article "Internet checksum".
    const HEADER: [u8; 20] = [
        0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0xb8, 0x61, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8,
        0x00, 0xc7,
    ];

    #[test]
    fn fields_of_a_known_header() {
        let view = View::new(&HEADER).expect("valid");
        assert_eq!((view.header_len(), view.total_len(), view.identification()), (20, 115, 0));
        assert_eq!((view.type_of_service(), view.time_to_live(), view.protocol()), (0, 64, 17));
        assert!(view.dont_fragment() && !view.more_fragments() && !view.is_fragment());
        assert_eq!(view.source(), Ipv4Addr::new(192, 168, 0, 1));
        assert_eq!(view.destination(), Ipv4Addr::new(192, 168, 0, 199));
        assert_eq!(view.checksum(), 0xb861);
        assert!(view.checksum_is_right());
        assert_eq!(view.payload(), &[] as &[u8]);
    }

    #[test]
    fn filling_a_wrong_checksum_makes_it_right() {
        let mut header = HEADER;
        header[CHECKSUM] = 0xff;
        assert!(!View::new(&header).expect("valid").checksum_is_right());
        fill_checksum(&mut header);
        assert_eq!(header, HEADER);
    }

    #[test]
    fn bad_headers_are_refused_by_name() {
        assert_eq!(View::new(&[]).err(), Some(Error::Truncated(Field::Ipv4)));
        assert_eq!(View::new(&HEADER[..19]).err(), Some(Error::Truncated(Field::Ipv4)));
        for first in [0x65, 0x44] {
            let mut header = HEADER;
            header[0] = first;
            assert_eq!(View::new(&header).err(), Some(Error::Invalid(Field::Ipv4)));
        }
        let mut header = HEADER;
        header[0] = 0x46;
        assert_eq!(View::new(&header).err(), Some(Error::Truncated(Field::Ipv4)));
    }
}
