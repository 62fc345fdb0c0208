//! What compression takes from the wire and from the processor: one TCP stream of text and one of noise, beside the same without it.
//!
//! The text is a page of our own manual, so prose with tables; iperf3 sends a block of noise, or of digits that no real
//! traffic resembles, so this part has a stream of its own.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use bump::Generator;

use super::mode::NAME;
use super::mode::{Arena, Mode, Track};
use super::rate::Rate;
use super::row::{Row, rounded};
use super::stats::{Series, median, paired, present};
use super::{Schedule, twice};
use crate::failure::Failure;
use crate::net::{Host, Lan};

/// Where the streams of this part arrive.
const PORT: u16 = 5202;
/// How long a connection may take.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// Bytes that are handed to the stack at a time.
const CHUNK: usize = 64 * 1024;
/// With a rate that a slow wire has, and without one.
const RATES: [Rate; 2] = [Rate::Mbit100, Rate::Unlimited];

/// What is sent, over and over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Payload {
    Text,
    Random,
}

impl Payload {
    const ALL: [Payload; 2] = [Payload::Text, Payload::Random];

    fn name(self) -> &'static str {
        match self {
            Payload::Text => "text",
            Payload::Random => "random",
        }
    }

    fn bytes(self) -> Vec<u8> {
        match self {
            Payload::Text => include_str!("../../../../docs/protocol.md").into(),
            Payload::Random => {
                let mut random = Generator::from_seed([1; 32]);
                (0..256).flat_map(|_| random.bytes::<1024>()).collect()
            }
        }
    }
}

/// What one run showed.
#[derive(Clone, Copy, Debug)]
struct Sample {
    /// Payload that arrived, in Mbit/s.
    goodput_mbit: f64,
    /// Bytes of frames from the sender for each byte that arrived.
    wire_bytes_per_byte: f64,
}

type Runs = BTreeMap<(Payload, Rate, Mode), Vec<Option<Sample>>>;

/// Runs streams of both kinds through every track in turn.
///
/// # Errors
/// `tc` fails, or the lab is interrupted.
pub fn measure(arena: &Arena, schedule: Schedule) -> Result<Vec<Row>, Failure> {
    let mut runs = Runs::new();
    for rate in RATES {
        arena.limit(rate)?;
        for pair in 0..schedule.pairs {
            eprintln!("ringwall-lab: compression at {}, pair {} of {}", rate.name(), pair + 1, schedule.pairs);
            for payload in Payload::ALL {
                for track in &arena.tracks {
                    let what = format!("{} at {}, {}", payload.name(), rate.name(), track.mode.name());
                    let time = Duration::from_secs(schedule.seconds.into());
                    let sample = twice(&what, || stream(arena.lan(), track, payload, time))?;
                    runs.entry((payload, rate, track.mode)).or_default().push(sample);
                }
            }
        }
    }
    arena.limit(Rate::Unlimited)?;
    let settings = Payload::ALL.into_iter().flat_map(|payload| RATES.map(|rate| (payload, rate)));
    Ok(settings.flat_map(|(payload, rate)| rows(&runs, payload, rate)).collect())
}

/// Sends for `time` and lets all of it arrive.
fn stream(lan: &Lan, track: &Track, payload: Payload, time: Duration) -> Result<Sample, Failure> {
    let address = SocketAddr::from((track.b.ip, PORT));
    let failed = || Failure::io(format!("a TCP connection to {address}"));
    let listener = track.b.namespace.enter(|| TcpListener::bind(address).map_err(failed()))?;
    let sender = track.a.namespace.enter(|| TcpStream::connect_timeout(&address, CONNECT_LIMIT).map_err(failed()))?;
    let (mut receiver, _) = listener.accept().map_err(failed())?;
    let before = bytes_from(lan, &track.a)?;
    let start = Instant::now();
    let writer = std::thread::spawn(move || send_for(sender, &payload.bytes(), time));
    let mut buffer = vec![0; 4 * CHUNK];
    let mut arrived = 0;
    loop {
        match receiver.read(&mut buffer).map_err(failed())? {
            0 => break,
            count => arrived += count as u64,
        }
    }
    let elapsed = start.elapsed().as_secs_f64();
    writer.join().unwrap_or(Ok(())).map_err(failed())?;
    let on_wire = bytes_from(lan, &track.a)? - before;
    Ok(Sample {
        goodput_mbit: arrived as f64 * 8.0 / 1e6 / elapsed,
        wire_bytes_per_byte: on_wire as f64 / arrived as f64,
    })
}

fn send_for(mut sender: TcpStream, bytes: &[u8], time: Duration) -> std::io::Result<()> {
    let start = Instant::now();
    for chunk in bytes.chunks(CHUNK).cycle() {
        if start.elapsed() >= time {
            break;
        }
        sender.write_all(chunk)?;
    }
    Ok(())
}

/// What the switch has had of `host`.
fn bytes_from(lan: &Lan, host: &Host) -> Result<u64, Failure> {
    let text = lan.bridge.ip(&format!("-json -statistics link show dev {}", Lan::port(host)))?;
    let links: serde_json::Value =
        serde_json::from_str(&text).map_err(|error| Failure::Unreadable(format!("ip -json link: {error}")))?;
    Ok(links[0]["stats64"]["rx"]["bytes"].as_u64().unwrap_or_default())
}

fn series(runs: &Runs, key: (Payload, Rate, Mode), quantity: fn(&Sample) -> f64) -> Series {
    let runs = runs.get(&key).map(Vec::as_slice).unwrap_or_default();
    runs.iter().map(|run| run.as_ref().map(quantity)).collect()
}

/// A row's ending, its unit, and what of a run it shows.
type Quantity = (&'static str, &'static str, fn(&Sample) -> f64);

/// Goodput and bytes on the wire, each beside the same stream without compression.
fn rows(runs: &Runs, payload: Payload, rate: Rate) -> Vec<Row> {
    let quantities: [Quantity; 2] =
        [("", "Mbit/s", |sample| sample.goodput_mbit), ("/wire", "bytes/byte", |sample| sample.wire_bytes_per_byte)];
    let row = |(ending, unit, quantity): Quantity| {
        let of = |mode| series(runs, (payload, rate, mode), quantity);
        let (ours, without) = (of(Mode::Compressing), of(Mode::Encrypted));
        let name = format!("compression/{}/{}{ending}", payload.name(), rate.name());
        let row = Row::new(NAME, name, unit, &ours)?.against_plain(&ours, &of(Mode::Plain));
        let row = row.against_null(&ours, &of(Mode::Null));
        let ratio = paired(&ours, &without, |one, other| one / other).map(rounded);
        Some(row.with_stat("encrypted", median(&present(&without)).map(rounded)).with_stat("vs_encrypted", ratio))
    };
    quantities.into_iter().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_compare_with_the_same_stream_without_compression() {
        let mut runs = Runs::new();
        for (mode, goodput_mbit, wire_bytes_per_byte) in [(Mode::Compressing, 120.0, 0.8), (Mode::Encrypted, 90.0, 1.1)]
        {
            let sample = Some(Sample { goodput_mbit, wire_bytes_per_byte });
            runs.insert((Payload::Text, Rate::Mbit100, mode), vec![sample, sample]);
        }
        let rows = rows(&runs, Payload::Text, Rate::Mbit100);
        assert_eq!(
            rows.iter().map(|row| row.row.as_str()).collect::<Vec<_>>(),
            ["compression/text/100M", "compression/text/100M/wire"]
        );
        assert_eq!(rows.iter().map(|row| row.median).collect::<Vec<_>>(), [120.0, 0.8]);
        assert!((rows[0].stats["vs_encrypted"].as_f64().unwrap() - 1.333).abs() < 0.01);
    }
}
