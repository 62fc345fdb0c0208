//! Writing a packet from its fields into the outgoing port's buffer.

use bump::{Checksum, DropReason, Meta, Side, Sink};

use crate::ethernet::Link;
use crate::ip::Ip;
use crate::ip::fragments::cut::Cut;
use crate::packet::{Packet, Transport};

/// Writes `packet` towards `to`: as one frame, or in pieces if it came in pieces. `scratch` is room to cut it in.
pub(crate) fn packet(
    packet: &Packet<'_>,
    mtu: usize,
    to: Side,
    sink: &mut dyn Sink,
    scratch: &mut Vec<u8>,
) -> Result<(), DropReason> {
    let cut = packet.longest_fragment.map(|longest| Cut::new(&packet.ip, longest, mtu));
    match cut.filter(|cut| !cut.is_needless(&packet.ip, packet.transport.len())) {
        Some(cut) => pieces(packet, cut, to, sink, scratch),
        None => whole(packet, to, sink),
    }
}

/// Writes `packet` as one frame towards `to`.
pub(crate) fn whole(packet: &Packet<'_>, to: Side, sink: &mut dyn Sink) -> Result<(), DropReason> {
    let payload_len = packet.transport.len();
    let (room, start) = headers(packet, &packet.ip, payload_len, to, sink)?;
    transport(packet, &mut room[start + packet.ip.header_len()..]);
    sink.commit(to, start + packet.ip.header_len() + payload_len, packet.meta(start));
    Ok(())
}

/// Writes a frame that is not IP towards `to`: its header, and `rest` as it came.
pub(crate) fn other(link: &Link<'_>, rest: &[u8], meta: Meta, to: Side, sink: &mut dyn Sink) -> Result<(), DropReason> {
    let len = link.header.len() + rest.len();
    let room = sink.reserve(to, len).ok_or(DropReason::PortFull)?;
    room[..link.header.len()].copy_from_slice(link.header);
    room[link.header.len()..len].copy_from_slice(rest);
    sink.commit(to, len, Meta { vlan: link.vlan, ..meta });
    Ok(())
}

/// Writes `packet` as several frames towards `to`.
fn pieces(
    packet: &Packet<'_>,
    cut: Cut,
    to: Side,
    sink: &mut dyn Sink,
    scratch: &mut Vec<u8>,
) -> Result<(), DropReason> {
    scratch.clear();
    scratch.extend_from_slice(packet.ip.fragmentable());
    let start = scratch.len();
    scratch.resize(start + packet.transport.len(), 0);
    transport(packet, &mut scratch[start..]);
    for (ip, bytes) in cut.pieces(&packet.ip, scratch) {
        let (room, start) = headers(packet, &ip, bytes.len(), to, sink)?;
        room[start + ip.header_len()..].copy_from_slice(bytes);
        // Where a packet is cut its checksum is complete, and no one looks for it in a piece.
        let meta = Meta { checksum: Checksum::Unknown, gso: None, ..packet.meta(start) };
        sink.commit(to, start + ip.header_len() + bytes.len(), meta);
    }
    Ok(())
}

/// Room for a frame with `payload_len` bytes behind the header `ip`, written up to there; and where `ip` begins.
fn headers<'s>(
    packet: &Packet<'_>,
    ip: &Ip,
    payload_len: usize,
    to: Side,
    sink: &'s mut dyn Sink,
) -> Result<(&'s mut [u8], usize), DropReason> {
    let start = packet.link.header.len();
    let payload_at = start + ip.header_len();
    let room = sink.reserve(to, payload_at + payload_len).ok_or(DropReason::PortFull)?;
    let room = &mut room[..payload_at + payload_len];
    room[..start].copy_from_slice(packet.link.header);
    ip.emit(&mut room[start..payload_at], payload_len);
    Ok((room, start))
}

/// Writes transport header and data.
fn transport(packet: &Packet<'_>, room: &mut [u8]) {
    let room = &mut room[..packet.transport.len()];
    match &packet.transport {
        Transport::Bytes(bytes) => room.copy_from_slice(bytes),
        Transport::Tcp(segment) => segment.emit(&packet.ip, packet.checksum, room),
    }
}
