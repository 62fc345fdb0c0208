//! A scrubber between a client outside and a server inside, for tests: segments in, segments out. Frames are written by hand, and
//! what comes out is read and summed by another library.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use std::net::SocketAddr;
use std::time::Duration;

use bump::frame::Frames;
use bump::sink::Collected;
use bump::{Bump, Checksum, DropReason, Gso, GsoKind, Instant, Ledger, Meta, Now, Side};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use scrub::{Action, Event, FlowId, Keys, Preset, Rule, Scrubber, Settings};

pub(crate) const FIN: u16 = 0x01;
pub(crate) const SYN: u16 = 0x02;
pub(crate) const RST: u16 = 0x04;
pub(crate) const PSH: u16 = 0x08;
pub(crate) const ACK: u16 = 0x10;
pub(crate) const URG: u16 = 0x20;
pub(crate) const ECE: u16 = 0x40;
pub(crate) const CWR: u16 = 0x80;
pub(crate) const AE: u16 = 0x100;

/// First sequence numbers of the client and of the server.
pub(crate) const CLIENT: u32 = 1_000_000;
pub(crate) const SERVER: u32 = 9_000_000;

/// The client's and the server's hardware addresses.
pub(crate) const CLIENT_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(crate) const SERVER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A segment, as far as tests care.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seg {
    pub(crate) flags: u16,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    pub(crate) window: u16,
    pub(crate) urgent: u16,
    pub(crate) options: Vec<u8>,
    pub(crate) data: Vec<u8>,
    pub(crate) hop_limit: u8,
}

pub(crate) fn seg(flags: u16, sequence: u32, acknowledgement: u32) -> Seg {
    Seg {
        flags,
        sequence,
        acknowledgement,
        window: 60_000,
        urgent: 0,
        options: Vec::new(),
        data: Vec::new(),
        hop_limit: 64,
    }
}

/// A segment with the hop limit that packets to the untrusted side have.
pub(crate) fn hidden(seg: Seg) -> Seg {
    Seg { hop_limit: scrub::limits::HOP_LIMIT, ..seg }
}

impl Seg {
    pub(crate) fn data(mut self, data: &[u8]) -> Seg {
        self.data = data.to_vec();
        self
    }

    pub(crate) fn options(mut self, options: &[u8]) -> Seg {
        self.options = options.to_vec();
        self
    }

    pub(crate) fn stamps(self, value: u32, echo: u32) -> Seg {
        let options = [&[1, 1, 8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat();
        self.options(&options)
    }

    pub(crate) fn window(mut self, window: u16) -> Seg {
        self.window = window;
        self
    }

    pub(crate) fn has(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }

    /// The sequence number behind data and FIN.
    pub(crate) fn end(&self) -> u32 {
        self.sequence.wrapping_add(self.data.len() as u32).wrapping_add(u32::from(self.has(FIN)))
    }

    /// Value and echo of the timestamps.
    pub(crate) fn read_stamps(&self) -> Option<(u32, u32)> {
        let body = self.option(8)?;
        let number = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().expect("four bytes"));
        Some((number(0), number(4)))
    }

    /// What stands in the option of a kind.
    pub(crate) fn option(&self, wanted: u8) -> Option<&[u8]> {
        let mut rest = &self.options[..];
        while let [kind, behind @ ..] = rest {
            match kind {
                0 => return None,
                1 => rest = behind,
                _ => {
                    let len = usize::from(*behind.first()?);
                    if *kind == wanted {
                        return rest.get(2..len);
                    }
                    rest = rest.get(len..)?;
                }
            }
        }
        None
    }
}

/// The sum of RFC 1071, as it is defined.
fn sum(parts: &[&[u8]]) -> u16 {
    let bytes = parts.concat();
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Between whom, and how frames look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) client: SocketAddr,
    pub(crate) server: SocketAddr,
}

impl Ends {
    pub(crate) fn v4() -> Ends {
        Ends { client: "198.51.100.7:40000".parse().unwrap(), server: "192.0.2.10:80".parse().unwrap() }
    }

    pub(crate) fn v6() -> Ends {
        Ends { client: "[2001:db8:1::7]:40000".parse().unwrap(), server: "[2001:db8:2::10]:80".parse().unwrap() }
    }

    fn pseudo_header(&self, from: Side, len: usize) -> Vec<u8> {
        let (source, destination) = self.source_and_destination(from);
        match (source, destination) {
            (SocketAddr::V4(source), SocketAddr::V4(destination)) => {
                [&source.ip().octets()[..], &destination.ip().octets(), &[0, 6], &(len as u16).to_be_bytes()].concat()
            }
            (SocketAddr::V6(source), SocketAddr::V6(destination)) => {
                [&source.ip().octets()[..], &destination.ip().octets(), &(len as u32).to_be_bytes(), &[0, 0, 0, 6]]
                    .concat()
            }
            _ => panic!("two versions"),
        }
    }

    fn source_and_destination(&self, from: Side) -> (SocketAddr, SocketAddr) {
        if from == Side::UNTRUSTED { (self.client, self.server) } else { (self.server, self.client) }
    }

    /// The frame of a segment from a side, its checksum complete.
    pub(crate) fn frame(&self, from: Side, seg: &Seg) -> Vec<u8> {
        let (source, destination) = self.source_and_destination(from);
        let mut options = seg.options.clone();
        options.resize(options.len().next_multiple_of(4), 0);
        let mut tcp = [&source.port().to_be_bytes()[..], &destination.port().to_be_bytes()].concat();
        tcp.extend(seg.sequence.to_be_bytes());
        tcp.extend(seg.acknowledgement.to_be_bytes());
        tcp.extend((((20 + options.len()) as u16 / 4) << 12 | seg.flags).to_be_bytes());
        tcp.extend(seg.window.to_be_bytes());
        tcp.extend([0, 0]);
        tcp.extend(seg.urgent.to_be_bytes());
        tcp.extend(&options);
        tcp.extend(&seg.data);
        let checksum = !sum(&[&self.pseudo_header(from, tcp.len()), &tcp]);
        tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
        [self.link_and_ip(from, tcp.len(), seg.hop_limit), tcp].concat()
    }

    fn link_and_ip(&self, from: Side, len: usize, hop_limit: u8) -> Vec<u8> {
        let (source, destination) = self.source_and_destination(from);
        let macs = if from == Side::UNTRUSTED { [SERVER_MAC, CLIENT_MAC] } else { [CLIENT_MAC, SERVER_MAC] };
        let mut frame = macs.concat();
        match (source, destination) {
            (SocketAddr::V4(source), SocketAddr::V4(destination)) => {
                frame.extend([8, 0]);
                let mut ip = vec![0x45, 0];
                ip.extend((20 + len as u16).to_be_bytes());
                ip.extend([0, 0, 0x40, 0, hop_limit, 6, 0, 0]);
                ip.extend(source.ip().octets());
                ip.extend(destination.ip().octets());
                let checksum = !sum(&[&ip]);
                ip[10..12].copy_from_slice(&checksum.to_be_bytes());
                frame.extend(ip);
            }
            (SocketAddr::V6(source), SocketAddr::V6(destination)) => {
                frame.extend([0x86, 0xdd, 0x60, 0, 0, 0]);
                frame.extend((len as u16).to_be_bytes());
                frame.extend([6, hop_limit]);
                frame.extend(source.ip().octets());
                frame.extend(destination.ip().octets());
            }
            _ => panic!("two versions"),
        }
        frame
    }
}

/// Reads a frame that left, and fails unless another library finds every length and checksum right.
pub(crate) fn read(frame: &[u8], meta: &Meta) -> Seg {
    let packet = SlicedPacket::from_ethernet(frame).expect("a frame that parses");
    let Some(TransportSlice::Tcp(tcp)) = &packet.transport else { panic!("no TCP: {packet:?}") };
    let header = tcp.to_header();
    let (hop_limit, sum) = match packet.net.as_ref().expect("a network layer") {
        NetSlice::Ipv4(ip) => {
            let header4 = ip.header().to_header();
            assert_eq!(header4.calc_header_checksum(), header4.header_checksum, "IP checksum");
            assert_eq!(usize::from(header4.total_len), frame.len() - 14, "total length");
            (header4.time_to_live, header.calc_checksum_ipv4(&header4, tcp.payload()).expect("short"))
        }
        NetSlice::Ipv6(ip) => {
            let header6 = ip.header().to_header();
            assert_eq!(usize::from(header6.payload_length), frame.len() - 54, "payload length");
            (header6.hop_limit, header.calc_checksum_ipv6(&header6, tcp.payload()).expect("short"))
        }
        NetSlice::Arp(_) => panic!("ARP"),
    };
    if meta.checksum == (Checksum::Partial { start: (frame.len() - tcp.slice().len()) as u16, offset: 16 }) {
        assert_partial(frame, tcp.slice().len());
    } else {
        assert_eq!(header.checksum, sum, "TCP checksum");
    }
    let bytes = tcp.slice();
    Seg {
        flags: u16::from_be_bytes([bytes[12], bytes[13]]) & 0xfff,
        sequence: header.sequence_number,
        acknowledgement: header.acknowledgment_number,
        window: header.window_size,
        urgent: header.urgent_pointer,
        options: header.options.as_slice().to_vec(),
        data: tcp.payload().to_vec(),
        hop_limit,
    }
}

/// The field of a partial checksum is the sum of the pseudo header (what Linux expects of an offloaded segment).
fn assert_partial(frame: &[u8], tcp_len: usize) {
    let tcp = &frame[frame.len() - tcp_len..];
    let pseudo_header = if frame[12..14] == [8, 0] {
        [&frame[26..34], &[0, 6], &(tcp_len as u16).to_be_bytes()].concat()
    } else {
        [&frame[22..54], &(tcp_len as u32).to_be_bytes(), &[0, 0, 0, 6]].concat()
    };
    assert_eq!(u16::from_be_bytes([tcp[16], tcp[17]]), sum(&[&pseudo_header]), "partial checksum");
}

/// What came of one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Out {
    /// What the server's side got.
    pub(crate) inside: Vec<Seg>,
    /// What the client's side got.
    pub(crate) outside: Vec<Seg>,
    /// Why the segment itself went no further.
    pub(crate) dropped: Option<DropReason>,
}

impl Out {
    /// The only segment that went to the server.
    #[track_caller]
    pub(crate) fn to_server(&self) -> &Seg {
        let [seg] = &self.inside[..] else { panic!("not one segment: {self:?}") };
        seg
    }

    /// The only segment that went to the client.
    #[track_caller]
    pub(crate) fn to_client(&self) -> &Seg {
        let [seg] = &self.outside[..] else { panic!("not one segment: {self:?}") };
        seg
    }

    #[track_caller]
    pub(crate) fn is_dropped_for(&self, reason: DropReason) {
        assert_eq!((self.dropped, self.inside.len() + self.outside.len()), (Some(reason), 0), "{self:?}");
    }
}

/// A scrubber and what stands on both sides of it.
pub(crate) struct Gate {
    /// What was dropped so far, by reason.
    drops: Vec<u64>,
    pub(crate) scrubber: Scrubber,
    pub(crate) ends: Ends,
    pub(crate) now: Instant,
}

pub(crate) fn keys() -> Keys {
    Keys { tables: [1; 16], sequence: [2; 16], identification: [3; 16] }
}

/// `balanced`, with the numbers of the trusted side left as they are: tests read better so.
pub(crate) fn plain() -> Settings {
    let mut settings = Settings::preset(Preset::Balanced);
    for rule in [Rule::TcpSequenceShift, Rule::TcpTimestampShift] {
        settings.rules.set(rule, Action::Off);
    }
    settings
}

impl Default for Gate {
    fn default() -> Gate {
        Gate::new(plain())
    }
}

impl Gate {
    pub(crate) fn new(settings: Settings) -> Gate {
        let drops = vec![0; DropReason::ALL.len()];
        Gate { drops, scrubber: Scrubber::new(settings, keys()), ends: Ends::v4(), now: Instant::from_millis(1_000) }
    }

    /// A gate through which a client has opened a connection.
    pub(crate) fn established(settings: Settings) -> Gate {
        let mut gate = Gate::new(settings);
        gate.open();
        gate
    }

    pub(crate) fn open(&mut self) {
        assert_eq!(self.client(seg(SYN, CLIENT, 0)).inside.len(), 1);
        assert_eq!(self.server(seg(SYN | ACK, SERVER, CLIENT + 1)).outside.len(), 1);
        let seen = self.client(seg(ACK, CLIENT + 1, self.seen_by_client(SERVER + 1)));
        assert_eq!(seen.inside.len(), 1, "{seen:?}");
    }

    /// A connection with timestamps and window scale 7 on both sides.
    pub(crate) fn open_with_stamps(&mut self, client: u32, server: u32) {
        let options = |value: u32, echo: u32| {
            let stamps = [&[4, 2, 8, 10][..], &value.to_be_bytes(), &echo.to_be_bytes()].concat();
            [&[2, 4, 5, 0xb4][..], &stamps, &[1, 3, 3, 7]].concat()
        };
        self.client(seg(SYN, CLIENT, 0).options(&options(client, 0)));
        self.server(seg(SYN | ACK, SERVER, CLIENT + 1).options(&options(server, client)));
        let out = self.client(seg(ACK, CLIENT + 1, SERVER + 1).stamps(client, server));
        assert_eq!(out.inside.len(), 1, "{out:?}");
    }

    /// The number under which the client knows a sequence number of the server: the same, unless shifts are on.
    fn seen_by_client(&self, sequence: u32) -> u32 {
        sequence
    }

    pub(crate) fn client(&mut self, seg: Seg) -> Out {
        self.pass(Side::UNTRUSTED, &seg)
    }

    pub(crate) fn server(&mut self, seg: Seg) -> Out {
        self.pass(Side::TRUSTED, &seg)
    }

    pub(crate) fn pass(&mut self, from: Side, seg: &Seg) -> Out {
        let frame = self.ends.frame(from, seg);
        self.frame(from, frame, Meta::plain()).0
    }

    /// A super-frame: its pieces are `size` bytes long, and the checksum is left to the card.
    pub(crate) fn super_frame(&mut self, from: Side, seg: &Seg, size: u16) -> (Out, Vec<Meta>) {
        let mut frame = self.ends.frame(from, seg);
        let start = if self.ends.client.is_ipv4() { 34 } else { 54 };
        let partial = sum(&[&self.ends.pseudo_header(from, frame.len() - start)]);
        frame[start + 16..start + 18].copy_from_slice(&partial.to_be_bytes());
        let kind = if self.ends.client.is_ipv4() { GsoKind::TcpV4 } else { GsoKind::TcpV6 };
        let gso = (seg.data.len() > usize::from(size)).then_some(Gso { kind, size, ecn: seg.has(CWR) });
        let checksum = Checksum::Partial { start: start as u16, offset: 16 };
        self.frame(from, frame, Meta { checksum, gso, ..Meta::plain() })
    }

    /// A frame as it is, and the metadata of what came of it.
    pub(crate) fn frame(&mut self, from: Side, frame: Vec<u8>, meta: Meta) -> (Out, Vec<Meta>) {
        let mut sink = Collected::new();
        let now = Now { since_boot: self.now, wall: None };
        self.scrubber.process(now, from, &mut Frames::new(&mut [(frame, meta)]), &mut sink);
        let after = self.ledger();
        assert_eq!(after.balance(), 0, "every frame has its fate");
        let before = std::mem::take(&mut self.drops);
        self.drops = DropReason::ALL.iter().map(|reason| after.drops(*reason)).collect();
        let dropped = DropReason::ALL.iter().zip(&before).find(|(reason, count)| after.drops(**reason) > **count);
        let (out, metas) = self.sort(sink);
        (Out { dropped: dropped.map(|(reason, _)| *reason), ..out }, metas)
    }

    /// What left, by side.
    fn sort(&self, mut sink: Collected) -> (Out, Vec<Meta>) {
        let (mut out, mut metas) = (Out::default(), Vec::new());
        for (to, bytes, meta) in sink.take() {
            let seg = read(&bytes, &meta);
            let to_mac = if to == Side::TRUSTED { SERVER_MAC } else { CLIENT_MAC };
            assert_eq!(bytes[..6], to_mac, "a frame goes to whom it is for");
            let side = if to == Side::TRUSTED { &mut out.inside } else { &mut out.outside };
            side.push(seg);
            metas.push(meta);
        }
        (out, metas)
    }

    pub(crate) fn ledger(&self) -> Ledger {
        let mut ledger = Ledger::new();
        self.scrubber.add_to_ledger(&mut ledger);
        ledger
    }

    /// Lets time pass and runs what is due, by which nothing leaves.
    pub(crate) fn wait(&mut self, time: Duration) {
        assert_eq!(self.elapse(time), Out::default());
    }

    /// Lets time pass and runs what is due when it is; what left meanwhile.
    pub(crate) fn elapse(&mut self, time: Duration) -> Out {
        let end = self.now + time;
        let mut sink = Collected::new();
        if self.scrubber.deadline().is_none_or(|due| due > end) {
            self.now = end;
            return Out::default();
        }
        while let Some(due) = self.scrubber.deadline().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.scrubber.tick(Now { since_boot: self.now, wall: None }, 64, &mut sink);
        }
        self.now = end;
        assert_eq!(self.ledger().balance(), 0, "every frame has its fate");
        self.sort(sink).0
    }

    pub(crate) fn id(&self) -> FlowId {
        FlowId { trusted: self.ends.server, untrusted: self.ends.client, vlans: 0 }
    }

    pub(crate) fn count(&self, rule: Rule) -> u64 {
        self.scrubber.counters().of(rule)
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.scrubber.next_event()).collect()
    }
}
