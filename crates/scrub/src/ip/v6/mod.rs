//! IPv6 headers and the extension headers behind them.

mod extensions;
mod options;

use std::net::Ipv6Addr;
use std::ops::Range;

use bump::DropReason;
use wire::ipv6::{self, View};

use super::{Fragment, address, class};
use crate::context::Context;
use crate::limits::HOP_LIMIT_FIRST;
use crate::rule::Rule;

pub(crate) use extensions::FragmentHeader;

/// "Nothing follows" (RFC 8200, section 4.7).
const NO_NEXT_HEADER: u8 = 59;

/// An IPv6 header and its extension headers as fields. The Fragment header is kept apart from the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) traffic_class: u8,
    /// 20 bits.
    pub(crate) flow_label: u32,
    pub(crate) hop_limit: u8,
    pub(crate) source: Ipv6Addr,
    pub(crate) destination: Ipv6Addr,
    /// What follows the fixed header.
    next_header: u8,
    /// The extension headers, one behind the other; almost always none.
    extensions: Vec<u8>,
    /// Where in them the last begins.
    last: Option<usize>,
    /// What follows the extension headers.
    pub(crate) protocol: u8,
    /// The Fragment header with which the packet came.
    pub(crate) fragment: Option<FragmentHeader>,
}

/// Reads and judges the header of `packet` and its extension headers; gives where lies what the packet carries.
pub(crate) fn read(context: &mut Context<'_>, packet: &[u8]) -> Result<(Header, Range<usize>), DropReason> {
    let Some((mut header, end)) = fixed(packet) else {
        return Err(context.refused(Rule::Ipv6Header, DropReason::IpHeader));
    };
    // A jumbogram says its length elsewhere (RFC 2675); any other packet of no length carries nothing.
    let is_jumbo = end == ipv6::HEADER_LEN && header.protocol != NO_NEXT_HEADER;
    context.refuse_if(is_jumbo, Rule::Ipv6Header, DropReason::IpHeader)?;
    let start = ipv6::HEADER_LEN + header.extend(context, &packet[ipv6::HEADER_LEN..end])?;
    let is_martian = address::is_martian_v6(header.source, header.destination, header.protocol);
    context.refuse_if(is_martian, Rule::Ipv6Addresses, DropReason::IpAddress)?;
    header.traffic_class = class::scrubbed(context, Rule::Ipv6TrafficClass, header.traffic_class);
    context.acts_if(end < packet.len(), Rule::EthernetTrailer);
    let end = start + header.carried(context, &packet[start..end])?;
    Ok((header, start..end))
}

/// The fixed header and where the packet ends, if version and length agree with the frame.
fn fixed(packet: &[u8]) -> Option<(Header, usize)> {
    let view = View::new(packet).ok()?;
    let end = ipv6::HEADER_LEN + usize::from(view.payload_len());
    let first = u32::from_be_bytes([packet[0], packet[1], packet[2], packet[3]]);
    let header = Header {
        traffic_class: (first >> 20) as u8,
        flow_label: first & 0x000f_ffff,
        hop_limit: packet[7],
        source: view.source(),
        destination: view.destination(),
        next_header: view.next_header(),
        extensions: Vec::new(),
        last: None,
        protocol: view.next_header(),
        fragment: None,
    };
    (end <= packet.len()).then_some((header, end))
}

impl Header {
    /// A header of the scrubber's own: it says nothing but where to.
    pub(crate) fn fresh(source: Ipv6Addr, destination: Ipv6Addr, protocol: u8) -> Header {
        Header {
            traffic_class: 0,
            flow_label: 0,
            hop_limit: HOP_LIMIT_FIRST,
            source,
            destination,
            next_header: protocol,
            extensions: Vec::new(),
            last: None,
            protocol,
            fragment: None,
        }
    }

    /// How much of `rest`, which follows all headers of the network layer, the packet carries.
    ///
    /// # Errors
    /// Neighbour discovery that came with a Fragment header (RFC 6980, section 5).
    pub(super) fn carried(&self, context: &mut Context<'_>, rest: &[u8]) -> Result<usize, DropReason> {
        if self.is_fragment() {
            return Ok(rest.len());
        }
        // Secure neighbour discovery included: types 148 and 149 (RFC 3971).
        let is_discovery = self.protocol == address::ICMPV6 && matches!(rest, [133..=137 | 148 | 149, ..]);
        let is_cut = self.fragment.is_some() && is_discovery;
        context.refuse_if(is_cut, Rule::NeighbourDiscovery, DropReason::NeighbourDiscovery)?;
        let is_void = self.protocol == NO_NEXT_HEADER && !rest.is_empty();
        Ok(if context.acts_if(is_void, Rule::Ipv6Extensions) { 0 } else { rest.len() })
    }

    /// Whether it is the header of a part of a packet.
    pub(crate) fn is_fragment(&self) -> bool {
        self.fragment.is_some_and(|fragment| fragment.part != Fragment::WHOLE)
    }

    /// Bytes of all headers as they will be written.
    pub(crate) fn len(&self) -> usize {
        let fragment_header = if self.is_fragment() { FragmentHeader::LEN } else { 0 };
        ipv6::HEADER_LEN + self.extensions.len() + fragment_header
    }

    /// Writes the headers in front of `payload_len` bytes.
    pub(crate) fn emit(&self, room: &mut [u8], payload_len: usize) {
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label;
        room[0..4].copy_from_slice(&first.to_be_bytes());
        room[4..6].copy_from_slice(&((self.len() - ipv6::HEADER_LEN + payload_len) as u16).to_be_bytes());
        (room[6], room[7]) = (self.next_header, self.hop_limit);
        room[8..24].copy_from_slice(&self.source.octets());
        room[24..40].copy_from_slice(&self.destination.octets());
        room[ipv6::HEADER_LEN..][..self.extensions.len()].copy_from_slice(&self.extensions);
        if let Some(fragment) = self.fragment.filter(|_| self.is_fragment()) {
            let link = self.last.map_or(6, |last| ipv6::HEADER_LEN + last);
            let next_header = std::mem::replace(&mut room[link], extensions::FRAGMENT);
            fragment.emit(next_header, &mut room[self.len() - FragmentHeader::LEN..self.len()]);
        }
    }
}
