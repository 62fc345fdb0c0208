//! `ringwall gate replay`: the scrubber over a capture, without a network.
//!
//! Time is the capture's. A captured frame carries no metadata, so three things are assumed: which
//! side it came from, that a checksum which is only begun was left to the sender's card, and how a
//! super-frame is to be cut. And both hosts answer what they have seen, so numbers and windows of
//! the handshake are not changed here.

use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bump::{Batch, Bump, Checksum, DropReason, Frame, Gso, GsoKind, Instant, Ledger, Meta, Now, Side, Sink};
use clap::Args;
use scrub::keys::KEY_LEN;
use scrub::settings::{Adopt, Network};
use scrub::{Action, Keys, Rule, Scrubber, Settings};
use system::capture::{CaptureReader, CaptureWriter, Counted, Format, LeftOut, unpacked};
use system::port::{Receiver, Sender};
use wire::layer::{self, protocol, transport_checksum};
use wire::offload::{self, begun_checksum};
use wire::{EtherType, MacAddress, tcp};

use super::config::{Gate, GateConfig, PresetName};
use super::progress::Progress;
use super::report::{Fates, Lacks, Report};
use super::sides::{Sides, Speakers};
use super::trace::{Left, Seen, Trace, Written};
use super::values::network;
use crate::failure::Failure;

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
pub(super) const STANDARD: &str = "-";
/// Where a capture goes that nobody asked for.
const NOWHERE: &str = "/dev/null";
/// How long after the last frame timers go on: longer than anything waits in the scrubber that
/// still comes out.
const AFTER_THE_END: Duration = Duration::from_secs(120);
/// Pieces of due work in one turn.
const TICK_BUDGET: usize = 1024;
/// Bytes that are written at once.
const WRITE_BYTES: usize = 1 << 20;

/// Options of `ringwall gate replay`
#[derive(Args, Debug)]
pub(crate) struct ReplayArgs {
    /// The capture to read, pcap or pcapng, also compressed by gzip or zstd; - for the standard
    /// input.
    #[arg(long, value_name = "FILE")]
    read: PathBuf,
    /// Where what leaves is written; - for the standard output. A name that ends in .pcap or
    /// .pcapng says the format, otherwise it is that of the capture.
    #[arg(long, value_name = "FILE", required_unless_present_any = ["explain", "diff"])]
    write: Option<PathBuf>,
    /// Writes a pcapng of all frames with a comment on each that was changed, held or dropped: by
    /// which rule, for which reason.
    #[arg(long, value_name = "FILE")]
    explain: Option<PathBuf>,
    /// Shows the frames of one flow before and after: addresses and ports of its two ends, in any
    /// order.
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 2)]
    diff: Vec<SocketAddr>,
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
    /// Takes sections [gate] and [shares] of this file.
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
        let GateConfig { gate, shares, .. } = match &self.config {
            Some(file) => GateConfig::load(file)?,
            None => GateConfig::default(),
        };
        let preset = self.preset.unwrap_or(gate.preset);
        let mut settings = Gate { preset, ..gate }.settings(scrub::limits::MTU);
        shares.enter(&mut settings.flows);
        // Nobody in a capture answers a challenge or a question.
        settings.flows.half_open = None;
        if settings.adopt == Adopt::End {
            settings.adopt = Adopt::No;
        }
        for rule in UNSEEN {
            settings.rules.set(rule, Action::Off);
        }
        settings.misses_segments = true;
        // Where nobody named the links' subnets, trusted networks are taken for those. A single
        // host tells of no link.
        if settings.subnets.is_empty() {
            let is_host = |net: &Network| net.prefix_len == if net.address.is_ipv4() { 32 } else { 128 };
            settings.subnets = self.trusted.iter().copied().filter(|net| !is_host(net)).collect();
        }
        Ok(settings)
    }

    fn writes_standard(&self) -> bool {
        self.write.as_deref() == Some(Path::new(STANDARD))
    }

    /// What is written of single frames, if anything.
    fn trace(&self) -> Result<Option<Trace>, Failure> {
        let explain = match &self.explain {
            Some(file) => {
                refuse_same_file(&self.read, file)?;
                Some(begin(file, Format::PcapNg)?)
            }
            None => None,
        };
        let ends = <[SocketAddr; 2]>::try_from(self.diff.as_slice()).ok();
        Ok((explain.is_some() || ends.is_some())
            .then(|| Trace::new(explain, ends, self.writes_standard() || self.json)))
    }

    fn format(&self, of_input: Format) -> Format {
        let name = self.write.as_ref().and_then(|file| file.extension());
        match name.and_then(|extension| extension.to_str()) {
            Some("pcap") => Format::Pcap,
            Some("pcapng") => Format::PcapNg,
            _ => of_input,
        }
    }
}

/// `ringwall gate replay`
pub(crate) fn replay(args: &ReplayArgs) -> Result<(), Failure> {
    let settings = args.settings()?;
    let output = args.write.as_deref().unwrap_or(Path::new(NOWHERE));
    refuse_same_file(&args.read, output)?;
    let taken = Arc::new(AtomicU64::new(0));
    let (source, len) = open(&args.read)?;
    let refused = |error| Failure::new(format!("{}: {error}", args.read.display()));
    let source = unpacked(Counted::new(source, Arc::clone(&taken))).map_err(refused)?;
    let reader = CaptureReader::new(source).map_err(refused)?;
    let mut replay = Replay {
        mtu: settings.mtu,
        scrubber: Scrubber::new(settings, KEYS),
        writer: begin(output, args.format(reader.format()))?,
        keeps_notes: args.format(reader.format()) == Format::PcapNg,
        reader,
        sides: args.sides(),
        verify_checksums: args.verify_checksums,
        rules_are_off: !args.null,
        clock: Clock::default(),
        begun: 0,
        notes: 0,
        trace: args.trace()?,
        progress: Progress::new(taken, len),
    };
    let before = system::clock::processor_time();
    let outcome = replay.run();
    let report = replay.report(system::clock::processor_time().saturating_sub(before));
    // What was scrubbed before the capture broke off is kept.
    let Replay { writer, trace, .. } = replay;
    writer.finish().map_err(|error| unwritable(output, error))?;
    if let (Some(trace), Some(file)) = (trace, &args.explain) {
        trace.finish().map_err(|error| unwritable(file, error))?;
    }
    report.print(args.json, args.writes_standard())?;
    outcome.map_err(|error| Failure::file(&args.read, error, "what came before is written"))?;
    report.all_was_read(&args.read)
}

/// What is read, and how long it is if it is a file.
fn open(file: &Path) -> Result<(Box<dyn Read + Send>, Option<u64>), Failure> {
    if file == Path::new(STANDARD) {
        return Ok((Box::new(std::io::stdin()), None));
    }
    let opened = File::open(file).map_err(|error| Failure::file(file, error, "name a capture file, or -"))?;
    let len = opened.metadata().ok().filter(std::fs::Metadata::is_file).map(|meta| meta.len());
    Ok((Box::new(opened), len))
}

fn begin(file: &Path, format: Format) -> Result<Written, Failure> {
    let created = create(file).map_err(|error| unwritable(file, error))?;
    let buffered = BufWriter::with_capacity(WRITE_BYTES, created);
    CaptureWriter::new(buffered, format).map_err(|error| unwritable(file, error))
}

fn unwritable(file: &Path, error: std::io::Error) -> Failure {
    Failure::file(file, error, "name a file that can be written")
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
struct Replay<'r> {
    scrubber: Scrubber,
    reader: CaptureReader<'r>,
    writer: Written,
    keeps_notes: bool,
    sides: Sides,
    verify_checksums: bool,
    rules_are_off: bool,
    /// Longest packet on a link, in bytes.
    mtu: usize,
    clock: Clock,
    /// Frames whose checksum or length was left to the sender's card.
    begun: u64,
    /// Blocks beside the frames that are not written.
    notes: u64,
    trace: Option<Trace>,
    progress: Progress,
}

/// Where in the capture's time we are, and whence frames came.
#[derive(Debug, Default)]
struct Clock {
    now: Instant,
    /// When the latest frame was captured, since 1970; `now` is the same moment.
    captured: Duration,
    /// On which interface the latest frame of each side was captured.
    interfaces: [Option<u32>; 2],
}

impl Clock {
    /// The interface that a frame to side `to` passes: that of frames from the other side, which
    /// were captured on their way there.
    fn interface(&self, to: Side) -> u32 {
        let [from, back] = [to.other(), to].map(|side| self.interfaces[side as usize]);
        from.or(back).unwrap_or(0)
    }
}

impl Replay<'_> {
    fn run(&mut self) -> std::io::Result<()> {
        while self.reader.fill()? {
            self.advance_to_capture();
            self.take_notes();
            self.pass();
            self.progress.step();
        }
        self.take_notes();
        self.advance(self.clock.now + AFTER_THE_END);
        self.progress.end();
        Ok(())
    }

    /// Hands on what the capture says beside its frames.
    fn take_notes(&mut self) {
        for note in self.reader.take_notes() {
            if note.is_section() {
                self.clock.interfaces = [None; 2];
            }
            self.writer.note(&note);
            if let Some(trace) = &mut self.trace {
                trace.note(&note);
            }
            // What describes the frames themselves is in a pcap file, too.
            self.notes += u64::from(!self.keeps_notes && !note.is_description());
        }
    }

    /// Lets as much time pass as between the two latest frames. Clocks of capturing hosts go back
    /// at times, that of a bump never does; so a frame from the future moves it once, and those
    /// that follow go on from there.
    fn advance_to_capture(&mut self) {
        let captured = self.reader.captured_at();
        let is_first = self.clock.captured == Duration::ZERO;
        let passed = if is_first { captured } else { captured.saturating_sub(self.clock.captured) };
        self.advance(self.clock.now + passed);
        self.clock.captured = captured;
        self.writer.set_time(captured);
    }

    /// Lets time pass until `to`, and what falls due on the way happen at its hour.
    fn advance(&mut self, to: Instant) {
        let (began, captured) = (self.clock.now, self.clock.captured);
        while let Some(due) = self.scrubber.deadline().filter(|due| *due <= to) {
            self.clock.now = due.max(self.clock.now);
            let time = captured + self.clock.now.since(began);
            self.writer.set_time(time);
            let mut left = Vec::new();
            let copies = self.trace.is_some().then_some(&mut left);
            let mut sink = BothWays { writer: &mut self.writer, clock: &self.clock, from: None, copies };
            self.scrubber.tick(at(self.clock.now), TICK_BUDGET, &mut sink);
            if let Some(trace) = &mut self.trace {
                trace.due(time, &left, &self.scrubber);
            }
            while self.scrubber.next_event().is_some() {}
        }
        self.clock.now = to;
    }

    /// Takes the frame that waits through the scrubber.
    fn pass(&mut self) {
        let interface = self.reader.interface();
        self.writer.set_options(self.reader.frame_options());
        let options = self.trace.as_ref().map(|_| self.reader.frame_options().to_vec());
        let number = self.reader.number();
        let Some(mut frame) = self.reader.next_frame() else { return };
        let from = self.sides.of(frame.bytes, interface);
        self.clock.interfaces[from as usize] = Some(interface);
        let before = options.map(|options| (options, frame.bytes.to_vec()));
        let is_begun = !self.verify_checksums && complete(&mut frame);
        self.begun += u64::from(is_begun);
        frame.meta.gso = gso(&frame, self.mtu);
        let mut left = Vec::new();
        let copies = before.is_some().then_some(&mut left);
        let mut sink = BothWays { writer: &mut self.writer, clock: &self.clock, from: Some(from), copies };
        self.scrubber.process(at(self.clock.now), from, &mut Some(frame), &mut sink);
        // What is made later is no frame of the capture.
        self.writer.set_options(&[]);
        if let (Some(trace), Some((options, before))) = (&mut self.trace, before) {
            let time = self.clock.captured;
            trace.seen(&Seen { number, interface, time, from, options, before, is_begun }, &left, &self.scrubber);
        }
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
            encrypted_frames: left_out.encrypted,
            frames_without_packet: left_out.without_packet,
            notes: self.notes + left_out.notes,
            missing_segments,
            missing_bytes,
        }
    }
}

fn at(now: Instant) -> Now {
    Now { since_boot: now, wall: None }
}

/// How a packet that no link carries in one piece was to be cut: the capture shows what a host's
/// stack hands to its card.
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

/// Has what the sender left to his card count as right; whether he left anything.
fn complete(frame: &mut Frame<'_>) -> bool {
    let left = offload::complete_lengths(frame.bytes);
    let begun = begun_checksum(frame.bytes).or_else(|| left.then(|| transport_checksum(frame.bytes)).flatten());
    if let Some((start, offset)) = begun {
        frame.meta.checksum = Checksum::Partial { start: start as u16, offset: offset as u16 };
    }
    begun.is_some() | offload::complete_header(frame.bytes)
}

/// Both sides of the gateway in one capture, in the order in which frames leave.
struct BothWays<'a> {
    writer: &'a mut Written,
    clock: &'a Clock,
    /// Where the frame came from that is being scrubbed.
    from: Option<Side>,
    /// What leaves, for whoever asked for it.
    copies: Option<&'a mut Vec<Left>>,
}

impl Sink for BothWays<'_> {
    fn reserve(&mut self, _to: Side, capacity: usize) -> Option<&mut [u8]> {
        self.writer.reserve(capacity)
    }

    fn commit(&mut self, to: Side, len: usize, meta: Meta) {
        self.writer.set_interface(self.clock.interface(to));
        if self.from == Some(to) {
            // An answer is no frame of the capture.
            self.writer.set_options(&[]);
        }
        self.writer.commit(len, meta);
        if let Some(copies) = &mut self.copies {
            copies.push(Left { to, frame: self.writer.last().to_vec() });
        }
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
