//! Reading captures.

use std::io::{self, Cursor, Read};
use std::time::Duration;

use bump::{Batch, Frame, Meta};
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use wire::offload::SUPER_FRAME_MAX_BYTES;

use super::{CaptureError, ETHERNET, Format};
use crate::port::{ReceiveCounters, Receiver};

/// Bytes of a capture held at once; no block may be longer.
const BUFFER_BYTES: usize = 1 << 20;
/// Longest first block of a pcapng file, in bytes.
const FIRST_BLOCK_MAX_BYTES: usize = 64 << 10;
/// Interfaces that one section may describe.
const INTERFACES_MAX: usize = 256;
/// First bytes of a pcapng file.
const SECTION_HEADER: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Length of a pcap file's header.
const PCAP_HEADER_LEN: usize = 24;

/// A capture as the receiving half of a port. A batch is one frame, so that its time is known while it is processed.
#[allow(missing_debug_implementations)]
pub struct CaptureReader<'r> {
    blocks: Box<dyn PcapReaderIterator + Send + 'r>,
    format: Format,
    state: State,
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
    counters: ReceiveCounters,
}

/// What a frame's interface says about it.
#[derive(Clone, Copy, Debug)]
struct Interface {
    units_per_second: u64,
    offset_seconds: i64,
}

impl Interface {
    fn time(&self, units: u64) -> Duration {
        let seconds = (units / self.units_per_second).saturating_add_signed(self.offset_seconds);
        let rest = u128::from(units % self.units_per_second) * 1_000_000_000 / u128::from(self.units_per_second);
        Duration::new(seconds, u32::try_from(rest).unwrap_or(0))
    }
}

/// Units in a second by the option if_tsresol: a power of ten, or of two with the highest bit set.
fn units_per_second(resolution: u8) -> Result<u64, CaptureError> {
    let exponent = u32::from(resolution & 0x7f);
    let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
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
        let blocks = create_reader(BUFFER_BYTES, Cursor::new(head).chain(source));
        Ok(CaptureReader { blocks: blocks.map_err(|_| CaptureError::NotACapture)?, format, state: State::default() })
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
                let failed = |_| CaptureError::Read(io::Error::other("the capture cannot be read on"));
                self.blocks.refill().map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// The first block, whole: what the parser wants to see in its first read, which a pipe may not give at once.
fn read_head(source: &mut impl Read) -> Result<Vec<u8>, CaptureError> {
    let mut head = vec![0; 12];
    read_exact(source, &mut head)?;
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
                self.add_interface(header.network.0, Interface { units_per_second, offset_seconds: 0 })
            }
            PcapBlockOwned::Legacy(record) => {
                let interface = *self.interfaces.first().ok_or(CaptureError::Malformed)?;
                let units = u64::from(record.ts_sec) * interface.units_per_second + u64::from(record.ts_usec);
                self.take_frame(record.data, interface.time(units), 0);
                Ok(())
            }
            PcapBlockOwned::NG(Block::SectionHeader(_)) => {
                self.interfaces.clear();
                Ok(())
            }
            PcapBlockOwned::NG(Block::InterfaceDescription(description)) => {
                let units_per_second = units_per_second(description.if_tsresol)?;
                let interface = Interface { units_per_second, offset_seconds: description.if_tsoffset };
                self.add_interface(description.linktype.0, interface)
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                let interface = self.interfaces.get(packet.if_id as usize).ok_or(CaptureError::Malformed)?;
                let time = interface.time(u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low));
                self.take_frame(packet.packet_data(), time, packet.if_id);
                Ok(())
            }
            PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
                // It has no time of its own, and is of the section's first interface.
                self.take_frame(packet.packet_data(), self.captured_at, 0);
                Ok(())
            }
            PcapBlockOwned::NG(_) => Ok(()),
        }
    }

    fn add_interface(&mut self, link_type: i32, interface: Interface) -> Result<(), CaptureError> {
        if link_type != i32::from(ETHERNET) {
            return Err(CaptureError::LinkType(link_type));
        }
        if self.interfaces.len() == INTERFACES_MAX {
            return Err(CaptureError::Malformed);
        }
        self.interfaces.push(interface);
        Ok(())
    }

    fn take_frame(&mut self, bytes: &[u8], captured_at: Duration, interface: u32) {
        self.captured_at = captured_at;
        self.interface = interface;
        if bytes.len() > SUPER_FRAME_MAX_BYTES {
            self.counters.unreadable += 1;
            return;
        }
        self.frame.clear();
        self.frame.extend_from_slice(bytes);
        self.waiting = true;
    }
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
