//! Writing a packet from its fields into the outgoing port's buffer.

use bump::{DropReason, Ledger, Side, Sink};

use crate::ethernet::Link;
use crate::packet::{Packet, Transport};
use crate::tcp::Made;

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

/// Writes segments of the scrubber's own, which go beside a packet with link header `link` from side `from`.
pub(crate) fn made(made: &[Made], link: &Link<'_>, from: Side, ledger: &mut Ledger, sink: &mut dyn Sink) {
    let mut header = Vec::new();
    for made in made {
        let Some(packet) = made.packet(link, from, &mut header) else { continue };
        if whole(&packet, made.to, sink).is_ok() {
            ledger.make(made.to);
        }
    }
}
