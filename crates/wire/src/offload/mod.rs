//! What cards and kernels do for speed, done by hand: [`segment`] cuts a super-frame into frames that fit the wire,
//! [`coalesce`] joins frames of one flow into a super-frame, [`complete_checksum`] finishes a checksum that was left to
//! the card.
//!
//! The metadata that says how to cut comes from the kernel, the headers from whoever made the frame; where they
//! contradict each other the frame is refused, and nothing here reads or writes outside it.

pub mod coalesce;
pub mod segment;

pub use coalesce::Run;
pub use segment::{Cut, Kind, Plan};

use crate::checksum::Sum;
use crate::{Error, Field, ethernet, ipv4, layer};

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

#[cfg(test)]
mod tests {
    use super::*;

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
