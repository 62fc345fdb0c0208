//! Writing captures.

use std::io::{self, Write};
use std::time::Duration;

use bump::{Checksum, Meta};
use wire::offload::{SUPER_FRAME_MAX_BYTES, complete_checksum};

use super::ETHERNET;
use super::notes::{Clock, Note, NoteKind, Order};
use crate::port::{Backlog, SendCounters, Sender};

/// Which kind of file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// pcap with nanoseconds: what every tool reads.
    Pcap,
    /// pcapng with nanoseconds.
    PcapNg,
}

/// A capture as the sending half of a port. Frames are stamped with the time last set, their checksums completed and
/// their tags put back, as they would stand on a wire; super-frames stay whole.
#[derive(Debug)]
pub struct CaptureWriter<W: Write> {
    file: W,
    format: Format,
    /// Whether the header is written. That of pcapng waits for what another capture says.
    begun: bool,
    order: Order,
    clocks: Vec<Clock>,
    interface: u32,
    /// What a pcapng file is to say of the next frame.
    options: Vec<u8>,
    now: Duration,
    reservation: Vec<u8>,
    error: Option<io::Error>,
    counters: SendCounters,
}

impl<W: Write> CaptureWriter<W> {
    /// Begins a capture in `file`, which should be buffered.
    ///
    /// # Errors
    /// Writing fails.
    pub fn new(mut file: W, format: Format) -> io::Result<CaptureWriter<W>> {
        if format == Format::Pcap {
            file.write_all(&pcap_header())?;
        }
        Ok(CaptureWriter {
            file,
            format,
            begun: format == Format::Pcap,
            order: Order::default(),
            clocks: Vec::new(),
            interface: 0,
            options: Vec::new(),
            now: Duration::ZERO,
            reservation: Vec::with_capacity(SUPER_FRAME_MAX_BYTES),
            error: None,
            counters: SendCounters::default(),
        })
    }

    /// Sets the time, since 1970, that the following frames are stamped with.
    pub fn set_time(&mut self, now: Duration) {
        self.now = now;
    }

    /// Writes what another capture says beside its frames; a pcap file has no place for it.
    pub fn note(&mut self, note: &Note) {
        if self.format == Format::Pcap || self.error.is_some() {
            return;
        }
        match note.kind {
            NoteKind::Section { big_endian } => {
                (self.begun, self.order, self.interface) = (true, Order { big_endian }, 0);
                self.clocks.clear();
            }
            NoteKind::Interface(clock) => self.clocks.push(clock),
            NoteKind::Other => {}
        }
        let written = note.written(self.order.big_endian);
        self.error = self.begin().and_then(|()| self.file.write_all(&written)).err();
    }

    /// On which interface of its section the following frames were captured, where notes named it.
    pub fn set_interface(&mut self, interface: u32) {
        self.interface = interface;
    }

    /// What is said of the next frame, as [`frame_options`](super::CaptureReader::frame_options)
    /// gives it.
    pub fn set_options(&mut self, options: &[u8]) {
        self.options.clear();
        self.options.extend_from_slice(options);
    }

    /// Says one thing more of the next frame.
    pub fn comment(&mut self, text: &str) {
        let comment = self.order.comment(text);
        self.options.extend_from_slice(&comment);
    }

    /// The frame that was written last, without a tag that is metadata.
    #[must_use]
    pub fn last(&self) -> &[u8] {
        &self.reservation
    }

    /// Writes the header, unless that has happened.
    fn begin(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        self.clocks = vec![Clock::NANOSECONDS];
        self.file.write_all(&pcapng_header())
    }

    /// Ends the capture and gives the file back.
    ///
    /// # Errors
    /// Writing failed, now or earlier.
    pub fn finish(mut self) -> io::Result<W> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.begin()?;
        self.file.flush()?;
        Ok(self.file)
    }

    fn write(&mut self, tag: Option<bump::VlanTag>) -> io::Result<()> {
        let frame_len = self.reservation.len();
        let split = if tag.is_some() { frame_len.min(12) } else { 0 };
        let mut tag_bytes = [0; 4];
        if let Some(tag) = tag {
            tag_bytes[..2].copy_from_slice(&tag.tpid.to_be_bytes());
            tag_bytes[2..].copy_from_slice(&tag.tci.to_be_bytes());
        }
        let tag_bytes = &tag_bytes[..if tag.is_some() { 4 } else { 0 }];
        // Every frame is below SUPER_FRAME_MAX_BYTES, so its length fits.
        let len = (frame_len + tag_bytes.len()) as u32;
        let padding = (len.next_multiple_of(4) - len) as usize;
        self.begin()?;
        self.write_head(len)?;
        let frame = &self.reservation;
        for part in [&frame[..split], tag_bytes, &frame[split..]] {
            self.file.write_all(part)?;
        }
        if self.format == Format::PcapNg {
            self.file.write_all(&[0; 4][..padding])?;
            self.file.write_all(&self.options)?;
            self.file.write_all(&[0; 4][..if self.options.is_empty() { 0 } else { 4 }])?;
            self.file.write_all(&self.order.word(self.enhanced_packet_len(len)))?;
        }
        Ok(())
    }

    /// Writes what stands in front of a frame of `len` bytes.
    fn write_head(&mut self, len: u32) -> io::Result<()> {
        if self.format == Format::Pcap {
            let words = [self.now.as_secs() as u32, self.now.subsec_nanos(), len, len];
            return words.iter().try_for_each(|word| self.file.write_all(&word.to_le_bytes()));
        }
        let interface = if (self.interface as usize) < self.clocks.len() { self.interface } else { 0 };
        let units = self.clocks.get(interface as usize).unwrap_or(&Clock::NANOSECONDS).units(self.now);
        let (high, low) = ((units >> 32) as u32, units as u32);
        let words = [6, self.enhanced_packet_len(len), interface, high, low, len, len];
        words.iter().try_for_each(|word| self.file.write_all(&self.order.word(*word)))
    }

    /// Length of a pcapng packet block with a frame of `len` bytes.
    fn enhanced_packet_len(&self, len: u32) -> u32 {
        let end = if self.options.is_empty() { 0 } else { 4 };
        32 + len.next_multiple_of(4) + self.options.len() as u32 + end
    }
}

/// A pcap file header for nanoseconds: magic, version 2.4, zone, accuracy, longest frame, link type.
fn pcap_header() -> Vec<u8> {
    let mut header = Vec::with_capacity(24);
    header.extend(0xa1b2_3c4d_u32.to_le_bytes());
    header.extend(2_u16.to_le_bytes());
    header.extend(4_u16.to_le_bytes());
    header.extend([0; 8]);
    header.extend((SUPER_FRAME_MAX_BYTES as u32).to_le_bytes());
    header.extend(u32::from(ETHERNET).to_le_bytes());
    header
}

/// A pcapng section header of unknown length, and one Ethernet interface that counts nanoseconds (option 9, value 9).
fn pcapng_header() -> Vec<u8> {
    let mut header = Vec::with_capacity(60);
    for word in [0x0a0d_0d0a_u32, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28] {
        header.extend(word.to_le_bytes());
    }
    let option = [9 | 1 << 16, 9, 0];
    for word in [1, 32, u32::from(ETHERNET), SUPER_FRAME_MAX_BYTES as u32].into_iter().chain(option).chain([32]) {
        header.extend(word.to_le_bytes());
    }
    header
}

impl<W: Write> Sender for CaptureWriter<W> {
    fn reserve(&mut self, capacity: usize) -> Option<&mut [u8]> {
        if self.error.is_some() || capacity > SUPER_FRAME_MAX_BYTES {
            return None;
        }
        self.reservation.resize(capacity, 0);
        Some(&mut self.reservation)
    }

    fn commit(&mut self, len: usize, meta: Meta) {
        debug_assert!(len <= self.reservation.len(), "committed {len} bytes of {}", self.reservation.len());
        self.reservation.truncate(len);
        if let (Checksum::Partial { start, offset }, None) = (meta.checksum, meta.gso) {
            // A frame whose metadata is wrong is written as it is, for whoever looks for the fault.
            let _ = complete_checksum(&mut self.reservation, usize::from(start), usize::from(offset));
        }
        self.counters.frames += 1;
        self.counters.bytes += len as u64;
        self.counters.super_frames += u64::from(meta.gso.is_some());
        if let Err(error) = self.write(meta.vlan) {
            self.counters.errors += 1;
            self.error = Some(error);
        }
        self.options.clear();
    }

    fn flush(&mut self) -> Backlog {
        if let Err(error) = self.file.flush() {
            self.error = Some(error);
        }
        Backlog::None
    }

    fn backlog(&self) -> Backlog {
        Backlog::None
    }

    fn counters(&self) -> SendCounters {
        self.counters
    }
}
