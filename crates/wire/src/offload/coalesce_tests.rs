//! Joining is the reverse of cutting, and refuses whatever a super-frame could not say.

use etherparse::{PacketBuilder, TcpHeader, TcpOptionElement};
use proptest::prelude::*;

use super::*;
use crate::offload::{Cut, Kind, Plan, complete_checksum};

const SIZE: usize = 1448;

/// A segment of a flow: `sequence`, `len` payload bytes.
fn segment(sequence: u32, len: usize, identification: u16, push: bool) -> Vec<u8> {
    segment_with(sequence, len, identification, push, |_| {})
}

fn segment_with(
    sequence: u32,
    len: usize,
    identification: u16,
    push: bool,
    adjust: impl FnOnce(&mut TcpHeader),
) -> Vec<u8> {
    let mut header = TcpHeader::new(5001, 49152, sequence, 502);
    (header.ack, header.psh, header.acknowledgment_number) = (true, push, 77);
    let options = [TcpOptionElement::Noop, TcpOptionElement::Noop, TcpOptionElement::Timestamp(1, 2)];
    header.set_options(&options).expect("fits");
    adjust(&mut header);
    let ip = etherparse::Ipv4Header::new(0, 64, etherparse::IpNumber::TCP, [10, 0, 0, 1], [10, 0, 0, 2]);
    let ip = etherparse::Ipv4Header { identification, dont_fragment: false, ..ip.expect("valid") };
    let payload: Vec<u8> = (0..len).map(|at| (at + sequence as usize) as u8).collect();
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ip(etherparse::IpHeaders::Ipv4(ip, etherparse::Ipv4Extensions::default()))
        .tcp_header(header)
        .write(&mut frame, &payload)
        .expect("a packet");
    frame
}

/// A datagram of a flow: `len` payload bytes, each `fill`.
fn datagram(len: usize, identification: u16, fill: u8) -> Vec<u8> {
    datagram_between([5001, 49152], len, identification, fill)
}

fn datagram_between(ports: [u16; 2], len: usize, identification: u16, fill: u8) -> Vec<u8> {
    let ip = etherparse::Ipv4Header::new(0, 64, etherparse::IpNumber::UDP, [10, 0, 0, 1], [10, 0, 0, 2]);
    let ip = etherparse::Ipv4Header { identification, dont_fragment: false, ..ip.expect("valid") };
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ip(etherparse::IpHeaders::Ipv4(ip, etherparse::Ipv4Extensions::default()))
        .udp(ports[0], ports[1])
        .write(&mut frame, &vec![fill; len])
        .expect("a packet");
    frame
}

/// Changes a byte of the IP header and puts its checksum right again.
fn with_ip_byte(mut frame: Vec<u8>, at: usize, value: u8) -> Vec<u8> {
    frame[14 + at] = value;
    ipv4::fill_checksum(&mut frame[14..34]);
    frame
}

/// Joins as many of `frames` as follow the first; the joined frame and how many it took.
fn join(frames: &[Vec<u8>]) -> (Vec<u8>, usize) {
    let mut joined = frames[0].clone();
    let Some(mut run) = Run::begin(&frames[0]) else { return (joined, 1) };
    for frame in &frames[1..] {
        let Some(payload) = run.append(&frames[0], frame) else { break };
        joined.extend(&frame[payload]);
    }
    run.finish(&mut joined);
    assert_eq!(joined.len(), run.frame_len());
    (joined, run.segments())
}

fn follows(second: &[u8]) -> bool {
    let first = segment(1000, SIZE, 7, false);
    Run::begin(&first).expect("plain data").append(&first, second).is_some()
}

#[test]
fn three_segments_become_one_frame_that_another_reader_accepts() {
    let frames = [
        segment(u32::MAX - 100, SIZE, 0xffff, false),
        segment((SIZE as u32).wrapping_sub(101), SIZE, 0, false),
        segment(2 * SIZE as u32 - 101, 500, 1, true),
        segment(2 * SIZE as u32 + 399, 500, 2, true),
    ];
    let (mut joined, count) = join(&frames);
    assert_eq!((count, joined.len()), (3, 66 + 2 * SIZE + 500));
    complete_checksum(&mut joined, 34, 16).expect("inside");
    let headers = etherparse::PacketHeaders::from_ethernet_slice(&joined).expect("readable");
    let tcp = headers.transport.and_then(etherparse::TransportHeader::tcp).expect("TCP");
    let Some(etherparse::NetHeaders::Ipv4(ip, _)) = headers.net else { panic!("no IPv4") };
    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
    assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, headers.payload.slice()).expect("short"));
    assert!(tcp.psh && ip.identification == 0xffff);
}

#[test]
fn the_next_segment_follows_and_nothing_else() {
    let next = 1000 + SIZE as u32;
    assert!(follows(&segment(next, SIZE, 8, false)));
    assert!(follows(&segment(next, 1, 8, true)));
    assert!(!follows(&segment(next + 1, SIZE, 8, false)), "a hole");
    assert!(!follows(&segment(1000, SIZE, 8, false)), "a repetition");
    assert!(!follows(&segment(next, SIZE + 1, 8, false)), "longer than the first");
    assert!(!follows(&segment(next, SIZE, 9, false)), "identification");
    assert!(!follows(&segment(next, 0, 8, false)), "no data");
    assert!(!follows(&segment_with(next, SIZE, 8, false, |tcp| tcp.acknowledgment_number = 78)), "acknowledgement");
    assert!(!follows(&segment_with(next, SIZE, 8, false, |tcp| tcp.window_size = 501)), "window");
    assert!(!follows(&segment_with(next, SIZE, 8, false, |tcp| tcp.source_port = 5002)), "port");
    assert!(!follows(&segment_with(next, SIZE, 8, false, |tcp| tcp.fin = true)), "FIN");
    assert!(!follows(&segment_with(next, SIZE, 8, false, |tcp| tcp.cwr = true)), "CWR");
    assert!(!follows(&segment_with(next, SIZE, 8, false, |tcp| tcp.urg = true)), "URG");
    assert!(!follows(&segment_with(next, SIZE, 8, false, |tcp| tcp.ns = true)), "reserved bits");
    let other_stamp = |tcp: &mut TcpHeader| tcp.set_options(&[TcpOptionElement::Timestamp(1, 3)]).expect("fits");
    assert!(!follows(&segment_with(next, SIZE, 8, false, other_stamp)), "timestamp");
    assert!(!follows(&with_ip_byte(segment(next, SIZE, 8, false), 1, 3)), "congestion experienced");
    assert!(!follows(&with_ip_byte(segment(next, SIZE, 8, false), 8, 63)), "hops");
    assert!(!follows(&with_ip_byte(segment(next, SIZE, 8, false), 6, 0x20)), "a fragment");
    assert!(!follows(&with_ip_byte(segment(next, SIZE, 8, false), 15, 9)), "source address");
    let mut broken = segment(next, SIZE, 8, false);
    broken[24] ^= 1;
    assert!(!follows(&broken), "IP checksum");
    let mut padded = segment(next, 1, 8, false);
    padded.push(0);
    assert!(!follows(&padded), "padding");
}

#[test]
fn datagrams_of_one_flow_become_one_frame_that_another_reader_accepts() {
    let frames = [
        datagram(1300, 0xffff, 1),
        datagram(1300, 0, 2),
        datagram(1300, 1, 3),
        datagram(700, 2, 4),
        datagram(700, 3, 5),
    ];
    assert_eq!(Run::begin(&frames[0]).map(|run| run.kind()), Some(Kind::Udp));
    let (mut joined, count) = join(&frames);
    assert_eq!((count, joined.len()), (4, 42 + 3 * 1300 + 700), "the shorter one is the last");
    complete_checksum(&mut joined, 34, 6).expect("inside");
    let headers = etherparse::PacketHeaders::from_ethernet_slice(&joined).expect("readable");
    let udp = headers.transport.and_then(etherparse::TransportHeader::udp).expect("UDP");
    let Some(etherparse::NetHeaders::Ipv4(ip, _)) = headers.net else { panic!("no IPv4") };
    let payload = headers.payload.slice();
    assert_eq!(ip.header_checksum, ip.calc_header_checksum());
    assert_eq!(usize::from(udp.length), 8 + payload.len());
    assert_eq!(udp.checksum, udp.calc_checksum_ipv4(&ip, payload).expect("short"));
    assert_eq!(payload, [vec![1; 1300], vec![2; 1300], vec![3; 1300], vec![4; 700]].concat());
}

#[test]
fn a_datagram_of_another_flow_or_kind_does_not_follow() {
    let first = datagram(100, 7, 1);
    let follows = |second: &[u8]| Run::begin(&first).expect("a datagram").append(&first, second).is_some();
    assert!(follows(&datagram(100, 8, 2)));
    assert!(follows(&datagram(1, 8, 2)));
    assert!(!follows(&datagram(101, 8, 2)), "longer than the first");
    assert!(!follows(&datagram(100, 9, 2)), "identification");
    assert!(!follows(&datagram(0, 8, 2)), "no data");
    assert!(!follows(&datagram_between([5002, 49152], 100, 8, 2)), "source port");
    assert!(!follows(&datagram_between([5001, 49153], 100, 8, 2)), "destination port");
    assert!(!follows(&with_ip_byte(datagram(100, 8, 2), 8, 63)), "hops");
    assert!(!follows(&with_ip_byte(datagram(100, 8, 2), 15, 9)), "source address");
    assert!(!follows(&segment(1000, 100, 8, false)), "TCP");
    let mut longer_inside = datagram(100, 8, 2);
    longer_inside[34 + udp::LENGTH + 1] -= 1;
    assert!(!follows(&longer_inside), "its own length");
    let mut without_checksum = datagram(100, 8, 2);
    without_checksum[34 + udp::CHECKSUM..][..2].fill(0);
    assert!(!follows(&without_checksum), "no checksum, which it would be given");
    assert!(Run::begin(&without_checksum).is_none());
}

#[test]
fn dhcp_is_left_as_it_is() {
    for ports in [[67, 68], [68, 67], [67, 67], [5001, 68]] {
        assert!(Run::begin(&datagram_between(ports, 300, 0, 1)).is_none(), "{ports:?}");
    }
}

#[test]
fn with_dont_fragment_the_identification_is_free() {
    let df = |frame| with_ip_byte(frame, 6, 0x40);
    let frames = [df(segment(0, SIZE, 0, false)), df(segment(SIZE as u32, SIZE, 0, false))];
    assert_eq!(join(&frames).1, 2);
    assert_eq!(join(&[frames[0].clone(), segment(SIZE as u32, SIZE, 1, false)]).1, 1, "only one has it");
}

#[test]
fn a_run_ends_with_a_push_a_short_segment_or_64_kib() {
    assert!(Run::begin(&segment(0, SIZE, 0, true)).is_none());
    assert!(Run::begin(&segment(0, 0, 0, false)).is_none());
    assert!(Run::begin(&segment(0, 7, 0, false)).is_none(), "too small to be cut again");
    assert!(Run::begin(&segment(0, 8, 0, false)).is_some());
    let short = [segment(0, SIZE, 0, false), segment(SIZE as u32, 9, 1, false), segment(SIZE as u32 + 9, 9, 2, false)];
    assert_eq!(join(&short).1, 2);
    let many: Vec<_> = (0..60_u16).map(|at| segment(u32::from(at) * SIZE as u32, SIZE, at, false)).collect();
    assert_eq!(join(&many).1, (65_535 - 52) / SIZE);
}

/// `frame` with a TCP checksum of zero as [`complete_checksum`] and the kernel write it: ffff, the same number in one's
/// complement. etherparse, which made the frame, writes 0000.
fn with_zero_as_ffff(mut frame: Vec<u8>) -> Vec<u8> {
    let checksum = &mut frame[34 + tcp::CHECKSUM..][..2];
    if checksum == [0, 0] {
        checksum.fill(0xff);
    }
    frame
}

/// `frame` cut into segments of `size` bytes and joined again, and how many segments there were and were joined.
fn cut_and_join(frame: &[u8], size: u16) -> (Vec<u8>, usize, usize) {
    let plan = Plan::new(frame, Some(34), Cut { kind: Kind::TcpV4, size }).expect("a plan");
    let cut = |index| {
        let mut out = vec![0; plan.segment_len(index)];
        plan.write(frame, index, &mut out).expect("planned");
        out
    };
    let segments: Vec<Vec<u8>> = (0..plan.segments()).map(cut).collect();
    let (mut joined, count) = join(&segments);
    complete_checksum(&mut joined, 34, 16).expect("inside");
    (joined, segments.len(), count)
}

#[test]
fn a_sum_of_zero_is_written_as_ffff() {
    // Found by the property below: the one frame in 65,536 whose checksum is zero.
    let frame = segment(1_726_074_602, 3451, 0, true);
    assert_eq!(frame[34 + tcp::CHECKSUM..][..2], [0, 0]);
    let (joined, ..) = cut_and_join(&frame, 12);
    assert_eq!(joined[34 + tcp::CHECKSUM..][..2], [0xff, 0xff]);
    assert_eq!(joined, with_zero_as_ffff(frame));
}

proptest! {
    #[test]
    fn joining_what_was_cut_gives_the_same_frame(
        sequence: u32, identification: u16, size in 8_usize..3000, beyond in 1_usize..30_000, push: bool, df: bool
    ) {
        // At least two segments, at most 300.
        let len = (size + beyond).min(300 * size);
        let frame = with_ip_byte(segment(sequence, len, identification, push), 6, if df { 0x40 } else { 0 });
        let (joined, cut, count) = cut_and_join(&frame, size as u16);
        prop_assert_eq!(count, cut);
        prop_assert_eq!(joined, with_zero_as_ffff(frame));
    }

    #[test]
    fn joining_cut_datagrams_gives_the_same_frame(
        identification: u16, size in 1_usize..3000, beyond in 1_usize..30_000, fill: u8, df: bool
    ) {
        let len = (size + beyond).min(300 * size);
        let frame = with_ip_byte(datagram(len, identification, fill), 6, if df { 0x40 } else { 0 });
        let plan = Plan::new(&frame, Some(34), Cut { kind: Kind::Udp, size: size as u16 }).expect("a plan");
        let datagrams: Vec<Vec<u8>> = (0..plan.segments()).map(|index| {
            let mut out = vec![0; plan.segment_len(index)];
            plan.write(&frame, index, &mut out).expect("planned");
            complete_checksum(&mut out, 34, udp::CHECKSUM).expect("inside");
            out
        }).collect();
        let (mut joined, count) = join(&datagrams);
        complete_checksum(&mut joined, 34, udp::CHECKSUM).expect("inside");
        prop_assert_eq!(count, datagrams.len());
        prop_assert_eq!(joined, frame);
    }

    #[test]
    fn random_bytes_never_panic(first: Vec<u8>, second: Vec<u8>, at in 0_usize..66, value: u8, keep in 0_usize..1600) {
        let _ = Run::begin(&first);
        let good = segment(1000, SIZE, 7, false);
        let mut damaged = segment(1000 + SIZE as u32, SIZE, 8, false);
        damaged[at] = value;
        damaged.truncate(keep);
        for frame in [&second, &damaged] {
            let mut run = Run::begin(&good).expect("plain data");
            let _ = run.append(&good, frame);
            let _ = run.append(&first, frame);
            run.finish(&mut first.clone());
        }
        let _ = Run::begin(&damaged);
    }
}
