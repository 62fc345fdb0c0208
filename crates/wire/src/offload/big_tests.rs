//! Frames longer than 64 KiB become super-frames, which are cut on by what was tested already.

use super::*;
use crate::offload::unfold;

/// 150,000 bytes of data: RFC 2675 has the length in an option of type 0xc2, four bytes long, in a
/// header of 8 bytes.
const LEN: usize = 150_000;
const SIZE: u16 = 1440;

/// A frame over IPv6 as a stack hands it over, with the header or, as newer kernels do, without.
fn big_v6(data: &[u8], with_header: bool) -> Vec<u8> {
    let mut frame = tcp_v6(&data[..10]);
    frame.truncate(14 + 40 + 20);
    frame.extend(data);
    frame[18..20].fill(0);
    if with_header {
        let len = (8 + 20 + data.len()) as u32;
        frame[20] = 0;
        frame.splice(54..54, [&[6, 0, 0xc2, 4][..], &len.to_be_bytes()].concat());
    }
    frame
}

fn big_v4(data: &[u8]) -> Vec<u8> {
    let mut frame = tcp_v4(&data[..10], |_| {});
    frame.truncate(14 + 20 + 32);
    frame.extend(data);
    frame[16..18].fill(0);
    frame
}

/// All segments of all super-frames, and how long the super-frames are.
fn pieces(mut frame: Vec<u8>, kind: Kind) -> (Vec<Vec<u8>>, Vec<usize>) {
    let skip = unfold(&mut frame).expect("it says no length");
    let frame = &frame[skip..];
    let plan = Plan::big(frame, Cut { kind, size: SIZE }).expect("a plan");
    let write = |index| {
        let mut out = vec![0xa5; plan.segment_len(index)];
        assert_eq!(plan.write(frame, index, &mut out), Some(out.len()));
        out
    };
    let supers: Vec<_> = (0..plan.segments()).map(write).collect();
    // They are the same where they stand, one after the other.
    let (mut room, headers) = (frame.to_vec(), frame[..plan.headers_len()].to_vec());
    for (index, written) in supers.iter().enumerate() {
        let place = plan.place(&headers, index, &mut room).expect("a piece");
        assert!(room[place] == **written, "piece {index}");
    }
    assert_eq!(plan.place(&headers, supers.len(), &mut room), None);
    let segments = supers.iter().flat_map(|frame| cut(frame, None, kind, SIZE)).collect();
    (segments, supers.iter().map(Vec::len).collect())
}

#[test]
fn frames_beyond_64_kib_become_super_frames_that_say_the_same() {
    let data = payload(LEN);
    // In each as many segments as fit: (65535 - 60) / 1440 = 45 of IPv6, (65535 - 52) / 1440 = 45
    // of IPv4.
    let cases = [
        (big_v6(&data, true), Kind::TcpV6, 74, 1_u32),
        (big_v6(&data, false), Kind::TcpV6, 74, 1),
        (big_v4(&data), Kind::TcpV4, 66, 0xffff_f000),
    ];
    for (frame, kind, headers_len, first) in cases {
        let (segments, lens) = pieces(frame, kind);
        assert_eq!(lens, [headers_len + 64_800, headers_len + 64_800, headers_len + 20_400]);
        let mut stream = Vec::new();
        let mut numbers = Vec::new();
        for segment in &segments {
            let (net, transport, data) = checked(segment);
            if let NetHeaders::Ipv4(ip, _) = net {
                numbers.push(ip.identification);
            }
            assert_eq!(tcp_of(transport).sequence_number, first.wrapping_add(stream.len() as u32));
            stream.extend(data);
        }
        assert_eq!((stream == data, segments.len()), (true, LEN.div_ceil(SIZE.into())));
        // Each packet has a number of its own (RFC 6864), one behind the other.
        let expected: Vec<_> = (0..numbers.len() as u16).map(|index| 0xfffe_u16.wrapping_add(index)).collect();
        assert_eq!(numbers, expected);
    }
}

#[test]
fn only_the_last_of_them_pushes_and_ends() {
    let mut frame = big_v4(&payload(LEN));
    frame[14 + 20 + 13] |= 0x01;
    let (segments, _) = pieces(frame, Kind::TcpV4);
    let flags: Vec<_> = segments.iter().map(|segment| segment[14 + 20 + 13] & 0x09).collect();
    let (last, others) = flags.split_last().expect("segments");
    assert_eq!((*last, others.iter().all(|flags| *flags == 0)), (0x09, true));
}

#[test]
fn what_says_another_length_is_no_such_frame() {
    let data = payload(LEN);
    let mut lying = big_v6(&data, true);
    lying[61] ^= 1;
    let mut other = big_v6(&data, true);
    other[56] = 0xc3;
    let mut said = big_v6(&data, false);
    said[19] = 1;
    let short = big_v6(&payload(60_000), true);
    for mut frame in [lying, other, said, short, vec![0; 70_000], Vec::new()] {
        assert_eq!(unfold(&mut frame), None);
    }
    let mut udp = big_v6(&data, true);
    udp[54] = 17;
    let skip = unfold(&mut udp).expect("a length");
    assert!(Plan::big(&udp[skip..], Cut { kind: Kind::TcpV6, size: SIZE }).is_err());
    let fine = big_v6(&data, false);
    for (kind, size) in [(Kind::TcpV4, SIZE), (Kind::TcpV6, 7), (Kind::TcpV6, 0), (Kind::TcpV6, u16::MAX)] {
        assert!(Plan::big(&fine, Cut { kind, size }).is_err(), "{kind:?} {size}");
    }
}
