//! Link headers that captures have in the place of Ethernet's, and frames made of them: what they
//! say of a packet is its type.

use wire::EtherType;

use super::refusal::Refusal;
use super::wireless;

/// A frame's link header is written anew from here: no address, and the type of what follows.
const ADDRESSES: [u8; 12] = [0; 12];
/// Headers around headers that are read, such as PPI around radiotap.
const NESTED_MAX: u32 = 2;

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
    /// A header that says no more than the first bits of the packet: how long it is.
    Before(usize),
    /// PPP, with the address and control field of HDLC or without.
    PointToPoint,
    /// A frame of 802.11.
    Wireless,
    /// A header of its own length, and a frame of 802.11.
    Radiotap,
    /// A header with its own length and the link type of what follows.
    PerPacket,
    /// What a packet filter logged behind a header of its own length.
    FilterLog,
    /// What Linux's packet filter logged, as one of several values.
    NetfilterLog,
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
            // Cisco's HDLC: address, control, EtherType.
            104 => Link::Cooked { ethertype: 2, len: 4 },
            109 => Link::Before(12),
            9 | 50 => Link::PointToPoint,
            105 => Link::Wireless,
            127 => Link::Radiotap,
            192 => Link::PerPacket,
            117 => Link::FilterLog,
            239 => Link::NetfilterLog,
            _ => Link::Other,
        }
    }

    /// Puts the frame that `bytes` are into `frame`, as Ethernet has it.
    pub(super) fn read(self, bytes: &[u8], frame: &mut Vec<u8>) -> Result<(), Refusal> {
        frame.clear();
        self.read_within(bytes, frame, NESTED_MAX)
    }

    fn read_within(self, bytes: &[u8], frame: &mut Vec<u8>, nested: u32) -> Result<(), Refusal> {
        let found = match self {
            Link::Ethernet => {
                frame.extend_from_slice(bytes);
                return Ok(());
            }
            Link::Raw => of_packet(bytes).zip(Some(bytes)),
            Link::Family => behind(bytes, 4),
            Link::Before(len) => behind(bytes, len),
            Link::Cooked { ethertype, len } => cooked(bytes, ethertype, len),
            Link::PointToPoint => {
                point_to_point(bytes)?.write(frame);
                return Ok(());
            }
            Link::Wireless => return wireless::read(bytes, frame),
            Link::Radiotap => return wireless::read(wireless::behind_radiotap(bytes).ok_or(Refusal::Link)?, frame),
            Link::PerPacket => {
                let (inner, rest) = per_packet(bytes).filter(|_| nested > 0).ok_or(Refusal::Link)?;
                return inner.read_within(rest, frame, nested - 1);
            }
            // The first byte says the length, which is filled up to whole words.
            Link::FilterLog => bytes.first().and_then(|len| behind(bytes, usize::from(*len).next_multiple_of(4))),
            Link::NetfilterLog => logged(bytes).and_then(|packet| behind(packet, 0)),
            Link::Other => None,
        };
        let (ethertype, packet) = found.ok_or(Refusal::Link)?;
        Typed { ethertype, packet }.write(frame);
        Ok(())
    }
}

/// A packet and what it is.
struct Typed<'a> {
    ethertype: EtherType,
    packet: &'a [u8],
}

impl Typed<'_> {
    fn write(&self, frame: &mut Vec<u8>) {
        frame.extend_from_slice(&ADDRESSES);
        frame.extend_from_slice(&self.ethertype.0.to_be_bytes());
        frame.extend_from_slice(self.packet);
    }
}

fn cooked(bytes: &[u8], at: usize, len: usize) -> Option<(EtherType, &[u8])> {
    let ethertype = bytes.get(at..)?.first_chunk::<2>()?;
    Some((EtherType(u16::from_be_bytes(*ethertype)), bytes.get(len..)?))
}

/// The packet behind a header of `len` bytes.
fn behind(bytes: &[u8], len: usize) -> Option<(EtherType, &[u8])> {
    let packet = bytes.get(len..)?;
    of_packet(packet).zip(Some(packet))
}

fn of_packet(packet: &[u8]) -> Option<EtherType> {
    match packet.first()? >> 4 {
        4 => Some(EtherType::IPV4),
        6 => Some(EtherType::IPV6),
        _ => None,
    }
}

/// RFC 1661 and RFC 1662: the protocol in one byte if it is odd, in two otherwise.
fn point_to_point(bytes: &[u8]) -> Result<Typed<'_>, Refusal> {
    let bytes = bytes.strip_prefix(&[0xff, 0x03]).unwrap_or(bytes);
    let (protocol, packet) = match bytes {
        [short, packet @ ..] if short & 1 == 1 => (u16::from(*short), packet),
        [high, low, packet @ ..] => (u16::from(*high) << 8 | u16::from(*low), packet),
        _ => return Err(Refusal::Link),
    };
    match protocol {
        0x21 => Ok(Typed { ethertype: EtherType::IPV4, packet }),
        0x57 => Ok(Typed { ethertype: EtherType::IPV6, packet }),
        // Encrypted packets (RFC 1968), and everything that opens and watches the link.
        0x53 | 0x55 => Err(Refusal::Encrypted),
        0x8000.. => Err(Refusal::NoPacket),
        _ => Err(Refusal::Link),
    }
}

/// PPI: version, flags, length, and the link type of what follows, little-endian.
fn per_packet(bytes: &[u8]) -> Option<(Link, &[u8])> {
    let (head, _) = bytes.split_first_chunk::<8>()?;
    let len = usize::from(u16::from_le_bytes([head[2], head[3]]));
    let link_type = i32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    Some((Link::of(link_type), bytes.get(len.max(8)..)?))
}

/// NFLOG: four bytes, then values with length and type in the order of the machine that logged.
fn logged(bytes: &[u8]) -> Option<&[u8]> {
    const PAYLOAD: u16 = 9;
    let mut rest = bytes.get(4..)?;
    loop {
        let (head, _) = rest.split_first_chunk::<4>()?;
        let [len, kind] = [[head[0], head[1]], [head[2], head[3]]];
        // Types are small numbers, so the order shows.
        let is_little = kind[1] & 0x7f == 0;
        let read = |bytes| if is_little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) };
        let (len, kind) = (usize::from(read(len)), read(kind) & 0x7fff);
        let value = rest.get(4..len.max(4))?;
        if kind == PAYLOAD {
            return Some(value);
        }
        rest = rest.get(len.max(4).next_multiple_of(4)..)?;
    }
}
