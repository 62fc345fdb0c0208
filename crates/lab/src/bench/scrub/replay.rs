//! The scrubber over a capture: gigabytes a second of one processor, beside the same engine with every rule off.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use wire::{checksum, ipv4};

use super::NAME;
use crate::bench::Schedule;
use crate::bench::row::Row;
use crate::bench::stats::Series;
use crate::bench::twice;
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::{Frame, pcap, process};

/// Segments with data in the capture, an acknowledgement for every second one.
const SEGMENTS: u32 = 40_000;
const SEGMENT_LEN: usize = 1448;
const CLIENT: [u8; 4] = [198, 51, 100, 7];
const SERVER: [u8; 4] = [192, 0, 2, 10];
const SYN: u8 = 2;
const ACK: u8 = 16;
const BITS: f64 = 1e9;

/// Scrubs one long honest upload again and again.
///
/// # Errors
/// The capture cannot be written, or the lab is interrupted.
pub fn measure(run: &Run, program: &Path, schedule: Schedule) -> Result<Option<Row>, Failure> {
    let capture = run.directory().join("upload.pcap");
    pcap::write(&capture, &upload())?;
    let (mut ours, mut null) = (Series::new(), Series::new());
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: replay, pair {} of {}", pair + 1, schedule.pairs);
        null.push(twice("replay with every rule off", || rate(program, &capture, &["--null"]))?);
        ours.push(twice("replay", || rate(program, &capture, &[]))?);
    }
    Ok(Row::new(NAME, "replay", "GB/s", &ours).map(|row| row.against_null(&ours, &null)))
}

/// Gigabytes a second of one processor, reading and writing included.
fn rate(program: &Path, capture: &Path, options: &[&str]) -> Result<f64, Failure> {
    let mut command = Command::new(program);
    command.args(["gate", "replay", "--json", "--trusted", "192.0.2.0/24", "--write", "/dev/null", "--read"]);
    let text = process::must({
        command.arg(capture).args(options);
        command
    })?;
    let report: Value = serde_json::from_str(&text).map_err(|error| Failure::Unreadable(format!("replay: {error}")))?;
    let number = |name: &str| report[name].as_f64().ok_or_else(|| Failure::Unreadable(format!("replay: no {name}")));
    if number("dropped")? > 0.0 {
        return Err(Failure::Unreadable(format!("the replay dropped honest frames: {}", report["drops"])));
    }
    Ok(number("bytes_read")? / number("processor_s")? / BITS)
}

/// A connection from its handshake on, whose client sends much.
fn upload() -> Vec<Frame> {
    let mut frames =
        vec![segment(true, SYN, 0, 0, &[]), segment(false, SYN | ACK, 0, 1, &[]), segment(true, ACK, 1, 1, &[])];
    let data = [0x5a; SEGMENT_LEN];
    let mut next = 1;
    for number in 0..SEGMENTS {
        frames.push(segment(true, ACK, next, 1, &data));
        next += SEGMENT_LEN as u32;
        if number % 2 == 1 {
            frames.push(segment(false, ACK, 1, next, &[]));
        }
    }
    frames
}

/// A segment of the client or the server, with numbers counted from its first one.
fn segment(is_client: bool, flags: u8, sequence: u32, acknowledgement: u32, data: &[u8]) -> Frame {
    let (source, destination) = if is_client { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
    let (from, to) = if is_client { (50_000_u16, 80_u16) } else { (80, 50_000) };
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0];
    frame.extend((40 + data.len() as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    frame.extend(source);
    frame.extend(destination);
    ipv4::fill_checksum(&mut frame[14..]);
    frame.extend(from.to_be_bytes());
    frame.extend(to.to_be_bytes());
    frame.extend(sequence.to_be_bytes());
    frame.extend(acknowledgement.to_be_bytes());
    frame.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    frame.extend(data);
    let sum = checksum::pseudo_header_v4(source.into(), destination.into(), 6, 20 + data.len() as u16);
    let sum = sum.bytes(&frame[34..]).checksum();
    frame[50..52].copy_from_slice(&sum.to_be_bytes());
    Frame(frame)
}
