//! Captures that are compressed, taken apart while they are read.
//!
//! Whoever wrote one may have written a trap: a few bytes that become terabytes. So what comes out
//! is bounded by what went in, and so is the memory that a window takes.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use super::CaptureError;

/// What a capture may become whatever its size, in bytes.
const FREE_BYTES: u64 = 1 << 30;
/// How many times its size a larger one may become. Floods of one frame were seen to shrink to a
/// hundredth.
const RATIO_MAX: u64 = 250;
/// Longest window of zstd, in bytes: what its own program takes unless told otherwise.
const WINDOW_MAX_BYTES: u64 = 128 << 20;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The first bytes of a frame of zstd that holds no data: these, whatever the lowest four bits are.
const ZSTD_SKIPPED: [u8; 3] = [0x2a, 0x4d, 0x18];

/// What `source` says once gzip or zstd are taken off, if it has either.
///
/// # Errors
/// Reading fails.
pub fn unpacked<'r>(source: impl Read + Send + 'r) -> Result<Box<dyn Read + Send + 'r>, CaptureError> {
    bounded(source, FREE_BYTES)
}

fn bounded<'r>(mut source: impl Read + Send + 'r, free: u64) -> Result<Box<dyn Read + Send + 'r>, CaptureError> {
    let mut head = Vec::new();
    source.by_ref().take(ZSTD.len() as u64).read_to_end(&mut head).map_err(CaptureError::Read)?;
    let is_zstd = head == ZSTD || head.get(1..) == Some(&ZSTD_SKIPPED) && head[0] >> 4 == 5;
    let is_gzip = head.starts_with(&GZIP);
    let taken = Arc::new(AtomicU64::new(0));
    let source = Counted { source: Cursor::new(head).chain(source), count: Arc::clone(&taken) };
    Ok(match (is_gzip, is_zstd) {
        (true, _) => Box::new(Bounded { source: MultiGzDecoder::new(source), taken, given: 0, free }),
        (_, true) => Box::new(Bounded { source: Zstd::new(source), taken, given: 0, free }),
        _ => Box::new(source),
    })
}

/// A reader that counts what it gave.
#[derive(Debug)]
pub struct Counted<R> {
    source: R,
    count: Arc<AtomicU64>,
}

impl<R> Counted<R> {
    /// Counts in `count` what `source` gives, in bytes.
    pub fn new(source: R, count: Arc<AtomicU64>) -> Counted<R> {
        Counted { source, count }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.source.read(buffer)?;
        self.count.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}

/// A reader that ends where it gives too much for what it took.
struct Bounded<R> {
    source: R,
    taken: Arc<AtomicU64>,
    given: u64,
    free: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.source.read(buffer)?;
        self.given += len as u64;
        let room = self.free.max(self.taken.load(Ordering::Relaxed).saturating_mul(RATIO_MAX));
        if self.given > room {
            let what = format!("it unpacks to more than {RATIO_MAX} times its size; unpack it first if you trust it");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        Ok(len)
    }
}

/// All frames of a file of zstd, one behind the other.
struct Zstd<R> {
    source: BufReader<R>,
    decoder: FrameDecoder,
    is_inside: bool,
}

impl<R: Read> Zstd<R> {
    fn new(source: R) -> Zstd<R> {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(WINDOW_MAX_BYTES);
        Zstd { source: BufReader::new(source), decoder, is_inside: false }
    }

    /// Begins the next frame that holds data; false where the file ends.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.is_inside {
            if self.source.fill_buf()?.is_empty() {
                return Ok(false);
            }
            match self.decoder.init(&mut self.source) {
                Ok(()) => self.is_inside = true,
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                    io::copy(&mut self.source.by_ref().take(u64::from(length)), &mut io::sink())?;
                }
                Err(error) => return Err(broken(error)),
            }
        }
        Ok(true)
    }
}

impl<R: Read> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !buffer.is_empty() && self.begin()? {
            while self.decoder.can_collect() == 0 && !self.decoder.is_finished() {
                let one = BlockDecodingStrategy::UptoBlocks(1);
                self.decoder.decode_blocks(&mut self.source, one).map_err(broken)?;
            }
            let len = self.decoder.read(buffer)?;
            if len > 0 {
                return Ok(len);
            }
            let said = self.decoder.get_checksum_from_data();
            if said.is_some() && said != self.decoder.get_calculated_checksum() {
                return Err(broken("its checksum is wrong"));
            }
            self.is_inside = false;
        }
        Ok(0)
    }
}

fn broken(why: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("what zstd compressed is damaged: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What each tool wrote of "scrub\n", by `printf 'scrub\n' | gzip -n` and `| zstd`.
    const GZIPPED: &str = "1f8b08000000000000032b4e2e2a4de20200c6f1f4c606000000";
    const ZSTANDARD: &str = "28b52ffd045831000073637275620a5ddd4f57";
    const PLAIN: &[u8] = b"scrub\n";

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex")).collect()
    }

    fn unpack(packed: &[u8], free: u64) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        bounded(packed, free).expect("a slice").read_to_end(&mut out)?;
        Ok(out)
    }

    #[test]
    fn what_is_compressed_is_read_as_if_it_were_not() {
        for packed in [bytes(GZIPPED), bytes(ZSTANDARD), PLAIN.to_vec()] {
            assert_eq!(unpack(&packed, 100).expect("whole"), PLAIN);
        }
        assert_eq!(unpack(b"", 100).expect("empty"), b"");
    }

    /// Tools that work in parallel write several members, and zstd's seekable form frames without
    /// data.
    #[test]
    fn several_members_are_read_one_behind_the_other() {
        let skipped = [&[0x5e, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 7, 7, 7][..], &bytes(ZSTANDARD)].concat();
        for packed in [bytes(GZIPPED).repeat(2), bytes(ZSTANDARD).repeat(2), [bytes(ZSTANDARD), skipped].concat()] {
            assert_eq!(unpack(&packed, 100).expect("whole"), PLAIN.repeat(2));
        }
    }

    #[test]
    fn damage_and_an_end_in_the_middle_are_errors() {
        for packed in [bytes(GZIPPED), bytes(ZSTANDARD)] {
            for end in 5..packed.len() {
                assert!(unpack(&packed[..end], 100).is_err(), "{end} bytes");
            }
            let mut damaged = packed.clone();
            // A byte of the text: both formats have this one as it is, and a checksum over it.
            let at = packed.len() - if packed[0] == GZIP[0] { 11 } else { 6 };
            damaged[at] ^= 1;
            assert!(unpack(&damaged, 100).is_err());
        }
    }

    /// RFC 8878, 3.1.1.2.2: a block of one byte that is repeated up to 128 KiB takes four bytes.
    #[test]
    fn a_few_bytes_do_not_become_many() {
        let head = [&ZSTD[..], &[0x00, 0x58]].concat();
        let repeated =
            [(128 << 10 << 3 | 1 << 1) as u8, (128 << 10 << 3 >> 8) as u8, (128_u32 << 10 << 3 >> 16) as u8, 0];
        let trap = [head, repeated.repeat(1000)].concat();
        let error = unpack(&trap, 1 << 20).expect_err("131 MB of 4 kB");
        assert!(error.to_string().contains("250 times its size"), "{error}");
    }
}
