//! Super-frames inside of tunnels, against a real kernel: whole where it takes them, and cut to the same frames wherever they are cut.

use std::time::{Duration, Instant};

use bump::{Batch, Checksum, Gso, GsoKind, Meta};
use wire::checksum::{pseudo_header_v4, pseudo_header_v6};
use wire::offload::complete_checksum;
use wire::{ipv4, ipv6, tcp, udp};

use super::cutter::{kept_whole, plan_of};
use super::tests::{frame, ip, may_run, namespace, packet_port, send, through_the_middle, veth};
use super::{Backlog, PacketPort, Receiver, Sender};
use crate::wait::{PollFd, PollFlags, wait};

/// What a frame takes to cross a cable of the same machine, many times over.
const PATIENCE: Duration = Duration::from_secs(5);

/// A TCP segment in VXLAN, of which kinds.
#[derive(Clone, Copy, Debug)]
struct Shape {
    outer_v6: bool,
    inner_v6: bool,
    has_checksum: bool,
    payload_len: usize,
    size: u16,
}

/// All of them, with and without a shorter last piece.
fn shapes() -> impl Iterator<Item = Shape> {
    let flags = (0..8_u8).map(|bits| [bits & 1 != 0, bits & 2 != 0, bits & 4 != 0]);
    // Over IPv6 a tunnel without checksums is an exception (RFC 6935) that has to be asked for.
    let flags = flags.filter(|[outer_v6, _, has_checksum]| *has_checksum || !outer_v6);
    flags.flat_map(|[outer_v6, inner_v6, has_checksum]| {
        [(2000, 1000), (40_001, 1398), (63_000, 8900)].map(|(payload_len, size)| Shape {
            outer_v6,
            inner_v6,
            has_checksum,
            payload_len,
            size,
        })
    })
}

/// `payload` in a packet of `protocol` whose checksum, `offset` bytes into it, is begun unless `offset` is none.
fn packet(is_v6: bool, protocol: u8, payload: &[u8], offset: Option<usize>) -> Vec<u8> {
    let len = payload.len();
    let (mut packet, sum) = if is_v6 {
        let (source, destination) = ([0xfd; 16], [0xfe; 16]);
        let mut header = [&[0x60, 0, 0, 0, 0, 0, protocol, 64][..], &source, &destination].concat();
        header[ipv6::PAYLOAD_LENGTH..][..2].copy_from_slice(&(len as u16).to_be_bytes());
        (header, pseudo_header_v6(source.into(), destination.into(), protocol, len as u32))
    } else {
        let (source, destination) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let mut header = [&[0x45, 0, 0, 0, 0xff, 0xfe, 0, 0, 64, protocol, 0, 0][..], &source, &destination].concat();
        header[ipv4::TOTAL_LENGTH..][..2].copy_from_slice(&((len + ipv4::HEADER_LEN) as u16).to_be_bytes());
        ipv4::fill_checksum(&mut header);
        (header, pseudo_header_v4(source.into(), destination.into(), protocol, len as u16))
    };
    let transport = packet.len();
    packet.extend(payload);
    if let Some(offset) = offset {
        packet[transport + offset..][..2].copy_from_slice(&sum.fold().to_be_bytes());
    }
    packet
}

/// Addresses and type of a frame that carries IPv4 or IPv6.
fn ethernet(is_v6: bool, packet: &[u8]) -> Vec<u8> {
    let ethertype: [u8; 2] = if is_v6 { [0x86, 0xdd] } else { [8, 0] };
    [&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1][..], &ethertype, packet].concat()
}

/// A super-frame of `shape` as the kernel hands it over, before anybody has recognised it.
fn super_frame(shape: Shape) -> (Vec<u8>, Meta) {
    let Shape { outer_v6, inner_v6, has_checksum, payload_len, size } = shape;
    let mut segment =
        [&[0x13, 0x88, 0xc0, 0, 0xff, 0xff, 0xf0, 0, 0, 0, 0, 7, 0x50, 0x18, 1, 0, 0, 0, 0, 0][..]].concat();
    segment.extend((0..payload_len).map(|at| (at * 7 % 251) as u8));
    let inner = ethernet(inner_v6, &packet(inner_v6, 6, &segment, Some(tcp::CHECKSUM)));
    let datagram_len = (8 + 8 + inner.len()) as u16;
    let datagram =
        [&[0x9c, 0x40, 0x12, 0xb5][..], &datagram_len.to_be_bytes(), &[0, 0, 8, 0, 0, 0, 0, 0, 42, 0], &inner].concat();
    let whole = ethernet(outer_v6, &packet(outer_v6, 17, &datagram, has_checksum.then_some(udp::CHECKSUM)));
    let start = whole.len() - segment.len();
    let kind = if inner_v6 { GsoKind::TcpV6 } else { GsoKind::TcpV4 };
    let meta = Meta {
        checksum: Checksum::Partial { start: start as u16, offset: tcp::CHECKSUM as u16 },
        gso: Some(Gso { kind, size, ecn: false }),
        ..Meta::default()
    };
    (whole, meta)
}

/// The plain frames that a super-frame stands for, complete, as this program cuts it.
fn pieces(frame: &[u8], meta: &Meta) -> Vec<Vec<u8>> {
    let plan = plan_of(frame, meta).expect("a plan");
    let (start, offset) = plan.checksum();
    let piece = |index| {
        let mut piece = vec![0; plan.segment_len(index)];
        plan.write(frame, index, &mut piece).expect("room");
        complete_checksum(&mut piece, start, offset).expect("inside");
        piece
    };
    (0..plan.segments()).map(piece).collect()
}

/// The first `count` frames of the hosts of [`ethernet`] and [`frame`] that arrive, their checksums completed.
fn heard(port: &mut PacketPort, count: usize) -> Vec<(Vec<u8>, Meta)> {
    let mut frames = Vec::new();
    let end = Instant::now() + PATIENCE;
    while frames.len() < count && Instant::now() < end {
        wait(&mut [PollFd::new(&port.receiver, PollFlags::IN)], Some(Duration::from_millis(100))).expect("poll");
        port.receiver.fill().expect("filled");
        while let Some(frame) = port.receiver.next_frame() {
            if frame.bytes[6..12] != [2, 0, 0, 0, 0, 1] {
                continue;
            }
            let mut bytes = frame.bytes.to_vec();
            if let Checksum::Partial { start, offset } = frame.meta.checksum
                && frame.meta.gso.is_none()
            {
                complete_checksum(&mut bytes, start.into(), offset.into()).expect("inside");
            }
            frames.push((bytes, frame.meta));
        }
    }
    frames
}

/// Two ports on the ends of a cable, the first with a way out for tunnels; none where the kernel has none.
fn ports(name: &str) -> Option<(std::os::fd::OwnedFd, PacketPort, PacketPort)> {
    if !may_run(name) {
        return None;
    }
    let wire = namespace();
    veth(&wire, "v1", "v2");
    for end in ["v1", "v2"] {
        ip(&wire, &format!("ip link set {end} mtu 9100"));
    }
    let a = packet_port(&wire, "v1", |options| options.tunnels = true);
    if let Some(error) = a.sender.tunnels_refused() {
        eprintln!("SKIPPED {name}: this kernel takes no tunnels on a TAP (Linux 6.17 does): {error}");
        return None;
    }
    let b = packet_port(&wire, "v2", |_| {});
    Some((wire, a, b))
}

#[test]
fn tunnelled_super_frames_leave_and_arrive_whole() {
    let Some((_wire, mut a, mut b)) = ports("tunnelled_super_frames_leave_and_arrive_whole") else { return };
    b.receiver.keep_tunnels();
    for shape in shapes() {
        let (bytes, meta) = super_frame(shape);
        let kept = kept_whole(&bytes, &meta).expect("a tunnel in UDP");
        send(&mut a, &bytes, kept);
        assert!(!a.sender.flush().waits());
        assert_eq!(heard(&mut b, 1), [(bytes, kept)], "{shape:?}");
    }
    assert!(a.sender.carries_tunnels(), "{:?}", a.sender.last_error());
    assert_eq!(a.sender.counters().super_frames, shapes().count() as u64);
    assert_eq!(a.sender.counters().errors, 0);
}

/// The kernel cuts them for a card that cannot, and what leaves then are the frames that this program would have made.
#[test]
fn the_kernel_cuts_tunnelled_super_frames_to_the_same_bytes() {
    let Some((wire, mut a, mut b)) = ports("the_kernel_cuts_tunnelled_super_frames_to_the_same_bytes") else { return };
    ip(&wire, "ethtool -K v1 tx off tso off gso off tx-udp_tnl-segmentation off tx-udp_tnl-csum-segmentation off");
    for shape in shapes() {
        let (mut bytes, meta) = super_frame(shape);
        let expected = pieces(&bytes, &meta);
        // Sums that somebody left wrong would show in every piece.
        let Checksum::Partial { start, offset } = meta.checksum else { panic!("partial") };
        bytes[usize::from(start + offset)] ^= 0x55;
        if shape.has_checksum {
            bytes[if shape.outer_v6 { 54 } else { 34 } + udp::CHECKSUM] ^= 0x55;
        }
        send(&mut a, &bytes, kept_whole(&bytes, &meta).expect("a tunnel in UDP"));
        assert!(!a.sender.flush().waits());
        let heard = heard(&mut b, expected.len());
        assert!(heard.iter().all(|(_, meta)| meta.gso.is_none()), "{shape:?}");
        assert!(heard.iter().map(|(bytes, _)| bytes).eq(&expected), "{shape:?}: {} of {}", heard.len(), expected.len());
    }
    assert!(a.sender.carries_tunnels());
}

/// The kernel refuses what it once promised to take: that frame is lost, and counted, and later ones are cut.
#[test]
fn without_a_way_out_they_are_cut_to_the_same_bytes() {
    let Some((wire, mut a, mut b)) = ports("without_a_way_out_they_are_cut_to_the_same_bytes") else { return };
    ip(&wire, "ip link set tunnels0 down");
    let (bytes, meta) = super_frame(shapes().next().expect("some"));
    send(&mut a, &bytes, kept_whole(&bytes, &meta).expect("a tunnel in UDP"));
    assert!(!a.sender.flush().waits());
    assert_eq!((a.sender.counters().errors, a.sender.carries_tunnels()), (1, false));
    for shape in shapes() {
        let (bytes, meta) = super_frame(shape);
        send(&mut a, &frame(1, 100), Meta::plain());
        send(&mut a, &bytes, kept_whole(&bytes, &meta).expect("a tunnel in UDP"));
        send(&mut a, &frame(2, 100), Meta::plain());
        assert!(!a.sender.flush().waits());
        let expected = [vec![frame(1, 100)], pieces(&bytes, &meta), vec![frame(2, 100)]].concat();
        assert!(heard(&mut b, expected.len()).iter().map(|(bytes, _)| bytes).eq(&expected), "{shape:?}");
    }
    assert_eq!(a.sender.counters().errors, 1);
}

#[test]
fn frames_before_and_behind_a_tunnelled_one_keep_their_places() {
    let Some((_wire, mut a, mut b)) = ports("frames_before_and_behind_a_tunnelled_one_keep_their_places") else {
        return;
    };
    b.receiver.keep_tunnels();
    let shape = shapes().next().expect("some");
    let (bytes, meta) = super_frame(shape);
    let kept = kept_whole(&bytes, &meta).expect("a tunnel in UDP");
    let mut sent = Vec::new();
    for number in 0..40 {
        let (frame, meta) = if number % 3 == 2 { (bytes.clone(), kept) } else { (frame(number, 100), Meta::plain()) };
        send(&mut a, &frame, meta);
        sent.push(frame);
    }
    assert!(!a.sender.flush().waits());
    assert!(heard(&mut b, sent.len()).iter().map(|(bytes, _)| bytes).eq(&sent));
}

/// The TAP's own limit is reached before the queue behind the card is full, so that nothing is lost in it.
#[test]
fn a_slow_link_delays_tunnelled_super_frames_and_loses_none() {
    const COUNT: usize = 40;
    let name = "a_slow_link_delays_tunnelled_super_frames_and_loses_none";
    let Some((wire, a, mut b)) = ports(name) else { return };
    drop(a);
    ip(&wire, "tc qdisc add dev v1 root tbf rate 100mbit burst 128kb limit 2mb");
    let mut a = packet_port(&wire, "v1", |options| (options.tunnels, options.buffer_bytes) = (true, 256 << 10));
    b.receiver.keep_tunnels();
    let shape = Shape { payload_len: 40_001, size: 1398, ..shapes().next().expect("some") };
    let (bytes, meta) = super_frame(shape);
    for _ in 0..COUNT {
        send(&mut a, &bytes, kept_whole(&bytes, &meta).expect("a tunnel in UDP"));
    }
    let end = Instant::now() + PATIENCE;
    while let Backlog::After(pause) = a.sender.flush()
        && Instant::now() < end
    {
        std::thread::sleep(pause);
    }
    assert!(heard(&mut b, COUNT).iter().map(|(bytes, _)| bytes).eq(std::iter::repeat_n(&bytes, COUNT)));
    let counters = a.sender.counters();
    assert!(counters.backlogs > 0 && counters.errors == 0 && a.sender.carries_tunnels(), "{counters:?}");
}

/// What cannot leave whole is cut where it comes in: tags are kept beside the frame, and other tunnels have no way out.
#[test]
fn only_tcp_in_a_tunnel_in_udp_without_tags_stays_whole() {
    let shape = shapes().next().expect("some");
    let (bytes, meta) = super_frame(shape);
    assert!(kept_whole(&bytes, &meta).is_some());
    let tagged = Meta { vlan: Some(bump::VlanTag { tpid: 0x8100, tci: 7 }), ..meta };
    assert_eq!(kept_whole(&bytes, &tagged), None);
    let in_frame = [&bytes[..12], &[0x81, 0, 0, 7], &bytes[12..]].concat();
    let Checksum::Partial { start, offset } = meta.checksum else { panic!("partial") };
    let later = Meta { checksum: Checksum::Partial { start: start + 4, offset }, ..meta };
    assert!(plan_of(&in_frame, &later).is_ok());
    assert_eq!(kept_whole(&in_frame, &later), None);
    let mut short = bytes.clone();
    short.truncate(bytes.len() - 1);
    assert_eq!(kept_whole(&short, &meta), None, "lengths that contradict each other");
    let (single, of_one) = super_frame(Shape { payload_len: 1000, ..shape });
    assert_eq!(plan_of(&single, &of_one).map(|plan| plan.segments()), Ok(1));
    assert_eq!(kept_whole(&single, &of_one), None, "one piece");
    let datagrams = Meta { gso: Some(Gso { kind: GsoKind::Udp, size: 1000, ecn: false }), ..meta };
    assert_eq!(kept_whole(&bytes, &datagrams), None);
}

#[test]
fn tcp_in_a_tunnel_between_guests_stays_whole_both_ways() {
    if ports("tcp_in_a_tunnel_between_guests_stays_whole_both_ways").is_none() {
        return;
    }
    let totals = through_the_middle(true, true);
    for side in totals.received {
        assert!(side.super_frames > 100 && side.segments == 0 && side.unreadable == 0, "{totals:?}");
    }
    assert!(totals.sent[0].super_frames > 100, "{totals:?}");
    assert!(totals.sent.iter().all(|side| side.errors == 0), "{totals:?}");
}
