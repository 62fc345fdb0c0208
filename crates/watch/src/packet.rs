//! Addresses, protocol and ports of the packet in a frame.

use std::net::IpAddr;

use wire::layer::{self, protocol};
use wire::{EtherType, ipv4, ipv6};

fn addresses(bytes: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let (ethertype, at) = layer::network_layer(bytes)?;
    match ethertype {
        EtherType::IPV4 => {
            let header = ipv4::View::new(bytes.get(at..)?).ok()?;
            Some((header.source().into(), header.destination().into()))
        }
        EtherType::IPV6 => {
            let header = ipv6::View::new(bytes.get(at..)?).ok()?;
            Some((header.source().into(), header.destination().into()))
        }
        _ => None,
    }
}

pub(crate) fn network_source(bytes: &[u8]) -> Option<IpAddr> {
    addresses(bytes).map(|(source, _)| source)
}

pub(crate) fn network_destination(bytes: &[u8]) -> Option<IpAddr> {
    addresses(bytes).map(|(_, destination)| destination)
}

pub(crate) fn ports(payload: &[u8]) -> Option<(u16, u16)> {
    let [a, b, c, d] = *payload.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// Protocol and ports of the packet in `bytes`.
pub(crate) fn flow(bytes: &[u8]) -> Option<(u8, u16, u16)> {
    let (transport, at) = layer::transport_layer(bytes)?;
    let (from, to) = ports(bytes.get(at..)?).filter(|_| matches!(transport, protocol::TCP | protocol::UDP))?;
    Some((transport, from, to))
}
