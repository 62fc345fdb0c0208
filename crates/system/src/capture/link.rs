//! Link headers that captures have in the place of Ethernet's, and frames made of them: what they
//! say of a packet is its type.

use wire::EtherType;

/// A frame's link header is written anew from here: no address, and the type of what follows.
const ADDRESSES: [u8; 12] = [0; 12];

/// How frames of an interface begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Ethernet,
    /// A packet of IP, as its first bits say.
    Raw,
    /// An address family in four bytes, of whatever order.
    Family,
    /// Linux's header of 16 or 20 bytes: where the EtherType stands, and how long it is.
    Cooked {
        ethertype: usize,
        len: usize,
    },
    /// Anything else, which holds no frame of Ethernet or no packet at all.
    Other,
}

impl Link {
    /// By the number of a capture file (tcpdump.org, link-layer header types).
    pub(super) fn of(link_type: i32) -> Link {
        match link_type {
            1 => Link::Ethernet,
            12 | 14 | 101 | 228 | 229 => Link::Raw,
            0 | 108 => Link::Family,
            113 => Link::Cooked { ethertype: 14, len: 16 },
            276 => Link::Cooked { ethertype: 0, len: 20 },
            _ => Link::Other,
        }
    }

    /// Puts the frame that `bytes` are into `frame`, as Ethernet has it; false if it cannot be one.
    pub(super) fn read(self, bytes: &[u8], frame: &mut Vec<u8>) -> bool {
        frame.clear();
        let found = match self {
            Link::Ethernet => {
                frame.extend_from_slice(bytes);
                return true;
            }
            Link::Raw => of_packet(bytes).zip(Some(bytes)),
            Link::Family => bytes.get(4..).and_then(|packet| of_packet(packet).zip(Some(packet))),
            Link::Cooked { ethertype, len } => cooked(bytes, ethertype, len),
            Link::Other => None,
        };
        let Some((ethertype, packet)) = found else { return false };
        frame.extend_from_slice(&ADDRESSES);
        frame.extend_from_slice(&ethertype.0.to_be_bytes());
        frame.extend_from_slice(packet);
        true
    }
}

fn cooked(bytes: &[u8], at: usize, len: usize) -> Option<(EtherType, &[u8])> {
    let ethertype = bytes.get(at..)?.first_chunk::<2>()?;
    Some((EtherType(u16::from_be_bytes(*ethertype)), bytes.get(len..)?))
}

fn of_packet(packet: &[u8]) -> Option<EtherType> {
    match packet.first()? >> 4 {
        4 => Some(EtherType::IPV4),
        6 => Some(EtherType::IPV6),
        _ => None,
    }
}
