//! The link layer: which frames are IP, and what becomes of the others.
//!
//! Tags are kept, in the bytes and beside them. ARP is not cut to its 28 bytes: signed ARP stands behind them.

use bump::{DropReason, Meta, VlanTag};
use wire::layer::{self, VLAN_TAGS_MAX};
use wire::{EtherType, MacAddress, ethernet};

use crate::context::Context;
use crate::rule::Rule;

/// Below this the field behind the addresses is a length (IEEE 802.3, 3.2.6).
const ETHERTYPE_MIN: u16 = 0x600;
/// The bit of a tag that says "drop me first", and in older customer tags "addresses in another bit order".
const DROP_ELIGIBLE: u16 = 0x1000;
/// 802.2 in front of an EtherType, but the last byte of the organisation: both addresses SNAP, unnumbered (RFC 1042).
const SNAP: [u8; 5] = [0xaa, 0xaa, 0x03, 0, 0];
/// Where that EtherType stands behind the length field.
const SNAP_ETHERTYPE: usize = 6;
/// Last bytes of the organisations under which bridges put EtherTypes (RFC 1042, IEEE 802.1H).
const SNAP_ORGANISATIONS: [u8; 2] = [0x00, 0xf8];

/// The link header, written as it came: addresses, and tags where the port left them in the bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link<'a> {
    pub(crate) header: &'a [u8],
    pub(crate) ethertype: EtherType,
    pub(crate) vlan: Option<VlanTag>,
    pub(crate) queue: u16,
}

impl Link<'_> {
    pub(crate) fn is_ip(&self) -> bool {
        matches!(self.ethertype, EtherType::IPV4 | EtherType::IPV6)
    }

    /// Whether all stations or a group of them hear the frame.
    pub(crate) fn is_to_group(&self) -> bool {
        self.header.first().is_some_and(|first| first & 1 != 0)
    }

    /// Whether all stations hear the frame.
    pub(crate) fn is_to_all(&self) -> bool {
        self.header.starts_with(&MacAddress::BROADCAST.0)
    }

    /// The VLAN identifiers, wherever the port left the tags: the outer one 12 bits above the inner one.
    pub(crate) fn vlans(&self) -> u32 {
        const IDENTIFIER: u32 = 0xfff;
        let outside = self.vlan.map_or(0, |tag| u32::from(tag.tci) & IDENTIFIER);
        let inside = self.header.get(14..).unwrap_or_default().chunks_exact(4);
        inside.fold(outside, |vlans, tag| vlans << 12 | (u32::from(tag[0]) << 8 | u32::from(tag[1])) & IDENTIFIER)
    }
}

/// Reads the link header and says whether the frame may go on. What follows the payload of a frame that says its length is
/// cut off.
pub(crate) fn read<'a>(
    context: &mut Context<'_>,
    frame: &'a mut [u8],
    meta: &Meta,
) -> Result<(Link<'a>, &'a mut [u8]), DropReason> {
    let (ethertype, len) = behind_tags(context, frame, meta)?;
    let vlan = clear_drop_eligible(context, &mut frame[..len], meta.vlan);
    let (header, mut rest) = frame.split_at_mut(len);
    let link = Link { header, ethertype, vlan, queue: meta.queue };
    if ethertype.0 < ETHERTYPE_MIN {
        rest = read_length_frame(context, usize::from(ethertype.0), rest)?;
    }
    let may_pass = link.is_ip() || ethertype == EtherType::ARP || context.settings.ethertypes.contains(&ethertype);
    context.refuse_if(!may_pass, Rule::EthernetTypes, DropReason::EthertypeNotListed)?;
    Ok((link, rest))
}

/// The EtherType behind the tags, and where what it describes begins. Behind more tags than two hosts differ in what they look
/// for, so such a frame is not read further.
fn behind_tags(context: &mut Context<'_>, frame: &[u8], meta: &Meta) -> Result<(EtherType, usize), DropReason> {
    let found = layer::network_layer(frame);
    let tags = found.map_or(VLAN_TAGS_MAX + 1, |(_, len)| (len - ethernet::HEADER_LEN) / 4);
    let tags = tags + usize::from(meta.vlan.is_some());
    let deepest = ethernet::HEADER_LEN + VLAN_TAGS_MAX * 4;
    if found.is_none() && frame.len() < deepest {
        return Err(DropReason::Runt);
    }
    context.refuse_if(tags > VLAN_TAGS_MAX, Rule::EthernetEncapsulation, DropReason::EthertypeNotListed)?;
    Ok(found.unwrap_or((EtherType::VLAN, deepest)))
}

/// Clears the bit in customer tags, where its meaning has changed over time; in service tags it always meant the same.
fn clear_drop_eligible(context: &mut Context<'_>, header: &mut [u8], beside: Option<VlanTag>) -> Option<VlanTag> {
    let is_doubtful = |tpid: u16, tci: u16| EtherType(tpid) == EtherType::VLAN && tci & DROP_ELIGIBLE != 0;
    for tag in header[ethernet::HEADER_LEN - 2..].chunks_exact_mut(4) {
        let (tpid, tci) = (u16::from_be_bytes([tag[0], tag[1]]), u16::from_be_bytes([tag[2], tag[3]]));
        if context.acts_if(is_doubtful(tpid, tci), Rule::VlanDropEligible) {
            tag[2..].copy_from_slice(&(tci & !DROP_ELIGIBLE).to_be_bytes());
        }
    }
    beside.map(|tag| {
        let is_cleared = context.acts_if(is_doubtful(tag.tpid, tag.tci), Rule::VlanDropEligible);
        VlanTag { tci: if is_cleared { tag.tci & !DROP_ELIGIBLE } else { tag.tci }, ..tag }
    })
}

/// A frame of `len` bytes of 802.2: hosts may read IP in it or may not (RFC 1122, 2.3.3), so it carries none.
fn read_length_frame<'a>(
    context: &mut Context<'_>,
    len: usize,
    rest: &'a mut [u8],
) -> Result<&'a mut [u8], DropReason> {
    context.refuse_if(wraps_packets(rest), Rule::EthernetEncapsulation, DropReason::EthertypeNotListed)?;
    let cuts = context.acts_if(len < rest.len(), Rule::EthernetTrailer);
    Ok(if cuts { &mut rest[..len] } else { rest })
}

fn wraps_packets(rest: &[u8]) -> bool {
    let Some(header) = rest.first_chunk::<{ SNAP_ETHERTYPE + 2 }>() else { return false };
    let ethertype = EtherType(u16::from_be_bytes([header[SNAP_ETHERTYPE], header[SNAP_ETHERTYPE + 1]]));
    let is_wrapped = matches!(ethertype, EtherType::IPV4 | EtherType::IPV6 | EtherType::ARP) || ethertype.is_vlan();
    header.starts_with(&SNAP) && SNAP_ORGANISATIONS.contains(&header[SNAP.len()]) && is_wrapped
}
