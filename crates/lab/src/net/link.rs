//! Our own impairing link: a program that joins two interfaces of a namespace by two [`Line`]s, one for each direction.
//!
//! It hears every frame of either interface and sends it on by the other, as the impairment has it. Offloads are off on
//! both interfaces that send into it, so that it sees frames as a wire carries them: see [`Line::offer`].

use std::io::{self, Write};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use bump::{Batch, Generator, Instant, Meta, Side};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGINT, SIGTERM};
use system::clock::Clock;
use system::port::{Backlog, PacketOptions, PacketPort, Receiver, RingSlots, Sender, Sinks};
use system::takeover::Kept;
use system::wait::{PollFd, PollFlags, wait};

use crate::failure::Failure;
use crate::net::impairment::{Impairment, Line, LineCounters};
use crate::net::{Frame, Namespace, Running};

/// Name of every host's interface, in its own namespace.
pub const INTERFACE: &str = "e0";
/// All hosts.
pub const BROADCAST: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 255);

/// The link's interface towards the host, in its own namespace.
pub const INNER: &str = "inner";
/// The link's interface towards the bridge.
pub const OUTER: &str = "outer";
/// What the link says once every further frame will be carried.
const READY: &str = "ready";
const READY_LIMIT: Duration = Duration::from_secs(30);

/// A host's port with the link in front of it.
#[derive(Clone, Debug)]
pub struct ImpairedPort {
    /// The host.
    pub host: &'static str,
    /// What happens to frames, the same both ways.
    pub impairment: Impairment,
    /// Of everything that is left to chance.
    pub seed: u64,
    /// The `ringwall-lab` program; `None` is this one.
    pub program: Option<PathBuf>,
}

/// What became of the frames of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkCounters {
    /// Those that came in on the left, where the host is.
    pub left: LineCounters,
    /// Those that came in on the right, where the bridge is.
    pub right: LineCounters,
    /// Frames lost on the way into the link, because it was too slow, or unreadable.
    pub missed: u64,
    /// Frames that the kernel refused to send.
    pub refused: u64,
}

/// Starts the link of `port` in `namespace`, between its interfaces [`INNER`] and [`OUTER`]; its log goes to `directory`.
///
/// # Errors
/// The program cannot be started, or cannot open the interfaces.
pub fn start(namespace: &Namespace, port: &ImpairedPort, directory: &Path) -> Result<Running, Failure> {
    let program = match &port.program {
        Some(program) => program.clone(),
        None => std::env::current_exe().map_err(Failure::io("finding this program"))?,
    };
    let mut command = namespace.command(&program.to_string_lossy());
    command.args(["link", "--left", INNER, "--right", OUTER, "--seed", &port.seed.to_string()]);
    command.args(port.impairment.options());
    let mut link = Running::start(command, &directory.join("link.log"))?;
    link.await_output(READY, READY_LIMIT)?;
    Ok(link)
}

/// Ends `link`; returns what became of its frames.
///
/// # Errors
/// It had ended before, and did not say.
pub fn stop(link: Running) -> Result<LinkCounters, Failure> {
    let output = link.stop(Signal::TERM);
    let line = output.lines().last().unwrap_or_default();
    serde_json::from_str(line).map_err(|error| Failure::Unreadable(format!("the link's counters: {error}: {line}")))
}

/// What the program joins.
#[derive(Clone, Debug, clap::Args)]
pub struct LinkArgs {
    /// One interface
    #[arg(long, value_name = "INTERFACE")]
    left: String,
    /// The other interface
    #[arg(long, value_name = "INTERFACE")]
    right: String,
    /// Seed of everything that is left to chance
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    impairment: Impairment,
}

/// Joins two interfaces of this namespace until a signal ends it; then prints the counters as one line of JSON.
///
/// # Errors
/// An interface cannot be opened, or goes away.
pub fn run(args: &LinkArgs) -> Result<ExitCode, Failure> {
    let (ending, signalled) = UnixStream::pair().map_err(Failure::io("making a socket pair"))?;
    for signal in [SIGTERM, SIGINT] {
        let signalled = signalled.try_clone().map_err(Failure::io("sharing a socket"))?;
        signal_hook::low_level::pipe::register(signal, signalled).map_err(Failure::io("arming signal handlers"))?;
    }
    let mut link = Link {
        clock: Clock::new(),
        ports: [open(&args.left)?, open(&args.right)?],
        lines: [(Side::Outer, 0), (Side::Inner, 1)]
            .map(|(to, stream)| Line::new(args.impairment.clone(), to, generator(args.seed, stream))),
    };
    say(READY)?;
    link.carry_until(&ending).map_err(Failure::io(format!("joining {} and {}", args.left, args.right)))?;
    let counters = serde_json::to_string(&link.counters()).map_err(|error| Failure::Unreadable(error.to_string()))?;
    say(&counters)?;
    Ok(ExitCode::SUCCESS)
}

fn say(line: &str) -> Result<(), Failure> {
    writeln!(io::stdout(), "{line}").map_err(Failure::io("writing to standard output"))
}

/// A generator for each direction, so that what one carries does not change what happens in the other.
fn generator(seed: u64, stream: u8) -> Generator {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8] = stream;
    Generator::from_seed(bytes)
}

/// Opens a port on `interface` of the calling thread's namespace that hears all frames.
///
/// # Errors
/// There is no such interface, or the kernel refuses.
pub fn open(interface: &str) -> Result<PacketPort, Failure> {
    let options = PacketOptions { promiscuous: true, all_multicast: true, ..PacketOptions::new(index_of(interface)?) };
    open_port(interface, &options)
}

/// Opens a port on `interface` of the calling thread's namespace that hears nothing.
///
/// # Errors
/// As [`open`].
pub fn open_to_send(interface: &str) -> Result<PacketPort, Failure> {
    open_port(interface, &PacketOptions { deaf: true, ..PacketOptions::new(index_of(interface)?) })
}

/// Has `frame` wait to leave with the next call; a port that has no room for it loses it.
pub fn put(port: &mut PacketPort, Frame(bytes): &Frame) {
    if let Some(room) = port.sender.reserve(bytes.len()) {
        room[..bytes.len()].copy_from_slice(bytes);
        port.sender.commit(bytes.len(), Meta::plain());
    }
}

/// Opens a port on `interface` of the calling thread's namespace that hears ARP, much of it in a short time.
///
/// # Errors
/// As [`open`].
pub fn open_for_arp(interface: &str) -> Result<PacketPort, Failure> {
    let options = PacketOptions::kept(Kept::Arp, index_of(interface)?);
    open_port(interface, &PacketOptions { ring: Some(RingSlots::Many), ..options })
}

/// The number of `interface` of the calling thread's namespace.
///
/// # Errors
/// There is none.
pub fn index_of(interface: &str) -> Result<u32, Failure> {
    let any_socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).map_err(Failure::io("opening a socket"))?;
    rustix::net::netdevice::name_to_index(&any_socket, interface)
        .map_err(|error| Failure::Io { doing: format!("finding interface {interface}"), source: error.into() })
}

fn open_port(interface: &str, options: &PacketOptions) -> Result<PacketPort, Failure> {
    PacketPort::open(options).map_err(|error| Failure::Usage(format!("interface {interface}: {error}")))
}

/// The two ports, left and right, and the line that begins at each.
struct Link {
    clock: Clock,
    ports: [PacketPort; 2],
    lines: [Line; 2],
}

impl Link {
    fn carry_until(&mut self, ending: &UnixStream) -> io::Result<()> {
        while !self.await_work(ending)? {
            let now = self.clock.now().since_boot;
            for (port, line) in self.ports.iter_mut().zip(&mut self.lines) {
                port.receiver.fill()?;
                while let Some(frame) = port.receiver.next_frame() {
                    line.offer(now, &frame);
                }
            }
            let [left, right] = &mut self.ports;
            let mut sinks = Sinks { inner: &mut left.sender, outer: &mut right.sender };
            self.lines.iter_mut().for_each(|line| line.release(now, &mut sinks));
            sinks.flush();
        }
        Ok(())
    }

    /// Waits until a frame arrives or leaves; whether the link is to end instead.
    fn await_work(&mut self, ending: &UnixStream) -> io::Result<bool> {
        let now = self.clock.now().since_boot;
        let [left, right] = &self.ports;
        let [rightwards, leftwards] = &self.lines;
        let (left_flags, left_timeout) = outlook(left, leftwards, now);
        let (right_flags, right_timeout) = outlook(right, rightwards, now);
        let timeout = [left_timeout, right_timeout].into_iter().flatten().min();
        let mut descriptors = [
            PollFd::new(left, left_flags),
            PollFd::new(right, right_flags),
            PollFd::from_borrowed_fd(ending.as_fd(), PollFlags::IN),
        ];
        wait(&mut descriptors, timeout)?;
        Ok(!descriptors[2].revents().is_empty())
    }

    fn counters(&mut self) -> LinkCounters {
        let [left, right] = [self.lines[0].counters(), self.lines[1].counters()];
        let mut counters = LinkCounters { left, right, missed: 0, refused: 0 };
        for port in &mut self.ports {
            port.receiver.count_kernel_drops();
            let received = port.receiver.counters();
            counters.missed += received.kernel_drops + received.unreadable;
            counters.refused += port.sender.counters().errors;
        }
        counters
    }
}

/// What to wait for at `port`, at which `line` ends, and for how long.
fn outlook(port: &PacketPort, line: &Line, now: Instant) -> (PollFlags, Option<Duration>) {
    match port.sender.backlog() {
        Backlog::None => (PollFlags::IN, line.deadline().map(|deadline| deadline.since(now))),
        Backlog::UntilWritable => (PollFlags::IN | PollFlags::OUT, None),
        Backlog::After(time) => (PollFlags::IN, Some(time)),
    }
}
