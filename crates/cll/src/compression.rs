//! Compression of single frames (docs/protocol.md, section 26; paper, sections 5.1 and 5.2): what leaves is made smaller where that
//! was agreed, what comes is made whole again, and both are counted.
//!
//! Each frame stands by itself, so a lost one costs no other. Only what passed the tag is expanded, and its claimed length is
//! compared with what a frame can hold before a byte is written; beyond that a peer with a certificate is trusted in nothing.
//! Memory is a lane's own and made once: a table, and room for one frame each way.

use bump::DropReason;
use lz4_flex::block::{CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size};
use wire::cll::InnerHeader;
use wire::cll::compression::{Algorithm, LENGTH_LEN, parse_payload};
use wire::cll::data::PAYLOAD_MIN;

/// What compression did, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompressionReport {
    /// Frames that left compressed.
    pub compressed_frames: u64,
    /// Frames that left as they were although compression was agreed, because it would have made them no smaller.
    pub left_frames: u64,
    /// Bytes of payload of the frames that left, compressed or as they were, before.
    pub bytes_before: u64,
    /// The same as they left.
    pub bytes_after: u64,
    /// Frames that came compressed and were expanded.
    pub expanded_frames: u64,
    /// Bytes of their payload as it came.
    pub expanded_bytes_before: u64,
    /// The same as the stack got it.
    pub expanded_bytes_after: u64,
}

impl CompressionReport {
    /// Adds what another lane did.
    pub(crate) fn add(&mut self, other: &CompressionReport) {
        self.compressed_frames += other.compressed_frames;
        self.left_frames += other.left_frames;
        self.bytes_before += other.bytes_before;
        self.bytes_after += other.bytes_after;
        self.expanded_frames += other.expanded_frames;
        self.expanded_bytes_before += other.expanded_bytes_before;
        self.expanded_bytes_after += other.expanded_bytes_after;
    }
}

/// A lane's part.
#[derive(Default)]
pub(crate) struct Compressor {
    table: Option<CompressTable>,
    /// One payload: compressed, on its way out, or still so, on its way in.
    packed: Vec<u8>,
    report: CompressionReport,
}

impl Compressor {
    pub(crate) fn report(&self) -> &CompressionReport {
        &self.report
    }

    /// Compresses `payload` in place and returns how many bytes of it are left, if those are fewer. They are enough to need no
    /// padding, which nobody could tell from the block.
    pub(crate) fn shrink(&mut self, algorithm: Algorithm, payload: &mut [u8]) -> Option<usize> {
        let shorter = match self.pack(algorithm, payload) {
            Some(len) if (PAYLOAD_MIN..payload.len()).contains(&len) => Some(len),
            _ => None,
        };
        let Some(len) = shorter else {
            self.leave(payload.len());
            return None;
        };
        payload[..len].copy_from_slice(&self.packed[..len]);
        self.report.compressed_frames += 1;
        self.report.bytes_before += payload.len() as u64;
        self.report.bytes_after += len as u64;
        Some(len)
    }

    /// A payload of `len` bytes leaves as it is.
    pub(crate) fn leave(&mut self, len: usize) {
        self.report.left_frames += 1;
        self.report.bytes_before += len as u64;
        self.report.bytes_after += len as u64;
    }

    /// Writes the length of `payload` and its block to `packed`; how many bytes that is.
    fn pack(&mut self, algorithm: Algorithm, payload: &[u8]) -> Option<usize> {
        let length = u16::try_from(payload.len()).ok()?;
        let room = LENGTH_LEN + get_maximum_output_size(payload.len());
        if self.packed.len() < room {
            self.packed.resize(room, 0);
        }
        let (front, block) = self.packed.split_at_mut(LENGTH_LEN);
        front.copy_from_slice(&length.to_be_bytes());
        let block_len = match algorithm {
            Algorithm::Lz4 => {
                let table = self.table.get_or_insert_with(CompressTable::small);
                compress_into_with_table(payload, block, table).ok()?
            }
        };
        Some(LENGTH_LEN + block_len)
    }

    /// Judges a payload that is marked as compressed and keeps a copy, to be [expanded](Compressor::expand); returns how many
    /// bytes it will have, `len_max` at most.
    pub(crate) fn accept(
        &mut self,
        agreed: Option<Algorithm>,
        inner: &InnerHeader,
        payload: &[u8],
        len_max: usize,
    ) -> Result<Packed, DropReason> {
        let algorithm = agreed.ok_or(DropReason::Compressed)?;
        if matches!(inner.ethertype, InnerHeader::NOTHING | InnerHeader::CONTROL) {
            return Err(DropReason::InnerMalformed);
        }
        let (len, block) = parse_payload(payload).map_err(|_| DropReason::CompressedMalformed)?;
        if len > len_max {
            return Err(DropReason::CompressedTooLong);
        }
        // Who compresses leaves alone what gets no smaller, so every payload has one form.
        if payload.len() >= len {
            return Err(DropReason::CompressedMalformed);
        }
        self.packed.clear();
        self.packed.extend_from_slice(block);
        Ok(Packed { algorithm, len })
    }

    /// Expands what was accepted last into `room`, which has exactly its length.
    pub(crate) fn expand(&mut self, packed: &Packed, room: &mut [u8]) -> Result<(), DropReason> {
        let expanded = match packed.algorithm {
            Algorithm::Lz4 => decompress_into(&self.packed, room),
        };
        if expanded.ok() != Some(room.len()) {
            return Err(DropReason::CompressedMalformed);
        }
        self.report.expanded_frames += 1;
        self.report.expanded_bytes_before += (LENGTH_LEN + self.packed.len()) as u64;
        self.report.expanded_bytes_after += room.len() as u64;
        Ok(())
    }
}

/// A compressed payload that may be expanded.
pub(crate) struct Packed {
    algorithm: Algorithm,
    /// How many bytes it will have.
    pub(crate) len: usize,
}

#[cfg(test)]
mod tests;
