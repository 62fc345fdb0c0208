//! The network layer: what both versions of IP have in common.

pub(crate) mod v4;
pub(crate) mod v6;

use std::net::IpAddr;

use bump::DropReason;
use wire::EtherType;
use wire::checksum::{self, Sum};

use crate::context::Context;

/// An IP header as fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ip {
    V4(v4::Header),
    V6(v6::Header),
}

/// Reads and judges the IP header of `packet`. Gives the header, where what it carries begins in `packet`, and that, without
/// what follows the packet in the frame.
pub(crate) fn read<'a>(
    context: &mut Context<'_>,
    ethertype: EtherType,
    packet: &'a mut [u8],
) -> Result<(Ip, usize, &'a mut [u8]), DropReason> {
    let (ip, carried) = if ethertype == EtherType::IPV4 {
        let (header, carried) = v4::read(context, packet)?;
        (Ip::V4(header), carried)
    } else {
        let (header, carried) = v6::read(context, packet)?;
        (Ip::V6(header), carried)
    };
    Ok((ip, carried.start, &mut packet[carried]))
}

impl Ip {
    /// A header of the scrubber's own; `None` for addresses of two versions.
    pub(crate) fn fresh(source: IpAddr, destination: IpAddr, protocol: u8) -> Option<Ip> {
        match (source, destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                Some(Ip::V4(v4::Header::fresh(source, destination, protocol)))
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                Some(Ip::V6(v6::Header::fresh(source, destination, protocol)))
            }
            _ => None,
        }
    }

    /// Whether the packet is one fragment of several, so that what it carries cannot be read.
    pub(crate) fn is_fragment(&self) -> bool {
        matches!(self, Ip::V4(v4::Header { fragment: Some(_), .. }))
    }

    pub(crate) fn source(&self) -> IpAddr {
        match self {
            Ip::V4(header) => header.source.into(),
            Ip::V6(header) => header.source.into(),
        }
    }

    pub(crate) fn destination(&self) -> IpAddr {
        match self {
            Ip::V4(header) => header.destination.into(),
            Ip::V6(header) => header.destination.into(),
        }
    }

    /// The protocol behind all headers of the network layer.
    pub(crate) fn protocol(&self) -> u8 {
        match self {
            Ip::V4(header) => header.protocol,
            Ip::V6(header) => header.protocol,
        }
    }

    pub(crate) fn hop_limit(&self) -> u8 {
        match self {
            Ip::V4(header) => header.time_to_live,
            Ip::V6(header) => header.hop_limit,
        }
    }

    pub(crate) fn set_hop_limit(&mut self, hop_limit: u8) {
        match self {
            Ip::V4(header) => header.time_to_live = hop_limit,
            Ip::V6(header) => header.hop_limit = hop_limit,
        }
    }

    /// Bytes of the header as it will be written, options and extension headers included.
    pub(crate) fn header_len(&self) -> usize {
        match self {
            Ip::V4(header) => header.len(),
            Ip::V6(header) => header.len(),
        }
    }

    /// The sum of the pseudo header of `len` bytes of transport header and data.
    pub(crate) fn pseudo_header(&self, len: usize) -> Sum {
        match self {
            Ip::V4(header) => {
                checksum::pseudo_header_v4(header.source, header.destination, header.protocol, len as u16)
            }
            Ip::V6(header) => {
                checksum::pseudo_header_v6(header.source, header.destination, header.protocol, len as u32)
            }
        }
    }

    /// Writes the header in front of `payload_len` bytes. `room` is [`header_len`](Ip::header_len) long.
    pub(crate) fn emit(&self, room: &mut [u8], payload_len: usize) {
        match self {
            Ip::V4(header) => header.emit(room, payload_len),
            Ip::V6(header) => header.emit(room, payload_len),
        }
    }
}
