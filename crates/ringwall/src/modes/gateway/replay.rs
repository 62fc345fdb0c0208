//! `ringwall gate replay`: the scrubber over a capture, without a network.
//!
//! Time is the capture's. A captured frame carries no metadata, so three things are assumed: which side it came from, that a
//! checksum which is only begun was left to the sender's card, and how a super-frame is to be cut. And both hosts answer what they
//! have seen, so numbers and windows of the handshake are not changed here.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bump::{Batch, Bump, Checksum, DropReason, Frame, Gso, GsoKind, Instant, Ledger, Meta, Now, Side, Sink};
use clap::Args;
use scrub::keys::KEY_LEN;
use scrub::settings::Network;
use scrub::{Action, Keys, Rule, Scrubber, Settings};
use serde::Serialize;
use system::capture::{CaptureReader, CaptureWriter, Format, LeftOut};
use system::port::{Receiver, Sender};
use wire::layer::{self, protocol, transport_checksum};
use wire::offload::{self, begun_checksum};
use wire::{EtherType, MacAddress, tcp};

use super::config::{Gate, GateConfig, PresetName, network};
use super::sides::{Sides, Speakers};
use crate::failure::Failure;
use crate::output::{print, say};

/// Nobody guesses numbers in a file, and the same capture gives the same result.
const KEYS: Keys = Keys { tables: [1; KEY_LEN], sequence: [2; KEY_LEN], identification: [3; KEY_LEN] };
/// Rules that change what a host answers. In a capture it answers what it has seen, which is what
/// the other sent: numbers, offers, and data of a SYN that it took.
const UNSEEN: [Rule; 5] = [
    Rule::TcpSynData,
    Rule::TcpSequenceShift,
    Rule::TcpTimestampShift,
    Rule::TcpPlainHandshake,
    Rule::TcpInitialWindow,
];
/// The name that stands for the standard input and output.
const STANDARD: &str = "-";
/// How long after the last frame timers go on: longer than anything waits in the scrubber that still comes out.
const AFTER_THE_END: Duration = Duration::from_secs(120);
/// Pieces of due work in one turn.
const TICK_BUDGET: usize = 1024;
/// Bytes that are written at once.
const WRITE_BYTES: usize = 1 << 20;

/// Options of `ringwall gate replay`
#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    /// The capture to read, pcap or pcapng; - for the standard input.
    #[arg(long, value_name = "FILE")]
    read: PathBuf,
    /// Where what leaves is written; - for the standard output. A name that ends in .pcap or .pcapng says the format,
    /// otherwise it is that of the capture.
    #[arg(long, value_name = "FILE")]
    write: PathBuf,
    /// Addresses of the trusted side, such as 192.0.2.0/24; may be given several times.
    #[arg(long, value_name = "NET", value_delimiter = ',', value_parser = network, group = "told")]
    trusted: Vec<Network>,
    /// Hardware addresses of the trusted side's hosts or router.
    #[arg(long, value_name = "MAC", value_delimiter = ',', value_parser = station, group = "told")]
    trusted_mac: Vec<MacAddress>,
    /// Interfaces of a pcapng capture that are on the trusted side, by number from 0.
    #[arg(long, value_name = "NUMBER", value_delimiter = ',', group = "told")]
    trusted_interface: Vec<u32>,
    /// Which rules are on: paper, balanced or strict.
    #[arg(long, value_name = "PRESET")]
    preset: Option<PresetName>,
    /// Takes section [gate] of this file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Switches every rule off: what remains is reading and writing, the yardstick of measurements.
    #[arg(long, conflicts_with_all = ["preset", "config"])]
    null: bool,
    /// Drops frames whose checksum is only begun, which otherwise count as right.
    #[arg(long)]
    verify_checksums: bool,
    /// Prints the report as JSON.
    #[arg(long)]
    json: bool,
}

fn station(text: &str) -> Result<MacAddress, String> {
    text.parse().map_err(|_| "write it as 02:00:00:00:00:01".to_owned())
}

impl ReplayArgs {
    fn sides(&self) -> Sides {
        if !self.trusted.is_empty() {
            Sides::Networks(self.trusted.clone())
        } else if !self.trusted_mac.is_empty() {
            Sides::Hardware(self.trusted_mac.clone())
        } else if !self.trusted_interface.is_empty() {
            Sides::Interfaces(self.trusted_interface.clone())
        } else {
            Sides::FirstSpeaker(Speakers::default())
        }
    }

    fn settings(&self) -> Result<Settings, Failure> {
        if self.null {
            return Ok(Settings::null());
        }
        let (file, gate) = match &self.config {
            Some(file) => (file.as_path(), GateConfig::load(file)?.gate),
            None => (Path::new("the command line"), Gate::default()),
        };
        let preset = self.preset.unwrap_or(gate.preset);
        let mut settings = Gate { preset, ..gate }.settings(file, scrub::limits::MTU)?;
        for rule in UNSEEN {
            settings.rules.set(rule, Action::Off);
        }
        settings.misses_segments = true;
        // Where nobody named the links' subnets, trusted networks are taken for those. A single host tells of no link.
        if settings.subnets.is_empty() {
            let is_host = |net: &Network| net.prefix_len == if net.address.is_ipv4() { 32 } else { 128 };
            settings.subnets = self.trusted.iter().copied().filter(|net| !is_host(net)).collect();
        }
        Ok(settings)
    }

    fn format(&self, of_input: Format) -> Format {
        match self.write.extension().and_then(|extension| extension.to_str()) {
            Some("pcap") => Format::Pcap,
            Some("pcapng") => Format::PcapNg,
            _ => of_input,
        }
    }
}

/// `ringwall gate replay`
pub(crate) fn replay(args: &ReplayArgs) -> Result<(), Failure> {
    let settings = args.settings()?;
    refuse_same_file(&args.read, &args.write)?;
    let reader = CaptureReader::new(open(&args.read)?)
        .map_err(|error| Failure::new(format!("{}: {error}", args.read.display())))?;
    let written = |error| Failure::file(&args.write, error, "name a file that can be written");
    let file = BufWriter::with_capacity(WRITE_BYTES, create(&args.write).map_err(written)?);
    let writer = CaptureWriter::new(file, args.format(reader.format())).map_err(written)?;
    let mut replay = Replay {
        mtu: settings.mtu,
        scrubber: Scrubber::new(settings, KEYS),
        reader,
        writer,
        sides: args.sides(),
        verify_checksums: args.verify_checksums,
        rules_are_off: !args.null,
        now: Instant::default(),
        captured: Duration::ZERO,
        begun: 0,
    };
    let before = system::clock::processor_time();
    let outcome = replay.run();
    let report = replay.report(system::clock::processor_time().saturating_sub(before));
    // What was scrubbed before the capture broke off is kept.
    replay.writer.finish().map_err(written)?;
    report.print(args)?;
    outcome.map_err(|error| Failure::file(&args.read, error, "what came before is written"))?;
    report.all_was_read(args)
}

fn open(file: &Path) -> Result<Box<dyn Read + Send>, Failure> {
    if file == Path::new(STANDARD) {
        return Ok(Box::new(std::io::stdin()));
    }
    let opened = File::open(file).map_err(|error| Failure::file(file, error, "name a capture file, or -"))?;
    Ok(Box::new(opened))
}

fn create(file: &Path) -> std::io::Result<Box<dyn Write>> {
    if file == Path::new(STANDARD) {
        return Ok(Box::new(std::io::stdout()));
    }
    Ok(Box::new(File::create(file)?))
}

/// Creating the output would empty the input.
fn refuse_same_file(read: &Path, write: &Path) -> Result<(), Failure> {
    let number =
        |file: &Path| std::fs::metadata(file).ok().filter(|meta| meta.is_file()).map(|meta| (meta.dev(), meta.ino()));
    match (number(read), number(write)) {
        (Some(one), Some(other)) if one == other => {
            Err(Failure::file(write, "is the capture that is read", "name another file"))
        }
        _ => Ok(()),
    }
}

/// A capture on its way through the scrubber.
struct Replay<'r, W: Write> {
    scrubber: Scrubber,
    reader: CaptureReader<'r>,
    writer: CaptureWriter<W>,
    sides: Sides,
    verify_checksums: bool,
    rules_are_off: bool,
    /// Longest packet on a link, in bytes.
    mtu: usize,
    now: Instant,
    /// When the latest frame was captured, since 1970; `now` is the same moment.
    captured: Duration,
    /// Frames whose checksum or length was left to the sender's card.
    begun: u64,
}

impl<W: Write> Replay<'_, W> {
    fn run(&mut self) -> std::io::Result<()> {
        while self.reader.fill()? {
            self.advance_to_capture();
            self.pass();
        }
        self.advance(self.now + AFTER_THE_END);
        Ok(())
    }

    /// Lets as much time pass as between the two latest frames. Clocks of capturing hosts go back
    /// at times, that of a bump never does; so a frame from the future moves it once, and those
    /// that follow go on from there.
    fn advance_to_capture(&mut self) {
        let captured = self.reader.captured_at();
        let is_first = self.captured == Duration::ZERO;
        let passed = if is_first { captured } else { captured.saturating_sub(self.captured) };
        self.advance(self.now + passed);
        self.captured = captured;
        self.writer.set_time(captured);
    }

    /// Lets time pass until `to`, and what falls due on the way happen at its hour.
    fn advance(&mut self, to: Instant) {
        let (began, captured) = (self.now, self.captured);
        while let Some(due) = self.scrubber.deadline().filter(|due| *due <= to) {
            self.now = due.max(self.now);
            self.writer.set_time(captured + self.now.since(began));
            self.scrubber.tick(at(self.now), TICK_BUDGET, &mut BothWays(&mut self.writer));
            while self.scrubber.next_event().is_some() {}
        }
        self.now = to;
    }

    /// Takes the frame that waits through the scrubber.
    fn pass(&mut self) {
        let interface = self.reader.interface();
        let Some(mut frame) = self.reader.next_frame() else { return };
        let from = self.sides.of(frame.bytes, interface);
        if !self.verify_checksums {
            let left = offload::complete_lengths(frame.bytes);
            let begun = begun_checksum(frame.bytes).or_else(|| left.then(|| transport_checksum(frame.bytes)).flatten());
            self.begun += u64::from(begun.is_some() | offload::complete_header(frame.bytes));
            if let Some((start, offset)) = begun {
                frame.meta.checksum = Checksum::Partial { start: start as u16, offset: offset as u16 };
            }
        }
        frame.meta.gso = gso(&frame, self.mtu);
        self.scrubber.process(at(self.now), from, &mut Some(frame), &mut BothWays(&mut self.writer));
        // The counters of rules and reasons tell the same.
        while self.scrubber.next_event().is_some() {}
    }

    fn report(&self, processor_time: Duration) -> Report {
        let mut ledger = Ledger::new();
        self.scrubber.add_to_ledger(&mut ledger);
        let counters = self.scrubber.counters();
        let rules = Rule::ALL.iter().map(|rule| (rule.name(), counters.of(*rule)));
        let drops = DropReason::ALL.iter().map(|reason| (reason.word(), ledger.drops(*reason)));
        let (read, written) = (self.reader.counters(), self.writer.counters());
        Report {
            assumed: self.sides.assumed(),
            frames_read: read.frames,
            bytes_read: read.bytes,
            from_trusted: ledger.received[Side::TRUSTED as usize],
            from_untrusted: ledger.received[Side::UNTRUSTED as usize],
            begun_checksums: self.begun,
            lacks: self.lacks(),
            rules_off: if self.rules_are_off { UNSEEN.map(Rule::name).to_vec() } else { Vec::new() },
            frames_written: written.frames,
            bytes_written: written.bytes,
            fates: Fates {
                forwarded: ledger.forwarded.iter().sum(),
                answered: ledger.answered.iter().sum(),
                consumed: ledger.consumed.iter().sum(),
                held: ledger.held,
                dropped: ledger.dropped.iter().sum(),
            },
            rules: rules.filter(|(_, count)| *count > 0).collect(),
            drops: drops.filter(|(_, count)| *count > 0).collect(),
            processor_s: processor_time.as_secs_f64(),
        }
    }

    fn lacks(&self) -> Lacks {
        let left_out: LeftOut = self.reader.left_out();
        let (missing_segments, missing_bytes) = self.scrubber.missing();
        Lacks {
            cut_frames: left_out.cut,
            too_long_frames: left_out.too_long,
            other_link_frames: left_out.other_link,
            missing_segments,
            missing_bytes,
        }
    }
}

fn at(now: Instant) -> Now {
    Now { since_boot: now, wall: None }
}

/// How a packet that no link carries in one piece was to be cut: the capture shows what a host's stack hands to its card.
fn gso(frame: &Frame<'_>, mtu: usize) -> Option<Gso> {
    let (ethertype, network) = layer::network_layer(frame.bytes)?;
    if frame.bytes.len() <= network + mtu {
        return None;
    }
    let (transport, start) = layer::transport_of(frame.bytes, ethertype, network)?;
    if transport != protocol::TCP {
        return None;
    }
    let header = tcp::View::new(frame.bytes.get(start..)?).ok()?;
    let headers_len = start - network + header.header_len();
    let size = u16::try_from(mtu.checked_sub(headers_len)?).ok().filter(|size| *size > 0)?;
    let kind = if ethertype == EtherType::IPV4 { GsoKind::TcpV4 } else { GsoKind::TcpV6 };
    Some(Gso { kind, size, ecn: false })
}

/// Both sides of the gateway in one capture, in the order in which frames leave.
struct BothWays<'a, W: Write>(&'a mut CaptureWriter<W>);

impl<W: Write> Sink for BothWays<'_, W> {
    fn reserve(&mut self, _to: Side, capacity: usize) -> Option<&mut [u8]> {
        self.0.reserve(capacity)
    }

    fn commit(&mut self, _to: Side, len: usize, meta: Meta) {
        self.0.commit(len, meta);
    }
}

/// What was done.
#[derive(Debug, Serialize)]
struct Report {
    /// Which side a frame came from.
    assumed: String,
    frames_read: u64,
    bytes_read: u64,
    from_trusted: u64,
    from_untrusted: u64,
    /// Frames whose checksum or length was left to the sender's card.
    begun_checksums: u64,
    #[serde(flatten)]
    lacks: Lacks,
    /// Rules that a replay cannot carry out.
    rules_off: Vec<&'static str>,
    frames_written: u64,
    bytes_written: u64,
    #[serde(flatten)]
    fates: Fates,
    /// How often each rule acted, those at zero left out.
    rules: BTreeMap<&'static str, u64>,
    /// Why frames were dropped, reasons at zero left out.
    drops: BTreeMap<&'static str, u64>,
    /// Time of one processor for all of it, reading and writing included.
    processor_s: f64,
}

/// What a capture lacks, and what was not read of it.
#[derive(Debug, Serialize)]
struct Lacks {
    /// Frames that were not read: cut by the snap length, longer than any port hands over, of a link without Ethernet.
    cut_frames: u64,
    too_long_frames: u64,
    other_link_frames: u64,
    /// Holes that a host acknowledged and that the capture never fills, and their bytes.
    missing_segments: u64,
    missing_bytes: u64,
}

/// What became of the frames.
#[derive(Debug, Serialize)]
struct Fates {
    forwarded: u64,
    answered: u64,
    consumed: u64,
    held: u64,
    dropped: u64,
}

impl Lacks {
    fn frames(&self) -> u64 {
        self.cut_frames + self.too_long_frames + self.other_link_frames
    }

    /// What helps, one line each.
    fn lines(&self) -> Vec<String> {
        let lines = [
            (self.cut_frames, "frames were cut by the snap length and left out; capture again with tcpdump -s 0"),
            (self.too_long_frames, "frames are too long and left out; capture again with gso_max_size 65536"),
            (self.other_link_frames, "frames are of a link without Ethernet or IP and left out; tcprewrite --dlt=enet"),
        ];
        let missing = (self.missing_segments, self.missing_bytes);
        let holes = (missing.0 > 0)
            .then(|| format!("{} holes that a host has and the capture not, {} bytes", missing.0, missing.1));
        let left_out = lines.into_iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}"));
        left_out.chain(holes).collect()
    }
}

impl Report {
    /// Prints it where the capture does not go.
    fn print(&self, args: &ReplayArgs) -> Result<(), Failure> {
        let text = if args.json { serde_json::to_string_pretty(self).map_err(Failure::new)? } else { self.table() };
        if args.write == Path::new(STANDARD) {
            print(&mut std::io::stderr(), &text);
        } else {
            say!("{text}");
        }
        Ok(())
    }

    /// Whoever works on with what was written must hear that it is not all.
    fn all_was_read(&self, args: &ReplayArgs) -> Result<(), Failure> {
        match self.lacks.frames() {
            0 => Ok(()),
            left_out => {
                Err(Failure::file(&args.read, format!("{left_out} frames were left out"), "the report says which"))
            }
        }
    }

    fn table(&self) -> String {
        let mut text = String::new();
        // Writing into a string does not fail.
        let mut line = |what: std::fmt::Arguments<'_>| {
            let _ = text.write_fmt(what);
            text.push('\n');
        };
        line(format_args!("assumed: {}", self.assumed));
        line(format_args!(
            "read {} frames ({} from the trusted side, {} from the untrusted), wrote {}",
            self.frames_read, self.from_trusted, self.from_untrusted, self.frames_written
        ));
        if self.begun_checksums > 0 {
            let what =
                "frames had a checksum or length that is only begun, as on the host that sends them; taken for right";
            line(format_args!("{} {what}", self.begun_checksums));
        }
        self.lacks.lines().into_iter().for_each(|text| line(format_args!("{text}")));
        if !self.rules_off.is_empty() {
            let what = "off, because hosts in a capture answer what they saw";
            line(format_args!("{what}: {}", self.rules_off.join(", ")));
        }
        let fates = &self.fates;
        line(format_args!(
            "forwarded {}, answered {}, consumed {}, held {}, dropped {}",
            fates.forwarded, fates.answered, fates.consumed, fates.held, fates.dropped
        ));
        for (title, counts) in [("rules that acted:", &self.rules), ("dropped, by reason:", &self.drops)] {
            if !counts.is_empty() {
                line(format_args!("{title}"));
            }
            for (name, count) in counts {
                line(format_args!("  {count:>10}  {name}"));
            }
        }
        let megabytes_per_s = self.bytes_read as f64 / 1e6 / self.processor_s.max(1e-9);
        line(format_args!("{:.3} s of one processor, {megabytes_per_s:.0} MB/s", self.processor_s));
        text.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TCP frame of 40 bytes of headers and `len` bytes of data.
    fn tcp_frame(len: usize) -> Vec<u8> {
        let mut frame = vec![2; 54 + len];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14..34].copy_from_slice(&[0x45, 0, 0, 0, 0, 5, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame[16..18].copy_from_slice(&((40 + len) as u16).to_be_bytes());
        frame[46] = 0x50;
        frame
    }

    #[test]
    fn only_what_no_link_carries_is_a_super_frame() {
        let told = |len: usize| {
            let mut bytes = tcp_frame(len);
            gso(&Frame { bytes: &mut bytes, meta: Meta::plain() }, 1500)
        };
        assert_eq!(told(1460), None);
        assert_eq!(told(1461), Some(Gso { kind: GsoKind::TcpV4, size: 1460, ecn: false }));
    }
}
