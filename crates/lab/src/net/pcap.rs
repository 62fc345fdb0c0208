//! Capture files, as tcpdump writes them and tcpreplay reads them (the classic format, microseconds, Ethernet).

use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::failure::Failure;
use crate::net::Frame;

const MAGIC: u32 = 0xa1b2_c3d4;
const FILE_HEADER_LEN: usize = 24;
const RECORD_HEADER_LEN: usize = 16;
const LINK_TYPE_ETHERNET: u32 = 1;
const SNAP_LEN: u32 = 262_144;

/// Reads the frames of the capture file at `path`. A record that is still being written is left out.
///
/// # Errors
/// The file cannot be read. An empty file has no frames.
pub fn read(path: &Path) -> Result<Vec<Frame>, Failure> {
    let bytes = fs::read(path).map_err(Failure::file("reading", path))?;
    Ok(parse(&bytes))
}

/// As [`read`], each frame with the moment at which it was seen, since 1970, in whole microseconds.
///
/// # Errors
/// As [`read`].
pub fn read_timed(path: &Path) -> Result<Vec<(Duration, Frame)>, Failure> {
    let bytes = fs::read(path).map_err(Failure::file("reading", path))?;
    Ok(parse_timed(&bytes))
}

/// Writes `frames` to a capture file at `path`.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, frames: &[Frame]) -> Result<(), Failure> {
    fs::write(path, emit(frames)).map_err(Failure::file("writing", path))
}

fn parse(bytes: &[u8]) -> Vec<Frame> {
    parse_timed(bytes).into_iter().map(|(_, frame)| frame).collect()
}

fn parse_timed(bytes: &[u8]) -> Vec<(Duration, Frame)> {
    let mut rest = bytes.get(FILE_HEADER_LEN..).unwrap_or_default();
    let mut frames = Vec::new();
    while let Some((header, after)) = rest.split_first_chunk::<RECORD_HEADER_LEN>() {
        let word = |at: usize| u32::from_ne_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let Some((frame, next)) = after.split_at_checked(word(8) as usize) else { break };
        let seen = Duration::from_secs(word(0).into()) + Duration::from_micros(word(4).into());
        frames.push((seen, Frame(frame.to_vec())));
        rest = next;
    }
    frames
}

fn emit(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let version = u32::from_ne_bytes([2, 0, 4, 0]);
    for word in [MAGIC, version, 0, 0, SNAP_LEN, LINK_TYPE_ETHERNET] {
        bytes.extend(word.to_ne_bytes());
    }
    for (at, frame) in frames.iter().enumerate() {
        let len = u32::try_from(frame.0.len()).unwrap_or(u32::MAX);
        let milliseconds = u32::try_from(at).unwrap_or(u32::MAX);
        for word in [milliseconds / 1000, milliseconds % 1000 * 1000, len, len] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(&frame.0);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back_and_a_torn_tail_is_left_out() {
        let frames = vec![Frame(vec![1; 60]), Frame(vec![2; 1514])];
        let bytes = emit(&frames);
        assert_eq!(parse(&bytes), frames);
        for cut in 1..1514 + RECORD_HEADER_LEN {
            assert_eq!(parse(&bytes[..bytes.len() - cut]), frames[..1]);
        }
        assert!(parse(&[]).is_empty());
    }

    /// A capture of one frame made by tcpdump 4.99 on a little-endian machine.
    #[test]
    #[cfg(target_endian = "little")]
    fn a_file_of_tcpdump_reads() {
        let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
        file.extend([0x1c, 0x2d, 0x60, 0x67, 0x5e, 0x99, 4, 0, 14, 0, 0, 0, 14, 0, 0, 0]);
        file.extend([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6]);
        let frames = parse(&file);
        assert_eq!(frames.len(), 1);
        // 0x67602d1c seconds and 0x0004995e microseconds.
        assert_eq!(parse_timed(&file)[0].0, Duration::from_micros(1_734_356_252_301_406));
        assert_eq!(frames[0].0[6..12], [2, 0, 0, 0, 0, 1]);
    }
}
