//! The scrubber over a capture: gigabytes a second of one processor, beside the same engine with every rule off; and what a packet
//! costs, which is the paper's table I without a network.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::NAME;
use super::forge::{self, ACK, SYN, Segment};
use crate::bench::Schedule;
use crate::bench::row::Row;
use crate::bench::stats::Series;
use crate::bench::twice;
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::{Frame, pcap, process};

/// Segments with data in a capture, an acknowledgement for every second one.
const SEGMENTS: u32 = 40_000;
/// Data of a full segment.
const FULL: usize = 1448;
/// Rows of table I: their names and the data in a segment.
const PAYLOADS: [(&str, usize); 2] = [("1_byte", 1), ("full", FULL)];
const CLIENT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(198, 51, 100, 7), 50_000);
const SERVER: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 10), 80);
const GIGABYTE: f64 = 1e9;

/// What a run over a capture says.
struct Report {
    bytes: f64,
    frames: f64,
    processor_s: f64,
}

/// Scrubs one long honest upload again and again.
///
/// # Errors
/// The capture cannot be written, or the lab is interrupted.
pub fn measure(run: &Run, program: &Path, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let capture = upload(run, FULL)?;
    let [null, ours] = pairs(program, &capture, schedule, |report| report.bytes / report.processor_s / GIGABYTE)?;
    Ok(Row::new(NAME, "replay", "GB/s", &ours).map(|row| row.against_null(&ours, &null)).into_iter().collect())
}

/// Table I: processor time for a packet with little and with much data, reading and writing the capture included.
///
/// # Errors
/// As [`measure`].
pub fn table_1(run: &Run, program: &Path, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let mut rows = Vec::new();
    for (name, len) in PAYLOADS {
        let capture = upload(run, len)?;
        let [null, ours] = pairs(program, &capture, schedule, |report| report.processor_s / report.frames * 1e9)?;
        let row = Row::new(NAME, format!("table1/engine/{name}"), "ns", &ours);
        rows.extend(row.map(|row| row.against_null(&ours, &null)));
    }
    Ok(rows)
}

/// Runs with every rule off and as usual, in turns.
fn pairs(
    program: &Path,
    capture: &Path,
    schedule: Schedule,
    quantity: fn(&Report) -> f64,
) -> Result<[Series; 2], Failure> {
    let mut series = [Series::new(), Series::new()];
    for pair in 0..schedule.pairs {
        eprintln!("ringwall-lab: replay, pair {} of {}", pair + 1, schedule.pairs);
        for (series, options) in series.iter_mut().zip([&["--null"][..], &[]]) {
            let report = twice("replay", || replay(program, capture, options))?;
            series.push(report.as_ref().map(quantity));
        }
    }
    Ok(series)
}

fn replay(program: &Path, capture: &Path, options: &[&str]) -> Result<Report, Failure> {
    let mut command = Command::new(program);
    command.args(["gate", "replay", "--json", "--trusted", "192.0.2.0/24", "--write", "/dev/null", "--read"]);
    command.arg(capture).args(options);
    let text = process::must(command)?;
    let report: Value = serde_json::from_str(&text).map_err(|error| Failure::Unreadable(format!("replay: {error}")))?;
    let number = |name: &str| report[name].as_f64().ok_or_else(|| Failure::Unreadable(format!("replay: no {name}")));
    if number("dropped")? > 0.0 {
        return Err(Failure::Unreadable(format!("the replay dropped honest frames: {}", report["drops"])));
    }
    Ok(Report { bytes: number("bytes_read")?, frames: number("frames_read")?, processor_s: number("processor_s")? })
}

/// A capture of a connection from its handshake on, whose client sends much, `payload_len` bytes at a time.
fn upload(run: &Run, payload_len: usize) -> Result<PathBuf, Failure> {
    let sent = |flags, sequence, acknowledgement, data| Segment { flags, sequence, acknowledgement, data };
    let out = forge::Path { source: CLIENT, destination: SERVER };
    let client = |segment| Frame(forge::tcp(out, segment));
    let server = |segment| Frame(forge::tcp(out.back(), segment));
    let mut frames =
        vec![client(sent(SYN, 0, 0, &[])), server(sent(SYN | ACK, 0, 1, &[])), client(sent(ACK, 1, 1, &[]))];
    let data = vec![0x5a; payload_len];
    let mut next = 1;
    for number in 0..SEGMENTS {
        frames.push(client(sent(ACK, next, 1, &data)));
        next += payload_len as u32;
        if number % 2 == 1 {
            frames.push(server(sent(ACK, 1, next, &[])));
        }
    }
    let capture = run.directory().join(format!("upload-{payload_len}.pcap"));
    pcap::write(&capture, &frames)?;
    Ok(capture)
}
