//! What cards and kernels do for speed, done by hand: [`segment`] cuts a super-frame into frames that fit the wire,
//! [`coalesce`] joins frames of one flow into a super-frame, [`complete_checksum`] finishes a checksum that was left to
//! the card, and [`begun_checksum`] recognises one in a capture, which says nothing beside the bytes.
//!
//! The metadata that says how to cut comes from the kernel, the headers from whoever made the frame; where they
//! contradict each other the frame is refused, and nothing here reads or writes outside it.

pub mod coalesce;
pub mod segment;

pub use coalesce::Run;
pub use segment::{BIG_FRAME_MAX_BYTES, Cut, Kind, Plan, UdpTunnel, unfold};

use crate::checksum::{self, Sum};
use crate::{Error, EtherType, Field, ethernet, ipv4, ipv6, layer};

/// Longest super-frame, in bytes: the longest IP packet behind an Ethernet header with two tags.
pub const SUPER_FRAME_MAX_BYTES: usize = ethernet::HEADER_LEN + 4 * layer::VLAN_TAGS_MAX + IP_PACKET_MAX_BYTES;
/// Longest IPv4 packet, in bytes.
pub const IP_PACKET_MAX_BYTES: usize = u16::MAX as usize;

const _: () = assert!(SUPER_FRAME_MAX_BYTES > IP_PACKET_MAX_BYTES + ipv4::HEADER_LEN);

/// Completes a partial checksum: sums `frame` from `start` to its end and stores the result at `start + offset`, where
/// the sum of the pseudo header stood.
///
/// # Errors
/// The place of the checksum is not inside the frame.
pub fn complete_checksum(frame: &mut [u8], start: usize, offset: usize) -> Result<(), Error> {
    let summed = frame.get_mut(start..).ok_or(Error::Invalid(Field::Offload))?;
    let checksum = Sum::ZERO.bytes(summed).checksum();
    // Zero would mean "no checksum" in UDP, and ffff is the same number in one's complement (RFC 768).
    let stored = if checksum == 0 { u16::MAX } else { checksum };
    let place = offset.checked_add(2).and_then(|end| summed.get_mut(offset..end));
    place.ok_or(Error::Invalid(Field::Offload))?.copy_from_slice(&stored.to_be_bytes());
    Ok(())
}

/// Where the TCP or UDP checksum of `frame` starts and, counted from there, is stored, if only the sum of the pseudo header
/// stands there. So it does in frames that were captured on the host that sends them and leaves checksums to its card.
#[must_use]
pub fn begun_checksum(frame: &[u8]) -> Option<(usize, usize)> {
    let (start, offset) = layer::transport_checksum(frame)?;
    let (ethertype, network) = layer::network_layer(frame)?;
    let (protocol, _) = layer::transport_of(frame, ethertype, network)?;
    let packet = frame.get(network..)?;
    let pseudo_header = if ethertype == EtherType::IPV4 {
        let header = ipv4::View::new(packet).ok().filter(|header| !header.is_fragment())?;
        let len = usize::from(header.total_len()).checked_sub(header.header_len())?;
        checksum::pseudo_header_v4(header.source(), header.destination(), protocol, len as u16)
    } else {
        let header = ipv6::View::new(packet).ok()?;
        let len = (ipv6::HEADER_LEN + usize::from(header.payload_len())).checked_sub(start - network)?;
        checksum::pseudo_header_v6(header.source(), header.destination(), protocol, len as u32)
    };
    let stored = u16::from_be_bytes([frame[start + offset], frame[start + offset + 1]]);
    (stored == pseudo_header.fold()).then_some((start, offset))
}

/// Writes the length of an IP packet that says none: the sender's card was to cut the frame and say
/// it in each piece. False if it says one, or the frame carries no TCP or UDP.
pub fn complete_lengths(frame: &mut [u8]) -> bool {
    let Some((ethertype, network)) = layer::network_layer(frame) else { return false };
    let Some(packet) = frame.get_mut(network..) else { return false };
    let (at, protocol, counted) = match ethertype {
        EtherType::IPV4 if packet.len() >= ipv4::HEADER_LEN => (2, packet[9], packet.len()),
        EtherType::IPV6 if packet.len() > ipv6::HEADER_LEN => (4, packet[6], packet.len() - ipv6::HEADER_LEN),
        _ => return false,
    };
    let carries = matches!(protocol, layer::protocol::TCP | layer::protocol::UDP);
    let (Ok(len), true) = (u16::try_from(counted), carries && packet[at..at + 2] == [0, 0]) else { return false };
    packet[at..at + 2].copy_from_slice(&len.to_be_bytes());
    if ethertype == EtherType::IPV4 {
        // What stood there was the sum of a header without the length; see `complete_header`.
        packet[10..12].fill(0);
    }
    true
}

/// Fills the header checksum of an IPv4 packet where it is zero, as the sender's card does; false
/// if there is nothing to fill.
pub fn complete_header(frame: &mut [u8]) -> bool {
    let Some((EtherType::IPV4, network)) = layer::network_layer(frame) else { return false };
    let Some(packet) = frame.get_mut(network..) else { return false };
    let Some(len) = ipv4::View::new(packet).ok().filter(|view| !view.checksum_is_right()).map(|view| view.header_len())
    else {
        return false;
    };
    let is_left = packet[10..12] == [0, 0];
    if is_left {
        ipv4::fill_checksum(&mut packet[..len]);
    }
    is_left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_begun_checksum_is_recognised_and_a_complete_one_is_not() {
        // UDP from 10.0.0.1 to 10.0.0.2 with three bytes of data; the pseudo header sums to 0a00+0001+0a00+0002+0011+000b.
        let mut frame =
            [&[2; 12][..], &[0x08, 0x00, 0x45, 0, 0, 31, 0, 1, 0, 0, 64, 17, 0x66, 0xcb, 10, 0, 0, 1]].concat();
        frame.extend([10, 0, 0, 2, 0x03, 0xe8, 0x07, 0xd0, 0, 11, 0x14, 0x1f, 0x6f, 0x6e, 0x65]);
        assert_eq!(begun_checksum(&frame), Some((34, 6)));
        complete_checksum(&mut frame, 34, 6).expect("inside");
        // What scapy computes for the same datagram.
        assert_eq!(frame[40..42], [0x0b, 0xaf]);
        assert_eq!(begun_checksum(&frame), None);
        assert_eq!(begun_checksum(&frame[..41]), None);
    }

    #[test]
    fn a_place_outside_the_frame_is_refused() {
        let mut frame = [0; 40];
        for (start, offset) in [(41, 0), (40, 0), (20, 19), (20, usize::MAX), (usize::MAX, 2)] {
            assert_eq!(complete_checksum(&mut frame, start, offset), Err(Error::Invalid(Field::Offload)));
        }
        assert_eq!(complete_checksum(&mut frame, 20, 18), Ok(()));
        assert_eq!(frame[38..], [0xff, 0xff]);
    }
}
