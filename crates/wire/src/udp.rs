//! UDP headers (RFC 768).

use crate::{Error, Field};

/// Length of the header.
pub const HEADER_LEN: usize = 8;
/// Offset of the length of header and payload.
pub const LENGTH: usize = 4;
/// Offset of the checksum.
pub const CHECKSUM: usize = 6;

/// A datagram whose header is whole; nothing else about it is known.
#[derive(Clone, Copy, Debug)]
pub struct View<'a>(&'a [u8]);

impl<'a> View<'a> {
    /// A view of the datagram in `bytes`.
    ///
    /// # Errors
    /// [`Error::Truncated`] when there are less than eight bytes.
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        if bytes.len() < HEADER_LEN { Err(Error::Truncated(Field::Udp)) } else { Ok(View(bytes)) }
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.0[at], self.0[at + 1]])
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

    /// Length of header and payload as the header claims, in bytes.
    #[must_use]
    pub fn length(&self) -> u16 {
        self.word(LENGTH)
    }

    /// The checksum as it stands; zero means none (over IPv4).
    #[must_use]
    pub fn checksum(&self) -> u16 {
        self.word(CHECKSUM)
    }

    /// What follows the header.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.0[HEADER_LEN..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_a_datagram() {
        let bytes = [0, 53, 0x30, 0x39, 0, 10, 0xbe, 0xef, 1, 2];
        let view = View::new(&bytes).expect("valid");
        assert_eq!((view.source_port(), view.destination_port()), (53, 12345));
        assert_eq!((view.length(), view.checksum()), (10, 0xbeef));
        assert_eq!(view.payload(), [1, 2]);
        assert_eq!(View::new(&bytes[..7]).err(), Some(Error::Truncated(Field::Udp)));
    }
}
