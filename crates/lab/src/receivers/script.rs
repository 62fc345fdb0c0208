//! Scripts of the kind that fragroute runs, drawn from a seed: honest packets go through a few of its operations, which cut,
//! repeat, reorder and contradict them.

use bump::Generator;
use wire::layer::protocol::UDP;

use super::connection::{Connection, STAMP, stamps};
use super::packet::{Packet, Segment, Version, datagram};

/// Honest letters in a case: of a stream as many bytes, of a datagram four times as many, which lwIP can take in fragments.
const LETTERS_MIN: usize = 40;
const STREAM_LETTERS_MAX: usize = 160;
const DATAGRAM_LETTERS_MAX: usize = 60;
/// Operations of a script, at most.
const OPERATIONS_MAX: u64 = 4;
/// Options that make a host drop a packet: a source route that is longer than the header (RFC 791, section 3.1).
const BAD_OPTIONS: [u8; 4] = [0x83, 39, 4, 0];

/// The generator of a seed.
fn generator(seed: u64, purpose: u8) -> Generator {
    let mut bytes = [purpose; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    Generator::from_seed(bytes)
}

/// Honest data: capitals. What contradicts it is in small letters.
fn honest(random: &mut Generator, letters_max: usize) -> Vec<u8> {
    let len = LETTERS_MIN + random.below((letters_max - LETTERS_MIN) as u64) as usize;
    (0..len).map(|at| b'A' + (at % 26) as u8).collect()
}

fn chaff(random: &mut Generator, len: usize) -> Vec<u8> {
    let letter = b'a' + random.below(26) as u8;
    vec![letter; len]
}

/// One of `values`.
fn one_of<T: Copy>(random: &mut Generator, values: &[T]) -> T {
    values[random.below(values.len() as u64) as usize]
}

/// The fragments of a datagram under a script, and an honest datagram behind them.
pub(super) fn fragments(version: Version, source_port: u16, identification: u16, seed: u64) -> Vec<Packet> {
    let random = &mut generator(seed, 4);
    // Words and their complements in turns: the checksum is right whichever part of which fragment a host takes.
    let letters = honest(random, DATAGRAM_LETTERS_MAX);
    let data: Vec<u8> = letters.iter().flat_map(|letter| [*letter, *letter, !letter, !letter]).collect();
    let bytes = datagram(version, source_port, &data);
    let mut packets = cut(random, &Packet::new(version, UDP, identification, bytes));
    for _ in 0..=random.below(OPERATIONS_MAX) {
        packets = network(random, packets);
    }
    let honest = datagram(version, source_port, b"honest");
    packets.push(Packet::new(version, UDP, identification.wrapping_add(1), honest));
    packets
}

/// The segments of a stream under a script, and the whole stream behind them, as a sender repeats what nobody acknowledged.
pub(super) fn segments(connection: &Connection, seed: u64) -> Vec<Packet> {
    let random = &mut generator(seed, 6);
    let data = honest(random, STREAM_LETTERS_MAX);
    let mut segments = seg(random, connection, &data);
    for _ in 0..=random.below(OPERATIONS_MAX) {
        segments = transport(random, connection, segments);
    }
    let mut packets: Vec<Packet> = segments.into_iter().map(|piece| piece.packet(connection)).collect();
    for (place, packet) in (0..).zip(&mut packets) {
        packet.identification = connection.identification.wrapping_add(place);
    }
    for _ in 0..random.below(OPERATIONS_MAX) {
        packets = network(random, packets);
    }
    let again = data.chunks(60).zip(0_u32..).map(|(part, at)| connection.packet(&connection.segment(at * 60, part)));
    packets.extend(again);
    packets
}

/// `tcp_seg`: the stream in segments of one size, which may overlap backwards or forwards with something else.
fn seg(random: &mut Generator, connection: &Connection, data: &[u8]) -> Vec<Piece> {
    let size = one_of(random, &[1, 4, 8, 13, 24]);
    let overlap = one_of(random, &[0, 0, size / 2]);
    let at_end = random.chance(2);
    let mut pieces = Vec::new();
    for (index, part) in data.chunks(size).enumerate() {
        let offset = index * size;
        let (offset, bytes) = match overlap.min(offset) {
            0 => (offset, part.to_vec()),
            overlap if at_end => (offset, [part, &chaff(random, overlap)].concat()),
            overlap => (offset - overlap, [&chaff(random, overlap), part].concat()),
        };
        pieces.push(Piece::new(connection.segment(offset as u32, &bytes)));
    }
    pieces
}

/// A segment, and whether its checksum is to be wrong.
#[derive(Clone)]
struct Piece {
    segment: Segment,
    is_broken: bool,
    hop_limit: u8,
}

impl Piece {
    fn new(segment: Segment) -> Piece {
        Piece { segment, is_broken: false, hop_limit: 64 }
    }

    fn packet(self, connection: &Connection) -> Packet {
        let mut packet = Packet { hop_limit: self.hop_limit, ..connection.packet(&self.segment) };
        if self.is_broken {
            packet.payload[16] ^= 0x55;
        }
        packet
    }
}

/// One operation on segments.
fn transport(random: &mut Generator, connection: &Connection, pieces: Vec<Piece>) -> Vec<Piece> {
    match random.below(6) {
        0 => order(random, pieces),
        1 => repeat(random, pieces),
        2 => lose(random, pieces),
        _ => {
            let kind = random.below(7);
            let chaffed = pieces.into_iter().flat_map(|piece| tcp_chaff(random, connection, kind, piece));
            chaffed.collect()
        }
    }
}

/// `tcp_chaff`: beside a segment, before or behind it, one that says something else and that some hosts do not take.
fn tcp_chaff(random: &mut Generator, connection: &Connection, kind: u64, piece: Piece) -> Vec<Piece> {
    let mut fake = piece.clone();
    fake.segment.data = chaff(random, piece.segment.data.len());
    match kind {
        0 => fake.is_broken = true,
        1 => fake.segment.flags = 0,
        2 => match connection.stamp {
            Some(echo) => fake.segment.options = stamps(STAMP.wrapping_sub(600_000), echo),
            // Nobody has agreed on timestamps, so none is old; receivers with and without them are sent as many segments.
            None => fake.is_broken = true,
        },
        3 => fake.segment.sequence = random.number(),
        4 => fake.segment.flags |= wire::tcp::flag::SYN,
        5 => fake.hop_limit = 1 + random.below(3) as u8,
        // `rexmit`: nothing is wrong with it.
        _ => {}
    }
    if random.chance(2) { vec![piece, fake] } else { vec![fake, piece] }
}

/// One operation on packets.
fn network(random: &mut Generator, packets: Vec<Packet>) -> Vec<Packet> {
    match random.below(8) {
        0 => packets.iter().flat_map(|packet| cut(random, packet)).collect(),
        1 => order(random, packets),
        2 => repeat(random, packets),
        3 => {
            let class = one_of(random, &[0x04, 0x10, 0xb8, 0xff]);
            packets.into_iter().map(|packet| Packet { class, ..packet }).collect()
        }
        _ => {
            let kind = random.below(3);
            packets.into_iter().flat_map(|packet| ip_chaff(random, kind, packet)).collect()
        }
    }
}

/// `ip_chaff`: beside a fragment, before or behind it, another of the same place with something else in it. What is no fragment
/// stays alone: two whole packets are two packets.
fn ip_chaff(random: &mut Generator, kind: u64, packet: Packet) -> Vec<Packet> {
    // The first fragment carries the header with the checksum; another in its place would make a packet that nobody takes.
    if packet.part.is_none_or(|part| part.offset == 0) || packet.payload.len() < 8 {
        return vec![packet];
    }
    let letter = b'a' + random.below(26) as u8;
    let block = [letter, letter, !letter, !letter];
    let mut fake = packet.clone();
    fake.payload.iter_mut().zip(block.into_iter().cycle()).for_each(|(byte, other)| *byte = other);
    // What is not a whole number of blocks long would change the sum.
    let sound = fake.payload.len() / block.len() * block.len();
    fake.payload[sound..].copy_from_slice(&packet.payload[sound..]);
    match kind {
        0 => {}
        1 if packet.version == Version::V4 => fake.options = BAD_OPTIONS.to_vec(),
        _ => fake.hop_limit = 1 + random.below(3) as u8,
    }
    if random.chance(2) { vec![packet, fake] } else { vec![fake, packet] }
}

/// `ip_frag`: a packet in fragments of one size, which may reach back into the one before with something else.
fn cut(random: &mut Generator, packet: &Packet) -> Vec<Packet> {
    let size = one_of(random, &[32, 48, 64]);
    if packet.part.is_some() || packet.payload.len() <= size {
        return vec![packet.clone()];
    }
    let overlap = one_of(random, &[0, 0, 8, 16]);
    let letter = b'a' + random.below(26) as u8;
    let mut fragments = Vec::new();
    for (index, part) in packet.payload.chunks(size).enumerate() {
        let offset = index * size;
        let more = offset + part.len() < packet.payload.len();
        // Never so far back that it reaches the first fragment, with the header in it.
        let overlap = if index < 2 { 0 } else { overlap };
        let front = [letter, letter, !letter, !letter].repeat(overlap / 4);
        fragments.push(packet.fragment(offset - overlap, &[&front, part].concat(), more));
    }
    fragments
}

/// `order`: at random or from the last to the first.
fn order<T>(random: &mut Generator, mut all: Vec<T>) -> Vec<T> {
    if random.chance(2) {
        all.reverse();
        return all;
    }
    for place in (1..all.len()).rev() {
        all.swap(place, random.below(place as u64 + 1) as usize);
    }
    all
}

/// `dup`: some twice.
fn repeat<T: Clone>(random: &mut Generator, all: Vec<T>) -> Vec<T> {
    let one_in = one_of(random, &[2, 4]);
    all.into_iter().flat_map(|one| if random.chance(one_in) { vec![one.clone(), one] } else { vec![one] }).collect()
}

/// `drop`: some not at all.
fn lose<T>(random: &mut Generator, all: Vec<T>) -> Vec<T> {
    all.into_iter().filter(|_| !random.chance(5)).collect()
}
