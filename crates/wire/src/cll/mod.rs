//! Frames of the cryptographic link layer, version 2.
//!
//! The paper's figures with field widths are lost, so this layout is ours; `docs/protocol.md` has it byte by byte and
//! `vectors/` holds golden frames. Every message starts with one byte of version and type and one byte of flags (the
//! compact bit field of the paper's section 5.1). What follows depends on the type.

pub mod broadcast;
pub mod challenge;
pub mod compression;
pub mod data;
pub mod dhcp;
pub mod handshake;
pub mod resolution;
pub mod resumption;
pub mod revocation;
pub mod rollover;
pub mod train;

pub use broadcast::{Announcement, GroupFrame, Question};
pub use challenge::Challenge;
pub use compression::Compression;
pub use data::{DataHeader, InnerHeader};
pub use dhcp::DhcpFrame;
pub use handshake::{Agreement, Handshake, Offer};
pub use resolution::Resolution;
pub use resumption::Resumption;
pub use rollover::Rollover;

use crate::{Error, Field};

/// The version spoken here. The paper's own layout was version 1.
pub const VERSION: u8 = 2;
/// Bytes of the tag under the site key in handshake messages.
pub const SITE_TAG_LEN: usize = 16;
/// Where the tag under the site key starts in handshake messages, counted from the byte after the Ethernet header.
pub const SITE_TAG_AT: usize = 2;
/// Bytes of a handshake nonce. The paper's 64 bits (section 5.2) would do for freshness; 128 never repeat by chance.
pub const NONCE_LEN: usize = 16;
/// Bytes of a challenge cookie.
pub const COOKIE_LEN: usize = 16;

/// What a frame carries (section 5.1 of the paper names all but the challenge, the question and those of a resumption).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketType {
    /// A sealed unicast frame.
    Unicast = 1,
    /// A signed frame to a group.
    GroupFrame = 2,
    /// The ARP request that opens a handshake.
    HandshakeRequest = 3,
    /// The ARP reply that answers it.
    HandshakeReply = 4,
    /// "Prove that you are there now": the answer to a request whose age nobody can judge.
    Challenge = 8,
    /// The certificate of a host that sends to groups, and what its clock shows.
    Announcement = 9,
    /// "Who are you that sends to this group, and what does your clock show?"
    Question = 10,
    /// A DHCP message of a client or a server.
    Dhcp = 0xb,
    /// "I have a ticket of yours": opens an exchange without signatures.
    ResumptionRequest = 12,
    /// Its answer.
    ResumptionReply = 13,
}

impl PacketType {
    /// The first byte of a message of this type.
    #[must_use]
    pub const fn first_byte(self) -> u8 {
        VERSION << 4 | self as u8
    }

    /// The type of the message in `bytes`, which start after the Ethernet header.
    ///
    /// # Errors
    /// Truncated, another version, or a type that is not spoken here.
    pub fn of(bytes: &[u8]) -> Result<PacketType, Error> {
        let first = *bytes.first().ok_or(Error::Truncated(Field::CllHeader))?;
        if first >> 4 != VERSION {
            return Err(Error::Unsupported(Field::CllHeader));
        }
        match first & 0x0f {
            1 => Ok(PacketType::Unicast),
            2 => Ok(PacketType::GroupFrame),
            3 => Ok(PacketType::HandshakeRequest),
            4 => Ok(PacketType::HandshakeReply),
            8 => Ok(PacketType::Challenge),
            9 => Ok(PacketType::Announcement),
            10 => Ok(PacketType::Question),
            0xb => Ok(PacketType::Dhcp),
            12 => Ok(PacketType::ResumptionRequest),
            13 => Ok(PacketType::ResumptionReply),
            _ => Err(Error::Invalid(Field::CllHeader)),
        }
    }
}
