//! What a pcapng file says beside its frames is in what is written, too (draft-ietf-opsawg-pcapng).

use std::process::Command;

use super::{ACK, CLIENT, PSH_ACK, SYN, conversation, framed, program, segment, stream};

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const NAMES: u32 = 4;
const STATISTICS: u32 = 5;
const PACKET: u32 = 6;
const SECRETS: u32 = 0x0a;
const TLS_KEYS: &[u8] = b"CLIENT_RANDOM 00 11\n";

/// Numbers in one order of bytes.
#[derive(Clone, Copy)]
struct Order(bool);

impl Order {
    fn word(self, number: u32) -> [u8; 4] {
        if self.0 { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn short(self, number: u16) -> [u8; 2] {
        if self.0 { number.to_be_bytes() } else { number.to_le_bytes() }
    }

    fn option(self, code: u16, value: &[u8]) -> Vec<u8> {
        let mut option = [&self.short(code)[..], &self.short(value.len() as u16), value].concat();
        option.resize(4 + value.len().next_multiple_of(4), 0);
        option
    }

    fn block(self, kind: u32, body: &[u8]) -> Vec<u8> {
        let len = self.word(12 + body.len() as u32);
        [&self.word(kind)[..], &len, body, &len].concat()
    }

    fn words(self, words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| self.word(*word)).collect()
    }

    fn section(self) -> Vec<u8> {
        let fixed = [self.word(0x1a2b_3c4d).to_vec(), self.short(1).to_vec(), self.short(0).to_vec(), vec![0xff; 8]];
        let options = [self.option(1, b"taken in the cellar"), self.option(3, b"Debian"), vec![0; 4]];
        self.block(SECTION, &[fixed.concat(), options.concat()].concat())
    }

    /// An interface that counts in units of 10^-resolution seconds.
    fn interface(self, name: &[u8], resolution: u8) -> Vec<u8> {
        let options = [self.option(2, name), self.option(9, &[resolution]), vec![0; 4]].concat();
        self.block(INTERFACE, &[&self.short(1)[..], &[0, 0], &self.word(262_144), &options].concat())
    }

    fn packet(self, interface: u32, units: u64, frame: &[u8], comment: &[u8]) -> Vec<u8> {
        let len = frame.len() as u32;
        let mut body = self.words(&[interface, (units >> 32) as u32, units as u32, len, len]);
        body.extend(frame);
        body.resize(20 + frame.len().next_multiple_of(4), 0);
        // A hash (CRC32) beside it, which is not true of what is written.
        body.extend([self.option(1, comment), self.option(3, &[2, 1, 2, 3, 4]), vec![0; 4]].concat());
        self.block(PACKET, &body)
    }
}

/// The blocks of a file with their types.
fn blocks(file: &[u8], order: Order) -> Vec<(u32, Vec<u8>)> {
    let read = |at: &[u8]| {
        let word = *at.first_chunk::<4>().expect("a word");
        if order.0 { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    };
    let mut rest = file;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (block, behind) = rest.split_at(read(&rest[4..]) as usize);
        assert_eq!(block[4..8], block[block.len() - 4..], "both lengths");
        found.push((read(block), block.to_vec()));
        rest = behind;
    }
    found
}

/// Two interfaces of different resolution, names, secrets and counts; one conversation over both.
fn capture(order: Order) -> Vec<u8> {
    let mut file = order.section();
    file.extend(order.interface(b"eth0", 6));
    file.extend(order.interface(b"wan1", 9));
    file.extend(
        order.block(NAMES, &[&order.short(1)[..], &order.short(9), &[192, 0, 2, 1], b"host\0\0\0\0", &[0; 4]].concat()),
    );
    let secrets = [order.words(&[0x544c_534b, TLS_KEYS.len() as u32]), TLS_KEYS.to_vec()].concat();
    file.extend(order.block(SECRETS, &secrets));
    for (number, packet) in conversation(2).iter().enumerate() {
        let is_outside = number % 2 == 0;
        let (interface, scale) = if is_outside { (1, 1_000_000_000) } else { (0, 1_000_000) };
        let units = 1_700_000_000 * scale + 7 + number as u64;
        file.extend(order.packet(interface, units, &framed(packet), format!("frame {number}").as_bytes()));
    }
    file.extend(order.block(STATISTICS, &order.words(&[0, 1, 2])));
    file
}

fn replay_to(read: &[u8], name: &str) -> Option<(Vec<u8>, String, bool)> {
    let directory = tempfile::tempdir().expect("a directory");
    let (file, written) = (directory.path().join("in"), directory.path().join(name));
    std::fs::write(&file, read).expect("a file");
    let mut command = Command::new(program()?);
    command.args(["gate", "replay", "--trusted", "192.0.2.0/24"]).arg("--read").arg(&file).arg("--write").arg(&written);
    let output = command.output().expect("the program runs");
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    Some((std::fs::read(&written).expect("a file"), said, output.status.success()))
}

#[test]
fn interfaces_names_secrets_comments_and_times_are_kept() {
    for order in [Order(false), Order(true)] {
        let read = capture(order);
        let Some((written, said, is_well)) = replay_to(&read, "out.pcapng") else { return };
        assert!(is_well, "{said}");
        let (before, after) = (blocks(&read, order), blocks(&written, order));
        assert_eq!(
            after.iter().map(|(kind, _)| *kind).collect::<Vec<_>>(),
            before.iter().map(|(kind, _)| *kind).collect::<Vec<_>>()
        );
        let mut frames = 0;
        for ((kind, before), (_, after)) in before.iter().zip(&after) {
            match *kind {
                NAMES | SECRETS | STATISTICS | SECTION => assert_eq!(after, before),
                // Whatever the limit was, names and resolutions stay.
                INTERFACE => assert_eq!((&after[8..12], &after[16..]), (&before[8..12], &before[16..])),
                _ => {
                    assert_eq!(after[8..20], before[8..20], "interface and time");
                    let comment = order.option(1, format!("frame {frames}").as_bytes());
                    frames += 1;
                    let has = |wanted: &[u8]| after.windows(wanted.len()).any(|part| part == wanted);
                    assert!(has(&comment), "a comment");
                    assert!(!has(&order.option(3, &[2, 1, 2, 3, 4])), "no hash of other bytes");
                }
            }
        }
    }
}

/// A pcap file has no place for names and secrets, and whoever asks for one hears what it costs.
#[test]
fn what_pcap_has_no_place_for_is_counted() {
    let Some((written, said, is_well)) = replay_to(&capture(Order(false)), "out.pcap") else { return };
    assert_eq!(written[..4], 0xa1b2_3c4d_u32.to_le_bytes());
    assert!(is_well && said.contains("3 blocks with names, secrets or counts are not written"), "{said}");
}

/// Sections count their interfaces anew; each may have its own order of bytes.
#[test]
fn a_second_section_has_interfaces_of_its_own() {
    let (little, big) = (Order(false), Order(true));
    let opening = framed(&segment(true, SYN, 100, 0, &[]));
    let answer = framed(&segment(false, SYN | ACK, 500, 101, &[]));
    let data = framed(&segment(true, PSH_ACK, 101, 501, b"hello"));
    let first =
        [little.section(), little.interface(b"a", 6), little.packet(0, 1_700_000_000_000_000, &opening, b"one")];
    let second = [big.section(), big.interface(b"b", 9), big.interface(b"c", 9)];
    let at = 1_700_000_001_000_000_000;
    let frames = [big.packet(1, at, &answer, b"two"), big.packet(0, at + 1, &data, b"three")];
    let file = [first.concat(), second.concat(), frames.concat()].concat();
    let Some((written, said, is_well)) = replay_to(&file, "out.pcapng") else { return };
    assert!(is_well, "{said}");
    let begins = file.len() - second.concat().len() - frames.concat().len();
    let after: Vec<_> = blocks(&written[begins - 12..], big).into_iter().filter(|(kind, _)| *kind == PACKET).collect();
    let interfaces: Vec<_> = after.iter().map(|(_, block)| block[11]).collect();
    assert_eq!(interfaces, [1, 0], "{said}");
    let frames: Vec<_> =
        after.iter().map(|(_, block)| block[28..28 + 54 + if block[11] == 0 { 5 } else { 0 }].to_vec()).collect();
    assert_eq!(stream(&frames, CLIENT), b"hello");
}
