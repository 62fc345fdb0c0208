//! TCP headers (RFC 9293, section 3.1).

use crate::{Error, Field};

/// Length of a header without options.
pub const HEADER_LEN: usize = 20;
/// Offset of the sequence number.
pub const SEQUENCE: usize = 4;
/// Offset of the byte of flags FIN to CWR.
pub const FLAGS: usize = 13;
/// Offset of the checksum.
pub const CHECKSUM: usize = 16;
/// Offset of the urgent pointer.
pub const URGENT: usize = 18;

/// The control bits.
pub mod flag {
    /// No more data from the sender.
    pub const FIN: u8 = 0x01;
    /// Synchronise sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// The acknowledgement number counts.
    pub const ACK: u8 = 0x10;
    /// The urgent pointer counts.
    pub const URG: u8 = 0x20;
    /// Congestion was seen (RFC 3168).
    pub const ECE: u8 = 0x40;
    /// The congestion window was reduced (RFC 3168).
    pub const CWR: u8 = 0x80;
}

/// A segment whose header is whole; nothing else about it is known.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// A view of the segment in `bytes`.
    ///
    /// # Errors
    /// Cut short, or a header length below 20.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        let offset = *bytes.get(12).ok_or(Error::Truncated(Field::Tcp))?;
        let header_len = usize::from(offset >> 4) * 4;
        if header_len < HEADER_LEN {
            return Err(Error::Invalid(Field::Tcp));
        }
        if bytes.len() < header_len {
            return Err(Error::Truncated(Field::Tcp));
        }
        Ok(View(bytes))
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.0[at], self.0[at + 1]])
    }

    fn double_word(&self, at: usize) -> u32 {
        u32::from_be_bytes([self.0[at], self.0[at + 1], self.0[at + 2], self.0[at + 3]])
    }

    /// Port of the sender.
    #[must_use]
    pub fn source_port(&self) -> u16 {
        self.word(0)
    }

    /// Port of the receiver.
    #[must_use]
    pub fn destination_port(&self) -> u16 {
        self.word(2)
    }

    /// Sequence number of the first byte.
    #[must_use]
    pub fn sequence(&self) -> u32 {
        self.double_word(SEQUENCE)
    }

    /// Next sequence number that the sender expects.
    #[must_use]
    pub fn acknowledgement(&self) -> u32 {
        self.double_word(8)
    }

    /// Length of the header in bytes, options included: 20 to 60, and not beyond the bytes.
    #[must_use]
    pub fn header_len(&self) -> usize {
        usize::from(self.0[12] >> 4) * 4
    }

    /// The control bits, see [`flag`].
    #[must_use]
    pub fn flags(&self) -> u8 {
        self.0[FLAGS]
    }

    /// The window, not scaled.
    #[must_use]
    pub fn window(&self) -> u16 {
        self.word(14)
    }

    /// The checksum as it stands.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        self.word(CHECKSUM)
    }

    /// Distance from the sequence number to the end of urgent data, in bytes.
    #[must_use]
    pub fn urgent_pointer(&self) -> u16 {
        self.word(URGENT)
    }

    /// The options, padding included.
    #[must_use]
    pub fn options(&self) -> &'a [u8] {
        &self.0[HEADER_LEN..self.header_len()]
    }

    /// What follows the header.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.0[self.header_len()..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: [u8; 26] = [
        0x1f, 0x90, 0xc0, 0x00, 0, 0, 0, 7, 0x11, 0x22, 0x33, 0x44, 0x60, 0x18, 0x01, 0xf6, 0xab, 0xcd, 0, 9, 1, 1, 1,
        0, b'h', b'i',
    ];

    #[test]
    fn fields_of_a_segment() {
        let view = View::new(&SEGMENT).expect("valid");
        assert_eq!((view.source_port(), view.destination_port()), (8080, 49152));
        assert_eq!((view.sequence(), view.acknowledgement()), (7, 0x1122_3344));
        assert_eq!((view.header_len(), view.window()), (24, 502));
        assert_eq!(view.flags(), flag::ACK | flag::PSH);
        assert_eq!((view.checksum(), view.urgent_pointer()), (0xabcd, 9));
        assert_eq!(view.options(), [1, 1, 1, 0]);
        assert_eq!(view.payload(), b"hi");
    }

    #[test]
    fn bad_headers_are_refused_by_name() {
        for len in 0..24 {
            assert_eq!(View::new(&SEGMENT[..len]).err(), Some(Error::Truncated(Field::Tcp)), "{len} bytes");
        }
        let mut segment = SEGMENT;
        segment[12] = 0x40;
        assert_eq!(View::new(&segment).err(), Some(Error::Invalid(Field::Tcp)));
    }
}
