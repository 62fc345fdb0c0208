//! The link layer: which frames are IP, and what becomes of the others.
//!
//! Tags are kept, in the bytes and beside them. ARP is not cut to its 28 bytes: signed ARP stands behind them.

use bump::{DropReason, Meta, VlanTag};
use wire::layer::{self, VLAN_TAGS_MAX};
use wire::{EtherType, MacAddress, ethernet};

use crate::context::Context;
use crate::encapsulation::{self, ETHERTYPE_MIN};
use crate::rule::Rule;

/// The bit of a tag that says "drop me first", and in older customer tags "addresses in another bit order".
const DROP_ELIGIBLE: u16 = 0x1000;

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
    let is_listed = context.settings.ethertypes.contains(&ethertype);
    let may_pass = link.is_ip() || ethertype == EtherType::ARP || is_listed;
    // Whether a host reads IP behind other headers is its own affair (RFC 1122, 2.3.3), and those
    // who watch read it in most.
    let hides_packets = !may_pass && encapsulation::is_in_frame(ethertype.0, rest);
    context.refuse_if(hides_packets, Rule::EthernetEncapsulation, DropReason::EthertypeNotListed)?;
    if ethertype.0 < ETHERTYPE_MIN {
        rest = inside_length(context, usize::from(ethertype.0), rest);
    }
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

/// A frame of `len` bytes of 802.2 without what follows them.
fn inside_length<'a>(context: &mut Context<'_>, len: usize, rest: &'a mut [u8]) -> &'a mut [u8] {
    let cuts = context.acts_if(len < rest.len(), Rule::EthernetTrailer);
    if cuts { &mut rest[..len] } else { rest }
}
