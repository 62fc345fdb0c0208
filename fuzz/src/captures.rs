//! Capture files.

use std::time::Duration;

use bump::{Batch, Meta};
use system::capture::{CaptureReader, CaptureWriter, Format};
use system::port::{Receiver, Sender};

use crate::input::Input;

/// Shortest record of a frame in either format, in bytes.
const RECORD_LEN_MIN: usize = 16;
const FRAMES_MAX: usize = 16;

/// Any bytes are read to their end or to an error; frames that were written are read back.
pub fn capture(data: &[u8]) {
    let frames = read(data);
    assert!(frames.len() <= data.len() / RECORD_LEN_MIN, "{} frames in {} bytes", frames.len(), data.len());
    let mut input = Input::new(data);
    let format = if input.chance() { Format::Pcap } else { Format::PcapNg };
    let mut written = Vec::new();
    while !input.is_empty() && written.len() < FRAMES_MAX {
        written.push(input.counted(100).to_vec());
    }
    assert_eq!(read(&write(&written, format)), written);
}

fn read(data: &[u8]) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let Ok(mut reader) = CaptureReader::new(data) else { return frames };
    while reader.fill().unwrap_or(false) {
        while let Some(frame) = reader.next_frame() {
            frames.push(frame.bytes.to_vec());
        }
    }
    frames
}

fn write(frames: &[Vec<u8>], format: Format) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), format).expect("a vector takes all");
    writer.set_time(Duration::from_millis(1_800_000_000_123));
    for frame in frames {
        let room = writer.reserve(frame.len()).expect("room");
        room[..frame.len()].copy_from_slice(frame);
        writer.commit(frame.len(), Meta::plain());
    }
    writer.finish().expect("a vector takes all")
}
