//! Writing a packet from its fields into the outgoing port's buffer.

use bump::{DropReason, Meta, Side, Sink};

use crate::ethernet::Link;
use crate::packet::{Packet, Transport};

/// Writes `packet` as one frame towards `to`.
pub(crate) fn whole(packet: &Packet<'_>, to: Side, sink: &mut dyn Sink) -> Result<(), DropReason> {
    let start = packet.link.header.len();
    let payload_at = start + packet.ip.header_len();
    let len = payload_at + packet.transport.len();
    let room = sink.reserve(to, len).ok_or(DropReason::PortFull)?;
    room[..start].copy_from_slice(packet.link.header);
    packet.ip.emit(&mut room[start..payload_at], packet.transport.len());
    match &packet.transport {
        Transport::Bytes(bytes) => room[payload_at..len].copy_from_slice(bytes),
    }
    sink.commit(to, len, packet.meta(start));
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
