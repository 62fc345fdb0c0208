//! What floods do to connections that are there: a stream at a steady rate, without and with a flood from the same side.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use system::port::{PacketPort, Sender};

use super::NAME;
use super::forge::{self, SYN, Segment};
use super::memory::put;
use super::track::{Track, Way};
use crate::bench::row::Row;
use crate::bench::stats::{Series, median};
use crate::bench::tcp::Direction;
use crate::bench::{Schedule, cpu, twice};
use crate::cleanup::Run;
use crate::failure::Failure;
use crate::net::lan::INTERFACE;
use crate::net::link;

/// Frames of 64 bytes that a line of 100 Mbit/s, the paper's, carries in a second.
const FLOOD_PER_SECOND: f64 = 148_810.0;
/// Payload of the stream, so that what floods take of the processors is not measured in its stead.
const STREAM_MBIT: u32 = 1000;
/// How long a flood runs ahead of the stream.
const AHEAD: Duration = Duration::from_millis(200);
/// How long the flood rests between two handfuls.
const REST: Duration = Duration::from_millis(1);
/// The most frames in a handful: after a pause of the machine the flood does not make up for all of it.
const HANDFUL_MAX: u64 = 1000;
/// Networks for benchmarks (RFC 2544).
const SOURCES: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const TARGET: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(192, 0, 2, 10), 80);

/// The frame `number` of a flood.
type Kind = fn(u64) -> Vec<u8>;

/// What is sent.
const FLOODS: [(&str, Kind); 2] = [("flood/syn", syn), ("flood/fragments", fragment)];

/// Sends both floods, in turns with quiet. Beside the scrubber stands what the flood does to the same ports alone.
///
/// # Errors
/// The gateway does not start, or the lab is interrupted.
pub fn measure(run: &Run, program: &Path, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let null = Track::open(run, Way::Null, Some(program))?;
    let ours = Track::open(run, Way::Scrubber, Some(program))?;
    let mut rows = Vec::new();
    for (name, kind) in FLOODS {
        let (mut quiet, mut of_null, mut flooded, mut rates) =
            (Series::new(), Series::new(), Series::new(), Vec::new());
        for pair in 0..schedule.pairs {
            eprintln!("ringwall-lab: {name}, pair {} of {}", pair + 1, schedule.pairs);
            cpu::settle()?;
            quiet.push(twice("a stream without flood", || stream(&ours, schedule.seconds))?);
            let found = twice(name, || under(&null, kind, schedule.seconds))?;
            of_null.push(found.map(|(goodput, _)| goodput));
            let found = twice(name, || under(&ours, kind, schedule.seconds))?;
            rates.extend(found.map(|(_, rate)| rate));
            flooded.push(found.map(|(goodput, _)| goodput));
        }
        let row = Row::new(NAME, name, "Mbit/s", &flooded);
        let row = row.map(|row| row.against_plain(&flooded, &quiet).against_null(&flooded, &of_null));
        rows.extend(row.map(|row| row.with_stat("flood_frames_per_second", median(&rates))));
    }
    Ok(rows)
}

fn stream(track: &Track, seconds: u32) -> Result<f64, Failure> {
    let sample = track.stream_to(track.trusted.ip, Some(STREAM_MBIT), Direction::Forward, seconds)?;
    Ok(sample.goodput_mbit)
}

/// The stream's payload in Mbit/s, and the flood's frames in a second.
fn under(track: &Track, kind: Kind, seconds: u32) -> Result<(f64, f64), Failure> {
    let mut port = track.untrusted.namespace.enter(|| link::open(INTERFACE))?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let flood = scope.spawn(|| flood(&mut port, kind, &stop));
        thread::sleep(AHEAD);
        let goodput = stream(track, seconds);
        stop.store(true, Ordering::Relaxed);
        let rate = flood.join().map_err(|_| Failure::Unreadable("the flood ended".to_owned()))?;
        Ok((goodput?, rate))
    })
}

/// Sends until it is stopped; returns how many frames in a second.
fn flood(port: &mut PacketPort, kind: Kind, stop: &AtomicBool) -> f64 {
    let start = Instant::now();
    let (mut sent, mut due) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let now_due = (start.elapsed().as_secs_f64() * FLOOD_PER_SECOND) as u64;
        for _ in 0..(now_due - due).min(HANDFUL_MAX) {
            put(port, &kind(sent));
            sent += 1;
        }
        due = now_due;
        port.sender.flush();
        thread::sleep(REST);
    }
    sent as f64 / start.elapsed().as_secs_f64()
}

/// A million sources in turn, so that the table of connections is full within seconds.
fn source(number: u64) -> SocketAddrV4 {
    let address = Ipv4Addr::from(SOURCES.to_bits() + (number >> 14) as u32 % 64);
    SocketAddrV4::new(address, 1024 + (number & 0x3fff) as u16)
}

fn syn(number: u64) -> Vec<u8> {
    let path = forge::Path { source: source(number), destination: TARGET };
    forge::tcp(path, Segment { flags: SYN, sequence: number as u32, ..Segment::default() })
}

fn fragment(number: u64) -> Vec<u8> {
    forge::first_fragment(forge::Path { source: source(number), destination: TARGET }, number as u16)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_flood_has_a_million_sources() {
        let sources: BTreeSet<_> = (0..1 << 20).map(source).collect();
        assert_eq!(sources.len(), 1 << 20);
    }
}
