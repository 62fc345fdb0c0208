//! What an attacker sends: every way in which up to three chunks can lie to each other, in every order, and scripts of the kind
//! that fragroute (D. Song) runs, drawn from a seed.

use std::fmt;

use super::connection::Connection;
use super::packet::{Packet, Version};
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
