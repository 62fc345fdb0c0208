//! IP packets by hand and a scrubber to send them through, for tests of the network layer.
#![allow(dead_code, reason = "not every test uses all of it")]
#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

use bump::{Bump, Checksum, DropReason, Frame, Instant, Ledger, Meta, Now, Side, sink::Collected};
use scrub::{Keys, Scrubber, Settings};

use crate::receivers::Fragment;

/// A protocol of nobody (RFC 3692): no stage but that of the network layer looks at it.
pub(crate) const OPAQUE: u8 = 253;
pub(crate) const TCP: u8 = 6;
pub(crate) const ICMPV6: u8 = 58;

pub(crate) const ETHERNET: usize = 14;

/// The Internet checksum, as RFC 1071 defines it and no faster.
pub(crate) fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn ethernet(ethertype: u16, packet: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    frame.extend(ethertype.to_be_bytes());
    frame.extend(packet);
    frame
}

/// An IPv4 packet in the making.
#[derive(Clone, Debug)]
pub(crate) struct V4 {
    pub(crate) source: [u8; 4],
    pub(crate) destination: [u8; 4],
    pub(crate) type_of_service: u8,
    pub(crate) identification: u16,
    /// Reserved bit, DF and MF in the high bits, as in the header.
    pub(crate) flags: u16,
    /// In bytes.
    pub(crate) offset: usize,
    pub(crate) time_to_live: u8,
    pub(crate) protocol: u8,
    pub(crate) options: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

pub(crate) const RESERVED: u16 = 0x8000;
pub(crate) const DONT_FRAGMENT: u16 = 0x4000;
pub(crate) const MORE: u16 = 0x2000;

impl Default for V4 {
    fn default() -> V4 {
        V4 {
            source: [192, 0, 2, 1],
            destination: [198, 51, 100, 2],
            type_of_service: 0,
            identification: 7,
            flags: 0,
            offset: 0,
            time_to_live: 64,
            protocol: OPAQUE,
            options: Vec::new(),
            payload: b"sixteen bytes...".to_vec(),
        }
    }
}

impl V4 {
    /// One fragment of the packet that is otherwise as `self` says.
    pub(crate) fn fragment(&self, fragment: &Fragment) -> Vec<u8> {
        let flags = self.flags | if fragment.more { MORE } else { 0 };
        V4 { flags, offset: fragment.offset, payload: fragment.bytes.clone(), ..self.clone() }.frame()
    }

    pub(crate) fn frame(&self) -> Vec<u8> {
        let header_len = 20 + self.options.len();
        let mut packet = vec![0x40 | (header_len / 4) as u8, self.type_of_service];
        packet.extend(((header_len + self.payload.len()) as u16).to_be_bytes());
        packet.extend(self.identification.to_be_bytes());
        packet.extend((self.flags | (self.offset / 8) as u16).to_be_bytes());
        packet.extend([self.time_to_live, self.protocol, 0, 0]);
        packet.extend(self.source);
        packet.extend(self.destination);
        packet.extend(&self.options);
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(&self.payload);
        ethernet(0x0800, &packet)
    }
}

/// Writes the right header checksum into an IPv4 frame without options after it was changed by hand.
pub(crate) fn fix_checksum(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let sum = checksum(&frame[14..34]);
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
}

/// An IPv6 packet in the making.
#[derive(Clone, Debug)]
pub(crate) struct V6 {
    pub(crate) source: [u16; 8],
    pub(crate) destination: [u16; 8],
    pub(crate) traffic_class: u8,
    pub(crate) flow_label: u32,
    pub(crate) hop_limit: u8,
    /// Kinds and bytes of the extension headers; the first byte of each is written when they are linked.
    pub(crate) extensions: Vec<(u8, Vec<u8>)>,
    /// Of its fragments.
    pub(crate) identification: u32,
    pub(crate) protocol: u8,
    pub(crate) payload: Vec<u8>,
}

pub(crate) const HOP_BY_HOP: u8 = 0;
pub(crate) const ROUTING: u8 = 43;
pub(crate) const FRAGMENT: u8 = 44;
pub(crate) const NO_NEXT: u8 = 59;
pub(crate) const DESTINATION: u8 = 60;

impl Default for V6 {
    fn default() -> V6 {
        V6 {
            source: [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1],
            destination: [0x2001, 0xdb8, 0, 1, 0, 0, 0, 2],
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 64,
            extensions: Vec::new(),
            identification: 7,
            protocol: OPAQUE,
            payload: b"sixteen bytes...".to_vec(),
        }
    }
}

/// The bytes of a Fragment header, the next header still to come.
pub(crate) fn fragment_header(offset: usize, more: bool, identification: u32) -> Vec<u8> {
    let mut header = vec![0, 0];
    header.extend((offset as u16 | u16::from(more)).to_be_bytes());
    header.extend(identification.to_be_bytes());
    header
}

impl V6 {
    /// One fragment of the packet that is otherwise as `self` says; the Fragment header follows its extension headers.
    pub(crate) fn fragment(&self, fragment: &Fragment) -> Vec<u8> {
        let header = fragment_header(fragment.offset, fragment.more, self.identification);
        let extensions = [&self.extensions[..], &[(FRAGMENT, header)]].concat();
        V6 { extensions, payload: fragment.bytes.clone(), ..self.clone() }.frame()
    }

    pub(crate) fn frame(&self) -> Vec<u8> {
        let kinds: Vec<u8> = self.extensions.iter().map(|(kind, _)| *kind).chain([self.protocol]).collect();
        let mut rest = Vec::new();
        for ((_, bytes), next) in self.extensions.iter().zip(&kinds[1..]) {
            rest.push(*next);
            rest.extend(&bytes[1..]);
        }
        rest.extend(&self.payload);
        let first = 6 << 28 | u32::from(self.traffic_class) << 20 | self.flow_label;
        let mut packet = first.to_be_bytes().to_vec();
        packet.extend((rest.len() as u16).to_be_bytes());
        packet.extend([kinds[0], self.hop_limit]);
        packet.extend(self.source.iter().chain(&self.destination).flat_map(|word| word.to_be_bytes()));
        packet.extend(rest);
        ethernet(0x86dd, &packet)
    }
}

/// A scrubber with its books.
pub(crate) struct Gate {
    pub(crate) scrubber: Scrubber,
    pub(crate) now: Instant,
}

impl Gate {
    pub(crate) fn new() -> Gate {
        Gate::with(Settings::preset(scrub::Preset::Balanced))
    }

    pub(crate) fn with(settings: Settings) -> Gate {
        Gate {
            scrubber: Scrubber::new(settings, Keys { tables: [7; 16], sequence: [8; 16], identification: [9; 16] }),
            now: Instant::from_millis(1000),
        }
    }

    fn clock(&self) -> Now {
        Now { since_boot: self.now, wall: None }
    }

    /// What leaves towards the other side when `frame` comes from `from`.
    pub(crate) fn send_from(&mut self, from: Side, frame: &[u8], meta: Meta) -> Vec<Vec<u8>> {
        let mut bytes = frame.to_vec();
        let mut sink = Collected::new();
        let mut batch = Some(Frame { bytes: &mut bytes, meta });
        self.scrubber.process(self.clock(), from, &mut batch, &mut sink);
        assert_eq!(self.ledger().balance(), 0, "every frame has one fate");
        let left = sink.take();
        for (to, bytes, meta) in &left {
            assert_eq!(*to, from.other());
            assert!(!matches!(meta.checksum, Checksum::Bad));
            assert_is_right(bytes);
        }
        left.into_iter().map(|(_, bytes, _)| bytes).collect()
    }

    /// What reaches the trusted side when `frame` comes from the untrusted one.
    pub(crate) fn send(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        self.send_from(Side::UNTRUSTED, frame, Meta::plain())
    }

    /// The same for several.
    pub(crate) fn send_all(&mut self, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
        frames.iter().flat_map(|frame| self.send(frame)).collect()
    }

    /// Lets time pass and everything happen that is due then.
    pub(crate) fn wait(&mut self, time: std::time::Duration) {
        self.now = self.now + time;
        let mut sink = Collected::new();
        while self.scrubber.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.scrubber.tick(self.clock(), 16, &mut sink);
        }
        assert!(sink.take().is_empty());
        assert_eq!(self.ledger().balance(), 0);
    }

    pub(crate) fn ledger(&self) -> Ledger {
        let mut total = Ledger::new();
        self.scrubber.add_to_ledger(&mut total);
        total
    }

    pub(crate) fn drops(&self, reason: DropReason) -> u64 {
        self.ledger().drops(reason)
    }

    pub(crate) fn held(&self) -> u64 {
        self.ledger().held
    }
}

/// An independent reader finds link and network layer right, to the last byte of the frame, header checksum included. What a
/// fragment carries is not to be read, and the transport layer has its own tests.
pub(crate) fn assert_is_right(frame: &[u8]) {
    let sliced = etherparse::LaxSlicedPacket::from_ethernet(frame).expect("a link header");
    let stops_above = sliced.stop_err.as_ref().is_none_or(|(_, layer)| is_above_network(*layer));
    assert!(stops_above || is_fragment(frame), "{:?} {frame:02x?}", sliced.stop_err);
    match sliced.net.expect("an IP header") {
        etherparse::LaxNetSlice::Ipv4(slice) => {
            assert_eq!(checksum(slice.header().slice()), 0);
            assert_eq!(usize::from(slice.header().total_len()) + ETHERNET, frame.len());
        }
        etherparse::LaxNetSlice::Ipv6(slice) => {
            assert_eq!(usize::from(slice.header().payload_length()) + 40 + ETHERNET, frame.len());
        }
        other => panic!("{other:?}"),
    }
}

fn is_above_network(layer: etherparse::err::Layer) -> bool {
    use etherparse::err::Layer;
    let transport = [Layer::TcpHeader, Layer::UdpHeader, Layer::UdpPayload, Layer::Icmpv4, Layer::Icmpv6, Layer::Igmp];
    // What is authenticated is opaque, and what this reader finds behind it too.
    transport.contains(&layer)
        || matches!(layer, Layer::IpAuthHeader | Layer::Icmpv4Timestamp | Layer::Icmpv4TimestampReply)
}

/// Whether a frame carries a part of a packet.
pub(crate) fn is_fragment(frame: &[u8]) -> bool {
    fragment_of(frame).is_some_and(|fragment| fragment.offset != 0 || fragment.more)
}

/// The fragment that a frame carries, read by an independent reader; `None` for a whole packet.
pub(crate) fn fragment_of(frame: &[u8]) -> Option<Fragment> {
    let sliced = etherparse::LaxSlicedPacket::from_ethernet(frame).expect("a link header");
    match sliced.net.expect("an IP header") {
        etherparse::LaxNetSlice::Ipv4(slice) => {
            let header = slice.header();
            let offset = usize::from(header.fragments_offset().value()) * 8;
            let more = header.more_fragments();
            let at = ETHERNET + usize::from(header.ihl()) * 4;
            (offset != 0 || more).then(|| Fragment { offset, more, bytes: frame[at..].to_vec() })
        }
        etherparse::LaxNetSlice::Ipv6(slice) => {
            let mut at = ETHERNET + 40;
            let mut next = slice.header().next_header().0;
            while matches!(next, HOP_BY_HOP | ROUTING | DESTINATION) {
                next = frame[at];
                at += (usize::from(frame[at + 1]) + 1) * 8;
            }
            (next == FRAGMENT).then(|| {
                let word = u16::from_be_bytes([frame[at + 2], frame[at + 3]]);
                let offset = usize::from(word & 0xfff8);
                Fragment { offset, more: word & 1 != 0, bytes: frame[at + 8..].to_vec() }
            })
        }
        other => panic!("{other:?}"),
    }
}

/// What an IPv4 frame, or an IPv6 frame without extension headers, carries.
pub(crate) fn payload(frame: &[u8]) -> &[u8] {
    let header_len = if frame[12] == 8 { usize::from(frame[14] & 0x0f) * 4 } else { 40 };
    &frame[ETHERNET + header_len..]
}

/// What a host with `policy` reads from frames of one packet, whether it is cut or whole.
pub(crate) fn read(policy: crate::receivers::Policy, frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut host = crate::receivers::Host::new(policy);
    let mut read = Vec::new();
    for frame in frames {
        match fragment_of(frame) {
            None => read.push(payload(frame).to_vec()),
            Some(fragment) => {
                if let Some(whole) = host.take(&fragment) {
                    read.push(whole);
                    host = crate::receivers::Host::new(policy);
                }
            }
        }
    }
    read
}

/// `bytes` cut every `size` bytes, the last piece shorter.
pub(crate) fn cut(bytes: &[u8], size: usize) -> Vec<Fragment> {
    let pieces = bytes.chunks(size).enumerate();
    let piece = |(index, piece): (usize, &[u8])| Fragment {
        offset: index * size,
        bytes: piece.to_vec(),
        more: index * size + piece.len() < bytes.len(),
    };
    pieces.map(piece).collect()
}
