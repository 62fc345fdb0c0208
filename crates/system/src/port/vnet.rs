//! The header that Linux puts in front of frames on TAP devices and packet sockets (virtio 1.1, section 5.1.6), as
//! metadata and back.
//!
//! It is in the machine's own byte order on both. A TAP is set to 12 bytes; packet sockets have 10 on every kernel, and
//! 12 only since Linux 6.5, so 10 are used there.

use bump::{Checksum, Gso, GsoKind, Meta};
use wire::offload::UdpTunnel;

/// Length of the header on a TAP device, with the unused count of buffers at its end.
pub const LEN: usize = 12;
/// Length of the header on a packet socket.
pub const PACKET_LEN: usize = 10;

/// Length of the header on a TAP that knows tunnels, since Linux 6.17 (`virtio_net_hdr_v1_hash_tunnel`): behind the others a
/// hash that nobody needs, and the places of outer transport and inner network header.
pub const TUNNEL_LEN: usize = 24;

const NEEDS_CHECKSUM: u8 = 1;
const DATA_VALID: u8 = 2;
const TUNNEL_CHECKSUM: u8 = 8;

const GSO_NONE: u8 = 0;
const GSO_TCP_V4: u8 = 1;
const GSO_TCP_V6: u8 = 4;
const GSO_UDP: u8 = 5;
const GSO_TUNNEL_V4: u8 = 0x20;
const GSO_TUNNEL_V6: u8 = 0x40;
const GSO_ECN: u8 = 0x80;

/// What a header says. `None` when it names a kind of super-frame that this program never allowed.
pub(crate) fn read(header: &[u8; PACKET_LEN]) -> Option<Meta> {
    let [flags, gso_type, _, _, size_0, size_1, start_0, start_1, offset_0, offset_1] = *header;
    let checksum = if flags & NEEDS_CHECKSUM != 0 {
        Checksum::Partial {
            start: u16::from_ne_bytes([start_0, start_1]),
            offset: u16::from_ne_bytes([offset_0, offset_1]),
        }
    } else if flags & DATA_VALID != 0 {
        Checksum::Complete
    } else {
        Checksum::Unknown
    };
    let kind = match gso_type & !GSO_ECN {
        GSO_NONE => return Some(Meta { checksum, ..Meta::default() }),
        GSO_TCP_V4 => GsoKind::TcpV4,
        GSO_TCP_V6 => GsoKind::TcpV6,
        GSO_UDP => GsoKind::Udp,
        _ => return None,
    };
    let gso = Gso { kind, size: u16::from_ne_bytes([size_0, size_1]), ecn: gso_type & GSO_ECN != 0 };
    Some(Meta { checksum, gso: Some(gso), ..Meta::default() })
}

/// The header for `frame`, whose tags stand in its bytes.
pub(crate) fn write(meta: &Meta, frame: &[u8]) -> [u8; LEN] {
    let mut header = [0; LEN];
    let mut header_len = 0;
    if let Checksum::Partial { start, offset } = meta.checksum {
        header[0] = NEEDS_CHECKSUM;
        header[6..8].copy_from_slice(&start.to_ne_bytes());
        header[8..10].copy_from_slice(&offset.to_ne_bytes());
        header_len = usize::from(start) + transport_header_len(meta.gso, frame.get(usize::from(start)..));
    }
    if let Some(gso) = meta.gso {
        let kind = match gso.kind {
            GsoKind::TcpV4 | GsoKind::TunnelledTcpV4 => GSO_TCP_V4,
            GsoKind::TcpV6 | GsoKind::TunnelledTcpV6 => GSO_TCP_V6,
            GsoKind::Udp => GSO_UDP,
        };
        header[1] = kind | if gso.ecn { GSO_ECN } else { 0 };
        // The kernel puts this many bytes into the first, contiguous part of its buffer.
        let header_len = header_len.min(frame.len()) as u16;
        header[2..4].copy_from_slice(&header_len.to_ne_bytes());
        header[4..6].copy_from_slice(&gso.size.to_ne_bytes());
    }
    header
}

/// The header on a TAP of [`TUNNEL_LEN`] bytes for the tunnelled super-frame `frame`, whose outer headers are those of `tunnel`.
pub(crate) fn write_tunnelled(meta: &Meta, tunnel: UdpTunnel, frame: &[u8]) -> [u8; TUNNEL_LEN] {
    let mut header = [0; TUNNEL_LEN];
    header[..LEN].copy_from_slice(&write(meta, frame));
    header[0] |= if tunnel.has_checksum { TUNNEL_CHECKSUM } else { 0 };
    header[1] |= if tunnel.is_v6 { GSO_TUNNEL_V6 } else { GSO_TUNNEL_V4 };
    // These two are little-endian on every machine.
    header[TUNNEL_LEN - 4..TUNNEL_LEN - 2].copy_from_slice(&(tunnel.transport as u16).to_le_bytes());
    header[TUNNEL_LEN - 2..].copy_from_slice(&(tunnel.inner_network as u16).to_le_bytes());
    header
}

/// Length of the transport header of a super-frame whose transport segment is `segment`.
fn transport_header_len(gso: Option<Gso>, segment: Option<&[u8]>) -> usize {
    match gso.map(|gso| gso.kind) {
        Some(GsoKind::Udp) => wire::udp::HEADER_LEN,
        Some(_) => {
            segment.and_then(|segment| wire::tcp::View::new(segment).ok()).map_or(0, |header| header.header_len())
        }
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_of_the_kernel_reads_as_metadata() {
        // Written down from a TAP: TCP super-frame, 66 bytes of headers, segments of 1448, checksum from 34 at +16.
        let mut header = [1, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        header[2..4].copy_from_slice(&66_u16.to_ne_bytes());
        header[4..6].copy_from_slice(&1448_u16.to_ne_bytes());
        header[6..8].copy_from_slice(&34_u16.to_ne_bytes());
        header[8..10].copy_from_slice(&16_u16.to_ne_bytes());
        let meta = read(&header).expect("known kind");
        assert_eq!(meta.checksum, Checksum::Partial { start: 34, offset: 16 });
        assert_eq!(meta.gso, Some(Gso { kind: GsoKind::TcpV4, size: 1448, ecn: false }));

        let mut frame = vec![0; 2962];
        frame[34 + 12] = 0x80;
        assert_eq!(write(&meta, &frame)[..PACKET_LEN], header);
    }

    #[test]
    fn plain_valid_and_unknown_kinds() {
        assert_eq!(read(&[0; 10]), Some(Meta::plain()));
        assert_eq!(read(&[2, 0, 0, 0, 0, 0, 0, 0, 0, 0]).map(|meta| meta.checksum), Some(Checksum::Complete));
        // 3 is UDP fragmentation, which is never switched on.
        assert_eq!(read(&[1, 3, 0, 0, 0, 0, 0, 0, 0, 0]), None);
        assert_eq!(write(&Meta::plain(), &[0; 60]), [0; LEN]);
    }
}
