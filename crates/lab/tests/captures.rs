//! `ringwall gate replay` over captures as people have them: taken on the host that sends, cut
//! short, out of order, with a segment missing, of links that are not Ethernet. Needs the built
//! program.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail like tests")]

#[path = "captures/kept.rs"]
mod kept;
#[path = "captures/links.rs"]
mod links;
#[path = "captures/routed.rs"]
mod routed;
#[path = "captures/told.rs"]
mod told;

use std::path::PathBuf;
use std::process::{Command, Output};

const CLIENT: [u8; 4] = [198, 51, 100, 7];
const SERVER: [u8; 4] = [192, 0, 2, 1];
const FIN_ACK: u8 = 0x11;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const PSH_ACK: u8 = 0x18;
const ETHERNET: u32 = 1;
const PRESETS: [&str; 3] = ["paper", "balanced", "strict"];

fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// An IPv4 packet, its checksum complete.
fn ipv4((from, to): ([u8; 4], [u8; 4]), protocol: u8, hop_limit: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = [&[0x45, 0][..], &(20 + payload.len() as u16).to_be_bytes(), &[0, 0, 0x40, 0]].concat();
    packet.extend([hop_limit, protocol, 0, 0]);
    packet.extend([from, to].concat());
    let checksum = !sum(&packet);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend(payload);
    packet
}

/// A segment from the client (`true`) or the server, in a packet. Ports are 40000 and 80.
fn segment(from_client: bool, flags: u8, sequence: u32, acknowledgement: u32, data: &[u8]) -> Vec<u8> {
    let (ends, ports) = match from_client {
        true => ((CLIENT, SERVER), [0x9c, 0x40, 0, 80]),
        false => ((SERVER, CLIENT), [0, 80, 0x9c, 0x40]),
    };
    let mut tcp = [&ports[..], &sequence.to_be_bytes(), &acknowledgement.to_be_bytes()].concat();
    tcp.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    tcp.extend(data);
    let pseudo = [&ends.0[..], &ends.1, &[0, 6], &(tcp.len() as u16).to_be_bytes(), &tcp].concat();
    let checksum = !sum(&pseudo);
    tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
    ipv4(ends, 6, 64, &tcp)
}

fn framed(packet: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0][..], packet].concat()
}

/// A conversation: handshake, a question of 10 bytes and an answer of 5, `turns` times.
fn conversation(turns: u32) -> Vec<Vec<u8>> {
    let mut packets = vec![
        segment(true, SYN, 100, 0, &[]),
        segment(false, SYN | ACK, 500, 101, &[]),
        segment(true, ACK, 101, 501, &[]),
    ];
    for turn in 0..turns {
        let (asked, told) = (101 + 10 * turn, 501 + 5 * turn);
        packets.push(segment(true, PSH_ACK, asked, told, &[b'a' + turn as u8; 10]));
        packets.push(segment(false, PSH_ACK, told, asked + 10, &[b'A' + turn as u8; 5]));
    }
    packets
}

/// A pcap file of frames with their length on the wire, a hundredth of a second apart.
fn pcap_of(link_type: u32, frames: &[(Vec<u8>, usize)]) -> Vec<u8> {
    let mut file = [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 262_144, link_type].map(u32::to_le_bytes).concat();
    for (number, (frame, wire_len)) in frames.iter().enumerate() {
        let (seconds, micros) = (1_700_000_000 + number as u32 / 100, number as u32 % 100 * 10_000);
        file.extend([seconds, micros, frame.len() as u32, *wire_len as u32].map(u32::to_le_bytes).concat());
        file.extend(frame);
    }
    file
}

fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let frames: Vec<_> = packets.iter().map(|packet| framed(packet)).collect();
    pcap_of(ETHERNET, &frames.into_iter().map(|frame| (frame.clone(), frame.len())).collect::<Vec<_>>())
}

/// The frames of a pcap file in nanoseconds.
fn frames_of(file: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = &file[24..];
    let mut frames = Vec::new();
    while !rest.is_empty() {
        let len = u32::from_le_bytes(rest[8..12].try_into().expect("four bytes")) as usize;
        frames.push(rest[16..16 + len].to_vec());
        rest = &rest[16 + len..];
    }
    frames
}

fn program() -> Option<PathBuf> {
    let own = std::env::current_exe().expect("this program has a file");
    let target = own.ancestors().nth(3).expect("target/profile/deps/test");
    let built = ["release", "debug"].map(|profile| target.join(profile).join("ringwall"));
    let program = built.into_iter().find(|file| file.is_file());
    if program.is_none() {
        eprintln!("SKIPPED captures: build the program first: cargo build --release -p ringwall");
    }
    program
}

/// What `gate replay` writes of `file` and says in its report, and its exit status; `None` without a program.
fn replay(file: &[u8], preset: &str) -> Option<(Vec<Vec<u8>>, String, bool)> {
    let directory = tempfile::tempdir().expect("a directory");
    let (read, write) = (directory.path().join("in.pcap"), directory.path().join("out.pcap"));
    std::fs::write(&read, file).expect("a file");
    let mut command = Command::new(program()?);
    command.args(["gate", "replay", "--trusted", "192.0.2.0/24", "--preset", preset]);
    let Output { status, stdout, stderr } =
        command.arg("--read").arg(&read).arg("--write").arg(&write).output().expect("the program runs");
    let said = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    let frames = std::fs::read(&write).map(|file| frames_of(&file)).unwrap_or_default();
    Some((frames, said, status.success()))
}

/// What one side says in all frames with data, one behind the other.
fn stream(frames: &[Vec<u8>], from: [u8; 4]) -> Vec<u8> {
    let of = |frame: &&Vec<u8>| frame[23] == 6 && frame[26..30] == from;
    frames.iter().filter(of).flat_map(|frame| frame[34 + usize::from(frame[46] >> 4) * 4..].to_vec()).collect()
}

fn packets_of(frames: &[Vec<u8>]) -> Vec<Vec<u8>> {
    frames.iter().map(|frame| frame[14..].to_vec()).collect()
}

fn checksums_are_right(frame: &[u8]) -> bool {
    let (ip, tcp) = (&frame[14..34], &frame[34..]);
    let pseudo = [&frame[26..34], &[0, 6], &(tcp.len() as u16).to_be_bytes(), tcp].concat();
    sum(ip) == 0xffff && sum(&pseudo) == 0xffff
}

#[test]
fn header_checksums_that_the_card_fills_in_count_as_right() {
    let mut packets = conversation(3);
    packets.iter_mut().for_each(|packet| packet[10..12].fill(0));
    for preset in PRESETS {
        let Some((frames, said, is_well)) = replay(&pcap(&packets), preset) else { return };
        assert_eq!((frames.len(), is_well), (packets.len(), true), "{preset}: {said}");
        assert!(frames.iter().all(|frame| checksums_are_right(frame)), "{preset}");
        assert_eq!(stream(&frames, CLIENT).len() + stream(&frames, SERVER).len(), 45);
    }
}

#[test]
fn super_frames_without_a_length_are_read_by_what_was_captured() {
    let mut packets = conversation(0);
    packets.push(segment(true, PSH_ACK, 101, 501, &[b'x'; 4000]));
    packets[3][2..4].fill(0);
    packets[3][10..12].fill(0);
    packets[3][36..38].fill(0);
    packets.push(segment(false, ACK, 501, 4101, &[]));
    packets.push(segment(true, PSH_ACK, 4101, 501, b"end"));
    // In strict its pieces are longer than the server said that it takes.
    for preset in ["paper", "balanced"] {
        let Some((frames, said, _)) = replay(&pcap(&packets), preset) else { return };
        assert_eq!(stream(&frames, CLIENT), [&[b'x'; 4000][..], b"end"].concat(), "{preset}: {said}");
    }
}

#[test]
fn data_of_a_fast_open_that_the_server_took_stays() {
    let packets = [
        segment(true, SYN, 100, 0, b"GET / HTTP/1.0\r\n\r\n"),
        segment(false, SYN | ACK, 500, 119, &[]),
        segment(true, ACK, 119, 501, &[]),
        segment(false, PSH_ACK, 501, 119, b"HTTP/1.0 200 OK\r\n\r\n"),
        segment(true, FIN_ACK, 119, 520, &[]),
    ];
    for preset in PRESETS {
        let Some((frames, said, _)) = replay(&pcap(&packets), preset) else { return };
        assert_eq!(frames.len(), packets.len(), "{preset}: {said}");
        assert_eq!(stream(&frames, CLIENT), b"GET / HTTP/1.0\r\n\r\n", "{preset}");
        assert_eq!(stream(&frames, SERVER), b"HTTP/1.0 200 OK\r\n\r\n", "{preset}");
    }
}

#[test]
fn a_frame_that_the_capture_lost_costs_itself_and_is_named() {
    let mut packets = conversation(6);
    packets.remove(5);
    for preset in ["balanced", "strict"] {
        let Some((frames, said, _)) = replay(&pcap(&packets), preset) else { return };
        assert_eq!(frames.len(), packets.len(), "{preset}: {said}");
        assert!(said.contains("1 holes that a host has and the capture not, 10 bytes"), "{said}");
    }
}

#[test]
fn an_acknowledgement_that_was_captured_before_the_answer_passes() {
    let mut packets = conversation(5);
    packets.swap(1, 2);
    for preset in PRESETS {
        let Some((frames, said, _)) = replay(&pcap(&packets), preset) else { return };
        assert_eq!(stream(&frames, CLIENT).len() + stream(&frames, SERVER).len(), 75, "{preset}: {said}");
        assert_eq!(frames.len(), packets.len(), "{preset}: {said}");
    }
}

#[test]
fn neighbours_speak_with_a_hop_limit_of_one() {
    let ends = (CLIENT, SERVER);
    let packets: Vec<_> = [88, 103, 46, 2, 112].map(|protocol| ipv4(ends, protocol, 1, &[0x21; 16])).to_vec();
    let Some((frames, said, _)) = replay(&pcap(&packets), "balanced") else { return };
    assert_eq!(packets_of(&frames), packets, "{said}");
}

#[test]
fn assigned_types_of_icmp_pass() {
    let message = |kind: u8| {
        let mut message = vec![kind, 0, 0, 0, 0, 1, 0, 0];
        let checksum = !sum(&message);
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        message
    };
    let packets = [
        ipv4((CLIENT, SERVER), 1, 64, &message(42)),
        ipv4((CLIENT, [224, 0, 0, 1]), 1, 1, &message(9)),
        ipv4((CLIENT, [224, 0, 0, 2]), 1, 1, &message(10)),
    ];
    let Some((frames, said, _)) = replay(&pcap(&packets), "balanced") else { return };
    assert_eq!(packets_of(&frames), packets, "{said}");
}

#[test]
fn frames_that_are_left_out_are_counted_by_name_and_the_exit_status_says_it() {
    let whole = framed(&segment(true, SYN, 100, 0, &[]));
    let cut = framed(&segment(true, PSH_ACK, 101, 501, &[7; 1000]));
    let long = vec![0x11; 66_000];
    for (kept, wire_len, word) in
        [(cut[..100].to_vec(), cut.len(), "cut by the snap length"), (long, 66_000, "too long")]
    {
        let file = pcap_of(ETHERNET, &[(whole.clone(), whole.len()), (kept, wire_len)]);
        let Some((frames, said, is_well)) = replay(&file, "balanced") else { return };
        assert_eq!((frames.len(), is_well), (1, false), "{said}");
        assert!(said.contains("1 frames") && said.contains(word), "{said}");
        assert!(!said.contains("ip-header"), "{said}");
    }
    let file = pcap_of(195, &[(whole.clone(), whole.len())]);
    let Some((frames, said, is_well)) = replay(&file, "balanced") else { return };
    assert_eq!((frames.len(), is_well, said.contains("tcprewrite --dlt=enet")), (0, false, true), "{said}");
}

#[test]
fn packets_are_read_behind_other_link_headers() {
    let packets = conversation(2);
    let heads: [(u32, &[u8]); 13] = [
        (1 | 0x2400_0000, &[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]),
        (101, &[]),
        (228, &[]),
        (0, &[2, 0, 0, 0]),
        (108, &[0, 0, 0, 2]),
        (113, &[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0]),
        (276, &[8, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0]),
        // PPP (RFC 1661, RFC 1662), Cisco's HDLC, OpenBSD's IPsec and packet filter, PPI.
        (9, &[0xff, 3, 0, 0x21]),
        (50, &[0x21]),
        (104, &[0x0f, 0, 8, 0]),
        (109, &[2, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]),
        (117, &[6, 2, 0, 0, 1, 1, 0, 0]),
        (192, &[0, 0, 8, 0, 101, 0, 0, 0]),
    ];
    for (link_type, head) in heads {
        let frames: Vec<_> = packets.iter().map(|packet| [head, &packet[..]].concat()).collect();
        let frames: Vec<_> = frames.into_iter().map(|frame| (frame.clone(), frame.len())).collect();
        let Some((written, said, is_well)) = replay(&pcap_of(link_type, &frames), "balanced") else { return };
        assert!(is_well, "link type {link_type}: {said}");
        assert_eq!(stream(&written, CLIENT), b"aaaaaaaaaabbbbbbbbbb", "link type {link_type}: {said}");
    }
}

#[test]
fn a_second_syn_after_one_that_nobody_answered_opens_the_connection() {
    let packets = [
        segment(true, SYN, 7, 0, &[]),
        segment(true, SYN, 90_000, 0, &[]),
        segment(false, SYN | ACK, 500, 90_001, &[]),
        segment(true, ACK, 90_001, 501, &[]),
        segment(true, PSH_ACK, 90_001, 501, b"hello"),
    ];
    for preset in PRESETS {
        let Some((frames, said, _)) = replay(&pcap(&packets), preset) else { return };
        assert_eq!((frames.len(), stream(&frames, CLIENT)), (5, b"hello".to_vec()), "{preset}: {said}");
    }
}

/// A clock that jumped ahead for one frame is the time of that frame only.
#[test]
fn a_frame_from_the_future_moves_no_other() {
    let mut file = pcap(&vec![ipv4((CLIENT, SERVER), 132, 64, &[7; 20]); 4]);
    let second = 24 + 16 + 54;
    file[second..second + 4].copy_from_slice(&1_900_000_000_u32.to_le_bytes());
    let directory = tempfile::tempdir().expect("a directory");
    let (read, write) = (directory.path().join("in.pcap"), directory.path().join("out.pcap"));
    std::fs::write(&read, &file).expect("a file");
    let Some(program) = program() else { return };
    let mut command = Command::new(program);
    command.args(["gate", "replay", "--trusted", "192.0.2.0/24"]).arg("--read").arg(&read).arg("--write").arg(&write);
    assert!(command.output().expect("the program runs").status.success());
    let written = std::fs::read(&write).expect("a file");
    let mut at = 24;
    let mut seconds = Vec::new();
    while let Some(head) = written.get(at..at + 16) {
        seconds.push(u32::from_le_bytes([head[0], head[1], head[2], head[3]]));
        at += 16 + u32::from_le_bytes([head[8], head[9], head[10], head[11]]) as usize;
    }
    assert_eq!(seconds, [1_700_000_000, 1_900_000_000, 1_700_000_000, 1_700_000_000]);
}
