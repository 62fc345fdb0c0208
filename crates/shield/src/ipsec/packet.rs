//! Where a frame has its SPI, if it is IPsec at all: ESP in UDP (RFC 3948), raw ESP (RFC 4303), AH
//! (RFC 4302), and what comes with them. Of several headers of IPsec the outermost counts, which
//! the stack looks up first.
//!
//! Nothing here is trusted: every offset lies inside the frame, and what could be read in two ways is unreadable.

use std::net::IpAddr;

use wire::layer::{self, protocol};
use wire::{EtherType, ipv4, ipv6, udp};

use super::limits::HEADERS_MAX;

/// The UDP port of IKE (RFC 7296, section 2).
pub const IKE_PORT: u16 = 500;
/// The UDP port of IKE and ESP once there may be a translator on the way (RFC 3948).
pub const NAT_TRAVERSAL_PORT: u16 = 4500;
/// Number of the protocol ESP.
pub const ESP: u8 = 50;
/// Number of the protocol AH, which IPv6 has as an extension header.
const AH: u8 = 51;

const KEEPALIVE: [u8; 1] = [0xff];
const NON_ESP_MARKER: [u8; 4] = [0; 4];
/// SPI and sequence number, without which there is neither ESP nor AH.
const ESP_HEADER_LEN: usize = 8;
/// What stands in front of them in AH: next header, length, and two bytes of zeros (RFC 4302,
/// section 2).
const AH_FRONT_LEN: usize = 4;

// IPv6 extension headers that stand in front of IPsec or UDP (IANA, protocol numbers).
const FRAGMENT: u8 = 44;
const OPTIONS_LIKE: [u8; 6] = [0, 43, 60, 135, 139, 140];

/// Where the header of ESP or AH is in a frame, in bytes from its first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EspPlace {
    /// Of the SPI; the sequence number follows it.
    pub spi: usize,
    /// Of the checksum of the UDP header in front, if there is one.
    pub checksum: Option<usize>,
}

/// Where a message of IKE is in a frame, in bytes from its first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IkePlace {
    /// Of the header's first byte, behind the marker if there is one.
    pub start: usize,
    /// Behind the last byte.
    pub end: usize,
}

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// ESP, or AH, which has the same two fields.
    Esp(EspPlace),
    /// IKE, on its own port or behind the marker.
    Ike(IkePlace),
    /// The single byte that keeps a translator's entry alive.
    Keepalive,
    /// A later fragment of UDP, ESP or AH, which does not say what it belongs to.
    LaterFragment,
    /// It goes to IPsec and no IPsec can be read in it.
    Unreadable,
    /// Something else.
    Other,
}

/// An IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// From whom, as it says.
    pub source: IpAddr,
    /// To whom.
    pub destination: IpAddr,
    /// What it is.
    pub content: Content,
}

/// What the layer below says about a payload.
#[derive(Clone, Copy)]
struct Carried {
    protocol: u8,
    start: usize,
    /// Behind the payload's last byte.
    end: usize,
    /// Whether the rest of it is in other fragments.
    is_first_fragment: bool,
}

/// Reads `frame`; `None` where it is not IP.
#[must_use]
pub fn find(frame: &[u8]) -> Option<Found> {
    let (ethertype, start) = layer::network_layer(frame)?;
    match ethertype {
        EtherType::IPV4 => find_v4(frame, start),
        EtherType::IPV6 => find_v6(frame, start),
        _ => None,
    }
}

fn find_v4(frame: &[u8], start: usize) -> Option<Found> {
    let header = ipv4::View::new(&frame[start..]).ok()?;
    let carried = Carried {
        protocol: header.protocol(),
        start: start + header.header_len(),
        end: frame.len().min(start + usize::from(header.total_len())),
        is_first_fragment: header.more_fragments(),
    };
    let is_later = header.fragment_offset() != 0;
    let content = if is_later { later_fragment(carried.protocol) } else { content(frame, carried) };
    Some(Found { source: header.source().into(), destination: header.destination().into(), content })
}

fn find_v6(frame: &[u8], start: usize) -> Option<Found> {
    let header = ipv6::View::new(&frame[start..]).ok()?;
    let behind = start + ipv6::HEADER_LEN;
    let end = frame.len().min(behind + usize::from(header.payload_len()));
    let first = Carried { protocol: header.next_header(), start: behind, end, is_first_fragment: false };
    let content = past_headers(frame, first).unwrap_or(Content::Unreadable);
    Some(Found { source: header.source().into(), destination: header.destination().into(), content })
}

/// Follows IPv6 extension headers; `None` if they are too many or cut short, so that nobody can say what is behind them.
fn past_headers(frame: &[u8], mut carried: Carried) -> Option<Content> {
    for _ in 0..=HEADERS_MAX {
        let rest = frame.get(carried.start..carried.end)?;
        let units = |at: usize| Some(usize::from(*rest.get(at)?));
        let len = match carried.protocol {
            FRAGMENT => {
                let head = rest.get(..8)?;
                if u16::from_be_bytes([head[2], head[3]]) & 0xfff8 != 0 {
                    return Some(later_fragment_v6(head[0]));
                }
                carried.is_first_fragment |= head[3] & 1 != 0;
                8
            }
            other if OPTIONS_LIKE.contains(&other) => (units(1)? + 1) * 8,
            _ => return Some(content(frame, carried)),
        };
        carried.protocol = *rest.first()?;
        carried.start += len;
    }
    None
}

fn later_fragment(protocol: u8) -> Content {
    if matches!(protocol, protocol::UDP | ESP | AH) { Content::LaterFragment } else { Content::Other }
}

/// Behind further headers there may be anything.
fn later_fragment_v6(next: u8) -> Content {
    if OPTIONS_LIKE.contains(&next) { Content::LaterFragment } else { later_fragment(next) }
}

fn content(frame: &[u8], carried: Carried) -> Content {
    match carried.protocol {
        ESP => esp(carried.start, carried.end, None),
        AH => esp(carried.start + AH_FRONT_LEN, carried.end, None),
        protocol::UDP => in_udp(frame, carried).unwrap_or(Content::Unreadable),
        _ => Content::Other,
    }
}

fn esp(spi: usize, end: usize, checksum: Option<usize>) -> Content {
    if spi + ESP_HEADER_LEN > end { Content::Unreadable } else { Content::Esp(EspPlace { spi, checksum }) }
}

/// What a datagram is; `None` if its length contradicts the packet. A datagram that is too short for ports goes nowhere, so it is
/// unreadable whatever it was to be.
fn in_udp(frame: &[u8], carried: Carried) -> Option<Content> {
    let header = udp::View::new(frame.get(carried.start..carried.end)?).ok()?;
    let ports = [header.source_port(), header.destination_port()];
    let (start, said) = (carried.start + udp::HEADER_LEN, carried.start + usize::from(header.length()));
    if !ports.contains(&NAT_TRAVERSAL_PORT) {
        let place = IkePlace { start, end: said.clamp(start, carried.end) };
        return Some(if ports.contains(&IKE_PORT) { Content::Ike(place) } else { Content::Other });
    }
    let end = if carried.is_first_fragment { said.min(carried.end) } else { said };
    if end > carried.end {
        return None;
    }
    let payload = frame.get(start..end)?;
    Some(match payload {
        payload if payload == KEEPALIVE => Content::Keepalive,
        payload if payload.starts_with(&NON_ESP_MARKER) => {
            Content::Ike(IkePlace { start: start + NON_ESP_MARKER.len(), end })
        }
        _ => esp(start, end, Some(carried.start + udp::CHECKSUM)),
    })
}
