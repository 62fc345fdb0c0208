//! A packet between reading and writing: its headers as fields, its data where the port put it.

use bump::{Checksum, Gso, Meta};

use crate::ethernet::Link;
use crate::ip::Ip;
use crate::tcp::segment::Segment;

/// One IP packet, or one super-frame of TCP or UDP.
#[derive(Debug)]
pub(crate) struct Packet<'a> {
    pub(crate) link: Link<'a>,
    pub(crate) ip: Ip,
    pub(crate) transport: Transport<'a>,
    /// What is known of the transport checksum; a partial one's `start` counts from the first byte behind the IP header.
    pub(crate) checksum: Checksum,
    /// Set while the packet stands for several.
    pub(crate) gso: Option<Gso>,
    /// The longest of the fragments in which it arrived, in bytes of IP packet; it leaves in pieces no longer.
    pub(crate) longest_fragment: Option<usize>,
}

/// The same knowledge of a checksum, where a partial one's `start` counts from byte `at` of the frame. One that begins before
/// is none that a kernel hands over, and is looked at like any other.
pub(crate) fn behind(checksum: Checksum, at: usize) -> Checksum {
    match checksum {
        Checksum::Partial { start, offset } => match usize::from(start).checked_sub(at) {
            Some(start) => Checksum::Partial { start: start as u16, offset },
            None => Checksum::Unknown,
        },
        other => other,
    }
}

/// What an IP packet carries.
#[derive(Debug)]
pub(crate) enum Transport<'a> {
    /// Bytes that are written as they are.
    Bytes(&'a mut [u8]),
    /// A segment that was read and judged.
    Tcp(Segment<'a>),
}

impl Transport<'_> {
    /// Bytes of header and data as they will be written.
    pub(crate) fn len(&self) -> usize {
        match self {
            Transport::Bytes(bytes) => bytes.len(),
            Transport::Tcp(segment) => segment.len(),
        }
    }
}

impl Packet<'_> {
    /// The metadata with which the packet leaves, if its IP header begins `start` bytes into the frame.
    pub(crate) fn meta(&self, start: usize) -> Meta {
        let checksum = match self.checksum {
            Checksum::Partial { start: behind, offset } => {
                Checksum::Partial { start: behind + (start + self.ip.header_len()) as u16, offset }
            }
            other => other,
        };
        Meta { checksum, gso: self.gso, vlan: self.link.vlan, queue: self.link.queue }
    }
}
