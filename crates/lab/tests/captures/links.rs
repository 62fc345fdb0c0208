//! Links whose header is not the same for each frame, and captures that are compressed.

use std::io::Write;
use std::process::{Command, Stdio};

use super::{
    ACK, CLIENT, ETHERNET, PSH_ACK, SERVER, SYN, conversation, framed, pcap, pcap_of, replay, segment, stream,
};

const RADIOTAP: u32 = 127;
const WIRELESS: u32 = 105;
/// Access point, station and host behind the point, in the order of a frame to the station.
const FROM_SYSTEM: [u8; 18] = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 2];

/// Data with a class, behind 802.2 with SNAP (IEEE 802.11, 9.3.2.1; RFC 1042).
fn with_quality(control: [u8; 2], packet: &[u8]) -> Vec<u8> {
    let header = [&control[..], &[0, 0], &FROM_SYSTEM, &[0x10, 0], &[0, 0]].concat();
    [&header[..], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], packet].concat()
}

/// Radiotap with timer, flags and rate: the frame ends with its checksum.
fn radiotap(frame: &[u8]) -> Vec<u8> {
    let head = [0, 0, 18, 0, 7, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x10, 12];
    [&head[..], frame, &[0xde, 0xad, 0xbe, 0xef]].concat()
}

fn whole(frames: &[Vec<u8>]) -> Vec<(Vec<u8>, usize)> {
    frames.iter().map(|frame| (frame.clone(), frame.len())).collect()
}

#[test]
fn packets_in_clear_are_read_off_the_air() {
    let packets = conversation(2);
    let plain: Vec<_> = packets.iter().map(|packet| with_quality([0x88, 0x02], packet)).collect();
    let tapped: Vec<_> = plain.iter().map(|frame| radiotap(frame)).collect();
    for (link_type, frames) in [(WIRELESS, plain), (RADIOTAP, tapped)] {
        let Some((written, said, is_well)) = replay(&pcap_of(link_type, &whole(&frames)), "balanced") else { return };
        assert!(is_well, "{link_type}: {said}");
        assert_eq!(stream(&written, CLIENT), b"aaaaaaaaaabbbbbbbbbb", "{link_type}: {said}");
        assert_eq!(stream(&written, SERVER), b"AAAAABBBBB", "{link_type}: {said}");
        // To the station, from the host behind the access point.
        assert_eq!(written[0][..14], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    }
}

#[test]
fn beacons_and_what_is_encrypted_on_the_air_are_counted_by_name() {
    let packet = segment(true, SYN, 100, 0, &[]);
    let beacon = [&[0x80, 0, 0, 0][..], &[0xff; 6], &[2; 12], &[0, 0], &[0; 12]].concat();
    let frames = [beacon, with_quality([0x88, 0x42], &packet), with_quality([0x88, 0x02], &packet)];
    let frames: Vec<_> = frames.iter().map(|frame| radiotap(frame)).collect();
    let Some((written, said, is_well)) = replay(&pcap_of(RADIOTAP, &whole(&frames)), "balanced") else { return };
    assert_eq!((written.len(), is_well), (1, false), "{said}");
    assert!(said.contains("1 frames are encrypted") && said.contains("airdecap-ng"), "{said}");
    assert!(said.contains("1 frames manage the link"), "{said}");
}

/// Linux's packet filter logs values with their length and type, in the order of its machine: a
/// hook, then the packet.
#[test]
fn packets_that_a_filter_logged_are_read_in_either_order_of_bytes() {
    let packets = conversation(2);
    for is_big in [false, true] {
        let value = |kind: u16, value: &[u8]| {
            let numbers = [value.len() as u16 + 4, kind];
            let head: Vec<_> =
                numbers.iter().flat_map(|of| if is_big { of.to_be_bytes() } else { of.to_le_bytes() }).collect();
            let mut value = [&head[..], value].concat();
            value.resize(value.len().next_multiple_of(4), 0);
            value
        };
        let frames: Vec<_> = packets
            .iter()
            .map(|packet| [vec![2, 0, 0, 5], value(1, &[8, 0, 0, 0]), value(9, packet)].concat())
            .collect();
        let Some((written, said, is_well)) = replay(&pcap_of(239, &whole(&frames)), "balanced") else { return };
        assert!(is_well, "{said}");
        assert_eq!(stream(&written, CLIENT), b"aaaaaaaaaabbbbbbbbbb", "{said}");
    }
}

/// RFC 894: 46 bytes at least follow the header, so a short packet has padding, and a snap length
/// may cut only that.
#[test]
fn a_frame_that_lacks_only_padding_is_whole() {
    let opening = [segment(true, SYN, 100, 0, &[]), segment(false, SYN | ACK, 500, 101, &[])];
    let frames: Vec<_> = opening.iter().map(|packet| (framed(packet), 60)).collect();
    let Some((written, said, is_well)) = replay(&pcap_of(ETHERNET, &frames), "balanced") else { return };
    assert_eq!((written.len(), is_well), (2, true), "{said}");
    let data = framed(&segment(true, PSH_ACK, 101, 501, &[7; 100]));
    let cut = pcap_of(ETHERNET, &[(data[..100].to_vec(), data.len())]);
    let Some((written, said, is_well)) = replay(&cut, "balanced") else { return };
    assert_eq!((written.len(), is_well), (0, false), "{said}");
}

/// What `tool` makes of `bytes`; `None` where there is none.
fn packed(tool: &str, bytes: &[u8]) -> Option<Vec<u8>> {
    let started = Command::new(tool).args(["-q", "-c"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = started else {
        eprintln!("SKIPPED captures_that_are_compressed: there is no {tool}");
        return None;
    };
    child.stdin.take().expect("a pipe").write_all(bytes).expect("it reads");
    Some(child.wait_with_output().expect("it ends").stdout)
}

#[test]
fn captures_that_are_compressed_are_read_as_they_are() {
    let file = pcap(&conversation(3));
    let Some((expected, ..)) = replay(&file, "balanced") else { return };
    for tool in ["gzip", "zstd"] {
        let Some(compressed) = packed(tool, &file) else { continue };
        let Some((frames, said, is_well)) = replay(&compressed, "balanced") else { return };
        assert!(is_well, "{tool}: {said}");
        assert_eq!(frames, expected, "{tool}");
        let Some((_, said, is_well)) = replay(&compressed[..compressed.len() - 6], "balanced") else { return };
        assert!(!is_well && said.contains("in.pcap: "), "{tool}: {said}");
    }
}
