//! A connection as its attacker keeps it.

use super::packet::{Packet, Segment, Version};

/// A connection from the attacker's end.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Its version of IP.
    pub version: Version,
    /// Its port.
    pub source_port: u16,
    /// The sequence number of its first byte.
    pub first: u32,
    /// What it acknowledges.
    pub acknowledgement: u32,
    /// The receiver's timestamp, where both have agreed on timestamps.
    pub stamp: Option<u32>,
    /// The identification of its first packet behind the handshake; the next has the next.
    pub identification: u16,
}

/// The attacker's own timestamp, which stands still.
pub const STAMP: u32 = 0x0100_0000;

/// The option that says nothing, and the length of timestamps with two of them.
const NO_OPERATION: u8 = 1;
const STAMPS_LEN: usize = 12;

/// Timestamps as an option in whole words (RFC 7323, appendix A).
#[must_use]
pub fn stamps(value: u32, echo: u32) -> Vec<u8> {
    [&[1, 1, 8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat()
}

impl Connection {
    /// The honest segment with `data` from byte `offset` of the stream on.
    #[must_use]
    pub fn segment(&self, offset: u32, data: &[u8]) -> Segment {
        Segment {
            source_port: self.source_port,
            sequence: self.first.wrapping_add(offset),
            acknowledgement: self.acknowledgement,
            flags: wire::tcp::flag::ACK,
            // As long without timestamps as with them, so that a script cuts at the same places.
            options: self.stamp.map_or(vec![NO_OPERATION; STAMPS_LEN], |echo| stamps(STAMP, echo)),
            data: data.to_vec(),
        }
    }

    /// Its packet.
    #[must_use]
    pub fn packet(&self, segment: &Segment) -> Packet {
        Packet::new(self.version, wire::layer::protocol::TCP, 0, segment.bytes(self.version))
    }
}
