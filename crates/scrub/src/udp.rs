//! UDP: datagrams that say one length and carry a right checksum. A super-frame of several stays whole.

use bump::{Checksum, DropReason};
use wire::udp::{HEADER_LEN, View};

use crate::checksum::is_right;
use crate::context::Context;
use crate::exchange::Exchanges;
use crate::ip::Ip;
use crate::opaque;
use crate::packet::Packet;
use crate::rule::Rule;
use crate::settings;

/// Judges a datagram and cuts off what does not belong to it.
pub(crate) fn scrub(
    context: &mut Context<'_>,
    packet: &mut Packet<'_>,
    exchanges: &mut Exchanges,
) -> Result<(), DropReason> {
    if context.scrubs() {
        judge_length(context, packet)?;
        judge_checksum(context, packet)?;
    }
    if let Ok(header) = View::new(packet.transport.bytes()) {
        opaque::judge_udp(context, packet, [header.source_port(), header.destination_port()])?;
    }
    exchanges.remember(context, packet);
    Ok(())
}

/// What follows the datagram in its packet is read by some hosts and not by others.
fn judge_length(context: &mut Context<'_>, packet: &mut Packet<'_>) -> Result<(), DropReason> {
    let bytes = packet.transport.bytes();
    let (len, carried) = (View::new(bytes).map_or(0, |header| usize::from(header.length())), bytes.len());
    // The kernel makes super-frames and partial checksums for whole packets only.
    let is_offloaded = packet.gso.is_some() || matches!(packet.checksum, Checksum::Partial { .. });
    let is_wrong = len < HEADER_LEN || len > carried || (len < carried && is_offloaded);
    context.refuse_if(is_wrong, Rule::UdpLength, DropReason::UdpLength)?;
    if !is_wrong && context.acts_if(len < carried, Rule::UdpLength) {
        packet.transport.truncate(len);
    }
    Ok(())
}

/// Over IPv4 a checksum of zero means none; over IPv6 only tunnels may do without (RFC 6935).
fn judge_checksum(context: &mut Context<'_>, packet: &mut Packet<'_>) -> Result<(), DropReason> {
    let bytes = packet.transport.bytes();
    let Ok(header) = View::new(bytes) else { return Ok(()) };
    let is_right = match packet.checksum {
        Checksum::Unknown | Checksum::Complete if header.checksum() == 0 => may_do_without(context, &packet.ip),
        known => is_right(known, packet.ip.pseudo_header(bytes.len()), bytes),
    };
    context.refuse_if(!is_right, Rule::UdpChecksum, DropReason::UdpChecksum)
}

fn may_do_without(context: &Context<'_>, ip: &Ip) -> bool {
    match ip {
        Ip::V4(_) => true,
        Ip::V6(header) => {
            settings::is_listed(&context.settings.tunnels, header.source.into(), header.destination.into())
        }
    }
}
