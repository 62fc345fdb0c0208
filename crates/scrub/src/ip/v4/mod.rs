//! IPv4 headers.

mod options;

use std::net::Ipv4Addr;
use std::ops::Range;

use bump::DropReason;
use wire::ipv4::{self, View};

use super::{Fragment, address, class};
use crate::context::Context;
use crate::limits::HOP_LIMIT_FIRST;
use crate::rule::Rule;

pub(crate) use options::recipient;

/// An IPv4 header as fields. Options do not leave the scrubber unless their rule is off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) type_of_service: u8,
    pub(crate) identification: u16,
    pub(crate) reserved_bit: bool,
    pub(crate) dont_fragment: bool,
    pub(crate) fragment: Option<Fragment>,
    pub(crate) time_to_live: u8,
    pub(crate) protocol: u8,
    pub(crate) source: Ipv4Addr,
    pub(crate) destination: Ipv4Addr,
    /// The options in whole words; almost always none.
    pub(crate) options: Vec<u8>,
}

const RESERVED_BIT: u8 = 0x80;
const DONT_FRAGMENT: u8 = 0x40;
const MORE_FRAGMENTS: u8 = 0x20;

/// Reads and judges the header of `packet`; gives where lies what the packet carries.
pub(crate) fn read(context: &mut Context<'_>, packet: &[u8]) -> Result<(Header, Range<usize>), DropReason> {
    let Some((view, carried)) = bounds(packet) else {
        return Err(context.refused(Rule::Ipv4Header, DropReason::IpHeader));
    };
    context.refuse_if(!view.checksum_is_right(), Rule::Ipv4Checksum, DropReason::IpChecksum)?;
    let mut header = Header::of(&view, packet[6], &packet[ipv4::HEADER_LEN..carried.start]);
    let is_martian = address::is_martian_v4(header.source, header.destination, header.protocol);
    context.refuse_if(is_martian, Rule::Ipv4Addresses, DropReason::IpAddress)?;
    options::scrub(context, &mut header)?;
    header.type_of_service = class::scrubbed(context, Rule::Ipv4TypeOfService, header.type_of_service);
    header.reserved_bit &= !context.acts_if(header.reserved_bit, Rule::Ipv4ReservedBit);
    context.acts_if(carried.end < packet.len(), Rule::EthernetTrailer);
    Ok((header, carried))
}

/// The header's bytes and where lies what follows it, if version and lengths agree with the frame.
fn bounds(packet: &[u8]) -> Option<(View<'_>, Range<usize>)> {
    let view = View::new(packet).ok()?;
    let (start, end) = (view.header_len(), usize::from(view.total_len()));
    (start <= end && end <= packet.len()).then_some((view, start..end))
}

impl Header {
    fn of(view: &View<'_>, flags: u8, options: &[u8]) -> Header {
        let fragment =
            view.is_fragment().then(|| Fragment { offset: view.fragment_offset(), more: view.more_fragments() });
        Header {
            type_of_service: view.type_of_service(),
            identification: view.identification(),
            reserved_bit: flags & RESERVED_BIT != 0,
            dont_fragment: view.dont_fragment(),
            fragment,
            time_to_live: view.time_to_live(),
            protocol: view.protocol(),
            source: view.source(),
            destination: view.destination(),
            options: options.to_vec(),
        }
    }

    /// Makes the header of the first fragment that of the whole packet, which carries all of `bytes`.
    pub(crate) fn joined(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Range<usize> {
        self.fragment = None;
        // It was cut, so what it says of that is not true, and some hosts refuse it with the pieces.
        self.dont_fragment &= !context.acts_if(self.dont_fragment, Rule::Ipv4Fragments);
        0..bytes.len()
    }

    /// Clears DF in a packet that the next link carries whole anyway (the paper's section IV-B1).
    pub(crate) fn clear_dont_fragment(&mut self, context: &mut Context<'_>, fits: bool) {
        self.dont_fragment &= !context.acts_if(self.dont_fragment && fits, Rule::Ipv4DontFragment);
    }

    /// The header of one piece of the packet.
    pub(crate) fn piece(&self, part: Fragment) -> Header {
        let options = if part.offset == 0 { self.options.clone() } else { options::copied(&self.options) };
        Header { fragment: Some(part), options, ..self.clone() }
    }

    /// A header of the scrubber's own: it says nothing but where to.
    pub(crate) fn fresh(source: Ipv4Addr, destination: Ipv4Addr, protocol: u8) -> Header {
        Header {
            type_of_service: 0,
            identification: 0,
            reserved_bit: false,
            dont_fragment: true,
            fragment: None,
            time_to_live: HOP_LIMIT_FIRST,
            protocol,
            source,
            destination,
            options: Vec::new(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        ipv4::HEADER_LEN + self.options.len()
    }

    /// Writes the header in front of `payload_len` bytes.
    pub(crate) fn emit(&self, room: &mut [u8], payload_len: usize) {
        let len = self.len();
        room[0] = 0x40 | (len / 4) as u8;
        room[1] = self.type_of_service;
        room[2..4].copy_from_slice(&((len + payload_len) as u16).to_be_bytes());
        room[4..6].copy_from_slice(&self.identification.to_be_bytes());
        room[6..8].copy_from_slice(&self.flags_and_offset().to_be_bytes());
        (room[8], room[9]) = (self.time_to_live, self.protocol);
        room[12..16].copy_from_slice(&self.source.octets());
        room[16..20].copy_from_slice(&self.destination.octets());
        room[ipv4::HEADER_LEN..len].copy_from_slice(&self.options);
        ipv4::fill_checksum(&mut room[..len]);
    }

    /// Flags and offset as they stand in the header.
    pub(crate) fn flags_and_offset(&self) -> u16 {
        let fragment = self.fragment.unwrap_or(Fragment::WHOLE);
        let flag = |is_set: bool, bit: u8| if is_set { u16::from(bit) << 8 } else { 0 };
        flag(self.reserved_bit, RESERVED_BIT)
            | flag(self.dont_fragment, DONT_FRAGMENT)
            | flag(fragment.more, MORE_FRAGMENTS)
            | (fragment.offset / 8) as u16
    }
}
