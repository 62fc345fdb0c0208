//! A TCP segment as fields, and back (RFC 9293, section 3.1).
//!
//! Trust: nothing but what the port said of the checksum. A segment whose sum is wrong is refused before anybody looks at its
//! fields, and the sum is never made right for it.

use bump::{Checksum, DropReason};
use wire::checksum::Sum;
use wire::tcp::{self, View};

use crate::context::Context;
use crate::ip::Ip;
use crate::rule::Rule;
use crate::settings::OptionOrder;
use crate::tcp::options::{self, OPTIONS_LEN_MAX, Options};

/// The control bits in one word: the second byte as in [`wire::tcp::flag`], above it what stands beside the data offset.
pub(crate) mod flag {
    use wire::tcp::flag;

    pub(crate) const FIN: u16 = flag::FIN as u16;
    pub(crate) const SYN: u16 = flag::SYN as u16;
    pub(crate) const RST: u16 = flag::RST as u16;
    pub(crate) const PSH: u16 = flag::PSH as u16;
    pub(crate) const ACK: u16 = flag::ACK as u16;
    pub(crate) const URG: u16 = flag::URG as u16;
    pub(crate) const ECE: u16 = flag::ECE as u16;
    pub(crate) const CWR: u16 = flag::CWR as u16;
    /// Accurate ECN (RFC 9768).
    pub(crate) const AE: u16 = 0x100;
    /// What congestion is told with.
    pub(crate) const ECN: u16 = AE | CWR | ECE;
    /// Bits that mean nothing yet.
    pub(crate) const RESERVED: u16 = 0xe00;
}

/// One segment, or a super-frame's worth of them.
#[derive(Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) sequence: u32,
    pub(crate) acknowledgement: u32,
    /// See [`flag`].
    pub(crate) flags: u16,
    /// Not scaled.
    pub(crate) window: u16,
    pub(crate) urgent_pointer: u16,
    pub(crate) options: Options<'a>,
    data: &'a mut [u8],
    /// The sum of the data as the sender's checksum has it; `None` after the data changed.
    data_sum: Option<u16>,
    /// The options as they will leave, and their length.
    written: ([u8; OPTIONS_LEN_MAX], usize),
}

/// Reads the segment in `bytes`, which an IP packet with header `ip` carries.
pub(crate) fn read<'a>(
    context: &mut Context<'_>,
    ip: &Ip,
    checksum: Checksum,
    bytes: &'a mut [u8],
) -> Result<Segment<'a>, DropReason> {
    let header_len = match View::new(bytes) {
        Ok(view) => view.header_len(),
        Err(_) => return Err(context.refused(Rule::TcpHeader, DropReason::TcpHeader)),
    };
    verify(context, ip, checksum, bytes)?;
    let pseudo_header = ip.pseudo_header(bytes.len());
    let (header, data) = bytes.split_at_mut(header_len);
    let header: &'a [u8] = header;
    let options = options::read(context, &header[tcp::HEADER_LEN..])?;
    let number = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    Ok(Segment {
        source_port: word(0),
        destination_port: word(2),
        sequence: number(tcp::SEQUENCE),
        acknowledgement: number(8),
        flags: word(12) & 0xfff,
        window: word(14),
        urgent_pointer: word(tcp::URGENT),
        options,
        data,
        data_sum: Some(sum_of_data(pseudo_header, header)),
        written: ([0; OPTIONS_LEN_MAX], 0),
    })
}

/// Refuses a segment whose checksum is wrong.
fn verify(context: &mut Context<'_>, ip: &Ip, checksum: Checksum, bytes: &[u8]) -> Result<(), DropReason> {
    let is_wrong = match checksum {
        Checksum::Unknown if context.on(Rule::TcpChecksum) => {
            ip.pseudo_header(bytes.len()).bytes(bytes).checksum() != 0
        }
        Checksum::Unknown | Checksum::Complete => false,
        Checksum::Partial { start, offset } => (usize::from(start), usize::from(offset)) != (0, tcp::CHECKSUM),
        Checksum::Bad => true,
    };
    context.refuse_if(is_wrong, Rule::TcpChecksum, DropReason::TcpChecksum)
}

/// What the checksum in `header` says about the sum of the data: all that is summed sums to zero (RFC 1624, section 3). So a
/// sum that was wrong stays wrong by the same amount, and data that does not change is not summed again.
fn sum_of_data(pseudo_header: Sum, header: &[u8]) -> u16 {
    !pseudo_header.bytes(header).fold()
}

impl Segment<'static> {
    /// A segment of the scrubber's own between two ports that says nothing yet but `options`.
    pub(crate) fn fresh((source_port, destination_port): (u16, u16), options: Options<'static>) -> Segment<'static> {
        Segment {
            source_port,
            destination_port,
            sequence: 0,
            acknowledgement: 0,
            flags: 0,
            window: 0,
            urgent_pointer: 0,
            options,
            data: &mut [],
            data_sum: Some(0),
            written: ([0; OPTIONS_LEN_MAX], 0),
        }
    }
}

impl Segment<'_> {
    /// Whether all of `flags` are set.
    pub(crate) fn has(&self, flags: u16) -> bool {
        self.flags & flags == flags
    }

    /// Whether it opens a connection: SYN without ACK.
    pub(crate) fn opens(&self) -> bool {
        self.flags & (flag::SYN | flag::ACK) == flag::SYN
    }

    pub(crate) fn data(&self) -> &[u8] {
        self.data
    }

    /// Whether its sender sends it again until it is acknowledged.
    pub(crate) fn says(&self) -> bool {
        !self.data.is_empty() || self.has(flag::FIN)
    }

    /// The sequence number behind the data; a FIN has it.
    pub(crate) fn end(&self) -> u32 {
        self.sequence.wrapping_add(self.data.len() as u32)
    }

    /// Takes `len` bytes off the front, or all.
    pub(crate) fn trim_front(&mut self, len: usize) {
        let len = len.min(self.data.len());
        self.data = &mut std::mem::take(&mut self.data)[len..];
        self.sequence = self.sequence.wrapping_add(len as u32);
        self.data_sum = None;
    }

    /// Keeps at most `len` bytes. What followed the last byte, a FIN or a push, goes with the rest.
    pub(crate) fn truncate(&mut self, len: usize) {
        if len < self.data.len() {
            self.data = &mut std::mem::take(&mut self.data)[..len];
            self.data_sum = None;
            self.flags &= !(flag::FIN | flag::PSH);
        }
    }

    /// Hands the data to `change`, which says whether it changed it.
    pub(crate) fn change_data(&mut self, change: impl FnOnce(&mut [u8]) -> bool) {
        if change(self.data) {
            self.data_sum = None;
        }
    }

    /// Fixes the form of the options, in `order` or as they came. Nothing may change them afterwards.
    pub(crate) fn settle(&mut self, order: Option<&OptionOrder>) {
        self.written.1 = self.options.write(order, &mut self.written.0);
    }

    fn header_len(&self) -> usize {
        tcp::HEADER_LEN + self.written.1
    }

    /// Bytes of header and data as they will be written.
    pub(crate) fn len(&self) -> usize {
        self.header_len() + self.data.len()
    }

    /// Writes the segment into `room`, which is [`len`](Segment::len) long, behind the header `ip`.
    pub(crate) fn emit(&self, ip: &Ip, checksum: Checksum, room: &mut [u8]) {
        let (header, data) = room.split_at_mut(self.header_len());
        header[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        header[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        header[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        header[8..12].copy_from_slice(&self.acknowledgement.to_be_bytes());
        let offset_and_flags = ((header.len() / 4) as u16) << 12 | self.flags;
        header[12..14].copy_from_slice(&offset_and_flags.to_be_bytes());
        header[14..16].copy_from_slice(&self.window.to_be_bytes());
        header[16..18].fill(0);
        header[18..20].copy_from_slice(&self.urgent_pointer.to_be_bytes());
        header[tcp::HEADER_LEN..].copy_from_slice(&self.written.0[..self.written.1]);
        data.copy_from_slice(self.data);
        let pseudo_header = ip.pseudo_header(self.len());
        let sum = match checksum {
            // The card or the kernel adds the rest and complements it.
            Checksum::Partial { .. } => pseudo_header.fold(),
            _ => {
                let data_sum = self.data_sum.unwrap_or_else(|| Sum::ZERO.bytes(self.data).fold());
                pseudo_header.bytes(header).word(data_sum).checksum()
            }
        };
        header[tcp::CHECKSUM..tcp::CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    }
}
