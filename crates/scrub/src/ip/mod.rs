//! The network layer: what both versions of IP have in common.

pub(crate) mod address;
mod class;
pub(crate) mod fragments;
pub(crate) mod v4;
pub(crate) mod v6;

use std::net::IpAddr;

use bump::DropReason;
use wire::EtherType;
use wire::checksum::{self, Sum};

use crate::context::Context;
use crate::ethernet::Link;
use crate::limits;
use crate::rule::Rule;

/// Which part of a packet a fragment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fragment {
    /// Its offset in what the packet carries, in bytes.
    pub(crate) offset: usize,
    /// Whether fragments follow.
    pub(crate) more: bool,
}

impl Fragment {
    /// A part that is the whole.
    pub(crate) const WHOLE: Fragment = Fragment { offset: 0, more: false };
}

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

/// Drops a packet to one host in a frame to all.
pub(crate) fn agree_with_link(context: &mut Context<'_>, link: &Link<'_>, ip: &Ip) -> Result<(), DropReason> {
    let is_for_all = |subnets| address::may_be_for_all(ip.destination(), ip.protocol(), subnets);
    let disagrees = link.is_to_all() && context.scrubs() && !is_for_all(&context.settings.subnets);
    context.refuse_if(disagrees, Rule::EthernetBroadcast, DropReason::IpAddress)
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

    /// Who is to read the packet in the end. That is another than the destination where a route was
    /// written into it that is still to be followed, which only presets without the rules about
    /// options and extensions let through.
    pub(crate) fn recipient(&self) -> IpAddr {
        let routed = match self {
            Ip::V4(header) => v4::recipient(&header.options).map(IpAddr::from),
            Ip::V6(header) => header.recipient().map(IpAddr::from),
        };
        routed.unwrap_or_else(|| self.destination())
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

    /// Class and congestion notification: type of service or traffic class.
    pub(crate) fn class_mut(&mut self) -> &mut u8 {
        match self {
            Ip::V4(header) => &mut header.type_of_service,
            Ip::V6(header) => &mut header.traffic_class,
        }
    }

    /// Which part of a packet it is, if it is not the whole. What a part carries is no transport header.
    pub(crate) fn fragment(&self) -> Option<Fragment> {
        match self {
            Ip::V4(header) => header.fragment,
            Ip::V6(header) => header.fragment.map(|fragment| fragment.part).filter(|part| *part != Fragment::WHOLE),
        }
    }

    /// The header of one piece of the packet.
    pub(crate) fn piece(&self, part: Fragment) -> Ip {
        match self {
            Ip::V4(header) => Ip::V4(header.piece(part)),
            Ip::V6(header) => Ip::V6(header.piece(part)),
        }
    }

    /// The part of the header that is cut with the packet.
    pub(crate) fn fragmentable(&self) -> &[u8] {
        match self {
            Ip::V4(_) => &[],
            Ip::V6(header) => header.fragmentable(),
        }
    }

    /// Shortest piece that the packet is cut into, header included, in bytes.
    pub(crate) fn piece_min(&self) -> usize {
        match self {
            Ip::V4(_) => limits::PIECE_MIN_BYTES_V4,
            Ip::V6(_) => limits::PIECE_MIN_BYTES_V6,
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
                let recipient = v4::recipient(&header.options).unwrap_or(header.destination);
                checksum::pseudo_header_v4(header.source, recipient, header.protocol, len as u16)
            }
            Ip::V6(header) => {
                let recipient = header.recipient().unwrap_or(header.destination);
                checksum::pseudo_header_v6(header.source, recipient, header.protocol, len as u32)
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
