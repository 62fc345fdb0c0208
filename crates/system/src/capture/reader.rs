//! Reading captures.

use std::io::{self, Cursor, Read};
use std::time::Duration;

use bump::{Batch, Frame, Meta};
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use wire::offload::SUPER_FRAME_MAX_BYTES;
use wire::{EtherType, ipv6, layer};

use super::link::Link;
use super::notes::{Clock, FRAME_OPTIONS, Note, NoteKind, Order, is_whole};
use super::refusal::Refusal;
use super::source::{Failure, Source};
use super::{CaptureError, Format};
use crate::port::{ReceiveCounters, Receiver};

/// Bytes of a capture held at once; no block may be longer.
const BUFFER_BYTES: usize = 4 << 20;
/// Longest first block of a pcapng file, in bytes.
const FIRST_BLOCK_MAX_BYTES: usize = 1 << 20;
/// Interfaces that one section may describe.
const INTERFACES_MAX: usize = 1 << 16;
/// What tells the link type from what else stands in its field: whether a checksum follows each
/// frame, and how long it is.
const LINK_TYPE: i32 = 0xffff;
/// Blocks of packets as the first drafts of pcapng had them.
const PACKET_BLOCK: u32 = 2;
/// Other types of blocks: an interface, a packet without a time, one with everything, and what
/// programs that rewrite a file are not to copy.
const INTERFACE_BLOCK: u32 = 1;
const SIMPLE_BLOCK: u32 = 3;
const ENHANCED_BLOCK: u32 = 6;
const OWN_BLOCK: u32 = 0x4000_0bad;
/// Notes that wait for the next frame, in bytes.
const NOTES_MAX_BYTES: usize = 64 << 20;
/// First bytes of a pcapng file.
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Length of a pcap file's header.
const PCAP_HEADER_LEN: usize = 24;

/// A capture as the receiving half of a port. A batch is one frame, so that its time is known while it is processed.
#[allow(missing_debug_implementations)]
pub struct CaptureReader<'r> {
    blocks: Box<dyn PcapReaderIterator + Send + 'r>,
    failure: Failure,
    format: Format,
    state: State,
}

/// Frames that were captured and are not handed over, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Of a link that holds no frames of Ethernet.
    pub other_link: u64,
    /// Longer than any frame that a port hands over.
    pub too_long: u64,
    /// Cut by the snap length of the capture.
    pub cut: u64,
    /// Encrypted on the air.
    pub encrypted: u64,
    /// What manages a link and carries no packet.
    pub without_packet: u64,
    /// Blocks with names, secrets and the like, for which there was no room.
    pub notes: u64,
}

impl LeftOut {
    /// All frames of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.other_link + self.too_long + self.cut + self.encrypted + self.without_packet
    }
}

/// What is known so far.
#[derive(Debug, Default)]
struct State {
    interfaces: Vec<Interface>,
    frame: Vec<u8>,
    waiting: bool,
    captured_at: Duration,
    interface: u32,
    ended: bool,
    order: Order,
    notes: Vec<Note>,
    notes_bytes: usize,
    options: Vec<u8>,
    number: u64,
    left_out: LeftOut,
    counters: ReceiveCounters,
}

/// What a frame's interface says about it.
#[derive(Clone, Copy, Debug)]
struct Interface {
    link: Link,
    clock: Clock,
}

/// Units in a second by the option if_tsresol: a power of ten, or of two with the highest bit set.
fn units_per_second(resolution: u8) -> Result<u128, CaptureError> {
    let exponent = u32::from(resolution & 0x7f);
    let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
    base.checked_pow(exponent).ok_or(CaptureError::Malformed)
}

impl<'r> CaptureReader<'r> {
    /// A reader over a file or a pipe. Reads the capture's header.
    ///
    /// # Errors
    /// It is no capture, or reading fails.
    pub fn new(mut source: impl Read + Send + 'r) -> Result<CaptureReader<'r>, CaptureError> {
        let head = read_head(&mut source)?;
        let format = if head[..4] == SECTION_HEADER { Format::PcapNg } else { Format::Pcap };
        let failure = Failure::default();
        let source = Source { source: Cursor::new(head).chain(source), failure: failure.clone() };
        let blocks = create_reader(BUFFER_BYTES, source).map_err(|_| CaptureError::NotACapture)?;
        Ok(CaptureReader { blocks, failure, format, state: State::default() })
    }

    /// Which kind of file it is.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// On which interface of its section the latest frame was captured, counted from zero; a pcap file has one.
    #[must_use]
    pub fn interface(&self) -> u32 {
        self.state.interface
    }

    /// When the latest frame was captured, since 1970.
    #[must_use]
    pub fn captured_at(&self) -> Duration {
        self.state.captured_at
    }

    /// Which frame of the capture the latest is, from one on, those left out counted.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.state.number
    }

    /// What a pcapng file says of the latest frame: options as they stand there, in its byte order.
    #[must_use]
    pub fn frame_options(&self) -> &[u8] {
        &self.state.options
    }

    /// What stood between the latest frame and the one before, and was not taken yet.
    pub fn take_notes(&mut self) -> Vec<Note> {
        self.state.notes_bytes = 0;
        std::mem::take(&mut self.state.notes)
    }

    /// Frames that were captured and not handed over.
    #[must_use]
    pub fn left_out(&self) -> LeftOut {
        self.state.left_out
    }

    /// Whether every frame has been handed over.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.state.ended
    }

    /// Reads on until a frame waits or the capture ends.
    fn advance(&mut self) -> Result<(), CaptureError> {
        while !self.state.waiting && !self.state.ended {
            let needs_more = match self.blocks.next() {
                Ok((len, block)) => {
                    self.state.take(&block)?;
                    if self.format == Format::PcapNg {
                        self.state.take_beside(self.blocks.data().get(..len).unwrap_or_default());
                    }
                    self.blocks.consume(len);
                    false
                }
                Err(PcapError::Eof) => {
                    self.state.ended = true;
                    false
                }
                Err(PcapError::Incomplete(_)) => true,
                Err(PcapError::UnexpectedEof) => return Err(CaptureError::Truncated),
                Err(_) => return Err(CaptureError::Malformed),
            };
            if needs_more {
                self.blocks.refill().map_err(|_| CaptureError::Read(self.failure.take()))?;
            }
        }
        Ok(())
    }
}

/// The first block, whole: what the parser wants to see in its first read, which a pipe may not give at once.
fn read_head(source: &mut impl Read) -> Result<Vec<u8>, CaptureError> {
    let mut head = vec![0; 12];
    if source.read(&mut head[..1]).map_err(CaptureError::Read)? == 0 {
        return Err(CaptureError::Empty);
    }
    read_exact(source, &mut head[1..])?;
    if let Some(tool) = unpacker(&head) {
        return Err(CaptureError::Compressed(tool));
    }
    let len = if head[..4] == SECTION_HEADER {
        let length = [head[4], head[5], head[6], head[7]];
        let little_endian = head[8] == 0x4d;
        let length = if little_endian { u32::from_le_bytes(length) } else { u32::from_be_bytes(length) };
        length as usize
    } else {
        PCAP_HEADER_LEN
    };
    if !(PCAP_HEADER_LEN..=FIRST_BLOCK_MAX_BYTES).contains(&len) {
        return Err(CaptureError::NotACapture);
    }
    head.resize(len, 0);
    read_exact(source, &mut head[12..])?;
    Ok(head)
}

/// What takes apart a file that begins so, if it is compressed.
fn unpacker(head: &[u8]) -> Option<&'static str> {
    let known: [(&[u8], &str); 4] = [
        (&[0x1f, 0x8b], "zcat"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstdcat"),
        (b"BZh", "bzcat"),
        (&[0xfd, b'7', b'z', b'X', b'Z'], "xzcat"),
    ];
    known.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, tool)| *tool)
}

fn read_exact(source: &mut impl Read, bytes: &mut [u8]) -> Result<(), CaptureError> {
    source.read_exact(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => CaptureError::NotACapture,
        _ => CaptureError::Read(error),
    })
}

impl State {
    /// Takes over what a block says.
    fn take(&mut self, block: &PcapBlockOwned<'_>) -> Result<(), CaptureError> {
        match block {
            PcapBlockOwned::LegacyHeader(header) => {
                let units_per_second = if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 };
                self.add_interface(header.network.0, Clock { units_per_second, offset_seconds: 0 })
            }
            PcapBlockOwned::Legacy(record) => {
                let interface = *self.interfaces.first().ok_or(CaptureError::Malformed)?;
                let per_second = interface.clock.units_per_second;
                let units = u128::from(record.ts_sec) * per_second + u128::from(record.ts_usec);
                let time = interface.clock.time(u64::try_from(units).unwrap_or(u64::MAX));
                self.take_frame(record.data, record.origlen, time, (0, interface));
                Ok(())
            }
            PcapBlockOwned::NG(Block::SectionHeader(section)) => {
                self.order = Order { big_endian: section.big_endian() };
                self.interfaces.clear();
                Ok(())
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
                let units_per_second = units_per_second(description.if_tsresol)?;
                let clock = Clock { units_per_second, offset_seconds: description.if_tsoffset };
                self.add_interface(description.linktype.0, clock)
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let interface = *self.interfaces.get(packet.if_id as usize).ok_or(CaptureError::Malformed)?;
                let time = interface.clock.time(u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low));
                self.take_frame(packet.packet_data(), packet.origlen, time, (packet.if_id, interface));
                Ok(())
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                // It has no time of its own, and is of the section's first interface.
                let interface = *self.interfaces.first().ok_or(CaptureError::Malformed)?;
                self.take_frame(packet.packet_data(), packet.origlen, self.captured_at, (0, interface));
                Ok(())
            }
            PcapBlockOwned::NG(Block::Unknown(block)) if block.block_type == PACKET_BLOCK => {
                self.take_packet_block(block.data).ok_or(CaptureError::Malformed)
            }
            PcapBlockOwned::NG(_) => Ok(()),
        }
    }

    /// A packet as the first drafts wrote it, in the byte order of the machine that did: interface
    /// and drops in two bytes each, time, length here and on the wire.
    fn take_packet_block(&mut self, block: &[u8]) -> Option<()> {
        let (head, data) = block.split_first_chunk::<20>()?;
        let word = |at: usize| self.order.read_word([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let number = if self.order.big_endian { word(0) >> 16 } else { word(0) & 0xffff };
        let interface = *self.interfaces.get(number as usize)?;
        let time = interface.clock.time(u64::from(word(4)) << 32 | u64::from(word(8)));
        let frame = data.get(..usize::try_from(word(12)).ok()?)?;
        self.take_frame(frame, word(16), time, (number, interface));
        Some(())
    }

    fn add_interface(&mut self, link_type: i32, clock: Clock) -> Result<(), CaptureError> {
        if self.interfaces.len() == INTERFACES_MAX {
            return Err(CaptureError::Malformed);
        }
        self.interfaces.push(Interface { link: Link::of(link_type & LINK_TYPE), clock });
        Ok(())
    }

    /// Keeps what a block of pcapng says that is no frame, or says of its frame.
    fn take_beside(&mut self, block: &[u8]) {
        if !is_whole(block) {
            return;
        }
        let word = |at: usize| block[at..].first_chunk().map_or(0, |bytes| self.order.read_word(*bytes));
        let kind = match word(0) {
            ENHANCED_BLOCK | PACKET_BLOCK => {
                let behind = (word(20) as usize).next_multiple_of(4).saturating_add(FRAME_OPTIONS);
                let options = block.get(behind..block.len() - 4).unwrap_or_default();
                self.options = self.order.options_of_frame(options);
                return;
            }
            SIMPLE_BLOCK => return self.options.clear(),
            OWN_BLOCK => return,
            INTERFACE_BLOCK => {
                NoteKind::Interface(self.interfaces.last().map_or(Clock::NANOSECONDS, |last| last.clock))
            }
            _ if block[..4] == SECTION_HEADER => NoteKind::Section { big_endian: self.order.big_endian },
            _ => NoteKind::Other,
        };
        if self.notes_bytes + block.len() > NOTES_MAX_BYTES {
            self.left_out.notes += 1;
            return;
        }
        self.notes_bytes += block.len();
        self.notes.push(Note { kind, block: block.to_vec() });
    }

    /// Takes a frame that was `wire_len` bytes long, or counts why not.
    fn take_frame(
        &mut self,
        bytes: &[u8],
        wire_len: u32,
        captured_at: Duration,
        (number, interface): (u32, Interface),
    ) {
        (self.captured_at, self.interface) = (captured_at, number);
        self.number += 1;
        if bytes.len() > SUPER_FRAME_MAX_BYTES {
            self.left_out.too_long += 1;
            return;
        }
        let read = interface.link.read(bytes, &mut self.frame);
        // Where only padding is missing, the packet is there.
        let is_cut = bytes.len() < wire_len as usize && !(read.is_ok() && holds_its_packet(&self.frame));
        match read {
            _ if is_cut => self.left_out.cut += 1,
            Ok(()) if self.frame.len() > SUPER_FRAME_MAX_BYTES => self.left_out.too_long += 1,
            Ok(()) => self.waiting = true,
            Err(Refusal::Link) => self.left_out.other_link += 1,
            Err(Refusal::Encrypted) => self.left_out.encrypted += 1,
            Err(Refusal::NoPacket) => self.left_out.without_packet += 1,
        }
    }
}

/// Whether a frame has all of the IP packet that it says it has.
fn holds_its_packet(frame: &[u8]) -> bool {
    let Some((ethertype, start)) = layer::network_layer(frame) else { return false };
    let packet = &frame[start.min(frame.len())..];
    let word = |at: usize| packet.get(at..at + 2).map_or(0, |word| usize::from(word[0]) << 8 | usize::from(word[1]));
    let len = match ethertype {
        EtherType::IPV4 => word(2),
        // Nothing has no payload in IPv6 but what says its length elsewhere.
        EtherType::IPV6 if word(4) > 0 => word(4) + ipv6::HEADER_LEN,
        _ => 0,
    };
    len > 0 && len <= packet.len()
}

impl Batch for CaptureReader<'_> {
    fn next_frame(&mut self) -> Option<Frame<'_>> {
        let state = &mut self.state;
        if !std::mem::take(&mut state.waiting) {
            return None;
        }
        state.counters.frames += 1;
        state.counters.bytes += state.frame.len() as u64;
        Some(Frame { bytes: &mut state.frame, meta: Meta::plain() })
    }
}

impl Receiver for CaptureReader<'_> {
    fn fill(&mut self) -> io::Result<bool> {
        self.advance()?;
        Ok(self.state.waiting)
    }

    fn counters(&self) -> ReceiveCounters {
        self.state.counters
    }
}
