//! The link layer: which frames are IP, and what becomes of the others.

use bump::{DropReason, Meta, VlanTag};
use wire::{EtherType, layer};

use crate::context::Context;
use crate::rule::Rule;

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

    /// The VLAN identifiers, wherever the port left the tags: the outer one 12 bits above the inner one.
    pub(crate) fn vlans(&self) -> u32 {
        const IDENTIFIER: u32 = 0xfff;
        let outside = self.vlan.map_or(0, |tag| u32::from(tag.tci) & IDENTIFIER);
        let inside = self.header.get(14..).unwrap_or_default().chunks_exact(4);
        inside.fold(outside, |vlans, tag| vlans << 12 | (u32::from(tag[0]) << 8 | u32::from(tag[1])) & IDENTIFIER)
    }
}

/// Reads the link header and says whether the frame may go on.
pub(crate) fn read<'a>(
    context: &mut Context<'_>,
    frame: &'a mut [u8],
    meta: &Meta,
) -> Result<(Link<'a>, &'a mut [u8]), DropReason> {
    let (ethertype, len) = layer::network_layer(frame).ok_or(DropReason::Runt)?;
    let (header, rest) = frame.split_at_mut(len);
    let link = Link { header, ethertype, vlan: meta.vlan, queue: meta.queue };
    let may_pass = link.is_ip() || ethertype == EtherType::ARP || context.settings.ethertypes.contains(&ethertype);
    context.refuse_if(!may_pass, Rule::EthernetTypes, DropReason::EthertypeNotListed)?;
    Ok((link, rest))
}
