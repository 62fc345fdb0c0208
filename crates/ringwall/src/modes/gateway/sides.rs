//! From which side of a gateway did a captured frame come? A capture does not say it, so somebody
//! has to.

use std::collections::HashMap;
use std::net::IpAddr;

use bump::Side;
use scrub::settings::Network;
use wire::ethernet::Header;
use wire::{EtherType, MacAddress, ipv4, ipv6, layer};

/// Pairs of addresses whose first speaker is remembered; the frames of further pairs count as the
/// untrusted side's.
const PAIRS_MAX: usize = 1 << 20;

/// How the side is told.
#[derive(Debug)]
pub(crate) enum Sides {
    /// By source address: those of these networks are trusted. A frame without one is the untrusted
    /// side's.
    Networks(Vec<Network>),
    /// By source hardware address: these are trusted hosts or routers.
    Hardware(Vec<MacAddress>),
    /// By the capture's interface: these are on the trusted side.
    Interfaces(Vec<u32>),
    /// By who speaks first: of two hosts he is the untrusted one, as clients of a server behind the
    /// gateway are.
    FirstSpeaker(Speakers),
}

/// Who spoke first in each pair.
#[derive(Debug, Default)]
pub(crate) struct Speakers(HashMap<(Party, Party), Party>);

/// One end of a frame: its address in the network, or in the link where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Party {
    Address(IpAddr),
    Hardware(MacAddress),
}

impl Sides {
    /// What is assumed, in a sentence for the operator.
    pub(crate) fn assumed(&self) -> String {
        match self {
            Sides::Networks(networks) => {
                let list: Vec<_> = networks.iter().map(|net| format!("{}/{}", net.address, net.prefix_len)).collect();
                format!("frames from addresses in {} are the trusted side's", list.join(", "))
            }
            Sides::Hardware(addresses) => {
                let list: Vec<_> = addresses.iter().map(ToString::to_string).collect();
                format!("frames from the hardware addresses {} are the trusted side's", list.join(", "))
            }
            Sides::Interfaces(numbers) => {
                let list: Vec<_> = numbers.iter().map(ToString::to_string).collect();
                format!("frames of the capture's interfaces {} are the trusted side's", list.join(", "))
            }
            Sides::FirstSpeaker(_) => {
                "of two hosts the one that speaks first is untrusted (name the trusted side with --trusted)".to_owned()
            }
        }
    }

    /// Where `frame`, captured on `interface`, came from.
    pub(crate) fn of(&mut self, frame: &[u8], interface: u32) -> Side {
        let is_trusted = match self {
            Sides::Networks(networks) => match addresses(frame) {
                Some((source, _)) => networks.iter().any(|network| network.contains(source)),
                None => false,
            },
            Sides::Hardware(trusted) => Header::parse(frame).is_ok_and(|(header, _)| trusted.contains(&header.source)),
            Sides::Interfaces(trusted) => trusted.contains(&interface),
            Sides::FirstSpeaker(speakers) => !speakers.is_first(frame),
        };
        if is_trusted { Side::TRUSTED } else { Side::UNTRUSTED }
    }
}

impl Speakers {
    /// Whether the sender of `frame` is the one that spoke first.
    fn is_first(&mut self, frame: &[u8]) -> bool {
        let Some((source, destination)) = parties(frame) else { return true };
        let pair = (source.min(destination), source.max(destination));
        if let Some(first) = self.0.get(&pair) {
            return *first == source;
        }
        if self.0.len() < PAIRS_MAX {
            self.0.insert(pair, source);
        }
        true
    }
}

fn parties(frame: &[u8]) -> Option<(Party, Party)> {
    if let Some((source, destination)) = addresses(frame) {
        return Some((Party::Address(source), Party::Address(destination)));
    }
    let (header, _) = Header::parse(frame).ok()?;
    Some((Party::Hardware(header.source), Party::Hardware(header.destination)))
}

/// Source and destination in the network; for ARP the sender and the target.
fn addresses(frame: &[u8]) -> Option<(IpAddr, IpAddr)> {
    let (ethertype, start) = layer::network_layer(frame)?;
    let packet = frame.get(start..)?;
    match ethertype {
        EtherType::IPV4 => {
            let header = ipv4::View::new(packet).ok()?;
            Some((header.source().into(), header.destination().into()))
        }
        EtherType::IPV6 => {
            let header = ipv6::View::new(packet).ok()?;
            Some((header.source().into(), header.destination().into()))
        }
        EtherType::ARP => {
            let arp = wire::arp::Arp::parse(packet).ok()?;
            Some((arp.sender_ip.into(), arp.target_ip.into()))
        }
        _ => None,
    }
}
