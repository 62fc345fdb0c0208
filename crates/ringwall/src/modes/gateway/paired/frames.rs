//! What the two gateways send on the segments: messages to each other, and frames by which switches
//! learn where a host is now.
//!
//! ```text
//! group (6) | source (6) | 0x88b6 (2) | kind (1) | length (2) | message
//! ```
//!
//! The EtherType is the second of those that IEEE 802 leaves to local use (802, 9.2.3). Nothing of
//! it ever passes a gateway of a pair.

use bump::VlanTag;
use wire::MacAddress;
use wire::ethernet::{HEADER_LEN, MIN_LEN};

/// A group of our own; switches flood it.
const GROUP: [u8; 6] = [0x03, 0x52, 0x57, 0x47, 0x00, 0x01];
const ETHERTYPE: [u8; 2] = [0x88, 0xb6];
const MESSAGE: u8 = 1;
const ANNOUNCEMENT: u8 = 2;
const HEAD_LEN: usize = HEADER_LEN + 3;

/// A frame with a message, from the card with the address `card`.
pub(super) fn of_message(card: MacAddress, message: &[u8]) -> Vec<u8> {
    let len = message.len() as u16;
    let mut frame = [&GROUP[..], &card.0, &ETHERTYPE, &[MESSAGE], &len.to_be_bytes(), message].concat();
    frame.resize(frame.len().max(MIN_LEN), 0);
    frame
}

/// A frame that seems to come from `station`.
pub(super) fn announcement(station: MacAddress, vlan: Option<VlanTag>) -> Vec<u8> {
    let mut frame = [&GROUP[..], &station.0].concat();
    if let Some(VlanTag { tpid, tci }) = vlan {
        frame.extend_from_slice(&tpid.to_be_bytes());
        frame.extend_from_slice(&tci.to_be_bytes());
    }
    frame.extend_from_slice(&ETHERTYPE);
    frame.extend_from_slice(&[ANNOUNCEMENT, 0, 0]);
    frame.resize(frame.len().max(MIN_LEN), 0);
    frame
}

/// What stands behind the header of a frame between gateways.
pub(super) fn content(frame: &[u8]) -> Option<&[u8]> {
    let ethertype = frame.get(12..HEADER_LEN)?;
    (ethertype == ETHERTYPE).then(|| &frame[HEADER_LEN..])
}

/// The message in it, if it carries one.
pub(super) fn message(content: &[u8]) -> Option<&[u8]> {
    let (head, rest) = content.split_first_chunk::<{ HEAD_LEN - HEADER_LEN }>()?;
    let len = usize::from(u16::from_be_bytes([head[1], head[2]]));
    (head[0] == MESSAGE).then(|| rest.get(..len).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CARD: MacAddress = MacAddress([2, 0, 0, 0, 0, 9]);

    #[test]
    fn a_message_comes_out_as_it_went_in_whatever_is_padded() {
        for len in [0, 1, 40, 60, 1400] {
            let sent = vec![7; len];
            let frame = of_message(CARD, &sent);
            assert!(frame.len() >= MIN_LEN);
            assert_eq!(message(content(&frame).expect("ours")), Some(&sent[..]));
        }
        let mut short = of_message(CARD, &[7; 100]);
        short.truncate(80);
        assert_eq!(message(content(&short).expect("ours")), Some(&[][..]), "it is refused as malformed");
    }

    #[test]
    fn an_announcement_is_ours_and_no_message() {
        let frame = announcement(CARD, None);
        assert_eq!(frame[6..12], CARD.0);
        assert_eq!(message(content(&frame).expect("ours")), None);
        let tagged = announcement(CARD, Some(VlanTag { tpid: 0x8100, tci: 7 }));
        assert_eq!(tagged[12..18], [0x81, 0, 0, 7, 0x88, 0xb6]);
        assert!(content(&[0; 13]).is_none() && content(&[0; 60]).is_none());
    }
}
