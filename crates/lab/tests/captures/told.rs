//! What became of single frames: a pcapng with comments, and one flow before and after.

use std::process::Command;

use super::{ACK, CLIENT, PSH_ACK, SERVER, SYN, conversation, ipv4, pcap, program, segment};

/// What the program says and the exit status, with further arguments.
fn replay(file: &[u8], explain: Option<&std::path::Path>, arguments: &[&str]) -> Option<(String, bool)> {
    let directory = tempfile::tempdir().expect("a directory");
    let read = directory.path().join("in.pcap");
    std::fs::write(&read, file).expect("a file");
    let mut command = Command::new(program()?);
    command.args(["gate", "replay", "--trusted", "192.0.2.0/24"]).args(arguments).arg("--read").arg(&read);
    command.args(explain.iter().flat_map(|file| ["--explain".as_ref(), file.as_os_str()]));
    let output = command.output().expect("the program runs");
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    Some((said, output.status.success()))
}

/// The comments of a little-endian pcapng file, frame by frame.
fn comments(file: &[u8]) -> Vec<String> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("a word")) as usize;
    let mut at = 0;
    let mut found = Vec::new();
    while at < file.len() {
        let end = at + word(at + 4);
        if word(at) == 6 {
            let options = at + 28 + word(at + 20).next_multiple_of(4);
            let has_comment = options + 4 < end && file[options..options + 2] == [1, 0];
            let len = if has_comment { word(options) >> 16 } else { 0 };
            found.push(
                String::from_utf8_lossy(file.get(options + 4..options + 4 + len).unwrap_or_default()).into_owned(),
            );
        }
        at = end;
    }
    found
}

/// A conversation, a packet with a wrong header checksum, and one with the reserved bit set.
fn troubled() -> Vec<Vec<u8>> {
    let mut packets = conversation(1);
    let mut wrong = ipv4((CLIENT, SERVER), 132, 64, &[7; 20]);
    wrong[10] ^= 0x55;
    let mut reserved = ipv4((CLIENT, SERVER), 132, 64, &[7; 20]);
    // One bit more in the word of DF, and as much less in the checksum (RFC 1624).
    reserved[6] |= 0x80;
    let checksum = !super::sum(&[&reserved[..10], &[0, 0], &reserved[12..20]].concat());
    reserved[10..12].copy_from_slice(&checksum.to_be_bytes());
    packets.extend([wrong, reserved]);
    packets
}

#[test]
fn every_frame_that_was_changed_or_dropped_says_why() {
    let directory = tempfile::tempdir().expect("a directory");
    let written = directory.path().join("why.pcapng");
    let packets = troubled();
    let Some((said, is_well)) = replay(&pcap(&packets), Some(&written), &["--preset", "balanced"]) else { return };
    assert!(is_well, "{said}");
    let comments = comments(&std::fs::read(&written).expect("a file"));
    assert_eq!(comments.len(), packets.len(), "every frame is there: {comments:?}");
    // Nothing is left to say of data as every host sends it.
    assert_eq!(comments[3], "", "{comments:?}");
    let [.., dropped, changed] = &comments[..] else { panic!("{comments:?}") };
    assert!(dropped.starts_with("dropped by ipv4-checksum") && dropped.contains("(ip-checksum)"), "{dropped}");
    assert_eq!(changed, "changed by ipv4-reserved-bit");
}

#[test]
fn fragments_say_that_they_wait_and_the_whole_leaves_with_the_last() {
    let directory = tempfile::tempdir().expect("a directory");
    let written = directory.path().join("why.pcapng");
    let fragment = |offset: u8, more: u8| {
        let mut packet = ipv4((CLIENT, SERVER), 132, 64, &[offset; 16]);
        (packet[4], packet[6], packet[7]) = (1, more << 5, offset);
        packet[10..12].fill(0);
        let checksum = !super::sum(&packet[..20]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet
    };
    let file = pcap(&[fragment(0, 1), fragment(2, 0)]);
    let Some((said, is_well)) = replay(&file, Some(&written), &["--preset", "balanced"]) else { return };
    assert!(is_well, "{said}");
    let comments = comments(&std::fs::read(&written).expect("a file"));
    assert!(comments[0].starts_with("held"), "{comments:?}");
    assert!(comments.len() >= 2 && !comments[1..].iter().any(|comment| comment.starts_with("dropped")), "{comments:?}");
}

#[test]
fn one_flow_is_shown_before_and_after() {
    let mut packets = conversation(1);
    // A class that nobody assigned (code point 63), in a segment of the flow.
    let mut marked = segment(true, PSH_ACK, 111, 506, b"again");
    marked[1] = 0xfc;
    marked[10..12].fill(0);
    let checksum = !super::sum(&marked[..20]);
    marked[10..12].copy_from_slice(&checksum.to_be_bytes());
    packets.push(marked);
    packets.push(ipv4((CLIENT, [192, 0, 2, 9]), 132, 64, &[7; 20]));
    let ends = ["--diff", "192.0.2.1:80", "198.51.100.7:40000", "--preset", "balanced"];
    let Some((said, is_well)) = replay(&pcap(&packets), None, &ends) else { return };
    assert!(is_well, "{said}");
    let frames: Vec<_> = said.lines().filter(|line| line.starts_with("frame ")).collect();
    assert_eq!(frames.len(), packets.len() - 1, "{said}");
    assert!(
        said.contains("frame 6, 1700000000.050000000, from the untrusted side: changed by ipv4-type-of-service"),
        "{said}"
    );
    assert!(said.contains("\n  - class 0xfc\n  + class 0x00"), "{said}");
    let none = ["--diff", "192.0.2.1:81", "198.51.100.7:40000"];
    let Some((said, _)) = replay(&pcap(&packets), None, &none) else { return };
    assert!(!said.contains("frame 1,"), "{said}");
}

#[test]
fn something_has_to_be_asked_for() {
    let opening = [segment(true, SYN, 100, 0, &[]), segment(false, SYN | ACK, 500, 101, &[])];
    let Some((said, is_well)) = replay(&pcap(&opening), None, &[]) else { return };
    assert!(!is_well && said.contains("--write"), "{said}");
}
