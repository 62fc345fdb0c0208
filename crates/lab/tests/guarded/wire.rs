//! What the tests put on a wire and how they listen: datagrams, streams, ARP, witnesses.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use ringwall_lab::failure::Failure;
use ringwall_lab::net::lan::INTERFACE;
use ringwall_lab::net::talk::Mailbox;
use ringwall_lab::net::{Direction, Frame, Host, Lan, Namespace, Running, Watch, process};
use wire::EtherType;
use wire::cll::train;

use crate::stage::{Outcome, SOON, Stage};

/// A port for datagrams.
pub const PORT: u16 = 4000;

/// What `host` puts on the wire, from now on.
pub fn watch_sent(stage: &Stage, host: &Host) -> Result<Watch, Failure> {
    Watch::start(
        &stage.lan.bridge,
        &Lan::port(host),
        Direction::In,
        &stage.run.directory(),
        &format!("sent-{}", host.name),
    )
}

/// Neither sealed frames nor trains of them.
const NOT_OURS: &str = "not (ether proto 0x07d0 or (udp dst port 52000 and src net 169.254.0.0/16))";

/// As [`watch_sent`], for frames that Ringwall did not make.
pub fn watch_sent_in_clear(stage: &Stage, host: &Host) -> Result<Watch, Failure> {
    let label = format!("clear-{}", host.name);
    let (port, directory) = (Lan::port(host), stage.run.directory());
    Watch::start_matching(&stage.lan.bridge, &port, Direction::In, &directory, &label, NOT_OURS)
}

/// What the wire brings to `host`, from now on.
pub fn watch_arriving(stage: &Stage, host: &Host) -> Result<Watch, Failure> {
    Watch::start(
        &stage.lan.bridge,
        &Lan::port(host),
        Direction::Out,
        &stage.run.directory(),
        &format!("to-{}", host.name),
    )
}

/// What the stack of `host` is given, from now on.
pub fn watch_stack(stage: &Stage, host: &Host) -> Result<Watch, Failure> {
    Watch::start(&host.namespace, INTERFACE, Direction::In, &stage.run.directory(), &format!("in-{}", host.name))
}

/// Waits until `count` frames for which `wanted` holds have been seen.
pub fn await_frames(watch: &Watch, what: &str, count: usize, wanted: impl Fn(&Frame) -> bool) -> Outcome {
    process::until(what, SOON, || Ok(watch.so_far()?.iter().filter(|frame| wanted(frame)).count() >= count))
}

/// Whether `to` answers plain ARP of `from`.
pub fn answers_arp(from: &Host, to: Ipv4Addr) -> Result<bool, Failure> {
    let mut command = from.namespace.command("arping");
    command.args(["-q", "-f", "-c", "2", "-w", "2", "-I", INTERFACE, &to.to_string()]);
    Ok(process::ask(command, &[])?.status.success())
}

/// Pings once with these options, separated by blanks; whether an answer came.
pub fn pings(from: &Namespace, to: Ipv4Addr, options: &str) -> Result<bool, Failure> {
    let mut command = from.command("ping");
    command.args(["-n", "-c", "1", "-W", "2"]).args(options.split_whitespace()).arg(to.to_string());
    Ok(process::ask(command, &[])?.status.success())
}

/// Sends datagrams until one arrives; returns how long that took.
pub fn await_datagram(from: &Mailbox, to: &Host, into: &Mailbox, limit: Duration) -> Result<Duration, Failure> {
    into.take()?;
    let start = std::time::Instant::now();
    process::until(&format!("a datagram at {}", to.name), limit, || {
        from.send(to, PORT, b"are you there");
        process::pause(Duration::from_millis(100))?;
        Ok(!into.take()?.is_empty())
    })?;
    Ok(start.elapsed())
}

/// Whether the frame is of another kind than ours.
pub fn is_clear(frame: &Frame) -> bool {
    !frame.is(EtherType::CLL) && train::messages(&frame.0).is_none()
}

/// A TCP connection over which one host sends a counted pattern without end and the other checks it.
pub struct Stream {
    delivered: Arc<AtomicU64>,
    damaged: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    ends: Vec<TcpStream>,
    threads: Vec<JoinHandle<()>>,
}

/// Length of the pattern; a prime, so that no boundary of segments falls on it twice in a row.
const PATTERN_LEN: usize = 65_521;

impl Stream {
    /// Connects `from` to `to` at `port` of the address `at` and begins to send.
    pub fn start(from: &Namespace, to: &Namespace, at: Ipv4Addr, port: u16) -> Result<Stream, Failure> {
        let address = SocketAddr::from((at, port));
        let failed = || Failure::io(format!("a TCP connection to {address}"));
        let listener = to.enter(|| TcpListener::bind(address).map_err(failed()))?;
        let sender = from.enter(|| TcpStream::connect_timeout(&address, SOON).map_err(failed()))?;
        let (receiver, _) = listener.accept().map_err(failed())?;
        let mut stream = Stream {
            delivered: Arc::default(),
            damaged: Arc::default(),
            stop: Arc::default(),
            ends: vec![sender.try_clone().map_err(failed())?, receiver.try_clone().map_err(failed())?],
            threads: Vec::new(),
        };
        stream.send_through(sender);
        stream.receive_from(receiver);
        Ok(stream)
    }

    fn send_through(&mut self, mut sender: TcpStream) {
        let stop = self.stop.clone();
        let pattern = pattern();
        self.threads.push(std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) && sender.write_all(&pattern).is_ok() {}
        }));
    }

    fn receive_from(&mut self, mut receiver: TcpStream) {
        let (delivered, damaged) = (self.delivered.clone(), self.damaged.clone());
        let pattern = pattern();
        self.threads.push(std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 18];
            let mut at = 0;
            while let Ok(count @ 1..) = receiver.read(&mut buffer) {
                for part in buffer[..count].chunks(PATTERN_LEN) {
                    let (head, tail) = part.split_at(part.len().min(PATTERN_LEN - at));
                    if head != &pattern[at..at + head.len()] || tail != &pattern[..tail.len()] {
                        damaged.store(true, Ordering::Relaxed);
                    }
                    at = (at + part.len()) % PATTERN_LEN;
                }
                delivered.fetch_add(count as u64, Ordering::Relaxed);
            }
        }));
    }

    /// Bytes that have arrived.
    pub fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Relaxed)
    }

    /// Waits until `bytes` more have arrived, all of them right.
    pub fn await_progress(&self, bytes: u64, limit: Duration) -> Outcome {
        let wanted = self.delivered() + bytes;
        process::until(&format!("{bytes} more bytes over TCP"), limit, || Ok(self.delivered() >= wanted))?;
        assert!(!self.damaged.load(Ordering::Relaxed), "TCP delivered other bytes than were sent");
        Ok(())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for end in &self.ends {
            // One that is closed already needs no more.
            let _closed = end.shutdown(std::net::Shutdown::Both);
        }
        for thread in self.threads.drain(..) {
            let _ended = thread.join();
        }
    }
}

fn pattern() -> Vec<u8> {
    (0..PATTERN_LEN).map(|at| (at.wrapping_mul(2_654_435_761) >> 7) as u8).collect()
}

/// Runs a Python program on `host` to its end.
pub fn python(host: &Host, program: &str, arguments: &[&str]) -> Result<String, Failure> {
    let mut command = host.namespace.command("/usr/bin/python3");
    command.arg("-").args(arguments);
    process::must_with(command, program.as_bytes())
}

/// Starts a program on `host` that runs until it is stopped.
pub fn launch(stage: &Stage, host: &Host, program: &str, arguments: &str) -> Result<Running, Failure> {
    let mut command = host.namespace.command(program);
    command.args(arguments.split(' '));
    Running::start(command, &stage.file(&format!("{program}-{}.log", host.name)))
}
