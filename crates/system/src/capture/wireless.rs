//! Frames of 802.11 as monitors capture them: those that carry a packet in clear become frames of
//! Ethernet, with the addresses that a bridge would give them (IEEE 802.11, 9.2 and 9.3).

use super::refusal::Refusal;

/// Bits of a frame's two control bytes.
const TYPE: u8 = 0x0c;
const DATA: u8 = 0x08;
const WITHOUT_DATA: u8 = 0x40;
const WITH_QUALITY: u8 = 0x80;
const TO_SYSTEM: u8 = 0x01;
const FROM_SYSTEM: u8 = 0x02;
const MORE_FRAGMENTS: u8 = 0x04;
const PROTECTED: u8 = 0x40;
const WITH_CONTROL: u8 = 0x80;
/// Several frames stand in one.
const AGGREGATED: u8 = 0x80;
/// 802.2 with SNAP and no organisation: an EtherType follows (RFC 1042).
const SNAP: [u8; 6] = [0xaa, 0xaa, 3, 0, 0, 0];
/// Radiotap: which value the flags are, and which of them say that a checksum or padding is there.
const TIMER_PRESENT: u32 = 1;
const FLAGS_PRESENT: u32 = 2;
const EXTENDED: u32 = 1 << 31;
const HAS_CHECKSUM: u8 = 0x10;
const HAS_PADDING: u8 = 0x20;
const CHECKSUM_LEN: usize = 4;

/// What follows the header that radiotap's own length ends, without the checksum behind it.
pub(super) fn behind_radiotap(bytes: &[u8]) -> Option<&[u8]> {
    let (head, _) = bytes.split_first_chunk::<8>()?;
    let len = usize::from(u16::from_le_bytes([head[2], head[3]]));
    let frame = bytes.get(len..)?;
    let flags = radiotap_flags(bytes.get(..len)?).unwrap_or(0);
    let end = if flags & HAS_CHECKSUM == 0 { frame.len() } else { frame.len().checked_sub(CHECKSUM_LEN)? };
    // Padding stands between header and body, where nobody looks for it.
    (flags & HAS_PADDING == 0).then(|| &frame[..end])
}

/// Flags stand behind all words that say what is present, and a timer of eight bytes, aligned.
fn radiotap_flags(header: &[u8]) -> Option<u8> {
    let word = |at: usize| header.get(at..)?.first_chunk().map(|word| u32::from_le_bytes(*word));
    let present = word(4)?;
    let mut at = 8;
    let mut last = present;
    while last & EXTENDED != 0 {
        last = word(at)?;
        at += 4;
    }
    if present & TIMER_PRESENT != 0 {
        at = at.next_multiple_of(8) + 8;
    }
    (present & FLAGS_PRESENT != 0).then(|| header.get(at).copied()).flatten()
}

/// Puts the packet of a data frame into `frame`, as Ethernet has it.
pub(super) fn read(bytes: &[u8], frame: &mut Vec<u8>) -> Result<(), Refusal> {
    let (&[kind, flags], _) = bytes.split_first_chunk::<2>().ok_or(Refusal::Link)?;
    if kind & TYPE != DATA || kind & WITHOUT_DATA != 0 {
        return Err(Refusal::NoPacket);
    }
    if flags & PROTECTED != 0 {
        return Err(Refusal::Encrypted);
    }
    let (len, destination, source) = header_of(kind, flags);
    let header = bytes.get(..len).ok_or(Refusal::Link)?;
    let is_part = flags & MORE_FRAGMENTS != 0 || header[22] & 0x0f != 0;
    let body = bytes[len..].strip_prefix(&SNAP).filter(|_| !is_part && !is_aggregated(kind, header, flags));
    let body = body.filter(|body| body.len() >= 2).ok_or(Refusal::Link)?;
    frame.extend_from_slice(&header[destination..destination + 6]);
    frame.extend_from_slice(&header[source..source + 6]);
    frame.extend_from_slice(body);
    Ok(())
}

/// How long the header is, and where destination and source stand in it.
fn header_of(kind: u8, flags: u8) -> (usize, usize, usize) {
    let (first, second, third, fourth) = (4, 10, 16, 24);
    let to_and_from = flags & (TO_SYSTEM | FROM_SYSTEM);
    let (destination, source) = match to_and_from {
        0 => (first, second),
        TO_SYSTEM => (third, second),
        FROM_SYSTEM => (first, third),
        _ => (third, fourth),
    };
    let addresses = if to_and_from == TO_SYSTEM | FROM_SYSTEM { 30 } else { 24 };
    let quality = if kind & WITH_QUALITY == 0 { 0 } else { 2 };
    let control = if quality > 0 && flags & WITH_CONTROL != 0 { 4 } else { 0 };
    (addresses + quality + control, destination, source)
}

fn is_aggregated(kind: u8, header: &[u8], flags: u8) -> bool {
    let at = if flags & (TO_SYSTEM | FROM_SYSTEM) == TO_SYSTEM | FROM_SYSTEM { 30 } else { 24 };
    kind & WITH_QUALITY != 0 && header.get(at).is_some_and(|quality| quality & AGGREGATED != 0)
}
