//! Which trusted hosts are on the link: what they said of themselves by ARP and by neighbour
//! discovery. Packets to them cross no router any more, so any hop limit carries them.

use std::net::IpAddr;

use bump::{DropReason, Instant, Side};
use wire::arp::Arp;
use wire::icmp::{self, v6};
use wire::layer::protocol;

use crate::context::Context;
use crate::ip::{Ip, address};
use crate::keys::{Key, Subject};
use crate::lately::Lately;
use crate::limits::{NEIGHBOUR_LIFETIME, NEIGHBOURS_MAX};
use crate::rule::Rule;

/// The hop limit that shows that no router was crossed (RFC 4861, section 7.1).
const NEVER_ROUTED: u8 = 255;
/// What the key of tables is asked for here.
const PURPOSE: u8 = 0xfe;

/// Open shortest path first (RFC 2328, RFC 5340).
const OSPF: u8 = 89;
/// The port of BGP (RFC 4271).
const BGP_PORT: u16 = 179;

/// Addresses of trusted hosts on the link.
#[derive(Debug)]
pub(crate) struct Neighbours {
    key: Key,
    heard: Lately<()>,
}

impl Neighbours {
    pub(crate) fn new(key: Key) -> Neighbours {
        Neighbours { key, heard: Lately::new(NEIGHBOURS_MAX, NEIGHBOUR_LIFETIME) }
    }

    /// Hears an ARP message; only a trusted host is believed.
    pub(crate) fn hear_arp(&mut self, context: &Context<'_>, message: &[u8]) {
        if let (Side::TRUSTED, Ok(arp)) = (context.from, Arp::parse(message)) {
            self.put(context.now, arp.sender_ip.into());
        }
    }

    /// Hears a packet, which `carried` is in; only neighbour discovery of a trusted host counts.
    pub(crate) fn hear_ip(&mut self, context: &Context<'_>, ip: &Ip, carried: &[u8]) {
        const SOLICITS_OR_ADVERTISES: [u8; 2] = [v6::NEIGHBOUR_SOLICITATION, v6::NEIGHBOUR_ADVERTISEMENT];
        let is_near = context.from == Side::TRUSTED && ip.hop_limit() == NEVER_ROUTED;
        if !is_near || ip.protocol() != icmp::PROTOCOL_V6 {
            return;
        }
        let Some(message_type) = carried.first().filter(|found| SOLICITS_OR_ADVERTISES.contains(found)) else { return };
        self.put(context.now, ip.source());
        // An advertisement is of its target.
        if let (&v6::NEIGHBOUR_ADVERTISEMENT, Some(target)) = (message_type, carried.get(icmp::HEADER_LEN..)) {
            target.first_chunk::<16>().into_iter().for_each(|target| self.put(context.now, IpAddr::from(*target)));
        }
    }

    /// Drops what may expire before it reaches the trusted hosts: the scrubber would take it in and
    /// they would not. A host on the link takes it with any hop limit.
    pub(crate) fn hop_limit_floor(&self, context: &mut Context<'_>, ip: &Ip, carried: &[u8]) -> Result<(), DropReason> {
        if context.from != Side::UNTRUSTED || ip.hop_limit() >= context.settings.hops_behind {
            return Ok(());
        }
        let destination = ip.destination();
        let is_on_link = address::stays_on_link_or_is_group(destination)
            || context.settings.subnets.iter().any(|subnet| subnet.contains(destination))
            || self.has(context.now, destination);
        let expires = ip.hop_limit() == 0 || !(is_on_link || is_for_neighbour(ip, carried));
        context.refuse_if(expires, Rule::HopLimitFloor, DropReason::HopLimit)
    }

    /// Whether a trusted host with `address` is on the link.
    pub(crate) fn has(&self, now: Instant, address: IpAddr) -> bool {
        self.heard.get(now, self.digest(address)).is_some()
    }

    fn put(&mut self, now: Instant, address: IpAddr) {
        let digest = self.digest(address);
        self.heard.put(now, digest, ());
    }

    fn digest(&self, address: IpAddr) -> u64 {
        self.key.number(&Subject::new(PURPOSE).between(address, address))
    }
}

/// Whether it is routing between neighbours, who speak with a hop limit of 1: OSPF (RFC 2328, A.1),
/// and external BGP unless it
/// asks for 255 (RFC 5082). A host that is no neighbour takes nothing from OSPF. A segment of BGP
/// with a low hop limit leaves
/// with the largest that was seen in its connection, so if the connection came to be, the segment reaches the host.
fn is_for_neighbour(ip: &Ip, carried: &[u8]) -> bool {
    match (ip.protocol(), carried.first_chunk()) {
        (OSPF, _) => true,
        (protocol::TCP, Some([a, b, c, d])) if ip.fragment().is_none() => {
            [[*a, *b], [*c, *d]].contains(&BGP_PORT.to_be_bytes())
        }
        _ => false,
    }
}
