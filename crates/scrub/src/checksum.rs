//! The checksum of a transport header: judged by what the port says of it, never repaired.

use bump::Checksum;
use wire::checksum::Sum;

/// Whether the checksum of `bytes`, which includes `pseudo_header`, is right. What a port calls complete was verified by
/// somebody trustworthy, and what it calls partial was never on a wire.
pub(crate) fn is_right(known: Checksum, pseudo_header: Sum, bytes: &[u8]) -> bool {
    match known {
        Checksum::Complete | Checksum::Partial { .. } => true,
        Checksum::Bad => false,
        Checksum::Unknown => pseudo_header.bytes(bytes).checksum() == 0,
    }
}

/// Writes the right checksum at `at` into `bytes`, whose checksum was right before they were changed.
pub(crate) fn fill(pseudo_header: Sum, bytes: &mut [u8], at: usize) {
    let Some(place) = bytes.get_mut(at..at + 2) else { return };
    place.fill(0);
    let checksum = pseudo_header.bytes(bytes).checksum();
    bytes[at..at + 2].copy_from_slice(&checksum.to_be_bytes());
}
