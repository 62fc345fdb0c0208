//! Frames of all kinds made out of choices: good ones of conversations that go on, bad ones, and changed copies of earlier ones.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bump::{Checksum, Gso, GsoKind, Meta, Side, VlanTag};
use wire::checksum::{pseudo_header_v4, pseudo_header_v6};
use wire::layer::protocol::{TCP, UDP};
use wire::offload::complete_checksum;
use wire::{ipv4, layer, tcp};

use super::choices::Choices;

const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
const ETHERNET_LEN: usize = 14;
const PORTS: [u16; 3] = [80, 1000, 1001];
/// Earlier frames that may be sent again.
const REMEMBERED_MAX: usize = 16;

/// A flow in one direction, as it looks on one side of the gateway: addresses, then ports.
type Flow = (IpAddr, IpAddr, u16, u16);

/// What the hosts of both sides know of each other.
#[derive(Debug, Default)]
pub(crate) struct World {
    /// Where each host goes on, by what it sends.
    next: HashMap<(Side, Flow), u32>,
    /// Up to where each host has heard the other, by what it would send.
    heard: HashMap<(Side, Flow), u32>,
    earlier: Vec<(Side, Vec<u8>, Meta)>,
    /// Ports say of frames what is not so.
    ports_lie: bool,
}

/// One frame on its way in.
pub(crate) type Incoming = (Side, Vec<u8>, Meta);

impl World {
    /// A world whose ports say anything of a frame.
    pub(crate) fn of_lying_ports() -> World {
        World { ports_lie: true, ..World::default() }
    }

    /// The next frame.
    pub(crate) fn frame(&mut self, choices: &mut Choices<'_>) -> Vec<Incoming> {
        let from = choices.of(&[Side::UNTRUSTED, Side::TRUSTED, Side::UNTRUSTED]);
        let frames = match choices.below(16) {
            0 => {
                let (frame, meta) = (raw(choices), meta(choices));
                vec![(from, frame, if self.ports_lie { meta } else { Meta::plain() })]
            }
            1 | 2 => self.again(choices).into_iter().collect(),
            3 => self.handshake(choices),
            4 | 5 => self.in_fragments(from, choices),
            6 => vec![self.tagged(from, choices)],
            7 => vec![self.super_frame(from, choices)],
            _ => vec![self.plain(from, choices)],
        };
        for frame in &frames {
            self.remember(frame.clone(), choices);
        }
        frames
    }

    /// Has the host on `side` hear a frame that left towards it.
    pub(crate) fn hear(&mut self, side: Side, frame: &[u8]) {
        let Some((flow, segment)) = segment(frame) else { return };
        let Ok(header) = tcp::View::new(segment) else { return };
        let len = header.payload().len() as u32 + u32::from(header.flags() & (tcp::flag::SYN | tcp::flag::FIN) != 0);
        let (source, destination, from, to) = flow;
        self.heard.insert((side, (destination, source, to, from)), header.sequence().wrapping_add(len));
    }

    fn remember(&mut self, frame: Incoming, choices: &mut Choices<'_>) {
        if self.earlier.len() < REMEMBERED_MAX {
            self.earlier.push(frame);
        } else {
            let place = choices.below(REMEMBERED_MAX);
            self.earlier[place] = frame;
        }
    }

    /// An earlier frame, as it was or with some bytes changed; its checksums may be right all the same.
    fn again(&self, choices: &mut Choices<'_>) -> Option<Incoming> {
        let at = choices.below(self.earlier.len().max(1));
        let (from, mut frame, meta) = self.earlier.get(at)?.clone();
        if !self.ports_lie && (meta.gso.is_some() || matches!(meta.checksum, Checksum::Partial { .. })) {
            // What a card began and somebody changed afterwards no port would hand over.
            return Some((from, frame, meta));
        }
        for _ in 0..choices.below(4) {
            let place = usize::from(choices.word()) % frame.len().max(1);
            if let Some(byte) = frame.get_mut(place) {
                *byte = choices.byte();
            }
        }
        if choices.once_in(4) {
            frame.truncate(usize::from(choices.word()) % (frame.len() + 1));
        }
        if choices.once_in(2) {
            make_right(&mut frame);
        }
        Some((from, frame, meta))
    }

    /// A whole handshake, as far as the hosts know each other's numbers by now: the driver passes the frames on one by one, so
    /// each host answers what it has heard.
    fn handshake(&mut self, choices: &mut Choices<'_>) -> Vec<Incoming> {
        let (client, server) = (host(Side::UNTRUSTED, choices.byte() & 1), host(Side::TRUSTED, choices.byte() & 1));
        let (client_port, server_port) = (choices.of(&PORTS[1..]), PORTS[0]);
        let flow = (client, server, client_port, server_port);
        let segment = match choices.below(3) {
            0 => Segment { flags: tcp::flag::SYN, ..self.next_segment(Side::UNTRUSTED, flow) },
            1 => {
                let back = (server, client, server_port, client_port);
                let segment =
                    Segment { flags: tcp::flag::SYN | tcp::flag::ACK, ..self.next_segment(Side::TRUSTED, back) };
                return vec![self.send(Side::TRUSTED, back, &segment)];
            }
            _ => Segment { flags: tcp::flag::ACK, ..self.next_segment(Side::UNTRUSTED, flow) },
        };
        vec![self.send(Side::UNTRUSTED, flow, &segment)]
    }

    fn next_segment(&self, from: Side, flow: Flow) -> Segment {
        let sequence = self.next.get(&(from, flow)).copied().unwrap_or(1_000_000);
        let acknowledgement = self.heard.get(&(from, flow)).copied().unwrap_or(0);
        Segment {
            sequence,
            acknowledgement,
            flags: tcp::flag::ACK,
            window: 5000,
            urgent: 0,
            options: Vec::new(),
            data: Vec::new(),
        }
    }

    fn send(&mut self, from: Side, flow: Flow, segment: &Segment) -> Incoming {
        let len = segment.data.len() as u32 + u32::from(segment.flags & (tcp::flag::SYN | tcp::flag::FIN) != 0);
        self.next.insert((from, flow), segment.sequence.wrapping_add(len));
        (from, packet(from, flow.0, flow.1, TCP, &segment.bytes(flow)), Meta::plain())
    }

    /// A segment that goes on, repeats, overlaps or makes no sense.
    fn segment(&mut self, from: Side, choices: &mut Choices<'_>) -> Incoming {
        let version = choices.below(4) / 3 * 2;
        let (here, there) =
            (host(from, choices.byte() & 1 | version as u8), host(from.other(), choices.byte() & 1 | version as u8));
        let is_client = from == Side::UNTRUSTED;
        let client_port = choices.of(&PORTS[1..]);
        let flow = if is_client { (here, there, client_port, PORTS[0]) } else { (here, there, PORTS[0], client_port) };
        let mut segment = self.next_segment(from, flow);
        segment.flags =
            choices.of(&[0x10, 0x10, 0x18, 0x18, 0x11, 0x02, 0x12, 0x04, 0x14, 0x00, 0x29, 0x30, 0xff, 0xd0]);
        segment.sequence =
            segment.sequence.wrapping_add_signed(choices.of(&[0, 0, 0, -3, -10, 5, 20, -1, i32::MIN, 70_000]));
        segment.acknowledgement = segment.acknowledgement.wrapping_add_signed(choices.of(&[0, 0, 0, -2, 7, i32::MAX]));
        segment.window = choices.of(&[5000, 5000, 0, 10, u16::MAX]);
        segment.urgent = choices.of(&[0, 0, 0, 1, 300]);
        segment.options = options(choices);
        let len = choices.of(&[0, 4, 4, 8, 20, 1, 40]);
        segment.data = vec![choices.byte(); len];
        self.send(from, flow, &segment)
    }

    fn plain(&mut self, from: Side, choices: &mut Choices<'_>) -> Incoming {
        let (_, mut frame, mut meta) = match choices.below(8) {
            0 => (from, arp(from), Meta::plain()),
            1 | 2 => datagram(from, choices),
            3 | 4 => message(from, choices),
            _ => self.segment(from, choices),
        };
        if choices.once_in(8) {
            mar(&mut frame, choices);
        }
        if choices.once_in(4)
            && ends_with_its_packet(&frame)
            && let Some((start, offset)) = layer::transport_checksum(&frame)
            && begin_checksum(&mut frame, start, offset)
        {
            meta.checksum = Checksum::Partial { start: start as u16, offset: offset as u16 };
        }
        (from, frame, meta)
    }

    fn tagged(&mut self, from: Side, choices: &mut Choices<'_>) -> Incoming {
        let (_, mut frame, mut meta) = self.plain(from, choices);
        let tci = choices.word();
        if choices.once_in(2) || meta.checksum != Checksum::Unknown || frame.len() < ETHERNET_LEN {
            meta.vlan = Some(VlanTag { tpid: 0x8100, tci });
        } else {
            let [high, low] = tci.to_be_bytes();
            frame.splice(12..12, [0x81, 0x00, high, low]);
        }
        (from, frame, meta)
    }

    /// Data of several segments in one frame.
    fn super_frame(&mut self, from: Side, choices: &mut Choices<'_>) -> Incoming {
        let is_client = from == Side::UNTRUSTED;
        let (here, there) = (host(from, 0), host(from.other(), 0));
        let flow = if is_client { (here, there, PORTS[1], PORTS[0]) } else { (here, there, PORTS[0], PORTS[1]) };
        let mut segment = self.next_segment(from, flow);
        segment.flags = choices.of(&[tcp::flag::ACK, tcp::flag::ACK | tcp::flag::PSH]);
        segment.sequence = segment.sequence.wrapping_add_signed(choices.of(&[0, 0, -40, 100]));
        segment.data = vec![choices.byte(); 3000];
        let (from, mut frame, mut meta) = self.send(from, flow, &segment);
        let start = ETHERNET_LEN + ipv4::HEADER_LEN;
        begin_checksum(&mut frame, start, tcp::CHECKSUM);
        meta.checksum = Checksum::Partial { start: start as u16, offset: tcp::CHECKSUM as u16 };
        meta.gso = Some(Gso { kind: GsoKind::TcpV4, size: choices.of(&[1448, 500, 1]), ecn: choices.once_in(8) });
        (from, frame, meta)
    }

    /// A packet in fragments, which may overlap, be out of order, or lack one.
    fn in_fragments(&mut self, from: Side, choices: &mut Choices<'_>) -> Vec<Incoming> {
        let (_, frame, _) = match choices.below(3) {
            0 => self.segment(from, choices),
            1 => datagram(from, choices),
            _ => message(from, choices),
        };
        let Ok(header) = frame.get(ETHERNET_LEN..).map_or(Err(()), |packet| ipv4::View::new(packet).map_err(|_| ()))
        else {
            return vec![(from, frame, Meta::plain())];
        };
        let (payload, identification) = (header.payload().to_vec(), choices.word() & 3);
        let mut fragments = Vec::new();
        let mut at = 0;
        while at < payload.len() {
            let len = choices.of(&[8, 16, 24]).min(payload.len() - at);
            let start = at.saturating_sub(choices.of(&[0, 0, 0, 8]));
            let mut bytes = payload[start..at + len].to_vec();
            if choices.once_in(6) {
                bytes.fill(choices.byte());
            }
            let more = at + len < payload.len() || choices.once_in(12);
            fragments.push((from, fragment(&frame, start, more, identification, &bytes), Meta::plain()));
            at += len;
        }
        if choices.once_in(2) {
            fragments.reverse();
        }
        if choices.once_in(6) {
            fragments.pop();
        }
        fragments
    }
}

/// What of a TCP segment is chosen.
struct Segment {
    sequence: u32,
    acknowledgement: u32,
    flags: u8,
    window: u16,
    urgent: u16,
    options: Vec<u8>,
    data: Vec<u8>,
}

impl Segment {
    fn bytes(&self, flow: Flow) -> Vec<u8> {
        let header_words = (20 + self.options.len()) as u8 / 4;
        let mut bytes = Vec::new();
        bytes.extend(flow.2.to_be_bytes());
        bytes.extend(flow.3.to_be_bytes());
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.acknowledgement.to_be_bytes());
        bytes.extend([header_words << 4, self.flags]);
        bytes.extend(self.window.to_be_bytes());
        bytes.extend([0, 0]);
        bytes.extend(self.urgent.to_be_bytes());
        bytes.extend(&self.options);
        bytes.extend(&self.data);
        bytes
    }
}

/// Options in whole words: those that hosts use, and some that they should not.
fn options(choices: &mut Choices<'_>) -> Vec<u8> {
    let stamp = [&[1, 1, 8, 10, 0, 0, 1, choices.byte()][..], &[0, 0, 0, 1]].concat();
    match choices.below(10) {
        0 => vec![2, 4, 5, 0xb4, 4, 2, 1, 1],
        1 => vec![2, 4, 5, 0xb4, 1, 3, 3, choices.byte()],
        2 | 3 => stamp,
        4 => vec![1, 1, 5, 10, 0, 0x0f, 0x42, 0x50, 0, 0x0f, 0x42, choices.byte()],
        5 => vec![choices.byte(), choices.byte(), 1, 0],
        6 => [&[19, 18][..], &[7; 16], &[1, 1]].concat(),
        _ => Vec::new(),
    }
}

/// A host of `side`: one of two IPv4 hosts or, with the second bit of `number`, one of two IPv6 hosts.
fn host(side: Side, number: u8) -> IpAddr {
    let last = number & 1;
    match (number & 2 != 0, side) {
        (false, Side::Inner) => Ipv4Addr::new(192, 0, 2, 10 + last).into(),
        (false, Side::Outer) => Ipv4Addr::new(198, 51, 100, 7 + last).into(),
        (true, Side::Inner) => Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, u16::from(last) + 1).into(),
        (true, Side::Outer) => Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, u16::from(last) + 1).into(),
    }
}

fn raw(choices: &mut Choices<'_>) -> Vec<u8> {
    let len = choices.below(120);
    let mut frame = choices.take(len).to_vec();
    if frame.len() > ETHERNET_LEN && choices.once_in(2) {
        frame[12..14].copy_from_slice(&choices.of(&[[8, 0], [0x86, 0xdd], [8, 6], [0x88, 0xcc]]));
    }
    frame
}

/// What a port might say about a frame, and what it should never say.
fn meta(choices: &mut Choices<'_>) -> Meta {
    let checksum = match choices.below(4) {
        0 => Checksum::Complete,
        1 => Checksum::Bad,
        2 => Checksum::Partial { start: choices.word(), offset: choices.byte().into() },
        _ => Checksum::Unknown,
    };
    let kinds = [GsoKind::TcpV4, GsoKind::TcpV6, GsoKind::Udp, GsoKind::TunnelledTcpV4, GsoKind::TunnelledTcpV6];
    let kind = choices.once_in(2).then(|| choices.of(&kinds));
    let gso = kind.map(|kind| Gso { kind, size: choices.word(), ecn: choices.once_in(2) });
    Meta { checksum, gso, ..Meta::default() }
}

fn arp(from: Side) -> Vec<u8> {
    let mut frame = ethernet(from, [8, 6]);
    frame.extend([0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
    frame
}

fn datagram(from: Side, choices: &mut Choices<'_>) -> Incoming {
    let version = choices.of(&[0, 2]);
    let (source, destination) =
        (host(from, choices.byte() & 1 | version), host(from.other(), choices.byte() & 1 | version));
    let len = choices.of(&[0, 5, 60, 32]);
    let stated = (8 + len as u16).wrapping_add_signed(choices.of(&[0, 0, 0, -1, 4]));
    let mut bytes = [PORTS[1].to_be_bytes(), 53_u16.to_be_bytes(), stated.to_be_bytes(), [0, 0]].concat();
    bytes.extend(vec![choices.byte(); len]);
    (from, packet(from, source, destination, UDP, &bytes), Meta::plain())
}

/// ICMP: echo and its answer, errors that quote a packet of the other direction, and others.
fn message(from: Side, choices: &mut Choices<'_>) -> Incoming {
    let version = choices.of(&[0, 0, 2]);
    let (source, destination) =
        (host(from, choices.byte() & 1 | version), host(from.other(), choices.byte() & 1 | version));
    let (protocol, kinds) =
        if version == 0 { (ICMP, [8, 0, 3, 5, 11, 13, 8]) } else { (ICMPV6, [128, 129, 1, 137, 3, 2, 135]) };
    let kind = choices.of(&kinds);
    let mut bytes = vec![kind, choices.of(&[0, 0, 4, 9]), 0, 0, 0, 1, choices.byte(), choices.of(&[0, 200])];
    if [3, 11, 1, 2].contains(&kind) {
        let quoted = packet(from.other(), destination, source, UDP, &[3, 0xe8, 0, 53, 0, 12, 0, 0, 1, 2, 3, 4]);
        let len = choices.of(&[60, 28, 36, 10]).min(quoted.len() - ETHERNET_LEN);
        bytes.extend(&quoted[ETHERNET_LEN..][..len]);
    } else {
        bytes.extend(vec![choices.byte(); choices.of(&[0, 20, 56])]);
    }
    (from, packet(from, source, destination, protocol, &bytes), Meta::plain())
}

fn ethernet(from: Side, ethertype: [u8; 2]) -> Vec<u8> {
    let (source, destination) = (from as u8 + 1, from.other() as u8 + 1);
    let mut frame = vec![2, 0, 0, 0, 0, destination, 2, 0, 0, 0, 0, source];
    frame.extend(ethertype);
    frame
}

/// A frame around a packet whose checksums are right.
fn packet(from: Side, source: IpAddr, destination: IpAddr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let len = payload.len() as u16;
    let mut frame = match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let mut frame = ethernet(from, [8, 0]);
            frame.extend([0x45, 0]);
            frame.extend((20 + len).to_be_bytes());
            frame.extend([0x12, 0x34, 0, 0, 64, protocol, 0, 0]);
            frame.extend(source.octets());
            frame.extend(destination.octets());
            frame
        }
        (source, destination) => {
            let sixteen = |address: IpAddr| match address {
                IpAddr::V4(four) => four.to_ipv6_mapped().octets(),
                IpAddr::V6(six) => six.octets(),
            };
            let mut frame = ethernet(from, [0x86, 0xdd]);
            frame.extend([0x60, 0, 0, 0]);
            frame.extend(len.to_be_bytes());
            frame.extend([protocol, 64]);
            frame.extend(sixteen(source));
            frame.extend(sixteen(destination));
            frame
        }
    };
    frame.extend(payload);
    make_right(&mut frame);
    frame
}

/// The part `bytes` of what `frame` carries, from `offset` on, as a fragment.
fn fragment(frame: &[u8], offset: usize, more: bool, identification: u16, bytes: &[u8]) -> Vec<u8> {
    let mut fragment = frame[..ETHERNET_LEN + ipv4::HEADER_LEN].to_vec();
    let packet = &mut fragment[ETHERNET_LEN..];
    packet[2..4].copy_from_slice(&((ipv4::HEADER_LEN + bytes.len()) as u16).to_be_bytes());
    packet[4..6].copy_from_slice(&identification.to_be_bytes());
    packet[6..8].copy_from_slice(&((offset / 8) as u16 | u16::from(more) << 13).to_be_bytes());
    ipv4::fill_checksum(packet);
    fragment.extend(bytes);
    fragment
}

/// Changes header fields that stacks and scrubbers look at; some of them with right checksums.
fn mar(frame: &mut [u8], choices: &mut Choices<'_>) {
    for _ in 0..=choices.below(2) {
        let place = ETHERNET_LEN + choices.below(64);
        if let Some(byte) = frame.get_mut(place) {
            *byte = choices.byte();
        }
    }
    if !choices.once_in(3) {
        make_right(frame);
    }
}

/// Makes all checksums right that can be found.
fn make_right(frame: &mut [u8]) {
    let Some((ethertype, network)) = layer::network_layer(frame) else { return };
    if ethertype == wire::EtherType::IPV4
        && let Ok(header) = ipv4::View::new(&frame[network..])
    {
        let header_len = header.header_len();
        ipv4::fill_checksum(&mut frame[network..][..header_len]);
    }
    let Some((protocol, start)) = layer::transport_of(frame, ethertype, network) else { return };
    let offset = match protocol {
        TCP => tcp::CHECKSUM,
        UDP => wire::udp::CHECKSUM,
        ICMP | ICMPV6 => 2,
        _ => return,
    };
    if begin_checksum(frame, start, offset) {
        let _ = complete_checksum(frame, start, offset);
    }
}

/// Whether nothing follows the packet in `frame`, as in all that a host's own stack makes.
fn ends_with_its_packet(frame: &[u8]) -> bool {
    let Some((ethertype, network)) = layer::network_layer(frame) else { return false };
    let packet = &frame[network..];
    if ethertype == wire::EtherType::IPV4 {
        return ipv4::View::new(packet).is_ok_and(|header| usize::from(header.total_len()) == packet.len());
    }
    let end = |header: wire::ipv6::View<'_>| wire::ipv6::HEADER_LEN + usize::from(header.payload_len());
    wire::ipv6::View::new(packet).is_ok_and(|header| end(header) == packet.len())
}

/// Puts the sum of the pseudo header where the checksum belongs; false if it has no place.
pub(crate) fn begin_checksum(frame: &mut [u8], start: usize, offset: usize) -> bool {
    let Some(sum) = pseudo_header(frame) else { return false };
    let Some(place) = frame.get_mut(start + offset..start + offset + 2) else { return false };
    place.copy_from_slice(&sum.to_be_bytes());
    true
}

/// The sum of the pseudo header of the packet in `frame`; none over IPv4 for ICMP, which has none.
pub(crate) fn pseudo_header(frame: &[u8]) -> Option<u16> {
    let (ethertype, network) = layer::network_layer(frame)?;
    let (protocol, start) = layer::transport_of(frame, ethertype, network)?;
    let packet = frame.get(network..)?;
    let len = frame.len() - start;
    if ethertype == wire::EtherType::IPV4 {
        let header = ipv4::View::new(packet).ok()?;
        let sum = pseudo_header_v4(header.source(), header.destination(), protocol, len as u16);
        return Some(if protocol == ICMP { 0 } else { sum.fold() });
    }
    let header = wire::ipv6::View::new(packet).ok()?;
    Some(pseudo_header_v6(header.source(), header.destination(), protocol, len as u32).fold())
}

/// The flow of the TCP segment in `frame`, which is no fragment, and the segment.
pub(crate) fn segment(frame: &[u8]) -> Option<(Flow, &[u8])> {
    let (ethertype, network) = layer::network_layer(frame)?;
    let (protocol, start) = layer::transport_of(frame, ethertype, network)?;
    let packet = frame.get(network..)?;
    let (source, destination, end) = if ethertype == wire::EtherType::IPV4 {
        let header = ipv4::View::new(packet).ok().filter(|header| !header.is_fragment())?;
        (header.source().into(), header.destination().into(), usize::from(header.total_len()))
    } else {
        let header = wire::ipv6::View::new(packet).ok()?;
        let end = wire::ipv6::HEADER_LEN + usize::from(header.payload_len());
        (header.source().into(), header.destination().into(), end)
    };
    let bytes = frame.get(start..network + end).filter(|_| protocol == TCP)?;
    let header = tcp::View::new(bytes).ok()?;
    Some(((source, destination, header.source_port(), header.destination_port()), bytes))
}
