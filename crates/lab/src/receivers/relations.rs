//! Every relation that up to three chunks can have to each other, in every order.

use wire::layer::protocol::UDP;

use super::connection::Connection;
use super::packet::{Packet, Version, datagram};

/// Blocks in which the chunks lie: three intervals have at most six ends, so five blocks hold every relation that three can have
/// to each other (Allen).
const BLOCKS: usize = 5;
/// Bytes of a block: fragments lie at multiples of 8, segments anywhere.
const FRAGMENT_BLOCK: usize = 8;
const SEGMENT_BLOCK: usize = 2;
/// Blocks in front of the chunks, with the header of UDP and nothing that overlaps.
const HEAD_BLOCKS: usize = 3;
/// What stands behind the last block, so that the last fragment overlaps nothing.
const TAIL: &[u8] = b"tail!";
/// Bytes of the stream before the chunks, which come last, so that all chunks wait for them.
const HOLE: u32 = 3;
const UDP_LEN: usize = 8;

/// First block and the block behind the last.
pub(super) type Chunk = (usize, usize);

/// Every interval of blocks.
fn intervals() -> impl Iterator<Item = Chunk> + Clone {
    (0..BLOCKS).flat_map(|start| (start + 1..=BLOCKS).map(move |end| (start, end)))
}

/// Every one, two and three intervals in every order.
pub(super) fn all() -> impl Iterator<Item = Vec<Chunk>> {
    let one = intervals().map(|a| vec![a]);
    let two = intervals().flat_map(|a| intervals().map(move |b| vec![a, b]));
    let three = intervals().flat_map(|a| intervals().flat_map(move |b| intervals().map(move |c| vec![a, b, c])));
    one.chain(two).chain(three)
}

/// A block of `letter` whose sum is that of every other letter's, so that the checksum is right whichever a host takes.
fn block(letter: u8) -> [u8; FRAGMENT_BLOCK] {
    let other = !letter;
    [letter, letter, other, other, letter, letter, other, other]
}

/// The fragments of a datagram; over IPv4 one fills every hole at last, over IPv6, where that one would make every packet
/// invalid, only chunks that leave no hole make a packet. A datagram without any overlap comes last.
pub(super) fn fragments(version: Version, source_port: u16, identification: u16, chunks: &[Chunk]) -> Vec<Packet> {
    let data_len = HEAD_BLOCKS * FRAGMENT_BLOCK - UDP_LEN;
    let data = [&vec![b'h'; data_len][..], &block(b'f').repeat(BLOCKS), TAIL].concat();
    let bytes = datagram(version, source_port, &data);
    let whole = Packet::new(version, UDP, identification, bytes.clone());
    let head_len = HEAD_BLOCKS * FRAGMENT_BLOCK;
    let chunk = |(start, end): Chunk, letter: u8| {
        let bytes = block(letter).repeat(end - start);
        whole.fragment(head_len + start * FRAGMENT_BLOCK, &bytes, true)
    };
    let head = whole.fragment(0, &bytes[..head_len], true);
    let tail = whole.fragment(head_len + BLOCKS * FRAGMENT_BLOCK, TAIL, false);
    let filler = (version == Version::V4).then(|| chunk((0, BLOCKS), b'f'));
    let chunks = chunks.iter().zip(*b"abc").map(|(at, letter)| chunk(*at, letter));
    let honest = Packet::new(version, UDP, identification.wrapping_add(1), datagram(version, source_port, b"honest"));
    [head].into_iter().chain(chunks).chain(filler).chain([tail, honest]).collect()
}

/// Segments behind a hole, and at last one that fills it and says everything once more.
pub(super) fn segments(connection: &Connection, chunks: &[Chunk]) -> Vec<Packet> {
    let chunk = |(start, end): Chunk, letter: u8| {
        let data = vec![letter; (end - start) * SEGMENT_BLOCK];
        connection.packet(&connection.segment(HOLE + (start * SEGMENT_BLOCK) as u32, &data))
    };
    let all = vec![b'f'; HOLE as usize + BLOCKS * SEGMENT_BLOCK];
    let last = connection.packet(&connection.segment(0, &all));
    chunks.iter().zip(*b"abc").map(|(at, letter)| chunk(*at, letter)).chain([last]).collect()
}
