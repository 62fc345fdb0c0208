//! Frames longer than a length field can say, as Linux makes them of TCP where an administrator
//! lets it ("BIG TCP"): the header says zero, and in IPv6 an option says the length (RFC 2675).
//! They never stand on a wire. Here they become super-frames of the usual size.

use std::ops::Range;

use super::{CONTRADICTION, Cut, Network, Plan, TCP_SIZE_MIN_BYTES, check_kind, transport_header_len};
use crate::layer::{self, protocol};
use crate::offload::IP_PACKET_MAX_BYTES;
use crate::{Error, EtherType, Field, ipv4, ipv6};

/// Longest of them, in bytes: the longest packet that Linux joins, and the longest link header.
pub const BIG_FRAME_MAX_BYTES: usize = 8 * 65_536 + 64;
/// The header with the length: next header, no further words, an option of four bytes.
const JUMBO_LEN: usize = 8;
const JUMBO: [u8; 3] = [0, 0xc2, 4];
const NEXT_HEADER: usize = 6;

/// Takes the header with the length out of a frame that is longer than its packet can say; from
/// where on it is to be read then. `None` if it is no such frame.
pub fn unfold(frame: &mut [u8]) -> Option<usize> {
    let (ethertype, at) = layer::network_layer(frame)?;
    let packet = frame.get_mut(at..)?;
    if packet.len() <= IP_PACKET_MAX_BYTES {
        return None;
    }
    match ethertype {
        EtherType::IPV4 if ipv4::View::new(packet).is_ok_and(|header| header.total_len() == 0) => Some(0),
        EtherType::IPV6 if ipv6::View::new(packet).is_ok_and(|header| header.payload_len() == 0) => {
            if packet[NEXT_HEADER] == protocol::TCP {
                return Some(0);
            }
            let [next_header, said @ ..] = *packet.get(ipv6::HEADER_LEN..)?.first_chunk::<JUMBO_LEN>()?;
            let len = u32::from_be_bytes([said[3], said[4], said[5], said[6]]) as usize;
            let is_jumbo = packet[NEXT_HEADER] == 0 && said[..3] == JUMBO && len == packet.len() - ipv6::HEADER_LEN;
            if !is_jumbo {
                return None;
            }
            packet[NEXT_HEADER] = next_header;
            frame.copy_within(..at + ipv6::HEADER_LEN, JUMBO_LEN);
            Some(JUMBO_LEN)
        }
        _ => None,
    }
}

impl Plan {
    /// Plans how to cut a frame that was [unfolded](unfold) into super-frames, each of which stands
    /// for as many segments of `cut` as have room in a packet.
    ///
    /// # Errors
    /// As [`Plan::new`]; what is tunnelled is not known.
    pub fn big(frame: &[u8], cut: Cut) -> Result<Plan, Error> {
        if frame.len() > BIG_FRAME_MAX_BYTES || cut.size < TCP_SIZE_MIN_BYTES {
            return Err(CONTRADICTION);
        }
        let (ethertype, at) = layer::network_layer(frame).ok_or(Error::Truncated(Field::Ethernet))?;
        let network = read(frame, ethertype, at)?;
        let (protocol, transport) = layer::transport_of(frame, ethertype, at).ok_or(CONTRADICTION)?;
        if protocol != protocol::TCP {
            return Err(Error::Unsupported(Field::Offload));
        }
        check_kind(cut.kind, protocol, &network)?;
        let headers_len = transport + transport_header_len(frame, transport, cut)?;
        let room = IP_PACKET_MAX_BYTES.checked_sub(headers_len - at).ok_or(CONTRADICTION)?;
        let joined = room / usize::from(cut.size);
        let size = joined * usize::from(cut.size);
        if joined == 0 {
            return Err(CONTRADICTION);
        }
        Ok(Plan { kind: cut.kind, size, joined, frame_len: frame.len(), headers_len, transport, network, tunnel: None })
    }

    /// Has piece `index` stand by itself, from one piece to the next: its headers, made of
    /// `headers` as they were, take the place of what the piece before ended with. Where it stands.
    ///
    /// `None` when there is no such piece, or `frame` is not the one that was planned.
    pub fn place(&self, headers: &[u8], index: usize, frame: &mut [u8]) -> Option<Range<usize>> {
        if frame.len() != self.frame_len || index >= self.segments() {
            return None;
        }
        let payload = self.payload_range(index);
        let start = payload.start - self.headers_len;
        self.fill(headers, index, &mut frame[start..payload.start])?;
        Some(start..payload.end)
    }
}

/// As [`Network::read`], of a packet whose length field says nothing.
fn read(frame: &[u8], ethertype: EtherType, at: usize) -> Result<Network, Error> {
    let packet = frame.get(at..).ok_or(CONTRADICTION)?;
    match ethertype {
        EtherType::IPV4 => {
            let header = ipv4::View::new(packet)?;
            if header.total_len() != 0 || header.is_fragment() {
                return Err(CONTRADICTION);
            }
            Ok(Network::of_v4(&header, at))
        }
        EtherType::IPV6 => {
            let header = ipv6::View::new(packet)?;
            if header.payload_len() != 0 {
                return Err(CONTRADICTION);
            }
            Ok(Network::V6 { at, source: header.source(), destination: header.destination() })
        }
        _ => Err(Error::Unsupported(Field::Offload)),
    }
}
