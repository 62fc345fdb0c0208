//! Frames in clear of hosts on the legacy list (paper, section 7.1): what they may send in every
//! mode. What they may not is judged like a stranger's frame, so a host on the list never has less
//! than one that is on none.

use std::collections::BTreeMap;

use bump::{DropReason, Frame};
use wire::dhcp::{MessageType, OPTION_REQUESTED, Operation, SERVER_PORT, View};
use wire::ethernet::{HEADER_LEN as ETHERNET_LEN, Header};
use wire::{EtherType, MacAddress};

use super::not_for_groups;
use super::outbound::is_dhcp;
use crate::origin::Origin;
use crate::settings::{Legacy, Settings};

/// What the hosts on the list may claim, by hardware address.
pub(super) struct LegacyHosts(BTreeMap<MacAddress, Origin>);

impl LegacyHosts {
    pub(super) fn new(settings: &Settings) -> LegacyHosts {
        LegacyHosts(settings.legacy.iter().map(|legacy| (legacy.mac, Origin::of_legacy(legacy))).collect())
    }

    /// Whether this host is on the list.
    pub(super) fn has(&self, mac: MacAddress) -> bool {
        self.0.contains_key(&mac)
    }

    /// Whether a frame in clear of a host on the list is let in in every mode; none if its source
    /// is not on the list.
    pub(super) fn judge(
        &self,
        settings: &Settings,
        header: &Header,
        frame: &Frame<'_>,
    ) -> Option<Result<(), DropReason>> {
        self.0.get(&header.source).map(|origin| judge(settings, origin, header, frame))
    }
}

/// A host on the list may send only as itself.
fn judge(settings: &Settings, origin: &Origin, header: &Header, frame: &Frame<'_>) -> Result<(), DropReason> {
    let legacy = settings.legacy_by_mac(header.source).ok_or(DropReason::LegacyAddress)?;
    let payload = &frame.bytes[ETHERNET_LEN..];
    if header.ethertype == EtherType::IPV6 {
        return Err(DropReason::Ipv6);
    }
    if is_dhcp(header.ethertype, payload) {
        let asks_us = settings.dhcp.server.is_some() && asks_for_its_address(legacy, frame.bytes);
        return if asks_us { Ok(()) } else { Err(DropReason::Dhcp) };
    }
    let is_group = header.destination.is_group();
    if is_group && header.ethertype != EtherType::ARP && !legacy.broadcast {
        let is_broadcast = header.destination.is_broadcast();
        return Err(if is_broadcast { DropReason::Broadcast } else { DropReason::Multicast });
    }
    if is_group && let Some(reason) = not_for_groups(header.ethertype, payload) {
        return Err(reason);
    }
    origin.check(frame.bytes).map(drop).map_err(|_| DropReason::LegacyAddress)
}

/// Whether it asks our DHCP server for the address that the list says it has, or for none in
/// particular.
fn asks_for_its_address(legacy: &Legacy, frame: &[u8]) -> bool {
    let Ok(message) = View::new(frame) else { return false };
    let Ok(requested) = message.address_option(OPTION_REQUESTED) else { return false };
    let named = [Some(message.source()), Some(message.ciaddr()), requested];
    let is_its_own = named.into_iter().flatten().all(|ip| ip.is_unspecified() || ip == legacy.ip);
    let asks = matches!(message.kind(), MessageType::Discover | MessageType::Request | MessageType::Inform);
    let is_question = message.operation() == Operation::Request && message.destination_port() == SERVER_PORT;
    asks && is_question && is_its_own && message.chaddr() == legacy.mac && !message.is_relayed()
}
