//! What an attacker sends: every way in which up to three chunks can lie to each other, in every order, and scripts of the kind
//! that fragroute (D. Song) runs, drawn from a seed.

use std::fmt;

use super::packet::{Packet, Segment, Version};
use super::relations::{self, Chunk};
use super::script;

/// What carries an attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Carrier {
    /// Fragments of a datagram.
    Fragments(Version),
    /// Segments of a connection, which a script may cut into fragments besides.
    Segments(Version),
}

impl Carrier {
    /// All of them.
    pub const ALL: [Carrier; 4] = [
        Carrier::Fragments(Version::V4),
        Carrier::Fragments(Version::V6),
        Carrier::Segments(Version::V4),
        Carrier::Segments(Version::V6),
    ];

    /// The version of IP.
    #[must_use]
    pub fn version(self) -> Version {
        match self {
            Carrier::Fragments(version) | Carrier::Segments(version) => version,
        }
    }
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Carrier::Fragments(Version::V4) => "IPv4 fragments",
            Carrier::Fragments(Version::V6) => "IPv6 fragments",
            Carrier::Segments(Version::V4) => "TCP over IPv4",
            Carrier::Segments(Version::V6) => "TCP over IPv6",
        })
    }
}

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

/// One attack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attack {
    /// Chunks that lie to each other in one of all ways, in this order.
    Relation(Vec<Chunk>),
    /// The script of a seed.
    Script(u64),
}

impl Attack {
    /// All relations of one, two and three chunks.
    pub fn relations() -> impl Iterator<Item = Attack> {
        relations::all().map(Attack::Relation)
    }

    /// Packets of datagrams from port `source_port`; the first has `identification`, and an honest one comes last.
    #[must_use]
    pub fn datagrams(&self, version: Version, source_port: u16, identification: u16) -> Vec<Packet> {
        match self {
            Attack::Relation(chunks) => relations::fragments(version, source_port, identification, chunks),
            Attack::Script(seed) => script::fragments(version, source_port, identification, *seed),
        }
    }

    /// Packets in `connection`, in the end the whole stream as its sender means it.
    #[must_use]
    pub fn segments(&self, connection: &Connection) -> Vec<Packet> {
        match self {
            Attack::Relation(chunks) => relations::segments(connection, chunks),
            Attack::Script(seed) => script::segments(connection, *seed),
        }
    }
}
