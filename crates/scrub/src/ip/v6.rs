//! IPv6 headers and the extension headers behind them.

use std::net::Ipv6Addr;
use std::ops::Range;

use bump::DropReason;
use wire::ipv6::{self, View};

use crate::context::Context;
use crate::limits::HOP_LIMIT;
use crate::rule::Rule;

/// An IPv6 header as fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) traffic_class: u8,
    /// 20 bits.
    pub(crate) flow_label: u32,
    pub(crate) hop_limit: u8,
    pub(crate) source: Ipv6Addr,
    pub(crate) destination: Ipv6Addr,
    /// What follows the fixed header.
    pub(crate) next_header: u8,
    /// The extension headers, one behind the other; almost always none.
    pub(crate) extensions: Vec<u8>,
    /// What follows the extension headers.
    pub(crate) protocol: u8,
}

/// Reads the header of `packet` and its extension headers; gives where lies what the packet carries.
pub(crate) fn read(context: &mut Context<'_>, packet: &[u8]) -> Result<(Header, Range<usize>), DropReason> {
    let refused = |context: &mut Context<'_>| context.refused(Rule::Ipv6Header, DropReason::IpHeader);
    let Ok(view) = View::new(packet) else { return Err(refused(context)) };
    let end = ipv6::HEADER_LEN + usize::from(view.payload_len());
    if end > packet.len() {
        return Err(refused(context));
    }
    let extended = view.skip_extensions().filter(|(_, start)| *start <= end);
    let Some((protocol, start)) = extended else {
        return Err(context.refused(Rule::Ipv6Extensions, DropReason::Ipv6Extensions));
    };
    let header = Header::of(&view, packet, protocol, start);
    context.acts_if(end < packet.len(), Rule::EthernetTrailer);
    Ok((header, start..end))
}

impl Header {
    fn of(view: &View<'_>, packet: &[u8], protocol: u8, start: usize) -> Header {
        let first = u32::from_be_bytes([packet[0], packet[1], packet[2], packet[3]]);
        Header {
            traffic_class: (first >> 20) as u8,
            flow_label: first & 0x000f_ffff,
            hop_limit: packet[7],
            source: view.source(),
            destination: view.destination(),
            next_header: view.next_header(),
            extensions: packet[ipv6::HEADER_LEN..start].to_vec(),
            protocol,
        }
    }

    /// A header of the scrubber's own: it says nothing but where to.
    pub(crate) fn fresh(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8) -> Header {
        Header {
            traffic_class: 0,
            flow_label: 0,
            hop_limit: HOP_LIMIT,
            source,
            destination,
            next_header: protocol,
            extensions: Vec::new(),
            protocol,
        }
    }

    pub(crate) fn len(&self) -> usize {
        ipv6::HEADER_LEN + self.extensions.len()
    }

    /// Writes the header in front of `payload_len` bytes.
    pub(crate) fn emit(&self, room: &mut [u8], payload_len: usize) {
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label;
        room[0..4].copy_from_slice(&first.to_be_bytes());
        room[4..6].copy_from_slice(&((self.extensions.len() + payload_len) as u16).to_be_bytes());
        (room[6], room[7]) = (self.next_header, self.hop_limit);
        room[8..24].copy_from_slice(&self.source.octets());
        room[24..40].copy_from_slice(&self.destination.octets());
        room[ipv6::HEADER_LEN..self.len()].copy_from_slice(&self.extensions);
    }
}
