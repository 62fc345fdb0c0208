//! Every segment is read back by another implementation (etherparse), which also recomputes every checksum.

use etherparse::{NetHeaders, PacketBuilder, PacketHeaders, TransportHeader};
use proptest::prelude::*;

use super::*;
use crate::offload::complete_checksum;

#[path = "big_tests.rs"]
mod big;

const SOURCE: [u8; 4] = [10, 0, 0, 1];
const DESTINATION: [u8; 4] = [10, 0, 0, 2];

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 % 251) as u8).collect()
}

/// A TCP super-frame over IPv4 with timestamps, as a stack hands it over.
fn tcp_v4(payload: &[u8], adjust: impl FnOnce(&mut etherparse::TcpHeader)) -> Vec<u8> {
    let mut header = etherparse::TcpHeader::new(5001, 49152, 0xffff_f000, 502);
    header.ack = true;
    header.psh = true;
    header.acknowledgment_number = 77;
    header
        .set_options(&[
            etherparse::TcpOptionElement::Noop,
            etherparse::TcpOptionElement::Noop,
            etherparse::TcpOptionElement::Timestamp(1, 2),
        ])
        .expect("fits");
    adjust(&mut header);
    let mut frame = Vec::new();
    let ip = etherparse::Ipv4Header::new(0, 64, etherparse::IpNumber::TCP, SOURCE, DESTINATION).expect("valid");
    let ip = etherparse::Ipv4Header { identification: 0xfffe, dont_fragment: true, ..ip };
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ip(etherparse::IpHeaders::Ipv4(ip, etherparse::Ipv4Extensions::default()))
        .tcp_header(header)
        .write(&mut frame, payload)
        .expect("a packet");
    frame
}

fn udp_v4(payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv4(SOURCE, DESTINATION, 64)
        .udp(53, 5353)
        .write(&mut frame, payload)
        .expect("a packet");
    frame
}

fn tcp_v6(payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([2; 6], [4; 6])
        .ipv6([0xfd; 16], [0xfe; 16], 64)
        .tcp(80, 8080, 1, 1000)
        .ack(9)
        .write(&mut frame, payload)
        .expect("a packet");
    frame
}

/// `inner` behind outer IPv4, UDP with or without a checksum, and an 8-byte VXLAN header.
fn vxlan(inner: &[u8], with_checksum: bool) -> Vec<u8> {
    let mut body = vec![8, 0, 0, 0, 0, 0, 42, 0];
    body.extend(inner);
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([6; 6], [8; 6])
        .ipv4([192, 168, 0, 1], [192, 168, 0, 2], 64)
        .udp(40000, 4789)
        .write(&mut frame, &body)
        .expect("a packet");
    if !with_checksum {
        frame[40..42].fill(0);
    }
    frame
}

/// `inner`, an Ethernet frame, behind outer IPv4 and GRE for bridged Ethernet.
fn gre(inner: &[u8]) -> Vec<u8> {
    let mut ip = etherparse::Ipv4Header::new(4 + inner.len() as u16, 64, etherparse::IpNumber(47), SOURCE, DESTINATION)
        .expect("valid");
    ip.header_checksum = ip.calc_header_checksum();
    let mut frame = vec![6; 12];
    frame.extend([8, 0]);
    ip.write(&mut frame).expect("a vector");
    frame.extend([0, 0, 0x65, 0x58]);
    frame.extend(inner);
    frame
}

/// All segments, their checksums completed.
fn cut(frame: &[u8], transport: Option<usize>, kind: Kind, size: u16) -> Vec<Vec<u8>> {
    let plan = Plan::new(frame, transport, Cut { kind, size }).expect("a plan");
    let (start, offset) = plan.checksum();
    let write = |index| {
        let mut out = vec![0xa5; plan.segment_len(index)];
        assert_eq!(plan.write(frame, index, &mut out), Some(out.len()));
        complete_checksum(&mut out, start, offset).expect("inside");
        out
    };
    (0..plan.segments()).map(write).collect()
}

/// The same number in one's complement, where 0000 and ffff are both zero: [`complete_checksum`] stores ffff as the kernel
/// does, etherparse stores 0000 in TCP. A receiver takes either.
#[track_caller]
fn assert_same_sum(stored: u16, recomputed: u16) {
    assert_eq!(stored, if recomputed == 0 { u16::MAX } else { recomputed });
}

/// Reads a frame with etherparse and has it recompute every checksum; the payload behind the transport header.
fn checked(frame: &[u8]) -> (NetHeaders, TransportHeader, Vec<u8>) {
    let headers = PacketHeaders::from_ethernet_slice(frame).expect("etherparse reads it");
    let (net, transport) = (headers.net.expect("IP"), headers.transport.expect("transport"));
    let payload = headers.payload.slice();
    match (&net, &transport) {
        (NetHeaders::Ipv4(ip, _), TransportHeader::Tcp(tcp)) => {
            assert_eq!(ip.header_checksum, ip.calc_header_checksum());
            assert_same_sum(tcp.checksum, tcp.calc_checksum_ipv4(ip, payload).expect("short"));
        }
        (NetHeaders::Ipv4(ip, _), TransportHeader::Udp(udp)) => {
            assert_eq!(ip.header_checksum, ip.calc_header_checksum());
            if udp.checksum != 0 {
                assert_eq!(udp.checksum, udp.calc_checksum_ipv4(ip, payload).expect("short"));
            }
        }
        (NetHeaders::Ipv6(ip, _), TransportHeader::Tcp(tcp)) => {
            assert_same_sum(tcp.checksum, tcp.calc_checksum_ipv6(ip, payload).expect("short"));
        }
        (NetHeaders::Ipv6(ip, _), TransportHeader::Udp(udp)) => {
            assert_eq!(udp.checksum, udp.calc_checksum_ipv6(ip, payload).expect("short"));
        }
        other => panic!("{other:?}"),
    }
    (net, transport, payload.to_vec())
}

fn tcp_of(transport: TransportHeader) -> etherparse::TcpHeader {
    transport.tcp().expect("TCP")
}

fn ip_of(net: NetHeaders) -> etherparse::Ipv4Header {
    match net {
        NetHeaders::Ipv4(ip, _) => ip,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_tcp_super_frame_becomes_segments_that_another_reader_accepts() {
    let data = payload(5000);
    let frame = tcp_v4(&data, |header| {
        header.fin = true;
        header.cwr = true;
    });
    let segments = cut(&frame, Some(34), Kind::TcpV4, 1448);
    assert_eq!(segments.iter().map(Vec::len).collect::<Vec<_>>(), [1514, 1514, 1514, 66 + 656]);
    let mut joined = Vec::new();
    for (index, segment) in segments.iter().enumerate() {
        let (net, transport, data) = checked(segment);
        let (ip, tcp) = (ip_of(net), tcp_of(transport));
        assert_eq!(usize::from(ip.total_len), segment.len() - 14);
        assert_eq!(ip.identification, 0xfffe_u16.wrapping_add(index as u16));
        assert_eq!(tcp.sequence_number, 0xffff_f000_u32.wrapping_add(1448 * index as u32));
        assert_eq!((tcp.fin, tcp.psh), (index == 3, index == 3), "segment {index}");
        assert_eq!(tcp.cwr, index == 0, "segment {index}");
        assert!(tcp.ack && !tcp.urg);
        joined.extend(data);
    }
    assert_eq!(joined, data);
}

#[test]
fn a_urgent_pointer_ends_with_the_segment_that_reaches_it() {
    let frame = tcp_v4(&payload(300), |header| {
        header.urg = true;
        header.urgent_pointer = 150;
    });
    let urgent: Vec<_> = cut(&frame, None, Kind::TcpV4, 100)
        .iter()
        .map(|segment| tcp_of(checked(segment).1))
        .map(|tcp| (tcp.urg, tcp.urgent_pointer))
        .collect();
    assert_eq!(urgent, [(true, 150), (true, 50), (false, 0)]);
}

#[test]
fn udp_datagrams_and_ipv6_segments_are_cut_too() {
    let segments = cut(&udp_v4(&payload(2500)), Some(34), Kind::Udp, 1000);
    assert_eq!(segments.iter().map(Vec::len).collect::<Vec<_>>(), [1042, 1042, 542]);
    for segment in &segments {
        let (net, transport, data) = checked(segment);
        assert_eq!(usize::from(transport.udp().expect("UDP").length), data.len() + 8);
        assert_eq!(usize::from(ip_of(net).total_len), data.len() + 28);
    }
    let segments = cut(&tcp_v6(&payload(3000)), Some(54), Kind::TcpV6, 1440);
    assert_eq!(segments.len(), 3);
    for (index, segment) in segments.iter().enumerate() {
        assert_eq!(tcp_of(checked(segment).1).sequence_number, 1 + 1440 * index as u32);
    }
}

#[test]
fn tags_in_front_are_kept() {
    let plain = tcp_v4(&payload(200), |_| {});
    let mut tagged = plain[..12].to_vec();
    tagged.extend([0x81, 0, 0, 5]);
    tagged.extend(&plain[12..]);
    for segment in cut(&tagged, Some(38), Kind::TcpV4, 100) {
        assert_eq!(segment[12..16], [0x81, 0, 0, 5]);
        checked(&segment);
    }
}

#[test]
fn a_tunnelled_super_frame_is_patched_inside_and_outside() {
    let data = payload(3000);
    let inner = tcp_v4(&data, |_| {});
    for (with_checksum, outer) in
        [(false, vxlan(&inner, false)), (true, vxlan(&inner, true)), (false, vxlan(&tcp_v6(&data), false))]
    {
        let is_v6 = outer[14 + 28 + 8 + 12] == 0x86;
        let (transport, kind) = if is_v6 { (50 + 54, Kind::TcpV6) } else { (50 + 34, Kind::TcpV4) };
        let mut joined = Vec::new();
        for (index, segment) in cut(&outer, Some(transport), kind, 1398).iter().enumerate() {
            let (net, udp, body) = checked(segment);
            let udp = udp.udp().expect("UDP");
            assert_eq!(usize::from(ip_of(net).total_len), segment.len() - 14);
            assert_eq!(usize::from(udp.length), segment.len() - 34);
            assert_eq!(udp.checksum != 0, with_checksum);
            let (_, transport, data) = checked(&body[8..]);
            let first = if is_v6 { 1 } else { 0xffff_f000_u32 };
            assert_eq!(tcp_of(transport).sequence_number, first.wrapping_add(1398 * index as u32));
            joined.extend(data);
        }
        assert_eq!(joined, data);
    }
}

#[test]
fn the_layers_of_a_tunnel_in_udp_are_named_and_of_no_other() {
    let data = payload(3000);
    let tunnel = |frame: &[u8], transport, kind| {
        Plan::new(frame, Some(transport), Cut { kind, size: 1000 }).expect("a plan").udp_tunnel()
    };
    let inner = tcp_v4(&data, |_| {});
    let named = UdpTunnel { transport: 34, has_checksum: true, is_v6: false, inner_network: 64 };
    assert_eq!(tunnel(&vxlan(&inner, true), 84, Kind::TcpV4), Some(named));
    let bare = UdpTunnel { has_checksum: false, ..named };
    assert_eq!(tunnel(&vxlan(&tcp_v6(&data), false), 104, Kind::TcpV6), Some(bare));
    assert_eq!(tunnel(&inner, 34, Kind::TcpV4), None);
    assert_eq!(tunnel(&gre(&inner), 72, Kind::TcpV4), None);
}

#[test]
fn gre_and_ip_in_ip_are_cut_and_what_counts_packets_is_refused() {
    let inner = tcp_v4(&payload(3000), |_| {});
    let mut outer = gre(&inner);
    for segment in cut(&outer, Some(38 + 34), Kind::TcpV4, 1000) {
        let total_len = u16::from_be_bytes([segment[16], segment[17]]);
        assert_eq!(usize::from(total_len), segment.len() - 14);
        assert_eq!(Sum::ZERO.bytes(&segment[14..34]).checksum(), 0);
        checked(&segment[38..]);
    }
    for flag in [0x80, 0x10] {
        outer[34] = flag;
        let refused = Plan::new(&outer, Some(38 + 34), Cut { kind: Kind::TcpV4, size: 1000 });
        assert_eq!(refused.err(), Some(Error::Unsupported(Field::Offload)));
    }
    let mut ip_in_ip = gre(&inner)[..34].to_vec();
    ip_in_ip[14 + 9] = 4;
    ip_in_ip.extend(&inner[14..]);
    let total_len = (ip_in_ip.len() - 14) as u16;
    ip_in_ip[16..18].copy_from_slice(&total_len.to_be_bytes());
    assert_eq!(cut(&ip_in_ip, Some(54), Kind::TcpV4, 1000).len(), 3);
}

#[test]
fn contradictions_are_refused() {
    let frame = tcp_v4(&payload(3000), |_| {});
    let refuse = |frame: &[u8], transport, kind, size| {
        assert!(Plan::new(frame, transport, Cut { kind, size }).is_err(), "{transport:?} {kind:?} {size}");
    };
    refuse(&frame, None, Kind::TcpV4, 0);
    refuse(&frame, None, Kind::TcpV4, TCP_SIZE_MIN_BYTES - 1);
    refuse(&frame, None, Kind::TcpV6, 1448);
    refuse(&frame, None, Kind::Udp, 1448);
    refuse(&frame[..frame.len() - 1], None, Kind::TcpV4, 1448);
    for transport in [0, 13, 33, 35, 54, frame.len(), usize::MAX] {
        refuse(&frame, Some(transport), Kind::TcpV4, 1448);
    }
    refuse(&tcp_v4(&payload(3000), |header| header.syn = true), None, Kind::TcpV4, 1448);
    refuse(&udp_v4(&payload(60_000)), None, Kind::Udp, 1);
    let mut arp = frame.clone();
    arp[13] = 6;
    refuse(&arp, None, Kind::TcpV4, 1448);
    let mut fragment = frame;
    fragment[20] = 0x20;
    refuse(&fragment, None, Kind::TcpV4, 1448);
}

#[test]
fn writing_the_wrong_thing_gives_nothing() {
    let frame = tcp_v4(&payload(3000), |_| {});
    let plan = Plan::new(&frame, None, Cut { kind: Kind::TcpV4, size: 1448 }).expect("a plan");
    let mut out = vec![0; 1514];
    assert_eq!(plan.write(&frame, 3, &mut out), None);
    assert_eq!(plan.write(&frame, usize::MAX, &mut out), None);
    assert_eq!(plan.write(&frame, 0, &mut out[..1513]), None);
    assert_eq!(plan.write(&frame[1..], 0, &mut out), None);
    assert_eq!(plan.write(&frame, 2, &mut out), Some(66 + 104));
}

fn any_cut() -> impl Strategy<Value = Cut> {
    let kind = prop_oneof![Just(Kind::TcpV4), Just(Kind::TcpV6), Just(Kind::Udp)];
    (kind, any::<u16>()).prop_map(|(kind, size)| Cut { kind, size })
}

/// Plans and writes everything that can be planned; what matters is that nothing panics.
fn exercise(frame: &[u8], transport: Option<usize>, cut: Cut) {
    let Ok(plan) = Plan::new(frame, transport, cut) else { return };
    let mut out = vec![0; plan.longest_segment()];
    for index in (0..plan.segments()).take(100) {
        let len = plan.write(frame, index, &mut out).expect("a planned segment is written");
        let (start, offset) = plan.checksum();
        complete_checksum(&mut out[..len], start, offset).expect("inside");
    }
}

proptest! {
    #[test]
    fn segments_carry_every_byte_once_and_sum_right(
        len in 1_usize..9000, size in 8_u16..3000, tunnelled: bool, with_checksum: bool
    ) {
        let data = payload(len);
        let inner = tcp_v4(&data, |_| {});
        let (frame, transport) = if tunnelled { (vxlan(&inner, with_checksum), 84) } else { (inner, 34) };
        let mut joined = Vec::new();
        for segment in cut(&frame, Some(transport), Kind::TcpV4, size) {
            let (_, _, body) = checked(&segment);
            joined.extend(if tunnelled { checked(&body[8..]).2 } else { body });
        }
        prop_assert_eq!(joined, data);
    }

    /// Whoever cuts what was begun anew makes the frames that would have been made, whatever stood in the checksums.
    #[test]
    fn begun_checksums_change_no_piece(
        len in 1_usize..9000, size in 8_u16..3000, is_tunnelled: bool, has_checksum: bool, left: [u16; 2]
    ) {
        let inner = tcp_v4(&payload(len), |_| {});
        let (mut frame, transport) = if is_tunnelled { (vxlan(&inner, has_checksum), 84) } else { (inner, 34) };
        let pieces = cut(&frame, Some(transport), Kind::TcpV4, size);
        frame[transport + tcp::CHECKSUM..][..2].copy_from_slice(&left[0].to_be_bytes());
        if is_tunnelled && has_checksum {
            frame[40..42].copy_from_slice(&left[1].max(1).to_be_bytes());
        }
        let plan = Plan::new(&frame, Some(transport), Cut { kind: Kind::TcpV4, size }).expect("a plan");
        prop_assert_eq!(plan.begin_checksums(&mut frame), Some(()));
        prop_assert_eq!(cut(&frame, Some(transport), Kind::TcpV4, size), pieces);
        // Completed as one frame, from the inside out, all of it is right as well.
        complete_checksum(&mut frame, transport, tcp::CHECKSUM).expect("inside");
        if is_tunnelled {
            if has_checksum {
                complete_checksum(&mut frame, 34, udp::CHECKSUM).expect("inside");
            }
            checked(&checked(&frame).2[8..]);
        }
    }

    #[test]
    fn random_bytes_never_panic(frame: Vec<u8>, transport: Option<usize>, cut in any_cut()) {
        exercise(&frame, transport, cut);
    }

    #[test]
    fn damaged_frames_never_panic(
        which in 0_u8..5, len in 0_usize..3000, at in 0_usize..110, value: u8, start in 0_usize..120,
        keep in 0_usize..3200, cut in any_cut()
    ) {
        let inner = tcp_v4(&payload(len), |_| {});
        let mut frame = match which {
            0 => inner,
            1 => vxlan(&inner, true),
            2 => gre(&inner),
            3 => tcp_v6(&payload(len)),
            _ => udp_v4(&payload(len)),
        };
        if let Some(byte) = frame.get_mut(at) {
            *byte = value;
        }
        for transport in [None, Some(start), Some(34), Some(72), Some(84)] {
            exercise(&frame, transport, cut);
        }
        frame.truncate(keep);
        exercise(&frame, Some(start), cut);
    }
}
