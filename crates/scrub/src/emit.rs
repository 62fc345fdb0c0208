//! Writing a packet from its fields into the outgoing port's buffer.

use bump::{DropReason, Side, Sink};

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
        Transport::Tcp(segment) => segment.emit(&packet.ip, packet.checksum, &mut room[payload_at..len]),
    }
    sink.commit(to, len, packet.meta(start));
    Ok(())
}
