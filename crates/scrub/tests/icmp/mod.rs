//! Hosts on both sides of a scrubber: packets are made and checked by `etherparse`, which knows nothing of our own formats.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use bump::sink::Collected;
use bump::{Bump, DropReason, Frame, Instant, Ledger, Meta, Now, Side};
use etherparse::{
    Icmpv6Slice, IpNumber, IpSlice, Ipv4Header, Ipv6FlowLabel, Ipv6Header, NetSlice, SlicedPacket, TransportSlice,
};
use scrub::{Keys, Rule, Scrubber, Settings};

pub(crate) const INSIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 10);
pub(crate) const OUTSIDE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
pub(crate) const ROUTER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
pub(crate) const INSIDE_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 0x10);
pub(crate) const OUTSIDE_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 2, 0, 0, 0, 0, 7);

/// A trusted and an untrusted host of each version.
pub(crate) const HOSTS: [(IpAddr, IpAddr); 2] =
    [(IpAddr::V4(INSIDE), IpAddr::V4(OUTSIDE)), (IpAddr::V6(INSIDE_V6), IpAddr::V6(OUTSIDE_V6))];

pub(crate) const ICMP: u8 = 1;
pub(crate) const UDP: u8 = 17;
pub(crate) const ICMP_V6: u8 = 58;

const LINK: [u8; 12] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];

/// Keys as a test has them.
pub(crate) fn keys() -> Keys {
    Keys { tables: [1; 16], sequence: [2; 16], identification: [3; 16] }
}

/// A scrubber and its clock.
pub(crate) struct Gate {
    pub(crate) scrubber: Scrubber,
    pub(crate) now: Instant,
}

impl Gate {
    pub(crate) fn new(settings: Settings) -> Gate {
        Gate { scrubber: Scrubber::new(settings, keys()), now: Instant::from_millis(1_000_000) }
    }

    pub(crate) fn wait(&mut self, time: Duration) {
        self.now = self.now + time;
    }

    fn now(&self) -> Now {
        Now { since_boot: self.now, wall: None }
    }

    /// Sends one frame in and gives what comes out at once.
    pub(crate) fn pass_with(&mut self, from: Side, frame: &[u8], meta: Meta) -> Vec<(Side, Vec<u8>, Meta)> {
        let mut sink = Collected::new();
        let mut bytes = frame.to_vec();
        let mut batch = Some(Frame { bytes: &mut bytes, meta });
        self.scrubber.process(self.now(), from, &mut batch, &mut sink);
        assert_eq!(self.ledger().balance(), 0, "the books of {frame:02x?}");
        let out = sink.take();
        out.iter().for_each(|(to, _, _)| assert_eq!(*to, from.other()));
        out
    }

    /// Sends one frame in and gives the one that comes out, checked, or why none does.
    pub(crate) fn pass(&mut self, from: Side, frame: &[u8]) -> Result<Vec<u8>, DropReason> {
        let before = self.ledger();
        let mut out = self.pass_with(from, frame, Meta::plain());
        if let Some((_, frame, _)) = out.pop() {
            assert!(out.is_empty(), "one frame in, {} out", out.len() + 1);
            assert_valid(&frame);
            return Ok(frame);
        }
        let after = self.ledger();
        let reason = DropReason::ALL.iter().find(|reason| after.drops(**reason) > before.drops(**reason));
        Err(*reason.expect("a frame that does not come out was dropped"))
    }

    /// Lets due frames go and gives them.
    pub(crate) fn tick(&mut self) -> Vec<(Side, Vec<u8>, Meta)> {
        let mut sink = Collected::new();
        self.scrubber.tick(self.now(), usize::MAX, &mut sink);
        sink.take()
    }

    pub(crate) fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::new();
        self.scrubber.add_to_ledger(&mut ledger);
        ledger
    }

    pub(crate) fn count(&self, rule: Rule) -> u64 {
        self.scrubber.counters().of(rule)
    }
}

/// An IP packet on its way from one host to another.
#[derive(Clone, Debug)]
pub(crate) struct Ip {
    pub(crate) source: IpAddr,
    pub(crate) destination: IpAddr,
    pub(crate) protocol: u8,
    pub(crate) hop_limit: u8,
    /// Type of service or traffic class.
    pub(crate) class: u8,
    pub(crate) identification: u16,
    pub(crate) dont_fragment: bool,
    pub(crate) flow_label: u32,
    /// IPv4: offset in bytes and whether more follows.
    pub(crate) fragment: (u16, bool),
    pub(crate) payload: Vec<u8>,
}

impl Ip {
    pub(crate) fn new(source: impl Into<IpAddr>, destination: impl Into<IpAddr>, protocol: u8, payload: Vec<u8>) -> Ip {
        Ip {
            source: source.into(),
            destination: destination.into(),
            protocol,
            hop_limit: 64,
            class: 0,
            identification: 0x1234,
            dont_fragment: true,
            flow_label: 0,
            fragment: (0, false),
            payload,
        }
    }

    /// The packet without a link header.
    pub(crate) fn packet(&self) -> Vec<u8> {
        let mut packet = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => self.header_v4(source, destination).to_bytes().to_vec(),
            (IpAddr::V6(source), IpAddr::V6(destination)) => self.header_v6(source, destination).to_bytes().to_vec(),
            _ => panic!("two versions in one packet"),
        };
        packet.extend(&self.payload);
        packet
    }

    fn header_v4(&self, source: Ipv4Addr, destination: Ipv4Addr) -> Ipv4Header {
        let len = self.payload.len() as u16;
        let (source, destination) = (source.octets(), destination.octets());
        let mut header =
            Ipv4Header::new(len, self.hop_limit, IpNumber(self.protocol), source, destination).expect("short enough");
        header.identification = self.identification;
        header.dont_fragment = self.dont_fragment;
        header.fragment_offset = (self.fragment.0 / 8).try_into().expect("thirteen bits");
        header.more_fragments = self.fragment.1;
        header.dscp = (self.class >> 2).try_into().expect("six bits");
        header.ecn = (self.class & 3).try_into().expect("two bits");
        header.header_checksum = header.calc_header_checksum();
        header
    }

    fn header_v6(&self, source: Ipv6Addr, destination: Ipv6Addr) -> Ipv6Header {
        Ipv6Header {
            traffic_class: self.class,
            flow_label: Ipv6FlowLabel::try_new(self.flow_label).expect("twenty bits"),
            payload_length: self.payload.len() as u16,
            next_header: IpNumber(self.protocol),
            hop_limit: self.hop_limit,
            source: source.octets(),
            destination: destination.octets(),
        }
    }

    pub(crate) fn frame(&self) -> Vec<u8> {
        let ethertype = if self.source.is_ipv4() { [0x08, 0x00] } else { [0x86, 0xdd] };
        [&LINK[..], &ethertype, &self.packet()].concat()
    }

    /// The frames in which it leaves a host that cuts it behind every `len` bytes.
    pub(crate) fn pieces(&self, len: usize) -> Vec<Vec<u8>> {
        let whole = self.payload.len();
        let piece = |(number, bytes): (usize, &[u8])| {
            let offset = number * len;
            let fragment = (offset as u16, offset + bytes.len() < whole);
            Ip { fragment, dont_fragment: false, payload: bytes.to_vec(), ..self.clone() }.frame()
        };
        self.payload.chunks(len).enumerate().map(piece).collect()
    }

    /// Writes the right transport checksum at `at` of what it carries.
    pub(crate) fn summed(mut self, at: usize) -> Ip {
        self.payload[at..at + 2].fill(0);
        let sum = match (self.source, self.destination) {
            (IpAddr::V4(_), _) if self.protocol == ICMP => sum(&self.payload),
            (source, destination) => {
                let mut summed = octets(source);
                summed.extend(octets(destination));
                summed.extend((self.payload.len() as u32).to_be_bytes());
                summed.extend([0, 0, 0, self.protocol]);
                summed.extend(&self.payload);
                sum(&summed)
            }
        };
        let sum = if sum == 0 && self.protocol == UDP { u16::MAX } else { sum };
        self.payload[at..at + 2].copy_from_slice(&sum.to_be_bytes());
        self
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

/// The Internet checksum as RFC 1071 defines it, word by word.
pub(crate) fn sum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for word in bytes.chunks(2) {
        sum += u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn icmp_of(source: impl Into<IpAddr>) -> (IpAddr, u8) {
    let source = source.into();
    (source, if source.is_ipv4() { ICMP } else { ICMP_V6 })
}

/// An ICMP message of either version with a right checksum.
pub(crate) fn message(
    source: impl Into<IpAddr>,
    destination: impl Into<IpAddr>,
    kind: (u8, u8),
    rest: [u8; 4],
    body: &[u8],
) -> Ip {
    let (source, protocol) = icmp_of(source);
    let payload = [&[kind.0, kind.1, 0, 0], &rest[..], body].concat();
    Ip::new(source, destination, protocol, payload).summed(2)
}

/// Echo request of either version.
pub(crate) fn ping(source: impl Into<IpAddr>, destination: impl Into<IpAddr>, sequence: u16) -> Ip {
    let (source, protocol) = icmp_of(source);
    let kind = if protocol == ICMP { 8 } else { 128 };
    message(source, destination, (kind, 0), rest(0x0777, sequence), b"abcdefghijklmnopqrstuvwabcdefghi")
}

/// Echo reply of either version.
pub(crate) fn pong(source: impl Into<IpAddr>, destination: impl Into<IpAddr>, sequence: u16) -> Ip {
    let (source, protocol) = icmp_of(source);
    let kind = if protocol == ICMP { 0 } else { 129 };
    message(source, destination, (kind, 0), rest(0x0777, sequence), b"abcdefghijklmnopqrstuvwabcdefghi")
}

/// Two words in the header of a message.
pub(crate) fn rest(first: u16, second: u16) -> [u8; 4] {
    (u32::from(first) << 16 | u32::from(second)).to_be_bytes()
}

pub(crate) fn datagram(source: impl Into<IpAddr>, destination: impl Into<IpAddr>, ports: [u16; 2], data: &[u8]) -> Ip {
    let len = (8 + data.len()) as u16;
    let header = [ports[0].to_be_bytes(), ports[1].to_be_bytes(), len.to_be_bytes(), [0, 0]].concat();
    Ip::new(source, destination, UDP, [&header, data].concat()).summed(6)
}

/// The error that the host `source` reports about `packet`, of which it quotes `quoted` bytes.
pub(crate) fn error(source: impl Into<IpAddr>, kind: (u8, u8), rest: [u8; 4], packet: &Ip, quoted: usize) -> Ip {
    let bytes = packet.packet();
    message(source, packet.source, kind, rest, &bytes[..quoted.min(bytes.len())])
}

/// The transport header and data of a frame without extension headers.
pub(crate) fn carried(frame: &[u8]) -> &[u8] {
    if frame[12..14] == [0x86, 0xdd] { &frame[54..] } else { &frame[14 + usize::from(frame[14] & 0x0f) * 4..] }
}

/// Whether the checksum of what `frame` carries is right; `None` where there is none.
pub(crate) fn transport_sum_is_right(frame: &[u8]) -> Option<bool> {
    let packet = SlicedPacket::from_ethernet(frame).expect("it parses");
    let net = packet.net?;
    match (packet.transport?, net) {
        (TransportSlice::Icmpv4(message), _) => Some(sum(message.slice()) == 0),
        (TransportSlice::Icmpv6(message), NetSlice::Ipv6(ip)) => Some(
            Icmpv6Slice::from_slice(message.slice())
                .expect("long enough")
                .is_checksum_valid(ip.header().source(), ip.header().destination()),
        ),
        (TransportSlice::Udp(datagram), NetSlice::Ipv4(ip)) => {
            let header = datagram.to_header();
            let right = header.calc_checksum_ipv4(&ip.header().to_header(), datagram.payload()).expect("short enough");
            Some(header.checksum == 0 || header.checksum == right)
        }
        (TransportSlice::Udp(datagram), NetSlice::Ipv6(ip)) => {
            let header = datagram.to_header();
            let right = header.calc_checksum_ipv6(&ip.header().to_header(), datagram.payload()).expect("short enough");
            Some(header.checksum == 0 || header.checksum == right)
        }
        _ => None,
    }
}

/// That `frame` parses, says its length right, and has right checksums.
pub(crate) fn assert_valid(frame: &[u8]) {
    if !matches!(frame.get(12..14), Some([0x08, 0x00] | [0x86, 0xdd])) {
        return;
    }
    let packet = IpSlice::from_slice(&frame[14..]).unwrap_or_else(|error| panic!("{error}: {frame:02x?}"));
    match packet {
        IpSlice::Ipv4(ip) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum(), "{frame:02x?}");
            assert_eq!(usize::from(header.total_len), frame.len() - 14, "{frame:02x?}");
        }
        IpSlice::Ipv6(ip) => {
            assert_eq!(usize::from(ip.header().payload_length()), frame.len() - 54, "{frame:02x?}");
        }
    }
    assert_ne!(transport_sum_is_right(frame), Some(false), "{frame:02x?}");
}
