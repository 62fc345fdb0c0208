//! The scrubber as a whole, driven by choices: any frames from both sides while time passes, and what must hold of all that leaves.
//!
//! The laws: nothing panics; every frame has one fate, and the books balance; every packet that leaves parses and carries right
//! checksums, judged by a parser that is not ours; no byte of a stream towards the protected side ever leaves with two values;
//! and what leaves would leave a second scrubber as it is.

pub(crate) mod choices;
pub(crate) mod frames;

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use bump::sink::Collected;
use bump::{Bump, Checksum, Frame, Instant, Ledger, Meta, Now, Side};
use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use scrub::settings::Adopt;
use scrub::{Action, Keys, Preset, Rule, Scrubber, Settings};
use wire::layer::{
    self,
    protocol::{TCP, UDP},
};
use wire::offload::complete_checksum;
use wire::tcp;

use self::choices::Choices;
use self::frames::World;

/// Longest script, in steps.
const STEPS_MAX: usize = 120;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;
/// Pieces of due work in one turn.
const BUDGET: usize = 64;
/// Rules after which a second scrubber sees something else than the first: numbers that are shifted, and a first window that is
/// told smaller than it is, while what is sent into the real one goes on.
const UNREPEATABLE: [Rule; 5] = [
    Rule::TcpSequenceShift,
    Rule::TcpTimestampShift,
    Rule::Ipv4Identification,
    Rule::Ipv6FlowLabel,
    Rule::TcpInitialWindow,
];

/// A frame that left: to where, its bytes, and what the port is told about it.
type Left = (Side, Vec<u8>, Meta);

fn keys() -> Keys {
    Keys { tables: [7; 16], sequence: [8; 16], identification: [9; 16] }
}

/// A scrubber and its time.
struct Gate {
    scrubber: Scrubber,
    now: Instant,
    received: u64,
}

impl Gate {
    fn new(settings: Settings) -> Gate {
        Gate { scrubber: Scrubber::new(settings, keys()), now: Instant::from_millis(1000), received: 0 }
    }

    fn at(&self) -> Now {
        Now { since_boot: self.now, wall: None }
    }

    fn take(&mut self, from: Side, mut bytes: Vec<u8>, meta: Meta) -> Vec<Left> {
        let mut sink = Collected::new();
        let mut batch = Some(Frame { bytes: &mut bytes, meta });
        self.scrubber.process(self.at(), from, &mut batch, &mut sink);
        self.received += 1;
        self.check_books();
        sink.take()
    }

    /// Lets time pass; what falls due happens at its hour.
    fn pass(&mut self, time: Duration) -> Vec<Left> {
        let end = self.now + time;
        let mut sink = Collected::new();
        while let Some(due) = self.scrubber.deadline().filter(|due| *due <= end) {
            self.now = due.max(self.now);
            self.scrubber.tick(self.at(), BUDGET, &mut sink);
            assert!(self.scrubber.deadline().is_none_or(|next| next > due || BUDGET > 1), "time does not pass");
        }
        self.now = end;
        self.check_books();
        sink.take()
    }

    fn check_books(&mut self) {
        while self.scrubber.next_event().is_some() {}
        let mut ledger = Ledger::new();
        self.scrubber.add_to_ledger(&mut ledger);
        assert_eq!(ledger.balance(), 0, "every frame has one fate");
        assert_eq!(ledger.received.iter().sum::<u64>(), self.received);
    }
}

/// What bytes of streams have left towards the protected side, by flow, beginning and number.
#[derive(Default)]
struct Streams {
    /// The beginning of each flow as its latest SYN had it.
    began: HashMap<(IpAddr, IpAddr, u16, u16), u32>,
    bytes: HashMap<(IpAddr, IpAddr, u16, u16, u32, u32), u8>,
}

impl Streams {
    fn enter(&mut self, frame: &[u8]) {
        let Some((flow, bytes)) = frames::segment(frame) else { return };
        let Ok(header) = tcp::View::new(bytes) else { return };
        let is_syn = header.flags() & tcp::flag::SYN != 0;
        if is_syn {
            self.began.insert(flow, header.sequence());
        }
        let began = self.began.get(&flow).copied().unwrap_or(0);
        let (source, destination, from, to) = flow;
        let first = header.sequence().wrapping_add(u32::from(is_syn));
        for (offset, byte) in header.payload().iter().enumerate() {
            let at = (source, destination, from, to, began, first.wrapping_add(offset as u32));
            let kept = *self.bytes.entry(at).or_insert(*byte);
            assert_eq!(kept, *byte, "one byte of a stream left with two values: {at:?}");
        }
    }
}

/// Which rules hold in a run, as `choices` have it.
fn settings(choices: &mut Choices<'_>) -> Settings {
    // The paper leaves UDP and ICMP alone.
    let mut settings = Settings::preset(choices.of(&[Preset::Balanced, Preset::Strict]));
    for rule in UNREPEATABLE {
        settings.rules.set(rule, Action::Off);
    }
    settings
}

/// Runs the script `data` and checks the laws.
pub(crate) fn run(data: &[u8]) {
    let mut choices = Choices::new(data);
    let settings = settings(&mut choices);
    let is_strict = settings.both_directions;
    let mut first = Gate::new(settings.clone());
    let mut second = Gate::new(settings);
    let mut world = World::default();
    let mut streams = Streams::default();
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    for _ in 0..STEPS_MAX {
        if choices.is_empty() {
            break;
        }
        let mut left = Vec::new();
        if choices.once_in(6) {
            let time = Duration::from_millis(choices.of(&[1, 50, 200, 1000, 3000, 40_000, 600_000]));
            left.extend(first.pass(time));
            twice.extend(second.pass(time));
        } else {
            for (from, frame, meta) in world.frame(&mut choices) {
                left.extend(first.take(from, frame, meta));
            }
        }
        for (to, frame, meta) in &left {
            world.hear(*to, frame);
            // What trusted hosts send is their own affair unless both directions are scrubbed.
            if *to == Side::TRUSTED || is_strict {
                check(frame, meta);
                streams.enter(frame);
            }
            twice.extend(second.take(to.other(), frame.clone(), *meta));
        }
        once.extend(left);
    }
    check_same(&once, &twice);
}

/// As [`run`] with any rules and any shifts, where only what always holds is checked.
pub(crate) fn run_any(data: &[u8]) {
    let mut choices = Choices::new(data);
    let mut settings = Settings::preset(choices.of(&[Preset::Balanced, Preset::Strict, Preset::Paper]));
    for rule in Rule::ALL {
        if choices.once_in(4) {
            settings.rules.set(*rule, choices.of(&[Action::Off, Action::Scrub, Action::Sever]));
        }
    }
    settings.adopt = [Adopt::No, Adopt::End, Adopt::Unshifted, Adopt::All][choices.below(4)];
    settings.flows.max = choices.of(&[1, 3, 1000]);
    settings.memory_max_bytes = choices.of(&[0, 100, 1 << 20]);
    let mut gate = Gate::new(settings);
    let mut world = World::of_lying_ports();
    for _ in 0..STEPS_MAX {
        if choices.is_empty() {
            break;
        }
        let left = if choices.once_in(6) {
            gate.pass(Duration::from_millis(choices.of(&[1, 50, 1000, 40_000, 600_000])))
        } else {
            let frames = world.frame(&mut choices);
            frames.into_iter().flat_map(|(from, frame, meta)| gate.take(from, frame, meta)).collect()
        };
        for (to, frame, _) in &left {
            world.hear(*to, frame);
        }
    }
}

/// What left once leaves again as it is.
fn check_same(once: &[Left], twice: &[Left]) {
    for (place, pair) in once.iter().zip(twice).enumerate() {
        assert_eq!(pair.0, pair.1, "frame {place} of what left is changed by a second scrubber");
    }
    assert_eq!(once.len(), twice.len(), "a second scrubber drops, holds or makes frames");
}

/// What the scrubber passes unread where its rules allow it: all but TCP, UDP and the control messages of the same version of IP.
fn is_opaque(frame: &[u8]) -> bool {
    let Some((protocol, _)) = layer::transport_layer(frame) else { return false };
    let is_v6 = layer::network_layer(frame).is_some_and(|(ethertype, _)| ethertype == wire::EtherType::IPV6);
    ![TCP, UDP, if is_v6 { ICMPV6 } else { ICMP }].contains(&protocol)
}

/// A frame that left parses and has right checksums.
fn check(frame: &[u8], meta: &Meta) {
    assert!(frame.len() >= 14, "a frame has a header");
    let Some((wire::EtherType::IPV4 | wire::EtherType::IPV6, network)) = layer::network_layer(frame) else { return };
    let mut whole = frame.to_vec();
    if let Checksum::Partial { start, offset } = meta.checksum {
        let begun = frame.get(usize::from(start + offset)..usize::from(start + offset) + 2).expect("inside the frame");
        let sum = frames::pseudo_header(frame).expect("a pseudo header");
        assert_eq!(begun, sum.to_be_bytes(), "only the pseudo header's sum stands there: {frame:02x?}");
        complete_checksum(&mut whole, start.into(), offset.into()).expect("inside the frame");
    }
    if is_opaque(frame) {
        return;
    }
    let sliced = SlicedPacket::from_ethernet(&whole).unwrap_or_else(|error| panic!("{error}: {whole:02x?}"));
    let net = sliced.net.as_ref().expect("a network layer");
    let is_fragment = match net {
        NetSlice::Ipv4(slice) => {
            let header = slice.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert_eq!(usize::from(header.total_len), whole.len() - network, "nothing follows the packet");
            header.is_fragmenting_payload()
        }
        NetSlice::Ipv6(slice) => {
            assert_eq!(usize::from(slice.header().payload_length()), whole.len() - network - 40, "nothing follows it");
            slice.extensions().first_header().is_some() && slice.is_payload_fragmented()
        }
        NetSlice::Arp(_) => unreachable!("the EtherType says IP"),
    };
    // The checksum of a packet in fragments is judged where it is put together.
    if !is_fragment {
        check_transport(net, sliced.transport.as_ref());
    }
}

fn check_transport(net: &NetSlice<'_>, transport: Option<&TransportSlice<'_>>) {
    let addresses = match net {
        NetSlice::Ipv4(slice) => Addresses::V4(slice.header().source(), slice.header().destination()),
        NetSlice::Ipv6(slice) => Addresses::V6(slice.header().source(), slice.header().destination()),
        NetSlice::Arp(_) => return,
    };
    match transport {
        Some(TransportSlice::Tcp(slice)) => {
            let header = slice.to_header();
            let right = match addresses {
                Addresses::V4(source, destination) => {
                    header.calc_checksum_ipv4_raw(source, destination, slice.payload()).expect("short")
                }
                Addresses::V6(source, destination) => {
                    header.calc_checksum_ipv6_raw(source, destination, slice.payload()).expect("short")
                }
            };
            assert_same_sum(slice.checksum(), right, "TCP");
        }
        Some(TransportSlice::Udp(slice)) => {
            let header = slice.to_header();
            let right = match addresses {
                Addresses::V4(source, destination) => {
                    header.calc_checksum_ipv4_raw(source, destination, slice.payload()).expect("short")
                }
                Addresses::V6(source, destination) => {
                    header.calc_checksum_ipv6_raw(source, destination, slice.payload()).expect("short")
                }
            };
            // Over IPv4 a datagram need not have one (RFC 768).
            let has_none = slice.checksum() == 0 && matches!(addresses, Addresses::V4(..));
            assert!(has_none || same_sum(slice.checksum(), right), "UDP: {:04x}, not {right:04x}", slice.checksum());
        }
        // The parser knows the fields of each type and leaves out what is none, so all bytes are summed here.
        Some(TransportSlice::Icmpv4(slice)) => assert_eq!(sum(slice.slice()), u16::MAX, "ICMP: {:02x?}", slice.slice()),
        Some(TransportSlice::Icmpv6(slice)) => {
            if let Addresses::V6(source, destination) = addresses {
                assert!(slice.is_checksum_valid(source, destination), "ICMPv6");
            }
        }
        Some(TransportSlice::Igmp(_)) | None => {}
    }
}

/// The sum of RFC 1071, section 1, word by word.
fn sum(bytes: &[u8]) -> u16 {
    bytes.chunks(2).fold(0, |sum: u16, pair| {
        let word = u16::from(pair[0]) << 8 | u16::from(*pair.get(1).unwrap_or(&0));
        let (sum, carry) = sum.overflowing_add(word);
        sum + u16::from(carry)
    })
}

enum Addresses {
    V4([u8; 4], [u8; 4]),
    V6([u8; 16], [u8; 16]),
}

/// Zero has two forms in one's complement.
fn same_sum(one: u16, other: u16) -> bool {
    one == other || (one ^ other == u16::MAX && (one == 0 || other == 0))
}

fn assert_same_sum(there: u16, right: u16, what: &str) {
    assert!(same_sum(there, right), "{what}: {there:04x}, not {right:04x}");
}
