//! What the scrubber cannot read: encrypted protocols, tunnels, and protocols it does not know.
//!
//! The paper's section II leaves two ways: trust what is encrypted from end to end, or let through
//! only what is listed. With the rules `encrypted` and `tunnels` off all of it passes as it is, in
//! a header that was scrubbed, but for packets of IP: what anybody can read there only listed hosts
//! may send (`tunnelled-packets`).

use bump::DropReason;
use wire::layer::protocol;
use wire::udp;

use crate::context::Context;
use crate::encapsulation;
use crate::exchange::Exchanges;
use crate::packet::Packet;
use crate::rule::Rule;
use crate::settings;

/// Group management (RFC 3376): it carries no data and both sides need it, like its counterpart in ICMPv6.
const IGMP: u8 = 2;
/// Encapsulating security payload (RFC 4303).
const ESP: u8 = 50;
/// Authentication header (RFC 4302).
const AH: u8 = 51;

/// Protocols that carry packets or frames of others: IP in IP, GRE, minimal encapsulation (RFC 2004), IPIP, Ethernet in IP
/// (RFC 3378), encapsulation (RFC 1241), L2TP (RFC 3931), MPLS in IP (RFC 4023).
const TUNNELS: [u8; 9] = [protocol::IPV4, protocol::IPV6, protocol::GRE, 55, 94, 97, 98, 115, 137];

/// Ports of tunnels in UDP: L2TP, GTP-U, Teredo (RFC 4380), GRE in UDP (RFC 8086), VXLAN (RFC 7348), Geneve (RFC 8926), MPLS
/// in UDP (RFC 7510), and VXLAN as Linux once numbered it.
const TUNNEL_PORTS: [u16; 8] = [1701, 2152, 3544, 4754, 4789, 6081, 6635, 8472];
/// ESP in UDP (RFC 3948).
const ESP_PORT: u16 = 4500;

/// What may hide in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cover {
    Encryption,
    Tunnel,
}

/// Refuses a tunnel with IP in it between hosts that are not listed. Its ends read what it carries,
/// and so do those who watch.
fn refuse_tunnel(context: &mut Context<'_>, packet: &Packet<'_>, carries_ip: bool) -> Result<(), DropReason> {
    let (source, destination) = (packet.ip.source(), packet.ip.destination());
    let is_unlisted = carries_ip && !settings::is_listed(&context.settings.tunnels, source, destination);
    context.refuse_if(is_unlisted, Rule::TunnelledPackets, DropReason::ProtocolNotListed)
}

/// Lets a packet pass that is neither TCP, UDP nor ICMP, if its hosts may speak what they speak.
pub(crate) fn scrub(
    context: &mut Context<'_>,
    packet: &Packet<'_>,
    exchanges: &mut Exchanges,
) -> Result<(), DropReason> {
    let carries_ip = context.on(Rule::TunnelledPackets)
        && encapsulation::is_in_packet(packet.ip.protocol(), packet.transport.bytes());
    refuse_tunnel(context, packet, carries_ip)?;
    match packet.ip.protocol() {
        IGMP => return Ok(()),
        protocol if TUNNELS.contains(&protocol) => judge(context, packet, Cover::Tunnel)?,
        _ => judge(context, packet, Cover::Encryption)?,
    }
    exchanges.remember(context, packet);
    Ok(())
}

/// Judges a datagram between these ports as what may be in it.
pub(crate) fn judge_udp(context: &mut Context<'_>, packet: &Packet<'_>, ports: [u16; 2]) -> Result<(), DropReason> {
    if context.on(Rule::TunnelledPackets) {
        let data = packet.transport.bytes().get(udp::HEADER_LEN..).unwrap_or_default();
        refuse_tunnel(context, packet, encapsulation::is_in_datagram(ports, data))?;
    }
    if !context.on(Rule::Tunnels) && !context.on(Rule::Encrypted) {
        return Ok(());
    }
    if is_tunnel_port(ports) {
        return judge(context, packet, Cover::Tunnel);
    }
    if ports.contains(&ESP_PORT) { judge(context, packet, Cover::Encryption) } else { Ok(()) }
}

/// Whether a packet of `protocol` that begins with `head` is one end's half of a tunnel.
pub(crate) fn is_tunnel(protocol: u8, head: &[u8]) -> bool {
    match (protocol, head.first_chunk()) {
        (protocol::UDP, Some([a, b, c, d])) => {
            let ports = [u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])];
            is_tunnel_port(ports) || ports.contains(&ESP_PORT)
        }
        (ESP | AH, _) => true,
        _ => TUNNELS.contains(&protocol),
    }
}

fn is_tunnel_port(ports: [u16; 2]) -> bool {
    ports.iter().any(|port| TUNNEL_PORTS.contains(port))
}

fn judge(context: &mut Context<'_>, packet: &Packet<'_>, cover: Cover) -> Result<(), DropReason> {
    let (rule, pairs) = match cover {
        Cover::Encryption => (Rule::Encrypted, &context.settings.encrypted),
        Cover::Tunnel => (Rule::Tunnels, &context.settings.tunnels),
    };
    if !context.on(rule) {
        return Ok(());
    }
    let is_listed = settings::is_listed(pairs, packet.ip.source(), packet.ip.destination());
    context.refuse_if(!is_listed, rule, DropReason::ProtocolNotListed)
}
