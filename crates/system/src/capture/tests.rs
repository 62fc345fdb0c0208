//! Reading what scapy and editcap wrote; what we write is read by tshark.

use std::io::{self, Read};
use std::process::Command;
use std::time::Duration;

use bump::{Batch, Checksum, Meta, VlanTag};

use super::{CaptureReader, CaptureWriter, Format};
use crate::port::{Receiver, Sender};

/// Two frames written by scapy: UDP "one" at 1700000000.000001, an ARP request at 1700000001.500000.
const SCAPY_PCAP: &str = "d4c3b2a1020004000000000000000000ffff00000100000000f15365010000002d0000002d000000\
    02000000000202000000000108004500001f00010000401166cb0a0000010a00000203e807d0000b0baf6f6e65\
    01f1536520a107002a0000002a000000ffffffffffff02000000000108060001080006040001020000000001\
    0a0000010000000000000a000002";

/// The same frames after `editcap -F pcapng`.
const EDITCAP_PCAPNG: &str = "0a0d0d0a6c0000004d3c2b1a01000000ffffffffffffffff04004500456469746361702028576972\
    65736861726b2920342e302e313720284769742076342e302e3137207061636b6167656420617320342e302e\
    31372d302b64656231327533290000000000000\
    06c000000010000001400000001000000ffff00001400000006000000500000000000000\
    0240a060001401e182d0000002d00000002000000000202000000000108004500001f00010000401166cb0a0000010a0000020\
    3e807d0000b0baf6f6e6500000050000000060000004c00000000000000240a0600602335182a0000002a000000\
    ffffffffffff020000000001080600010800060400010200000000010a0000010000000000000a00000200004c000000";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().filter_map(|digit| digit.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

/// Gives one byte per read, as a slow pipe may.
struct Trickle<'a>(&'a [u8]);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some((first, rest)) = self.0.split_first() else { return Ok(0) };
        buffer[0] = *first;
        self.0 = rest;
        Ok(1)
    }
}

/// All frames with their times, or the line that says what is wrong.
fn read(capture: &[u8]) -> Result<Vec<(Duration, Vec<u8>)>, String> {
    let mut reader = CaptureReader::new(Trickle(capture)).map_err(|error| error.to_string())?;
    let mut frames = Vec::new();
    while reader.fill().map_err(|error| error.to_string())? {
        let time = reader.captured_at();
        while let Some(frame) = reader.next_frame() {
            frames.push((time, frame.bytes.to_vec()));
        }
    }
    assert!(reader.has_ended());
    Ok(frames)
}

#[test]
fn both_formats_are_read_byte_by_byte_from_a_pipe() {
    for capture in [bytes(SCAPY_PCAP), bytes(EDITCAP_PCAPNG)] {
        let frames = read(&capture).expect("a capture");
        let times: Vec<_> = frames.iter().map(|(time, _)| *time).collect();
        assert_eq!(times, [Duration::new(1_700_000_000, 1000), Duration::new(1_700_000_001, 500_000_000)]);
        assert_eq!(frames.iter().map(|(_, frame)| frame.len()).collect::<Vec<_>>(), [45, 42]);
        assert!(frames[0].1.ends_with(b"one"));
        assert_eq!(wire::arp::Arp::parse(&frames[1].1[14..]).expect("ARP").target_ip.octets(), [10, 0, 0, 2]);
    }
}

#[test]
fn a_reader_knows_its_format_and_the_interface_of_a_frame() {
    // The second frame as if a second interface had seen it: its description once more, and its number in the packet.
    let mut two = bytes(EDITCAP_PCAPNG);
    let description: Vec<u8> = two[0x6c..0x6c + 20].to_vec();
    let second_packet = two.len() - 0x4c;
    two[second_packet + 8] = 1;
    two.splice(0x6c..0x6c, description);
    for (capture, format, interfaces) in [(bytes(SCAPY_PCAP), Format::Pcap, [0, 0]), (two, Format::PcapNg, [0, 1])] {
        let mut reader = CaptureReader::new(&capture[..]).expect("a capture");
        assert_eq!(reader.format(), format);
        for interface in interfaces {
            assert!(reader.fill().expect("readable"));
            assert_eq!(reader.interface(), interface);
            assert!(reader.next_frame().is_some());
        }
    }
}

#[test]
fn what_is_wrong_with_a_capture_is_said_in_one_line() {
    let pcap = bytes(SCAPY_PCAP);
    let mut huge = pcap.clone();
    huge[32..36].fill(0xff);
    let cases: [(&[u8], &str); 6] = [
        (b"", "it is empty"),
        (&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0], "zcat FILE |"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "neither pcap nor pcapng"),
        (&pcap[..8], "neither pcap nor pcapng"),
        (&huge, "malformed"),
        (&pcap[..100], "middle of a frame"),
    ];
    for (capture, expected) in cases {
        let line = read(capture).expect_err(expected);
        assert!(line.contains(expected) && !line.contains('\n'), "{line}");
    }
}

#[test]
fn damaged_captures_end_and_never_panic() {
    for capture in [bytes(SCAPY_PCAP), bytes(EDITCAP_PCAPNG)] {
        for at in 0..capture.len() {
            for value in [0x00, 0x01, 0x7f, 0xff] {
                let mut damaged = capture.clone();
                damaged[at] = value;
                let _ = read(&damaged);
            }
            let _ = read(&capture[..at]);
        }
    }
}

/// A UDP frame whose checksum holds only the sum of the pseudo header, and a plain one.
fn write(format: Format) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), format).expect("a vector");
    let mut frame = read(&bytes(SCAPY_PCAP)).expect("a capture").remove(0).1;
    let pseudo_header = wire::checksum::pseudo_header_v4([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), 17, 11).fold();
    frame[40..42].copy_from_slice(&pseudo_header.to_be_bytes());
    let partial = Checksum::Partial { start: 34, offset: 6 };
    let tag = VlanTag { tpid: 0x8100, tci: 7 };
    let metas = [Meta { checksum: partial, ..Meta::default() }, Meta { vlan: Some(tag), ..Meta::default() }];
    for (second, meta) in metas.into_iter().enumerate() {
        writer.set_time(Duration::new(1_700_000_000 + second as u64, 123_456_789));
        writer.reserve(2000).expect("room")[..frame.len()].copy_from_slice(&frame);
        writer.commit(frame.len(), meta);
    }
    assert_eq!((writer.counters().frames, writer.counters().errors), (2, 0));
    writer.finish().expect("a vector")
}

#[test]
fn what_is_written_reads_back_with_checksum_tag_and_nanoseconds() {
    for format in [Format::Pcap, Format::PcapNg] {
        let frames = read(&write(format)).expect("a capture");
        assert_eq!(frames[0].0, Duration::new(1_700_000_000, 123_456_789));
        // The frame as scapy made it, checksum included.
        assert_eq!(frames[0].1, read(&bytes(SCAPY_PCAP)).expect("a capture")[0].1);
        assert_eq!(frames[1].1[12..18], [0x81, 0, 0, 7, 8, 0]);
        assert_eq!(frames[1].1.len(), 49);
    }
}

#[test]
fn tshark_reads_what_is_written() {
    let directory = tempfile::tempdir().expect("a directory");
    for (format, name) in [(Format::Pcap, "a.pcap"), (Format::PcapNg, "a.pcapng")] {
        let path = directory.path().join(name);
        std::fs::write(&path, write(format)).expect("a file");
        let fields = ["-T", "fields", "-e", "frame.time_epoch", "-e", "udp.checksum.status", "-e", "vlan.id"];
        let mut tshark = Command::new("tshark");
        tshark.arg("-r").arg(&path).args(["-o", "udp.check_checksum:TRUE"]).args(fields);
        let Ok(output) = tshark.output() else {
            eprintln!("SKIPPED tshark_reads_what_is_written: there is no tshark");
            return;
        };
        let text = String::from_utf8(output.stdout).expect("text");
        let lines: Vec<_> = text.lines().map(str::trim_end).collect();
        // Status 1 is good, 0 is bad: the second frame was said to be complete and is not.
        assert_eq!(lines, ["1700000000.123456789\t1", "1700000001.123456789\t0\t7"], "{name}");
    }
}
