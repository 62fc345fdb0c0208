//! The cross-layer check: what a frame says about its sender must agree on every layer (paper, section 3).
//!
//! Link layer authentication alone does not stop an enrolled host from using another's address. So the source of the IP
//! packet, and both sender addresses of an ARP message, are compared with the certificate of the host whose key opened
//! the frame. Routers are exempt from the IP rule, and from no other (section 5.3). IPv6 addresses need not be in a
//! certificate; `ipv6` says what is claimed.

mod ipv6;

use std::net::Ipv4Addr;

use bump::DropReason;
use identity::certificate::HostCertificate;
use identity::{Role, Verified};
use wire::arp::Arp;
use wire::layer::{network_layer, protocol};
use wire::{EtherType, MacAddress};

pub(crate) use ipv6::Claims;

/// What a host may claim to be.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    mac: MacAddress,
    addresses: Vec<Ipv4Addr>,
    router: bool,
    dhcp_server: bool,
}

/// What the cross-layer check leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    /// Nothing.
    Free,
    /// It is IPv6, and good if these claims are.
    Ipv6(Claims),
}

impl Origin {
    /// What the host with this certificate may claim.
    pub(crate) fn of(certificate: &Verified<HostCertificate>) -> Origin {
        Origin {
            mac: certificate.mac(),
            addresses: certificate.addresses().to_vec(),
            router: certificate.is_router(),
            dhcp_server: certificate.role() == Role::DhcpServer,
        }
    }

    /// What the legacy host at this address pair may claim.
    pub(crate) fn of_legacy(legacy: &crate::settings::Legacy) -> Origin {
        Origin { mac: legacy.mac, addresses: vec![legacy.ip], router: legacy.router, dhcp_server: false }
    }

    /// What a host may claim of which nothing but its hardware address is known.
    pub(crate) fn of_stranger(mac: MacAddress) -> Origin {
        Origin { mac, addresses: Vec::new(), router: false, dhcp_server: false }
    }

    pub(crate) fn mac(&self) -> MacAddress {
        self.mac
    }

    /// Whether its DHCP replies count. A router may be a relay.
    fn serves_dhcp(&self) -> bool {
        self.dhcp_server || self.router
    }

    /// Checks a whole inner frame that came from this host. Looks through VLAN tags, or they would hide a false source.
    pub(crate) fn check(&self, frame: &[u8]) -> Result<Passage, DropReason> {
        let (ethertype, at) = network_layer(frame).ok_or(DropReason::InnerMalformed)?;
        self.check_packet(ethertype, frame.get(at..).ok_or(DropReason::InnerMalformed)?)
    }

    /// As [`check`](Origin::check), of what an inner frame carries behind its header and VLAN tags.
    pub(crate) fn check_packet(&self, ethertype: EtherType, packet: &[u8]) -> Result<Passage, DropReason> {
        match ethertype {
            EtherType::IPV4 => self.check_ipv4(packet),
            EtherType::ARP => self.check_arp(packet),
            EtherType::IPV6 => return ipv6::check(self, packet).map(Passage::Ipv6),
            _ => Ok(()),
        }
        .map(|()| Passage::Free)
    }

    fn check_ipv4(&self, packet: &[u8]) -> Result<(), DropReason> {
        let header = wire::ipv4::View::new(packet).map_err(|_| DropReason::InnerMalformed)?;
        if is_dhcp(&header) {
            return Err(DropReason::Dhcp);
        }
        if self.router || self.addresses.contains(&header.source()) { Ok(()) } else { Err(DropReason::InnerSource) }
    }

    fn check_arp(&self, message: &[u8]) -> Result<(), DropReason> {
        let arp = Arp::parse(message).map_err(|_| DropReason::InnerMalformed)?;
        if arp.sender_mac == self.mac && self.addresses.contains(&arp.sender_ip) {
            Ok(())
        } else {
            Err(DropReason::InnerArp)
        }
    }
}

/// Whether a program could read the packet as DHCP, which comes in DHCP frames and in no other way: an enrolled host with the right
/// addresses is no DHCP server yet. Later fragments tell no ports, and are worth nothing without the first.
pub(crate) fn is_dhcp(packet: &wire::ipv4::View<'_>) -> bool {
    const PORTS: [u16; 2] = [wire::dhcp::SERVER_PORT, wire::dhcp::CLIENT_PORT];
    if packet.protocol() != protocol::UDP || packet.fragment_offset() != 0 {
        return false;
    }
    let port = packet.payload().get(2..4).map(|port| u16::from_be_bytes([port[0], port[1]]));
    port.is_none_or(|port| PORTS.contains(&port))
}
