//! Cutting a super-frame into the frames it stands for, as the kernel's own software segmentation does.
//!
//! A [`Plan`] is made once per super-frame and checks everything; then each segment is written straight into an outgoing
//! buffer: the headers, patched, and its share of the payload. Transport checksums stay partial (the sum of the pseudo
//! header with that segment's length), because whoever sends next can still leave them to a card.
//!
//! The kernel describes a tunnelled super-frame by its *inner* transport header only. Such frames (VXLAN, Geneve, GRE,
//! IP in IP; one tunnel, not tunnels in tunnels) are recognised by a checksum start that is not the outer transport
//! header, and outer lengths, identifications and checksums are patched too.

#[path = "big.rs"]
mod big;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use super::{IP_PACKET_MAX_BYTES, SUPER_FRAME_MAX_BYTES};
use crate::checksum::{Sum, pseudo_header_v4, pseudo_header_v6};
use crate::layer::{self, protocol};
use crate::{Error, EtherType, Field, ipv4, ipv6, tcp, udp};
pub use big::{BIG_FRAME_MAX_BYTES, unfold};

/// Fewest payload bytes of a TCP segment: the kernel's own floor, a segment size of 48 less 40 bytes of options.
pub const TCP_SIZE_MIN_BYTES: u16 = 8;
/// Most frames one super-frame may stand for; with [`TCP_SIZE_MIN_BYTES`] only UDP could mean more.
pub const SEGMENTS_MAX: usize = IP_PACKET_MAX_BYTES / TCP_SIZE_MIN_BYTES as usize;

const CONTRADICTION: Error = Error::Invalid(Field::Offload);

/// Which headers are repeated in front of every piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// TCP over IPv4.
    TcpV4,
    /// TCP over IPv6.
    TcpV6,
    /// UDP datagrams of equal length, over either IP version.
    Udp,
}

impl Kind {
    fn protocol(self) -> u8 {
        if self == Kind::Udp { protocol::UDP } else { protocol::TCP }
    }

    pub(super) fn checksum_offset(self) -> usize {
        if self == Kind::Udp { udp::CHECKSUM } else { tcp::CHECKSUM }
    }
}

/// How a super-frame is to be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Which headers are repeated.
    pub kind: Kind,
    /// Payload bytes of each piece but the last.
    pub size: u16,
}

/// An IP header whose length field depends on the segment.
#[derive(Clone, Copy, Debug)]
enum Network {
    V4 { at: usize, header_len: usize, identification: u16, source: Ipv4Addr, destination: Ipv4Addr },
    V6 { at: usize, source: Ipv6Addr, destination: Ipv6Addr },
}

impl Network {
    /// The header at `at`, whose packet is to fill the frame exactly.
    fn read(frame: &[u8], ethertype: EtherType, at: usize) -> Result<Network, Error> {
        let packet = frame.get(at..).ok_or(CONTRADICTION)?;
        match ethertype {
            EtherType::IPV4 => Self::read_v4(packet, at),
            EtherType::IPV6 => Self::read_v6(packet, at),
            _ => Err(Error::Unsupported(Field::Offload)),
        }
    }

    fn read_v4(packet: &[u8], at: usize) -> Result<Network, Error> {
        let header = ipv4::View::new(packet)?;
        if usize::from(header.total_len()) != packet.len() || header.is_fragment() {
            return Err(CONTRADICTION);
        }
        Ok(Network::of_v4(&header, at))
    }

    fn of_v4(header: &ipv4::View<'_>, at: usize) -> Network {
        Network::V4 {
            at,
            header_len: header.header_len(),
            identification: header.identification(),
            source: header.source(),
            destination: header.destination(),
        }
    }

    fn read_v6(packet: &[u8], at: usize) -> Result<Network, Error> {
        let header = ipv6::View::new(packet)?;
        if usize::from(header.payload_len()) + ipv6::HEADER_LEN != packet.len() {
            return Err(CONTRADICTION);
        }
        Ok(Network::V6 { at, source: header.source(), destination: header.destination() })
    }

    /// Where it begins.
    fn at(&self) -> usize {
        let (Network::V4 { at, .. } | Network::V6 { at, .. }) = *self;
        at
    }

    /// Sum of the pseudo header of a transport segment of `len` bytes.
    fn pseudo_header(&self, protocol: u8, len: usize) -> Sum {
        // A plan admits no frame beyond SUPER_FRAME_MAX_BYTES, and every IP packet in it fits its 16-bit length field.
        match *self {
            Network::V4 { source, destination, .. } => pseudo_header_v4(source, destination, protocol, len as u16),
            Network::V6 { source, destination, .. } => pseudo_header_v6(source, destination, protocol, len as u32),
        }
    }

    /// Patches the header at the front of `headers` for segment `index` of a frame of `frame_len` bytes.
    fn patch(&self, headers: &mut [u8], index: usize, frame_len: usize) {
        match *self {
            Network::V4 { at, header_len, identification, .. } => {
                let header = &mut headers[at..at + header_len];
                put(header, ipv4::TOTAL_LENGTH, (frame_len - at) as u16);
                put(header, ipv4::IDENTIFICATION, identification.wrapping_add(index as u16));
                ipv4::fill_checksum(header);
            }
            Network::V6 { at, .. } => {
                put(headers, at + ipv6::PAYLOAD_LENGTH, (frame_len - at - ipv6::HEADER_LEN) as u16);
            }
        }
    }
}

/// The headers around the inner packet of a tunnelled super-frame.
#[derive(Clone, Copy, Debug)]
struct Tunnel {
    network: Network,
    udp: Option<OuterUdp>,
}

#[derive(Clone, Copy, Debug)]
struct OuterUdp {
    at: usize,
    has_checksum: bool,
}

/// Where the layers of a super-frame in a UDP tunnel are, in bytes from the first of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpTunnel {
    /// The outer UDP header.
    pub transport: usize,
    /// Whether it has a checksum.
    pub has_checksum: bool,
    /// Whether IPv6 stands in front of it.
    pub is_v6: bool,
    /// The inner IP header.
    pub inner_network: usize,
}

/// How one super-frame is cut. Holds offsets and addresses only; the frame is passed again to be written.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    kind: Kind,
    /// Payload bytes of each piece but the last.
    size: usize,
    /// How many segments such a piece stands for in turn.
    joined: usize,
    frame_len: usize,
    headers_len: usize,
    transport: usize,
    network: Network,
    tunnel: Option<Tunnel>,
}

impl Plan {
    /// Plans how to cut `frame` by `cut`. `transport` is the offset of the header to be repeated last, as the kernel
    /// names it by the start of the checksum; without it the frame is taken as not tunnelled.
    ///
    /// # Errors
    /// Headers and metadata contradict each other, or a header on the way is not known.
    pub fn new(frame: &[u8], transport: Option<usize>, cut: Cut) -> Result<Plan, Error> {
        if frame.len() > SUPER_FRAME_MAX_BYTES || cut.size == 0 {
            return Err(CONTRADICTION);
        }
        let (ethertype, at) = layer::network_layer(frame).ok_or(Error::Truncated(Field::Ethernet))?;
        let outer = Network::read(frame, ethertype, at)?;
        let (protocol, behind) = layer::transport_of(frame, ethertype, at).ok_or(CONTRADICTION)?;
        let transport = transport.unwrap_or(behind);
        let (network, tunnel) = if transport == behind {
            check_kind(cut.kind, protocol, &outer)?;
            (outer, None)
        } else {
            let inner = inner_network(frame, behind, transport, cut.kind)?;
            (inner, Some(Tunnel::read(frame, outer, protocol, behind, &inner, transport)?))
        };
        let headers_len = transport + transport_header_len(frame, transport, cut)?;
        let plan = Plan {
            kind: cut.kind,
            size: usize::from(cut.size),
            joined: 1,
            frame_len: frame.len(),
            headers_len,
            transport,
            network,
            tunnel,
        };
        if plan.segments() > SEGMENTS_MAX { Err(CONTRADICTION) } else { Ok(plan) }
    }

    /// How many frames it makes; at least one.
    #[must_use]
    pub fn segments(&self) -> usize {
        (self.frame_len - self.headers_len).div_ceil(self.size).max(1)
    }

    /// Bytes of headers in front of every piece.
    #[must_use]
    pub fn headers_len(&self) -> usize {
        self.headers_len
    }

    /// Whether an outer packet surrounds the one that is cut.
    #[must_use]
    pub fn is_tunnelled(&self) -> bool {
        self.tunnel.is_some()
    }

    /// The tunnel around the packet that is cut, if it is one in UDP.
    #[must_use]
    pub fn udp_tunnel(&self) -> Option<UdpTunnel> {
        let tunnel = self.tunnel?;
        let OuterUdp { at: transport, has_checksum } = tunnel.udp?;
        let is_v6 = matches!(tunnel.network, Network::V6 { .. });
        Some(UdpTunnel { transport, has_checksum, is_v6, inner_network: self.network.at() })
    }

    /// Writes the sums of pseudo headers into the checksums of `frame`, which somebody else will cut: those that the kernel counts
    /// on, the inner one and that of a tunnel in UDP. Whatever stood there would show in every piece.
    ///
    /// `None` when `frame` is not the one that was planned.
    pub fn begin_checksums(&self, frame: &mut [u8]) -> Option<()> {
        if frame.len() != self.frame_len {
            return None;
        }
        let begin = |frame: &mut [u8], network: &Network, protocol: u8, at: usize, offset: usize| {
            let sum = network.pseudo_header(protocol, frame.len() - at).fold();
            put(frame, at + offset, sum);
        };
        begin(frame, &self.network, self.kind.protocol(), self.transport, self.kind.checksum_offset());
        if let Some(Tunnel { network, udp: Some(OuterUdp { at, has_checksum: true }) }) = &self.tunnel {
            begin(frame, network, protocol::UDP, *at, udp::CHECKSUM);
        }
        Some(())
    }

    /// Where the partial checksum of every segment starts and, counted from there, is stored.
    #[must_use]
    pub fn checksum(&self) -> (usize, usize) {
        (self.transport, self.kind.checksum_offset())
    }

    /// The payload of segment `index` as a range of the super-frame.
    #[must_use]
    pub fn payload_range(&self, index: usize) -> Range<usize> {
        let start = self.size.saturating_mul(index).saturating_add(self.headers_len).min(self.frame_len);
        start..(start + self.size).min(self.frame_len)
    }

    /// Length of segment `index` in bytes, headers included.
    #[must_use]
    pub fn segment_len(&self, index: usize) -> usize {
        self.headers_len + self.payload_range(index).len()
    }

    /// Length of the longest segment in bytes, headers included.
    #[must_use]
    pub fn longest_segment(&self) -> usize {
        self.segment_len(0)
    }

    /// Writes segment `index` of `frame` to the front of `out` and returns its length.
    ///
    /// `None` when there is no such segment, `out` is too short, or `frame` is not the one that was planned.
    pub fn write(&self, frame: &[u8], index: usize, out: &mut [u8]) -> Option<usize> {
        let payload = self.payload_range(index);
        let len = self.headers_len + payload.len();
        let (headers, rest) = out.get_mut(..len)?.split_at_mut(self.headers_len);
        self.write_headers(frame, index, headers)?;
        rest.copy_from_slice(&frame[payload]);
        Some(len)
    }

    /// Writes only the headers of segment `index`, for who carries the payload elsewhere.
    ///
    /// `None` as in [`Plan::write`].
    pub fn write_headers(&self, frame: &[u8], index: usize, out: &mut [u8]) -> Option<()> {
        if frame.len() != self.frame_len || index >= self.segments() {
            return None;
        }
        self.fill(&frame[..self.headers_len], index, out)
    }

    /// Writes the headers of segment `index`, made of those of the whole.
    fn fill(&self, whole: &[u8], index: usize, out: &mut [u8]) -> Option<()> {
        let headers = out.get_mut(..self.headers_len)?;
        headers.copy_from_slice(whole.get(..self.headers_len)?);
        let frame_len = self.segment_len(index);
        self.network.patch(headers, index * self.joined, frame_len);
        let pseudo_header = self.network.pseudo_header(self.kind.protocol(), frame_len - self.transport).fold();
        let transport = &mut headers[self.transport..];
        if self.kind == Kind::Udp {
            put(transport, udp::LENGTH, (frame_len - self.transport) as u16);
        } else {
            self.patch_tcp(transport, index);
        }
        put(transport, self.kind.checksum_offset(), pseudo_header);
        if let Some(tunnel) = &self.tunnel {
            tunnel.patch(&mut headers[..self.transport], index, frame_len, pseudo_header);
        }
        Some(())
    }

    /// FIN and PSH belong to the last segment alone, CWR to the first alone (RFC 3168, section 6.1.2).
    fn patch_tcp(&self, header: &mut [u8], index: usize) {
        let skipped = index * self.size;
        let sequence = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let sequence = sequence.wrapping_add(skipped as u32);
        header[tcp::SEQUENCE..tcp::SEQUENCE + 4].copy_from_slice(&sequence.to_be_bytes());
        if index + 1 < self.segments() {
            header[tcp::FLAGS] &= !(tcp::flag::FIN | tcp::flag::PSH);
        }
        if index > 0 {
            header[tcp::FLAGS] &= !tcp::flag::CWR;
            patch_urgent(header, skipped);
        }
    }
}

/// The urgent pointer counts from the sequence number of its own segment; it ends with the segment that reaches it.
fn patch_urgent(header: &mut [u8], skipped: usize) {
    let pointer = u16::from_be_bytes([header[tcp::URGENT], header[tcp::URGENT + 1]]);
    // The stack writes ffff for "further away than can be said".
    if header[tcp::FLAGS] & tcp::flag::URG == 0 || pointer == u16::MAX {
        return;
    }
    let left = usize::from(pointer).saturating_sub(skipped);
    if left == 0 {
        header[tcp::FLAGS] &= !tcp::flag::URG;
    }
    put(header, tcp::URGENT, left as u16);
}

impl Tunnel {
    /// The tunnel between an outer packet, whose payload begins at `behind`, and the inner packet.
    fn read(
        frame: &[u8],
        network: Network,
        protocol: u8,
        behind: usize,
        inner: &Network,
        transport: usize,
    ) -> Result<Tunnel, Error> {
        let inner_at = inner.at();
        let mut udp = None;
        match protocol {
            protocol::IPV4 | protocol::IPV6 if inner_at == behind => {}
            // A GRE checksum covers the payload and a sequence number counts packets (RFC 2890): no kernel hands over a
            // super-frame with either.
            protocol::GRE if inner_at >= behind + 4 && frame[behind] & 0x90 == 0 => {}
            protocol::UDP if inner_at >= behind + udp::HEADER_LEN && (transport - behind).is_multiple_of(2) => {
                let has_checksum = udp::View::new(&frame[behind..])?.checksum() != 0;
                udp = Some(OuterUdp { at: behind, has_checksum });
            }
            _ => return Err(Error::Unsupported(Field::Offload)),
        }
        Ok(Tunnel { network, udp })
    }

    /// Patches the outer headers. `headers` end where the inner transport header begins, whose checksum field holds
    /// `inner_partial`.
    fn patch(&self, headers: &mut [u8], index: usize, frame_len: usize, inner_partial: u16) {
        self.network.patch(headers, index, frame_len);
        let Some(OuterUdp { at, has_checksum }) = self.udp else { return };
        let len = frame_len - at;
        put(headers, at + udp::LENGTH, len as u16);
        if !has_checksum {
            return;
        }
        // Local checksum offload: once the inner checksum is completed, everything from the inner transport header on
        // sums to the complement of the inner pseudo header, so the outer checksum needs no payload.
        put(headers, at + udp::CHECKSUM, 0);
        let sum = self.network.pseudo_header(protocol::UDP, len).bytes(&headers[at..]).word(!inner_partial);
        let checksum = sum.checksum();
        put(headers, at + udp::CHECKSUM, if checksum == 0 { u16::MAX } else { checksum });
    }
}

/// Whether kind, protocol and IP version tell the same story.
fn check_kind(kind: Kind, protocol: u8, network: &Network) -> Result<(), Error> {
    let version_fits = match kind {
        Kind::TcpV4 => matches!(network, Network::V4 { .. }),
        Kind::TcpV6 => matches!(network, Network::V6 { .. }),
        Kind::Udp => true,
    };
    if version_fits && protocol == kind.protocol() { Ok(()) } else { Err(CONTRADICTION) }
}

/// The IP header of a tunnelled packet, found backwards from its transport header: whatever encapsulation stands in
/// front, an IP header must end there, name the protocol, and its packet must fill the frame.
fn inner_network(frame: &[u8], behind: usize, transport: usize, kind: Kind) -> Result<Network, Error> {
    let try_at = |header_len: usize, ethertype: EtherType| -> Option<Network> {
        let at = transport.checked_sub(header_len).filter(|&at| at >= behind)?;
        let network = Network::read(frame, ethertype, at).ok()?;
        let (protocol, ends) = layer::transport_of(frame, ethertype, at)?;
        (ends == transport && check_kind(kind, protocol, &network).is_ok()).then_some(network)
    };
    let mut v4 = (ipv4::HEADER_LEN..=60).step_by(4).map(|header_len| (header_len, EtherType::IPV4));
    v4.find_map(|(header_len, ethertype)| try_at(header_len, ethertype))
        .or_else(|| try_at(ipv6::HEADER_LEN, EtherType::IPV6))
        .ok_or(CONTRADICTION)
}

/// Length of the transport header at `transport`.
fn transport_header_len(frame: &[u8], transport: usize, cut: Cut) -> Result<usize, Error> {
    let segment = frame.get(transport..).ok_or(CONTRADICTION)?;
    match cut.kind {
        Kind::Udp => udp::View::new(segment).map(|_| udp::HEADER_LEN),
        Kind::TcpV4 | Kind::TcpV6 if cut.size < TCP_SIZE_MIN_BYTES => Err(CONTRADICTION),
        Kind::TcpV4 | Kind::TcpV6 => {
            let header = tcp::View::new(segment)?;
            if header.flags() & (tcp::flag::SYN | tcp::flag::RST) != 0 {
                return Err(CONTRADICTION);
            }
            Ok(header.header_len())
        }
    }
}

pub(super) fn put(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

#[cfg(test)]
#[path = "segment_tests.rs"]
mod tests;
