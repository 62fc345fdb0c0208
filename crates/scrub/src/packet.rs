//! A packet between reading and writing: its headers as fields, its data where the port put it.

use std::net::IpAddr;

use bump::{Checksum, Gso, Meta};
use wire::layer::protocol;

use crate::context::Context;
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

impl Packet<'_> {
    /// Clears DF where the next link carries the packet whole; a super-frame comes from a link that carries its pieces.
    pub(crate) fn clear_dont_fragment(&mut self, context: &mut Context<'_>) {
        let fits = self.gso.is_some() || self.ip.header_len() + self.transport.len() <= context.settings.mtu;
        if let Ip::V4(header) = &mut self.ip {
            header.clear_dont_fragment(context, fits);
        }
    }
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

    /// What is written as it is: nothing of a segment that was read into fields.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Transport::Bytes(bytes) => bytes,
            Transport::Tcp(_) => &[],
        }
    }

    /// As [`bytes`](Transport::bytes), to be changed.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Transport::Bytes(bytes) => bytes,
            Transport::Tcp(_) => &mut [],
        }
    }

    /// Keeps the first `len` bytes of what is written as it is.
    pub(crate) fn truncate(&mut self, len: usize) {
        if let Transport::Bytes(bytes) = self {
            let whole = std::mem::take(bytes);
            let len = len.min(whole.len());
            *bytes = &mut whole[..len];
        }
    }
}

impl Packet<'_> {
    /// Whether more than one host hears it, by its link or by its destination.
    pub(crate) fn is_to_group(&self) -> bool {
        let is_group = match self.ip.destination() {
            IpAddr::V4(address) => address.is_multicast() || address.is_broadcast(),
            IpAddr::V6(address) => address.is_multicast(),
        };
        is_group || self.link.is_to_group()
    }

    /// The ports of TCP and UDP; zero for all others.
    pub(crate) fn ports(&self) -> u32 {
        match &self.transport {
            Transport::Tcp(segment) => u32::from(segment.source_port) << 16 | u32::from(segment.destination_port),
            Transport::Bytes(bytes) => match bytes.first_chunk() {
                Some(ports) if matches!(self.ip.protocol(), protocol::TCP | protocol::UDP) => {
                    u32::from_be_bytes(*ports)
                }
                _ => 0,
            },
        }
    }

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
